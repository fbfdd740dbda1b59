"""einops: which rearrangements share memory, and which results have a graph."""

import torch
from einops import einsum, pack, rearrange, reduce, repeat
from einops.layers.torch import Rearrange, Reduce
from parts import carries_graph
from recorder import log


def shares(out, given):
    return out.untyped_storage().data_ptr() == given.untyped_storage().data_ptr()


def main():
    x = torch.rand(2, 6, 4, requires_grad=True)
    for pattern, lengths in (
        ("b n d -> b d n", {}),
        ("b n d -> b (n d)", {}),
        ("b n d -> (b n) d", {}),
        ("b n d -> b (d n)", {}),
        ("b (h n) d -> b h n d", {"h": 2}),
        ("b n (h d) -> b h n d", {"h": 2}),
        ("b n d -> b 1 n d", {}),
    ):
        out = rearrange(x, pattern, **lengths)
        log(f"{pattern}: {tuple(out.shape)}, {shares(out, x)}, {carries_graph(out)}")
    for pattern, lengths in (("b n d -> b r n d", {"r": 3}), ("b n d -> (b r) n d", {"r": 3})):
        out = repeat(x, pattern, **lengths)
        log(f"{pattern}: {tuple(out.shape)}, {shares(out, x)}, {carries_graph(out)}")
    for how in ("mean", "sum", "max", "min", "prod"):
        out = reduce(x, "b n d -> b d", how)
        log(f"{how}: {tuple(out.shape)}, {shares(out, x)}, {carries_graph(out)}")
    out = rearrange([x, x], "k b n d -> b k n d")
    log(f"stacked: {tuple(out.shape)}, {shares(out, x)}, {carries_graph(out)}")
    out = einsum(x, x, "b n d, b m d -> b n m")
    log(f"einsum: {tuple(out.shape)}, {carries_graph(out)}")
    packed, _ = pack([x, x], "b * d")
    log(f"packed: {tuple(packed.shape)}, {carries_graph(packed)}")
    layers = torch.nn.Sequential(Rearrange("b n d -> b d n"), Reduce("b d n -> b d", "mean"))
    log(f"layers: {len(list(layers.parameters()))}, {tuple(layers(x).shape)}, {carries_graph(layers(x))}")
