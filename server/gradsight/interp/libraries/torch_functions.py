"""Functions of torch that are more than an operator: factories, tensor(), autograd, utilities."""

from __future__ import annotations

from functools import lru_cache
from operator import attrgetter
from typing import Any

from gradsight.interp.libraries.libraries_floor import LibrariesFloor
from gradsight.interp.libraries.literal_shapes import counted, literal_shape
from gradsight.interp.tensors.fact_selection import dtype_name
from gradsight.interp.tensors.layers import EMPTY_MODULE
from gradsight.interp.tensors.modes import MODES, SAVING_CONTEXTS, SETTERS
from gradsight.interp.tensors.modules import MODULE_METHODS
from gradsight.interp.tensors.sequences import packed
from gradsight.interp.tensors.shapes import sizes_of
from gradsight.interp.tensors.tensor_api import device_of
from gradsight.model.events import Step
from gradsight.model.library_objects import (
    AmbientContext,
    DataLoader,
    Dataset,
    DecoratorMade,
    SavedTensorHooks,
)
from gradsight.model.passed_cuts import cuts_of
from gradsight.model.sites import Syntax
from gradsight.model.tensors import (
    INTEGRAL,
    NO_LEVELS,
    PART_OF,
    Cut,
    Maybe,
    Node,
    Shape,
    Tensor,
    any_requires_grad,
)
from gradsight.model.trace import Applied, Declared, LeafMade, Read
from gradsight.model.unfinished import CONTAINERS
from gradsight.model.values import (
    MISSING,
    Array,
    External,
    Function,
    Instance,
    Layer,
    Mapping,
    Method,
    Number,
    Seq,
    Unknown,
    Value,
    tensors_in,
)
from gradsight.ops.table import Table
from gradsight.ops.traits import having, layer_fact

SIZED_BY_TUPLE = having("sized-by-tuple")
SIZED_FACTORIES = having("sized") | SIZED_BY_TUPLE
LIKE_FACTORIES = having("like")
MATRIX_FACTORIES = having("matrix-of-numbers")
RANGE_FACTORIES = having("row-of-numbers") | MATRIX_FACTORIES
INTEGER_FACTORIES = having("whole-numbers")
MACHINE_FACTS = {"is_available", "is_built", "is_bf16_supported"}
"""Questions about the machine: whoever asks one twice is told the same."""
NOT_TENSORS = {
    "manual_seed", "device", "set_default_dtype", "is_tensor", "set_num_threads", "save", "load", "compile", "Generator", "Size",
    "is_grad_enabled", "get_default_dtype", "use_deterministic_algorithms", "set_printoptions", "finfo", "iinfo", "dtype", "seed",
    "initial_seed", "get_rng_state", "set_rng_state", "is_floating_point", "numel", "typename", "set_default_tensor_type",
    "are_deterministic_algorithms_enabled", "set_float32_matmul_precision", "get_num_threads", "is_complex", "can_cast",
    "promote_types", "result_type", "is_inference_mode_enabled", "is_storage", "set_deterministic_debug_mode",
}  # fmt: skip


KEEPS_NUMBERS = having("foreach-holds-nothing")
"""Where `_foreach_` keeps a number as a number, and its node can be gone through twice."""


def is_tensor(value: Value) -> bool:
    return isinstance(value, Tensor)


class TorchFunctions(LibrariesFloor):
    """Calls of `torch.*`."""

    def call_torch(self, path: str, args: list[Value], kwargs: dict[str, Value], node: Syntax) -> Value:
        if path.startswith("torch.ops.aten."):
            # `torch.ops.aten.add_.Tensor` is one overload of `add_`.
            path = "torch." + path.split(".")[3]
        if path in MODES or path in SETTERS:
            return self.nn.call_mode(path, args, kwargs, node)
        if path.endswith(".__init__") and args and isinstance(args[0], Instance):
            self.nn.init_module(args[0], args[1:], kwargs, node)
            return None
        if path.startswith("torch.nn.") and path.endswith("__"):
            found = self.objects.object_method(path.rpartition(".")[2], args, node, registers=True)
            if found is not MISSING:
                return found
        special = TORCH_SPECIAL.get(path)
        if special is not None:
            result: Value = attrgetter(special)(self)(args, kwargs, node)
            return result
        room, _, last = path.rpartition(".")
        made = self.call_by_room(path, room, last, args, kwargs, node)
        if made is not MISSING:
            return made
        return self.call_operator_of_torch(path, room, last, args, kwargs, node)

    def call_by_room(
        self, path: str, room: str, last: str, args: list[Value], kwargs: dict[str, Value], node: Syntax
    ) -> Value:
        """What a module of torch makes of a call by its own rules; MISSING for plain operators."""
        if room == "torch":
            if last in SIZED_FACTORIES or last in RANGE_FACTORIES or last in LIKE_FACTORIES:
                if self.facts.records_given(fact_name(path), [*args, *kwargs.values()]):
                    return MISSING
                return self.factory(last, args, kwargs, node)
            if last in NOT_TENSORS:
                return self.plain_function(last, args, kwargs, node)
        if room == "torch.nn.Module" and last in MODULE_METHODS and args and isinstance(args[0], Instance):
            return self.nn.module_method(args[0], last, args[1:], kwargs, node)
        if room == "torch.nn" or room.startswith("torch.nn.modules"):
            if last[:1].isupper():
                name = f"nn.{last}"
                if (
                    name in CONTAINERS
                    or name == EMPTY_MODULE
                    or layer_fact(name) is not None
                    or self.path.table.find(name) is not None
                ):
                    return self.nn.make_layer(name, args, kwargs, node)
                return self.nn.unknown_result(f"no fact about {name}", args, kwargs, node)
        return self.call_toolkit(path, room, last, args, kwargs, node)

    def call_toolkit(
        self, path: str, room: str, last: str, args: list[Value], kwargs: dict[str, Value], node: Syntax
    ) -> Value:
        """Optimizers, distributions, transforms, contexts and data; MISSING for what is none of them."""
        if room == "torch.optim.lr_scheduler":
            return self.nn.make_scheduler(path, args, kwargs, node)
        if room.startswith("torch.optim") and last[:1].isupper():
            return self.nn.make_optimizer(path, args, kwargs, node)
        if room == "torch.nn.init":
            return self.initialise(last, args, kwargs, node)
        if room.startswith("torch.distributions"):
            return self.make_distribution(last, args, kwargs, node)
        if room == "torch.Tensor" and args and isinstance(args[0], Tensor):
            return self.autograd.tensor_method(args[0], last, args[1:], kwargs, node)
        if path.startswith(("torch.func.", "torch.autograd.functional.", "torch.vmap", "functorch.")):
            return self.transform(last, args, kwargs, node)
        if path in SAVING_CONTEXTS:
            return SavedTensorHooks(path, self.path.site(node))
        if path.startswith(("torch.cuda.amp.", "torch.cpu.amp.", "torch.amp.", "torch.autocast")):
            if last == "GradScaler":
                return self.nn.make_scaler(path, args, kwargs, node)
            return AmbientContext(path, self.path.site(node))
        if path.startswith("torch.utils.data."):
            return self.make_data(last, args, kwargs, node)
        if path.startswith("torch.nn.utils."):
            return self.nn_utility(last, args, kwargs, node)
        return MISSING

    def call_operator_of_torch(
        self, path: str, room: str, last: str, args: list[Value], kwargs: dict[str, Value], node: Syntax
    ) -> Value:
        """A function of torch by its fact; one without a fact or model is not known."""
        if last in MACHINE_FACTS:
            return self.path.program.machine_facts.setdefault(path, Unknown(f"{path} of the machine", "bool"))
        name = fact_name(path)
        if last.startswith("_foreach_") and args and isinstance(args[0], Seq):
            return self.call_foreach(last[9:], args, kwargs, node)
        if (
            self.path.table.find(name) is None
            and self.path.table.find(f"Tensor.{last}") is not None
            and room == "torch"
        ):
            name = f"Tensor.{last}"
        if self.path.table.find(name) is not None:
            inputs = [self.nn.assume_input(arg) for arg in args]
            named = {key: self.nn.assume_input(value) for key, value in kwargs.items()}
            result = self.facts.apply_operator(name, inputs, named, node)
            given = [*inputs, *named.values()]
            self.path.tell(Applied(last, inputs[0] if inputs else None, given, result, node))
            return result
        if room == "torch.nn.functional":
            layer = self.layer_named(last)
            if layer:
                return self.facts.apply_operator(
                    layer, [self.nn.assume_input(arg) for arg in args], kwargs, node, dict(kwargs)
                )
        return self.nn.unknown_result(f"no model of {path}", args, kwargs, node)

    def layer_named(self, name: str) -> str:
        """The layer class that does what a function of nn.functional does, if its fact is told under that name only."""
        return layers_by_plain_name(self.path.table).get(name.replace("_", "").lower(), "")

    def call_foreach(self, name: str, args: list[Value], kwargs: dict[str, Value], node: Syntax) -> Value:
        """`torch._foreach_op(lists...)`: the operator on each position."""
        rows = [arg.items if isinstance(arg, Seq) else None for arg in args]
        first = args[0]
        if not isinstance(first, Seq):
            return self.nn.unknown_result(f"torch._foreach_{name}", args, kwargs, node)
        results = []
        for index in range(len(first.items)):
            row = [
                items[index] if items is not None and index < len(items) else arg
                for items, arg in zip(rows, args)
            ]
            result = self.facts.apply_operator(f"Tensor.{name}", row, kwargs, node)
            target = row[0]
            if name in KEEPS_NUMBERS and isinstance(target, Tensor) and not any(map(is_tensor, row[1:])):
                if target.node is not None:
                    target.node.holds = "never"
            results.append(result)
        return None if name.endswith("_") else Seq("list", results, first.exact)

    def plain_function(self, name: str, args: list[Value], kwargs: dict[str, Value], node: Syntax) -> Value:
        if name == "compile" and args:
            return args[0]
        if name == "compile":
            return DecoratorMade("torch.compile", self.path.site(node))
        if name == "is_tensor" and args:
            return (
                isinstance(args[0], Tensor)
                if not isinstance(args[0], Unknown)
                else Unknown("is_tensor", "bool")
            )
        if name == "is_grad_enabled":
            return self.path.grad_mode
        if name == "save" and args:
            self.path.tell(Read(args[0], node))
            return None
        if name in ("load",):
            return Unknown("loaded from a file")
        if name == "Size":
            return args[0] if args else Seq("tuple", [])
        if name == "Generator":
            return AmbientContext("torch.Generator", self.path.site(node))
        return Unknown(
            f"result of torch.{name}", "text" if name in ("device",) else "number" if name == "numel" else ""
        )

    # -- factories ---------------------------------------------------------------------------------------------------

    def new_leaf(self, node: Syntax, kwargs: dict[str, Value], dtype: str, shape: Shape) -> Tensor:
        site = self.path.site(node)
        wanted = kwargs.get("requires_grad", False)
        given = kwargs.get("dtype")
        if given is not None:
            dtype = dtype_name(given)
        flag: Any = wanted if isinstance(wanted, bool) else Maybe("an option", weak=True)
        tensor = Tensor(site, requires_grad=flag, dtype=dtype, shape=shape)
        tensor.leaf_made = True
        tensor.storage.device = device_of(kwargs.get("device"))
        if self.path.inference:
            tensor.inference_site = self.path.mode_site
        if flag is True:
            self.autograd.check_flag(tensor, True, site)
            self.path.leaves.append(tensor)
        if self.path.is_watched:
            self.path.tell(LeafMade(tensor))
        return tensor

    def factory(self, name: str, args: list[Value], kwargs: dict[str, Value], node: Syntax) -> Value:
        out = kwargs.get("out")
        if isinstance(out, Tensor):
            self.autograd.write_tensor(out, name, self.path.site(node), [], False)
            return out
        if name in LIKE_FACTORIES:
            source = self.nn.assume_input(args[0] if args else kwargs.get("input"))
            shape = source.shape if isinstance(source, Tensor) else None
            dtype = source.dtype if isinstance(source, Tensor) else "?"
            like = self.new_leaf(node, kwargs, dtype, shape)
            like.follows = source.follows if isinstance(source, Tensor) else NO_LEVELS
            return like
        shape = None
        if name in SIZED_BY_TUPLE:
            sizes = [arg for arg in [*args, *kwargs.values()] if isinstance(arg, Seq)]
            shape = sizes_of([sizes[0]]) if sizes else None
        elif name in SIZED_FACTORIES:
            given = args if args else [kwargs["size"]] if "size" in kwargs else []
            shape = sizes_of(given) if given else None
        elif name == "eye" and args:
            second = args[1] if len(args) > 1 else args[0]
            shape = tuple(size if isinstance(size, int) else None for size in (args[0], second))
        elif name == "linspace":
            steps = args[2] if len(args) > 2 else kwargs.get("steps", 100)
            shape = (steps if isinstance(steps, int) else None,)
        elif name == "arange" and args and all(isinstance(arg, (int, float)) for arg in args):
            shape = counted(args)
        else:
            shape = (None, None) if name in MATRIX_FACTORIES else (None,)
        dtype = "float"
        if name in INTEGER_FACTORIES:
            dtype = "int"
        elif name == "arange":
            has_fractions = any(isinstance(arg, float) for arg in args)
            is_whole = all(isinstance(arg, int) for arg in args)
            dtype = "float" if has_fractions else "int" if is_whole else "?"
        elif name == "full":
            fill = args[1] if len(args) > 1 else kwargs.get("fill_value")
            dtype = "bool" if isinstance(fill, bool) else "int" if isinstance(fill, int) else "float"
        result = self.new_leaf(node, kwargs, dtype, shape)
        result.storage.zero = name in ("zeros", "zeros_like")
        return result

    def method_new_zeros(
        self, tensor: Tensor, args: list[Value], kwargs: dict[str, Value], node: Syntax
    ) -> Value:
        made = self.new_leaf(node, kwargs, tensor.dtype, sizes_of(args) if args else None)
        made.follows = tensor.follows
        return made

    method_new_ones = method_new_empty = method_new_zeros

    def method_new_full(
        self, tensor: Tensor, args: list[Value], kwargs: dict[str, Value], node: Syntax
    ) -> Value:
        return self.method_new_zeros(tensor, args[:1], kwargs, node)

    def method_new_tensor(
        self, tensor: Tensor, args: list[Value], kwargs: dict[str, Value], node: Syntax
    ) -> Value:
        result = self.make_tensor(args, kwargs, node)
        result.dtype = tensor.dtype if "dtype" not in kwargs else result.dtype
        return result

    def make_tensor(self, args: list[Value], kwargs: dict[str, Value], node: Syntax) -> Tensor:
        """`torch.tensor(data)`: always a copy, never in the graph."""
        data = args[0] if args else kwargs.get("data")
        shape, dtype = literal_shape(data)
        cuts = set(cuts_of(data))
        site = self.path.site(node)
        for source in tensors_in(data):
            self.path.tell(Read(source, node))
            if source.needs_grad() is not False:
                cuts.add(Cut("copy", "torch.tensor", site, source, self.path.tick))
        if isinstance(data, Tensor):
            shape, dtype = data.shape, data.dtype
        elif isinstance(data, Unknown):
            inner = None if self.is_rather_a_list(data) else self.entry.assumed_tensor(data)
            dtype = "?"
            if inner is not None:
                cuts.add(Cut("copy", "torch.tensor", site, inner, self.path.tick))
        tensor = self.new_leaf(node, kwargs, dtype, shape)
        if kwargs.get("dtype") is None or tensor.dtype not in ("int", "bool"):
            tensor.cuts = frozenset(cuts)
        if kwargs.get("requires_grad") is True:
            self.path.tell(Declared(tensor, site))
        return tensor

    def is_rather_a_list(self, data: Unknown) -> bool:
        """In a forward: what an unknown function returned, and nobody has used as a tensor yet, is no tensor to be copied."""
        return self.path.assuming and data.tensor is None and bool(data.graph and data.graph.premise)

    def as_tensor(self, args: list[Value], kwargs: dict[str, Value], node: Syntax) -> Value:
        data = args[0] if args else kwargs.get("data", kwargs.get("obj"))
        if isinstance(data, Unknown) and data.graph is not None:  # A tensor already.
            return self.as_tensor([data.tensor], kwargs, node) if data.tensor is not None else data
        if isinstance(data, Tensor):
            if kwargs.get("requires_grad") is False:
                data = self.autograd.cut_alias(data, "asarray", node)
            options = {"dtype": kwargs.get("dtype"), "copy": kwargs.get("copy")}
            return self.autograd.method_to(data, [], options, node)
        if isinstance(data, Array):
            return self.from_numpy([data], {}, node)
        return self.make_tensor(args, kwargs, node)

    def from_numpy(self, args: list[Value], kwargs: dict[str, Value], node: Syntax) -> Value:
        array = args[0] if args else None
        site = self.path.site(node)
        if isinstance(array, Array):
            tensor = Tensor(site, array.tensor.storage if array.tensor is not None else None)
        else:
            tensor = Tensor(site, dtype="?")
        tensor.cuts = cuts_of(array)
        tensor.leaf_made = True
        if isinstance(array, Array) and array.whole is not None:
            tensor.attributes = {**(tensor.attributes or {}), PART_OF: array.whole}
        if isinstance(array, Array) and array.tensor is None:
            array.tensor = tensor
        return tensor

    def legacy_tensor(self, args: list[Value], kwargs: dict[str, Value], node: Syntax) -> Tensor:
        """`torch.Tensor(...)`, `torch.cuda.FloatTensor(...)`: sizes or data, which become floating-point numbers."""
        if args and isinstance(args[0], (Seq, Array, Tensor, range)):
            made = self.make_tensor(args[:1], {}, node)
            made.dtype = "float"
            return made
        return self.new_leaf(node, {}, "float", sizes_of(args) if args else (0,))

    def legacy_integers(self, args: list[Value], kwargs: dict[str, Value], node: Syntax) -> Value:
        """`torch.LongTensor(...)`, `torch.BoolTensor(...)`: sizes or data, which become integers and carry no graph."""
        made = self.legacy_tensor(args, kwargs, node)
        made.dtype = "int"
        return made

    def parameter(self, args: list[Value], kwargs: dict[str, Value], node: Syntax) -> Value:
        value = args[0] if args else kwargs.get("data")
        flag = args[1] if len(args) > 1 else kwargs.get("requires_grad", True)
        return self.nn.as_parameter(value, node, flag)

    def variable(self, args: list[Value], kwargs: dict[str, Value], node: Syntax) -> Value:
        """The old `Variable(tensor, requires_grad)`: the same memory, a new leaf if the flag is given."""
        value = args[0] if args else kwargs.get("data")
        flag = args[1] if len(args) > 1 else kwargs.get("requires_grad")
        if isinstance(value, Tensor) and isinstance(flag, bool):
            if value.needs_grad() is not False:
                value = self.autograd.cut_alias(value, "detach", node)
            self.autograd.set_requires_grad(value, flag, self.path.site(node))
        return value

    # -- transforms -----------------------------------------------------------------------------------------------------

    def transform(self, name: str, args: list[Value], kwargs: dict[str, Value], node: Syntax) -> Value:
        """torch.func and friends: not simulated; what goes in may be used in any way."""
        return self.nn.unknown_result(f"torch.func.{name}", args, kwargs, node)

    # -- utilities ---------------------------------------------------------------------------------------------------

    def nn_utility(self, name: str, args: list[Value], kwargs: dict[str, Value], node: Syntax) -> Value:
        if name in ("clip_grad_norm_", "clip_grad_value_", "clip_grad_norm"):
            site = self.path.site(node)
            listed = bool(args) and isinstance(args[0], (Seq, Tensor)) and not getattr(args[0], "once", False)
            parameters = tensors_in(args[0]) if listed else []
            if args and not listed:
                parameters = [item for item in self.objects.collect(args[0])[0] if isinstance(item, Tensor)]
            for tensor in parameters:
                if isinstance(tensor.grad, Tensor):
                    self.autograd.write_tensor(tensor.grad, name, site, [], False, mode="no_grad")
            limit = args[1] if len(args) > 1 else kwargs.get("max_norm", kwargs.get("clip_value"))
            self.nn.act("clip", Seq("list", list(parameters)), site, [limit])
            return Tensor(site, shape=())
        if name == "parameters_to_vector" and args:
            items = [item for item in self.objects.collect(args[0])[0] if isinstance(item, Tensor)]
            return self.facts.apply_operator("torch.cat", [Seq("list", list(items))], {}, node)
        if name == "vector_to_parameters":
            for item in self.objects.collect(args[1])[0] if len(args) > 1 else []:
                if isinstance(item, Tensor):
                    self.autograd.write_tensor(
                        item, name, self.path.site(node), [], False, mode="silent", bumps=False
                    )
            return None
        if name in ("weight_norm", "spectral_norm", "remove_weight_norm") and args:
            if isinstance(args[0], Layer):
                args[0].options["unknown"] = True
            return args[0]
        if name in ("pad_sequence", "pack_padded_sequence", "pad_packed_sequence", "pack_sequence"):
            return self.opaque_tensor_result(name, args, node)
        return self.nn.unknown_result(f"no model of torch.nn.utils.{name}", args, kwargs, node)

    def opaque_tensor_result(self, name: str, args: list[Value], node: Syntax) -> Value:
        site = self.path.site(node)
        inputs = [tensor for arg in args for tensor in tensors_in(arg)]
        flag = any_requires_grad([tensor.needs_grad() for tensor in inputs]) if self.path.grad_mode else False
        result = Tensor(site, requires_grad=flag)
        for tensor in inputs:
            result.cuts = result.cuts | tensor.cuts
        if flag is not False:
            result.node = Node(
                name, site, [edge for t in inputs if (edge := t.edge()) is not None], flag, self.path.tick
            )
            result.node.holds = "sometimes"
        if name == "pad_packed_sequence":
            return Seq("tuple", [result, Tensor(site, dtype="int")])
        return packed(result) if name.startswith("pack_") else result

    def initialise(self, name: str, args: list[Value], kwargs: dict[str, Value], node: Syntax) -> Value:
        """`nn.init.*_`: writes under no_grad."""
        target = args[0] if args else kwargs.get("tensor")
        if isinstance(target, Tensor) and name.endswith("_"):
            self.path.tick += 1
            if target.overlapping:
                self.autograd.overlap_written(target, name, self.path.site(node))
            self.autograd.write_tensor(target, name, self.path.site(node), [], False, mode="no_grad")
            return target
        return target if name.endswith("_") else Number()

    # -- data --------------------------------------------------------------------------------------------------------

    def make_data(self, name: str, args: list[Value], kwargs: dict[str, Value], node: Syntax) -> Value:
        if name == "random_split" and args:
            return Seq("list", [args[0], args[0]], False)
        if name == "DataLoader":
            dataset = args[0] if args else kwargs.get("dataset")
            return DataLoader(name, self.path.site(node), dataset, kwargs.get("collate_fn"))
        return Dataset(name, self.path.site(node), args)

    def loader_batches(self, loader: DataLoader, count: int) -> list[Value]:
        dataset = loader.dataset
        site = loader.site
        while isinstance(dataset, Dataset) and dataset.path in ("Subset", "ConcatDataset") and dataset.args:
            dataset = dataset.args[0]
        if isinstance(dataset, Dataset) and dataset.path == "TensorDataset":
            batches: list[Any] = []
            for _ in range(count):
                row: list[Any] = []
                for tensor in dataset.args:
                    if isinstance(tensor, Tensor):
                        part = Tensor(site or tensor.site, dtype=tensor.dtype)
                        part.shape = (None, *tensor.shape[1:]) if tensor.shape else None
                        row.append(part)
                    else:
                        row.append(Unknown("batch of an unknown dataset"))
                batches.append(Seq("list", row))
            return batches
        if isinstance(dataset, Instance) and loader.collate is None:
            getter, _ = dataset.cls.find("__getitem__")
            if isinstance(getter, Function):
                return [
                    self.batched(self.language.call_function(getter, [dataset, index], {}, self.path.node))
                    for index in range(count)
                ]
        return [self.data_from_elsewhere("batch of an unknown dataset") for _ in range(count)]

    def data_from_elsewhere(self, reason: str) -> Unknown:
        """What a loader yields carries no graph."""
        data = Unknown(reason)
        data.plain = True
        return data

    def batched(self, sample: Value) -> Value:
        """A batch made of such samples."""
        if isinstance(sample, Tensor):
            result = Tensor(sample.site, dtype=sample.dtype)
            result.shape = (None, *sample.shape) if sample.shape is not None else None
            return result
        if isinstance(sample, Seq):
            return Seq("list", [self.batched(item) for item in sample.items], sample.exact)
        if isinstance(sample, Mapping):
            return Mapping({key: self.batched(value) for key, value in sample.items.items()}, sample.exact)
        if isinstance(sample, (int, Number)):
            return Tensor(self.path.site(), dtype="int", shape=(None,))
        if isinstance(sample, float):
            return Tensor(self.path.site(), shape=(None,))
        return Unknown("batch of an unknown dataset")

    def new_method(self, name: str) -> Value:
        """What makes a tensor like the one it is called on: `new_zeros` and kin."""
        return getattr(self, f"method_{name}", None)


@lru_cache(maxsize=2)
def layers_by_plain_name(table: Table) -> dict[str, str]:
    """The layer classes with a fact, by their name in small letters."""
    layers: dict[str, str] = {}
    for known in table.names():
        if known[:3] == "nn.":
            layers.setdefault(known[3:].lower(), known)
    return layers


LEGACY_KINDS = {
    "legacy_tensor": ("Float", "Double", "Half", "BFloat16"),
    "legacy_integers": ("Long", "Int", "Short", "Byte", "Char", "Bool"),
}
"""The old constructors, which are named after what they make."""
TORCH_SPECIAL = {
    "torch.tensor": "make_tensor", "torch.as_tensor": "as_tensor", "torch.asarray": "as_tensor",
    "torch.from_numpy": "from_numpy", "torch.Tensor": "legacy_tensor",
    **{
        f"torch.{place}{kind}Tensor": maker
        for place in ("", "cuda.")
        for maker, kinds in LEGACY_KINDS.items()
        for kind in kinds
    },
    "torch.nn.Parameter": "parameter", "torch.nn.parameter.Parameter": "parameter",
    "torch.autograd.Variable": "variable", "torch.autograd.grad": "autograd_grad", "torch.autograd.backward": "autograd_backward",
    "torch.utils.checkpoint.checkpoint": "nn.checkpoint",
    "torch.distributed.all_gather": "gather_from_ranks", "torch.distributed.get_world_size": "count_of_ranks",
    "torch.distributed.get_rank": "count_of_ranks", "torch.distributed.is_initialized": "is_one_of_many",
    "torch.distributed.init_process_group": "begin_processes",
    "torch.multiprocessing.spawn": "spawn_processes", "torch.multiprocessing.Process": "make_process",
    "torch.multiprocessing.spawn.spawn": "spawn_processes", "torch.multiprocessing.start_processes": "spawn_processes",
}  # fmt: skip


def fact_name(path: str) -> str:
    """How the fact table spells a torch function."""
    inner = path[6:]
    return inner if "." in inner else path


__all__ = ["INTEGRAL", "External", "Method", "Step", "TorchFunctions", "fact_name"]
