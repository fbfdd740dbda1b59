"""What is said of the labelled programs when their other half is taken away, or when their names say nothing.

    python -m gradsight_dev.opened [FORM …] [--names] [--keep FOLDER]

Each program in `fixtures` is written in another form: its loop becomes a function or a class that is called as before (*closed*:
the same has to be said), or that nobody calls and that is given its models, its optimizers and its data (*open*: less can be said,
and nothing else).  With `--names` each form is compared with itself where every variable is called `v1`, `v2` …
Printed are the codes that are lost and those that are new; `--keep` writes the programs that differ.
"""

from __future__ import annotations

import argparse
import ast
import builtins
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gradsight.analysis import analyze
from gradsight.model.source import Source
from gradsight_dev.fuzz_layouts import Unfit
from gradsight_dev.fuzz_variants import statements, text_of

FIXTURES = Path(__file__).parents[2] / "fixtures"
FOLDERS = ("programs", "memory", "trained", "training", "gradients", "reports", "truths")
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
IMPORTS = (ast.Import, ast.ImportFrom)
ODD = (ast.Global, ast.Nonlocal, ast.Await, ast.Yield)
NAMESPACES = frozenset({"globals", "locals", "vars", "eval", "exec"})
CALLED = ", "


@dataclass(frozen=True)
class Pieces:
    """A program: its imports and definitions, what it makes, the loop in which it trains, and what the loop has from there."""

    head: list[ast.stmt]
    made: list[ast.stmt]
    loop: list[ast.stmt]
    given: list[str]


def pieces_of(text: str) -> Pieces:
    body = ast.parse(text).body
    head: list[ast.stmt] = [one for one in body if isinstance(one, (*IMPORTS, *DEFINITIONS))]
    work = [one for one in body if one not in head and not is_docstring(one, body)]
    bound = names(work, ast.Store)
    if (
        any(isinstance(one, ODD) for part in work for one in ast.walk(part))
        or names(work, ast.Load) & NAMESPACES
    ):
        raise Unfit
    if any(isinstance(part, DEFINITIONS) and names([part], ast.Load) & bound for part in head):
        raise Unfit
    place = beginning_of_training(work)
    made, loop = work[:place], work[place:]
    if not made:
        raise Unfit
    return Pieces(head, made, loop, sorted(names(loop, ast.Load) & names(made, ast.Store)))


def is_docstring(statement: ast.stmt, body: list[ast.stmt]) -> bool:
    return (
        statement is body[0] and isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    )


def beginning_of_training(work: list[ast.stmt]) -> int:
    for place, one in enumerate(work):
        if isinstance(one, (ast.For, ast.While)):
            return place
        if any(isinstance(part, ast.Attribute) and part.attr == "backward" for part in ast.walk(one)):
            return max(0, place - 2)
    raise Unfit


def names(body: Sequence[ast.stmt], context: type[ast.expr_context]) -> set[str]:
    return {
        part.id
        for one in body
        for part in ast.walk(one)
        if isinstance(part, ast.Name) and isinstance(part.ctx, context)
    }


def function_of(name: str, given: list[str], body: list[ast.stmt]) -> ast.stmt:
    made = statements(f"def {name}({CALLED.join(given)}):\n    pass")[0]
    assert isinstance(made, ast.FunctionDef)
    made.body = body
    return made


# -- closed forms ------------------------------------------------------------------------------------------------------


def in_main(text: str) -> str:
    one = pieces_of(text)
    main = function_of("main", [], [*one.made, *one.loop])
    return text_of(one.head, [main], statements("if __name__ == '__main__':\n    main()"))


def in_called_function(text: str) -> str:
    one = pieces_of(text)
    call = statements(f"train({CALLED.join(one.given)})")
    return text_of(one.head, [function_of("train", one.given, one.loop)], one.made, call)


def in_object(text: str) -> str:
    """An object makes everything and trains."""
    one = pieces_of(text)
    held = names(one.made, ast.Store)
    runner = class_of(
        [
            function_of("__init__", ["self"], moved(one.made, held)),
            function_of("run", ["self"], moved(one.loop, held)),
        ]
    )
    return text_of(one.head, [runner], statements("Runner().run()"))


# -- open forms --------------------------------------------------------------------------------------------------------


def in_function(text: str) -> str:
    one = pieces_of(text)
    return text_of(one.head, [function_of("train", one.given, one.loop)])


def in_given_object(text: str) -> str:
    one = pieces_of(text)
    keep = statements("\n".join(f"self.{name} = {name}" for name in one.given) or "pass")
    init = function_of("__init__", ["self", *one.given], keep)
    return text_of(
        one.head, [class_of([init, function_of("run", ["self"], moved(one.loop, set(one.given)))])]
    )


def with_given_models(text: str) -> str:
    """A function is given the models; all else it makes itself."""
    one = pieces_of(text)
    classes = {part.name for part in one.head if isinstance(part, ast.ClassDef) and is_module_class(part)}
    models = {part.targets[0].id: part for part in one.made if is_model(part, classes)}  # type: ignore[attr-defined]
    rest = [part for part in [*one.made, *one.loop] if part not in models.values()]
    if not models or names(rest, ast.Store) & {*models, *names([*models.values()], ast.Load)}:
        raise Unfit
    return text_of(one.head, [function_of("train", [*models], rest)])


def is_module_class(cls: ast.ClassDef) -> bool:
    return any(ast.unparse(base).endswith("Module") for base in cls.bases)


def is_model(statement: ast.stmt, classes: set[str]) -> bool:
    if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Call):
        return False
    made = ast.unparse(statement.value.func)
    is_layer = (
        made.startswith("nn.") and made.count(".") == 1 and made != "nn.Parameter" and "Loss" not in made
    )
    return isinstance(statement.targets[0], ast.Name) and (made in classes or is_layer)


def class_of(methods: list[ast.stmt]) -> ast.stmt:
    made = statements("class Runner:\n    pass")[0]
    assert isinstance(made, ast.ClassDef)
    made.body = methods
    return made


class ToSelf(ast.NodeTransformer):
    """Names become attributes of `self`."""

    def __init__(self, held: set[str]) -> None:
        self.held = held

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return (
            ast.Attribute(ast.Name("self", ast.Load()), node.id, node.ctx) if node.id in self.held else node
        )

    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:
        raise Unfit


def moved(body: list[ast.stmt], held: set[str]) -> list[ast.stmt]:
    return [ToSelf(held).visit(one) for one in body]


CLOSED = {"in_main": in_main, "in_called_function": in_called_function, "in_object": in_object}
OPEN = {
    "in_function": in_function,
    "in_given_object": in_given_object,
    "with_given_models": with_given_models,
}
FORMS: dict[str, Callable[[str], str]] = {**CLOSED, **OPEN}


# -- names that say nothing --------------------------------------------------------------------------------------------


def without_names(text: str) -> str:
    """Every variable is called `v1`, `v2` …; attributes, functions and classes keep their names."""
    tree = ast.parse(text)
    if any(isinstance(part, (ast.Global, ast.Nonlocal)) for part in ast.walk(tree)):
        raise Unfit
    arguments = {part.arg for part in ast.walk(tree) if isinstance(part, ast.arg)}
    kept = {part.name for part in ast.walk(tree) if isinstance(part, DEFINITIONS)}
    kept |= {
        word.arg or "" for part in ast.walk(tree) if isinstance(part, ast.Call) for word in part.keywords
    }
    kept |= {name for part in ast.walk(tree) if isinstance(part, ast.ClassDef) for name in fields_of(part)}
    kept |= {"self", "cls", "ctx", "_", *dir(builtins)}
    said = {
        name: f"v{number}"
        for number, name in enumerate(sorted((names(tree.body, ast.Store) | arguments) - kept))
    }
    for part in ast.walk(tree):
        if isinstance(part, ast.Name):
            part.id = said.get(part.id, part.id)
        elif isinstance(part, ast.arg):
            part.arg = said.get(part.arg, part.arg)
    return text_of(tree.body)


def fields_of(cls: ast.ClassDef) -> set[str]:
    return names([one for one in cls.body if not isinstance(one, DEFINITIONS)], ast.Store)


# -- comparing ---------------------------------------------------------------------------------------------------------


@dataclass
class Comparison:
    """What was said of the programs in one form, and not in the other."""

    programs: int = 0
    findings: int = 0
    lost: dict[str, set[str]] = field(default_factory=dict)
    new: dict[str, set[str]] = field(default_factory=dict)


def labelled_programs() -> Iterator[Path]:
    for folder in FOLDERS:
        yield from sorted((FIXTURES / folder).glob("*.py"))


def compare(form: str, with_names: bool, keep: Path | None = None) -> Comparison:
    """Say what a form changes; or, with names, what it changes that the names of a form say nothing."""
    found = Comparison()
    for path in labelled_programs():
        text = path.read_text(encoding="utf-8")
        try:
            other = FORMS[form](text)
            before, after = (other, without_names(other)) if with_names else (text, other)
        except Unfit:
            continue
        was, now = codes(before), codes(after)
        found.programs += 1
        found.findings += len(was)
        for where, some in ((found.lost, was - now), (found.new, now - was)):
            if some:
                where[path.stem] = some
        if keep is not None and was != now:
            (keep / f"{form}__{path.name}").write_text(after, encoding="utf-8")
    return found


def codes(text: str) -> set[str]:
    findings = analyze(Source("program.py", text)).findings
    return {one.code for one in findings if one.severity in ("error", "warning")}


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m gradsight_dev.opened",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("forms", nargs="*", choices=[*FORMS, []], metavar="FORM", help=CALLED.join(FORMS))
    parser.add_argument("--names", action="store_true", help="compare each form with itself without names")
    parser.add_argument("--keep", type=Path, help="a folder for the programs that differ")
    args = parser.parse_args()
    if args.keep is not None:
        args.keep.mkdir(parents=True, exist_ok=True)
    for form in args.forms or FORMS:
        found = compare(form, args.names, args.keep)
        lost, new = (sum(map(len, some.values())) for some in (found.lost, found.new))
        print(f"{form}: {found.programs} programs, {found.findings} findings, {lost} lost, {new} new")
        for word, some in (("lost", found.lost), ("new", found.new)):
            for name, what in some.items():
                print(f"    {word} {name}: {CALLED.join(sorted(what))}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
