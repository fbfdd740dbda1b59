"""torchmetrics: metrics gather numbers without graphs; what they return is there to be logged."""

from torch import nn

from torchmetrics.values import measured


class Metric(nn.Module):
    def __init__(self, *args, **kwargs):
        super().__init__()

    def add_state(self, name, default, dist_reduce_fx=None, persistent=False):
        setattr(self, name, default)

    def forward(self, *args, **kwargs):
        return measured()

    def update(self, *args, **kwargs):
        pass

    def compute(self):
        return measured()

    def reset(self):
        pass


class MetricCollection(Metric):
    pass


Accuracy = Precision = Recall = F1Score = AUROC = ConfusionMatrix = JaccardIndex = AveragePrecision = Metric
MeanMetric = SumMetric = MaxMetric = MinMetric = CatMetric = MeanSquaredError = MeanAbsoluteError = Metric
PearsonCorrCoef = R2Score = Dice = Perplexity = MeanAveragePrecision = Metric
