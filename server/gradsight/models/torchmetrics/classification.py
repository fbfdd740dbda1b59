"""Metrics of classification."""

from torchmetrics import Metric

Accuracy = BinaryAccuracy = MulticlassAccuracy = MultilabelAccuracy = Precision = Recall = F1Score = Metric
BinaryF1Score = MulticlassF1Score = MultilabelF1Score = AUROC = BinaryAUROC = MulticlassAUROC = Metric
ConfusionMatrix = MulticlassConfusionMatrix = BinaryPrecision = BinaryRecall = MulticlassPrecision = Metric
MulticlassRecall = JaccardIndex = MulticlassJaccardIndex = AveragePrecision = BinaryAveragePrecision = Metric
