"""What unknown functions and methods of libraries are, by what they are called with and how."""

from __future__ import annotations

import ast

from gradsight.interp.libraries.transforms import Transforms
from gradsight.interp.paths.callers_ways import brings_graph, is_only_source, makes_loss
from gradsight.interp.paths.roles import (
    MODULE,
    OF_LEAVES,
    is_source_name,
    key_of,
    what_is_applied,
)
from gradsight.interp.paths.settings_defaults import default_in, names_of_settings
from gradsight.interp.paths.unknown_graphs import DESCRIBING, may_be_one, spoken_callee
from gradsight.interp.syntax import names_read
from gradsight.model.name_hints import suggests
from gradsight.model.read_numbers import ReadNumber, read_by
from gradsight.model.tensors import Cut, Maybe, Node, Tensor
from gradsight.model.values import (
    Array,
    Bound,
    ClassValue,
    Function,
    Instance,
    Layer,
    Method,
    Number,
    Partial,
    Seq,
    Unknown,
    Value,
)

AT_WORK: dict[str, Value] = {"p": 0.5, "training": True}
"""Options with which a dropout writes zeros."""


OF_ARRAYS = {"astype", "getA1", "toarray", "tocoo", "tocsc", "tocsr", "todense", "tolil"}
"""Methods of arrays and of sparse matrices that no tensor has: what they return is of their kind."""
OF_CONTAINERS = {"copy", "get", "items", "pop", "to_tuple", "values"}
"""Methods that give what a container holds: the losses that a detector returns by their names, the fields of an output."""
READING = {"get", "items", "keys", "values"}
"""Methods of a mapping that leave it as it is."""
OF_DISTRIBUTIONS = {"log_prob", "rsample", "entropy"}
"""Methods of a distribution that can be differentiated by what it was made of; no tensor has them."""


class EvidenceLibraries(Transforms):
    """What Evidence adds to libraries."""

    def copy_deep(self, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> Value:
        if args and type(args[0]) is Unknown and isinstance(node, ast.Call) and node.args:
            self.entry.stand_in_for(args[0], node.args[0])
        return super().copy_deep(args, kwargs, node)

    def deep_copy(self, value: Value, node: ast.AST, memo: dict[int, Value]) -> Value:
        if type(value) is not Unknown or value.hint or id(value) in memo or value.tensor or value.graph:
            return super().deep_copy(value, node, memo)
        stand_in = self.entry.stand_in_for(value, None)
        copy: Value
        if isinstance(stand_in, Layer):
            copy = super().deep_copy(stand_in, node, memo)
            if isinstance(copy, Layer):
                copy.options = {"stand in": stand_in.options["stand in"]}
        else:
            # Whatever it is: what is done to the copy is not done to it.
            copy = unknown = Unknown("copy of an unknown value")
            unknown.carries, unknown.plain, unknown.cuts = value.carries, value.plain, value.cuts
        memo[id(value)] = copy
        return copy

    def call_torch(self, path: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> Value:
        if kwargs.get("inplace") is True and "dropout" in path:
            kwargs = self.dropout_in_place(args, kwargs)
        result = super().call_torch(path, args, kwargs, node)
        if "dropout" in path and isinstance(result, Tensor) and not surely_drops(args, kwargs):
            # With a probability of 0, or outside training, the result is what was given, which others may have saved.
            may_be_one(result, args)
        return result

    def dropout_in_place(self, args: list[Value], kwargs: dict[str, Value]) -> dict[str, Value]:
        """With a probability of 0 and outside training nothing is written.

        Where what a forward computes is taken to be trained, it is asked to drop something.
        """
        doubts = dropout_doubts(args, kwargs)
        if not doubts:
            return kwargs
        if not self.path.assuming or len(args) > 1 or self.is_off_by_default(kwargs.get("p")):
            return {**kwargs, "inplace": False}
        self.path.premises.setdefault("dropout is at work: the module trains, and its probability is above 0")
        return {**kwargs, **{name: AT_WORK[name] for name in doubts}}

    def is_off_by_default(self, setting: Value) -> bool:
        """Whether a number was read from the settings of the model, whose class says 0."""
        name = self.path.setting_names.get(setting) if isinstance(setting, Unknown) else None
        if not name:
            return False
        classes = [self.language.evaluate(one) for one in names_of_settings(self.path.frame.scope)]
        return {default_in(one, name) for one in classes if isinstance(one, ClassValue)} - {None} == {0}

    def call_unknown(
        self, function: Unknown, args: list[Value], kwargs: dict[str, Value], node: ast.AST
    ) -> Value:
        called = node.func if isinstance(node, ast.Call) else None
        applied = what_is_applied(called) if called is not None else None
        stand_in = self.entry.stand_in_for(function, applied)
        if stand_in is None and self.is_maker_for_caller(function, key_of(applied)):
            stand_in = self.entry.make_stand_in(function, MODULE, key_of(applied), applied)
        if isinstance(stand_in, Layer):
            return self.nn.call_layer(stand_in, args, kwargs, node)
        result = super().call_unknown(function, args, kwargs, node)
        if not isinstance(result, Unknown):
            return result
        if not result.given:
            result.given = function.given
        made_of = self.entry.applied_modules(function, args)
        if made_of and result.graph is None:
            parameters = [
                tensor for module in made_of for _, tensor in self.nn.tensors_of(module, "parameter")
            ]
            callee = spoken_callee(node)
            premise = (
                ""
                if function.part_of is not None
                else f"what `{callee}` returns depends on the modules that it has"
            )
            self.entry.give_graph(
                result, [*parameters, *self.entry.graphs_in(args, kwargs)], callee, node, premise
            )
            self.entry.open_to_parts(result, args, kwargs)
        return result

    def is_maker_for_caller(self, function: Unknown, key: str) -> bool:
        """Whether what is called can only be the module that a caller's loss has its graph from."""
        return is_open(function) and bool(key) and brings_graph(self.path, key)

    def stand_in_asked(
        self, receiver: Unknown, name: str, args: list[Value], kwargs: dict[str, Value], call: ast.AST
    ) -> Value:
        """What an unknown value is taken for of which a method is called."""
        expression = getattr(getattr(call, "func", None), "value", None)
        known = self.entry.stand_in_for(receiver, expression, name)
        key = key_of(expression)
        if known is None and key and self.is_asked_for_loss(receiver, name, key, call):
            self.entry.meet_arguments(args, kwargs, call)
            if not self.entry.parameters_given([*args, *kwargs.values()]):
                return self.entry.make_stand_in(receiver, MODULE, key, expression)
        return known

    def is_asked_for_loss(self, receiver: Unknown, name: str, key: str, call: ast.AST) -> bool:
        """Whether a method of it makes what is differentiated, so that it is the module, or has it."""
        if not (receiver.is_outside and is_open(receiver)) or suggests("loss", key) or is_source_name(key):
            return False
        if self.path.table.find(f"Tensor.{name}") is not None:
            return False
        return makes_loss(self.path, key, call) or is_only_source(self.path, key, call)

    def number_of(self, value: Unknown, node: ast.AST) -> Number:
        """`value.item()`: a number, which leaves behind the graph that code with modules may have made."""
        seen = Unknown(value.reason)
        seen.given, seen.cuts = value.given, value.cuts
        self.entry.prove_graph(seen, node)
        tensor = self.entry.as_graph_tensor(seen)
        if tensor is None or tensor.needs_grad() is not True:
            source = Tensor(self.path.site(node), requires_grad=Maybe("the value has a graph", weak=True))
            return ReadNumber(value.cuts, Cut("number", "item", self.path.site(node), source, self.path.tick))
        return Number(value.cuts | {Cut("number", "item", self.path.site(node), tensor, self.path.tick)})

    def differentiates(
        self, receiver: Unknown, args: list[Value], kwargs: dict[str, Value], node: ast.AST
    ) -> bool:
        """`loss.backward()`, `engine.backward(loss)`: goes through the graph, if there is one or a cut shows that there is none."""
        if not args and (named := [one for name, one in kwargs.items() if suggests("loss", name)]):
            # `booster.backward(loss=loss, optimizer=optimizer)`.
            args = named[:1]
        if receiver.graph is None and not args:
            self.entry.prove_differentiated(receiver, node)
        if receiver.graph is not None:
            self.autograd.backward_call(self.entry.tensor_of(receiver), args, kwargs, node)
            return True
        if receiver.plain and receiver.cuts and (tensor := self.entry.assumed_tensor(receiver)) is not None:
            self.autograd.backward_call(tensor, args, kwargs, node)
            return True
        if speaks_of_receiver(node):
            # `loss.backward(torch.ones_like(loss))`: what it is given is made from it, and is the gradient.
            self.entry.prove_differentiated(receiver, node)
            return False
        loss = self.entry.as_graph_tensor(args[0]) if args else None
        if loss is None and args and is_loss_given(node):
            loss = self.without_graph(args[0], node)
        if loss is not None and loss.needs_grad() is not True and any(map(was_differentiated, loss.cuts)):
            # Its own backward has been called: what is handed on is for show.
            return False
        if loss is not None and (loss.needs_grad() is True or (loss.cuts and is_loss_given(node))):
            # Whatever else it does, it differentiates what it is given.
            self.autograd.backward_call(loss, [], {}, node)
            return True
        return False

    def without_graph(self, value: Value, node: ast.AST) -> Tensor | None:
        """A number, or a value that was cut off, as the tensor without a graph that nothing can be differentiated by."""
        if isinstance(value, (Number, Array)) and (value.cuts or isinstance(value, ReadNumber)):
            plain = Tensor(self.path.site(node), shape=())
            callee = spoken_callee(node)
            self.path.premises.setdefault(f"`{callee}` differentiates what it is given")
            proved = any(cut.source.needs_grad() is True for cut in value.cuts)
            plain.cuts = value.cuts if proved else read_by(value) or value.cuts
            return plain
        if type(value) is Unknown and value.plain and value.cuts:
            return self.entry.assumed_tensor(value)
        return None

    def detached(self, value: Unknown, node: ast.AST) -> Unknown:
        """`value.detach()`: whoever has such a method gives values without a graph; that of modules is left behind."""
        seen = Unknown(value.reason)
        seen.given, seen.cuts = value.given, value.cuts
        self.entry.prove_graph(seen, node)
        source = self.entry.as_graph_tensor(seen)
        if source is None or source.needs_grad() is not True:
            source = Tensor(self.path.site(node), requires_grad=Maybe("the value has a graph", weak=True))
            source.node = Node("unknown", source.site, [], source.requires_grad, self.path.tick)
        result = Unknown("a value without its graph")
        result.plain = True
        result.cuts = value.cuts | {Cut("detach", "detach", self.path.site(node), source, self.path.tick)}
        return result

    def shows_tensor(self, receiver: Unknown, name: str) -> bool:
        """Whether a method tells what tensor it is called on."""
        if name == "requires_grad_" and receiver.plain:
            # Data of a loader that is to be differentiated: a leaf.
            self.entry.assumed_tensor(receiver)
            return True
        if name == "retain_grad" and self.entry.is_returned(receiver):
            self.entry.tensor_of(receiver)
            return True
        return False

    def unknown_method(
        self, receiver: Unknown, name: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST
    ) -> Value:
        if name not in READING:
            receiver.hand_over()
        if not self.shows_tensor(receiver, name) and (receiver.tensor is None or name in OF_LEAVES):
            stand_in = self.stand_in_asked(receiver, name, args, kwargs, node)
            if stand_in is not None:
                return self.objects.call_method(stand_in, name, args, kwargs, node)
            if receiver.graph is not None and name in OF_LEAVES:
                return receiver if name.endswith("_") else Unknown(f"{name} of a value of unknown code")
        if name == "forward" and (args or kwargs) and type(receiver) is Unknown and receiver.tensor is None:
            # `self.encoder.forward(x)` applies it, as `self.encoder(x)` does.
            return self.call_unknown(receiver, args, kwargs, node)
        if not args and receiver.tensor is None and receiver.graph is None:
            if name == "item":
                return self.number_of(receiver, node)
            if name == "detach" and type(receiver) is Unknown and not (receiver.plain or receiver.hint):
                return self.detached(receiver, node)
        if (
            name == "backward"
            and receiver.tensor is None
            and self.differentiates(receiver, args, kwargs, node)
        ):
            return None
        result = super().unknown_method(receiver, name, args, kwargs, node)
        if type(result) is Unknown:
            result.given = result.given or receiver.given
            # `model.requires_grad_(False).to(device)`: what comes out is the frozen model still.
            result.frozen = args[:1] == [False] if name == "requires_grad_" else receiver.frozen
        if (
            name in OF_CONTAINERS
            and type(result) is Unknown
            and result.graph is None
            and (receiver.graph is not None or (receiver.plain and receiver.cuts))
        ):
            return held_by(receiver, name, args)
        if name in OF_DISTRIBUTIONS and type(result) is Unknown and result.graph is None:
            tensors = self.entry.graphs_in([receiver, *args], kwargs)
            callee = spoken_callee(node)
            self.entry.give_graph(result, tensors, name, node, f"`{callee}` is that of a distribution")
            if result.graph is not None:
                result.graph.holds = "always"
        elif type(result) is Unknown and result is not receiver:
            if name in DESCRIBING:
                result.graph, result.carries, result.plain = None, False, False
            elif name in OF_ARRAYS and not result.hint:
                result.hint = "array"
        if type(result) is Unknown and result is not receiver and result.graph is None and not result.cuts:
            key = key_of(getattr(getattr(node, "func", None), "value", None))
            given = [*args, *kwargs.values()]
            if name not in DESCRIBING and (receiver.plain or (key and is_source_name(key))):
                # `env.run(agent, steps=1)`: who is given what computes may hand back what that computed.
                result.carries = result.carries or any(map(computes, given))
                result.plain = not (result.hint or result.given or result.carries or receiver.carries)
        return result


def computes(value: Value) -> bool:
    """Whether a value is code of the program, or a module, that whoever has it may call."""
    return isinstance(value, (Bound, Function, Method, Partial)) or (
        isinstance(value, (Instance, Layer)) and value.module is not None
    )


def is_open(value: Unknown) -> bool:
    """Whether nothing is known yet of what a value is."""
    return not (value.hint or value.plain or value.given) and value.tensor is None and value.graph is None


def was_differentiated(cut: Cut) -> bool:
    """Whether a backward went through what was cut off."""
    return cut.source.node is not None and cut.source.node.freed is not None


def speaks_of_receiver(call: ast.AST) -> bool:
    """Whether the first argument of a method is computed from what the method is called on."""
    if not isinstance(call, ast.Call) or not call.args or not isinstance(call.func, ast.Attribute):
        return False
    owner = call.func.value
    return isinstance(owner, ast.Name) and owner.id in names_read(call.args[0])


def is_loss_given(call: ast.AST) -> bool:
    """`strategy.backward(loss, model)`: the first argument, or one that is given by name, is spoken of as a loss."""
    if isinstance(call, ast.Call) and any(suggests("loss", one.arg or "") for one in call.keywords):
        return True
    first = call.args[0] if isinstance(call, ast.Call) and call.args else None
    while isinstance(first, (ast.Call, ast.Attribute)):
        first = first.func if isinstance(first, ast.Call) else first.value
    return isinstance(first, ast.Name) and suggests("loss", first.id)


def held_by(container: Unknown, method: str, args: list[Value]) -> Value:
    """What a method of an unknown container gives: whatever it holds depends on what it was computed from; its keys do not."""
    if method != "items":
        asked = [one for one in args[:1] if isinstance(one, (str, int))]
        return container.derived(("of", method, *asked), f"what {method} of an unknown value gives")
    values = [container.derived(("item", index), "value of an unknown dict") for index in range(2)]
    return Seq(
        "list", [Seq("tuple", [Unknown("key of an unknown dict", "text"), one]) for one in values], False
    )


def surely_drops(args: list[Value], kwargs: dict[str, Value]) -> bool:
    """Whether a dropout is known to make a tensor of its own."""
    given = AT_WORK | dict(zip(AT_WORK, args[1:])) | kwargs
    probability = given["p"]
    return given["training"] is True and isinstance(probability, (int, float)) and probability > 0


def dropout_doubts(args: list[Value], kwargs: dict[str, Value]) -> list[str]:
    """The options that decide whether a dropout drops anything, as far as they are not known."""
    given = dict(zip(AT_WORK, args[1:])) | kwargs
    if given.get("p") == 0 or given.get("training") is False:
        return []
    return [name for name in AT_WORK if isinstance(given.get(name), (Unknown, Number))]
