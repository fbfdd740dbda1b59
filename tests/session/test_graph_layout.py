"""Where boxes and arrows stand: values flow down, nothing overlaps, and the same drawing always looks the same."""

from __future__ import annotations

import random
from itertools import combinations, pairwise

import pytest

from gradsight.session.graph_layout import GAP_Y, Layout, lay_out, lines_of
from gradsight.session.graphs import Drawing, DrawnNode

Edges = list[tuple[str, str, str]]


def drawing_of(edges: Edges, **roles: str) -> Drawing:
    names = dict.fromkeys(name for start, end, _ in edges for name in (start, end))
    nodes = {name: DrawnNode(name, name, role=roles.get(name, "plain")) for name in names}  # type: ignore[arg-type]
    return Drawing("why", len(nodes), nodes, edges)


def flow(*pairs: str) -> Edges:
    """`flow("ab", "bc")`: values go from a to b and from b to c."""
    return [(pair[0], pair[1], "flow") for pair in pairs]


def check(layout: Layout) -> None:
    """Boxes lie in the picture and do not overlap; arrows begin and end at the border of a box."""
    for box in layout.boxes.values():
        assert box.x >= 0
        assert box.y >= 0
        assert box.x + box.width <= layout.width
        assert box.y + box.height <= layout.height
    for one, other in combinations(layout.boxes.values(), 2):
        is_beside = one.x + one.width <= other.x or other.x + other.width <= one.x
        is_above = one.y + one.height <= other.y or other.y + other.height <= one.y
        assert is_beside or is_above
    for path in layout.paths:
        assert all(0 <= x <= layout.width and 0 <= y <= layout.height for x, y in path)


def test_values_flow_downwards() -> None:
    edges = flow("xa", "xb", "ac", "bc")
    layout = lay_out(drawing_of(edges))
    check(layout)
    for start, end, _ in edges:
        upper, lower = layout.boxes[start], layout.boxes[end]
        assert upper.y + upper.height + GAP_Y <= lower.y


def test_a_fork_is_symmetric() -> None:
    layout = lay_out(drawing_of(flow("xa", "xb", "ac", "bc")))
    middle = {name: box.x + box.width / 2 for name, box in layout.boxes.items()}
    assert middle["x"] == pytest.approx(middle["c"])
    assert middle["x"] == pytest.approx((middle["a"] + middle["b"]) / 2)


@pytest.mark.parametrize("is_in_flow", [True, False], ids=["in the flow", "beside it"])
def test_a_write_stands_below_what_it_changed_and_its_arrow_points_up(is_in_flow: bool) -> None:
    edges: Edges = [*flow("xa", "ac"), *(flow("aw", "wc") if is_in_flow else []), ("w", "a", "write")]
    layout = lay_out(drawing_of(edges, w="written", a="saved"))
    check(layout)
    assert layout.boxes["a"].y < layout.boxes["w"].y
    path = layout.paths[-1]
    assert path[0][1] > path[-1][1]
    # It runs beside the flow between the same boxes, and not upon it.
    if is_in_flow:
        assert path[0][0] != layout.paths[edges.index(("a", "w", "flow"))][-1][0]


def test_a_leaf_stands_right_above_who_uses_it_first() -> None:
    layout = lay_out(drawing_of(flow("xa", "ab", "bc", "wc"), w="leaf"))
    assert layout.boxes["w"].y == layout.boxes["b"].y


def test_an_arrow_over_several_layers_goes_around_the_boxes_between() -> None:
    edges = flow("xa", "ab", "bc", "xc")
    layout = lay_out(drawing_of(edges))
    long_way = layout.paths[-1]
    assert len(long_way) == 6
    for name in "ab":
        box = layout.boxes[name]
        assert not any(box.x < x < box.x + box.width for x, _ in long_way[1:-1])


def test_arrows_that_need_not_cross_do_not_cross() -> None:
    edges = flow("ad", "bc", "ce", "df")
    layout = lay_out(drawing_of(edges))
    middle = {name: box.x for name, box in layout.boxes.items()}
    assert (middle["a"] < middle["b"]) == (middle["d"] < middle["c"])


def test_a_circle_in_what_was_recorded_is_drawn_all_the_same() -> None:
    layout = lay_out(drawing_of(flow("ab", "bc", "ca", "aa")))
    check(layout)
    assert len(layout.paths) == 4


def test_random_graphs_are_laid_out_without_overlap_and_always_alike() -> None:
    chance = random.Random(0)
    for size in range(1, 40):
        names = [f"n{number}" for number in range(size)]
        edges: Edges = [(chance.choice(names[:end]), names[end], "flow") for end in range(1, size)]
        edges += [(*sorted(chance.sample(names, 2), key=names.index), "flow") for _ in range(size // 4)]  # type: ignore[misc]
        drawing = Drawing(
            "", size, {name: DrawnNode(name, name * chance.randint(1, 5)) for name in names}, edges
        )
        layout = lay_out(drawing)
        check(layout)
        assert layout == lay_out(drawing)
        for (start, end, _), path in zip(edges, layout.paths, strict=True):
            assert layout.boxes[start].y < layout.boxes[end].y
            assert all(above[1] < below[1] for above, below in pairwise(path))


def test_an_empty_graph_is_an_empty_picture() -> None:
    layout = lay_out(Drawing("", 0))
    assert (layout.boxes, layout.paths) == ({}, [])


def test_a_box_says_its_part_in_the_fault_the_operator_and_its_line() -> None:
    node = DrawnNode("a", "exp", "f.py", 3, "    y = x.exp()", "saved")
    assert lines_of(node) == ("saved for backward", "exp", "3: y = x.exp()")
    assert max(len(line) for line in lines_of(DrawnNode("a", "n" * 99, "", 1, "x" * 99))) == 38


def test_a_box_of_a_notebook_names_the_cell() -> None:
    node = DrawnNode("a", "exp", "b.ipynb", 30, "y = x.exp()", place="cell 3, line 2")
    assert lines_of(node) == ("exp", "cell 3, line 2: y = x.exp()")
