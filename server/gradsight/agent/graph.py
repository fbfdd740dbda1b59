"""Reading the autograd graph: its nodes, what each of them saved, and whether two views share an element."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import torch

Node = Any
_LARGEST_CHECKED = 1 << 28


class Geometry(NamedTuple):
    """Which elements of a storage a strided tensor covers."""

    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    item_size: int


def storage_key(tensor: torch.Tensor) -> int:
    """The identity of a tensor's storage; 0 for tensors that have none (sparse, lazy, wrapped by a function transform)."""
    try:
        return int(tensor.untyped_storage()._cdata)
    except (RuntimeError, ValueError):
        return 0


def is_own_leaf(tensor: torch.Tensor) -> bool:
    """Whether a tensor is a leaf that requires grad.  Of some views torch refuses to tell, and none of them is one."""
    return tensor.requires_grad and not tensor._is_view() and tensor.is_leaf


def geometry_of(tensor: torch.Tensor) -> Geometry:
    """The elements this tensor covers."""
    return Geometry(
        int(tensor.storage_offset()), tuple(tensor.shape), tuple(tensor.stride()), tensor.element_size()
    )


def overlaps(left: Geometry, right: Geometry) -> bool:
    """Whether two views of one storage share an element.

    Bounding boxes decide most pairs.  Interleaved views (the chunks of `unsafe_split` in an RNN cell) have overlapping
    boxes and no common element, so equal item sizes are settled by an exact mask while that is affordable.
    """
    if left == right:
        return 0 not in left.shape
    if 0 in left.shape or 0 in right.shape:
        return False
    left_start, left_end = _box(left)
    right_start, right_end = _box(right)
    if left.item_size != right.item_size:
        return left_start * left.item_size < right_end * right.item_size and right_start * right.item_size < (
            left_end * left.item_size
        )
    if left_start >= right_end or right_start >= left_end:
        return False
    size = max(left_end, right_end)
    if size > 1 << 26:
        return True
    with untracked():
        mask = torch.zeros(size, dtype=torch.bool)
        mask.as_strided(left.shape, left.strides, left.offset).fill_(True)
        return bool(mask.as_strided(right.shape, right.strides, right.offset).any())


def covered(area: Geometry, view: Geometry) -> torch.Tensor | None:
    """Which elements of a view lie in an area of its storage; None where that is not to be had."""
    size = max(_box(area)[1], _box(view)[1])
    if area.item_size != view.item_size or 0 in area.shape or size > 1 << 26:
        return None
    mask = torch.zeros(size, dtype=torch.bool)
    mask.as_strided(area.shape, area.strides, area.offset).fill_(True)
    return mask.as_strided(view.shape, view.strides, view.offset)


def _box(view: Geometry) -> tuple[int, int]:
    reach = sum((extent - 1) * stride for extent, stride in zip(view.shape, view.strides))
    return view.offset, view.offset + 1 + reach


def is_zero(value: Any) -> bool:
    """Whether every element is zero; what is no tensor has none."""
    if not isinstance(value, torch.Tensor):
        return True
    try:
        with untracked():
            return not bool(value.count_nonzero())
    except Exception:
        # A tensor without data, as fake ones are: nothing speaks for a zero.
        return False


def checksum_of(tensor: torch.Tensor) -> int:
    """CRC-32 of the elements in order; 0 for tensors that have none, or too many."""
    if (
        not tensor.numel()
        or tensor.layout is not torch.strided
        or tensor.numel() * tensor.element_size() > _LARGEST_CHECKED
    ):
        return 0
    if tensor.device.type != "cpu" or type(tensor).__name__ == "FakeTensor":
        return 0
    flat = tensor.detach().reshape(-1)
    if flat.is_conj() or flat.is_neg():
        flat = flat.resolve_conj().resolve_neg()
    try:
        data = flat.contiguous().view(torch.uint8).numpy()
    except (RuntimeError, TypeError):
        return 0
    return zlib.crc32(data)


class Witness:
    """A tensor with its checksum: it can say later whether its values changed.  A collective writes after it returns."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self._tensor = tensor
        self._checksum = checksum_of(tensor)

    @property
    def changed(self) -> bool:
        return checksum_of(self._tensor) != self._checksum


class Imprint(NamedTuple):
    """What some elements of a storage were when NumPy got hold of them; it keeps no memory alive."""

    geometry: Geometry
    checksum: int

    def covers(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor lies over just these elements."""
        return self.checksum != 0 and geometry_of(tensor) == self.geometry

    def differs_from(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor over these elements has other values now."""
        return checksum_of(tensor) != self.checksum


class _NoDispatchMode:
    """The guard of torch 2.0 works from its making to its end, and is no context manager."""

    def __enter__(self) -> None:
        self._guard = torch._C._DisableTorchDispatch()

    def __exit__(self, *error: object) -> None:
        del self._guard


no_dispatch_mode: Any = (
    torch._C._DisableTorchDispatch
    if hasattr(torch._C._DisableTorchDispatch, "__enter__")
    else _NoDispatchMode
)
"""No dispatch mode listens inside this block."""


class untracked:  # noqa: N801 - reads as a statement: `with untracked():`
    """No mode of ours, no FakeTensorMode and no grad mode around the agent's own torch calls."""

    def __enter__(self) -> None:
        self._function = torch._C.DisableTorchFunction()
        self._function.__enter__()
        self._dispatch = no_dispatch_mode()
        self._dispatch.__enter__()
        self._grad = torch.is_grad_enabled()
        torch._C._set_grad_enabled(False)

    def __exit__(self, *unused: object) -> None:
        torch._C._set_grad_enabled(self._grad)
        self._dispatch.__exit__(None, None, None)
        self._function.__exit__(None, None, None)


def root_nodes(roots: Iterable[Any]) -> list[Node]:
    """The graph nodes a backward starts from; a root may be a tensor or a GradientEdge."""
    nodes = []
    for root in roots:
        if isinstance(root, torch.Tensor):
            if root.grad_fn is not None:
                nodes.append(root.grad_fn)
        elif getattr(root, "node", None) is not None:
            nodes.append(root.node)
    return nodes


def walk(roots: Iterable[Any]) -> list[Node]:
    """Every node reachable from the roots, each once, roots first."""
    return walk_nodes(root_nodes(roots))


def walk_nodes(starts: Iterable[Node], closed: frozenset[str] = frozenset()) -> list[Node]:
    """Every node reachable from the starts without going through a node whose kind is closed."""
    seen: set[Node] = set()
    order: list[Node] = []
    todo = list(starts)
    while todo:
        node = todo.pop()
        if node in seen:
            continue
        seen.add(node)
        order.append(node)
        if closed and base_name(node.name()) in closed:
            continue
        for successor, _ in node.next_functions:
            if successor is not None and successor not in seen:
                todo.append(successor)
    return order


def leading_to(inputs: Iterable[Any], nodes: list[Node]) -> list[Node]:
    """Those of the nodes that a backward runs when it is asked for the gradients of these inputs alone.

    torch goes only where a wanted gradient lies further on: `autograd.grad(a.exp() + b, [b])` never looks at what exp saved.
    """
    wanted = set()
    leaves = set()
    for each in inputs:
        if isinstance(each, torch.Tensor) and each.grad_fn is None:
            leaves.add(id(each))
        else:
            wanted.add(each.grad_fn if isinstance(each, torch.Tensor) else getattr(each, "node", None))
    above: dict[Node, list[Node]] = {}
    for node in nodes:
        for successor, _ in node.next_functions:
            if successor is not None:
                above.setdefault(successor, []).append(node)
    todo = [node for node in nodes if node in wanted or id(leaf_of(node)) in leaves]
    needed: set[Node] = set()
    while todo:
        for node in above.get(todo.pop(), ()):
            if node not in needed:
                needed.add(node)
                todo.append(node)
    return [node for node in nodes if node in needed]


def leaf_of(node: Node) -> torch.Tensor | None:
    """The leaf tensor whose gradient this node accumulates."""
    return getattr(node, "variable", None)


def base_name(name: str) -> str:
    """`ExpBackward0` -> `Exp`; `torch::autograd::CopySlices` -> `CopySlices`."""
    name = name.rsplit("::", 1)[-1]
    cut = name.find("Backward")
    return name[:cut] if cut > 0 else name


class NodeSaved(NamedTuple):
    """One tensor that a node keeps for its backward."""

    attribute: str
    raw: Any
    data: torch.Tensor


_ATTRIBUTES: dict[type, tuple[str, ...]] = {}


def _raw_names(kind: type) -> tuple[str, ...]:
    """The attributes under which nodes of this kind show what they saved."""
    names = _ATTRIBUTES.get(kind)
    if names is None:
        names = _ATTRIBUTES[kind] = tuple(name for name in dir(kind) if name.startswith("_raw_saved_"))
    return names


def saved_tensors(node: Node) -> Iterator[NodeSaved]:
    """What a node saved and still holds.

    Tensors behind pack hooks (checkpointing, `save_on_cpu`) are left alone: reading them re-executes user code.
    """
    for name in _raw_names(type(node)):
        try:
            raw = getattr(node, name)
        except RuntimeError:
            continue
        if raw is None:
            continue
        many = isinstance(raw, (list, tuple))
        for index, entry in enumerate(raw if many else (raw,)):
            if getattr(entry, "unpack_hook", None) is not None:
                continue
            try:
                data = entry.data
            except (RuntimeError, AttributeError):
                continue
            if isinstance(data, torch.Tensor) and data.layout is torch.strided:
                label = name[len("_raw_saved_") :]
                yield NodeSaved(f"{label}[{index}]" if many else label, entry, data)


def has_hidden_saves(node: Node) -> bool:
    """Whether pack hooks of the program hide what this node saved."""
    for name in _raw_names(type(node)):
        try:
            raw = getattr(node, name)
        except RuntimeError:
            continue
        for entry in raw if isinstance(raw, (list, tuple)) else (raw,):
            if entry is not None and getattr(entry, "unpack_hook", None) is not None:
                return True
    return False


def version_refusal(node: Node, saved: NodeSaved) -> str | None:
    """Torch's own complaint about a saved tensor that was modified, or None when it would accept it."""
    try:
        if saved.attribute.endswith("]") and saved.attribute.startswith("tensors["):
            _ = node.saved_tensors
        elif saved.attribute.endswith("]"):
            getattr(node, "_saved_" + saved.attribute.split("[")[0])
        else:
            getattr(node, "_saved_" + saved.attribute)
    except RuntimeError as refusal:
        return str(refusal)
    return None


def is_freed(node: Node) -> bool:
    """Whether a backward has freed what this node saved; not asked where hooks of the program stand before it."""
    if has_hidden_saves(node):
        return False
    for name in dir(type(node)):
        if name.startswith("_saved_") or name == "saved_tensors":
            try:
                getattr(node, name)
            except RuntimeError as error:
                if "second time" in str(error) or "already been freed" in str(error):
                    return True
            except (AttributeError, TypeError):
                continue
    return False
