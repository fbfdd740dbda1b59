"""Asks torch what hovers over calls claim: every call of a program runs under observation, and is held against its card.

Observed are the arguments by the names of the operator's parameters, the results, the version counters before and after, and the
memory that autograd kept while the call ran.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from gradsight.interp.paths.hover_facts import operator_span
from gradsight.model.card import CallCard, Card
from gradsight.model.sites import Unit
from gradsight.model.source import Span
from gradsight.ops.fact import Case, OpFact, Output, Save
from gradsight.ops.table import shipped
from gradsight.session.fact_card import of_call
from gradsight_dev.hover_oracle import Verdict, execute

SIGNS: dict[type[ast.operator], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Add: ("add", operator.add),
    ast.Sub: ("sub", operator.sub),
    ast.Mult: ("mul", operator.mul),
    ast.Div: ("truediv", operator.truediv),
    ast.Pow: ("pow", operator.pow),
    ast.MatMult: ("matmul", operator.matmul),
    ast.FloorDiv: ("floordiv", operator.floordiv),
    ast.Mod: ("mod", operator.mod),
}
UNSEEN = object()


@dataclass(frozen=True, slots=True)
class ObservedCall:
    """One execution of a call."""

    receiver: Any
    positional: tuple[Any, ...]
    keywords: dict[str, Any]
    result: Any
    moved: frozenset[int]
    """The arguments whose version counter moved."""
    changed: frozenset[int]
    """The arguments that have other numbers than before."""
    addresses: dict[int, set[int]]
    """Where the memory of arguments and results was after the call."""
    flowing: frozenset[int]
    """The results that required grad after the call."""
    needed_grad: frozenset[int]
    """The arguments that required grad before the call."""
    kept: frozenset[int]
    """Addresses of the memory that autograd kept while the call ran."""
    records: bool


@dataclass(slots=True)
class CallObserver:
    """Runs calls, and notes how they went, by their place."""

    seen: dict[Span, list[ObservedCall]] = field(default_factory=dict)

    def call(self, place: Span, function: Any, *positional: Any, **keywords: Any) -> Any:
        receiver = getattr(function, "__self__", UNSEEN)
        if isinstance(function, torch.nn.Module):
            receiver = function
        elif not isinstance(receiver, torch.Tensor):
            receiver = UNSEEN
        return self.noted(place, receiver, positional, keywords, lambda: function(*positional, **keywords))

    def sign(self, place: Span, name: str, left: Any, right: Any) -> Any:
        compute = next(one for word, one in SIGNS.values() if word == name)
        is_reflected = not isinstance(left, torch.Tensor)
        receiver, other = (right, left) if is_reflected else (left, right)
        return self.noted(place, receiver, (other,), {}, lambda: compute(left, right))

    def noted(
        self,
        place: Span,
        receiver: Any,
        positional: tuple[Any, ...],
        keywords: dict[str, Any],
        run: Callable[[], Any],
    ) -> Any:
        own = [*receiver.parameters(), *receiver.buffers()] if isinstance(receiver, torch.nn.Module) else []
        given = list(tensors_in([receiver, *positional, *keywords.values(), *own]))
        versions = {id(one): one._version for one in given if not one.is_inference()}
        numbers = {id(one): numbers_of(one) for one in given}
        needed = frozenset(id(one) for one in given if one.requires_grad)
        kept: set[int] = set()

        def pack(tensor: torch.Tensor) -> torch.Tensor:
            kept.update(address(tensor))
            return tensor

        records = torch.is_grad_enabled()
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            result = run()
        if given:
            made = list(tensors_in([result]))
            call = ObservedCall(
                receiver,
                positional,
                keywords,
                result,
                frozenset(
                    id(one) for one in given if id(one) in versions and one._version != versions[id(one)]
                ),
                frozenset(id(one) for one in given if numbers_of(one) != numbers[id(one)]),
                {id(one): address(one) for one in (*given, *made)},
                frozenset(id(one) for one in made if one.requires_grad),
                needed,
                frozenset(kept),
                records,
            )
            self.seen.setdefault(place, []).append(call)
        return result


def numbers_of(tensor: torch.Tensor) -> bytes:
    """What a tensor holds, to be compared."""
    try:
        return bytes(tensor.detach().contiguous().flatten().view(torch.uint8).tolist())
    except RuntimeError:
        return b""


class WatchedCalls(ast.NodeTransformer):
    """Has every call and every binary sign run by the observer."""

    def __init__(self, text: str) -> None:
        self.unit = Unit("<program>", text, [])
        self.places: list[Span] = []

    def visit_Call(self, node: ast.Call) -> ast.expr:
        place = operator_span(node, self.unit)
        self.generic_visit(node)
        if place is None or (
            isinstance(node.func, ast.Name) and node.func.id in ("super", "locals", "globals", "vars")
        ):
            return node
        return ast.Call(
            ast.Attribute(ast.Name("__watch__", ast.Load()), "call", ast.Load()),
            [self.place(place), node.func, *node.args],
            node.keywords,
        )

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        place = operator_span(node, self.unit)
        known = SIGNS.get(type(node.op))
        self.generic_visit(node)
        if place is None or known is None:
            return node
        return ast.Call(
            ast.Attribute(ast.Name("__watch__", ast.Load()), "sign", ast.Load()),
            [self.place(place), ast.Constant(known[0]), node.left, node.right],
            [],
        )

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.expr:
        return node

    def place(self, span: Span) -> ast.expr:
        self.places.append(span)
        number = ast.Constant(len(self.places) - 1)
        return ast.Subscript(ast.Name("__places__", ast.Load()), number, ast.Load())


def observed_calls(text: str, path: str) -> dict[Span, list[ObservedCall]]:
    """How every call of a program went, until it ends or raises."""
    watched = WatchedCalls(text)
    tree = ast.fix_missing_locations(watched.visit(ast.parse(text)))
    observer = CallObserver()
    execute(tree, path, {"__watch__": observer, "__places__": watched.places})
    return observer.seen


def compare_calls(cards: Iterable[Card], seen: dict[Span, list[ObservedCall]]) -> Verdict:
    """Hold the sentences of every card over a call against how the call went."""
    table = shipped()
    verdict = Verdict()
    by_place: dict[Span, list[CallCard]] = {}
    for card in cards:
        if isinstance(card, CallCard):
            by_place.setdefault(card.span, []).append(card)
    for place, known in by_place.items():
        fact = table.find(known[0].fact) if len(known) == 1 and known[0].cases else None
        if fact is None or known[0].is_cast:
            continue
        card = known[0]
        cases = [
            of_call(fact.cases[number], card.numbers, card.copied, card.is_recorded) for number in card.cases
        ]
        for call in seen.get(place, ()):
            arguments = bound(fact, call)
            if arguments is None:
                continue
            # Where a hover tells several forms with their conditions, one of them is that of this call.
            denied = [list(denials(fact, case, call, arguments)) for case in cases]
            verdict.claims += 1
            if all(denied):
                text = f"{place.line}: {fact.name}: {denied[0][0]}"
                if text not in verdict.lies:
                    verdict.lies.append(text)
    return verdict


def bound(fact: OpFact, call: ObservedCall) -> dict[str, Any] | None:
    """The arguments under the names that the fact has for them; None where they do not fit."""
    values = list(call.positional)
    names = [name for name in fact.parameters if name not in fact.keyword_only]
    if fact.name.startswith("Tensor."):
        if call.receiver is UNSEEN:
            return None
        values.insert(0, call.receiver)
    elif call.receiver is not UNSEEN and not isinstance(call.receiver, torch.nn.Module):
        return None
    found: dict[str, Any] = {}
    while values:
        if not names:
            return None
        name = names.pop(0)
        if name.startswith("*"):
            found[name[1:]] = values
            break
        value = values.pop(0)
        found[fact.by_tensor.get(name, name) if isinstance(value, torch.Tensor) else name] = value
    for key, value in call.keywords.items():
        found[fact.synonyms.get(key, key)] = value
    if isinstance(call.receiver, torch.nn.Module):
        found |= {f"self.{name}": one for name, one in call.receiver.named_parameters(recurse=False)}
        found |= {f"self.{name}": one for name, one in call.receiver.named_buffers(recurse=False)}
    return found


def denials(fact: OpFact, case: Case, call: ObservedCall, arguments: dict[str, Any]) -> Iterator[str]:
    """What torch says against the sentences of a case."""
    results = list(tensors_in([call.result]))
    yield from _about_writes(case, call, arguments)
    if case.returns == "number" and results:
        yield "it gives a tensor, not a number"
    yield from _about_results(case, results, call, arguments)
    for name in case.refuses:
        if any(id(one) in call.needed_grad and not one.is_leaf for one in tensors_in([arguments.get(name)])):
            yield f"`{name}` requires grad, and nothing is raised"
    if call.records and any(id(one) in call.flowing for one in results):
        yield from _about_kept(fact, case, call, arguments, results)


def _about_writes(case: Case, call: ObservedCall, arguments: dict[str, Any]) -> Iterator[str]:
    written = (*case.writes, *case.may_write)
    # A view of what is written moves with it.
    moving = joined(
        call.addresses.get(id(one), set()) for name in written for one in tensors_in([arguments.get(name)])
    )
    for name, value in arguments.items():
        for one in tensors_in([value]):
            if one.is_inference():
                continue
            moved = id(one) in call.moved
            # `p.data = …` gives a tensor other memory, and leaves it the version counter of its aliases.
            is_written = moved and id(one) in call.changed
            if is_written and name not in written and not call.addresses[id(one)] & moving:
                yield f"`{name}` was written"
            if (
                name in case.writes
                and not moved
                and case.bumps_version
                and name not in case.quiet
                and one.numel()
            ):
                yield f"`{name}` was not written"


def _about_results(
    case: Case, results: list[torch.Tensor], call: ObservedCall, arguments: dict[str, Any]
) -> Iterator[str]:
    if case.returns in ("number", "none", "object", "array"):
        return
    for index, one in enumerate(results):
        output = case.outputs[0] if case.sequence or case.returns == "sequence" else None
        if output is None and index < len(case.outputs):
            output = case.outputs[index]
        if output is not None:
            yield from _about_result(output, one, call, arguments, case)


def _about_result(
    output: Output, one: torch.Tensor, call: ObservedCall, arguments: dict[str, Any], case: Case
) -> Iterator[str]:
    here = call.addresses[id(one)]
    if output.gradient == "none" and id(one) in call.flowing and not output.leaf and not case.writes:
        yield "a gradient flows through the result"
    if output.dtype == "int" and (one.is_floating_point() or one.is_complex()):
        yield f"the result is {one.dtype}"
    owner = arguments.get(output.alias) if output.alias else None
    if isinstance(owner, torch.Tensor) and one.numel():
        shares = bool(here & call.addresses.get(id(owner), set()))
        if output.aliased == "always" and not shares:
            yield f"the result shares no memory with `{output.alias}`"
        if output.same == "always" and one is not owner:
            yield f"the result is not `{output.alias}` itself"
    elif not output.alias and one.numel():
        sharers = [
            name
            for name, given in arguments.items()
            for each in tensors_in([given])
            if call.addresses.get(id(each), set()) & here
        ]
        if sharers:
            yield f"the result shares memory with `{sharers[0]}`"


def _about_kept(
    fact: OpFact, case: Case, call: ObservedCall, arguments: dict[str, Any], results: list[torch.Tensor]
) -> Iterator[str]:
    if not case.outputs or all(output.gradient in ("none", "undefined") for output in case.outputs):
        return
    told = {save.what for save in case.saves}
    if "self.parameters" in told:
        told |= {name for name in arguments if name.startswith("self.")}
    owned = {
        name: joined(call.addresses.get(id(one), set()) for one in tensors_in([value]))
        for name, value in arguments.items()
    }
    made = [call.addresses[id(one)] for one in results]
    told_memory = joined(_memory(what, owned, made) for what in told)
    for name, memory in owned.items():
        if memory & call.kept and not memory & told_memory and name not in told:
            yield f"`{name}` is kept"
    if joined(made) & call.kept and not joined(made) & told_memory and not case.writes:
        yield "the result is kept"
    for save in case.saves:
        memory = _memory(save.what, owned, made)
        if _is_promised(save, call, arguments) and memory and not memory & call.kept:
            yield f"`{save.what}` is not kept"


def _is_promised(save: Save, call: ObservedCall, arguments: dict[str, Any]) -> bool:
    if save.when != "always" or save.contiguous or not save.noticed:
        return False
    if any(":" in need for need in save.needs):
        return False
    return not save.needs or any(
        id(one) in call.needed_grad for need in save.needs for one in tensors_in([arguments.get(need)])
    )


def _memory(what: str, owned: dict[str, set[int]], made: list[set[int]]) -> set[int]:
    if not what.startswith("result"):
        return owned.get(what, set())
    _, _, number = what.partition(".")
    return made[int(number)] if number.isdigit() and int(number) < len(made) else joined(made)


def joined(sets: Iterable[set[int]]) -> set[int]:
    return {one for each in sets for one in each}


def tensors_in(values: Iterable[Any]) -> Iterator[torch.Tensor]:
    """The plain tensors among some values, and in lists and tuples of them."""
    for value in values:
        if isinstance(value, torch.Tensor):
            if not torch._C._functorch.is_functorch_wrapped_tensor(value) and value.layout is torch.strided:
                yield value
        elif isinstance(value, (list, tuple)):
            yield from tensors_in(value)


def address(tensor: torch.Tensor) -> set[int]:
    """Where the memory of a tensor is; nothing for what has none."""
    try:
        return {int(tensor.untyped_storage().data_ptr())} if tensor.numel() else set()
    except RuntimeError:
        return set()
