"""Blocks that the networks are made of."""

from torch import nn


class Conv2dNormActivation(nn.Sequential):
    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size=3,
        stride=1,
        padding=None,
        groups=1,
        norm_layer=nn.BatchNorm2d,
        activation_layer=nn.ReLU,
        dilation=1,
        inplace=True,
        bias=None,
    ):
        padding = (kernel_size - 1) // 2 if padding is None else padding
        conv = nn.Conv2d(in_channels, out_channels, kernel_size, stride, padding, groups=groups, bias=False)
        layers = [conv] if norm_layer is None else [conv, norm_layer(out_channels)]
        if activation_layer is not None:
            layers.append(activation_layer(inplace=inplace))
        super().__init__(*layers)
        self.out_channels = out_channels


class Conv3dNormActivation(nn.Sequential):
    def __init__(self, in_channels, out_channels, kernel_size=1):
        conv = nn.Conv3d(in_channels, out_channels, kernel_size, bias=False)
        super().__init__(conv, nn.BatchNorm3d(out_channels), nn.ReLU(inplace=True))


class FrozenBatchNorm2d(nn.Module):
    def __init__(self, num_features, eps=1e-5):
        super().__init__()
        self.register_buffer("weight", nn.init.ones_(nn.BatchNorm2d(num_features).weight.detach()))

    def forward(self, x):
        return x * self.weight.reshape(1, -1, 1, 1)


class MLP(nn.Sequential):
    def __init__(
        self,
        in_channels,
        hidden_channels,
        norm_layer=None,
        activation_layer=nn.ReLU,
        inplace=None,
        bias=True,
        dropout=0.0,
    ):
        layers = []
        width = in_channels
        for size in hidden_channels[:-1]:
            layers += [nn.Linear(width, size, bias=bias), activation_layer(), nn.Dropout(dropout)]
            width = size
        super().__init__(*layers, nn.Linear(width, hidden_channels[-1], bias=bias), nn.Dropout(dropout))


class Permute(nn.Module):
    def __init__(self, dims):
        super().__init__()
        self.dims = dims

    def forward(self, x):
        return x.permute(self.dims)
