"""The tensor as users meet it: attributes, methods, operators, indexing, and reads that come too late."""

from __future__ import annotations

import ast
from typing import Any

from gradsight.interp.autograd import INTEGRAL
from gradsight.interp.backward import Backward
from gradsight.interp.cases import DUNDER, bind, dtype_name, is_basic_index, parts_of, short_name
from gradsight.interp.expressions import BINARY
from gradsight.interp.regions import overlaps, region_of, surely_overlap
from gradsight.interp.shapes import index_shape, numel
from gradsight.interp.sites import Site
from gradsight.interp.tensors import IGNORANT, NO_CUTS, Cut, Maybe, Node, Tensor, any_requires_grad
from gradsight.interp.values import (
    MISSING,
    AbsentGrad,
    Array,
    Bound,
    External,
    Instance,
    Mapping,
    Number,
    Seq,
    Unknown,
    cuts_of,
    tensors_in,
)
from gradsight.model.events import Step
from gradsight.ops.fact import Case, Output, Save

DTYPE_METHODS = {
    "double": "double", "half": "half", "bfloat16": "half", "float": "float", "long": "int", "int": "int", "short": "int",
    "bool": "bool", "char": "int", "byte": "int", "cfloat": "complex", "cdouble": "complex",
}  # fmt: skip
NUMBER_METHODS = {"item", "tolist", "__float__", "__int__", "__bool__"}
PURE_EXCEPTIONS = {
    "backward", "requires_grad_", "retain_grad", "register_hook", "share_memory_", "pin_memory", "register_post_accumulate_grad_hook",
}  # fmt: skip
KNOWN_ATTRIBUTES = {"grad", "data", "requires_grad", "names"}


class TensorApi(Backward):
    """Everything that is called on a tensor."""

    # -- attributes --------------------------------------------------------------------------------------------------

    def tensor_attribute(self, tensor: Tensor, name: str, node: ast.AST) -> Any:
        if name == "grad":
            return self.read_grad(tensor, node)
        if name == "requires_grad":
            flag = tensor.needs_grad()
            return flag if isinstance(flag, bool) else Unknown("whether it requires grad", "bool")
        if name == "is_leaf":
            return (
                tensor.is_leaf
                if tensor.needs_grad() is not IGNORANT
                else Unknown("whether it is a leaf", "bool")
            )
        if name == "grad_fn":
            return None if tensor.is_leaf else Unknown("a grad_fn")
        if name == "data":
            return self.cut_alias(tensor, "data", node)
        if name in ("T", "mT", "H", "mH", "real", "imag"):
            return self.apply_operator(f"Tensor.{name}", [tensor], {}, node)
        if name == "shape":
            return self.shape_value(tensor)
        if name == "ndim":
            return len(tensor.shape) if tensor.shape is not None else Number()
        if name in (
            "device",
            "layout",
            "itemsize",
            "nbytes",
            "_base",
            "is_cuda",
            "is_sparse",
            "names",
            "_backward_hooks",
        ):
            return Unknown(f"{name} of a tensor", "text" if name in ("device", "layout") else "")
        if name == "dtype":
            return External(
                {
                    "float": "torch.float32",
                    "double": "torch.float64",
                    "int": "torch.int64",
                    "bool": "torch.bool",
                    "half": "torch.float16",
                }.get(tensor.dtype, "torch.dtype")
            )
        if name == "_version":
            return Number()
        if tensor.attributes is not None and name in tensor.attributes:
            return tensor.attributes[name]
        return Bound(tensor, name)

    def shape_value(self, tensor: Tensor) -> Any:
        if tensor.shape is None:
            return Unknown("shape of a tensor")
        return Seq("tuple", [size if size is not None else Number() for size in tensor.shape])

    def read_grad(self, tensor: Tensor, node: ast.AST) -> Any:
        """`.grad` is an object of its own; each read gives a new name for it."""
        site = self.site(node)
        if tensor.thread is not None and not tensor.thread.state.get("joined") and self.thread is None:
            self.emit(
                "grad-read-in-race",
                site,
                [Step("call", tensor.thread.site, "the thread that runs backward is started here")],
                target=tensor.label,
            )
        grad = tensor.grad
        if isinstance(grad, Tensor):
            handle = Tensor(
                site, grad.storage, grad.counter, grad.node, grad.requires_grad, grad.dtype, grad.shape
            )
            handle.snapshot = "grad"
            handle.grad_of = tensor
            handle.source = grad
            return handle
        if isinstance(grad, (Unknown, Mapping)):
            return grad
        flag = tensor.needs_grad()
        if isinstance(flag, Maybe) or self.gradients_unknown or (self.truncated and tensor not in self.gradient_ticks):
            return Unknown("gradient of a tensor that may need none")
        if not tensor.is_leaf and not tensor.retains_grad:
            return AbsentGrad(tensor, site, "non-leaf")
        self.starved_grad_read(tensor, site)
        cause = "cleared" if tensor in self.gradient_ticks else "never"
        if tensor.retains_grad or flag is False:
            cause = "other"
        return AbsentGrad(tensor, site, cause)

    def starved_grad_read(self, tensor: Tensor, site: Site) -> None:
        """Hook: the gradient of a leaf is read and there is none."""

    def set_tensor_attribute(
        self, tensor: Tensor, name: str, value: Any, node: ast.AST, augmented: bool
    ) -> None:
        site = self.site(node)
        if name == "grad":
            if augmented and isinstance(tensor.grad, Tensor):
                return
            if value is None or isinstance(value, AbsentGrad):
                tensor.grad = None
                self.cleared_ticks[tensor] = self.tick
            elif isinstance(value, Tensor):
                tensor.grad = value
                self.gradient_ticks[tensor] = self.tick
                self.live_gradient_ticks[tensor] = self.tick
            else:
                tensor.grad = Unknown("an assigned gradient")
                self.gradient_ticks[tensor] = self.tick
                self.live_gradient_ticks[tensor] = self.tick
        elif name == "requires_grad":
            self.set_requires_grad(tensor, value, site)
        elif name == "data":
            if augmented:
                return
            self.assign_data(tensor, value, site)
        else:
            if tensor.attributes is None:
                tensor.attributes = {}
            tensor.attributes[name] = value
            self.unknown_attribute_set(tensor, name, value, site)

    cleared_ticks: dict[Tensor, int]

    def unknown_attribute_set(self, owner: Any, name: str, value: Any, site: Site) -> None:
        """Hook: an attribute that torch does not know was set."""

    def assign_data(self, tensor: Tensor, value: Any, site: Site) -> None:
        """`tensor.data = value`: other memory, same counter; autograd is not told."""
        self.write_tensor(tensor, "data assignment", site, [], False, NO_CUTS, mode="silent", bumps=False)
        if isinstance(value, Tensor):
            tensor.cuts = tensor.cuts | value.cuts
            if value.needs_grad() is not False:
                tensor.cuts = tensor.cuts | {Cut("data", "data", site, value, self.tick)}

    def set_requires_grad(self, tensor: Tensor, value: Any, site: Site) -> None:
        if value is True:
            if tensor.is_leaf and tensor.requires_grad is not True:
                tensor.requires_grad = True
                tensor.frozen_at = None
                self.leaf_declared(tensor, site)
        elif value is False:
            if tensor.is_leaf:
                if tensor.requires_grad is not False:
                    tensor.frozen_at = site
                tensor.requires_grad = False
        elif tensor.is_leaf:
            tensor.requires_grad = IGNORANT

    def leaf_declared(self, tensor: Tensor, site: Site) -> None:
        """Hook: a tensor became a leaf that requires grad."""

    # -- operators ---------------------------------------------------------------------------------------------------

    def tensor_operator(self, name: str, tensor: Tensor, other: Any, node: ast.AST) -> Any:
        """A binary, reflected, unary or comparison operator."""
        args = [tensor] if other is MISSING else [tensor, other]
        if isinstance(other, Array):
            return self.apply_operator(
                f"Tensor.{name}", [tensor, self.tensor_from_array(other, node)], {}, node
            )
        if isinstance(other, Instance):
            return self.instance_operator(name.strip("_"), tensor, other, node)
        full = f"Tensor.{name}"
        if self.table.find(full) is None:
            full = f"Tensor.{DUNDER.get(name.strip('_'), name)}"
        result = self.apply_operator(full, args, {}, node)
        if other is not MISSING:
            self.term_added(name, tensor, other, result, node)
        return result

    def term_added(self, name: str, left: Tensor, right: Any, result: Any, node: ast.AST) -> None:
        """Hook: two values were combined by an operator."""

    def augment(self, node: ast.AugAssign, current: Any, operand: Any) -> Any:
        """`current op= operand`."""
        name, _ = BINARY[type(node.op)]
        if isinstance(current, Tensor):
            self.before_augmented(node, current, operand)
            if isinstance(operand, Array):
                operand = self.tensor_from_array(operand, node)
            return self.apply_operator(f"Tensor.__i{name}__", [current, operand], {}, node)
        if isinstance(current, Seq) and name == "add":
            self.sequence_method(current, "extend", [operand], {}, node)
            return current
        if isinstance(current, Array):
            self.write_array(current, node, f"{name}=")
            current.cuts = current.cuts | cuts_of(operand)
            return current
        if isinstance(current, Unknown) and current.tensor is not None:
            return self.augment(node, current.tensor, operand)
        result = self.binary_values(type(node.op), current, operand, node)
        self.accumulated(node, current, operand, result)
        return result

    def before_augmented(self, node: ast.AugAssign, current: Tensor, operand: Any) -> None:
        """Hook: an augmented assignment to a tensor."""

    def accumulated(self, node: ast.AugAssign, current: Any, operand: Any, result: Any) -> None:
        """Hook: an augmented assignment that is not in place."""

    def augment_item(self, node: ast.AugAssign, owner: Tensor, index: Any, operand: Any) -> None:
        """`tensor[index] op= operand`: read, combine, write back."""
        view = self.tensor_item(owner, index, node)
        if not isinstance(view, Tensor):
            return
        if view.storage is owner.storage:
            self.augment(node, view, operand)
        else:
            result = self.augment(node, view, operand)
            self.write_item(owner, index, result, node)

    def unknown_arithmetic(self, name: str, left: Any, right: Any, node: ast.AST) -> Any:
        """Arithmetic with an unknown that is taken for a tensor."""
        for value, other, form in ((left, right, f"__{name}__"), (right, left, f"__r{name}__")):
            if isinstance(value, Unknown):
                tensor = self.assumed_tensor(value)
                if tensor is not None:
                    return self.tensor_operator(form, tensor, other, node)
        return None

    # -- indexing ----------------------------------------------------------------------------------------------------

    def tensor_item(self, tensor: Tensor, index: Any, node: ast.AST) -> Any:
        """`tensor[index]`: a view for a basic index, a copy for an advanced one."""
        basic = is_basic_index(index)
        shape = index_shape(tensor.shape, index)
        self.note_read(tensor, node) if tensor.snapshot == "grad" else None
        if basic is None:
            inner = [value for value in parts_of(index) if isinstance(value, Unknown)]
            if any(value.tensor is None for value in inner) and inner:
                return self.unsure_item(tensor, node)
            basic = False
        if basic:
            result = self.apply_view("index", tensor, node)
            result.shape = shape
            result.region = region_of(index, tensor.shape) if tensor.region is None else None
            result.snapshot = "slice" if result.region is not None and result.region[0] == "index" else ""
            return result
        operands: dict[str, Any] = {"self": tensor}
        for position, value in enumerate(parts_of(index)):
            if isinstance(value, (Tensor, Unknown)):
                operands[f"index{position}"] = value
        fact = self.table.find("Tensor.__getitem__")
        case = (
            next((case for case in fact.cases if case.outputs and case.outputs[0].aliased != "always"), None)
            if fact
            else None
        )
        result = self.record_copy("index", tensor, operands, node, case)
        result.shape = shape
        return result

    def unsure_item(self, tensor: Tensor, node: ast.AST) -> Any:
        """An index that may be basic or advanced: view or copy is not known."""
        site = self.site(node)
        result = Tensor(
            site, requires_grad=tensor.needs_grad() if self.grad_mode else False, dtype=tensor.dtype
        )
        edge = tensor.edge()
        if result.requires_grad is not False and edge is not None:
            result.node = Node("index", site, [edge], result.requires_grad, self.tick)
            result.node.holds = "sometimes"
        result.cuts = tensor.cuts
        result.source = tensor
        return result

    def apply_view(self, op: str, tensor: Tensor, node: ast.AST) -> Tensor:
        site = self.site(node)
        self.tick += 1
        result = self.make_view(tensor, Output(alias="self", aliased="always"), op, site)
        result.dtype = tensor.dtype
        flag = tensor.needs_grad()
        result.cuts = tensor.cuts
        if self.grad_mode and not self.inference and flag is not False:
            result.requires_grad = flag
            edge = tensor.edge()
            result.node = Node(op, site, [edge] if edge is not None else [], flag, self.tick)
        elif flag is not False:
            result.cuts = result.cuts | self.mode_cut(op, [("self", tensor)], site)
            result.base = tensor.root()
            result.seen_rebases = result.base.rebases
        return result

    def record_copy(self, op: str, tensor: Tensor, operands: dict[str, Any], node: ast.AST, case: Any) -> Any:
        saves = [Save(name) for name in operands if name != "self"]
        made = Case(saves=tuple(saves), outputs=(Output(needs=("self",)),), holds_saved="always")
        return self.record(op, made, operands, node)

    def write_item(self, tensor: Tensor, index: Any, value: Any, node: ast.AST) -> None:
        """`tensor[index] = value`."""
        site = self.site(node)
        self.tick += 1
        if numel(index_shape(tensor.shape, index)) == 0:
            return
        others = tensors_in(value)
        if isinstance(value, Unknown):
            inner = self.assumed_tensor(value)
            others = [inner] if inner is not None else []
        for other in others:
            if other.snapshot:
                self.note_read(other, node)
        cuts = cuts_of(value)
        flags = [
            tensor.needs_grad(),
            *(other.needs_grad() for other in others if other.dtype not in INTEGRAL),
        ]
        if isinstance(value, Unknown) and not others and not value.hint:
            flags.append(IGNORANT)
        wants = any_requires_grad(flags) if tensor.dtype not in INTEGRAL else False
        recording = wants if self.grad_mode and not self.inference else False
        region = region_of(index, tensor.shape) if tensor.region is None else None
        self.check_item_writable(tensor, index, site, recording)
        grad_node = self.write_tensor(tensor, "index_put_", site, others, recording, cuts, region=region)
        if grad_node is not None:
            grad_node.holds = "sometimes" if is_basic_index(index) is None else "always"
            from gradsight.interp.tensors import Saved

            for part in parts_of(index):
                if isinstance(part, Tensor):
                    grad_node.saved.append(Saved(part, "index", True))
                    grad_node.holds = "always"
        if not self.grad_mode and any(flag is not False for flag in flags[1:]):
            self.cut_by_write(tensor, "index_put_", site, others)

    def check_item_writable(self, tensor: Tensor, index: Any, site: Site, recording: Any) -> None:
        """Writing an item of a leaf writes a view of it: the same refusal, spoken of as a view."""

    def unbind_rows(self, tensor: Tensor, count: int) -> list[Any]:
        rows: list[Any] = []
        for index in range(count):
            row = self.apply_view("unbind", tensor, self.node)
            row.one_of_many = "unbind (iterating a tensor)"
            row.shape = tensor.shape[1:] if tensor.shape else None
            row.region = ("part", index)
            rows.append(row)
        return rows

    # -- methods -----------------------------------------------------------------------------------------------------

    def tensor_method(
        self, tensor: Tensor, name: str, args: list[Any], kwargs: dict[str, Any], node: ast.AST
    ) -> Any:
        special = getattr(self, f"method_{name}", None)
        if special is not None:
            return special(tensor, args, kwargs, node)
        if tensor.attributes is not None and name in tensor.attributes:
            return self.call(tensor.attributes[name], args, kwargs, node)
        if name in NUMBER_METHODS:
            return self.number_from(tensor, name, node)
        if name in DTYPE_METHODS:
            return self.converted(tensor, DTYPE_METHODS[name], name, node)
        fact = self.table.find(f"Tensor.{name}")
        if fact is None:
            return self.unknown_result(f"no fact about Tensor.{name}", args, kwargs, node)
        bound = bind(fact, [tensor, *args], kwargs)
        case, certain = self.select_case(fact, bound)
        return self.record(short_name(name), case, bound, node, certain)

    def converted(self, tensor: Tensor, dtype: str, name: str, node: ast.AST) -> Any:
        """A conversion: the same object where nothing changes, else a copy in the graph (or out of it, for integers)."""
        if tensor.dtype == dtype:
            return tensor
        if tensor.dtype == "?" and dtype == "float":
            return tensor
        site = self.site(node)
        self.tick += 1
        result = Tensor(site, dtype=dtype, shape=tensor.shape)
        result.cuts = tensor.cuts
        flag = tensor.needs_grad()
        if flag is not False and tensor.dtype not in INTEGRAL:
            if dtype in INTEGRAL:
                result.cuts = result.cuts | {Cut("op", name, site, tensor, self.tick)}
            elif self.grad_mode and not self.inference:
                result.requires_grad = flag
                edge = tensor.edge()
                result.node = Node(name, site, [edge] if edge is not None else [], flag, self.tick)
            else:
                result.cuts = result.cuts | self.mode_cut(name, [("self", tensor)], site)
        return result

    def method_to(self, tensor: Tensor, args: list[Any], kwargs: dict[str, Any], node: ast.AST) -> Any:
        """`.to(...)`: a dtype may make a copy; a device named CUDA does; an unknown one is taken to change nothing."""
        for value in [*args, *kwargs.values()]:
            if isinstance(value, External) and value.path.startswith("torch."):
                name = dtype_name(value)
                if name != "?":
                    return self.converted(tensor, name, "to", node)
            if isinstance(value, Tensor):
                return self.converted(tensor, value.dtype, "to", node) if value.dtype != "?" else tensor
            if isinstance(value, str) and value.startswith("cuda"):
                return self.moved(tensor, "to", node)
        if kwargs.get("copy") is True:
            return self.tensor_method(tensor, "clone", [], {}, node)
        return tensor

    def moved(self, tensor: Tensor, name: str, node: ast.AST) -> Any:
        """A copy on another device."""
        site = self.site(node)
        result = Tensor(site, dtype=tensor.dtype, shape=tensor.shape)
        result.cuts = tensor.cuts
        flag = tensor.needs_grad()
        if flag is not False and self.grad_mode:
            result.requires_grad = flag
            edge = tensor.edge()
            result.node = Node(name, site, [edge] if edge is not None else [], flag, self.tick)
        return result

    def method_cuda(self, tensor: Tensor, args: list[Any], kwargs: dict[str, Any], node: ast.AST) -> Any:
        return self.moved(tensor, "cuda", node)

    def method_cpu(self, tensor: Tensor, args: list[Any], kwargs: dict[str, Any], node: ast.AST) -> Any:
        return tensor

    def method_type(self, tensor: Tensor, args: list[Any], kwargs: dict[str, Any], node: ast.AST) -> Any:
        return self.method_to(tensor, args, kwargs, node) if args else Unknown("type of a tensor", "text")

    def method_type_as(self, tensor: Tensor, args: list[Any], kwargs: dict[str, Any], node: ast.AST) -> Any:
        return self.method_to(tensor, args, kwargs, node)

    def method_contiguous(
        self, tensor: Tensor, args: list[Any], kwargs: dict[str, Any], node: ast.AST
    ) -> Any:
        if tensor.dense:
            return tensor
        return self.unsure_item(tensor, node)

    def method_size(self, tensor: Tensor, args: list[Any], kwargs: dict[str, Any], node: ast.AST) -> Any:
        dim = args[0] if args else kwargs.get("dim")
        if dim is None:
            return self.shape_value(tensor)
        if (
            tensor.shape is not None
            and isinstance(dim, int)
            and -len(tensor.shape) <= dim < len(tensor.shape)
        ):
            size = tensor.shape[dim]
            return size if size is not None else Number()
        return Number()

    def method_dim(self, tensor: Tensor, args: list[Any], kwargs: dict[str, Any], node: ast.AST) -> Any:
        return len(tensor.shape) if tensor.shape is not None else Number()

    def method_numel(self, tensor: Tensor, args: list[Any], kwargs: dict[str, Any], node: ast.AST) -> Any:
        count = numel(tensor.shape)
        return count if count is not None else Number()

    method_nelement = method_numel

    def method_is_floating_point(
        self, tensor: Tensor, args: list[Any], kwargs: dict[str, Any], node: ast.AST
    ) -> Any:
        return (
            tensor.dtype not in INTEGRAL if tensor.dtype != "?" else Unknown("whether it is floating", "bool")
        )

    def method_backward(self, tensor: Tensor, args: list[Any], kwargs: dict[str, Any], node: ast.AST) -> Any:
        self.backward_call(tensor, args, kwargs, node)
        return None

    def method_requires_grad_(
        self, tensor: Tensor, args: list[Any], kwargs: dict[str, Any], node: ast.AST
    ) -> Any:
        self.set_requires_grad(
            tensor, args[0] if args else kwargs.get("requires_grad", True), self.site(node)
        )
        return tensor

    def method_retain_grad(
        self, tensor: Tensor, args: list[Any], kwargs: dict[str, Any], node: ast.AST
    ) -> Any:
        if tensor.node is not None:
            tensor.retains_grad = True
            self.retaining.append(tensor)
        return None

    def method_detach_(self, tensor: Tensor, args: list[Any], kwargs: dict[str, Any], node: ast.AST) -> Any:
        if tensor.needs_grad() is not False:
            tensor.cuts = tensor.cuts | {Cut("detach", "detach_", self.site(node), tensor, self.tick)}
        tensor.node = None
        tensor.requires_grad = False
        tensor.base = None
        return tensor

    def method_detach(self, tensor: Tensor, args: list[Any], kwargs: dict[str, Any], node: ast.AST) -> Any:
        return self.cut_alias(tensor, "detach", node)

    def cut_alias(self, tensor: Tensor, op: str, node: ast.AST) -> Tensor:
        """`detach()` and `.data`: the same memory without the history; only `detach` keeps the version counter."""
        site = self.site(node)
        self.tick += 1
        if tensor.snapshot:
            self.note_read(tensor, node)
        result = self.make_view(
            tensor, Output(gradient="none", alias="self", shares_version=op == "detach"), op, site
        )
        result.dtype = tensor.dtype
        result.shape = tensor.shape
        result.cuts = tensor.cuts
        if tensor.needs_grad() is not False:
            result.cuts = tensor.cuts | {Cut(op, op, site, tensor, self.tick)}
        return result

    def method_register_hook(
        self, tensor: Tensor, args: list[Any], kwargs: dict[str, Any], node: ast.AST
    ) -> Any:
        self.hook_registered(tensor, args[0] if args else None, node)
        return Unknown("handle of a hook")

    def hook_registered(self, tensor: Tensor, hook: Any, node: ast.AST) -> None:
        """Hook: a gradient hook was registered."""

    def method_numpy(self, tensor: Tensor, args: list[Any], kwargs: dict[str, Any], node: ast.AST) -> Any:
        """Shares memory with the tensor; the graph stays behind."""
        if tensor.snapshot:
            self.note_read(tensor, node)
        cuts = tensor.cuts
        if tensor.needs_grad() is not False:
            cuts = cuts | {Cut("numpy", "numpy", self.site(node), tensor, self.tick)}
        cuts = frozenset(
            Cut("numpy", "numpy", self.site(node), cut.source, self.tick)
            if cut.kind in ("detach", "data")
            else cut
            for cut in cuts
        )
        return Array(tensor, cuts, None)

    def number_from(self, tensor: Tensor, name: str, node: ast.AST) -> Any:
        """A Python number read from a tensor."""
        self.note_read(tensor, node)
        cuts = tensor.cuts
        if tensor.needs_grad() is not False:
            cuts = cuts | {Cut("number", name.strip("_"), self.site(node), tensor, self.tick)}
        if name == "tolist":
            if tensor.shape == ():
                return Number(cuts)
            return Seq("list", [Number(cuts)], False)
        if name in ("bool", "__bool__"):
            return Unknown("truth of a tensor", "bool")
        return Number(cuts)

    def tensor_from_array(self, array: Array, node: ast.AST) -> Tensor:
        result = Tensor(self.site(node))
        result.cuts = array.cuts
        return result

    def write_array(self, array: Array, node: ast.AST, op: str) -> None:
        """A NumPy write changes the tensor's memory without a version bump."""
        if array.tensor is not None:
            self.tick += 1
            self.write_tensor(
                array.tensor, f"NumPy {op}", self.site(node), [], False, NO_CUTS, mode="silent", bumps=False
            )

    def array_method(
        self, array: Array, name: str, args: list[Any], kwargs: dict[str, Any], node: ast.AST
    ) -> Any:
        if name in ("sort", "fill", "put", "itemset", "partition"):
            self.write_array(array, node, name)
            return None
        if name in ("item", "mean", "sum", "max", "min", "std", "var") and not args and not kwargs:
            return Number(array.cuts)
        if name == "tolist":
            return Seq("list", [Number(array.cuts)], False)
        if name in ("copy", "astype"):
            return Array(None, array.cuts)
        if name in ("reshape", "view", "transpose", "ravel", "squeeze"):
            return Array(array.tensor, array.cuts)
        return Array(None, array.cuts)

    # -- reads that come too late ------------------------------------------------------------------------------------

    def note_read(self, value: Any, node: ast.AST) -> None:
        """A value is used: if it was meant as a copy and its memory has been written since, say so."""
        if isinstance(value, Tensor):
            if value.snapshot and value.storage.epoch != value.born_epoch:
                self.read_after_write(value, node)
        elif isinstance(value, Seq):
            self.read_repeated(value, node)
            for item in value.items[:64]:
                if isinstance(item, Tensor) and item.snapshot:
                    self.note_read(item, node)
        elif isinstance(value, Mapping):
            for item in value.items.values():
                if isinstance(item, Tensor) and item.snapshot:
                    self.note_read(item, node)

    def read_after_write(self, tensor: Tensor, node: ast.AST) -> None:
        kind = tensor.snapshot
        writes = [
            write for write in tensor.storage.writes
            if write.epoch > tensor.born_epoch and not derived_from(write.writer, tensor)
        ]  # fmt: skip
        if not writes:
            return
        site = self.site(node)
        if kind == "grad":
            writes = [
                write
                for write in writes
                if write.op not in ("clip_grad_norm_", "clip_grad_value_", "unscale_")
            ]
            if writes and tensor.grad_of is not None:
                write = writes[0]
                verb = (
                    "backward adds into it here"
                    if write.mode == "accumulate"
                    else f"{write.op} overwrites it here"
                )
                steps = [
                    Step("written", write.site, verb),
                    Step("read", site, "the kept gradient is read here"),
                ]
                self.emit("grad-alias-overwritten", tensor.site, steps, target=tensor.grad_of.label, write=write.op, alias=tensor.label)  # fmt: skip
            return
        if kind == "slice":
            writes = [write for write in writes if surely_overlap(write.region, tensor.region)]
        self.snapshot_read(tensor, writes, kind, site)

    def snapshot_read(self, tensor: Tensor, writes: list[Any], kind: str, site: Site) -> None:
        """Hook: an alias that looks like a copy was read after a write to its source."""

    def read_repeated(self, seq: Seq, node: ast.AST) -> None:
        """Entries of a sequence that are one and the same memory, written between the times they were stored."""
        seen: dict[Any, Tensor] = {}
        for item in seq.items:
            for tensor in tensors_in(item, 3):
                storage = tensor.storage
                if storage.stores is None or not storage.writes or tensor.grad_of is not None:
                    continue
                key = (storage, repr(tensor.region))
                if key not in seen:
                    seen[key] = tensor
                    continue
                epochs = sorted({epoch for _, epoch, _ in storage.stores})
                first = storage.stores[0]
                writes = [
                    write
                    for write in storage.writes
                    if write.epoch > epochs[0] and overlaps(write.region, tensor.region)
                ]
                if writes and (len(epochs) > 1 or len(storage.stores) > 1):
                    self.entries_are_one(tensor, writes[0], first[2], node)
                    return

    def entries_are_one(self, tensor: Tensor, write: Any, stored: Site, node: ast.AST) -> None:
        here = write.site.frame.function is stored.frame.function
        place = write.site if here else stored
        other = (
            Step("made", stored, "the same tensor is stored here each time")
            if here
            else Step("written", write.site, f"{write.op} changes it here")
        )
        steps = [other, Step("read", self.site(node), "all entries are read here and hold the last value")]
        self.emit("alias-read-after-write", place, steps, how="list", write=write.op, target=tensor.label, alias=tensor.label,
                  written=self.text_of_target(write.site))  # fmt: skip

    def result_ignored(self, node: ast.Call, result: Tensor) -> None:
        """A statement that computes a tensor and drops it."""
        function = node.func
        if (
            not isinstance(function, ast.Attribute)
            or function.attr in PURE_EXCEPTIONS
            or function.attr.endswith("_")
        ):
            return
        fact = self.table.find(f"Tensor.{function.attr}")
        if (
            fact is None
            or any(case.writes for case in fact.cases)
            or node.keywords
            and any(k.arg == "out" for k in node.keywords)
        ):
            return
        if result.site.node is not node and function.attr not in ("to", "contiguous", "float", "double"):
            return
        if isinstance(function.value, ast.Name) and function.value.id in ("torch", "F", "nn"):
            return
        if result.site.node is node:
            self.emit(
                "result-ignored",
                self.site(node),
                [],
                method=function.attr,
                target=self.text_of_target(self.site(node)),
            )


def derived_from(tensor: Tensor | None, ancestor: Tensor) -> bool:
    """Whether `tensor` is `ancestor` or was made as an alias of it."""
    steps = 0
    while tensor is not None and steps < 20:
        if tensor is ancestor:
            return True
        tensor = tensor.source
        steps += 1
    return False
