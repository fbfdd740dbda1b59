"""In the graph a module of the user's comes before the operator that it runs."""

from __future__ import annotations

import pytest

from gradsight.session.graphs import shown_name


@pytest.mark.parametrize(
    ("operator", "line", "shown"),
    [
        ("addmm", "gate = torch.sigmoid(self.linear(x))", "self.linear (addmm)"),
        ("sigmoid", "gate = torch.sigmoid(self.linear(x))", "sigmoid"),
        ("convolution", "x = self.blocks[i](x)", "self.blocks[i] (convolution)"),
        ("mul", "y = a * b", "mul"),
        ("add", "y = self.left(x) + self.right(x)", "add"),
    ],
)
def test_a_node_is_named_by_the_module_that_is_called_on_its_line(
    operator: str, line: str, shown: str
) -> None:
    assert shown_name(operator, line) == shown
