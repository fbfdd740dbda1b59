"""What a method calls by `super()` is what its bases have, and not whatever goes by that name in the file."""

from __future__ import annotations

import ast

import pytest

from gradsight.interp.parsing import parse_text
from gradsight.interp.paths.call_graph import REGISTER, CallGraph
from gradsight.interp.paths.entry_kinds import call_graph_of, functions_in
from tests.interp.checking import check

IMPORTS = "import torch\nfrom torch import nn\nfrom elsewhere import Foreign\n"
HIDING = """
class Hiding(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = [nn.Linear(2, 2)]
"""


def reasons(text: str, name: str) -> frozenset[str]:
    """What the `__init__` of a class leads to."""
    units = parse_text("model.py", IMPORTS + HIDING + text).units
    graph: CallGraph = call_graph_of(units)
    (cls,) = (
        one for unit in units for one in unit.tree if isinstance(one, ast.ClassDef) and one.name == name
    )
    (init,) = (one for unit in units for one in functions_in(unit) if one in ast.walk(cls))
    return graph.reasons_for(init)


@pytest.mark.parametrize("base", ["nn.Module", "Foreign", "torch.nn.Linear"])
def test_the_init_of_an_imported_base_is_none_of_the_file(base: str) -> None:
    plain = f"class Plain({base}):\n    def __init__(self):\n        super().__init__()\n        self.one = nn.Linear(2, 2)\n"
    assert REGISTER not in reasons(plain, "Plain")


@pytest.mark.parametrize(
    "text",
    [
        "class Net(Hiding):\n    def __init__(self):\n        super().__init__()\n",
        "class Between(Hiding):\n    pass\nclass Net(Foreign, Between):\n    def __init__(self):\n        super(Net, self).__init__()\n",
        # Which class that is, only running it could tell.
        "class Net(Foreign[int]):\n    def __init__(self):\n        super().__init__()\n",
        "Chosen = Hiding\nclass Net(Chosen):\n    def __init__(self):\n        super().__init__()\n",
        "class Net(make()):\n    def __init__(self):\n        super().__init__()\n",
        "class Net(nn.Module):\n    def __init__(self, other):\n        super().__init__()\n        other.__init__()\n",
        "class Net(nn.Module):\n    def __init__(self):\n        class Inner(Hiding):\n            def build(self):\n                super().__init__()\n",
    ],
)
def test_the_init_of_a_base_in_the_file_is_led_to(text: str) -> None:
    assert REGISTER in reasons(text, "Net")


def test_a_list_of_layers_is_reported_where_it_is_made_and_beside_it_nothing() -> None:
    check(
        IMPORTS
        + HIDING.replace("2)]", "2)]  # GS601")
        + "    def forward(self, x):\n        return self.layers[0](x)\n"
        "class Plain(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.one = nn.Linear(2, 2)\n"
    )
