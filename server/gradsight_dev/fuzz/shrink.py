"""Makes a program small while a property of it holds: statements go first, then expressions get simpler.

The property is any test on source text.  Every step is a change of the syntax tree, so that candidates always parse; a
candidate that holds the property becomes the new program.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator

Holds = Callable[[str], bool]
MOST_TRIALS = 600


class _Shrinker:
    def __init__(self, text: str, holds: Holds, trials: int) -> None:
        self.tree = ast.parse(text)
        self.holds = holds
        self.trials = trials
        self.refused: set[str] = set()

    def accept(self, candidate: ast.Module) -> bool:
        """Take the candidate if it is new and holds the property."""
        if self.trials <= 0:
            return False
        try:
            text = written(candidate)
            ast.parse(text)
        except (SyntaxError, ValueError, RecursionError):
            return False
        if text in self.refused or text == written(self.tree):
            return False
        self.trials -= 1
        if self.holds(text):
            self.tree = ast.parse(text)
            return True
        self.refused.add(text)
        return False


def shrink(text: str, holds: Holds, trials: int = MOST_TRIALS) -> str:
    """The smallest program found for which `holds` is true; `text` itself if the test does not hold after normalising."""
    start = written(ast.parse(text))
    if not holds(start):
        return text
    shrinker = _Shrinker(start, holds, trials)
    while shrinker.trials > 0:
        before = written(shrinker.tree)
        _drop_statements(shrinker)
        _unwrap_blocks(shrinker)
        _inline_aliases(shrinker)
        _simplify_expressions(shrinker)
        if written(shrinker.tree) == before:
            break
    return written(shrinker.tree)


def written(tree: ast.Module) -> str:
    """The tree as text, with a newline at its end."""
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


def _drop_statements(shrinker: _Shrinker) -> None:
    """Remove runs of statements, long runs first."""
    size = max(1, _count(shrinker.tree) // 2)
    while size >= 1:
        position = _count(shrinker.tree) - size
        while position >= 0:
            doomed = set(range(position, position + size))
            if not shrinker.accept(_without(shrinker.tree, doomed)):
                position -= 1 if size == 1 else max(1, size // 2)
            else:
                position = min(position, _count(shrinker.tree)) - size
        size //= 2


def _unwrap_blocks(shrinker: _Shrinker) -> None:
    """Replace a block statement by its body, or by its `else` part."""
    position = 0
    while position < _count(shrinker.tree) and shrinker.trials > 0:
        changed = False
        for part in ("body", "orelse", "finalbody"):
            candidate = _unwrapped(shrinker.tree, position, part)
            if candidate is not None and shrinker.accept(candidate):
                changed = True
                break
        if not changed:
            position += 1


def _inline_aliases(shrinker: _Shrinker) -> None:
    """Replace `y = x` by using `x` wherever `y` was read."""
    position = 0
    while position < _count(shrinker.tree) and shrinker.trials > 0:
        owner, field, index = list(_statements(shrinker.tree))[position]
        statement = getattr(owner, field)[index]
        match statement:
            case ast.Assign(targets=[ast.Name(id=alias)], value=ast.Name(id=original)):
                candidate = _without(shrinker.tree, {position})
                for node in ast.walk(candidate):
                    if isinstance(node, ast.Name) and node.id == alias:
                        node.id = original
                if shrinker.accept(candidate):
                    continue
        position += 1


def _simplify_expressions(shrinker: _Shrinker) -> None:
    """Replace expressions by their parts, numbers by 2, shapes by smaller ones; drop arguments and targets."""
    position = 0
    while shrinker.trials > 0:
        places = list(_expressions(shrinker.tree))
        if position >= len(places):
            return
        changed = False
        for replacement in _simpler(places[position][0]):
            candidate = copy.deepcopy(shrinker.tree)
            _put(candidate, position, replacement)
            if shrinker.accept(candidate):
                changed = True
                break
        if not changed:
            position += 1


def _statements(tree: ast.AST) -> Iterator[tuple[ast.AST, str, int]]:
    """Every statement, as (owner, field, index), in reading order."""
    for field in ("body", "orelse", "finalbody"):
        children = getattr(tree, field, None)
        if isinstance(children, list):
            for index, child in enumerate(children):
                yield tree, field, index
                yield from _statements(child)


def _count(tree: ast.AST) -> int:
    return sum(1 for _ in _statements(tree))


def _without(tree: ast.Module, doomed: set[int]) -> ast.Module:
    result = copy.deepcopy(tree)
    for number, (owner, field, index) in enumerate(list(_statements(result))):
        if number in doomed:
            getattr(owner, field)[index] = None
    for node in ast.walk(result):
        for field in ("body", "orelse", "finalbody"):
            children = getattr(node, field, None)
            if isinstance(children, list):
                kept = [child for child in children if child is not None]
                if field == "body" and not kept and not isinstance(node, ast.Module):
                    kept = [ast.Pass()]
                setattr(node, field, kept)
    return result


def _unwrapped(tree: ast.Module, number: int, part: str) -> ast.Module | None:
    result = copy.deepcopy(tree)
    owner, field, index = list(_statements(result))[number]
    siblings = getattr(owner, field)
    inner = getattr(siblings[index], part, None)
    if (
        not isinstance(inner, list)
        or not inner
        or isinstance(siblings[index], ast.FunctionDef | ast.ClassDef)
    ):
        return None
    siblings[index : index + 1] = inner
    return result


def _expressions(tree: ast.AST) -> Iterator[tuple[ast.expr, ast.AST, str, int | None]]:
    """Every expression with its place (owner, field, index), outer ones first; assignment targets are left alone."""
    for owner in ast.walk(tree):
        for field, value in ast.iter_fields(owner):
            if isinstance(value, ast.expr) and isinstance(getattr(value, "ctx", ast.Load()), ast.Load):
                yield value, owner, field, None
            elif isinstance(value, list):
                for index, item in enumerate(value):
                    if isinstance(item, ast.expr) and isinstance(getattr(item, "ctx", ast.Load()), ast.Load):
                        yield item, owner, field, index


def _put(tree: ast.Module, position: int, replacement: ast.expr | None) -> None:
    for number, (_, owner, field, index) in enumerate(list(_expressions(tree))):
        if number == position:
            if index is None:
                setattr(owner, field, replacement)
            elif replacement is None:
                del getattr(owner, field)[index]
            else:
                getattr(owner, field)[index] = replacement
            return


def _simpler(expression: ast.expr) -> Iterator[ast.expr]:
    """Simpler expressions that might do as well, the simplest first."""
    if isinstance(expression, ast.BinOp):
        yield expression.left
        yield expression.right
    elif isinstance(expression, ast.UnaryOp):
        yield expression.operand
    elif isinstance(expression, ast.Compare | ast.BoolOp):
        yield ast.Constant(True)
        yield ast.Constant(False)
    elif isinstance(expression, ast.Call):
        yield from _simpler_calls(expression)
    elif isinstance(expression, ast.Subscript) or (
        isinstance(expression, ast.Attribute) and expression.attr == "data"
    ):
        yield expression.value
    elif isinstance(expression, ast.IfExp):
        yield expression.body
        yield expression.orelse
    elif isinstance(expression, ast.List | ast.Tuple) and len(expression.elts) > 1:
        for index in range(len(expression.elts)):
            yield type(expression)(expression.elts[:index] + expression.elts[index + 1 :], ast.Load())
    elif isinstance(expression, ast.ListComp | ast.GeneratorExp):
        yield expression.generators[0].iter
    elif isinstance(expression, ast.Constant) and isinstance(expression.value, float | int):
        if not isinstance(expression.value, bool) and expression.value != 2:
            yield ast.Constant(2)
    elif isinstance(expression, ast.Lambda):
        yield ast.Lambda(expression.args, ast.Name("t", ast.Load()))


def _simpler_calls(call: ast.Call) -> Iterator[ast.expr]:
    if isinstance(call.func, ast.Attribute):
        receiver = call.func.value
        if not (
            isinstance(receiver, ast.Name) and receiver.id in ("torch", "F", "nn", "np", "sys", "random")
        ):
            yield receiver
    for argument in call.args:
        if not isinstance(argument, ast.Constant | ast.Starred):
            yield argument
    for index in range(len(call.keywords)):
        yield ast.Call(call.func, call.args, call.keywords[:index] + call.keywords[index + 1 :])
    for index in range(len(call.args) if len(call.args) > 1 else 0):
        yield ast.Call(call.func, call.args[:index] + call.args[index + 1 :], call.keywords)
