"""What a detector may ask of the path that it listens to."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any, Protocol

from gradsight.model.events import Step
from gradsight.model.library_objects import Optimizer
from gradsight.model.report import GapKind
from gradsight.model.sites import Frame, Site
from gradsight.model.tensors import Node, Tensor
from gradsight.model.trace import Fact
from gradsight.model.values import Mapping, Unknown, Value
from gradsight.ops.table import Table


class Path(Protocol):
    """One execution of an entry, as it stands now."""

    table: Table
    tick: int
    context: str
    has_receiver: bool
    private: dict[tuple[int, str], Value]
    frame: Frame
    node: ast.AST
    grad_mode: bool
    mode_site: Site | None
    ended_early: bool
    ended_at: Site | None
    """Where the last piece of work was left before its end: the path, or a part that it made."""
    gradients_unknown: bool
    gradients_hooked: bool
    graph_escaped: bool
    last_inference: int
    unheard: bool
    assuming: bool
    premises: dict[str, None]
    told_premises: set[str]
    branches: dict[Any, Any]
    flags: dict[str, Unknown]
    usual_ways: set[int]
    waiting: set[Any]
    decisions: list[Any]
    log: list[Any]
    executed: set[ast.AST]
    picked: list[Mapping]
    """Dicts of which an item was read under a key that is not known: any of the others may be meant."""
    unanswered: list[tuple[int, Site]]
    """The user's functions that a library called for a value and that gave none, each with the time."""
    backwards: list[Any]
    optimizers: list[Optimizer]
    modules_made: list[Any]
    named_methods: list[tuple[str, Site]]
    kept_alive: list[Any]
    truncated: bool
    is_abridged: bool
    left_after_one: bool
    objects_passed_at: int
    stored_somewhere: set[Any]
    gradient_ticks: dict[Tensor, int]
    live_gradient_ticks: dict[Tensor, int]
    cleared_ticks: dict[Tensor, int]
    entry_epochs: dict[tuple[int, Any], int]

    def tell(self, fact: Fact) -> None: ...

    def gap(self, reason: str, node: ast.AST | None = None, kind: GapKind = "unknown") -> Unknown: ...

    def site(self, node: ast.AST | None = None) -> Site: ...

    def truth(self, value: Any) -> bool | None: ...

    def call_steps(self, site: Site) -> list[Step]: ...

    def text_of_target(self, site: Site) -> str: ...

    def outermost(self, inner: Site, outer: Site) -> Site: ...

    def parameters_of(self, optimizer: Optimizer) -> list[Tensor]: ...

    def ever_held_by(self, optimizer: Optimizer) -> set[Tensor]: ...

    def groups_of(self, optimizer: Optimizer) -> list[Mapping]: ...

    def knows_all_parameters(self, optimizer: Optimizer) -> bool: ...

    def tensors_of(self, module: Any, kind: str) -> Iterable[tuple[str, Tensor]]: ...

    def modules_in(self, module: Any) -> list[tuple[str, Any]]: ...

    def module_behind(self, value: Any) -> Any: ...

    def mapping_key(self, key: Any) -> Any: ...

    def mapping_item(self, owner: Mapping, index: Any) -> Any: ...

    def escaped_between(self, tensors: set[Tensor], start: int, end: int) -> bool: ...

    def may_clear_between(self, tensors: set[Tensor], start: int, end: int) -> bool: ...

    def from_earlier_round(self, node: Node, site: Site) -> bool: ...

    def backward_passed_by(self) -> bool: ...

    def place_in(self, function: Any, node: ast.AST) -> Site: ...
