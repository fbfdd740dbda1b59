"""Values put into a list or a dict, or kept by a forward hook, that a layer working in place overwrites afterwards.

`features.append(h); h = self.relu(h)` with `ReLU(inplace=True)`: the list holds what the ReLU made of `h`.
"""

from __future__ import annotations

import ast
from typing import Any

from gradsight.detect.changed_inputs import called_text
from gradsight.detect.claims import Claims
from gradsight.detect.path import Path
from gradsight.detect.wording import quoted_write
from gradsight.interp.tensors.regions import overlaps
from gradsight.model.events import Step
from gradsight.model.sites import Site
from gradsight.model.tensors import Tensor, Write
from gradsight.model.trace import ForwardReturned, ItemRead, Iterated
from gradsight.model.values import Mapping, Seq

MOST_ENTRIES = 64


class KeptFeatures:
    """Entries that are read after an in-place layer has worked on them."""

    def __init__(self, path: Path, claims: Claims) -> None:
        self.path = path
        self.claims = claims

    def on_item_read(self, fact: ItemRead) -> None:
        if type(fact.value) is Tensor and fact.value.storage.writes:
            self.check(fact.owner, fact.value, fact.node)

    def on_iterated(self, fact: Iterated) -> None:
        self.check_entries(fact.sequence, fact.node)

    def on_forward_returned(self, fact: ForwardReturned) -> None:
        """What a model gives away in a list or dict is read by whoever called it."""
        for container in fact.result.items if isinstance(fact.result, Seq) else [fact.result]:
            if isinstance(container, (Seq, Mapping)):
                self.check_entries(container, self.path.node)
        if isinstance(fact.result, Seq):
            self.check_entries(fact.result, self.path.node)

    def check_entries(self, container: Seq | Mapping, node: ast.AST) -> None:
        entries = container.items.values() if isinstance(container, Mapping) else container.items
        for entry in list(entries)[:MOST_ENTRIES]:
            if type(entry) is Tensor and entry.storage.writes:
                self.check(container, entry, node)

    def check(self, container: Seq | Mapping, tensor: Tensor, node: ast.AST) -> None:
        if tensor.grad_of is not None or tensor.snapshot:
            return
        stores = [store for store in tensor.storage.stores or () if store[0] == id(container)]
        if len(stores) != 1:
            # Several entries on one memory are another story, and so is what was put back after the write.
            return
        _, epoch, stored = stores[0]
        if not is_kept_alone(stored.node):
            return
        for write in tensor.storage.writes:
            if write.epoch > epoch and write.mode == "graph" and overlaps(write.region, tensor.region):
                call = call_in_place(write)
                if call is not None:
                    self.report(tensor, write, call, stored, node)
                    return

    def report(self, tensor: Tensor, write: Write, call: Site, stored: Site, node: ast.AST) -> None:
        steps = [
            Step("made", stored, "stored here without a copy"),
            Step("read", self.path.site(node), "the entry is read here: it holds the result"),
        ]
        if call is not write.site:
            steps.insert(1, Step("written", write.site, f"{quoted_write(write)} works in place"))
        self.claims.add(
            "alias-read-after-write",
            call,
            [*steps, *self.path.call_steps(call)],
            how="kept",
            write=write.op,
            target=tensor.label,
            alias=tensor.label,
            written=self.path.text_of_target(call),
        )


def is_kept_alone(node: Any) -> bool:
    """Whether a value is put aside by a statement of its own: `kept.append(h)`, `kept["low"] = h`."""
    return isinstance(node, (ast.Call, ast.Assign, ast.Subscript))


def call_in_place(write: Write) -> Site | None:
    """The call of a layer, or of a function with `inplace=True`, that wrote; None for a write that says what it does."""
    if write.site.call is not None:
        return write.site.call
    node = write.site.node
    if isinstance(node, ast.Call) and not called_text(node).endswith("_"):
        if any(keyword.arg == "inplace" for keyword in node.keywords):
            return write.site
    return None
