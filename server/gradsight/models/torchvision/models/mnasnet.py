"""MNASNet: `layers` of seventeen parts, `classifier` of two layers."""

from torch import nn

from torchvision.models._api import _loaded, _Weights
from torchvision.models._outline import _Block

MNASNet0_5_Weights = MNASNet0_75_Weights = MNASNet1_0_Weights = MNASNet1_3_Weights = _Weights


class MNASNet(nn.Module):
    def __init__(self, alpha, num_classes=1000, dropout=0.2):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, 32, 3, stride=2, padding=1, bias=False),
            nn.BatchNorm2d(32),
            nn.ReLU(inplace=True),
            nn.Conv2d(32, 32, 3, padding=1, groups=32, bias=False),
            nn.BatchNorm2d(32),
            nn.ReLU(inplace=True),
            nn.Conv2d(32, 16, 1, bias=False),
            nn.BatchNorm2d(16),
            nn.Sequential(_Block(16, 24)),
            nn.Sequential(_Block(24, 40)),
            nn.Sequential(_Block(40, 80)),
            nn.Sequential(_Block(80, 96)),
            nn.Sequential(_Block(96, 192)),
            nn.Sequential(_Block(192, 320)),
            nn.Conv2d(320, 1280, 1, bias=False),
            nn.BatchNorm2d(1280),
            nn.ReLU(inplace=True),
        )
        self.classifier = nn.Sequential(nn.Dropout(p=dropout, inplace=True), nn.Linear(1280, num_classes))

    def forward(self, x):
        return self.classifier(self.layers(x).mean([2, 3]))


def _mnasnet(alpha, weights, pretrained=False, **kwargs):
    return _loaded(MNASNet(alpha, **kwargs), weights, pretrained)


def mnasnet0_5(weights=None, progress=True, **kwargs):
    return _mnasnet(0.5, weights, **kwargs)


def mnasnet0_75(weights=None, progress=True, **kwargs):
    return _mnasnet(0.75, weights, **kwargs)


def mnasnet1_0(weights=None, progress=True, **kwargs):
    return _mnasnet(1.0, weights, **kwargs)


def mnasnet1_3(weights=None, progress=True, **kwargs):
    return _mnasnet(1.3, weights, **kwargs)
