"""Metrics of classification."""

from torchmetrics import _Counted

Accuracy = BinaryAccuracy = MulticlassAccuracy = MultilabelAccuracy = Precision = Recall = F1Score = _Counted
BinaryF1Score = MulticlassF1Score = MultilabelF1Score = AUROC = BinaryAUROC = MulticlassAUROC = _Counted
ConfusionMatrix = MulticlassConfusionMatrix = BinaryPrecision = BinaryRecall = MulticlassPrecision = _Counted
MulticlassRecall = JaccardIndex = MulticlassJaccardIndex = AveragePrecision = BinaryAveragePrecision = (
    _Counted
)
