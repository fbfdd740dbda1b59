"""The autograd graph around a fault, as a drawing: operators, the line each was made on, and the culprits.

Values flow from the leaves down to `backward()`.  The operator whose saved value was overwritten and the write that did it
are marked; a write that autograd did not record as an operator of its own becomes a node beside it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from gradsight.model.finding import Finding, Related

NodeRole = Literal["plain", "leaf", "saved", "written", "needed", "cut"]
LineText = Callable[[str, int], str]
LineName = Callable[[str, int], str]
"""`line 7`, or in a notebook `cell 3, line 2`."""

MODULE_CALL = re.compile(r"\b(self(?:\.\w+|\[\w+\])+)\(")
"""A call of something that a module holds."""


@dataclass(frozen=True, slots=True)
class DrawnNode:
    """One box.  `line` is 0 where it is not known."""

    id: str
    name: str
    path: str = ""
    line: int = 0
    text: str = ""
    role: NodeRole = "plain"
    message: str = ""
    place: str = ""
    """How the line is spoken of where it is not known by its number alone: `cell 3, line 2`."""
    count: int = 1
    """How many operators it stands for."""

    @property
    def source(self) -> str:
        """The line of source with its place; empty where it is not known."""
        text = self.text.strip()
        return f"{self.place or self.line}: {text}" if text else ""


@dataclass(slots=True)
class Drawing:
    """Boxes and arrows; an arrow is `flow` or `write`."""

    title: str
    total: int
    nodes: dict[str, DrawnNode] = field(default_factory=dict)
    edges: list[tuple[str, str, str]] = field(default_factory=list)


def draw(
    graph: Mapping[str, Any],
    fault: Finding,
    operator: str,
    line_text: LineText,
    line_name: LineName = lambda _path, line: f"line {line}",
) -> Drawing:
    """The drawing of a recorded graph and of the fault in it."""
    drawing = Drawing(fault.message, int(graph["total"]))
    broken = ""
    for node in graph["nodes"]:
        drawn = _node(node, line_text)
        drawing.nodes[drawn.id] = drawn
        broken = drawn.id if node["broken"] else broken
    # Torch's edges lead from a result to what it was made from; values go the other way.
    drawing.edges = [(made_from, result, "flow") for result, made_from in graph["edges"]]
    if broken:
        saved = _step(fault, "saved")
        message = saved.message if saved is not None else "what it saved was overwritten"
        drawing.nodes[broken] = replace(drawing.nodes[broken], role="saved", message=message)
        for step in [step for step in fault.related if step.role == "written"] or [_own_step(fault)]:
            _mark_write(drawing, step, operator, broken, line_text)
    needed = _step(fault, "needed")
    if needed is not None:
        _add_backward(drawing, needed, line_text)
    for name, node in drawing.nodes.items():
        if node.line:
            place = line_name(node.path, node.line).removeprefix("line ")
            drawing.nodes[name] = replace(node, place=place)
    return drawing


def _node(node: Mapping[str, Any], line_text: LineText) -> DrawnNode:
    path, line = str(node["filename"]), int(node["line"])
    if node["name"] == "AccumulateGrad":
        shape = f"[{', '.join(str(extent) for extent in node['shape'] or ())}]"
        name = f"{node.get('label') or ''} {shape}".strip()
        return DrawnNode(str(node["id"]), name, role="leaf", message="a leaf: its `.grad` is filled here")
    text = line_text(path, line)
    return DrawnNode(str(node["id"]), shown_name(operator_name(str(node["name"])), text), path, line, text)


def shown_name(operator: str, text: str) -> str:
    """An operator by what the user calls on the line: `self.linear (addmm)`; by itself where the line names it."""
    called = [found.group(1) for found in MODULE_CALL.finditer(text)]
    if len(called) != 1 or operator.rstrip("_") in re.findall(r"\w+", text):
        return operator
    return f"{called[0]} ({operator})"


def operator_name(node_name: str) -> str:
    """`ExpBackward0` as a user writes it: `exp`."""
    bare = re.sub(r"Backward\d*$", "", node_name)
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", bare).lower().removeprefix("native_") or node_name


def _mark_write(drawing: Drawing, step: Related, operator: str, broken: str, line_text: LineText) -> None:
    """Mark the node of a write, or add one."""
    bare = operator.rstrip("_")
    recorded = [
        node
        for node in drawing.nodes.values()
        if (node.path, node.line) == (step.path, step.span.line) and node.id != broken
    ]
    recorded.sort(key=lambda node: node.name != bare)
    if recorded and (recorded[0].name == bare or recorded[0].name in ("copyslices", "copy_slices")):
        name = recorded[0].id
        drawing.nodes[name] = replace(
            recorded[0], name=operator or recorded[0].name, role="written", message=step.message
        )
    else:
        name = f"write{len(drawing.nodes)}"
        text = line_text(step.path, step.span.line)
        drawing.nodes[name] = DrawnNode(
            name, operator or "write", step.path, step.span.line, text, "written", step.message
        )
    drawing.edges.append((name, broken, "write"))


def _add_backward(drawing: Drawing, needed: Related, line_text: LineText) -> None:
    """`backward()` itself stands at the end of the flow."""
    sources = {start for start, _, kind in drawing.edges if kind == "flow"}
    ends = [
        name for name, node in drawing.nodes.items() if name not in sources and not name.startswith("write")
    ]
    path, line = needed.path, needed.span.line
    drawing.nodes["backward"] = DrawnNode(
        "backward", "backward", path, line, line_text(path, line), "needed", needed.message
    )
    drawing.edges += [(name, "backward", "flow") for name in ends]


def _step(fault: Finding, role: str) -> Related | None:
    return next((step for step in fault.related if step.role == role), None)


def _own_step(fault: Finding) -> Related:
    return Related("written", "written here", fault.path, fault.span)
