"""VGG: `features` with a ReLU after every convolution, `avgpool`, `classifier` of seven layers."""

from torch import nn

from torchvision.models._api import _loaded, _Weights

VGG11_Weights = VGG11_BN_Weights = VGG13_Weights = VGG13_BN_Weights = _Weights
VGG16_Weights = VGG16_BN_Weights = VGG19_Weights = VGG19_BN_Weights = _Weights

cfgs = {
    "A": [64, "M", 128, "M", 256, 256, "M", 512, 512, "M", 512, 512, "M"],
    "B": [64, 64, "M", 128, 128, "M", 256, 256, "M", 512, 512, "M", 512, 512, "M"],
    "D": [64, 64, "M", 128, 128, "M", 256, 256, 256, "M", 512, 512, 512, "M", 512, 512, 512, "M"],
    "E": [64, 64, "M", 128, 128, "M", *[256] * 4, "M", *[512] * 4, "M", *[512] * 4, "M"],
}


class VGG(nn.Module):
    def __init__(self, features, num_classes=1000, init_weights=True, dropout=0.5):
        super().__init__()
        self.features = features
        self.avgpool = nn.AdaptiveAvgPool2d((7, 7))
        self.classifier = nn.Sequential(
            nn.Linear(512 * 7 * 7, 4096),
            nn.ReLU(True),
            nn.Dropout(p=dropout),
            nn.Linear(4096, 4096),
            nn.ReLU(True),
            nn.Dropout(p=dropout),
            nn.Linear(4096, num_classes),
        )

    def forward(self, x):
        return self.classifier(self.avgpool(self.features(x)).flatten(1))


def make_layers(cfg, batch_norm=False):
    return nn.Sequential(*_layers(cfg, 3, batch_norm))


def _layers(cfg, width, batch_norm):
    if len(cfg) > 8:
        former = cfg[:8]
        return _layers(former, width, batch_norm) + _layers(cfg[8:], _last_width(former), batch_norm)
    layers = []
    for size in cfg:
        if size == "M":
            layers.append(nn.MaxPool2d(2, stride=2))
            continue
        layers.append(nn.Conv2d(width, size, 3, padding=1))
        if batch_norm:
            layers.append(nn.BatchNorm2d(size))
        layers.append(nn.ReLU(inplace=True))
        width = size
    return layers


def _last_width(cfg):
    return cfg[-2] if cfg[-1] == "M" else cfg[-1]


def _vgg(cfg, batch_norm, weights, progress=True, pretrained=False, **kwargs):
    return _loaded(VGG(make_layers(cfgs[cfg], batch_norm), **kwargs), weights, pretrained)


def vgg11(weights=None, progress=True, **kwargs):
    return _vgg("A", False, weights, **kwargs)


def vgg11_bn(weights=None, progress=True, **kwargs):
    return _vgg("A", True, weights, **kwargs)


def vgg13(weights=None, progress=True, **kwargs):
    return _vgg("B", False, weights, **kwargs)


def vgg13_bn(weights=None, progress=True, **kwargs):
    return _vgg("B", True, weights, **kwargs)


def vgg16(weights=None, progress=True, **kwargs):
    return _vgg("D", False, weights, **kwargs)


def vgg16_bn(weights=None, progress=True, **kwargs):
    return _vgg("D", True, weights, **kwargs)


def vgg19(weights=None, progress=True, **kwargs):
    return _vgg("E", False, weights, **kwargs)


def vgg19_bn(weights=None, progress=True, **kwargs):
    return _vgg("E", True, weights, **kwargs)
