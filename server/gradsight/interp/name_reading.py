"""Names read: local, enclosing, global, imported and not yet executed; values that an entry has for itself."""

from __future__ import annotations

import ast
from typing import Any

from gradsight.interp.statements import Statements
from gradsight.model.tensors import Tensor
from gradsight.model.trace import NameRead
from gradsight.model.values import MISSING, Instance, Layer, Mapping, Names, Pending, Seq


class NameReading(Statements):
    """What a name stands for."""

    def load_name(self, node: ast.Name) -> Any:
        """Local, enclosing, global, built in; a name never seen is unknown."""
        name = node.id
        frame = self.frame
        if frame.watched is not None and name in frame.watched:
            self.tell(NameRead(name, node))
        namespace = frame.namespace
        if name in namespace:
            value = namespace[name]
            if type(value) is Pending:
                value = namespace[name] = self.resolve_import(value, node)
            if frame.depth == 0:
                self.asked.add(name)
                return self.private_value(namespace, name, value) if self.isolated else value
            return value
        scope = frame.scope
        names = namespace
        while scope is not None:
            names = scope.names
            if name in names:
                value = names[name]
                if type(value) is Pending:
                    value = names[name] = self.resolve_import(value, node)
                if scope.outer is None:
                    self.asked.add(name)
                    if self.isolated:
                        return self.private_value(names, name, value)
                return value
            scope = scope.outer
        self.asked.add(name)
        if self.isolated and (id(names), name) in self.private:
            return self.private[id(names), name]
        if type(names) is Names and name in names.waiting:
            value = self.bind_waiting(names, name)
            if value is not MISSING:
                return self.private_value(names, name, value) if self.isolated else value
        return self.global_name(name, node)

    def private_value(self, names: dict[str, Any], name: str, value: Any) -> Any:
        """A copy of a module's value for this entry alone, where the value could be changed."""
        found = self.private.get((id(names), name), MISSING)
        if found is MISSING:
            if not isinstance(value, (Tensor, Seq, Mapping, Instance, Layer)):
                return value
            found = self.private[id(names), name] = self.deep_copy(value, self.node, self.private_memo)
        return found

    def bind_waiting(self, names: Names, name: str) -> Any:
        """Execute the statements of an imported module that bind a name; MISSING if they did not."""
        return MISSING

    private_memo: dict[int, Any]
