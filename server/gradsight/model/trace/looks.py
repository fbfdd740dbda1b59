"""What is seen of names and operators: told on paths that are watched, and on no others, as each step has such a fact."""

from __future__ import annotations

import ast
from collections.abc import Mapping as Given
from typing import Any, Literal, NamedTuple

from gradsight.model.tensors import Node, Saved, Tensor
from gradsight.model.values import Function, Value

Place = Literal["custom function", "transform", "checkpoint", "hooked layer", "row of layers"]
"""Where tensors are not what they seem: inside a Function's own forward or a transformed function; in a checkpoint, where
what operators save is thrown away and computed again by backward; in a layer that hooks give another input.  A call of a row
of layers is none of theirs."""


class NameSeen(NamedTuple):
    """A name or an attribute was read, or something was assigned to it."""

    syntax: ast.AST
    value: Value
    is_assigned: bool = False


class ConditionAsked(NamedTuple):
    """An `if` or a conditional expression is about to go one way, with the names of its frame as they are."""

    syntax: ast.AST
    names: dict[str, Value]


class ArgumentsBound(NamedTuple):
    """A function of the program is about to run with these values for its parameters."""

    function: Function
    names: dict[str, Value]


class CaseSelected(NamedTuple):
    """The case of an operator's fact that a call meets was chosen, for certain or as the likeliest."""

    fact: Any
    case: Any
    is_certain: bool


class Recording(NamedTuple):
    """An operator is about to do what a case says with these arguments."""

    case: Any
    arguments: Given[str, Value]
    node: ast.AST


class ResultsMade(NamedTuple):
    """An operator gave its results, which are not yet joined to the graph."""

    op: str
    results: list[Value]
    operands: list[tuple[str, Tensor]]
    is_certain: bool


class OperandsSaved(NamedTuple):
    """A node of the graph saved these for backward; of those that are `copied`, or may be, it saved a copy."""

    node: Node
    saved: list[Saved]
    copied: frozenset[str] = frozenset()


class LoopEnded(NamedTuple):
    """A loop is over: its last iteration was executed, or the path leaves it."""

    run: Any


class HandedOut(NamedTuple):
    """Code that is not known was given these values."""

    values: list[Value]


class LeafMade(NamedTuple):
    """A function of torch made a tensor out of no other."""

    tensor: Tensor


class Entered(NamedTuple):
    """What is executed from now on happens inside such a place, which the call at `node` opens."""

    place: Place
    node: ast.AST | None = None


class Left(NamedTuple):
    """The place that was entered last was left."""

    place: Place


class CustomReturned(NamedTuple):
    """`apply` of a custom autograd function returned this."""

    result: Value
