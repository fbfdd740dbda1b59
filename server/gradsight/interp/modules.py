"""nn.Module: registration, parameters, training mode, torch's own layers, and calling them."""

from __future__ import annotations

import ast
from typing import Any

from gradsight.interp.cases import bind
from gradsight.interp.layers import CONTAINERS, constructor_options, make_tensors
from gradsight.interp.shapes import numel
from gradsight.interp.tensor_api import TensorApi
from gradsight.interp.tensors import Maybe, Node, Tensor, any_requires_grad
from gradsight.interp.values import (
    MISSING,
    Bound,
    ClassValue,
    External,
    Function,
    Instance,
    Layer,
    Mapping,
    ModuleState,
    Number,
    Opaque,
    Seq,
    Slice,
    Super,
    Unknown,
    tensors_in,
)
from gradsight.ops.fact import OpFact

MODULE_METHODS = {
    "parameters", "named_parameters", "buffers", "named_buffers", "children", "named_children", "modules", "named_modules",
    "state_dict", "load_state_dict", "train", "eval", "to", "cuda", "cpu", "double", "float", "half", "bfloat16", "type",
    "requires_grad_", "zero_grad", "apply", "register_buffer", "register_parameter", "add_module", "register_module",
    "register_forward_hook", "register_forward_pre_hook", "register_full_backward_hook", "register_backward_hook",
    "share_memory", "extra_repr", "get_submodule", "get_parameter", "compile", "to_empty", "set_extra_state", "__call__",
    "register_load_state_dict_post_hook", "register_state_dict_pre_hook", "_register_load_state_dict_pre_hook",
    "append", "extend", "insert", "keys", "values", "items", "update", "pop", "forward", "reset_parameters",
}  # fmt: skip


class Modules(TensorApi):
    """Modules, registered and called."""

    # -- making layers -----------------------------------------------------------------------------------------------

    def make_layer(self, name: str, args: list[Any], kwargs: dict[str, Any], node: ast.AST) -> Any:
        """`nn.Linear(...)` and its kin."""
        site = self.site(node)
        layer = Layer(name, constructor_options(name, args, kwargs), site)
        self.modules_made.append(layer)
        self.fill_layer(layer, layer.attributes, args, kwargs, node)
        self.layer_made(layer, node)
        return layer

    def layer_made(self, layer: Layer, node: ast.AST) -> None:
        """Hook: a layer was created."""

    def fill_layer(
        self, layer: Layer, attributes: dict[str, Any], args: list[Any], kwargs: dict[str, Any], node: ast.AST
    ) -> None:
        name = layer.name
        site = self.site(node)
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
                self.leaves.append(tensor)
        for key, value in layer.options.items():
            attributes.setdefault(key, value)

    def fill_container(
        self, layer: Layer, attributes: dict[str, Any], args: list[Any], kwargs: dict[str, Any], node: ast.AST
    ) -> None:
        name = layer.name
        registered = layer.module.registered
        if name == "nn.Sequential" and not (len(args) == 1 and isinstance(args[0], Mapping)):
            items, exact = list(args), True
            layer.options["inexact"] = self.had_inexact_star(node)
        elif args and isinstance(args[0], Mapping):
            for key, value in args[0].items.items():
                attributes[str(key)] = value
                registered[str(key)] = kind_of(value)
            layer.options["inexact"] = not args[0].exact
            return
        elif args:
            items, exact = self.collect(args[0])
            layer.options["inexact"] = not exact
        else:
            items, exact = [], True
        if name.startswith("nn.Parameter"):
            items = [self.as_parameter(item, node) for item in items]
        for index, item in enumerate(items):
            attributes[str(index)] = item
            registered[str(index)] = kind_of(item)

    def had_inexact_star(self, node: ast.AST) -> bool:
        """Whether a star argument of unknown length was spread in this call."""
        if not isinstance(node, ast.Call):
            return False
        for argument in node.args:
            if isinstance(argument, ast.Starred) and isinstance(argument.value, ast.Name):
                value = self.frame.namespace.get(argument.value.id)
                if isinstance(value, Seq):
                    return not value.exact
                return value is not None and isinstance(value, Unknown)
        return False

    def as_parameter(self, value: Any, node: ast.AST, requires_grad: Any = True) -> Any:
        """`nn.Parameter(value)`: a new leaf on the same memory."""
        site = self.site(node)
        if isinstance(value, Tensor):
            result = Tensor(site, value.storage, None, dtype=value.dtype, shape=value.shape)
            result.cuts = value.cuts
            result.source = value
            if value.needs_grad() is not False:
                self.graph_tensor_wrapped(value, result, node)
        else:
            result = Tensor(site)
        result.requires_grad = (
            requires_grad if isinstance(requires_grad, bool) else Maybe("an option", weak=True)
        )
        result.is_parameter = True
        result.leaf_made = True
        self.leaves.append(result)
        return result

    def graph_tensor_wrapped(self, value: Tensor, parameter: Tensor, node: ast.AST) -> None:
        """Hook: nn.Parameter was made from a tensor with a graph."""

    def init_module(self, instance: Instance, args: list[Any], kwargs: dict[str, Any], node: ast.AST) -> None:
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
            layer = Layer(name, constructor_options(name, args, kwargs), self.site(node))
            layer.attributes = instance.attributes
            layer.module = state
            self.fill_layer(layer, instance.attributes, args, kwargs, node)
            instance.attributes["<layer>"] = layer

    # -- attributes --------------------------------------------------------------------------------------------------

    def set_module_attribute(self, owner: Any, name: str, value: Any, node: ast.AST) -> None:
        """Assignment registers parameters and modules, as nn.Module.__setattr__ does."""
        state: ModuleState = owner.module
        site = self.site(node)
        is_module = isinstance(value, Layer) or (isinstance(value, Instance) and value.module is not None)
        is_parameter = isinstance(value, Tensor) and value.is_parameter
        if (
            (is_module or is_parameter)
            and not state.initialised
            and isinstance(owner, Instance)
            and not owner.open
        ):
            self.emit("before-super-init", site, [], name=name)
        old = owner.attributes.get(name, MISSING)
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
        self.attribute_assigned(owner, name, value, old, node)

    def attribute_assigned(self, owner: Any, name: str, value: Any, old: Any, node: ast.AST) -> None:
        """Hook: an attribute of a module was assigned."""

    def module_member(self, owner: Any, name: str, node: ast.AST) -> Any:
        if name == "training":
            return owner.module.training
        if name in ("_parameters", "_buffers", "_modules"):
            kind = {"_parameters": "parameter", "_buffers": "buffer", "_modules": "module"}[name]
            return Mapping(
                {
                    key: owner.attributes[key]
                    for key, what in owner.module.registered.items()
                    if what == kind and key in owner.attributes
                }
            )
        if name in MODULE_METHODS or name.startswith("register_"):
            return Bound(owner, name)
        return MISSING

    def layer_attribute(self, owner: Layer, name: str, node: ast.AST) -> Any:
        if name in owner.attributes:
            return owner.attributes[name]
        found = self.module_member(owner, name, node)
        if found is not MISSING:
            return found
        if name == "__class__":
            return External(f"torch.{owner.name}")
        return Unknown(f"attribute {name} of {owner.name}")

    def layer_item(self, owner: Layer, index: Any) -> Any:
        children = [value for key, value in owner.attributes.items() if key.isdigit()]
        if isinstance(index, int) and children and -len(children) <= index < len(children):
            return children[index]
        if isinstance(index, str) and index in owner.attributes:
            return owner.attributes[index]
        if isinstance(index, Slice):
            part = Layer(owner.name, {"inexact": True}, owner.site)
            parts = (index.start, index.stop, index.step)
            chosen = children
            if all(bound is None or isinstance(bound, int) for bound in parts):
                chosen = children[slice(*parts)]
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

    def children_of(self, module: Any) -> list[tuple[str, Any]]:
        registered = module.module.registered
        return [
            (key, module.attributes[key])
            for key, kind in registered.items()
            if kind == "module" and key in module.attributes
        ]

    def modules_in(
        self, module: Any, prefix: str = "", seen: set[int] | None = None
    ) -> list[tuple[str, Any]]:
        seen = seen if seen is not None else set()
        if id(module) in seen:
            return []
        seen.add(id(module))
        found = [(prefix, module)]
        for key, child in self.children_of(module):
            if isinstance(child, (Layer, Instance)) and child.module is not None:
                found += self.modules_in(child, f"{prefix}.{key}" if prefix else key, seen)
        return found

    def tensors_of(self, module: Any, kind: str) -> list[tuple[str, Tensor]]:
        """Registered parameters or buffers, each once, with dotted names."""
        found: list[tuple[str, Tensor]] = []
        seen: set[int] = set()
        for prefix, inner in self.modules_in(module):
            for key, what in inner.module.registered.items():
                value = inner.attributes.get(key)
                if what == kind and isinstance(value, Tensor) and id(value) not in seen:
                    seen.add(id(value))
                    found.append((f"{prefix}.{key}" if prefix else key, value))
        return found

    def is_fully_known(self, module: Any) -> bool:
        """Whether every part of the module is known, so that its list of parameters is complete."""
        for _, inner in self.modules_in(module):
            if isinstance(inner, Instance) and inner.open:
                return False
            if isinstance(inner, Layer) and (inner.options.get("inexact") or inner.options.get("unknown")):
                return False
            for value in inner.attributes.values():
                if isinstance(value, Unknown) and not value.hint:
                    return False
        return True

    # -- methods -----------------------------------------------------------------------------------------------------

    def layer_method(
        self, receiver: Layer, name: str, args: list[Any], kwargs: dict[str, Any], node: ast.AST
    ) -> Any:
        if name in receiver.attributes and not isinstance(receiver.attributes[name], Tensor):
            return self.call(receiver.attributes[name], args, kwargs, node)
        return self.module_method(receiver, name, args, kwargs, node)

    def module_method(
        self, module: Any, name: str, args: list[Any], kwargs: dict[str, Any], node: ast.AST
    ) -> Any:
        action = getattr(self, f"module_{name}", None)
        if action is not None:
            return action(module, args, kwargs, node)
        if name in ("forward", "__call__"):
            return self.call(module, args, kwargs, node)
        if name == "register_forward_hook" and args:
            module.module.forward_hooks.append(args[0])
            return Opaque("hook", "forward hook", self.site(node))
        if name.startswith("register_") or name.startswith("_register"):
            return Opaque("hook", "hook", self.site(node))
        if name in ("append", "extend", "insert", "keys", "values", "items", "update", "pop"):
            return self.container_method(module, name, args, kwargs, node)
        if name in ("share_memory", "compile", "to_empty", "type"):
            return module
        return self.unknown_result(f"method {name} of a module", [module, *args], kwargs, node)

    def module_parameters(self, module: Any, args: list[Any], kwargs: dict[str, Any], node: ast.AST) -> Any:
        values = [tensor for _, tensor in self.tensors_of(module, "parameter")]
        return Seq("list", list(values), self.is_fully_known(module))

    def module_named_parameters(
        self, module: Any, args: list[Any], kwargs: dict[str, Any], node: ast.AST
    ) -> Any:
        pairs = [Seq("tuple", [name, tensor]) for name, tensor in self.tensors_of(module, "parameter")]
        return Seq("list", list(pairs), self.is_fully_known(module))

    def module_buffers(self, module: Any, args: list[Any], kwargs: dict[str, Any], node: ast.AST) -> Any:
        return Seq(
            "list", [tensor for _, tensor in self.tensors_of(module, "buffer")], self.is_fully_known(module)
        )

    def module_named_buffers(
        self, module: Any, args: list[Any], kwargs: dict[str, Any], node: ast.AST
    ) -> Any:
        pairs = [Seq("tuple", [name, tensor]) for name, tensor in self.tensors_of(module, "buffer")]
        return Seq("list", list(pairs), self.is_fully_known(module))

    def module_children(self, module: Any, args: list[Any], kwargs: dict[str, Any], node: ast.AST) -> Any:
        return Seq("list", [child for _, child in self.children_of(module)], self.is_fully_known(module))

    def module_named_children(
        self, module: Any, args: list[Any], kwargs: dict[str, Any], node: ast.AST
    ) -> Any:
        return Seq(
            "list",
            [Seq("tuple", [key, child]) for key, child in self.children_of(module)],
            self.is_fully_known(module),
        )

    def module_modules(self, module: Any, args: list[Any], kwargs: dict[str, Any], node: ast.AST) -> Any:
        return Seq("list", [inner for _, inner in self.modules_in(module)], self.is_fully_known(module))

    def module_named_modules(
        self, module: Any, args: list[Any], kwargs: dict[str, Any], node: ast.AST
    ) -> Any:
        return Seq(
            "list",
            [Seq("tuple", [name, inner]) for name, inner in self.modules_in(module)],
            self.is_fully_known(module),
        )

    def module_state_dict(self, module: Any, args: list[Any], kwargs: dict[str, Any], node: ast.AST) -> Any:
        """A dict of the module's own tensors: aliases, not copies."""
        result = Mapping({}, self.is_fully_known(module))
        site = self.site(node)
        for kind in ("parameter", "buffer"):
            for name, tensor in self.tensors_of(module, kind):
                alias = Tensor(site, tensor.storage, tensor.counter, dtype=tensor.dtype, shape=tensor.shape)
                alias.snapshot = "state_dict"
                alias.source = tensor
                alias.label = name
                result.items[name] = alias
        result.site = site
        return result

    def module_load_state_dict(
        self, module: Any, args: list[Any], kwargs: dict[str, Any], node: ast.AST
    ) -> Any:
        if args:
            self.note_read(args[0], node)
        site = self.site(node)
        for name, tensor in self.tensors_of(module, "parameter"):
            self.write_tensor(tensor, "load_state_dict", site, [], False, mode="no_grad")
        return Unknown("missing and unexpected keys")

    def set_training(self, module: Any, value: Any) -> None:
        for _, inner in self.modules_in(module):
            inner.module.training = value
            inner.attributes.pop("training", None)

    def module_train(self, module: Any, args: list[Any], kwargs: dict[str, Any], node: ast.AST) -> Any:
        value = args[0] if args else kwargs.get("mode", True)
        method, _ = module.cls.find("train") if isinstance(module, Instance) else (MISSING, None)
        self.set_training(module, value)
        self.mode_switched(module, value, self.site(node))
        return module

    def module_eval(self, module: Any, args: list[Any], kwargs: dict[str, Any], node: ast.AST) -> Any:
        if isinstance(module, Instance):
            method, _ = module.cls.find("train")
            if isinstance(method, Function):
                self.call_function(method, [module, False], {}, node)
                return module
        self.set_training(module, False)
        self.mode_switched(module, False, self.site(node))
        return module

    def mode_switched(self, module: Any, training: Any, site: Any) -> None:
        """Hook: train() or eval() was called."""

    def module_to(self, module: Any, args: list[Any], kwargs: dict[str, Any], node: ast.AST) -> Any:
        return module

    module_cuda = module_cpu = module_float = module_to

    def module_double(self, module: Any, args: list[Any], kwargs: dict[str, Any], node: ast.AST) -> Any:
        for _, tensor in self.tensors_of(module, "parameter"):
            tensor.dtype = "double"
        return module

    module_half = module_bfloat16 = module_to

    def module_requires_grad_(
        self, module: Any, args: list[Any], kwargs: dict[str, Any], node: ast.AST
    ) -> Any:
        value = args[0] if args else kwargs.get("requires_grad", True)
        for _, tensor in self.tensors_of(module, "parameter"):
            self.set_requires_grad(tensor, value, self.site(node))
        return module

    def module_zero_grad(self, module: Any, args: list[Any], kwargs: dict[str, Any], node: ast.AST) -> Any:
        keep = kwargs.get("set_to_none", args[0] if args else True) is False
        self.clear_gradients(
            [tensor for _, tensor in self.tensors_of(module, "parameter")], keep, self.site(node)
        )
        self.module_cleared(module, self.site(node))
        return None

    def module_cleared(self, module: Any, site: Any) -> None:
        """Hook: zero_grad of a module."""

    def clear_gradients(self, tensors: list[Tensor], in_place: bool, site: Any) -> None:
        """zero_grad: drop the gradient, or zero it where it is."""
        self.tick += 1
        for tensor in tensors:
            grad = tensor.grad
            if in_place and isinstance(grad, Tensor):
                self.write_tensor(grad, "zero_grad", site, [], False, mode="no_grad")
            else:
                tensor.grad = None
            self.cleared_ticks[tensor] = self.tick

    def module_apply(self, module: Any, args: list[Any], kwargs: dict[str, Any], node: ast.AST) -> Any:
        if args:
            for _, inner in reversed(self.modules_in(module)):
                self.call(args[0], [inner], {}, node)
        return module

    def module_register_buffer(
        self, module: Any, args: list[Any], kwargs: dict[str, Any], node: ast.AST
    ) -> Any:
        name = args[0] if args else kwargs.get("name")
        value = args[1] if len(args) > 1 else kwargs.get("tensor")
        if isinstance(name, str):
            module.attributes[name] = value
            module.module.registered[name] = "buffer"
            if isinstance(value, Tensor) and not value.label:
                value.label = f"self.{name}"
        return None

    def module_register_parameter(
        self, module: Any, args: list[Any], kwargs: dict[str, Any], node: ast.AST
    ) -> Any:
        name = args[0] if args else kwargs.get("name")
        value = args[1] if len(args) > 1 else kwargs.get("param")
        if isinstance(name, str):
            module.attributes[name] = value
            module.module.registered[name] = "parameter"
        return None

    def module_add_module(self, module: Any, args: list[Any], kwargs: dict[str, Any], node: ast.AST) -> Any:
        name = args[0] if args else kwargs.get("name")
        value = args[1] if len(args) > 1 else kwargs.get("module")
        key = name if isinstance(name, str) else f"<{id(value)}>"
        module.attributes[key] = value
        module.module.registered[key] = "module"
        if not isinstance(name, str) and isinstance(module, Instance):
            module.open = True
        return None

    module_register_module = module_add_module

    def module_get_submodule(
        self, module: Any, args: list[Any], kwargs: dict[str, Any], node: ast.AST
    ) -> Any:
        found = dict(self.modules_in(module)).get(args[0]) if args and isinstance(args[0], str) else None
        return found if found is not None else Unknown("submodule")

    def module_reset_parameters(
        self, module: Any, args: list[Any], kwargs: dict[str, Any], node: ast.AST
    ) -> Any:
        for _, tensor in self.tensors_of(module, "parameter"):
            self.write_tensor(tensor, "reset_parameters", self.site(node), [], False, mode="no_grad")
        return None

    def container_method(
        self, module: Any, name: str, args: list[Any], kwargs: dict[str, Any], node: ast.AST
    ) -> Any:
        attributes = module.attributes
        registered = module.module.registered
        if name in ("keys", "values", "items"):
            keys = [key for key in registered if key in attributes]
            if name == "keys":
                return Seq("list", list(keys))
            if name == "values":
                return Seq("list", [attributes[key] for key in keys])
            return Seq("list", [Seq("tuple", [key, attributes[key]]) for key in keys])
        children = [attributes[key] for key in attributes if key.isdigit()]
        if name == "append":
            children.append(args[0] if args else None)
        elif name == "extend" and args:
            items, exact = self.collect(args[0])
            children += items
            if not exact and isinstance(module, Layer):
                module.options["inexact"] = True
        elif name == "insert" and len(args) == 2:
            children.insert(args[0] if isinstance(args[0], int) else len(children), args[1])
        elif name == "pop":
            return children[-1] if children else Unknown("module")
        elif name == "update" and args and isinstance(args[0], Mapping):
            for key, value in args[0].items.items():
                attributes[str(key)] = value
                registered[str(key)] = kind_of(value)
            return None
        for index, child in enumerate(children):
            attributes[str(index)] = child
            registered[str(index)] = kind_of(child)
        return module

    def super_method(
        self, receiver: Super, name: str, args: list[Any], kwargs: dict[str, Any], node: ast.AST
    ) -> Any:
        value = self.super_attribute(receiver, name, node)
        if not isinstance(value, Bound):
            return self.call(value, args, kwargs, node)
        target = receiver.receiver
        if isinstance(target, Instance) and target.module is not None:
            if name == "__init__":
                self.init_module(target, args, kwargs, node)
                return None
            layer = target.attributes.get("<layer>")
            if name in ("forward", "__call__") and isinstance(layer, Layer):
                return self.call_layer(layer, args, kwargs, node)
            if name == "__setattr__" and len(args) == 2 and isinstance(args[0], str):
                self.set_module_attribute(target, args[0], args[1], node)
                target.attributes[args[0]] = args[1]
                return None
            if name in MODULE_METHODS:
                if name == "train":
                    self.set_training(target, args[0] if args else kwargs.get("mode", True))
                    return target
                return self.module_method(target, name, args, kwargs, node)
        elif isinstance(target, Instance) and name == "__init__":
            if target.cls.kind == "exception":
                return None
            return None
        return self.gap(f"method {name} of a base class from outside what is known", node)

    write_place: Any = None
    """Where an in-place layer is made: the place to change when its write does harm."""
    last_inference = -1
    """When a layer was last applied without grad mode."""

    # -- calling -----------------------------------------------------------------------------------------------------

    def call_module(self, instance: Instance, args: list[Any], kwargs: dict[str, Any], node: ast.AST) -> Any:
        method, _ = instance.cls.find("forward")
        if "forward" in instance.attributes:
            return self.call(instance.attributes["forward"], args, kwargs, node)
        if isinstance(method, Function):
            result = self.call_function(method, [instance, *args], kwargs, node)
            if instance.module is not None and instance.module.forward_hooks:
                return self.run_forward_hooks(instance, args, result, node)
            return result
        layer = instance.attributes.get("<layer>")
        if isinstance(layer, Layer):
            return self.call_layer(layer, args, kwargs, node)
        return self.unknown_result("module without forward", args, kwargs, node)

    def call_layer(self, layer: Layer, args: list[Any], kwargs: dict[str, Any], node: ast.AST) -> Any:
        name = layer.name
        if name == "nn.Sequential":
            if not args:
                return Unknown("Sequential without input")
            value = args[0]
            if layer.options.get("inexact"):
                return self.unknown_layer_result(layer, args, node)
            for child in (
                self.iterate_layer(layer, 0)[0]
                if any(key.isdigit() for key in layer.attributes)
                else [v for _, v in self.children_of(layer)]
            ):
                value = self.call(child, [value], {}, node)
            return value
        if name in CONTAINERS:
            return self.gap("call of a container of modules", node)
        fact = self.table.find(name)
        inputs = [self.assume_input(arg) for arg in args]
        if fact is None or layer.options.get("unknown"):
            return self.unknown_layer_result(layer, args, node)
        bound = bind(fact, inputs, {key: self.assume_input(value) for key, value in kwargs.items()})
        if mentions_parameters(fact):
            own = [layer.attributes[key] for key in layer.module.registered if isinstance(layer.attributes.get(key), Tensor)]
            bound["self.parameters"] = Seq("list", own)
        else:
            for key in layer.module.registered:
                value = layer.attributes.get(key)
                if isinstance(value, Tensor):
                    bound[f"self.{key}"] = value
        settings = {**layer.options, "training": layer.module.training}
        case, certain = self.select_case(fact, bound, settings)
        before, self.write_place = self.write_place, layer.site
        result = self.record(name.rpartition(".")[2], case, bound, node, certain)
        self.write_place = before
        if not self.grad_mode:
            self.last_inference = self.tick
        self.shape_of_layer(layer, result, inputs)
        self.layer_called(layer, bound, result, node)
        return self.run_forward_hooks(layer, args, result, node)

    def run_forward_hooks(self, module: Any, args: list[Any], result: Any, node: ast.AST) -> Any:
        for hook in module.module.forward_hooks:
            replaced = self.call(hook, [module, Seq("tuple", list(args)), result], {}, node)
            if replaced is not None and not isinstance(replaced, Unknown):
                result = replaced
        return result

    def layer_called(self, layer: Layer, bound: dict[str, Any], result: Any, node: ast.AST) -> None:
        """Hook: a layer was applied."""

    def assume_input(self, value: Any) -> Any:
        if isinstance(value, Unknown):
            tensor = self.assumed_tensor(value)
            return tensor if tensor is not None else value
        return value

    def shape_of_layer(self, layer: Layer, result: Any, inputs: list[Any]) -> None:
        """Shapes of the commonest layers; others stay as the facts tell."""
        source = inputs[0] if inputs else None
        shape = source.shape if isinstance(source, Tensor) else None
        if not isinstance(result, Tensor) or result is source:
            return
        options = layer.options
        name = layer.name
        if name == "nn.Linear" and shape:
            out = options.get("out_features")
            result.shape = (*shape[:-1], out if isinstance(out, int) else None)
        elif name == "nn.Embedding" and shape is not None:
            dim = options.get("embedding_dim")
            result.shape = (*shape, dim if isinstance(dim, int) else None)
        elif name.endswith("Loss"):
            if options.get("reduction", "mean") in ("mean", "sum", "batchmean"):
                result.shape = ()
        elif name in SHAPE_KEEPING:
            result.shape = shape
        elif name == "nn.Flatten" and shape:
            result.shape = (shape[0], numel(shape[1:])) if options.get("start_dim", 1) == 1 else None
        elif result.shape is None and shape is not None and name.startswith("nn.Conv"):
            out = options.get("out_channels")
            result.shape = (shape[0], out if isinstance(out, int) else None, *([None] * (len(shape) - 2)))

    def unknown_layer_result(self, layer: Layer, args: list[Any], node: ast.AST) -> Any:
        """A layer without a fact: gradient flows from inputs and parameters, what is kept is not known."""
        site = self.site(node)
        self.tick += 1
        inputs = [tensor for arg in args for tensor in tensors_in(arg)]
        parameters = [tensor for _, tensor in self.tensors_of(layer, "parameter")]
        flag = any_requires_grad([tensor.needs_grad() for tensor in [*inputs, *parameters]])
        if flag is not True:
            flag = Maybe("a layer without a fact", weak=True)
        if not self.grad_mode or self.inference:
            flag = False
        result = Tensor(site, requires_grad=flag)
        if flag is not False:
            edges = [edge for tensor in [*inputs, *parameters] if (edge := tensor.edge()) is not None]
            result.node = Node(layer.name.rpartition(".")[2], site, edges, flag, self.tick)
            result.node.holds = "sometimes"
            result.node.operands = inputs
            result.node.open = any(isinstance(arg, Unknown) and arg.carries for arg in args)
        else:
            result.cuts = self.mode_cut(layer.name, [("", tensor) for tensor in [*inputs, *parameters]], site)
        for tensor in inputs:
            result.cuts = result.cuts | tensor.cuts
        return result


def mentions_parameters(fact: OpFact) -> bool:
    """Whether the fact speaks of the layer's parameters as a whole."""
    return any(save.what == "self.parameters" for case in fact.cases for save in case.saves)


def kind_of(value: Any) -> str:
    """How a module registers a value."""
    return "parameter" if isinstance(value, Tensor) else "module"


SHAPE_KEEPING = {
    "nn.ReLU", "nn.Sigmoid", "nn.Tanh", "nn.GELU", "nn.SiLU", "nn.LeakyReLU", "nn.ELU", "nn.Dropout", "nn.LayerNorm",
    "nn.BatchNorm1d", "nn.BatchNorm2d", "nn.GroupNorm", "nn.Softmax", "nn.LogSoftmax", "nn.Softplus", "nn.Identity",
    "nn.Hardtanh", "nn.ReLU6", "nn.PReLU", "nn.Mish", "nn.SELU", "nn.Dropout2d", "nn.InstanceNorm2d", "nn.Softsign",
}  # fmt: skip

__all__ = ["ClassValue", "Modules", "Number", "Opaque", "kind_of"]
