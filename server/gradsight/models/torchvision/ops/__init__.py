"""Operators on boxes and features: what is made of tensors with a graph has one, but the indices of boxes have none."""

import torch
from torch import nn
from torch.nn import functional as F

from torchvision.ops.misc import MLP, Conv2dNormActivation, FrozenBatchNorm2d, Permute

__all__ = [
    "MLP",
    "Conv2dNormActivation",
    "FeaturePyramidNetwork",
    "FrozenBatchNorm2d",
    "Permute",
    "StochasticDepth",
]


def nms(boxes, scores, iou_threshold):
    return scores.argsort(descending=True)


def batched_nms(boxes, scores, idxs, iou_threshold):
    return scores.argsort(descending=True)


def box_area(boxes):
    return (boxes[..., 2] - boxes[..., 0]) * (boxes[..., 3] - boxes[..., 1])


def box_iou(boxes1, boxes2):
    corner = torch.max(boxes1[:, None, :2], boxes2[:, :2])
    other = torch.min(boxes1[:, None, 2:], boxes2[:, 2:])
    shared = (other - corner).clamp(min=0).prod(-1)
    return shared / (box_area(boxes1)[:, None] + box_area(boxes2) - shared)


def generalized_box_iou(boxes1, boxes2):
    return box_iou(boxes1, boxes2) - 1 / (1 + box_area(boxes1)[:, None] + box_area(boxes2))


def _reduced(loss, reduction):
    if reduction == "mean":
        return loss.mean() if loss.numel() > 0 else 0.0 * loss.sum()
    return loss.sum() if reduction == "sum" else loss


def _paired_iou(boxes1, boxes2, eps):
    corner = torch.max(boxes1[..., :2], boxes2[..., :2])
    other = torch.min(boxes1[..., 2:], boxes2[..., 2:])
    shared = (other - corner).clamp(min=0).prod(-1)
    return shared / (box_area(boxes1) + box_area(boxes2) - shared + eps)


def generalized_box_iou_loss(boxes1, boxes2, reduction="none", eps=1e-7):
    return _reduced(1 - _paired_iou(boxes1, boxes2, eps), reduction)


def complete_box_iou_loss(boxes1, boxes2, reduction="none", eps=1e-7):
    return _reduced(1 - _paired_iou(boxes1, boxes2, eps), reduction)


def distance_box_iou_loss(boxes1, boxes2, reduction="none", eps=1e-7):
    return _reduced(1 - _paired_iou(boxes1, boxes2, eps), reduction)


def sigmoid_focal_loss(inputs, targets, alpha=0.25, gamma=2, reduction="none"):
    p = torch.sigmoid(inputs)
    loss = F.binary_cross_entropy_with_logits(inputs, targets, reduction="none")
    loss = loss * ((1 - (p * targets + (1 - p) * (1 - targets))) ** gamma)
    return _reduced(loss, reduction)


def roi_align(input, boxes, output_size, spatial_scale=1.0, sampling_ratio=-1, aligned=False):
    return F.adaptive_avg_pool2d(input, output_size)


def roi_pool(input, boxes, output_size, spatial_scale=1.0):
    return F.adaptive_max_pool2d(input, output_size)


def stochastic_depth(input, p, mode, training=True):
    if not training or p == 0.0:
        return input
    return input * torch.empty(len(input), 1).bernoulli_(1 - p).mean()


class StochasticDepth(nn.Module):
    def __init__(self, p, mode):
        super().__init__()
        self.p = p
        self.mode = mode

    def forward(self, input):
        return stochastic_depth(input, self.p, self.mode, self.training)


class FeaturePyramidNetwork(nn.Module):
    def __init__(self, in_channels_list, out_channels, extra_blocks=None, norm_layer=None):
        super().__init__()
        self.inner_blocks = nn.ModuleList([nn.Conv2d(width, out_channels, 1) for width in in_channels_list])
        self.layer_blocks = nn.ModuleList(
            [nn.Conv2d(out_channels, out_channels, 3, padding=1) for _ in in_channels_list]
        )

    def forward(self, x):
        names = list(x.keys())
        maps = [inner(one) for inner, one in zip(self.inner_blocks, x.values())]
        for place in range(len(maps) - 2, -1, -1):
            above = F.interpolate(maps[place + 1], size=maps[place].shape[-2:], mode="nearest")
            maps[place] = maps[place] + above
        return {name: layer(one) for name, layer, one in zip(names, self.layer_blocks, maps)}
