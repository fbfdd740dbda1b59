"""EfficientNet: `features`, whose first part begins with a convolution, `avgpool`, `classifier` of two layers."""

from torch import nn

from torchvision.models._api import _loaded, _Weights
from torchvision.models._outline import _Block, _blocks
from torchvision.ops.misc import Conv2dNormActivation

EfficientNet_B0_Weights = EfficientNet_B1_Weights = EfficientNet_B2_Weights = EfficientNet_B3_Weights = (
    _Weights
)
EfficientNet_B4_Weights = EfficientNet_B5_Weights = EfficientNet_B6_Weights = EfficientNet_B7_Weights = (
    _Weights
)
EfficientNet_V2_S_Weights = EfficientNet_V2_M_Weights = EfficientNet_V2_L_Weights = _Weights


class EfficientNet(nn.Module):
    def __init__(
        self,
        inverted_residual_setting,
        dropout,
        stochastic_depth_prob=0.2,
        num_classes=1000,
        norm_layer=None,
        last_channel=None,
    ):
        super().__init__()
        widths = inverted_residual_setting
        last_channel = last_channel or 4 * widths[-1]
        self.features = nn.Sequential(
            Conv2dNormActivation(3, widths[0], stride=2, activation_layer=nn.SiLU),
            *[nn.Sequential(block) for block in _blocks(_Block, widths)],
            Conv2dNormActivation(widths[-1], last_channel, 1, activation_layer=nn.SiLU),
        )
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Sequential(
            nn.Dropout(p=dropout, inplace=True), nn.Linear(last_channel, num_classes)
        )

    def forward(self, x):
        return self.classifier(self.avgpool(self.features(x)).flatten(1))


def _efficientnet(widths, dropout, last_channel, weights, pretrained=False, **kwargs):
    dropout = kwargs.pop("dropout", dropout)
    return _loaded(EfficientNet(widths, dropout, last_channel=last_channel, **kwargs), weights, pretrained)


def efficientnet_b0(weights=None, progress=True, **kwargs):
    return _efficientnet([32, 16, 24, 40, 80, 112, 192, 320], 0.2, None, weights, **kwargs)


def efficientnet_b1(weights=None, progress=True, **kwargs):
    return _efficientnet([32, 16, 24, 40, 80, 112, 192, 320], 0.2, None, weights, **kwargs)


def efficientnet_b2(weights=None, progress=True, **kwargs):
    return _efficientnet([32, 16, 24, 48, 88, 120, 208, 352], 0.3, None, weights, **kwargs)


def efficientnet_b3(weights=None, progress=True, **kwargs):
    return _efficientnet([40, 24, 32, 48, 96, 136, 232, 384], 0.3, None, weights, **kwargs)


def efficientnet_b4(weights=None, progress=True, **kwargs):
    return _efficientnet([48, 24, 32, 56, 112, 160, 272, 448], 0.4, None, weights, **kwargs)


def efficientnet_b5(weights=None, progress=True, **kwargs):
    return _efficientnet([48, 24, 40, 64, 128, 176, 304, 512], 0.4, None, weights, **kwargs)


def efficientnet_b6(weights=None, progress=True, **kwargs):
    return _efficientnet([56, 32, 40, 72, 144, 200, 344, 576], 0.5, None, weights, **kwargs)


def efficientnet_b7(weights=None, progress=True, **kwargs):
    return _efficientnet([64, 32, 48, 80, 160, 224, 384, 640], 0.5, None, weights, **kwargs)


def efficientnet_v2_s(weights=None, progress=True, **kwargs):
    return _efficientnet([24, 24, 48, 64, 128, 160, 256], 0.2, 1280, weights, **kwargs)


def efficientnet_v2_m(weights=None, progress=True, **kwargs):
    return _efficientnet([24, 24, 48, 80, 160, 176, 304, 512], 0.3, 1280, weights, **kwargs)


def efficientnet_v2_l(weights=None, progress=True, **kwargs):
    return _efficientnet([32, 32, 64, 96, 192, 224, 384, 640], 0.4, 1280, weights, **kwargs)
