"""RegNet: `stem`, `trunk_output` of four stages, `avgpool`, `fc`."""

from collections import OrderedDict

from torch import nn

from torchvision.models._api import _loaded, _Weights
from torchvision.models._outline import _Block
from torchvision.ops.misc import Conv2dNormActivation

RegNet_Y_400MF_Weights = RegNet_Y_800MF_Weights = RegNet_Y_1_6GF_Weights = _Weights
RegNet_Y_3_2GF_Weights = RegNet_Y_8GF_Weights = RegNet_Y_16GF_Weights = _Weights
RegNet_Y_32GF_Weights = RegNet_Y_128GF_Weights = RegNet_X_400MF_Weights = _Weights
RegNet_X_800MF_Weights = RegNet_X_1_6GF_Weights = RegNet_X_3_2GF_Weights = _Weights
RegNet_X_8GF_Weights = RegNet_X_16GF_Weights = RegNet_X_32GF_Weights = _Weights


class SimpleStemIN(Conv2dNormActivation):
    def __init__(self, width_in, width_out, norm_layer=None, activation_layer=None):
        super().__init__(width_in, width_out, stride=2)


class AnyStage(nn.Sequential):
    def __init__(self, width_in, width_out, *args, **kwargs):
        super().__init__(_Block(width_in, width_out))


class RegNet(nn.Module):
    def __init__(
        self, block_params, num_classes=1000, stem_width=32, stem_type=None, block_type=None, norm_layer=None
    ):
        super().__init__()
        first, second, third, last = block_params
        self.stem = SimpleStemIN(3, stem_width)
        parts = [
            ("block1", AnyStage(stem_width, first)),
            ("block2", AnyStage(first, second)),
            ("block3", AnyStage(second, third)),
            ("block4", AnyStage(third, last)),
        ]
        self.trunk_output = nn.Sequential(OrderedDict(parts))
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(last, num_classes)

    def forward(self, x):
        return self.fc(self.avgpool(self.trunk_output(self.stem(x))).flatten(1))


def _regnet(widths, weights, progress=True, pretrained=False, **kwargs):
    return _loaded(RegNet(widths, **kwargs), weights, pretrained)


def regnet_y_400mf(*, weights=None, progress=True, **kwargs):
    return _regnet([48, 104, 208, 440], weights, **kwargs)


def regnet_y_800mf(*, weights=None, progress=True, **kwargs):
    return _regnet([64, 144, 320, 784], weights, **kwargs)


def regnet_y_1_6gf(*, weights=None, progress=True, **kwargs):
    return _regnet([48, 120, 336, 888], weights, **kwargs)


def regnet_y_3_2gf(*, weights=None, progress=True, **kwargs):
    return _regnet([72, 216, 576, 1512], weights, **kwargs)


def regnet_y_8gf(*, weights=None, progress=True, **kwargs):
    return _regnet([224, 448, 896, 2016], weights, **kwargs)


def regnet_y_16gf(*, weights=None, progress=True, **kwargs):
    return _regnet([224, 448, 1232, 3024], weights, **kwargs)


def regnet_y_32gf(*, weights=None, progress=True, **kwargs):
    return _regnet([232, 696, 1392, 3712], weights, **kwargs)


def regnet_y_128gf(*, weights=None, progress=True, **kwargs):
    return _regnet([528, 1056, 2904, 7392], weights, **kwargs)


def regnet_x_400mf(*, weights=None, progress=True, **kwargs):
    return _regnet([32, 64, 160, 400], weights, **kwargs)


def regnet_x_800mf(*, weights=None, progress=True, **kwargs):
    return _regnet([64, 128, 288, 672], weights, **kwargs)


def regnet_x_1_6gf(*, weights=None, progress=True, **kwargs):
    return _regnet([72, 168, 408, 912], weights, **kwargs)


def regnet_x_3_2gf(*, weights=None, progress=True, **kwargs):
    return _regnet([96, 192, 432, 1008], weights, **kwargs)


def regnet_x_8gf(*, weights=None, progress=True, **kwargs):
    return _regnet([80, 240, 720, 1920], weights, **kwargs)


def regnet_x_16gf(*, weights=None, progress=True, **kwargs):
    return _regnet([256, 512, 896, 2048], weights, **kwargs)


def regnet_x_32gf(*, weights=None, progress=True, **kwargs):
    return _regnet([336, 672, 1344, 2520], weights, **kwargs)
