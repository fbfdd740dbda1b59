"""Saved tensors by content: a checksum when they are saved, another when they are needed.

It finds writes that leave no version behind (`.data`, NumPy, fused optimizers), and it is the way to check versions on a
torch whose graph does not show what it saved.  While pack hooks are installed torch does not check versions itself, so
the check is done here, with torch's own words.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from types import FrameType
from typing import Any

import torch

from gradsight.agent.audit import Clash, fault_of
from gradsight.agent.backwards import Backwards, attach
from gradsight.agent.faults import Fault, Ledger, quietly, step_at
from gradsight.agent.graph import Node, base_name, checksum_of, geometry_of, overlaps, untracked
from gradsight.agent.oplog import LoggedWrite, Operation, OpLog
from gradsight.agent.sites import FrameKey, Stack, capture, is_user_file, place_of, text_of

_MOST_DIFFERENCES = 20


@dataclass(frozen=True)
class Packed:
    """A saved tensor with what it looked like."""

    index: int
    tensor: torch.Tensor
    version: int
    checksum: int
    operation: Operation


class Contents:
    """The pack hooks.

    `checks` compares contents; `clones` hands back what was saved, whatever happened since; `reports_writes` speaks of
    writes that left no version behind, as far as the log has them.
    """

    def __init__(
        self,
        log: OpLog,
        ledger: Ledger,
        backwards: Backwards,
        checks: bool,
        clones: bool = False,
        watched: int = -1,
        reports_writes: bool = True,
    ) -> None:
        self.log = log
        self.ledger = ledger
        self.backwards = backwards
        self.checks = checks
        self.clones = clones
        self.watched = watched
        self.reports_writes = reports_writes
        self.watch: LineWatch | None = None
        self._count = 0

    @contextlib.contextmanager
    def installed(self) -> Iterator[None]:
        """The hooks are on inside this block."""
        with torch.autograd.graph.saved_tensors_hooks(self._pack, self._unpack):
            self.backwards.situation.hooks_off = self._off
            yield
            self.backwards.situation.hooks_off = None

    @contextlib.contextmanager
    def _off(self) -> Iterator[None]:
        """Function transforms refuse to run while pack hooks are installed."""
        situation = self.backwards.situation
        torch._C._autograd._pop_saved_tensors_default_hooks()
        situation.hooks_off = None
        try:
            yield
        finally:
            situation.hooks_off = self._off
            torch._C._autograd._push_saved_tensors_default_hooks(self._pack, self._unpack)

    def _pack(self, tensor: torch.Tensor) -> Packed:
        imagined = self._alias_of_imagined(tensor) if type(tensor).__name__ == "FakeTensor" else None
        with untracked():
            index = self._count
            self._count += 1
            # A detached alias shares storage and version, and does not hold the node that holds it.
            kept = imagined if imagined is not None else tensor.detach()
            kept = kept.clone() if self.clones else kept
            version = 0 if tensor.is_inference() else tensor._version
            checksum = checksum_of(tensor) if self.checks and not self.clones else 0
            operation = Operation(self.log.clock, "", capture(2))
            if index == self.watched and self.watch is None:
                self.watch = LineWatch(kept, checksum)
            return Packed(index, kept, version, checksum, operation)

    def _alias_of_imagined(self, tensor: torch.Tensor) -> torch.Tensor:
        """A tensor without values stays one only while its mode is on."""
        situation = self.backwards.situation
        situation.quiet += 1
        try:
            return tensor.detach()
        finally:
            situation.quiet -= 1

    def _unpack(self, packed: Packed) -> torch.Tensor:
        if self.clones:
            return packed.tensor
        with untracked():
            node = torch._C._current_autograd_node()
            if packed.tensor._version != packed.version:
                raise self._refused(packed, node)
            if self.checks:
                if checksum_of(packed.tensor) != packed.checksum:
                    self._report(packed, node)
            elif self.reports_writes and not _is_batch_norm(node):
                self._report_write(packed, node)
        return packed.tensor

    def _refused(self, packed: Packed, node: Node | None) -> RuntimeError:
        """The error torch would have raised."""
        tensor = packed.tensor
        kind = str(tensor.dtype).replace("torch.", "").capitalize().replace("Float32", "Float")
        shape = ", ".join(str(extent) for extent in tensor.shape)
        message = (
            "one of the variables needed for gradient computation has been modified by an inplace operation: "
            f"[torch.{kind}Tensor [{shape}]] is at version {tensor._version}; "
            f"expected version {packed.version} instead."
        )
        error = RuntimeError(message)
        clash = self._clash(packed, node, message)
        fault = fault_of(clash, self.backwards.situation.backward_stack, message)
        if fault is not None:
            attach(error, fault)
        return error

    def _clash(self, packed: Packed, node: Node | None, refusal: str) -> Clash:
        here = geometry_of(packed.tensor)
        writes: tuple[LoggedWrite, ...] = tuple(
            write
            for write in self.log.writes_to(packed.tensor) or ()
            if write.clock > packed.operation.clock
            and write.stack
            and (
                write.version >= packed.version
                if refusal
                else self.log.gave_other_values(write)
                if write.name == "data="
                else write.geometry is None or overlaps(write.geometry, here)
            )
        )
        if not writes and not refusal:
            hidden = self.log.hidden_write(packed.tensor, packed.operation.clock)
            writes = (hidden,) if hidden is not None and hidden.stack else ()
        maker = self.log.maker(node) if node is not None else None
        name = maker.name if maker is not None else ""
        saved = Operation(packed.operation.clock, name, packed.operation.stack)
        shape = tuple(packed.tensor.shape)
        version = packed.tensor._version
        return Clash(node or _Unknown(), "tensor", shape, saved, writes, refusal, packed.version, version)

    @quietly
    def _report_write(self, packed: Packed, node: Node | None) -> None:
        """A write that left no version behind, known from the log alone."""
        clash = self._clash(packed, node, "")
        fault = fault_of(clash, self.backwards.situation.backward_stack, "") if clash.writes else None
        if fault is not None:
            self.ledger.add(fault)

    @quietly
    def _report(self, packed: Packed, node: Node | None) -> None:
        """Contents that changed without a new version."""
        clash = self._clash(packed, node, "")
        needed = self.backwards.situation.backward_stack
        fault = fault_of(clash, needed, "")
        if fault is None:
            fault = self._fault_without_writer(packed, node, needed)
        if fault is None:
            return
        evidence = {
            **fault.evidence,
            "content_changed": True,
            "saved_index": packed.index,
            "backward": self.backwards.count + 1,
            "writer_known": bool(clash.writes),
        }
        self.ledger.add(
            Fault(fault.kind, fault.message, fault.place, fault.related, fault.severity, evidence)
        )

    def _fault_without_writer(self, packed: Packed, node: Node | None, needed: Stack) -> Fault | None:
        if not packed.operation.stack:
            return None
        place = place_of(packed.operation.stack[0])
        name = base_name(node.name()) if node is not None else "backward"
        message = f"a tensor saved by `{text_of(place)}` has other values when `{name}` needs it; torch does not notice"
        steps = (
            *step_at("saved", "saved here", packed.operation.stack),
            *step_at("needed", "this `backward()` needs the old value", needed),
        )
        return Fault(
            "saved-changed-silently", message, place, steps, "warning", {"shape": list(packed.tensor.shape)}
        )


def _is_batch_norm(node: Node | None) -> bool:
    """A batch norm keeps its running statistics, and training changes them without a new version."""
    return node is not None and "BatchNorm" in node.name()


class _Unknown:
    """Stands for a node that torch does not name."""

    next_functions: tuple[Any, ...] = ()

    def name(self) -> str:
        return "Unknown"


class LineWatch:
    """Finds the line that changes one tensor: its checksum is taken at every line of the user's code."""

    def __init__(self, tensor: torch.Tensor, checksum: int) -> None:
        self.tensor = tensor
        self.checksum = checksum or checksum_of(tensor)
        self.changed_at: list[FrameKey] = []
        self._last: FrameKey | None = None

    def line(self, frame: FrameType, event: str, argument: Any) -> Any:
        with untracked():
            now = checksum_of(self.tensor)
        if now != self.checksum:
            self.checksum = now
            if self._last is not None:
                self.changed_at.append(self._last)
        self._last = FrameKey(frame.f_code, frame.f_lasti)
        return self.line


@contextlib.contextmanager
def watching_lines(contents: Contents) -> Iterator[None]:
    """Traces the user's lines until the watched tensor exists, and its content from then on."""

    def follow(frame: FrameType, event: str, argument: Any) -> Any:
        if not is_user_file(frame.f_code.co_filename):
            return None

        def line(inner: FrameType, kind: str, value: Any) -> Any:
            if contents.watch is not None and kind in ("line", "return"):
                contents.watch.line(inner, kind, value)
            return line

        return line

    sys.settrace(follow)
    try:
        yield
    finally:
        sys.settrace(None)


class Gradients:
    """The gradients of every backward, for the comparison of two runs of one program."""

    def __init__(self, limit: int = 1 << 28) -> None:
        self.backwards: list[dict[str, torch.Tensor]] = []
        self._room = limit

    def note(self, leaves: list[tuple[str, torch.Tensor]]) -> None:
        """One backward has given these leaves their gradients."""
        taken = {}
        for name, tensor in leaves:
            grad = tensor.grad
            if grad is None or grad.layout is not torch.strided or grad.device.type == "meta":
                continue
            self._room -= grad.numel() * grad.element_size()
            if self._room < 0:
                return
            taken[name] = grad.detach().clone()
        self.backwards.append(taken)

    def save(self, path: str) -> None:
        torch.save(self.backwards, path)

    def compare(self, path: str) -> list[dict[str, Any]]:
        """For each backward of the other run: how far each gradient is from ours, and which are only in one of them."""
        other: list[dict[str, torch.Tensor]] = torch.load(path, weights_only=True)
        return [
            {"backward": index, **_difference(theirs, ours)}
            for index, (theirs, ours) in enumerate(zip(other, self.backwards), start=1)
        ]


def _difference(theirs: dict[str, torch.Tensor], ours: dict[str, torch.Tensor]) -> dict[str, Any]:
    """The relative differences, the largest first."""
    errors = {}
    for name, gradient in ours.items():
        seen = theirs.get(name)
        if seen is not None and seen.shape == gradient.shape:
            scale = float(gradient.double().norm()) or 1.0
            errors[name] = float((seen.double() - gradient.double()).norm()) / scale
    # A difference that is not a number is the largest of all.
    worst = sorted(errors, key=lambda name: (errors[name] != errors[name], errors[name]), reverse=True)
    return {
        "error": errors[worst[0]] if worst else 0.0,
        "parameter": worst[0] if worst and errors[worst[0]] else "",
        "errors": {name: errors[name] for name in worst[:_MOST_DIFFERENCES]},
        "gained": sorted(name for name in ours if name not in theirs),
        "lost": sorted(name for name in theirs if name not in ours),
    }
