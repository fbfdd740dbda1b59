"""Losses over scores."""

import torch.nn.functional as F
from torch import nn


class LabelSmoothingCrossEntropy(nn.Module):
    def __init__(self, smoothing=0.1):
        super().__init__()
        self.smoothing = smoothing

    def forward(self, x, target):
        return F.cross_entropy(x, target, label_smoothing=self.smoothing)


class SoftTargetCrossEntropy(nn.Module):
    def forward(self, x, target):
        return (-target * F.log_softmax(x, dim=-1)).sum(dim=-1).mean()


class BinaryCrossEntropy(nn.Module):
    def __init__(self, smoothing=0.1, **kwargs):
        super().__init__()
        self.smoothing = smoothing

    def forward(self, x, target):
        return F.binary_cross_entropy_with_logits(x, target)
