"""Expressions: from a syntax node to a value."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Hashable
from functools import cache
from typing import Any

from gradsight.interp.path_state import PathState
from gradsight.interp.python.comparisons import Comparisons
from gradsight.interp.python.loops import MANY
from gradsight.interp.python.set_algebra import combined, distinct
from gradsight.interp.python.settings_arithmetic import is_of_settings, scales_number, setting_like
from gradsight.interp.syntax import hands_on_what_it_draws, reads_what_it_draws
from gradsight.interp.syntax_parts import syntax_parts
from gradsight.model.passed_cuts import cuts_of
from gradsight.model.sites import Frame
from gradsight.model.tensors import Cut, Tensor
from gradsight.model.trace import ContainerMade, NameSeen, Read
from gradsight.model.unlisted import filled_in, is_whole, owners_of_rest
from gradsight.model.unseen_holders import may_be_held, may_require_grad
from gradsight.model.values import (
    MISSING,
    AbsentGrad,
    Array,
    ClassValue,
    Constant,
    External,
    Function,
    Instance,
    Layer,
    Mapping,
    Method,
    Negated,
    Number,
    Seq,
    Slice,
    Stream,
    Unknown,
    Value,
    Version,
    is_constant,
)

ADD = ast.Add
BINARY: dict[type, tuple[str, Callable[[Any, Any], Constant]]] = {
    ast.Add: ("add", operator.add),
    ast.Sub: ("sub", operator.sub),
    ast.Mult: ("mul", operator.mul),
    ast.Div: ("truediv", operator.truediv),
    ast.FloorDiv: ("floordiv", operator.floordiv),
    ast.Mod: ("mod", operator.mod),
    ast.Pow: ("pow", operator.pow),
    ast.MatMult: ("matmul", operator.matmul),
    ast.BitAnd: ("and", operator.and_),
    ast.BitOr: ("or", operator.or_),
    ast.BitXor: ("xor", operator.xor),
    ast.LShift: ("lshift", operator.lshift),
    ast.RShift: ("rshift", operator.rshift),
}
UNARY: dict[type, tuple[str, Callable[[Any], Constant]]] = {
    ast.USub: ("neg", operator.neg),
    ast.UAdd: ("pos", operator.pos),
    ast.Invert: ("invert", operator.invert),
}
LONGEST_CONSTANT = 4096
MOST_ITEMS = 64
DEEPEST_CLAUSE = 5
"""In so many clauses of comprehensions in one function every further one is run for its first item."""
MOST_JOINED = 4096
LONGEST_TEXT = 1 << 16
"""What lists and texts that are added up may grow to: `l = l + l` doubles."""


COUNTING = frozenset({"add", "sub", "mod", "floordiv", "and"})
"""Operators by which programs ask for every so many rounds."""


class Expressions(Comparisons):
    """Evaluation of expressions."""

    def __init__(self, path: PathState) -> None:
        super().__init__(path)
        self.expressions = self.expression_table(path.is_watched)

    def evaluate(self, node: ast.AST) -> Value:
        """The value of an expression."""
        path = self.path
        path.budget -= 1
        if path.budget < 0:
            path.spend(0)
        return self.expressions[node.__class__](self, node)

    @classmethod
    @cache
    def expression_table(cls, is_watched: bool) -> dict[type, Callable[[Any, Any], Value]]:
        """What evaluates which node: the same on all paths, but for those on which names are looked at."""
        table: dict[type, Any] = {
            ast.Constant: cls.constant,
            ast.Name: cls.show_name if is_watched else cls.load_name,
            ast.Attribute: cls.show_attribute if is_watched else cls.attribute,
            ast.Call: cls.evaluate_call,
            ast.BinOp: cls.binary,
            ast.UnaryOp: cls.unary,
            ast.BoolOp: cls.boolean,
            ast.Compare: cls.compare,
            ast.Subscript: cls.subscript,
            ast.Tuple: cls.display,
            ast.List: cls.display,
            ast.Set: cls.display,
            ast.Dict: cls.mapping,
            ast.IfExp: cls.conditional,
            ast.Lambda: cls.make_function,
            ast.ListComp: cls.comprehension,
            ast.SetComp: cls.comprehension,
            ast.GeneratorExp: cls.comprehension,
            ast.DictComp: cls.dict_comprehension,
            ast.JoinedStr: cls.formatted,
            ast.FormattedValue: cls.formatted_value,
            ast.NamedExpr: cls.named,
            ast.Starred: cls.starred,
            ast.Slice: cls.slice_of,
            ast.Await: cls.awaited,
            ast.Yield: cls.inner_yield,
            ast.YieldFrom: cls.inner_yield,
        }
        for name in ("TemplateStr", "Interpolation"):
            kind = getattr(ast, name, None)
            if kind is not None:
                table[kind] = cls.template
        return table

    def constant(self, node: ast.Constant) -> Value:
        return node.value

    def template(self, node: ast.AST) -> Value:
        return Unknown("template string", "text")

    def named(self, node: ast.NamedExpr) -> Value:
        value = self.evaluate(node.value)
        self.assign(node.target, value)
        return value

    def starred(self, node: ast.Starred) -> Value:
        return self.evaluate(node.value)

    def awaited(self, node: ast.Await) -> Value:
        return self.evaluate(node.value)

    def inner_yield(self, node: ast.Yield | ast.YieldFrom) -> Value:
        if node in self.sent:
            return self.sent.pop(node)
        if node.value is not None:
            self.evaluate(node.value)
        return self.path.gap("value sent into a generator", node)

    def formatted(self, node: ast.JoinedStr) -> Value:
        parts = [self.evaluate(part) for part in node.values]
        if all(isinstance(part, (str, int)) for part in parts):
            return "".join(str(part) for part in parts)
        if all(isinstance(part, (str, int, Version)) for part in parts):
            return Seq("tuple", parts)  # As good as its parts for telling one text from another.
        return Unknown("formatted text", "text")

    def formatted_value(self, node: ast.FormattedValue) -> Value:
        value = self.evaluate(node.value)
        self.path.tell(Read(value, node))
        if isinstance(value, (str, int, Version)) and node.format_spec is None:
            return value
        if isinstance(value, Instance):
            own, _ = value.cls.find("__format__")
            if isinstance(own, Function):
                self.call(own, [value, Unknown("a format", "text")], {}, node)
        return Unknown("formatted text", "text")

    # -- names and attributes ----------------------------------------------------------------------------------------

    def attribute(self, node: ast.Attribute) -> Value:
        return self.objects.get_attribute(self.owner_of(node), node.attr, node)

    def show_name(self, node: ast.Name) -> Value:
        value = self.load_name(node)
        self.path.tell(NameSeen(node, value))
        return value

    def show_attribute(self, node: ast.Attribute) -> Value:
        value = self.attribute(node)
        self.path.tell(NameSeen(node, value))
        return value

    def owner_of(self, node: ast.Attribute) -> Value:
        """What an attribute is taken from.  To ask a function for its description is not to ask what it does."""
        inner = node.value
        if node.attr != "__doc__" or type(inner) is not ast.Name or inner.id in self.path.asked:
            return self.evaluate(inner)
        value = self.evaluate(inner)
        if isinstance(value, Function):
            self.path.asked.discard(inner.id)
        return value

    # -- operators ---------------------------------------------------------------------------------------------------

    def binary(self, node: ast.BinOp) -> Value:
        # A sum of many terms leans to the left: it is as deep as it is long.
        spine = [node]
        while isinstance(inner := spine[-1].left, ast.BinOp):
            self.path.spend()
            spine.append(inner)
        value = self.evaluate(spine[-1].left)
        for inner in reversed(spine):
            value = self.binary_step(inner, value)
        return value

    def binary_step(self, node: ast.BinOp, left: Value) -> Value:
        right = self.evaluate(node.right)
        kind = type(node.op)
        if kind is ast.Mod and self.path.frame.loops:
            self.loops.note_remainder(node, left, right)
        return self.binary_values(kind, left, right, node)

    def binary_values(self, kind: type, left: Value, right: Value, node: ast.AST) -> Value:
        name, function = BINARY[kind]
        if isinstance(left, Tensor) or isinstance(right, Tensor):
            return self.tensor_values(name, left, right, node)
        if is_constant(left) and is_constant(right):
            try:
                if name in ("add", "mul", "pow", "lshift") and _too_big(name, left, right):
                    return Unknown("a large constant")
                return function(left, right)
            except Exception:
                return Unknown("constant arithmetic that fails")
        absent = left if isinstance(left, AbsentGrad) else right
        if isinstance(absent, AbsentGrad):
            self.autograd.absent_grad_used(absent, node)
            return Unknown("arithmetic with None")
        if isinstance(left, str) and isinstance(right, Seq) and name == "mod":
            return filled_in(left, right)
        if isinstance(left, Seq) or isinstance(right, Seq):
            return self.sequence_operator(name, left, right)
        if isinstance(left, Mapping) and isinstance(right, Mapping):
            merged = Mapping({**left.items, **right.items}, left.exact and right.exact)
            merged.keys = {**left.keys, **right.keys}
            return merged
        if isinstance(left, (Instance, ClassValue)) or isinstance(right, Instance):
            return self.instance_operator(name, left, right, node)
        return self.unknown_values(name, left, right, node)

    def tensor_values(self, name: str, left: Value, right: Value, node: ast.AST) -> Value:
        """Arithmetic with a tensor on one side, or on both."""
        absent = left if isinstance(left, AbsentGrad) else right
        if isinstance(absent, AbsentGrad):
            self.autograd.absent_grad_used(absent, node)
            return Unknown("arithmetic with None")
        if isinstance(left, Tensor):
            return self.autograd.tensor_operator(f"__{name}__", left, right, node)
        own = isinstance(left, Instance) and isinstance(left.cls.find(f"__{name}__")[0], Function)
        if isinstance(right, Tensor) and not own:
            return self.autograd.tensor_operator(f"__r{name}__", right, left, node)
        return self.instance_operator(name, left, right, node)

    def unknown_values(self, name: str, left: Value, right: Value, node: ast.AST) -> Value:
        """Arithmetic on numbers, arrays and values that are not known."""
        cuts = cuts_of(left) | cuts_of(right)
        if is_of_settings(left) and is_of_settings(right) and not cuts:
            return setting_like(name, left, right)
        if isinstance(left, Array) or isinstance(right, Array):
            return Array(None, cuts)
        if isinstance(left, Unknown) and isinstance(right, Unknown) and not left.hint and not right.hint:
            result = self.autograd.unknown_arithmetic(name, left, right, node)
            if result is not None:
                return result
        if name == "add":
            total = sum_of_writes(left, right)
            if total is not None:
                return total
        if _numeric(left) and _numeric(right):
            return self.unknown_sum(name, left, right, cuts)
        if name in ("mul", "truediv") and (scales_number(left, right) or scales_number(right, left)):
            return Number(cuts)
        if isinstance(left, Unknown) or isinstance(right, Unknown):
            result = self.autograd.unknown_arithmetic(name, left, right, node)
            if result is not None:
                return result
            if name in COUNTING:
                # The same question has the same answer wherever it is asked.
                if isinstance(left, Unknown) and isinstance(right, int):
                    return left.derived((name, right), "arithmetic on unknown values")
                if isinstance(right, Unknown) and isinstance(left, int):
                    return right.derived((name, left, "right"), "arithmetic on unknown values")
                if isinstance(left, Number) and is_of_settings(right):
                    return self.same_number(left, (name, right), cuts)
        unknown = Unknown("arithmetic on unknown values")
        unknown.cuts = cuts
        for value in (left, right):
            if isinstance(value, Unknown) and not value.hint:
                unknown.given = (*unknown.given, *(one for one in value.given if one not in unknown.given))
        return unknown

    def unknown_sum(self, name: str, left: Value, right: Value, cuts: frozenset[Cut]) -> Number:
        """Arithmetic on an unknown number; with a constant it is the same number whenever it is worked out."""
        value, constant = (left, right) if isinstance(left, (Unknown, Number)) else (right, left)
        if not is_constant(constant) or not isinstance(value, (Unknown, Number)):
            if isinstance(left, (Unknown, Number)) and isinstance(right, (Unknown, Number)):
                return self.same_number(left, (name, right), cuts)
            return Number(cuts)
        result = self.same_number(value, (name, constant, value is left), cuts)
        if type(constant) is int and (name == "add" or (name == "sub" and value is left)):
            base: Unknown | Number = value
            offset = constant if name == "add" else -constant
            if isinstance(value, Number) and value.shifted is not None:
                base, offset = value.shifted[0], offset + value.shifted[1]
            result.shifted = (base, offset)
        return result

    def same_number(self, value: Unknown | Number, key: Hashable, cuts: frozenset[Cut]) -> Number:
        """A number that follows from an unknown value: the same one for the same `key`."""
        answers = value.answers
        if answers is None:
            answers = value.answers = {}
        known: Number | None = answers.get(key)
        if known is None:
            known = answers[key] = Number(cuts)
        return known

    def sequence_operator(self, name: str, left: Value, right: Value) -> Value:
        if name == "add" and isinstance(left, Seq) and isinstance(right, Seq):
            items = [*left.items, *right.items[: max(0, MOST_JOINED - len(left.items))]]
            joined = Seq(left.kind, items, len(items) == len(left.items) + len(right.items))
            joined.exact = joined.exact and is_whole(left) and is_whole(right)
            joined.owners = owners_of_rest([left, right])
            return joined
        if name == "mul":
            seq, count = (left, right) if isinstance(left, Seq) else (right, left)
            if isinstance(seq, Seq) and isinstance(count, int) and len(seq.items) * count <= MOST_ITEMS:
                repeated = Seq(seq.kind, seq.items * count, seq.exact)
                if count > 1:
                    for item in seq.items:
                        if isinstance(item, Tensor):
                            for _ in range(count):
                                self.objects.stored(item, repeated, self.path.node)
                self.path.tell(ContainerMade(repeated, "repeat", self.path.node))
                return repeated
            if isinstance(seq, Seq):
                return Seq(seq.kind, list(seq.items), False)
        if name in ("sub", "or", "and", "xor") and isinstance(left, Seq):
            return combined(name, left, right)
        if isinstance(left, (Array, Unknown)) or isinstance(right, (Array, Unknown)):
            unknown = Unknown("arithmetic on a sequence")
            unknown.cuts = cuts_of(left) | cuts_of(right)
            return unknown
        return Unknown("arithmetic on a sequence")

    def unary(self, node: ast.UnaryOp) -> Value:
        value = self.evaluate(node.operand)
        kind = type(node.op)
        if kind is ast.Not:
            known = self.path.truth(value)
            if known is not None and self.path.guarded_by(value) is None:
                return not known
            if isinstance(value, Negated):
                return value.value
            return Negated(value)
        name, function = UNARY[kind]
        if isinstance(value, Tensor):
            return self.autograd.tensor_operator(f"__{name}__", value, MISSING, node)
        if is_constant(value):
            try:
                return function(value)
            except Exception:
                return Unknown("constant arithmetic that fails")
        if isinstance(value, Number):
            return Number(value.cuts)
        if isinstance(value, Array):
            return Array(None, value.cuts)
        if isinstance(value, Unknown):
            signed = self.autograd.unknown_sign(name, value, node)
            plain = value.derived((name,), "arithmetic on an unknown value", value.hint)
            return signed if signed is not None else plain
        unknown = Unknown("arithmetic on an unknown value")
        unknown.cuts = cuts_of(value)
        return unknown

    def boolean(self, node: ast.BoolOp) -> Value:
        is_and = isinstance(node.op, ast.And)
        value: Value = None
        pending: Value = MISSING
        for position, part in enumerate(node.values):
            value = self.evaluate(part)
            known = self.path.truth(value)
            if known is None and position < len(node.values) - 1:
                known = self.path.decide(value, part, is_and)
                pending = value
            if known is not None and known is not is_and:
                return value
        if pending is not MISSING and is_constant(value) and bool(value) is is_and:
            return pending
        return value

    def conditional(self, node: ast.IfExp) -> Value:
        condition = self.evaluate(node.test)
        is_known = self.path.truth(condition) is not None and self.path.guarded_by(condition) is None
        self.show_names(node)
        choice = self.path.decide(condition, node)
        if is_known:
            self.loops.arm_chosen(node, choice)
        else:
            self.path.arms.add((node, choice))
        return self.evaluate(node.body if choice else node.orelse)

    # -- items -------------------------------------------------------------------------------------------------------

    def subscript(self, node: ast.Subscript) -> Value:
        owner = self.evaluate(node.value)
        if isinstance(owner, (External, ClassValue)) and owner != External("sys.modules"):
            if isinstance(owner, External) or owner.find("__class_getitem__")[0] is MISSING:
                if may_require_grad(owner) and isinstance(node.slice, ast.Name):
                    may_be_held([self.path.frame.namespace.get(node.slice.id)])
                return owner
        return self.objects.get_item(owner, self.evaluate_index(node.slice), node)

    def evaluate_index(self, node: ast.expr) -> Value:
        return self.evaluate(node)

    def slice_of(self, node: ast.Slice) -> Value:
        return Slice(
            self.evaluate(node.lower) if node.lower is not None else None,
            self.evaluate(node.upper) if node.upper is not None else None,
            self.evaluate(node.step) if node.step is not None else None,
        )

    # -- displays and comprehensions ---------------------------------------------------------------------------------

    def display(self, node: ast.List | ast.Tuple | ast.Set) -> Value:
        kind = "tuple" if isinstance(node, ast.Tuple) else "list" if isinstance(node, ast.List) else "set"
        items: list[Any] = []
        exact = True
        for element in node.elts:
            if isinstance(element, ast.Starred):
                iterator, length = self.objects.iterate(self.evaluate(element.value))
                exact = exact and length is not None and length <= MOST_ITEMS
                for item in iterator:
                    items.append(item)
                    if len(items) > MOST_ITEMS:
                        exact = False
                        break
            else:
                items.append(self.evaluate(element))
        result = Seq(kind, distinct(kind, items), exact, self.path.site(node))
        self.path.tell(ContainerMade(result, "display", node))
        return result

    def mapping(self, node: ast.Dict) -> Value:
        result = Mapping()
        result.site = self.path.site(node)
        for key_node, value_node in zip(node.keys, node.values):
            value = self.evaluate(value_node)
            if key_node is None:
                if isinstance(value, Mapping):
                    result.items.update(value.items)
                    result.keys.update(value.keys)
                    result.rest.extend(value.rest)
                    result.exact = result.exact and value.exact
                else:
                    result.exact = False
                continue
            self.objects.store_key(result, self.evaluate(key_node), value)
        self.path.tell(ContainerMade(result, "dict", node))
        return result

    def comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> Value:
        items: list[Any] = []
        epochs: list[int] = []

        def add() -> None:
            item = self.evaluate(node.elt)
            items.append(item)
            epochs.append(item.storage.epoch if isinstance(item, Tensor) else -1)

        sources: list[Value] = []
        exact = self.generate(node.generators, 0, add, sources)
        owners = owners_of_rest(sources) if hands_on_what_it_draws(node) else ()
        if isinstance(node, ast.GeneratorExp):
            stream = Stream(iter(items), exact)
            stream.site, stream.owners = self.path.site(node), owners
            return stream
        if isinstance(node, ast.SetComp) and all(is_constant(item) for item in items):
            items = list(dict.fromkeys(items))
            epochs = [-1] * len(items)
        result = Seq("list" if isinstance(node, ast.ListComp) else "set", items, exact, self.path.site(node))
        result.owners, result.alike = owners, bool(items) and not (exact or reads_what_it_draws(node))
        self.path.tell(ContainerMade(result, "comprehension", node, epochs))
        return result

    def dict_comprehension(self, node: ast.DictComp) -> Value:
        result = Mapping()

        def add() -> None:
            key = self.evaluate(node.key)
            self.objects.store_key(result, key, self.evaluate(node.value))

        result.exact = self.generate(node.generators, 0, add, []) and result.exact
        self.path.tell(ContainerMade(result, "dict", node))
        return result

    clauses: tuple[Frame | None, int] = (None, 0)
    """The frame whose comprehension is being run, and how many clauses stand around what it does."""

    def generate(
        self,
        generators: list[ast.comprehension],
        depth: int,
        action: Callable[[], None],
        sources: list[Value],
    ) -> bool:
        """Run the clauses of a comprehension, and note what they go through; true if every element was produced."""
        if depth == len(generators):
            action()
            return True
        clause = generators[depth]
        sources.append(self.evaluate(clause.iter))
        iterator, length = self.objects.iterate(sources[-1])
        exact = length is not None
        namespace = self.path.frame.namespace
        names = [inner.id for inner in syntax_parts(clause.target) if isinstance(inner, ast.Name)]
        before = {name: namespace.get(name, MISSING) for name in names}
        produced = 0
        # Clauses in clauses multiply, and so do comprehensions in comprehensions.
        clauses = self.clauses
        around = clauses[1] if clauses[0] is self.path.frame else 0
        most = MOST_ITEMS if around < DEEPEST_CLAUSE else 1
        self.clauses = (self.path.frame, around + 1)
        try:
            for item in iterator:
                if produced >= most:
                    exact = False
                    break
                produced += 1
                self.assign(clause.target, item)
                wanted = True
                for test in clause.ifs:
                    condition = self.evaluate(test)
                    known = self.path.truth(condition)
                    if known is None:
                        exact = False
                        known = True
                    if not known:
                        wanted = False
                        break
                if wanted:
                    exact = self.generate(generators, depth + 1, action, sources) and exact
        finally:
            self.clauses = clauses
            for name, value in before.items():
                if value is MISSING:
                    namespace.pop(name, None)
                else:
                    namespace[name] = value
        return exact and (length == MANY or produced == length)


def sum_of_writes(left: Value, right: Value) -> Version | None:
    """The sum of numbers of writes, where one of them is such a number."""
    if isinstance(left, Version):
        return left.plus(right)
    return right.plus(left) if isinstance(right, Version) else None


def _numeric(value: Value) -> bool:
    is_unknown_number = isinstance(value, Unknown) and value.hint in ("number", "bool")
    return is_unknown_number or isinstance(value, (bool, int, float, complex, Number))


def _too_big(name: str, left: Value, right: Value) -> bool:
    if name == "add":
        return isinstance(left, (str, bytes)) and len(left) > LONGEST_TEXT
    if name == "mul":
        for text, count in ((left, right), (right, left)):
            if isinstance(text, (str, bytes)) and isinstance(count, int):
                return len(text) * count > LONGEST_CONSTANT
        return False
    return isinstance(right, int) and isinstance(left, int) and (abs(right) > 64 or abs(left) > 1 << 32)


__all__ = ["Expressions", "Function", "Layer", "Method"]
