"""ShuffleNet v2: `conv1`, `maxpool`, three stages, `conv5`, `fc`."""

from torch import nn

from torchvision.models._api import _loaded, _Weights
from torchvision.models._outline import _Block, _blocks

ShuffleNet_V2_X0_5_Weights = ShuffleNet_V2_X1_0_Weights = _Weights
ShuffleNet_V2_X1_5_Weights = ShuffleNet_V2_X2_0_Weights = _Weights


class InvertedResidual(_Block):
    pass


class ShuffleNetV2(nn.Module):
    def __init__(
        self, stages_repeats, stages_out_channels, num_classes=1000, inverted_residual=InvertedResidual
    ):
        super().__init__()
        first, second, third, fourth, last = stages_out_channels
        self.conv1 = _stem(3, first, 3)
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
        self.stage2 = nn.Sequential(*_blocks(InvertedResidual, [first] + [second] * stages_repeats[0]))
        self.stage3 = nn.Sequential(*_blocks(InvertedResidual, [second] + [third] * stages_repeats[1]))
        self.stage4 = nn.Sequential(*_blocks(InvertedResidual, [third] + [fourth] * stages_repeats[2]))
        self.conv5 = _stem(fourth, last, 1)
        self.fc = nn.Linear(last, num_classes)

    def forward(self, x):
        x = self.stage4(self.stage3(self.stage2(self.maxpool(self.conv1(x)))))
        return self.fc(self.conv5(x).mean([2, 3]))


def _stem(inside, outside, size):
    conv = nn.Conv2d(inside, outside, size, padding=size // 2, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(outside), nn.ReLU(inplace=True))


def _shufflenetv2(weights, widths, pretrained=False, **kwargs):
    return _loaded(ShuffleNetV2([4, 8, 4], widths, **kwargs), weights, pretrained)


def shufflenet_v2_x0_5(weights=None, progress=True, **kwargs):
    return _shufflenetv2(weights, [24, 48, 96, 192, 1024], **kwargs)


def shufflenet_v2_x1_0(weights=None, progress=True, **kwargs):
    return _shufflenetv2(weights, [24, 116, 232, 464, 1024], **kwargs)


def shufflenet_v2_x1_5(weights=None, progress=True, **kwargs):
    return _shufflenetv2(weights, [24, 176, 352, 704, 1024], **kwargs)


def shufflenet_v2_x2_0(weights=None, progress=True, **kwargs):
    return _shufflenetv2(weights, [24, 244, 488, 976, 2048], **kwargs)
