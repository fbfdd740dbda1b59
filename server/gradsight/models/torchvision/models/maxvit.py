"""MaxViT: `stem`, four `blocks`, `classifier` of six layers."""

from torch import nn

from torchvision.models._api import _loaded, _Weights
from torchvision.models._outline import _Block, _blocks
from torchvision.ops.misc import Conv2dNormActivation

MaxVit_T_Weights = _Weights


class MaxVitBlock(_Block):
    pass


class MaxVit(nn.Module):
    def __init__(
        self,
        input_size,
        stem_channels,
        partition_size,
        block_channels,
        block_layers,
        head_dim,
        stochastic_depth_prob,
        norm_layer=None,
        activation_layer=nn.GELU,
        squeeze_ratio=0.25,
        expansion_ratio=4,
        mlp_ratio=4,
        mlp_dropout=0.0,
        attention_dropout=0.0,
        num_classes=1000,
    ):
        super().__init__()
        width = block_channels[-1]
        self.stem = nn.Sequential(
            Conv2dNormActivation(3, stem_channels, stride=2),
            nn.Conv2d(stem_channels, stem_channels, 3, padding=1),
        )
        self.blocks = nn.ModuleList(_blocks(MaxVitBlock, [stem_channels, *block_channels]))
        self.classifier = nn.Sequential(
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.LayerNorm(width),
            nn.Linear(width, width),
            nn.Tanh(),
            nn.Linear(width, num_classes, bias=False),
        )

    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = block(x)
        return self.classifier(x)


def maxvit_t(*, weights=None, progress=True, pretrained=False, **kwargs):
    network = MaxVit((224, 224), 64, 7, [64, 128, 256, 512], [2, 2, 5, 2], 32, 0.2, **kwargs)
    return _loaded(network, weights, pretrained)
