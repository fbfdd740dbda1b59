"""Layers that an optimizer holds and no operator ever reads: told when the run is over.

A layer is named by the line that puts it on its module, `self.norm = nn.LayerNorm(4)`.  Where another method of the class reads
the attribute, this run only did not come there, and nothing is said.
"""

from __future__ import annotations

import ast

from gradsight.agent.cuts import label, name_list
from gradsight.agent.faults import Fault, Ledger, quietly, step_at
from gradsight.agent.modules import ModuleNotes
from gradsight.agent.naming import reachable_modules
from gradsight.agent.shadow import Leaf, Shadow
from gradsight.agent.sites import FrameKey, line_of, place_of, statement_of, tree_of
from gradsight.agent.training import TrainingWatch

_FEWEST_STEPS = 2
# Whoever goes over the parts of a module reads them without naming them.
_GOES_OVER = frozenset(("children", "named_children", "modules", "named_modules", "_modules", "__dict__"))


class UncalledLayers:
    """Compares what optimizers hold with what operators have read."""

    def __init__(self, ledger: Ledger, shadow: Shadow, training: TrainingWatch, modules: ModuleNotes) -> None:
        self.ledger = ledger
        self.shadow = shadow
        self.training = training
        self.modules = modules

    @quietly
    def finish(self) -> None:
        """Says which layers nothing has used."""
        used = self.training.ever_missing | self.training.ever_reached | self.shadow.met
        unused: dict[FrameKey, list[Leaf]] = {}
        busy: set[FrameKey] = set()
        for record in self.training.optimizers.values():
            for leaf in record.leaves.values() if record.useful_steps >= _FEWEST_STEPS else ():
                tensor = leaf.tensor()
                birth = self.modules.birth(tensor) if tensor is not None else None
                if tensor is None or birth is None or not birth.stack:
                    continue
                # A helper may have made it: what counts is the line that puts it on its module.
                frame = next((each for each in birth.stack if _attribute(each)), birth.stack[0])
                if used >> leaf.bit & 1 or not tensor.requires_grad or not leaf.is_parameter:
                    busy.add(frame)
                else:
                    unused.setdefault(frame, []).append(leaf)
        if unused and any(getattr(each, "find_unused_parameters", False) for each in reachable_modules()):
            # Whoever tells DistributedDataParallel of unused parameters knows of them.
            return
        for frame, leaves in unused.items():
            name = _attribute(frame) if frame not in busy else ""
            if name and not _is_read(frame, name):
                self._report(frame, name, leaves)

    def _report(self, frame: FrameKey, name: str, leaves: list[Leaf]) -> None:
        message = f"`self.{name}` is never used: {name_list(leaves)} got no gradient in any step"
        record = next(each for each in self.training.optimizers.values() if leaves[0].bit in each.leaves)
        steps = step_at("call", "the optimizer holds it", record.made)
        evidence = {"parameters": [label(leaf) for leaf in leaves][:20]}
        self.ledger.add(Fault("layer-unused", message, place_of(frame), steps, "warning", evidence))


def _attribute(frame: FrameKey) -> str:
    """The attribute of a module that the statement of a frame sets while the module is built."""
    statement = statement_of(frame) if frame.code.co_name == "__init__" else None
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    is_own = (
        isinstance(target, ast.Attribute)
        and isinstance(target.value, ast.Name)
        and target.value.id == frame.code.co_varnames[0]
    )
    return target.attr if is_own and isinstance(target, ast.Attribute) else ""


def _is_read(frame: FrameKey, name: str) -> bool:
    """Whether the class reads an attribute of this name somewhere, by its name or by going over all of them."""
    tree, line = tree_of(frame.code.co_filename), line_of(frame)
    scope: ast.AST | None = tree
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.ClassDef) and node.lineno <= line <= (node.end_lineno or 0):
            scope = node
    for node in ast.walk(scope) if scope is not None else ():
        if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Store):
            if node.attr == name or node.attr in _GOES_OVER:
                return True
        elif isinstance(node, ast.Name) and node.id == "getattr":
            return True
    return scope is None
