"""A drawing shows the fault: what only passes a value on is one box, and what has a part in it keeps its own."""

from __future__ import annotations

from itertools import pairwise

from gradsight.session.graph_folding import folded
from gradsight.session.graphs import Drawing, DrawnNode

LINES = {"weight": 0, "t": 3, "addmm": 3, "sigmoid": 3, "mul_": 4, "mul": 5, "sub": 9, "pow": 9, "mean": 9}


def drawing_of(*pairs: tuple[str, str], **changed: str) -> Drawing:
    """A drawing of these arrows; a word such as `mul_="written"` gives a box its role."""
    names = dict.fromkeys(name for pair in pairs for name in pair)
    nodes = {
        name: DrawnNode(
            name,
            f"self.linear ({name})" if name in ("t", "addmm") else name,
            "a.py",
            LINES.get(name, 0),
            f"line {LINES.get(name, 0)}",
            changed.get(name, "plain"),  # type: ignore[arg-type]
        )
        for name in names
    }
    return Drawing("why", len(nodes), nodes, [(start, end, "flow") for start, end in pairs])


STORY = (
    ("weight", "t"), ("t", "addmm"), ("bias", "addmm"), ("addmm", "sigmoid"), ("sigmoid", "mul_"),
    ("mul_", "mul"), ("mul", "sub"), ("sub", "pow"), ("pow", "mean"), ("mean", "backward"),
)  # fmt: skip
ROLES = {"weight": "leaf", "bias": "leaf", "sigmoid": "saved", "mul_": "written", "backward": "needed"}


def test_a_run_of_bystanders_is_one_box_that_names_them() -> None:
    drawing = folded(drawing_of(*STORY, **ROLES))
    assert ("mul_", "mul", "flow") in drawing.edges
    assert ("mul", "backward", "flow") in drawing.edges
    box = drawing.nodes["mul"]
    assert box.name == "mul → sub → pow → mean"
    assert (box.line, box.count) == (5, 4)
    assert box.message == "mul (5); sub (9); pow (9); mean (9)"
    assert "9: line 9" in box.text


def test_the_operators_of_one_module_are_one_box_that_takes_all_that_goes_in() -> None:
    drawing = folded(drawing_of(*STORY, **ROLES))
    assert "t" not in drawing.nodes
    assert drawing.nodes["addmm"].count == 2
    assert {("weight", "addmm", "flow"), ("bias", "addmm", "flow")} <= set(drawing.edges)


def test_nothing_of_the_fault_is_folded_and_all_operators_are_counted() -> None:
    whole = drawing_of(*STORY, **ROLES)
    drawing = folded(whole)
    assert all(drawing.nodes[name] == whole.nodes[name] for name in ROLES)
    assert sum(node.count for node in drawing.nodes.values()) == len(whole.nodes)
    assert all(start in drawing.nodes and end in drawing.nodes for start, end, _ in drawing.edges)


def test_two_bystanders_stay_two_boxes() -> None:
    whole = drawing_of(("mul_", "mul"), ("mul", "sub"), ("sub", "backward"), **ROLES)
    assert folded(whole) == whole


def test_where_values_part_or_meet_nothing_is_folded() -> None:
    whole = drawing_of(("x", "mul"), ("x", "sub"), ("mul", "mean"), ("sub", "mean"), ("mean", "pow"), **ROLES)
    assert folded(whole) == whole


def test_a_result_of_a_module_that_is_used_twice_keeps_its_box() -> None:
    whole = drawing_of(("weight", "t"), ("t", "addmm"), ("t", "mul"), **ROLES)
    assert folded(whole) == whole


def test_a_long_run_names_its_ends() -> None:
    names = [f"op{number}" for number in range(9)]
    drawing = folded(drawing_of(("weight", "op0"), *pairwise(names), ("op8", "backward"), **ROLES))
    assert drawing.nodes["op0"].name == "op0 → 7 more → op8"
    assert drawing.nodes["op0"].count == 9
