"""How the several results of one operator are put together: how many there are, how they nest, what they are called."""

from __future__ import annotations

from typing import Any

from gradsight.model.tensors import Tensor
from gradsight.model.values import Seq, Value

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
    if op in ("split", "split_with_sizes", "tensor_split"):
        sizes = bound.get("split_size_or_sections", bound.get("split_size", bound.get("split_sizes")))
        if isinstance(sizes, Seq) and sizes.exact:
            return len(sizes.items)
        if isinstance(sizes, int) and sizes > 0 and size is not None:
            return min(64, int(-(-size // sizes)))
        return None
    if op == "unbind":
        return int(size) if size is not None and size <= 64 else None
    return None


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
