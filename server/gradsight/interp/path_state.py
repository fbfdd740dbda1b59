"""The machine's state on one path: frames, grad mode, decisions, budget, and the events it reports.

*Path*: one execution of an entry.  Where a condition is not known the machine goes one way and notes the other; the
entry is then executed again with that choice changed.  Nothing is ever joined, so what an event says holds on a path.
*Budget*: the number of syntax nodes a path may execute; when it is spent the path ends and its events stand.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Protocol
from weakref import WeakSet

from gradsight.interp.lazy_imports import divide
from gradsight.interp.library_places import place_for_user
from gradsight.interp.option_defaults import usual_answer
from gradsight.interp.parsing import parse_text
from gradsight.interp.path_constraints import FILLS, LENGTH, MORE, TRUTH, PathConstraints
from gradsight.interp.syntax import refuses_without, remembered
from gradsight.interp.syntax_parts import may_recur
from gradsight.model.events import Event
from gradsight.model.library_objects import Optimizer
from gradsight.model.report import GapKind
from gradsight.model.sites import Frame, Numbering, Site, Unit
from gradsight.model.source import Source
from gradsight.model.tensors import Maybe, Tensor
from gradsight.model.trace import Entered, Fact, Left, Listener
from gradsight.model.trace.looks import Place
from gradsight.model.values import (
    AbsentGrad,
    Array,
    External,
    Instance,
    Layer,
    Mapping,
    Negated,
    Number,
    PythonModule,
    Question,
    Seq,
    Stream,
    Unknown,
    Value,
    is_constant,
)
from gradsight.ops.table import Table

Arm = tuple[ast.AST, bool]
"""A branch, and the way that was taken."""
IMPORT_BUDGET = 60_000
"""Syntax nodes that the imports of one analysis may cost; the file itself has a budget of its own."""


class PathEnded(Exception):
    """The path is over: its budget is spent or the program would have ended here."""


class Unwanted(Exception):
    """Nobody waits for the analysis any more; what was worked out so far is kept for the next."""


class RaisedError(Exception):
    """The analysed program raised; `value` is what it raised."""

    def __init__(self, value: Value) -> None:
        super().__init__()
        self.value = value


class Decision:
    """An undecided condition and the way this path went."""

    __slots__ = ("choice", "is_tried", "key", "later", "node", "outcome", "picks", "turns", "unit")

    def __init__(self, key: Value, choice: bool, node: ast.AST, outcome: bool, unit: Unit) -> None:
        self.key = key
        self.unit = unit
        self.is_tried = False  # Whether the program goes on if an exception is raised here.
        self.turns = [(node, outcome)]
        """All branches that were taken because of it."""
        self.choice = choice
        self.node = node
        self.outcome = outcome  # What the condition was taken to be; `choice` may be the negation of it.
        self.later = False
        """The same condition was decided before on this path: a later round of a loop."""
        self.picks = False  # It was decided in a generator, and with it perhaps what that yields.


class Gathering(Protocol):
    """What the listeners of an entry's paths claim, put together."""

    def add(self, listener: Listener, arms: set[Arm], is_single: bool = True) -> None:
        """One more path took the branches `arms`; `is_single`: it differs in single turns from the one that takes every `if`."""

    def needs_turns(self) -> bool:
        """Whether something stands that a path which differs in a single turn could lift."""

    def conclusions(self) -> list[Event]:
        """What stands after all paths."""


class Audience(Protocol):
    """Who listens to paths."""

    watches: bool
    """Whether names and operators are looked at too (`model/trace/looks.py`)."""

    def listen(self, path: Any) -> Listener:
        """The listener of a path that begins."""

    def gather(self) -> Gathering:
        """For the paths of one entry."""


class Program:
    """What all paths of one analysis share: the operator facts, the workspace, and what was asked of it."""

    def __init__(self, table: Table, audience: Audience | None = None) -> None:
        self.table = table
        self.audience: Audience = audience if audience is not None else Deaf()
        self.finder: Any = None
        self.models: Callable[[str], Source | None] = lambda _: None
        """Hands in our model of a library's module, by the name of the module."""
        self.own_models = ""
        """How the paths of the user's own models begin; empty if there are none."""
        self.is_unwanted: Callable[[], bool] = lambda: False
        """Asked now and then: whether nobody waits for the outcome any more.  Whoever is asked may do other work first."""
        self.machine_facts: dict[str, Unknown] = {}
        self.uses: dict[str, set[str]] = {}  # What was used of modules of the workspace (`used_names.py`).
        self.import_budget = IMPORT_BUDGET
        self.has_library: dict[str, str] = {}
        """By the name of a package: its folder, if the workspace holds a library that there is a model of; else empty."""
        self.shared: Any = None
        """Modules that were executed for all paths that import them; None where each path executes them for itself."""
        self.noted: set[Any] = set()
        """The executions of shared modules that this analysis rests on."""
        self.effects: dict[tuple[int, str], Value] = {}
        """Names of shared modules that such executions have bound anew."""
        self.descriptions: dict[tuple[ast.AST, frozenset[str]], frozenset[str] | None] = {}
        """By function, and its parameters that hold functions and classes: the methods of them it calls, if else it only describes."""
        self.class_names: tuple[dict[str, Value], int, list[str]] | None = None
        """The names of the file, how many they are, and those of them that stand for classes, or for what is not imported yet."""
        self.parsed: dict[str, list[Unit]] = {}
        self.divisions: dict[str, tuple[list[Unit], dict[str, list[Unit]]]] = {}

    def units_of(self, source: Source) -> list[Unit]:
        """The units of a workspace module, parsed once."""
        units = self.parsed.get(source.path)
        if units is None:
            units = self.parsed[source.path] = parsed_units(source.path, source.text, source.library)
        return units

    def divided(self, source: Source) -> tuple[list[Unit], dict[str, list[Unit]]]:
        """The statements of a workspace module that are executed with it, and those that wait for a need."""
        finder = self.finder
        known = self.divisions.get(source.path)
        if known is None:

            def is_foreign(name: str, level: int) -> bool:
                return level == 0 and (finder is None or finder(name, 0, source.path) is None)

            known = self.divisions[source.path] = divide(self.units_of(source), is_foreign)
        return known[0], dict(known[1])


@lru_cache(maxsize=256)
def parsed_units(path: str, text: str, library: str = "") -> list[Unit]:
    """The units of a module's text; the same text is parsed once."""
    units = parse_text(path, text).units
    for unit in units:
        unit.library = library
    return units


class Deaf:
    """Whoever executes a path for its outcome alone hears nothing."""

    watches = False

    def listen(self, path: Any) -> Listener:
        return self

    def gather(self) -> Gathering:
        return self

    def hear(self, fact: Fact) -> None:
        """Nothing is made of it."""

    def let_go(self) -> None:
        """There is nothing to let go of."""

    def finish(self) -> None:
        """There is nothing to look back at."""

    def add(self, listener: Listener, arms: set[Arm], is_single: bool = True) -> None:
        """There is nothing to put together."""

    def needs_turns(self) -> bool:
        return False

    def conclusions(self) -> list[Event]:
        return []


class PathState:
    """Everything that changes while a path is executed."""

    def __init__(self, program: Program, module: PythonModule, script: list[bool], budget: int) -> None:
        self.program = program
        self.numbering = Numbering()
        self.table = program.table
        self.module = module
        self.script = script
        self.wishes: dict[ast.AST, bool] = {}
        """How conditions are to turn out that the script of choices does not reach."""
        self.passes_by = False
        """Whether this path goes past every `if` of the user's code that it may take or leave."""
        self.decisions: list[Decision] = []
        self.deciding: dict[Any, Decision] = {}
        """The decisions, by the conditions that they settled."""
        self.decided: dict[Any, bool] = {}
        self.branches: dict[Any, tuple[int, bool]] = {}
        """For undecided conditions that may hold in many rounds: the branch, and the way that was taken."""
        self.assumed: dict[int, PathConstraints] = {}
        """What the decisions say about the values they asked about."""
        self.flags: dict[str, Unknown] = {}
        """Names of libraries that were asked for their truth: each is the same throughout a path."""
        self.last_choice: dict[int, bool] = {}
        self.visited: set[int] = set()
        self.covered: set[tuple[int, bool]] = set()
        self.budget = self.making_budget = budget
        """Syntax nodes that this path may cost, and those of them that may make the object it is about."""
        self.unasked = 0  # Statements since it was asked whether anybody waits for the outcome.
        self.tries = 0  # How many `try` blocks, which may handle an error, are being executed.
        self.tick = 0
        self.grad_mode = True
        self.inference = self.autocast = False
        self.mode_site: Site | None = None
        self.setting_names: dict[Unknown, str] = {}  # Under which names values were read from settings.
        self.options: dict[str, Value] = {}  # What options of the command line are if nobody gives them.
        self.usual_ways: set[int] = set()  # Conditions that were decided as they are then.
        # The functional transforms that are running, innermost last, each with the number of the newest object before it.
        self.transforms: list[tuple[str, int]] = []
        self.has_transformed = False  # Something was differentiated without a backward, by torch.func.
        self.premises: dict[str, None] = {}
        """What this path takes unknown values for: whatever is concluded on it is assumed."""
        self.unheard = False  # While an imported module is executed, nothing of it is claimed.
        self.frame: Frame = None  # type: ignore[assignment]
        self.context = "script"
        self.executed: set[ast.AST] = set()
        self.executed_quietly: set[ast.AST] = set()  # Those that were called with grad mode off.
        self.entered: set[ast.AST] = set()  # Functions that were executed, be it in part.
        self.startable: list[Any] = []  # Objects of libraries that are started if nothing else does it.
        self.picked: list[Mapping] = []  # Dicts read under a key that is not known: any item may be meant.
        self.unanswered: list[tuple[int, Site]] = []
        """The user's functions that a library called for a value and that gave none, each with the time."""
        self.optimizers: list[Optimizer] = []
        self.leaves: list[Tensor] = []
        self.backwards: list[Any] = []
        self.log: list[Any] = []
        self.modules_made: list[Any] = []
        self.node: ast.AST = ast.Pass()
        self.ended_early = False
        self.ended_at: Site | None = None  # Where the budget was spent.
        self.has_optional_arguments = self.leaves_out_optional = False
        """Whether the entry has arguments that default to None, and whether they are None on this path."""
        self.kept_alive: list[Any] = []
        self.generators: WeakSet[Generator[Value, Any, Value]] = WeakSet()  # Those of the program.
        self.gaps: dict[tuple[str, Unit, int, GapKind], int] = {}
        self.asked: set[str] = set()
        """The global names that this path looked up."""
        self.isolated = False  # Values of the module are copied before use: entries disturb nothing.
        self.private: dict[tuple[int, str], Value] = {}
        self.activations: list[Frame] = []  # Of functions: nobody looks into them when an entry is over.
        self.has_receiver = False  # The entry is a method of an object that was there before.
        self.arms: set[Arm] = set()  # The branches that were taken.
        self.waiting: set[Arm] = set()
        """Branches not taken in loops that were left before their end, and that may be taken in a later round."""
        self.is_abridged = False  # Whether a loop was left before its last round, or passed over some.
        self.truncated = False  # A loop over distinct tensors or modules was left before all had theirs.
        self.left_after_one = False  # A loop with more rounds than one was left after its first.
        self.objects_passed_at = -1
        """When a loop over modules was last left before its end: what it does to the others is not known."""
        self.named_methods: list[Any] = []
        """Statements that name a method and do not call it: `optimizer.zero_grad`."""
        self.entry_epochs: dict[tuple[int, Any], int] = {}
        """For dicts, by key: the epoch of a tensor's memory when it was put there."""
        self.stored_somewhere: set[Any] = set()
        """Places that put a tensor into a dict under a key that is not known."""
        self.gradients_unknown: bool = False
        """Gradients may be filled that are not known to be; `gradients_hooked`: a hook may have cleared them, or stepped."""
        self.gradients_hooked: bool = False
        self.gradient_ticks: dict[Tensor, int] = {}
        self.live_gradient_ticks: dict[Tensor, int] = {}
        self.cleared_ticks: dict[Tensor, int] = {}
        self.last_inference = -1  # When a layer was last applied with grad mode off.
        self.graph_escaped = False
        """A tensor with a graph was given to code that is not known, which may have run its backward."""
        self.assuming = False
        """Whether arguments that are used as tensors are taken to carry a graph."""
        self.told_premises: set[str] = set()
        """What is assumed of unknown code that tensors of a graph were given to."""
        self.listener: Listener = program.audience.listen(self)
        self.tell: Callable[[Fact], None] = self.listener.hear
        self.is_watched = program.audience.watches
        """Whether facts about single names and operators are told."""

    # -- places and events -------------------------------------------------------------------------------------------

    def site(self, node: ast.AST | None = None) -> Site:
        """The place of a syntax node in the running frame; what a library does happens where the user's code has it do that."""
        if self.frame.unit.library:
            return place_for_user(node if node is not None else self.node, self.frame)
        return Site(node if node is not None else self.node, self.frame)

    def refuse(self, fact: Fact, assumption: str = "") -> None:
        """torch refuses: a program that waits for the error gets it, and nobody else hears of it."""
        if not self.frame.expecting:
            self.tell(fact)
        elif not assumption and not self.premises:
            raise RaisedError(Unknown("what torch raises"))

    @contextmanager
    def inside(self, place: Place, node: ast.AST | None = None) -> Iterator[None]:
        """What is executed meanwhile happens inside such a place."""
        if self.is_watched:
            self.tell(Entered(place, node))
        try:
            yield
        finally:
            if self.is_watched:
                self.tell(Left(place))

    @contextmanager
    def aside(self) -> Iterator[None]:
        """What is executed meanwhile is tried out: nothing is concluded from it, and what is not known of it is not counted."""
        before = self.tell, self.grad_mode, self.mode_site, self.tick, dict(self.gaps)
        if not self.is_watched:
            self.tell = _nobody_hears
        self.grad_mode = False
        try:
            yield
        finally:
            self.tell, self.grad_mode, self.mode_site, self.tick, self.gaps = before

    def gap(self, reason: str, node: ast.AST | None = None, kind: GapKind = "unknown") -> Unknown:
        """Not knowing, with its reason, counted."""
        unit = self.frame.unit
        line = int(getattr(node if node is not None else self.node, "lineno", 0))
        if unit.library:
            if reason.startswith(f"call of {unit.library}."):
                # What a model leaves open of its own library is meant to be unknown.
                return Unknown(reason)
            place = self.site(node)
            reason = f"model of {unit.library}, line {line + unit.offset}: {reason}"
            unit, line = place.unit, int(getattr(place.node, "lineno", 0))
        key = (reason, unit, line, kind)
        self.gaps[key] = self.gaps.get(key, 0) + 1
        return Unknown(reason)

    def spend(self, amount: int = 1) -> None:
        """Count work; a spent budget ends the path."""
        self.budget -= amount
        if self.budget < 0:
            self.ended_early = True
            self.ended_at = self.site()
            raise PathEnded

    def check_wanted(self) -> None:
        """Ask whether to go on.  A module that is imported is executed to its end: others may share it."""
        self.unasked = 0
        if self.program.is_unwanted() and not self.unheard:
            raise Unwanted

    def has_made_anything(self) -> bool:
        """Whether there is a tensor, a module, an optimizer or a backward on this path."""
        return bool(self.numbering.last or self.modules_made or self.optimizers or self.backwards)

    # -- conditions --------------------------------------------------------------------------------------------------

    def truth(self, value: Value) -> bool | None:
        """The truth of a value, or None where it is not known."""
        if is_constant(value):
            return bool(value)
        if isinstance(value, Negated):
            inner = self.truth(value.value)
            return None if inner is None else not inner
        if isinstance(value, Unknown):
            condition = value if value.condition is None else value.condition
            known = self.decided.get(id(condition))
            return self.implied(condition) if known is None and self.assumed else known
        if isinstance(value, Number):
            known = self.decided.get(id(value))
            return self.implied(value) if known is None and self.assumed else known
        if isinstance(value, (Tensor, Array)):
            return self.decided.get(id(value))
        if isinstance(value, AbsentGrad):
            return False
        if isinstance(value, Seq):
            if value.kind == "set" and not value.exact:
                # Of the difference of two sets nothing may be left.
                return self.decided.get(id(value))
            if value.items:
                return True
            return False if value.exact else None
        if isinstance(value, Mapping):
            if value.items:
                return True
            return False if value.exact else None
        if isinstance(value, (Instance, Layer)):
            return True
        if isinstance(value, Stream):
            return True
        if isinstance(value, External):
            return self.truth_of_external(value.path)
        return True

    def truth_of_external(self, path: str) -> bool | None:
        """Classes and modules are true; what else a module holds that nobody has seen can be a flag."""
        last = path.rpartition(".")[2]
        if "." not in path or is_class_name(last) or path.startswith(("torch.", "builtins.")):
            return True
        flag = self.flags.get(path)
        if flag is None:
            flag = self.flags[path] = Unknown(f"{path} of a library")
        return self.truth(flag)

    def decide(self, value: Value, node: ast.AST, default: bool = True) -> bool:
        """The way this path goes at a condition; the same unknown is always decided the same way."""
        known = self.truth(value)
        if known is not None:
            self.follow(value, node, known)
            return known
        negated = False
        while isinstance(value, Negated):
            negated = not negated
            value = value.value
        if isinstance(value, External):
            value = self.flags[value.path]
        if isinstance(value, Unknown) and value.condition is not None:
            value = value.condition
        key = id(value)
        if key in self.decided:
            return self.decided[key] != negated
        position = len(self.decisions)
        if position < len(self.script):
            choice = self.script[position]
        else:
            if self.passes_by and isinstance(node, (ast.If, ast.IfExp)):
                default = default and self.must_take(node)
            wished = self.wishes.get(node)
            if wished is not None:
                default = wished
            is_plain = wished is None and not self.passes_by
            usual = usual_answer(self.options, self.setting_names, value) if is_plain else None
            choice = self.last_choice.get(id(node), default != negated if usual is None else usual)
            if choice is usual:
                self.usual_ways.add(key)
        self.last_choice[id(node)] = choice
        decision = self.deciding[key] = Decision(value, choice, node, choice != negated, self.frame.unit)
        decision.later = id(node) in self.visited
        decision.is_tried = bool(self.tries or self.frame.expecting)
        decision.picks = self.frame.function is not None and self.frame.function.yields
        self.visited.add(id(node))
        self.decisions.append(decision)
        self.decided[key] = choice
        if isinstance(node, ast.If) and remembered(node.test, "may_recur", may_recur):
            self.branches[key] = (id(node), choice != negated)
        self.learn(value, choice)
        return choice != negated

    def must_take(self, node: ast.If | ast.IfExp) -> bool:
        """Whether an `if` cannot be passed by: what comes instead refuses the program, or it is no code of the user's."""
        return self.unheard or bool(self.frame.unit.library) or refuses_without(node, self.frame)

    def follow(self, value: Value, node: ast.AST, outcome: bool) -> None:
        """A branch is taken because of a decision that was made before."""
        if isinstance(node, (ast.If, ast.IfExp)):
            decision = self.deciding.get(self.guarded_by(value))
            if decision is not None and decision.turns[-1][0] is not node:
                decision.turns.append((node, outcome))

    def learn(self, condition: Value, choice: bool) -> None:
        """What a decision says about the value that its condition asks about."""
        if not isinstance(condition, (Unknown, Number)):
            return
        kind, value, constant = question_of(condition)
        known = self.assumed.get(id(value))
        if known is None:
            known = self.assumed[id(value)] = self.nothing_assumed(value)
        known.assume(kind, constant, choice)
        known.origin = id(condition)
        size = self.assumed.get(id(size_of(value))) if kind == TRUTH else None
        if size is not None:
            size.assume(MORE, 0, choice)
            size.origin = known.origin

    def is_assumed_none(self, value: Unknown) -> bool:
        """Whether this path goes a way on which a value is None."""
        known = self.assumed.get(id(value))
        return known is not None and known.answer("is", None) is True

    def nothing_assumed(self, value: Unknown | Number) -> PathConstraints:
        """A fresh account of a value; a length knows whether its container was found empty."""
        if isinstance(value, Number):
            return PathConstraints(value, numeric=True, whole=False)
        if value.asks is None or value.asks[0] != LENGTH:
            return PathConstraints(value, numeric=value.hint == "number", whole=False)
        fresh = PathConstraints(value, numeric=True, whole=True)
        container = value.asks[1]
        found = self.decided.get(id(container))
        if found is not None:
            fresh.assume(MORE, 0, found)
            fresh.origin = id(container)
        return fresh

    def implied(self, condition: Unknown | Number) -> bool | None:
        """What earlier decisions about the same value say of a condition."""
        kind, value, constant = question_of(condition)
        known = self.assumed.get(id(value))
        if known is None and isinstance(value, Unknown) and value.asks is not None:
            known = self.nothing_assumed(value)
        outcome = known.answer(kind, constant) if known is not None else None
        if outcome is None and kind == TRUTH:
            known = self.assumed.get(id(size_of(value)))
            outcome = known.answer(MORE, 0) if known is not None else None
        if known is not None and outcome is not None and known.origin is not None:
            self.decided[id(condition)] = outcome
            self.branches[id(condition)] = self.branches.get(known.origin, known.origin)
            self.kept_alive.append(condition)
        return outcome

    def counted_from(self, first: int) -> Number:
        """An unknown whole number that is not below `first`, which is not below zero."""
        number = Number()
        known = self.assumed[id(number)] = PathConstraints(number, numeric=True, whole=True)
        known.low = first
        return number

    def resized(self, container: Unknown, method: str) -> None:
        """An unknown container was changed: what was found out about its length is about the one before."""
        answers = container.answers
        if answers is not None:
            for key in [key for key in answers if key == LENGTH or (type(key) is tuple and key[0] == "from")]:
                self.kept_alive.append(answers.pop(key))
        self.decided.pop(id(container), None)
        self.assumed.pop(id(container), None)
        if method in FILLS or method == "clear":
            self.decided[id(container)] = method != "clear"
            self.kept_alive.append(container)

    def guarded_by(self, value: Value) -> Value:
        """The decision a branch on `value` rests on, or None when its outcome is known by itself."""
        while isinstance(value, Negated):
            value = value.value
        if isinstance(value, External):
            value = self.flags.get(value.path)
        if isinstance(value, Unknown) and value.condition is not None:
            value = value.condition
        return id(value) if id(value) in self.decided else None

    # -- names -------------------------------------------------------------------------------------------------------

    def lookup(self, name: str) -> Value:
        """The value of a name, or an unknown with a reason."""
        raise PathEnded

    def enter(self, frame: Frame) -> Frame:
        """Make `frame` the running one; returns the one that was."""
        previous = self.frame
        self.frame = frame
        return previous


def is_class_name(name: str) -> bool:
    """Whether a name reads like that of a class, which is there or was not imported: `SummaryWriter`."""
    return name[:1].isupper() and not name.isupper() and "_" not in name


def question_of(condition: Unknown | Number) -> Question:
    """What a condition asks; a value that is used as a condition asks for its own truth."""
    asks = condition.asks if isinstance(condition, Unknown) else None
    return asks if asks is not None and asks[0] != LENGTH else (TRUTH, condition, None)


def size_of(value: Unknown | Number) -> Unknown | None:
    """The length of an unknown value, if anybody asked for it."""
    return value.answers.get(LENGTH) if value.answers is not None else None


def assumption_of(flag: Value | Maybe) -> str:
    """The sentence behind a `requires_grad`, empty when it is certain."""
    return flag.reason if isinstance(flag, Maybe) else ""


def _nobody_hears(fact: Fact) -> None:
    """Of what is tried out."""
