"""Python's built-in functions and names."""

from __future__ import annotations

import ast
import builtins as python_builtins
from collections.abc import Iterator
from typing import Any

from gradsight.interp.path_state import RaisedError
from gradsight.interp.python import abstract_types
from gradsight.interp.python.class_making import class_of_parts
from gradsight.interp.python.loops import ROUNDS_OF_A_LOOP
from gradsight.interp.python.objects import Objects
from gradsight.interp.python.set_algebra import distinct
from gradsight.interp.syntax_parts import expression_in
from gradsight.model.library_objects import RaisedObject
from gradsight.model.passed_cuts import cuts_of
from gradsight.model.tensors import NO_CUTS, Tensor
from gradsight.model.trace import Read
from gradsight.model.unlisted import owners_of_rest
from gradsight.model.values import (
    MISSING,
    AbsentGrad,
    Array,
    ClassValue,
    External,
    Function,
    Instance,
    Layer,
    Mapping,
    Method,
    Negated,
    Number,
    Opaque,
    Seq,
    Slice,
    Stream,
    Super,
    Unknown,
    Value,
    Version,
    is_constant,
)

MOST_RANGE = 10**6
MOST_TEXT = 1_000
"""Characters of a text that is evaluated."""
TYPE_NAMES: dict[str, Any] = {
    "builtins.int": int, "builtins.float": float, "builtins.str": str, "builtins.bool": bool,
    "builtins.list": "list", "builtins.tuple": "tuple", "builtins.dict": "dict", "builtins.set": "set",
}  # fmt: skip
BUILTIN_NAMES = frozenset(dir(python_builtins))


class Builtins(Objects):
    """Built-in functions, by name."""

    def builtin_name(self, name: str) -> Value:
        return External(f"builtins.{name}") if name in BUILTIN_NAMES else MISSING

    def call_builtin(self, name: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> Value:
        if name.startswith("object."):
            found = self.object_method(name[7:], args, node)
            if found is not MISSING:
                return found
        action = getattr(self, f"builtin_{name}", None) if name != "dict.fromkeys" else self.dict_from_keys
        if action is not None:
            return action(args, kwargs, node)
        if name.endswith(("Error", "Exception", "Warning", "Exit", "Interrupt", "StopIteration")):
            return RaisedObject(name, self.path.site(node))
        self.nn.escape(args, kwargs)
        return Unknown(f"result of {name}")

    def builtin_exec(self, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> Value:
        """Text that is executed may set anything on the object whose method runs it, and any name of the module."""
        if isinstance(self.path.frame.receiver, Instance):
            self.path.frame.receiver.open = True
        if len(args) == 1 and not kwargs and self.path.frame.function is None:
            self.names_executed(args[0], node)
        return None

    def builtin_eval(self, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> Value:
        """A text that is written out is an expression like any other; all of it stands where it is evaluated."""
        text = args[0] if len(args) == 1 and not kwargs else None
        expression = expression_in(text, node) if isinstance(text, str) and len(text) <= MOST_TEXT else None
        if expression is None:
            self.nn.escape(args, kwargs)
            return Unknown("result of eval")
        return self.language.evaluate(expression)

    def builtin_print(self, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> Value:
        for value in args:
            self.path.tell(Read(value, node))
        return None

    def builtin_repr(self, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> Value:
        if args and isinstance(args[0], (str, int)):
            return repr(args[0])
        return Unknown("text", "text")

    def builtin_str(self, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> Value:
        if args and isinstance(args[0], (str, int)):
            return str(args[0])
        if args and isinstance(args[0], Version):
            return args[0]
        return Unknown("text", "text") if args else ""

    builtin_format = builtin_repr

    def builtin_len(self, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> Value:
        return self.length_of(args[0]) if args else Number()

    def builtin_range(self, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> Value:
        bounds = [arg for arg in args if isinstance(arg, int)]
        if args and len(bounds) == len(args):
            try:
                result = range(*bounds)
                return result if len(result) <= MOST_RANGE else range(MOST_RANGE)
            except (ValueError, TypeError):
                pass
        first = args[0] if len(args) > 1 and isinstance(args[0], int) else 0
        if (len(args) == 1 or (len(args) == 2 and isinstance(args[0], int))) and first >= 0:
            later = [self.path.counted_from(first + 1), self.path.counted_from(first + 2)]
            return Seq("range", [first, *later], exact=False)
        if len(args) == 1 or isinstance(args[0], int):
            return Seq("range", [first, Number(), Number()], exact=False)
        return Seq("range", [Number(), Number()], exact=False)

    def builtin_enumerate(self, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> Value:
        iterator, length = self.iterate(args[0], ROUNDS_OF_A_LOOP) if args else (iter(()), 0)
        start = kwargs.get("start", args[1] if len(args) > 1 else 0)
        first = start if isinstance(start, int) else None

        def pairs() -> Iterator[Value]:
            for index, item in enumerate(iterator):
                yield Seq("tuple", [index + first if first is not None else Number(), item])

        return self.sized(pairs(), length)

    def builtin_zip(self, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> Value:
        sources = [self.iterate(arg, ROUNDS_OF_A_LOOP) for arg in args]
        lengths = [length for _, length in sources if length is not None]

        def rows() -> Iterator[Value]:
            for row in zip(*(iterator for iterator, _ in sources)):
                yield Seq("tuple", list(row))

        return self.sized(rows(), min(lengths) if lengths else None)

    def sized(self, iterator: Iterator[Value], length: int | None) -> Value:
        """A stream that remembers how long it is, so that a loop over it is unrolled as the real one."""
        if length is not None and length <= 64:
            return SizedStream(iterator, length)
        return Stream(iterator, length is not None)

    def builtin_map(self, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> Value:
        if len(args) < 2:
            return Unknown("map without arguments")
        sources = [self.iterate(arg) for arg in args[1:]]
        exact = all(length is not None for _, length in sources)

        def results() -> Iterator[Value]:
            for count, row in enumerate(zip(*(iterator for iterator, _ in sources))):
                if count > 64:
                    return
                yield self.language.call(args[0], list(row), {}, node)

        return Stream(results(), exact)

    def builtin_filter(self, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> Value:
        if len(args) < 2:
            return Unknown("filter without arguments")
        kept: list[Any] = []
        iterator, length = self.iterate(args[1])
        exact = length is not None
        for count, item in enumerate(iterator):
            if count > 64:
                exact = False
                break
            outcome = self.path.truth(
                item if args[0] is None else self.language.call(args[0], [item], {}, node)
            )
            if outcome is None:
                exact = False
            if outcome is not False:
                kept.append(item)
        result = Seq("list", kept, exact, self.path.site(node))
        result.once, result.owners = True, owners_of_rest(args[1:])
        return result

    def builtin_sum(self, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> Value:
        if not args:
            return 0
        total: Value = args[1] if len(args) > 1 else kwargs.get("start", 0)
        iterator, length = self.iterate(args[0])
        for count, item in enumerate(iterator):
            if count > 64:
                break
            total = self.language.binary_values(ast.Add, total, item, node)
        if length is None and is_constant(total):
            return Number()
        # What the expression of a comprehension takes out of the graph for one item it takes out for all.
        written = node.args[0] if isinstance(node, ast.Call) and node.args else None
        is_plain = type(args[0]) is Unknown and args[0].plain
        is_same = is_plain or isinstance(written, (ast.GeneratorExp, ast.ListComp))
        are_alike = is_same and bool(cuts_of(total))
        if length is None and not are_alike and isinstance(total, Tensor) and total.requires_grad is False:
            return Unknown("sum of more than is listed")
        return total

    def extreme(self, name: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> Value:
        values = args
        if len(args) == 1:
            iterator, length = self.iterate(args[0])
            values = [item for _, item in zip(range(64), iterator)]
            if length is None or len(values) >= 64:
                values = [*values, Number()]
        if "key" in kwargs:
            self.ask_each(kwargs["key"], values, node)
            return values[0] if values else Unknown(f"{name} of nothing")
        ordered: list[Any] = [value for value in values if isinstance(value, (int, float, str))]
        if values and len(ordered) == len(values):
            if (
                self.path.frame.loops
                and len(args) == 2
                and isinstance(node, ast.Call)
                and len(node.args) == 2
            ):
                self.loops.note_comparison(ast.Lt, node.args[0], node.args[1], *args)
            try:
                chosen: int | float | str = (min if name == "min" else max)(ordered)
                return chosen
            except TypeError:
                return Unknown(f"{name} of mixed values")
        versions = [value for value in values if isinstance(value, Version)]
        if values and len(versions) == len(values):
            # Numbers of writes only grow: one stands for all, and changes when any of them does.
            return sum_of_versions(versions)
        cuts = NO_CUTS
        for value in values:
            cuts = cuts | cuts_of(value)
        if any(isinstance(value, Tensor) for value in values):
            return next(value for value in values if isinstance(value, Tensor))
        if all(isinstance(value, (int, float, Number)) for value in values):
            return Number(cuts)
        unknown = Unknown(f"{name} of unknown values")
        unknown.cuts = cuts
        return unknown

    def builtin_max(self, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> Value:
        return self.extreme("max", args, kwargs, node)

    def builtin_min(self, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> Value:
        return self.extreme("min", args, kwargs, node)

    def builtin_abs(self, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> Value:
        if args and isinstance(args[0], Tensor):
            return self.autograd.tensor_method(args[0], "abs", [], {}, node)
        if args and isinstance(args[0], (int, float)):
            return abs(args[0])
        return Number(cuts_of(args[0])) if args else Number()

    def builtin_round(self, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> Value:
        if args and isinstance(args[0], Tensor):
            return self.autograd.tensor_method(args[0], "round", [], {}, node)
        digits = [arg for arg in args[1:] if isinstance(arg, int)]
        if args and isinstance(args[0], (int, float)) and len(digits) == len(args) - 1:
            return round(args[0], *digits)
        return Number(cuts_of(args[0])) if args else Number()

    def builtin_pow(self, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> Value:
        return self.language.binary_values(ast.Pow, args[0], args[1], node) if len(args) > 1 else Number()

    def builtin_divmod(self, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> Value:
        if len(args) == 2 and isinstance(args[0], int) and isinstance(args[1], int) and args[1]:
            return Seq("tuple", list(divmod(args[0], args[1])))
        return Seq("tuple", [Number(), Number()])

    def builtin_sorted(self, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> Value:
        if not args:
            return Seq("list", [])
        items, exact = self.collect(args[0])
        if "key" in kwargs:
            self.ask_each(kwargs["key"], items, node)
        if exact and not kwargs:
            try:
                ordered: list[Any] = [item for item in items if isinstance(item, (int, float, str))]
                return Seq("list", sorted(ordered) if len(ordered) == len(items) else items)
            except TypeError:
                return Seq("list", items)
        return Seq("list", items, exact)

    def ask_each(self, key: Value, items: list[Value], node: ast.AST) -> None:
        """A key is asked for once for each item: what it does, it does to all."""
        if isinstance(key, (Function, Method)):
            for item in items:
                self.language.call(key, [item], {}, node)

    def collect(self, value: Value) -> tuple[list[Value], bool]:
        """Up to 64 items, or what is listed, and whether they are all; of what a loop that was left early has filled, some are."""
        most = max(64, len(value.items)) if isinstance(value, Seq) else 64
        iterator, length = self.iterate(value)
        items = [item for _, item in zip(range(most + 1), iterator)]
        if len(items) > most:
            return items[:most], False
        return items, length is not None and not (type(value) is Seq and value.partial)

    def builtin_reversed(self, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> Value:
        if args and isinstance(args[0], range):
            return args[0][::-1]
        items, exact = self.collect(args[0]) if args else ([], True)
        return Seq("list", items[::-1], exact)

    def make_sequence(self, kind: str, args: list[Value], node: ast.AST) -> Seq:
        if not args:
            return Seq(kind, [], True, self.path.site(node))
        if isinstance(args[0], Seq) and args[0].exact and not args[0].once:
            copy = Seq(kind, distinct(kind, args[0].items), True, self.path.site(node))
            copy.partial, copy.unlisted = args[0].partial, args[0].unlisted
            return copy
        if isinstance(args[0], Stream):
            result = Seq(kind, [], True, self.path.site(node))
            iterator, length = self.iterate(args[0])
            cut_short = self.loops.cut_short
            for count, item in enumerate(iterator):
                if count >= 64:
                    break
                self.store_in_list(result, item, node)
            result.exact = length is not None and len(result.items) < 64
            result.partial = self.loops.cut_short != cut_short
            result.unlisted = None
            result.owners = args[0].owners
            return result
        items, exact = self.collect(args[0])
        result = Seq(kind, distinct(kind, items), exact, self.path.site(node))
        result.owners = owners_of_rest(args[:1])
        return result

    def builtin_list(self, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> Value:
        return self.make_sequence("list", args, node)

    def builtin_tuple(self, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> Value:
        return self.make_sequence("tuple", args, node)

    def builtin_set(self, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> Value:
        return self.make_sequence("set", args, node)

    builtin_frozenset = builtin_set

    def builtin_dict(self, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> Value:
        result = Mapping()
        result.site = self.path.site(node)
        for source in args:
            if isinstance(source, Mapping):
                result.items.update(source.items)
                result.keys.update(source.keys)
                result.exact = source.exact
                result.rest.extend(source.rest)
            else:
                items, result.exact = self.collect(source)
                for item in items:
                    if isinstance(item, Seq) and len(item.items) == 2:
                        self.store_key(result, item.items[0], item.items[1])
                    else:
                        result.exact = False
        for key, value in kwargs.items():
            result.items[key] = value
        return result

    def to_number(self, name: str, args: list[Value], node: ast.AST) -> Value:
        if not args:
            return 0
        value = args[0]
        if isinstance(value, Tensor):
            return self.autograd.number_from(value, name, node)
        if isinstance(value, (int, float, str)):
            try:
                return int(value) if name == "int" else float(value) if name == "float" else bool(value)
            except ValueError:
                raise RaisedError(RaisedObject("ValueError", self.path.site(node))) from None
            except OverflowError:
                return Number()
        if name == "bool":
            known = self.path.truth(value)
            if isinstance(value, Negated):
                return value
            if not isinstance(value, (Unknown, Number)) or (
                known is not None and self.path.guarded_by(value) is None
            ):
                return known if known is not None else Unknown("truth of an unknown value", "bool")
            outcome = Unknown("truth of an unknown value", "bool")
            inner = value.condition if isinstance(value, Unknown) else None
            outcome.condition = value if inner is None else inner
            return outcome
        if isinstance(value, (Unknown, Number)):
            # What is made a whole number is counted with: nobody wants a gradient of it.
            return self.language.same_number(value, name, NO_CUTS if name == "int" else cuts_of(value))
        return Number(cuts_of(value))

    def builtin_int(self, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> Value:
        return self.to_number("int", args, node)

    def builtin_float(self, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> Value:
        return self.to_number("float", args, node)

    def builtin_bool(self, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> Value:
        return self.to_number("bool", args, node)

    def builtin_isinstance(self, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> Value:
        if len(args) != 2:
            return Unknown("isinstance", "bool")
        value, kinds = args
        options = kinds.items if isinstance(kinds, Seq) else [kinds]
        outcomes = [self.is_instance(value, option) for option in options]
        if True in outcomes:
            return True
        if all(outcome is False for outcome in outcomes):
            return False
        if isinstance(value, Unknown):
            return value.derived(
                ("isinstance", repr(kinds) if isinstance(kinds, External) else id(node)), "its type", "bool"
            )
        return Unknown("isinstance", "bool")

    def is_instance(self, value: Value, kind: Value) -> bool | None:
        if isinstance(kind, ClassValue):
            if isinstance(value, Instance):
                return kind in value.cls.lineage() or (None if value.open else False)
            return None if isinstance(value, Unknown) else False
        if not isinstance(kind, External):
            return None
        path = kind.path
        if isinstance(value, Unknown):
            return None
        for outcome in (self.nn.is_of_type(value, path), abstract_types.answers(value, path)):
            if outcome is not MISSING:
                return None if outcome is None else bool(outcome)
        if path in TYPE_NAMES:
            wanted = TYPE_NAMES[path]
            if isinstance(wanted, str):
                if isinstance(value, Mapping):
                    return wanted == "dict"
                return isinstance(value, Seq) and value.kind == wanted
            if isinstance(value, Number):
                return None if wanted in (int, float) else False
            return isinstance(value, wanted) if is_constant(value) else False
        return None if isinstance(value, (Instance, Opaque, Number)) else False

    def builtin_issubclass(self, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> Value:
        return Unknown("issubclass", "bool")

    def builtin_callable(self, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> Value:
        if args and isinstance(args[0], (Function, Method, ClassValue, Layer, External)):
            return True
        if args and (is_constant(args[0]) or isinstance(args[0], (Tensor, Seq, Mapping))):
            return False
        return Unknown("callable", "bool")

    def builtin_hasattr(self, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> Value:
        if len(args) == 2 and isinstance(args[1], str):
            owner, name = args[0], args[1]
            if isinstance(owner, Instance):
                if name in owner.attributes or owner.cls.find(name)[0] is not MISSING:
                    return True
                open_ended = owner.open or self.has_dynamic_attributes(owner)
                return Unknown("hasattr", "bool") if open_ended else False
            if isinstance(owner, Unknown):
                return owner.derived(("hasattr", name), "whether it has an attribute", "bool")
            if isinstance(owner, Layer):
                return True if name in owner.attributes else Unknown("hasattr", "bool")
        return Unknown("hasattr", "bool")

    def builtin_getattr(self, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> Value:
        if len(args) >= 2 and isinstance(args[1], str):
            if len(args) > 2 and isinstance(args[0], Instance) and not args[0].open:
                if args[1] not in args[0].attributes and args[0].cls.find(args[1])[0] is MISSING:
                    if not self.has_dynamic_attributes(args[0]):
                        return args[2]
                    return Unknown("attribute or its default")
            return self.get_attribute(args[0], args[1], node)
        return self.libraries.picked_member(args[0] if args else None, args[1] if len(args) > 1 else None)

    def builtin_setattr(self, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> Value:
        if len(args) == 3:
            if isinstance(args[1], str):
                self.set_attribute(args[0], args[1], args[2], node)
            elif isinstance(args[0], (Instance, Layer)):
                self.set_attribute(args[0], f"<{id(args[2])}>", args[2], node)
                if isinstance(args[0], Instance):
                    args[0].open = True
        return None

    def builtin_delattr(self, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> Value:
        if len(args) == 2 and isinstance(args[0], (Instance, Layer)):
            if isinstance(args[1], str):
                self.delete_attribute(args[0], args[1], node)
            elif isinstance(args[0], Instance):
                args[0].open = True
        return None

    def builtin_type(self, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> Value:
        if len(args) == 1:
            if isinstance(args[0], (Layer, Tensor)):
                return self.nn.type_of(args[0])
            return args[0].cls if isinstance(args[0], Instance) else abstract_types.plain_type(args[0])
        if len(args) == 3 and isinstance(args[0], str) and isinstance(args[1], Seq):
            body = args[2]
            if args[1].exact and isinstance(body, Mapping) and body.exact:
                return class_of_parts(self.language, args[0], list(args[1].items), dict(body.items))
        return Unknown("type of a value")

    def builtin_super(self, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> Value:
        if len(args) == 2 and isinstance(args[0], ClassValue):
            return Super(args[0], args[1])
        return self.language.make_super()

    def builtin_iter(self, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> Value:
        if args:
            if isinstance(args[0], Stream):
                return args[0]
            if len(args) == 2:
                # `iter(function, last)` calls the function until it gives this value, or the loop is left.
                function = args[0]
                return Stream((self.language.call(function, [], {}, node) for _ in range(2)), False)
            iterator, length = self.iterate(args[0])
            return self.sized(iterator, length)
        return Unknown("iter without arguments")

    def builtin_next(self, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> Value:
        if args and isinstance(args[0], Stream):
            default = args[1] if len(args) > 1 else Unknown("end of an iterator")
            return next(args[0].iterator, default)
        if args and isinstance(args[0], Instance):
            method, _ = args[0].cls.find("__next__")
            if isinstance(method, Function):
                found: Value = self.language.call_function(method, [args[0]], {}, node)
                return found
        if args:
            items, _ = self.iterate(args[0])
            return next(items, Unknown("end of an iterator"))
        return Unknown("next")

    def builtin_any(self, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> Value:
        items, exact = self.collect(args[0]) if args else ([], True)
        outcomes = [self.path.truth(item) for item in items]
        if True in outcomes:
            return True
        return False if exact and all(outcome is False for outcome in outcomes) else Unknown("any", "bool")

    def builtin_all(self, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> Value:
        items, exact = self.collect(args[0]) if args else ([], True)
        outcomes = [self.path.truth(item) for item in items]
        if False in outcomes:
            return False
        return True if exact and all(outcome is True for outcome in outcomes) else Unknown("all", "bool")

    def builtin_slice(self, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> Value:
        parts = [*args, None, None, None]
        return Slice(None, parts[0], None) if len(args) == 1 else Slice(parts[0], parts[1], parts[2])

    def builtin_id(self, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> Value:
        return args[0] if args and isinstance(args[0], (Tensor, Instance, Layer)) else Number()

    def builtin_vars(self, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> Value:
        if not args:
            return self.builtin_locals(args, kwargs, node)
        return self.attributes_dict(args[0]) if isinstance(args[0], (Instance, Layer)) else Mapping({}, False)

    def builtin_hash(self, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> Value:
        """Equal for what is equal: the value stands for its hash."""
        return args[0] if args and isinstance(args[0], (Seq, Version, Tensor, Instance, Layer)) else Number()

    def builtin_input(self, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> Value:
        return Unknown("text typed by the user", "text")

    def builtin_open(self, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> Value:
        return Unknown("a file")

    def builtin_object(self, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> Value:
        return Unknown("a bare object")


def sum_of_versions(versions: list[Version]) -> Version:
    """One number that changes when any of them does."""
    counters = sorted((counter for version in versions for counter in version.counters), key=id)
    return Version(tuple(counters), sum(version.total for version in versions))


class SizedStream(Stream):
    """A stream of known length."""

    __slots__ = ("length",)

    def __init__(self, iterator: Iterator[Value], length: int) -> None:
        super().__init__(iterator, True)
        self.length = length


__all__ = ["AbsentGrad", "Array", "Builtins", "SizedStream"]
