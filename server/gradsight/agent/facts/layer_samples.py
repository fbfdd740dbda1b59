"""Calls of our own for losses, layers, dropouts and interpolation in functional form."""

from __future__ import annotations

import torch

from gradsight.agent.facts.drawing import Calls, call, real, whole


def losses_and_layers() -> Calls:
    """Losses, normalisation, embeddings."""
    signs = torch.tensor([1.0, -1.0, 1.0])
    found: Calls = {
        "nn.functional.cross_entropy": [
            call(real(*shape), target, weight=weight, label_smoothing=smoothing)
            for shape, kinds in (
                ((4, 3), (whole(3, 4), real(4, 3))),
                ((2, 3, 5), (whole(3, 2, 5), real(2, 3, 5))),
            )
            for target in kinds
            for smoothing in (0.0, 0.1)
            for weight in (None, real(3))
        ],
        "nn.functional.linear_cross_entropy": [
            call(real(3, 4), real(5, 4), whole(5, 3)),
            call(real(3, 4), real(5, 4), whole(5, 3), linear_bias=real(5), weight=real(5)),
            call(real(4), real(5, 4), whole(5, 1)[0], linear_bias=real(5), weight=real(5)),
        ],
        "torch.cosine_similarity": [call(real(3, 4), real(3, 4))],
        "torch.cosine_embedding_loss": [call(real(3, 4), real(3, 4), signs)],
        "torch.hinge_embedding_loss": [call(real(3), signs)],
        "torch.margin_ranking_loss": [call(real(3), real(3), signs)],
        "torch.triplet_margin_loss": [call(real(3, 4), real(3, 4), real(3, 4))],
        "torch.binary_cross_entropy_with_logits": [call(real(3), real(3))],
        "torch.kl_div": [call(real(3).log(), real(3)), call(real(3).log(), real(3), log_target=True)],
        "torch.poisson_nll_loss": [call(real(3), real(3), True, False, 1e-8, 1)],
        "torch.ctc_loss": [
            call(real(6, 2, 4).log_softmax(2), whole(3, 2, 3) + 1, torch.tensor([6, 6]), torch.tensor([3, 3]))
        ],
        "torch.batch_norm": [
            call(real(4, 3, 2), real(3), real(3), real(3), real(3), training, 0.1, 1e-5, False)
            for training in (True, False)
        ],
        "torch.instance_norm": [
            call(real(4, 3, 5), real(3), real(3), real(3), real(3), stats, 0.1, 1e-5, False)
            for stats in (True, False)
        ],
        "nn.functional.instance_norm": [
            call(real(4, 3, 5), real(3), real(3), real(3), real(3), use_input_stats=stats)
            for stats in (True, False)
        ],
        "torch.embedding": [call(real(10, 4), whole(10, 5))],
        "torch.embedding_bag": [call(real(10, 4), whole(10, 6), torch.tensor([0, 3]))],
        "nn.functional.embedding": [
            call(whole(10, 5), real(10, 4)),
            call(whole(10, 5), real(10, 4), max_norm=1.0),
        ],
        "torch.dropout": [call(real(3, 4), 0.5, True), call(real(3, 4), 0.5, False)],
        "torch.dropout_": [call(real(3, 4), 0.5, True), call(real(3, 4), 0.5, False)],
        "torch.native_dropout": [call(real(3, 4), 0.5, True)],
        "torch.rrelu": [call(real(3) - 0.5), call(real(3) - 0.5, training=True)],
        "torch.pixel_shuffle": [call(real(1, 4, 2, 2), 2)],
        "torch.pixel_unshuffle": [call(real(1, 1, 4, 4), 2)],
        "torch.fake_quantize_per_tensor_affine": [call(real(3), 0.1, 0, 0, 255)],
        "torch.fused_moving_avg_obs_fake_quant": [
            call(
                real(3, 4) - 0.5,
                torch.tensor([1]),
                torch.tensor([1]),
                torch.tensor([-1.0]),
                torch.tensor([1.0]),
                torch.tensor([1.0]),
                torch.tensor([0], dtype=torch.int32),
                0.01,
                0,
                255,
                0,
            )
        ],
        "torch.fake_quantize_per_channel_affine": [
            call(real(3, 4), torch.full((3,), 0.1), torch.zeros(3, dtype=torch.int32), 0, 0, 255)
        ],
    }
    found.update(dropouts())
    for word in ("feature_dropout", "alpha_dropout", "feature_alpha_dropout"):
        found["torch." + word] = [call(real(2, 3, 4), 0.5, True), call(real(2, 3, 4), 0.5, False)]
        found["torch." + word + "_"] = found["torch." + word]
    return found


def dropouts() -> Calls:
    """Every combination of probability, training and `inplace`, batched and not."""
    shapes = {
        "dropout": ((3, 4), ()),
        "dropout1d": ((3, 4), (2, 3, 4)),
        "dropout2d": ((3, 4, 4), (2, 3, 4, 4)),
        "dropout3d": ((3, 4, 4, 4), (2, 3, 4, 4, 4)),
        "alpha_dropout": ((3, 4), ()),
        "feature_alpha_dropout": ((2, 3, 4), (2, 3, 4, 4)),
    }
    return {
        "nn.functional." + word: [
            call(real(*shape), p, training, in_place)
            for p in (0.5, 0.0, 1.0)
            for training in (True, False)
            for in_place in (True, False)
            for shape in tried
        ]
        for word, tried in shapes.items()
    }


def resizing() -> Calls:
    """Interpolation in every mode, to a size and by a factor."""
    modes = {
        1: ("nearest", "linear", "area", "nearest-exact"),
        2: ("nearest", "bilinear", "bicubic", "area", "nearest-exact"),
        3: ("nearest", "trilinear", "area", "nearest-exact"),
    }
    calls = []
    for size, names in modes.items():
        image = real(1, 2, *[6] * size)
        for mode in names:
            calls.append(call(image, (4,) * size, mode=mode))
            calls += [call(image, scale_factor=factor, mode=mode) for factor in (2.0, 0.5)]
    calls.append(call(real(1, 2, 6, 6), (1, 1), mode="area"))
    return {"nn.functional.interpolate": calls}
