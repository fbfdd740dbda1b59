"""S3D: `features` of sixteen parts, `avgpool`, `classifier` of two layers."""

from torch import nn

from torchvision.models._api import _loaded, _Weights
from torchvision.models.video.resnet import _Block
from torchvision.ops.misc import Conv3dNormActivation

S3D_Weights = _Weights


class TemporalSeparableConv(_Block):
    pass


class SepInceptionBlock3D(_Block):
    pass


class S3D(nn.Module):
    def __init__(self, num_classes=400, dropout=0.2, norm_layer=None):
        super().__init__()
        self.features = nn.Sequential(
            TemporalSeparableConv(3, 64),
            nn.MaxPool3d((1, 3, 3), stride=(1, 2, 2), padding=(0, 1, 1)),
            Conv3dNormActivation(64, 64),
            TemporalSeparableConv(64, 192),
            nn.MaxPool3d((1, 3, 3), stride=(1, 2, 2), padding=(0, 1, 1)),
            SepInceptionBlock3D(192, 256),
            SepInceptionBlock3D(256, 480),
            nn.MaxPool3d(3, stride=2, padding=1),
            SepInceptionBlock3D(480, 512),
            SepInceptionBlock3D(512, 512),
            SepInceptionBlock3D(512, 512),
            SepInceptionBlock3D(512, 528),
            SepInceptionBlock3D(528, 832),
            nn.MaxPool3d(2, stride=2),
            SepInceptionBlock3D(832, 832),
            SepInceptionBlock3D(832, 1024),
        )
        self.avgpool = nn.AvgPool3d((2, 7, 7), stride=1)
        self.classifier = nn.Sequential(nn.Dropout(p=dropout), nn.Conv3d(1024, num_classes, 1))

    def forward(self, x):
        return self.classifier(self.avgpool(self.features(x))).mean(dim=(2, 3, 4))


def s3d(*, weights=None, progress=True, pretrained=False, **kwargs):
    return _loaded(S3D(**kwargs), weights, pretrained)
