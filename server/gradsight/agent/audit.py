"""The audit of a graph: saved tensors against the writes that happened since they were saved."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from gradsight.agent.arrivals import looks_at
from gradsight.agent.definitions import named_elsewhere, step_named
from gradsight.agent.faults import Fault, FaultStep, Kind, calls_of, inside_library
from gradsight.agent.graph import (
    Node,
    NodeSaved,
    base_name,
    geometry_of,
    overlaps,
    saved_tensors,
    storage_key,
    version_refusal,
)
from gradsight.agent.numbering import number_of
from gradsight.agent.oplog import NUMPY, LoggedWrite, Operation, OpLog, operator_label
from gradsight.agent.sites import SourceRange, Stack, line_name, place_of, text_of

Named = Callable[[int], str]
_MOST_WRITERS = 4
_MOST_SAVERS = 3
_LONGEST_SAVER = 26


@dataclass(frozen=True)
class Clash:
    """A node, what it saved, and the writes that spoiled it; `refusal` is torch's message, empty when torch is silent."""

    node: Node
    attribute: str
    shape: tuple[int, ...]
    maker: Operation | None
    writes: tuple[LoggedWrite, ...]
    refusal: str
    expected: int
    found: int
    storage: int = 0
    """The identity of the overwritten memory."""
    saved: torch.Tensor | None = None

    def is_looked_at(self, gradients: Sequence[Any]) -> bool:
        """Whether the node makes other gradients of these where what it saved is another."""
        # An imprint is all that is known of a write by NumPy, and not where it wrote.
        areas = [None if write.imprint is not None else write.geometry for write in self.writes]
        return self.saved is None or looks_at(self.node, gradients, self.saved, areas)


def find_refused(nodes: Sequence[Node], log: OpLog, message: str) -> list[Clash]:
    """The saved tensors that torch refuses, with the writes to blame; the one that made torch raise this message first.

    The engine runs nodes in falling sequence order, so among equal complaints the youngest node is the one it met.
    """
    clashes: list[tuple[bool, int, Clash]] = []
    for node in nodes:
        for saved in saved_tensors(node):
            refusal = version_refusal(node, saved)
            if refusal is None or "modified by an inplace operation" not in refusal:
                continue
            clash = _refused_clash(node, saved, log, refusal)
            clashes.append((refusal.split(" Hint:")[0] == message.split(" Hint:")[0], number_of(node), clash))
    clashes.sort(key=lambda entry: (entry[0], bool(entry[2].writes), entry[1]), reverse=True)
    return [clash for _, _, clash in clashes]


def faults_of_refused(
    clashes: Sequence[Clash], needed: Stack, message: str, named: Named | None = None
) -> list[Fault]:
    """One fault per line that wrote: the one torch raised for first, then what it would have refused next."""
    found: dict[tuple[str, int], Fault] = {}
    for clash in clashes:
        said = clash.refusal if found else message
        fault = fault_of(clash, needed, said, named)
        if fault is None:
            continue
        key = (fault.place.filename, fault.place.row)
        if key not in found:
            if len(found) < _MOST_WRITERS:
                found[key] = fault
        else:
            found[key] = _with_other_saves(found[key], fault)
    return list(found.values())


def _with_other_saves(fault: Fault, other: Fault) -> Fault:
    """A fault that also says where else the overwritten tensor was saved."""
    saves = [step for step in fault.related if step.role == "saved"]
    lines = {(step.place.filename, step.place.row) for step in saves}
    more = tuple(
        replace(step, message=f"also {step.message}")
        for step in other.related
        if step.role == "saved" and (step.place.filename, step.place.row) not in lines
    )
    if not more or len(saves) >= _MOST_SAVERS:
        return fault
    at = max(index for index, step in enumerate(fault.related) if step.role == "saved") + 1 if saves else 0
    return replace(fault, related=(*fault.related[:at], *more, *fault.related[at:]))


def _refused_clash(node: Node, saved: NodeSaved, log: OpLog, refusal: str) -> Clash:
    found, expected = versions_in(refusal)
    maker = log.maker(node)
    since = maker.clock if maker is not None else -1
    writes = tuple(
        write
        for write in log.writes_to(saved.data) or ()
        if write.version >= expected and write.clock >= since and write.stack
    )
    shape = tuple(saved.data.shape)
    storage = storage_key(saved.data)
    return Clash(node, saved.attribute, shape, maker, writes, refusal, expected, found, storage)


def find_silent(nodes: Sequence[Node], log: OpLog) -> list[Clash]:
    """Saved tensors that were overwritten without a new version: torch will compute with the wrong values."""
    clashes: list[Clash] = []
    if not log.has_writes:
        return clashes
    for node in nodes:
        if not node.next_functions:
            continue
        if isinstance(node, torch.autograd.function.FunctionCtx):
            clashes.extend(_kept_on_context(node, log))
        for saved in saved_tensors(node):
            if not log.may_have_changed(saved.data) or _is_running_statistic(node, saved):
                continue
            maker = log.maker(node)
            later = _silent_writes(node, saved, maker, log) if maker is not None else ()
            if later and version_refusal(node, saved) is None:
                version = saved.data._version
                clashes.append(
                    Clash(
                        node,
                        saved.attribute,
                        tuple(saved.data.shape),
                        maker,
                        later,
                        "",
                        version,
                        version,
                        storage_key(saved.data),
                        saved.data,
                    )
                )
    return clashes


def _silent_writes(node: Node, saved: NodeSaved, maker: Operation, log: OpLog) -> tuple[LoggedWrite, ...]:
    """The writes to a saved tensor since it was saved; where nobody noted one, what its values tell."""
    replaced = log.replaced(saved.data)
    if replaced is not None and replaced.clock > maker.clock and replaced.stack:
        return (replaced,)
    noted = [write for write in log.writes_to(saved.data) or () if write.clock > maker.clock]
    if not noted:
        hidden = log.hidden_write(saved.data, maker.clock)
        return (hidden,) if hidden is not None and hidden.stack else ()
    here = geometry_of(saved.data)
    return tuple(
        write
        for write in noted
        if write.stack
        and write.geometry is not None
        and overlaps(write.geometry, here)
        and write.is_felt_by(node)
        and not (write.name == NUMPY and log.is_untouched(saved.data, maker.clock))
    )


def _kept_on_context(node: Node, log: OpLog) -> list[Clash]:
    """Tensors that a custom function keeps as attributes: torch does not check their versions."""
    clashes = []
    maker = log.maker(node)
    for name, value in list(vars(node).items()):
        if maker is None or not isinstance(value, torch.Tensor) or value.layout is not torch.strided:
            continue
        here = geometry_of(value)
        later = tuple(
            write
            for write in log.writes_to(value) or ()
            if write.clock > maker.clock
            and write.stack
            and (write.geometry is None or overlaps(write.geometry, here))
        )
        if later:
            clashes.append(Clash(node, f"ctx.{name}", tuple(value.shape), maker, later, "", 0, 0))
    return clashes


def _is_running_statistic(node: Node, saved: NodeSaved) -> bool:
    """In training mode a batch norm keeps its running statistics and does not use them in backward."""
    return saved.attribute in ("running_mean", "running_var") and bool(getattr(node, "_saved_training", True))


def versions_in(message: str) -> tuple[int, int]:
    """The version found and the version expected, from torch's message."""
    found, expected = message.split("is at version ", 1)[1].split("; expected version ", 1)
    return int(found), int(expected.split()[0].rstrip("."))


def fault_of(clash: Clash, needed: Stack, torch_message: str, named: Named | None = None) -> Fault | None:
    """The three spans of an overwritten saved tensor: saved, written, needed.

    `named` knows the parameter that some memory belongs to.
    """
    if not clash.writes:
        return None
    first = clash.writes[0]
    saver = base_name(clash.node.name())
    operator = operator_label(first.name)
    place = named_elsewhere(first.stack[0], operator) or place_of(first.stack[0])
    is_step = first.by_optimizer or first.to_leaf
    saved_place = None
    if clash.maker is not None and clash.maker.stack:
        saved_place = named_elsewhere(clash.maker.stack[0], operator_label(clash.maker.name)) or place_of(
            clash.maker.stack[0]
        )
    saved_by = _as_written(_operator_of(saver, clash.maker), saved_place)
    what = f"{_part(clash.attribute)} of `{saved_by}`"
    parameter = named(clash.storage) if named is not None and clash.storage and is_step else ""
    if parameter and "." not in clash.attribute:
        what = f"`{parameter}`, which `{saved_by}` saved"
    where = f" ({line_name(saved_place)})" if saved_place is not None else ""
    silent = not clash.refusal
    on_context = clash.attribute.startswith("ctx.")
    kind: Kind = "saved-changed-silently" if silent else "saved-overwritten"
    if on_context:
        kind = "tensor-on-ctx"
    elif is_step:
        kind = "parameter-stepped"
    writer = f"`{text_of(place)}`" if text_of(place) else f"`{operator}`"
    verb = "moves" if is_step else "overwrites"
    end = "; torch does not notice, so the gradient is computed with the new value" if silent else ""
    joint = " and" if what.startswith("`") else ", which"
    if first.imprint is not None:
        writer, verb = f"a write through the array of {writer}", "overwrites"
    message = f"{writer} {verb} {what}{where}{joint} the `backward()`{_at(needed)} needs{end}"
    steps: list[FaultStep] = []
    if clash.maker is not None:
        steps += step_named(
            "saved",
            f"`{saved_by}` saves {_own_part(clash.attribute)} here",
            clash.maker.stack,
            operator_label(clash.maker.name),
        )
        steps += calls_of(clash.maker.stack)[:1]
    lines = {(place.filename, place.row)}
    for write in clash.writes:
        other = place_of(write.stack[0])
        if write is first or (other.filename, other.row) not in lines:
            lines.add((other.filename, other.row))
            steps.append(FaultStep("written", _written_text(write, silent), other))
            steps += inside_library("written", write.library)
        if len(lines) > _MOST_WRITERS:
            break
    steps += calls_of(first.stack)
    steps += step_named("needed", "this `backward()` needs the old value", needed, "backward")
    evidence: dict[str, Any] = {
        "operator": operator,
        "saved_by": clash.node.name(),
        "saved_as": clash.attribute,
        "shape": list(clash.shape),
        "version_saved": clash.expected,
        "version_found": clash.found,
        "silent": silent,
        **({"parameter": parameter} if parameter else {}),
    }
    if torch_message:
        evidence["torch"] = torch_message
    return Fault(kind, message, place, tuple(steps), "warning" if silent else "error", evidence)


def _written_text(write: LoggedWrite, silent: bool) -> str:
    if write.imprint is not None:
        return "NumPy shares its memory from here on, and its values change later"
    by = operator_label(write.name)
    during = f" while `{base_name(write.node)}` ran in backward" if write.node else ""
    versions = "" if silent else f", version {write.version} → {write.version + 1}"
    # What is written as `*=` or `[...] =` needs no second name.
    named = f" by `{by}`" if by in text_of(place_of(write.stack[0])) or write.library else ""
    return f"overwritten here{named}{versions}{during}"


def _operator_of(saver: str, maker: Operation | None) -> str:
    """The operator as a user calls it: `layer_norm` for `NativeLayerNorm` and `aten::native_layer_norm`."""
    if maker is not None and maker.name.replace("_", "").lower().endswith(saver.replace("_", "").lower()):
        return operator_label(maker.name).strip("_").removeprefix("native_")
    return saver.removeprefix("Native")


def _as_written(operator: str, place: SourceRange | None) -> str:
    """The operator as the user wrote it: `net(x)` for the `addmm` of a layer, `x * x` for a symbol, its name for a call of it."""
    text = text_of(place) if place is not None else ""
    if not text or operator.strip("_") in re.findall(r"\w+", text):
        return operator
    try:
        # Where columns are not known the text is a whole statement, or a part of one.
        written = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError):
        return operator
    if len(text) <= _LONGEST_SAVER:
        return text
    called = ast.unparse(written.func) if isinstance(written, ast.Call) else ""
    return f"{called}(…)" if called and len(called) <= _LONGEST_SAVER else operator


def _part(attribute: str) -> str:
    """What was saved under this name, seen from the one who wrote to it."""
    if attribute.startswith("result") or attribute in ("output", "out"):
        return "the output"
    if attribute in ("self", "input", "mat1", "mat2", "other"):
        return "an input"
    if attribute == "weight":
        return "the weight"
    if attribute in ("tensor", "tensors") or "[" in attribute:
        return "a tensor"
    return f"the tensor `{attribute}`"


def _own_part(attribute: str) -> str:
    """The same, seen from the operator that saved it."""
    return _part(attribute).replace("the output", "its output").replace("the weight", "its weight")


def _at(stack: Stack) -> str:
    """` on line 8`, ` in cell 3, line 1`."""
    if not stack:
        return ""
    place = named_elsewhere(stack[0], "backward") or place_of(stack[0])
    return f" {'in' if place.cell else 'on'} {line_name(place)}"


def hidden_clash(log: OpLog, message: str) -> tuple[LoggedWrite, ...]:
    """The refused tensor is behind pack hooks (a checkpoint): the write log is matched by shape and version instead."""
    found, expected = versions_in(message)
    shape = _shape_in(message)
    matching = [
        write
        for write in log.all_writes()
        if expected <= write.version < found
        and write.stack
        and write.geometry is not None
        and (shape is None or write.geometry.shape == shape)
    ]
    return tuple(matching[-1:])


def _shape_in(message: str) -> tuple[int, ...] | None:
    start = message.find(" [", message.find("[torch."))
    if start < 0:
        return None
    inner = message[start + 2 : message.find("]", start)]
    try:
        return tuple(int(part) for part in inner.split(",") if part.strip())
    except ValueError:
        return None


def graph_around(
    nodes: Sequence[Node],
    broken: Node | None,
    log: OpLog,
    named: Named,
    limit: int = 32,
) -> dict[str, Any]:
    """The neighbourhood of the broken node, as plain data for drawing, with the names of the leaves."""
    order = {node: index for index, node in enumerate(nodes)}
    chosen: set[Node] = set()
    if broken is not None:
        parents: dict[Node, list[Node]] = {}
        for node in nodes:
            for successor, _ in node.next_functions:
                if successor is not None:
                    parents.setdefault(successor, []).append(node)
        ring = {broken}
        while ring and len(chosen) < limit:
            chosen |= ring
            grown = {
                successor for node in ring for successor, _ in node.next_functions if successor is not None
            }
            grown |= {parent for node in ring for parent in parents.get(node, [])}
            ring = {node for node in grown if node not in chosen and node in order}
    kept = sorted(chosen, key=lambda node: order[node])[:limit] if chosen else list(nodes)[:limit]
    names = {node: f"n{index}" for index, node in enumerate(kept)}
    drawn = []
    for node in kept:
        maker = log.maker(node) if node.next_functions else None
        leaf = getattr(node, "variable", None)
        place = place_of(maker.stack[0]) if maker is not None and maker.stack else None
        drawn.append(
            {
                "id": names[node],
                "name": node.name().rsplit("::", 1)[-1],
                "filename": place.filename if place is not None else "",
                "line": place.row if place is not None else 0,
                "shape": list(leaf.shape) if isinstance(leaf, torch.Tensor) else None,
                "label": named(storage_key(leaf)) if isinstance(leaf, torch.Tensor) else "",
                "broken": node is broken,
            }
        )
    edges = [
        [names[node], names[successor]]
        for node in kept
        for successor, _ in node.next_functions
        if successor in names
    ]
    return {"nodes": drawn, "edges": edges, "total": len(nodes)}
