"""Which functions of a file can write, cut, step or differentiate, themselves or by what they call.

A question to the syntax tree, worked out once per function; over the file it is one walk along the calls, which are told
apart by the name that is called.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator

from gradsight.interp.paths.roles import MODULE, deeds_of, key_of
from gradsight.interp.python.loop_sampling import leaves_block
from gradsight.interp.syntax import remembered
from gradsight.interp.syntax_parts import ByClass, assigned, pairs, parts_of, sorted_parts
from gradsight.model.name_hints import BY_NAME, suggests

WRITE, CUT, TRAIN, REGISTER = "write", "cut", "train", "register"
CUTTING = frozenset({
    "detach", "detach_", "item", "numpy", "tolist", "data", "tensor", "as_tensor", "from_numpy", "array", "asarray", "no_grad",
    "inference_mode", "set_grad_enabled", "argmax", "argmin", "round", "sign", "floor", "ceil", "trunc", "Parameter", "softmax",
    "log_softmax", "sigmoid", "logsigmoid", "checkpoint", "one_hot", "multinomial",
})  # fmt: skip
"""Names of what keeps data and drops the graph, or changes what a loss gets."""
NUMBER = "float"
"""A function that makes a number of a tensor where it is called; the name of a type, and a method that passes gradients on, elsewhere."""
TRAINING = frozenset({
    "backward", "zero_grad", "grad", "autograd", "requires_grad", "requires_grad_", "set_grad_enabled", "register_hook",
    "is_grad_enabled", "apply", "retain_grad", "step",
})  # fmt: skip
PUTTING = frozenset({"append", "insert", "extend", "appendleft"})
"""How an object is put into a container."""
WORDS = {
    word: tuple(
        reason
        for reason, words in ((CUT, CUTTING), (TRAIN, TRAINING), (WRITE, frozenset({"data"})))
        if word in words
    )
    for word in CUTTING | TRAINING
}
"""What an attribute of this name is a reason for."""
STEPS = frozenset({"backward", "zero_grad", "step", "manual_backward"})
"""What only a text that trains calls."""


class Summary:
    """What one function does itself, and the names that it calls."""

    __slots__ = ("calls", "hands_over", "made", "of_bases", "put", "reasons", "steps")

    def __init__(
        self,
        reasons: frozenset[str],
        calls: frozenset[str],
        steps: bool,
        hands_over: frozenset[str],
        put: frozenset[str] = frozenset(),
        made: frozenset[str] = frozenset(),
        of_bases: frozenset[str] = frozenset(),
    ) -> None:
        self.reasons = reasons
        self.calls = calls
        self.hands_over = hands_over
        """Names that it gives to others, who may call them: `fabric.launch(main)`."""
        self.steps = steps
        """Whether it differentiates or steps itself."""
        self.put = put
        """Names of what goes into a container."""
        self.made = made
        """Names of objects that are made in it."""
        self.of_bases = of_bases
        """Those of the names that it calls as methods of its bases alone: `super().forward(x)`."""


def summary_of(function: ast.AST) -> Summary:
    """What a function's own text does; functions nested in it are part of it."""
    return remembered(function, "summary", _summary_of_chain if isinstance(function, ast.If) else _summary_of)


def _summary_of_chain(condition: ast.AST) -> Summary:
    """What a condition does, put together of its parts: each is read once, however many conditions stand around it."""
    chain: list[ast.If] = []
    known: Summary | None = None
    while known is None and isinstance(condition, ast.If):
        # The rest of a chain of `elif` is part of each of its links.
        chain.append(condition)
        rest = condition.orelse
        if len(rest) != 1 or not isinstance(rest[0], ast.If):
            break
        condition = rest[0]
        known = condition.__dict__.get("summary")
    for link in reversed(chain):
        parts = [_summary_of(link.test), *map(summary_of, link.body)]
        parts += [known] if known is not None else map(summary_of, link.orelse)
        known = _joined(parts)
        link.__dict__["summary"] = known
    assert known is not None
    return known


def _joined(parts: list[Summary]) -> Summary:
    put = frozenset().union(*(part.put for part in parts))
    made = frozenset().union(*(part.made for part in parts))
    reasons = frozenset().union(*(part.reasons for part in parts))
    return Summary(
        reasons if put.isdisjoint(made) else reasons | {REGISTER},
        frozenset().union(*(part.calls for part in parts)),
        any(part.steps for part in parts),
        frozenset().union(*(part.hands_over for part in parts)),
        put,
        made,
    )


def _summary_of(function: ast.AST) -> Summary:
    reasons: set[str] = set()
    calls: set[str] = set()
    hands_over: set[str] = set()
    steps = False
    parts = sorted_parts(function)
    named = [(called_name(call), call) for call in parts.get(ast.Call, ())]
    put, made, puts_away = put_away(parts, named)
    if puts_away or not put.isdisjoint(made) or makes_layers_oddly(function, parts):
        reasons.add(REGISTER)
    if not CUTTING.isdisjoint([name.id for name in parts.get(ast.Name, ())]):
        reasons.add(CUT)
    for attribute in parts.get(ast.Attribute, ()):
        if attribute.attr in WORDS:
            reasons.update(WORDS[attribute.attr])
    for name, call in named:
        if name:
            calls.add(name)
            if name == NUMBER and isinstance(call.func, ast.Name):
                reasons.add(CUT)
            if names_writing(name):
                reasons.add(WRITE)
            steps = steps or name in STEPS
            if call.args and suggests("scaler", name):
                # A scaler that is called does both, `scaler(loss, optimizer)`.
                reasons.add(TRAIN)
                steps = True
        for argument in call.args:
            if isinstance(argument, (ast.Name, ast.Attribute)) and (key := key_of(argument)):
                hands_over.add(key.rpartition(".")[2])
        for keyword in call.keywords:
            if keyword.arg in ("inplace", "out"):
                reasons.add(WRITE)
    if not all(is_of_sequences(node) for node in parts.get(ast.AugAssign, ())):
        reasons.add(WRITE)
    for target, value in assigned(function):
        if isinstance(target, ast.Subscript):
            if not is_text(target.slice):
                reasons.add(WRITE)
        elif isinstance(target, ast.Attribute) and (
            makes_several(value) or hides_leaf(value) or replaces_parameter(target, value)
        ):
            reasons.add(REGISTER)
    # What a class inside of it calls its bases by is not what they are called by here.
    of_bases: set[str] = set()
    if "super" in calls and ast.ClassDef not in parts:
        of_bases = {name for name, call in named if is_of_bases(call)}
        of_bases.difference_update([name for name, call in named if not is_of_bases(call)])
    return Summary(
        frozenset(reasons), frozenset(calls), steps, frozenset(hands_over), put, made, frozenset(of_bases)
    )


def is_of_bases(call: ast.Call) -> bool:
    """`super().__init__(...)`, `super(Net, self).__init__(...)`."""
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    return isinstance(owner, ast.Call) and getattr(owner.func, "id", "") == "super"


def names_writing(name: str) -> bool:
    """Whether a method is called as those are that write in place: `add_`."""
    return name[-1:] == "_" and name[0] != "_" and name[0].islower()


def is_of_sequences(node: ast.AugAssign) -> bool:
    """Whether `+=` makes a tuple, a list or a text longer: `states += (hidden,)`."""
    return isinstance(node.value, (ast.Tuple, ast.List, ast.JoinedStr)) or is_text(node.value)


def is_text(node: ast.expr) -> bool:
    """Whether an expression is a text, which no tensor has an item under."""
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def put_away(
    parts: ByClass, named: list[tuple[str, ast.Call]]
) -> tuple[frozenset[str], frozenset[str], bool]:
    """Names that go into a container, names of objects that are made, and whether one goes there as it is made.

    `blocks.append(Block())`, or `block = Block()` first, and `blocks.append((block, size))`.
    """
    put = [part for name, call in named if name in PUTTING for one in call.args for part in parts_in(one)]
    made = frozenset(
        target.id
        for node in parts.get(ast.Assign, ())
        for one in node.targets
        for target, value in pairs(one, node.value)
        if isinstance(target, ast.Name) and is_made(value)
    )
    names = frozenset(argument.id for argument in put if isinstance(argument, ast.Name))
    return names, made, any(is_made(argument) or makes_several(argument) for argument in put)


def parts_in(argument: ast.expr) -> list[ast.expr]:
    """The members of a tuple or list as it is written; of anything else, that alone."""
    return argument.elts if isinstance(argument, (ast.Tuple, ast.List)) else [argument]


def makes_layers_oddly(function: ast.AST, parts: ByClass) -> bool:
    """Whether layers are made outside `__init__`, or in it before that of the base is called."""
    if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return False
    made = [
        node.lineno
        for node in parts.get(ast.Call, ())
        if isinstance(node.func, ast.Attribute)
        and node.func.attr[:1].isupper()
        and getattr(node.func.value, "id", getattr(node.func.value, "attr", "")) == "nn"
    ]
    if function.name != "__init__" or not made:
        return bool(made)
    initialised = [node.lineno for node in parts.get(ast.Attribute, ()) if node.attr == "__init__"]
    return not initialised or min(made) <= min(initialised)


def called_name(node: ast.Call) -> str:
    target = node.func
    return target.attr if isinstance(target, ast.Attribute) else getattr(target, "id", "")


def is_made(node: ast.expr) -> bool:
    """Whether an expression makes an object: `nn.Linear(…)`, `Block(…)`."""
    return isinstance(node, ast.Call) and called_name(node)[:1].isupper()


def makes_several(node: ast.expr) -> bool:
    """Whether an expression is a plain container of objects made in it."""
    if isinstance(node, ast.Call) and called_name(node) in ("list", "tuple", "dict", "set"):
        return any(makes_several(argument) for argument in node.args)
    if isinstance(node, (ast.List, ast.Tuple)):
        return any(is_made(element) for element in node.elts)
    if isinstance(node, ast.ListComp):
        return is_made(node.elt)
    if isinstance(node, ast.Dict):
        return any(is_made(value) for value in node.values)
    return isinstance(node, ast.DictComp) and is_made(node.value)


def hides_leaf(node: ast.expr) -> bool:
    """Whether a leaf to be learned is made in an expression that is no parameter: `torch.ones(3, requires_grad=True)`,
    `nn.Parameter(t).to(dtype)`.
    """
    return not is_made(node) and any(
        called_name(call) == "Parameter" or any(word.arg == "requires_grad" for word in call.keywords)
        for call in sorted_parts(node).get(ast.Call, ())
    )


def replaces_parameter(target: ast.Attribute, value: ast.expr) -> bool:
    """Whether what a layer has, or what is computed from the attribute itself, may be a parameter that a tensor replaces."""
    if not isinstance(value, (ast.BinOp, ast.Call)):
        return False
    if target.attr in ("weight", "bias") and isinstance(target.value, ast.Attribute):
        return not (isinstance(value, ast.Call) and called_name(value) == "Parameter")
    return isinstance(value, ast.BinOp) and key_of(target) in (key_of(value.left), key_of(value.right))


class Bases:
    """Where the methods of a class's bases are, as far as these are classes of the same file, or imported ones."""

    def __init__(self, classes: Iterable[ast.ClassDef], imported: Collection[str]) -> None:
        self.imported = imported
        self.named: dict[str, list[ast.ClassDef]] = {}
        self.owners: dict[ast.AST, ast.ClassDef] = {}
        for cls in classes:
            self.named.setdefault(cls.name, []).append(cls)
            self.owners.update(dict.fromkeys(members_of(cls), cls))

    def methods(self, function: ast.AST, name: str) -> list[ast.AST] | None:
        """The methods of that name in this file that a method may mean by `super()`; None where that is not known.

        What an object of a further class has beside these is met from the methods of that class, which lead there themselves.
        """
        owner = self.owners.get(function)
        if owner is None:
            return None
        found: list[ast.AST] = []
        seen, todo = {owner}, [owner]
        while todo:
            for base in todo.pop().bases:
                called = getattr(base, "id", getattr(base, "attr", ""))
                if called not in self.named and not self.is_imported(base):
                    return None
                for cls in self.named.get(called, ()):
                    if cls not in seen:
                        seen.add(cls)
                        todo.append(cls)
                        found += [one for one in members_of(cls) if getattr(one, "name", "") == name]
        return found

    def is_imported(self, base: ast.expr) -> bool:
        """`Base`, `nn.Module`, `package.nn.Module`."""
        while isinstance(base, ast.Attribute):
            base = base.value
        return isinstance(base, ast.Name) and base.id in self.imported


def members_of(cls: ast.ClassDef) -> list[ast.stmt]:
    """The statements of a class, those in its conditions too."""
    return with_blocks(cls.body)


def with_blocks(body: list[ast.stmt]) -> list[ast.stmt]:
    """Statements and those in their blocks, but for the blocks of functions and classes."""
    found = list(body)
    for one in found:
        if not isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            for block in ("body", "orelse", "finalbody", "handlers"):
                found += getattr(one, block, ())
    return found


class CallGraph:
    """The functions of one file by name, and what each of them leads to."""

    def __init__(
        self,
        functions: Iterable[ast.AST],
        classes: Iterable[ast.ClassDef] = (),
        imported: Collection[str] = (),
    ) -> None:
        self.by_name: dict[str, list[ast.AST]] = {}
        for function in functions:
            self.by_name.setdefault(getattr(function, "name", ""), []).append(function)
        self.bases = Bases(classes, imported)
        self._reasons = self._propagated()

    def names_called(self) -> set[str]:
        """The names that any function calls, or hands to others."""
        nodes = [node for named in self.by_name.values() for node in named]
        return {name for node in nodes for name in summary_of(node).calls | summary_of(node).hands_over}

    def reasons_for(self, function: ast.AST) -> frozenset[str]:
        """What a function does itself or by what it calls, as far as names tell."""
        known = self._reasons.get(function)
        return known if known is not None else summary_of(function).reasons

    def callers_do(self, method: str, name: str) -> bool:
        """Whether a function that calls this name calls that method, too."""
        functions = [function for named in self.by_name.values() for function in named]
        return any(
            {name, method} <= summary_of(function).calls and calls_beside(function, name, method)
            for function in functions
        )

    def led_to(self, start: Iterable[ast.AST]) -> set[ast.AST]:
        """The functions, all that they may call, and what they hand to others who may."""
        seen = set(start)
        todo = list(seen)
        while todo:
            for one in self.callees_of(todo.pop()):
                if one not in seen:
                    seen.add(one)
                    todo.append(one)
        return seen

    def callees_of(self, function: ast.AST) -> Iterator[ast.AST]:
        """The functions that go by a name which a function calls, or hands to others."""
        summary = summary_of(function)
        for name in summary.calls | summary.hands_over:
            named = self.by_name.get(name, ())
            if named and name in summary.of_bases and name not in summary.hands_over:
                known = self.bases.methods(function, name)
                yield from named if known is None else known
            else:
                yield from named

    def _propagated(self) -> dict[ast.AST, frozenset[str]]:
        """Reasons handed from each function to those that call its name, until nothing is new."""
        functions = [function for named in self.by_name.values() for function in named]
        callers: dict[ast.AST, list[ast.AST]] = {}
        for function in functions:
            for callee in self.callees_of(function):
                callers.setdefault(callee, []).append(function)
        reasons = {function: summary_of(function).reasons for function in functions}
        todo = list(functions)
        while todo:
            function = todo.pop()
            for caller in callers.get(function, ()):
                if not reasons[function] <= reasons[caller]:
                    reasons[caller] |= reasons[function]
                    todo.append(caller)
        return reasons

    def reached_from(self, start: Iterable[ast.AST]) -> list[ast.AST]:
        """The functions and all that they may call, each once."""
        seen: dict[ast.AST, None] = dict.fromkeys(start)
        todo = list(seen)
        while todo:
            for name in summary_of(todo.pop()).calls:
                for callee in self.by_name.get(name, ()):
                    if callee not in seen:
                        seen[callee] = None
                        todo.append(callee)
        return list(seen)


def calls_beside(function: ast.AST, name: str, method: str) -> bool:
    """Whether the name is called on something else than what has that method: `opt.step()` after `opt.zero_grad()` is its own."""
    calls = [node.func for node in parts_of(function, ast.Call)]
    owners = {
        ast.unparse(call.value) for call in calls if isinstance(call, ast.Attribute) and call.attr == method
    }
    return any(
        call.id == name
        if isinstance(call, ast.Name)
        else isinstance(call, ast.Attribute) and call.attr == name and ast.unparse(call.value) not in owners
        for call in calls
    )


def leads_somewhere(node: ast.AST, outcome: bool) -> bool:
    """Whether the arm of a condition that is taken on this outcome writes, cuts or trains, or is all that follows a return."""
    if isinstance(node, ast.If):
        arm = node.body if outcome else node.orelse
        if not arm:
            return leaves_block(node.body)
        return any(summary_of(statement).reasons for statement in arm)
    if isinstance(node, ast.IfExp):
        return bool(summary_of(node.body if outcome else node.orelse).reasons)
    return False


def applies_a_module(function: ast.AST) -> bool:
    """Whether a function applies the layers of a module that it is given: `attn.to_q(hidden)`."""
    arguments = getattr(function, "args", None)
    if arguments is None:
        return False
    called = deeds_of(function).called
    names = [argument.arg for argument in [*arguments.posonlyargs, *arguments.args] if argument.arg != "self"]
    return any(
        BY_NAME[MODULE].search(name) or BY_NAME["layer"].search(name)
        for name in names
        if any(key.startswith(f"{name}.") for key in called) or name in called
    )
