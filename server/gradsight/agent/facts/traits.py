"""Traits of torch's operators that a fact about one call does not tell, each measured on many calls.

A *trait* is a yes or no about an operator by its bare name (`mul_`), found by calling it.  It holds if every call that could
show the contrary agrees, in every namespace that has the name, and at least one call was there; those of `OF_MOST` hold if
most calls show them.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from typing import Any, Callable

import torch
from torch import Tensor

from gradsight.agent.facts import catalog
from gradsight.agent.facts.drawing import Calls
from gradsight.agent.facts.modules import Construction, made_module
from gradsight.agent.facts.observe import CallTemplate, seed_cpu
from gradsight.agent.facts.torch_samples import TorchSamples

CALLS_PER_NAME = 24
LARGEST = 2_000
ROOMS = ("torch", "Tensor", "nn.functional")

Verdict = Callable[[Callable[..., Any], CallTemplate], "bool | None"]
"""Whether a call shows the trait; None where it tells nothing."""


def survey_traits(
    samples: TorchSamples, own: Calls, constructions: dict[str, list[Construction]]
) -> dict[str, list[str]]:
    """The bare names that have each trait, and by namespace those whose every call gave one tensor."""
    seen: dict[str, dict[str, int]] = {trait: {} for trait in (*OF_ALL, *OF_MOST, *OF_WRITES)}
    single: dict[str, dict[str, bool]] = {room: {} for room in ROOMS}
    several: set[str] = set()
    leading: set[str] = set()
    for entry in catalog.functions():
        room, _, short = entry.name.rpartition(".")
        calls = list(
            usable([*FURTHER_CALLS.get(short, ()), *own.get(entry.name, ()), *samples.calls(entry.name)])
        )
        if room == "Tensor" and leads(entry.target):
            leading.add(short)
        verdicts = {**OF_ALL, **OF_MOST, **(OF_WRITES if is_write(short) else {})}
        for trait, verdict in verdicts.items():
            for call in calls:
                shown = _tried(verdict, entry.target, call)
                if shown is not None and trait in OF_MOST:
                    seen[trait][short] = seen[trait].get(short, 0) + (1 if shown else -1)
                elif shown is not None:
                    seen[trait][short] = seen[trait].get(short, True) and shown
        for call in calls:
            outcome = outcome_of(entry.target, call)
            if outcome is NOTHING:
                continue
            if room in single:
                single[room][short] = single[room].get(short, True) and isinstance(outcome, Tensor)
            if _is_several(outcome) and not any(name.startswith("return_") for name in call.keywords):
                several.add(short)
    told = {
        trait: sorted(name for name, holds in names.items() if holds > 0) for trait, names in seen.items()
    }
    for room, names in single.items():
        told[f"one-tensor {room}"] = sorted(name for name, holds in names.items() if holds)
    told["several"] = sorted(several | _several_layers(constructions))
    told["leads"] = sorted(leading)
    return told


def _several_layers(constructions: dict[str, list[Construction]]) -> set[str]:
    """The module classes that give several tensors unless an option asks for one of them more."""
    found = set()
    for entry in catalog.modules():
        for construction in constructions.get(entry.name, ())[:1]:
            module = outcome_of(made_module, CallTemplate((entry.target, construction, True)), fresh=False)
            if module is not NOTHING and _is_several(outcome_of(module, construction.call)):
                found.add(entry.name.rpartition(".")[2])
    return found


def is_write(short: str) -> bool:
    """Whether torch's spelling says that the first argument is written."""
    return short.endswith("_") and not short.endswith("__")


NOTHING = object()


def usable(calls: Iterable[CallTemplate]) -> Iterator[CallTemplate]:
    count = 0
    for call in calls:
        tensors = list(tensors_of((call.positional, call.keywords)))
        if count < CALLS_PER_NAME and sum(each.numel() for each in tensors) <= LARGEST:
            if all(each.layout is torch.strided and not each.is_quantized for each in tensors):
                count += 1
                yield call


def _tried(verdict: Verdict, function: Callable[..., Any], call: CallTemplate) -> bool | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return verdict(function, call)
    except Exception:
        return None


def outcome_of(function: Callable[..., Any], call: CallTemplate, fresh: bool = True) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _run(function, copied(call) if fresh else call)
    except Exception:
        return NOTHING


def _run(function: Callable[..., Any], call: CallTemplate) -> Any:
    seed_cpu(0)
    return function(*call.positional, **call.keywords)


def _is_refused(function: Callable[..., Any], call: CallTemplate) -> bool:
    try:
        _run(function, call)
    except RuntimeError:
        return True
    return False


def _is_several(outcome: Any) -> bool:
    return isinstance(outcome, (tuple, list)) and any(isinstance(each, Tensor) for each in outcome)


# -- copies of a call ----------------------------------------------------------------------------------------------------


def copied(
    call: CallTemplate, change: Callable[[Tensor], Tensor] = lambda tensor: tensor.detach().clone()
) -> CallTemplate:
    """The call with every tensor replaced."""

    def copy(value: Any) -> Any:
        if isinstance(value, Tensor):
            return change(value)
        if isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
            copies = [copy(each) for each in value]
            return type(value)(*copies) if hasattr(value, "_fields") else type(value)(copies)
        return value

    return CallTemplate(
        tuple(copy(each) for each in call.positional),
        {key: copy(each) for key, each in call.keywords.items()},
    )


def _with_first(call: CallTemplate, first: Tensor) -> CallTemplate:
    """The call on copies, but for its first argument."""
    twin = copied(call)
    return CallTemplate((first, *twin.positional[1:]), twin.keywords)


def tensors_of(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from tensors_of(each)
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from tensors_of(each)


def _floating(value: Any) -> list[Tensor]:
    return [each for each in tensors_of(value) if each.is_floating_point()]


def _first(call: CallTemplate) -> Tensor | None:
    """The first argument if it is a tensor of several numbers."""
    first = call.positional[0] if call.positional else None
    fits = isinstance(first, Tensor) and first.is_floating_point() and first.numel() > 1
    return first if fits else None


# -- every operator ------------------------------------------------------------------------------------------------------


def moves(function: Callable[..., Any], call: CallTemplate) -> bool | None:
    """Whether the numbers that come out are those that went in, whatever they are: other numbers in, the same moves."""
    given = _floating((call.positional, call.keywords))
    count = sum(each.numel() for each in given)
    if count < 2 or any(each.is_complex() for each in tensors_of((call.positional, call.keywords))):
        return None
    # Exact in every floating dtype for as many as the samples have; signs and fractions are seen by rounding and abs.
    labels = [(number % 40 + 0.25) * (-1) ** number * 2.0 ** (number // 40) for number in range(count)]
    others = labels[count // 2 :] + labels[: count // 2]
    renamed = dict(zip(labels, others))
    first, second = (_moved(function, call, numbers) for numbers in (labels, others))
    if not first or any(number not in renamed for number in first):
        return False if first else None
    return [renamed[number] for number in first] == second


def _moved(function: Callable[..., Any], call: CallTemplate, numbers: list[float]) -> list[float]:
    remaining = iter(numbers)

    def relabelled(tensor: Tensor) -> Tensor:
        if not tensor.is_floating_point():
            return tensor.detach().clone()
        values = torch.tensor([next(remaining) for _ in range(tensor.numel())], dtype=torch.float64)
        return values.reshape(tensor.shape).to(tensor.dtype)

    outcome = _run(function, copied(call, relabelled))
    if type(outcome).__name__ == "ndarray":
        outcome = torch.from_numpy(outcome)
    return [number for tensor in _floating(outcome) for number in tensor.double().flatten().tolist()]


def keeps_object(function: Callable[..., Any], call: CallTemplate) -> bool | None:
    """Whether every argument that the graph keeps is kept as the object it is, and not as a view of it."""

    def needing(tensor: Tensor) -> Tensor:
        copy = tensor.detach().clone()
        return copy.requires_grad_(True).clone() if copy.is_floating_point() else copy

    ready = copied(call, needing)
    arguments = _floating((ready.positional, ready.keywords))
    outcome = _run(function, ready)
    waiting = [each.grad_fn for each in _floating(outcome) if each.grad_fn is not None]
    ends = {each.grad_fn for each in arguments} if outcome is not ready.positional[0] else set()
    memory = {each.untyped_storage().data_ptr() for each in arguments if each.numel()}
    done: set[Any] = set()
    kept: list[bool] = []
    while waiting:
        node = waiting.pop()
        if node in done or node in ends or node is None:
            continue
        done.add(node)
        waiting.extend(parent for parent, _ in node.next_functions)
        for name in dir(node):
            if name.startswith("_saved_"):
                for saved in tensors_of(getattr(node, name)):
                    if saved.numel() and saved.untyped_storage().data_ptr() in memory:
                        kept.append(any(saved is argument for argument in arguments))
    return all(kept) if kept else None


def needs_only_sign(function: Callable[..., Any], call: CallTemplate) -> bool | None:
    """Whether the gradient stays the same when one of the things that the graph keeps is multiplied by a positive number."""
    expected, kept = _gradients(function, call, -1, 1.0)
    if not any(kept) or not any(each is not None and each.any() for each in expected):
        return None
    return all(
        _equal(expected, _gradients(function, call, place, factor)[0])
        for place, is_floating in enumerate(kept)
        if is_floating
        for factor in (4.0, 0.25)
    )


def _gradients(
    function: Callable[..., Any], call: CallTemplate, place: int, factor: float
) -> tuple[tuple[Tensor | None, ...], list[bool]]:
    """The gradients where what backward reads at this place is multiplied, and whether each thing it reads is floating."""
    read: list[bool] = []

    def unpacked(tensor: Tensor) -> Tensor:
        read.append(tensor.is_floating_point())
        return tensor * factor if len(read) - 1 == place else tensor

    def needing(tensor: Tensor) -> Tensor:
        copy = tensor.detach().clone()
        return copy.requires_grad_(True) if copy.is_floating_point() else copy

    ready = copied(call, needing)
    leaves = _floating((ready.positional, ready.keywords))
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, unpacked):
        outcomes = [each for each in _floating(_run(function, ready)) if each.requires_grad]
        weights = [torch.linspace(0.5, 1.5, each.numel()).reshape(each.shape).to(each) for each in outcomes]
        return torch.autograd.grad(outcomes, leaves, weights, allow_unused=True) if outcomes else (), read


def gives_constants(function: Callable[..., Any], call: CallTemplate) -> bool | None:
    """Whether the gradient is a constant though the graph keeps what requires grad: it reads an order or places there."""
    kept: list[bool] = []
    leaves: list[Tensor] = []
    first = _first(call)
    if first is None or min(first.shape) < 2:
        return None

    def needing(tensor: Tensor) -> Tensor:
        copy = tensor.detach().clone()
        if not copy.is_floating_point():
            return copy
        leaves.append(copy.requires_grad_(True))
        return copy.clone()

    def packed(tensor: Tensor) -> Tensor:
        kept.append(tensor.requires_grad)
        return tensor

    ready = copied(call, needing)
    with torch.autograd.graph.saved_tensors_hooks(packed, lambda tensor: tensor):
        outcomes = [each for each in _floating(_run(function, ready)) if each.requires_grad]
    if not outcomes or not any(kept):
        return None
    weights = [torch.ones_like(each) for each in outcomes]
    gradients = torch.autograd.grad(outcomes, leaves, weights, create_graph=True, allow_unused=True)
    told = [each for each in gradients if each is not None and each.any()]
    return not any(each.requires_grad for each in told) if told else None


def _equal(some: tuple[Tensor | None, ...], others: tuple[Tensor | None, ...]) -> bool:
    return all(
        one is other or (one is not None and other is not None and torch.equal(one, other))
        for one, other in zip(some, others)
    )


# -- views ---------------------------------------------------------------------------------------------------------------


def _windows(function: Callable[..., Any], call: CallTemplate) -> tuple[Tensor, list[Tensor]] | None:
    """A contiguous first argument of two dimensions or more, and the views of all its memory that come out."""
    first = call.positional[0] if call.positional else None
    if not isinstance(first, Tensor) or first.dim() < 2 or first.numel() < 4:
        return None
    source = first.detach().clone(memory_format=torch.contiguous_format)
    outcome = list(tensors_of(_run(function, _with_first(call, source))))
    memory = source.untyped_storage().data_ptr()
    if not outcome or any(each.untyped_storage().data_ptr() != memory or each is source for each in outcome):
        return None
    return source, outcome


def stays_dense(function: Callable[..., Any], call: CallTemplate) -> bool | None:
    """Whether the view of a contiguous tensor is contiguous and shows all of it."""
    found = _windows(function, call)
    return (
        None
        if found is None
        else all(each.is_contiguous() and each.numel() == found[0].numel() for each in found[1])
    )


def twists(function: Callable[..., Any], call: CallTemplate) -> bool | None:
    """Whether the view shows the same dimensions in another order."""
    found = _windows(function, call)
    if found is None:
        return None
    source, views = found
    if any(
        sorted(zip(each.shape, each.stride())) != sorted(zip(source.shape, source.stride())) for each in views
    ):
        return False
    changed = any(each.stride() != source.stride() for each in views)
    return True if changed else None


def leads(function: Callable[..., Any]) -> bool:
    """Whether the view is one run of memory where it takes parts of the first dimension, and has gaps along the next."""
    source = torch.arange(16.0).reshape(4, 4)
    return any(
        _is_in_parts(function, source, True, *before, 0, *after)
        and _is_in_parts(function, source, False, *before, 1, *after)
        for before, after in PARTIAL_CALLS
    )


# What stands before and after the dimension: `narrow(dim, 1, 2)`, `split(2, dim)`.
PARTIAL_CALLS: tuple[tuple[tuple[Any, ...], tuple[Any, ...]], ...] = (
    ((), ()),
    ((), (1,)),
    ((), (1, 2)),
    ((2,), ()),
    (([1, 3],), ()),
)


def _is_in_parts(function: Callable[..., Any], source: Tensor, contiguous: bool, *arguments: Any) -> bool:
    outcome = outcome_of(function, CallTemplate((source, *arguments)), fresh=False)
    parts = list(tensors_of(outcome)) if outcome is not NOTHING else []
    memory = source.untyped_storage().data_ptr()
    return bool(parts) and all(
        each.layout is torch.strided
        and each.untyped_storage().data_ptr() == memory
        and each.numel() < source.numel()
        and each.is_contiguous() is contiguous
        for each in parts
    )


# -- operators that write ------------------------------------------------------------------------------------------------


def keeps_zero(function: Callable[..., Any], call: CallTemplate) -> bool | None:
    """Whether a tensor of zeros is one afterwards."""
    first = _first(call)
    if first is None:
        return None
    for change in CHANGES:
        twin = copied(call, change)
        written = torch.zeros_like(first)
        _run(function, CallTemplate((written, *twin.positional[1:]), twin.keywords))
        if not (written == 0).all():
            return False
    return True


def _without_content(tensor: Tensor) -> Tensor:
    return torch.zeros_like(tensor) if tensor.is_floating_point() else tensor.detach().clone()


# The other arguments as they are, and as zeros: what divides, compares or chooses shows it there.
CHANGES: tuple[Callable[[Tensor], Tensor], ...] = (lambda tensor: tensor.detach().clone(), _without_content)


def overwrites_all(function: Callable[..., Any], call: CallTemplate) -> bool | None:
    """Whether nothing of the old content is left."""
    first = _first(call)
    if first is None:
        return None
    contents = [first.detach() * factor + shift for factor, shift in ((1.0, 0.25), (-0.5, 0.5), (0.0, 0.0))]
    # What compares sees a difference only where it is given its own content.
    contents += [source.clone() for source in _floating(call.positional[1:]) if source.shape == first.shape]
    for change in CHANGES:
        results = []
        for content in contents:
            twin, written = copied(call, change), content.clone()
            _run(function, CallTemplate((written, *twin.positional[1:]), twin.keywords))
            results.append(written.nan_to_num())
        if not all(torch.equal(results[0], each) for each in results[1:]):
            return False
    return True


def writes_shared(function: Callable[..., Any], call: CallTemplate) -> bool | None:
    """Whether torch performs the write even where all elements share one memory location."""
    first = _first(call)
    if first is None:
        return None
    _run(function, _with_first(call, first.detach().clone()))
    return not _is_refused(
        function, _with_first(call, first.detach().flatten()[:1].clone().expand(first.shape))
    )


def _sources(call: CallTemplate) -> list[int]:
    """The places of positional arguments that could be the written tensor as well."""
    first = _first(call)
    return (
        []
        if first is None
        else [
            place
            for place, value in enumerate(call.positional)
            if place
            and isinstance(value, Tensor)
            and value.shape == first.shape
            and value.dtype == first.dtype
        ]
    )


def _sourced(call: CallTemplate, place: int, target: Tensor, source: Tensor) -> CallTemplate:
    twin = copied(call)
    positional = list(twin.positional)
    positional[0], positional[place] = target, source
    return CallTemplate(tuple(positional), twin.keywords)


def refuses_itself(function: Callable[..., Any], call: CallTemplate) -> bool | None:
    """Whether torch refuses to take the written tensor as its source."""
    first, places = _first(call), _sources(call)
    if first is None or not places:
        return None
    target = first.detach().clone()
    _run(function, _sourced(call, places[-1], target, target.clone()))
    target = first.detach().clone()
    return _is_refused(function, _sourced(call, places[-1], target, target))


def takes_overlap(function: Callable[..., Any], call: CallTemplate) -> bool | None:
    """Whether torch performs the write even where source and target partly overlap."""
    first, places = _first(call), _sources(call)
    if first is None or not places:
        return None
    _run(function, _sourced(call, places[-1], first.detach().clone(), first.detach().clone()))
    memory = torch.cat([first.detach().flatten(), first.detach().flatten()[:1]])
    target, source = (memory[start : start + first.numel()].view(first.shape) for start in (1, 0))
    return not _is_refused(function, _sourced(call, places[-1], target, source))


OF_ALL: dict[str, Verdict] = {
    "moves": moves,
    "keeps-object": keeps_object,
    "needs-only-sign": needs_only_sign,
    "stays-dense": stays_dense,
    "twists": twists,
}
OF_MOST: dict[str, Verdict] = {"gives-constants": gives_constants}
"""Traits that hold if more calls show them than not."""
OF_WRITES: dict[str, Verdict] = {
    "keeps-zero": keeps_zero,
    "overwrites-all": overwrites_all,
    "writes-shared": writes_shared,
    "refuses-itself": refuses_itself,
    "takes-overlap": takes_overlap,
}


def _square() -> Tensor:
    return torch.arange(9.0).reshape(3, 3) + 0.5


def _rows() -> Tensor:
    return torch.tensor([0, 1, 2])


def _places() -> Tensor:
    return torch.arange(3).expand(3, 3).clone()


FURTHER_CALLS: dict[str, list[CallTemplate]] = {
    "index_add_": [CallTemplate((_square(), 0, _rows(), _square()))],
    "index_copy_": [CallTemplate((_square(), 0, _rows(), _square()))],
    "index_reduce_": [CallTemplate((_square(), 0, _rows(), _square(), "mean"))],
    "scatter_": [CallTemplate((_square(), 0, _places(), _square()))],
    "scatter_add_": [CallTemplate((_square(), 0, _places(), _square()))],
    "scatter_reduce_": [CallTemplate((_square(), 0, _places(), _square(), "sum"))],
    "put_": [CallTemplate((_square(), torch.arange(9).reshape(3, 3), _square()))],
    "index_put_": [CallTemplate((_square(), (_rows(),), _square()))],
    "t": [CallTemplate((_square()[:2],))],
}
"""What torch's samples do not show: writes from a source of the target's own size, a matrix with more than one row."""
