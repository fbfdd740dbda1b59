"""DeepLab v3."""

from torch import nn

from torchvision.models._api import _loaded, _Weights
from torchvision.models._outline import _Block
from torchvision.models._utils import IntermediateLayerGetter
from torchvision.models.mobilenetv3 import mobilenet_v3_large
from torchvision.models.resnet import resnet50, resnet101
from torchvision.models.segmentation._utils import _SimpleSegmentationModel
from torchvision.models.segmentation.fcn import FCNHead

DeepLabV3_ResNet50_Weights = DeepLabV3_ResNet101_Weights = DeepLabV3_MobileNet_V3_Large_Weights = _Weights


class DeepLabV3(_SimpleSegmentationModel):
    pass


class ASPP(nn.Module):
    def __init__(self, in_channels, atrous_rates, out_channels=256):
        super().__init__()
        self.project = _Block(in_channels, out_channels)

    def forward(self, x):
        return self.project(x)


class DeepLabHead(nn.Sequential):
    def __init__(self, in_channels, num_classes, atrous_rates=(12, 24, 36)):
        super().__init__(
            ASPP(in_channels, atrous_rates),
            nn.Conv2d(256, 256, 3, padding=1, bias=False),
            nn.BatchNorm2d(256),
            nn.ReLU(),
            nn.Conv2d(256, num_classes, 1),
        )


def _deeplabv3(backbone, widths, num_classes, aux_loss):
    out, aux = ("16", "4") if widths[0] == 960 else ("layer4", "layer3")
    layers = {out: "out"}
    if aux_loss:
        layers[aux] = "aux"
    head = FCNHead(widths[1], num_classes) if aux_loss else None
    return DeepLabV3(IntermediateLayerGetter(backbone, layers), DeepLabHead(widths[0], num_classes), head)


def deeplabv3_resnet50(
    *,
    weights=None,
    progress=True,
    num_classes=None,
    aux_loss=None,
    weights_backbone=None,
    pretrained=False,
    **kwargs,
):
    network = _deeplabv3(resnet50(), (2048, 1024), num_classes or 21, aux_loss or bool(weights or pretrained))
    return _loaded(network, weights, pretrained)


def deeplabv3_resnet101(
    *,
    weights=None,
    progress=True,
    num_classes=None,
    aux_loss=None,
    weights_backbone=None,
    pretrained=False,
    **kwargs,
):
    network = _deeplabv3(
        resnet101(), (2048, 1024), num_classes or 21, aux_loss or bool(weights or pretrained)
    )
    return _loaded(network, weights, pretrained)


def deeplabv3_mobilenet_v3_large(
    *,
    weights=None,
    progress=True,
    num_classes=None,
    aux_loss=None,
    weights_backbone=None,
    pretrained=False,
    **kwargs,
):
    aux = aux_loss or bool(weights or pretrained)
    network = _deeplabv3(mobilenet_v3_large().features, (960, 40), num_classes or 21, aux)
    return _loaded(network, weights, pretrained)
