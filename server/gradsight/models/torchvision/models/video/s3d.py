"""S3D: `features` of sixteen parts, `avgpool`, `classifier` of two layers."""

from torch import nn

from torchvision.models._api import _loaded, _Weights
from torchvision.models.video.resnet import _Block

S3D_Weights = _Weights


class S3D(nn.Module):
    def __init__(self, num_classes=400, dropout=0.2, norm_layer=None):
        super().__init__()
        self.features = nn.Sequential(
            _Block(3, 64),
            nn.MaxPool3d((1, 3, 3), stride=(1, 2, 2), padding=(0, 1, 1)),
            _Block(64, 64),
            _Block(64, 192),
            nn.MaxPool3d((1, 3, 3), stride=(1, 2, 2), padding=(0, 1, 1)),
            _Block(192, 256),
            _Block(256, 480),
            nn.MaxPool3d(3, stride=2, padding=1),
            _Block(480, 512),
            _Block(512, 512),
            _Block(512, 512),
            _Block(512, 528),
            _Block(528, 832),
            nn.MaxPool3d(2, stride=2),
            _Block(832, 832),
            _Block(832, 1024),
        )
        self.avgpool = nn.AvgPool3d((2, 7, 7), stride=1)
        self.classifier = nn.Sequential(nn.Dropout(p=dropout), nn.Conv3d(1024, num_classes, 1))

    def forward(self, x):
        return self.classifier(self.avgpool(self.features(x))).mean(dim=(2, 3, 4))


def s3d(*, weights=None, progress=True, pretrained=False, **kwargs):
    return _loaded(S3D(**kwargs), weights, pretrained)
