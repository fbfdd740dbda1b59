"""One module in several places of a row: `nn.ModuleList([layer] * 6)` has the parameters of one layer.

What the text writes out place by place is shared on purpose, and so is a module that stands in the row by an attribute's name.
"""

from __future__ import annotations

import ast
import sys
from typing import Any

import torch

from gradsight.agent.faults import Fault, Ledger, quietly
from gradsight.agent.patches import Patches
from gradsight.agent.sites import capture, is_user_file, place_of, statement_of

_ROWS = (torch.nn.ModuleList, torch.nn.Sequential)


class RowWatch:
    """Looks at rows of modules when the program has made them."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger

    def install(self, patches: Patches) -> None:
        """Stands behind the constructors of rows."""
        for row in _ROWS:
            patches.put(row, "__init__", self._watched(row.__init__, patches))

    def _watched(self, original: Any, patches: Patches) -> Any:
        watch = self

        def init(self: Any, *args: Any, **kwargs: Any) -> None:
            original(self, *args, **kwargs)
            if patches.active and args and is_user_file(sys._getframe(1).f_code.co_filename):
                watch.made(self)

        return init

    @quietly
    def made(self, row: Any) -> None:
        """A row is complete."""
        children = list(row._modules.values())
        known = {id(child) for child in children}
        if len(known) == len(children):
            return
        twice = [one for place, one in enumerate(children) if any(one is each for each in children[:place])]
        trained = [one for one in twice if any(each.requires_grad for each in one.parameters())]
        stack = capture(3)
        if not trained or not stack or is_written_out(statement_of(stack[0])):
            return
        place = place_of(stack[0])
        name = type(trained[0]).__name__
        message = (
            f"one `{name}` stands in several places of this row, so all share its weights: make one for each"
        )
        self.ledger.add(Fault("module-repeated", message, place, (), "warning", {}))


def is_written_out(statement: ast.stmt | None) -> bool:
    """Whether a statement names the same thing twice in one list or call, or fills a row from an attribute."""
    for node in ast.walk(statement) if statement is not None else ():
        parts: list[ast.expr] = []
        if isinstance(node, (ast.List, ast.Tuple)):
            parts = node.elts
        elif isinstance(node, ast.Call):
            parts = [each for each in node.args if not isinstance(each, ast.Starred)]
        elif isinstance(node, (ast.ListComp, ast.GeneratorExp)) and isinstance(node.elt, ast.Attribute):
            return True
        if isinstance(node, ast.BinOp) and isinstance(node.left, ast.List):
            attributes: list[ast.expr] = [each for each in node.left.elts if isinstance(each, ast.Attribute)]
            parts = attributes * 2
        texts = [ast.dump(each) for each in parts if isinstance(each, (ast.Name, ast.Attribute))]
        if len(set(texts)) < len(texts):
            return True
    return False
