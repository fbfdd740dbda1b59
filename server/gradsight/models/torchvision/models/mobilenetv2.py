"""MobileNet v2: `features` of nineteen parts, `classifier` of two layers."""

from torch import nn

from torchvision.models._api import _loaded, _Weights
from torchvision.models._outline import _Block, _blocks
from torchvision.ops.misc import Conv2dNormActivation

MobileNet_V2_Weights = _Weights


class InvertedResidual(_Block):
    pass


class MobileNetV2(nn.Module):
    def __init__(
        self,
        num_classes=1000,
        width_mult=1.0,
        inverted_residual_setting=None,
        round_nearest=8,
        block=None,
        norm_layer=None,
        dropout=0.2,
    ):
        super().__init__()
        widths = [32, 16, 24, 24, 32, 32, 32, 64, 64, 64, 64, 96, 96, 96, 160, 160, 160, 320]
        self.last_channel = 1280
        self.features = nn.Sequential(
            Conv2dNormActivation(3, 32, stride=2, activation_layer=nn.ReLU6),
            *_blocks(InvertedResidual, widths),
            Conv2dNormActivation(320, 1280, 1, activation_layer=nn.ReLU6),
        )
        self.classifier = nn.Sequential(nn.Dropout(p=dropout), nn.Linear(1280, num_classes))

    def forward(self, x):
        return self.classifier(nn.functional.adaptive_avg_pool2d(self.features(x), (1, 1)).flatten(1))


def mobilenet_v2(weights=None, progress=True, pretrained=False, **kwargs):
    return _loaded(MobileNetV2(**kwargs), weights, pretrained)
