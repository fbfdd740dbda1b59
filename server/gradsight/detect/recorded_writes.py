"""Writes in place that autograd recorded, and writes to a tensor of the graph that it did not."""

from __future__ import annotations

import ast

from gradsight.detect.claims import Claims
from gradsight.detect.deciding_defaults import asks_for_training, made_by_default
from gradsight.detect.path import Path
from gradsight.detect.picked_modules import picks_functions
from gradsight.interp.syntax import statement_around
from gradsight.interp.syntax_parts import syntax_parts
from gradsight.interp.tensors.regions import overlaps
from gradsight.model.events import Step
from gradsight.model.sites import Frame, Site
from gradsight.model.tensors import Maybe, Node, Storage, Tensor, Write
from gradsight.model.trace import ContainerMade, InputShown, Walked, Wrote
from gradsight.model.values import tensors_in

REPLACING = {
    "round_",
    "sign_",
    "floor_",
    "ceil_",
    "copy_",
    "clamp_",
    "clamp_min_",
    "clamp_max_",
    "clip_",
    "trunc_",
    "bernoulli_",
    "load_state_dict",
}
"""Writes that give a straight-through estimator or a projection its meaning: the value changes on purpose."""

EXACT = ("none", "shifted", "sunk")
"""What a write may do to the numbers so that the gradient of the old value stays the gradient."""
RESCALING = {"mul_", "div_", "pow_", "sqrt_", "exp_", "sigmoid_", "tanh_", "neg_", "reciprocal_", "square_", "__imul__", "__itruediv__", "__ipow__"}  # fmt: skip


class RecordedWrites:
    """What was written in place without harm is told at the end, as a hint."""

    def __init__(self, path: Path, claims: Claims) -> None:
        self.path = path
        self.claims = claims
        self.recorded: list[tuple[Site, str, Write]] = []
        self.unrecorded: list[tuple[Tensor, Write]] = []
        """Tensors of the graph that were written behind autograd's back."""
        self.by_alias: set[Write] = set()
        """Those of these writes that count only where backward reads what they wrote."""
        self.held: set[Storage] = set()
        """Memory of tensors in a display that was given a name."""

    def finish(self) -> None:
        harmless = [(site, op) for site, op, _ in self.recorded if not self.depends_on_mode(site)]
        if not harmless or made_by_default(self.path.modules_made) or picks_functions(self.path.picked):
            return
        for site, op in harmless:
            self.claims.add("inplace-recorded", site, [], op=op, target=self.path.text_of_target(site))

    def depends_on_mode(self, site: Site) -> bool:
        """Whether the function that writes may go another way where the object that it is called on is in the other mode."""
        function = site.frame.function
        return self.path.has_receiver and asks_for_training(function and function.node, site.node)

    def on_input_shown(self, fact: InputShown) -> None:
        """A hook that is called after the module holds an input that the module has overwritten."""
        shown = None if fact.tensors is None else {tensor.storage for tensor in fact.tensors}
        self.recorded = [
            entry
            for entry in self.recorded
            if entry[2].tick < fact.started or not (shown is None or entry[2].writer.storage in shown)
        ]

    def on_container_made(self, fact: ContainerMade) -> None:
        if fact.how not in ("display", "dict"):
            return
        held = {tensor.storage for tensor in tensors_in(fact.container)}
        if held and is_given_a_name(fact.node, statement_around(fact.node, self.path.frame)):
            self.held |= held

    def on_walked(self, fact: Walked) -> None:
        if self.unrecorded:
            for node in fact.nodes:
                self.check_unrecorded(node, fact.site)

    def check_unrecorded(self, node: Node, site: Site) -> None:
        """The node read a tensor of the graph whose value had been changed behind autograd's back."""
        for target, write in self.unrecorded:
            if node.tick <= write.tick or (write in self.by_alias and not saves_value_of(node, target)):
                continue
            for operand in node.operands:
                if shows_write(operand, target, write):
                    steps = [
                        Step(
                            "made",
                            target.node.site if target.node is not None else target.site,
                            "recorded in the graph here",
                        ),
                        Step("needed", site, "this `backward()` uses the gradient of the old value"),
                        *self.path.call_steps(write.site),
                    ]
                    self.claims.add(
                        "graph-written-without-grad",
                        write.site,
                        steps,
                        op=write.op,
                        target=self.path.text_of_target(write.site),
                        through=way_of(write),
                    )

    def on_wrote(self, fact: Wrote) -> None:
        target, op, site, write = fact.tensor, fact.op, fact.site, fact.write
        if self.path.assuming and op in RESCALING:
            self.note_rescaled(target, write)
        alias = nameless_alias(target)
        if write.mode != "graph" and not (write.mode == "no_grad" and (alias or not self.path.grad_mode)):
            return
        if write.mode == "no_grad" and op not in REPLACING and write.change not in EXACT:
            source = alias.source if alias is not None else target
            if source is target and source.node is None and source.view_made_without_grad:
                source = source.root()
            is_noted = any(known is write for _, known in self.unrecorded)
            if (
                not is_noted
                and source is not None
                and source.node is not None
                and source.requires_grad is True
            ):
                self.unrecorded.append((source, write))
                if alias is not None:
                    self.by_alias.add(write)
        if write.mode == "graph" and target.node is not None and target.requires_grad is True:
            kept = write.counter.kept
            if (kept is None or kept >= write.version) and not self.is_held(target, write):
                if is_read_again(site.node, target, site.frame):
                    # `scale = x.pow_(2).mean()` and `x` again: what is read then is not what `x` was.
                    return
                self.recorded.append((site, op, write))

    def note_rescaled(self, target: Tensor, write: Write) -> None:
        """A value that is taken to carry a graph was rescaled behind autograd's back."""
        by_data = target.snapshot == "data" and self.path.grad_mode
        source = target.source if target.snapshot == "data" else target
        if write.mode != "no_grad" or source is None or source.node is None or is_argument(source.node):
            return
        flag = source.requires_grad
        if (flag is True and by_data) or (isinstance(flag, Maybe) and not flag.weak):
            self.unrecorded.append((source, write))

    def is_held(self, target: Tensor, write: Write) -> bool:
        """Whether an attribute or a container has held the memory since before the write: whoever reads it there sees the change."""
        root = target.root()
        return (
            target.kept_at is not None
            or root.kept_at is not None
            or target.storage in self.held
            or any(
                epoch < write.epoch and not isinstance(site.node, ast.List)
                for _, epoch, site in target.storage.stores or ()
            )
        )


def nameless_alias(target: Tensor) -> Tensor | None:
    """The `.data` or `.detach()` that a write goes through; an alias with a name of its own is told as one."""
    for alias in (target, target.root()):
        if alias.snapshot in ("data", "detach"):
            return None if alias.label or target.label else alias
    return None


def way_of(write: Write) -> str:
    """How a write got past autograd: `data`, `detach`, or empty for grad mode that was off."""
    alias = nameless_alias(write.writer)
    return alias.snapshot if alias is not None else ""


def saves_value_of(node: Node, target: Tensor) -> bool:
    """Whether backward reads what was written: who scales by `.data` what is only passed on may want the gradient as it was."""
    return any(saved.storage is target.storage for saved in node.saved)


def shows_write(operand: Tensor, target: Tensor, write: Write) -> bool:
    """Whether an operand has elements that were written as part of a tensor of the graph, and no history of the write."""
    if operand.storage is not target.storage or not overlaps(write.region, operand.region):
        return False
    return (
        operand is target or operand.node is target.node or operand.base is not None or target.base is operand
    )


def is_given_a_name(display: ast.AST, statement: ast.AST | None) -> bool:
    """Whether a statement assigns a display, or one that it is part of, to a single target."""
    if not isinstance(statement, ast.Assign) or isinstance(statement.targets[0], ast.Tuple):
        return False
    todo: list[ast.AST | None] = [statement.value]
    while todo:
        part = todo.pop()
        if part is display:
            return True
        if isinstance(part, (ast.List, ast.Tuple, ast.Set)):
            todo.extend(part.elts)
        elif isinstance(part, ast.Dict):
            todo.extend(part.values)
    return False


def is_read_again(call: ast.AST, written: Tensor, frame: Frame) -> bool:
    """Whether a write whose result goes into an expression is to a name that is read after it, and not bound again."""
    statement = statement_around(call, frame)
    if not called_in_place(call) or statement is None or frame.function is None:
        return False
    if isinstance(statement, ast.Expr) and statement.value is call:
        return False
    bound = [target.id for target in getattr(statement, "targets", ()) if isinstance(target, ast.Name)]
    names = {
        part.id
        for part in ast.walk(call)
        if isinstance(part, ast.Name) and part.id not in bound and frame.namespace.get(part.id) is written
    }
    end = (getattr(call, "end_lineno", 0), getattr(call, "end_col_offset", 0))
    return any(
        isinstance(part, ast.Name)
        and part.id in names
        and isinstance(part.ctx, ast.Load)
        and (part.lineno, part.col_offset) >= end
        for part in (syntax_parts(frame.function.node) if names else ())
    )


def called_in_place(call: ast.AST) -> bool:
    """Whether a call names an operator that works in place: `x.pow_(2)`, `torch.sin_(x)`."""
    function = getattr(call, "func", None)
    return isinstance(function, ast.Attribute) and function.attr.endswith("_")


def is_argument(node: Node) -> bool:
    """Whether a value is an argument itself, written or not: whoever gave it wants it written, as `init.normal_` does."""
    while node.op.endswith("_") and node.inputs and isinstance(node.inputs[0], Node):
        node = node.inputs[0]
    return node.op == "argument"
