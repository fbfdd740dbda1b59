"""Other spellings of a program that mean the same: the variations of the fix fuzzer."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable

from gradsight_dev.fuzz_layouts import FRAMES, LAYOUTS, TEXTS, Frame, Unfit

SIGNS = {"add_": ast.Add, "sub_": ast.Sub, "mul_": ast.Mult, "div_": ast.Div, "pow_": ast.Pow}
IMPORTS = (ast.Import, ast.ImportFrom)


def varied(text: str, names: tuple[str, ...]) -> str:
    """The program after these variations, in their order: what is said in other words, then how it is laid out, then where."""
    for name in names:
        text = VARIATIONS[name](text)
    return text


def laid_out(layout: Callable[[list[ast.stmt], list[ast.stmt]], str]) -> Callable[[str], str]:
    return lambda text: layout(*parsed(text))


def framed(frame: Frame) -> Callable[[str], str]:
    def vary(text: str) -> str:
        head, work = parsed(text)
        if frame.is_scope:
            check_local(head, work)
        return frame.around(text, ast.parse(text).body[-len(work)].lineno)

    return vary


def parsed(text: str) -> tuple[list[ast.stmt], list[ast.stmt]]:
    """The imports and definitions of a program, and the statements that do its work."""
    body = ast.parse(text).body
    if body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
        body = body[1:]
    work = next(
        (k for k, one in enumerate(body) if not isinstance(one, (*IMPORTS, ast.FunctionDef, ast.ClassDef))),
        None,
    )
    if work is None or any(
        isinstance(one, IMPORTS) and getattr(one, "module", "") == "__future__" for one in body
    ):
        raise Unfit
    later = body[work:]
    if any(isinstance(one, IMPORTS) for one in later):
        raise Unfit
    return body[:work], later


def text_of(*parts: list[ast.stmt]) -> str:
    body = [statement for part in parts for statement in part]
    return ast.unparse(ast.fix_missing_locations(ast.Module(body, []))) + "\n"


def statements(text: str) -> list[ast.stmt]:
    return ast.parse(text).body


def plainly(text: str) -> str:
    return text_of(ast.parse(text).body)


def in_function(text: str) -> str:
    head, work = parsed(text)
    check_local(head, work)
    function = statements("def work():\n    pass\n")[0]
    assert isinstance(function, ast.FunctionDef)
    function.body = [*work, *statements("globals().update(locals())")]
    return text_of(head, [function], statements("work()"))


def check_local(head: list[ast.stmt], work: list[ast.stmt]) -> None:
    """Work whose names something outside speaks of cannot become the body of a function."""
    definitions = [one for one in head if not isinstance(one, IMPORTS)]
    if any(isinstance(node, (ast.Global, ast.Nonlocal)) for one in work for node in ast.walk(one)):
        raise Unfit
    names = stored(work)
    if any(isinstance(node, ast.Name) and node.id in names for one in definitions for node in ast.walk(one)):
        raise Unfit
    if any(isinstance(one, (ast.FunctionDef, ast.ClassDef)) for one in work):
        raise Unfit


def in_method(text: str) -> str:
    head, _ = parsed(in_function(text))
    function = next(one for one in reversed(head) if isinstance(one, ast.FunctionDef))
    method = copy.deepcopy(function)
    method.args.args = [ast.arg("self")]
    owner = statements("class Worker:\n    pass\n")[0]
    assert isinstance(owner, ast.ClassDef)
    owner.body = [method]
    return text_of([one for one in head if one is not function], [owner], statements("Worker().work()"))


def under(opener: str) -> Callable[[str], str]:
    """The work inside one compound statement."""

    def vary(text: str) -> str:
        head, work = parsed(text)
        if any(isinstance(one, (ast.FunctionDef, ast.ClassDef)) for one in work):
            raise Unfit
        outer = statements(f"{opener}\n    pass\n")[0]
        assert isinstance(outer, (ast.For, ast.If, ast.With, ast.Try))
        if isinstance(outer, ast.Try):
            outer.finalbody = outer.body
        outer.body = work
        return text_of(head, [outer])

    return vary


def stored(body: list[ast.stmt]) -> set[str]:
    """Names that the work itself assigns."""
    return {
        node.id
        for one in body
        for node in ast.walk(one)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }


class Renamed(ast.NodeTransformer):
    """Puts another expression in the place of some names."""

    def __init__(self, names: set[str], spelled: Callable[[str], str]) -> None:
        self.names = names
        self.spelled = spelled

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id not in self.names:
            return node
        made = ast.parse(self.spelled(node.id), mode="eval").body
        for part in ast.walk(made):
            if part is made and isinstance(part, (ast.Name, ast.Attribute, ast.Subscript)):
                part.ctx = copy.copy(node.ctx)
        return made


def movable(head: list[ast.stmt], work: list[ast.stmt]) -> set[str]:
    """Names of the work that nothing else speaks of: no function, class, comprehension, loop target or `del`."""
    names = stored(work)
    for one in [*head, *work]:
        for node in ast.walk(one):
            inner: list[ast.AST] = []
            if isinstance(
                node,
                (
                    ast.FunctionDef,
                    ast.ClassDef,
                    ast.Lambda,
                    ast.ListComp,
                    ast.GeneratorExp,
                    ast.DictComp,
                    ast.SetComp,
                ),
            ):
                inner = [node]
            elif isinstance(node, (ast.For, ast.comprehension)):
                inner = [node.target]
            elif isinstance(node, (ast.With,)):
                inner = [item.optional_vars for item in node.items if item.optional_vars is not None]
            elif isinstance(node, (ast.Delete, ast.ExceptHandler, ast.NamedExpr)):
                inner = [node]
            elif isinstance(node, ast.AnnAssign):
                inner = [node.target]
            for part in inner:
                names -= {each.id for each in ast.walk(part) if isinstance(each, ast.Name)}
    return names - {"GRADS"}


def respelled(text: str, spelled: Callable[[str], str], first: str = "") -> str:
    head, work = parsed(text)
    names = movable(head, work)
    if not names:
        raise Unfit
    moved = [Renamed(names, spelled).visit(one) for one in work]
    return text_of(head, statements(first) if first else [], moved)


def with_other_names(text: str) -> str:
    return respelled(text, lambda name: f"{name}_of_mine")


def in_a_box(text: str) -> str:
    """Variables are attributes of an object."""
    return respelled(
        text, lambda name: f"box.{name}", "from types import SimpleNamespace\nbox = SimpleNamespace()"
    )


def in_a_dict(text: str) -> str:
    """Variables are entries of a dict, and the names are given back at the end."""
    head, work = parsed(respelled(text, lambda name: f"store[{name!r}]", "store = {}"))
    return text_of(head, work, statements("globals().update(store)"))


def in_a_list(text: str) -> str:
    """Variables are items of a list, and the names are given back at the end."""
    places: dict[str, int] = {}
    head, work = parsed(
        respelled(text, lambda name: f"slots[{places.setdefault(name, len(places))}]", "slots = []")
    )
    work[0] = statements(f"slots = [None] * {len(places)}")[0]
    back = [f"{name} = slots[{place}]" for name, place in places.items()]
    return text_of(head, work, statements("\n".join(back)))


def in_self(text: str) -> str:
    """Variables are attributes of the object whose method does the work."""
    moved = respelled(text, lambda name: f"self.{name}")
    head, work = parsed(moved)
    check_local(head, work)
    back = "globals().update({**locals(), **vars(self)})"
    frame = Frame(("class Worker:", "def work(self):"), back, "Worker().work()")
    return frame.around(text_of(head, work), len(text_of(head).split("\n")))


def with_short_imports(text: str) -> str:
    """`torch` under another name."""
    if "import torch\n" not in text or "import torch." in text:
        raise Unfit
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for name in node.names:
                if name.name == "torch" and name.asname is None:
                    name.asname = "th"
    return text_of(Renamed({"torch"}, lambda name: "th").visit(tree).body)


class Signs(ast.NodeTransformer):
    """`y += e` for `y.add_(e)`, and the reverse."""

    def __init__(self, to_methods: bool) -> None:
        self.to_methods = to_methods
        self.changed = False

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        name = next((name for name, kind in SIGNS.items() if isinstance(node.op, kind)), None)
        is_number = isinstance(node.value, ast.Constant) and isinstance(node.value.value, int)
        if not self.to_methods or name is None or not isinstance(node.target, ast.Name) or is_number:
            return node
        self.changed = True
        call = ast.parse(f"{node.target.id}.{name}(0)").body[0]
        assert isinstance(call, ast.Expr)
        assert isinstance(call.value, ast.Call)
        call.value.args = [node.value]
        return call

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        call = node.value
        if self.to_methods or not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)):
            return node
        kind = SIGNS.get(call.func.attr)
        if kind is None or len(call.args) != 1 or call.keywords or not isinstance(call.func.value, ast.Name):
            return node
        self.changed = True
        return ast.AugAssign(ast.Name(call.func.value.id, ast.Store()), kind(), call.args[0])


def with_signs(to_methods: bool) -> Callable[[str], str]:
    def vary(text: str) -> str:
        visitor = Signs(to_methods)
        tree = visitor.visit(ast.parse(text))
        if not visitor.changed:
            raise Unfit
        return text_of(tree.body)

    return vary


def on_few_lines(text: str) -> str:
    """Neighbouring simple statements share a line."""
    head, work = parsed(text)
    simple = (ast.Assign, ast.Expr, ast.AugAssign)
    lines: list[str] = []
    open_line = False
    for one in work:
        written = ast.unparse(ast.fix_missing_locations(one))
        if isinstance(one, simple) and "\n" not in written:
            if open_line:
                lines[-1] += f"; {written}"
            else:
                lines.append(written)
            open_line = not open_line
        else:
            lines.append(written)
            open_line = False
    return text_of(head) + "\n".join(lines) + "\n"


def with_tabs(text: str) -> str:
    lines = plainly(text).split("\n")
    return "\n".join("\t" * ((len(line) - len(line.lstrip(" "))) // 4) + line.lstrip(" ") for line in lines)


def with_comments(text: str) -> str:
    """A comment behind every statement of the work, and empty lines between them."""
    head, work = parsed(text)
    told = [ast.unparse(ast.fix_missing_locations(one)).replace("\n", "  # why\n", 1) for one in work]
    return text_of(head) + "\n\n".join(one if "\n" in one else f"{one}  # why" for one in told) + "\n"


WORDINGS: dict[str, Callable[[str], str]] = {
    "plain": plainly,
    "function": in_function,
    "method": in_method,
    "loop": under("for _ in range(1):"),
    "condition": under("if True:"),
    "mode": under("with torch.enable_grad():"),
    "try": under("try:\n    pass\nfinally:"),
    "names": with_other_names,
    "box": in_a_box,
    "dict": in_a_dict,
    "imports": with_short_imports,
    "methods": with_signs(True),
    "signs": with_signs(False),
    "lines": on_few_lines,
    "tabs": with_tabs,
    "comments": with_comments,
    "list": in_a_list,
    "self": in_self,
}
PLACES = {name: framed(frame) for name, frame in FRAMES.items()}
VARIATIONS = {**WORDINGS, **{name: laid_out(one) for name, one in LAYOUTS.items()}, **PLACES, **TEXTS}
