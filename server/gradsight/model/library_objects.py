"""Library objects that the machine models, one class for each: what they hold, and what can be asked of them.

What is not among them is an `Opaque` of which only the path is known.
"""

from __future__ import annotations

from gradsight.model.sites import Site
from gradsight.model.tensors import Shape, Tensor
from gradsight.model.values import Function, Mapping, Module, Opaque, Seq, Stream, Unknown, Value, tensors_in

# -- training ----------------------------------------------------------------------------------------------------------


class Optimizer(Opaque):
    """An optimizer with its parameter groups, which programs clear, extend and replace."""

    def __init__(self, path: str, site: Site | None, groups: Seq | None = None) -> None:
        super().__init__(path, site)
        self.param_groups: Value = groups if groups is not None else Seq("list", [])
        self.options: dict[str, Value] = {}
        self.fused = False
        self.closure_calls = 1
        self.stepped = 0
        self.was_held: set[Tensor] = set()
        """What was in the groups at a step before."""
        self.pre_hooks: list[Value] = []
        self.post_hooks: list[Value] = []
        self.created = 0
        self.rest_of: tuple[Module, ...] = ()
        """The modules that those of its parameters belong to which no group lists, where that is known."""
        self.extended = False
        """Whether it was given groups after it had stepped."""
        self.shows_all = False
        """Whether it is not seen being made, but what made it was given these parameters and nothing that holds others."""
        self.doubtful: frozenset[Tensor] = frozenset()
        """Parameters of unknown modules that it may not hold: nothing tells for which of several modules it was made."""
        self.is_global = False
        """Whether it was made by the module's own statements, and a function that is executed by itself finds it there."""

    def groups(self) -> list[Mapping]:
        """The groups as they are now."""
        listed = self.param_groups
        return (
            [group for group in listed.items if isinstance(group, Mapping)] if isinstance(listed, Seq) else []
        )

    def parameters(self) -> list[Tensor]:
        """The members of all groups."""
        return [tensor for group in self.groups() for tensor in members_of(group)]

    def ever_held(self) -> set[Tensor]:
        """What is in the groups, and what was in them at a step before."""
        return {*self.parameters(), *self.was_held}

    def knows_all_parameters(self) -> bool:
        """Whether every group is known, with all of its members."""
        groups = self.param_groups
        return (
            isinstance(groups, Seq)
            and groups.exact
            and all(
                isinstance(group, Mapping)
                and isinstance(members := group.items.get("params"), (Seq, Tensor))
                and (isinstance(members, Tensor) or members.exact)
                for group in groups.items
            )
        )

    def is_guessed(self) -> bool:
        """Whether it was not seen being made, and several modules may be the ones that it is for."""
        return self.path == "torch.optim.Optimizer" and not self.knows_all_parameters()


def members_of(group: Mapping) -> list[Tensor]:
    """The parameters in a group."""
    members = group.items.get("params")
    if isinstance(members, Seq):
        return [member for member in members.items if isinstance(member, Tensor)]
    return tensors_in(members)


class Scheduler(Opaque):
    """A scheduler of learning rates."""

    def __init__(self, path: str, site: Site | None, optimizer: Value) -> None:
        super().__init__(path, site)
        self.optimizer = self.attributes["optimizer"] = optimizer


class GradientScaler(Opaque):
    """A gradient scaler; where `enabled` is not true it may do nothing."""

    def __init__(self, path: str, site: Site | None, enabled: Value) -> None:
        super().__init__(path, site)
        self.enabled = enabled


class Distribution(Opaque):
    """A distribution of `torch.distributions`: the tensors that it was made of."""

    def __init__(self, path: str, site: Site | None, held: list[Tensor], named: dict[str, Value]) -> None:
        super().__init__(path, site)
        self.held = held
        self.named = named
        self.spread: list[Tensor] = []
        """Those that say how wide it is."""
        self.shape: Shape = None


class FunctionContext(Opaque):
    """`ctx` of a custom autograd function: what forward leaves for backward."""

    def __init__(self, path: str, site: Site | None) -> None:
        super().__init__(path, site)
        self.saved: list[Tensor] = []
        self.saved_at: Site | None = None
        self.number_saved_at: Site | None = None
        self.dirty_at: Site | None = None
        self.needs_input_grad: list[bool] | None = None
        """Which inputs need a gradient, while backward is tried out."""
        self.kept: dict[str, tuple[Value, Site]] = {}
        self.dirty: list[Tensor] = []
        self.non_differentiable: list[Tensor] = []


class HookHandle(Opaque):
    """What registering a hook returns."""


class Dataset(Opaque):
    """A dataset of `torch.utils.data`, with what it was made of."""

    def __init__(self, path: str, site: Site | None, args: list[Value]) -> None:
        super().__init__(path, site)
        self.args = args


class DataLoader(Opaque):
    """A loader of batches; `collate` puts them together, if the program says how."""

    def __init__(self, path: str, site: Site | None, dataset: Value, collate: Value) -> None:
        super().__init__(path, site)
        self.dataset = self.attributes["dataset"] = dataset
        self.collate = collate


# -- contexts and decorators -------------------------------------------------------------------------------------------


class GradMode(Opaque):
    """`torch.no_grad()` and kin; what a call sets at once remembers what was `before`."""

    def __init__(self, path: str, site: Site | None, enabled: Value) -> None:
        super().__init__(path, site)
        self.enabled = enabled
        """What grad mode becomes."""
        self.before: tuple[bool, Site | None] | None = None


class GeneratorContext(Opaque):
    """What a function decorated with `contextmanager` returns."""

    def __init__(self, path: str, site: Site | None, stream: Stream, catches: bool, made_by: Call) -> None:
        super().__init__(path, site)
        self.stream = stream
        self.catches = catches
        """Whether an error at its `yield` stays inside."""
        self.made_by = made_by


Call = tuple[Function, list[Value], dict[str, Value]]
"""A function, and what it was called with."""


class ExitStack(Opaque):
    """`contextlib.ExitStack()`."""


class Closing(Opaque):
    """`contextlib.closing(thing)`."""

    def __init__(self, path: str, site: Site | None, thing: Value) -> None:
        super().__init__(path, site)
        self.thing = thing


class NullContext(Opaque):
    """`contextlib.nullcontext(thing)`."""

    def __init__(self, path: str, site: Site | None, thing: Value) -> None:
        super().__init__(path, site)
        self.thing = thing


class Suppress(Opaque):
    """`contextlib.suppress(...)`."""


class SavedTensorHooks(Opaque):
    """A context under which what backward keeps goes through functions of the program."""


class AmbientContext(Opaque):
    """What is entered, or handed around, and changes nothing that is followed here."""


class DecoratorMade(Opaque):
    """What a call made that decorates; `most` results are kept if it is a cache."""

    def __init__(self, path: str, site: Site | None, most: int | None = None) -> None:
        super().__init__(path, site)
        self.most = most


# -- the standard library ----------------------------------------------------------------------------------------------


class RaisedObject(Opaque):
    """A built-in exception, by its name."""


class GlobalNames(Opaque):
    """`globals()`."""


class DataField(Opaque):
    """`dataclasses.field(...)`: the default, or what makes one."""

    def __init__(self, path: str, site: Site | None, given: dict[str, Value]) -> None:
        super().__init__(path, site)
        self.makes_default = "default_factory" in given
        self.factory = given.get("default_factory")
        self.default = given.get("default", Unknown("field without a default"))


class BackgroundThread(Opaque):
    """A thread, or the future of one; `value` is what its function has returned."""

    def __init__(self, path: str, site: Site | None, target: Value = None, args: Value = None) -> None:
        super().__init__(path, site)
        self.target = target
        self.args = args
        self.named: dict[str, Value] = {}
        self.joined = False
        self.value: Value = None


class WorkerProcess(Opaque):
    """A process that executes a function with what it was given."""

    def __init__(
        self, path: str, site: Site | None, target: Value, args: list[Value], kwargs: dict[str, Value]
    ) -> None:
        super().__init__(path, site)
        self.target = target
        self.args = args
        self.kwargs = kwargs


class ThreadPool(Opaque):
    """A pool of threads."""

    def __init__(self, path: str, site: Site | None) -> None:
        super().__init__(path, site)
        self.threads: list[BackgroundThread] = []

    def join(self) -> None:
        """Wait for all of them."""
        for thread in self.threads:
            thread.joined = True
