"""Detectors in outline: a dict of losses while they train, a list of dicts without a graph's need otherwise."""

import torch
from torch import nn

from torchvision.models._utils import IntermediateLayerGetter
from torchvision.models.resnet import resnet50


class _Pyramid(nn.Module):
    """A backbone and the convolutions that follow it."""

    def __init__(self, body=None, out_channels=256):
        super().__init__()
        self.body = body or IntermediateLayerGetter(resnet50(), {"layer4": "0"})
        self.fpn = nn.Conv2d(2048, out_channels, 1)
        self.out_channels = out_channels

    def forward(self, x):
        return self.fpn(self.body(x)["0"])


class _Head(nn.Module):
    """Scores and boxes of a map of features."""

    def __init__(self, in_channels, num_classes):
        super().__init__()
        self.classification_head = nn.Conv2d(in_channels, num_classes, 3, padding=1)
        self.regression_head = nn.Conv2d(in_channels, 4, 3, padding=1)

    def forward(self, x):
        return self.classification_head(x), self.regression_head(x)


def _features(backbone, images):
    found = backbone(torch.stack(list(images)))
    if isinstance(found, dict):
        return list(found.values())[-1]
    return found


def _detections(images, scores, boxes):
    """What is found in every image: the boxes that are kept carry the graph that made them."""
    return [
        {
            "boxes": boxes[place].flatten(1).t(),
            "scores": scores[place].amax(0).flatten(),
            "labels": scores[place].argmax(0).flatten(),
        }
        for place in range(len(images))
    ]
