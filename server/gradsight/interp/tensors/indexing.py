"""Operators on tensors and indexing: views for basic indices, copies for advanced ones, writes through both."""

from __future__ import annotations

from typing import Any

from gradsight.interp.python.expressions import BINARY
from gradsight.interp.syntax import Augmentation
from gradsight.interp.tensors.changes import change_by_filling
from gradsight.interp.tensors.fact_selection import DUNDER, is_basic_index, parts_of
from gradsight.interp.tensors.layouts import is_leading, still_overlaps
from gradsight.interp.tensors.memory_order import of_index
from gradsight.interp.tensors.regions import region_of
from gradsight.interp.tensors.shapes import numel
from gradsight.interp.tensors.sizes import index_shape
from gradsight.interp.tensors.tensor_attributes import TensorAttributes
from gradsight.model.passed_cuts import cuts_of
from gradsight.model.sites import Site, Syntax
from gradsight.model.tensors import (
    IGNORANT,
    INTEGRAL,
    Indexed,
    Node,
    PartOf,
    RequiresGrad,
    Saved,
    Tensor,
    any_requires_grad,
)
from gradsight.model.trace import Augmented, Combined, Read, RowsWritten, Viewed
from gradsight.model.values import (
    MISSING,
    Array,
    Function,
    Instance,
    Mapping,
    Seq,
    Slice,
    Unknown,
    Value,
    tensors_in,
)
from gradsight.ops.fact import Case, Output, Save


class Indexing(TensorAttributes):
    """Operators, augmented assignment and items."""

    def tensor_operator(self, name: str, tensor: Tensor, other: Value, node: Syntax) -> Value:
        """A binary, reflected, unary or comparison operator."""
        args: list[Value] = [tensor] if other is MISSING else [tensor, other]
        if isinstance(other, Array):
            return self.facts.apply_operator(
                f"Tensor.{name}", [tensor, self.tensor_from_array(other, node)], {}, node
            )
        if isinstance(other, Instance):
            return self.language.instance_operator(name.strip("_"), tensor, other, node)
        full = f"Tensor.{name}"
        if self.path.table.find(full) is None:
            full = f"Tensor.{DUNDER.get(name.strip('_'), name)}"
        result = self.facts.apply_operator(full, args, {}, node)
        if other is not MISSING:
            self.path.tell(Combined(name, tensor, other, result, node))
        return result

    def augment(self, node: Augmentation, current: Value, operand: Value) -> Value:
        """`current op= operand`."""
        result = self.augmented(node, current, operand)
        self.path.tell(Augmented(node, current, operand, result))
        return result

    def augmented(self, node: Augmentation, current: Value, operand: Value) -> Value:
        name, _ = BINARY[type(node.op)]
        if isinstance(current, Tensor) and name == "matmul":
            # Tensors have no `__imatmul__`: the product is a new tensor, bound to the name.
            return self.language.binary_values(type(node.op), current, operand, node)
        if isinstance(current, Tensor):
            if isinstance(operand, Array):
                operand = self.tensor_from_array(operand, node)
            return self.facts.apply_operator(f"Tensor.__i{name}__", [current, operand], {}, node)
        if isinstance(current, Seq) and name == "add":
            self.objects.sequence_method(current, "extend", [operand], {}, node)
            return current
        if isinstance(current, Mapping) and isinstance(operand, Mapping) and name == "or":
            self.objects.mapping_method(current, "update", [operand], {}, node)
            return current
        if isinstance(current, Array):
            self.write_array(current, node, f"{name}=", [operand])
            current.cuts = current.cuts | cuts_of(operand)
            return current
        if isinstance(current, Unknown) and current.tensor is not None:
            return self.augment(node, current.tensor, operand)
        if isinstance(current, Instance):
            method, _ = current.cls.find(f"__i{name}__")
            if isinstance(method, Function):
                return self.language.call_function(method, [current, operand], {}, node)
        return self.language.binary_values(type(node.op), current, operand, node)

    def augment_item(self, node: Augmentation, owner: Tensor, index: Value, operand: Value) -> None:
        """`tensor[index] op= operand`: read, combine, write back."""
        view = self.tensor_item(owner, index, node)
        if not isinstance(view, Tensor):
            return
        shared = view.storage is owner.storage
        before = len(owner.storage.writes)
        result = self.augment(node, view, operand)
        if not shared or result is not view:
            self.write_item(owner, index, result, node)
        elif len(owner.storage.writes) > before:
            # Python puts the view back where it was read from, and torch counts that as a second write.
            owner.counter.version += 1

    def unknown_arithmetic(self, name: str, left: Value, right: Value, node: Syntax) -> Value:
        """Arithmetic with an unknown that is taken for a tensor."""
        for value, other, form in ((left, right, f"__{name}__"), (right, left, f"__r{name}__")):
            if isinstance(value, Unknown):
                tensor = self.entry.assumed_tensor(value)
                if tensor is not None:
                    return self.tensor_operator(form, tensor, other, node)
        return None

    def unknown_sign(self, name: str, value: Unknown, node: Syntax) -> Value:
        """`-x` and `~x` of an unknown that is taken for a tensor."""
        tensor = self.entry.assumed_tensor(value)
        return self.tensor_operator(f"__{name}__", tensor, MISSING, node) if tensor is not None else None

    def tensor_item(self, tensor: Tensor, index: Value, node: Syntax) -> Value:
        """`tensor[index]`: a view for a basic index, a copy for an advanced one."""
        basic = is_basic_index(index)
        shape = index_shape(tensor.shape, index)
        if tensor.snapshot == "grad":
            self.path.tell(Read(tensor, node))
        if basic is None:
            inner = [value for value in parts_of(index) if isinstance(value, Unknown)]
            if any(value.tensor is None for value in inner) and inner:
                return self.unsure_item(tensor, node)
            basic = False
        if basic:
            result = self.apply_view("index", tensor, node)
            result.shape = shape
            result.dense = tensor.dense and is_leading(parts_of(index), tensor.shape)
            result.batch_merges = result.dense or tensor.batch_merges
            result.layout = of_index(parts_of(index), tensor)
            if result.overlapping and not still_overlaps(tensor, shape):
                result.overlapping = ""
            result.region = region_of(index, tensor.shape) if tensor.region is None else None
            result.snapshot = "slice" if isinstance(result.region, Indexed) else ""
            return result
        operands: dict[str, Value] = {"self": tensor}
        for position, value in enumerate(parts_of(index)):
            if isinstance(value, (Tensor, Unknown)):
                operands[f"index{position}"] = value
        copied = self.record_copy("index", tensor, operands, node)
        if isinstance(copied, Tensor):
            copied.shape = shape
        return copied

    def unsure_item(self, tensor: Tensor, node: Syntax) -> Value:
        """An index that may be basic or advanced: view or copy is not known."""
        site = self.path.site(node)
        result = Tensor(
            site, requires_grad=tensor.needs_grad() if self.path.grad_mode else False, dtype=tensor.dtype
        )
        edge = tensor.edge()
        if result.requires_grad is not False and edge is not None:
            result.node = Node("index", site, [edge], result.requires_grad, self.path.tick)
            result.node.holds = "sometimes"
        result.cuts = tensor.cuts
        result.source = tensor
        # Whether a write to it reaches the tensor is not known, so nothing is said of one.
        result.counter.kept = result.counter.version
        return result

    def apply_view(self, op: str, tensor: Tensor, node: Syntax) -> Tensor:
        site = self.path.site(node)
        self.path.tick += 1
        if tensor.one_of_many and tensor.counter.version != tensor.born_version:
            self.outdated_view_used(tensor, node)
        if tensor.node is not None and tensor.storage.writes:
            self.path.tell(Viewed(tensor, node))
        result = self.make_view(tensor, Output(alias="self", aliased="always"), op, site)
        result.dtype = tensor.dtype
        flag = tensor.needs_grad()
        result.cuts = tensor.cuts
        if self.path.grad_mode and not self.path.inference and flag is not False:
            result.requires_grad = flag
            edge = tensor.edge()
            result.node = Node(op, site, [edge] if edge is not None else [], flag, self.path.tick)
        elif flag is not False:
            result.cuts = result.cuts | self.mode_cut(op, [("self", tensor)], site)
            result.base = tensor.root()
            result.seen_rebases = result.base.rebases
        return result

    def record_copy(self, op: str, tensor: Tensor, operands: dict[str, Value], node: Syntax) -> Value:
        saves = [Save(name) for name in operands if name != "self"]
        made = Case(saves=tuple(saves), outputs=(Output(needs=("self",)),), holds_saved="always")
        return self.record(op, made, operands, node)

    def write_item(self, tensor: Tensor, index: Value, value: Value, node: Syntax) -> None:
        """`tensor[index] = value`."""
        site = self.path.site(node)
        if (isinstance(index, Tensor) and index.dtype == "int") or (
            type(index) is Seq and index.kind == "list"
        ):
            self.path.tell(RowsWritten(tensor, index, value, node))
        self.path.tick += 1
        if numel(index_shape(tensor.shape, index)) == 0:
            return
        others = tensors_in(value)
        if isinstance(value, Unknown):
            inner = self.entry.assumed_tensor(value)
            others = [inner] if inner is not None else []
        for other in others:
            if other.snapshot:
                self.path.tell(Read(other, node))
        cuts = cuts_of(value)
        flags = [
            tensor.needs_grad(),
            *(other.needs_grad() for other in others if other.dtype not in INTEGRAL),
        ]
        if isinstance(value, Unknown) and not others and not value.hint:
            flags.append(IGNORANT)
        wants = any_requires_grad(flags) if tensor.dtype not in INTEGRAL else False
        recording = wants if self.path.grad_mode and not self.path.inference else False
        region = region_of(index, tensor.shape) if tensor.region is None else None
        self.check_item_writable(tensor, index, site, recording)
        overlaps = bool(tensor.overlapping) and still_overlaps(tensor, index_shape(tensor.shape, index))
        change = "" if isinstance(value, Unknown) else change_by_filling(value)
        grad_node = self.write_tensor(
            tensor,
            "index_put_",
            site,
            others,
            recording,
            cuts,
            region=region,
            overlaps=overlaps,
            change=change,
        )
        if grad_node is not None:
            grad_node.holds = self.holds_of_item(tensor, index)
            for part in parts_of(index):
                if isinstance(part, Tensor):
                    grad_node.saved.append(Saved(part, "index", self.saves_are_certain))
                    grad_node.holds = "always"
        if not self.path.grad_mode and any(flag is not False for flag in flags[1:]):
            self.cut_by_write(tensor, "index_put_", site, others)

    def holds_of_item(self, tensor: Tensor, index: Value) -> str:
        """Whether a second backward through an assigned item is refused.

        `x[...] = y` and `x[:] = y` copy into x itself, which keeps nothing, unless x is a view already.
        """
        basic = is_basic_index(index)
        if basic is None:
            return "sometimes"
        parts = parts_of(index)
        slices = [part for part in parts if isinstance(part, Slice)]
        if tensor.base is not None or len(slices) + parts.count(Ellipsis) < len(parts):
            return "always"
        whole = all(part.start is part.stop is part.step is None for part in slices)
        shape = index_shape(tensor.shape, index)
        if whole or (shape is not None and shape == tensor.shape and None not in shape):
            return "never"
        known = shape is not None and tensor.shape is not None and None not in (*shape, *tensor.shape)
        return "always" if known else "sometimes"

    def check_item_writable(self, tensor: Tensor, index: Value, site: Site, recording: RequiresGrad) -> None:
        """Writing an item of a leaf writes a view of it: the same refusal, spoken of as a view."""

    def unbind_rows(self, tensor: Tensor, count: int) -> list[Value]:
        rows: list[Any] = []
        for index in range(count):
            row = self.apply_view("unbind", tensor, self.path.node)
            row.one_of_many = "unbind (iterating a tensor)"
            row.shape = tensor.shape[1:] if tensor.shape else None
            row.dense = tensor.dense
            row.batch_merges = row.dense or tensor.batch_merges
            row.layout = of_index([index], tensor)
            row.region = PartOf(index)
            rows.append(row)
        return rows
