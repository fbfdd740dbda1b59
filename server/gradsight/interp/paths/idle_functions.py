"""Functions of a model that can do nothing to a gradient when they are executed by themselves.

A question to the syntax tree.  *Idle*: a function that neither writes nor cuts and applies nothing that could; or an
*initialiser*, which records nothing, returns nothing, and writes by functions of `init` alone.

    def get_input_embeddings(self): return self.embeddings.word

    @torch.no_grad()
    def _init_weights(self, module):
        if isinstance(module, nn.Linear): init.normal_(module.weight, std=self.config.initializer_range)

Without a graph nothing is saved that such a write could spoil; where `init` is asked for something that it refuses, torch says so
when the model is made.
"""

from __future__ import annotations

import ast
import builtins

from gradsight.interp.paths.call_graph import CUT, WRITE, CallGraph, called_name, summary_of
from gradsight.interp.syntax import remembered
from gradsight.interp.syntax_parts import parts_of, sorted_parts

OF_PYTHON = frozenset(vars(builtins)) - {"super", "map", "filter", "exec", "eval", "__import__"}
"""Functions that call nothing of the user's, but for what every operator may call."""
BY_MACHINE = frozenset({"__init__", "__call__", "__new__"})
NO_GRAD = frozenset({"no_grad", "inference_mode"})
Definition = (ast.FunctionDef, ast.AsyncFunctionDef)


def is_idle(function: ast.AST, calls: CallGraph) -> bool:
    """Whether executing a function by itself can show nothing."""
    reasons = calls.reasons_for(function)
    if not reasons:
        return remembered(function, "applies nothing", _applies_nothing) and not reads_active(function, calls)
    return reasons <= {WRITE, CUT} and is_initialiser(function) and calls_initialisers_only(function, calls)


def _applies_nothing(function: ast.AST) -> bool:
    """Whether a function calls nothing but functions of Python; one with a decorator is called by that."""
    if not isinstance(function, Definition) or any(not is_plain(one) for one in function.decorator_list):
        return False
    parts = sorted_parts(function)
    if any(parts.get(kind) for kind in (ast.With, ast.AsyncWith, ast.Await, ast.Yield, ast.YieldFrom)):
        return False
    decorators = {part for one in function.decorator_list for part in ast.walk(one)}
    return all(
        isinstance(call.func, ast.Name) and call.func.id in OF_PYTHON
        for call in parts.get(ast.Call, ())
        if call not in decorators
    )


def is_plain(decorator: ast.expr) -> bool:
    """Whether a decorator changes nothing of what a function does: `@property`, `@torch.jit.ignore`."""
    target = decorator.func if isinstance(decorator, ast.Call) else decorator
    if isinstance(target, ast.Name):
        return target.id in ("property", "staticmethod", "classmethod")
    return isinstance(target, ast.Attribute) and ast.unparse(target).startswith("torch.jit.")


def reads_active(function: ast.AST, calls: CallGraph) -> bool:
    """Whether an attribute that is read, or an operator, may be a function of the file that does something."""
    names = {part.attr for part in parts_of(function, ast.Attribute)}
    return any(
        name in names or (name.startswith("__") and name not in BY_MACHINE)
        for name, named in calls.by_name.items()
        if any(calls.reasons_for(one) for one in named)
    )


def is_initialiser(function: ast.AST) -> bool:
    known: bool = remembered(function, "is initialiser", _is_initialiser)
    return known


def _is_initialiser(function: ast.AST) -> bool:
    if not isinstance(function, Definition) or not any(map(switches_off, function.decorator_list)):
        return False
    parts = sorted_parts(function)
    if parts.get(ast.AugAssign) or any(one.value is not None for one in parts.get(ast.Return, ())):
        return False
    if any(not isinstance(one.ctx, ast.Load) for one in parts.get(ast.Subscript, ())):
        return False
    if any(one.attr in ("data", "enable_grad", "set_grad_enabled") for one in parts.get(ast.Attribute, ())):
        return False
    return all(
        writes_by_init(call)
        for call in parts.get(ast.Call, ())
        if called_name(call).endswith("_") or any(one.arg in ("out", "inplace") for one in call.keywords)
    )


def switches_off(decorator: ast.expr) -> bool:
    """`@torch.no_grad()`."""
    return isinstance(decorator, ast.Call) and called_name(decorator) in NO_GRAD and not decorator.args


def writes_by_init(call: ast.Call) -> bool:
    """`nn.init.normal_(...)`, `init.zeros_(...)`."""
    target = call.func
    if not isinstance(target, ast.Attribute) or any(one.arg in ("out", "inplace") for one in call.keywords):
        return False
    owner = target.value
    return (owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")) == "init"


def calls_initialisers_only(function: ast.AST, calls: CallGraph) -> bool:
    """Whether what it calls in its own file does nothing either: what is called under `no_grad` is not tried without it."""
    summary = summary_of(function)
    return all(
        is_initialiser(one) or not calls.reasons_for(one)
        for name in summary.calls | summary.hands_over
        for one in calls.by_name.get(name, ())
    )
