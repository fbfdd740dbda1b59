"""Methods of nn.Module: parameters, state_dict, train and eval, hooks, containers."""

from __future__ import annotations

from gradsight.interp.path_state import PathEnded
from gradsight.interp.syntax import clears_or_sets_gradients
from gradsight.interp.tensors.modules import MODULE_METHODS, ModuleRegistry, kind_of
from gradsight.model.library_objects import HookHandle
from gradsight.model.plain_classes import is_plain_class
from gradsight.model.sites import Site, Syntax
from gradsight.model.tensors import Tensor
from gradsight.model.trace import (
    ChildrenChanged,
    ChildrenChanging,
    Cleared,
    Clearing,
    ModuleHooked,
    Read,
    StateLoaded,
    StateLoading,
)
from gradsight.model.values import (
    MISSING,
    Bound,
    ClassValue,
    Function,
    Instance,
    Layer,
    Mapping,
    Method,
    Module,
    Native,
    Partial,
    Seq,
    Super,
    Unknown,
    Value,
    module_state,
)

MODULE_HOOKS = {
    "register_forward_pre_hook": "pre_hooks",
    "register_forward_hook": "forward_hooks",
    "register_full_backward_hook": "backward_hooks",
    "register_full_backward_pre_hook": "backward_hooks",
}
"""Where a module keeps which of its hooks."""
OF_EVERY_OBJECT = ("__setattr__", "__getattribute__", "__delattr__")
"""What a dict or a list leaves to `object`."""


class NotFollowed(PathEnded):
    """A module is copied by hand: what comes of it is not followed."""


class ModuleMethods(ModuleRegistry):
    """What is called on a module, other than the module itself."""

    def layer_method(
        self, receiver: Layer, name: str, args: list[Value], kwargs: dict[str, Value], node: Syntax
    ) -> Value:
        if name in receiver.attributes and not isinstance(receiver.attributes[name], Tensor):
            return self.language.call(receiver.attributes[name], args, kwargs, node)
        return self.module_method(receiver, name, args, kwargs, node)

    def module_method(
        self, module: Module, name: str, args: list[Value], kwargs: dict[str, Value], node: Syntax
    ) -> Value:
        action = getattr(self, f"module_{name}", None)
        if action is not None:
            done: Value = action(module, args, kwargs, node)
            return done
        if name in ("forward", "__call__"):
            return self.language.call(module, args, kwargs, node)
        is_followed = name in ("register_forward_pre_hook", "register_forward_hook") and not kwargs
        if name.startswith("register_") and not is_followed:
            # It runs in the middle of a backward, or with arguments that are not known.
            if any(touches_gradients(value) for value in [*args, *kwargs.values()]):
                self.path.gradients_unknown = self.path.gradients_hooked = True
        if name in MODULE_HOOKS and args:
            if name == "register_forward_hook" and not kwargs:
                self.path.tell(ModuleHooked(args[0], node))
            return self.module_hooked(
                getattr(module_state(module), MODULE_HOOKS[name]), args[0], kwargs, node
            )
        if name.startswith(("register_", "_register")):
            return HookHandle("hook", self.path.site(node))
        if name in ("append", "extend", "insert", "keys", "values", "items", "update", "pop"):
            if args:
                self.path.tell(ChildrenChanging(module))
            result = self.container_method(module, name, args, kwargs, node)
            if args:
                self.path.tell(ChildrenChanged(module, node))
            return result
        if name in ("share_memory", "compile", "to_empty", "type"):
            return module
        if name == "flatten_parameters":
            return None
        return self.other_method(module, name, args, kwargs, node)

    def other_method(
        self, module: Module, name: str, args: list[Value], kwargs: dict[str, Value], node: Syntax
    ) -> Value:
        """A method that neither nn.Module nor the class of the module has."""
        if name == "__new__":
            # A copy that is filled by hand: which parameters it shares, and which it computes, is not followed.
            self.path.gap("a module that is copied by hand", node)
            self.path.ended_early, self.path.ended_at = True, self.path.site(node)
            raise NotFollowed("copies a module by hand")
        return self.unknown_result(f"method {name} of a module", [module, *args], kwargs, node)

    def module_hooked(self, hooks: list[Value], hook: Value, kwargs: dict[str, Value], node: Syntax) -> Value:
        """A hook that runs at every call of a module, until its handle removes it."""
        handle = HookHandle("hook of a module", self.path.site(node))
        if any(key in kwargs for key in ("with_kwargs", "always_call")):
            return handle

        def remove(args: list[Value], kwargs: dict[str, Value], node: Syntax) -> None:
            if hook in hooks:
                hooks.remove(hook)

        hooks.insert(0, hook) if kwargs.get("prepend") is True else hooks.append(hook)
        handle.attributes["remove"] = Native("remove", remove)
        return handle

    def listed(
        self, module: Module, kind: str, kwargs: dict[str, Value], args: list[Value]
    ) -> list[tuple[str, Tensor]]:
        """The parameters or buffers that a module lists; `recurse=False`, the first of `args`, leaves out those of its parts."""
        found = self.tensors_of(module, kind)
        if not found and kind == "parameter" and isinstance(module, Instance) and module.open:
            # Who asks a module for its parameters has not made one without any.
            self.entry.stand_for_rest(module)
            found = self.tensors_of(module, kind)
        if kwargs.get("recurse", args[0] if args else True) is not False:
            return found
        return [(name, tensor) for name, tensor in found if "." not in name]

    def module_parameters(
        self, module: Module, args: list[Value], kwargs: dict[str, Value], node: Syntax
    ) -> Value:
        values = [tensor for _, tensor in self.listed(module, "parameter", kwargs, args)]
        result = Seq("list", list(values), self.is_fully_known(module), self.path.site(node))
        result.once, result.owners = True, (module,)
        return result

    def module_named_parameters(
        self, module: Module, args: list[Value], kwargs: dict[str, Value], node: Syntax
    ) -> Value:
        listed = self.listed(module, "parameter", kwargs, args[1:])
        pairs = [Seq("tuple", [name, tensor]) for name, tensor in listed]
        result = Seq("list", list(pairs), self.is_fully_known(module), self.path.site(node))
        result.once, result.owners = True, (module,)
        return result

    def module_buffers(
        self, module: Module, args: list[Value], kwargs: dict[str, Value], node: Syntax
    ) -> Value:
        values = [tensor for _, tensor in self.listed(module, "buffer", kwargs, args)]
        return Seq("list", list(values), self.is_fully_known(module))

    def module_named_buffers(
        self, module: Module, args: list[Value], kwargs: dict[str, Value], node: Syntax
    ) -> Value:
        listed = self.listed(module, "buffer", kwargs, args[1:])
        pairs = [Seq("tuple", [name, tensor]) for name, tensor in listed]
        return Seq("list", list(pairs), self.is_fully_known(module))

    def module_children(
        self, module: Module, args: list[Value], kwargs: dict[str, Value], node: Syntax
    ) -> Value:
        return Seq("list", [child for _, child in self.children_of(module)], self.is_fully_known(module))

    def module_named_children(
        self, module: Module, args: list[Value], kwargs: dict[str, Value], node: Syntax
    ) -> Value:
        return Seq(
            "list",
            [Seq("tuple", [key, child]) for key, child in self.children_of(module)],
            self.is_fully_known(module),
        )

    def module_modules(
        self, module: Module, args: list[Value], kwargs: dict[str, Value], node: Syntax
    ) -> Value:
        return Seq("list", [inner for _, inner in self.modules_in(module)], self.is_fully_known(module))

    def module_named_modules(
        self, module: Module, args: list[Value], kwargs: dict[str, Value], node: Syntax
    ) -> Value:
        return Seq(
            "list",
            [Seq("tuple", [name, inner]) for name, inner in self.modules_in(module)],
            self.is_fully_known(module),
        )

    def module_state_dict(
        self, module: Module, args: list[Value], kwargs: dict[str, Value], node: Syntax
    ) -> Value:
        """A dict of the module's own tensors: aliases, not copies."""
        result = Mapping({}, self.is_fully_known(module))
        site = self.path.site(node)
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
        self, module: Module, args: list[Value], kwargs: dict[str, Value], node: Syntax
    ) -> Value:
        self.path.tell(StateLoading(module))
        if args:
            self.path.tell(Read(args[0], node))
        site = self.path.site(node)
        for kind in ("parameter", "buffer"):
            for _name, tensor in self.tensors_of(module, kind):
                self.autograd.write_tensor(tensor, "load_state_dict", site, [], False, mode="no_grad")
        assign = args[2] if len(args) > 2 else kwargs.get("assign", False)
        self.path.tell(StateLoaded(module, args[0] if args else None, assign is True, site))
        return Unknown("missing and unexpected keys")

    def set_training(self, module: Module, value: Value) -> None:
        for _, inner in self.modules_in(module):
            module_state(inner).training = value
            inner.attributes.pop("training", None)

    def module_train(
        self, module: Module, args: list[Value], kwargs: dict[str, Value], node: Syntax
    ) -> Value:
        value = args[0] if args else kwargs.get("mode", True)
        self.set_training(module, value)
        self.mode_switched(module, value, self.switching_call(module, node))
        return module

    def switching_call(self, module: Module, node: Syntax) -> Site:
        """Where a module was told to switch: a method of its own named `train` only passes it on to nn.Module."""
        frame = self.path.frame
        inside = frame.receiver is module and frame.name == "train" and frame.owner is not None
        return frame.call_site if inside and frame.call_site is not None else self.path.site(node)

    def module_eval(self, module: Module, args: list[Value], kwargs: dict[str, Value], node: Syntax) -> Value:
        if isinstance(module, Instance):
            method, _ = module.cls.find("train")
            if isinstance(method, Function):
                self.language.call_function(method, [module, False], {}, node)
                return module
        self.set_training(module, False)
        self.mode_switched(module, False, self.path.site(node))
        return module

    def mode_switched(self, module: Module, training: Value, site: Site) -> None:
        """Hook: train() or eval() was called."""

    def module_to(self, module: Module, args: list[Value], kwargs: dict[str, Value], node: Syntax) -> Value:
        return module

    module_cuda = module_cpu = module_float = module_to

    def module_double(
        self, module: Module, args: list[Value], kwargs: dict[str, Value], node: Syntax
    ) -> Value:
        for _, tensor in self.tensors_of(module, "parameter"):
            tensor.dtype = "double"
        return module

    module_half = module_bfloat16 = module_to

    def module_requires_grad_(
        self, module: Module, args: list[Value], kwargs: dict[str, Value], node: Syntax
    ) -> Value:
        value = args[0] if args else kwargs.get("requires_grad", True)
        for _, tensor in self.listed(module, "parameter", {}, []):
            self.autograd.set_requires_grad(tensor, value, self.path.site(node))
        return module

    def module_zero_grad(
        self, module: Module, args: list[Value], kwargs: dict[str, Value], node: Syntax
    ) -> Value:
        keep = kwargs.get("set_to_none", args[0] if args else True) is False
        self.clear_gradients(
            [tensor for _, tensor in self.tensors_of(module, "parameter")], keep, self.path.site(node)
        )
        self.module_cleared(module, self.path.site(node))
        return None

    def module_cleared(self, module: Module, site: Site) -> None:
        """Hook: zero_grad of a module."""

    def clear_gradients(self, tensors: list[Tensor], in_place: bool, site: Site) -> None:
        """zero_grad: drop the gradient, or zero it where it is."""
        self.path.tell(Clearing(tensors, site))
        self.path.tick += 1
        for tensor in tensors:
            grad = tensor.grad
            if in_place and isinstance(grad, Tensor):
                self.autograd.write_tensor(grad, "zero_grad", site, [], False, mode="no_grad")
            else:
                tensor.grad = None
            self.path.cleared_ticks[tensor] = self.path.tick
        self.path.tell(Cleared(tensors, in_place, site))

    def module_apply(
        self, module: Module, args: list[Value], kwargs: dict[str, Value], node: Syntax
    ) -> Value:
        if args:
            for _, inner in reversed(self.modules_in(module)):
                self.language.call(args[0], [inner], {}, node)
        return module

    def module_register_buffer(
        self, module: Module, args: list[Value], kwargs: dict[str, Value], node: Syntax
    ) -> Value:
        name = args[0] if args else kwargs.get("name")
        value = args[1] if len(args) > 1 else kwargs.get("tensor")
        if isinstance(name, str):
            module.attributes[name] = value
            module_state(module).registered[name] = "buffer"
            if isinstance(value, Tensor) and not value.label:
                value.label = f"self.{name}"
            if isinstance(value, Tensor) and value.requires_grad is False:
                # A buffer is a constant of the module: what its value was once computed from is not to learn through it.
                value.cuts = frozenset()
        return None

    def module_register_parameter(
        self, module: Module, args: list[Value], kwargs: dict[str, Value], node: Syntax
    ) -> Value:
        name = args[0] if args else kwargs.get("name")
        value = args[1] if len(args) > 1 else kwargs.get("param")
        key = name if isinstance(name, str) else f"<{id(value)}>"
        module.attributes[key] = value
        module_state(module).registered[key] = "parameter"
        return None

    def module_add_module(
        self, module: Module, args: list[Value], kwargs: dict[str, Value], node: Syntax
    ) -> Value:
        name = args[0] if args else kwargs.get("name")
        value = args[1] if len(args) > 1 else kwargs.get("module")
        key = name if isinstance(name, str) else f"<{id(value)}>"
        module.attributes[key] = value
        module_state(module).registered[key] = "module"
        if not isinstance(name, str) and isinstance(module, Instance):
            module.open = True
        return None

    module_register_module = module_add_module

    def module_get_submodule(
        self, module: Module, args: list[Value], kwargs: dict[str, Value], node: Syntax
    ) -> Value:
        found = dict(self.modules_in(module)).get(args[0]) if args and isinstance(args[0], str) else None
        return found if found is not None else Unknown("submodule")

    def module_reset_parameters(
        self, module: Module, args: list[Value], kwargs: dict[str, Value], node: Syntax
    ) -> Value:
        for _, tensor in self.tensors_of(module, "parameter"):
            self.autograd.write_tensor(
                tensor, "reset_parameters", self.path.site(node), [], False, mode="no_grad"
            )
        return None

    def container_method(
        self, module: Module, name: str, args: list[Value], kwargs: dict[str, Value], node: Syntax
    ) -> Value:
        attributes = module.attributes
        registered = module_state(module).registered
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
            items, exact = self.objects.collect(args[0])
            children += items
            if not exact and isinstance(module, Layer):
                module.options["inexact"] = True
        elif name == "insert" and len(args) == 2:
            children.insert(args[0] if isinstance(args[0], int) else len(children), args[1])
        elif name == "pop":
            return children[-1] if children else Unknown("module")
        elif name == "update" and args and isinstance(args[0], Mapping):
            for key, value in args[0].items.items():
                attributes[str(key)] = self.as_entry(module, value, node)
                registered[str(key)] = kind_of(value)
            return None
        for index, child in enumerate(children):
            attributes[str(index)] = self.as_entry(module, child, node)
            registered[str(index)] = kind_of(attributes[str(index)])
        return module

    def super_method(
        self, receiver: Super, name: str, args: list[Value], kwargs: dict[str, Value], node: Syntax
    ) -> Value:
        value = self.objects.super_attribute(receiver, name, node)
        if not isinstance(value, Bound):
            return self.language.call(value, args, kwargs, node)
        target = receiver.receiver
        if name == "__new__" and args and isinstance(args[0], ClassValue) and is_plain_class(args[0]):
            return Instance(args[0], self.path.site(node))
        if isinstance(target, Instance) and target.module is not None:
            if name == "__init__":
                self.init_module(target, args, kwargs, node)
                return None
            layer = target.attributes.get("<layer>")
            if name in ("forward", "__call__") and isinstance(layer, Layer):
                return self.call_layer(layer, args, kwargs, node)
            if name == "__call__":
                # A class that overrides it would be called again.
                return self.call_module(target, args, kwargs, node)
            if name in MODULE_METHODS:
                if name == "train":
                    return self.module_train(target, args, kwargs, node)
                return self.module_method(target, name, args, kwargs, node)
        elif isinstance(target, Instance) and target.held is not None:
            if name == "__init__":
                self.language.fill_held(target.held, args, kwargs, node)
                return None
            if name == "__setitem__" and len(args) == 2:
                self.objects.set_item(target.held, args[0], args[1], node)
                return None
            if name not in OF_EVERY_OBJECT:
                return self.objects.call_method(target.held, name, args, kwargs, node)
        elif isinstance(target, Instance):
            if name == "__init__":
                self.language.init_guard(target, args, kwargs, node)
                return None
            guard = self.language.guard_of(target, node)
            inherited = (
                self.language.guard_method(target, guard, name, args, kwargs, node)
                if guard is not None
                else MISSING
            )
            if inherited is not MISSING:
                return inherited
        found = self.objects.inherited_method(receiver, name, args, node)
        if found is not MISSING:
            return found
        reason = f"method {name} of a base class from outside what is known"
        self.path.gap(reason, node)
        if name.startswith("__"):
            return Unknown(reason)
        return self.unknown_result(reason, args, kwargs, node)


def touches_gradients(value: Value) -> bool:
    """Whether a function's text clears or sets gradients."""
    while isinstance(value, (Method, Partial)):
        value = value.function
    return isinstance(value, Function) and clears_or_sets_gradients(value.node)
