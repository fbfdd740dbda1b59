"""Edits that keep the formatting of the user (libcst lives here, imported lazily).

A builder gives the candidates for a finding of the rule that names it; nothing here knows whether a candidate helps: that
is verified by whoever can analyse the result.
"""

from __future__ import annotations

from gradsight.fixes import cuts, functions, gradients, graphs, inplace, modules, training
from gradsight.fixes.rewriting import rewrites
from gradsight.fixes.suppress import suppression

__all__ = [
    "cuts",
    "functions",
    "gradients",
    "graphs",
    "inplace",
    "modules",
    "rewrites",
    "suppression",
    "training",
]
