"""timm: `create_model` makes a module with a body (`forward_features`) and a head (`get_classifier`)."""

from torch import nn


class Created(nn.Module):
    def __init__(self, num_classes=1000):
        super().__init__()
        self.num_classes = num_classes
        self.stem = nn.Conv2d(3, 64, 3, padding=1)
        self.pool = nn.AdaptiveAvgPool2d((1, 1))
        self.head = nn.Linear(64, num_classes)

    def forward_features(self, x):
        return self.stem(x)

    def forward_head(self, x, pre_logits=False):
        x = self.pool(x).flatten(1)
        return x if pre_logits else self.head(x)

    def forward(self, x):
        return self.forward_head(self.forward_features(x))

    def get_classifier(self):
        return self.head

    def reset_classifier(self, num_classes, global_pool=None):
        self.head = nn.Linear(64, num_classes)


def create_model(model_name, pretrained=False, *args, num_classes=1000, **options):
    network = Created(num_classes)
    if pretrained:
        network.load_state_dict({})
    return network
