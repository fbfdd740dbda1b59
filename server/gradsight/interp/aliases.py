"""Aliases taken for copies: two names for one tensor, snapshots that follow their source, arguments that a callee changes."""

from __future__ import annotations

import ast
from typing import Any

from gradsight.interp.flow import Flow
from gradsight.interp.syntax import mentions_attribute, names_read, statement_around, written_name
from gradsight.model.events import Step
from gradsight.model.sites import Frame, Site
from gradsight.model.tensors import Storage, Tensor
from gradsight.model.values import MISSING, Function, Mapping, Seq, tensors_in


class Aliases(Flow):
    """Reads that come after a write under another name."""

    same_tensor: list[SharedNames]

    # -- snapshots ---------------------------------------------------------------------------------------------------

    def snapshot_read(self, tensor: Tensor, writes: list[Any], kind: str, site: Site) -> None:
        if not writes or (not tensor.label and kind != "state_dict" and not self.beside_its_source):
            return
        write = writes[0]
        if kind == "slice" and tensor.label and shows_blank(tensor):
            # There was nothing to put aside yet: the name is there to follow what is written.
            return
        if kind in ("detach", "data"):
            source = tensor.source
            while source is not None and source.snapshot and source.source is not None:
                source = source.source
            if source is None or not (source.is_parameter or source.leaf_made or source.node is not None):
                return
            if write.mode == "silent" and write.op == "data assignment":
                return
        by_hand = write.mode in ("graph", "no_grad", "silent") and write.op not in (
            "load_state_dict",
            "optimizer step",
        )
        place = write.site if by_hand else tensor.site
        other = (
            Step("made", tensor.site, f"{KIND_WORDS[kind]} shares memory with its source")
            if by_hand
            else Step("written", write.site, f"{write.op} writes the source here")
        )
        steps = [other, Step("read", site, "read here, with the new value"), *self.call_steps(place)]
        self.emit(
            "alias-read-after-write",
            place,
            steps,
            how="exchange" if kind == "slice" and not tensor.label else kind,
            write=write.op,
            target=tensor.label,
            alias=tensor.label or self.text_of_alias(tensor),
            written=self.text_of_target(write.site),
        )

    def text_of_alias(self, tensor: Tensor) -> str:
        """How an alias without a name is written: `p.detach()`, `p.data`."""
        source = self.text_of_target(tensor.site) if isinstance(tensor.site.node, ast.Call) else ""
        if tensor.snapshot == "detach" and source:
            return f"{source}.detach()"
        return source_text(tensor.site.node)

    def read_after_write(self, tensor: Tensor, node: ast.AST) -> None:
        if tensor.snapshot == "grad" and tensor.grad_of is not None:
            clips = [w for w in tensor.storage.writes if w.epoch > tensor.born_epoch and w.op in CLIPPING]
            statement = statement_around(node, self.frame) if clips else None
            if statement is not None and mentions_attribute(statement, "grad"):
                # A kept gradient beside a fresh one: the two are taken for before and after.
                steps = [
                    Step("written", clips[0].site, f"{clips[0].op} changes it here"),
                    Step("read", self.site(node), "held against the gradient itself here"),
                ]
                self.emit(
                    "grad-alias-overwritten",
                    tensor.site,
                    steps,
                    target=tensor.grad_of.label,
                    write=clips[0].op,
                    alias=tensor.label,
                )
        super().read_after_write(tensor, node)

    def make_view(self, source: Tensor, output: Any, op: str, site: Site) -> Tensor:
        """A view, or a detached alias, of a gradient follows it as the gradient's own name does."""
        result = super().make_view(source, output, op, site)
        if source.snapshot == "grad":
            result.snapshot, result.grad_of = "grad", source.grad_of
        return result

    def entries_are_one(self, tensor: Tensor, write: Any, stored: Site, node: ast.AST) -> None:
        """What a generator yields again and again is to be copied in the generator."""
        function = write.site.frame.function
        if (
            function is not None
            and (function.attributes or {}).get("yields")
            and function is not stored.frame.function
        ):
            stored = write.site
        super().entries_are_one(tensor, write, stored, node)

    def operands_of(self, bound: dict[str, Any], node: ast.AST) -> Any:
        self.compare_with_source(bound, node)
        for value in bound.values():
            if type(value) is Tensor and value.storage.writes:
                if value.node is not None:
                    self.check_written_through_alias(value, node)
                elif self.averaged and value.storage in self.averaged and not value.snapshot:
                    self.model_changed_by_state(value, node)
            elif type(value) is Seq:
                for item in value.items[:16]:
                    if type(item) is Tensor and item.node is not None and item.storage.writes:
                        self.check_written_through_alias(item, node)
        return super().operands_of(bound, node)

    beside_its_source = False
    """Whether an alias is being read together with what it is an alias of."""

    def compare_with_source(self, bound: dict[str, Any], node: ast.AST) -> None:
        """A kept alias without a name of its own, held against its source: the two can only be equal."""
        tensors = [value for value in bound.values() if type(value) is Tensor]
        for old in tensors if len(tensors) == 2 else ():
            if old.snapshot in ("detach", "data") and not old.label and old.storage.epoch != old.born_epoch:
                other = tensors[1] if old is tensors[0] else tensors[0]
                if other.storage is old.storage and (
                    other is old.source or other.born_epoch != old.born_epoch
                ):
                    self.beside_its_source = True
                    self.note_read(old, node)
                    self.beside_its_source = False

    # -- state dicts -------------------------------------------------------------------------------------------------

    averaged: dict[Storage, Any]
    """Memory of a model that was written through its `state_dict()` on the way into another model."""

    def module_load_state_dict(
        self, module: Any, args: list[Any], kwargs: dict[str, Any], node: ast.AST
    ) -> Any:
        self.beside_its_source = True
        result = super().module_load_state_dict(module, args, kwargs, node)
        self.beside_its_source = False
        own = {
            tensor.storage for kind in ("parameter", "buffer") for _, tensor in self.tensors_of(module, kind)
        }
        for alias in tensors_in(args[0]) if args else []:
            if alias.snapshot == "state_dict" and alias.storage not in own:
                write = next((w for w in alias.storage.writes if w.writer.snapshot == "state_dict"), None)
                if write is not None:
                    self.averaged[alias.storage] = write
        return result

    def model_changed_by_state(self, tensor: Tensor, node: ast.AST) -> None:
        """A model is used again after its own weights were overwritten by what was computed in its state dict."""
        write = self.averaged.pop(tensor.storage)
        steps = [
            Step("made", write.writer.site, "state_dict() gives the model's own memory"),
            Step("read", self.site(node), "the model is used here, changed"),
            *self.call_steps(write.site),
        ]
        self.emit(
            "alias-read-after-write",
            write.site,
            steps,
            how="state",
            write=write.op,
            target=tensor.label,
            alias="state_dict()",
            written=self.text_of_target(write.site),
        )

    shared_data: dict[Storage, tuple[Tensor, Site]]
    """Memory of parameters that `.data = other.data` made the memory of another parameter: whose, and where."""

    def assign_data(self, tensor: Tensor, value: Any, site: Site) -> None:
        super().assign_data(tensor, value, site)
        self.shared_data.pop(tensor.storage, None)
        owner = value.source if isinstance(value, Tensor) and value.snapshot in ("data", "detach") else value
        if isinstance(owner, Tensor) and owner.is_parameter and tensor.is_parameter and owner is not tensor:
            self.shared_data[tensor.storage] = (owner, site)

    def check_shared_data(self, target: Tensor, op: str, site: Site) -> None:
        """One of two parameters on one memory is written by hand: the other one changes with it."""
        shared = self.shared_data.get(target.storage)
        if shared is None or op in ("data assignment", "load_state_dict", "optimizer step"):
            return
        del self.shared_data[target.storage]
        owner, place = shared
        steps = [
            Step("written", site, f"{op} changes both parameters here"),
            *self.call_steps(place),
        ]
        self.emit(
            "alias-read-after-write",
            place,
            steps,
            how="shared",
            write=op,
            target=owner.label,
            alias=target.label,
            written=self.text_of_target(site),
        )

    def check_written_through_alias(self, tensor: Tensor, node: ast.AST) -> None:
        """A tensor of the graph is read after a write through its `detach()` or `.data` alias."""
        if tensor.storage.epoch == tensor.born_epoch or not self.grad_mode or tensor.snapshot:
            return
        for write in tensor.storage.writes:
            if write.epoch <= tensor.born_epoch or write.mode == "accumulate" or write.site.node is node:
                continue
            alias = named_alias(write.writer, tensor)
            if alias is not None:
                steps = [
                    Step(
                        "made",
                        alias.site,
                        f"{alias.snapshot} shares memory with {tensor.label or 'its source'}",
                    ),
                    Step("read", self.site(node), "the source is read here, with the new value"),
                    *self.call_steps(write.site),
                ]
                self.emit(
                    "alias-read-after-write",
                    write.site,
                    steps,
                    how="source",
                    write=write.op,
                    target=tensor.label,
                    alias=alias.label or self.text_of_target(write.site),
                    written=self.text_of_target(write.site),
                )
                return

    def set_item(self, owner: Any, index: Any, value: Any, node: ast.AST) -> None:
        super().set_item(owner, index, value, node)
        if isinstance(owner, Mapping) and isinstance(value, Tensor):
            storage = value.storage
            site = value.kept_at = self.site(node)
            self.entry_epochs[id(owner), self.mapping_key(index)] = storage.epoch
            storage.stores = [*(storage.stores or []), (id(owner), storage.epoch, site)]
            self.kept_alive.append(owner)
            if self.mapping_key(index) is MISSING:
                self.stored_somewhere.add(site.key)

    entry_epochs: dict[tuple[int, Any], int]
    """For dicts, by key: the epoch of a tensor's memory when it was put there."""
    stored_somewhere: set[Any]
    """Places that put a tensor into a dict under a key that is not known."""

    # -- two names for one tensor ------------------------------------------------------------------------------------

    def do_assign(self, node: ast.Assign) -> Any:
        # `a[0], a[1] = a[1], a[0]`: what stands on the right are views, and the first assignment writes into one.
        self.beside_its_source = exchanges_items(node)
        status = super().do_assign(node)
        self.beside_its_source = False
        if isinstance(node.value, ast.Name) or len(node.targets) > 1:
            self.note_names(node)
        return status

    def note_names(self, node: ast.Assign) -> None:
        """`a = b` and `a = b = value`: two names for one tensor."""
        names = [target.id for target in node.targets if isinstance(target, ast.Name)]
        newer = frozenset(names) if isinstance(node.value, ast.Name) else NO_NAMES
        if isinstance(node.value, ast.Name):
            names.append(node.value.id)
        if len(names) < 2:
            return
        tensor = self.frame.namespace.get(names[0])
        if isinstance(tensor, Tensor) and not (tensor.is_leaf and tensor.requires_grad is not False):
            if newer and is_blank(tensor):
                # Both names are for what will be put into it.
                return
            self.same_tensor.append(SharedNames(self.frame, tensor, names, newer, self.site(node)))

    def write_tensor(
        self, target: Tensor, op: str, site: Site, others: list[Tensor], *rest: Any, **options: Any
    ) -> Any:
        node = super().write_tensor(target, op, site, others, *rest, **options)
        if self.shared_data:
            self.check_shared_data(target, op, site)
        if self.same_tensor and site.frame is self.frame and target.storage.writes[-1].mode in BY_HAND:
            rescaled = op in RESCALING and not others and options.get("region") is None
            self.other_names_changed(target, site, rescaled)
        return node

    def other_names_changed(self, target: Tensor, site: Site, rescaled: bool) -> None:
        """An in-place write under one name changes what the other names mean.

        A plain rescaling under the newer name is a renaming more often than a mistake: it counts only where both names
        are used side by side.
        """
        frame = self.frame
        for shared in self.same_tensor:
            if shared.frame is not frame or shared.tensor.storage is not target.storage:
                continue
            name = next((name for name in names_written(site.node) if name in shared.names), "")
            if not name or frame.namespace.get(name) is not shared.tensor:
                continue
            for other in shared.names:
                if other != name and frame.namespace.get(other) is shared.tensor:
                    if frame.stale is None:
                        frame.stale = {}
                    renamed = rescaled and name in shared.newer
                    frame.stale[other] = StaleName(target.storage.writes[-1], shared.site, name, renamed)

    def call_function(self, function: Any, args: list[Any], kwargs: dict[str, Any], node: ast.AST) -> Any:
        start = self.tick
        result = super().call_function(function, args, kwargs, node)
        if isinstance(result, Tensor) and result.storage.writes and result.storage.writes[-1].tick > start:
            custom = function.owner is not None and function.owner.kind == "autograd"
            asked = isinstance(node, ast.Call) and asks_for_inplace(node, function)
            if isinstance(node, ast.Call) and not function.name.endswith("_") and not custom and not asked:
                self.check_mutated_argument(node, result, start)
        return result

    def check_mutated_argument(self, call: ast.Call, result: Tensor, start: int) -> None:
        """`y = f(x)` where f wrote into x and returned it: both names now mean the changed tensor."""
        frame = self.frame
        statement = statement_around(call, frame)
        if isinstance(statement, ast.Expr) and statement.value is call:
            return
        for argument in call.args:
            if not isinstance(argument, ast.Name):
                continue
            given = frame.namespace.get(argument.id)
            if not isinstance(given, Tensor) or given.storage is not result.storage:
                continue
            for write in result.storage.writes:
                if write.tick > start and write.site.frame.depth > frame.depth and write.mode in BY_HAND:
                    if frame.stale is None:
                        frame.stale = {}
                    frame.stale[argument.id] = StaleName(write, self.site(call), "the result", False)
                    break

    def stale_name_read(self, name: str, node: ast.AST) -> None:
        frame = self.frame
        if frame.stale is None:
            return
        stale: StaleName = frame.stale[name]
        write = stale.write
        value = frame.namespace.get(name)
        if not isinstance(value, Tensor) or value.storage is not write.writer.storage:
            del frame.stale[name]
            return
        statement = statement_around(node, frame)
        if statement is not None:
            if asks_about_shape(node, statement):
                return
            if stale.renamed and stale.written not in names_read(statement):
                return
            if returns_argument(name, statement, frame):
                # The caller is handed back what it gave to be filled.
                return
        del frame.stale[name]
        inside = write.site.frame is not frame
        told = f"{stale.written} and {name} become one tensor here"
        if inside:
            told = f"the result is kept as {stale.written} here"
        steps = [
            Step("call" if inside else "made", stale.site, told),
            Step("read", self.site(node), f"{name} is read here, changed"),
        ]
        self.emit(
            "alias-read-after-write",
            write.site,
            steps,
            how="argument" if inside else "name",
            write=write.op,
            target=name,
            alias=stale.written,
            written=self.text_of_target(write.site),
        )


class SharedNames:
    """Names of one frame that were bound to one tensor; `newer` are those that were bound to an older name."""

    __slots__ = ("frame", "names", "newer", "site", "tensor")

    def __init__(
        self, frame: Frame, tensor: Tensor, names: list[str], newer: frozenset[str], site: Site
    ) -> None:
        self.frame = frame
        self.tensor = tensor
        self.names = names
        self.newer = newer
        self.site = site


class StaleName:
    """A name whose tensor was written under another one.  `renamed`: the write may be no more than a new name's start."""

    __slots__ = ("renamed", "site", "write", "written")

    def __init__(self, write: Any, site: Site, written: str, renamed: bool) -> None:
        self.write = write
        self.site = site
        self.written = written
        self.renamed = renamed


NO_NAMES: frozenset[str] = frozenset()
CLIPPING = ("clip_grad_norm_", "clip_grad_value_")
BY_HAND = ("graph", "no_grad")
RESCALING = {"mul_", "div_", "add_", "sub_", "neg_", "true_divide_"}
ABOUT_SHAPE = {
    "shape",
    "size",
    "dim",
    "ndim",
    "numel",
    "device",
    "dtype",
    "requires_grad",
    "is_leaf",
    "grad_fn",
    "stride",
}
KIND_WORDS = {
    "detach": "detach()",
    "data": ".data",
    "state_dict": "state_dict()",
    "slice": "this slice",
    "grad": ".grad",
}


def is_blank(tensor: Tensor) -> bool:
    """Whether a tensor has just been made to be filled: nothing was put into it yet."""
    call = tensor.site.node
    name = getattr(call.func, "attr", "") if isinstance(call, ast.Call) else ""
    return not tensor.storage.writes and name.removeprefix("new_").removesuffix("_like") in ("zeros", "empty")


def shows_blank(view: Tensor) -> bool:
    """Whether a view was taken of memory that had just been made and held one constant."""
    source = view.source
    made = source.site.node if source is not None else None
    return (
        isinstance(made, ast.Call)
        and isinstance(made.func, ast.Attribute)
        and made.func.attr.removeprefix("new_").removesuffix("_like") in ("zeros", "empty", "ones", "full")
        and all(write.epoch > view.born_epoch for write in view.storage.writes)
    )


def returns_argument(name: str, statement: ast.AST, frame: Frame) -> bool:
    """Whether a statement returns, as it is, what the function was given under this name."""
    if not isinstance(statement, ast.Return) or frame.function is None:
        return False
    value = statement.value
    returned = value.elts if isinstance(value, ast.Tuple) else [value]
    return any(isinstance(part, ast.Name) and part.id == name for part in returned) and any(
        isinstance(inner, ast.arg) and inner.arg == name for inner in ast.walk(frame.function.node.args)
    )


def asks_for_inplace(call: ast.Call, function: Function) -> bool:
    """Whether a call asks for its argument to be changed: `inplace=True`, by name or by position, or an argument `out`."""
    named = function.node.args
    parameters = [argument.arg for argument in [*named.posonlyargs, *named.args]]
    if parameters[:1] in (["self"], ["cls"]):
        del parameters[0]
    given = [*zip(parameters, call.args), *((keyword.arg, keyword.value) for keyword in call.keywords)]
    return any(
        name == "out"
        or (name in ("inplace", "in_place") and not (isinstance(value, ast.Constant) and not value.value))
        for name, value in given
    )


def source_text(node: ast.AST) -> str:
    """The text of a short expression; empty for a long one."""
    text = ast.unparse(node)
    return text if len(text) <= 40 else ""


def exchanges_items(node: ast.Assign) -> bool:
    """Whether several items are assigned at once from an equally long display."""
    first = node.targets[0]
    return (
        isinstance(first, ast.Tuple)
        and isinstance(node.value, ast.Tuple)
        and sum(isinstance(element, ast.Subscript) for element in first.elts) > 1
    )


def names_written(node: ast.AST) -> list[str]:
    """The names through which an in-place statement may write: its target, or what a function gets."""
    name = written_name(node)
    names = [name] if name else []
    if isinstance(node, ast.Call):
        names += [argument.id for argument in node.args if isinstance(argument, ast.Name)]
        names += [keyword.value.id for keyword in node.keywords if isinstance(keyword.value, ast.Name)]
    return names


def asks_about_shape(name: ast.AST, statement: ast.AST) -> bool:
    """Whether a name is loaded only to ask for its shape, its device, or whether it is None."""
    for inner in ast.walk(statement):
        if isinstance(inner, ast.Attribute) and inner.value is name:
            return inner.attr in ABOUT_SHAPE
        if isinstance(inner, ast.Compare) and inner.left is name:
            return isinstance(inner.ops[0], (ast.Is, ast.IsNot))
        if isinstance(inner, ast.Call) and name in inner.args:
            return isinstance(inner.func, ast.Name) and inner.func.id in ("len", "isinstance", "id")
    return False


def named_alias(writer: Tensor | None, source: Tensor) -> Tensor | None:
    """The named `detach`/`.data` alias of `source` through which a write went, if it did."""
    steps = 0
    alias: Tensor | None = None
    named = False
    while writer is not None and steps < 20:
        if writer.snapshot in ("detach", "data"):
            alias = writer
        if writer is source:
            return alias if named else None
        named = named or bool(writer.label) or writer.kept_at is not None
        writer = writer.source
        steps += 1
    return None
