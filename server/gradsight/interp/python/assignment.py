"""Binding values to names, attributes, items and patterns of them."""

from __future__ import annotations

import ast
from typing import Any

from gradsight.interp.python.language_floor import LanguageFloor
from gradsight.interp.shared_names import EnclosedNames
from gradsight.model.tensors import Tensor
from gradsight.model.trace import ConditionAsked, Iterated, NameSeen
from gradsight.model.values import Names, Seq, Value

MOST_ROWS = 16
"""So many items of a value are unpacked one by one; of more, a starred name stands for an unknown number."""


class Assignment(LanguageFloor):
    """Assignment in all its forms."""

    def assign(self, target: ast.expr, value: Value) -> None:
        """Bind a value to a name, attribute, item or pattern of them."""
        if isinstance(target, ast.Name):
            self.bind(target.id, value)
        elif isinstance(target, (ast.Tuple, ast.List)):
            self.unpack(target.elts, value)
        elif isinstance(target, ast.Attribute):
            owner = self.owner_of(target)
            self.objects.set_attribute(owner, target.attr, value, target)
        elif isinstance(target, ast.Subscript):
            owner = self.evaluate(target.value)
            self.objects.set_item(owner, self.evaluate_index(target.slice), value, target)
        elif isinstance(target, ast.Starred):
            self.assign(target.value, value)
        if self.path.is_watched and isinstance(target, (ast.Name, ast.Attribute)):
            self.path.tell(NameSeen(target, value, True))

    def show_names(self, condition: ast.If | ast.IfExp) -> None:
        """Tell whoever looks at names what they stand for before a condition parts the paths."""
        if self.path.is_watched:
            self.path.tell(ConditionAsked(condition, self.path.frame.namespace))

    def bind(self, name: str, value: Value) -> None:
        """Bind a name in the running frame."""
        frame = self.path.frame
        if isinstance(value, Tensor) and not value.label and not frame.unit.library:
            value.label = name
        if frame.watched is not None:
            frame.watched.pop(name, None)
        if frame.global_names is not None and name in frame.global_names:
            self.bind_global(name, value)
            return
        if frame.function is not None and name in frame.function.nonlocals:
            scope = frame.scope.outer
            while scope is not None:
                if name in scope.names:
                    if type(scope.names) is EnclosedNames:
                        self.entry.write_shared(scope.names, name, value)
                    else:
                        scope.names[name] = value
                    return
                scope = scope.outer
        frame.namespace[name] = value

    def namespace_of(self, name: str) -> dict[str, Value]:
        """The names among which a name is bound that the running frame assigns to."""
        names: dict[str, Any] = self.path.frame.namespace
        scope = self.path.frame.scope
        while name not in names and scope is not None:
            names, scope = scope.names, scope.outer
        return names

    def bind_global(self, name: str, value: Value) -> None:
        """Bind a name of the module that the running code belongs to."""
        outermost = self.path.frame.scope
        while outermost.outer is not None:
            outermost = outermost.outer
        names = outermost.names
        if type(names) is Names and names.shared:
            self.entry.write_shared(names, name, value)
        elif self.path.isolated:
            self.path.private[id(outermost.names), name] = value
        else:
            outermost.names[name] = value

    def unpack(self, targets: list[ast.expr], value: Value) -> None:
        """Spread a value over several targets."""
        starred = next((i for i, target in enumerate(targets) if isinstance(target, ast.Starred)), None)
        if isinstance(value, Seq) and value.exact:
            items = value.items
            if value.kind == "list" and len(items) > 1:
                self.path.tell(Iterated(value, self.path.node))
            if starred is None:
                if len(items) == len(targets):
                    for target, item in zip(targets, items):
                        self.assign(target, item)
                    return
            elif len(items) >= len(targets) - 1:
                after = len(targets) - starred - 1
                middle = items[starred : len(items) - after]
                for target, item in zip(targets[:starred], items):
                    self.assign(target, item)
                self.assign(targets[starred], Seq("list", list(middle)))
                for target, item in zip(targets[starred + 1 :], items[len(items) - after :] if after else []):
                    self.assign(target, item)
                return
        elements = self.spread(value, len(targets), starred)
        for target, item in zip(targets, elements):
            self.assign(target, item)

    def spread(self, value: Value, count: int, starred: int | None) -> list[Value]:
        """As many items as there are targets, from a value whose length is not known to fit."""
        items: list[Any] = []
        iterator, length = self.objects.iterate(value, at_least=count)
        if starred is not None and length is not None and count - 1 <= length <= MOST_ROWS:
            items = list(iterator)
            if len(items) == length:
                last = length - (count - starred - 1)
                return [*items[:starred], Seq("list", items[starred:last]), *items[last:]]
            iterator, items = iter(items), []
        for item in iterator:
            items.append(item)
            if len(items) >= count:
                break
        while len(items) < count:
            items.append(self.path.gap("unpacked from a value of unknown length"))
        if starred is not None:
            items[starred] = Seq("list", [items[starred]], exact=False)
        return items
