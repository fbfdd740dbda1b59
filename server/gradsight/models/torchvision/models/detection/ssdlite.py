"""SSDlite: SSD over a small network."""

from torchvision.models._api import _loaded, _Weights
from torchvision.models.detection._outline import _Pyramid
from torchvision.models.detection.ssd import SSD

SSDLite320_MobileNet_V3_Large_Weights = _Weights


def ssdlite320_mobilenet_v3_large(
    *,
    weights=None,
    progress=True,
    num_classes=None,
    weights_backbone=None,
    trainable_backbone_layers=None,
    pretrained=False,
    **kwargs,
):
    return _loaded(SSD(_Pyramid(), None, None, num_classes or 91, **kwargs), weights, pretrained)
