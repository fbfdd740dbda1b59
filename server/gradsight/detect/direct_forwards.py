"""Calls of a module's `forward` that go past its hooks."""

from __future__ import annotations

import ast

from gradsight.detect.claims import Claims
from gradsight.detect.path import Path
from gradsight.model.trace import ForwardCalled
from gradsight.model.values import Layer


class DirectForwards:
    """`self.forward(x)` is left to the class itself."""

    def __init__(self, path: Path, claims: Claims) -> None:
        self.path = path
        self.claims = claims

    def on_forward_called(self, fact: ForwardCalled) -> None:
        function = fact.node.func if isinstance(fact.node, ast.Call) else None
        if not isinstance(function, ast.Attribute) or fact.module is self.path.frame.receiver:
            return
        state = getattr(fact.module, "module", None)
        is_hooked = state is not None and bool(state.forward_hooks or state.pre_hooks or state.backward_hooks)
        if is_hooked and isinstance(fact.module, Layer) and "stand in" in fact.module.options:
            # Of a module that is not known the parts may have the hooks: a path has supposed which modules have parts.
            is_hooked = not self.path.decisions
        self.claims.add(
            "forward-called",
            self.path.site(fact.node),
            [],
            target=ast.unparse(function.value),
            is_hooked=is_hooked,
        )
