"""Names read and imported: local, enclosing, global, imported and not yet executed; values that an entry has for itself."""

from __future__ import annotations

import ast
from typing import Any

from gradsight.interp.path_state import PathState
from gradsight.interp.python.statements import Statements
from gradsight.interp.shared_names import is_shared
from gradsight.interp.used_names import EVERYTHING, use
from gradsight.model.tensors import Tensor
from gradsight.model.trace import NameRead
from gradsight.model.values import (
    MISSING,
    External,
    Function,
    Instance,
    Layer,
    Mapping,
    Names,
    Opaque,
    Pending,
    PythonModule,
    Seq,
    Unknown,
    Value,
    is_constant,
)


class NameReading(Statements):
    """What a name stands for."""

    def __init__(self, path: PathState) -> None:
        super().__init__(path)
        self.private_memo: dict[int, Any] = {}

    def load_name(self, node: ast.Name) -> Value:
        """Local, enclosing, global, built in; a name never seen is unknown."""
        name = node.id
        frame = self.path.frame
        if frame.watched is not None and name in frame.watched:
            self.path.tell(NameRead(name, node))
        namespace = frame.namespace
        if name in namespace:
            value: Value = namespace[name]
            if frame.depth == 0 and type(namespace) is Names and namespace.shared:
                return self.entry.read_shared(namespace, name)
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
                if type(names) is not dict and is_shared(names):
                    if scope.outer is None:
                        self.path.asked.add(name)
                    return self.entry.read_shared(names, name)
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
        if type(names) is Names and names.shared:
            value = self.entry.read_shared(names, name)
            if value is not MISSING:
                return value
        elif type(names) is Names and name in names.waiting:
            value = self.entry.bind_waiting(names, name)
            if value is not MISSING:
                return self.private_value(names, name, value) if self.path.isolated else value
        return self.libraries.global_name(name, node)

    def private_value(self, names: dict[str, Value], name: str, value: Value) -> Value:
        """A copy of a module's value for this entry alone, where the value could be changed."""
        found = self.path.private.get((id(names), name), MISSING)
        if found is MISSING:
            if not isinstance(value, (Tensor, Seq, Mapping, Instance, Layer, Opaque)):
                return value
            before = len(self.path.optimizers)
            found = self.path.private[id(names), name] = self.libraries.deep_copy(
                value, self.path.node, self.private_memo
            )
            if len(self.path.optimizers) > before:
                self.libraries.copy_optimizers(names, self.path.node, self.private_memo)
        return found

    def default_of(self, function: Function, name: str, default: Value) -> Value:
        if is_constant(default) or not is_shared(function.scope.names):
            return default
        return self.entry.private_part((id(function.defaults), name), function.scope.names, default)

    def do_import(self, node: ast.Import) -> Value:
        for alias in node.names:
            if alias.asname:
                module = self.entry.find_module(alias.name, 0)
                self.bind(alias.asname, module if module is not None else External(alias.name))
            else:
                first = alias.name.partition(".")[0]
                root = self.entry.find_module(first, 0)
                self.bind(first, root if root is not None else External(first))
                if root is not None and first == alias.name:
                    # It may be imported for what it does alone: for the classes that it puts into a registry.
                    self.entry.load_module(root)
        return None

    def do_import_from(self, node: ast.ImportFrom) -> Value:
        name = node.module or ""
        module = self.entry.find_module(name, node.level) if name or node.level else None
        for alias in node.names:
            target = alias.asname or alias.name
            if alias.name == "*":
                if module is not None:
                    module = self.entry.load_module(module)
                    bound = self.path.frame.namespace
                    use(self.path.program.uses, module.path, EVERYTHING)
                    for known in [*module.namespace, *module.namespace.waiting]:
                        # What the module has by an import itself, perhaps from here, is what is bound already.
                        if not known.startswith("_") and not (known in bound and passes_on(module, known)):
                            self.bind(known, Pending(module, known))
                else:
                    self.libraries.star_import(name)
            elif module is not None:
                self.bind(target, Pending(module, alias.name))
            elif node.level:
                whole = f"{name}.{alias.name}" if name else alias.name
                inner = self.entry.find_module(whole, node.level)
                if inner is None:
                    # What is in a file that is not there is as unknown as a library; its dots keep it from being one.
                    absent = f"{'.' * node.level}{whole}"
                    self.path.gap(f"import of {absent}", node, "import")
                    self.bind(target, External(absent))
                else:
                    self.bind(target, inner)
            elif not name:
                self.bind(target, Unknown("relative import"))
            else:
                # A folder without an `__init__.py` is a package, too: its modules are found, and nothing else is in it.
                shown = self.entry.module_of_workspace(
                    f"{name}.{alias.name}"
                ) or self.entry.class_shown_above(name, alias.name)
                outside = External(name)
                self.bind(target, shown or self.libraries.external_attribute(outside, alias.name))
        return None


def passes_on(module: PythonModule, name: str) -> bool:
    """Whether a module has a name by an import of its own."""
    units = module.namespace.waiting.get(name)
    if units is None:
        return isinstance(module.namespace.get(name), (Pending, PythonModule, External))
    return all(
        isinstance(statement, (ast.Import, ast.ImportFrom)) for unit in units for statement in unit.tree
    )
