"""Other ways to lay a program out that mean the same: lines, brackets, comments, one-line blocks, targets; for the fix fuzzer.

Most of them write text that `ast.unparse` never writes: what a fix does to such text is the question.
"""

from __future__ import annotations

import ast
import copy
import json
import textwrap
from collections.abc import Callable
from dataclasses import dataclass

SIMPLE = (ast.Assign, ast.Expr, ast.AugAssign)
SPARE = ("first_", "also_", "result")
"""How second names begin that a layout gives to a tensor and that nothing reads."""
Work = list[ast.stmt]
"""The imports and definitions of a program, or the statements that do its work."""


class Unfit(Exception):
    """The variation has nothing to work on in this program."""


def written(statement: ast.AST) -> str:
    return ast.unparse(ast.fix_missing_locations(statement))


def is_line(statement: ast.stmt) -> bool:
    return isinstance(statement, SIMPLE) and "\n" not in written(statement)


def lines_of(head: Work, lines: list[str]) -> str:
    before = "".join(f"{written(one)}\n" for one in head)
    return before + "\n".join(lines) + "\n"


# -- lines ----------------------------------------------------------------------------------------------------------------


def one_line_ifs(head: Work, work: Work) -> str:
    """Every simple statement in an `if` of its own, on the same line."""
    return lines_of(head, [f"if True: {written(one)}" if is_line(one) else written(one) for one in work])


def one_line_block(head: Work, work: Work) -> str:
    """Neighbouring simple statements as the body of an `if` on one line."""
    return lines_of(head, [f"if True: {'; '.join(run)}" if run[1:] else run[0] for run in runs(work)])


def on_one_line(head: Work, work: Work) -> str:
    """Neighbouring simple statements all share a line, which ends with a semicolon and a comment."""
    return lines_of(head, [f"{'; '.join(run)};  # together" if run[1:] else run[0] for run in runs(work)])


def runs(work: Work) -> list[list[str]]:
    """The texts of simple statements that stand together, and each other one alone."""
    found: list[list[str]] = []
    is_open = False
    for one in work:
        if is_line(one) and is_open:
            found[-1].append(written(one))
        else:
            found.append([written(one)])
        is_open = is_line(one)
    if not any(run[1:] for run in found):
        raise Unfit
    return found


def commented(head: Work, work: Work) -> str:
    """A comment and an empty line above every statement, and one behind it."""
    lines = []
    for one in work:
        first, _, rest = written(one).partition("\n")
        lines += ["", "# about it", f"{first}  # type: ignore" + (f"\n{rest}" if rest else "")]
    return lines_of(head, lines)


def continued(head: Work, work: Work) -> str:
    """Assignments go on after a backslash."""
    lines = []
    for one in work:
        if isinstance(one, ast.AugAssign) and is_line(one):
            sign = written(ast.AugAssign(ast.Name("a"), one.op, ast.Name("b"))).split()[1]
            lines.append(f"{written(one.target)} \\\n    {sign} \\\n    {written(one.value)}")
        elif isinstance(one, ast.Assign) and is_line(one) and len(one.targets) == 1:
            lines.append(f"{written(one.targets[0])} = \\\n    {written(one.value)}")
        else:
            lines.append(written(one))
    return lines_of(head, lines)


def on_lines(node: ast.expr) -> str:
    """A call with one argument per line and comments between them, anything else in brackets."""
    if not isinstance(node, ast.Call) or not (node.args or node.keywords):
        return f"(  # in brackets\n    {written(node)}\n)"
    if isinstance(node.args[0] if node.args else None, ast.GeneratorExp):
        return written(node)
    given = [written(one) for one in node.args]
    given += [
        f"{one.arg}={written(one.value)}" if one.arg else f"**{written(one.value)}" for one in node.keywords
    ]
    return f"{written(node.func)}(  # spread\n" + "".join(f"    {one},  # given\n" for one in given) + ")"


def spread(head: Work, work: Work) -> str:
    """Values in brackets over several lines, calls with one argument per line."""
    lines = []
    for one in work:
        if isinstance(one, ast.AugAssign) and is_line(one):
            sign = written(ast.AugAssign(ast.Name("a"), one.op, ast.Name("b"))).split()[1]
            lines.append(f"{written(one.target)} {sign} {on_lines(one.value)}")
        elif isinstance(one, ast.Assign) and is_line(one):
            targets = " = ".join(written(each) for each in one.targets)
            lines.append(f"{targets} = {on_lines(one.value)}")
        elif isinstance(one, ast.Expr) and is_line(one) and isinstance(one.value, ast.Call):
            lines.append(on_lines(one.value))
        else:
            lines.append(written(one))
    return lines_of(head, lines)


def dotted(head: Work, work: Work) -> str:
    """Methods of a call on lines of their own, inside brackets."""
    lines = []
    for one in work:
        value = one.value if isinstance(one, (ast.Expr, ast.Assign)) else None
        if is_line(one) and isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
            owner, name = written(value.func).removesuffix(f".{value.func.attr}"), value.func.attr
            given = written(ast.Call(ast.Name("f"), value.args, value.keywords))[1:]
            chain = f"(\n    {owner}\n    .{name}{given}\n)"
            lines.append(
                f"{' = '.join(map(written, one.targets))} = {chain}" if isinstance(one, ast.Assign) else chain
            )
        else:
            lines.append(written(one))
    return lines_of(head, lines)


def wide(head: Work, work: Work) -> str:
    """Characters of several bytes and of two code units stand before the statements, on their lines."""
    lines = [f"'é😀名'; {written(one)}  # 😀" if is_line(one) else written(one) for one in work]
    return lines_of(head, lines)


def crowded(head: Work, work: Work) -> str:
    """No blank around signs, and an indented docstring in front."""
    lines = [written(one).replace(" = ", "=").replace(" += ", "+=").replace(", ", ",") for one in work]
    return lines_of(head, ["'''text\n    y += 1\n'''", *lines])


# -- targets and values ----------------------------------------------------------------------------------------------------


def each_assignment(change: Callable[[ast.Assign, str], list[ast.stmt]]) -> Callable[[Work, Work], str]:
    """Changes every assignment to one name that stands in the work itself."""

    def vary(head: Work, work: Work) -> str:
        changed: Work = []
        count = 0
        for one in work:
            if (
                isinstance(one, ast.Assign)
                and len(one.targets) == 1
                and isinstance(one.targets[0], ast.Name)
                and one.targets[0].id != "GRADS"
            ):
                changed += change(one, one.targets[0].id)
                count += 1
            else:
                changed.append(one)
        if not count:
            raise Unfit
        return lines_of(head, [written(one) for one in changed])

    return vary


def made(template: str, value: ast.expr) -> list[ast.stmt]:
    """The statements of a text in which VALUE stands for an expression."""

    class Filled(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.AST:
            return copy.deepcopy(value) if node.id == "VALUE" else node

    return [Filled().visit(one) for one in ast.parse(template).body]


def in_template(template: str) -> Callable[[Work, Work], str]:
    """Every assignment as a text in which NAME is its target and VALUE its value."""
    return each_assignment(lambda one, name: made(template.replace("NAME", name), one.value))


def read_at_the_end(template: str) -> Callable[[Work, Work], str]:
    """Every assignment as such a text, whose second names all are read by the last statement."""

    def vary(head: Work, work: Work) -> str:
        text = in_template(template)(head, work)
        others = [node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)]
        return text + f"others = [{', '.join(dict.fromkeys(one for one in others if one[:6] == 'other_'))}]\n"

    return vary


def results_used(head: Work, work: Work) -> str:
    """What a statement of one call computes is handed to a function."""
    lines = ["def take(value, *others):", "    return value"]
    count = 0
    for one in work:
        if isinstance(one, ast.Expr) and isinstance(one.value, ast.Call) and is_line(one):
            lines.append(f"take({written(one.value)}, 0)")
            count += 1
        else:
            lines.append(written(one))
    if not count:
        raise Unfit
    return lines_of(head, lines)


def results_kept(head: Work, work: Work) -> str:
    """What a statement of one call computes gets a name."""
    lines = []
    count = 0
    for number, one in enumerate(work):
        if isinstance(one, ast.Expr) and isinstance(one.value, ast.Call) and is_line(one):
            lines.append(f"result{number} = {written(one.value)}")
            count += 1
        else:
            lines.append(written(one))
    if not count:
        raise Unfit
    return lines_of(head, lines)


# -- frames ----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Frame:
    """Lines that open blocks around the work, the outermost first; what ends the innermost, and what follows them all."""

    openers: tuple[str, ...]
    end: str = ""
    after: str = ""
    before: str = ""
    is_scope: bool = False
    """Whether the names of the work become local: nothing outside may speak of them."""

    def around(self, text: str, start: int) -> str:
        """A program whose work, which begins with this line, stands inside."""
        lines = text.split("\n")
        head, work = lines[: start - 1], "\n".join(lines[start - 1 :]).rstrip("\n")
        if "'''" in work or '"""' in work:
            raise Unfit
        inner = f"{work}\n{self.end}" if self.end else work
        for opener in reversed(self.openers):
            inner = f"{opener}\n{textwrap.indent(inner, '    ')}"
        parts = [*head, *([self.before] if self.before else []), inner, *([self.after] if self.after else [])]
        return "\n".join(parts) + "\n"


PUBLISHED = "globals().update(locals())"
PASSED_ON = """import functools


def passed_on(function):
    @functools.wraps(function)
    def inner(*args, **kwargs):
        return function(*args, **kwargs)

    return inner

"""
FRAMES = {
    "else": Frame(("if False:\n    pass\nelse:",)),
    "while": Frame(("while True:",), end="break"),
    "match": Frame(("match 0:", "case _:")),
    "deep": Frame(
        ("for _ in range(1):", "if True:", "with torch.enable_grad():", "try:\n    pass\nfinally:")
    ),
    "with items": Frame(("with torch.enable_grad(), torch.random.fork_rng(devices=[], enabled=False):",)),
    "except": Frame(("try:\n    raise KeyError\nexcept KeyError:",)),
    "main": Frame(("if __name__ == '__main__':",)),
    "plain function": Frame(("def work():",), PUBLISHED, "work()", is_scope=True),
    "decorated": Frame(("@passed_on\ndef work():",), PUBLISHED, "work()", PASSED_ON, is_scope=True),
    "decorated twice": Frame(
        ("@passed_on\n@torch.enable_grad()\ndef work():",), PUBLISHED, "work()", PASSED_ON, is_scope=True
    ),
    "coroutine": Frame(
        ("async def work():",), PUBLISHED, "import asyncio\nasyncio.run(work())", is_scope=True
    ),
    "generator": Frame(("def work():",), f"{PUBLISHED}\nyield 0", "list(work())", is_scope=True),
    "inner function": Frame(("def outer():", "def work():"), PUBLISHED, "    work()\nouter()", is_scope=True),
    "static method": Frame(
        ("class Worker:", "@staticmethod\ndef work():"), PUBLISHED, "Worker.work()", is_scope=True
    ),
}


def with_windows_lines(text: str) -> str:
    return text.replace("\n", "\r\n")


def without_last_line_end(text: str) -> str:
    return text.rstrip("\n")


def indented_by_two(text: str) -> str:
    lines = ast.unparse(ast.parse(text)).split("\n")
    return (
        "\n".join(" " * ((len(line) - len(line.lstrip(" "))) // 2) + line.lstrip(" ") for line in lines)
        + "\n"
    )


LAYOUTS: dict[str, Callable[[Work, Work], str]] = {
    "one-line ifs": one_line_ifs,
    "one-line block": one_line_block,
    "one line": on_one_line,
    "comments above": commented,
    "backslashes": continued,
    "spread": spread,
    "dotted": dotted,
    "wide characters": wide,
    "crowded": crowded,
    "walrus": in_template("(NAME := VALUE)"),
    "walrus in a condition": in_template("if (NAME := VALUE) is None:\n    pass"),
    "two targets": in_template("NAME = also_NAME = VALUE"),
    "two targets, turned": in_template("also_NAME = NAME = VALUE"),
    "tuple": in_template("NAME, rest_NAME = VALUE, 0"),
    "brackets": in_template("[NAME] = [VALUE]"),
    "starred": in_template("NAME, *rest_NAME = VALUE, 0, 1"),
    "ternary": in_template("NAME = VALUE if True else None"),
    "lambda": in_template("NAME = (lambda: VALUE)()"),
    "alias": in_template("first_NAME = VALUE\nNAME = first_NAME"),
    "alias that is read": read_at_the_end("other_NAME = VALUE\nNAME = other_NAME"),
    "two targets that are read": read_at_the_end("NAME = other_NAME = VALUE"),
    "results used": results_used,
    "results kept": results_kept,
}
TEXTS: dict[str, Callable[[str], str]] = {
    "windows": with_windows_lines,
    "no line end": without_last_line_end,
    "two blanks": indented_by_two,
}


def notebook_of(head: Work, work: Work) -> str:
    """The program as the file of a notebook: a cell for the imports, one per statement, magics and prose between them."""
    cells = [code("%matplotlib inline\n" + "\n".join(written(one) for one in head))]
    for one in work:
        cells += [{"cell_type": "markdown", "metadata": {}, "source": ["y += 1"]}, code(written(one))]
    cells.append(code("!ls"))
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=1)


def code(text: str) -> dict[str, object]:
    return {
        "cell_type": "code",
        "metadata": {},
        "execution_count": None,
        "outputs": [],
        "source": text.splitlines(keepends=True),
    }
