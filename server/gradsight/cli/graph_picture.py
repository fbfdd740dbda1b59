"""The autograd graph around a fault as a file, DOT or SVG: the same picture that the editor's panel shows."""

from __future__ import annotations

from html import escape

from gradsight.session.graph_layout import LINE, PADDING, Box, lay_out, lines_of
from gradsight.session.graphs import Drawing, DrawnNode

COLOURS = {
    "plain": ("#f4f6fa", "#8899aa"),
    "leaf": ("#eef6ee", "#6a9a6a"),
    "saved": ("#fff4d6", "#c08a00"),
    "written": ("#ffdddd", "#cc0000"),
    "needed": ("#e4ecff", "#3a66cc"),
    "cut": ("#ffdddd", "#cc0000"),
}
_TIPS = "".join(
    f'<marker id="{kind}" markerWidth="8" markerHeight="8" refX="7" refY="4" orient="auto">'
    f'<path d="M0,0 L8,4 L0,8 z" fill="{colour}"/></marker>'
    for kind, colour in (("flow", "#666"), ("write", "#cc0000"))
)


def dot_of(drawing: Drawing) -> str:
    """The graph in the language of Graphviz."""
    lines = ["digraph autograd {", "  rankdir=TB;", '  node [shape=box, fontname="monospace", fontsize=10];']
    for node in drawing.nodes.values():
        label = "\\n".join(line.replace("\\", "\\\\").replace('"', '\\"') for line in lines_of(node))
        fill, stroke = COLOURS[node.role]
        lines.append(f'  "{node.id}" [label="{label}", color="{stroke}", style=filled, fillcolor="{fill}"];')
    for start, end, kind in drawing.edges:
        style = ' [color="#cc0000", style=dashed, constraint=false]' if kind == "write" else ""
        lines.append(f'  "{start}" -> "{end}"{style};')
    return "\n".join([*lines, "}"]) + "\n"


def svg_of(drawing: Drawing) -> str:
    """The graph drawn in layers, `backward()` at the bottom."""
    layout = lay_out(drawing)
    width, height = f"{layout.width:.0f}", f"{layout.height:.0f}"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="monospace" font-size="12">',
        f"<title>{escape(drawing.title)}</title><defs>{_TIPS}</defs>",
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for (_, _, kind), path in zip(drawing.edges, layout.paths, strict=True):
        points = " ".join(f"{x:.0f},{y:.0f}" for x, y in path)
        colour, dash = ("#cc0000", ' stroke-dasharray="5 3"') if kind == "write" else ("#666", "")
        parts.append(
            f'<polyline points="{points}" fill="none" stroke="{colour}"{dash} marker-end="url(#{kind})"/>'
        )
    parts += [_box(node, layout.boxes[name]) for name, node in drawing.nodes.items()]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _box(node: DrawnNode, box: Box) -> str:
    fill, stroke = COLOURS[node.role]
    whole = "\n".join(part for part in (node.name, node.source, node.message) if part)
    texts = "".join(
        f'<text x="{box.x + PADDING:.0f}" y="{box.y + PADDING + LINE * (index + 0.72):.0f}">{escape(line)}</text>'
        for index, line in enumerate(box.lines)
    )
    return (
        f'<g class="{node.role}"><title>{escape(whole)}</title><rect x="{box.x:.0f}" y="{box.y:.0f}" '
        f'width="{box.width:.0f}" height="{box.height:.0f}" rx="4" fill="{fill}" stroke="{stroke}"/>{texts}</g>'
    )
