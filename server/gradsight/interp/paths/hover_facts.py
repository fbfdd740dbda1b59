"""Cards on demand: the entries that execute some lines are run once more, by a machine that notes what it sees.

An ordinary analysis pays nothing for this.  What an entry saw is kept with its record and lives as long: what a card says
is what a fresh analysis of the same text would say.  Where moments disagree a card says less, and why.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields, replace
from typing import Any

from gradsight.interp.memory import Memory, Record
from gradsight.interp.path_state import Program
from gradsight.interp.paths.assembly import Machine
from gradsight.interp.paths.entries import Explorer
from gradsight.interp.paths.grad_fns import grad_fn_name, name_of
from gradsight.interp.paths.name_observer import NameObserver, Onlookers, Sighting, stems_from_unrecorded_view
from gradsight.interp.paths.shared_starts import SharedStart
from gradsight.interp.paths.unfollowed_arms import Bindings, ConditionLooks, Keeping, PathTurns
from gradsight.interp.syntax import sign_of
from gradsight.interp.tensors.shapes import RESHAPES_IN_PLACE, spelled
from gradsight.model.card import CallCard, Card, SavedBy, SeenFrom, TensorCard
from gradsight.model.sites import Site, Unit, span_of
from gradsight.model.source import Span
from gradsight.model.tensors import Maybe, Node, Tensor

Functions = (ast.FunctionDef, ast.AsyncFunctionDef)
Body = Callable[[Machine], None]
Chain = tuple[Site, ...]
"""Calls, the nearest first."""
BRANCH = "it depends on which branch is taken"
CALL = "it differs from call to call"
ROUND = "it differs between iterations of the loop"
LONGEST_NAME = 40
MOST_CALLERS = 4


@dataclass(frozen=True, slots=True)
class Look:
    """What one sighting says, in terms that stay true when the code moves."""

    is_leaf: bool | None
    requires_grad: bool | None
    made_by: str
    grad_fn: str
    made_at: Site | None
    view_of: str
    grad_of: str
    version: int | None
    written: tuple[tuple[str, int, int], ...]
    """Who wrote to its memory: one version by the writes of two arms is not the same version."""
    memory: tuple[str, int, int] | None
    """Where its memory was made."""
    doubt: str
    shape: str = ""


UNTOLD = Look(None, None, "", "", None, "", "", None, (), None, ROUND)
"""Other rounds would be seen otherwise."""


@dataclass(slots=True)
class Seen:
    """All sightings of one name at one place, over all paths."""

    unit: Unit
    is_assigned: bool
    looks: list[tuple[Look, int, int]]
    """Each with the number of its path and of the activation it belongs to."""
    saved: dict[tuple[str, str, tuple[str, int, int]], Site] | None
    """Who keeps it for backward, as which operand, at every sighting."""
    writes: dict[tuple[str, int, int], Site]
    callers: dict[Chain, set[tuple[bool, bool, bool]]]
    """By the place outside of all functions that led here: leaf or not, requires grad or not, recorded or not."""
    made_at: set[ast.AST] = field(default_factory=set)
    """Where its memory was made."""
    unfollowed: set[str] = field(default_factory=set)
    """The fields of a look that would differ on combinations of branches which no path has followed."""

    def paths(self) -> set[int]:
        """The paths that it was seen on."""
        return {path for _, path, _ in self.looks}


@dataclass(slots=True)
class SeenCall:
    """All executions of one call, over all paths: the fact, and the cases they met (None: not told)."""

    unit: Unit
    fact: str
    cases: set[int | None]
    numbers: frozenset[str]
    """Arguments that were plain numbers in every execution."""
    is_cast: bool = False
    copied: frozenset[str] = frozenset()
    """Arguments of which an execution saved a copy, or may have."""
    is_recorded: bool = False
    """Whether an execution may have been recorded."""


Gathered = dict[ast.AST, Seen | SeenCall]


def cards_between(program: Program, path: str, memory: Memory, first: int, last: int) -> list[Card]:
    """The cards of the names and calls on some lines of the text that `memory` is about, in reading order."""
    script = memory.script
    if script is None:
        return []
    found: list[Gathered] = []
    units = [unit for unit in memory.units if unit.start <= last and unit.end >= first]
    functions = {node for unit in units for node in functions_around(unit, first, last)}
    outside = any(
        not isinstance(statement, (*Functions, ast.ClassDef)) for unit in units for statement in unit.tree
    )
    if outside or script.executed & functions:
        if script.cards is None:
            script.cards = _run_script(program, path, memory)
        found.append(script.cards)
    rest = functions - script.executed
    for key, record in memory.records.items():
        if record.executed & rest:
            if record.cards is None:
                record.cards = _run_entry(program, path, memory, key)
            found.append(record.cards)
            rest = rest - record.executed
    if rest:
        found.append(_run_alone(program, path, memory, rest))
    cards: dict[Span, TensorCard] = {}
    calls: dict[tuple[Span, str], CallCard] = {}
    for gathered in found:
        for syntax, seen in gathered.items():
            line = int(getattr(syntax, "lineno", 0)) + seen.unit.offset
            if seen.unit not in units:
                continue
            if isinstance(seen, SeenCall):
                place = operator_span(syntax, seen.unit)
                if place is not None and first <= place.line <= last:
                    told = calls.get((place, seen.fact))
                    calls[place, seen.fact] = call_card_of(place, seen, told)
            elif first <= line <= last:
                card = card_of(syntax, seen, path)
                if not _stands_there(card, seen.unit):
                    continue
                known = cards.get(card.span)
                cards[card.span] = card if known is None else agreed(known, card)
    found_cards: list[Card] = [*cards.values(), *calls.values()]
    return sorted(found_cards, key=lambda card: (card.span.line, card.span.column))


def functions_around(unit: Unit, first: int, last: int) -> Iterable[ast.AST]:
    """The functions of a unit, methods and inner ones too, that have a line in the range."""
    todo: list[ast.AST] = list(unit.tree)
    while todo:
        node = todo.pop()
        start, end = getattr(node, "lineno", None), getattr(node, "end_lineno", None)
        if start is not None and end is not None:
            if start + unit.offset > last or end + unit.offset < first:
                continue
            if isinstance(node, Functions):
                yield node
        todo.extend(ast.iter_child_nodes(node))


# -- running an entry once more --------------------------------------------------------------------------------------


class Onlooker(Explorer):
    """Executes chosen entries and gathers what was seen on their paths."""

    def __init__(self, program: Program, path: str, memory: Memory, units: list[Unit]) -> None:
        program.audience = Onlookers()
        super().__init__(program, path, memory, units)
        self.gathered: Gathered = {}
        self.conditions = ConditionLooks()
        self.turns = PathTurns()
        self.bindings = Bindings()
        self.paths = 0
        self.chosen: Callable[[tuple[Unit, str], Any], bool] = lambda key, node: True
        self.candidate: Any = None

    def path_ended(self, machine: Machine) -> None:
        observer = machine.listener
        assert isinstance(observer, NameObserver)
        self.paths += 1
        for syntax, sightings in observer.sightings.items():
            if sightings[0].unit not in self.alive:
                continue
            assigned = [sighting for sighting in sightings if sighting.is_assigned]
            seen = self.gathered.get(syntax)
            if not isinstance(seen, Seen):
                seen = self.gathered[syntax] = Seen(sightings[0].unit, bool(assigned), [], None, {}, {})
            is_early = observer.is_seen_too_early(sightings)
            function = sightings[0].frame.function
            if function is not None and any(map(observer.is_in_part_of_a_loop, sightings)):
                self.bindings.scopes[syntax] = function.node
            for sighting in assigned or sightings:
                _note(seen, observer, sighting, self.paths, is_early)
        self.bindings.executed |= observer.bound
        ways = {turn for decision in machine.decisions for turn in decision.turns}
        self.turns.add(self.paths, ways, observer.kept)
        for condition, moments in observer.conditions.items():
            for names in moments:
                for name, sighting in names.items():
                    self.conditions.add(condition, name, _look(observer, sighting), self.paths)
        for syntax, calls in observer.calls.items():
            if calls[0].unit in self.alive:
                made = self.gathered.get(syntax)
                facts = {call.fact.name for call in calls}
                if not isinstance(made, SeenCall):
                    made = self.gathered[syntax] = SeenCall(
                        calls[0].unit, calls[0].fact.name, set(), calls[0].numbers
                    )
                # A place where several operators are called is told of none.
                made.numbers = made.numbers.intersection(*(call.numbers for call in calls))
                made.cases |= {call.case if facts == {made.fact} else None for call in calls}
                made.is_cast = made.is_cast or any(call.is_cast for call in calls)
                made.copied = made.copied.union(*(call.copied for call in calls))
                made.is_recorded = made.is_recorded or any(call.is_recorded for call in calls)

    def told(self) -> Gathered:
        """All that was seen, without what other combinations of branches would show otherwise."""
        names = {syntax: seen for syntax, seen in self.gathered.items() if isinstance(seen, Seen)}
        self.conditions.mark(names)
        self.bindings.mark(names)
        for syntax, seen in names.items():
            kept = seen.saved or {}
            keepings = {
                Keeping(site.node, role, made_at)
                for (_, role, _), site in kept.items()
                for made_at in seen.made_at
            }
            doubted = {each[:2] for each in self.turns.doubted(syntax, seen.paths(), keepings)}
            seen.saved = {key: site for key, site in kept.items() if (site.node, key[1]) not in doubted}
        return self.gathered

    def wants(self, unit: Unit, node: ast.AST, context: str) -> bool:
        self.candidate = node
        return True

    def run_entry(
        self,
        key: tuple[Unit, str],
        previous: Any,
        body: Body,
        budget: int,
        context: str,
        most_paths: int = 4,
        start: SharedStart | None = None,
    ) -> None:
        if self.chosen(key, self.candidate):
            self.explore(Record(), body, budget, most_paths, context, start)

    def run_chosen(self) -> None:
        """Execute the chosen functions and methods, each by itself."""
        classes, functions = self.definitions()
        self.note_differentiated(classes, functions)
        for cls in classes:
            self.candidate = None
            self.drive(cls, {})
        for cls in classes:
            self.run_class(cls, {})
        for function in functions:
            self.run_function(function, {})


def _run_script(program: Program, path: str, memory: Memory) -> Gathered:
    onlooker = Onlooker(program, path, Memory(), memory.units)
    onlooker.execute_script()
    return onlooker.told()


def _run_entry(program: Program, path: str, memory: Memory, wanted: tuple[Unit, str]) -> Gathered:
    onlooker = Onlooker(program, path, memory, memory.units)
    onlooker.chosen = lambda key, node: key == wanted
    onlooker.run_chosen()
    return onlooker.told()


def _run_alone(program: Program, path: str, memory: Memory, functions: set[ast.AST]) -> Gathered:
    onlooker = Onlooker(program, path, memory, memory.units)
    onlooker.chosen = lambda key, node: node in functions
    onlooker.run_chosen()
    return onlooker.told()


# -- from sightings to cards -----------------------------------------------------------------------------------------


def _note(seen: Seen, observer: NameObserver, sighting: Sighting, path: int, is_early: bool) -> None:
    look = UNTOLD if is_early or sighting.is_recalled else _look(observer, sighting)
    entry = (look, path, id(sighting.frame))
    if entry not in seen.looks:
        seen.looks.append(entry)
    storage = sighting.storage
    seen.made_at.add(sighting.tensor.root().site.node)
    kept = {(node.op, role, node.site.key): node.site for node, role in observer.keepers.get(storage, ())}
    if seen.saved is None:
        seen.saved = kept
    else:
        seen.saved = {key: site for key, site in seen.saved.items() if key in kept}
    for write in storage.writes[: sighting.writes]:
        seen.writes.setdefault(write.site.key, write.site)
    if look.is_leaf is None or look.requires_grad is None:
        seen.callers.setdefault((), set())
    else:
        known = seen.callers.setdefault(_calls(sighting), set())
        known.add((look.is_leaf, look.requires_grad, sighting.records))


def _calls(sighting: Sighting) -> Chain:
    """The calls through which the function of a name was reached, the nearest first."""
    frame, sites = sighting.frame, []
    while frame.call_site is not None:
        sites.append(frame.call_site)
        frame = frame.call_site.frame
    return tuple(sites)


def _callers(seen: Seen, path: str) -> tuple[SeenFrom, ...]:
    """What the nearest callers that differ get to see, where each gets one thing and all of them are known; else nothing.

    `forward` of a block may be called from one line alone, of a model that is called for training and for evaluation:
    then those two calls are the ones that differ.
    """
    if not all(seen.callers):
        return ()
    for depth in range(max(map(len, seen.callers), default=0)):
        told: dict[int, set[tuple[bool, bool, bool]]] = {}
        reached = [(chain[min(depth, len(chain) - 1)], looks) for chain, looks in seen.callers.items()]
        for site, looks in reached:
            told.setdefault(site.line, set()).update(looks)
        is_shown = all(site.path == path and not site.unit.library for site, _ in reached)
        if is_shown and 1 < len(told) <= MOST_CALLERS and all(len(looks) == 1 for looks in told.values()):
            return tuple(SeenFrom(line, *looks.pop()) for line, looks in sorted(told.items()))
    return ()


def _look(observer: NameObserver, sighting: Sighting) -> Look:
    tensor, node, requires = sighting.tensor, sighting.node, sighting.requires
    doubt = sighting.escaped
    is_leaf: bool | None = node is None
    known: bool | None
    if node is not None and node.op == "torch.func.grad":
        # A derivative may be constant; then torch records nothing.
        known, is_leaf = None, None
    elif stems_from_unrecorded_view(tensor, requires):
        # Torch says that such a view requires grad, and is a leaf; no gradient comes to anything through it.
        known, is_leaf, node = None, None, None
    elif isinstance(requires, Maybe):
        known, is_leaf = None, None
        doubt = doubt or _premise(requires)
    else:
        known = requires
        if not requires:
            is_leaf, node = True, None
    version: int | None = sighting.version
    is_rewritten = observer.is_written_in_other_rounds(tensor, sighting)
    writes = sighting.storage.writes[: sighting.writes]
    if (
        sighting.escaped
        or tensor.counter not in observer.counted
        or tensor.inference_site is not None
        or not all(observer.is_counted(write, sighting) for write in writes)
        or is_rewritten
    ):
        version = None
    made_by = observer.makers.get(tensor, "") if node is None else node.op
    made_at: Site | None = tensor.site if node is None else node.site
    if node is not None:
        made_by = sign_of(node.site.node) or made_by
    if made_by in ("argument", "item"):
        made_by, made_at = "", None
    if tensor.grad_of is not None and node is None:
        made_by, made_at = "backward", _filled_at(tensor, tensor.grad_of)
    return Look(
        is_leaf,
        known,
        made_by,
        _recorded_as(observer, sighting, node)
        if node is not None and known and not is_rewritten and not sighting.escaped
        else "",
        made_at,
        _window_on(tensor),
        tensor.grad_of.label if tensor.grad_of is not None and node is None else "",
        version,
        tuple(write.site.key for write in writes) if version is not None else (),
        tensor.root().site.key,
        doubt,
        _shape(observer, sighting),
    )


def _shape(observer: NameObserver, sighting: Sighting) -> str:
    """The shape, where each size is known, and no rounds were left out that may have another."""
    shape = sighting.shape
    is_told = shape is not None and None not in shape and not sighting.escaped
    return spelled(shape) if is_told and not observer.is_in_part_of_a_loop(sighting) else ""


def _filled_at(gradient: Tensor, leaf: Tensor) -> Site | None:
    """The backward that made a gradient, under whatever name it is seen; None for one that the leaf has dropped."""
    source = gradient.source
    if source is not None and source.storage is gradient.storage:
        return source.site
    current = leaf.grad
    return current.site if isinstance(current, Tensor) and current.storage is gradient.storage else None


def _recorded_as(observer: NameObserver, sighting: Sighting, node: Node) -> str:
    """What torch calls the operation; of what some composites hand out it is not known whether it is a view of theirs."""
    tensor, is_view = sighting.tensor, sighting.base is not None
    if node in observer.functions:
        return node.op
    maker = observer.makers.get(tensor, "")
    ticks = [write.tick for write in sighting.storage.writes[: sighting.writes]]
    if node.op in RESHAPES_IN_PLACE and is_view:
        return grad_fn_name(node, is_view) if node.tick >= max(ticks, default=0) else ""
    # `F.relu(row, inplace=True)` and layers have no name that tells it.
    works_in_place = node.op.endswith("_") or node.tick in ticks
    # A layer that works in place leaves the tensor that another operator made.
    if is_view and (maker not in ("", node.op) or any(tick > node.tick for tick in ticks)):
        # A write through another name has torch record a view anew, the next time that somebody looks.
        return "AsStrided" if works_in_place else ""
    if works_in_place or maker not in ("", node.op):
        if is_view:
            return "AsStrided"
        is_matrix = maker == "Linear" and tensor.shape is not None and len(tensor.shape) == 2
        if maker and not name_of(maker) and not is_matrix:
            return ""
    return grad_fn_name(node, is_view)


def _premise(requires: Maybe) -> str:
    return "whether it requires grad" if requires.weak else f"whether {requires.reason.partition(' and ')[0]}"


def _window_on(tensor: Tensor) -> str:
    """The name of the tensor whose memory this one shows."""
    if tensor.base is not None:
        return tensor.base.label
    source = tensor.source
    if source is not None and source.storage is tensor.storage and tensor.snapshot in ("detach", "data"):
        return source.label
    return ""


def card_of(syntax: ast.AST, seen: Seen, path: str) -> TensorCard:
    """What all sightings of one name agree on."""
    name, span = _name_and_span(syntax, seen.unit)
    looks = [look for look, _, _ in seen.looks]
    first = looks[0]
    values: dict[str, Any] = {}
    differs = False
    for part in fields(Look):
        if part.name in ("doubt", "made_at", "memory", "written", "shape"):
            continue
        value = getattr(first, part.name)
        if part.name in seen.unfollowed or any(getattr(look, part.name) != value for look in looks[1:]):
            value, differs = ("" if isinstance(value, str) else None), True
        values[part.name] = value
    if "written" in seen.unfollowed or len({look.written for look in looks}) > 1:
        values["version"], differs = None, True
    is_one_shape = "shape" not in seen.unfollowed and len({look.shape for look in looks}) == 1
    places = {look.made_at.key for look in looks if look.made_at is not None}
    made_at = first.made_at
    is_here = made_at is not None and len(places) == 1 and made_at.path == path
    doubt = next((look.doubt for look in looks if look.doubt), "")
    if differs:
        doubt = BRANCH if seen.unfollowed - {"shape"} else _why(seen.looks)
    return TensorCard(
        name,
        span,
        made_line=made_at.line if is_here and made_at is not None else 0,
        saved=tuple(
            sorted(
                {
                    SavedBy(site.line, sign_of(site.node) or op)
                    for (op, _, _), site in ({} if "memory" in seen.unfollowed else seen.saved or {}).items()
                    if site.path == path
                }
            )
        ),
        writes=tuple(sorted({site.line for site in seen.writes.values() if site.path == path})),
        is_assigned=seen.is_assigned,
        doubt=doubt,
        shape=first.shape if is_one_shape else "",
        callers=_callers(seen, path) if doubt == CALL else (),
        **values,
    )


def call_card_of(place: Span, seen: SeenCall, known: CallCard | None) -> CallCard:
    """Which cases were met at a place; nothing where one of its executions does not tell."""
    cases = {case for case in seen.cases if case is not None}
    is_cast = seen.is_cast or (known is not None and known.is_cast)
    if None in seen.cases or (known is not None and not known.cases):
        return CallCard(place, seen.fact, is_cast=is_cast)
    numbers = seen.numbers if known is None else seen.numbers & {*known.numbers}
    met = sorted({*cases, *(known.cases if known is not None else ())})
    copied = seen.copied if known is None else seen.copied | {*known.copied}
    is_recorded = seen.is_recorded or (known is not None and known.is_recorded)
    return CallCard(
        place, seen.fact, tuple(met), tuple(sorted(numbers)), is_cast, tuple(sorted(copied)), is_recorded
    )


def operator_span(syntax: Any, unit: Unit) -> Span | None:
    """The name of what is called, or what stands between the operands of a sign; None where lines come between."""
    if isinstance(syntax, ast.Call):
        whole = span_of(syntax.func, unit)
        if isinstance(syntax.func, ast.Attribute):
            start = whole.end_column - len(syntax.func.attr)
            return Span(whole.end_line, start, whole.end_line, whole.end_column)
        return whole if isinstance(syntax.func, ast.Name) else None
    if isinstance(syntax, ast.BinOp):
        left, right = span_of(syntax.left, unit), span_of(syntax.right, unit)
    elif isinstance(syntax, ast.AugAssign):
        left, right = span_of(syntax.target, unit), span_of(syntax.value, unit)
    else:
        return None
    if left.end_line != right.line:
        return None
    return Span(left.end_line, left.end_column, right.line, right.column)


def _why(looks: list[tuple[Look, int, int]]) -> str:
    """Why sightings disagree: other branches, other calls, or other rounds."""
    by_path: dict[int, set[Look]] = {}
    by_call: dict[tuple[int, int], set[Look]] = {}
    for seen, path, frame in looks:
        look = replace(seen, shape="")
        by_path.setdefault(path, set()).add(look)
        by_call.setdefault((path, frame), set()).add(look)
    if all(len(group) == 1 for group in by_path.values()):
        return BRANCH
    return CALL if all(len(group) == 1 for group in by_call.values()) else ROUND


def agreed(one: TensorCard, other: TensorCard) -> TensorCard:
    """What two entries that executed the same line both say."""
    changes: dict[str, Any] = {}
    for name in (
        "is_leaf",
        "requires_grad",
        "made_by",
        "grad_fn",
        "made_line",
        "view_of",
        "grad_of",
        "version",
    ):
        value = getattr(one, name)
        if value != getattr(other, name):
            changes[name] = {str: "", int: 0}.get(type(value)) if name != "version" else None
            changes["doubt"] = CALL
    return replace(
        one,
        saved=tuple(sorted({*one.saved} & {*other.saved})),
        writes=tuple(sorted({*one.writes, *other.writes})),
        shape=one.shape if one.shape == other.shape else "",
        **changes,
    )


def _stands_there(card: TensorCard, unit: Unit) -> bool:
    """Whether the text has the name at its place; in formatted text, Python before 3.12 counts lines and columns anew."""
    span = card.span
    text = unit.line(span.line - unit.offset)[span.column : span.end_column]
    return card.name.endswith(text) and text.isidentifier()


def _name_and_span(syntax: ast.AST, unit: Unit) -> tuple[str, Span]:
    whole = span_of(syntax, unit)
    if isinstance(syntax, ast.arg):
        return syntax.arg, Span(whole.line, whole.column, whole.line, whole.column + len(syntax.arg))
    if isinstance(syntax, ast.Attribute):
        text = ast.unparse(syntax)
        name = text if len(text) <= LONGEST_NAME else f"....{syntax.attr}"
        start = whole.end_column - len(syntax.attr)
        return name, Span(whole.end_line, start, whole.end_line, whole.end_column)
    return ast.unparse(syntax), whole
