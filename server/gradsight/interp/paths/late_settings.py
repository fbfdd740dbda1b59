"""Objects that refuse to work until somebody has filled them: a function that is executed by itself finds them filled.

    class Settings:
        values = None
        def get(self, name):
            if self.values is None:
                raise RuntimeError("load the settings first")

What the top of a module makes has its first state while the module is imported.  Whoever calls a function that asks for
more has seen to it before, or the call ends here whatever the rest of it does.
"""

from __future__ import annotations

import ast

from gradsight.interp.paths.unknown_graphs import UnknownGraphsLanguage
from gradsight.model.values import Instance, Unknown


class LateSettings(UnknownGraphsLanguage):
    """A language that goes past such a refusal."""

    def is_taken(self, node: ast.If) -> bool:
        taken = super().is_taken(node)
        if not taken or not self.path.isolated or self.path.tries or len(node.body) != 1 or node.orelse:
            return taken
        asked = attribute_missing(node.test) if isinstance(node.body[0], ast.Raise) else None
        if asked is None:
            return taken
        owner = self.evaluate(asked.value)
        if not isinstance(owner, Instance) or owner.module is not None or owner.site is None:
            return taken
        if owner.site.frame.function is not None:
            return taken
        self.objects.set_attribute(owner, asked.attr, Unknown("a setting that is made later"), node)
        return False


def attribute_missing(test: ast.expr) -> ast.Attribute | None:
    """The attribute that a test asks for and does not find: `self.values is None`, `not self.ready`."""
    found: ast.expr | None = None
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        found = test.operand
    elif isinstance(test, ast.Compare) and isinstance(test.ops[0], (ast.Is, ast.Eq)):
        wanted = test.comparators[0]
        found = test.left if isinstance(wanted, ast.Constant) and not wanted.value else None
    return found if isinstance(found, ast.Attribute) else None
