"""Where a file trains: the rounds of its loops, found in the syntax tree alone.

A *round* is a block of statements in which a loss is differentiated and an optimizer steps afterwards, both as statements of
their own.  Its *zero* is the one statement of the block that clears for that step.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Round:
    """One backward and the step after it, in one block."""

    block: Sequence[ast.stmt]
    loops: tuple[ast.For | ast.While, ...]
    """The loops around it in its function, innermost last."""
    function: Function | None
    loss: str
    optimizer: str
    backward: ast.stmt
    step: ast.stmt
    zero: ast.stmt | None
    single: bool
    """Whether nothing else of the block is differentiated between the zero (or the top) and the step, nor steps."""

    def before(self, statement: ast.stmt) -> Sequence[ast.stmt]:
        """The statements of the block above one of them."""
        return self.block[: self.block.index(statement)]


@dataclass(slots=True)
class Reading:
    """What the text of a file says about its networks and optimizers."""

    tree: ast.Module
    rounds: list[Round] = field(default_factory=list)
    calls: Counter[tuple[str, str]] = field(default_factory=Counter)
    """How often a method is called on what is spelled so."""
    makers: dict[str, list[tuple[str, ast.Call]]] = field(default_factory=dict)
    """By the spelling of an optimizer: the networks whose parameters alone it is made of, and the calls that make it."""
    statements: list[ast.stmt] = field(default_factory=list)

    def is_network(self, key: str) -> bool:
        """Whether the file treats what is spelled so as a module."""
        return any(self.calls[key, method] for method in ("parameters", "train", "eval", "state_dict"))


def read(text: str) -> Reading:
    """Find the rounds of a text.  Raises SyntaxError."""
    reading = Reading(ast.parse(text))
    for node in ast.walk(reading.tree):
        if isinstance(node, ast.stmt):
            reading.statements.append(node)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            reading.calls[ast.unparse(node.func.value), node.func.attr] += 1
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            network = _made_of(node.value)
            if network:
                assert isinstance(node.value, ast.Call)
                reading.makers.setdefault(ast.unparse(node.targets[0]), []).append((network, node.value))
    for block, loops, function in _blocks(reading.tree.body, (), None):
        reading.rounds += _rounds_in(block, loops, function)
    return reading


def method_of(statement: ast.stmt) -> tuple[str, str]:
    """`receiver`, `name` of a statement that calls a method and does nothing else."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        called = statement.value.func
        if isinstance(called, ast.Attribute) and isinstance(called.value, (ast.Name, ast.Attribute)):
            return ast.unparse(called.value), called.attr
    return "", ""


def _made_of(value: ast.expr) -> str:
    """The network of `optim.Adam(network.parameters(), ...)`."""
    if not isinstance(value, ast.Call) or not value.args:
        return ""
    given = value.args[0]
    if isinstance(given, ast.Call) and not given.args and isinstance(given.func, ast.Attribute):
        if given.func.attr == "parameters" and isinstance(given.func.value, (ast.Name, ast.Attribute)):
            return ast.unparse(given.func.value)
    return ""


def _blocks(
    body: Sequence[ast.stmt], loops: tuple[ast.For | ast.While, ...], function: Function | None
) -> Iterator[tuple[Sequence[ast.stmt], tuple[ast.For | ast.While, ...], Function | None]]:
    """Every block of statements, with the loops around it in its function."""
    yield body, loops, function
    for statement in body:
        inner, inside = loops, function
        if isinstance(statement, (ast.For, ast.While)):
            inner = (*loops, statement)
        elif isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
            inner, inside = (), statement
        for name in ("body", "orelse", "finalbody"):
            if below := getattr(statement, name, None):
                yield from _blocks(below, inner, inside)
        for handler in getattr(statement, "handlers", ()):
            yield from _blocks(handler.body, inner, inside)


def _rounds_in(
    block: Sequence[ast.stmt], loops: tuple[ast.For | ast.While, ...], function: Function | None
) -> Iterator[Round]:
    methods = [method_of(statement) for statement in block]
    backwards = [place for place, (_, name) in enumerate(methods) if name == "backward"]
    steps = [place for place in range(len(block)) if _is_step(methods, place)]
    zeros = [place for place, (_, name) in enumerate(methods) if name == "zero_grad"]
    for place, step in enumerate(steps):
        since = steps[place - 1] if place else -1
        own = [one for one in backwards if since < one < step]
        if not own:
            continue
        optimizer = methods[step][0]
        clears = [one for one in zeros if methods[one][0] == optimizer]
        if not clears and len(steps) == 1:
            clears = zeros
        zero = clears[0] if len(clears) == 1 else None
        yield Round(
            block,
            loops,
            function,
            methods[own[-1]][0],
            optimizer,
            block[own[-1]],
            block[step],
            block[zero] if zero is not None else None,
            len(own) == 1,
        )


def _is_step(methods: Sequence[tuple[str, str]], place: int) -> bool:
    receiver, name = methods[place]
    return name == "step" and (
        (receiver, "zero_grad") in methods or "opt" in receiver.lower().rpartition(".")[2]
    )
