"""Vision transformers: `conv_proj`, `encoder`, and `heads`, whose last layer is `heads.head`."""

from collections import OrderedDict

import torch
from torch import nn

from torchvision.models._api import _loaded, _Weights

ViT_B_16_Weights = ViT_B_32_Weights = ViT_L_16_Weights = ViT_L_32_Weights = ViT_H_14_Weights = _Weights


class EncoderBlock(nn.Module):
    def __init__(
        self, num_heads, hidden_dim, mlp_dim, dropout=0.0, attention_dropout=0.0, norm_layer=nn.LayerNorm
    ):
        super().__init__()
        self.num_heads = num_heads
        self.ln_1 = norm_layer(hidden_dim)
        self.self_attention = nn.MultiheadAttention(
            hidden_dim, num_heads, attention_dropout, batch_first=True
        )
        self.dropout = nn.Dropout(dropout)
        self.ln_2 = norm_layer(hidden_dim)
        self.mlp = nn.Sequential(nn.Linear(hidden_dim, mlp_dim), nn.GELU(), nn.Linear(mlp_dim, hidden_dim))

    def forward(self, input):
        x = self.ln_1(input)
        x, _ = self.self_attention(x, x, x, need_weights=False)
        x = self.dropout(x) + input
        return x + self.mlp(self.ln_2(x))


class _BlockOutline(EncoderBlock):
    """A block in an encoder of our own making: many of them in full would take long to execute."""

    def __init__(self, hidden_dim):
        nn.Module.__init__(self)
        self.ln_1 = nn.LayerNorm(hidden_dim)
        self.mlp = nn.Linear(hidden_dim, hidden_dim)

    def forward(self, input):
        return input + self.mlp(self.ln_1(input))


def _outlines(count, hidden_dim, first=0):
    if count > 10:
        return _outlines(10, hidden_dim, first) + _outlines(count - 10, hidden_dim, first + 10)
    return [(f"encoder_layer_{first + place}", _BlockOutline(hidden_dim)) for place in range(count)]


class Encoder(nn.Module):
    def __init__(
        self,
        seq_length,
        num_layers,
        num_heads,
        hidden_dim,
        mlp_dim,
        dropout=0.0,
        attention_dropout=0.0,
        norm_layer=nn.LayerNorm,
    ):
        super().__init__()
        self.pos_embedding = nn.Parameter(torch.empty(1, seq_length, hidden_dim).normal_(std=0.02))
        self.dropout = nn.Dropout(dropout)
        self.layers = nn.Sequential(OrderedDict(_outlines(num_layers, hidden_dim)))
        self.ln = norm_layer(hidden_dim)

    def forward(self, input):
        return self.ln(self.layers(self.dropout(input + self.pos_embedding)))


class VisionTransformer(nn.Module):
    def __init__(
        self,
        image_size,
        patch_size,
        num_layers,
        num_heads,
        hidden_dim,
        mlp_dim,
        dropout=0.0,
        attention_dropout=0.0,
        num_classes=1000,
        representation_size=None,
        norm_layer=nn.LayerNorm,
    ):
        super().__init__()
        self.image_size = image_size
        self.patch_size = patch_size
        self.hidden_dim = hidden_dim
        self.conv_proj = nn.Conv2d(3, hidden_dim, patch_size, stride=patch_size)
        self.class_token = nn.Parameter(torch.zeros(1, 1, hidden_dim))
        self.encoder = Encoder(
            (image_size // patch_size) ** 2 + 1, num_layers, num_heads, hidden_dim, mlp_dim, dropout
        )
        self.heads = nn.Sequential(OrderedDict([("head", nn.Linear(hidden_dim, num_classes))]))

    def _process_input(self, x):
        return self.conv_proj(x).flatten(2).permute(0, 2, 1)

    def forward(self, x):
        x = self._process_input(x)
        x = torch.cat([self.class_token.expand(x.shape[0], -1, -1), x], dim=1)
        return self.heads(self.encoder(x)[:, 0])


def _vision_transformer(
    patch_size, num_layers, num_heads, hidden_dim, mlp_dim, weights, progress=True, pretrained=False, **kwargs
):
    image_size = kwargs.pop("image_size", 224)
    network = VisionTransformer(image_size, patch_size, num_layers, num_heads, hidden_dim, mlp_dim, **kwargs)
    return _loaded(network, weights, pretrained)


def vit_b_16(*, weights=None, progress=True, **kwargs):
    return _vision_transformer(16, 12, 12, 768, 3072, weights, **kwargs)


def vit_b_32(*, weights=None, progress=True, **kwargs):
    return _vision_transformer(32, 12, 12, 768, 3072, weights, **kwargs)


def vit_l_16(*, weights=None, progress=True, **kwargs):
    return _vision_transformer(16, 24, 16, 1024, 4096, weights, **kwargs)


def vit_l_32(*, weights=None, progress=True, **kwargs):
    return _vision_transformer(32, 24, 16, 1024, 4096, weights, **kwargs)


def vit_h_14(*, weights=None, progress=True, **kwargs):
    return _vision_transformer(14, 32, 16, 1280, 5120, weights, **kwargs)
