"""MobileNet v3: `features`, `avgpool`, `classifier` of four layers."""

from torch import nn

from torchvision.models._api import _loaded, _Weights
from torchvision.models._outline import _Block, _blocks
from torchvision.ops.misc import Conv2dNormActivation

MobileNet_V3_Small_Weights = MobileNet_V3_Large_Weights = _Weights


class InvertedResidual(_Block):
    pass


class MobileNetV3(nn.Module):
    def __init__(
        self,
        inverted_residual_setting,
        last_channel,
        num_classes=1000,
        block=None,
        norm_layer=None,
        dropout=0.2,
    ):
        super().__init__()
        last = inverted_residual_setting[-1]
        self.features = nn.Sequential(
            Conv2dNormActivation(3, 16, stride=2, activation_layer=nn.Hardswish),
            *_blocks(InvertedResidual, inverted_residual_setting),
            Conv2dNormActivation(last, 6 * last, 1, activation_layer=nn.Hardswish),
        )
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Sequential(
            nn.Linear(6 * last, last_channel),
            nn.Hardswish(inplace=True),
            nn.Dropout(p=dropout, inplace=True),
            nn.Linear(last_channel, num_classes),
        )

    def forward(self, x):
        return self.classifier(self.avgpool(self.features(x)).flatten(1))


def mobilenet_v3_small(weights=None, progress=True, pretrained=False, **kwargs):
    widths = [16, 16, 24, 24, 40, 40, 40, 48, 48, 96, 96, 96]
    return _loaded(MobileNetV3(widths, 1024, **kwargs), weights, pretrained)


def mobilenet_v3_large(weights=None, progress=True, pretrained=False, **kwargs):
    widths = [16, 16, 24, 24, 40, 40, 40, 80, 80, 80, 80, 112, 112, 160, 160, 160]
    return _loaded(MobileNetV3(widths, 1280, **kwargs), weights, pretrained)
