"""The autograd graph around a fault as a file, DOT or SVG: the boxes, words and arrows that the editor's panel shows.

Values flow downwards from the leaves to `backward()`.  A box has up to three lines: its part in the fault, the operator,
and the line of source that made it.
"""

from __future__ import annotations

from html import escape

from gradsight.session.graphs import Drawing, DrawnNode

ROLE_WORDS = {
    "plain": "",
    "leaf": "leaf",
    "saved": "saved for backward",
    "written": "overwritten here",
    "needed": "needed here",
    "cut": "cut here",
}
COLOURS = {
    "plain": ("#f4f6fa", "#8899aa"),
    "leaf": ("#eef6ee", "#6a9a6a"),
    "saved": ("#fff4d6", "#c08a00"),
    "written": ("#ffdddd", "#cc0000"),
    "needed": ("#e4ecff", "#3a66cc"),
    "cut": ("#ffdddd", "#cc0000"),
}
LONGEST_LINE = 38
BESIDE = 24
CHARACTER, LINE, PADDING, GAP_X, GAP_Y, MARGIN = 7.3, 17, 10, 36, 44, 16
_TIPS = "".join(
    f'<marker id="{kind}" markerWidth="8" markerHeight="8" refX="7" refY="4" orient="auto">'
    f'<path d="M0,0 L8,4 L0,8 z" fill="{colour}"/></marker>'
    for kind, colour in (("flow", "#666"), ("write", "#cc0000"))
)


def lines_of(node: DrawnNode) -> list[str]:
    """The text of a box."""
    source = f"{node.line}: {node.text.strip()}" if node.text.strip() else ""
    lines = [ROLE_WORDS[node.role], node.name, source]
    return [line if len(line) <= LONGEST_LINE else f"{line[: LONGEST_LINE - 1]}…" for line in lines if line]


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
    sizes = {name: _size(lines_of(node)) for name, node in drawing.nodes.items()}
    layers = _layers(drawing)
    widths = [sum(sizes[name][0] for name in layer) + GAP_X * (len(layer) - 1) for layer in layers]
    width = max(widths, default=0) + 2 * MARGIN
    places: dict[str, tuple[float, float]] = {}
    y: float = MARGIN
    for layer, own in zip(layers, widths, strict=True):
        x = (width - own) / 2
        for name in layer:
            places[name] = (x, y)
            x += sizes[name][0] + GAP_X
        y += max(sizes[name][1] for name in layer) + GAP_Y
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {y:.0f}" font-family="monospace" font-size="12">',
        f"<title>{escape(drawing.title)}</title><defs>{_TIPS}</defs>",
        f'<rect width="{width:.0f}" height="{y:.0f}" fill="white"/>',
    ]
    for start, end, kind in drawing.edges:
        (x1, y1), (x2, y2) = places[start], places[end]
        # A write runs beside the flow between the same two boxes.
        aside = BESIDE if kind == "write" else 0
        middle_1, middle_2 = x1 + sizes[start][0] / 2 + aside, x2 + sizes[end][0] / 2 + aside
        # An arrow leaves a box on the side that looks at the other one.
        leaves, enters = (y1 + sizes[start][1], y2) if y1 < y2 else (y1, y2 + sizes[end][1])
        colour, dash = ("#cc0000", ' stroke-dasharray="5 3"') if kind == "write" else ("#666", "")
        parts.append(
            f'<line x1="{middle_1:.0f}" y1="{leaves:.0f}" x2="{middle_2:.0f}" y2="{enters:.0f}" '
            f'stroke="{colour}"{dash} marker-end="url(#{kind})"/>'
        )
    parts += [_box(node, places[name], sizes[name]) for name, node in drawing.nodes.items()]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _box(node: DrawnNode, place: tuple[float, float], size: tuple[float, float]) -> str:
    (x, y), (width, height) = place, size
    fill, stroke = COLOURS[node.role]
    whole = "\n".join(part for part in (node.name, node.text.strip(), node.message) if part)
    texts = "".join(
        f'<text x="{x + PADDING:.0f}" y="{y + PADDING + LINE * (index + 0.72):.0f}">{escape(line)}</text>'
        for index, line in enumerate(lines_of(node))
    )
    return (
        f'<g class="{node.role}"><title>{escape(whole)}</title><rect x="{x:.0f}" y="{y:.0f}" width="{width:.0f}" '
        f'height="{height:.0f}" rx="4" fill="{fill}" stroke="{stroke}"/>{texts}</g>'
    )


def _size(lines: list[str]) -> tuple[float, float]:
    return (
        max(len(line) for line in lines) * CHARACTER + 2 * PADDING,
        len(lines) * LINE + 2 * PADDING - 4,
    )


def _layers(drawing: Drawing) -> list[list[str]]:
    """Boxes by their longest way from a leaf; one beside the flow stands just above what it changed."""
    depth = dict.fromkeys(drawing.nodes, 0)
    flow = [(start, end) for start, end, kind in drawing.edges if kind == "flow"]
    for _ in range(len(depth)):
        moved = [(start, end) for start, end in flow if depth[end] < depth[start] + 1 <= len(depth)]
        if not moved:
            break
        for start, end in moved:
            depth[end] = max(depth[end], depth[start] + 1)
    # A leaf stands right above who uses it first.
    for name in depth:
        used = [depth[end] for start, end in flow if start == name]
        if used and not any(end == name for _, end in flow):
            depth[name] = min(used) - 1
    in_flow = {name for edge in flow for name in edge}
    for start, end, kind in drawing.edges:
        if kind == "write" and start not in in_flow:
            depth[start] = depth[end] + 1
    layers: list[list[str]] = [[] for _ in range(max(depth.values(), default=0) + 1)]
    for name, level in depth.items():
        layers[level].append(name)
    return [layer for layer in layers if layer]
