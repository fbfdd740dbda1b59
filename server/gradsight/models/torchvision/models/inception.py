"""Inception v3: while it trains it returns its logits together with those of `AuxLogits`."""

from collections import namedtuple

from torch import nn

from torchvision.models._api import _loaded, _Weights
from torchvision.models._outline import _Block

Inception_V3_Weights = _Weights
InceptionOutputs = namedtuple("InceptionOutputs", ["logits", "aux_logits"])


class BasicConv2d(_Block):
    pass


class InceptionA(_Block):
    pass


class InceptionB(_Block):
    pass


class InceptionC(_Block):
    pass


class InceptionD(_Block):
    pass


class InceptionE(_Block):
    pass


class InceptionAux(nn.Module):
    def __init__(self, in_channels, num_classes, conv_block=None):
        super().__init__()
        self.conv0 = BasicConv2d(in_channels, 128)
        self.conv1 = BasicConv2d(128, 768)
        self.fc = nn.Linear(768, num_classes)

    def forward(self, x):
        return self.fc(self.conv1(self.conv0(x)).mean((2, 3)))


class Inception3(nn.Module):
    def __init__(
        self,
        num_classes=1000,
        aux_logits=True,
        transform_input=False,
        inception_blocks=None,
        init_weights=None,
        dropout=0.5,
    ):
        super().__init__()
        self.aux_logits = aux_logits
        self.transform_input = transform_input
        self.Conv2d_1a_3x3 = BasicConv2d(3, 32)
        self.Conv2d_2a_3x3 = BasicConv2d(32, 32)
        self.Conv2d_2b_3x3 = BasicConv2d(32, 64)
        self.maxpool1 = nn.MaxPool2d(3, stride=2)
        self.Conv2d_3b_1x1 = BasicConv2d(64, 80)
        self.Conv2d_4a_3x3 = BasicConv2d(80, 192)
        self.maxpool2 = nn.MaxPool2d(3, stride=2)
        self.Mixed_5b = InceptionA(192, 256)
        self.Mixed_5c = InceptionA(256, 288)
        self.Mixed_5d = InceptionA(288, 288)
        self.Mixed_6a = InceptionB(288, 768)
        self.Mixed_6b = InceptionC(768, 768)
        self.Mixed_6c = InceptionC(768, 768)
        self.Mixed_6d = InceptionC(768, 768)
        self.Mixed_6e = InceptionC(768, 768)
        self.AuxLogits = InceptionAux(768, num_classes) if aux_logits else None
        self.Mixed_7a = InceptionD(768, 1280)
        self.Mixed_7b = InceptionE(1280, 2048)
        self.Mixed_7c = InceptionE(2048, 2048)
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.dropout = nn.Dropout(p=dropout)
        self.fc = nn.Linear(2048, num_classes)

    def forward(self, x):
        x = self.Conv2d_2b_3x3(self.Conv2d_2a_3x3(self.Conv2d_1a_3x3(x)))
        x = self.maxpool2(self.Conv2d_4a_3x3(self.Conv2d_3b_1x1(self.maxpool1(x))))
        x = self.Mixed_6a(self.Mixed_5d(self.Mixed_5c(self.Mixed_5b(x))))
        x = self.Mixed_6e(self.Mixed_6d(self.Mixed_6c(self.Mixed_6b(x))))
        aux = self.AuxLogits(x) if self.AuxLogits is not None and self.training else None
        x = self.avgpool(self.Mixed_7c(self.Mixed_7b(self.Mixed_7a(x))))
        x = self.fc(self.dropout(x).flatten(1))
        return InceptionOutputs(x, aux) if self.training and self.aux_logits else x


def inception_v3(weights=None, progress=True, pretrained=False, **kwargs):
    return _loaded(Inception3(**kwargs), weights, pretrained)
