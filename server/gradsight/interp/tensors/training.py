"""Optimizers, schedulers, scalers, and the protocol of a training loop."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from gradsight.interp.path_state import PathState
from gradsight.interp.syntax import asks_for_membership, clears_or_sets_gradients, names_read, reads_data
from gradsight.interp.tensors.modes import Modes
from gradsight.model.library_objects import GradientScaler, Optimizer, Scheduler
from gradsight.model.passed_cuts import cuts_of
from gradsight.model.sites import Site, Syntax
from gradsight.model.tensors import Tensor
from gradsight.model.trace import (
    Backward,
    BackwardRun,
    GaveUp,
    HandedOut,
    NonLeafOptimized,
    OptimizerRefused,
    Scaled,
    ScalerStepping,
    Stepped,
    Stepping,
)
from gradsight.model.unlisted import owners_of_rest
from gradsight.model.values import (
    Bound,
    ClassValue,
    External,
    Function,
    Instance,
    Layer,
    Mapping,
    Method,
    Module,
    Number,
    Opaque,
    Seq,
    Stream,
    Unknown,
    Value,
    tensors_in,
)

OWN_METHODS = frozenset({"step", "state_dict", "load_state_dict", "add_param_group"})
"""What an optimizer class of a program may have, if it is to be taken for one of torch's."""
STEP_HOOKS = {"register_step_pre_hook": "pre_hooks", "register_step_post_hook": "post_hooks"}


class Action:
    """One step of the training protocol: `backward`, `step`, `zero`, `scheduler`, `unscale`, `clip`, `eval`, `train`.

    `differentiate` is the backward of a loss that is an argument: whose gradients it fills, its caller knows.
    """

    __slots__ = ("leaves", "loops", "site", "subject", "tick", "verb")

    def __init__(
        self, verb: str, subject: Value | BackwardRun, site: Site, tick: int, leaves: Collection[Value] = ()
    ) -> None:
        self.verb = verb
        self.subject = subject
        self.site = site
        self.tick = tick
        self.leaves = leaves
        self.loops = site.loops


class Training(Modes):
    """What an optimizer does to its parameters."""

    def __init__(self, path: PathState) -> None:
        super().__init__(path)
        self.escapes: list[tuple[int, set[int]]] = []
        self.applied: set[int] = set()
        """Which of these were calls that computed what was differentiated then."""
        """When code that is not known was given something, and what it can reach through that."""

    # -- optimizers --------------------------------------------------------------------------------------------------

    def make_optimizer(
        self, path: str, args: list[Value], kwargs: dict[str, Value], node: Syntax
    ) -> Optimizer:
        site = self.path.site(node)
        self.path.tick += 1
        source = args[0] if args else kwargs.get("params")
        is_spent = isinstance(source, (Seq, Stream)) and source.spent is not None
        if isinstance(source, (Seq, Stream)) and is_spent:
            self.objects.iterator_used_up(source, node, refused=True)
        owners = owners_of_groups(source)
        groups, exact = self.parameter_groups(source)
        options = options_of_groups(source, len(groups))
        made: list[Value] = [group_of(members, own) for members, own in zip(groups, options)]
        optimizer = Optimizer(path, site, Seq("list", made, exact))
        optimizer.rest_of = () if exact else owners
        optimizer.options = dict(kwargs)
        optimizer.fused = kwargs.get("fused") is True
        optimizer.closure_calls = closure_calls(path, args, kwargs)
        optimizer.created = self.path.tick
        self.path.optimizers.append(optimizer)
        self.check_groups(groups, exact and not is_spent, site)
        for tensor in optimizer.parameters():
            if not tensor.is_leaf and tensor.needs_grad() is True:
                self.path.refuse(NonLeafOptimized(tensor, site))
        return optimizer

    def own_optimizer(
        self, cls: ClassValue, args: list[Value], kwargs: dict[str, Value], node: Syntax
    ) -> Value:
        """An object of an optimizer class of the program: it steps what it was given, where that is all its methods are for."""
        is_schedule = any(isinstance(one, External) and "scheduler" in one.path for one in cls.lineage())
        for value in () if is_schedule else [*args, *kwargs.values()]:
            if isinstance(value, Optimizer):
                # A wrapper steps the one that it was given, in whichever of its methods; a schedule steps none.
                value.escaped = True
        classes = [one for one in cls.lineage() if isinstance(one, ClassValue)]
        methods = {name: value for one in classes for name, value in one.namespace.items()}
        is_plain = not is_schedule and all(
            (name.startswith("_") or name in OWN_METHODS)
            and not (isinstance(value, Function) and clears_or_sets_gradients(value.node))
            for name, value in methods.items()
        )
        if not is_plain:
            return self.path.gap("optimizer class of the analysed code", node)
        made = self.make_optimizer(
            f"torch.optim.{cls.name}", args[:1], {"params": kwargs.get("params")}, node
        )
        # torch does not notice what is written through `.data`.
        made.fused = any(isinstance(value, Function) and reads_data(value.node) for value in methods.values())
        return made

    def check_groups(self, groups: list[list[Tensor]], exact: bool, site: Site) -> None:
        """torch wants one group at least, and no tensor in two of them; a group without members is none of its concern.

        Where anything on the path was not understood, a module may have more than was seen.  A tensor that stands for
        all parameters of a module that is not known may be in several: each has others of them.  So may any where names
        or a generator select the members and a path has supposed which those are.
        """
        if not groups and exact and not self.path.gaps:
            self.path.refuse(OptimizerRefused(site, "empty"))
        seen: set[Tensor] = set()
        for group in groups:
            twice = next(
                (one for one in group if one in seen and "<stand in>" not in (one.attributes or {})), None
            )
            if twice is not None:
                if exact and not any(
                    one.picks or asks_for_membership(one.node) for one in self.path.decisions
                ):
                    self.path.refuse(OptimizerRefused(site, "twice", twice))
                return
            seen.update(group)

    def parameter_groups(self, source: Value) -> tuple[list[list[Tensor]], bool]:
        if isinstance(source, Tensor):
            return [[source]], True
        if isinstance(source, Unknown):
            # `groups_of(model, decay)`: parameters of what the code that made the groups was given.
            modules = [one for one in source.given if isinstance(one, (Instance, Layer))]
            found = [tensor for one in modules for _, tensor in self.tensors_of(one, "parameter")]
            found += [one for one in source.given if isinstance(one, Tensor) and one.is_leaf]
            return ([found] if found else []), False
        if source is None:
            return [], False
        items, exact = self.all_of(source)
        groups: list[list[Tensor]] = []
        plain: list[Tensor] = []
        for item in items:
            if isinstance(item, Mapping):
                inner = item.items.get("params")
                if isinstance(inner, Tensor):
                    groups.append([inner])
                elif inner is None or isinstance(inner, Unknown):
                    exact = False
                else:
                    members, complete = self.all_of(inner)
                    # torch makes a list of what it was given, in the dict itself.
                    item.items["params"] = Seq("list", list(members), complete)
                    exact = exact and complete
                    groups.append([m for m in members if isinstance(m, Tensor)])
            elif isinstance(item, Tensor):
                plain.append(item)
            elif isinstance(item, Seq):
                plain.extend(tensors_in(item))
            else:
                exact = False
        if plain:
            groups.insert(0, plain)
        return groups, exact

    def all_of(self, listed: Value) -> tuple[list[Value], bool]:
        """The items of a list and whether they are all: not if a loop that was left early would have put more into it."""
        items, complete = self.objects.collect(listed)
        return items, complete and not (isinstance(listed, Seq) and listed.partial)

    def is_lent(self, optimizer: Optimizer) -> bool:
        """Whether the optimizer belongs to a module of which this entry works on a copy."""
        return self.path.isolated and not any(optimizer is own for own in self.path.optimizers)

    def optimizer_method(
        self, optimizer: Optimizer, name: str, args: list[Value], kwargs: dict[str, Value], node: Syntax
    ) -> Value:
        site = self.path.site(node)
        if name == "zero_grad":
            keep = kwargs.get("set_to_none", args[0] if args else True) is False
            self.clear_gradients(optimizer.parameters(), keep, site)
            self.act("zero", optimizer, site)
            return None
        if name == "step" and (len(args) > 1 or kwargs.keys() - {"closure"}):
            # Those of torch take a closure and nothing else: what takes data or gradients may differentiate, clear and step by itself.
            optimizer.escaped = True
            return self.path.gap("step of an optimizer of the program's own", node)
        if name == "step":
            self.run_step_hooks(optimizer, optimizer.pre_hooks, args, kwargs, node)
            closure = args[0] if args else kwargs.get("closure")
            result = None
            if isinstance(closure, (Function, Method)):
                # A step switches grad mode on for its closure, and off again.
                mode, self.path.grad_mode = self.path.grad_mode, True
                try:
                    for _ in range(optimizer.closure_calls):
                        result = self.language.call(closure, [], {}, node)
                        self.step_parameters(optimizer, site)
                finally:
                    self.path.grad_mode = mode
            else:
                self.step_parameters(optimizer, site)
            self.act("step", optimizer, site)
            self.run_step_hooks(optimizer, optimizer.post_hooks, args, kwargs, node)
            return result
        if name == "add_param_group":
            # Groups that follow the making are a part of it; who adds one between steps adds others later.
            optimizer.extended = optimizer.extended or optimizer.stepped > 0
        if name == "add_param_group" and args and isinstance(args[0], Mapping):
            groups, exact = self.parameter_groups(Seq("list", [args[0]]))
            listed = self.optimizer_attribute(optimizer, "param_groups")
            if isinstance(listed, Seq):
                listed.items.extend(group_of(members, options_of(args[0])) for members in groups)
                listed.exact = listed.exact and exact
            return None
        if name in ("state_dict", "load_state_dict"):
            return Mapping({}, False)
        if name in STEP_HOOKS and args:
            return self.module_hooked(getattr(optimizer, STEP_HOOKS[name]), args[0], kwargs, node)
        if name.startswith("register_"):
            return Unknown("handle of a hook")
        return Unknown(f"{name} of an optimizer")

    def run_step_hooks(
        self,
        optimizer: Optimizer,
        hooks: list[Value],
        args: list[Value],
        kwargs: dict[str, Value],
        node: Syntax,
    ) -> None:
        """A hook is given the optimizer and the arguments of the step."""
        for hook in list(hooks):
            self.language.call(hook, [optimizer, Seq("tuple", list(args)), Mapping(dict(kwargs))], {}, node)

    def step_parameters(self, optimizer: Optimizer, site: Site) -> None:
        self.path.tell(Stepping(optimizer, site))
        self.move_parameters(optimizer, site)
        self.path.tell(Stepped(optimizer, site))

    def move_parameters(self, optimizer: Optimizer, site: Site) -> None:
        """Every parameter that has a gradient is written; fused optimizers do not bump the version."""
        self.path.tick += 1
        optimizer.stepped += 1
        optimizer.was_held.update(optimizer.parameters())
        fused = optimizer.fused
        for tensor in optimizer.parameters():
            if tensor.grad is not None and not isinstance(tensor.grad, Unknown):
                self.autograd.write_tensor(
                    tensor,
                    "optimizer step",
                    site,
                    [],
                    False,
                    mode="silent" if fused else "optimizer",
                    bumps=not fused,
                )

    def optimizer_attribute(self, optimizer: Optimizer, name: str) -> Value:
        if name == "param_groups":
            groups = optimizer.param_groups
            if self.is_lent(optimizer) and isinstance(groups, Seq):
                return Seq(
                    "list",
                    [Mapping(dict(group.items), False) for group in optimizer.groups()],
                    groups.exact,
                )
            return groups
        if name in ("state", "defaults"):
            return Unknown(f"{name} of an optimizer")
        return Bound(optimizer, name)

    # -- the protocol ------------------------------------------------------------------------------------------------

    def act(
        self, verb: str, subject: Value | BackwardRun, site: Site, leaves: Collection[Value] = ()
    ) -> None:
        self.path.log.append(Action(verb, subject, site, self.path.tick, leaves))

    def backward_done(self, run: BackwardRun, given: dict[str, Value]) -> None:
        """A backward call is over."""
        self.act("backward", run, run.site, run.leaves)
        retain = given.get("retain_graph")
        if retain is True:
            run.loss.attributes = {**(run.loss.attributes or {}), "<retained>": True}
        self.path.tell(Backward(run))

    def module_cleared(self, module: Value, site: Site) -> None:
        self.act("zero", module, site)

    def mode_switched(self, module: Module, training: Value, site: Site) -> None:
        """A mode that is not known is one that was set before: who hands it on leaves eval mode, if it was not there from the start."""
        self.act("eval" if training is False else "train", module, site)

    # -- schedulers and scalers --------------------------------------------------------------------------------------

    def make_scheduler(self, path: str, args: list[Value], kwargs: dict[str, Value], node: Syntax) -> Value:
        return Scheduler(path, self.path.site(node), args[0] if args else kwargs.get("optimizer"))

    def scheduler_method(
        self, scheduler: Scheduler, name: str, args: list[Value], kwargs: dict[str, Value], node: Syntax
    ) -> Value:
        if name == "step":
            self.act("scheduler", scheduler, self.path.site(node), [*args, *kwargs.values()])
            return None
        if name in ("get_last_lr", "get_lr"):
            return Seq("list", [Number()], True)
        return Unknown(f"{name} of a scheduler")

    def make_scaler(self, path: str, args: list[Value], kwargs: dict[str, Value], node: Syntax) -> Value:
        """`enabled` comes last; only the scaler of `torch.amp` takes a device in front.

        Where there is no CUDA, a scaler for it switches itself off.
        """
        takes_device = path.startswith("torch.amp.")
        last = 5 if takes_device else 4
        enabled = kwargs.get("enabled", args[last] if len(args) > last else True)
        device = kwargs.get("device", args[0] if args else "") if takes_device else path.split(".")[1]
        if enabled is True and device != "cpu":
            enabled = Unknown("whether a gradient scaler finds its device", "bool")
        return GradientScaler(path, self.path.site(node), enabled)

    def scaler_method(
        self, scaler: GradientScaler, name: str, args: list[Value], kwargs: dict[str, Value], node: Syntax
    ) -> Value:
        result = self.scaler_result(scaler, name, args, kwargs, node)
        self.path.tell(Scaled(scaler, name, args, result))
        return result

    def scaler_result(
        self, scaler: GradientScaler, name: str, args: list[Value], kwargs: dict[str, Value], node: Syntax
    ) -> Value:
        site = self.path.site(node)
        if name == "is_enabled":
            return scaler.enabled
        if name == "scale" and args:
            if isinstance(args[0], Tensor) and self.path.truth(scaler.enabled) is not False:
                result = self.facts.apply_operator("Tensor.__mul__", [args[0], Number()], {}, node)
                if isinstance(result, Tensor):
                    result.attributes = {**(result.attributes or {}), "<scaled>": True}
                return result
            return args[0]
        if name == "unscale_" and args:
            self.act("unscale", args[0], site)
            return None
        if name == "step" and args:
            optimizer = args[0]
            if isinstance(optimizer, Optimizer):
                self.path.tell(ScalerStepping(scaler, optimizer, site))
                self.optimizer_method(optimizer, "step", args[1:], kwargs, node)
            return None
        if name == "update":
            return None
        return Unknown(f"{name} of a gradient scaler")

    # -- escape ------------------------------------------------------------------------------------------------------

    def unknown_result(
        self, reason: str, args: list[Value], kwargs: dict[str, Value], node: Syntax | None = None
    ) -> Value:
        """What code that is not known returns: it may carry the graph of whatever it was given."""
        self.path.tell(GaveUp(reason, [*args, *kwargs.values()]))
        self.escape(args, kwargs)
        result = self.path.gap(reason, node)
        for value in [*args, *kwargs.values()]:
            result.cuts = result.cuts | cuts_of(value)
            if carries_graph(value):
                result.carries = True
        return result

    def escape(self, args: list[Value], kwargs: dict[str, Value]) -> None:
        """Values handed to code that is not known: it may do anything with them."""
        todo = [*args, *kwargs.values()]
        depth = 0
        while todo and depth < 200:
            depth += 1
            value = todo.pop()
            if isinstance(value, (Instance, Layer)):
                if not value.escaped:
                    value.escaped = True
                    if isinstance(value, Instance) and value.module is None:
                        todo.extend(
                            inner for inner in value.attributes.values() if not isinstance(inner, Tensor)
                        )
            elif isinstance(value, Opaque):
                value.escaped = True
            elif isinstance(value, Seq):
                todo.extend(value.items[:16])
            elif isinstance(value, Mapping):
                todo.extend(list(value.items.values())[:16])
            elif isinstance(value, (Bound, Method)):
                todo.append(value.receiver)
        self.note_escape([*args, *kwargs.values()])
        if self.path.is_watched:
            self.path.tell(HandedOut([*args, *kwargs.values()]))

    def note_escape(self, given: list[Value]) -> None:
        reached: set[int] = set()
        todo = list(given)
        for value in todo:
            if isinstance(value, Function):
                self.forget_captured(value)
        while todo and len(reached) < 100:
            value = todo.pop()
            if id(value) in reached:
                continue
            if isinstance(value, Tensor) and value.node is not None:
                self.path.graph_escaped = True
            if isinstance(value, (Tensor, Instance, Layer, Opaque, Seq, Mapping)):
                reached.add(id(value))
            if isinstance(value, Seq):
                todo.extend(value.items[:32])
            elif isinstance(value, Mapping):
                todo.extend(list(value.items.values())[:32])
            elif isinstance(value, (Instance, Layer)) and value.module is not None:
                reached.update(id(tensor) for _, tensor in self.tensors_of(value, "parameter"))
        if reached:
            self.escapes.append((self.path.tick, reached))

    def forget_captured(self, function: Function) -> None:
        """Unknown code may call the function: what it fills, nobody knows the length of."""
        body = function.node.body
        for statement in body if isinstance(body, list) else [body]:
            for name in names_read(statement):
                scope: Any = function.scope
                while scope is not None and name not in scope.names:
                    scope = scope.outer
                value = scope.names.get(name) if scope is not None else None
                if isinstance(value, (Seq, Mapping)) and value.kind != "tuple":
                    value.exact = False
                    if isinstance(value, Seq):
                        value.owners, value.alike = (), False

    def escaped_between(self, tensors: set[Tensor], start: int, end: int) -> bool:
        """Whether unknown code had its hands on one of these tensors in that time."""
        wanted = {id(tensor) for tensor in tensors}
        return any(start <= tick <= end and reached & wanted for tick, reached in self.escapes)

    def may_clear_between(self, tensors: set[Tensor], start: int, end: int) -> bool:
        """Whether unknown code had one of these tensors in that time for more than to compute a loss from it."""
        wanted = {id(tensor) for tensor in tensors}
        return any(
            start <= tick <= end and reached & wanted
            for place, (tick, reached) in enumerate(self.escapes)
            if place not in self.applied
        )

    def was_applied(self, tensors: Iterable[Tensor]) -> None:
        """What unknown code made of tensors when it had them last is differentiated."""
        wanted = {id(tensor) for tensor in tensors}
        for place in reversed(range(len(self.escapes))):
            if self.escapes[place][1] & wanted:
                self.applied.add(place)
                return


def carries_graph(value: Value, depth: int = 0) -> bool:
    """Whether a value can bring a graph along: a tensor that needs grad, a module.

    Code that got only functions and other objects (an environment, a logger) does not return graphs.
    """
    if isinstance(value, Tensor):
        return value.needs_grad() is not False
    if isinstance(value, Unknown):
        return value.carries
    if isinstance(value, Seq):
        return depth < 3 and any(carries_graph(item, depth + 1) for item in value.items[:16])
    if isinstance(value, Mapping):
        return depth < 3 and any(carries_graph(item, depth + 1) for item in list(value.items.values())[:16])
    if isinstance(value, (Method, Bound)):
        return depth < 3 and carries_graph(value.receiver, depth + 1)
    return isinstance(value, Layer) or (isinstance(value, Instance) and value.module is not None)


def group_of(members: list[Tensor], options: dict[Value, Value]) -> Mapping:
    """A parameter group as the optimizer keeps it: it has defaults for what it was not told."""
    return Mapping({"lr": Number(), **options, "params": Seq("list", list(members))}, False)


def owners_of_groups(source: Value) -> tuple[Module, ...]:
    """The modules that all parameters belong to which are not listed; empty where they may be anybody's."""
    if not isinstance(source, Seq) or not any(isinstance(item, Mapping) for item in source.items):
        return owners_of_rest([source])
    groups = [item.items.get("params") for item in source.items if isinstance(item, Mapping)]
    return owners_of_rest([source, *(group for group in groups if not isinstance(group, Tensor))])


def options_of(group: Mapping) -> dict[Value, Value]:
    """What a parameter group says besides its members."""
    return {key: value for key, value in group.items.items() if key != "params"}


def options_of_groups(source: Value, count: int) -> list[dict[Value, Value]]:
    """The options of each of an optimizer's groups; plain parameters are the first group, and have none."""
    items = source.items if isinstance(source, Seq) else []
    options = [options_of(item) for item in items if isinstance(item, Mapping)]
    return [{} for _ in range(count - len(options))] + options


def closure_calls(path: str, args: list[Value], kwargs: dict[str, Value]) -> int:
    """How often a step calls its closure, at least, and no more than twice.

    LBFGS calls it again for every further iteration, and while it searches along a line.
    """
    if not path.endswith("LBFGS"):
        return 1
    most = kwargs.get("max_iter", args[2] if len(args) > 2 else 20)
    searches = kwargs.get("line_search_fn", args[7] if len(args) > 7 else None) == "strong_wolfe"
    return 2 if searches or (isinstance(most, int) and most > 1) else 1
