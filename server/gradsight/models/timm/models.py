"""`create_model`: the parts of the best known families under their names, and an outline for the others."""

from torch import nn


class _Network(nn.Module):
    """A body and a head; what a family calls its parts is written in its class."""

    _head = "head"

    def __init__(self, num_classes=1000, global_pool="avg", in_chans=3):
        super().__init__()
        self.num_classes = num_classes
        self.num_features = 512
        self._make_body(in_chans)
        self._pool = global_pool
        self.reset_classifier(num_classes)

    def _make_body(self, in_chans):
        self.stem = nn.Conv2d(in_chans, 512, 3, padding=1)

    def forward_features(self, x):
        return self.stem(x)

    def forward_head(self, x, pre_logits=False):
        if self._pool:
            x = nn.functional.adaptive_avg_pool2d(x, 1).flatten(1)
        return x if pre_logits else self.get_classifier()(x)

    def forward(self, x):
        return self.forward_head(self.forward_features(x))

    def get_classifier(self):
        return getattr(self, self._head)

    def reset_classifier(self, num_classes, global_pool=None):
        self.num_classes = num_classes
        setattr(self, self._head, nn.Linear(512, num_classes) if num_classes > 0 else nn.Identity())


class ResNet(_Network):
    _head = "fc"

    def _make_body(self, in_chans):
        self.conv1 = nn.Conv2d(in_chans, 64, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.act1 = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
        self.layer1 = nn.Sequential(nn.Conv2d(64, 64, 1))
        self.layer2 = nn.Sequential(nn.Conv2d(64, 128, 1))
        self.layer3 = nn.Sequential(nn.Conv2d(128, 256, 1))
        self.layer4 = nn.Sequential(nn.Conv2d(256, 512, 1))
        self.global_pool = nn.AdaptiveAvgPool2d(1)

    def _maps(self, x):
        first = self.act1(self.bn1(self.conv1(x)))
        second = self.layer1(self.maxpool(first))
        third = self.layer2(second)
        fourth = self.layer3(third)
        return [first, second, third, fourth, self.layer4(fourth)]

    def forward_features(self, x):
        return self._maps(x)[-1]


class EfficientNet(_Network):
    _head = "classifier"

    def _make_body(self, in_chans):
        self.conv_stem = nn.Conv2d(in_chans, 32, 3, stride=2, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(32)
        self.blocks = nn.Sequential(*[nn.Sequential(nn.Conv2d(32, 32, 1)) for _ in range(7)])
        self.conv_head = nn.Conv2d(32, 512, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(512)
        self.global_pool = nn.AdaptiveAvgPool2d(1)

    def forward_features(self, x):
        return self.bn2(self.conv_head(self.blocks(self.bn1(self.conv_stem(x)))))


class DenseNet(_Network):
    _head = "classifier"

    def _make_body(self, in_chans):
        self.features = nn.Sequential(nn.Conv2d(in_chans, 64, 7, stride=2, padding=3), nn.Conv2d(64, 512, 1))
        self.global_pool = nn.AdaptiveAvgPool2d(1)
        self.head_drop = nn.Dropout(0.0)

    def forward_features(self, x):
        return self.features(x)


class ConvNeXt(_Network):
    """The head is a module of its own: its last layer is `head.fc`."""

    def _make_body(self, in_chans):
        self.stem = nn.Sequential(nn.Conv2d(in_chans, 96, 4, stride=4))
        self.stages = nn.Sequential(*[nn.Conv2d(96, 96, 1) for _ in range(3)], nn.Conv2d(96, 512, 1))
        self.norm_pre = nn.Identity()

    def forward_features(self, x):
        return self.norm_pre(self.stages(self.stem(x)))

    def get_classifier(self):
        return self.head.fc

    def forward_head(self, x, pre_logits=False):
        x = nn.functional.adaptive_avg_pool2d(x, 1).flatten(1)
        return x if pre_logits else self.head(x)

    def reset_classifier(self, num_classes, global_pool=None):
        self.num_classes = num_classes
        self.head = nn.Sequential()
        self.head.add_module("fc", nn.Linear(512, num_classes) if num_classes > 0 else nn.Identity())


class VisionTransformer(_Network):
    def _make_body(self, in_chans):
        self.patch_embed = nn.Conv2d(in_chans, 512, 16, stride=16)
        self.pos_drop = nn.Dropout(0.0)
        self.patch_drop = nn.Identity()
        self.norm_pre = nn.Identity()
        self.blocks = nn.Sequential(*[nn.Linear(512, 512) for _ in range(12)])
        self.norm = nn.LayerNorm(512)
        self.fc_norm = nn.Identity()
        self.head_drop = nn.Dropout(0.0)

    def forward_features(self, x):
        x = self.pos_drop(self.patch_embed(x).flatten(2).transpose(1, 2))
        return self.norm(self.blocks(self.norm_pre(self.patch_drop(x))))

    def forward_head(self, x, pre_logits=False):
        x = self.head_drop(self.fc_norm(x[:, 0] if self._pool else x))
        return x if pre_logits else self.head(x)


class _Features(ResNet):
    """`features_only=True`: a list of maps, from the largest to the smallest."""

    def __init__(self, in_chans=3):
        super().__init__(0, "", in_chans)
        del self.global_pool
        self.feature_info = _FeatureInfo()

    def forward(self, x):
        return self._maps(x)


class _FeatureInfo:
    def channels(self):
        return [64, 64, 128, 256, 512]

    def reduction(self):
        return [2, 4, 8, 16, 32]


def _family(name):
    if "resnet" in name or "resnext" in name:
        return ResNet
    if "efficientnet" in name or "mobilenetv2" in name or "mnasnet" in name:
        return EfficientNet
    if name.startswith("densenet"):
        return DenseNet
    if "convnext" in name:
        return ConvNeXt
    if name.startswith(("vit_", "deit_", "beit")):
        return VisionTransformer
    return _Network


def create_model(
    model_name,
    pretrained=False,
    pretrained_cfg=None,
    pretrained_cfg_overlay=None,
    checkpoint_path=None,
    cache_dir=None,
    **kwargs,
):
    if kwargs.get("features_only"):
        network = _Features(kwargs.get("in_chans", 3))
    else:
        kind = _family(model_name) if isinstance(model_name, str) else _Network
        classes = kwargs.get("num_classes", 1000)
        network = kind(
            1000 if classes is None else classes, kwargs.get("global_pool", "avg"), kwargs.get("in_chans", 3)
        )
    if pretrained or checkpoint_path:
        network.load_state_dict({})
    return network
