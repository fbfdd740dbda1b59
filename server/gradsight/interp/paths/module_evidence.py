"""What unknown modules, optimizers and scalers do, and what unknown code makes of what it is given."""

from __future__ import annotations

import ast
import contextlib

from gradsight.interp.library_places import is_of_library
from gradsight.interp.option_defaults import usual_number
from gradsight.interp.path_state import RaisedError
from gradsight.interp.paths.entry_kinds import answers_without_grad
from gradsight.interp.paths.fitted_leaves import with_leaves
from gradsight.interp.paths.placeholders import is_value_used
from gradsight.interp.paths.roles import (
    MODULE,
    OPTIMIZER,
    is_follower_name,
    is_function_name,
    is_scheduler_name,
    is_settings_name,
    is_wrapper_name,
    key_of,
    last_part,
    may_clear,
)
from gradsight.interp.paths.thawing import GOING_THROUGH, chooses_what_learns, thaw
from gradsight.interp.paths.unknown_graphs import (
    PARTS_PER_RECEIVER,
    default_function,
    may_be_one,
    not_watched,
    spoken_callee,
)
from gradsight.interp.python.open_keywords import OpenKeywords, all_given
from gradsight.interp.syntax import remembered_of, set_on_self, statement_around
from gradsight.interp.tensors.checkpoints import Checkpoints
from gradsight.interp.tensors.training import group_of
from gradsight.model.library_objects import GradientScaler, Optimizer
from gradsight.model.name_hints import suggests
from gradsight.model.passed_cuts import cuts_of
from gradsight.model.sites import Frame, Site
from gradsight.model.tensors import Tensor
from gradsight.model.trace import BackwardRun
from gradsight.model.values import (
    MISSING,
    ClassValue,
    Instance,
    Layer,
    Module,
    Number,
    Seq,
    Super,
    Unknown,
    Value,
)

SAYS_WHEN = ("need_update", "update_grad")
"""Options by which a scaler that is called is told whether to step."""
OF_TORCH = ("torch.func", "no model of torch", "no fact about")
"""Reasons for which a function of torch itself has no known result."""

OF_MODULES = frozenset({"nn.Sequential", "nn.ModuleList", "nn.ModuleDict"})


class EvidenceModules(Checkpoints):
    """What Evidence adds to modules and optimizers."""

    def apply_layer(self, layer: Layer, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> Value:
        if "stand in" in layer.options:
            return self.entry.result_of_module(layer, args, kwargs, node)
        chance = layer.options.get("p", layer.attributes.get("p")) if "Dropout" in layer.name else None
        if not isinstance(chance, (Unknown, Number)):
            return super().apply_layer(layer, args, kwargs, node)
        result = self.drop_perhaps(layer, chance, args, kwargs, node)
        if isinstance(result, Tensor):
            may_be_one(result, args)
        return result

    def drop_perhaps(
        self, layer: Layer, chance: Value, args: list[Value], kwargs: dict[str, Value], node: ast.AST
    ) -> Value:
        """A dropout with a probability of 0 writes nothing in place, and that is what it has if an option says so by default."""
        options = layer.options
        if options.get("inplace") is True and layer.module.training is not False:
            usual = usual_number(self.path.options, self.path.setting_names, chance)
            if usual == 0:
                layer.options = {**options, "inplace": False}
            elif usual is None:
                self.path.premises.setdefault("dropout is at work: its probability is above 0")
        try:
            return super().apply_layer(layer, args, kwargs, node)
        finally:
            layer.options = options

    def scaler_method(
        self, scaler: GradientScaler, name: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST
    ) -> Value:
        """What a scaler scales is a loss with a graph, and what it steps is an optimizer."""
        if args and type(args[0]) is Unknown:
            known: Value = None
            if name == "scale":
                known = self.entry.as_graph_tensor(args[0])
            elif name in ("step", "unscale_"):
                known = self.entry.optimizer_given(args[0], node)
            args = [known if known is not None else args[0], *args[1:]]
        return super().scaler_method(scaler, name, args, kwargs, node)

    def make_optimizer(
        self, path: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST
    ) -> Optimizer:
        written = node.args[0] if isinstance(node, ast.Call) and node.args else None
        if args and isinstance(written, (ast.List, ast.Tuple)):
            scopes = [scope for one in written.elts for scope in self.entry.scopes_of(key_of(one))]
            args = [with_leaves(self.path, args[0], node, scopes), *args[1:]]
        return super().make_optimizer(path, args, kwargs, node)

    def backward_done(self, run: BackwardRun, given: dict[str, Value]) -> None:
        self.hold_what_is_trained(run)
        super().backward_done(run, given)

    def step_parameters(self, optimizer: Optimizer, site: Site) -> None:
        if not site.loops and self.bare_optimizer() is optimizer:
            for action in self.path.log:
                run = action.subject
                if (
                    action.verb == "backward"
                    and isinstance(run, BackwardRun)
                    and is_beside(action.site, site)
                ):
                    self.hold_leaves(optimizer, run)
        super().step_parameters(optimizer, site)

    def bare_optimizer(self) -> Optimizer | None:
        """The one optimizer that is made of parameters which nobody knows."""
        bare = [
            one for one in self.path.optimizers if not one.parameters() and not one.knows_all_parameters()
        ]
        return bare[0] if len(bare) == 1 and not bare[0].escaped and not bare[0].is_guessed() else None

    def hold_what_is_trained(self, run: BackwardRun) -> None:
        """The one optimizer that is made of parameters which nobody knows is for what the loss in its loop trains."""
        bare = self.bare_optimizer()
        if bare is None:
            return
        innermost = {id(loop) for loop, _ in run.site.loops[-1:]}
        if any(
            action.subject is bare and innermost & {id(loop) for loop, _ in action.loops[-1:]}
            for action in self.path.log
        ):
            # Elsewhere than in the loop that clears or steps it: the backward of a helper, for something else.
            self.hold_leaves(bare, run)

    def hold_leaves(self, bare: Optimizer, run: BackwardRun) -> None:
        held = {tensor for one in self.path.optimizers for tensor in one.ever_held()}
        trained = [
            one for one in run.leaves if one.is_parameter and one.requires_grad is True and one not in held
        ]
        if trained and isinstance(bare.param_groups, Seq):
            trained.sort(key=lambda leaf: leaf.serial)
            bare.param_groups.items.append(group_of([*trained], {}))
            bare.doubtful |= frozenset(trained)
            self.path.premises.setdefault("the optimizer holds what the loss trains")

    def layer_attribute(self, owner: Layer, name: str, node: ast.AST) -> Value:
        if "stand in" not in owner.options or name in owner.attributes:
            return super().layer_attribute(owner, name, node)
        if name == "module":
            return owner
        found = self.module_member(owner, name, node)
        if found is not MISSING:
            return found
        if not is_settings_name(name):
            thaw([owner])
        parts: dict[int | str, Unknown] = owner.options.setdefault("parts", {})
        if name not in parts:
            parts[name] = Unknown(f"attribute {name} of an unknown module")
            parts[name].part_of = owner
        return parts[name]

    def layer_method(
        self, receiver: Layer, name: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST
    ) -> Value:
        if "stand in" in receiver.options and getattr(self, f"module_{name}", None) is None:
            if name == "__call__" or name == "forward":
                return self.call_layer(receiver, args, kwargs, node)
            if not name.startswith(("register_", "_register")):
                if not is_value_used(node, self.path.frame):
                    # `model.unfreeze_head()`
                    thaw([receiver])
                self.escape([receiver, *args] if may_clear(name) else self.changed_by(node, args), kwargs)
                result = self.entry.result_of_module(receiver, args, kwargs, node)
                if answers_without_grad(name):
                    result.graph, result.carries = None, True
                elif result.graph is not None and not self.entry.works_on_data(
                    [*args, *kwargs.values()], node
                ):
                    # `model.make_mask(n)`: it may be a constant.
                    result.graph.holds = "sometimes"
                # `model.configure_optimizers()`: what a module makes may hold its parameters.
                result.given = (receiver, *self.entry.parameters_given([*args, *kwargs.values()]))
                return result
        return super().layer_method(receiver, name, args, kwargs, node)

    def other_method(
        self, module: Module, name: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST
    ) -> Value:
        """`model.lm_head(hidden)`: a network of a library has more parts than its model says, and applies what it has.

        So does one that was not made to its end.
        """
        if not isinstance(module, Instance) or not (
            is_of_library(module.cls) or (module.open and name in names_set(module.cls))
        ):
            return super().other_method(module, name, args, kwargs, node)
        self.escape([module, *args] if may_clear(name) else args, kwargs)
        result = Unknown(f"result of {name} of a module of a library")
        if answers_without_grad(name):
            result.carries = True
        else:
            parameters = [tensor for _, tensor in self.tensors_of(module, "parameter")]
            self.entry.give_graph(result, [*parameters, *self.entry.graphs_in(args, kwargs)], name, node, "")
            self.entry.open_to_parts(result, args, kwargs)
        result.given = (module, *self.entry.parameters_given([*args, *kwargs.values()]))
        return result

    def module_zero_grad(
        self, module: Module, args: list[Value], kwargs: dict[str, Value], node: ast.AST
    ) -> Value:
        """Who clears what unknown code made of networks (`model, optimizer = amp.initialize(model, optimizer)`) clears them."""
        if isinstance(module, Layer):
            for one in module.options.get("given", ()):
                super().module_zero_grad(one, args, kwargs, node)
        return super().module_zero_grad(module, args, kwargs, node)

    def module_member(self, owner: Module, name: str, node: ast.AST) -> Value:
        found: Value = super().module_member(owner, name, node)
        if found is MISSING and name == "module" and any(owner is one for one in self.entry.in_coats):
            return owner
        return found

    def module_method(
        self, module: Module, name: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST
    ) -> Value:
        if name == "apply" or (name in GOING_THROUGH and chooses_what_learns(node, self.path.frame)):
            thaw([inner for _, inner in self.modules_in(module)])
        return super().module_method(module, name, args, kwargs, node)

    def set_module_attribute(self, owner: Module, name: str, value: Value, node: ast.AST) -> None:
        super().set_module_attribute(owner, name, value, node)
        if not isinstance(value, (Number, int, float, str, bool, type(None))):
            # `model.fc = nn.Linear(512, 10)`: the new part learns, and the whole applies it.
            thaw([owner])
        if (
            type(value) is Unknown
            and isinstance(owner, Instance)
            and self.entry.is_applied(owner, name, value)
        ):
            layer = self.unknown_part(value, f"self.{name}", node)
            if isinstance(layer, Layer) and owner.module is not None:
                owner.module.registered[name] = "module"

    def unknown_part(self, value: Unknown, key: str, node: ast.AST) -> Value:
        """The module that an unknown value is."""
        layer = self.entry.stand_ins.get(id(value))
        if layer is None:
            layer = self.entry.stand_ins[id(value)] = self.entry.unknown_module(key, node, is_part=True)
            self.path.kept_alive.append(value)
        return layer

    def fill_container(
        self,
        layer: Layer,
        attributes: dict[str, Value],
        args: list[Value],
        kwargs: dict[str, Value],
        node: ast.AST,
    ) -> None:
        """What stands in a container of modules is a module."""
        super().fill_container(layer, attributes, args, kwargs, node)
        if layer.name in OF_MODULES:
            for key, value in attributes.items():
                if type(value) is Unknown and key in layer.module.registered:
                    self.unknown_part(value, key, node)

    def module_add_module(
        self, module: Module, args: list[Value], kwargs: dict[str, Value], node: ast.AST
    ) -> Value:
        value = args[1] if len(args) > 1 else kwargs.get("module")
        if type(value) is Unknown:
            self.unknown_part(value, str(args[0]) if args and isinstance(args[0], str) else "module", node)
        return super().module_add_module(module, args, kwargs, node)

    def super_method(
        self, receiver: Super, name: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST
    ) -> Value:
        """What the bases of an object that is being made do is followed for a share of what it may cost."""
        if name != "__init__" or self.entry.making != "whole" or not isinstance(receiver.receiver, Instance):
            result: Value = super().super_method(receiver, name, args, kwargs, node)
            return result
        with contextlib.suppress(RaisedError), self.entry.purse(self.path.budget // PARTS_PER_RECEIVER):
            super().super_method(receiver, name, args, kwargs, node)
        if receiver.receiver.module is not None:
            receiver.receiver.module.initialised = True
        return None

    def children_of(self, module: Module) -> list[tuple[str, Value]]:
        found = super().children_of(module)
        for _, child in found:
            if type(child) is Unknown:
                known = self.entry.stand_ins
                return [(key, known.get(id(one), one) if type(one) is Unknown else one) for key, one in found]
        return found

    def unknown_result(
        self, reason: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST | None = None
    ) -> Value:
        callee = spoken_callee(node)
        if (fallback := default_function(node, args, kwargs)) is not None:
            # A table of functions that is not known: what is used if it has no such key is among what can be meant.
            self.path.premises.setdefault(f"`{fallback.name}` is the function that is chosen")
            return fallback
        self.entry.meet_arguments(args, kwargs, node)
        if is_scheduler_name(callee) or is_scheduler_name(assigned_name(node, self.path.frame)):
            # Of what is only called a schedule nobody knows what it does to an optimizer that was made in view.
            optimizer = self.entry.optimizer_among([*args, *kwargs.values()])
            if optimizer is None:
                optimizer = self.scheduled_optimizer(args, kwargs, node)
            elif not is_scheduler_name(callee):
                optimizer = None
            if optimizer is not None:
                return self.make_scheduler(
                    callee, [optimizer], {}, node if node is not None else self.path.node
                )
        if reason.startswith(OF_TORCH) and callee.endswith("data_parallel"):
            self.entry.meet_applied(args, node)
        if is_wrapper_name(callee) and (modules := self.entry.parameters_given([*args, *kwargs.values()])):
            if len(modules) == 1 and isinstance(modules[0], (Instance, Layer)):
                return self.entry.unwrapped(modules[0], callee, args, node)
        if node is not None and suggests("scaler", callee):
            if (optimizer := self.entry.optimizer_handed(node, args, kwargs)) is not None:
                return self.scaled_step(callee, optimizer, args[0], kwargs, node)
        result = super().unknown_result(
            reason, *not_watched(callee, self.changed_by(node, args), kwargs), node
        )
        tensors = self.entry.graphs_in(args, kwargs)
        if isinstance(kwargs, OpenKeywords) and isinstance(result, Unknown):
            result.cuts = result.cuts | cuts_of(kwargs.spread)
        if reason.startswith(OF_TORCH) or not isinstance(result, Unknown):
            # torch's own functions without a model: whether they record is theirs to say.
            return result
        if tensors:
            place = node if node is not None else self.path.node
            self.entry.give_graph(
                result, tensors, callee, place, f"what `{callee}` returns depends on what it is given"
            )
            self.entry.open_to_parts(result, args, kwargs)
            result.carries = result.carries and result.graph is None
            self.entry.may_fill(args, callee, place)
        elif (result.cuts or self.entry.are_all_plain(all_given(args, kwargs))) and not (
            self.path.grad_mode and not self.path.inference
        ):
            # What the code computes here of values with a history, or of data, is not recorded.
            result.plain = True
        elif suggests("holder of data", callee) or (
            # A function of data alone may be a network; one of what was cut off before brings nothing new.
            result.cuts
            and (is_function_name(callee.rpartition(".")[2]) or is_library_function(reason))
            and self.entry.are_all_plain(all_given(args, kwargs))
        ):
            result.plain = True
        given = [*args, *kwargs.values()]
        result.given = tuple(self.entry.parameters_given(given))
        if result.given and node is not None and all(holds_only_parameters(value) for value in given):
            result.given_at = self.path.site(node)
        return result

    def scheduled_optimizer(
        self, args: list[Value], kwargs: dict[str, Value], call: ast.AST | None
    ) -> Optimizer | None:
        """The optimizer that a schedule is made for: what unknown code made of parameters, `instantiate(config, optimizer=optimizer)`."""
        if not isinstance(call, ast.Call):
            return None
        named = [(keyword.value, kwargs.get(keyword.arg)) for keyword in call.keywords if keyword.arg]
        for expression, value in [*zip(call.args, args), *named]:
            key = key_of(expression)
            if type(value) is Unknown and value.given and value.tensor is None and suggests(OPTIMIZER, key):
                value.graph = None
                made = self.entry.make_stand_in(value, OPTIMIZER, key, expression)
                return made if isinstance(made, Optimizer) else None
        return None

    def scaled_step(
        self, callee: str, optimizer: Optimizer, loss: Value, kwargs: dict[str, Value], node: ast.AST
    ) -> Value:
        """`loss_scaler(loss, optimizer, parameters=…)`: a scaler that is called does backward and the step, and clears nothing."""
        self.path.premises.setdefault(f"`{callee}` calls backward on what it is given, and steps")
        known = self.entry.as_graph_tensor(loss)
        if known is None and type(loss) is Unknown:
            self.entry.prove_graph(loss, node)
            known = self.entry.as_graph_tensor(loss)
        differentiate = self.objects.get_attribute(known if known is not None else loss, "backward", node)
        self.language.call(differentiate, [], {}, node)
        is_wanted = next((value for name, value in kwargs.items() if name in SAYS_WHEN), True)
        if self.path.decide(is_wanted, node):
            self.optimizer_method(optimizer, "step", [], {}, node)
        return Number()

    def changed_by(self, call: ast.AST | None, args: list[Value]) -> list[Value]:
        """What a method may change of what it is given: a follower takes over the weights of a module, and leaves it as it is."""
        if not is_follower_name(key_of(getattr(getattr(call, "func", None), "value", None))):
            return args
        known = self.entry.stand_ins
        return [one for one in args if not isinstance(known.get(id(one)) or one, (Layer, Instance))]

    def escape(self, args: list[Value], kwargs: dict[str, Value]) -> None:
        known = self.entry.stand_ins
        for value in [*args, *kwargs.values()]:
            if type(value) is Unknown:
                value.hand_over()
        given = [known.get(id(value)) or value for value in args]
        named = {name: known.get(id(value)) or value for name, value in kwargs.items()}
        for value in (*given, *named.values()):
            if isinstance(value, (Layer, Instance)) and value.module is not None:
                thaw([inner for _, inner in self.modules_in(value)])
        super().escape(given, named)


def is_beside(backward: Site, step: Site) -> bool:
    """Whether a backward belongs to a step outside of loops: both are in one call of one function."""
    return backward.frame is step.frame and not backward.loops


def assigned_name(call: ast.AST | None, frame: Frame) -> str:
    """The name that the result of a call is given, if it is given one."""
    statement = statement_around(call, frame) if isinstance(call, ast.Call) else None
    if not isinstance(statement, ast.Assign) or statement.value is not call or len(statement.targets) != 1:
        return ""
    return last_part(key_of(statement.targets[0]))


def names_set(cls: ClassValue) -> set[str]:
    """The names of the attributes that the methods of a class and its bases set on `self`."""
    return remembered_of(cls, "names set", _names_set)


def _names_set(cls: ClassValue) -> set[str]:
    texts = [one.node for one in cls.lineage() if isinstance(one, ClassValue) and one.node is not None]
    return {name for text in texts for name in set_on_self(text)}


def holds_only_parameters(value: Value) -> bool:
    """Whether an argument is a list of parameters, or something that can hold none."""
    if isinstance(value, Unknown):
        return value.is_setting or bool(value.hint)
    if isinstance(value, Seq):
        return all(isinstance(one, Tensor) and one.is_parameter for one in value.items)
    return isinstance(value, (Number, int, float, str, bool, type(None)))


def is_library_function(reason: str) -> bool:
    """Whether what is not known is the call of a library's function: `masked_mean(x, mask)`; classes and networks have other names."""
    last = reason.rpartition(".")[2]
    return reason.startswith("call of ") and "." in reason and last.islower() and not suggests(MODULE, last)
