"""SqueezeNet: `features` of thirteen parts, `classifier` whose second layer is a convolution."""

from torch import nn

from torchvision.models._api import _loaded, _Weights
from torchvision.models._outline import _Block

SqueezeNet1_0_Weights = SqueezeNet1_1_Weights = _Weights


class Fire(_Block):
    pass


class SqueezeNet(nn.Module):
    def __init__(self, version="1_0", num_classes=1000, dropout=0.5):
        super().__init__()
        self.num_classes = num_classes
        if version == "1_0":
            self.features = nn.Sequential(
                nn.Conv2d(3, 96, 7, stride=2),
                nn.ReLU(inplace=True),
                nn.MaxPool2d(3, stride=2, ceil_mode=True),
                Fire(96, 128),
                Fire(128, 128),
                Fire(128, 256),
                nn.MaxPool2d(3, stride=2, ceil_mode=True),
                Fire(256, 256),
                Fire(256, 384),
                Fire(384, 384),
                Fire(384, 512),
                nn.MaxPool2d(3, stride=2, ceil_mode=True),
                Fire(512, 512),
            )
        else:
            self.features = nn.Sequential(
                nn.Conv2d(3, 64, 3, stride=2),
                nn.ReLU(inplace=True),
                nn.MaxPool2d(3, stride=2, ceil_mode=True),
                Fire(64, 128),
                Fire(128, 128),
                nn.MaxPool2d(3, stride=2, ceil_mode=True),
                Fire(128, 256),
                Fire(256, 256),
                nn.MaxPool2d(3, stride=2, ceil_mode=True),
                Fire(256, 384),
                Fire(384, 384),
                Fire(384, 512),
                Fire(512, 512),
            )
        self.classifier = nn.Sequential(
            nn.Dropout(p=dropout),
            nn.Conv2d(512, num_classes, 1),
            nn.ReLU(inplace=True),
            nn.AdaptiveAvgPool2d((1, 1)),
        )

    def forward(self, x):
        return self.classifier(self.features(x)).flatten(1)


def squeezenet1_0(weights=None, progress=True, pretrained=False, **kwargs):
    return _loaded(SqueezeNet("1_0", **kwargs), weights, pretrained)


def squeezenet1_1(weights=None, progress=True, pretrained=False, **kwargs):
    return _loaded(SqueezeNet("1_1", **kwargs), weights, pretrained)
