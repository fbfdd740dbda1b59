"""`copy.deepcopy` and `copy.copy`."""

from __future__ import annotations

from gradsight.interp.libraries.standard import Standard
from gradsight.interp.path_state import PathState
from gradsight.model.sites import Syntax
from gradsight.model.tensors import Tensor
from gradsight.model.trace import Copied, NonLeafCopied
from gradsight.model.values import Instance, Layer, Mapping, Module, ModuleState, Seq, Unknown, Value


class Copying(Standard):
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
        return value

    def copy_shallow(self, args: list[Value], kwargs: dict[str, Value], node: Syntax) -> Value:
        value = args[0] if args else None
        if isinstance(value, Seq):
            return self.objects.sequence_method(value, "copy", [], {}, node)
        if isinstance(value, Mapping):
            return self.objects.mapping_method(value, "copy", [], {}, node)
        return value
