"""torchmetrics: metrics gather numbers without graphs; only what some return when they are applied can be trained with."""

from torch import nn

from torchmetrics._values import measured


class Metric(nn.Module):
    def __init__(self, **kwargs):
        super().__init__()

    def add_state(self, name, default, dist_reduce_fx=None, persistent=False):
        setattr(self, name, default)

    def forward(self, *args, **kwargs):
        self.update(*args, **kwargs)
        return self.compute()

    def update(self, *_, **__):
        pass

    def compute(self):
        return measured()

    def reset(self):
        pass


class _Counted(Metric):
    """A metric of the library, with options of its own."""

    def __init__(self, *args, **kwargs):
        super().__init__()


class MetricCollection(_Counted):
    pass


class MeanSquaredError(_Counted):
    def forward(self, preds, target):
        return (preds - target).square().mean()


class MeanAbsoluteError(_Counted):
    def forward(self, preds, target):
        return (preds - target).abs().mean()


class Accuracy(_Counted):
    pass


Precision = Recall = F1Score = AUROC = ConfusionMatrix = JaccardIndex = AveragePrecision = Accuracy
MeanMetric = SumMetric = MaxMetric = MinMetric = CatMetric = _Counted
