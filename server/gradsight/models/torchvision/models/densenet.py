"""DenseNet: `features` of twelve named parts, `classifier`, which is one layer."""

from collections import OrderedDict

import torch.nn.functional as F
from torch import nn

from torchvision.models._api import _loaded, _Weights
from torchvision.models._outline import _Block

DenseNet121_Weights = DenseNet161_Weights = DenseNet169_Weights = DenseNet201_Weights = _Weights


class _DenseBlock(_Block):
    pass


class _Transition(_Block):
    pass


class DenseNet(nn.Module):
    def __init__(
        self,
        growth_rate=32,
        block_config=(6, 12, 24, 16),
        num_init_features=64,
        bn_size=4,
        drop_rate=0,
        num_classes=1000,
        memory_efficient=False,
    ):
        super().__init__()
        width = num_init_features
        parts = [
            ("conv0", nn.Conv2d(3, width, 7, stride=2, padding=3, bias=False)),
            ("norm0", nn.BatchNorm2d(width)),
            ("relu0", nn.ReLU(inplace=True)),
            ("pool0", nn.MaxPool2d(3, stride=2, padding=1)),
        ]
        for place, count in enumerate(block_config):
            wider = width + count * growth_rate
            parts.append((f"denseblock{place + 1}", _DenseBlock(width, wider)))
            width = wider
            if place < len(block_config) - 1:
                parts.append((f"transition{place + 1}", _Transition(width, width // 2)))
                width = width // 2
        parts.append(("norm5", nn.BatchNorm2d(width)))
        self.features = nn.Sequential(OrderedDict(parts))
        self.classifier = nn.Linear(width, num_classes)

    def forward(self, x):
        out = F.relu(self.features(x), inplace=True)
        return self.classifier(F.adaptive_avg_pool2d(out, (1, 1)).flatten(1))


def _densenet(growth_rate, block_config, num_init_features, weights, pretrained=False, **kwargs):
    return _loaded(DenseNet(growth_rate, block_config, num_init_features, **kwargs), weights, pretrained)


def densenet121(weights=None, progress=True, **kwargs):
    return _densenet(32, (6, 12, 24, 16), 64, weights, **kwargs)


def densenet161(weights=None, progress=True, **kwargs):
    return _densenet(48, (6, 12, 36, 24), 96, weights, **kwargs)


def densenet169(weights=None, progress=True, **kwargs):
    return _densenet(32, (6, 12, 32, 32), 64, weights, **kwargs)


def densenet201(weights=None, progress=True, **kwargs):
    return _densenet(32, (6, 12, 48, 32), 64, weights, **kwargs)
