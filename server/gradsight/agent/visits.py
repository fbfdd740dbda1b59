"""Facts per line: what each tensor that a line binds looked like, at the first and at the last visit.

The user's syntax tree is instrumented: after a binding its value is reported.  Line numbers and columns of the original
code stay as they are, and nothing is written to disk.
"""

from __future__ import annotations

import ast
import importlib.abc
import importlib.machinery
import importlib.util
import weakref
from collections.abc import Sequence
from types import CodeType, ModuleType
from typing import Any

import torch

from gradsight.agent.graph import untracked
from gradsight.agent.model_copies import WatchedReads, second_names_in
from gradsight.agent.numbering import node_of
from gradsight.agent.sites import is_user_file

NOTE = "__gradsight_note__"
STORE = "__gradsight_store__"
KEEP = "__gradsight_keep__"
NAMED = "__gradsight_named__"
METHOD = "__gradsight_method__"
HOLD = "__gradsight_hold__"
DROP = "__gradsight_drop__"
FLOAT = "__gradsight_float__"
SEEN = "__gradsight_seen__"
OUTSIDE = "__gradsight_outside__"
_OUTSIDE = ("numpy", "scipy", "statistics")
_MOST_FACTS = 20_000
# Methods of tensors that give a new tensor, and whose result a statement may have dropped by mistake; and methods of
# NumPy arrays that change the array.
_PURE_METHODS = frozenset(
    name for name in dir(torch.Tensor) if not name.startswith("_") and hasattr(torch.Tensor, name + "_")
) | frozenset(
    ("detach", "to", "cuda", "cpu", "float", "double", "half", "bfloat16", "long", "int", "bool", "clone", "view",
     "reshape", "permute", "expand", "contiguous", "type", "flatten", "masked_select", "sort", "put", "partition")
)  # fmt: skip


_IN_PLACE_METHODS = frozenset(
    name for name in dir(torch.Tensor) if name.endswith("_") and not name.startswith("_")
)


def instrument(source: str | bytes, filename: str) -> CodeType:
    """The code of a module that reports its bindings; plain code when the tree cannot be instrumented."""
    tree = ast.parse(source, filename)
    if not _rebinds(tree, "float"):
        _TracedFloats().visit(tree)
    seconds = second_names_in(tree)
    if seconds:
        WatchedReads(seconds).visit(tree)
    outside = _names_of_libraries(tree)
    if outside:
        _OutsideCalls(outside).visit(tree)
    _Instrumenter(filename).visit(tree)
    ast.fix_missing_locations(tree)
    return compile(tree, filename, "exec", dont_inherit=True)


def _rebinds(tree: ast.Module, name: str) -> bool:
    """Whether a module gives a builtin name a meaning of its own."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load):
            return True
        if isinstance(node, ast.arg) and node.arg == name:
            return True
        if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)) and node.name == name:
            return True
        if isinstance(node, ast.alias) and (node.asname or node.name) in (name, "*"):
            return True
    return False


class _TracedFloats(ast.NodeTransformer):
    """`float(x)` keeps where its number comes from."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if (
            isinstance(node.func, ast.Name)
            and node.func.id == "float"
            and len(node.args) == 1
            and not node.keywords
        ):
            node.func = ast.copy_location(ast.Name(id=FLOAT, ctx=ast.Load()), node.func)
        return node


def _names_of_libraries(tree: ast.Module) -> frozenset[str]:
    """The names under which a file imports libraries that compute outside of torch, or parts of them."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found = [each for each in node.names if each.name.split(".")[0] in _OUTSIDE]
            names.update((each.asname or each.name).split(".")[0] for each in found)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in _OUTSIDE:
            names.update(each.asname or each.name for each in node.names)
    return frozenset(names)


class _OutsideCalls(ast.NodeTransformer):
    """`np.mean(x)` goes through a function of ours, which knows where the numbers come from."""

    def __init__(self, names: frozenset[str]) -> None:
        self.names = names

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        root = node.func
        while isinstance(root, ast.Attribute):
            root = root.value
        if isinstance(root, ast.Name) and root.id in self.names:
            node.args = [node.func, *node.args]
            node.func = ast.copy_location(ast.Name(id=OUTSIDE, ctx=ast.Load()), node.func)
        return node


class _Instrumenter(ast.NodeTransformer):
    """Says which statements run, reports after those that bind names, and marks tensors put into collections."""

    def __init__(self, filename: str) -> None:
        self.filename = filename

    def generic_visit(self, node: ast.AST) -> ast.AST:
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
                setattr(node, name, self._block(node, name, block))
        for handler in getattr(node, "handlers", []):
            handler.body = self._statements(handler.body)
        for case in getattr(node, "cases", []):
            case.body = self._statements(case.body)
        return node

    def _block(self, node: ast.AST, name: str, block: list[ast.stmt]) -> list[ast.stmt]:
        statements = self._statements(block)
        if name == "body" and isinstance(node, (ast.For, ast.AsyncFor)):
            return [*_reports(node, _stored(node.target)), *statements]
        if name == "body" and isinstance(node, (ast.With, ast.AsyncWith)):
            bound = [
                item
                for entry in node.items
                if entry.optional_vars is not None
                for item in _stored(entry.optional_vars)
            ]
            return [*_reports(node, bound), *statements]
        if name == "body" and isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            start = 1 if ast.get_docstring(node, clean=False) is not None else 0
            arguments = node.args
            named = [item.arg for item in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
            reports = _reports(node, [item for item in named if item not in ("self", "cls", "ctx")])
            return [*statements[:start], self._seen(node), *reports, *statements[start:]]
        return statements

    def _statements(self, block: list[ast.stmt]) -> list[ast.stmt]:
        result: list[ast.stmt] = []
        for statement in block:
            if not _must_come_first(statement):
                result.append(self._seen(statement))
            self.visit(statement)
            result.append(_with_marks(statement))
            result.extend(_reports(statement, _bound_names(statement), _changes(statement)))
        return result

    def _seen(self, statement: ast.stmt) -> ast.stmt:
        """A note that this statement runs; of a statement with a block only its head does."""
        first = statement.lineno
        body = getattr(statement, "body", None) or getattr(statement, "cases", None)
        if not body:
            last = statement.end_lineno or first
        elif isinstance(body[0], ast.stmt):
            last = max(first, body[0].lineno - 1)
        else:
            last = first
        # The compiler makes one constant of it.
        parts: list[ast.expr] = [ast.Constant(value=part) for part in (self.filename, first, last)]
        rows = ast.Tuple(elts=parts, ctx=ast.Load())
        call = ast.Call(func=ast.Name(id=SEEN, ctx=ast.Load()), args=[rows], keywords=[])
        return ast.copy_location(ast.Expr(value=call), statement)


def _must_come_first(statement: ast.stmt) -> bool:
    """Docstrings and imports of the future keep their place; a definition runs when it is called."""
    if isinstance(statement, ast.ImportFrom):
        return statement.module == "__future__"
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return True
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _bound_names(statement: ast.stmt) -> list[str]:
    if isinstance(statement, ast.Assign):
        names = []
        for target in statement.targets:
            names.extend(_stored(target) or _base(target))
        return names
    if isinstance(statement, ast.AugAssign):
        return _stored(statement.target) or _base(statement.target)
    if isinstance(statement, ast.AnnAssign) and statement.value is not None:
        return _stored(statement.target)
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        function = statement.value.func
        if isinstance(function, ast.Attribute) and function.attr.endswith("_"):
            return _base(function.value)
    return []


def _changes(statement: ast.stmt) -> bool:
    """Whether the statement may change a value in place rather than bind a new one."""
    if isinstance(statement, ast.Assign):
        return any(isinstance(target, ast.Subscript) for target in statement.targets)
    return isinstance(statement, (ast.AugAssign, ast.Expr))


def _stored(target: ast.expr) -> list[str]:
    if isinstance(target, ast.Name):
        return [target.id]
    if isinstance(target, (ast.Tuple, ast.List)):
        return [name for item in target.elts for name in _stored(item)]
    if isinstance(target, ast.Starred):
        return _stored(target.value)
    return []


def _base(target: ast.expr) -> list[str]:
    """`h[0] = …` changes `h`."""
    while isinstance(target, ast.Subscript):
        target = target.value
    return [target.id] if isinstance(target, ast.Name) else []


def _reports(at: ast.AST, names: Sequence[str], changed: bool = False) -> list[ast.stmt]:
    line = getattr(at, "lineno", 0)
    reports: list[ast.stmt] = []
    for name in dict.fromkeys(names):
        call = ast.Call(
            func=ast.Name(id=NOTE, ctx=ast.Load()),
            args=[
                ast.Constant(value=line),
                ast.Constant(value=name),
                ast.Name(id=name, ctx=ast.Load()),
                ast.Constant(value=changed),
            ],
            keywords=[],
        )
        reports.append(ast.copy_location(ast.Expr(value=call), at))
    return reports


def _with_marks(statement: ast.stmt) -> ast.stmt:
    """`items.append(x)` and `items[i] = x` tell when `x` was stored, and `items[i] += x` which items are changed;
    `x.clamp(0)` as a statement tells that its result is dropped; `optimizer.step` that a method is not called."""
    if isinstance(statement, ast.Assign):
        return _with_kept(statement)
    if isinstance(statement, ast.AugAssign):
        _hold(statement.target, statement, True)
        return statement
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Attribute):
        statement.value = _wrapped(NAMED, [statement.value], statement.value)
        return statement
    if not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)):
        return statement
    call = statement.value
    if not isinstance(call.func, ast.Attribute):
        return statement
    if call.func.attr.endswith("_"):
        _hold(call.func.value, statement, True)
    if call.func.attr in ("append", "appendleft") and len(call.args) == 1 and not call.keywords:
        if not isinstance(call.args[0], ast.Starred):
            call.args = [_wrapped(STORE, [call.args[0]], call.args[0])]
    elif call.func.attr in _PURE_METHODS:
        # The call goes through a function of ours, which knows the owner and sees the result.
        arguments = [call.func.value, ast.Constant(value=call.func.attr), *call.args]
        passed = ast.Call(func=ast.Name(id=DROP, ctx=ast.Load()), args=arguments, keywords=call.keywords)
        statement.value = ast.copy_location(passed, call)
    return statement


def _hold(changed: ast.expr, statement: ast.stmt, in_place: bool) -> None:
    """Of `self.items[i]`, which the statement changes or replaces, `self.items` goes through a function of ours."""
    if isinstance(changed, ast.Subscript) and (in_place or not isinstance(changed.value, ast.Name)):
        name, is_changed = ast.Constant(value=ast.unparse(changed.value)), ast.Constant(value=in_place)
        changed.value = _wrapped(HOLD, [changed.value, name, is_changed], statement)


def _with_kept(statement: ast.Assign) -> ast.stmt:
    """`self.table[key] = x` and `self.state = x` hand `x` through a function of ours, with the text of the target."""
    target = statement.targets[0]
    if len(statement.targets) == 1 and isinstance(target, (ast.Subscript, ast.Attribute)):
        if not isinstance(statement.value, (ast.Constant, ast.Lambda, ast.JoinedStr)):
            name = ast.Constant(value=ast.unparse(target))
            is_entry = ast.Constant(value=isinstance(target, ast.Subscript))
            statement.value = _wrapped(KEEP, [statement.value, name, is_entry], statement)
        _hold(target, statement, False)
        if isinstance(target, ast.Attribute) and target.attr in _IN_PLACE_METHODS:
            target.value = _wrapped(METHOD, [target.value, ast.Constant(value=target.attr)], target.value)
    return statement


def _wrapped(name: str, arguments: list[ast.expr], at: ast.AST) -> ast.expr:
    return ast.copy_location(
        ast.Call(func=ast.Name(id=name, ctx=ast.Load()), args=arguments, keywords=[]), at
    )


class Visits:
    """Collects the facts."""

    def __init__(self, with_norms: bool = True) -> None:
        self.with_norms = with_norms
        self._facts: dict[tuple[str, int, str], _Fact] = {}
        self.seen: set[tuple[str, int, int]] = set()

    def lines(self) -> dict[str, list[int]]:
        """The lines that ran, by file."""
        rows: dict[str, set[int]] = {}
        for filename, first, last in self.seen:
            rows.setdefault(filename, set()).update(range(first, last + 1))
        return {filename: sorted(found) for filename, found in rows.items()}

    def was_seen(self, filename: str, line: int) -> bool:
        """Whether the statement on this line ran."""
        return any(name == filename and first <= line <= last for name, first, last in self.seen)

    def note(self, key: tuple[str, int, str], value: torch.Tensor) -> None:
        """A line bound a name to this tensor."""
        fact = self._facts.get(key)
        if fact is None:
            if len(self._facts) >= _MOST_FACTS:
                return
            fact = self._facts[key] = _Fact()
        fact.visit(value, self.with_norms)

    def as_json(self) -> list[dict[str, Any]]:
        """Every fact, in reading order."""
        return [
            {"filename": filename, "line": line, "name": name, **fact.as_json()}
            for (filename, line, name), fact in sorted(self._facts.items(), key=lambda item: item[0])
        ]


class _Fact:
    """One name bound on one line."""

    __slots__ = ("first", "last", "leaf", "norm", "visits")

    def __init__(self) -> None:
        self.visits = 0
        self.first: tuple[Any, ...] | None = None
        self.last: tuple[Any, ...] | None = None
        self.norm: float | None = None
        self.leaf: weakref.ref[torch.Tensor] | None = None

    def visit(self, value: torch.Tensor, with_norms: bool) -> None:
        self.visits += 1
        node = node_of(value)
        # Of a view that torch no longer lets anybody use it does not even tell this.
        is_leaf = node is None and not (value._is_view() and value.requires_grad)
        version = None if value.is_inference() else value._version
        self.last = (
            value.shape,
            value.dtype,
            value.device,
            value.requires_grad,
            is_leaf,
            node and node.name(),
            version,
        )
        if self.first is None:
            self.first = self.last
        # The norm is taken at the first visit and then ever more rarely: a hook per visit would not be free.
        if with_norms and self.visits & (self.visits - 1) == 0:
            if node is not None:
                self._listen(node, value.output_nr)
            elif is_leaf and value.requires_grad:
                self.leaf = weakref.ref(value)

    def _listen(self, node: Any, output: int) -> None:
        def hear(gradients: Any) -> None:
            gradient = gradients[output] if output < len(gradients) else None
            self._measure(gradient)

        if hasattr(node, "register_prehook"):
            node.register_prehook(hear)

    def _measure(self, gradient: Any) -> None:
        if (
            isinstance(gradient, torch.Tensor)
            and gradient.layout is torch.strided
            and gradient.device.type != "meta"
        ):
            with untracked():
                try:
                    self.norm = float(gradient.detach().double().norm())
                except (RuntimeError, TypeError):
                    return

    def as_json(self) -> dict[str, Any]:
        leaf = self.leaf() if self.leaf is not None else None
        if leaf is not None:
            with untracked():
                self._measure(leaf.grad)
        return {
            "visits": self.visits,
            "grad_norm": self.norm,
            "first": _readable(self.first),
            "last": _readable(self.last),
        }


def _readable(seen: tuple[Any, ...] | None) -> dict[str, Any] | None:
    if seen is None:
        return None
    shape, dtype, device, requires_grad, is_leaf, grad_fn, version = seen
    return {
        "shape": [int(extent) for extent in shape],
        "dtype": str(dtype).replace("torch.", ""),
        "device": str(device),
        "requires_grad": requires_grad,
        "is_leaf": is_leaf,
        "grad_fn": grad_fn,
        "version": version,
    }


class _InstrumentingLoader(importlib.machinery.SourceFileLoader):
    """Loads a module of the user with reports; neither reads nor writes cached bytecode."""

    def get_code(self, fullname: str) -> CodeType | None:
        path = self.get_filename(fullname)
        source = self.get_data(path)
        try:
            return instrument(source, path)
        except (SyntaxError, ValueError, RecursionError):
            return compile(source, path, "exec", dont_inherit=True)


class InstrumentingFinder(importlib.abc.MetaPathFinder):
    """Finds the user's own modules and lets them report; everything else is left to the usual finders."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if (
            spec is None
            or spec.origin is None
            or type(spec.loader) is not importlib.machinery.SourceFileLoader
        ):
            return None
        if not is_user_file(spec.origin):
            return None
        spec.loader = _InstrumentingLoader(fullname, spec.origin)
        return spec
