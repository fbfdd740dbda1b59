"""The words in which operator facts are told.

*Argument* is a parameter name as the callable's signature has it; a method's receiver is `self`, the first argument of
a `torch.` function is usually `input`.  For a module (`nn.Linear`), arguments of `forward` keep their names and the
module's own tensors are written `self.weight`, `self.running_mean`.
*Result* is `result` for a single tensor and `result.0`, `result.1`, ... for a tuple.
A *case* holds under conditions on the arguments (their kind or value); the first case that fits a call is the fact.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

When = Literal["always", "sometimes", "never"]
Origin = Literal["measured", "formula", "schema", "hand"]


@dataclass(frozen=True, slots=True)
class Condition:
    """A test on one argument.

    kind `number`/`tensor`/`none`/`sequence`/`text`: what the argument is (an omitted one is `none` unless its default says
    otherwise); kind `equals`: its value, as Python writes it (`True`, `'none'`, `0.0`); kind `not`: any other value.
    For a module the argument may also be a constructor option or `training`.
    """

    argument: str
    kind: Literal["number", "tensor", "none", "sequence", "text", "equals", "not"]
    value: str = ""


@dataclass(frozen=True, slots=True)
class Save:
    """Backward keeps `what` (an argument or a result).

    `needs`: kept only if one of these arguments requires grad; empty = as soon as the result requires grad.
    `when`: `sometimes` = depends on shape or value in a way no condition tells.
    """

    what: str
    needs: tuple[str, ...] = ()
    when: When = "always"


@dataclass(frozen=True, slots=True)
class Output:
    """One tensor that comes out.

    `gradient`: `flows`, `none` (no grad_fn) or `zero` (flows but is identically zero).
    `needs`: gradient flows only from these arguments (empty = from every floating argument).
    `alias`: the argument whose storage it shares, if any; `aliased`: always or sometimes.
    `same`: the result *is* that argument object: always / sometimes / never.
    `shares_version`: a write through the alias is noticed by autograd (`detach` yes, `.data` no).
    `one_of_many`: one of several views made at once (in-place writes are refused under grad mode).
    `overlapping`: several elements share memory (in-place writes are refused).
    `dtype`: `same` (as the inputs promote), `bool`, `int`, `float`, `complex`, `any`.
    `shape`: `scalar`, `like:ARG`, `broadcast`, `reduce` (by dim/keepdim arguments), or empty when not told.
    `leaf`: a fresh leaf made by a factory.
    """

    gradient: Literal["flows", "none", "zero"] = "flows"
    needs: tuple[str, ...] = ()
    alias: str = ""
    aliased: When = "never"
    same: When = "never"
    shares_version: bool = True
    one_of_many: bool = False
    overlapping: bool = False
    dtype: Literal["same", "bool", "int", "float", "complex", "any"] = "same"
    shape: str = ""
    leaf: bool = False


@dataclass(frozen=True, slots=True)
class Case:
    """What the operator does when all conditions of `when` hold."""

    when: tuple[Condition, ...] = ()
    saves: tuple[Save, ...] = ()
    outputs: tuple[Output, ...] = ()
    writes: tuple[str, ...] = ()
    bumps_version: bool = True
    sequence: bool = False
    """The result is a tuple or list of unknown length, each like `outputs[0]`."""
    holds_saved: When = "always"
    """Whether the node keeps any saved tensor at all, so that a second backward is refused."""


@dataclass(frozen=True, slots=True)
class OpFact:
    """Everything known about one callable."""

    name: str
    parameters: tuple[str, ...] = ()
    cases: tuple[Case, ...] = ()
    origin: Origin = "measured"
    defaults: dict[str, str] = field(default_factory=dict, hash=False)
    note: str = ""
