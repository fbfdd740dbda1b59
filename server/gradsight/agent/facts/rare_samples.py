"""Calls of our own for the rarer parts of torch: recurrent and attention functions, sparse, quantized, initializers."""

from __future__ import annotations

from typing import Any

import torch

from gradsight.agent.facts.drawing import Calls, call, mask, real


def recurrent() -> Calls:
    """Recurrent functions and their cells: one layer and several, one direction and both, with and without biases."""
    found: Calls = {}
    gates = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}
    builds = ((1, 1, True), (2, 1, True), (1, 2, True), (2, 2, True), (1, 1, False))
    for word, count in gates.items():
        rows = 5 * count
        found["torch." + word] = []
        for layers, directions, biases in builds:
            hidden = real(layers * directions, 2, 5)
            state: Any = (hidden, real(layers * directions, 2, 5)) if word == "lstm" else hidden
            weights = _recurrent_weights(rows, layers, directions, biases)
            for training in (True, False):
                found["torch." + word].append(
                    call(real(4, 2, 3), state, weights, biases, layers, 0.0, training, directions == 2, False)
                )
        cell_state: Any = (real(2, 5), real(2, 5)) if word == "lstm" else real(2, 5)
        found[f"torch.{word}_cell"] = [
            call(real(2, 3), cell_state, real(rows, 3), real(rows, 5), real(rows), real(rows)),
            call(real(2, 3), cell_state, real(rows, 3), real(rows, 5)),
        ]
    return found


def _recurrent_weights(rows: int, layers: int, directions: int, biases: bool) -> list[torch.Tensor]:
    """Input and hidden weights of every layer and direction, as recurrent functions take them."""
    weights = []
    for layer in range(layers):
        for _ in range(directions):
            weights += [real(rows, 3 if layer == 0 else 5 * directions), real(rows, 5)]
            weights += [real(rows), real(rows)] if biases else []
    return weights


def attention() -> Calls:
    """Attention with and without mask, dropout and causality."""
    heads = (real(2, 2, 4, 8), real(2, 2, 4, 8), real(2, 2, 4, 8))
    return {
        "nn.functional.scaled_dot_product_attention": [
            call(*heads),
            call(*heads, is_causal=True),
            call(*heads, mask(4, 4)),
            call(*heads, real(4, 4)),
            call(*heads, real(4, 4), is_causal=True),
            call(*heads, mask(4, 4), is_causal=True),
            call(real(2, 2, 5, 8), *heads[1:], mask(5, 4), is_causal=True),
            call(*heads, dropout_p=0.5),
            call(real(2, 2, 5, 8), *heads[1:], mask(5, 4)),
            call(real(2, 2, 5, 8), *heads[1:], real(5, 4)),
            call(real(2, 5, 8), real(2, 4, 8), real(2, 4, 8), mask(5, 4)),
            call(real(2, 4, 8), real(2, 4, 8), real(2, 4, 8)),
            call(real(2, 2, 5, 8), real(2, 2, 4, 8), real(2, 2, 4, 8)),
            call(real(2, 5, 8), real(2, 4, 8), real(2, 4, 8)),
        ]
    }


def sparse() -> Calls:
    """Parts and products of sparse tensors."""
    coordinates = torch.eye(3).to_sparse()
    oblong = torch.eye(2, 3).to_sparse()
    rows = torch.eye(3).to_sparse_csr()
    columns = torch.eye(3).to_sparse_csc()
    found: Calls = {}
    for word in ("values", "indices", "coalesce", "is_coalesced", "dense_dim", "sparse_dim", "to_dense"):
        found["Tensor." + word] = [call(coordinates)]
    for word in ("crow_indices", "col_indices", "values"):
        found.setdefault("Tensor." + word, []).append(call(rows))
    for word in ("ccol_indices", "row_indices"):
        found["Tensor." + word] = [call(columns)]
    for word in ("crow_indices_copy", "col_indices_copy"):
        found["torch." + word] = [call(rows)]
    for word in ("ccol_indices_copy", "row_indices_copy"):
        found["torch." + word] = [call(columns)]
    found["torch.values_copy"] = found["torch.indices_copy"] = [call(coordinates)]
    for word in ("hspmm", "hsmm", "smm", "spmm", "dsmm"):
        found["torch." + word] = [call(coordinates, real(3, 4)), call(oblong, real(3, 4))]
    found["Tensor.smm"] = [call(coordinates, real(3, 4)), call(oblong, real(3, 4))]
    found["sparse.mm"] = [call(coordinates, real(3, 4)), call(oblong, real(3, 4))]
    found["sparse.sum"] = [call(coordinates), call(coordinates, 0)]
    found["sparse.softmax"] = found["sparse.log_softmax"] = [call(coordinates, 1)]
    found["sparse.addmm"] = [call(real(3, 4), coordinates, real(3, 4))]
    found["torch.saddmm"] = found["torch.sspaddmm"] = found["Tensor.sspaddmm"] = [
        call(coordinates, coordinates, real(3, 3)),
        call(torch.eye(2, 4).to_sparse(), oblong, real(3, 4)),
    ]
    found["torch.native_norm"] = [call(coordinates), call(coordinates, 2)]
    found["Tensor.sparse_mask"] = [call(real(3, 3), coordinates)]
    found["Tensor.sparse_resize_"] = [call(coordinates, (4, 4), 2, 0)]
    found["Tensor.sparse_resize_and_clear_"] = [call(coordinates, (4, 4), 2, 0)]
    found["Tensor.resize_as_sparse_"] = [call(coordinates, torch.eye(4).to_sparse())]
    return found


def quantized_tensor() -> torch.Tensor:
    """Four numbers in eight bits."""
    return torch.quantize_per_tensor(torch.rand(4), 0.1, 0, torch.qint8)


def quantized() -> Calls:
    """Quantized tensors, where an engine for them is built in."""
    found: Calls = {}
    if "fbgemm" not in torch.backends.quantized.supported_engines and "qnnpack" not in (
        torch.backends.quantized.supported_engines
    ):
        return found
    channels = torch.quantize_per_channel(
        torch.rand(3, 4), torch.full((3,), 0.1), torch.zeros(3, dtype=torch.int64), 0, torch.qint8
    )
    found["torch.quantize_per_tensor"] = [call(torch.rand(4), 0.1, 0, torch.qint8)]
    found["torch.quantize_per_tensor_dynamic"] = [call(torch.rand(4), torch.qint8, False)]
    found["torch.quantize_per_channel"] = [
        call(torch.rand(3, 4), torch.full((3,), 0.1), torch.zeros(3, dtype=torch.int64), 0, torch.qint8)
    ]
    for word in ("int_repr", "q_scale", "q_zero_point", "dequantize", "qscheme"):
        found["torch." + word] = found["Tensor." + word] = [call(quantized_tensor())]
    for word in ("q_per_channel_axis", "q_per_channel_scales", "q_per_channel_zero_points"):
        found["torch." + word] = found["Tensor." + word] = [call(channels)]
    image = torch.quantize_per_tensor(torch.rand(1, 2, 8, 8), 0.1, 0, torch.quint8)
    found["torch.quantized_max_pool2d"] = [call(image, [2, 2])]
    found["torch.quantized_max_pool1d"] = [call(image[0], [2])]
    volume = torch.quantize_per_tensor(torch.rand(1, 2, 4, 4, 4), 0.1, 0, torch.quint8)
    found["torch.quantized_max_pool3d"] = [call(volume, [2] * 3, [2] * 3, [0] * 3, [1] * 3, False)]
    statistics = [torch.rand(2) for _ in range(4)]
    found["torch.quantized_batch_norm"] = [call(image, *statistics, 1e-5, 0.1, 0)]
    found["torch.choose_qparams_optimized"] = [call(torch.rand(16), 16, 200, 0.16, 8)]
    return found


def initializers() -> Calls:
    """The functions of `nn.init`."""
    found: Calls = {}
    for word in "eye_ kaiming_normal_ kaiming_uniform_ normal_ ones_ orthogonal_ trunc_normal_ uniform_ zeros_".split():
        found["nn.init." + word] = [call(real(3, 4))]
    found["nn.init.xavier_normal_"] = found["nn.init.xavier_uniform_"] = [call(real(3, 4))]
    found["nn.init.constant_"] = [call(real(3, 4), 0.5)]
    found["nn.init.sparse_"] = [call(real(3, 4), 0.5)]
    found["nn.init.dirac_"] = [call(real(3, 4, 2))]
    return found


def uneven_sizes() -> Calls:
    """Calls in which no two sizes agree by chance, so that only true rules about shapes survive."""
    found: Calls = {
        "torch.cdist": [call(real(3, 2), real(4, 2))],
        "torch.diff": [call(real(5)), call(real(5, 4))],
        "torch.rot90": [call(real(3, 4))],
        "nn.functional.grid_sample": [call(real(1, 2, 4, 4), real(1, 3, 5, 2) - 0.5)],
        "torch.unique_consecutive": [call(torch.tensor([1, 1, 2])), call(torch.tensor([1.0, 1.0, 2.0]))],
        "torch.unique": [call(torch.tensor([1, 1, 2])), call(torch.tensor([1.0, 1.0, 2.0]))],
        "linalg.pinv": [call(real(3, 4))],
        # One bound as a number makes torch take the other for one too: then it must not require grad.
        "linalg.matrix_rank": [
            call(real(3, 4), atol=0.5, rtol=real(1)[0]),
            call(real(3, 4), atol=real(1)[0], rtol=0.5),
            call(real(3, 4), atol=real(1)[0], rtol=real(1)[0]),
        ],
        "torch.pinverse": [call(real(3, 4))],
        "torch.cholesky_solve": [call(real(3, 2), torch.eye(3))],
        "torch.sparse_coo_tensor": [call(torch.tensor([[0, 1], [1, 0]]), real(2), (2, 3))],
        "torch.where": [call(torch.tensor([True, False])), call(torch.tensor([[True, False], [True, True]]))],
        "torch.select_scatter": [call(real(3, 4), real(3), 1, 1)],
    }
    for name in ("torch.", "Tensor."):
        found[name + "index_select"] = [
            call(real(5, 4), 0, torch.tensor([0, 2])),
            call(real(3), 0, torch.tensor([1])),
        ]
        found[name + "addmm"] = [
            call(real(3, 5), real(3, 4), real(4, 5)),
            call(real(5), real(3, 4), real(4, 5)),
        ]
        found[name + "baddbmm"] = [call(real(2, 3, 5), real(2, 3, 4), real(2, 4, 5))]
        found[name + "addbmm"] = [call(real(3, 5), real(2, 3, 4), real(2, 4, 5))]
        for word in (
            "cdist",
            "diff",
            "rot90",
            "unique_consecutive",
            "cholesky_solve",
            "pinverse",
            "select_scatter",
        ):
            if name == "Tensor." and "torch." + word in found:
                found[name + word] = found["torch." + word]
    for word in "fft ifft rfft irfft hfft ihfft".split():
        found["fft." + word] = [call(real(8)), call(real(8), 5), call(real(8), 12)]
    for size in (1, 2, 3):
        image, kernel, even = real(1, 2, *[6] * size), real(3, 2, *[3] * size), real(3, 2, *[2] * size)
        calls = [
            call(image, kernel),
            call(image, kernel, real(3), padding="same"),
            call(image, kernel, padding="same"),
            call(image, kernel, padding="same", dilation=2),
            call(image, even, padding="same"),
            call(image, even, real(3), padding="same"),
        ]
        found[f"nn.functional.conv{size}d"] = found[f"torch.conv{size}d"] = calls
    return found
