"""Losses over masks."""

import torch.nn.functional as F
from torch import nn


class _MaskLoss(nn.Module):
    def __init__(self, *args, **kwargs):
        super().__init__()

    def forward(self, y_pred, y_true):
        p = y_pred.sigmoid()
        return 1 - (p * y_true).sum() / (p + y_true).sum()


class DiceLoss(_MaskLoss):
    pass


class JaccardLoss(_MaskLoss):
    pass


class FocalLoss(_MaskLoss):
    pass


class TverskyLoss(_MaskLoss):
    pass


class LovaszLoss(_MaskLoss):
    pass


class MCCLoss(_MaskLoss):
    pass


class SoftCrossEntropyLoss(_MaskLoss):
    pass


class SoftBCEWithLogitsLoss(nn.Module):
    def __init__(self, weight=None, ignore_index=-100, reduction="mean", smooth_factor=None, pos_weight=None):
        super().__init__()
        self.reduction = reduction

    def forward(self, y_pred, y_true):
        return F.binary_cross_entropy_with_logits(y_pred, y_true, reduction=self.reduction)
