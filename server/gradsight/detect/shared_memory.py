"""Memory of a model or a parameter that is written through another object: state dicts, shared `.data`, aliases."""

from __future__ import annotations

import ast

from gradsight.detect.claims import Claims
from gradsight.detect.path import Path
from gradsight.interp.syntax import is_inside, returns_value, statement_around
from gradsight.model.events import Step
from gradsight.model.sites import Site
from gradsight.model.tensors import Storage, Tensor, Write
from gradsight.model.trace import DataAssigned, StateLoaded, Used, Viewed, Wrote
from gradsight.model.values import Seq, tensors_in


class SharedMemory:
    """Reads of a tensor that somebody else wrote."""

    def __init__(self, path: Path, claims: Claims) -> None:
        self.path = path
        self.claims = claims
        self.averaged: dict[Storage, Write] = {}
        """Memory of a model that was written through its `state_dict()` on the way into another model."""
        self.through_aliases: dict[Storage, tuple[int, list[Write]]] = {}
        self.shared_data: dict[Storage, tuple[Tensor, Site]] = {}
        """Memory of parameters that `.data = other.data` made the memory of another parameter: whose, and where."""

    def on_used(self, fact: Used) -> None:
        node = fact.node
        for value in fact.arguments.values():
            if type(value) is Tensor and value.storage.writes:
                if value.node is not None:
                    self.check_written_through_alias(value, node)
                elif self.averaged and value.storage in self.averaged and not value.snapshot:
                    self.model_changed_by_state(value, node)
            elif type(value) is Seq:
                for item in value.items[:16]:
                    if type(item) is Tensor and item.node is not None and item.storage.writes:
                        self.check_written_through_alias(item, node)

    def on_viewed(self, fact: Viewed) -> None:
        self.check_written_through_alias(fact.tensor, fact.node)

    def on_state_loaded(self, fact: StateLoaded) -> None:
        module = fact.module
        own = {
            tensor.storage
            for kind in ("parameter", "buffer")
            for _, tensor in self.path.tensors_of(module, kind)
        }
        for alias in tensors_in(fact.state):
            if alias.snapshot == "state_dict" and alias.storage not in own:
                write = next((w for w in alias.storage.writes if w.writer.snapshot == "state_dict"), None)
                if write is not None:
                    self.averaged[alias.storage] = write

    def model_changed_by_state(self, tensor: Tensor, node: ast.AST) -> None:
        """A model is used again after its own weights were overwritten by what was computed in its state dict."""
        write = self.averaged.pop(tensor.storage)
        steps = [
            Step("made", write.writer.site, "`state_dict()` returns the model's own memory"),
            Step("read", self.path.site(node), "the model is used here, with the new value"),
            *self.path.call_steps(write.site),
        ]
        self.claims.add(
            "alias-read-after-write",
            write.site,
            steps,
            how="state",
            write=write.op,
            target=tensor.label,
            alias="state_dict()",
            written=self.path.text_of_target(write.site),
        )

    def on_data_assigned(self, fact: DataAssigned) -> None:
        tensor, value, site = fact.tensor, fact.value, fact.site
        self.shared_data.pop(tensor.storage, None)
        owner = value.source if isinstance(value, Tensor) and value.snapshot in ("data", "detach") else value
        if isinstance(owner, Tensor) and owner.is_parameter and tensor.is_parameter and owner is not tensor:
            self.shared_data[tensor.storage] = (owner, site)

    def on_wrote(self, fact: Wrote) -> None:
        if self.shared_data:
            self.check_shared_data(fact.tensor, fact.op, fact.site)

    def check_shared_data(self, target: Tensor, op: str, site: Site) -> None:
        """One of two parameters on one memory is written by hand: the other one changes with it."""
        shared = self.shared_data.get(target.storage)
        if shared is None or op in ("data assignment", "load_state_dict", "optimizer step"):
            return
        del self.shared_data[target.storage]
        owner, place = shared
        steps = [
            Step("written", site, f"`{op}` changes both parameters here"),
            *self.path.call_steps(place),
        ]
        self.claims.add(
            "alias-read-after-write",
            place,
            steps,
            how="shared",
            write=op,
            target=owner.label,
            alias=target.label,
            written=self.path.text_of_target(site),
        )

    def writes_through_aliases(self, storage: Storage) -> list[Write]:
        """The writes that went through a `detach()` or `.data`; each write is looked at once."""
        looked_at, found = self.through_aliases.get(storage, (0, []))
        if looked_at > len(storage.writes):
            looked_at, found = 0, []
        if looked_at < len(storage.writes):
            found = [*found, *filter(went_through_alias, storage.writes[looked_at:])]
            self.through_aliases[storage] = (len(storage.writes), found)
        return found

    def check_written_through_alias(self, tensor: Tensor, node: ast.AST) -> None:
        """A tensor of the graph is read after a write through its `detach()` or `.data` alias."""
        if tensor.storage.epoch == tensor.born_epoch or not self.path.grad_mode or tensor.snapshot:
            return
        for write in self.writes_through_aliases(tensor.storage):
            if write.epoch <= tensor.born_epoch or write.mode == "accumulate" or write.site.node is node:
                continue
            if changes_what_it_was_given(write, tensor):
                continue
            named = named_alias(write.writer, tensor)
            alias = named or handed_alias(write, tensor)
            if alias is not None:
                steps = [
                    Step(
                        "made",
                        alias.site,
                        f"`{alias.snapshot}` shares memory with {f'`{tensor.label}`' if tensor.label else 'its source'}",
                    ),
                    Step("read", self.path.site(node), "the source is read here, with the new value"),
                    *self.path.call_steps(write.site),
                ]
                self.claims.add(
                    "alias-read-after-write",
                    write.site,
                    steps,
                    how="source",
                    write=write.op,
                    target=tensor.label,
                    alias=alias.label
                    or (alias_text(alias) if named is None else self.path.text_of_target(write.site)),
                    written=self.path.text_of_target(write.site),
                )
                return


def changes_what_it_was_given(write: Write, tensor: Tensor) -> bool:
    """Whether the write is all that a function is there for: `state.data.copy_(rows)` in one that returns nothing.

    An alias with a name of its own (`canvas = image.detach()`) rather is taken for a copy.
    """
    frame = write.site.frame
    if write.writer is None or not is_inside(write.writer.site.node, write.site.node):
        return False
    syntax = frame.function.node if frame.function is not None else None
    return (
        isinstance(syntax, (ast.FunctionDef, ast.AsyncFunctionDef))
        and syntax.name != "__init__"
        and not returns_value(syntax)
        and tensor.root().site.frame is not frame
    )


def went_through_alias(write: Write) -> bool:
    writer: Tensor | None = write.writer
    steps = 0
    while writer is not None and steps < 20:
        if writer.snapshot in ("detach", "data"):
            return True
        writer, steps = writer.source, steps + 1
    return False


def alias_text(alias: Tensor) -> str:
    """How an alias that was only handed on is written: `prob.detach()`."""
    return ast.unparse(alias.site.node)


def handed_alias(write: Write, source: Tensor) -> Tensor | None:
    """The alias that a call was given, `weight_of(prob.detach())`, if the function wrote into it and its result is used.

    A function whose name ends in `_`, or whose result nobody takes, is called for what it writes.
    """
    writer, place = write.writer, write.site.frame.call_site
    if writer is None or writer.snapshot != "detach" or writer.source is not source or place is None:
        return None
    call = place.node
    if not isinstance(call, ast.Call) or not any(writer.site.node is argument for argument in call.args):
        return None
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "_")
    statement = statement_around(call, place.frame)
    is_taken = not (isinstance(statement, ast.Expr) and statement.value is call)
    return writer if is_taken and not name.endswith("_") else None


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
