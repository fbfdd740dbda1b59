"""ConvNeXt: `features` of eight parts, `avgpool`, `classifier` whose last layer is its third."""

from torch import nn

from torchvision.models._api import _loaded, _Weights
from torchvision.models._outline import _Block
from torchvision.ops.misc import Conv2dNormActivation

ConvNeXt_Tiny_Weights = ConvNeXt_Small_Weights = ConvNeXt_Base_Weights = ConvNeXt_Large_Weights = _Weights


class LayerNorm2d(nn.LayerNorm):
    def forward(self, x):
        x = x.permute(0, 2, 3, 1)
        x = nn.functional.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)
        return x.permute(0, 3, 1, 2)


class ConvNeXt(nn.Module):
    def __init__(
        self,
        block_setting,
        stochastic_depth_prob=0.0,
        layer_scale=1e-6,
        num_classes=1000,
        block=None,
        norm_layer=None,
    ):
        super().__init__()
        first, second, third, last = block_setting
        self.features = nn.Sequential(
            Conv2dNormActivation(3, first, 4, 4, 0, norm_layer=LayerNorm2d, activation_layer=None),
            nn.Sequential(_Block(first, first)),
            nn.Sequential(LayerNorm2d(first), nn.Conv2d(first, second, 2, stride=2)),
            nn.Sequential(_Block(second, second)),
            nn.Sequential(LayerNorm2d(second), nn.Conv2d(second, third, 2, stride=2)),
            nn.Sequential(_Block(third, third)),
            nn.Sequential(LayerNorm2d(third), nn.Conv2d(third, last, 2, stride=2)),
            nn.Sequential(_Block(last, last)),
        )
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Sequential(LayerNorm2d(last), nn.Flatten(1), nn.Linear(last, num_classes))

    def forward(self, x):
        return self.classifier(self.avgpool(self.features(x)))


def _convnext(widths, weights, progress=True, pretrained=False, **kwargs):
    return _loaded(ConvNeXt(widths, **kwargs), weights, pretrained)


def convnext_tiny(*, weights=None, progress=True, **kwargs):
    return _convnext([96, 192, 384, 768], weights, **kwargs)


def convnext_small(*, weights=None, progress=True, **kwargs):
    return _convnext([96, 192, 384, 768], weights, **kwargs)


def convnext_base(*, weights=None, progress=True, **kwargs):
    return _convnext([128, 256, 512, 1024], weights, **kwargs)


def convnext_large(*, weights=None, progress=True, **kwargs):
    return _convnext([192, 384, 768, 1536], weights, **kwargs)
