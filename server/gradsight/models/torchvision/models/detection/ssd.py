"""SSD: a backbone and a head with two parts."""

from torch import nn

from torchvision.models._api import _loaded, _Weights
from torchvision.models.detection._outline import _detections, _features, _Head, _Pyramid

SSD300_VGG16_Weights = _Weights


class SSD(nn.Module):
    def __init__(self, backbone, anchor_generator, size, num_classes, **kwargs):
        super().__init__()
        self.backbone = backbone
        self.anchor_generator = nn.Identity()
        self.head = _Head(backbone.out_channels, num_classes)
        self.transform = nn.Identity()

    def forward(self, images, targets=None):
        scores, boxes = self.head(_features(self.backbone, images))
        if self.training:
            return {"bbox_regression": boxes.abs().mean(), "classification": scores.square().mean()}
        return _detections(images, scores, boxes)


def ssd300_vgg16(
    *,
    weights=None,
    progress=True,
    num_classes=None,
    weights_backbone=None,
    trainable_backbone_layers=None,
    pretrained=False,
    **kwargs,
):
    network = SSD(_Pyramid(), None, None, num_classes or 91, **kwargs)
    return _loaded(network, weights, pretrained)
