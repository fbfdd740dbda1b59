"""Writing: in-place changes, what torch refuses at once, and how a write moves history from a view to its base."""

from __future__ import annotations

import re
from typing import Any

from gradsight.interp.syntax import CLASS_DEFINITION, DEFINITIONS, short_text, written_target
from gradsight.interp.tensors.autograd import Recorder, holds_of
from gradsight.interp.tensors.changes import change_of, content_written, same_window, shows_all
from gradsight.interp.tensors.regions import surely_overlap
from gradsight.interp.tensors.shapes import RESHAPES_IN_PLACE, numel
from gradsight.model.events import Step
from gradsight.model.sites import Site, Syntax
from gradsight.model.tensors import (
    INTEGRAL,
    NO_CUTS,
    Cut,
    Indexed,
    Maybe,
    Node,
    Region,
    RequiresGrad,
    Tensor,
    Write,
    any_requires_grad,
)
from gradsight.model.trace import WriteRefused, Wrote
from gradsight.model.values import External, Partial, Value
from gradsight.ops.fact import Case
from gradsight.ops.traits import having


class Writer(Recorder):
    """Changes tensors in place."""

    write_place: Any = None
    """Where a layer or a partial call that writes in place is made: the place to change when its write does harm."""

    def call_partial(self, made: Partial, args: list[Value], kwargs: dict[str, Value], node: Syntax) -> Value:
        inner = made.function
        if not isinstance(inner, External) or not WRITING_FUNCTION.fullmatch(inner.path):
            return self.language.call(inner, args, kwargs, node)
        before, self.write_place = self.write_place, made.site
        try:
            return self.language.call(inner, args, kwargs, node)
        finally:
            self.write_place = before

    def record_write(
        self,
        op: str,
        case: Case,
        bound: dict[str, Value],
        targets: list[Tensor],
        operands: list[tuple[str, Tensor]],
        flags: dict[str, RequiresGrad],
        recording: RequiresGrad,
        cuts: frozenset[Cut],
        site: Site,
        certain: bool,
    ) -> Value:
        """An operator that writes into its arguments."""
        made_at = self.layer_place(site)
        for target in targets:
            others = [tensor for _, tensor in operands if tensor is not target]
            mode = "no_grad" if case.no_grad else ""
            reads_itself = len(operands) - len(others) > 1
            reads_twice = len(operands) - len(others) > 1 + ("out" in bound)
            if op in PLACES and reads_itself:
                self.overlaps_operand(target, target, op, site)
            change = "" if reads_twice else change_of(op, bound, target, others)
            node = self.write_tensor(
                target, op, site, others, False if mode else recording, cuts, mode, change=change
            )
            if made_at is not None:
                target.storage.writes[-1].site = made_at
            if node is not None:
                node.holds = holds_of(case, flags, certain)
                self.keep_saved(node, case, {**bound, "result": target}, flags, [target], certain)
                for saved in node.saved:
                    if (
                        saved.counter is target.counter
                        and not saved.role.startswith("result")
                        and saved.role not in case.writes
                    ):
                        saved.version -= 1
                        saved.epoch -= 1
        return targets[0]

    def layer_place(self, call: Site) -> Site | None:
        """Where the in-place layer, or the partial call, that is being applied was made, if one is."""
        if self.write_place is None or self.write_place.node is call.node:
            return None
        place = Site(self.write_place.node, self.write_place.frame)
        place.guards, place.loops, place.call = call.guards, call.loops, call
        return place

    def write_tensor(
        self,
        target: Tensor,
        op: str,
        site: Site,
        others: list[Tensor],
        recording: RequiresGrad,
        cuts: frozenset[Cut] = NO_CUTS,
        mode: str = "",
        region: Region = None,
        bumps: bool = True,
        overlaps: bool = True,
        change: str = "",
    ) -> Node | None:
        """Change the content of a tensor; with grad mode on, its history too.  Returns the new node, if any."""
        if not mode:
            self.check_written(target, op, site, others, recording, overlaps)
        if (
            self.path.grad_mode
            and not mode
            and target.is_leaf
            and target.requires_grad is True
            and recording is False
        ):
            recording = True
        if op in RESHAPES_IN_PLACE or op == "set_":
            target.shape = None
        storage = target.storage
        unchanged = change == "none" or (storage.zero and op in KEEPS_ZERO)
        storage.zero = storage.zero and unchanged
        if not unchanged:
            storage.content = content_written(target, op, others)
            storage.epoch += 1
        if bumps:
            target.counter.version += 1
        kind = mode or ("graph" if recording is not False else "no_grad")
        if not bumps:
            kind = "silent"
        window = region if region is not None else target.region
        write = Write(site, op, target, kind, target.counter, window, change)
        write.tick = self.path.tick
        storage.writes.append(write)
        if cuts:
            cuts = self.without_initialisation(target, cuts, site)
            target.cuts = target.cuts | cuts
            if target.base is not None:
                target.base.cuts = target.base.cuts | cuts
        self.path.tell(Wrote(target, op, site, others, region, write))
        if recording is False or mode:
            if recording is False and not mode and others:
                self.cut_by_write(target, op, site, others)
            return None
        return self.record_history(target, op, site, others, recording)

    def check_written(
        self,
        target: Tensor,
        op: str,
        site: Site,
        others: list[Tensor],
        recording: RequiresGrad,
        overlaps: bool,
    ) -> None:
        """What torch refuses to write."""
        if target.overlapping and overlaps and op not in UNCHECKED:
            self.overlap_written(target, op, site)
        if self.path.transforms:
            self.check_followed(target, op, site, others)
        for other in others if op not in COPIES else ():
            if other.storage is target.storage and (
                clash(target, other) or (op in PLACES and same_window(target, other))
            ):
                self.overlaps_operand(target, other, op, site)
        if recording is not False or target.inference_site is not None:
            self.check_writable(target, op, site, recording)
        elif self.path.grad_mode and not self.path.inference and target.base is not None:
            self.check_unrecorded_view(target, target.base, op, site)

    def check_followed(self, target: Tensor, op: str, site: Site, others: list[Tensor]) -> None:
        """Under `vmap` one memory cannot take a value for each slice; under `grad` what is outside cannot learn of the inside."""
        for name, level in self.path.transforms:
            if level in target.follows or not any(level in other.follows for other in others):
                continue
            owner = target.root()
            if owner.serial <= level or (name == "vmap" and owner.leaf_made):
                fact = WriteRefused(target, op, site, "transform", owner, transform=name)
                self.path.refuse(fact)
                return
            target.follows = target.follows | {level}

    def check_unrecorded_view(self, view: Tensor, base: Tensor, op: str, site: Site) -> None:
        """A view that requires no grad by itself, while the tensor behind it does.

        `v = x[:2]; x.requires_grad_(); v.add_(1)` writes a leaf.  `with no_grad(): v = y[:2]` leaves a view that
        torch does not let anybody write with grad mode on.
        """
        if base.needs_grad() is not True or base.dtype in INTEGRAL:
            return
        if view.view_made_without_grad:
            self.refuse_write(view, op, site, "mode", view)
        elif base.is_leaf and not base.rebases and view.requires_grad is False:
            self.refuse_write(view, op, site, "leaf", base)

    def record_history(
        self, target: Tensor, op: str, site: Site, others: list[Tensor], recording: RequiresGrad
    ) -> Node:
        """The node of a write, and what it makes of the history of the target and of its base."""
        node = Node(op, site, [], recording, self.path.tick)
        node.operands = [target, *others]
        edge = target.edge() if not (target.is_leaf and target.requires_grad is not False) else None
        if edge is not None:
            node.inputs.append(edge)
            if op in OVERWRITES_ALL:
                node.overwritten = edge
        for tensor in others:
            source = tensor.edge()
            if source is not None and tensor.dtype not in INTEGRAL:
                node.inputs.append(source)
        base = target.base
        if base is not None and base.is_leaf and base.requires_grad is True:
            # torch refuses to write a view of a leaf: nothing has changed on the ways that go on.
            return node
        if base is not None:
            previous = base.edge() if not (base.is_leaf and base.requires_grad is not False) else None
            slices = Node("CopySlices", site, [node], recording, self.path.tick)
            slices.holds = "always"
            if previous is not None:
                slices.inputs.append(previous)
            base.node = slices
            base.requires_grad = any_requires_grad([base.requires_grad, recording])
            base.rebases += 1
            target.seen_rebases = base.rebases
        if not (target.is_leaf and target.requires_grad is True):
            target.node = node
            target.requires_grad = any_requires_grad([target.requires_grad, recording])
            if base is None:
                target.rebases += 1
        return node

    def cut_by_write(self, target: Tensor, op: str, site: Site, others: list[Tensor]) -> None:
        """A write with grad mode off takes data from tensors with a graph."""
        found = (
            self.mode_cut(op, [("", tensor) for tensor in others], site)
            if not self.path.grad_mode
            else NO_CUTS
        )
        if found:
            target.cuts = target.cuts | self.without_initialisation(target, found, site)

    def without_initialisation(self, target: Tensor, cuts: frozenset[Cut], site: Site) -> frozenset[Cut]:
        """The cuts that count when data is written: a leaf that is set from the data of leaves begins anew there.

        It is trained by itself from then on, and the others by their own losses.  A forward pass that writes a leaf which
        others were to learn through gives them no gradient from the first round on.
        """
        written = leaf_behind(target.source if target.snapshot in DATA and target.source else target)
        if written is None:
            return cuts
        begins = not is_in_forward(site)
        repeated = bool(site.loops)
        return frozenset(
            cut
            for cut in cuts
            if (source := leaf_behind(cut.source)) is None
            or not (source in self.path.gradient_ticks or (begins and (cut.op in MOVES or not repeated)))
        )

    def check_writable(self, target: Tensor, op: str, site: Site, recording: RequiresGrad) -> None:
        """What torch refuses at once."""
        base = target.base
        assumption = recording.reason if isinstance(recording, Maybe) else ""
        if target.one_of_many and base is not None:
            if not (isinstance(recording, Maybe) and recording.weak):
                self.refuse_write(target, op, site, "many", target, assumption)
            return
        if target.inference_site is not None and not self.path.inference and not has_own_counter(target):
            self.refuse_write(target, op, site, "inference", target)
            return
        if base is not None and target.view_made_without_grad and recording is True:
            self.refuse_write(target, op, site, "mode", target)
            return
        owner = leaf_behind(target) or (base if base is not None else target)
        if owner.is_leaf and owner.requires_grad is True and not owner.rebases:
            self.refuse_write(target, op, site, "leaf", owner)
        elif owner.is_leaf and isinstance(owner.requires_grad, Maybe) and owner.leaf_made:
            if not owner.requires_grad.weak:
                self.refuse_write(target, op, site, "leaf", owner, owner.requires_grad.reason)

    def overlaps_operand(self, target: Tensor, other: Tensor, op: str, site: Site) -> None:
        """What is written and what it is combined with share memory."""
        self.refuse_write(target, op, site, "operands", other)

    def overlap_written(self, target: Tensor, op: str, site: Site) -> None:
        self.refuse_write(target, op, site, "overlap", target)

    def refuse_write(
        self, target: Tensor, op: str, site: Site, reason: str, other: Tensor, assumption: str = ""
    ) -> None:
        self.path.refuse(WriteRefused(target, op, site, reason, other, assumption), assumption)
        if reason not in ("leaf", "inference"):
            self.refused_writes.add(site.key)

    def call_steps(self, site: Site) -> list[Step]:
        """The calls that led to a place inside a function; one that is tried by itself was entered at its definition."""
        callers = site.callers()
        return [
            Step(
                "call",
                caller,
                HOW_CALLED.get(type(caller.node))
                or called_from(caller, len(callers) - 3 if number == 2 else 0),
            )
            for number, caller in enumerate(callers[:3])
        ]

    def text_of_target(self, site: Site) -> str:
        """The source text of what is being written, short enough to speak of."""
        node = site.node if site.call is None else site.call.node
        return short_text(written_target(node, site.call is not None, bool(site.library), site.frame.scope))


def called_from(caller: Site, more: int) -> str:
    """Who calls, by name; and how many callers of that one are not listed."""
    frame = caller.frame
    owner = getattr(frame.owner, "name", "")
    name = f"{owner}.{frame.name}" if owner else frame.name
    who = {"<module>": "called from the top level", "<lambda>": "called from a lambda"}.get(
        name, f"called from `{name}`"
    )
    return f"{who}, and from {more} more call{'s' if more > 1 else ''} above it" if more > 0 else who


def leaf_behind(target: Tensor) -> Tensor | None:
    """The leaf that requires grad of which this tensor is a differentiable view, or which it is."""
    tensor: Tensor | None = target
    steps = 0
    while tensor is not None and steps < 20:
        if tensor.is_leaf and tensor.requires_grad is True:
            return tensor
        if tensor.base is None:
            return None
        tensor = tensor.source
        steps += 1
    return None


def is_in_forward(site: Site) -> bool:
    """Whether a place is reached from the forward method of a module."""
    frames = [site.frame, *(caller.frame for caller in site.callers())]
    return any(frame.function is not None and frame.function.name == "forward" for frame in frames)


def has_own_counter(view: Tensor) -> bool:
    """Whether it was taken out of the graph in a way that lets its writes be counted apart from its source's."""
    source = view.source
    return view.snapshot in DATA and source is not None and source.counter is not view.counter


def clash(target: Tensor, other: Tensor) -> bool:
    """Two windows on one memory that certainly overlap without being the same window."""
    if target is other:
        return False
    if target.twist != other.twist:
        shape = target.shape
        return (
            target.region is None
            and other.region is None
            and shape is not None
            and len(shape) == 2
            and shape != (1, 1)
        )
    if target.region == other.region or target.twist:
        return False
    for part, whole in ((target, other), (other, target)):
        if (part.region is not None or part.source is whole) and shows_all(whole):
            inside, all_of_it = numel(part.shape), numel(whole.shape)
            return inside is not None and all_of_it is not None and inside < all_of_it
    if not isinstance(target.region, Indexed) or not isinstance(other.region, Indexed):
        return False
    if len(target.region.intervals) != len(other.region.intervals):
        return False
    # Torch looks no further where a window has gaps.
    return target.dense and other.dense and surely_overlap(target.region, other.region)


WRITING_FUNCTION = re.compile(r"torch\.(Tensor\.|nn\.functional\.)?[a-z]\w*[a-z0-9]_")
ENTERED = "no caller found: assumed to be called during training"
HOW_CALLED: dict[type, str] = {
    CLASS_DEFINITION: "no caller found: assumed to be called by its library",
    **dict.fromkeys(DEFINITIONS, ENTERED),
}

DATA = ("detach", "data")
SETS_ITEM = frozenset({"index_put_"})
"""The machine's name for every `x[...] = y`: it writes a window of its target, and where that overlaps is asked there."""
MOVES = having("moves") | SETS_ITEM | {"index", "slice", "copy"}
"""What passes values on and computes nothing; the last three are an index and NumPy's own."""
KEEPS_ZERO = having("keeps-zero") | {"NumPy mul="}
"""Writes that leave zeros as they are."""
PLACES = having("refuses-itself") - SETS_ITEM
"""Writes that read their source while they write: it may not even be the target itself."""
UNCHECKED = having("writes-shared") - SETS_ITEM | {"fill_", "tril_", "triu_"}
"""Writes that torch performs even where several elements share one memory location; those three do of a number, of matrices."""
COPIES = having("takes-overlap") | SETS_ITEM
"""Writes that torch performs even where source and target overlap."""
OVERWRITES_ALL = having("overwrites-all")
"""In-place operators whose result does not depend on the old value."""
