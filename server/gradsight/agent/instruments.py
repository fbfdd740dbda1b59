"""All instruments of a run, put together for one level of attention."""

from __future__ import annotations

import builtins
import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Optional

import torch

from gradsight.agent.backwards import Backwards
from gradsight.agent.blame import Blame
from gradsight.agent.fastlog import FastRecorder
from gradsight.agent.faults import Ledger
from gradsight.agent.govern import Governor
from gradsight.agent.gradwatch import GradWatch
from gradsight.agent.graph import untracked
from gradsight.agent.modules import ModuleRegistry
from gradsight.agent.naming import name_leaves
from gradsight.agent.oplog import OpLog, Operation, next_number
from gradsight.agent.origins import Origins
from gradsight.agent.recorder import Recorder, Situation
from gradsight.agent.shadow import Leaf, Shadow
from gradsight.agent.sites import capture
from gradsight.agent.snapshots import Snapshots
from gradsight.agent.surface import Surface
from gradsight.agent.training import Training
from gradsight.agent.visits import DROP, NOTE, STORE, Visits


@dataclass
class Norms:
    """The gradient of one leaf as last measured."""

    value: Optional[float]
    is_zero: bool


class Instruments:
    """What watches a program.  `fast` keeps blame only; the default adds cuts, aliases, the loop and facts."""

    def __init__(self, ledger: Ledger, governor: Governor, fast: bool, fake: bool = False) -> None:
        self.ledger = ledger
        self.governor = governor
        self.fast = fast
        self.fake = fake
        self.log = OpLog(whole_calls=fast)
        self.situation = Situation()
        self.modules = ModuleRegistry(self.log)
        self.visits = Visits(with_norms=not fake)
        self.snapshots = Snapshots(self.log, ledger)
        self.norms: dict[int, Norms] = {}
        self.shadow: Optional[Shadow] = None
        self.training: Optional[Training] = None
        self.grads: Optional[GradWatch] = None
        self.surface: Optional[Surface] = None
        if fast:
            self.fast_recorder = FastRecorder(self.log, self.situation)
            self.backwards = Backwards(self.log, ledger, self.situation, None, None)
            self.backwards.around = self.fast_recorder.again
        else:
            origins = Origins()
            self.shadow = Shadow()
            self.grads = GradWatch(self.log, ledger)
            self.training = Training(self.log, ledger, self.shadow, self.situation)
            self.recorder = Recorder(self.log, self.situation, self.shadow, origins)
            self.surface = Surface(self.log, self.situation, self.shadow, origins, self.grads)
            self.origins = origins
            self.situation.grad_writes = self.training.grad_written
            self.surface.on_grad_set = self._grad_assigned
            self.surface.on_collection = self.snapshots.collected
            self.backwards = Backwards(self.log, ledger, self.situation, self.shadow, self.training)
            self.backwards.on_gradients = self._measure
            self.backwards.stored_at = self.snapshots.stored_at
        self.blame = Blame(self.log, self.shadow, self.surface, self.grads, self.backwards, self.modules)

    # Installing.

    def install(self) -> None:
        """Takes the places in torch that the instruments listen at."""
        self.backwards.install()
        self.backwards.after.append(self.governor.count_backward)
        self._listen_to_optimizers()
        self._follow_threads()
        self._name_custom_functions()
        if not self.fast:
            self.modules.install()
            self.snapshots.install()
            self._follow_numpy()
            self._follow_parameters()

    def publish_marks(self) -> None:
        """Makes the functions that instrumented code calls reachable from every module."""
        setattr(builtins, NOTE, self.visits.note)
        setattr(builtins, STORE, self.snapshots.store)
        setattr(builtins, DROP, self.snapshots.dropped)

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """The modes are on inside this block, in the running thread."""
        with contextlib.ExitStack() as stack:
            if self.fast:
                stack.enter_context(self.fast_recorder)
            else:
                stack.enter_context(self.recorder)
                assert self.surface is not None
                stack.enter_context(self.surface)
            yield

    def _follow_threads(self) -> None:
        """Modes belong to a thread: a thread of the user enters them too."""
        original = threading.Thread.run
        instruments = self

        def run(self: threading.Thread) -> None:
            if self.name.startswith("gradsight-"):
                original(self)
                return
            with instruments.running():
                original(self)

        threading.Thread.run = run  # type: ignore[method-assign]

    def _name_custom_functions(self) -> None:
        """The node of a custom function exists before its forward runs, and saves after it: note both."""
        original = torch.autograd.Function.apply.__func__  # type: ignore[attr-defined]
        log = self.log

        def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
            number = next_number()
            result = original(cls, *args, **kwargs)
            log.track().claim(number + 1, Operation(log.clock, cls.__name__, capture(2)))
            return result

        torch.autograd.Function.apply = classmethod(apply)  # type: ignore[assignment, method-assign]

    def _follow_numpy(self) -> None:
        original = torch.from_numpy
        origins = self.origins
        shadow = self.shadow
        assert shadow is not None

        def from_numpy(array: Any) -> torch.Tensor:
            result = original(array)
            deps, events = origins.of(array)
            if deps:
                shadow.write(result, deps, events, 0)
            return result

        torch.from_numpy = from_numpy

    def _follow_parameters(self) -> None:
        original = torch.nn.Parameter.__new__
        instruments = self

        def __new__(cls: Any, data: Any = None, requires_grad: bool = True) -> Any:
            made = original(cls, data, requires_grad)
            surface = instruments.surface
            if surface is not None and requires_grad and isinstance(data, torch.Tensor):
                with untracked():
                    if data.grad_fn is not None:
                        surface.false_leaf(made, "parameter", capture(2))
            return made

        torch.nn.Parameter.__new__ = __new__  # type: ignore[method-assign, assignment]

    def _listen_to_optimizers(self) -> None:
        from torch.optim import optimizer as module

        module.register_optimizer_step_pre_hook(self._before_step)
        module.register_optimizer_step_post_hook(self._after_step)
        original = module.Optimizer.add_param_group
        instruments = self

        def add_param_group(self: Any, group: Any) -> None:
            original(self, group)
            instruments.governor.has_optimizer = True
            if instruments.training is not None:
                with untracked():
                    instruments.training.optimizer_made(self, capture(2))

        module.Optimizer.add_param_group = add_param_group  # type: ignore[method-assign]

    # Listening.

    def _before_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        closure = kwargs.get("closure", args[1] if len(args) > 1 else None)
        is_library = type(optimizer).__module__.startswith("torch.") and closure is None
        stack = capture(2)
        with untracked():
            if self.training is not None:
                self.training.before_step(optimizer, stack, closure is not None)
                if is_library:
                    self.training.note_versions(optimizer)
            elif is_library:
                self.fast_recorder.before_step(optimizer)
        self.situation.library_step = 1 if is_library else 0

    def _after_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        self.situation.library_step = 0
        stack = capture(2)
        with untracked():
            if self.training is not None:
                self.training.after_step(optimizer, stack)
            else:
                self.fast_recorder.after_step(optimizer, stack)
        self.governor.count_step()

    def _grad_assigned(self, tensor: torch.Tensor, value: Any) -> None:
        assert self.training is not None
        self.training.grad_assigned(tensor, value, capture(4))

    def _measure(self, nodes: Any) -> None:
        """The norms of the gradients, at the first backwards and then ever more rarely."""
        count = self.backwards.count
        if self.fake or self.shadow is None or self.training is None or (count > 2 and count & (count - 1)):
            return
        for leaf in self.shadow.leaves_in(self.training.reaches[-1].reached):
            self._measure_leaf(leaf)

    def _measure_leaf(self, leaf: Leaf) -> None:
        tensor = leaf.tensor()
        grad = tensor.grad if tensor is not None else None
        if grad is None or grad.layout is not torch.strided or grad.device.type == "meta":
            return
        norm = float(grad.detach().double().norm())
        self.norms[leaf.bit] = Norms(norm, norm == 0.0)

    # The end.

    def finish(self) -> None:
        """Judgements that need the whole run."""
        if self.fast or self.training is None or self.shadow is None or self.grads is None:
            return
        with untracked():
            name_leaves(self.shadow)
            if not self.fake:
                for leaf in self.shadow.leaves:
                    self._measure_leaf(leaf)
            self.grads.finish()
            self.modules.finish(self.training, self.shadow, self.ledger)
            self.training.finish(self.grads.none_read_ids)

    def parameters(self) -> list[dict[str, Any]]:
        """The table of leaves with the state of their gradient."""
        if self.shadow is None or self.training is None:
            return []
        rows = []
        managed = 0
        for record in self.training.optimizers.values():
            managed |= record.mask
        for leaf in self.shadow.leaves:
            seen = managed | self.training.ever_reached | self.training.ever_missing
            if not (leaf.is_parameter or managed >> leaf.bit & 1) or not seen >> leaf.bit & 1:
                if not seen >> leaf.bit & 1 or not leaf.name:
                    continue
            norms = self.norms.get(leaf.bit)
            state = "none"
            if self.training.gained(leaf):
                state = "zero" if norms is not None and norms.is_zero else "ok"
            rows.append(
                {
                    "name": leaf.name or f"leaf{list(leaf.shape)}",
                    "shape": list(leaf.shape),
                    "grad": state,
                    "norm": norms.value if norms is not None and state != "none" else None,
                    "in_optimizer": bool(managed >> leaf.bit & 1),
                }
            )
        return rows
