"""Statements.  Compound ones are generators, so that a `yield` of the analysed code can suspend them.

Executing a block returns a *status*: None (went through), BREAK, CONTINUE or a `Returned`.
"""

from __future__ import annotations

import ast
from functools import cache
from typing import Any

from gradsight.interp.path_state import PathEnded, PathState, RaisedError
from gradsight.interp.python.assignment import Assignment
from gradsight.interp.python.expected_errors import end_if_none, expects_error, waits_for_error
from gradsight.interp.python.generators import NO_EXCEPTIONS, Returned, delegated, suspended, yields_in
from gradsight.interp.python.loop_sampling import is_taken_first
from gradsight.interp.python.loops import BREAK, CONTINUE, Flow, LoopRun
from gradsight.interp.syntax_parts import syntax_parts
from gradsight.model.library_objects import RaisedObject
from gradsight.model.tensors import Tensor
from gradsight.model.trace import Assigned, Assigning, NameSeen, ResultDropped
from gradsight.model.values import (
    MISSING,
    Array,
    Bound,
    ClassValue,
    External,
    Function,
    Instance,
    Layer,
    Mapping,
    Method,
    Native,
    Negated,
    Scope,
    Seq,
    Unknown,
    Value,
    is_constant,
)

STATEMENTS_UNASKED = 50
"""How many statements are executed before it is asked again whether anybody waits for the outcome."""
YIELDS = (ast.Yield, ast.YieldFrom)


class Statements(Assignment):
    """Execution of statements."""

    def __init__(self, path: PathState) -> None:
        super().__init__(path)
        self.simple_statements, self.compound_statements = self.simple_table(), self.compound_table()
        self.sent: dict[ast.AST, Value] = {}
        """What was sent to the `yield`s of a statement that is about to be executed."""
        self.class_functions: list[Function] = []
        """Functions of classes that are being executed: a decorator may hide them inside another function."""

    def execute(self, body: list[ast.stmt]) -> object:
        """Run a block that does not yield."""
        flow = self.block(body)
        try:
            while True:
                next(flow)
        except StopIteration as stop:
            status: object = stop.value
            return status

    def block(self, body: list[ast.stmt]) -> Flow:
        """Run statements in order until one leaves the block."""
        simple, path = self.simple_statements, self.path
        running = path.frame.function
        is_generator = running is not None and running.yields
        for statement in body:
            path.budget -= 1
            if path.budget < 0:
                path.spend(0)
            path.unasked += 1
            if path.unasked > STATEMENTS_UNASKED:
                path.check_wanted()
            path.node = statement
            kind = type(statement)
            action = simple.get(kind)
            if action is not None:
                if is_generator and (asked := yields_in(statement)):
                    yield from suspended(self, asked)
                status = action(self, statement)
            elif isinstance(statement, ast.Expr) and not isinstance(statement.value, YIELDS):
                status = self.do_expression(statement)
            else:
                compound = self.compound_statements.get(kind)
                if compound is None:
                    continue
                status = yield from compound(self, statement)
            if status is not None:
                return status
        return None

    @classmethod
    @cache
    def simple_table(cls) -> dict[type, Any]:
        """What executes which statement that holds no others: the same on all paths."""
        table: dict[type, Any] = {
            ast.Assign: cls.do_assign,
            ast.AugAssign: cls.do_augmented,
            ast.AnnAssign: cls.do_annotated,
            ast.Return: cls.do_return,
            ast.Pass: cls.do_nothing,
            ast.Import: cls.do_import,
            ast.ImportFrom: cls.do_import_from,
            ast.FunctionDef: cls.do_function,
            ast.AsyncFunctionDef: cls.do_function,
            ast.ClassDef: cls.do_class,
            ast.Delete: cls.do_delete,
            ast.Global: cls.do_global,
            ast.Nonlocal: cls.do_nothing,
            ast.Assert: cls.do_assert,
            ast.Raise: cls.do_raise,
            ast.Break: cls.do_break,
            ast.Continue: cls.do_continue,
        }
        return table

    @classmethod
    @cache
    def compound_table(cls) -> dict[type, Any]:
        """What executes which other statement, as a generator."""
        table: dict[type, Any] = {
            ast.Expr: cls.do_yield,
            ast.If: cls.do_if,
            ast.For: cls.do_for,
            ast.AsyncFor: cls.do_for,
            ast.While: cls.do_while,
            ast.With: cls.do_with,
            ast.AsyncWith: cls.do_with,
            ast.Try: cls.do_try,
            ast.Match: cls.do_match,
        }
        star = getattr(ast, "TryStar", None)
        if star is not None:
            table[star] = cls.do_try
        return table

    # -- simple statements -------------------------------------------------------------------------------------------

    def do_nothing(self, node: ast.stmt) -> Value:
        return None

    def do_break(self, node: ast.stmt) -> Value:
        return BREAK

    def do_continue(self, node: ast.stmt) -> Value:
        return CONTINUE

    def do_return(self, node: ast.Return) -> Returned:
        self.path.frame.exit = node
        return Returned(self.evaluate(node.value) if node.value is not None else None)

    def do_assign(self, node: ast.Assign) -> Value:
        newest = self.path.numbering.last
        self.path.tell(Assigning(node))
        value = self.evaluate(node.value)
        if type(value) is int and self.path.frame.loops:
            self.loops.note_recount(node, value)
        for target in node.targets:
            self.assign(target, value)
        if self.after_assign is not None:
            self.after_assign(node, value)
        self.path.tell(Assigned(node, newest))
        return None

    after_assign: Any = None

    def do_annotated(self, node: ast.AnnAssign) -> Value:
        if node.value is not None:
            self.assign(node.target, self.evaluate(node.value))
        return None

    def do_augmented(self, node: ast.AugAssign) -> Value:
        target = node.target
        operand = self.evaluate(node.value)
        if isinstance(target, ast.Name):
            current = self.load_name(target)
            result = self.autograd.augment(node, current, operand)
            self.assign(target, result)
            self.loops.note_count(self.namespace_of(target.id), target.id, current, result)
        elif isinstance(target, ast.Attribute):
            owner = self.evaluate(target.value)
            current = self.objects.get_attribute(owner, target.attr, target)
            result = self.autograd.augment(node, current, operand)
            self.objects.set_attribute(owner, target.attr, result, target, augmented=True)
            if self.path.is_watched:
                self.path.tell(NameSeen(target, result, True))
            self.loops.note_count(owner, target.attr, current, result)
        elif isinstance(target, ast.Subscript):
            owner = self.evaluate(target.value)
            index = self.evaluate_index(target.slice)
            if isinstance(owner, Tensor):
                self.autograd.augment_item(node, owner, index, operand)
            else:
                current = self.objects.get_item(owner, index, target)
                result = self.autograd.augment(node, current, operand)
                if not isinstance(owner, Array):
                    self.objects.set_item(owner, index, result, target)
                if isinstance(owner, Mapping):
                    self.loops.note_count(owner, index, current, result)
        return None

    def do_delete(self, node: ast.Delete) -> Value:
        for target in node.targets:
            if isinstance(target, ast.Name):
                self.path.frame.namespace.pop(target.id, None)
            elif isinstance(target, ast.Subscript):
                owner = self.evaluate(target.value)
                index = self.evaluate_index(target.slice)
                if isinstance(owner, Mapping):
                    self.objects.delete_key(owner, index)
                elif isinstance(owner, Seq):
                    self.objects.delete_items(owner, index)
            elif isinstance(target, ast.Attribute):
                owner = self.evaluate(target.value)
                if isinstance(owner, (Instance, Layer)):
                    self.objects.delete_attribute(owner, target.attr, target)
                elif isinstance(owner, Tensor) and target.attr == "grad":
                    # torch takes `del p.grad` for `p.grad = None`.
                    self.objects.set_attribute(owner, "grad", None, target)
        return None

    def do_global(self, node: ast.Global) -> Value:
        names = self.path.frame.global_names
        if names is None:
            names = self.path.frame.global_names = set()
        names.update(node.names)
        return None

    def do_assert(self, node: ast.Assert) -> Value:
        value = self.evaluate(node.test)
        end_if_none(node, value, self.path.site(node))
        self.suppose(value, True)
        return None

    def suppose(self, value: Value, outcome: bool) -> None:
        """From here on the path takes the condition for granted."""
        while isinstance(value, Negated):
            outcome = not outcome
            value = value.value
        if isinstance(value, Unknown) and value.condition is not None:
            value = value.condition
        if isinstance(value, Unknown) and id(value) not in self.path.decided:
            self.path.decided[id(value)] = outcome
            self.path.kept_alive.append(value)
            self.path.learn(value, outcome)

    def do_raise(self, node: ast.Raise) -> Value:
        value = self.evaluate(node.exc) if node.exc is not None else None
        raise RaisedError(value)

    def do_for(self, node: ast.For | ast.AsyncFor) -> Flow:
        return self.loops.do_for(node)

    def do_while(self, node: ast.While) -> Flow:
        return self.loops.do_while(node)

    def do_yield(self, node: ast.Expr) -> Flow:
        """A `yield` whose value nobody takes."""
        value = node.value
        if isinstance(value, ast.YieldFrom):
            yield from delegated(self, value)
        elif isinstance(value, ast.Yield):
            yield self.evaluate(value.value) if value.value is not None else None

    def do_expression(self, node: ast.Expr) -> Value:
        value = node.value
        if not isinstance(value, (ast.Constant, ast.Name)):
            result = self.evaluate(value)
            if isinstance(value, ast.Attribute):
                self.method_named(value, result)
            elif isinstance(result, Tensor) and isinstance(value, ast.Call):
                self.path.tell(ResultDropped(value, result))
        return None

    def method_named(self, node: ast.Attribute, value: Value) -> None:
        if isinstance(value, Bound):
            self.path.named_methods.append((node.attr, self.path.site(node)))

    # -- definitions -------------------------------------------------------------------------------------------------

    def do_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Value:
        function = self.make_function(node)
        if self.path.frame.name == "<class>":
            self.class_functions.append(function)
        value: Value = function
        for decorator in reversed(node.decorator_list):
            plain, value = value, self.decorate(decorator, value)
            if isinstance(plain, Function) and isinstance(value, Function) and value.node is not plain.node:
                value.decorates = plain
        self.bind(node.name, value)
        return None

    def make_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> Function:
        arguments = node.args
        defaults = [self.evaluate(default) for default in arguments.defaults]
        keyword_defaults = {
            argument.arg: self.evaluate(default)
            for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults)
            if default is not None
        }
        return Function(node, self.closure_scope(), self.path.frame.unit, defaults, keyword_defaults)

    def closure_scope(self) -> Scope:
        """The scope a nested function closes over; a class body is not part of it."""
        scope: Scope = self.path.frame.scope
        return scope.outer if self.path.frame.name == "<class>" and scope.outer is not None else scope

    def do_class(self, node: ast.ClassDef) -> Value:
        bases = [self.evaluate(base) for base in node.bases if not isinstance(base, ast.Starred)]
        value: Value = self.make_class(node, bases)
        for decorator in reversed(node.decorator_list):
            value = self.decorate_class(decorator, value)
        self.bind(node.name, value)
        return None

    # -- branches ----------------------------------------------------------------------------------------------------

    def do_if(self, node: ast.If) -> Flow:
        frame = self.path.frame
        before = frame.guards
        try:
            # A chain of `elif` is as deep as it is long: it is gone through link by link.
            while not self.is_taken(node):
                rest = node.orelse
                if len(rest) != 1 or not isinstance(rest[0], ast.If):
                    return (yield from self.block(rest))
                self.path.spend()
                self.path.node = node = rest[0]
            return (yield from self.block(node.body))
        finally:
            frame.guards = before

    def is_taken(self, node: ast.If) -> bool:
        """Whether this path takes an `if`; what follows in either arm is guarded by the decision."""
        condition = self.asked_for_truth(self.evaluate(node.test), node.test)
        known = self.path.truth(condition)
        if known is None and self.path.frame.loops:
            known = self.loops.settled(node)
        if known is not None and self.path.guarded_by(condition) is None:
            if self.path.frame.loops:
                self.loops.arm_chosen(node, known)
            return known
        default = is_taken_first(node, self.path.frame)
        self.show_names(node)
        choice = self.path.decide(condition, node, default)
        self.path.arms.add((node, choice))
        frame = self.path.frame
        key = self.path.guarded_by(condition)
        # A flag that nobody has seen is taken to be set: what follows from that is told as it is.  So is what a library does.
        is_told = not frame.unit.library and not (choice and isinstance(condition, External))
        if key not in frame.guards and is_told:
            frame.guards = (*frame.guards, key)
        return choice

    def asked_for_truth(self, value: Value, node: ast.AST) -> Value:
        """What an object of the program answers when it is asked whether it is true."""
        if isinstance(value, Instance):
            for name in ("__bool__", "__len__"):
                method, _ = value.cls.find(name)
                if isinstance(method, Function):
                    return self.objects.call_method(value, name, [], {}, node)
        return value

    def do_match(self, node: ast.Match) -> Flow:
        subject = self.evaluate(node.subject)
        for case in node.cases:
            outcome = self.match_pattern(case.pattern, subject)
            if outcome is True and case.guard is not None:
                outcome = self.evaluate(case.guard)
            if self.path.decide(outcome, case.pattern):
                return (yield from self.block(case.body))
        return None

    def match_pattern(self, pattern: ast.pattern, subject: Value) -> Value:
        """True, False or an unknown condition; names in the pattern are bound."""
        if isinstance(pattern, ast.MatchValue):
            value = self.evaluate(pattern.value)
            if self.path.frame.loops:
                self.loops.note_comparison(ast.Eq, pattern, pattern.value, subject, value)
            return self.compare_values("==", subject, value, pattern)
        if isinstance(pattern, ast.MatchSingleton):
            return self.compare_values("is", subject, pattern.value, pattern)
        if isinstance(pattern, ast.MatchAs):
            outcome = True if pattern.pattern is None else self.match_pattern(pattern.pattern, subject)
            if pattern.name:
                self.bind(pattern.name, subject)
            return outcome
        if isinstance(pattern, ast.MatchOr):
            outcomes = [self.match_pattern(choice, subject) for choice in pattern.patterns]
            if any(outcome is True for outcome in outcomes):
                return True
            unknown = [outcome for outcome in outcomes if outcome is not False]
            return self.any_of(unknown) if unknown else False
        if isinstance(pattern, ast.MatchSequence):
            outcome = self.match_sequence(pattern.patterns, subject)
            if outcome is not None:
                return outcome
        if isinstance(pattern, ast.MatchMapping):
            outcome = self.match_mapping(pattern, subject)
            if outcome is not None:
                return outcome
        if isinstance(pattern, ast.MatchClass):
            outcome = self.match_class(pattern, subject)
            if outcome is not None:
                return outcome
        for inner in syntax_parts(pattern):
            name = getattr(inner, "name", None)
            if isinstance(inner, (ast.MatchAs, ast.MatchStar)) and name:
                self.bind(name, self.path.gap("bound by a structural pattern"))
        return self.path.gap("structural pattern")

    def match_sequence(self, patterns: list[ast.pattern], subject: Value) -> Value:
        """A pattern of items held against a list or tuple that is known; None where it is not."""
        if is_constant(subject) or isinstance(subject, Mapping):
            return False
        if not isinstance(subject, Seq) or not subject.exact or subject.kind not in ("list", "tuple"):
            return None
        items = subject.items
        stars = [index for index, part in enumerate(patterns) if isinstance(part, ast.MatchStar)]
        if len(items) < len(patterns) - len(stars) or (not stars and len(items) > len(patterns)):
            return False
        outcomes = []
        for index, part in enumerate(patterns):
            behind = len(patterns) - index
            if isinstance(part, ast.MatchStar):
                taken = items[index : len(items) - behind + 1]
                if part.name:
                    self.bind(part.name, Seq("list", list(taken), True, self.path.site(part)))
            else:
                after_star = bool(stars) and index > stars[0]
                outcomes.append(self.match_pattern(part, items[-behind if after_star else index]))
        return self.all_match(outcomes)

    def match_mapping(self, pattern: ast.MatchMapping, subject: Value) -> Value:
        """A pattern of entries held against a dict that is known; None where it is not."""
        if is_constant(subject) or isinstance(subject, (Seq, Tensor)):
            return False
        if not isinstance(subject, Mapping) or not subject.exact:
            return None
        keys = [self.evaluate(key) for key in pattern.keys]
        if not all(isinstance(key, (str, int)) for key in keys):
            return None
        if any(key not in subject.items for key in keys):
            return False
        outcomes = [self.match_pattern(part, subject.items[key]) for key, part in zip(keys, pattern.patterns)]
        if pattern.rest is not None:
            rest = Mapping()
            rest.site = self.path.site(pattern)
            rest.items.update({key: value for key, value in subject.items.items() if key not in keys})
            rest.keys.update({key: value for key, value in subject.keys.items() if key not in keys})
            self.bind(pattern.rest, rest)
        return self.all_match(outcomes)

    def match_class(self, pattern: ast.MatchClass, subject: Value) -> Value:
        """A pattern of attributes held against an object of a class of the program; None where either is not known."""
        kind = self.evaluate(pattern.cls)
        is_one = self.objects.is_instance(subject, kind)
        if is_one is False:
            return False
        if is_one is None or not isinstance(kind, ClassValue):
            return None
        names = positional_names(kind)
        if len(names) < len(pattern.patterns):
            return None
        parts = [*zip(names, pattern.patterns), *zip(pattern.kwd_attrs, pattern.kwd_patterns)]
        return self.all_match(
            [
                self.match_pattern(part, self.objects.get_attribute(subject, name, pattern))
                for name, part in parts
            ]
        )

    def all_match(self, outcomes: list[Value]) -> Value:
        """Whether all parts of a pattern match: True, False, or the first condition that is not known."""
        if any(outcome is False for outcome in outcomes):
            return False
        undecided = [outcome for outcome in outcomes if outcome is not True]
        return undecided[0] if undecided else True

    # -- with and try ------------------------------------------------------------------------------------------------

    def do_with(self, node: ast.With | ast.AsyncWith) -> Flow:
        exits: list[Any] = []
        frame = self.path.frame
        status: Any = None
        failed: RaisedError | None = None
        before = frame.expecting
        waits = False
        try:
            for item in node.items:
                context = self.evaluate(item.context_expr)
                value, leave = self.enter_context(context, item.context_expr)
                exits.append(leave)
                if waits_for_error(item.context_expr, context):
                    waits = True
                    frame.expecting = "specific"
                if item.optional_vars is not None:
                    self.assign(item.optional_vars, value)
            status = yield from self.block(node.body)
        except RaisedError as error:
            failed = error
        finally:
            self.path.frame = frame
            frame.expecting = before
            for leave in reversed(exits):
                if leave is not None:
                    leave()
        if failed is not None:
            if waits or any(getattr(leave, "suppresses", False) for leave in exits):
                return None
            raise failed
        return status

    def do_try(self, node: ast.Try) -> Flow:
        frame = self.path.frame
        status: Any = None
        before = frame.expecting
        try:
            try:
                frame.expecting = expects_error(node) or before
                self.path.tries += 1
                try:
                    status = yield from self.block(node.body)
                finally:
                    frame.expecting = before
                    self.path.tries -= 1
                if status is None and node.orelse:
                    status = yield from self.block(node.orelse)
            except RaisedError as error:
                self.path.frame = frame
                handler = self.handler_for(node.handlers, error)
                if handler is None:
                    raise
                if handler.name:
                    self.bind(handler.name, error.value)
                status = yield from self.block(handler.body)
        except PathEnded:
            raise
        except RaisedError:
            self.path.frame = frame
            if node.finalbody:
                yield from self.block(node.finalbody)
            raise
        if node.finalbody:
            late = yield from self.block(node.finalbody)
            if late is not None:
                return late
        return status

    def handler_for(self, handlers: list[ast.ExceptHandler], error: RaisedError) -> ast.ExceptHandler | None:
        """The handler that takes the error; one whose type is not known is taken to fit."""
        raised = error.value
        name = ""
        if isinstance(raised, RaisedObject):
            name = raised.path
        elif isinstance(raised, External):
            name = raised.path.rpartition(".")[2]
        elif isinstance(raised, Instance):
            name = raised.cls.name
        for handler in handlers:
            if handler.type is None:
                return handler
            names = [
                getattr(part, "id", getattr(part, "attr", ""))
                for part in (handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type])
            ]
            takes_all = "BaseException" in names or ("Exception" in names and name not in NO_EXCEPTIONS)
            if not name or name in names or takes_all:
                return handler
        return None


__all__ = [
    "BREAK",
    "CONTINUE",
    "MISSING",
    "ClassValue",
    "LoopRun",
    "Method",
    "Native",
    "Returned",
    "Statements",
]


def positional_names(kind: ClassValue) -> list[str]:
    """The attributes that the positional parts of a class pattern stand for."""
    told, _ = kind.find("__match_args__")
    if isinstance(told, Seq) and told.exact:
        return [name for name in told.items if isinstance(name, str)]
    return [name for name, _ in kind.fields]
