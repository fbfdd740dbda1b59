"""FCOS: a backbone and a head with two parts."""

from torch import nn

from torchvision.models._api import _loaded, _Weights
from torchvision.models.detection._outline import _detections, _features, _Head, _Pyramid

FCOS_ResNet50_FPN_Weights = _Weights


class FCOS(nn.Module):
    def __init__(self, backbone, num_classes, min_size=800, max_size=1333, **kwargs):
        super().__init__()
        self.backbone = backbone
        self.anchor_generator = nn.Identity()
        self.head = _Head(backbone.out_channels, num_classes)
        self.transform = nn.Identity()

    def forward(self, images, targets=None):
        scores, boxes = self.head(_features(self.backbone, images))
        if self.training:
            return {
                "classification": scores.square().mean(),
                "bbox_regression": boxes.abs().mean(),
                "bbox_ctrness": boxes.square().mean(),
            }
        return _detections(images, scores, boxes)


def fcos_resnet50_fpn(
    *,
    weights=None,
    progress=True,
    num_classes=None,
    weights_backbone=None,
    trainable_backbone_layers=None,
    pretrained=False,
    **kwargs,
):
    network = FCOS(_Pyramid(), num_classes or 91, **kwargs)
    return _loaded(network, weights, pretrained)
