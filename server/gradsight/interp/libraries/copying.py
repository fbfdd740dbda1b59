"""`copy.deepcopy` and `copy.copy`."""

from __future__ import annotations

from typing import Any

from gradsight.interp.libraries.standard_objects import StandardObjects
from gradsight.interp.path_state import PathState
from gradsight.model.library_objects import DataLoader, Dataset, Optimizer, Scheduler
from gradsight.model.sites import Syntax
from gradsight.model.tensors import Tensor
from gradsight.model.trace import Copied, NonLeafCopied
from gradsight.model.values import Instance, Layer, Mapping, Module, ModuleState, Seq, Unknown, Value

HOLDERS = (Optimizer, Scheduler, Dataset, DataLoader)
"""Library objects that hold tensors, or others of them."""
Holder = Optimizer | Scheduler | Dataset | DataLoader

MOST_DEEP = 3


class Copying(StandardObjects):
    """Copies of values."""

    def __init__(self, path: PathState) -> None:
        super().__init__(path)
        self.is_asked_to_copy = False
        """Whether the program itself copies; else the machine does, to keep entries apart."""

    def copy_deep(self, args: list[Value], kwargs: dict[str, Value], node: Syntax) -> Value:
        self.path.tick += 1
        before, self.is_asked_to_copy = self.is_asked_to_copy, True
        try:
            result = self.deep_copy(args[0], node, {}) if args else Unknown("deepcopy")
        finally:
            self.is_asked_to_copy = before
        self.path.tell(Copied(result, node))
        return result

    def deep_copy(self, value: Value, node: Syntax, memo: dict[int, Value]) -> Value:
        """Copies all the way down; a non-leaf tensor refuses."""
        if id(value) in memo:
            return memo[id(value)]
        if isinstance(value, Tensor):
            if not value.is_leaf and value.needs_grad() is True:
                if not self.is_asked_to_copy:
                    # What the module's own statements computed: its graph is theirs, and may be freed by now.
                    computed = memo[id(value)] = Unknown("a result that is kept outside of this function")
                    computed.carries = True
                    return computed
                self.path.refuse(NonLeafCopied(value, self.path.site(node)))
            site = self.path.site(node) if self.is_asked_to_copy else value.site
            copy = Tensor(site, requires_grad=value.requires_grad, dtype=value.dtype, shape=value.shape)
            copy.is_parameter = value.is_parameter
            copy.leaf_made = True
            copy.label = value.label
            copy.cuts = value.cuts
            memo[id(value)] = copy
            if value.is_parameter:
                self.path.leaves.append(copy)
            return copy
        if isinstance(value, Seq):
            result = Seq(value.kind, [], value.exact, value.site)
            memo[id(value)] = result
            result.items = [self.deep_copy(item, node, memo) for item in value.items]
            result.fields = value.fields
            return result
        if isinstance(value, Mapping):
            mapping = Mapping({}, value.exact, value.kind)
            memo[id(value)] = mapping
            mapping.items = {key: self.deep_copy(item, node, memo) for key, item in value.items.items()}
            mapping.keys = dict(value.keys)
            mapping.rest = [self.deep_copy(item, node, memo) for item in value.rest]
            return mapping
        if isinstance(value, (Instance, Layer)):
            clone: Module
            if isinstance(value, Instance):
                clone = Instance(value.cls, value.site)
                clone.open = value.open
                held = self.deep_copy(value.held, node, memo)
                clone.held = held if isinstance(held, (Mapping, Seq)) else None
            else:
                clone = Layer(value.name, dict(value.options), value.site)
            memo[id(value)] = clone
            if value.module is not None:
                state = clone.module = ModuleState()
                state.training = value.module.training
                state.initialised = True
                state.registered = dict(value.module.registered)
                self.path.modules_made.append(clone)
            clone.attributes = {
                key: self.deep_copy(item, node, memo) for key, item in value.attributes.items()
            }
            return clone
        if isinstance(value, HOLDERS) and not self.is_asked_to_copy:
            return self.holder_of_this_path(value, node, memo)
        return value

    def holder_of_this_path(self, value: Holder, node: Syntax, memo: dict[int, Value]) -> Value:
        """An optimizer (a scheduler, a loader) of a module for this path alone: it holds this path's tensors."""
        holder = memo[id(value)] = object.__new__(type(value))
        fields = {name: self.copy_field(held, node, memo) for name, held in value.__dict__.items()}
        holder.__dict__.update(fields)
        if isinstance(holder, Optimizer):
            # It was there before anything happened on this path.
            holder.created = holder.stepped = 0
            holder.is_global = True
            self.path.optimizers.append(holder)
        return holder

    def copy_optimizers(self, names: dict[str, Value], node: Syntax, memo: dict[int, Value]) -> None:
        """All optimizers that the names of a module lead to: that no optimizer holds a parameter is known by all of them."""
        todo = [(value, 0) for value in names.values()]
        while todo:
            value, depth = todo.pop()
            if isinstance(value, Optimizer):
                self.deep_copy(value, node, memo)
            elif depth < MOST_DEEP:
                todo += [(inner, depth + 1) for inner in parts_of(value)]

    def copy_field(self, held: Any, node: Syntax, memo: dict[int, Value]) -> Any:
        if type(held) is list:
            return [self.deep_copy(item, node, memo) for item in held]
        if type(held) is dict:
            return {key: self.deep_copy(item, node, memo) for key, item in held.items()}
        if type(held) is set:
            return {self.deep_copy(item, node, memo) for item in held}
        return self.deep_copy(held, node, memo)

    def copy_shallow(self, args: list[Value], kwargs: dict[str, Value], node: Syntax) -> Value:
        value = args[0] if args else None
        if isinstance(value, Seq):
            return self.objects.sequence_method(value, "copy", [], {}, node)
        if isinstance(value, Mapping):
            return self.objects.mapping_method(value, "copy", [], {}, node)
        return value


def parts_of(value: Value) -> list[Value]:
    if isinstance(value, Seq):
        return value.items
    if isinstance(value, Mapping):
        return list(value.items.values())
    return list(value.attributes.values()) if isinstance(value, Instance) else []
