"""Constructions of our own for module classes that torch's database leaves out, or shows in one form only."""

from __future__ import annotations

from typing import Any

import torch

from gradsight.agent.facts.drawing import real, whole
from gradsight.agent.facts.modules import Construction
from gradsight.agent.facts.observe import CallTemplate

Constructions = dict[str, list[Construction]]


def own_constructions(seed: int = 0) -> Constructions:
    """By table name; the numbers follow from the seed."""
    found: Constructions = {}
    for part in (
        _dropouts,
        _activations,
        _shapes,
        _normalizers,
        _losses,
        _layers,
        _lazy,
        _recurrent,
        _attention,
    ):
        torch.manual_seed(seed)
        for name, constructions in part().items():
            found.setdefault("nn." + name, []).extend(constructions)
    return found


def made(*arguments: Any, **options: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return arguments, options


def called(options: tuple[tuple[Any, ...], dict[str, Any]], *positional: Any) -> Construction:
    return Construction(options, CallTemplate(positional))


def _dropouts() -> Constructions:
    found: Constructions = {}
    shapes = {
        "Dropout": (4, 4),
        "Dropout1d": (2, 4, 4),
        "Dropout2d": (2, 4, 4, 4),
        "Dropout3d": (2, 4, 2, 2, 2),
    }
    shapes.update({"AlphaDropout": (4, 4), "FeatureAlphaDropout": (2, 4, 4, 4)})
    for name, shape in shapes.items():
        found[name] = [
            called(made(), real(*shape)),
            called(made(0.5, True), real(*shape)),
            called(made(0.2), real(*shape)),
        ]
    return found


def _activations() -> Constructions:
    found: Constructions = {}
    for name in "ReLU ReLU6 ELU CELU SELU SiLU Mish Hardswish Hardsigmoid Hardtanh LeakyReLU RReLU".split():
        found[name] = [called(made(), real(3, 4) - 0.5)]
    for name in "Sigmoid Tanh GELU Softplus Softsign LogSigmoid Tanhshrink Identity".split():
        found[name] = [called(made(), real(3, 4) - 0.5)]
    for name in ("Softmax", "LogSoftmax", "Softmin"):
        found[name] = [called(made(1), real(3, 4)), called(made(dim=-1), real(3, 4))]
    found["Threshold"] = [called(made(0.5, 0.0), real(3, 4))]
    found["Softmax2d"] = [called(made(), real(1, 2, 3, 3))]
    return found


def _shapes() -> Constructions:
    return {
        "Flatten": [
            called(made(), real(2, 3, 4)),
            called(made(), real(4, 3, 2).transpose(1, 2)),
            called(made(), real(2, 3)),
        ],
        "Unflatten": [called(made(1, (2, 2)), real(3, 4))],
        "Fold": [called(made((4, 5), (2, 2)), real(1, 12, 12))],
        "Unfold": [called(made(2), real(1, 2, 4, 4))],
        "ChannelShuffle": [called(made(2), real(1, 4, 2, 2))],
        "PixelShuffle": [called(made(2), real(1, 4, 2, 2))],
        "PixelUnshuffle": [called(made(2), real(1, 1, 4, 4))],
        "Upsample": [
            called(made(scale_factor=2, mode=mode), real(1, 1, 4, 4))
            for mode in ("nearest", "bilinear", "bicubic")
        ],
        "UpsamplingBilinear2d": [called(made(scale_factor=2), real(1, 1, 4, 4))],
        "UpsamplingNearest2d": [called(made(scale_factor=2), real(1, 1, 4, 4))],
        "MaxUnpool1d": [called(made(2), real(1, 1, 2), torch.tensor([[[0, 3]]]))],
        "MaxUnpool2d": [called(made(2), real(1, 1, 1, 1), torch.tensor([[[[2]]]]))],
        "MaxUnpool3d": [called(made(2), real(1, 1, 1, 1, 1), torch.tensor([[[[[2]]]]]))],
        "FractionalMaxPool2d": [called(made(2, output_size=3), real(1, 2, 8, 8))],
        "FractionalMaxPool3d": [called(made(2, output_size=3), real(1, 2, 8, 8, 8))],
        "MaxPool2d": [
            called(made(2), real(1, 2, 4, 4)),
            called(made(2, return_indices=True), real(1, 2, 4, 4)),
        ],
    }


def _normalizers() -> Constructions:
    found: Constructions = {}
    for size, shape in ((1, (4, 3, 5)), (2, (4, 3, 2, 2)), (3, (4, 3, 2, 2, 2))):
        found[f"BatchNorm{size}d"] = [
            called(made(3, affine=affine, track_running_stats=tracked), real(*shape))
            for affine in (True, False)
            for tracked in (True, False)
        ]
        found[f"InstanceNorm{size}d"] = [
            called(made(3), real(*shape)),
            called(made(3, affine=True), real(*shape)),
            called(made(3, track_running_stats=True), real(*shape)),
            called(made(3, affine=True, track_running_stats=True), real(*shape)),
        ]
    found["LayerNorm"] = [called(made(4), real(2, 3, 4))]
    found["GroupNorm"] = [called(made(2, 4), real(2, 4, 3))]
    found["RMSNorm"] = [called(made(4), real(2, 3, 4))]
    found["CrossMapLRN2d"] = [called(made(2), real(1, 4, 3, 3))]
    return found


def _losses() -> Constructions:
    signs = torch.tensor([1.0, -1.0, 1.0])
    return {
        "MSELoss": [called(made(), real(3, 4), real(3, 4))],
        "L1Loss": [called(made(), real(3, 4), real(3, 4))],
        "SmoothL1Loss": [called(made(), real(3, 4), real(3, 4))],
        "HuberLoss": [called(made(), real(3, 4), real(3, 4))],
        "BCELoss": [called(made(), real(3, 4), real(3, 4))],
        "BCEWithLogitsLoss": [called(made(), real(3, 4), real(3, 4))],
        "KLDivLoss": [called(made(), real(3, 4).log(), real(3, 4))],
        "CrossEntropyLoss": [called(made(), real(3, 4), whole(4, 3)), called(made(), real(3, 4), real(3, 4))],
        "NLLLoss": [called(made(), real(3, 4).log(), whole(4, 3))],
        "NLLLoss2d": [called(made(), real(2, 3, 4, 4), whole(3, 2, 4, 4))],
        "CosineSimilarity": [called(made(), real(3, 4), real(3, 4))],
        "PairwiseDistance": [called(made(), real(3, 4), real(3, 4))],
        "TripletMarginLoss": [called(made(), real(3, 4), real(3, 4), real(3, 4))],
        "TripletMarginWithDistanceLoss": [called(made(), real(3, 4), real(3, 4), real(3, 4))],
        "CosineEmbeddingLoss": [called(made(), real(3, 4), real(3, 4), signs)],
        "AdaptiveLogSoftmaxWithLoss": [called(made(32, 20, [5, 10]), real(4, 32), whole(20, 4))],
    }


def _layers() -> Constructions:
    found: Constructions = {
        "Linear": [
            called(made(4, 3), real(2, 4)),
            called(made(4, 3), real(5, 2, 4)),
            called(made(4, 3, bias=False), real(2, 4)),
        ],
        "Bilinear": [called(made(3, 4, 2), real(5, 3), real(5, 4))],
        "Embedding": [called(made(10, 4), whole(10, 5)), called(made(10, 4, max_norm=0.1), whole(10, 5))],
        "EmbeddingBag": [
            called(made(10, 4), whole(10, 3, 5)),
            called(made(10, 4, mode="sum"), whole(10, 3, 5)),
        ],
    }
    for size, shape in ((1, (2, 3, 8)), (2, (2, 3, 6, 6)), (3, (2, 3, 5, 5, 5))):
        for kind in ("Conv", "ConvTranspose"):
            found[f"{kind}{size}d"] = [
                called(made(3, 4, 3), real(*shape)),
                called(made(3, 4, 3, bias=False), real(*shape)),
            ]
    return found


def _lazy() -> Constructions:
    found: Constructions = {"LazyLinear": [called(made(3), real(2, 4))]}
    for size, shape in ((1, (4, 3, 5)), (2, (4, 3, 6, 6)), (3, (4, 3, 5, 5, 5))):
        found[f"LazyBatchNorm{size}d"] = [called(made(), real(*shape))]
        found[f"LazyInstanceNorm{size}d"] = [
            called(made(), real(*shape)),
            called(made(affine=True), real(*shape)),
        ]
        found[f"LazyConv{size}d"] = found[f"LazyConvTranspose{size}d"] = [called(made(4, 3), real(*shape))]
    return found


def _recurrent() -> Constructions:
    found: Constructions = {}
    builds: tuple[dict[str, Any], ...] = (
        {},
        {"num_layers": 2},
        {"bidirectional": True},
        {"num_layers": 2, "bidirectional": True},
        {"bias": False},
        {"num_layers": 2, "dropout": 0.5},
        {"batch_first": True},
        {"proj_size": 2},
        {"proj_size": 2, "bidirectional": True},
        {"proj_size": 2, "num_layers": 2},
    )
    for name in ("RNN", "LSTM", "GRU"):
        found[name] = []
        for options in builds:
            if name != "LSTM" and "proj_size" in options:
                continue
            depth = options.get("num_layers", 1) * (2 if options.get("bidirectional") else 1)
            # With one sequence alone `batch_first` changes nothing about the memory.
            for first, second in ((4, 2), (1, 2)) if options.get("batch_first") else ((4, 2),):
                batch = first if options.get("batch_first") else second
                state: Any = real(depth, batch, options.get("proj_size", 5))
                state = (state, real(depth, batch, 5)) if name == "LSTM" else state
                found[name].append(called(made(3, 5, **options), real(first, second, 3), state))
                if not options or "batch_first" in options:
                    found[name].append(called(made(3, 5, **options), real(first, second, 3)))
        cell: Any = real(2, 5)
        cell = (cell, real(2, 5)) if name == "LSTM" else cell
        found[name + "Cell"] = [
            called(made(3, 5), real(2, 3)),
            called(made(3, 5), real(2, 3), cell),
            called(made(3, 5, bias=False), real(2, 3), cell),
        ]
    return found


def _attention() -> Constructions:
    query, key, value = real(3, 2, 8), real(3, 2, 8), real(3, 2, 8)
    layer = torch.nn.TransformerDecoderLayer(8, 2, 16, dropout=0.0)
    encoder_layer = torch.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0)
    return {
        "MultiheadAttention": [
            called(made(8, 2), query, key, value),
            called(made(8, 2), real(5, 2, 8), key, value),
            *(
                Construction(made(8, 2), CallTemplate((asking, key, value), {option: False}))
                for option in ("need_weights", "average_attn_weights")
                for asking in (query, real(5, 2, 8))
            ),
        ],
        "TransformerDecoder": [called(made(layer, 1), real(4, 2, 8), real(3, 2, 8))],
        "TransformerDecoderLayer": [called(made(8, 2, 16, dropout=0.0), real(4, 2, 8), real(3, 2, 8))],
        "Transformer": [called(made(8, 2, 1, 1, 16, dropout=0.0), real(4, 2, 8), real(3, 2, 8))],
        "TransformerEncoder": [called(made(encoder_layer, 1), real(3, 2, 8))],
    }
