"""Residual networks for videos: `stem`, four stages, `avgpool`, `fc`."""

from torch import nn

from torchvision.models._api import _loaded, _Weights

R3D_18_Weights = MC3_18_Weights = R2Plus1D_18_Weights = _Weights


class BasicStem(nn.Sequential):
    def __init__(self):
        super().__init__(
            nn.Conv3d(3, 64, (3, 7, 7), stride=(1, 2, 2), padding=(1, 3, 3), bias=False),
            nn.BatchNorm3d(64),
            nn.ReLU(inplace=True),
        )


class R2Plus1dStem(nn.Sequential):
    def __init__(self):
        super().__init__(
            nn.Conv3d(3, 45, (1, 7, 7), stride=(1, 2, 2), padding=(0, 3, 3), bias=False),
            nn.BatchNorm3d(45),
            nn.ReLU(inplace=True),
            nn.Conv3d(45, 64, (3, 1, 1), padding=(1, 0, 0), bias=False),
            nn.BatchNorm3d(64),
            nn.ReLU(inplace=True),
        )


class _Block(nn.Module):
    def __init__(self, inside, outside):
        super().__init__()
        self.conv1 = nn.Conv3d(inside, outside, 1)

    def forward(self, x):
        return self.conv1(x)


class VideoResNet(nn.Module):
    def __init__(self, block, conv_makers, layers, stem, num_classes=400, zero_init_residual=False):
        super().__init__()
        self.inplanes = 64
        self.stem = stem()
        self.layer1 = nn.Sequential(_Block(64, 64), _Block(64, 64))
        self.layer2 = nn.Sequential(_Block(64, 128), _Block(128, 128))
        self.layer3 = nn.Sequential(_Block(128, 256), _Block(256, 256))
        self.layer4 = nn.Sequential(_Block(256, 512), _Block(512, 512))
        self.avgpool = nn.AdaptiveAvgPool3d((1, 1, 1))
        self.fc = nn.Linear(512, num_classes)

    def forward(self, x):
        x = self.layer4(self.layer3(self.layer2(self.layer1(self.stem(x)))))
        return self.fc(self.avgpool(x).flatten(1))


def _video_resnet(stem, weights, progress=True, pretrained=False, **kwargs):
    return _loaded(VideoResNet(None, None, [2, 2, 2, 2], stem, **kwargs), weights, pretrained)


def r3d_18(*, weights=None, progress=True, **kwargs):
    return _video_resnet(BasicStem, weights, **kwargs)


def mc3_18(*, weights=None, progress=True, **kwargs):
    return _video_resnet(BasicStem, weights, **kwargs)


def r2plus1d_18(*, weights=None, progress=True, **kwargs):
    return _video_resnet(R2Plus1dStem, weights, **kwargs)
