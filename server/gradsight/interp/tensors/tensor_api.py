"""Methods of a tensor that are more than an operator fact: conversions, backward, detach, numbers, NumPy."""

from __future__ import annotations

from gradsight.interp.path_state import RaisedError
from gradsight.interp.syntax import computes_only, written_name
from gradsight.interp.tensors.changes import change_of_array
from gradsight.interp.tensors.fact_selection import bind, dtype_name, short_name
from gradsight.interp.tensors.indexing import Indexing
from gradsight.interp.tensors.shapes import numel
from gradsight.model.read_numbers import ReadNumber
from gradsight.model.sites import Syntax
from gradsight.model.tensors import INTEGRAL, NO_CUTS, Cut, Maybe, Node, Tensor, is_mask
from gradsight.model.trace import FlagRefused, Hooked, NumpyRefused, Read, WriteRefused
from gradsight.model.values import (
    Array,
    External,
    Function,
    Instance,
    Method,
    Number,
    Seq,
    Unknown,
    Value,
    tensors_in,
)
from gradsight.ops.fact import Output

DTYPE_METHODS = {
    "double": "double", "half": "half", "bfloat16": "half", "float": "float", "long": "int", "int": "int", "short": "int",
    "bool": "bool", "char": "int", "byte": "int", "cfloat": "complex", "cdouble": "complex",
}  # fmt: skip
NUMBER_METHODS = {"item", "tolist", "__float__", "__int__", "__bool__"}
PURE_EXCEPTIONS = {
    "backward", "requires_grad_", "retain_grad", "register_hook", "share_memory_", "pin_memory", "register_post_accumulate_grad_hook",
}  # fmt: skip

REDUCTIONS_OF_NUMPY = {"mean", "sum", "max", "min", "std", "var", "prod", "average", "median", "norm", "amax", "amin"}  # fmt: skip
"""What makes one number of an array if it is given nothing else."""
ASKS_THE_TENSOR = {"shape", "ndim", "size", "mean", "sum", "std", "var", "max", "min", "prod", "any", "all", "amax", "amin"}  # fmt: skip
"""Functions of NumPy that call the method of that name and make no array."""


class TensorApi(Indexing):
    """Everything that is called on a tensor."""

    def tensor_method(
        self, tensor: Tensor, name: str, args: list[Value], kwargs: dict[str, Value], node: Syntax
    ) -> Value:
        special = getattr(self, f"method_{name}", None)
        if special is None and name.startswith("new_"):
            special = self.libraries.new_method(name)
        if special is not None:
            result: Value = special(tensor, args, kwargs, node)
            return result
        if tensor.attributes is not None and name in tensor.attributes:
            return self.language.call(tensor.attributes[name], args, kwargs, node)
        if name in NUMBER_METHODS:
            return self.number_from(tensor, name, node)
        if name in DTYPE_METHODS:
            return self.converted(tensor, DTYPE_METHODS[name], name, node)
        fact = self.path.table.find(f"Tensor.{name}")
        if fact is None:
            return self.nn.unknown_result(f"no fact about Tensor.{name}", args, kwargs, node)
        bound = bind(fact, [tensor, *args], kwargs)
        case, certain = self.facts.select_case(fact, bound)
        return self.record(short_name(name), case, bound, node, certain)

    def converted(self, tensor: Tensor, dtype: str, name: str, node: Syntax) -> Value:
        """A conversion: the same object where nothing changes, else a copy in the graph (or out of it, for integers)."""
        if tensor.dtype == dtype:
            return tensor
        if tensor.dtype == "?" and dtype == "float":
            return tensor
        site = self.path.site(node)
        self.path.tick += 1
        result = Tensor(site, dtype=dtype, shape=tensor.shape)
        result.cuts = tensor.cuts
        if is_mask(tensor):
            result.attributes = {"<mask>": True}
        flag = tensor.needs_grad()
        if flag is not False and tensor.dtype not in INTEGRAL:
            if dtype in INTEGRAL:
                result.cuts = result.cuts | {Cut("op", name, site, tensor, self.path.tick)}
            elif self.path.grad_mode and not self.path.inference:
                result.requires_grad = flag
                edge = tensor.edge()
                result.node = Node(name, site, [edge] if edge is not None else [], flag, self.path.tick)
            else:
                result.cuts = result.cuts | self.mode_cut(name, [("self", tensor)], site)
        return result

    def method_to(self, tensor: Tensor, args: list[Value], kwargs: dict[str, Value], node: Syntax) -> Value:
        """`.to(...)`: a dtype may make a copy; a device named CUDA does; an unknown one is taken to change nothing."""
        for value in [*args, *kwargs.values()]:
            if isinstance(value, External) and value.path.startswith("torch."):
                name = dtype_name(value)
                if name != "?":
                    return self.converted(tensor, name, "to", node)
            if isinstance(value, Tensor):
                return self.converted(tensor, value.dtype, "to", node) if value.dtype != "?" else tensor
            device = device_of(value)
            if device == "cuda":
                return self.moved(tensor, "to", node)
            tensor.storage.device = tensor.storage.device or device
        if kwargs.get("copy") is True:
            return self.tensor_method(tensor, "clone", [], {}, node)
        return tensor

    def moved(self, tensor: Tensor, name: str, node: Syntax) -> Value:
        """A copy on another device; the same tensor where it is there already, or may be."""
        pins = name == "pin_memory"
        if not pins and tensor.storage.device:
            return tensor
        site = self.path.site(node)
        result = Tensor(site, dtype=tensor.dtype, shape=tensor.shape)
        result.cuts = tensor.cuts
        result.storage.device = "" if pins else "cuda"
        flag = tensor.needs_grad()
        if flag is not False and self.path.grad_mode:
            result.requires_grad = flag
            edge = tensor.edge()
            result.node = Node(name, site, [edge] if edge is not None else [], flag, self.path.tick)
        return result

    def method_cuda(self, tensor: Tensor, args: list[Value], kwargs: dict[str, Value], node: Syntax) -> Value:
        return self.moved(tensor, "cuda", node)

    def method_pin_memory(
        self, tensor: Tensor, args: list[Value], kwargs: dict[str, Value], node: Syntax
    ) -> Value:
        """A copy in pinned memory; the same tensor where it is pinned already."""
        return self.moved(tensor, "pin_memory", node)

    def method_cpu(self, tensor: Tensor, args: list[Value], kwargs: dict[str, Value], node: Syntax) -> Value:
        return tensor

    def method_type(self, tensor: Tensor, args: list[Value], kwargs: dict[str, Value], node: Syntax) -> Value:
        return self.method_to(tensor, args, kwargs, node) if args else Unknown("type of a tensor", "text")

    def method_type_as(
        self, tensor: Tensor, args: list[Value], kwargs: dict[str, Value], node: Syntax
    ) -> Value:
        return self.method_to(tensor, args, kwargs, node)

    def method_contiguous(
        self, tensor: Tensor, args: list[Value], kwargs: dict[str, Value], node: Syntax
    ) -> Value:
        if tensor.dense:
            return tensor
        return self.unsure_item(tensor, node)

    def method_size(self, tensor: Tensor, args: list[Value], kwargs: dict[str, Value], node: Syntax) -> Value:
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

    def method_dim(self, tensor: Tensor, args: list[Value], kwargs: dict[str, Value], node: Syntax) -> Value:
        return len(tensor.shape) if tensor.shape is not None else Number()

    def method_numel(
        self, tensor: Tensor, args: list[Value], kwargs: dict[str, Value], node: Syntax
    ) -> Value:
        count = numel(tensor.shape)
        return count if count is not None else Number()

    method_nelement = method_numel

    def method_is_floating_point(
        self, tensor: Tensor, args: list[Value], kwargs: dict[str, Value], node: Syntax
    ) -> Value:
        return (
            tensor.dtype not in INTEGRAL if tensor.dtype != "?" else Unknown("whether it is floating", "bool")
        )

    def method_backward(
        self, tensor: Tensor, args: list[Value], kwargs: dict[str, Value], node: Syntax
    ) -> Value:
        self.backward_call(tensor, args, kwargs, node)
        return None

    def method_requires_grad_(
        self, tensor: Tensor, args: list[Value], kwargs: dict[str, Value], node: Syntax
    ) -> Value:
        self.set_requires_grad(
            tensor, args[0] if args else kwargs.get("requires_grad", True), self.path.site(node)
        )
        return tensor

    def method_retain_grad(
        self, tensor: Tensor, args: list[Value], kwargs: dict[str, Value], node: Syntax
    ) -> Value:
        if tensor.node is not None:
            tensor.retains_grad = True
            self.retaining.append(tensor)
        elif tensor.needs_grad() is False and not tensor.snapshot:
            self.path.refuse(FlagRefused(tensor, self.path.site(node), "retain", "retain_grad"))
        return None

    def method_detach_(
        self, tensor: Tensor, args: list[Value], kwargs: dict[str, Value], node: Syntax
    ) -> Value:
        if tensor.base is not None and tensor.needs_grad() is True and self.path.grad_mode:
            self.path.refuse(WriteRefused(tensor, "detach_", self.path.site(node), "detach", tensor))
        if tensor.needs_grad() is not False:
            tensor.cuts = tensor.cuts | {
                Cut("detach", "detach_", self.path.site(node), tensor, self.path.tick)
            }
        tensor.node = None
        tensor.requires_grad = False
        tensor.base = None
        return tensor

    def method_resize_(
        self, tensor: Tensor, args: list[Value], kwargs: dict[str, Value], node: Syntax
    ) -> Value:
        """Another size on the same memory: torch refuses it of whatever requires grad."""
        site = self.path.site(node)
        if tensor.needs_grad() is True:
            self.path.refuse(WriteRefused(tensor, "resize_", site, "resize", tensor))
        self.write_tensor(tensor, "resize_", site, [], False, mode="no_grad")
        tensor.shape = None
        return tensor

    method_resize_as_ = method_resize_

    def method_detach(
        self, tensor: Tensor, args: list[Value], kwargs: dict[str, Value], node: Syntax
    ) -> Value:
        return self.cut_alias(tensor, "detach", node)

    def cut_alias(self, tensor: Tensor, op: str, node: Syntax) -> Tensor:
        """`detach()` and `.data`: the same memory without the history; only `detach` keeps the version counter."""
        site = self.path.site(node)
        self.path.tick += 1
        if tensor.snapshot:
            self.path.tell(Read(tensor, node))
        result = self.make_view(
            tensor, Output(gradient="none", alias="self", shares_version=op == "detach"), op, site
        )
        result.dtype = tensor.dtype
        result.shape = tensor.shape
        # Whoever detaches a gradient that has no graph says that it is a constant.
        result.cuts = frozenset(cut for cut in tensor.cuts if cut.kind != "grad" or op != "detach")
        if tensor.needs_grad() is not False:
            result.cuts = tensor.cuts | {Cut(op, op, site, tensor, self.path.tick)}
        return result

    def method_register_hook(
        self, tensor: Tensor, args: list[Value], kwargs: dict[str, Value], node: Syntax
    ) -> Value:
        if tensor.needs_grad() is False:
            self.path.refuse(FlagRefused(tensor, self.path.site(node), "hook", "register_hook"))
        hook = callable_of(args[0] if args else kwargs.get("hook"))
        self.path.tell(Hooked(tensor, hook, node, self.tried_hook(tensor, hook, node)))
        return Unknown("handle of a hook")

    def method_register_post_accumulate_grad_hook(
        self, tensor: Tensor, args: list[Value], kwargs: dict[str, Value], node: Syntax
    ) -> Value:
        """Such a hook is told of what a leaf has accumulated."""
        name = "register_post_accumulate_grad_hook"
        if tensor.needs_grad() is False:
            self.path.refuse(FlagRefused(tensor, self.path.site(node), "hook", name))
        elif not tensor.is_leaf and tensor.needs_grad() is True:
            self.path.refuse(FlagRefused(tensor, self.path.site(node), "accumulated", name))
        return Unknown("handle of a hook")

    def tried_hook(self, tensor: Tensor, hook: Value, node: Syntax) -> Value:
        """What a hook that only computes returns for a gradient like its tensor; None where that cannot be told."""
        function, given = (hook.function, [hook.receiver]) if isinstance(hook, Method) else (hook, [])
        if not isinstance(function, Function) or tensor.shape is None or not computes_only(function.node):
            return None
        gradient = Tensor(self.path.site(node), dtype=tensor.dtype, shape=tensor.shape)
        gradient.requires_grad = Maybe("backward is called with create_graph", weak=True)
        try:
            with self.path.aside():
                return self.language.call_function(function, [*given, gradient], {}, node)
        except RaisedError:
            return None

    def method_numpy(
        self, tensor: Tensor, args: list[Value], kwargs: dict[str, Value], node: Syntax
    ) -> Array:
        """Shares memory with the tensor; the graph stays behind."""
        if tensor.snapshot:
            self.path.tell(Read(tensor, node))
        cuts = tensor.cuts
        flag = tensor.needs_grad()
        if flag is not False:
            if (
                flag is True
                and self.path.grad_mode
                and kwargs.get("force", args[0] if args else False) is False
            ):
                # Without grad mode torch hands the memory out.
                self.path.refuse(NumpyRefused(tensor, self.path.site(node)))
            cuts = cuts | {Cut("numpy", "numpy", self.path.site(node), tensor, self.path.tick)}
        cuts = frozenset(
            Cut("numpy", "numpy", self.path.site(node), cut.source, self.path.tick)
            if cut.kind in ("detach", "data")
            else cut
            for cut in cuts
        )
        return Array(tensor, cuts, None)

    def made_an_array(self, name: str, args: list[Value], node: Syntax) -> frozenset[Cut]:
        """A function of NumPy makes arrays of tensors, and of lists of tensors, that it is given: their cuts."""
        cuts = NO_CUTS
        for arg in args:
            for tensor in tensors_in(arg)[:4]:
                if tensor.needs_grad() is not False:
                    forced = tensor is arg and name in ASKS_THE_TENSOR
                    cuts |= self.method_numpy(tensor, [], {"force": forced}, node).cuts
        return cuts

    def number_from(self, tensor: Tensor, name: str, node: Syntax) -> Value:
        """A Python number read from a tensor."""
        self.path.tell(Read(tensor, node))
        cuts = tensor.cuts
        if tensor.needs_grad() is not False:
            cuts = cuts | {Cut("number", name.strip("_"), self.path.site(node), tensor, self.path.tick)}
        if name == "tolist":
            if tensor.shape == ():
                return Number(cuts)
            numbers = Seq("list", [Number(cuts)], False)
            for _ in (tensor.shape or ())[1:]:
                numbers = Seq("list", [numbers], False)
            return numbers
        if name in ("bool", "__bool__"):
            return Unknown("truth of a tensor", "bool")
        if name == "item" and (taken := cuts - tensor.cuts):
            return ReadNumber(cuts, *taken)
        return Number(cuts)

    def tensor_from_array(self, array: Array, node: Syntax) -> Tensor:
        result = Tensor(self.path.site(node))
        result.cuts = array.cuts
        return result

    def write_array(self, array: Array, node: Syntax, op: str, given: list[Value] | None = None) -> None:
        """A NumPy write changes the tensor's memory without a version bump.  `given`: what the operator was given with it."""
        if array.tensor is not None:
            self.path.tick += 1
            if not array.tensor.label:
                array.tensor.label = written_name(node) or "the array"
            self.write_tensor(
                array.tensor,
                f"NumPy {op}",
                self.path.site(node),
                [],
                False,
                NO_CUTS,
                mode="silent",
                bumps=False,
                change=change_of_array(op, array, given or []),
            )

    def array_method(
        self, array: Array, name: str, args: list[Value], kwargs: dict[str, Value], node: Syntax
    ) -> Value:
        if name in ("sort", "fill", "put", "itemset", "partition"):
            self.write_array(array, node, name, args)
            return None
        if (name == "item" or name in REDUCTIONS_OF_NUMPY) and not args and not kwargs:
            return Number(array.cuts)
        if name == "tolist":
            return Seq("list", [Number(array.cuts)], False)
        if name in ("copy", "astype"):
            return Array(None, array.cuts)
        if name in ("reshape", "view", "transpose", "ravel", "squeeze"):
            return Array(array.tensor, array.cuts)
        return Array(None, array.cuts)


def callable_of(value: Value) -> Value:
    """What is run when this is called: an object's `__call__`, bound to it."""
    if isinstance(value, Instance):
        method, _ = value.cls.find("__call__")
        if isinstance(method, Function):
            return Method(method, value)
    return value


def device_of(value: Value) -> str:
    """`cuda`, `?` for a device that is not known, and nothing for the processor."""
    if isinstance(value, str):
        return "cuda" if value.startswith("cuda") else ""
    return "?" if isinstance(value, Unknown) else ""
