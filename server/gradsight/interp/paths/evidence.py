"""Unknown values that the program treats as something: stand-ins for modules and optimizers, and graphs through unknown code.

*Stand-in*: a module (or an optimizer) of which nothing is known but that it is one.  A module's has one parameter for all it
may have, and returns what depends on it and on the tensors it was given.  *Premise*: what must hold for that, on whose path all is assumed.
*Graph of an unknown*: code that is not known returns a value that depends on the tensors it was given; whoever uses the
value, or an item or attribute of it, as a tensor has one with that graph.
"""

from __future__ import annotations

import ast
from typing import Any

from gradsight.interp.path_state import PathState
from gradsight.interp.paths.held_names import (
    called_modules,
    is_applied_by_class,
    is_applied_by_helper,
    is_module,
    key_outside,
    own_modules,
    text_that_binds,
    texts_of,
)
from gradsight.interp.paths.roles import (
    MODULE,
    ONLY_MODULES,
    OPTIMIZER,
    SCALER,
    SCHEDULER,
    belongs,
    deeds_of,
    is_follower_name,
    is_function_name,
    is_only_applied,
    key_of,
    optimizers_in_reach,
    role_of,
)
from gradsight.interp.paths.unknown_graphs import (
    UnknownGraphs,
)
from gradsight.model.events import PARAMETERS_OF
from gradsight.model.library_objects import Optimizer
from gradsight.model.name_hints import suggests
from gradsight.model.passed_cuts import cuts_of
from gradsight.model.tensors import Maybe, Saved, Tensor, leaves_of
from gradsight.model.trace import ModuleWrapped, StandInApplied
from gradsight.model.values import (
    Instance,
    Layer,
    Mapping,
    Module,
    Seq,
    Unknown,
    Value,
    module_state,
    tensors_in,
)

ONLY_TRAINED = {"zero_grad", "step"}
"""Methods of what is trained and of what trains: whoever calls them in a loop over several has other names for each."""


class Evidence(UnknownGraphs):
    """A machine that takes unknown values for what the program treats them as."""

    def __init__(self, path: PathState) -> None:
        super().__init__(path)
        self.stand_ins: dict[int, Any] = {}
        """Stand-ins by the identity of the unknown value; None where nothing is known about its role."""
        self.returned: set[int] = set()
        """What unknown modules have returned, whole: it is no leaf, and retains no gradient yet."""
        self.unknown_modules: list[tuple[str, Layer]] = []
        self.unknown_optimizers: list[tuple[str, Optimizer, Unknown]] = []
        self.in_coats: list[Value] = []
        """Modules that were wrapped: `wrapped.module` is the module."""
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
            return texts_of(frame.receiver.cls)
        return [text_that_binds(function, key)]

    def stand_in_for(self, value: Unknown, expression: ast.AST | None, method: str = "") -> Value:
        """What an unknown value is taken for, or None."""
        known = self.stand_ins.get(id(value))
        if isinstance(known, Optimizer) and not known.parameters():
            # A declared argument is an optimizer before the modules beside it have their names.
            self.link_optimizers()
        if known is not None or value.hint or value.tensor is not None:
            return known
        if value.graph is not None and not value.given:
            return None
        key = key_of(expression)
        role = role_of(key, self.scopes_of(key)) if key else ""
        if value.graph is not None:
            if role != OPTIMIZER:
                return None
            # What was given parameters and is stepped holds them: it was not computed from them.
            value.graph = None
        if not role and method in ONLY_MODULES:
            role = MODULE
        if not role and method in ONLY_TRAINED:
            key = key_outside(self.path.frame, value, key)
            role = role_of(key, self.scopes_of(key)) if key else ""
        if role == MODULE and self.is_told_otherwise(value):
            return None
        return self.make_stand_in(value, role, key or "it", expression) if role else None

    def is_told_otherwise(self, value: Unknown) -> bool:
        """Whether this path has found out that a value is no module: `elif isinstance(part, nn.Parameter): …`."""
        for question, answer in (value.answers or {}).items():
            if type(question) is tuple and question[0] == "isinstance" and isinstance(question[1], str):
                is_module = question[1].endswith("Module')")
                if is_module or question[1].endswith(("Parameter')", "Tensor')")):
                    if self.path.truth(answer) is not is_module and self.path.truth(answer) is not None:
                        return True
        return False

    def is_returned(self, value: Unknown) -> bool:
        """Whether it is what an unknown module has returned, and no part of it."""
        return id(value) in self.returned

    def known_stand_in(self, value: Value) -> Value:
        """What a value is taken for by now."""
        return self.stand_ins.get(id(value)) if type(value) is Unknown else None

    def make_stand_in(self, value: Unknown, role: str, key: str, node: ast.AST | None) -> Value:
        self.path.kept_alive.append(value)
        place = node if node is not None else self.path.node
        key = key_outside(self.path.frame, value, key)
        spoken = ast.unparse(node) if isinstance(node, ast.Subscript) else ""
        made: Value = None
        if role == MODULE:
            layer = made = self.unknown_module(key, place, spoken=spoken)
            layer.options["given"] = [one for one in value.given if not isinstance(one, Tensor)]
            for _, weight in self.nn.tensors_of(layer, "parameter") if value.frozen else ():
                self.autograd.set_requires_grad(weight, False, self.path.site(place))
            for question, answer in (value.answers or {}).items():
                if isinstance(question, tuple) and question[0] == "attr" and is_module(answer):
                    # `model.fc = nn.Linear(512, 10)`, before it was seen what `model` is.
                    self.nn.set_module_attribute(layer, question[1], answer, place)
                    layer.attributes[question[1]] = answer
            if value.part_of is not None:
                self.join_module(value.part_of, key, layer)
            self.unknown_modules.append((key, made))
        elif role == OPTIMIZER:
            optimizer = made = self.nn.make_optimizer(
                "torch.optim.Optimizer", [Seq("list", [], True)], {}, place
            )
            if value.given_at is not None:
                optimizer.site, optimizer.shows_all = value.given_at, True
            self.unknown_optimizers.append((key, optimizer, value))
        elif role == SCALER:
            made = self.nn.make_scaler("torch.amp.GradScaler", [], {}, place)
        elif role == SCHEDULER:
            made = self.nn.make_scheduler(
                "torch.optim.lr_scheduler.LRScheduler", [self.only_optimizer(key)], {}, place
            )
        self.stand_ins[id(value)] = made
        if role in (MODULE, OPTIMIZER):
            self.link_optimizers()
        return made

    def optimizer_given(self, value: Unknown, call: ast.AST) -> Value:
        """The optimizer that an unknown value is, where a call takes an optimizer first."""
        if value.hint or value.tensor is not None:
            return None
        known = self.stand_ins.get(id(value))
        if known is None:
            expression = call.args[0] if isinstance(call, ast.Call) and call.args else None
            value.graph = None
            known = self.make_stand_in(value, OPTIMIZER, key_of(expression) or "it", expression)
        return known

    def outlives(self, optimizer: Optimizer, started: int) -> bool:
        """Whether an optimizer was there before the call that began then: made earlier, or an attribute of the object."""
        if any(optimizer is one and key.startswith("self.") for key, one, _ in self.unknown_optimizers):
            return True
        return bool(optimizer.created <= started) and not any(
            optimizer is one for _, one, _ in self.unknown_optimizers
        )

    def attributes_with(self, optimizers: list[Optimizer], owner: Instance) -> dict[Optimizer, str]:
        """The names of the attributes in which an object holds these optimizers."""
        held = {name: self.stand_ins.get(id(value), value) for name, value in owner.attributes.items()}
        return {value: name for name, value in held.items() if value in optimizers}

    def unknown_module(self, key: str, node: ast.AST, is_part: bool = False, spoken: str = "") -> Layer:
        """`spoken` is how the program writes a member whose key is one name: `models["critic"]`."""
        site = self.path.site(node)
        layer = Layer(f"unknown.{key.rpartition('.')[2]}", {"stand in": key}, site)
        weight = Tensor(site, requires_grad=True)
        weight.is_parameter = weight.leaf_made = True
        weight.label = f"{spoken or key}{PARAMETERS_OF}"
        weight.attributes = {"<stand in>": True}
        layer.attributes["<parameters>"] = weight
        layer.module.registered["<parameters>"] = "parameter"
        layer.module.training = Unknown("mode of an unknown module", "bool")
        self.path.leaves.append(weight)
        if not is_part:
            self.path.premises.setdefault(f"`{spoken or key}` is a module with trainable parameters")
        return layer

    def join_module(self, parent: Module, key: str, child: Layer) -> None:
        """A part of a module that is met late: what the whole has returned so far depended on it, and who steps the whole steps it."""
        name = key.rpartition(".")[2]
        weight = child.attributes["<parameters>"]
        whole = {tensor for _, tensor in self.nn.tensors_of(parent, "parameter")}
        parent.attributes[name] = child
        module_state(parent).registered[name] = "module"
        if isinstance(parent, Layer):
            for node in parent.options.get("calls", ()):
                node.inputs.append(weight)
            return
        for optimizer in self.path.optimizers:
            members = next((group.items.get("params") for group in optimizer.groups()), None)
            if isinstance(members, Seq) and whole and whole <= set(optimizer.parameters()):
                members.items.append(weight)

    def stand_for_rest(self, module: Instance) -> None:
        """The parts of a module that was not made to its end, where none of its parameters is known."""
        if module.module is None or module.cls.has_unknown_base() or module.cls.kind != "module":
            return
        name = module.cls.name
        module.attributes["<rest>"] = self.unknown_module(name, self.path.node, is_part=True)
        module.module.registered["<rest>"] = "module"

    def link_optimizers(self) -> None:
        """Give every unknown optimizer the parameters of the modules that it can only be for, as far as they have been met."""
        for key, optimizer, value in self.unknown_optimizers:
            held = self.parameters_for(key, value)
            optimizer.doubtful = self.doubtful_among(held or [], value, key)
            listed = optimizer.param_groups
            if not isinstance(listed, Seq):
                continue
            listed.exact = held is not None
            if held is None:
                continue
            if not listed.items:
                listed.items.append(Mapping({"params": Seq("list", [])}, False))
            first = listed.items[0]
            members = first.items.get("params") if isinstance(first, Mapping) else None
            if isinstance(members, Seq):
                members.items.extend(one for one in held if not any(one is other for other in members.items))

    def parameters_for(self, key: str, value: Unknown) -> list[Tensor] | None:
        """The parameters of an unknown optimizer; None where several modules and optimizers cannot be told apart."""
        modules: list[Any] = [one for one in value.given if isinstance(one, (Layer, Instance))]
        direct = [one for one in value.given if isinstance(one, Tensor)]
        if value.part_of is not None:
            # `self.critic.optimizer`: what a module has for itself.
            modules.append(value.part_of)
        if not modules and not direct:
            optimizers = optimizers_in_reach(self.scopes_of(key), self.path.frame)
            if any(name == key and other is not value for name, _, other in self.unknown_optimizers):
                # One name for several optimizers: a helper that is given now this one and now that one.
                return None
            if len(optimizers) <= 1:
                followed = [layer for name, layer in self.unknown_modules if not is_follower_name(name)]
                owned = own_modules(self.path.frame, key)
                modules = followed or (
                    [one for name, one in owned if not is_follower_name(name)] or [one for _, one in owned]
                )
            else:
                alike = [(name, layer) for name, layer in self.unknown_modules if belongs(key, name)]
                # `q_optimizer` is for `q1` and `q2`, and not for the target that follows one of them.
                followed = [layer for name, layer in alike if not is_follower_name(name)]
                modules = followed or [layer for _, layer in alike]
                rivals = [name for name in optimizers if name != key]
                modules = modules or self.left_for(rivals)
                if not modules or any(
                    belongs(rival, name)
                    for rival in rivals
                    for name, layer in self.unknown_modules
                    if any(layer is one for one in modules)
                ):
                    return None
        named = [one for module in modules for one in self.nn.tensors_of(module, "parameter")]
        # A part that follows another one is moved by hand.
        return [*direct, *(tensor for name, tensor in named if not is_follower_name(name.rpartition(".")[0]))]

    def left_for(self, rivals: list[str]) -> list[Any]:
        """The one module that has no optimizer by its name, where every other optimizer has one."""
        named = [(name, layer) for name, layer in self.unknown_modules if not is_follower_name(name)]
        free = [layer for name, layer in named if not any(belongs(rival, name) for rival in rivals)]
        is_whole = all(any(belongs(rival, name) for name, _ in named) for rival in rivals)
        return free if is_whole and len(free) == 1 else []

    def doubtful_among(self, held: list[Tensor], value: Unknown, key: str) -> frozenset[Tensor]:
        """Parameters that an optimizer is given for want of another: those of modules that the text only applies.

        Of `def step(generator, critic, optimizer)` it may be for one of them. `critic.train()` tells that this one learns.
        """
        named = self.unknown_modules or own_modules(self.path.frame, key)
        if len(named) < 2 or value.given or value.part_of is not None:
            return frozenset()
        applied = [layer for name, layer in named if is_only_applied(name, self.scopes_of(name))]
        owned = {tensor for layer in applied for _, tensor in self.nn.tensors_of(layer, "parameter")}
        return frozenset(owned.intersection(held))

    def only_optimizer(self, key: str) -> Any:
        """The optimizer that a text steps beside a schedule, if there is one alone."""
        optimizers = optimizers_in_reach(self.scopes_of(key), self.path.frame)
        if len(optimizers) != 1:
            return None
        owner, _, name = optimizers[0].rpartition(".")
        receiver = self.path.frame.receiver
        if owner == "self" and isinstance(receiver, Instance):
            value = receiver.attributes.get(name)
        else:
            value = self.path.frame.namespace.get(name) if not owner else None
        if type(value) is Unknown:
            return self.stand_ins.get(id(value)) or self.make_stand_in(value, OPTIMIZER, optimizers[0], None)
        return value if isinstance(value, Optimizer) else None

    # -- stand-ins at work ---------------------------------------------------------------------------------------------

    def result_of_module(
        self, layer: Layer, args: list[Value], kwargs: dict[str, Value], node: ast.AST
    ) -> Unknown:
        """What an unknown module returns: it depends on the parameters and on what was given."""
        self.path.tick += 1
        result = Unknown(f"result of {layer.options['stand in']}")
        parameters = [
            tensor
            for module in [layer, *layer.options.get("given", ())]
            for _, tensor in self.nn.tensors_of(module, "parameter")
        ]
        self.path.tell(StandInApplied(parameters))
        self.give_graph(result, [*parameters, *self.graphs_in(args, kwargs)], layer.name, node, "")
        self.open_to_parts(result, args, kwargs)
        result.cuts = result.cuts.union(*map(cuts_of, [*args, *kwargs.values()]))
        if result.graph is not None:
            layer.options.setdefault("calls", []).append(result.graph)
            result.graph.holds = "layers"
            self.returned.add(id(result))
            self.path.kept_alive.append(result)
            # Every layer behind the first keeps its weights: the gradient goes on through them.
            result.graph.saved += [
                Saved(tensor, "input", certain=True) for tensor in parameters if tensor.requires_grad is True
            ]
        elif all(tensor.requires_grad is False for tensor in parameters):
            # Nothing in it learns: what it makes of values without a graph has none.
            result.plain = self.are_all_plain([*args, *kwargs.values()])
        if not self.path.grad_mode:
            self.path.last_inference = self.path.tick
        return result

    def works_on_data(self, values: list[Value], node: ast.AST) -> bool:
        """Whether a method is given data: a tensor, what a loader yields, or what is given to a model elsewhere in the text."""
        if any(
            isinstance(one, Tensor) or (type(one) is Unknown and (one.plain or one.graph)) for one in values
        ):
            return True
        function = self.path.frame.function
        given = node.args if isinstance(node, ast.Call) else []
        models = {key.rpartition(".")[2] for key, _ in self.unknown_modules}
        return function is not None and any(
            not models.isdisjoint(deeds_of(function.node).arguments.get(key_of(one), ())) for one in given
        )

    def is_applied(self, owner: Instance, name: str, value: Unknown) -> bool:
        """Whether a class calls an attribute of its own that is not known: it is a layer, unless its name alone speaks, and says function."""
        if value.hint or value.graph is not None or value.tensor is not None:
            return False
        key = f"self.{name}"
        texts = texts_of(owner.cls)
        is_module = isinstance(self.stand_ins.get(id(value)), Layer) or role_of(key, texts) == MODULE
        if is_function_name(name) and not is_module:
            return False
        return is_applied_by_class(owner.cls, name) or any(
            is_applied_by_helper(self.language.load_name, key, one) for one in texts
        )

    def filled_in_elsewhere(
        self, owner: Instance, name: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST
    ) -> Value:
        """What a method of another class makes: it may use all modules of its object, and leaves their gradients."""
        result = self.nn.unknown_result(f"method {name}, which other classes fill in", args, kwargs, node)
        if type(result) is Unknown and result.graph is None:
            held = [self.stand_ins.get(id(one), one) for one in (*owner.attributes.values(), owner)]
            if not any(map(is_module, held)) and self.trains_in_view():
                held = [self.make_stand_in(one, MODULE, key, node) for key, one in called_modules(owner)]
            modules = [one for one in held if is_module(one)]
            result.given, result.plain = (*result.given, *modules), result.plain and not modules
            if modules and not self.path.grad_mode:
                # With what it has of modules it computes something that is not recorded.
                self.prove_graph(result, node)
        return result

    def applied_modules(self, function: Unknown, args: list[Value]) -> list[Module]:
        """The modules that are applied where something unknown is called: that which it is a part of, or those it was made of.

        `both = joined(generator, discriminator)`, and then `both(noise)`, in a text that calls backward.
        """
        if function.part_of is not None:
            return [function.part_of]
        modules = [one for one in function.given if isinstance(one, (Layer, Instance))]
        if not modules or len(modules) != len(function.given) or not args or not self.trains_in_view():
            return []
        return modules

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

    def prove_differentiated(self, loss: Unknown, node: ast.AST) -> None:
        """`loss.backward()`: what code with modules made is differentiated, so that it had them to compute it."""
        self.prove_graph(loss, node)
        if loss.graph is not None:
            self.nn.was_applied(leaves_of([loss.graph]))

    def is_graph_assumed(self, tensor: Tensor) -> bool:
        """Whether only an assumption about an argument, or about a module that nothing in view trains, gives a tensor its graph."""
        flag, edge = tensor.needs_grad(), tensor.edge()
        if isinstance(flag, Maybe):
            return self.path.assuming and not flag.weak
        if flag is False or edge is None or self.trains_in_view():
            return False
        leaves = leaves_of([edge])
        return bool(leaves) and all((leaf.attributes or {}).get("<stand in>") for leaf in leaves)

    def trains_in_view(self) -> bool:
        """Whether the script, or a function that is running, differentiates or steps."""
        frame: Any = self.path.frame
        while frame is not None:
            scopes = self.script_scope if frame.function is None else [frame.function.node]
            if any(deeds_of(scope).text_has & {"backward", "zero_grad"} for scope in scopes):
                return True
            frame = frame.call_site.frame if frame.call_site is not None else None
        return False

    # -- graphs --------------------------------------------------------------------------------------------------------

    def unwrapped(self, module: Module, callee: str, args: list[Value], node: ast.AST | None) -> Value:
        """A module in a coat is the module; `data_parallel(module, inputs)` applies it at once."""
        if callee.endswith("data_parallel") and len(args) > 1:
            return self.language.call(module, args[1:2], {}, node if node is not None else self.path.node)
        self.in_coats.append(module)
        self.path.tell(ModuleWrapped(module, callee, self.path.site(node)))
        return module

    def meet_applied(self, args: list[Value], node: ast.AST | None) -> None:
        """What torch's `data_parallel` is given first is a module, whatever else it is not known to be."""
        if args and type(args[0]) is Unknown and args[0].tensor is None and id(args[0]) not in self.stand_ins:
            first = node.args[0] if isinstance(node, ast.Call) and node.args else None
            self.make_stand_in(args[0], MODULE, key_of(first) or "it", first)

    def meet_scalers(self, args: list[Value], node: ast.AST) -> None:
        """`backward(loss, scaler)`: what the text here treats as a scaler is one in the function that it is given to."""
        given = node.args if isinstance(node, ast.Call) and len(args) >= len(node.args) else []
        for expression, value in zip(given, args[len(args) - len(given) :]):
            if type(value) is not Unknown or value.hint:
                continue
            key = key_of(expression)
            if key and role_of(key, self.scopes_of(key)) == SCALER:
                self.stand_in_for(value, expression)

    def meet_arguments(self, args: list[Value], kwargs: dict[str, Value], node: ast.AST | None) -> None:
        """Unknown code gets unknown values: those with a role are in its hands from here on.

        The arguments of a method may begin with its object, which no expression stands for.
        """
        if not isinstance(node, ast.Call) or len(args) < len(node.args):
            return
        for expression, value in zip(node.args, args[len(args) - len(node.args) :]):
            if type(value) is Unknown and isinstance(expression, (ast.Name, ast.Attribute)):
                self.stand_in_for(value, expression)

    def optimizer_among(self, values: list[Value]) -> Optimizer | None:
        found = [self.stand_ins.get(id(value)) if type(value) is Unknown else value for value in values]
        return next((one for one in found if isinstance(one, Optimizer)), None)

    def optimizer_handed(
        self, call: ast.AST, args: list[Value], kwargs: dict[str, Value]
    ) -> Optimizer | None:
        """The optimizer that a call hands over behind a first argument."""
        if not isinstance(call, ast.Call):
            return None
        named = [(keyword.value, kwargs.get(keyword.arg)) for keyword in call.keywords if keyword.arg]
        given: list[tuple[ast.expr, Value]] = [*list(zip(call.args, args))[1:], *named] if args else []
        for expression, value in given:
            if isinstance(value, Optimizer):
                return value
            if type(value) is Unknown and suggests("optimizer", key_of(expression)):
                known = self.stand_ins.get(id(value)) or self.make_stand_in(
                    value, OPTIMIZER, key_of(expression), expression
                )
                if isinstance(known, Optimizer):
                    return known
        return None

    def parameters_given(self, values: list[Value]) -> list[Value]:
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
