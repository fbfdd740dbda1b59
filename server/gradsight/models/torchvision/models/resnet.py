"""Residual networks: `conv1`, `bn1`, `relu`, `maxpool`, four stages, `avgpool`, `fc`."""

from torch import nn

from torchvision.models._api import _loaded, _Weights

ResNet18_Weights = ResNet34_Weights = ResNet50_Weights = ResNet101_Weights = ResNet152_Weights = _Weights
ResNeXt50_32X4D_Weights = ResNeXt101_32X8D_Weights = ResNeXt101_64X4D_Weights = _Weights
Wide_ResNet50_2_Weights = Wide_ResNet101_2_Weights = _Weights


def conv3x3(in_planes, out_planes, stride=1, groups=1, dilation=1):
    return nn.Conv2d(
        in_planes,
        out_planes,
        3,
        stride=stride,
        padding=dilation,
        groups=groups,
        bias=False,
        dilation=dilation,
    )


def conv1x1(in_planes, out_planes, stride=1):
    return nn.Conv2d(in_planes, out_planes, 1, stride=stride, bias=False)


class BasicBlock(nn.Module):
    expansion = 1

    def __init__(
        self,
        inplanes,
        planes,
        stride=1,
        downsample=None,
        groups=1,
        base_width=64,
        dilation=1,
        norm_layer=None,
    ):
        super().__init__()
        norm_layer = norm_layer or nn.BatchNorm2d
        self.conv1 = conv3x3(inplanes, planes, stride)
        self.bn1 = norm_layer(planes)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = conv3x3(planes, planes)
        self.bn2 = norm_layer(planes)
        self.downsample = downsample
        self.stride = stride

    def forward(self, x):
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += x if self.downsample is None else self.downsample(x)
        return self.relu(out)


class Bottleneck(nn.Module):
    expansion = 4

    def __init__(
        self,
        inplanes,
        planes,
        stride=1,
        downsample=None,
        groups=1,
        base_width=64,
        dilation=1,
        norm_layer=None,
    ):
        super().__init__()
        norm_layer = norm_layer or nn.BatchNorm2d
        width = int(planes * (base_width / 64.0)) * groups
        self.conv1 = conv1x1(inplanes, width)
        self.bn1 = norm_layer(width)
        self.conv2 = conv3x3(width, width, stride, groups, dilation)
        self.bn2 = norm_layer(width)
        self.conv3 = conv1x1(width, planes * 4)
        self.bn3 = norm_layer(planes * 4)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = downsample
        self.stride = stride

    def forward(self, x):
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.relu(self.bn2(self.conv2(out)))
        out = self.bn3(self.conv3(out))
        out += x if self.downsample is None else self.downsample(x)
        return self.relu(out)


class _BasicOutline(BasicBlock):
    """A block in a stage of our own making: many of them in full would take long to execute."""

    def __init__(self, inplanes, planes, stride=1, downsample=None, *options):
        nn.Module.__init__(self)
        self.conv1 = nn.Conv2d(inplanes, planes * self.expansion, 3, stride=stride, padding=1, bias=False)
        self.bn1 = options[3](planes * self.expansion)
        self.relu = nn.ReLU(inplace=True)
        self.stride = stride

    def forward(self, x):
        return self.relu(self.bn1(self.conv1(x)))


class _BottleneckOutline(Bottleneck):
    def __init__(self, inplanes, planes, stride=1, downsample=None, *options):
        nn.Module.__init__(self)
        self.conv1 = nn.Conv2d(inplanes, planes * self.expansion, 1, stride=stride, bias=False)
        self.bn1 = options[3](planes * self.expansion)
        self.relu = nn.ReLU(inplace=True)
        self.stride = stride

    def forward(self, x):
        return self.relu(self.bn1(self.conv1(x)))


def _blocks(block, options, count):
    """That many blocks, in loops that are short enough to be executed to their end."""
    if count > 10:
        return _blocks(block, options, 10) + _blocks(block, options, count - 10)
    return [block(*options) for _ in range(count)]


class ResNet(nn.Module):
    def __init__(
        self,
        block,
        layers,
        num_classes=1000,
        zero_init_residual=False,
        groups=1,
        width_per_group=64,
        replace_stride_with_dilation=None,
        norm_layer=None,
    ):
        super().__init__()
        norm_layer = norm_layer or nn.BatchNorm2d
        self._norm_layer = norm_layer
        self.inplanes = 64
        self.dilation = 1
        self.groups = groups
        self.base_width = width_per_group
        self.conv1 = nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False)
        self.bn1 = norm_layer(64)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
        dilate = replace_stride_with_dilation or [False, False, False]
        self.layer1 = self._make_layer(block, 64, layers[0])
        self.layer2 = self._make_layer(block, 128, layers[1], 2, dilate[0])
        self.layer3 = self._make_layer(block, 256, layers[2], 2, dilate[1])
        self.layer4 = self._make_layer(block, 512, layers[3], 2, dilate[2])
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(512 * block.expansion, num_classes)

    def _make_layer(self, block, planes, blocks, stride=1, dilate=False):
        before = self.dilation
        if dilate:
            self.dilation *= stride
            stride = 1
        width = planes * block.expansion
        downsample = None
        if stride != 1 or self.inplanes != width:
            downsample = nn.Sequential(conv1x1(self.inplanes, width, stride), self._norm_layer(width))
        options = (self.groups, self.base_width)
        outlined = (
            _BasicOutline if block is BasicBlock else _BottleneckOutline if block is Bottleneck else block
        )
        made = outlined(self.inplanes, planes, stride, downsample, *options, before, self._norm_layer)
        self.inplanes = width
        rest = (width, planes, 1, None, *options, self.dilation, self._norm_layer)
        return nn.Sequential(made, *_blocks(outlined, rest, blocks - 1))

    def _forward_impl(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(self.avgpool(x).flatten(1))

    def forward(self, x):
        return self._forward_impl(x)


def _resnet(block, layers, weights, progress=True, pretrained=False, **kwargs):
    return _loaded(ResNet(block, layers, **kwargs), weights, pretrained)


def resnet18(weights=None, progress=True, **kwargs):
    return _resnet(BasicBlock, [2, 2, 2, 2], weights, **kwargs)


def resnet34(weights=None, progress=True, **kwargs):
    return _resnet(BasicBlock, [3, 4, 6, 3], weights, **kwargs)


def resnet50(weights=None, progress=True, **kwargs):
    return _resnet(Bottleneck, [3, 4, 6, 3], weights, **kwargs)


def resnet101(weights=None, progress=True, **kwargs):
    return _resnet(Bottleneck, [3, 4, 23, 3], weights, **kwargs)


def resnet152(weights=None, progress=True, **kwargs):
    return _resnet(Bottleneck, [3, 8, 36, 3], weights, **kwargs)


def resnext50_32x4d(weights=None, progress=True, **kwargs):
    return _resnet(Bottleneck, [3, 4, 6, 3], weights, groups=32, width_per_group=4, **kwargs)


def resnext101_32x8d(weights=None, progress=True, **kwargs):
    return _resnet(Bottleneck, [3, 4, 23, 3], weights, groups=32, width_per_group=8, **kwargs)


def resnext101_64x4d(weights=None, progress=True, **kwargs):
    return _resnet(Bottleneck, [3, 4, 23, 3], weights, groups=64, width_per_group=4, **kwargs)


def wide_resnet50_2(weights=None, progress=True, **kwargs):
    return _resnet(Bottleneck, [3, 4, 6, 3], weights, width_per_group=128, **kwargs)


def wide_resnet101_2(weights=None, progress=True, **kwargs):
    return _resnet(Bottleneck, [3, 4, 23, 3], weights, width_per_group=128, **kwargs)
