"""The autograd graph around a fault as the panel of the editor draws it: every box and arrow in its place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradsight.session.graph_layout import LINE, PADDING, lay_out
from gradsight.session.graphs import Drawing


def drawn(drawing: Drawing, link: Callable[[str, int], dict[str, Any]]) -> dict[str, Any]:
    """A drawing with its layout; `link` says where a line of a file is to the client."""
    layout = lay_out(drawing)
    nodes = []
    for name, node in drawing.nodes.items():
        box = layout.boxes[name]
        nodes.append(
            {
                **link(node.path, node.line),
                "id": node.id,
                "name": node.name,
                "text": node.text.strip(),
                "place": node.place,
                "role": node.role,
                "message": node.message,
                "count": node.count,
                "lines": list(box.lines),
                "x": box.x,
                "y": box.y,
                "width": box.width,
                "height": box.height,
            }
        )
    edges = [
        {"from": start, "to": end, "kind": kind, "points": [list(point) for point in path]}
        for (start, end, kind), path in zip(drawing.edges, layout.paths, strict=True)
    ]
    return {
        "title": drawing.title,
        "total": drawing.total,
        "nodes": nodes,
        "edges": edges,
        "width": layout.width,
        "height": layout.height,
        "lineHeight": LINE,
        "padding": PADDING,
    }
