"""The protocol of training, judged at the end of a path: what was cleared, stepped, frozen, replaced, kept alive."""

from __future__ import annotations

import ast
from itertools import pairwise
from typing import Any

from gradsight.interp.registration import Registration
from gradsight.interp.sites import Site
from gradsight.interp.tensors import Tensor
from gradsight.interp.training import Action
from gradsight.interp.values import Layer, Opaque
from gradsight.model.events import Step

REPLACING = {
    "round_",
    "sign_",
    "floor_",
    "ceil_",
    "copy_",
    "clamp_",
    "trunc_",
    "bernoulli_",
    "load_state_dict",
}
"""Writes that give a straight-through estimator or a projection its meaning: the value changes on purpose."""


class Protocol(Registration):
    """Conclusions about the training loop."""

    def finish(self) -> None:
        """The path is over: look back at the whole of it."""
        if not self.gradients_unknown:
            for optimizer in self.optimizers:
                self.judge_optimizer(optimizer)
        self.judge_schedulers()
        self.judge_clipping()
        self.judge_totals()
        self.judge_stored()
        for module in self.modules_made:
            self.judge_registration(module)

    # -- optimizers --------------------------------------------------------------------------------------------------

    def touches(self, action: Action, parameters: set[Tensor]) -> bool:
        """Whether a backward reached, or a zero cleared, one of these parameters."""
        if action.verb == "backward":
            return not parameters or bool(parameters & set(action.leaves))
        if isinstance(action.subject, Opaque):
            return not parameters or bool(parameters & set(self.parameters_of(action.subject)))
        return bool(parameters & {tensor for _, tensor in self.tensors_of(action.subject, "parameter")})

    def judge_optimizer(self, optimizer: Opaque) -> None:
        if optimizer.state.get("escaped") or not optimizer.state.get("exact"):
            return
        parameters = set(self.parameters_of(optimizer))
        if not parameters:
            return
        steps = [action for action in self.log if action.verb == "step" and action.subject is optimizer]
        if not steps:
            return
        backwards = [
            action for action in self.log if action.verb == "backward" and self.touches(action, parameters)
        ]
        if not backwards:
            self.judge_no_backward(optimizer, steps[0], parameters)
            return
        self.judge_order(optimizer, steps, backwards, parameters)
        self.judge_clearing(steps, backwards, parameters)
        self.judge_foreign(optimizer, steps, backwards, parameters)

    def judge_no_backward(self, optimizer: Opaque, step: Action, parameters: set[Tensor]) -> None:
        if any(parameter in self.gradient_ticks for parameter in parameters) or self.ended_early:
            return
        if any(action.verb == "backward" for action in self.log) and self.events:
            return
        self.emit(
            "step-without-backward",
            step.site,
            [Step("made", optimizer.site or step.site, "the optimizer is made here")],
        )

    def judge_order(
        self, optimizer: Opaque, steps: list[Action], backwards: list[Action], parameters: set[Tensor]
    ) -> None:
        """zero_grad between backward and step: the step sees nothing."""
        previous = -1
        for step in steps:
            window = [
                action for action in self.log if previous < action.tick <= step.tick and action is not step
            ]
            zeros = [action for action in window if action.verb == "zero" and self.covers(action, parameters)]
            runs = [
                action for action in window if action.verb == "backward" and self.touches(action, parameters)
            ]
            if zeros and runs and zeros[-1].tick > runs[-1].tick:
                place = zeros[-1]
                self.emit("cleared-before-step", place.site, [
                    Step("made", runs[-1].site, "the gradient is computed here"),
                    Step("needed", step.site, "the step finds no gradient here"),
                ])  # fmt: skip
            previous = step.tick

    def covers(self, action: Action, parameters: set[Tensor]) -> bool:
        if isinstance(action.subject, Opaque):
            return parameters <= set(self.parameters_of(action.subject))
        return parameters <= {tensor for _, tensor in self.tensors_of(action.subject, "parameter")}

    def judge_clearing(self, steps: list[Action], backwards: list[Action], parameters: set[Tensor]) -> None:
        """Two steps with backwards before each and nothing cleared between them."""
        for first, second in pairwise(steps):
            runs = [run for run in backwards if first.tick < run.tick < second.tick]
            before = [run for run in backwards if run.tick < first.tick]
            if not runs or not before or first.site.key != second.site.key or not first.loops:
                continue
            if any(
                self.was_cleared(parameter, first.tick, second.tick)
                or self.was_cleared(parameter, before[-1].tick, first.tick)
                for parameter in parameters
            ):
                continue
            if not any(isinstance(parameter.grad, Tensor) for parameter in parameters):
                continue
            self.emit(
                "gradients-never-cleared",
                runs[-1].site,
                [Step("needed", second.site, "the step uses the gradients of all rounds so far")],
            )
            return

    def was_cleared(self, parameter: Tensor, start: int, end: int) -> bool:
        return any(start <= tick <= end for tick in self.all_clears.get(parameter, ()))

    all_clears: dict[Tensor, list[int]]

    def clear_gradients(self, tensors: list[Tensor], in_place: bool, site: Any) -> None:
        super().clear_gradients(tensors, in_place, site)
        for tensor in tensors:
            self.all_clears.setdefault(tensor, []).append(self.tick)

    def set_tensor_attribute(
        self, tensor: Tensor, name: str, value: Any, node: ast.AST, augmented: bool
    ) -> None:
        super().set_tensor_attribute(tensor, name, value, node, augmented)
        if name == "grad":
            self.all_clears.setdefault(tensor, []).append(self.tick)

    def after_write(self, target: Tensor, op: str, site: Site, write: Any, others: list[Tensor]) -> None:
        super().after_write(target, op, site, write, others)
        if target.grad_of is not None and op in ("zero_", "fill_", "mul_", "copy_", "index_put_"):
            self.all_clears.setdefault(target.grad_of, []).append(self.tick)
            self.cleared_ticks[target.grad_of] = self.tick
        if write.mode == "no_grad" and op not in REPLACING:
            source = target.source if target.snapshot == "data" else target
            if not self.grad_mode or source is not target:
                if source is not None and source.node is not None and source.requires_grad is True:
                    self.written_without_grad.append((source, write))
        if write.mode == "graph" and target.node is not None and target.requires_grad is True:
            self.recorded_writes.append((site, op))

    recorded_writes: list[Any]

    def judge_foreign(
        self, optimizer: Opaque, steps: list[Action], backwards: list[Action], parameters: set[Tensor]
    ) -> None:
        """Gradients that another optimizer's loss left behind are still there at this step."""
        others = [other for other in self.optimizers if other is not optimizer]
        for step in steps:
            for parameter in parameters:
                cleared = max(
                    (tick for tick in self.all_clears.get(parameter, ()) if tick < step.tick), default=-1
                )
                runs = [
                    run for run in backwards if cleared < run.tick < step.tick and parameter in run.leaves
                ]
                if len(runs) < 2 or runs[0].site.key == runs[-1].site.key:
                    continue
                between = [
                    action
                    for action in self.log
                    if action.verb == "step"
                    and action.subject in others
                    and runs[0].tick < action.tick < runs[-1].tick
                ]
                own = [action for action in steps if runs[0].tick < action.tick < runs[-1].tick]
                if between and not own:
                    self.emit("foreign-gradients", runs[0].site, [
                        Step("written", runs[-1].site, "added to by the loss of its own here"),
                        Step("needed", step.site, "both reach this step"),
                    ], parameter=parameter.label)  # fmt: skip
                    return

    def step_parameters(self, optimizer: Opaque, site: Site) -> None:
        for parameter in self.parameters_of(optimizer):
            if (
                parameter.requires_grad is False
                and parameter.frozen_at is not None
                and isinstance(parameter.grad, Tensor)
            ):
                options = optimizer.state["options"]
                moving = "Adam" in optimizer.path or any(
                    options.get(key) not in (None, 0, 0.0) for key in ("momentum", "weight_decay")
                )
                if moving or not self.was_cleared(parameter, 0, self.tick):
                    self.emit(
                        "frozen-still-moves",
                        parameter.frozen_at,
                        [Step("written", site, "this step still moves it")],
                        parameter=parameter.label,
                    )
        self.check_eval(optimizer, site)
        super().step_parameters(optimizer, site)

    def check_eval(self, optimizer: Opaque, site: Site) -> None:
        """A step while the model is in eval mode, after it had been trained in train mode before."""
        parameters = set(self.parameters_of(optimizer))
        switches = [action for action in self.log if action.verb in ("eval", "train")]
        for action in reversed(switches):
            owned = {tensor for _, tensor in self.tensors_of(action.subject, "parameter")}
            if not owned & parameters:
                continue
            if action.verb == "train":
                return
            earlier = any(
                a.verb == "step" and a.subject is optimizer and a.tick < action.tick for a in self.log
            )
            sensitive = any(
                isinstance(inner, Layer) and ("Dropout" in inner.name or "BatchNorm" in inner.name)
                for _, inner in self.modules_in(action.subject)
            )
            inferred = self.last_inference > action.tick
            if (earlier or inferred) and sensitive:
                self.emit(
                    "eval-left-on",
                    action.site,
                    [Step("needed", site, "training goes on here, in eval mode")],
                    target=self.text_of_target(action.site),
                )
            return

    def judge_schedulers(self) -> None:
        for index, action in enumerate(self.log):
            if action.verb != "scheduler":
                continue
            optimizer = action.subject.state.get("optimizer")
            if not isinstance(optimizer, Opaque) or optimizer.state.get("escaped"):
                return
            before = any(a.verb == "step" and a.subject is optimizer for a in self.log[:index])
            after = next((a for a in self.log[index:] if a.verb == "step" and a.subject is optimizer), None)
            if not before and after is not None:
                self.emit(
                    "scheduler-first",
                    action.site,
                    [Step("needed", after.site, "the optimizer's first step comes later")],
                )
            return

    def judge_clipping(self) -> None:
        for index, action in enumerate(self.log):
            if action.verb != "clip" or (not action.leaves and not action.subject):
                continue
            parameters = set(action.subject)
            for earlier in reversed(self.log[:index]):
                if earlier.verb == "unscale":
                    break
                if earlier.verb == "backward" and self.touches(earlier, parameters):
                    loss = earlier.subject.loss
                    if loss.attributes and "<scaled>" in loss.attributes:
                        self.emit(
                            "scaled-gradients-used",
                            action.site,
                            [Step("made", earlier.site, "the scaled gradient is computed here")],
                        )
                    break
