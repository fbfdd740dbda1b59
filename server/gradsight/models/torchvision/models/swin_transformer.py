"""Swin transformers: `features` of eight parts, `norm`, `permute`, `avgpool`, `flatten`, `head`."""

import torch
from torch import nn

from torchvision.models._api import _loaded, _Weights
from torchvision.ops.misc import Permute

Swin_T_Weights = Swin_S_Weights = Swin_B_Weights = _Weights
Swin_V2_T_Weights = Swin_V2_S_Weights = Swin_V2_B_Weights = _Weights


class PatchMerging(nn.Module):
    def __init__(self, dim, norm_layer=nn.LayerNorm):
        super().__init__()
        self.dim = dim
        self.reduction = nn.Linear(4 * dim, 2 * dim, bias=False)
        self.norm = norm_layer(4 * dim)

    def forward(self, x):
        parts = [x[:, 0::2, 0::2], x[:, 1::2, 0::2], x[:, 0::2, 1::2], x[:, 1::2, 1::2]]
        return self.reduction(self.norm(torch.cat(parts, -1)))


class PatchMergingV2(PatchMerging):
    pass


class SwinTransformer(nn.Module):
    def __init__(
        self,
        patch_size,
        embed_dim,
        depths,
        num_heads,
        window_size,
        mlp_ratio=4.0,
        dropout=0.0,
        attention_dropout=0.0,
        stochastic_depth_prob=0.1,
        num_classes=1000,
        norm_layer=None,
        block=None,
        downsample_layer=None,
    ):
        super().__init__()
        self.num_classes = num_classes
        width = embed_dim
        layers = [
            nn.Sequential(nn.Conv2d(3, width, 4, stride=4), Permute([0, 2, 3, 1]), nn.LayerNorm(width)),
        ]
        for stage in range(4):
            layers.append(nn.Sequential(nn.Linear(width, width)))
            if stage < 3:
                layers.append((downsample_layer or PatchMerging)(width))
                width = 2 * width
        self.features = nn.Sequential(*layers)
        self.norm = nn.LayerNorm(width)
        self.permute = Permute([0, 3, 1, 2])
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.flatten = nn.Flatten(1)
        self.head = nn.Linear(width, num_classes)

    def forward(self, x):
        return self.head(self.flatten(self.avgpool(self.permute(self.norm(self.features(x))))))


def _swin_transformer(embed_dim, depths, weights, progress=True, pretrained=False, **kwargs):
    network = SwinTransformer([4, 4], embed_dim, depths, [3, 6, 12, 24], [7, 7], **kwargs)
    return _loaded(network, weights, pretrained)


def swin_t(*, weights=None, progress=True, **kwargs):
    return _swin_transformer(96, [2, 2, 6, 2], weights, **kwargs)


def swin_s(*, weights=None, progress=True, **kwargs):
    return _swin_transformer(96, [2, 2, 18, 2], weights, **kwargs)


def swin_b(*, weights=None, progress=True, **kwargs):
    return _swin_transformer(128, [2, 2, 18, 2], weights, **kwargs)


def swin_v2_t(*, weights=None, progress=True, **kwargs):
    return _swin_transformer(96, [2, 2, 6, 2], weights, downsample_layer=PatchMergingV2, **kwargs)


def swin_v2_s(*, weights=None, progress=True, **kwargs):
    return _swin_transformer(96, [2, 2, 18, 2], weights, downsample_layer=PatchMergingV2, **kwargs)


def swin_v2_b(*, weights=None, progress=True, **kwargs):
    return _swin_transformer(128, [2, 2, 18, 2], weights, downsample_layer=PatchMergingV2, **kwargs)
