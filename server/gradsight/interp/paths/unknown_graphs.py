"""Unknown values that bring a graph along, and those that are known to bring none.

Code that is not known returns a value that depends on the tensors it was given; whoever uses the value, or an item or
attribute of it, as a tensor has one with that graph.  What a loader yields is *plain*: if it is a tensor, it has no graph.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

from gradsight.interp.path_state import PathEnded, PathState
from gradsight.interp.paths.importing import Importing
from gradsight.interp.paths.roles import (
    deeds_of,
    is_constant_name,
    is_source_name,
    key_of,
    last_part,
    only_watches,
)
from gradsight.interp.python.builtins import Builtins
from gradsight.interp.python.contexts import Contexts
from gradsight.interp.python.iteration import ROUNDS_WHEN_UNKNOWN
from gradsight.interp.python.open_keywords import all_given
from gradsight.interp.syntax import statement_around
from gradsight.interp.tensors.tensor_api import TensorApi
from gradsight.model.library_objects import Optimizer
from gradsight.model.name_hints import suggests
from gradsight.model.tensors import Edge, Maybe, Node, Tensor, any_requires_grad
from gradsight.model.unfinished import leave_unfinished
from gradsight.model.values import (
    ClassValue,
    External,
    Function,
    Instance,
    Layer,
    Mapping,
    Number,
    Seq,
    Slice,
    Unknown,
    Value,
)

PURSE_STATE = ("frame", "node", "grad_mode", "inference", "autocast", "mode_site")
"""What is as it was when a purse is spent in the middle of something."""
OF_LOADER = "data of a loader"
"""Why the items of what a program loops over as data are not known; they are leaves."""
PARTS_PER_RECEIVER = 4
FAR_PARTS = 2
"""A part of a model that another file makes may cost one part in so many of what is left, so that the others are made, too."""
MOST_ALIKE = 4
"""Parts that one call makes one after the other before they repeat."""
PYTHON_METHODS = {"items", "keys", "values", "get", "pop", "append", "update", "copy", "split", "index", "count", "sort", "format", "type", "size", "extend", "insert", "remove", "clear", "join", "replace", "strip", "add", "train", "eval", "apply", "to"}  # fmt: skip
"""Methods that other objects than tensors have, too."""


DESCRIBING = frozenset({
    "device", "dim", "dtype", "element_size", "get_device", "grad_fn", "is_contiguous", "is_cuda", "itemsize", "layout", "names", "ndim",
    "nelement", "numel", "shape", "size", "stride",
})  # fmt: skip
"""What tells about a tensor and is none."""


class UnknownGraphs(Importing):
    """A machine that follows graphs through code that is not known."""

    def __init__(self, path: PathState) -> None:
        super().__init__(path)
        self.making: Literal["", "whole", "part"] = ""
        """Whether the `__init__` of the object that a method is executed on is running, or that of a part of it."""
        self.parts_made: dict[tuple[ast.AST, ClassValue, int], list[Value]] = {}
        """The parts that each call in that `__init__` has made so far."""
        self.whole_parts: dict[tuple[Value, ...], Value] = {}
        """A part that was made to its end, for each class and what its arguments say of its structure."""

    @contextmanager
    def purse(self, amount: int) -> Iterator[None]:
        """Execute something that may cost so much: when that is spent, what follows the block goes on as if it were over."""
        path = self.path
        before = {name: getattr(path, name) for name in PURSE_STATE}
        own, early = path.budget, path.ended_early
        path.budget = given = min(amount, own)
        try:
            yield
        except PathEnded:
            if path.budget >= 0 or own <= amount:
                raise
            path.ended_early = early
            for name, value in before.items():
                setattr(path, name, value)
        finally:
            path.budget = own - (given - max(0, path.budget)) if own > amount else path.budget

    def assumed_tensor(self, value: Unknown) -> Tensor | None:
        """The tensor that an unknown argument is taken for, if assumptions about it are allowed."""
        if value.tensor is not None or value.hint:
            return value.tensor
        if value.graph is not None:
            return self.tensor_of(value)
        if value.plain:
            value.tensor = Tensor(self.path.site(), dtype="?")
            value.tensor.cuts = value.cuts
            # What a loader yields is a leaf.
            value.tensor.leaf_made = value.reason == OF_LOADER
            return value.tensor
        if value.argument and self.path.assuming:
            tensor = Tensor(self.path.site())
            tensor.label = value.argument
            premise = Maybe(f"`{value.argument}` carries a graph and `backward()` is called on the result")
            tensor.requires_grad = premise
            tensor.node = Node("argument", tensor.site, [], premise, self.path.tick)
            value.tensor = tensor
        return value.tensor

    def tensor_of(self, value: Unknown) -> Tensor:
        """The tensor that an unknown value with a graph is, once it is used as one."""
        if value.tensor is None:
            assert value.graph is not None
            value.tensor = Tensor(value.graph.site, node=value.graph, requires_grad=value.graph.requires)
            value.tensor.cuts = value.cuts
            # The code that returned it may have saved it, too.
            value.tensor.counter.kept = value.tensor.counter.version
        return value.tensor

    def as_graph_tensor(self, value: Value) -> Tensor | None:
        if isinstance(value, Tensor):
            return value
        return self.tensor_of(value) if isinstance(value, Unknown) and value.graph is not None else None

    def graphs_in(self, args: list[Value], kwargs: dict[str, Value]) -> list[Tensor]:
        """The tensors of a graph among arguments, also where they are unknown values that bring one."""
        found: list[Tensor] = []
        todo = [(value, 0) for value in all_given(args, kwargs)]
        while todo:
            value, depth = todo.pop()
            if isinstance(value, Tensor):
                if value.needs_grad() is not False:
                    found.append(value)
            elif isinstance(value, Unknown):
                tensor = value.tensor if value.tensor is not None else None
                if tensor is None and (value.graph is not None or (value.argument and self.path.assuming)):
                    tensor = self.assumed_tensor(value)
                if tensor is not None and tensor.needs_grad() is not False:
                    found.append(tensor)
            elif isinstance(value, (Seq, Mapping)) and depth < 3:
                items = value.items if isinstance(value, Seq) else [*value.items.values(), *value.rest]
                todo.extend((item, depth + 1) for item in items[:16])
            elif isinstance(value, Instance) and value.cls.kind in ("tuple", "data") and depth < 3:
                todo.extend((item, depth + 1) for item in value.attributes.values())
        return found

    def give_graph(
        self, result: Unknown, tensors: list[Tensor], name: str, node: ast.AST, premise: str
    ) -> None:
        """Make an unknown value depend on tensors, as far as the grad mode lets it."""
        site = self.path.site(node)
        for tensor in tensors:
            result.cuts = result.cuts | tensor.cuts
        flag = any_requires_grad([tensor.needs_grad() for tensor in tensors])
        if flag is False or not tensors:
            return
        if not self.path.grad_mode or self.path.inference:
            result.plain = True
            result.cuts = result.cuts | self.autograd.mode_cut(
                name, [("", tensor) for tensor in tensors], site
            )
            return
        edges: list[Edge] = [edge for tensor in tensors if (edge := tensor.edge()) is not None]
        # What unknown code records, it records after whatever was done before it is called.
        self.path.tick += 1
        made = Node(name.rpartition(".")[2], site, edges, flag, self.path.tick)
        made.holds = "sometimes"
        made.operands = list(tensors)
        made.premise = premise
        self.path.told_premises.add(premise)
        for tensor in tensors:
            counter = tensor.counter
            if counter.kept is None:
                counter.kept = counter.version
        result.graph, result.plain = made, False

    def open_to_parts(self, result: Value, args: list[Value], kwargs: dict[str, Value]) -> None:
        """`g.pos.requires_grad_(); energy = model(g)`: what got an object may depend on the tensors that the path knows in it."""
        if (
            isinstance(result, Unknown)
            and result.graph is not None
            and any(map(brings_parts, all_given(args, kwargs)))
        ):
            result.graph.open = True

    def may_fill(self, args: list[Value], callee: str, node: ast.AST) -> None:
        """`collect(out, parts)`: a call whose result nobody takes may write what has a graph into what has none."""
        statement = statement_around(node, self.path.frame)
        if not isinstance(statement, ast.Expr) or statement.value is not node:
            return
        for value in args:
            if isinstance(value, Tensor) and value.requires_grad is False and not value.is_parameter:
                value.requires_grad = Maybe(f"`{callee}` writes a graph into it", weak=True)

    def argument_as_tensor(self, receiver: Unknown, name: str) -> Tensor | None:
        """An unknown argument on which a tensor method is called."""
        if name in PYTHON_METHODS or self.path.table.find(f"Tensor.{name}") is None:
            return None
        if receiver.graph is not None or receiver.plain or (receiver.argument and self.path.assuming):
            return self.assumed_tensor(receiver)
        return None

    def is_spoken_of_as_tensor(self, name: str) -> bool:
        scopes = self.scopes_of(name)
        return any(remembered_losses(scope, name) for scope in scopes)

    def comes_from_source(self, value: Unknown) -> bool:
        """Whether a loop goes over what is named after data: `for x, y in enumerate(self.train_loader)`."""
        node = self.path.node
        over = node.iter if isinstance(node, (ast.For, ast.AsyncFor)) else node
        while isinstance(over, ast.Call) and over.args:
            over = over.args[0]
        key = key_of(over)
        return bool(key) and is_source_name(key)

    def are_all_plain(self, values: list[Value]) -> bool:
        """Whether all of these are known to carry no graph, and one is a tensor."""
        tensors = [
            value
            for value in values
            if isinstance(value, Tensor) or (isinstance(value, Unknown) and value.plain)
        ]
        return bool(tensors) and all(
            value is None
            or isinstance(value, (Tensor, Number, int, float, str))
            or (isinstance(value, Unknown) and value.plain)
            for value in values
        )


class UnknownGraphsLanguage(Contexts):
    """What UnknownGraphs adds to the language."""

    is_far = False
    """Whether a call into another file is being executed."""

    def bind(self, name: str, value: Value) -> None:
        if type(value) is Unknown and value.graph is not None and self.entry.is_spoken_of_as_tensor(name):
            value = self.entry.tensor_of(value)
        super().bind(name, value)

    def private_value(self, names: dict[str, Value], name: str, value: Value) -> Value:
        if type(value) is Unknown and (value.graph is not None or value.tensor is not None):
            found = self.path.private.get((id(names), name))
            if found is None:
                found = self.path.private[id(names), name] = Unknown(value.reason, value.hint)
                found.carries = True
            return found
        return super().private_value(names, name, value)

    def instantiate(self, cls: ClassValue, args: list[Any], kwargs: dict[str, Any], node: ast.AST) -> Any:
        """A part of the object that a method is executed on costs at most a share; what is left undone in it is not known.

        It is taken for another part of its class if the arguments of the two differ in numbers alone.  Of a stack of blocks those of a later round are taken for the ones made two rounds before.
        """
        entry, path = self.entry, self.path
        owner = path.frame.receiver
        # What a function makes in another file is a new model each time it is called; the parts of a module are its own.
        is_part = self.is_far and isinstance(owner, Instance) and owner.module is not None
        if (not entry.making and not is_part) or cls.kind != "module":
            return super().instantiate(cls, args, kwargs, node)
        alike = entry.parts_made.setdefault((node, cls, id(owner)), [])
        structure = (cls, *structure_of(args, kwargs))
        if len(alike) >= MOST_ALIKE:
            alike.append(alike[-2])
            return alike[-1]
        if entry.making == "part" or path.budget < 2 * PARTS_PER_RECEIVER:
            alike.append(super().instantiate(cls, args, kwargs, node))
            return alike[-1]
        place = len(path.modules_made)
        part: Any = None
        making = entry.making
        with entry.purse(path.budget // (PARTS_PER_RECEIVER if making else FAR_PARTS)):
            entry.making = "part"
            try:
                part = super().instantiate(cls, args, kwargs, node)
            finally:
                entry.making = making
        if part is None:
            part = path.modules_made[place]
            leave_unfinished(part)
        model = entry.whole_parts.get(structure)
        if not getattr(part, "open", True):
            entry.whole_parts[structure] = part
        elif model is not None:
            part = of_unknown_size(self.libraries.deep_copy(model, node, {}))
        alike.append(part)
        return part


class UnknownGraphsObjects(Builtins):
    """What UnknownGraphs adds to objects."""

    def set_item(self, owner: Value, index: Value, value: Value, node: ast.AST) -> None:
        if type(owner) is Unknown and owner.tensor is None and indexes_tensor(index):
            if owner.graph is not None or (owner.argument and self.path.assuming):
                self.entry.assumed_tensor(owner)
        super().set_item(owner, index, value, node)

    def set_attribute(
        self, owner: Value, name: str, value: Value, node: ast.AST, augmented: bool = False
    ) -> None:
        if name == "requires_grad" and type(owner) is Unknown and owner.plain:
            self.entry.assumed_tensor(owner)
        super().set_attribute(owner, name, value, node, augmented)

    def unknown_attribute(self, owner: Unknown, name: str, node: ast.AST) -> Value:
        if name == "grad" and owner.plain and owner.reason == OF_LOADER:
            # It requires no gradient until somebody asks for one.
            tensor = self.entry.assumed_tensor(owner)
            if tensor is not None:
                return self.autograd.tensor_attribute(tensor, name, node)
        found = super().unknown_attribute(owner, name, node)
        if type(found) is Unknown and name in DESCRIBING:
            found.graph, found.carries, found.plain = None, False, False
        elif type(found) is Unknown and found.graph is not None and suggests("places", name):
            # Places are whole numbers, which carry no graph: `pooled.edge_index`.
            found.graph, found.plain = None, True
        return found

    def builtin_range(self, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> Value:
        """What a loop counts up to is a number; what was derived from it before was derived from something unknown."""
        for value in args:
            if type(value) is Unknown and not (value.hint or value.answers or value.graph or value.tensor):
                value.hint = "number"
        return super().builtin_range(args, kwargs, node)

    def iterate(self, value: Value, at_least: int = 0) -> tuple[Iterator[Value], int | None]:
        if type(value) is Unknown and value.graph is None and value.tensor is None:
            is_source = self.entry.comes_from_source(value)
            value.plain = value.plain or is_source
            if value.reason == OF_LOADER or (
                is_source and isinstance(self.path.node, (ast.For, ast.AsyncFor))
            ):
                for index in range(max(at_least, ROUNDS_WHEN_UNKNOWN)):
                    value.derived(("item", index), OF_LOADER)
        found: tuple[Iterator[Any], int | None] = super().iterate(value, at_least)
        return found


class UnknownGraphsAutograd(TensorApi):
    """What UnknownGraphs adds to autograd."""

    def augment(self, node: ast.AugAssign, current: Value, operand: Value) -> Value:
        if type(current) is Unknown and current.graph is not None:
            current = self.entry.tensor_of(current)
        is_unknown = type(operand) is Unknown and operand.tensor is None
        is_graphless = is_unknown or (type(operand) is Unknown and operand.plain)
        if is_graphless and type(current) is Unknown and current.hint == "number":
            # What is declared to be a number stays one.
            super().augment(node, current, Unknown("a count", "number"))
            return Unknown("a count", "number")
        if type(operand) is Unknown and operand.graph is not None:
            if is_unknown and is_constant_name(last_part(key_of(node.value))):
                operand = Unknown("a count", "number")
            else:
                operand = self.entry.tensor_of(operand)
        return super().augment(node, current, operand)


def brings_parts(value: Value, depth: int = 0) -> bool:
    """Whether an attribute or item of what is not known was used as a tensor that has a graph or requires grad."""
    if not isinstance(value, Unknown) or value.answers is None:
        return False
    parts = [part for key, part in value.answers.items() if type(key) is tuple and key[0] in ("attr", "item")]
    found = [part.tensor if isinstance(part, Unknown) else part for part in parts]
    if any(isinstance(part, Tensor) and part.needs_grad() is not False for part in found):
        return True
    return depth < 3 and any(brings_parts(part, depth + 1) for part in parts)


def may_be_one(result: Tensor, args: list[Value]) -> None:
    """A dropout with a probability of 0 returns what it was given: a write to either of them is not called safe."""
    for tensor in (result, *(value for value in args if isinstance(value, Tensor))):
        if tensor.counter.kept is None:
            tensor.counter.kept = tensor.counter.version


def default_function(node: ast.AST | None, args: list[Value], kwargs: dict[str, Value]) -> Function | None:
    """`FUNCTIONS.get(key, default)`, `TABLE.get_interface(key, default)`: the function that is given as a default."""
    given = [*args, *kwargs.values()]
    method = getattr(getattr(node, "func", None), "attr", "")
    if not method.startswith("get") or len(given) != 2:
        return None
    return given[1] if isinstance(given[1], Function) else None


def structure_of(args: list[Value], kwargs: dict[str, Value]) -> tuple[Any, ...]:
    """What arguments say of the structure of a part: all but the numbers, which are sizes."""
    named = [*enumerate(args), *sorted(kwargs.items())]
    return tuple((key, kind) for key, value in named if (kind := _kind_of(value)) is not None)


def _kind_of(value: Value) -> Any:
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, (int, float, Number, Unknown)):
        return None
    if isinstance(value, Seq):
        return (value.kind, *map(_kind_of, value.items))
    if isinstance(value, Mapping):
        return ("mapping", *((key, _kind_of(item)) for key, item in value.items.items()))
    return value.path if isinstance(value, External) else id(value)


def of_unknown_size(part: Value) -> Value:
    """A copy of another part, of which the sizes are not known."""
    todo, seen = [part], set()
    while todo:
        value = todo.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, Tensor):
            value.shape = None
        elif isinstance(value, (Instance, Layer)):
            named: list[dict[str, Value]] = [value.attributes]
            if isinstance(value, Layer):
                named.append(value.options)
            for names in named:
                for name, item in names.items():
                    if isinstance(item, (int, float)) and not isinstance(item, bool):
                        names[name] = Unknown("a size", "number")
            todo.extend(value.attributes.values())
        elif isinstance(value, Seq):
            todo.extend(value.items)
        elif isinstance(value, Mapping):
            todo.extend(value.items.values())
    return part


def indexes_tensor(index: Value) -> bool:
    """Whether only a tensor (or an array) is indexed like this: `x[:, 0]`, `x[..., None]`, `x[mask]`."""
    if isinstance(index, Seq):
        return index.kind == "tuple" and any(
            isinstance(part, (Slice, Tensor)) or part is Ellipsis or part is None for part in index.items
        )
    return index is Ellipsis or index is None or isinstance(index, Tensor)


def remembered_losses(scope: ast.AST, name: str) -> bool:
    """Whether a text differentiates a name, or reads a number from it: it is a tensor."""
    done = deeds_of(scope).done_to(name)
    return "backward" in done or "item" in done or "detach" in done


def spoken_callee(node: ast.AST | None) -> str:
    """How the text names what it calls: of what a name picks, `getattr(schedulers, name)(...)`, where it is picked from."""
    called = getattr(node, "func", None)
    if isinstance(called, ast.Call) and called.args and key_of(called.func) == "getattr":
        called = called.args[0]
    elif isinstance(called, ast.Subscript):
        called = called.value
    return key_of(called) or "unknown code"


def not_watched(
    callee: str, args: list[Value], kwargs: dict[str, Value]
) -> tuple[list[Value], dict[str, Value]]:
    """What unknown code may change of what it is given: one that evaluates, logs or saves leaves modules and optimizers.

    To watch a module it may have put hooks on it.
    """
    if not only_watches(callee):
        return args, kwargs
    for value in [*args, *kwargs.values()]:
        if isinstance(value, (Instance, Layer)) and value.module is not None:
            value.escaped = True
    kept = {name: value for name, value in kwargs.items() if not is_trained(value)}
    return [value for value in args if not is_trained(value)], kept


def is_trained(value: Value) -> bool:
    """Whether a value is a module or an optimizer."""
    is_module = isinstance(value, (Instance, Layer)) and value.module is not None
    return is_module or isinstance(value, Optimizer)
