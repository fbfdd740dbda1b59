"""Facts that cannot be had by calling: what lives beside the tensor, on other devices, or in a whole list of parameters.

The test suite runs each of them against torch by a program of its own.  Also: public names that have no fact, with reason.
"""

from __future__ import annotations

import re
from typing import Any

Fact = dict[str, Any]


def _fact(name: str, parameters: str, case: dict[str, Any], note: str = "") -> Fact:
    names, defaults = [], {}
    for part in parameters.split(", ") if parameters else ():
        spelled, _, default = part.partition("=")
        names.append(spelled)
        if default:
            defaults[spelled] = default
    fact: Fact = {"name": name, "parameters": names, "defaults": defaults, "origin": "hand"}
    fact["cases"] = [{"holds_saved": "never", **case}]
    if note:
        fact["note"] = note
    return fact


_MOVED = {"outputs": [{"alias": "self", "aliased": "sometimes", "same": "sometimes", "shape": "like:self"}]}
_NOTHING = {"returns": "none"}
_GRADIENTS_WRITTEN = {"writes": ["parameters.grad"], "no_grad": True}


def hand_facts() -> list[Fact]:
    """All facts written by hand."""
    moves = [
        _fact(
            f"Tensor.{device}",
            "self, device=None, non_blocking=False, memory_format=None",
            _MOVED,
            "a tensor that is already there is returned itself, any other is copied",
        )
        for device in ("cuda", "xpu", "ipu", "mtia")
    ]
    return [
        *moves,
        _fact(
            "Tensor.grad",
            "self",
            {"outputs": [{"gradient": "none", "alias": "self.grad", "aliased": "always", "same": "always"}]},
            "the gradient itself, not a copy: the next backward adds into it, and zero_ clears it",
        ),
        _fact(
            "Tensor._base",
            "self",
            {"returns": "object", "outputs": [{"alias": "self", "aliased": "always"}]},
            "the tensor of which this one is a view, or None",
        ),
        _fact(
            "Tensor.backward",
            "self, gradient=None, retain_graph=None, create_graph=False, inputs=None",
            _NOTHING,
            "adds into .grad of the leaves and frees what the graph kept, unless retain_graph=True",
        ),
        _fact("Tensor.retain_grad", "self", _NOTHING, "makes .grad of a non-leaf available after backward"),
        _fact(
            "Tensor.register_hook", "self, hook", {"returns": "object"}, "the hook may replace the gradient"
        ),
        _fact("Tensor.register_post_accumulate_grad_hook", "self, hook", {"returns": "object"}),
        _fact("Tensor.record_stream", "self, s", _NOTHING),
        _fact("Tensor.const_data_ptr", "self", {"returns": "number"}),
        _fact(
            "Tensor.__dlpack__",
            "self, stream=None, max_version=None, dl_device=None, copy=None",
            {
                "returns": "object",
                "refuses": ["self"],
                "outputs": [
                    {"gradient": "none", "alias": "self", "aliased": "always", "shares_version": False}
                ],
            },
            "the capsule looks at the same memory; writes through it are not noticed",
        ),
        _fact(
            "torch.from_numpy",
            "ndarray",
            {
                "outputs": [
                    {"gradient": "none", "alias": "ndarray", "aliased": "always", "shares_version": False}
                ]
            },
            "shares memory with the array; writes through the array are not noticed",
        ),
        _fact(
            "torch.from_file",
            "filename, shared=None, size=0",
            {"outputs": [{"gradient": "none", "leaf": True, "dtype": "any"}]},
            "maps the file's memory",
        ),
        _fact(
            "nn.Parameter",
            "data=None, requires_grad=True",
            {
                "outputs": [
                    {
                        "gradient": "none",
                        "alias": "data",
                        "aliased": "always",
                        "leaf": True,
                        "shape": "like:data",
                    }
                ]
            },
            "a new leaf on the same storage: the graph behind data is cut",
        ),
        _fact(
            "nn.utils.clip_grad_norm_",
            "parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None",
            {**_GRADIENTS_WRITTEN, "outputs": [{"gradient": "none", "shape": "scalar"}]},
            "scales the gradients in place; the parameters stay as they are",
        ),
        _fact(
            "nn.utils.clip_grads_with_norm_",
            "parameters, max_norm, total_norm, foreach=None",
            {**_GRADIENTS_WRITTEN, "returns": "none"},
        ),
        _fact(
            "nn.utils.clip_grad_value_",
            "parameters, clip_value, foreach=None",
            {**_GRADIENTS_WRITTEN, "returns": "none"},
            "clamps the gradients in place; the parameters stay as they are",
        ),
        _fact(
            "nn.utils.vector_to_parameters",
            "vec, parameters",
            {"returns": "none", "writes": ["parameters"], "quiet": ["parameters"], "no_grad": True},
            "the parameters look at the vector's memory from then on",
        ),
        _fact(
            "utils.checkpoint.checkpoint",
            "function, *args, use_reentrant=None",
            {
                "saves": [["args", [], "always"]],
                "holds_saved": "always",
                "outputs": [{"alias": "args", "aliased": "sometimes", "same": "sometimes", "dtype": "any"}],
            },
            "keeps the arguments instead of what the function keeps, and calls it again during backward",
        ),
        _fact(
            "autograd.grad",
            "outputs, inputs, grad_outputs=None, retain_graph=None, create_graph=False, allow_unused=None",
            {"returns": "sequence", "outputs": [{"gradient": "none", "shape": "like:inputs"}]},
            "new tensors: .grad stays as it is; with create_graph=True they have a graph of their own",
        ),
        _fact(
            "autograd.backward",
            "tensors, grad_tensors=None, retain_graph=None, create_graph=False, inputs=None",
            _NOTHING,
            "adds into .grad of the leaves and frees what the graph kept, unless retain_graph=True",
        ),
        _fact(
            "nn.Buffer",
            "data=None, persistent=True",
            {
                "outputs": [
                    {
                        "gradient": "none",
                        "alias": "data",
                        "aliased": "always",
                        "leaf": True,
                        "shape": "like:data",
                    }
                ]
            },
            "a leaf on the same storage that a module registers without training it",
        ),
    ]


# First pattern that matches tells why a public name has no fact.
REASONS: tuple[tuple[str, str], ...] = (
    (r"torch\.miopen_", "needs a ROCm build of torch"),
    (r"torch\.batch_norm_", "internal step of SyncBatchNorm, CUDA only"),
    (r"torch\.fbgemm_", "works on weights packed for FBGEMM, without gradients"),
    (r"torch\.quantized_", "works on quantized tensors, without gradients"),
    (r"torch\.(indices_copy|values_copy)", "has no CPU kernel for any layout"),
    (r"(torch|Tensor)\.slice_inverse", "needs the storage of an earlier slice"),
    (r"torch\.autocast", "a context, not an operator"),
    (r"Tensor\.(__array_wrap__|__reduce_ex__|__setstate__|module_load|map2_|index)$", "protocol of pickling, NumPy or tensor subclasses"),
    (r"Tensor\.(resize|resize_as)$", "deprecated and refused by current torch"),
    (r"Tensor\.pin_memory", "needs an accelerator"),
    (r"nn\.functional\.(scaled_mm|grouped_mm)", "needs 8-bit floats on an accelerator"),
    (r"nn\.(Module|Container|Sequential|ModuleDict|ModuleList|ParameterDict|ParameterList)$", "a container: what happens is what its members do"),
    (r"nn\.(RNNBase|RNNCellBase)", "an abstract base class"),
    (r"nn\.(DataParallel|SyncBatchNorm)", "needs several devices or processes"),
)  # fmt: skip


def reason_for(name: str) -> str:
    """Why a public name has no fact."""
    for pattern, reason in REASONS:
        if re.match(pattern, name):
            return reason
    return "no call is known that works on the CPU"
