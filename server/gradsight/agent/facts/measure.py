"""Turns the runs of one call into *atoms*: single observed truths that the cases of a fact are learned from.

Hard atoms must be explained by a case (what is saved, shared, written, differentiable); soft ones (shape, dtype, zero
gradient) are generalised when they differ.  Two methods tell what is saved: the graph walk, and bumping a version
counter before backward.  Where they differ torch's own refusal wins, and the difference is reported.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from gradsight.agent.facts.observe import (
    CAN_WALK,
    TOGETHER,
    CallTemplate,
    Pattern,
    Run,
    backward,
    can_require_grad,
    differentiable_results,
    leaves_at,
    only_node,
    saved_places,
    share_storage,
)
from gradsight.agent.facts.shapes import dtype_class, shape_hypotheses
from gradsight.agent.facts.signatures import Signature

Atom = tuple[Hashable, ...]
Feature = tuple[str, str]
Answers = dict[Atom, list[bool]]
# (node, argument that requires grad, kept places, given places) of a graph that is one node.
SingleNode = tuple[str, str, tuple[str, ...], tuple[str, ...]]
LIST_ELEMENTS_TRIED = 4
PLACES_TRIED = 10


@dataclass
class MeasuredCall:
    """What one call showed."""

    features: dict[str, Feature]
    hard: dict[Atom, Hashable] = field(default_factory=dict)
    shapes: dict[str, frozenset[str]] = field(default_factory=dict)
    dtypes: dict[str, tuple[str, str]] = field(default_factory=dict)
    zero: dict[tuple[str, str], bool] = field(default_factory=dict)
    usual: bool = True
    returns: str = "tensor"
    structure: str = ""
    results: int = 0
    length: int = 0
    arguments: set[str] = field(default_factory=set)
    ranks: dict[str, int] = field(default_factory=dict)
    integral: set[str] = field(default_factory=set)
    disagreements: list[str] = field(default_factory=list)
    checks: int = 0
    single_nodes: list[SingleNode] = field(default_factory=list)


class CallFailed(Exception):
    """The template does not fit this callable."""


def measure(target: Any, call: CallTemplate, options: dict[str, Any] | None = None) -> MeasuredCall:
    """Observe one call in every requires_grad pattern.  `options` are constructor options of a module."""
    try:
        plain = target.run(call, frozenset(), keep_contents=True)
    except Exception as error:
        raise CallFailed(str(error)) from error
    if plain.outcome is NotImplemented:
        raise CallFailed("an operator that does not take this operand")
    given = [tensor for place, tensor in plain.arguments.items() if place not in plain.constant]
    if any(tensor.numel() == 0 for tensor in given) or (
        plain.results and all(tensor.numel() == 0 for tensor in plain.results.values())
    ):
        raise CallFailed("an empty tensor shows nothing")
    bound = dict(target.signature.bind(call.positional, call.keywords))
    if options:
        bound.update(options)
    seen = MeasuredCall(features(target.signature, bound))
    seen.returns, seen.structure = outcome_kind(plain.outcome), outcome_structure(plain.outcome)
    seen.results = len(plain.results)
    seen.length = len(plain.outcome) if seen.returns == "tuple" else 1
    seen.arguments = {base(place) for place in plain.arguments}
    seen.ranks = {place: tensor.dim() for place, tensor in plain.arguments.items() if "[" not in place}
    seen.integral = {
        place
        for place, tensor in plain.arguments.items()
        if "[" not in place and not can_require_grad(tensor)
    }
    _note_storage(seen, plain)
    _note_soft(seen, target, call, plain, bound)
    if seen.returns == "array":
        _note_array(seen, plain)
    _note_patterns(seen, target, call, plain)
    return seen


def features(signature: Signature, bound: dict[str, Any]) -> dict[str, Feature]:
    """Kind and literal value of every argument, given or by default."""
    found: dict[str, Feature] = {}
    for name, text in signature.defaults.items():
        found[name] = _feature_of_text(text)
    for name, value in bound.items():
        found[name] = feature(value) if name not in ("index", "indices") else _index_feature(value)
    return found


def feature(value: Any) -> Feature:
    """(kind, literal): the literal is empty where a value says nothing."""
    if isinstance(value, Tensor):
        return "tensor", ""
    if value is None:
        return "none", "None"
    if isinstance(value, bool):
        return "flag", repr(value)
    if isinstance(value, (int, float, complex)):
        return "number", repr(float(value)) if not isinstance(value, complex) else ""
    if isinstance(value, str):
        return "text", repr(value)
    if isinstance(value, (list, tuple)):
        return "sequence", ""
    return "other", ""


def _index_feature(value: Any) -> Feature:
    """`indices` for an index that gathers (tensor, list, flag), else the plain kind."""
    parts = value if isinstance(value, tuple) else (value,)
    gathers = any(isinstance(part, (Tensor, list, bool)) for part in parts)
    if isinstance(value, Tensor):
        return "tensor", ""
    return ("indices", "") if gathers else ("basic", "")


def _feature_of_text(text: str) -> Feature:
    if text in ("None", ""):
        return "none", "None"
    if text in ("True", "False"):
        return "flag", text
    if text.startswith(("'", '"')):
        return "text", "'" + text[1:-1] + "'"
    if text.startswith(("(", "[")):
        return "sequence", ""
    try:
        return "number", repr(float(text))
    except ValueError:
        return "other", ""


def outcome_kind(outcome: Any) -> str:
    """One word for what a call returned."""
    if isinstance(outcome, Tensor):
        return "tensor"
    if isinstance(outcome, torch.Size):
        return "object"
    if isinstance(outcome, (list, tuple)):
        return "tuple"
    if outcome is None:
        return "none"
    if isinstance(outcome, (bool, int, float, complex, torch.SymInt, torch.SymFloat, torch.SymBool)):
        return "number"
    return "array" if type(outcome).__name__ == "ndarray" else "object"


def outcome_structure(outcome: Any) -> str:
    """`0,(1,2)` for nested tuples; empty for flat ones."""
    if not isinstance(outcome, tuple) or not any(isinstance(each, (list, tuple)) for each in outcome):
        return ""
    count = 0

    def render(value: Any) -> str:
        nonlocal count
        if isinstance(value, Tensor):
            count += 1
            return str(count - 1)
        if isinstance(value, (list, tuple)):
            return "(" + ",".join(render(each) for each in value) + ")"
        return "-"

    return render(outcome)[1:-1]


def base(place: str) -> str:
    """The parameter a place belongs to."""
    return place.split("[", 1)[0]


def _note_storage(seen: MeasuredCall, run: Run) -> None:
    for place, tensor in run.arguments.items():
        moved = tensor._version != run.versions[place]
        changed = moved or not _equal(tensor, run.contents[place])
        key = base(place)
        seen.hard["writes", key] = bool(seen.hard.get(("writes", key))) or changed
        if changed:
            seen.hard["quiet", key] = not moved
    # An empty piece among others (`split` with a size of 0) shows nothing about memory.
    telling = {name: result for name, result in run.results.items() if result.numel()} or run.results
    for name, result in telling.items():
        owners = [place for place, tensor in run.arguments.items() if share_storage(result, tensor)]
        # Parts of a sparse tensor are several: its values matter more than its indices.
        owners.sort(key=lambda place: not can_require_grad(run.arguments[place]))
        seen.hard["alias", name] = base(owners[0]) if owners else ""
        seen.hard["same", name] = next(
            (base(place) for place, tensor in run.arguments.items() if result is tensor), ""
        )
        if seen.hard["alias", name]:
            seen.hard["overlap", name] = _overlaps(result) and not any(
                _overlaps(tensor) for tensor in run.arguments.values()
            )


def _note_array(seen: MeasuredCall, run: Run) -> None:
    """A NumPy array is no tensor, but it may look at a tensor's memory, unseen by version counters."""
    address = run.outcome.__array_interface__["data"][0]
    owner = next((base(place) for place, tensor in run.arguments.items() if tensor.data_ptr() == address), "")
    seen.hard["alias", "result"] = owner
    seen.hard["same", "result"] = ""
    seen.hard["linked", "result"] = False
    seen.dtypes["result"] = ("same", "")


def _equal(one: Tensor, other: Tensor) -> bool:
    try:
        if one.shape != other.shape or one.dtype != other.dtype:
            return False
        return bool(torch.equal(torch.nan_to_num(one.detach()), torch.nan_to_num(other)))
    except RuntimeError:
        return True


def _overlaps(tensor: Tensor) -> bool:
    if tensor.layout is not torch.strided:
        return False
    return any(step == 0 and size > 1 for step, size in zip(tensor.stride(), tensor.shape))


def _note_soft(seen: MeasuredCall, target: Any, call: CallTemplate, run: Run, bound: dict[str, Any]) -> None:
    for name, result in run.results.items():
        seen.shapes[name] = shape_hypotheses(result, run.arguments, bound)
        seen.dtypes[name] = dtype_class(target, call, name, result, run.arguments)


def _note_patterns(seen: MeasuredCall, target: Any, call: CallTemplate, plain: Run) -> None:
    usable = []
    answers: Answers = {}
    for place in _candidates(plain):
        pattern = frozenset([place])
        try:
            run = target.run(call, pattern)
        except Exception:
            seen.hard["refuses", base(place)] = True
            continue
        seen.hard["refuses", base(place)] = False
        usable.append(place)
        # The walk comes first: backward frees what it looks at, and a bumped view loses its grad_fn.
        node = only_node(run)
        saved = _saved_by_both(seen, target, call, run, pattern)
        if node:
            seen.single_nodes.append((node, place, tuple(sorted(saved)), tuple(sorted(run.arguments))))
        _note_saves(run, saved, place, answers)
        _note_gradient(seen, target, call, run, place, answers)
        _note_links(seen, run)
    _settle(seen, answers)
    _note_leaf_writes(seen, target, call, usable)
    everything = frozenset(usable)
    if 1 < len(usable) <= PLACES_TRIED:
        _note_combination(seen, target, call, everything)


def _note_leaf_writes(seen: MeasuredCall, target: Any, call: CallTemplate, usable: list[str]) -> None:
    """Whether a leaf that requires grad may be written: only under `no_grad` does torch allow it."""
    for place in usable:
        if seen.hard.get(("writes", base(place))):
            try:
                target.run(call, frozenset([place]), as_leaf=True)
                seen.hard["leaf_write", base(place)] = True
            except RuntimeError:
                seen.hard["leaf_write", base(place)] = False


def _candidates(run: Run) -> list[str]:
    """Places to make require grad; of several tensors in one parameter the first, a middle and the last."""
    by_parameter: dict[str, list[str]] = {}
    for place, tensor in run.arguments.items():
        if place not in run.constant and can_require_grad(tensor):
            by_parameter.setdefault(base(place), []).append(place)
    if TOGETHER in by_parameter:
        by_parameter[TOGETHER] = [TOGETHER]
    return [place for places in by_parameter.values() for place in few_of(places)]


def few_of(places: list[str]) -> list[str]:
    """First, middle and last."""
    if len(places) <= LIST_ELEMENTS_TRIED:
        return places
    return [places[0], places[len(places) // 2], places[-1]]


def _note_gradient(
    seen: MeasuredCall, target: Any, call: CallTemplate, run: Run, place: str, answers: Answers
) -> None:
    """Which results require grad because of `place`, whether the gradient is zero, whether backward works twice."""
    key = base(place)
    for name, result in run.results.items():
        answers.setdefault(("grad", name, key), []).append(result.requires_grad)
    sources, leaves = differentiable_results(run), leaves_at(run, place)
    if not sources or not leaves:
        return
    for name, result in run.results.items():
        if not result.requires_grad or result.numel() == 0:
            continue
        try:
            gradients = backward([result], leaves, retain=True)
        except RuntimeError as error:
            seen.hard["undefined", name, key] = "not implemented" in str(error)
            continue
        is_zero = _all_zero(gradients) and not _flows_elsewhere(target, call, place, name)
        seen.zero[name, key] = seen.zero.get((name, key), True) and is_zero
    try:
        backward(sources, leaves, retain=False)
    except RuntimeError:
        return
    try:
        backward(sources, leaves, retain=False)
        held = False
    except RuntimeError as error:
        held = "second time" in str(error)
    answers.setdefault(("held", key), []).append(held)


def _all_zero(gradients: list[Tensor | None]) -> bool:
    return all(each is None or not bool(torch.any(each.to_dense() != 0)) for each in gradients)


def _flows_elsewhere(target: Any, call: CallTemplate, place: str, name: str) -> bool:
    """A gradient that is zero here, behind a clamp perhaps: is it for other numbers?"""
    for factor in (-1.0, 5.0):
        scaled = CallTemplate(
            tuple(_scaled(each, factor) for each in call.positional),
            {key: _scaled(each, factor) for key, each in call.keywords.items()},
        )
        try:
            run = target.run(scaled, frozenset([place]))
            if not _all_zero(backward([run.results[name]], leaves_at(run, place))):
                return True
        except Exception:
            continue
    return False


def _scaled(value: Any, factor: float) -> Any:
    scales = isinstance(value, Tensor) and value.is_floating_point() and value.layout is torch.strided
    return value.detach() * factor if scales else value


def _note_links(seen: MeasuredCall, run: Run) -> None:
    """How a result that shares storage hangs on its source: version counter, one view of many, a cut gradient."""
    for name, result in run.results.items():
        source = seen.hard.get(("alias", name))
        argument = next(
            (t for place, t in run.arguments.items() if base(place) == source and share_storage(result, t)),
            None,
        )
        if argument is None or result is argument:
            continue
        before = result._version
        if bump(argument):
            seen.hard["linked", name] = result._version != before
        if result.requires_grad and result._is_view():
            meta = torch._C._autograd._get_creation_meta(result)
            seen.hard["many", name] = meta == torch._C._autograd.CreationMeta.MULTI_OUTPUT_NODE


def bump(tensor: Tensor) -> bool:
    """Advance the version counter without touching content; False where torch refuses."""
    try:
        increment = getattr(torch.autograd.graph, "increment_version", None)
        if increment is not None:
            increment(tensor)
        else:
            with torch.no_grad():
                tensor.copy_(tensor.clone())
    except (RuntimeError, AttributeError):
        return False
    return True


def _saved_by_both(
    seen: MeasuredCall, target: Any, call: CallTemplate, walked: Run, pattern: Pattern
) -> set[str]:
    by_walk = set(saved_places(walked))
    refused, decided = refused_places(target, call, pattern)
    if not decided:
        return by_walk
    if not CAN_WALK:
        return {place for place, answer in refused.items() if answer}
    tried = refused.keys()
    for place in sorted(tried):
        seen.checks += 1
        if refused[place]:
            seen.hard["unnoticed", base(place)] = False
        if refused[place] != (place in by_walk):
            if place in by_walk and changes_gradient(target, call, pattern, place):
                seen.hard["unnoticed", base(place)] = bool(seen.hard.get(("unnoticed", base(place)), True))
                refused[place] = True
                continue
            says = "saves" if place in by_walk else "does not save"
            does = "refuses" if refused[place] else "accepts"
            seen.disagreements.append(
                f"with {'+'.join(sorted(pattern))} requiring grad the graph {says} {place}, "
                f"backward {does} a bumped {place}"
            )
    return {place for place in by_walk if place not in tried} | {p for p in tried if refused[p]}


def changes_gradient(target: Any, call: CallTemplate, pattern: Pattern, place: str) -> bool:
    """Does backward silently give another gradient after the content of `place` was changed behind its counter?"""
    gradients = []
    for changed in (False, True):
        run = target.run(call, pattern)
        tensor = run.arguments.get(place, run.results.get(place))
        if tensor is None:
            return False
        if changed:
            tensor.data.add_(1)
        gradients.append(backward(differentiable_results(run), list(run.leaves.values())))
    return any(
        one is not None and other is not None and not torch.allclose(one, other)
        for one, other in zip(*gradients)
    )


def refused_places(target: Any, call: CallTemplate, pattern: Pattern) -> tuple[dict[str, bool], bool]:
    """For each argument and fresh result: does backward refuse after its version was bumped?  (answers, decided)"""
    answers: dict[str, bool] = {}
    try:
        run = target.run(call, pattern)
        sources = differentiable_results(run)
        if not sources:
            return dict.fromkeys(run.arguments, False), True
        backward(sources, list(run.leaves.values()), retain=True)
    except Exception:
        return answers, False
    places = [*run.arguments]
    written = {place for place, tensor in run.arguments.items() if tensor._version != run.versions[place]}
    for name, result in run.results.items():
        owner = [place for place, tensor in run.arguments.items() if share_storage(result, tensor)]
        if not owner or set(owner) & written:
            places.append(name)
    places = _few_per_parameter([place for place in places if place not in written], pattern)
    for place in places:
        tensor = run.arguments.get(place, run.results.get(place))
        if tensor is None or not bump(tensor):
            continue
        try:
            backward(sources, list(run.leaves.values()), retain=True)
            answers[place] = False
        except RuntimeError as error:
            answers[place] = "modified by an inplace operation" in str(error)
            run = target.run(call, pattern)
            sources = differentiable_results(run)
    return answers, True


def _few_per_parameter(places: list[str], pattern: Pattern) -> list[str]:
    by_parameter: dict[str, list[str]] = {}
    for place in places:
        by_parameter.setdefault(base(place), []).append(place)
    kept = {place for group in by_parameter.values() for place in (*few_of(group), *group[:2])}
    return [place for place in places if place in kept or place in pattern]


def _note_saves(run: Run, saved: set[str], place: str, answers: Answers) -> None:
    """Of several tensors in one parameter it is enough that one is kept."""
    key = base(place)
    kept: dict[Atom, bool] = {}
    for what in [*run.arguments, *run.results]:
        owner = base(what)
        if place != TOGETHER and owner == key and what != place:
            relation = "others"
        elif place != TOGETHER and owner == key and "[" in what:
            relation = "itself"
        else:
            relation = key
        atom: Atom = ("saved", owner, relation)
        kept[atom] = kept.get(atom, False) or what in saved
    for atom, answer in kept.items():
        answers.setdefault(atom, []).append(answer)


def _settle(seen: MeasuredCall, answers: Answers) -> None:
    """What each element of a list parameter gives alike is told plainly, the rest is `mixed`."""
    for atom, given in answers.items():
        seen.hard[atom] = given[0] if len(set(given)) == 1 else "mixed"


def _note_combination(seen: MeasuredCall, target: Any, call: CallTemplate, pattern: Pattern) -> None:
    """With all arguments requiring grad, what is kept must be the union of what each alone keeps."""
    try:
        run = target.run(call, pattern)
    except Exception:
        return
    together = {base(place) for place in saved_places(run)}
    alone = {str(atom[1]) for atom, value in seen.hard.items() if atom[0] == "saved" and value}
    for owner in {str(atom[1]) for atom in seen.hard if atom[0] == "saved"}:
        more, fewer = owner in together - alone, owner in alone - together
        seen.hard["odd", owner] = "more" if more else "fewer" if fewer else ""
