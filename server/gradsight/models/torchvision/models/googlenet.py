"""GoogLeNet: while it trains it returns its logits together with those of two heads on the way."""

from collections import namedtuple

from torch import nn

from torchvision.models._api import _Weights
from torchvision.models._outline import _Block

GoogLeNet_Weights = _Weights
GoogLeNetOutputs = namedtuple("GoogLeNetOutputs", ["logits", "aux_logits2", "aux_logits1"])


class BasicConv2d(_Block):
    pass


class Inception(_Block):
    pass


class InceptionAux(nn.Module):
    def __init__(self, in_channels, num_classes, conv_block=None, dropout=0.7):
        super().__init__()
        self.conv = BasicConv2d(in_channels, 128)
        self.fc1 = nn.Linear(128, 1024)
        self.fc2 = nn.Linear(1024, num_classes)
        self.dropout = nn.Dropout(p=dropout)

    def forward(self, x):
        x = self.fc1(self.conv(x).mean((2, 3))).relu()
        return self.fc2(self.dropout(x))


class GoogLeNet(nn.Module):
    def __init__(
        self,
        num_classes=1000,
        aux_logits=True,
        transform_input=False,
        init_weights=None,
        blocks=None,
        dropout=0.2,
        dropout_aux=0.7,
    ):
        super().__init__()
        self.aux_logits = aux_logits
        self.transform_input = transform_input
        self.conv1 = BasicConv2d(3, 64)
        self.maxpool1 = nn.MaxPool2d(3, stride=2, ceil_mode=True)
        self.conv2 = BasicConv2d(64, 64)
        self.conv3 = BasicConv2d(64, 192)
        self.maxpool2 = nn.MaxPool2d(3, stride=2, ceil_mode=True)
        self.inception3a = Inception(192, 256)
        self.inception3b = Inception(256, 480)
        self.maxpool3 = nn.MaxPool2d(3, stride=2, ceil_mode=True)
        self.inception4a = Inception(480, 512)
        self.inception4b = Inception(512, 512)
        self.inception4c = Inception(512, 512)
        self.inception4d = Inception(512, 528)
        self.inception4e = Inception(528, 832)
        self.maxpool4 = nn.MaxPool2d(2, stride=2, ceil_mode=True)
        self.inception5a = Inception(832, 832)
        self.inception5b = Inception(832, 1024)
        self.aux1 = InceptionAux(512, num_classes) if aux_logits else None
        self.aux2 = InceptionAux(528, num_classes) if aux_logits else None
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.dropout = nn.Dropout(p=dropout)
        self.fc = nn.Linear(1024, num_classes)

    def forward(self, x):
        x = self.maxpool2(self.conv3(self.conv2(self.maxpool1(self.conv1(x)))))
        x = self.maxpool3(self.inception3b(self.inception3a(x)))
        x = self.inception4a(x)
        aux1 = self.aux1(x) if self.aux1 is not None and self.training else None
        x = self.inception4d(self.inception4c(self.inception4b(x)))
        aux2 = self.aux2(x) if self.aux2 is not None and self.training else None
        x = self.inception5b(self.inception5a(self.maxpool4(self.inception4e(x))))
        x = self.fc(self.dropout(self.avgpool(x).flatten(1)))
        return GoogLeNetOutputs(x, aux2, aux1) if self.training and self.aux_logits else x


def googlenet(weights=None, progress=True, pretrained=False, **kwargs):
    network = GoogLeNet(**kwargs)
    if pretrained or weights:
        # The heads on the way are thrown away unless they are asked for.
        network.load_state_dict({})
        if not kwargs.get("aux_logits", False):
            network.aux_logits = False
            network.aux1 = network.aux2 = None
    return network
