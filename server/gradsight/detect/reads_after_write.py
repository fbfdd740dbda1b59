"""Reads that come too late: a value meant as a copy, used after its memory was written."""

from __future__ import annotations

import ast
from typing import Any

from gradsight.detect.claims import Claims
from gradsight.detect.gradient_flow import is_stand_in
from gradsight.detect.path import Path
from gradsight.detect.wording import quoted_write
from gradsight.interp.syntax import mentions_attribute, names_read, statement_around
from gradsight.interp.tensors.regions import overlaps, surely_overlap
from gradsight.model.events import Step
from gradsight.model.sites import Site
from gradsight.model.tensors import Tensor, Write
from gradsight.model.trace import (
    Assigned,
    Assigning,
    ContainerMade,
    ItemRead,
    Iterated,
    Read,
    StateLoaded,
    StateLoading,
    Used,
)
from gradsight.model.values import Mapping, Seq, tensors_in

CLIPPING = ("clip_grad_norm_", "clip_grad_value_")
KIND_WORDS = {
    "detach": "detach()",
    "data": ".data",
    "state_dict": "state_dict()",
    "slice": "this slice",
    "grad": ".grad",
}
DISPLAYS = (ast.List, ast.ListComp)


class ReadsAfterWrite:
    """What a read means after a write."""

    def __init__(self, path: Path, claims: Claims) -> None:
        self.path = path
        self.claims = claims
        self.beside_its_source = False
        """Whether an alias is being read together with what it is an alias of."""

    # -- together with the source ------------------------------------------------------------------------------------

    def on_assigning(self, fact: Assigning) -> None:
        # `a[0], a[1] = a[1], a[0]`: what stands on the right are views, and the first assignment writes into one.
        self.beside_its_source = exchanges_items(fact.statement)

    concerning = (ast.Tuple,)

    @staticmethod
    def concerned_by(statement: ast.Assign) -> bool:
        return exchanges_items(statement)

    def on_assigned(self, fact: Assigned) -> None:
        self.beside_its_source = False

    def on_state_loading(self, fact: StateLoading) -> None:
        self.beside_its_source = True

    def on_state_loaded(self, fact: StateLoaded) -> None:
        self.beside_its_source = False

    def on_used(self, fact: Used) -> None:
        tensors = [value for value in fact.arguments.values() if type(value) is Tensor]
        if len(tensors) == 2:
            self.compare_with_source(tensors, fact.node)
        for value in tensors:
            if value.base is not None and not value.snapshot and value.label:
                if value.storage.epoch != value.born_epoch:
                    self.read_overwritten_part(value, fact.node)

    def read_overwritten_part(self, view: Tensor, node: ast.AST) -> None:
        """A named part whose place in the memory is not known, read after the very same part was written."""
        writes = [
            write
            for write in view.storage.writes
            if write.epoch > view.born_epoch and write.writer is not view and is_same_part(write, view)
        ]
        self.snapshot_read(view, writes, "slice", self.path.site(node))

    def compare_with_source(self, tensors: list[Tensor], node: ast.AST) -> None:
        """A kept alias without a name of its own, held against its source: the two can only be equal."""
        for old in tensors:
            if old.snapshot in ("detach", "data") and not old.label and old.storage.epoch != old.born_epoch:
                other = tensors[1] if old is tensors[0] else tensors[0]
                if other.storage is old.storage and (
                    other is old.source or other.born_epoch != old.born_epoch
                ):
                    self.beside_its_source = True
                    self.path.tell(Read(old, node))
                    self.beside_its_source = False

    # -- snapshots ---------------------------------------------------------------------------------------------------

    def on_read(self, fact: Read) -> None:
        self.read(fact.value, fact.node)

    def read(self, value: Any, node: ast.AST) -> None:
        """A value is used: if it was meant as a copy and its memory has been written since, say so."""
        if isinstance(value, Tensor):
            if value.snapshot and value.storage.epoch != value.born_epoch:
                self.read_after_write(value, node)
        elif isinstance(value, Seq):
            self.read_repeated(value, node)
            for item in value.items[:64]:
                if isinstance(item, Tensor) and item.snapshot:
                    self.path.tell(Read(item, node))
        elif isinstance(value, Mapping):
            for item in value.items.values():
                if isinstance(item, Tensor) and item.snapshot:
                    self.path.tell(Read(item, node))

    def read_after_write(self, tensor: Tensor, node: ast.AST) -> None:
        self.held_against_clipped(tensor, node)
        kind = tensor.snapshot
        writes = [
            write for write in tensor.storage.writes
            if write.epoch > tensor.born_epoch and not derived_from(write.writer, tensor)
        ]  # fmt: skip
        if not writes:
            return
        site = self.path.site(node)
        if kind == "hook":
            self.hook_input_read(tensor, writes[0], site)
            return
        if kind == "grad":
            writes = [
                write
                for write in writes
                if write.op not in ("clip_grad_norm_", "clip_grad_value_", "unscale_")
            ]
            if writes and tensor.grad_of is not None:
                write = writes[0]
                verb = (
                    "`backward()` adds to it here"
                    if write.mode == "accumulate"
                    else f"{quoted_write(write)} overwrites it here"
                )
                steps = [
                    Step("written", write.site, verb),
                    Step("read", site, "read here, with the new value"),
                ]
                self.claims.add(
                    "grad-alias-overwritten",
                    tensor.site,
                    steps,
                    target=tensor.grad_of.label,
                    write=write.op,
                    alias=tensor.label,
                )
            return
        if kind == "slice":
            writes = [write for write in writes if surely_overlap(write.region, tensor.region)]
        self.snapshot_read(tensor, writes, kind, site)

    def hook_input_read(self, tensor: Tensor, write: Write, site: Site) -> None:
        """A forward hook kept the input of a layer that works in place: what it kept is the layer's result."""
        if write.mode != "graph":
            return
        place = write.site.call if write.site.call is not None else write.site
        steps = [Step("read", site, "what the hook kept is read here: it is the result, not the input")]
        if place is not write.site:
            steps.insert(0, Step("made", write.site, "this layer works in place"))
        self.claims.add(
            "alias-read-after-write", place, [*steps, *self.path.call_steps(place)], how="hook", write=write.op,
            target=self.path.text_of_target(place), alias="the input",
        )  # fmt: skip

    def held_against_clipped(self, tensor: Tensor, node: ast.AST) -> None:
        if tensor.snapshot == "grad" and tensor.grad_of is not None:
            clips = [w for w in tensor.storage.writes if w.epoch > tensor.born_epoch and w.op in CLIPPING]
            statement = statement_around(node, self.path.frame) if clips else None
            if statement is not None and mentions_attribute(statement, "grad"):
                # A kept gradient beside a fresh one: the two are taken for before and after.
                steps = [
                    Step("written", clips[0].site, f"`{clips[0].op}` changes it here"),
                    Step("read", self.path.site(node), "compared with the gradient itself here"),
                ]
                self.claims.add(
                    "grad-alias-overwritten",
                    tensor.site,
                    steps,
                    target=tensor.grad_of.label,
                    write=clips[0].op,
                    alias=tensor.label,
                )

    def snapshot_read(self, tensor: Tensor, writes: list[Any], kind: str, site: Site) -> None:
        if not writes or (
            not tensor.label
            and kind != "state_dict"
            and not self.beside_its_source
            and not self.is_kept_beside_parameter(tensor, site)
        ):
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
            else Step("written", write.site, f"{quoted_write(write)} changes the source here")
        )
        steps = [other, Step("read", site, "read here, with the new value"), *self.path.call_steps(place)]
        self.claims.add(
            "alias-read-after-write",
            place,
            steps,
            how="exchange" if kind == "slice" and not tensor.label else kind,
            write=write.op,
            target=tensor.label,
            alias=tensor.label or self.text_of_alias(tensor),
            written=self.path.text_of_target(write.site),
        )

    def is_kept_beside_parameter(self, tensor: Tensor, site: Site) -> bool:
        """Whether a statement has both, the parameter and what was kept of it: `decay * shadow[name] + rest * p.data`."""
        source = tensor.source
        if tensor.kept_at is None or source is None or not source.is_parameter:
            return False
        statement = statement_around(site.node, site.frame)
        return statement is not None and any(
            site.frame.namespace.get(name) is source for name in names_read(statement)
        )

    def text_of_alias(self, tensor: Tensor) -> str:
        """How an alias without a name is written: `p.detach()`, `p.data`."""
        source = self.path.text_of_target(tensor.site) if isinstance(tensor.site.node, ast.Call) else ""
        if tensor.snapshot == "detach" and source:
            return f"{source}.detach()"
        return source_text(tensor.site.node)

    # -- entries of containers ---------------------------------------------------------------------------------------

    def on_iterated(self, fact: Iterated) -> None:
        self.read_repeated(fact.sequence, fact.node)

    def read_repeated(self, seq: Seq, node: ast.AST) -> None:
        """Entries of a sequence that are one and the same memory, written between the times they were stored."""
        seen: dict[Any, Tensor] = {}
        for item in seq.items:
            for tensor in tensors_in(item, 3):
                storage = tensor.storage
                if storage.stores is None or not storage.writes or tensor.grad_of is not None:
                    continue
                if is_stand_in(tensor.root()) or is_some_part(tensor):
                    # It stands for all parameters of a module, and each entry is another of them; or each is another part.
                    continue
                key = (storage, repr(tensor.region))
                if key not in seen:
                    seen[key] = tensor
                    continue
                stores = self.stores_in(seq, tensor)
                epochs = sorted({epoch for _, epoch, _ in stores})
                writes = [
                    write
                    for write in storage.writes
                    if write.epoch > epochs[0] and overlaps(write.region, tensor.region)
                ]
                displayed = all(isinstance(site.node, DISPLAYS) for _, _, site in stores)
                if writes and (len(epochs) > 1 or (len(stores) > 1 and not displayed)):
                    self.entries_are_one(tensor, writes[0], stores[0][2], node)
                    return

    def stores_in(self, seq: Seq, tensor: Tensor) -> list[Any]:
        """When the memory of a tensor was put into a list; into any other, if this one was made of what others hold."""
        stores = tensor.storage.stores or []
        own = [store for store in stores if store[0] == id(seq)]
        if own and not (len({epoch for _, epoch, _ in own}) == 1 and picks_items(own[0][2].node)):
            return own
        return [store for store in stores if not isinstance(store[2].node, DISPLAYS)] or own or stores

    def on_container_made(self, fact: ContainerMade) -> None:
        """When and where each tensor of a list was put there."""
        made, site = fact.container, fact.container.site
        if not isinstance(made, Seq) or made.kind != "list" or site is None:
            return
        if fact.how == "display":
            for item in made.items:
                if isinstance(item, Tensor):
                    self.note_store(item, made, item.storage.epoch, site)
        elif fact.epochs is not None and made.exact:
            for item, epoch in zip(made.items, fact.epochs):
                if isinstance(item, Tensor) and item.storage.writes:
                    self.note_store(item, made, epoch, site)

    def note_store(self, tensor: Tensor, container: Seq, epoch: int, site: Site) -> None:
        tensor.storage.stores = [*(tensor.storage.stores or []), (id(container), epoch, site)]
        self.path.kept_alive.append(container)

    def on_item_read(self, fact: ItemRead) -> None:
        owner, value = fact.owner, fact.value
        if isinstance(owner, Seq) and isinstance(value, Tensor):
            if value.storage.stores and value.storage.writes and owner.exact:
                self.check_entry(owner, fact.key, value, fact.node)

    def check_entry(self, owner: Seq, index: Any, tensor: Tensor, node: ast.AST) -> None:
        """An entry is read whose memory was written and stored once more after it was stored."""
        same = [
            position
            for position, item in enumerate(owner.items)
            if isinstance(item, Tensor) and item.storage is tensor.storage and item.region == tensor.region
        ]
        stores = [store for store in tensor.storage.stores or () if store[0] == id(owner)]
        if (
            not isinstance(index, int)
            or len(same) < 2
            or len(stores) != len(same)
            or tensor.grad_of is not None
            or is_stand_in(tensor.root())
            or is_some_part(tensor)
        ):
            return
        own, newest = stores[same.index(index % len(owner.items))], stores[-1]
        writes = [
            write
            for write in tensor.storage.writes
            if own[1] < write.epoch <= newest[1] and overlaps(write.region, tensor.region)
        ]
        if writes:
            self.entries_are_one(tensor, writes[0], own[2], node)

    def entries_are_one(self, tensor: Tensor, write: Any, stored: Site, node: ast.AST) -> None:
        written = write.site.node
        if isinstance(stored.node, ast.Subscript):
            if isinstance(statement_around(stored.node, stored.frame), ast.AugAssign):
                # `totals[name] += value` puts back what it took from there.
                return
        if settles(written if isinstance(written, ast.stmt) else statement_around(written, write.site.frame)):
            return
        # What a generator yields again and again is to be copied in the generator.
        function = write.site.frame.function
        if function is not None and function.yields and function is not stored.frame.function:
            stored = write.site
        by_hand = write.mode != "optimizer" and write.op not in ("load_state_dict", "optimizer step")
        collected = is_collected(stored.node)
        here = (write.site.frame.function is stored.frame.function or collected) and by_hand
        place = write.site if here else stored
        other = (
            Step("made", stored, "the same tensor is stored here each time")
            if here
            else Step("written", write.site, f"{quoted_write(write)} changes it here")
        )
        steps = [
            other,
            Step("read", self.path.site(node), "all entries hold the last value here"),
        ]
        self.claims.add(
            "alias-read-after-write",
            place,
            steps,
            how="list",
            write=write.op,
            target=tensor.label,
            alias=tensor.label,
            written=self.path.text_of_target(write.site),
        )


def is_some_part(view: Tensor) -> bool:
    """Whether a view shows a part whose place is not known, as `rows[i]` does: the next one may be another part."""
    made = view.site.node
    if view.base is None or view.region is not None or not isinstance(made, ast.Subscript):
        return False
    return any(isinstance(part, (ast.Name, ast.Call, ast.Attribute)) for part in ast.walk(made.slice))


def settles(written: ast.AST | None) -> bool:
    """Whether a write sets a constant where the tensor has one value, `x[x == 0] = nan`: done again it changes nothing."""
    if not isinstance(written, ast.Assign) or len(written.targets) != 1:
        return False
    target = written.targets[0]
    if not isinstance(target, ast.Subscript) or not isinstance(target.slice, ast.Compare):
        return False
    is_its_own = ast.unparse(target.slice.left) == ast.unparse(target.value)
    return is_its_own and isinstance(written.value, (ast.Constant, ast.Attribute, ast.UnaryOp))


def is_same_part(write: Write, view: Tensor) -> bool:
    """Whether a write names the very part that a view was made of: `x[..., :half] = …` and `first = x[..., :half]`."""
    made, written = view.site.node, write.site.node
    target = written.targets[0] if isinstance(written, ast.Assign) else written
    return (
        isinstance(made, ast.Subscript)
        and isinstance(target, ast.Subscript)
        and view.site.frame is write.site.frame
        and isinstance(made.slice, (ast.Slice, ast.Tuple))
        and ast.dump(made.value) == ast.dump(target.value).replace("Store()", "Load()")
        and ast.dump(made.slice) == ast.dump(target.slice)
    )


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


def exchanges_items(node: ast.Assign) -> bool:
    """Whether several items are assigned at once from an equally long display."""
    first = node.targets[0]
    return (
        isinstance(first, ast.Tuple)
        and isinstance(node.value, ast.Tuple)
        and sum(isinstance(element, ast.Subscript) for element in first.elts) > 1
    )


def source_text(node: ast.AST) -> str:
    """The text of a short expression; empty for a long one."""
    text = ast.unparse(node)
    return text if len(text) <= 40 else ""


def picks_items(node: ast.AST) -> bool:
    """Whether a list is made of items of other containers: `[trace[t] for t in steps]`, `[states[0], states[1]]`."""
    return isinstance(node, ast.ListComp) or (
        isinstance(node, ast.List) and any(isinstance(element, ast.Subscript) for element in node.elts)
    )


def derived_from(tensor: Tensor | None, ancestor: Tensor) -> bool:
    """Whether `tensor` is `ancestor` or was made as an alias of it."""
    steps = 0
    while tensor is not None and steps < 20:
        if tensor is ancestor:
            return True
        tensor = tensor.source
        steps += 1
    return False


def is_collected(node: ast.AST) -> bool:
    """Whether a container is what Python made of an iterator: `list(states())`."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("list", "tuple", "set")
    )
