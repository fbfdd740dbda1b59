"""Functions of other files that only describe what they are given and give it back: decorators that write documentation.

    def documented(function):
        function.__doc__ = intro_for(function.__name__) + parameters_of(inspect.signature(function))
        return function

A question to the syntax tree of the file they stand in.  *The thing*: the function or class that was given, or anything read
from it that could be changed; texts about it are not.  It may be read, compared, and given to functions of the same file or
of the standard library that only read it.  Whoever stores it, binds one of its attributes or calls it does more than describe,
and so does whoever calls into other files.  A file that imports torch is left to be executed.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Iterator
from typing import Any

from gradsight.interp.syntax_parts import syntax_parts

ABOUT = frozenset({
    "__annotations__", "__code__", "__defaults__", "__doc__", "__file__", "__kwdefaults__", "__module__", "__name__",
    "__qualname__", "__signature__", "__text_signature__",
})  # fmt: skip
"""Attributes that tell about a function or class and change nothing of what it does."""
READING = frozenset({
    "all", "any", "bool", "callable", "format", "hasattr", "hash", "id", "int", "isinstance", "issubclass", "len", "print",
    "repr", "str",
})  # fmt: skip
"""Functions of Python that keep nothing of what they are given, and give nothing of it back."""
PASSING_ON = frozenset({
    "dict", "dir", "enumerate", "filter", "frozenset", "getattr", "iter", "list", "max", "min", "next", "reversed", "set",
    "sorted", "tuple", "type", "vars", "zip",
})  # fmt: skip
"""Those that give back what they were given, or parts of it."""
ERRORS = frozenset(
    name for name, one in vars(builtins).items() if type(one) is type and issubclass(one, Exception)
)
OTHERS = frozenset({"abs", "chr", "float", "ord", "range", "round", "sum", *ERRORS})
OF_TEXTS = frozenset({
    "endswith", "find", "format", "get", "items", "join", "keys", "lower", "replace", "split", "startswith", "strip", "upper",
    "values",
})  # fmt: skip
"""Methods of texts and tables that change nothing, whoever made them."""
READERS = ("inspect.", "typing.get_", "dataclasses.is_dataclass", "dataclasses.fields")
"""How the names of functions begin that read what they are given."""
Definition = ast.FunctionDef | ast.AsyncFunctionDef
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
IsForeign = Callable[[str, int], bool]
"""Whether an import (module, level) leads out of the workspace."""


class MoreThanDescribing(Exception):
    """Something is done that a description does not need."""


def only_describes(
    function: ast.AST, given: frozenset[str], statements: list[ast.stmt], is_foreign: IsForeign
) -> frozenset[str] | None:
    """The methods that a function calls of what it is given, if else it only describes that and gives the first argument back.

    `given`: its parameters that hold functions and classes, the first among them; `statements`: the file it stands in.
    What has none of these methods is only described.
    """
    if not isinstance(function, ast.FunctionDef) or function.decorator_list:
        return None
    try:
        file = File(statements, is_foreign)
        file.follow(function, given, gives_back=True)
    except MoreThanDescribing:
        return None
    return frozenset(file.methods)


class File:
    """What one file defines and imports."""

    def __init__(self, statements: list[ast.stmt], is_foreign: IsForeign) -> None:
        self.is_foreign = is_foreign
        self.functions: dict[str, Definition] = {}
        self.methods: set[str] = set()
        """Methods of the thing that are called."""
        self.imported: dict[str, bool] = {}
        """Names of imported modules, functions and classes, and whether they come from outside the workspace."""
        self.origins: dict[str, str] = {}
        """What an imported name stands for, by its whole name."""
        self.followed: dict[tuple[ast.AST, frozenset[str], bool], bool] = {}
        """Functions with the parameters that hold the thing, and whether what they return may be part of it."""
        for statement in statements:
            if isinstance(statement, DEFINITIONS):
                self.functions[statement.name] = statement
            self.note_imports(statement)

    def note_imports(self, node: ast.AST) -> None:
        for part in syntax_parts(node):
            if isinstance(part, ast.Import):
                for alias in part.names:
                    whole = alias.name if alias.asname else alias.name.partition(".")[0]
                    self.note(alias.asname or whole, alias.name, 0, whole)
            elif isinstance(part, ast.ImportFrom):
                for alias in part.names:
                    whole = f"{part.module}.{alias.name}"
                    self.note(alias.asname or alias.name, part.module or "", part.level, whole)

    def note(self, name: str, module: str, level: int, whole: str) -> None:
        if module.partition(".")[0] == "torch":
            raise MoreThanDescribing
        self.imported[name] = self.is_foreign(module, level) and self.imported.get(name, True)
        self.origins[name] = whole if self.origins.get(name, whole) == whole else ""

    def follow(self, function: Definition, given: frozenset[str], gives_back: bool) -> bool:
        """Whether what a function returns may be part of the thing, which the `given` parameters hold.

        Raises MoreThanDescribing.
        """
        key = (function, given, gives_back)
        if key not in self.followed:
            # A function that calls itself does what the rest of it does.
            self.followed[key] = False
            self.followed[key] = Text(self, function, given, gives_back).read()
        return self.followed[key]


class Text:
    """The text of one function, while it is read."""

    def __init__(self, file: File, function: Definition, given: frozenset[str], gives_back: bool) -> None:
        self.file = file
        self.function = function
        self.things = set(given)
        """Names that stand for the thing, or for parts of it."""
        self.subject = first_parameter(function) if gives_back else ""
        self.locals = {
            part.id
            for part in self.parts()
            if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load)
        }

    def parts(self) -> Iterator[ast.AST]:
        for statement in self.function.body:
            yield from syntax_parts(statement)

    def read(self) -> bool:
        function = self.function
        for decorator in function.decorator_list:
            if not self.file.imported.get(root_of(decorator), False):
                raise MoreThanDescribing
        self.find_names()
        if self.subject and (self.subject in self.locals or not always_returns(function.body)):
            raise MoreThanDescribing
        returns = False
        for part in self.parts():
            returns = self.look_at(part) or returns
        return returns

    def find_names(self) -> None:
        """Find the names that the thing, or a part of it, is bound to."""
        before = -1
        while before != len(self.things):
            before = len(self.things)
            for part in self.parts():
                if isinstance(part, ast.Assign) and self.is_thing(part.value):
                    for target in part.targets:
                        self.bind(target)
                elif isinstance(part, (ast.AnnAssign, ast.NamedExpr)):
                    if self.is_thing(part.value):
                        self.bind(part.target)
                elif isinstance(part, (ast.For, ast.AsyncFor, ast.comprehension)) and self.is_thing(
                    part.iter
                ):
                    self.bind(part.target)

    def bind(self, target: ast.expr) -> None:
        if isinstance(target, (ast.Tuple, ast.List)):
            for inner in target.elts:
                self.bind(inner)
        elif isinstance(target, ast.Name):
            self.things.add(target.id)
        else:
            raise MoreThanDescribing

    # -- expressions -------------------------------------------------------------------------------------------------

    def is_thing(self, node: ast.AST | None) -> bool:
        """Whether an expression may stand for the thing or a part of it."""
        if isinstance(node, ast.Name):
            return node.id in self.things
        if isinstance(node, ast.Attribute):
            return node.attr not in ABOUT and self.is_thing(node.value)
        if isinstance(node, (ast.Subscript, ast.Starred, ast.NamedExpr, ast.Await)):
            return self.is_thing(node.value)
        if isinstance(node, ast.IfExp):
            return self.is_thing(node.body) or self.is_thing(node.orelse)
        if isinstance(node, ast.BoolOp):
            return any(self.is_thing(value) for value in node.values)
        if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
            return any(self.is_thing(value) for value in node.elts)
        if isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp)):
            return self.is_thing(node.elt)
        return isinstance(node, ast.Call) and self.gives_thing(node)

    def gives_thing(self, call: ast.Call) -> bool:
        given = [*call.args, *(keyword.value for keyword in call.keywords)]
        if not any(self.is_thing(argument) for argument in given):
            return False
        name = self.function_called(call)
        if name in self.file.functions:
            return self.follow(call, name, gives_back=False)
        if name == "getattr" and len(given) > 1 and isinstance(given[1], ast.Constant):
            return given[1].value not in ABOUT
        return name in PASSING_ON

    def function_called(self, call: ast.Call) -> str:
        """The name of the function of this file or of Python that is called; empty for anything else."""
        name = call.func.id if isinstance(call.func, ast.Name) else ""
        return "" if name in self.locals or name in self.file.imported else name

    def follow(self, call: ast.Call, name: str, gives_back: bool) -> bool:
        function = self.file.functions[name]
        parameters = [one.arg for one in [*function.args.posonlyargs, *function.args.args]]
        given = set()
        for position, argument in enumerate(call.args):
            if self.is_thing(argument):
                if isinstance(argument, ast.Starred) or position >= len(parameters):
                    raise MoreThanDescribing
                given.add(parameters[position])
        for keyword in call.keywords:
            if self.is_thing(keyword.value):
                if keyword.arg is None:
                    raise MoreThanDescribing
                given.add(keyword.arg)
        if gives_back and first_parameter(function) not in given:
            raise MoreThanDescribing
        return self.file.follow(function, frozenset(given), gives_back)

    # -- what is done ------------------------------------------------------------------------------------------------

    def look_at(self, node: ast.AST) -> bool:
        """Whether a node returns the thing or a part of it.  Raises MoreThanDescribing."""
        if isinstance(
            node, (*DEFINITIONS, ast.Lambda, ast.ClassDef, ast.With, ast.AsyncWith, ast.Yield, ast.YieldFrom)
        ):
            raise MoreThanDescribing
        if isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Load):
            is_about = isinstance(node, ast.Attribute) and node.attr in ABOUT
            if self.is_thing(node.value) and not is_about:
                raise MoreThanDescribing
        elif isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
            targets: list[Any] = node.targets if isinstance(node, ast.Assign) else [node.target]
            if self.is_thing(node.value) and not all(is_plain_target(target) for target in targets):
                raise MoreThanDescribing
        elif isinstance(node, ast.Dict):
            if any(self.is_thing(one) for one in (*node.keys, *node.values)):
                raise MoreThanDescribing
        elif isinstance(node, ast.DictComp):
            if self.is_thing(node.key) or self.is_thing(node.value):
                raise MoreThanDescribing
        elif isinstance(node, ast.Global):
            if self.things & set(node.names):
                raise MoreThanDescribing
        elif isinstance(node, ast.Call):
            self.look_at_call(node)
        elif isinstance(node, ast.Return):
            if self.subject:
                self.look_at_way_out(node.value)
            return self.is_thing(node.value)
        return False

    def look_at_way_out(self, value: ast.expr | None) -> None:
        if isinstance(value, ast.Name) and value.id == self.subject:
            return
        is_handed_on = (
            isinstance(value, ast.Call)
            and bool(value.args)
            and isinstance(value.args[0], ast.Name)
            and value.args[0].id == self.subject
        )
        if not is_handed_on or not isinstance(value, ast.Call):
            raise MoreThanDescribing
        name = self.function_called(value)
        if name not in self.file.functions:
            raise MoreThanDescribing
        self.follow(value, name, gives_back=True)

    def look_at_call(self, call: ast.Call) -> None:
        given = [*call.args, *(keyword.value for keyword in call.keywords)]
        is_given = any(self.is_thing(argument) for argument in given)
        name = self.function_called(call)
        if name in self.file.functions:
            self.follow(call, name, gives_back=False)
        elif name:
            if name not in READING and name not in PASSING_ON and (is_given or name not in OTHERS):
                raise MoreThanDescribing
        elif isinstance(call.func, ast.Attribute) and self.is_thing(call.func.value):
            self.file.methods.add(call.func.attr)
        elif not self.only_reads(call.func, is_given):
            raise MoreThanDescribing

    def only_reads(self, function: ast.expr, is_given: bool) -> bool:
        """Whether a function of a library, or a method of something else, leaves the thing alone."""
        root = root_of(function)
        if root in self.file.imported and root not in self.locals:
            whole = ".".join([self.file.origins[root], *attributes_of(function)])
            if is_given:
                return self.file.imported[root] and whole.startswith(READERS)
            is_of_text = isinstance(function, ast.Attribute) and function.attr in OF_TEXTS
            return self.file.imported[root] or is_of_text
        return isinstance(function, ast.Attribute) and not is_given


def first_parameter(function: Definition) -> str:
    parameters = [*function.args.posonlyargs, *function.args.args]
    return parameters[0].arg if parameters else ""


def root_of(node: ast.expr) -> str:
    """`inspect` of `inspect.signature(f)`; empty where something else than a name is at the bottom."""
    while isinstance(node, (ast.Attribute, ast.Call, ast.Subscript)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def attributes_of(node: ast.expr) -> list[str]:
    """`["path", "join"]` of `os.path.join`."""
    found: list[str] = []
    while isinstance(node, (ast.Attribute, ast.Call, ast.Subscript)):
        if isinstance(node, ast.Attribute):
            found.append(node.attr)
        node = node.func if isinstance(node, ast.Call) else node.value
    return found[::-1]


def is_plain_target(target: ast.expr) -> bool:
    """Whether a target is made of names only."""
    if isinstance(target, (ast.Tuple, ast.List)):
        return all(is_plain_target(inner) for inner in target.elts)
    return isinstance(target, ast.Name)


def always_returns(body: list[ast.stmt]) -> bool:
    """Whether no way leads past the end of a body."""
    last = body[-1]
    if isinstance(last, ast.If):
        return bool(last.orelse) and always_returns(last.body) and always_returns(last.orelse)
    return isinstance(last, (ast.Return, ast.Raise))
