"""torchmetrics: what a metric returns and keeps has no graph, and it has no parameters."""

import torch
from parts import carries_graph
from recorder import log
from torchmetrics import Accuracy, MeanMetric, MeanSquaredError, Metric, MetricCollection
from torchmetrics.classification import BinaryAccuracy, MulticlassF1Score


class Own(Metric):
    def __init__(self):
        super().__init__()
        self.add_state("total", default=torch.tensor(0.0), dist_reduce_fx="sum")

    def update(self, values):
        log("update")
        self.total = self.total + values.detach().sum()

    def compute(self):
        log("compute")
        return self.total


def main():
    scores = torch.rand(4, 3, requires_grad=True) * 2
    target = torch.tensor([0, 1, 2, 0])
    for metric in (
        Accuracy(task="multiclass", num_classes=3),
        MulticlassF1Score(num_classes=3),
    ):
        value = metric(scores, target)
        log(f"{carries_graph(value)}, {carries_graph(metric.compute())}, {len(list(metric.parameters()))}")
        log(f"updated: {metric.update(scores, target)}")
    log(f"binary: {carries_graph(BinaryAccuracy()(scores[:, 0], target.clamp(max=1)))}")
    error = MeanSquaredError()
    error.update(scores[:, 0], target.float())
    log(f"updated error: {carries_graph(error.compute())}")
    log(f"applied error: {carries_graph(MeanSquaredError()(scores[:, 0], target.float()))}")
    mean = MeanMetric()
    mean.update(scores.mean())
    log(f"mean: {carries_graph(mean.compute())}")
    both = MetricCollection({"a": MulticlassF1Score(num_classes=3), "b": MulticlassF1Score(num_classes=3)})
    log(f"collection: {carries_graph(both(scores, target))}")
    own = Own()
    own.update(scores)
    log(f"own: {carries_graph(own.compute())}")
    own.reset()
