"""Models for images: a body, and the head that programs replace (`fc` or `classifier`)."""

from torch import nn


class Backbone(nn.Module):
    """A residual network in outline."""

    def __init__(self, num_classes=1000):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU(inplace=True)
        self.layer4 = nn.Conv2d(64, 512, 3, padding=1)
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(512, num_classes)

    def forward(self, x):
        x = self.relu(self.bn1(self.conv1(x)))
        x = self.avgpool(self.layer4(x))
        return self.fc(x.flatten(1))


class Featured(nn.Module):
    """A network of features and a classifier in outline."""

    def __init__(self, num_classes=1000):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 512, 3, padding=1), nn.ReLU(inplace=True))
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.classifier = nn.Sequential(
            nn.Linear(512, 512), nn.ReLU(inplace=True), nn.Linear(512, num_classes)
        )

    def forward(self, x):
        return self.classifier(self.avgpool(self.features(x)).flatten(1))


def residual(pretrained=False, progress=True, *, weights=None, num_classes=1000, **options):
    return loaded(Backbone(num_classes), pretrained, weights)


def featured(pretrained=False, progress=True, *, weights=None, num_classes=1000, **options):
    return loaded(Featured(num_classes), pretrained, weights)


def loaded(network, pretrained, weights):
    if pretrained or weights is not None:
        network.load_state_dict({})
    return network


def get_model(name, **config):
    return Backbone()


resnet18 = resnet34 = resnet50 = resnet101 = resnet152 = resnext50_32x4d = wide_resnet50_2 = residual
vgg11 = vgg13 = vgg16 = vgg19 = vgg16_bn = vgg19_bn = alexnet = featured
mobilenet_v2 = mobilenet_v3_small = mobilenet_v3_large = efficientnet_b0 = densenet121 = convnext_tiny = (
    featured
)
