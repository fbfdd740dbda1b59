"""nn.Module: making layers, registration, and what a module holds."""

from __future__ import annotations

from gradsight.interp.python.containers import known_slice
from gradsight.interp.python.expected_errors import waits_for
from gradsight.interp.python.namespaces import REGISTRIES
from gradsight.interp.syntax import calls_base_before, speaks_of_layers, spoken_operator, spread_names
from gradsight.interp.tensors.layers import constructor_options, make_tensors
from gradsight.interp.tensors.nn_floor import ModulesFloor
from gradsight.model.sites import Syntax
from gradsight.model.tensors import Cut, Maybe, Tensor
from gradsight.model.trace import AttributeSet, BeforeInit, LayerMade, ParameterRefused, Wrapped
from gradsight.model.unfinished import CONTAINERS
from gradsight.model.values import (
    MISSING,
    Bound,
    External,
    Instance,
    Layer,
    Mapping,
    Module,
    ModuleState,
    Seq,
    Slice,
    Unknown,
    Value,
    module_state,
)
from gradsight.ops.traits import having

MODULE_METHODS = {
    "parameters", "named_parameters", "buffers", "named_buffers", "children", "named_children", "modules", "named_modules",
    "state_dict", "load_state_dict", "train", "eval", "to", "cuda", "cpu", "double", "float", "half", "bfloat16", "type",
    "requires_grad_", "zero_grad", "apply", "register_buffer", "register_parameter", "add_module", "register_module",
    "register_forward_hook", "register_forward_pre_hook", "register_full_backward_hook", "register_backward_hook",
    "share_memory", "extra_repr", "get_submodule", "get_parameter", "compile", "to_empty", "set_extra_state", "__call__",
    "register_load_state_dict_post_hook", "register_state_dict_pre_hook", "_register_load_state_dict_pre_hook",
    "append", "extend", "insert", "keys", "values", "items", "update", "pop", "forward", "reset_parameters",
}  # fmt: skip

FACTORIES = (
    having("sized")
    | having("sized-by-tuple")
    | having("like")
    | having("row-of-numbers")
    | {"tensor", "from_numpy"}
)
"""Functions that always give a new tensor."""


class ModuleRegistry(ModulesFloor):
    """Modules, registered and called."""

    # -- making layers -----------------------------------------------------------------------------------------------

    def make_layer(self, name: str, args: list[Value], kwargs: dict[str, Value], node: Syntax) -> Value:
        """`nn.Linear(...)` and its kin."""
        site = self.path.site(node)
        layer = Layer(name, constructor_options(name, args, kwargs), site)
        self.path.modules_made.append(layer)
        self.fill_layer(layer, layer.attributes, args, kwargs, node)
        self.path.tell(LayerMade(layer, node))
        return layer

    def fill_layer(
        self,
        layer: Layer,
        attributes: dict[str, Value],
        args: list[Value],
        kwargs: dict[str, Value],
        node: Syntax,
    ) -> None:
        name = layer.name
        site = self.path.site(node)
        if name in CONTAINERS:
            self.fill_container(layer, attributes, args, kwargs, node)
            return
        for key, (kind, shape) in make_tensors(name, layer.options).items():
            tensor = Tensor(site, requires_grad=kind == "parameter", shape=shape)
            tensor.is_parameter = kind == "parameter"
            tensor.leaf_made = True
            tensor.label = key
            attributes[key] = tensor
            layer.module.registered[key] = kind
            if kind == "parameter":
                self.path.leaves.append(tensor)
        for key, value in layer.options.items():
            attributes.setdefault(key, value)

    def fill_container(
        self,
        layer: Layer,
        attributes: dict[str, Value],
        args: list[Value],
        kwargs: dict[str, Value],
        node: Syntax,
    ) -> None:
        name = layer.name
        registered = layer.module.registered
        if name == "nn.Sequential" and not (len(args) == 1 and isinstance(args[0], Mapping)):
            items, exact = list(args), True
            layer.options["inexact"] = self.had_inexact_star(node)
        elif args and isinstance(args[0], Mapping):
            for key, value in args[0].items.items():
                attributes[str(key)] = self.as_entry(layer, value, node)
                registered[str(key)] = kind_of(value)
            layer.options["inexact"] = not args[0].exact
            return
        elif args:
            items, exact = self.objects.collect(args[0])
            layer.options["inexact"] = not exact
        else:
            items, exact = [], True
        for index, item in enumerate(items):
            attributes[str(index)] = self.as_entry(layer, item, node)
            registered[str(index)] = kind_of(attributes[str(index)])

    def kind_of_base(self, path: str) -> str:
        """What a class of torch makes of the classes that derive from it; empty if nothing."""
        if path.startswith("torch.nn.") or path.endswith((".LightningModule", ".PreTrainedModel")):
            return "module"
        if path.endswith(("autograd.Function", "autograd.function.Function")):
            return "autograd"
        return "optimizer" if path.startswith("torch.optim.") else ""

    def is_module_by_text(self, node: Syntax, bases: list[Value]) -> bool:
        """Whether a class with a forward and a base that is not known is a module: its text makes layers, or calls the base's init."""
        return any(
            isinstance(base, Unknown) or (isinstance(base, External) and is_foreign(base)) for base in bases
        ) and speaks_of_layers(node)

    def is_module_path(self, path: str) -> bool:
        """Whether a class of a library is a module of torch."""
        return path.startswith("torch.nn.")

    def is_of_type(self, value: Value, path: str) -> Value:
        """Whether a value is an instance of a class of torch; MISSING if the class is none of them."""
        if path in ("torch.Tensor", "torch.FloatTensor"):
            return isinstance(value, Tensor)
        if path == "torch.nn.Parameter":
            return value.is_parameter if isinstance(value, Tensor) else False
        if path == "torch.nn.Module":
            return isinstance(value, Layer) or (isinstance(value, Instance) and value.module is not None)
        if not self.is_module_path(path):
            return MISSING
        if isinstance(value, Layer):
            return self.layer_is(value, path[6:])
        return isinstance(value, Instance) and any(
            isinstance(base, External) and base.path == path for base in value.cls.lineage()
        )

    def type_of(self, value: Layer | Tensor) -> External:
        """The class of a layer or a tensor."""
        return External(f"torch.{value.name}" if isinstance(value, Layer) else "torch.Tensor")

    def derives(self, path: str, base: str) -> bool:
        """Whether one class of torch derives from another."""
        return (path, base) == ("torch.nn.Parameter", "torch.Tensor") or (
            base == "torch.nn.Module" and self.is_module_path(path)
        )

    def had_inexact_star(self, node: Syntax) -> bool:
        """Whether a star argument of unknown length was spread in this call."""
        for name in spread_names(node):
            value = self.path.frame.namespace.get(name)
            return not value.exact if isinstance(value, Seq) else isinstance(value, Unknown)
        return False

    def as_entry(self, owner: Module, value: Value, node: Syntax) -> Value:
        """What a container keeps of a value: a list or dict of parameters makes one of every other tensor."""
        if not isinstance(owner, Layer) or not owner.name.startswith("nn.Parameter"):
            return value
        # What is a parameter already stays the one that it is, and others may hold it too.
        is_parameter = isinstance(value, Tensor) and value.is_parameter
        is_known_otherwise = not isinstance(value, (Tensor, Unknown))
        return value if is_parameter or is_known_otherwise else self.as_parameter(value, node)

    def as_parameter(self, value: Value, node: Syntax, requires_grad: Value = True) -> Value:
        """`nn.Parameter(value)`: a new leaf on the same memory."""
        site = self.path.site(node)
        if isinstance(value, Tensor):
            result = Tensor(site, value.storage, None, dtype=value.dtype, shape=value.shape)
            result.cuts = value.cuts
            result.source = value
            if value.needs_grad() is not False:
                cut = Cut("parameter", "nn.Parameter", site, value, self.path.tick)
                result.cuts = result.cuts | {cut}
                self.path.tell(Wrapped(value, result, cut, site))
        else:
            result = Tensor(site)
        result.requires_grad = (
            requires_grad if isinstance(requires_grad, bool) else Maybe("an option", weak=True)
        )
        result.is_parameter = True
        result.leaf_made = True
        if requires_grad is True and isinstance(value, Tensor) and (value.leaf_made or value.dtype == "bool"):
            self.autograd.check_flag(result, True, site, "nn.Parameter")
        self.path.leaves.append(result)
        return result

    def init_module(
        self, instance: Instance, args: list[Value], kwargs: dict[str, Value], node: Syntax
    ) -> None:
        """`nn.Module.__init__`, or that of one of torch's layers that the class derives from."""
        state = instance.module
        if state is None:
            state = instance.module = ModuleState()
        state.initialised = True
        base = next(
            (b for b in instance.cls.lineage() if isinstance(b, External) and b.path.startswith("torch.nn.")),
            None,
        )
        if base is not None and base.path != "torch.nn.Module" and base.path.count(".") == 2:
            name = base.path[6:]
            layer = Layer(name, constructor_options(name, args, kwargs), self.path.site(node))
            layer.attributes = instance.attributes
            layer.module = state
            self.fill_layer(layer, instance.attributes, args, kwargs, node)
            instance.attributes["<layer>"] = layer

    # -- attributes --------------------------------------------------------------------------------------------------

    def set_module_attribute(self, owner: Module, name: str, value: Value, node: Syntax) -> None:
        """Assignment registers parameters and modules, as nn.Module.__setattr__ does."""
        state = module_state(owner)
        is_module = isinstance(value, Layer) or (isinstance(value, Instance) and value.module is not None)
        is_parameter = isinstance(value, Tensor) and value.is_parameter
        if (
            (is_module or is_parameter)
            and not state.initialised
            and isinstance(owner, Instance)
            and not owner.open
            and not calls_base_before(self.path.frame.function, node)
        ):
            self.path.refuse(BeforeInit(name, self.path.site(node)))
        old = owner.attributes.get(name, MISSING)
        if (
            isinstance(value, Tensor)
            and isinstance(old, Tensor)
            and old.is_parameter
            and state.registered.get(name) == "parameter"
            and not is_reparametrized(owner)
            and self.is_plain_tensor(value)
        ):
            if not waits_for(node, self.path.frame, "TypeError"):
                self.path.refuse(ParameterRefused(name, value, self.path.site(node)))
            return
        if is_module:
            state.registered[name] = "module"
        elif is_parameter:
            state.registered[name] = "parameter"
        elif isinstance(value, Tensor) and state.registered.get(name) == "buffer":
            pass
        elif name == "training":
            state.training = value
        elif name in state.registered and value is None:
            pass
        else:
            state.registered.pop(name, None)
        self.path.tell(AttributeSet(owner, name, value, old, node))

    def is_plain_tensor(self, value: Tensor) -> bool:
        """Whether a tensor is a new one and no parameter; what a conversion gives may be the parameter that it was given."""
        name = spoken_operator(value.site.node)
        if value.is_parameter or value.site.frame.unit.library or value.attributes:
            return False
        if name in FACTORIES or name in ("+", "data"):
            return True
        facts = [self.path.table.find(f"{place}.{name}") for place in ("Tensor", "torch")] if name else []
        outputs = [
            output for fact in facts if fact is not None for case in fact.cases for output in case.outputs
        ]
        return bool(outputs) and all(output.same != "sometimes" for output in outputs)

    def module_member(self, owner: Module, name: str, node: Syntax) -> Value:
        if name == "training":
            return module_state(owner).training
        if name in REGISTRIES:
            return self.objects.registry(owner, name)
        if name == "__dict__":
            return self.objects.attributes_dict(owner)
        if name in MODULE_METHODS or name.startswith("register_"):
            return Bound(owner, name)
        return MISSING

    def layer_attribute(self, owner: Layer, name: str, node: Syntax) -> Value:
        if name in owner.attributes:
            return owner.attributes[name]
        found = self.module_member(owner, name, node)
        if found is not MISSING:
            return found
        if name == "__class__":
            return External(f"torch.{owner.name}")
        if name in ("__delattr__", "__setattr__"):
            owner.escaped = True
        return Unknown(f"attribute {name} of {owner.name}")

    def layer_item(self, owner: Layer, index: Value) -> Value:
        children = [value for key, value in owner.attributes.items() if key.isdigit()]
        if isinstance(index, int) and children and -len(children) <= index < len(children):
            return children[index]
        if isinstance(index, str) and index in owner.attributes:
            return owner.attributes[index]
        if isinstance(index, Slice):
            part = Layer(owner.name, {"inexact": True}, owner.site)
            place = known_slice(index)
            chosen = children
            if place is not None:
                chosen = children[place]
                part.options["inexact"] = owner.options.get("inexact", False)
            for position, child in enumerate(chosen):
                part.attributes[str(position)] = child
                part.module.registered[str(position)] = kind_of(child)
            part.module.training = owner.module.training
            return part
        return children[0] if children else Unknown("item of a module container")

    def layer_is(self, layer: Layer, name: str) -> bool | None:
        if layer.name == name:
            return True
        family = name.rpartition(".")[2].lstrip("_")
        if family in ("ConvNd", "BatchNorm", "NormBase", "InstanceNorm", "RNNBase", "Module"):
            return None
        return False

    # -- what a module holds -----------------------------------------------------------------------------------------

    def children_of(self, module: Module) -> list[tuple[str, Value]]:
        registered = module_state(module).registered
        return [
            (key, module.attributes[key])
            for key, kind in registered.items()
            if kind == "module" and key in module.attributes
        ]

    def modules_in(
        self, module: Module, prefix: str = "", seen: set[int] | None = None
    ) -> list[tuple[str, Module]]:
        seen = seen if seen is not None else set()
        if id(module) in seen:
            return []
        seen.add(id(module))
        found = [(prefix, module)]
        for key, child in self.children_of(module):
            if isinstance(child, (Layer, Instance)) and child.module is not None:
                found += self.modules_in(child, f"{prefix}.{key}" if prefix else key, seen)
        return found

    def tensors_of(self, module: Module, kind: str) -> list[tuple[str, Tensor]]:
        """Registered parameters or buffers, each once, with dotted names."""
        found: list[tuple[str, Tensor]] = []
        seen: set[int] = set()
        for prefix, inner in self.modules_in(module):
            for key, what in module_state(inner).registered.items():
                value = inner.attributes.get(key)
                if what == kind and isinstance(value, Tensor) and id(value) not in seen:
                    seen.add(id(value))
                    found.append((f"{prefix}.{key}" if prefix else key, value))
        return found

    def is_fully_known(self, module: Module) -> bool:
        """Whether every part of the module is known, so that its list of parameters is complete."""
        for _, inner in self.modules_in(module):
            if isinstance(inner, Instance) and inner.open and not inner.cls.has_unknown_base():
                return False
            if isinstance(inner, Layer) and (inner.options.get("inexact") or inner.options.get("unknown")):
                return False
            for name, value in inner.attributes.items():
                if isinstance(value, Unknown) and not value.hint and self.may_hold_parameters(inner, name):
                    return False
        return True

    def may_hold_parameters(self, owner: Value, name: str) -> bool:
        """Whether an attribute that is not known can be a module: a size of one of torch's layers is none.

        One of an object's own is a module if its class applies it, and has a stand-in then.
        """
        return isinstance(owner, Layer) and name.isdigit() and owner.name != "nn.Sequential"


def kind_of(value: Value) -> str:
    """How a module registers a value."""
    return "parameter" if isinstance(value, Tensor) else "module"


def is_foreign(base: External) -> bool:
    """Whether a class comes from a library that is neither torch nor Python's own."""
    root = base.path.partition(".")[0]
    return root not in ("torch", "builtins", "typing", "abc", "enum", "collections", "dataclasses", "object")


def is_reparametrized(owner: Module) -> bool:
    """Whether a parameter of a module may have become something that is computed: by a weight norm, or by code that is not seen."""
    return owner.escaped or (bool(owner.options.get("unknown")) if isinstance(owner, Layer) else owner.open)
