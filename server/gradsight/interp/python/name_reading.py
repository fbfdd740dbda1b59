"""Names read: local, enclosing, global, imported and not yet executed; values that an entry has for itself."""

from __future__ import annotations

import ast
from typing import Any

from gradsight.interp.path_state import PathState
from gradsight.interp.python.statements import Statements
from gradsight.model.tensors import Tensor
from gradsight.model.trace import NameRead
from gradsight.model.values import MISSING, Instance, Layer, Mapping, Names, Pending, Seq


class NameReading(Statements):
    """What a name stands for."""

    def __init__(self, path: PathState) -> None:
        super().__init__(path)
        self.private_memo: dict[int, Any] = {}

    def load_name(self, node: ast.Name) -> Any:
        """Local, enclosing, global, built in; a name never seen is unknown."""
        name = node.id
        frame = self.path.frame
        if frame.watched is not None and name in frame.watched:
            self.path.tell(NameRead(name, node))
        namespace = frame.namespace
        if name in namespace:
            value = namespace[name]
            if type(value) is Pending:
                value = namespace[name] = self.libraries.resolve_import(value, node)
            if frame.depth == 0:
                self.path.asked.add(name)
                return self.private_value(namespace, name, value) if self.path.isolated else value
            return value
        scope = frame.scope
        names = namespace
        while scope is not None:
            names = scope.names
            if name in names:
                value = names[name]
                if type(value) is Pending:
                    value = names[name] = self.libraries.resolve_import(value, node)
                if scope.outer is None:
                    self.path.asked.add(name)
                    if self.path.isolated:
                        return self.private_value(names, name, value)
                return value
            scope = scope.outer
        self.path.asked.add(name)
        if self.path.isolated and (id(names), name) in self.path.private:
            return self.path.private[id(names), name]
        if type(names) is Names and name in names.waiting:
            value = self.entry.bind_waiting(names, name)
            if value is not MISSING:
                return self.private_value(names, name, value) if self.path.isolated else value
        return self.libraries.global_name(name, node)

    def private_value(self, names: dict[str, Any], name: str, value: Any) -> Any:
        """A copy of a module's value for this entry alone, where the value could be changed."""
        found = self.path.private.get((id(names), name), MISSING)
        if found is MISSING:
            if not isinstance(value, (Tensor, Seq, Mapping, Instance, Layer)):
                return value
            found = self.path.private[id(names), name] = self.libraries.deep_copy(
                value, self.path.node, self.private_memo
            )
        return found
