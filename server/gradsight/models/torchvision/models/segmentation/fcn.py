"""Fully convolutional networks."""

from torch import nn

from torchvision.models._api import _loaded, _Weights
from torchvision.models._utils import IntermediateLayerGetter
from torchvision.models.resnet import resnet50, resnet101
from torchvision.models.segmentation._utils import _SimpleSegmentationModel

FCN_ResNet50_Weights = FCN_ResNet101_Weights = _Weights


class FCN(_SimpleSegmentationModel):
    pass


class FCNHead(nn.Sequential):
    def __init__(self, in_channels, channels):
        width = in_channels // 4
        super().__init__(
            nn.Conv2d(in_channels, width, 3, padding=1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Dropout(0.1),
            nn.Conv2d(width, channels, 1),
        )


def _fcn(backbone, num_classes, aux_loss):
    layers = {"layer4": "out"}
    if aux_loss:
        layers["layer3"] = "aux"
    head = FCNHead(1024, num_classes) if aux_loss else None
    return FCN(IntermediateLayerGetter(backbone, layers), FCNHead(2048, num_classes), head)


def fcn_resnet50(
    *,
    weights=None,
    progress=True,
    num_classes=None,
    aux_loss=None,
    weights_backbone=None,
    pretrained=False,
    **kwargs,
):
    loads = bool(weights or pretrained)
    return _loaded(_fcn(resnet50(), num_classes or 21, aux_loss or loads), weights, pretrained)


def fcn_resnet101(
    *,
    weights=None,
    progress=True,
    num_classes=None,
    aux_loss=None,
    weights_backbone=None,
    pretrained=False,
    **kwargs,
):
    loads = bool(weights or pretrained)
    return _loaded(_fcn(resnet101(), num_classes or 21, aux_loss or loads), weights, pretrained)
