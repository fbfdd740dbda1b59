"""How the several results of one operator are put together: how many there are, how they nest, what they are called."""

from __future__ import annotations

from typing import Any

from gradsight.interp.tensors.layouts import equal_parts
from gradsight.model.tensors import PartOf, Tensor
from gradsight.model.values import Seq, Value
from gradsight.ops.fact import Case, Output

PASSED_ON = "base seen_rebases one_of_many overlapping cuts source dense born_version follows view_made_without_grad".split()
PACKED = ("data", "batch_sizes", "sorted_indices", "unsorted_indices")
FIELDS = {
    "pack_padded_sequence": PACKED, "pack_sequence": PACKED,
    "svd": ("U", "S", "Vh"), "eigh": ("eigenvalues", "eigenvectors"), "eig": ("eigenvalues", "eigenvectors"),
    "slogdet": ("sign", "logabsdet"), "qr": ("Q", "R"), "lstsq": ("solution", "residuals", "rank", "singular_values"),
}  # fmt: skip
"""Names of the parts of a result; a pair is `values` and `indices` unless told otherwise."""


def count_of_parts(op: str, bound: dict[str, Value]) -> int | None:
    """How many tensors chunk, split and unbind give, where it can be told."""
    values = list(bound.values())
    tensor = values[0] if values else None
    shape = tensor.shape if isinstance(tensor, Tensor) else None
    dim = bound.get("dim", bound.get("axis", 0))
    size = None
    if shape is not None and isinstance(dim, int) and -len(shape) <= dim < len(shape):
        size = shape[dim] if isinstance(shape[dim], int) else None
    if op == "chunk":
        chunks = bound.get("chunks")
        return int(chunks) if isinstance(chunks, int) and chunks <= 64 else None
    if op == "tensor_split":
        wanted = values[1] if len(values) > 1 else None
        if isinstance(wanted, Seq):
            return len(wanted.items) + 1 if wanted.exact else None
        return wanted if isinstance(wanted, int) and 0 < wanted <= 64 else None
    if op in ("split", "split_with_sizes"):
        sizes = bound.get("split_size_or_sections", bound.get("split_size", bound.get("split_sizes")))
        if isinstance(sizes, Seq) and sizes.exact:
            return len(sizes.items)
        if isinstance(sizes, int) and sizes > 0 and size is not None:
            return min(64, int(-(-size // sizes)))
        return None
    if op == "unbind":
        return int(size) if size is not None and size <= 64 else None
    return None


def with_each_source(case: Case, output: Output, bound: dict[str, Value]) -> list[dict[str, Value]]:
    """The arguments once for each tensor of a list that a view is made of: `broadcast_tensors(a, b)` gives one of each."""
    name = output.alias
    source = bound.get(name) if name and case.returns == "sequence" else None
    if not isinstance(source, Seq) or not source.exact or not source.items:
        return [bound]
    return [{**bound, name: item} for item in source.items]


def parts_like(op: str, first: Value, bound: dict[str, Value]) -> Value:
    """A tuple of results of unknown length, all like the first."""
    count = count_of_parts(op, bound)
    if not isinstance(first, Tensor):
        return Seq("tuple", [first], False)
    parts = [first]
    for index in range(1, count if count is not None else 3):
        part = Tensor(
            first.site,
            first.storage,
            first.counter,
            first.node,
            first.requires_grad,
            first.dtype,
            first.shape,
        )
        for name in PASSED_ON:
            setattr(part, name, getattr(first, name))
        part.region = PartOf(index)
        if count is None or (index == count - 1 and not equal_parts(op, bound)):
            part.shape = None
        parts.append(part)
    first.region = PartOf(0)
    return Seq("tuple", list(parts), count is not None)


def nested(structure: str, results: list[Value]) -> Seq:
    """The nested tuple that a case describes by indices into its outputs."""
    stack: list[list[Any]] = [[]]
    for token in structure.replace("(", " ( ").replace(")", " ) ").replace(",", " ").split():
        if token == "(":
            stack.append([])
        elif token == ")":
            inner = stack.pop()
            stack[-1].append(Seq("tuple", inner))
        elif token.isdigit() and int(token) < len(results):
            stack[-1].append(results[int(token)])
    return Seq("tuple", stack[0])
