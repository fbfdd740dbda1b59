"""Calls of our own for callables that torch's databases leave out, or show in one form only."""

from __future__ import annotations

import torch

from gradsight.agent.facts.drawing import Calls, call, mask, real, whole
from gradsight.agent.facts.layer_samples import losses_and_layers, resizing
from gradsight.agent.facts.rare_samples import (
    attention,
    initializers,
    quantized,
    quantized_tensor,
    recurrent,
    sparse,
    uneven_sizes,
)


def own_calls(seed: int = 0) -> Calls:
    """All of them, by table name; the numbers follow from the seed."""
    found: Calls = {}
    for part in (
        _operators,
        _plain_methods,
        _splits,
        _indexing,
        _creation,
        _functions,
        recurrent,
        attention,
        losses_and_layers,
        resizing,
        sparse,
        quantized,
        _in_place,
        initializers,
        uneven_sizes,
    ):
        # Each part starts anew, so that a call added to one of them leaves the numbers of the others alone.
        torch.manual_seed(seed)
        for name, calls in part().items():
            found.setdefault(name, []).extend(calls)
    return found


def _operators() -> Calls:
    """Arithmetic with a number, with a tensor of the same shape, and with one that broadcasts."""
    found: Calls = {}
    arithmetic = "add sub mul truediv div floordiv mod pow".split()
    for word in arithmetic:
        for prefix in ("", "r", "i"):
            found[f"Tensor.__{prefix}{word}__"] = [
                call(real(3, 4), 2.0),
                call(real(3, 4), 3),
                call(real(3, 4), real(3, 4)),
                call(real(3, 4), real(4)),
                call(real(3, 4), real(1)[0]),
            ]
    for (
        word
    ) in "add sub mul div true_divide multiply subtract divide pow fmod remainder floor_divide".split():
        pairs = [
            call(real(3, 4), 2.0),
            call(real(3, 4), 2),
            call(real(3, 4), real(3, 4)),
            call(real(3, 4), real(4)),
        ]
        found["torch." + word] = [*pairs, call(2.0, real(3, 4))]
        found["Tensor." + word] = pairs
        found["Tensor." + word + "_"] = pairs
    found["torch.rsub"] = [call(real(3, 4), 2.0), call(real(3, 4), real(4))]
    found["Tensor.__rmatmul__"] = [call(real(3, 4), real(5, 3)), call(real(3), real(3))]
    found["torch.pow"] += [
        call(real(3, 4), 3),
        call(real(3, 4), 0.5),
        call(real(3, 4), -1),
        call(3, real(3, 4)),
    ]
    for word in "eq ne lt le gt ge".split():
        found[f"Tensor.__{word}__"] = [call(real(3, 4), 0.5), call(real(3, 4), real(4))]
        for name in (f"torch.{word}", f"Tensor.{word}"):
            found[name] = [call(real(3, 4), 0.5), call(real(3, 4), real(4))]
    return found


def _plain_methods() -> Calls:
    """Methods and properties that need nothing but the tensor."""
    found: Calls = {}
    described = (
        "dim ndimension numel nelement element_size size storage_offset data_ptr const_data_ptr is_complex is_conj "
        "is_contiguous is_distributed is_floating_point is_inference is_neg is_pinned is_shared is_signed get_device "
        "tolist numpy detach detach_ detach_copy clone cpu requires_grad_ type share_memory_ storage untyped_storage dim_order "
        "__repr__ __len__ __reversed__ __array__ __deepcopy__ retain_grad ravel float double half int long bool "
        "to_dense to_mkldnn coalesce storage_type __dlpack_device__ "
        "T mT H mH data real grad_fn requires_grad is_leaf retains_grad shape dtype device layout ndim names itemsize "
        "nbytes output_nr _version is_cpu is_cuda is_sparse is_sparse_csr is_quantized is_meta is_mps is_xpu is_mkldnn "
        "is_nested name volatile grad_dtype __abs__ __neg__ __pos__"
    ).split()
    for word in described:
        found["Tensor." + word] = [call(real(3, 4)), call(real(3, 4).t())]
    for (
        word
    ) in "is_complex is_conj is_distributed is_floating_point is_inference is_neg is_signed numel".split():
        found["torch." + word] = [call(real(3, 4))]
    for word in "detach detach_copy get_device".split():
        found["torch." + word] = [call(real(3, 4))]
    for (
        word
    ) in "item __float__ __int__ __bool__ __nonzero__ __long__ __complex__ is_nonzero __format__".split():
        found["Tensor." + word] = [call(real(1)[0]) if word != "__format__" else call(real(1)[0], ".2f")]
    found["torch.is_nonzero"] = [call(real(1)[0])]
    found["Tensor.__index__"] = [call(torch.tensor(3))]
    found["Tensor.__contains__"] = [call(real(3, 4), 0.5)]
    found["Tensor.is_same_size"] = found["torch.is_same_size"] = [call(real(3, 4), real(3, 4))]
    found["Tensor.is_set_to"] = [call(real(3, 4), real(3, 4))]
    for word in "float double half bfloat16 int long bool".split():
        found["Tensor." + word] = [call(kind) for kind in _all_kinds()]
    for word, kind in (("cfloat", torch.complex64), ("cdouble", torch.complex128)):
        found["Tensor." + word] = [call(real(3)), call(real(3).to(kind))]
    found["Tensor.to"] = [
        call(real(3, 4), torch.float32),
        call(real(3, 4), torch.float64),
        call(real(3, 4), "cpu"),
        call(real(3, 4), dtype=torch.float64),
        call(real(3, 4), dtype=torch.float32),
        call(real(3, 4), real(2)),
        call(real(3, 4), torch.float32, copy=True),
        call(real(3, 4), copy=True),
        call(real(3, 4), "cpu", copy=True),
        call(real(3, 4), torch.int64),
    ]
    found["Tensor.type"] += [call(real(3, 4), torch.float32), call(real(3, 4), torch.float64)]
    found["Tensor.type_as"] = [call(real(3, 4), real(2)), call(real(3, 4), real(2).double())]
    found["Tensor.requires_grad_"] += [call(real(3, 4), False)]
    found["Tensor.__deepcopy__"] = [call(real(3, 4), {})]
    found["Tensor.imag"] = [call(torch.complex(real(3), real(3)))]
    found["Tensor.real"] += [call(torch.complex(real(3), real(3)))]
    found["Tensor.numpy"] += [call(real(3, 4), force=True)]
    found["Tensor.register_hook"] = [call(real(3), _unchanged)]
    for word in "to_sparse to_sparse_coo to_sparse_csr to_sparse_csc".split():
        found["Tensor." + word] = [call(real(3, 4))]
    found["Tensor.to_sparse_bsr"] = found["Tensor.to_sparse_bsc"] = [call(real(4, 4), (2, 2))]
    found["Tensor.sum_to_size"] = [call(real(3, 4), (3, 4)), call(real(3, 4), (1, 4)), call(real(3, 4), 3, 4)]
    for word in "contiguous reshape view flatten".split():
        target = (12,) if word in ("reshape", "view") else ()
        found["Tensor." + word] = [
            call(real(3, 4), *target),
            call(real(3, 4, 2).transpose(0, 1), *((-1,) if target else ())),
        ]
    found["torch.reshape"] = [call(real(3, 4), (12,)), call(real(3, 4).t(), (12,))]
    found["Tensor.unflatten"] = [
        call(real(3, 4), 1, (2, 2)),
        call(real(3, 4).t(), 0, (2, 2)),
        call(real(6), 0, (2, -1)),
    ]
    found["Tensor.stride"] = [call(real(3, 4)), call(real(3, 4), 0)]
    found["torch.from_dlpack"] = [call(real(3, 4))]
    found["torch.flatten"] = [call(real(3, 4)), call(real(3, 4).t()), call(real(3))]
    return found


def _all_kinds() -> list[torch.Tensor]:
    """The same tensor in every dtype that a cast may start from."""
    kinds = (
        torch.float32,
        torch.float64,
        torch.float16,
        torch.bfloat16,
        torch.int32,
        torch.int64,
        torch.bool,
    )
    return [(real(3, 4) * 9).to(kind) for kind in kinds]


def _splits() -> Calls:
    """Several views at once, in different numbers."""
    found: Calls = {}
    for name in ("torch.", "Tensor."):
        found[name + "unbind"] = [call(real(3, 4)), call(real(2, 4)), call(real(3, 4), 1)]
        found[name + "unsafe_chunk"] = found[name + "chunk"] = [call(real(6, 4), 2), call(real(6, 4), 3)]
        found[name + "unsafe_split"] = found[name + "split"] = [call(real(6, 4), 2), call(real(6, 4), 3)]
        found[name + "tensor_split"] = [call(real(6, 4), 2), call(real(6, 4), 3), call(real(6, 4), (1, 2, 5))]
        found[name + "split_with_sizes"] = [call(real(6, 4), [2, 4]), call(real(6, 4), [2, 2, 2])]
        for word in ("hsplit", "vsplit", "dsplit"):
            found[name + word] = [call(real(6, 6, 6), 2), call(real(6, 6, 6), 3)]
    found["torch.unbind_copy"] = [call(real(3, 4)), call(real(2, 4))]
    found["torch.split_with_sizes_copy"] = [call(real(6, 4), [2, 4]), call(real(6, 4), [2, 2, 2])]
    found["torch.broadcast_tensors"] = [call(real(3, 1), real(1, 4)), call(real(3, 1), real(1, 4), real(1))]
    found["torch.meshgrid"] = [call(real(3), real(4)), call(real(3), real(4), real(2))]
    found["Tensor.nonzero"] = [call(real(3, 4)), call(real(3))]
    found["Tensor.__iter__"] = [call(real(3, 4)), call(real(2, 4))]
    return found


def _unchanged(gradient: torch.Tensor) -> torch.Tensor:
    return gradient


def _indexing() -> Calls:
    index = torch.tensor([0, 2])
    reads = [
        call(real(3, 4), 0),
        call(real(3, 4), slice(1, None)),
        call(real(3, 4), (slice(None), 1)),
        call(real(3, 4), (Ellipsis, None)),
        call(real(3, 4), None),
        call(real(3, 4), index),
        call(real(3, 4), real(3, 4) > 0.5),
        call(real(3, 4), [0, 1]),
        call(real(3, 4), (slice(None), index)),
        call(real(3, 4), (index, torch.tensor([1, 1]))),
    ]
    writes = []
    for value in (1.0, None):
        for place, shape in (
            (0, (4,)),
            (slice(1, None), (2, 4)),
            ((slice(None), 1), (3,)),
            (index, (2, 4)),
            ((slice(None), index), (3, 2)),
            ([0, 1], (2, 4)),
            (mask(3, 4), ()),
        ):
            writes.append(
                call(real(3, 4), place, real(*shape) if value is None and shape else (value or real(1)[0]))
            )
    put = [
        call(real(3, 4), (index,), real(2, 4)),
        call(real(3, 4), (index,), real(4), accumulate=True),
        call(real(3, 4), (mask(3, 4),), real(1)[0]),
    ]
    return {
        "Tensor.__getitem__": reads,
        "Tensor.__setitem__": writes,
        "Tensor.index_put_": put,
        "Tensor.index_put": put,
        "torch.index_put": put,
        "torch.index_put_": put,
        "torch.masked_fill": [call(real(3, 4), mask(3, 4), 1.0), call(real(3, 4), mask(3, 4), real(1)[0])],
        "Tensor.masked_fill": [call(real(3, 4), mask(3, 4), 1.0), call(real(3, 4), mask(3, 4), real(1)[0])],
        "Tensor.masked_fill_": [call(real(3, 4), mask(3, 4), 1.0), call(real(3, 4), mask(3, 4), real(1)[0])],
    }


def _creation() -> Calls:
    """Factories.  With `requires_grad=True` they hand out a leaf."""
    found: Calls = {}
    for word in "zeros ones rand randn empty".split():
        found["torch." + word] = [call(3, 4), call((3, 4)), call(3, 4, requires_grad=True)]
    for (
        word
    ) in "bartlett_window blackman_window hamming_window hann_window kaiser_window randperm eye".split():
        found["torch." + word] = [call(5)]
    found["torch.arange"] = [call(5), call(0, 5), call(0.0, 1.0, 0.25)]
    found["torch.range"] = [call(0, 5)]
    found["torch.full"] = [call((3, 4), 1.5)]
    found["torch.linspace"] = found["torch.logspace"] = [call(0.0, 1.0, 5)]
    for word in ("tensor", "as_tensor", "asarray"):
        found["torch." + word] = [
            call([1.0, 2.0]),
            call(real(3)),
            call(1.5),
            call(real(3), dtype=torch.float64),
        ]
    found["torch.scalar_tensor"] = [call(1.5)]
    for word in ("rand_like", "randn_like"):
        found["torch." + word] = [call(real(3, 4)), call(real(5))]
    found["torch.randint_like"] = [call(real(3, 4), 5), call(whole(9, 3), 2, 7)]
    for word in "new_zeros new_ones new_empty".split():
        found["Tensor." + word] = [
            call(real(3, 4), (2, 3)),
            call(real(3, 4), 2, 3),
            call(real(3, 4), (2, 3), dtype=torch.float64),
        ]
    found["Tensor.new_full"] = [call(real(3, 4), (2, 3), 1.5)]
    found["Tensor.new_tensor"] = [call(real(3, 4), [1.0, 2.0]), call(real(3, 4), real(2)), call(real(3), 1.5)]
    found["fft.fftfreq"] = found["fft.rfftfreq"] = [call(5), call(6)]
    found["torch.complex"] = found["torch.polar"] = [call(real(3), real(3))]
    found["torch.tril_indices"] = found["torch.triu_indices"] = [call(3, 3)]
    found["torch.vander"] = [call(real(4))]
    found["torch.normal"] = [call(0.0, 1.0, (3,)), call(real(3), 1.0), call(real(3), real(3))]
    found["torch.frombuffer"] = [call(bytearray(16), dtype=torch.float32)]
    found["torch.sparse_coo_tensor"] = [call(torch.tensor([[0, 1], [1, 0]]), real(2), (2, 2))]
    pointers, columns = torch.tensor([0, 1, 2]), torch.tensor([0, 1])
    found["torch.sparse_csr_tensor"] = found["torch.sparse_csc_tensor"] = [
        call(pointers, columns, real(2), (2, 2))
    ]
    blocks = real(2, 1, 1)
    found["torch.sparse_bsr_tensor"] = found["torch.sparse_bsc_tensor"] = [
        call(pointers, columns, blocks, (2, 2))
    ]
    found["torch.sparse_compressed_tensor"] = [
        call(pointers, columns, real(2), (2, 2), layout=torch.sparse_csr)
    ]
    found["torch.empty_quantized"] = [call((3,), quantized_tensor())]
    return found


def _functions() -> Calls:
    square = real(3, 3) + torch.eye(3)
    found: Calls = {
        "torch.adjoint": [call(real(3, 4))],
        "torch.affine_grid_generator": [call(real(2, 2, 3), (2, 3, 4, 4), False)],
        "nn.functional.affine_grid": [
            call(real(2, 2, 3), (2, 3, 4, 4), False),
            call(real(1, 3, 4), (1, 2, 3, 3, 3), False),
        ],
        "torch.bilinear": [call(real(2, 3), real(2, 4), real(5, 3, 4), real(5))],
        "torch.binomial": [call(torch.full((3,), 5.0), real(3))],
        "torch.poisson": [call(real(3))],
        "torch.unique": [
            call(whole(3, 8)),
            call(real(4), return_inverse=True),
            call(real(4), return_counts=True),
        ],
        "nn.utils.get_total_norm": [call([real(3, 4), real(4)])],
        "Tensor.float_power_": [call(real(3, 4).double(), 2.0), call(real(3).double(), real(3).double())],
        "torch.celu": [call(real(3) - 0.5)],
        "torch.celu_": [call(real(3) - 0.5)],
        "torch.chain_matmul": [call(real(3, 4), real(4, 2), real(2, 3))],
        "torch.channel_shuffle": [call(real(2, 4, 3, 3), 2)],
        "torch.native_channel_shuffle": [call(real(2, 4, 3, 3), 2)],
        "nn.functional.native_channel_shuffle": [call(real(2, 4, 3, 3), 2)],
        "torch.conv_tbc": [call(real(5, 2, 3), real(2, 3, 4), real(4))],
        "nn.functional.conv_tbc": [call(real(5, 2, 3), real(2, 3, 4), real(4))],
        "torch.convolution": [
            call(real(2, 3, 5, 5), real(4, 3, 3, 3), real(4), (1, 1), (0, 0), (1, 1), False, (0, 0), 1),
            call(real(2, 3, 5, 5), real(4, 3, 3, 3), None, (1, 1), (0, 0), (1, 1), False, (0, 0), 1),
        ],
        "torch.einsum": [
            call("ij,jk->ik", real(3, 4), real(4, 2)),
            call("ij->ji", real(3, 4)),
            call("bij,bjk->bik", real(2, 3, 4), real(2, 4, 3)),
            call("i,i->", real(3), real(3)),
            call("ij->i", real(3, 4)),
        ],
        "torch.grid_sampler": [call(real(1, 2, 4, 4), real(1, 3, 3, 2) - 0.5, 0, 0, False)],
        "torch.grid_sampler_3d": [call(real(1, 2, 3, 3, 3), real(1, 2, 2, 2, 3) - 0.5, 0, 0, False)],
        "torch.hardshrink": [call(real(3))],
        "Tensor.hardshrink": [call(real(3))],
        "torch.frobenius_norm": [call(real(3, 4), [0, 1])],
        "torch.nuclear_norm": [call(square), call(square, (0, 1))],
        "torch.norm_except_dim": [call(real(3, 4))],
        "torch.lobpcg": [call(square @ square.t() + torch.eye(3), 1)],
        "torch.pairwise_distance": [call(real(3, 4), real(3, 4))],
        "torch.pdist": [call(real(3, 4))],
        "torch.pca_lowrank": [call(real(5, 4), 2)],
        "torch.svd_lowrank": [call(real(5, 4), 2)],
        "torch.prelu": [call(real(3) - 0.5, real(1))],
        "Tensor.prelu": [call(real(3) - 0.5, real(1))],
        "torch.slogdet": [call(square)],
        "Tensor.slogdet": [call(square)],
        "torch.smm": [],
        "torch.threshold": [call(real(3), 0.5, 0.0)],
        "torch.threshold_": [call(real(3), 0.5, 0.0)],
        "torch.select_copy": [call(real(3, 4), 0, 1)],
        "torch.slice_copy": [call(real(3, 4), 0, 1, 2)],
        "torch.slice_inverse": [call(real(1, 4), real(3, 4), 0, 1, 2, 1)],
        "Tensor.slice_inverse": [call(real(1, 4), real(3, 4), 0, 1, 2, 1)],
        "torch.split_copy": [call(real(6, 4), 2), call(real(6, 4), 3)],
        "torch.unsafe_split_with_sizes": [call(real(6, 4), [2, 4]), call(real(6, 4), [2, 2, 2])],
        "Tensor.unsafe_split_with_sizes": [call(real(6, 4), [2, 4]), call(real(6, 4), [2, 2, 2])],
        "torch.view_as_complex_copy": [call(real(3, 2))],
        "torch.view_as_real_copy": [call(torch.complex(real(3), real(3)))],
        "torch.sym_float": [call(2)],
        "torch.sym_int": [call(2.5)],
        "torch.sym_max": [call(2, 3)],
        "torch.sym_min": [call(2, 3)],
        "torch.sym_not": [call(True)],
        "torch.sym_sqrt": [call(4)],
        "torch.sym_sum": [call([1, 2])],
        "torch.sym_ite": [call(True, 1, 2)],
        "torch.dequantize": [call(quantized_tensor())],
        "torch.expand_copy": [call(real(1, 4), (3, 4))],
        "torch.where": [
            call(mask(3, 4), real(3, 4), 0.0),
            call(mask(3, 4), 0.0, real(3, 4)),
            call(mask(3, 4)),
        ],
        "torch.clamp": [call(real(3, 4), 0.2, 0.8), call(real(3, 4), min=0.5), call(real(3, 4), max=0.5)],
        "Tensor.clamp": [call(real(3, 4), 0.2, 0.8), call(real(3, 4), min=0.5), call(real(3, 4), max=0.5)],
        "Tensor.clamp_": [call(real(3, 4), 0.2, 0.8), call(real(3, 4), min=0.5), call(real(3, 4), max=0.5)],
        "torch.norm": [
            call(real(3, 4)),
            call(real(3, 4), 1),
            call(real(3, 4), 2, 1),
            call(real(3, 4), float("inf")),
        ],
        "Tensor.norm": [
            call(real(3, 4)),
            call(real(3, 4), 1),
            call(real(3, 4), 2, 1),
            call(real(3, 4), float("inf")),
        ],
        "torch.stft": [
            call(real(100), 10, return_complex=complex_result, center=center)
            for complex_result in (True, False)
            for center in (True, False)
        ],
        "Tensor.stft": [
            call(real(100), 10, return_complex=complex_result, center=center)
            for complex_result in (True, False)
            for center in (True, False)
        ],
        "nn.functional.fold": [call(real(1, 12, 12), (4, 5), (2, 2))],
        "nn.functional.unfold": [call(real(1, 2, 4, 4), 2)],
        "nn.functional.gumbel_softmax": [call(real(3, 4)), call(real(3, 4), hard=True)],
        "nn.functional.one_hot": [call(whole(3, 4), 3)],
        "nn.functional.lp_pool1d": [call(real(1, 2, 8), 2.0, 2)],
        "nn.functional.lp_pool2d": [call(real(1, 2, 8, 8), 2.0, 2)],
        "nn.functional.lp_pool3d": [call(real(1, 2, 4, 4, 4), 2.0, 2)],
        "nn.functional.upsample": [call(real(1, 2, 4, 4), scale_factor=2)],
        "nn.utils.parameters_to_vector": [call([real(3, 4), real(4)])],
        "nn.utils.rnn.pad_sequence": [
            call([real(3, 2), real(5, 2)]),
            call([real(3), real(5)], batch_first=True),
        ],
        "nn.utils.rnn.unpad_sequence": [call(real(5, 2, 3), torch.tensor([5, 3]))],
        "nn.utils.rnn.pack_padded_sequence": [call(real(5, 2, 3), torch.tensor([5, 3]))],
        "nn.utils.rnn.pack_sequence": [call([real(5, 2), real(3, 2)])],
    }
    for word in ("quantile", "nanquantile"):
        found["torch." + word] = found["Tensor." + word] = [
            call(real(3, 4), q, interpolation=way)
            for way in ("linear", "lower", "higher", "midpoint", "nearest")
            for q in (0.5, real(2))
        ]
    for size in (1, 2, 3):
        shape = (1, 2, *([8] * size))
        pooled = [call(real(*shape), 2), call(real(*shape), 2, return_indices=True)]
        adaptive = [call(real(*shape), 2), call(real(*shape), 4)]
        found[f"torch.max_pool{size}d"] = [call(real(*shape), 2)]
        found[f"nn.functional.max_pool{size}d"] = pooled
        found[f"nn.functional.max_pool{size}d_with_indices"] = [call(real(*shape), 2)]
        found[f"nn.functional.adaptive_max_pool{size}d_with_indices"] = adaptive
        found[f"torch.adaptive_avg_pool{size}d"] = found[f"torch.adaptive_max_pool{size}d"] = adaptive
        found[f"torch.avg_pool{size}d"] = [call(real(*shape), 2)]
    found["torch.max_pool1d_with_indices"] = [call(real(1, 2, 8), 2)]
    return found


def _add(one: float, other: float) -> float:
    return one + other


def _twice(one: float) -> float:
    return 2 * one


def _in_place() -> Calls:
    found: Calls = {
        "Tensor.copy_": [
            call(real(3, 4), real(3, 4)),
            call(real(3, 4), real(4)),
            call(real(3, 4), real(3, 4).double()),
        ],
        "Tensor.fill_": [call(real(3, 4), 1.0), call(real(3, 4), real(1)[0])],
        "Tensor.fill_diagonal_": [call(real(3, 3), 1.0)],
        "Tensor.random_": [call(real(3, 4), 0, 5)],
        "Tensor.apply_": [call(real(3), _twice)],
        "Tensor.map_": [call(real(3), real(3), _add)],
        "Tensor.set_": [call(real(3, 4)), call(real(3, 4), real(2, 2))],
        "Tensor.resize_": [call(real(3, 4), (4, 3)), call(real(3, 4), (2, 3))],
        "Tensor.resize_as_": [call(real(3, 4), real(4, 3))],
        "Tensor.swapaxes_": [call(real(3, 4), 0, 1)],
        "Tensor.index_fill_": [call(real(3, 4), 0, torch.tensor([0]), 1.0)],
    }
    for word in "normal_ uniform_ exponential_ geometric_ cauchy_ log_normal_ zero_ bernoulli_".split():
        found["Tensor." + word] = [call(real(3, 4), 0.5) if word == "geometric_" else call(real(3, 4))]
    for word in "relu leaky_relu elu hardtanh celu selu rrelu".split():
        for name in (f"nn.functional.{word}_", f"nn.functional.{word}", f"torch.{word}_", f"torch.{word}"):
            found.setdefault(name, []).append(call(real(3, 4) - 0.5))
    for name in ("torch.", "Tensor."):
        found[name + "detach_"] = found[name + "zero_"] = [call(real(3, 4))]
        partial = [call(real(5, 3), 0, torch.tensor([0, 4]), real(2, 3))]
        found[name + "index_copy"] = found[name + "index_copy_"] = partial
    found["torch.fill"] = found["torch.fill_"] = found["Tensor.fill_"]
    found["nn.functional.threshold_"] = [call(real(3, 4), 0.5, 0.0)]
    found["Tensor.relu"] = found["Tensor.relu_"] = [call(real(3, 4) - 0.5)]
    return found
