"""What a parameter is for, guessed from its annotation, its name and what the function does with it.

A *guess* is a value that can be written down as Python: a tensor of some shape, a number, a small module, a record with
fields.  Torch says whether it fits; see `feedback`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

Kind = Literal[
    "tensor",
    "whole",
    "number",
    "fraction",
    "flag",
    "text",
    "module",
    "optimizer",
    "function",
    "record",
    "pairs",
]
SMALL = 4
BATCH = 2
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_MODULE_WORDS = frozenset(
    "model net network layer module encoder decoder critic actor generator discriminator backbone".split()
)
_MODULE_PARTS = frozenset(
    "parameters weight bias in_features out_features state_dict train eval named_parameters zero_grad".split()
)
_WHOLE_WORDS = frozenset("tokens token ids idx index indices labels label target_ids edges".split())
_FRACTIONS = {"lr": "0.1", "dropout": "0.1", "rate": "0.5", "eps": "1e-5", "alpha": "0.5", "beta": "0.5", "gamma": "0.9", "scale": "0.5", "momentum": "0.9", "bound": "0.5"}  # fmt: skip
_COUNTS = frozenset(
    "n num size dim width height hidden features channels classes layers levels heads steps epochs seed k depth rank bits vocab".split()
)
_BY_ANNOTATION: dict[str, Kind] = {
    "int": "number", "float": "fraction", "bool": "flag", "str": "text", "Module": "module", "Linear": "module",
    "LongTensor": "whole", "Tensor": "tensor", "FloatTensor": "tensor", "Optimizer": "optimizer", "Callable": "function",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Guess:
    """A value for one parameter.  `literal` is its text when it is neither a tensor nor a record."""

    kind: Kind
    shape: tuple[int, ...] = ()
    literal: str = ""
    fields: tuple[tuple[str, Guess], ...] = ()
    needs_grad: bool = False

    def written(self) -> str:
        """The value as Python."""
        extents = ", ".join(map(str, self.shape))
        if self.kind == "tensor":
            return (
                f"torch.randn({extents}, requires_grad=True) * 1"
                if self.needs_grad
                else f"torch.randn({extents})"
            )
        if self.kind == "whole":
            return f"torch.zeros({extents}, dtype=torch.long)"
        if self.kind == "record":
            fields = ", ".join(f"{name}={value.written()}" for name, value in self.fields)
            return f"types.SimpleNamespace({fields})"
        if self.kind == "pairs":
            return f"[({', '.join(value.written() for _, value in self.fields)})]"
        return self.literal

    def with_number(self, number: int) -> Guess:
        """The same with another number; other kinds stay."""
        return replace(self, literal=str(number)) if self.kind == "number" else self


def guess(
    parameter: ast.arg, function: ast.AST, is_constructor: bool = False, needs_grad: bool = False
) -> Guess:
    """The most plausible value for a parameter of a function."""
    use = Use.of(parameter.arg, function)
    kind = _kind(parameter, use, is_constructor)
    if kind == "record":
        fields = tuple((name, field_guess(name, is_constructor, needs_grad)) for name in use.fields)
        return Guess("record", fields=fields)
    if kind == "pairs":
        fields = tuple((name, Guess("tensor", (BATCH, SMALL))) for name in use.pair)
        return Guess("pairs", fields=fields)
    if kind == "tensor":
        return Guess("tensor", _shape(use), needs_grad=needs_grad)
    if kind == "whole":
        return Guess(
            "whole", _shape(use) if use.rank or use.parts else (BATCH, 3) if use.is_looked_up else (BATCH,)
        )
    return Guess(kind, literal=_literal(kind, parameter.arg))


@dataclass(slots=True)
class Use:
    """What a function does with one of its names."""

    rank: int = 0
    parts: int = 0
    fields: tuple[str, ...] = ()
    pair: tuple[str, ...] = ()
    is_called: bool = False
    is_index: bool = False
    is_looked_up: bool = False
    is_counted: bool = False
    is_copied: bool = False

    @classmethod
    def of(cls, name: str, function: ast.AST) -> Use:
        """Read every mention of a name."""
        use = cls()
        fields: dict[str, None] = {}
        for node in ast.walk(function):
            use._see(node, name, fields)
        use.fields = tuple(fields)
        return use

    def _see(self, node: ast.AST, name: str, fields: dict[str, None]) -> None:
        if isinstance(node, ast.Attribute) and _is(node.value, name):
            fields[node.attr] = None
        elif isinstance(node, ast.Subscript):
            self.is_index |= name in {each.id for each in ast.walk(node.slice) if isinstance(each, ast.Name)}
            if _is(node.value, name):
                parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
                self.rank = max(self.rank, sum(not _is_none(part) for part in parts))
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple):
            count = len(node.targets[0].elts)
            if _is(node.value, name):
                self.parts = count
            elif _is_shape_of(node.value, name):
                self.rank = max(self.rank, count)
        elif isinstance(node, (ast.For, ast.comprehension)) and _is(node.iter, name):
            if isinstance(node.target, ast.Tuple):
                self.pair = tuple(each.id for each in node.target.elts if isinstance(each, ast.Name))
        elif isinstance(node, ast.Call):
            self._see_call(node, name)

    def _see_call(self, call: ast.Call, name: str) -> None:
        self.is_called |= _is(call.func, name)
        called = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        owner = call.func.value if isinstance(call.func, ast.Attribute) else None
        given = [*call.args, *(each.value for each in call.keywords)]
        is_given = any(_is(each, name) for each in given)
        self.is_counted |= called == "range" and is_given
        self.is_copied |= called in ("tensor", "as_tensor") and is_given
        self.is_looked_up |= is_given and any(word in called.lower() for word in ("embed", "lookup"))
        if called in ("gather", "scatter", "index_select", "index_add_", "one_hot") and is_given:
            self.is_index = True
        if called in ("cross_entropy", "nll_loss") and len(call.args) > 1 and _is(call.args[1], name):
            self.is_index = True
        if owner is not None and _is(owner, name):
            if called == "permute":
                self.rank = max(self.rank, len(call.args))
            self.rank = max(self.rank, _deepest(call, called) + 1)
        elif is_given:
            self.rank = max(self.rank, _deepest(call, called) + 1)


def numbers_in(function: ast.AST, known: dict[str, int]) -> Iterator[tuple[str, list[int]]]:
    """The calls of a constructor with the whole numbers they are given, as far as these follow from known ones."""
    env = dict(known)
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            value = number(node.value, env)
            if value is not None:
                env[ast.unparse(node.targets[0])] = value
    for node in ast.walk(function):
        if isinstance(node, ast.Call):
            given = [number(each, env) for each in node.args]
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            yield name, [each for each in given if each is not None]


def number(node: ast.expr, known: dict[str, int]) -> int | None:
    """The value of a simple sum of known numbers; None when it does not follow."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, int) and not isinstance(node.value, bool) else None
    if isinstance(node, (ast.Name, ast.Attribute)):
        return known.get(ast.unparse(node))
    if isinstance(node, ast.BinOp):
        left, right = number(node.left, known), number(node.right, known)
        if left is None or right is None:
            return None
        if isinstance(node.op, ast.Add):
            return left + right
        if isinstance(node.op, ast.Sub):
            return left - right
        if isinstance(node.op, ast.Mult):
            return left * right
        if isinstance(node.op, ast.FloorDiv) and right:
            return left // right
    return None


def _kind(parameter: ast.arg, use: Use, is_constructor: bool) -> Kind:
    annotation = ast.unparse(parameter.annotation) if parameter.annotation is not None else ""
    named = _BY_ANNOTATION.get(annotation.rsplit(".", 1)[-1].split("[")[0])
    if named is not None and not (named == "tensor" and (use.is_index or use.is_looked_up)):
        return named
    words = set(parameter.arg.lower().split("_"))
    if use.pair:
        return "pairs"
    if set(use.fields) & _MODULE_PARTS or words & _MODULE_WORDS:
        return "module"
    if words & {"device"}:
        return "text"
    if words & set(_FRACTIONS):
        return "fraction"
    if words & _COUNTS or use.is_counted:
        return "number"
    if use.is_called:
        return "module"
    if words & _WHOLE_WORDS or use.is_looked_up or use.is_index:
        return "whole"
    if use.fields and not any(is_of_tensors(name) for name in use.fields):
        return "record"
    if is_constructor:
        return "fraction" if use.is_copied else "tensor" if use.fields else "number"
    return "tensor"


def is_of_tensors(name: str) -> bool:
    """Whether a field could be one of a tensor's own: torch is not at hand here, so the common ones are listed."""
    return name in _OF_TENSORS or name.endswith("_")


def field_guess(name: str, is_constructor: bool, needs_grad: bool) -> Guess:
    """A value for a field of a record, from its name alone."""
    words = set(name.lower().split("_"))
    if words & set(_FRACTIONS):
        return Guess("fraction", literal=_literal("fraction", name))
    if words & (_COUNTS | {"batch", "latent"}) or is_constructor:
        return Guess("number", literal=str(SMALL))
    if words & (_WHOLE_WORDS | {"act", "action", "actions"}):
        return Guess("whole", (BATCH,))
    return Guess("tensor", (BATCH, SMALL), needs_grad=needs_grad)


def _literal(kind: Kind, name: str) -> str:
    if kind == "fraction":
        return next((value for word, value in _FRACTIONS.items() if word in name.lower().split("_")), "0.5")
    return {
        "number": str(SMALL),
        "flag": "True",
        "text": "'cpu'" if "device" in name else "'x'",
        "module": f"torch.nn.Linear({SMALL}, {SMALL})",
        "optimizer": "torch.optim.SGD([torch.nn.Parameter(torch.randn(4))], lr=0.1)",
        "function": "(lambda value: value)",
    }[kind]


def _shape(use: Use) -> tuple[int, ...]:
    if use.parts:
        return (use.parts, SMALL)
    middle = {0: (), 1: (), 2: (), 3: (3,), 4: (4, 4), 5: (3, 4, 4)}.get(use.rank, ())
    return (BATCH, *middle, SMALL)


def _deepest(call: ast.Call, called: str) -> int:
    """The last dimension that a call names with a plain number; -1 when it names none."""
    named = [each.value for each in call.keywords if each.arg in ("dim", "dim0", "dim1", "axis")]
    if called in ("transpose", "sum", "mean", "size", "squeeze", "softmax", "select", "chunk", "unbind"):
        named += [each for each in call.args if called != "chunk"]
    values = [each.value for each in named if isinstance(each, ast.Constant) and isinstance(each.value, int)]
    return max((value for value in values if not isinstance(value, bool)), default=-1)


def _is(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_shape_of(node: ast.AST, name: str) -> bool:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "size":
        return not node.args and _is(node.func.value, name)
    return isinstance(node, ast.Attribute) and node.attr == "shape" and _is(node.value, name)


def parameters_of(
    function: ast.FunctionDef | ast.AsyncFunctionDef, skip: int
) -> Iterator[tuple[ast.arg, bool]]:
    """The parameters without a default, after those that are not ours to give; and whether they are given by name."""
    positional = [*function.args.posonlyargs, *function.args.args]
    for each in positional[: len(positional) - len(function.args.defaults)][skip:]:
        yield each, False
    for each, default in zip(function.args.kwonlyargs, function.args.kw_defaults):
        if default is None:
            yield each, True


def defaults_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> dict[str, int]:
    """The parameters whose default is a whole number."""
    positional = [*function.args.posonlyargs, *function.args.args]
    pairs: Sequence[tuple[ast.arg, ast.expr]] = list(
        zip(positional[len(positional) - len(function.args.defaults) :], function.args.defaults)
    )
    return {each.arg: value for each, default in pairs if (value := number(default, {})) is not None}


_OF_TENSORS = frozenset(
    """shape size dim ndim dtype device grad data T mT view reshape transpose permute flatten squeeze unsqueeze expand
    sum mean std var max min argmax argmin norm abs exp log log_softmax softmax sigmoid tanh relu sqrt pow square clamp
    detach clone requires_grad backward item tolist numpy numel to float double half long int bool cpu cuda contiguous
    split chunk unbind repeat matmul mm bmm t index_select gather scatter masked_fill where round floor sign topk sort
    cumsum prod new_zeros new_ones type type_as is_leaf retain_grad narrow select roll flip unfold grad_fn""".split()
)
