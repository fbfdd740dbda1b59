"""Parameter lists of torch's callables as Python code has to spell them, with defaults and overloads merged."""

from __future__ import annotations

import ast
import inspect
import os
from dataclasses import dataclass, field
from typing import Any, Callable

import torch

Names = list[str]


@dataclass
class Signature:
    """One merged parameter list.

    `by_tensor` renames a parameter when a tensor is given in its place: `torch.max(x, y)` calls `other` what
    `torch.max(x, 1)` calls `dim`.  `synonyms` are keywords that mean another parameter.
    """

    positional: Names = field(default_factory=list)
    varargs: str = ""
    keyword_only: Names = field(default_factory=list)
    defaults: dict[str, str] = field(default_factory=dict)
    by_tensor: dict[str, str] = field(default_factory=dict)
    synonyms: dict[str, str] = field(default_factory=dict)

    def parameters(self) -> Names:
        """All names: positional, then the collecting one as `*name`, then keyword-only."""
        collecting = ["*" + self.varargs] if self.varargs else []
        return [*self.positional, *collecting, *self.keyword_only]

    def bind(self, positional: tuple[Any, ...], keywords: dict[str, Any]) -> dict[str, Any]:
        """Argument values by parameter name; raises TypeError when there are too many."""
        bound: dict[str, Any] = {}
        for place, value in enumerate(positional):
            if place < len(self.positional):
                name = self.positional[place]
                if name in self.by_tensor and isinstance(value, torch.Tensor):
                    name = self.by_tensor[name]
                bound[name] = value
            elif self.varargs:
                rest = positional[place:]
                packed = len(rest) == 1 and isinstance(rest[0], (list, tuple, torch.Size))
                bound[self.varargs] = list(rest[0]) if packed else list(rest)
                break
            else:
                raise TypeError("more arguments than parameters")
        for name, value in keywords.items():
            bound[self.synonyms.get(name, name)] = value
        return bound


# Signatures that neither `inspect` nor the stubs tell usefully.
WRITTEN_OUT: dict[str, str] = {
    "torch.einsum": "equation, *operands",
    "torch.Tensor.to": "self, *target, dtype=None, device=None, non_blocking=False, copy=False, memory_format=None",
    "torch.Tensor.view": "self, *size",
    "torch.Tensor.type": "self, dtype=None, non_blocking=False",
    "torch.Tensor.__getitem__": "self, index",
    "torch.Tensor.__setitem__": "self, index, value",
    "torch.Tensor.random_": "self, from_=0, to=None, *, generator=None",
    "torch.Tensor.std": "self, dim=None, unbiased=True, keepdim=False, *, correction=1",
    "torch.Tensor.var": "self, dim=None, unbiased=True, keepdim=False, *, correction=1",
    "torch.std": "input, dim=None, unbiased=True, keepdim=False, *, correction=1, out=None",
    "torch.var": "input, dim=None, unbiased=True, keepdim=False, *, correction=1, out=None",
    "torch.std_mean": "input, dim=None, unbiased=True, keepdim=False, *, correction=1",
    "torch.var_mean": "input, dim=None, unbiased=True, keepdim=False, *, correction=1",
    **{
        f"torch.{word}": "input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first"
        for word in ("lstm", "gru", "rnn_tanh", "rnn_relu")
    },
    "torch.unique": "input, sorted=True, return_inverse=False, return_counts=False, dim=None",
    "torch.lu": "A, pivot=True, get_infos=False, out=None",
    "torch.chain_matmul": "*matrices, out=None",
    "torch.tensor": "data, *, dtype=None, device=None, requires_grad=False, pin_memory=False",
    "torch.as_tensor": "data, dtype=None, device=None",
    "torch.from_numpy": "ndarray",
    "torch.broadcast_tensors": "*tensors",
    "torch.block_diag": "*tensors",
    "torch.cartesian_prod": "*tensors",
    "torch.atleast_1d": "*tensors",
    "torch.atleast_2d": "*tensors",
    "torch.atleast_3d": "*tensors",
    "torch.meshgrid": "*tensors, indexing=None",
    "torch.broadcast_shapes": "*shapes",
    "torch.repeat_interleave": "input, repeats=None, dim=None, *, output_size=None",
    "torch.where": "condition, input=None, other=None, *, out=None",
    "torch.normal": "mean, std=1.0, size=None, *, generator=None, out=None",
    "torch.linalg.lu": "A, *, pivot=True, out=None",
    "torch.linalg.multi_dot": "tensors, *, out=None",
    "torch.hspmm": "mat1, mat2, *, out=None",
    "torch.Tensor.numpy": "self, *, force=False",
    "torch.Tensor.tolist": "self",
    "torch.Tensor.item": "self",
    "torch.Tensor.size": "self, dim=None",
    "torch.Tensor.is_floating_point": "self",
    "torch.Tensor.requires_grad_": "self, requires_grad=True",
    "torch.Tensor.data_ptr": "self",
    "torch.numel": "input",
    "torch.Tensor.__ipow__": "self, other",
    "torch.Tensor.__pos__": "self",
    "torch.Tensor.__itruediv__": "self, other",
    "torch.Tensor.cdouble": "self, memory_format=None",
    "torch.Tensor.cfloat": "self, memory_format=None",
    "torch.nn.functional.logsigmoid": "input",
    "torch.nn.functional.gelu": "input, approximate='none'",
    "torch.arange": "start, end=None, step=1, *, out=None, dtype=None, layout=None, device=None, requires_grad=False",
    "torch.randint": "low, high=None, size=None, *, generator=None, out=None, dtype=None, device=None, requires_grad=False",
}


class Signatures:
    """Finds the signature of a torch callable: written out above, then `inspect`, then stubs, then aten schemas."""

    def __init__(self) -> None:
        root = os.path.dirname(torch.__file__)
        self._functions = _stub_functions(os.path.join(root, "_C", "_VariableFunctions.pyi"))
        self._methods = _stub_functions(os.path.join(root, "_C", "__init__.pyi"), "TensorBase")
        self._nn = _stub_functions(os.path.join(root, "_C", "_nn.pyi"))
        self._functional = _stub_functions(os.path.join(root, "nn", "functional.pyi"))

    def find(self, path: str, target: Callable[..., Any]) -> Signature | None:
        """The signature of `path` (`torch.Tensor.mul`), or None when torch tells none."""
        written = WRITTEN_OUT.get(path)
        if written is not None:
            return signature_from_text(written)
        is_method = path.startswith("torch.Tensor.")
        name = path.rsplit(".", 1)[1]
        from_python = signature_of_python(target)
        if from_python is not None and from_python.positional:
            return from_python
        if path == "torch." + name and name in self._functions:
            return _merge([_from_stub(node, "") for node in self._functions[name]])
        if is_method and name in self._methods:
            return _merge([_from_stub(node, "self") for node in self._methods[name]])
        if path.startswith("torch.nn.functional."):
            for stubs in (self._functional, self._nn, self._functions):
                if name in stubs:
                    return _merge([_from_stub(node, "") for node in stubs[name]])
        return _from_schema(path, is_method) or from_python


def _stub_functions(path: str, class_name: str = "") -> dict[str, list[ast.FunctionDef]]:
    found: dict[str, list[ast.FunctionDef]] = {}
    try:
        with open(path, encoding="utf-8") as file:
            body = ast.parse(file.read()).body
    except (OSError, SyntaxError):
        return found
    if class_name:
        classes = [node for node in body if isinstance(node, ast.ClassDef) and node.name == class_name]
        body = classes[0].body if classes else []
    for node in body:
        if isinstance(node, ast.FunctionDef):
            found.setdefault(node.name, []).append(node)
    return found


def signature_from_text(text: str) -> Signature:
    """The signature that a parameter list in Python syntax declares."""
    node = ast.parse(f"def f({text}): ...").body[0]
    assert isinstance(node, ast.FunctionDef)
    return _from_stub(node, "self" if text.startswith("self") else "")


def _from_stub(node: ast.FunctionDef, receiver: str) -> Signature:
    arguments = node.args
    positional = [each.arg for each in (*arguments.posonlyargs, *arguments.args)]
    if not receiver and "self" in positional:
        # A number in place of the tensor, or a deprecated order of arguments.
        positional = ["input" if name == "self" else name for name in positional]
    signature = Signature(
        positional,
        arguments.vararg.arg if arguments.vararg else "",
        [each.arg for each in arguments.kwonlyargs],
    )
    for name, default in zip(positional[len(positional) - len(arguments.defaults) :], arguments.defaults):
        signature.defaults[name] = _as_written(ast.unparse(default))
    for each, keyword_default in zip(arguments.kwonlyargs, arguments.kw_defaults):
        if keyword_default is not None:
            signature.defaults[each.arg] = _as_written(ast.unparse(keyword_default))
    return signature


def _as_written(default: str) -> str:
    return "None" if default == "..." else default


def signature_of_python(target: Callable[..., Any]) -> Signature | None:
    """The signature of a function written in Python, or None."""
    try:
        parameters = inspect.signature(target).parameters.values()
    except (TypeError, ValueError):
        return None
    signature = Signature()
    for each in parameters:
        if each.kind is inspect.Parameter.VAR_POSITIONAL:
            signature.varargs = each.name
        elif each.kind is inspect.Parameter.KEYWORD_ONLY:
            signature.keyword_only.append(each.name)
        elif each.kind is not inspect.Parameter.VAR_KEYWORD:
            signature.positional.append(each.name)
        if each.default is not inspect.Parameter.empty and isinstance(
            each.default, (bool, int, float, str, type(None), tuple)
        ):
            signature.defaults[each.name] = repr(each.default)
    return signature


def _from_schema(path: str, is_method: bool) -> Signature | None:
    name = path.rsplit(".", 1)[1]
    room = path.split(".")[1]
    prefix = {"linalg": "linalg_", "special": "special_", "fft": "fft_"}.get(room, "")
    if name.startswith(prefix):
        prefix = ""
    merged = []
    for schema in torch._C._jit_get_schemas_for_operator("aten::" + prefix + name):
        if schema.overload_name.endswith("out"):
            continue
        signature = Signature()
        for argument in schema.arguments:
            spelled = "input" if argument.name == "self" and not is_method else argument.name
            (signature.keyword_only if argument.kwarg_only else signature.positional).append(spelled)
            if argument.has_default_value():
                signature.defaults[spelled] = repr(argument.default_value)
        merged.append(signature)
    if not merged:
        return None
    found = _merge(merged)
    if prefix and "out" not in found.keyword_only:
        found.keyword_only.append("out")
        found.defaults["out"] = "None"
    return found


def _merge(overloads: list[Signature]) -> Signature:
    """One list for all overloads: the longest positional one leads; what only others have becomes keyword-only."""
    kept = [each for each in overloads if not _is_deprecated_order(each)] or overloads
    leading = max(kept, key=lambda each: (len(each.positional), bool(each.varargs)))
    merged = Signature(
        list(leading.positional), leading.varargs, list(leading.keyword_only), dict(leading.defaults)
    )
    for other in kept:
        if other.varargs and not merged.varargs and len(other.positional) == len(merged.positional) - 1:
            # `view(size)` beside `view(*size)`.
            merged.positional.pop()
            merged.varargs = other.varargs
        for place, name in enumerate(other.positional):
            known = merged.positional[place] if place < len(merged.positional) else merged.varargs
            if name == known or name in merged.positional:
                continue
            if {name, known} == {"other", "dim"}:
                merged.by_tensor = {"dim": "other"}
                if known == "other":
                    merged.positional[place] = "dim"
            elif known and not known.startswith("*"):
                merged.synonyms[name] = known
        for name in other.keyword_only:
            if name not in merged.keyword_only and name not in merged.positional:
                merged.keyword_only.append(name)
        for name, default in other.defaults.items():
            merged.defaults.setdefault(name, default)
    required = [set(each.positional) - set(each.defaults) for each in kept]
    for name in merged.positional[1:]:
        # An argument that one overload does without may be left away.
        if name not in merged.defaults and any(name not in each for each in required):
            merged.defaults[name] = "None"
    if merged.varargs:
        merged.synonyms.pop(merged.varargs, None)
    return merged


def _is_deprecated_order(overload: Signature) -> bool:
    names = overload.positional
    if "beta" in names or (names[:1] and "alpha" in names[:3]):
        return True
    return len(names) > 2 and names[1] == "value" and names[2].startswith("tensor")
