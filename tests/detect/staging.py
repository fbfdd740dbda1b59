"""Stage: a path that a test makes up, so that a detector can be tried on a short list of facts.

`Stage(text)` stands for a path through that text: `at("y.mul_(2)")` is the place of the first such piece of it, and
`tensor(...)` a tensor made at a place.  `hears(detector, *facts)` tells the facts and returns what was claimed, as
(kind, line) pairs.
"""

from __future__ import annotations

import ast
from textwrap import dedent
from typing import Any

from gradsight.detect.claims import Claims
from gradsight.detect.listening import snake_case
from gradsight.interp.tensors.training import Action
from gradsight.model.events import Step
from gradsight.model.library_objects import Optimizer
from gradsight.model.report import GapKind
from gradsight.model.sites import Frame, Numbering, Site, Unit
from gradsight.model.tensors import Cut, Maybe, Node, Tensor, Write
from gradsight.model.trace import BackwardRun
from gradsight.model.values import Function, Mapping, Scope, Seq, Unknown
from gradsight.ops.table import shipped


class Stage:
    """Answers what a path is asked, from plain attributes."""

    def __init__(self, text: str) -> None:
        self.text = dedent(text).strip("\n") + "\n"
        self.tree = ast.parse(self.text)
        self.unit = Unit("program.py", self.text, self.tree.body)
        self.numbering = Numbering()
        self.names: dict[str, Any] = {}
        self.frame = Frame("<module>", self.unit, self.names, Scope(self.names, None), 0, self.numbering)
        self.node: ast.AST = self.tree
        self.table = shipped()
        self.context = "script"
        self.tick = 0
        self.grad_mode, self.mode_site = True, None
        self.ended_early = self.gradients_unknown = self.gradients_hooked = self.graph_escaped = (
            self.truncated
        ) = self.is_abridged = self.left_after_one = False
        self.ended_at: Site | None = None
        self.objects_passed_at = -1
        self.unheard = self.assuming = self.has_receiver = False
        self.last_inference = -1
        self.branches: dict[Any, Any] = {}
        self.premises: dict[str, None] = {}
        self.told_premises: set[str] = set()
        self.waiting: set[Any] = set()
        self.stored_somewhere: set[Any] = set()
        self.decisions: list[Any] = []
        self.log: list[Any] = []
        self.executed: set[Any] = set()
        self.unanswered: list[Any] = []
        self.picked: list[Any] = []
        self.backwards: list[Any] = []
        self.optimizers: list[Any] = []
        self.modules_made: list[Any] = []
        self.named_methods: list[Any] = []
        self.kept_alive: list[Any] = []
        self.gaps: list[str] = []
        self.gradient_ticks: dict[Tensor, int] = {}
        self.live_gradient_ticks: dict[Tensor, int] = {}
        self.cleared_ticks: dict[Tensor, int] = {}
        self.entry_epochs: dict[Any, int] = {}
        self.told: list[Any] = []
        self.claims = Claims(self)

    # -- making things ------------------------------------------------------------------------------------------------

    def find(self, piece: str) -> Any:
        """The outermost syntax node that is spelled like this."""
        for node in ast.walk(self.tree):
            if isinstance(node, (ast.expr, ast.stmt)) and ast.get_source_segment(self.text, node) == piece:
                return node.value if isinstance(node, ast.Expr) else node
        raise AssertionError(f"no {piece!r} in the text")

    def at(self, piece: str) -> Site:
        return Site(self.find(piece), self.frame)

    def tensor(
        self, piece: str, label: str = "", op: str = "", inputs: tuple[Any, ...] = (), **set_to: Any
    ) -> Tensor:
        """A tensor made at a piece of the text: by an operator on these edges, or a leaf that requires grad."""
        site = self.at(piece)
        tensor = Tensor(site, requires_grad=True)
        tensor.label = label
        if op:
            tensor.node = Node(op, site, list(inputs), True, self.tick)
        for name, value in set_to.items():
            setattr(tensor, name, value)
        return tensor

    def written(self, tensor: Tensor, piece: str, op: str, mode: str = "graph") -> Write:
        """A write at a piece of the text, as the machine does it."""
        self.tick += 1
        tensor.storage.epoch += 1
        tensor.counter.version += 1
        write = Write(self.at(piece), op, tensor, mode, tensor.counter)
        write.tick = self.tick
        tensor.storage.writes.append(write)
        return write

    # -- trying a detector ---------------------------------------------------------------------------------------------

    def hears(self, detector: Any, *facts: Any, finish: bool = False) -> list[tuple[str, int]]:
        for fact in facts:
            getattr(detector, f"on_{snake_case(type(fact).__name__)}")(fact)
        if finish:
            detector.finish()
        return [(event.kind, event.place.line) for event in self.claims.events]

    # -- what detectors ask ----------------------------------------------------------------------------------------------

    def tell(self, fact: Any) -> None:
        self.told.append(fact)

    def gap(self, reason: str, node: ast.AST | None = None, kind: GapKind = "unknown") -> Unknown:
        self.gaps.append(reason)
        return Unknown(reason)

    def site(self, node: ast.AST | None = None) -> Site:
        return Site(node if node is not None else self.node, self.frame)

    def place_in(self, function: Any, node: ast.AST) -> Site:
        return Site(node, self.frame)

    def truth(self, value: Any) -> bool | None:
        return value if isinstance(value, bool) else None

    def call_steps(self, site: Site) -> list[Step]:
        return []

    def text_of_target(self, site: Site) -> str:
        return ast.unparse(site.node)

    def outermost(self, inner: Site, outer: Site) -> Site:
        return inner

    def parameters_of(self, optimizer: Optimizer) -> list[Tensor]:
        return optimizer.parameters()

    def ever_held_by(self, optimizer: Optimizer) -> set[Tensor]:
        return optimizer.ever_held()

    def groups_of(self, optimizer: Optimizer) -> list[Any]:
        return []

    def knows_all_parameters(self, optimizer: Optimizer) -> bool:
        return True

    def tensors_of(self, module: Any, kind: str) -> list[tuple[str, Tensor]]:
        return [(name, value) for name, value in module.attributes.items() if isinstance(value, Tensor)]

    def modules_in(self, module: Any) -> list[tuple[str, Any]]:
        return [("", module)]

    def module_behind(self, value: Any) -> Any:
        return value

    def mapping_key(self, key: Any) -> Any:
        return key

    def mapping_item(self, owner: Any, index: Any) -> Any:
        return owner.items.get(index)

    def escaped_between(self, tensors: set[Tensor], start: int, end: int) -> bool:
        return False

    def may_clear_between(self, tensors: set[Tensor], start: int, end: int) -> bool:
        return self.escaped_between(tensors, start, end)

    def from_earlier_round(self, node: Node, site: Site) -> bool:
        return False

    def backward_passed_by(self) -> bool:
        return False

    def optimizer(self, piece: str, *parameters: Tensor) -> Optimizer:
        group = Mapping({"params": Seq("list", list(parameters))})
        made = Optimizer("torch.optim.SGD", self.at(piece), Seq("list", [group]))
        self.optimizers.append(made)
        return made


def run_of(
    stage: Stage, piece: str, loss: Tensor, *leaves: Tensor, cuts: frozenset[Cut] = frozenset()
) -> BackwardRun:
    """A backward that came through, as the machine logs it."""
    stage.tick += 1
    run = BackwardRun(stage.at(piece), loss, set(leaves), cuts, stage.tick)
    run.zero_leaves = set()
    stage.backwards.append(run)
    stage.log.append(Action("backward", run, run.site, stage.tick, run.leaves))
    return run


def function_of(stage: Stage, name: str) -> Function:
    node = next(n for n in ast.walk(stage.tree) if isinstance(n, ast.FunctionDef) and n.name == name)
    return Function(node, Scope({}, None), stage.unit, [], {})


__all__ = ["Maybe", "Stage", "function_of", "run_of"]
