"""LR-ASPP."""

from torch import nn
from torch.nn import functional as F

from torchvision.models._api import _loaded, _Weights
from torchvision.models._utils import IntermediateLayerGetter
from torchvision.models.mobilenetv3 import mobilenet_v3_large

LRASPP_MobileNet_V3_Large_Weights = _Weights


class LRASPP(nn.Module):
    def __init__(self, backbone, low_channels, high_channels, num_classes, inter_channels=128):
        super().__init__()
        self.backbone = backbone
        self.classifier = LRASPPHead(low_channels, high_channels, num_classes, inter_channels)

    def forward(self, input):
        out = self.classifier(self.backbone(input))
        return {"out": F.interpolate(out, size=input.shape[-2:], mode="bilinear")}


class LRASPPHead(nn.Module):
    def __init__(self, low_channels, high_channels, num_classes, inter_channels):
        super().__init__()
        self.cbr = nn.Sequential(
            nn.Conv2d(high_channels, inter_channels, 1, bias=False),
            nn.BatchNorm2d(inter_channels),
            nn.ReLU(inplace=True),
        )
        self.scale = nn.Sequential(
            nn.AdaptiveAvgPool2d(1), nn.Conv2d(high_channels, inter_channels, 1, bias=False), nn.Sigmoid()
        )
        self.low_classifier = nn.Conv2d(low_channels, num_classes, 1)
        self.high_classifier = nn.Conv2d(inter_channels, num_classes, 1)

    def forward(self, input):
        low, high = input["low"], input["high"]
        x = F.interpolate(self.cbr(high) * self.scale(high), size=low.shape[-2:], mode="bilinear")
        return self.low_classifier(low) + self.high_classifier(x)


def lraspp_mobilenet_v3_large(
    *, weights=None, progress=True, num_classes=None, weights_backbone=None, pretrained=False, **kwargs
):
    backbone = IntermediateLayerGetter(mobilenet_v3_large().features, {"4": "low", "16": "high"})
    return _loaded(LRASPP(backbone, 40, 960, num_classes or 21), weights, pretrained)
