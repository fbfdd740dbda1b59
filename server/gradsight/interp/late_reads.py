"""Reads that come too late: a value meant as a copy, used after its memory was written; results that nobody uses."""

from __future__ import annotations

import ast
from typing import Any

from gradsight.interp.backward import Backward
from gradsight.interp.regions import overlaps, surely_overlap
from gradsight.interp.sites import Site
from gradsight.interp.syntax import names_read
from gradsight.interp.tensors import Maybe, Tensor
from gradsight.interp.values import (
    Mapping,
    Seq,
    tensors_in,
)
from gradsight.model.events import Step

PURE_EXCEPTIONS = {
    "backward", "requires_grad_", "retain_grad", "register_hook", "share_memory_", "pin_memory", "register_post_accumulate_grad_hook",
}  # fmt: skip


class LateReads(Backward):
    """What a read means after a write."""

    def note_read(self, value: Any, node: ast.AST) -> None:
        """A value is used: if it was meant as a copy and its memory has been written since, say so."""
        if isinstance(value, Tensor):
            if value.snapshot and value.storage.epoch != value.born_epoch:
                self.read_after_write(value, node)
        elif isinstance(value, Seq):
            self.read_repeated(value, node)
            for item in value.items[:64]:
                if isinstance(item, Tensor) and item.snapshot:
                    self.note_read(item, node)
        elif isinstance(value, Mapping):
            for item in value.items.values():
                if isinstance(item, Tensor) and item.snapshot:
                    self.note_read(item, node)

    def read_after_write(self, tensor: Tensor, node: ast.AST) -> None:
        kind = tensor.snapshot
        writes = [
            write for write in tensor.storage.writes
            if write.epoch > tensor.born_epoch and not derived_from(write.writer, tensor)
        ]  # fmt: skip
        if not writes:
            return
        site = self.site(node)
        if kind == "grad":
            writes = [
                write
                for write in writes
                if write.op not in ("clip_grad_norm_", "clip_grad_value_", "unscale_")
            ]
            if writes and tensor.grad_of is not None:
                write = writes[0]
                verb = (
                    "backward adds into it here"
                    if write.mode == "accumulate"
                    else f"{write.op} overwrites it here"
                )
                steps = [
                    Step("written", write.site, verb),
                    Step("read", site, "the kept gradient is read here"),
                ]
                self.emit(
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

    def snapshot_read(self, tensor: Tensor, writes: list[Any], kind: str, site: Site) -> None:
        """Hook: an alias that looks like a copy was read after a write to its source."""

    def read_repeated(self, seq: Seq, node: ast.AST) -> None:
        """Entries of a sequence that are one and the same memory, written between the times they were stored."""
        seen: dict[Any, Tensor] = {}
        for item in seq.items:
            for tensor in tensors_in(item, 3):
                storage = tensor.storage
                if storage.stores is None or not storage.writes or tensor.grad_of is not None:
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

    def display(self, node: Any) -> Any:
        result = super().display(node)
        if result.kind == "list":
            for item in result.items:
                if isinstance(item, Tensor):
                    storage = item.storage
                    storage.stores = [*(storage.stores or []), (id(result), storage.epoch, result.site)]
                    self.kept_alive.append(result)
        return result

    def items_made(self, made: Seq, epochs: list[int]) -> None:
        site = made.site
        if site is None or not made.exact or made.kind != "list":
            return
        for item, epoch in zip(made.items, epochs):
            if isinstance(item, Tensor) and item.storage.writes:
                item.storage.stores = [*(item.storage.stores or []), (id(made), epoch, site)]
                self.kept_alive.append(made)

    def sequence_item(self, owner: Seq, index: Any, node: ast.AST) -> Any:
        value = super().sequence_item(owner, index, node)
        if isinstance(value, Tensor) and value.storage.stores and value.storage.writes and owner.exact:
            self.check_entry(owner, index, value, node)
        return value

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

    def iterate(self, value: Any, at_least: int = 0) -> Any:
        if isinstance(value, Seq) and value.kind == "list" and len(value.items) > 1 and value.exact:
            self.read_repeated(value, self.node)
        return super().iterate(value, at_least)

    def mapping_method(
        self, receiver: Mapping, name: str, args: list[Any], kwargs: dict[str, Any], node: ast.AST
    ) -> Any:
        result = super().mapping_method(receiver, name, args, kwargs, node)
        if name in ("values", "items") and len(result.items) > 1:
            self.read_repeated(result, node)
        return result

    def entries_are_one(self, tensor: Tensor, write: Any, stored: Site, node: ast.AST) -> None:
        by_hand = write.mode != "optimizer" and write.op not in ("load_state_dict", "optimizer step")
        collected = isinstance(stored.node, ast.Call) and isinstance(stored.node.func, ast.Name)
        here = (write.site.frame.function is stored.frame.function or collected) and by_hand
        place = write.site if here else stored
        other = (
            Step("made", stored, "the same tensor is stored here each time")
            if here
            else Step("written", write.site, f"{write.op} changes it here")
        )
        steps = [other, Step("read", self.site(node), "all entries are read here and hold the last value")]
        self.emit(
            "alias-read-after-write",
            place,
            steps,
            how="list",
            write=write.op,
            target=tensor.label,
            alias=tensor.label,
            written=self.text_of_target(write.site),
        )

    def result_ignored(self, node: ast.Call, result: Tensor) -> None:
        """A statement that computes a tensor and drops it."""
        function = node.func
        if (
            not isinstance(function, ast.Attribute)
            or function.attr in PURE_EXCEPTIONS
            or function.attr.endswith("_")
        ):
            return
        fact = self.table.find(f"Tensor.{function.attr}")
        if (
            fact is None
            or any(case.writes for case in fact.cases)
            or (node.keywords and any(k.arg == "out" for k in node.keywords))
        ):
            return
        if result.site.node is not node and function.attr not in ("to", "contiguous", "float", "double"):
            return
        if isinstance(function.value, ast.Name) and function.value.id in ("torch", "F", "nn"):
            return
        if function.attr in ("to", "cuda", "cpu", "float", "double", "half") and isinstance(
            result.requires_grad, Maybe
        ):
            return
        if result.site.node is node and not is_executed_for_itself(self.site(node)):
            self.emit(
                "result-ignored",
                self.site(node),
                [],
                method=function.attr,
                target=self.text_of_target(self.site(node)),
            )


def is_executed_for_itself(site: Site) -> bool:
    """Whether a statement is there to be executed: its error is waited for, or its time is taken.

    A loop that does nothing but call, and does not use what it runs over, repeats the same work: it is timed.
    """
    if site.expected:
        return True
    loop = site.loops[-1][0].node if site.loops else None
    if not isinstance(loop, ast.For) or not any(inner is site.node for inner in ast.walk(loop)):
        return False
    counted = {inner.id for inner in ast.walk(loop.target) if isinstance(inner, ast.Name)}
    return all(
        isinstance(statement, ast.Expr) and not counted & names_read(statement) for statement in loop.body
    )


DISPLAYS = (ast.List, ast.ListComp)


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
