"""Objects of the standard library that hand on what they are given, and trees that a function is applied to."""

from __future__ import annotations

from gradsight.interp.libraries.standard import Standard
from gradsight.model.sites import Syntax
from gradsight.model.values import (
    MISSING,
    ClassValue,
    Instance,
    Mapping,
    Native,
    Seq,
    Stream,
    Unknown,
    Value,
    is_constant,
)

DEEPEST_TREE = 8


class StandardObjects(Standard):
    """`contextvars.ContextVar`, `itertools.groupby` and `tree_map`."""

    def context_variable(self, args: list[Value], kwargs: dict[str, Value], node: Syntax) -> Value:
        """`ContextVar(name, default=…)`: one variable, in the one context that the program runs in."""
        held: list[Value] = [kwargs.get("default", MISSING)]

        def get(given: list[Value], named: dict[str, Value], place: Syntax) -> Value:
            if held[-1] is not MISSING:
                return held[-1]
            return given[0] if given else Unknown("a context variable without a value")

        def put(given: list[Value], named: dict[str, Value], place: Syntax) -> Value:
            before, held[-1] = held[-1], given[0] if given else Unknown("a context variable")
            return Native("token", lambda *_: before)

        def reset(given: list[Value], named: dict[str, Value], place: Syntax) -> Value:
            token = given[0] if given else None
            held[-1] = token.call() if isinstance(token, Native) else Unknown("a context variable")
            return None

        variable = Instance(ClassValue("ContextVar", [], {}, "plain"), self.path.site(node))
        variable.attributes = {
            "get": Native("get", get), "set": Native("set", put), "reset": Native("reset", reset)
        }  # fmt: skip
        return variable

    def group_by(self, args: list[Value], kwargs: dict[str, Value], node: Syntax) -> Value:
        """`itertools.groupby(values, key)`: neighbours with the same key; all in one group where a key is not known."""
        items, is_whole = self.objects.collect(args[0]) if args else ([], True)
        function = args[1] if len(args) > 1 else kwargs.get("key")
        groups: list[tuple[Value, list[Value]]] = []
        for item in items:
            key = item if function is None else self.language.call(function, [item], {}, node)
            is_same = bool(groups) and (
                not is_constant(key) or not is_constant(groups[-1][0]) or groups[-1][0] == key
            )
            if is_same:
                groups[-1][1].append(item)
            else:
                groups.append((key, [item]))
        rows = [Seq("tuple", [key, Stream(iter(members), is_whole)]) for key, members in groups]
        return Stream(iter(rows), is_whole)

    def tree_map(self, args: list[Value], kwargs: dict[str, Value], node: Syntax) -> Value:
        """`tree_map(function, tree, …)`: the function is called for each leaf of lists, tuples and dicts."""
        if len(args) < 2 or kwargs:
            return self.nn.unknown_result("a tree", args, kwargs, node)
        return self.mapped(args[0], args[1:], node, DEEPEST_TREE)

    def mapped(self, function: Value, trees: list[Value], node: Syntax, depth: int) -> Value:
        first, rest = trees[0], trees[1:]
        if isinstance(first, Seq) and first.exact and depth:
            rows = [one.items for one in rest if isinstance(one, Seq) and len(one.items) == len(first.items)]
            if len(rows) == len(rest):
                parts = [list(row) for row in zip(first.items, *rows)]
                return Seq(first.kind, [self.mapped(function, part, node, depth - 1) for part in parts])
        elif isinstance(first, Mapping) and first.exact and depth and not rest:
            mapped = {
                key: self.mapped(function, [item], node, depth - 1) for key, item in first.items.items()
            }
            result = Mapping(mapped, True, first.kind)
            result.keys = dict(first.keys)
            return result
        elif not isinstance(first, (Seq, Mapping, Unknown)):
            return self.language.call(function, trees, {}, node)
        return self.nn.unknown_result("a tree", [function, *trees], {}, node)
