"""Unknown values that the program treats as something: stand-ins for modules and optimizers, and graphs through unknown code.

*Stand-in*: a module (or an optimizer) of which nothing is known but that it is one.  A module's stand-in has one parameter
for all that it may have, and what it returns depends on it and on the tensors it was given.  *Premise*: what must hold for
that; whatever is concluded on a path with a premise is assumed.
*Graph of an unknown*: code that is not known returns a value that depends on the tensors it was given; whoever uses the
value, or an item or attribute of it, as a tensor has one with that graph.
"""

from __future__ import annotations

import ast
from typing import Any

from gradsight.interp.libraries.transforms import Transforms
from gradsight.interp.path_state import PathState
from gradsight.interp.paths.roles import (
    MODULE,
    ONLY_MODULES,
    OPTIMIZER,
    SCALER,
    SCHEDULER,
    belongs,
    deeds_of,
    is_function_name,
    is_scheduler_name,
    is_source_name,
    is_wrapper_name,
    key_of,
    role_of,
    roles_in,
)
from gradsight.interp.paths.unknown_graphs import (
    UnknownGraphs,
    UnknownGraphsAutograd,
    UnknownGraphsObjects,
    indexes_tensor,
)
from gradsight.interp.tensors.checkpoints import Checkpoints
from gradsight.model.tensors import Tensor
from gradsight.model.values import (
    MISSING,
    ClassValue,
    Instance,
    Layer,
    Mapping,
    Number,
    Opaque,
    Seq,
    Unknown,
    tensors_in,
)

ASKED_OF_TENSORS = {"shape", "dtype", "device", "ndim", "T", "mT", "data"}
"""Attributes that tell that an argument is a tensor."""
OF_LEAVES = {"grad", "is_leaf", "requires_grad", "grad_fn", "requires_grad_", "retain_grad", "numpy"}
"""What depends on whether unknown code gave a tensor back as it was."""
OF_TORCH = ("torch.func", "no model of torch", "no fact about")
CLEARING_WORDS = ("zero", "step", "optim", "clear", "reset")


class Evidence(UnknownGraphs):
    """A machine that takes unknown values for what the program treats them as."""

    def __init__(self, path: PathState) -> None:
        super().__init__(path)
        self.stand_ins: dict[int, Any] = {}
        """Stand-ins by the identity of the unknown value; None where nothing is known about its role."""
        self.unknown_modules: list[tuple[str, Layer]] = []
        self.unknown_optimizers: list[tuple[str, Opaque, Unknown]] = []
        self.script_scope: list[ast.AST] = []
        """The statements of the script's top level: evidence for its own names."""

    # -- roles ---------------------------------------------------------------------------------------------------------

    def scopes_of(self, key: str) -> list[ast.AST]:
        """The texts that say what a key of the running frame is."""
        frame = self.path.frame
        function = frame.function
        if function is None:
            return self.script_scope
        owner = frame.owner
        if (
            "." in key
            and owner is not None
            and owner.node is not None
            and isinstance(frame.receiver, Instance)
        ):
            lineage = frame.receiver.cls.lineage()
            return [one.node for one in lineage if isinstance(one, ClassValue) and one.node is not None]
        return [function.node]

    def stand_in_for(self, value: Unknown, expression: ast.AST | None, method: str = "") -> Any:
        """What an unknown value is taken for, or None."""
        known = self.stand_ins.get(id(value))
        if known is not None or value.hint or value.tensor is not None or value.graph is not None:
            return known
        key = key_of(expression)
        role = role_of(key, self.scopes_of(key)) if key else ""
        if not role and method in ONLY_MODULES:
            role = MODULE
        return self.make_stand_in(value, role, key or "it", expression) if role else None

    def make_stand_in(self, value: Unknown, role: str, key: str, node: ast.AST | None) -> Any:
        self.path.kept_alive.append(value)
        place = node if node is not None else self.path.node
        made: Any = None
        if role == MODULE:
            made = self.unknown_module(key, place)
            made.options["given"] = [one for one in value.given if not isinstance(one, Tensor)]
            if value.part_of is not None:
                self.join_module(value.part_of, key, made)
            self.unknown_modules.append((key, made))
        elif role == OPTIMIZER:
            made = self.nn.make_optimizer("torch.optim.Optimizer", [Seq("list", [], True)], {}, place)
            self.unknown_optimizers.append((key, made, value))
        elif role == SCALER:
            made = self.nn.make_scaler("torch.amp.GradScaler", [], {}, place)
        elif role == SCHEDULER:
            made = self.nn.make_scheduler("torch.optim.lr_scheduler.LRScheduler", [], {}, place)
        self.stand_ins[id(value)] = made
        if role in (MODULE, OPTIMIZER):
            self.link_optimizers()
        return made

    def unknown_module(self, key: str, node: ast.AST, is_part: bool = False) -> Layer:
        site = self.path.site(node)
        layer = Layer(f"unknown.{key.rpartition('.')[2]}", {"stand in": key}, site)
        weight = Tensor(site, requires_grad=True)
        weight.is_parameter = weight.leaf_made = True
        weight.label = f"{key}'s parameters"
        weight.attributes = {"<stand in>": True}
        layer.attributes["<parameters>"] = weight
        layer.module.registered["<parameters>"] = "parameter"
        layer.module.training = Unknown("mode of an unknown module", "bool")
        self.path.leaves.append(weight)
        if not is_part:
            self.path.premises.setdefault(f"`{key}` is a module with parameters that learn")
        return layer

    def join_module(self, parent: Layer, key: str, child: Layer) -> None:
        """A part of an unknown module: what the whole has returned so far depended on it as well."""
        name = key.rpartition(".")[2]
        parent.attributes[name] = child
        parent.module.registered[name] = "module"
        for node in parent.options.get("calls", ()):
            node.inputs.append(child.attributes["<parameters>"])

    def link_optimizers(self) -> None:
        """Give every unknown optimizer the parameters of the modules that it can only be for."""
        for key, optimizer, value in self.unknown_optimizers:
            held = self.parameters_for(key, value)
            listed = optimizer.state["param_groups"]
            if held is None:
                listed.exact = False
                continue
            if not listed.items:
                listed.items.append(Mapping({"params": Seq("list", [])}, False))
            members = listed.items[0].items["params"]
            if isinstance(members, Seq):
                members.items.extend(one for one in held if not any(one is other for other in members.items))

    def parameters_for(self, key: str, value: Unknown) -> list[Tensor] | None:
        """The parameters of an unknown optimizer; None where several modules and optimizers cannot be told apart."""
        modules: list[Any] = [one for one in value.given if isinstance(one, (Layer, Instance))]
        direct = [one for one in value.given if isinstance(one, Tensor)]
        if not modules and not direct:
            roles = roles_in(self.scopes_of(key))
            optimizers = [other for other, role in roles.items() if role == OPTIMIZER]
            if len(optimizers) <= 1:
                modules = [layer for _, layer in self.unknown_modules]
            else:
                modules = [layer for name, layer in self.unknown_modules if belongs(key, name)]
                rivals = [name for name in optimizers if name != key]
                if not modules or any(
                    belongs(rival, name)
                    for rival in rivals
                    for name, layer in self.unknown_modules
                    if any(layer is one for one in modules)
                ):
                    return None
        found = [tensor for module in modules for _, tensor in self.nn.tensors_of(module, "parameter")]
        return [*direct, *found]

    # -- stand-ins at work ---------------------------------------------------------------------------------------------

    def result_of_module(
        self, layer: Layer, args: list[Any], kwargs: dict[str, Any], node: ast.AST
    ) -> Unknown:
        """What an unknown module returns: it depends on the parameters and on what was given."""
        self.path.tick += 1
        result = Unknown(f"result of {layer.options['stand in']}")
        parameters = [
            tensor
            for module in [layer, *layer.options.get("given", ())]
            for _, tensor in self.nn.tensors_of(module, "parameter")
        ]
        self.give_graph(result, [*parameters, *self.graphs_in(args, kwargs)], layer.name, node, "")
        if result.graph is not None:
            layer.options.setdefault("calls", []).append(result.graph)
        if not self.path.grad_mode:
            self.path.last_inference = self.path.tick
        return result

    def is_applied(self, owner: Instance, name: str, value: Unknown) -> bool:
        """Whether a class calls an attribute of its own that is not known: it is a layer, if its name is not that of a function."""
        if value.hint or value.graph is not None or value.tensor is not None or is_function_name(name):
            return False
        key = f"self.{name}"
        return any(
            key in deeds_of(one.node).called
            for one in owner.cls.lineage()
            if isinstance(one, ClassValue) and one.node is not None
        )

    # -- unknown values ------------------------------------------------------------------------------------------------

    def prove_graph(self, loss: Unknown, node: ast.AST) -> None:
        """`loss.backward()` shows that the loss has a graph: that of the modules which the code that made it was given."""
        parameters = [
            tensor
            for module in loss.given
            if isinstance(module, (Layer, Instance)) and module.module is not None
            for _, tensor in self.nn.tensors_of(module, "parameter")
            if tensor.requires_grad is True
        ]
        if parameters:
            self.give_graph(
                loss, parameters, "unknown", node, "the loss depends on all parameters of the model"
            )

    def note_handed_out(self, args: list[Any]) -> None:
        """Hook: unknown code was given these."""

    # -- graphs --------------------------------------------------------------------------------------------------------

    def unwrapped(self, module: Any, callee: str, args: list[Any], node: ast.AST | None) -> Any:
        """A module in a coat is the module; `data_parallel(module, inputs)` applies it at once."""
        if callee.endswith("data_parallel") and len(args) > 1:
            return self.language.call(module, args[1:2], {}, node if node is not None else self.path.node)
        return module

    def meet_arguments(self, args: list[Any], kwargs: dict[str, Any], node: ast.AST | None) -> None:
        """Unknown code gets unknown values: those with a role are in its hands from here on."""
        if not isinstance(node, ast.Call):
            return
        for expression, value in zip(node.args, args):
            if type(value) is Unknown and isinstance(expression, (ast.Name, ast.Attribute)):
                self.stand_in_for(value, expression)

    def optimizer_among(self, values: list[Any]) -> Opaque | None:
        found = [self.stand_ins.get(id(value)) if type(value) is Unknown else value for value in values]
        return next((one for one in found if isinstance(one, Opaque) and one.kind == "optimizer"), None)

    def parameters_given(self, values: list[Any]) -> list[Any]:
        """The modules, and the parameters, among arguments."""
        found: list[Any] = []
        for value in values:
            if isinstance(value, Unknown):
                stand_in = self.stand_ins.get(id(value))
                if isinstance(stand_in, Layer):
                    found.append(stand_in)
            elif isinstance(value, Layer) or (isinstance(value, Instance) and value.module is not None):
                found.append(value)
            elif isinstance(value, Seq):
                found.extend(one for one in tensors_in(value) if one.is_parameter)
        return found


class EvidenceObjects(UnknownGraphsObjects):
    """What Evidence adds to objects."""

    def unknown_attribute(self, owner: Unknown, name: str, node: ast.AST) -> Any:
        if owner.tensor is None or name in OF_LEAVES:
            stand_in = self.entry.stand_in_for(owner, getattr(node, "value", None))
            if stand_in is not None:
                return self.get_attribute(stand_in, name, node)
            if owner.graph is not None and name in OF_LEAVES:
                return owner.derived(("attr", name), f"{name} of a value of unknown code", "bool")
        if owner.argument and self.path.assuming and owner.tensor is None and name in ASKED_OF_TENSORS:
            self.entry.assumed_tensor(owner)
        return super().unknown_attribute(owner, name, node)

    def get_item(self, owner: Any, index: Any, node: ast.AST) -> Any:
        if type(owner) is Unknown and owner.tensor is None and indexes_tensor(index):
            if owner.graph is not None or owner.plain or (owner.argument and self.path.assuming):
                self.entry.assumed_tensor(owner)
        elif type(owner) is Layer and "stand in" in owner.options and not owner.attributes.get(str(index)):
            parts = owner.options.setdefault("parts", {})
            if index not in parts if isinstance(index, (int, str)) else True:
                part = Unknown("item of an unknown module")
                part.part_of = owner
                if not isinstance(index, (int, str)):
                    return part
                parts[index] = part
            return parts[index]
        return super().get_item(owner, index, node)


class EvidenceAutograd(UnknownGraphsAutograd):
    """What Evidence adds to autograd."""

    def read_grad(self, tensor: Tensor, node: ast.AST) -> Any:
        if tensor.grad is None and (tensor.attributes or {}).get("<stand in>"):
            return Unknown("gradient of an unknown module, which other code may have filled")
        return super().read_grad(tensor, node)


class EvidenceModules(Checkpoints):
    """What Evidence adds to modules and optimizers."""

    def apply_layer(self, layer: Layer, args: list[Any], kwargs: dict[str, Any], node: ast.AST) -> Any:
        if "stand in" in layer.options:
            return self.entry.result_of_module(layer, args, kwargs, node)
        return super().apply_layer(layer, args, kwargs, node)

    def layer_attribute(self, owner: Layer, name: str, node: ast.AST) -> Any:
        if "stand in" not in owner.options or name in owner.attributes:
            return super().layer_attribute(owner, name, node)
        if name == "module":
            return owner
        found = self.module_member(owner, name, node)
        if found is not MISSING:
            return found
        parts = owner.options.setdefault("parts", {})
        if name not in parts:
            parts[name] = Unknown(f"attribute {name} of an unknown module")
            parts[name].part_of = owner
        return parts[name]

    def layer_method(
        self, receiver: Layer, name: str, args: list[Any], kwargs: dict[str, Any], node: ast.AST
    ) -> Any:
        if "stand in" in receiver.options and getattr(self, f"module_{name}", None) is None:
            if name == "__call__" or name == "forward":
                return self.call_layer(receiver, args, kwargs, node)
            if not name.startswith(("register_", "_register")):
                if any(word in name for word in CLEARING_WORDS):
                    self.escape([receiver, *args], kwargs)
                else:
                    self.escape(args, kwargs)
                return self.entry.result_of_module(receiver, args, kwargs, node)
        return super().layer_method(receiver, name, args, kwargs, node)

    def set_module_attribute(self, owner: Any, name: str, value: Any, node: ast.AST) -> None:
        super().set_module_attribute(owner, name, value, node)
        if (
            type(value) is Unknown
            and isinstance(owner, Instance)
            and self.entry.is_applied(owner, name, value)
        ):
            layer = self.entry.stand_ins.get(id(value))
            if layer is None:
                layer = self.entry.stand_ins[id(value)] = self.entry.unknown_module(
                    f"self.{name}", node, is_part=True
                )
                self.path.kept_alive.append(value)
            if isinstance(layer, Layer) and owner.module is not None:
                owner.module.registered[name] = "module"

    def children_of(self, module: Any) -> list[tuple[str, Any]]:
        found = super().children_of(module)
        if any(type(child) is Unknown for _, child in found):
            return [
                (key, self.entry.stand_ins.get(id(child), child) if type(child) is Unknown else child)
                for key, child in found
            ]
        return found

    def unknown_result(
        self, reason: str, args: list[Any], kwargs: dict[str, Any], node: ast.AST | None = None
    ) -> Any:
        callee = spoken_callee(node)
        self.entry.meet_arguments(args, kwargs, node)
        if is_scheduler_name(callee) and (optimizer := self.entry.optimizer_among([*args, *kwargs.values()])):
            return self.make_scheduler(callee, [optimizer], {}, node if node is not None else self.path.node)
        if is_wrapper_name(callee) and (modules := self.entry.parameters_given([*args, *kwargs.values()])):
            if len(modules) == 1 and not isinstance(modules[0], Tensor):
                return self.entry.unwrapped(modules[0], callee, args, node)
        result = super().unknown_result(reason, args, kwargs, node)
        tensors = self.entry.graphs_in(args, kwargs)
        if reason.startswith(OF_TORCH):
            # torch's own functions without a model: whether they record is theirs to say.
            return result
        if tensors:
            place = node if node is not None else self.path.node
            self.entry.give_graph(
                result, tensors, callee, place, f"what `{callee}` returns depends on what it is given"
            )
            result.carries = result.carries and result.graph is None
        elif is_function_name(callee.rpartition(".")[2]) and self.entry.are_all_plain(
            [*args, *kwargs.values()]
        ):
            result.plain = True
        result.given = tuple(self.entry.parameters_given([*args, *kwargs.values()]))
        return result

    def escape(self, args: list[Any], kwargs: dict[str, Any]) -> None:
        known = self.entry.stand_ins
        super().escape(
            [known.get(id(value)) or value for value in args],
            {name: known.get(id(value)) or value for name, value in kwargs.items()},
        )


class EvidenceLibraries(Transforms):
    """What Evidence adds to libraries."""

    def call_torch(self, path: str, args: list[Any], kwargs: dict[str, Any], node: ast.AST) -> Any:
        if kwargs.get("inplace") is True and "dropout" in path:
            # With a probability of 0, which one that is not known may be, nothing is written.
            probability = args[1] if len(args) > 1 else kwargs.get("p", 0.5)
            if isinstance(probability, (Unknown, Number)):
                kwargs = {**kwargs, "inplace": False}
        return super().call_torch(path, args, kwargs, node)

    def call_unknown(self, function: Unknown, args: list[Any], kwargs: dict[str, Any], node: ast.AST) -> Any:
        stand_in = self.entry.stand_in_for(function, getattr(node, "func", None))
        if isinstance(stand_in, Layer):
            return self.nn.call_layer(stand_in, args, kwargs, node)
        result = super().call_unknown(function, args, kwargs, node)
        if not isinstance(result, Unknown):
            return result
        if function.part_of is not None and result.graph is None:
            parameters = [tensor for _, tensor in self.nn.tensors_of(function.part_of, "parameter")]
            self.entry.give_graph(
                result, [*parameters, *self.entry.graphs_in(args, kwargs)], function.part_of.name, node, ""
            )
        return result

    def unknown_method(
        self, receiver: Unknown, name: str, args: list[Any], kwargs: dict[str, Any], node: ast.AST
    ) -> Any:
        if receiver.tensor is None or name in OF_LEAVES:
            expression = getattr(getattr(node, "func", None), "value", None)
            stand_in = self.entry.stand_in_for(receiver, expression, name)
            if stand_in is not None:
                return self.objects.call_method(stand_in, name, args, kwargs, node)
            if receiver.graph is not None and name in OF_LEAVES:
                self.entry.note_handed_out(args)
                return receiver if name.endswith("_") else Unknown(f"{name} of a value of unknown code")
        if name == "backward" and receiver.tensor is None:
            if receiver.graph is None and not args:
                self.entry.prove_graph(receiver, node)
            if receiver.graph is not None:
                self.autograd.backward_call(self.entry.tensor_of(receiver), args, kwargs, node)
                return None
            if (
                receiver.plain
                and receiver.cuts
                and (tensor := self.entry.assumed_tensor(receiver)) is not None
            ):
                self.autograd.backward_call(tensor, args, kwargs, node)
                return None
            loss = self.entry.as_graph_tensor(args[0]) if args else None
            if loss is not None and loss.needs_grad() is True:
                # `engine.backward(loss)`: whatever else it does, it differentiates what it is given.
                self.autograd.backward_call(loss, args[1:], {}, node)
                return None
        result = super().unknown_method(receiver, name, args, kwargs, node)
        if type(result) is Unknown and result is not receiver and result.graph is None and not result.cuts:
            key = key_of(getattr(getattr(node, "func", None), "value", None))
            if receiver.plain or (key and is_source_name(key)):
                result.plain = not result.hint
        return result


def spoken_callee(node: ast.AST | None) -> str:
    """How the text names what it calls."""
    text = key_of(getattr(node, "func", None)) if node is not None else ""
    return text or "unknown code"
