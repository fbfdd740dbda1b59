"""Holds one fact against torch on one call: every statement of the fitting case is tried out, none is looked up.

What is kept is tried by really writing into the tensor and running backward.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from gradsight.agent.facts.observe import (
    TOGETHER,
    CallTemplate,
    Run,
    backward,
    can_require_grad,
    differentiable_results,
    leaves_at,
    share_storage,
)
from gradsight.ops.fact import Case, OpFact, Output
from tests.ops.calling import bound, fitting_case


def disagreements(
    fact: OpFact, target: Any, call: CallTemplate, options: dict[str, Any] | None = None, usual: bool = True
) -> list[str]:
    """Statements of the fact that torch refutes on this call; empty when torch agrees with all."""
    plain = target.run(call, frozenset(), keep_contents=True)
    values = {**(options or {}), **bound(fact, call.positional, call.keywords)}
    case = fitting_case(fact, values)
    found = [
        *_writes(case, plain),
        *_memory(case, plain),
        *_kinds(case, plain, values),
    ]
    for place in _requiring(plain):
        found += _gradients(case, target, call, place)
    title = f"{fact.name}{_shown(call)} {options or ''}".strip()
    return [f"{title}: {text}" for text in found]


def can_be_tried(target: Any, call: CallTemplate) -> bool:
    """Whether the call runs at all and shows something."""
    try:
        run = target.run(call, frozenset())
    except Exception:
        return False
    if run.outcome is NotImplemented:
        return False
    tensors = [tensor for place, tensor in run.arguments.items() if place not in run.constant]
    results = list(run.results.values())
    return all(tensor.numel() for tensor in tensors) and (
        not results or any(each.numel() for each in results)
    )


def _base(place: str) -> str:
    return place.split("[", 1)[0]


def _shown(call: CallTemplate) -> str:
    def show(value: Any) -> str:
        if isinstance(value, torch.Tensor):
            return f"{str(value.dtype)[6:]}{tuple(value.shape)}"
        if isinstance(value, (list, tuple)):
            return "[" + ", ".join(show(each) for each in value) + "]"
        return repr(value)[:40]

    parts = [show(each) for each in call.positional] + [
        f"{key}={show(each)}" for key, each in call.keywords.items()
    ]
    return "(" + ", ".join(parts) + ")"


def _writes(case: Case, run: Run) -> Iterator[str]:
    for place, tensor in run.arguments.items():
        name = _base(place)
        moved = tensor._version != run.versions[place]
        changed = moved or not _equal(tensor, run.contents[place])
        if changed and name not in (*case.writes, *case.may_write):
            yield f"{name} was written"
        if moved and name in case.quiet:
            yield f"the version of {name} moved"
    for name in case.writes:
        places = [place for place in run.arguments if _base(place) == name]
        if places and name not in case.quiet:
            if all(run.arguments[place]._version == run.versions[place] for place in places):
                yield f"{name} was not written"


def _equal(one: torch.Tensor, other: torch.Tensor) -> bool:
    try:
        same = one.shape == other.shape and torch.equal(
            torch.nan_to_num(one.detach()), torch.nan_to_num(other)
        )
    except RuntimeError:
        return True
    return bool(same)


def _told(case: Case, run: Run) -> Iterator[tuple[str, torch.Tensor, Output]]:
    """Results with the output that describes each."""
    for index, (name, tensor) in enumerate(run.results.items()):
        if case.sequence:
            yield name, tensor, case.outputs[0]
        elif index < len(case.outputs):
            yield name, tensor, case.outputs[index]


def _memory(case: Case, run: Run) -> Iterator[str]:
    if not case.sequence and case.returns in ("tensor", "tuple") and len(run.results) != len(case.outputs):
        yield f"{len(run.results)} tensors came out, {len(case.outputs)} are told"
    for name, tensor, output in _told(case, run):
        if tensor.numel() == 0 and len(run.results) > 1:
            continue
        owners = {_base(place) for place, given in run.arguments.items() if share_storage(tensor, given)}
        itself = {_base(place) for place, given in run.arguments.items() if tensor is given}
        if output.aliased == "always" and output.alias not in owners:
            yield f"{name} shares no memory with {output.alias}"
        if output.aliased == "never" and owners:
            yield f"{name} shares memory with {sorted(owners)}"
        if output.same == "always" and output.alias not in itself:
            yield f"{name} is not {output.alias} itself"
        if output.same == "never" and itself:
            yield f"{name} is {sorted(itself)} itself"


def _kinds(case: Case, run: Run, values: dict[str, Any]) -> Iterator[str]:
    for name, tensor, output in _told(case, run):
        if not _dtype_fits(output, tensor):
            yield f"{name} is {tensor.dtype}, told {output.dtype} {output.dtype_name}"
        if output.shape and not _shape_fits(output.shape, tensor, run, values):
            yield f"{name} has shape {tuple(tensor.shape)}, told {output.shape}"


def _dtype_fits(output: Output, tensor: torch.Tensor) -> bool:
    if output.dtype_name and str(tensor.dtype) != f"torch.{output.dtype_name}":
        return False
    whole = not (tensor.is_floating_point() or tensor.is_complex())
    return {
        "same": True,
        "any": True,
        "bool": tensor.dtype is torch.bool,
        "int": whole,
        "float": tensor.is_floating_point() or tensor.is_complex(),
        "complex": tensor.is_complex(),
    }[output.dtype]


def _shape_fits(told: str, tensor: torch.Tensor, run: Run, values: dict[str, Any]) -> bool:
    alone = {place: given for place, given in run.arguments.items() if "[" not in place and "." not in place}
    shape = tuple(tensor.shape)
    if told == "scalar":
        return shape == ()
    if told.startswith("like:"):
        return told[5:] not in alone or tuple(alone[told[5:]].shape) == shape
    if told == "broadcast":
        return tuple(torch.broadcast_shapes(*[given.shape for given in alone.values()])) == shape
    source = next(iter(alone.values()))
    dims = values.get("dim")
    if dims is None or dims in ((), []):
        dims = range(source.dim())
    reduced = {dim % max(1, source.dim()) for dim in (dims if not isinstance(dims, int) else (dims,))}
    keep = values.get("keepdim") is True
    return shape == tuple(
        1 if index in reduced else size
        for index, size in enumerate(source.shape)
        if keep or index not in reduced
    )


def _requiring(run: Run) -> list[str]:
    """Places that are made to require grad, one at a time; of a list the first two."""
    found: list[str] = [TOGETHER] if f"{TOGETHER}[0]" in run.arguments else []
    for place, tensor in run.arguments.items():
        if _base(place) != TOGETHER and place not in run.constant and can_require_grad(tensor):
            if sum(_base(known) == _base(place) for known in found) < 2:
                found.append(place)
    return found


def _gradients(case: Case, target: Any, call: CallTemplate, place: str) -> Iterator[str]:
    pattern = frozenset([place])
    name = _base(place)
    try:
        run = target.run(call, pattern)
    except Exception:
        is_complex = any(tensor.is_complex() for tensor in target.run(call, frozenset()).arguments.values())
        if name not in case.refuses and name not in case.may_write and not is_complex and not _only_may(case):
            yield f"torch refuses {name} requiring grad"
        return
    if name in case.refuses:
        yield f"torch accepts {name} requiring grad"
        return
    sources = differentiable_results(run)
    for result, tensor, output in _told(case, run):
        if output.flows == "sometimes" or (not can_require_grad(tensor) and output.dtype == "same"):
            continue
        flows = output.gradient != "none" and (not output.needs or name in output.needs)
        # Of several tensors given, each result may hang on one only.
        if tensor.requires_grad != flows and not ("[" in place and flows):
            yield f"{result} requires grad because of {name}: {tensor.requires_grad}"
        if tensor.requires_grad and tensor.numel() and run.leaves:
            yield from _zero(output, result, tensor, name, leaves_at(run, place))
    if sources and all(output.gradient != "undefined" for output in case.outputs):
        yield from _twice(case, target, call, pattern, name)
        yield from _kept(case, target, call, place)


def _only_may(case: Case) -> bool:
    """A case that says of everything that it may happen claims nothing about refusals."""
    return (
        bool(case.saves)
        and all(save.when == "sometimes" for save in case.saves)
        and case.holds_saved == "sometimes"
    )


def _zero(
    output: Output, result: str, tensor: torch.Tensor, name: str, leaves: list[torch.Tensor]
) -> Iterator[str]:
    try:
        gradients = backward([tensor], leaves, retain=True)
    except RuntimeError as error:
        if (
            "not implemented" in str(error)
            and output.gradient != "undefined"
            and name not in output.undefined_for
        ):
            yield f"{result} has no derivative for {name}"
        return
    if output.gradient == "undefined" or name in output.undefined_for:
        yield f"{result} has a derivative for {name}"
    is_zero = all(each is None or not bool(torch.any(each.to_dense() != 0)) for each in gradients)
    if (output.gradient == "zero" or name in output.zero_for) and not is_zero:
        yield f"the gradient of {result} for {name} is not zero"


def _twice(case: Case, target: Any, call: CallTemplate, pattern: frozenset[str], name: str) -> Iterator[str]:
    run = target.run(call, pattern)
    sources = differentiable_results(run)
    leaves = list(run.leaves.values())
    try:
        backward(sources, leaves)
    except RuntimeError:
        return
    try:
        backward(sources, leaves)
        refused = False
    except RuntimeError as error:
        refused = "second time" in str(error)
    applies = not case.holds_needs or name in case.holds_needs
    if case.holds_saved == "always" and refused != applies:
        yield f"with {name} requiring grad a second backward is refused: {refused}"
    if case.holds_saved == "never" and refused:
        yield f"with {name} requiring grad a second backward is refused"


def _kept(case: Case, target: Any, call: CallTemplate, requiring: str) -> Iterator[str]:
    """Write into each argument and each fresh result, and see whether backward refuses."""
    first = target.run(call, frozenset([requiring]))
    written = {place for place, tensor in first.arguments.items() if tensor._version != first.versions[place]}
    fresh = [
        name
        for name, tensor in first.results.items()
        if all(
            not share_storage(tensor, given)
            for place, given in first.arguments.items()
            if place not in written
        )
    ]
    counted: dict[str, int] = {}
    for place in [*[each for each in first.arguments if each not in written], *fresh]:
        counted[_base(place)] = counted.get(_base(place), 0) + 1
        if counted[_base(place)] > 3:
            continue
        told = _told_kept(case, place, requiring, first)
        if told is None:
            continue
        refused = _refused(target, call, requiring, place)
        if refused is not None and refused != told:
            yield f"with {requiring} requiring grad, writing {place} before backward is refused: {refused}, told {told}"


def _told_kept(case: Case, place: str, requiring: str, run: Run) -> bool | None:
    """What the fact says about a later write into `place`; None where it does not commit itself."""
    name, source = _base(place), _base(requiring)
    answer: bool | None = False
    for save in case.saves:
        if save.what != (name if not (case.sequence and name.startswith("result")) else "result"):
            continue
        wanted = {source}
        if name == source and "[" in place and requiring != TOGETHER:
            wanted = {f"{name}:itself"} if place == requiring else {f"{name}:others"}
            wanted.add(source)
        if save.needs and not wanted & set(save.needs):
            continue
        tensor = run.arguments.get(place, run.results.get(place))
        if save.when == "sometimes" or not save.noticed:
            return None
        if case.sequence and name.startswith("result"):
            return None
        if save.contiguous and tensor is not None and not tensor.is_contiguous():
            return None
        if "[" in place:
            # Of several tensors a fact tells what holds for some of them.
            return None
        answer = True
    return answer


def _refused(target: Any, call: CallTemplate, requiring: str, place: str) -> bool | None:
    run = target.run(call, frozenset([requiring]))
    tensor = run.arguments.get(place, run.results.get(place))
    sources = differentiable_results(run)
    if tensor is None or tensor.numel() == 0 or tensor.layout is not torch.strided:
        return None
    try:
        backward(sources, list(run.leaves.values()), retain=True)
        with torch.no_grad():
            tensor.copy_(tensor.clone())
    except RuntimeError:
        return None
    try:
        backward(sources, list(run.leaves.values()))
    except RuntimeError as error:
        return "modified by an inplace operation" in str(error)
    return False
