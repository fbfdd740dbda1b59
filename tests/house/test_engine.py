"""The engine is built of floors that hold each other: short chains, no circles, nothing that answers to every name."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
from typing import Any

import gradsight
from gradsight.interp.path_state import Program
from gradsight.interp.paths.assembly import Machine
from gradsight.model.values import PythonModule
from gradsight.ops.table import shipped
from tests.house.tree import SERVER

LONGEST_CHAIN = 12
ENGINE = SERVER / "gradsight" / "interp"
TYPED_PACKAGES = ("interp", "detect", "model", "ops")
MOST_UNTYPED = 0.1
"""The share of annotations in signatures of those packages that may name `Any`."""
FLOORS = ("loops", "language", "objects", "facts", "autograd", "nn", "libraries", "entry")


def test_no_class_stands_on_more_than_eleven_others() -> None:
    chains = {cls.__qualname__: len(cls.__mro__) for cls in classes_of_the_product()}
    assert {name: length for name, length in chains.items() if length > LONGEST_CHAIN} == {}


def test_modules_of_the_engine_import_each_other_in_no_circle() -> None:
    imports = engine_imports()
    assert len(imports) > 50
    assert circles(imports) == []


def test_a_circle_would_be_found() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [{"a", "b", "c"}]


def test_nothing_in_the_engine_answers_to_every_name() -> None:
    catchers = [
        f"{path.name}:{node.lineno}"
        for path in sorted(ENGINE.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef) and node.name in ("__getattr__", "__getattribute__")
    ]
    assert catchers == []


def test_every_floor_is_joined_to_what_it_names() -> None:
    machine = Machine(Program(shipped()), PythonModule("__main__", "file.py"), [], 100)
    for name in FLOORS:
        floor = getattr(machine, name)
        for link in links_of(type(floor)):
            assert getattr(floor, link, None) is getattr(machine, link), f"{name}.{link}"


def test_the_language_spells_no_name_of_torch() -> None:
    spelled = [
        f"{path.name}:{node.lineno} {node.value}"
        for path in sorted((ENGINE / "python").glob("*.py"))
        for node in strings(ast.parse(path.read_text()))
        if "torch" in node.value
    ]
    assert spelled == []


def test_signatures_of_the_engine_say_what_they_take() -> None:
    annotations = [
        annotation
        for package in TYPED_PACKAGES
        for path in sorted((SERVER / "gradsight" / package).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        for annotation in annotations_of(node)
    ]
    assert len(annotations) > 5000
    untyped = sum(names_any(annotation) for annotation in annotations)
    assert untyped / len(annotations) < MOST_UNTYPED


def test_an_annotation_that_names_any_is_counted() -> None:
    signature = ast.parse("def f(self, a: int, b: dict[str, Any], *c: Any) -> list[Any]: ...").body[0]
    assert isinstance(signature, ast.FunctionDef)
    assert [names_any(annotation) for annotation in annotations_of(signature)] == [False, True, True, True]


def classes_of_the_product() -> set[type]:
    found: set[type] = set()
    for info in pkgutil.walk_packages(gradsight.__path__, "gradsight."):
        if not info.name.startswith("gradsight.agent") and not info.name.endswith("__main__"):
            module = importlib.import_module(info.name)
            found |= {
                value
                for value in vars(module).values()
                if isinstance(value, type) and value.__module__ == info.name
            }
    return found


def links_of(cls: type) -> list[str]:
    named: set[str] = set()
    for base in cls.__mro__:
        named |= set(inspect.get_annotations(base))
    return [name for name in FLOORS if name in named]


def engine_imports() -> dict[str, set[str]]:
    """What each module of the engine imports of it, wherever the import stands."""
    modules = {
        "gradsight." + ".".join(path.relative_to(ENGINE.parent).with_suffix("").parts): path
        for path in sorted(ENGINE.rglob("*.py"))
        if path.name != "__init__.py"
    }
    imports: dict[str, set[str]] = {}
    for name, path in modules.items():
        named: set[str] = set()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module is not None:
                named |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
            elif isinstance(node, ast.Import):
                named |= {alias.name for alias in node.names}
        imports[name] = named & set(modules) - {name}
    return imports


def circles(imports: dict[str, set[str]]) -> list[set[str]]:
    """Groups of modules each of which leads to every other one."""
    reached = {name: reachable(name, imports) for name in imports}
    groups = [{other for other in reached[name] if name in reached[other]} for name in imports]
    return [group for index, group in enumerate(groups) if group and group not in groups[:index]]


def reachable(start: str, imports: dict[str, set[str]]) -> set[str]:
    found: set[str] = set()
    todo = list(imports[start])
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo.extend(imports.get(name, ()))
    return found


def strings(tree: ast.AST) -> list[Any]:
    """The string constants of a text that are no docstrings."""
    silent = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in silent
    ]


def annotations_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.expr]:
    """What is said of the parameters and the result."""
    given = function.args
    parameters = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
    said = [parameter.annotation for parameter in parameters if parameter is not None]
    return [annotation for annotation in (*said, function.returns) if annotation is not None]


def names_any(annotation: ast.expr) -> bool:
    return any(isinstance(node, ast.Name) and node.id == "Any" for node in ast.walk(annotation))
