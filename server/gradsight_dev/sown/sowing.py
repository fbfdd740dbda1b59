"""Edits of a training loop whose label is right by construction: bugs, and look-alikes that change nothing.

Each rule looks at one round (`rounds.py`) and asks of the text what makes its label true: that nothing else in the function clears,
that a loss is computed from one network alone, that two optimizers are made for two networks.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256

from gradsight_dev.injected.catalogue import Edit
from gradsight_dev.injected.edits import Change, Dropped, Inserted, Moved, Replaced, line_hash, rows_of
from gradsight_dev.sown.rounds import Reading, Round, method_of, read

DATA = frozenset(
    {"to", "cuda", "float", "long", "Variable", "from_numpy", "tensor", "FloatTensor", "LongTensor"}
)
"""Calls whose results are data: `target.cuda()`, `Variable(target)`."""


def sown(text: str, path: str = "") -> list[Edit]:
    """The edits of one text, at most one of each kind: which of the places it is, a hash of the path decides."""
    try:
        reading = read(text)
    except (SyntaxError, ValueError, RecursionError):
        return []
    field = _Field(text, reading)
    chosen = []
    for rule in RULES:
        found = [edit for one in reading.rounds for edit in rule(field, one)]
        names = sorted({edit.name.split(" ")[0] for edit in found})
        for name in names:
            same = [edit for edit in found if edit.name.split(" ")[0] == name]
            chosen.append(min(same, key=lambda edit: sha256(f"{path} {edit.name}".encode()).hexdigest()))
    return chosen


class _Field:
    """A text, and how to write edits of it."""

    def __init__(self, text: str, reading: Reading) -> None:
        self.text, self.reading = text, reading
        self.lines = [row.text for row in rows_of(text)]

    def bug(self, name: str, kind: str, one: Round, changes: Sequence[Change], *also: int, why: str) -> Edit:
        right = {one.backward.lineno, one.step.lineno, *(loop.lineno for loop in one.loops), *also}
        return self.edit(name, "bug", kind, one, changes, tuple(sorted(right)), why)

    def safe(self, name: str, kind: str, one: Round, changes: Sequence[Change], why: str) -> Edit:
        return self.edit(name, "safe", kind, one, changes, (), why)

    def edit(
        self,
        name: str,
        verdict: str,
        kind: str,
        one: Round,
        changes: Sequence[Change],
        also: tuple[int, ...],
        why: str,
    ) -> Edit:
        label = f"{name} {one.backward.lineno}:{one.step.lineno}"
        return Edit(label, verdict, kind, tuple(changes), also, why, "argued")

    def sha(self, line: int) -> str:
        return line_hash(self.lines[line - 1])

    def dropped(self, statement: ast.stmt) -> Dropped:
        return Dropped(statement.lineno, self.sha(statement.lineno), statement.end_lineno or statement.lineno)

    def moved(self, statement: ast.stmt, to: ast.stmt, before: bool = False) -> Moved:
        beside = to.lineno if before else to.end_lineno or to.lineno
        first = statement.lineno
        return Moved(first, self.sha(first), statement.end_lineno or first, beside, before)

    def inserted(self, beside: ast.stmt, text: str) -> Inserted:
        """A line after a statement that fills one line."""
        return Inserted(beside.lineno, self.sha(beside.lineno), text)

    def wrapped(self, node: ast.expr, before: str, after: str) -> list[Change]:
        """The text of an expression with something put around it."""
        first, last = node.lineno, node.end_lineno or node.lineno
        start, end = self.column(first, node.col_offset), self.column(last, node.end_col_offset or 0)
        return [
            Replaced(last, self.sha(last), end, end, after),
            Replaced(first, self.sha(first), start, start, before),
        ]

    def instead(self, node: ast.expr, text: str) -> Replaced:
        line = node.lineno
        start, end = self.column(line, node.col_offset), self.column(line, node.end_col_offset or 0)
        return Replaced(line, self.sha(line), start, end, text)

    def column(self, line: int, offset: int) -> int:
        return len(self.lines[line - 1].encode()[:offset].decode())

    def is_alone(self, statement: ast.stmt) -> bool:
        """Whether a statement has its lines for itself, and they are one."""
        line = self.lines[statement.lineno - 1]
        written = ast.get_source_segment(self.text, statement) or ""
        return statement.lineno == statement.end_lineno and line.split("#")[0].strip() == written.strip()

    def computed(self, one: Round, name: str) -> ast.Assign | None:
        """The one statement of the block that binds a name, above the backward, if nothing around rebinds it there."""
        bound = [part for top in one.before(one.backward) for part in ast.walk(top) if _binds(part, name)]
        if len(bound) != 1 or not isinstance(bound[0], ast.Assign) or bound[0] not in one.block:
            return None
        targets = bound[0].targets
        return bound[0] if len(targets) == 1 and isinstance(targets[0], ast.Name) else None

    def forward(self, one: Round) -> ast.Assign | None:
        """`out = network(...)`, whose result alone brings a graph into the loss."""
        loss = self.computed(one, one.loss)
        if loss is None or not isinstance(loss.value, ast.Call):
            return None
        found = []
        names = [part.id for part in _outer_names(loss.value)]
        for name in dict.fromkeys(names):
            made = self.computed(one, name)
            if made is None:
                if any(_binds(part, name) for above in one.before(one.backward) for part in ast.walk(above)):
                    return None
                continue
            if _called(made.value) in DATA:
                continue
            found.append((name, made))
        if len(found) != 1:
            return None
        name, made = found[0]
        is_argument = any(
            isinstance(argument, ast.Name) and argument.id == name for argument in loss.value.args
        )
        if not is_argument or self.reading.is_network(_callee(loss.value)):
            return None
        if any(
            isinstance(part, ast.Call)
            for argument in loss.value.args
            for part in ast.walk(argument)
            if self.reading.is_network(_callee(part))
        ):
            return None
        return made if self.reading.is_network(_callee(made.value)) else None


def zero_grad_removed(field: _Field, one: Round) -> Iterator[Edit]:
    """Nothing else in the function clears for this step."""
    if one.zero is None or not field.is_alone(one.zero):
        return
    around: ast.AST = one.function if one.function is not None else field.reading.tree
    receiver = method_of(one.zero)[0]
    clears = [key for key, name in map(method_of, _statements(around)) if name == "zero_grad"]
    networks = [key for key in clears if key != receiver and "opt" not in key.lower()]
    if clears.count(receiver) != 1 or networks or ".grad = None" in field.text or "grad.zero_" in field.text:
        return
    if field.reading.calls[receiver, "zero_grad"] > 1 and not one.loops:
        return
    zero = one.zero.lineno
    yield field.bug(
        "zero-removed",
        "zero-grad-removed",
        one,
        [field.dropped(one.zero)],
        zero,
        why="gradients of all rounds add up",
    )
    yield field.bug(
        "zero-between",
        "zero-grad-misplaced",
        one,
        [field.moved(one.zero, one.backward)],
        zero,
        why="what backward computed is dropped",
    )
    call = one.zero.value  # type: ignore[attr-defined]
    if not call.args and not call.keywords:
        for value in ("True", "False"):
            kept = field.instead(call, f"{ast.unparse(call.func)}(set_to_none={value})")
            if "opt" in receiver.lower():
                yield field.safe(f"zero-none-{value}", "zero-grad-variant", one, [kept], "both forms clear")
    if one.zero in one.before(one.backward) and one.block[0] is not one.zero and one.single:
        first = one.block[0]
        if not isinstance(first, ast.Expr) or method_of(first)[1]:
            is_decorated = bool(getattr(first, "decorator_list", ()))
            if not is_decorated and not _steps_in(one.before(one.zero)):
                yield field.safe(
                    "zero-at-top",
                    "zero-grad-moved",
                    one,
                    [field.moved(one.zero, first, before=True)],
                    "cleared at the top",
                )


def order_changed(field: _Field, one: Round) -> Iterator[Edit]:
    """Clear, backward, step, in a straight line: the step comes too early; what is clipped is clipped too late."""
    if one.zero is None or not one.single or not field.is_alone(one.step) or not field.is_alone(one.backward):
        return
    yield field.bug(
        "step-early",
        "step-before-backward",
        one,
        [field.moved(one.step, one.backward, before=True)],
        one.zero.lineno,
        why="the step finds nothing",
    )
    between = one.block[one.block.index(one.backward) + 1 : one.block.index(one.step)]
    for statement in between:
        if (
            isinstance(statement, ast.Expr)
            and _called(statement.value).startswith("clip_grad_")
            and field.is_alone(statement)
        ):
            yield field.bug(
                "clip-late",
                "clip-misplaced",
                one,
                [field.moved(statement, one.step)],
                statement.lineno,
                why="clipped when it was applied",
            )
    makers = [call.lineno for _, call in field.reading.makers.get(one.optimizer, [])]
    if field.reading.calls[one.optimizer, "step"] == 1:
        yield field.bug(
            "step-gone",
            "step-removed",
            one,
            [field.dropped(one.step)],
            one.zero.lineno,
            *makers,
            why="nothing is learned",
        )


def loss_cut(field: _Field, one: Round) -> Iterator[Edit]:
    """What is differentiated is cut off, or is a number; beside it, what is shown of it."""
    call = one.backward.value  # type: ignore[attr-defined]
    if not field.is_alone(one.backward):
        return
    receiver = call.func.value
    yield field.bug(
        "loss-number",
        "number-on-path",
        one,
        field.wrapped(receiver, "", ".item()"),
        why="a number has no graph",
    )
    shown = f"print('loss', {one.loss}.item(), {one.loss}.detach())"
    yield field.safe("loss-shown", "logging", one, [field.inserted(one.backward, shown)], "only shown")
    made = field.computed(one, one.loss)
    if made is None or isinstance(made.value, (ast.Tuple, ast.Constant)):
        return
    yield field.bug(
        "loss-cut",
        "detach-on-path",
        one,
        field.wrapped(made.value, "(", ").detach()"),
        why="nothing of it can be differentiated",
    )
    yield field.safe(
        "loss-cloned",
        "clone-added",
        one,
        field.wrapped(made.value, "(", ").clone()"),
        "a clone is differentiable",
    )


def term_cut(field: _Field, one: Round) -> Iterator[Edit]:
    """One term of a sum of losses is cut off."""
    made = field.computed(one, one.loss)
    terms = _terms(made.value) if made is not None else []
    if len(terms) < 2:
        return
    for term in terms:
        if isinstance(term, ast.Name):
            source = field.computed(one, term.id)
            if source is not None and isinstance(source.value, ast.Call):
                uses = [part for part in ast.walk(made) if isinstance(part, ast.Name) and part.id == term.id]  # type: ignore[arg-type]
                if len(uses) == 1:
                    yield field.bug(
                        "term-cut",
                        "detach-on-path",
                        one,
                        field.wrapped(term, "", ".detach()"),
                        source.lineno,
                        why="a term that teaches nothing",
                    )


def forward_cut(field: _Field, one: Round) -> Iterator[Edit]:
    """The only way from a network to the loss is cut off."""
    made = field.forward(one)
    if made is None:
        return
    yield field.bug(
        "output-cut",
        "detach-on-path",
        one,
        field.wrapped(made.value, "", ".detach()"),
        why="the only way to the network",
    )
    shown = f"print({ast.unparse(made.targets[0])}.detach().mean())"
    if field.is_alone(made):
        yield field.safe("output-shown", "logging", one, [field.inserted(made, shown)], "only shown")
        start = field.column(made.lineno, made.col_offset)
        if any(
            isinstance(part, ast.Import) and any(one.name == "torch" for one in part.names)
            for part in field.reading.statements
        ):
            change = Replaced(made.lineno, field.sha(made.lineno), start, start, "with torch.no_grad(): ")
            yield field.bug(
                "forward-unrecorded", "forward-without-grad", one, [change], why="no graph is recorded"
            )


def parameters_swapped(field: _Field, one: Round) -> Iterator[Edit]:
    """Two optimizers for two networks: one of them gets the parameters of the other."""
    makers = field.reading.makers
    own = makers.get(one.optimizer, [])
    stepped = {other.optimizer for other in field.reading.rounds}
    others = [key for key in makers if key in stepped and key != one.optimizer]
    if len(own) != 1 or len(others) != 1 or len(makers[others[0]]) != 1:
        return
    network, call = own[0]
    other = makers[others[0]][0][0]
    if network == other or network.startswith(other + ".") or other.startswith(network + "."):
        return
    if sum(made[0] == network for each in makers.values() for made in each) != 1:
        return
    receiver = call.args[0].func.value  # type: ignore[attr-defined]
    steps = [
        each.step.lineno for each in field.reading.rounds if each.optimizer in (one.optimizer, others[0])
    ]
    zeros = [each.zero.lineno for each in field.reading.rounds if each.zero is not None]
    backwards = [each.backward.lineno for each in field.reading.rounds]
    yield field.bug(
        "others-parameters",
        "wrong-parameters",
        one,
        [field.instead(receiver, other)],
        call.lineno,
        *steps,
        *zeros,
        *backwards,
        *[made[0][1].lineno for made in makers.values() if made],
        why="its own network is in no optimizer",
    )


RULES: tuple[Callable[[_Field, Round], Iterator[Edit]], ...] = (
    zero_grad_removed,
    order_changed,
    loss_cut,
    term_cut,
    forward_cut,
    parameters_swapped,
)


def _statements(around: ast.AST) -> Iterator[ast.stmt]:
    return (part for part in ast.walk(around) if isinstance(part, ast.stmt))


def _steps_in(statements: Sequence[ast.stmt]) -> bool:
    return any(
        name in ("step", "backward") for top in statements for _, name in map(method_of, _statements(top))
    )


def _binds(part: ast.AST, name: str) -> bool:
    if isinstance(part, (ast.Assign, ast.For)):
        targets = part.targets if isinstance(part, ast.Assign) else [part.target]
        return any(
            isinstance(leaf, ast.Name) and leaf.id == name for target in targets for leaf in ast.walk(target)
        )
    if isinstance(part, (ast.AugAssign, ast.AnnAssign, ast.NamedExpr)):
        return isinstance(part.target, ast.Name) and part.target.id == name
    return False


def _outer_names(value: ast.expr) -> list[ast.Name]:
    """The names in an expression, but for those of functions that it calls."""
    called = {id(part.func) for part in ast.walk(value) if isinstance(part, ast.Call)}
    return [part for part in ast.walk(value) if isinstance(part, ast.Name) and id(part) not in called]


def _called(value: ast.AST) -> str:
    function = value.func if isinstance(value, ast.Call) else None
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _callee(value: ast.AST) -> str:
    function = value.func if isinstance(value, ast.Call) else None
    return ast.unparse(function) if isinstance(function, (ast.Name, ast.Attribute)) else ""


def _terms(value: ast.expr) -> list[ast.expr]:
    """The summands of a sum, each without its constant factors."""
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
        return [*_terms(value.left), *_terms(value.right)]
    if isinstance(value, ast.BinOp) and isinstance(value.op, (ast.Mult, ast.Div)):
        factors = [side for side in (value.left, value.right) if isinstance(side, ast.Name)]
        other = value.right if factors and factors[0] is value.left else value.left
        if len(factors) >= 1 and isinstance(other, (ast.Constant, ast.Attribute)):
            return [factors[0]]
    return [value]
