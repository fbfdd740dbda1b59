"""The regime of a training loop: evaluation mode, learning rate schedules, scaled gradients, frozen parameters."""

from __future__ import annotations

import ast
import sys
from typing import Any

import torch
from torch.optim import lr_scheduler

from gradsight.agent.faults import Fault, Ledger, quietly, step_at
from gradsight.agent.sites import SourceRange, Stack, capture, is_user_file, place_of, text_of, tree_of
from gradsight.agent.training import TrainingWatch

_TYPOS = (
    "require_grad",
    "required_grad",
    "requires_gradient",
    "requires_grads",
    "require_grads",
    "requiers_grad",
    "requries_grad",
    "requires_gard",
)
_GROUP_OPTIONS = ("lr", "weight_decay", "momentum", "learning_rate")


class TrainModes:
    """Watches modes and helpers around the loop."""

    def __init__(self, ledger: Ledger, training: TrainingWatch) -> None:
        self.ledger = ledger
        self.training = training
        self._eval_at: dict[int, Stack] = {}
        self._evaluated: set[int] = set()
        self._trained_in_eval: dict[int, Stack] = {}
        self._early_schedules: dict[int, Stack] = {}
        self._scaled = False
        self._unscaled: set[int] = set()
        self._scaled_use: Stack = ()

    def install(self) -> None:
        """Listens to `eval()`, `train()`, schedulers and gradient scalers."""
        self._watch_modes()
        self._watch_schedulers()
        self._watch_scalers()

    # Evaluation mode.

    def _watch_modes(self) -> None:
        module: Any = torch.nn.Module
        original = module.train
        watch = self

        def train(self: Any, mode: bool = True) -> Any:
            inner = sys._getframe(1).f_code is train.__code__
            # A single layer, or what was in evaluation mode before, is kept there on purpose.
            is_row = next(self.children(), None) is not None
            switched = (
                [] if inner else [part for part in self.modules() if mode or (part.training and is_row)]
            )
            result = original(self, mode)
            if not inner:
                stack = capture(2)
                for part in switched:
                    if mode:
                        watch._eval_at.pop(id(part), None)
                        watch._evaluated.discard(id(part))
                    else:
                        watch._eval_at[id(part)] = stack
            return result

        module.train = train

    @quietly
    def mode_dependent(self, module: Any, active: bool) -> None:
        """A dropout or a batch norm runs; `active` when it behaves as in training."""
        if active or id(module) not in self._eval_at:
            return
        if not torch.is_grad_enabled():
            self._evaluated.add(id(module))
        elif id(module) in self._evaluated:
            self._trained_in_eval[id(module)] = self._eval_at[id(module)]

    @quietly
    def stepped(self, optimizer: Any) -> None:
        """An optimizer stepped."""
        for stack in self._trained_in_eval.values():
            if stack:
                place = place_of(stack[0])
                message = f"`{text_of(place)}` was for an evaluation, and training goes on in evaluation mode"
                steps = step_at("needed", "the step that trains in evaluation mode", capture(3))
                self.ledger.add(Fault("eval-left-on", message, place, steps, "warning", {}))
        self._trained_in_eval.clear()
        early = self._early_schedules.pop(id(optimizer), ())
        if early:
            place = place_of(early[0])
            message = f"`{text_of(place)}` runs before the first step of its optimizer: the first learning rate is skipped"
            self.ledger.add(
                Fault(
                    "scheduler-first",
                    message,
                    place,
                    step_at("needed", "the first step", capture(3)),
                    "warning",
                    {},
                )
            )

    # Schedulers.

    def _watch_schedulers(self) -> None:
        base: Any = getattr(lr_scheduler, "LRScheduler", None) or lr_scheduler._LRScheduler
        original = base.step
        watch = self

        def step(self: Any, *args: Any, **kwargs: Any) -> Any:
            optimizer = getattr(self, "optimizer", None)
            record = watch.training.optimizers.get(id(optimizer))
            result = original(self, *args, **kwargs)
            caller = sys._getframe(1)
            while caller is not None and caller.f_code.co_name in ("step", "wrapper", "_initial_step"):
                if caller.f_code.co_name == "_initial_step":
                    return result
                caller = caller.f_back  # type: ignore[assignment]
            if (
                record is not None
                and not record.steps
                and caller is not None
                and caller.f_code.co_name != "__init__"
            ):
                watch._early_schedules.setdefault(id(optimizer), capture(2))
            return result

        base.step = step

    # Scaled gradients.

    def _watch_scalers(self) -> None:
        scaler: Any = torch.amp.GradScaler if hasattr(torch.amp, "GradScaler") else torch.cuda.amp.GradScaler
        scale, unscale, step = scaler.scale, scaler.unscale_, scaler.step
        watch = self

        def scaled(self: Any, outputs: Any) -> Any:
            if self.is_enabled():
                watch._scaled = True
                watch._scaled_use = ()
                watch._unscaled.clear()
            return scale(self, outputs)

        def unscaled(self: Any, optimizer: Any) -> Any:
            watch._unscaled.add(id(optimizer))
            watch._scaled = False
            return unscale(self, optimizer)

        def stepped(self: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            if self.is_enabled() and id(optimizer) not in watch._unscaled:
                watch._report_scaled()
            watch._scaled = False
            return step(self, optimizer, *args, **kwargs)

        scaler.scale, scaler.unscale_, scaler.step = scaled, unscaled, stepped

    @property
    def scaled(self) -> bool:
        """Whether gradients are scaled right now."""
        return self._scaled

    @quietly
    def gradient_used(self, stack: Stack) -> None:
        """Somebody computes with a gradient."""
        if self._scaled and self.training.backwards and not self._scaled_use:
            self._scaled_use = stack

    @quietly
    def _report_scaled(self) -> None:
        stack, self._scaled_use = self._scaled_use, ()
        if stack:
            place = place_of(stack[0])
            message = f"`{text_of(place)}` works on gradients that are still scaled: `unscale_` comes first"
            self.ledger.add(Fault("scaled-gradients-used", message, place, (), "warning", {}))

    # Frozen parameters and typos.

    @quietly
    def moved_while_frozen(self, parameter: torch.Tensor, frozen: Stack, step: Stack) -> None:
        """A step moved a parameter that does not require grad."""
        if not frozen:
            return
        place = place_of(frozen[0])
        message = f"`{text_of(place)}` freezes a parameter that its optimizer still moves: its old gradient is still there"
        self.ledger.add(
            Fault(
                "frozen-still-moves",
                message,
                place,
                step_at("needed", "moved by this step", step),
                "warning",
                {},
            )
        )

    @quietly
    def finish(self) -> None:
        """Attributes that torch does not know, on tensors and optimizers that took part."""
        for leaf in self.training.shadow.leaves:
            tensor = leaf.tensor()
            for name in _TYPOS:
                if tensor is not None and name in getattr(tensor, "__dict__", {}):
                    self._report_typo(name, "requires_grad")
        for record in self.training.optimizers.values():
            optimizer = record.reference()
            for name in _GROUP_OPTIONS:
                if (
                    optimizer is not None
                    and name in vars(optimizer)
                    and type(optimizer).__module__.startswith("torch.")
                ):
                    self._report_typo(name, f'param_groups[0]["{name}"]')

    def _report_typo(self, name: str, meant: str) -> None:
        place = _assignment_of(name)
        if place is not None:
            message = f"torch has no attribute `.{name}`, so this line does nothing: did you mean `{meant}`?"
            self.ledger.add(Fault("attribute-typo", message, place, (), "warning", {"attribute": name}))


def _assignment_of(name: str) -> SourceRange | None:
    """The first assignment to an attribute of this name in the user's files."""
    for module in list(sys.modules.values()):
        filename = getattr(module, "__file__", None)
        if not isinstance(filename, str) or not is_user_file(filename):
            continue
        tree = tree_of(filename)
        for node in ast.walk(tree) if tree is not None else ():
            if isinstance(node, ast.Attribute) and node.attr == name and isinstance(node.ctx, ast.Store):
                end = node.end_col_offset or node.col_offset + 1
                return SourceRange(
                    filename, node.lineno, node.col_offset + 1, node.end_lineno or node.lineno, end + 1
                )
    return None
