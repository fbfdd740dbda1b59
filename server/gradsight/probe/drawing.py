"""The autograd graph around a fault, as DOT or SVG; the broken node is marked."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

_ARROW_TIP = (
    '<defs><marker id="tip" markerWidth="8" markerHeight="8" refX="7" refY="4" orient="auto">'
    '<path d="M0,0 L8,4 L0,8 z" fill="#666"/></marker></defs>'
)
Graph = Mapping[str, Any]

_WIDTH, _HEIGHT, _GAP_X, _GAP_Y, _MARGIN = 190, 40, 26, 46, 24


def dot_of(graph: Graph) -> str:
    """The graph in the language of Graphviz; edges point from the loss towards the leaves."""
    lines = ["digraph autograd {", "  rankdir=TB;", '  node [shape=box, fontname="monospace", fontsize=10];']
    for node in graph["nodes"]:
        style = ', color=red, penwidth=2, style=filled, fillcolor="#ffdddd"' if node["broken"] else ""
        label = _label(node).replace("\\", "\\\\").replace('"', '\\"')
        lines.append(f'  {node["id"]} [label="{label}"{style}];')
    lines += [f"  {source} -> {target};" for source, target in graph["edges"]]
    lines.append("}")
    return "\n".join(lines) + "\n"


def svg_of(graph: Graph) -> str:
    """The graph drawn in layers, the loss on top."""
    layers = _layers(graph)
    places: dict[str, tuple[int, int]] = {}
    widest = max((len(layer) for layer in layers), default=1)
    width = _MARGIN * 2 + widest * (_WIDTH + _GAP_X)
    height = _MARGIN * 2 + len(layers) * (_HEIGHT + _GAP_Y)
    for depth, layer in enumerate(layers):
        left = (width - len(layer) * (_WIDTH + _GAP_X)) // 2 + _GAP_X // 2
        for index, name in enumerate(layer):
            places[name] = (left + index * (_WIDTH + _GAP_X), _MARGIN + depth * (_HEIGHT + _GAP_Y))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="monospace" font-size="12">',
        _ARROW_TIP,
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for source, target in graph["edges"]:
        (x1, y1), (x2, y2) = places[source], places[target]
        parts.append(
            f'<line x1="{x1 + _WIDTH // 2}" y1="{y1 + _HEIGHT}" x2="{x2 + _WIDTH // 2}" y2="{y2}" '
            'stroke="#666" marker-end="url(#tip)"/>'
        )
    for node in graph["nodes"]:
        x, y = places[node["id"]]
        fill, stroke = ("#ffdddd", "#cc0000") if node["broken"] else ("#f4f6fa", "#8899aa")
        parts.append(
            f'<rect class="{"broken" if node["broken"] else "node"}" x="{x}" y="{y}" width="{_WIDTH}" '
            f'height="{_HEIGHT}" rx="6" fill="{fill}" stroke="{stroke}"/>'
        )
        parts.append(f'<text x="{x + 8}" y="{y + 25}">{escape(_label(node))}</text>')
    parts.append("</svg>")
    return "\n".join(parts) + "\n"


def _label(node: Mapping[str, Any]) -> str:
    line = f" line {node['line']}" if node["line"] else ""
    shape = f" {node['shape']}" if node["shape"] else ""
    return f"{node['name'][:22]}{shape}{line}"


def _layers(graph: Graph) -> list[list[str]]:
    """Nodes by their longest distance from a root."""
    depth = {node["id"]: 0 for node in graph["nodes"]}
    for _ in range(len(depth)):
        changed = False
        for source, target in graph["edges"]:
            if depth[target] < depth[source] + 1 <= len(depth):
                depth[target] = depth[source] + 1
                changed = True
        if not changed:
            break
    layers: list[list[str]] = [[] for _ in range(max(depth.values(), default=0) + 1)]
    for name, level in depth.items():
        layers[level].append(name)
    return [layer for layer in layers if layer]
