"""The protocol of training, judged at the end of a path: what was cleared, stepped, frozen, replaced, kept alive."""

from __future__ import annotations

import ast
from typing import Any

from gradsight.interp.flow import Flow
from gradsight.interp.layers import has_parameters
from gradsight.interp.sites import Site
from gradsight.interp.tensors import Node, Tensor
from gradsight.interp.training import Action
from gradsight.interp.values import MISSING, Instance, Layer, Mapping, Opaque, Seq, tensors_in
from gradsight.model.events import Step

SOFTMAX = {"softmax", "Softmax", "softmin"}
SIGMOIDS = {"sigmoid", "Sigmoid"}
TAKES_LOGITS = {"cross_entropy": SOFTMAX, "CrossEntropyLoss": SOFTMAX, "binary_cross_entropy_with_logits": SIGMOIDS, "BCEWithLogitsLoss": SIGMOIDS}  # fmt: skip
TYPOS = {
    "require_grad": "requires_grad", "requires_grads": "requires_grad", "require_grads": "requires_grad", "required_grad": "requires_grad",
    "require_gradient": "requires_grad", "requires_gradient": "requires_grad", "requiers_grad": "requires_grad", "gradient": "grad", "grads": "grad",
}  # fmt: skip


REPLACING = {"round_", "sign_", "floor_", "ceil_", "copy_", "clamp_", "trunc_", "bernoulli_", "load_state_dict"}
"""Writes that give a straight-through estimator or a projection its meaning: the value changes on purpose."""


class Protocol(Flow):
    """Conclusions about the training loop and about modules."""

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
        for first, second in zip(steps, steps[1:]):
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
            if action.verb != "clip" or not action.leaves and not action.subject:
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

    # -- totals and lists --------------------------------------------------------------------------------------------

    def before_augmented(self, node: ast.AugAssign, current: Tensor, operand: Any) -> None:
        self.note_total(node, operand)

    def accumulated(self, node: ast.AugAssign, current: Any, operand: Any, result: Any) -> None:
        self.note_total(node, operand)

    def note_total(self, node: ast.AugAssign, operand: Any) -> None:
        if (
            isinstance(operand, Tensor)
            and isinstance(node.op, ast.Add)
            and operand.needs_grad() is True
            and self.frame.loops
            and operand.shape in ((), None)
        ):
            self.totals.append((node, self.site(node), operand, operand.edge()))

    totals: list[Any]
    stored_graphs: list[Any]

    def tensor_stored(self, tensor: Tensor, site: Site) -> None:
        if tensor.requires_grad is True and tensor.node is not None and site.loops:
            self.stored_graphs.append((tensor, site, self.tick))

    def judge_stored(self) -> None:
        """Tensors put into a list after their backward has run: each keeps its dead graph alive."""
        reached = {run.loss.edge() for run in self.backwards}
        walked: dict[Any, int] = {}
        rounds: dict[Any, set[Any]] = {}
        for tensor, site, tick in self.stored_graphs:
            edge = tensor.node
            freed = edge.freed if edge is not None else None
            if edge is None or freed is None:
                continue
            after = any(run.site is freed and run.tick < tick for run in self.backwards)
            if after or edge in reached:
                rounds.setdefault(site.key, set()).add(site.loops[-1][1])
                walked[site.key] = walked.get(site.key, 0) + 1
                if len(rounds[site.key]) == 2 and walked[site.key] == 2:
                    self.emit("graph-kept-alive", site, [Step("made", tensor.site, "made here"), *self.call_steps(site)], target="the list", loss=tensor.label)

    def judge_totals(self) -> None:
        """A running total of losses whose backward has already run."""
        reached: set[Any] = set()
        for run in self.backwards:
            reached.add(run.loss.edge())
        counts: dict[Any, int] = {}
        for node, site, operand, edge in self.totals:
            if isinstance(edge, Node) and edge.freed is not None and edge in reached:
                counts[node] = counts.get(node, 0) + 1
                if counts[node] == 2:
                    self.emit(
                        "graph-kept-alive",
                        site,
                        [Step("made", operand.site, "the loss is made here")],
                        target=self.text_of_target(site),
                        loss=operand.label,
                    )

    # -- modules -----------------------------------------------------------------------------------------------------

    def judge_registration(self, module: Any) -> None:
        if not isinstance(module, Instance) or module.module is None or module.open:
            return
        registered_names = module.module.registered
        if not any(
            isinstance(value, (Seq, Mapping, Tensor)) and name not in registered_names
            for name, value in module.attributes.items()
        ):
            return
        held = {tensor for optimizer in self.optimizers for tensor in self.parameters_of(optimizer)}
        registered = {id(inner) for _, inner in self.modules_in(module)} | {
            id(t) for _, t in self.tensors_of(module, "parameter")
        }
        for name, value in module.attributes.items():
            if name.startswith("<") or name in module.module.registered:
                continue
            found = self.hidden_in(value, registered, module)
            if found is None:
                continue
            place = self.attribute_sites.get((id(module), name))
            if place is None:
                continue
            parameters = (
                [found]
                if isinstance(found, Tensor)
                else [tensor for _, tensor in self.tensors_of(found, "parameter")]
            )
            if not parameters or any(parameter in held for parameter in parameters):
                continue
            self.emit(
                "not-registered",
                place,
                [],
                name=name,
                container=container_word(value),
                what="parameter" if isinstance(found, Tensor) else "module",
            )

    attribute_sites: dict[tuple[int, str], Site]

    def hidden_in(self, value: Any, registered: set[int], owner: Instance) -> Any:
        """A module or parameter made by the owner itself, inside a plain container."""
        if isinstance(value, Tensor):
            if (
                value.requires_grad is True
                and value.is_leaf
                and value.leaf_made
                and not value.is_parameter
                and id(value) not in registered
            ):
                return value if self.made_by(value.site, owner) else None
            return None
        items: list[Any] = []
        if isinstance(value, Seq):
            items = value.items
        elif isinstance(value, Mapping):
            items = [*value.items.values(), *value.rest]
        for item in items:
            if isinstance(item, (Layer, Instance)) and item.module is not None:
                if id(item) not in registered and item.site is not None and self.made_by(item.site, owner):
                    if any(True for _ in self.tensors_of(item, "parameter")):
                        return item
            elif (
                isinstance(item, Tensor)
                and item.is_parameter
                and id(item) not in registered
                and self.made_by(item.site, owner)
            ):
                return item
            elif isinstance(item, (Seq, Mapping)):
                found = self.hidden_in(item, registered, owner)
                if found is not None and not isinstance(found, Tensor):
                    return found
        return None

    def made_by(self, site: Site, owner: Instance) -> bool:
        """Whether something was made while a method of the owner was running."""
        frame: Any = site.frame
        while frame is not None:
            if frame.receiver is owner:
                return True
            frame = frame.call_site.frame if frame.call_site is not None else None
        return False

    def attribute_assigned(self, owner: Any, name: str, value: Any, old: Any, node: ast.AST) -> None:
        site = self.site(node)
        self.attribute_sites[(id(owner), name)] = site
        if old is MISSING or old is None or old is value:
            return
        replaced = [old] if isinstance(old, Tensor) and old.is_parameter else []
        if isinstance(old, (Layer, Instance)) and old.module is not None:
            replaced = [tensor for _, tensor in self.tensors_of(old, "parameter")]
        fresh = tensors_in(value) if isinstance(value, Tensor) else []
        if isinstance(value, (Layer, Instance)) and value.module is not None:
            fresh = [tensor for _, tensor in self.tensors_of(value, "parameter")]
        if replaced and fresh:
            for optimizer in self.optimizers:
                held = self.parameters_of(optimizer)
                if any(any(tensor is parameter for parameter in held) for tensor in replaced):
                    self.replacements.append((optimizer, site, fresh, name))

    replacements: list[Any]

    def optimizer_method(
        self, optimizer: Opaque, name: str, args: list[Any], kwargs: dict[str, Any], node: ast.AST
    ) -> Any:
        if name == "step":
            for owner, site, fresh, attribute in self.replacements:
                held = [tensor for other in self.optimizers for tensor in self.parameters_of(other)]
                if owner is optimizer and not any(
                    any(tensor is parameter for parameter in held) for tensor in fresh
                ):
                    self.emit("parameters-replaced", site, [
                        Step("made", optimizer.site or site, "the optimizer took the old parameters here"),
                        Step("needed", self.site(node), "this step does not move the new ones"),
                    ], name=attribute)  # fmt: skip
        return super().optimizer_method(optimizer, name, args, kwargs, node)

    def layer_made(self, layer: Layer, node: ast.AST) -> None:
        frame = self.frame
        if (
            frame.function is None
            or frame.function.name != "forward"
            or frame.owner is None
            or frame.owner.kind != "module"
        ):
            return
        if not has_parameters(layer.name, layer.options) or frame.guards:
            return
        statement = self.statement
        if isinstance(statement, ast.Assign) and any(
            isinstance(target, ast.Attribute) for target in statement.targets
        ):
            return
        self.emit("layer-made-in-forward", self.site(node), [], layer=layer.name)

    statement: ast.AST | None = None

    def unknown_attribute_set(self, owner: Any, name: str, value: Any, site: Site) -> None:
        if name in TYPOS:
            self.emit(
                "attribute-typo", site, [], name=name, meant=TYPOS[name], target=self.text_of_target(site)
            )

    def operator_called(
        self, name: str, args: list[Any], kwargs: dict[str, Any], result: Any, node: ast.AST
    ) -> None:
        if name in TAKES_LOGITS and args and isinstance(args[0], Tensor):
            self.check_activated(name, args[0], node)

    def layer_called(self, layer: Layer, bound: dict[str, Any], result: Any, node: ast.AST) -> None:
        name = layer.name.rpartition(".")[2]
        if name in TAKES_LOGITS:
            first = next(iter(bound.values()), None)
            if isinstance(first, Tensor):
                self.check_activated(name, first, node)

    def check_activated(self, loss: str, tensor: Tensor, node: ast.AST) -> None:
        grad_node = tensor.node
        if grad_node is not None and grad_node.op in TAKES_LOGITS[loss]:
            steps = [Step("made", grad_node.site, f"{grad_node.op} is applied here"), *self.call_steps(self.site(node))]
            self.emit("softmax-before-loss", self.site(node), steps, op=grad_node.op, loss=loss)


def container_word(value: Any) -> str:
    """How the container is spoken of."""
    if isinstance(value, Tensor):
        return "tensor"
    if isinstance(value, Mapping):
        return "dict"
    return value.kind if isinstance(value, Seq) else "container"
