"""The ledger of gradients: what filled each `.grad`, who read it, who cleared, zeroed or masked it, and updates by hand.

*Filled*: a backward reached the leaf.  *Zeroed*: all of it was set to zero after that.  *Dropped*: set to None.
*Masked*: a part of it was set to zero.  *Assigned*: written by hand with something else.
*Update by hand*: a leaf that is written without grad mode after its own gradient was read.
"""

from __future__ import annotations

import ast
from typing import Any

from gradsight.interp.replacement import Replacement
from gradsight.interp.syntax import names_read, statement_around
from gradsight.model.events import Step
from gradsight.model.sites import Site
from gradsight.model.tensors import Tensor
from gradsight.model.values import (
    AbsentGrad,
    Function,
    Instance,
    Layer,
    Mapping,
    Opaque,
    Seq,
    Unknown,
    tensors_in,
)


class GradientRecord:
    """What is known about the `.grad` of one leaf, as of now."""

    __slots__ = ("decisions", "filled_at", "pending", "read", "scaled_at", "scaler", "site", "state")

    def __init__(self) -> None:
        self.state = ""
        self.site: Site | None = None
        """Where it came into this state."""
        self.filled_at: Site | None = None
        self.pending = False
        """Filled, and no step or update has used it since."""
        self.read = False
        """Used by an operator since it was filled or cleared."""
        self.scaled_at: Site | None = None
        """The backward of a scaled loss that filled it, until unscale_ or the scaler's step."""
        self.scaler: Any = None
        """Who scaled that loss."""
        self.decisions = 0
        """How many undecided branches the path had taken when it was filled."""


class Ledger(Replacement):
    """Keeps the records up to date."""

    records: dict[Tensor, GradientRecord]
    all_clears: dict[Tensor, list[int]]
    updates: list[tuple[Tensor, Site, int]]
    escapes: list[tuple[int, set[int]]]
    graph_escaped = False
    """A tensor with a graph was given to code that is not known, which may have run its backward."""

    def record_of(self, leaf: Tensor) -> GradientRecord:
        record = self.records.get(leaf)
        if record is None:
            record = self.records[leaf] = GradientRecord()
        return record

    # -- filled ------------------------------------------------------------------------------------------------------

    def backward_done(self, run: Any, given: dict[str, Any]) -> None:
        super().backward_done(run, given)
        scaler = self.scaler_of(run.loss)
        for leaf in run.leaves:
            record = self.record_of(leaf)
            record.state, record.site, record.filled_at = "filled", run.site, run.site
            record.pending, record.read = True, False
            record.decisions = len(self.decisions)
            record.scaler, record.scaled_at = scaler, run.site if scaler is not None else None

    def scaler_of(self, loss: Tensor) -> Any:
        """Hook: the gradient scaler that made the loss."""
        return None

    # -- read --------------------------------------------------------------------------------------------------------

    used: set[Tensor]
    """Parameters and other leaves to be learned that some operator was given."""

    def operands_of(self, bound: dict[str, Any], node: ast.AST) -> Any:
        unseen = False
        for value in bound.values():
            if type(value) is Tensor:
                if value.is_parameter or (value.requires_grad is True and value.leaf_made):
                    self.used.add(value)
                if (
                    self.records
                    and not value.is_parameter
                    and (value.source is not None or value.grad_of is not None)
                ):
                    self.note_gradient_operand(value, node)
            elif type(value) is Seq:
                unseen = unseen or (not value.items and not value.exact)
                for tensor in tensors_in(value) if self.records else ():
                    if tensor.source is not None or tensor.grad_of is not None:
                        self.note_gradient_operand(tensor, node)
        operands, ignorant, cuts = super().operands_of(bound, node)
        return operands, ignorant or unseen, cuts

    def note_gradient_operand(self, tensor: Tensor, node: ast.AST) -> None:
        leaf = gradient_owner(tensor)
        if leaf is not None:
            record = self.record_of(leaf)
            record.read = True
            self.gradient_used(leaf, record, node)

    def gradient_used(self, leaf: Tensor, record: GradientRecord, node: ast.AST) -> None:
        """Hook: an operator got a gradient."""

    # -- written -----------------------------------------------------------------------------------------------------

    def write_tensor(
        self, target: Tensor, op: str, site: Site, others: list[Tensor], *rest: Any, **options: Any
    ) -> Any:
        node = super().write_tensor(target, op, site, others, *rest, **options)
        mode = target.storage.writes[-1].mode
        leaf = gradient_owner(target)
        if leaf is not None:
            if op != "zero_grad" and mode != "accumulate":
                self.gradient_written(leaf, target, op, site, others, options.get("region"))
        elif self.records and mode in ("no_grad", "silent") and op not in NOT_UPDATES:
            self.leaf_written(target, site)
        return node

    def gradient_written(
        self, leaf: Tensor, target: Tensor, op: str, site: Site, others: list[Tensor], region: Any
    ) -> None:
        record = self.record_of(leaf)
        if op in ("zero_", "fill_", "mul_", "copy_", "index_put_"):
            self.all_clears.setdefault(leaf, []).append(self.tick)
            self.cleared_ticks[leaf] = self.tick
        effect = self.effect_of(op, target, site, others, region)
        if effect:
            record.state, record.site = effect, site
            record.read = record.read and effect not in ("zeroed", "dropped")

    def effect_of(self, op: str, target: Tensor, site: Site, others: list[Tensor], region: Any) -> str:
        """What a write by hand makes of a gradient; empty where it merely scales or clips it."""
        whole = target.region is None and region is None and target.base is None
        if op == "zero_" or (op in ("fill_", "mul_") and not others and self.writes_zero(site)):
            return "zeroed" if whole else "masked"
        if op == "mul_":
            return "masked" if any(self.is_mask(tensor) for tensor in others) else ""
        if op == "masked_fill_" or (op == "index_put_" and self.writes_zero(site)):
            return "masked"
        if op in ("copy_", "add_", "sub_", "index_put_"):
            return "assigned"
        return ""

    def writes_zero(self, site: Site) -> bool:
        """Whether the statement's operand is the number zero: `grad[rows] = 0`, `grad *= 0`, `grad.mul_(0)`."""
        node = site.node
        if isinstance(node, ast.Call):
            value: Any = node.args[0] if node.args else None
        else:
            statement = node if isinstance(node, ast.AugAssign) else statement_around(node, site.frame)
            value = getattr(statement, "value", None)
        return isinstance(value, ast.Constant) and value.value in (0, 0.0) and value.value is not False

    def is_mask(self, tensor: Tensor) -> bool:
        """Made of zeros and ones: a truth value, one that was converted, or ones and zeros set item by item."""
        if tensor.dtype == "bool" or (tensor.attributes or {}).get("<mask>"):
            return True
        return tensor.leaf_made and any(write.op == "index_put_" for write in tensor.storage.writes)

    def converted(self, tensor: Tensor, dtype: str, name: str, node: ast.AST) -> Any:
        result = super().converted(tensor, dtype, name, node)
        if isinstance(result, Tensor) and result is not tensor and self.is_mask(tensor):
            result.attributes = {**(result.attributes or {}), "<mask>": True}
        return result

    def set_tensor_attribute(
        self, tensor: Tensor, name: str, value: Any, node: ast.AST, augmented: bool
    ) -> None:
        super().set_tensor_attribute(tensor, name, value, node, augmented)
        if name == "grad":
            self.all_clears.setdefault(tensor, []).append(self.tick)
            if not augmented:
                record = self.record_of(tensor)
                record.state, record.site = self.effect_of_assignment(value, node), self.site(node)
                if record.state == "dropped":
                    record.read, record.scaled_at = False, None

    def effect_of_assignment(self, value: Any, node: ast.AST) -> str:
        """`p.grad = None`, `p.grad = zeros_like(p.grad)`, `p.grad = p.grad * mask`."""
        if not isinstance(value, Tensor):
            return "dropped" if value is None else "assigned"
        made = value.site.node
        if isinstance(made, ast.Call) and ast.unparse(made.func) in ("torch.zeros_like", "torch.zeros"):
            return "zeroed"
        if isinstance(made, ast.BinOp) and isinstance(made.op, ast.Mult) and value.site.frame is self.frame:
            names = names_read(made)
            held = [self.frame.namespace.get(name) for name in names]
            if any(isinstance(tensor, Tensor) and self.is_mask(tensor) for tensor in held):
                return "masked"
        return "assigned"

    def clear_gradients(self, tensors: list[Tensor], in_place: bool, site: Any) -> None:
        self.before_clearing(tensors, site)
        super().clear_gradients(tensors, in_place, site)
        for tensor in tensors:
            self.all_clears.setdefault(tensor, []).append(self.tick)
            record = self.records.get(tensor)
            if record is not None:
                record.state, record.site = "zeroed" if in_place else "dropped", site
                record.read, record.scaled_at = False, None

    def before_clearing(self, tensors: list[Tensor], site: Site) -> None:
        """Hook: zero_grad is about to drop these gradients."""

    def was_cleared(self, parameter: Tensor, start: int, end: int) -> bool:
        return any(start <= tick <= end for tick in self.all_clears.get(parameter, ()))

    # -- updates by hand ---------------------------------------------------------------------------------------------

    def leaf_written(self, target: Tensor, site: Site) -> None:
        leaf = target
        while leaf.snapshot in ("data", "detach") and leaf.source is not None:
            leaf = leaf.source
        record = self.records.get(leaf)
        if record is None or not leaf.is_leaf or leaf.requires_grad is not True:
            return
        self.parameter_moved_by_hand(leaf)
        if not record.read:
            return
        if record.state == "zeroed" and record.pending and record.filled_at is not None:
            self.cleared_too_early(record, site)
        self.updates.append((leaf, site, self.tick))
        record.pending = False

    def parameter_moved_by_hand(self, leaf: Tensor) -> None:
        """Hook: a leaf was written without grad mode."""

    def cleared_too_early(self, record: GradientRecord, needed: Site) -> None:
        """The gradient was there and is gone when it is to be applied; a clear under a condition of its own is meant."""
        place, filled = record.site, record.filled_at
        if place is None or filled is None or set(place.guards) - set(needed.guards):
            return
        self.emit(
            "cleared-before-step",
            place,
            [
                Step("made", filled, "the gradient is computed here"),
                Step("needed", needed, "there is nothing to apply here"),
                *self.call_steps(place),
            ],
        )

    # -- code that is not known --------------------------------------------------------------------------------------

    def escape(self, args: list[Any], kwargs: dict[str, Any]) -> None:
        super().escape(args, kwargs)
        reached: set[int] = set()
        todo = [*args, *kwargs.values()]
        for value in todo:
            if isinstance(value, Function):
                self.forget_captured(value)
        while todo and len(reached) < 100:
            value = todo.pop()
            if id(value) in reached:
                continue
            if isinstance(value, Tensor) and value.node is not None:
                self.graph_escaped = True
            if isinstance(value, (Tensor, Instance, Layer, Opaque, Seq, Mapping)):
                reached.add(id(value))
            if isinstance(value, Seq):
                todo.extend(value.items[:32])
            elif isinstance(value, Mapping):
                todo.extend(list(value.items.values())[:32])
            elif isinstance(value, (Instance, Layer)) and value.module is not None:
                reached.update(id(tensor) for _, tensor in self.tensors_of(value, "parameter"))
        if reached:
            self.escapes.append((self.tick, reached))

    def forget_captured(self, function: Function) -> None:
        """Unknown code may call the function: what it fills, nobody knows the length of."""
        body = function.node.body
        for statement in body if isinstance(body, list) else [body]:
            for name in names_read(statement):
                scope: Any = function.scope
                while scope is not None and name not in scope.names:
                    scope = scope.outer
                value = scope.names.get(name) if scope is not None else None
                if isinstance(value, (Seq, Mapping)) and value.kind != "tuple":
                    value.exact = False

    def read_grad(self, tensor: Tensor, node: ast.AST) -> Any:
        value = super().read_grad(tensor, node)
        if isinstance(value, AbsentGrad) and self.escaped_between({tensor}, 0, self.tick):
            return Unknown("gradient of a tensor that unknown code was given")
        return value

    def autograd_backward(self, args: list[Any], kwargs: dict[str, Any], node: ast.AST) -> Any:
        roots = args[0] if args else kwargs.get("tensors")
        if not tensors_in(roots) or (isinstance(roots, Seq) and not roots.exact):
            self.gradients_unknown = True
        return super().autograd_backward(args, kwargs, node)

    def escaped_between(self, parameters: set[Tensor], start: int, end: int) -> bool:
        """Whether unknown code had its hands on one of these parameters in that time."""
        wanted = {id(parameter) for parameter in parameters}
        return any(start <= tick <= end and reached & wanted for tick, reached in self.escapes)


NOT_UPDATES = {"load_state_dict", "optimizer step", "reset_parameters", "zero_grad"}


def gradient_owner(tensor: Tensor | None) -> Tensor | None:
    """The leaf whose `.grad` this is, or an alias of it."""
    steps = 0
    while tensor is not None and steps < 8:
        if tensor.grad_of is not None:
            return tensor.grad_of
        tensor = tensor.source
        steps += 1
    return None
