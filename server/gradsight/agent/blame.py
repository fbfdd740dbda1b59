"""From an error to its cause: torch's message names the symptom, the log and the shadow name the line.

Each explanation looks at the traceback for the tensors involved and answers with a fault, or with nothing when the
error has no gradient story.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import torch

from gradsight.agent.api_hooks import ApiHooks
from gradsight.agent.backwards import Backwards, attached
from gradsight.agent.caught import related_errors, text_of_error
from gradsight.agent.custom import last_statement
from gradsight.agent.cuts import FAULT_OF_CUT, cut_fault, cut_place, cutting_events, no_grad_scope
from gradsight.agent.definitions import builds_a_tensor, earlier_readers
from gradsight.agent.faults import Fault, FaultStep, Kind, calls_of, inside_library, step_at
from gradsight.agent.gradwatch import GradWatch
from gradsight.agent.graph import leaf_of, untracked, walk
from gradsight.agent.light_cuts import LightCuts, fault_of_lost
from gradsight.agent.modules import ModuleNotes
from gradsight.agent.naming import name_leaves
from gradsight.agent.oplog import Operation, OpLog, operator_label
from gradsight.agent.refusals import explanations
from gradsight.agent.scene import Scene, scene_of
from gradsight.agent.shadow import Shadow
from gradsight.agent.sites import (
    Stack,
    is_user_file,
    library_among,
    line_of,
    place_of,
    statement_of,
    text_of,
)

# What torch says when it refuses a write on the spot.
_LEAF = r"a (view of a )?leaf Variable that requires grad"
_VIEW = r"is a view and (its base or another view|is being modified inplace)"
_OTHER_MODE = r"A view was created in (no_grad|inference) mode"
_OVERLAP = r"refers? to a single memory location|single memory location"
_REFUSED_WRITE = re.compile("|".join((_LEAF, _VIEW, _OTHER_MODE, _OVERLAP)))


def is_refused_write(error: BaseException) -> bool:
    """Whether torch raised this instead of writing in place."""
    return isinstance(error, RuntimeError) and _REFUSED_WRITE.search(text_of_error(error)) is not None


class Blame:
    """Explains errors with what the instruments saw."""

    def __init__(
        self,
        log: OpLog,
        shadow: Shadow | None,
        surface: ApiHooks | None,
        grads: GradWatch | None,
        backwards: Backwards,
        modules: ModuleNotes,
    ) -> None:
        self.log = log
        self.shadow = shadow
        self.surface = surface
        self.grads = grads
        self.backwards = backwards
        self.modules = modules
        self.grad_enabled = True
        backwards.explain = self.explain_on_its_way
        self.unwaited: Callable[[], bool] | None = None
        self.bound_at: Callable[[torch.Tensor], Stack] = lambda _: ()
        self.cuts: LightCuts | None = None
        self.was_visited: Callable[[str, int], bool] = lambda filename, line: True
        self._explanations: tuple[tuple[str, Callable[[Scene], Fault | None]], ...] = (
            (_LEAF, self._leaf_write),
            (_VIEW, self._view_write),
            (_OTHER_MODE, self._view_write),
            (_OVERLAP, self._overlapping_write),
            (r"grad can be implicitly created only for scalar outputs", self._non_scalar),
            (r"Mismatch in shape: grad_output", self._non_scalar),
            (r"does not require grad and does not have a grad_fn", self._no_graph),
            (r"can't optimize a non-leaf Tensor", self._non_leaf_optimizer),
            (r"optimizer got an empty parameter list", self._empty_optimizer),
            (
                r"differentiated Tensors?.* (appears? to not have been used|does not require grad)",
                self._unused_input,
            ),
            (r"Only Tensors created explicitly by the user", self._deepcopy),
            (
                r"returned an incorrect number of gradients|returned an invalid gradient|expected (Variable|Tensor) or ",
                self._custom_function,
            ),
            (r"[Ii]nference tensors? ", self._inference),
            (r"NoneType", self._grad_is_none),
            *explanations(self),
        )

    def explain(self, error: BaseException) -> Fault | None:
        """The fault behind an error that ended the program, looking through the errors it was raised from."""
        # Context managers have unwound by now: grad mode is off only when a plain call switched it off.
        self.grad_enabled = torch.is_grad_enabled()
        for current in related_errors(error):
            fault = attached(current)
            if fault is None:
                with untracked():
                    fault = self._explain_one(scene_of(current))
            if fault is not None:
                return fault
        return None

    def explain_on_its_way(self, error: BaseException) -> Fault | None:
        """The fault behind an error that somebody may still catch."""
        self.grad_enabled = torch.is_grad_enabled()
        frame = sys._getframe(1)
        with untracked():
            return self._explain_one(scene_of(error, frame.f_back))

    def _explain_one(self, scene: Scene) -> Fault | None:
        if not scene.stack:
            return None
        for pattern, explanation in self._explanations:
            if re.search(pattern, scene.message):
                fault = explanation(scene)
                if fault is not None:
                    return fault
        return None

    # In-place writes that torch refuses on the spot.

    def _leaf_write(self, scene: Scene) -> Fault:
        view = "view of a " if "a view of a leaf" in scene.message else ""
        message = f"`{text_of(scene.place)}` writes to a {view}leaf that requires grad"
        return self.at_error("leaf-written", message, scene)

    def _view_write(self, scene: Scene) -> Fault:
        match = re.search(r"Output \d+ of (\w+?)(?:Backward\d*)? is a view", scene.message)
        maker = match.group(1) if match else ""
        origin = f" of `{_snake(maker)}`" if maker else ""
        message = f"`{text_of(scene.place)}` writes to one of several views{origin}, which torch refuses"
        if "its base or another view of its base has been modified" in scene.message:
            # What raises is a read: the write was elsewhere, into the memory that the views show.
            message = f"`{text_of(scene.place)}` needs one of several views{origin} whose memory was written in place"
        made = self._latest_operation(_snake(maker), scene.stack) if maker else None
        steps = step_at("made", "the views are made here", made.stack) if made is not None else ()
        return self.at_error("shared-view-written", message, scene, steps)

    def _overlapping_write(self, scene: Scene) -> Fault:
        message = f"`{text_of(scene.place)}` writes to a tensor whose elements share memory"
        return self.at_error("shared-view-written", message, scene)

    def _latest_operation(self, name: str, stack: Stack) -> Operation | None:
        found = self.log.latest(name)
        return found if found is not None and found.stack else None

    # Backward.

    def _non_scalar(self, scene: Scene) -> Fault:
        root = (
            scene.local("_make_grads", "out")
            if scene.local("_make_grads", "out") is not None
            else self._root(scene)
        )
        made = self._maker(root)
        shape = f" of shape {list(root.shape)}" if isinstance(root, torch.Tensor) else ""
        name = variable_name_in(scene, root)
        what = f"`{name}`" if name else "a tensor"
        message = f"backward starts from {what}{shape}: it needs a scalar, or a `gradient` of that shape"
        steps = step_at("made", "the tensor is made here", made.stack) if made is not None else ()
        evidence = {"shape": list(root.shape)} if isinstance(root, torch.Tensor) else {}
        return self.at_error("non-scalar-backward", message, scene, steps, evidence)

    def _no_graph(self, scene: Scene) -> Fault | None:
        root = self._root(scene)
        return self.lost_graph(scene, root) or self._no_graph_plain(scene, root)

    def lost_graph(self, scene: Scene, root: Any) -> Fault | None:
        """The cut that took this tensor out of the graph."""
        if self.shadow is None or root is None:
            return self._lost_graph(scene, root)
        name_leaves(self.shadow)
        deps, _, events = self.shadow.read(root)
        found = cutting_events(self.shadow, deps, events) if deps else []
        mode_off = self._mode_left_off(scene)
        if mode_off is not None:
            return mode_off
        if found:
            found.sort(key=lambda entry: (bin(entry[1]).count("1"), entry[0].bit))
            event, mask = found[-1]
            leaves = self.shadow.leaves_in(mask)
            fault = cut_fault(event, leaves, scene.stack, self.shadow, scene.message)
            more = tuple(
                step
                for other, _ in found[:-1]
                for step in step_at(
                    "cut", f"also cut here by `{operator_label(other.operator)}`", other.stack
                )
            )
            return Fault(
                fault.kind, fault.message, fault.place, fault.related + more, "error", fault.evidence
            )
        return None

    def has_gained(self, parameter: torch.Tensor) -> bool:
        """Whether a backward gave this parameter a gradient."""
        training = self.backwards.training
        leaf = self.shadow.known_leaf(parameter) if self.shadow is not None else None
        if training is None:
            return parameter.grad is not None
        return leaf is not None and training.gained(leaf)

    def number_taken(self, value: Any) -> Stack:
        """Where this number was taken out of the graph."""
        if self.shadow is not None and self.surface is not None:
            found = self.shadow.events_in(self.surface.origins.of(value)[1])
            return next((event.stack for event in found if event.stack), ())
        lost = self.cuts.taken(value) if self.cuts is not None else None
        return lost.stack if lost is not None else ()

    def _lost_graph(self, scene: Scene, root: Any) -> Fault | None:
        lost = self.cuts.lost(root) if self.cuts is not None else None
        if lost is None and self.cuts is not None and isinstance(root, torch.Tensor):
            found = map(self.cuts.taken_values, _tensors_in(scene))
            lost = next((each for each in found if each is not None), None)
        if lost is None or not lost.stack:
            return None
        assert self.cuts is not None
        name = variable_name_in(scene, root)
        off = self.cuts.switched_off
        if lost.kind == "no_grad" and not self.grad_enabled and off and no_grad_scope(lost.stack) is None:
            return self._left_off(scene, off)
        return fault_of_lost(lost, f"`{name}`" if name else "the tensor", scene.stack, scene.message)

    def _mode_left_off(self, scene: Scene) -> Fault | None:
        """`torch.set_grad_enabled(False)` as a plain call, still in force at backward."""
        if self.surface is None or self.grad_enabled:
            return None
        switched = self.surface.grad_switched_off
        if not switched:
            return None
        return self._left_off(scene, switched)

    def _left_off(self, scene: Scene, switched: Stack) -> Fault | None:
        statement = statement_of(switched[0])
        if not isinstance(statement, ast.Expr):
            return None
        place = place_of(switched[0])
        message = f"`{text_of(place)}` leaves grad mode off, and nothing switches it on before this backward"
        steps = step_at("needed", "backward finds no graph", scene.stack)
        return Fault("grad-mode-left-off", message, place, steps, "error", {"torch": scene.message})

    def _no_graph_plain(self, scene: Scene, root: Any) -> Fault:
        """No leaf that requires grad ever took part: say where the value comes from."""
        name = variable_name_in(scene, root)
        what = f"`{name}`" if name else "the tensor"
        made = self.bound_at(root) if isinstance(root, torch.Tensor) else ()
        if made and builds_a_tensor(statement_of(made[0])):
            place = place_of(made[0])
            message = f"`{text_of(place)}` makes {what} of plain numbers: it has no graph for backward"
            steps = (
                *step_at("cut", "a new tensor begins here", made),
                *step_at("needed", "backward fails here", scene.stack),
            )
            return Fault("value-copied", message, place, steps, "error", {"torch": scene.message})
        message = f"backward starts from {what}, which was computed without any tensor that requires grad"
        return self.at_error("computed-without-grad", message, scene)

    def _root(self, scene: Scene) -> Any:
        root = scene.local("backward", "tensors", "self")
        if root is None:
            root = scene.local("grad", "outputs")
        if isinstance(root, (list, tuple)):
            root = root[0] if root else None
        return root if isinstance(root, torch.Tensor) else None

    def _maker(self, tensor: Any) -> Operation | None:
        node = tensor.grad_fn if isinstance(tensor, torch.Tensor) else None
        return self.log.maker(node) if node is not None else None

    def _unused_input(self, scene: Scene) -> Fault:
        inputs = scene.local("grad", "inputs")
        outputs = scene.local("grad", "outputs")
        tensors = [inputs] if isinstance(inputs, torch.Tensor) else list(inputs or ())
        roots = [outputs] if isinstance(outputs, torch.Tensor) else list(outputs or ())
        unused = [
            item for item in tensors if isinstance(item, torch.Tensor) and not self._is_under(item, roots)
        ]
        if not unused:
            message = "an input is not part of the graph of the output, so it has no gradient"
            return self.at_error("grad-of-unused", message, scene)
        name = variable_name_in(scene, unused[0])
        what = f"`{name}`" if name else "an input"
        fault = self._cut_off(scene, unused[0], roots, what) or self._asked_late(scene, unused[0], what)
        if fault is not None:
            return fault
        made = self._maker(unused[0])
        asked = self.cuts.asked_at(unused[0]) if self.cuts is not None else ()
        steps = (
            step_at("made", "this tensor is not on the way to the output", made.stack)
            if made is not None
            else step_at(
                "made", "it asks for a gradient here, and the output was not computed from it since", asked
            )
        )
        message = f"{what} is not part of the graph of the output, so it has no gradient"
        return self.at_error("grad-of-unused", message, scene, steps)

    def _cut_off(self, scene: Scene, unused: torch.Tensor, roots: list[Any], what: str) -> Fault | None:
        """The output was computed from what this tensor stands for, and the path was cut on the way."""
        if self.shadow is None or not roots or not isinstance(roots[0], torch.Tensor):
            return self._cut_lately(scene, unused, what)
        deps, live, events = self.shadow.read(roots[0])
        wanted = self.shadow.read(unused)[1]
        found = cutting_events(self.shadow, deps & wanted & ~live, events)
        if not found:
            return None
        _, place, steps = cut_place(found[0][0], self.shadow)
        text = f"`{text_of(place)}`" if text_of(place) else f"`{operator_label(found[0][0].operator)}`"
        message = f"{text} cuts the path from the output to {what}, so it has no gradient"
        steps += step_at("read", "its gradient is asked for here", scene.stack)
        return Fault("grad-of-unused", message, place, tuple(steps), "error", {"torch": scene.message})

    def _cut_lately(self, scene: Scene, unused: torch.Tensor, what: str) -> Fault | None:
        """A call took a tensor that depends on this one and returned one that does not."""
        for source, lost in self.cuts.recent() if self.cuts is not None else ():
            if source is unused or self._is_under(unused, [source]):
                place = place_of(lost.stack[0])
                message = f"`{text_of(place)}` cuts the path from the output to {what}, so it has no gradient"
                steps = (
                    *step_at("cut", "the path is cut here", lost.stack),
                    *step_at("needed", "its gradient is asked for here", scene.stack),
                )
                return Fault(
                    FAULT_OF_CUT.get(lost.kind, "detached"),
                    message,
                    place,
                    steps,
                    "error",
                    {"torch": scene.message},
                )
        return None

    def _asked_late(self, scene: Scene, unused: torch.Tensor, what: str) -> Fault | None:
        """A tensor that was used before it asked for a gradient: what was computed from it then does not know."""
        asked = self.surface.asked_at(unused) if self.surface is not None else None
        touches = self.log.touches
        if asked is None or touches is None:
            return None
        clock, stack = asked
        used = touches.read_before(unused, clock)
        if used is None or not stack:
            return None
        place = place_of(stack[0])
        message = f"`{text_of(place)}` comes too late: {what} was used before, and what was computed then has no graph"
        steps = (
            *step_at("made", "used here, before it asked for a gradient", used),
            *step_at("read", "its gradient is asked for here", scene.stack),
        )
        return Fault("grad-of-unused", message, place, steps, "error", {"torch": scene.message})

    def _is_under(self, tensor: torch.Tensor, roots: list[Any]) -> bool:
        for node in walk(roots):
            if node is tensor.grad_fn or leaf_of(node) is tensor:
                return True
        return any(root is tensor for root in roots)

    # Leaves, optimizers, modules.

    def _non_leaf_optimizer(self, scene: Scene) -> Fault:
        """The tensor that torch refuses, and those of the same group that it would refuse next."""
        tensor = scene.local("add_param_group", "param")
        fault = self._non_leaf(scene, tensor)
        group = scene.local("add_param_group", "param_group")
        given = group.get("params", ()) if isinstance(group, dict) else ()
        others = [
            self._non_leaf(scene, each)
            for each in (given if isinstance(given, (list, tuple)) else ())
            if isinstance(each, torch.Tensor)
            and each is not tensor
            and not (each.is_leaf or each.retains_grad)
        ]
        return replace(fault, others=tuple(others[:3]))

    def _non_leaf(self, scene: Scene, tensor: Any) -> Fault:
        made = self._maker(tensor)
        name = variable_name_in(scene, tensor)
        what = f"`{name}`" if name else "a tensor"
        if made is None or not made.stack:
            return self.at_error(
                "non-leaf-optimized", f"the optimizer is given {what}, which is computed, not a leaf", scene
            )
        place = place_of(made.stack[0])
        message = f"{what} is computed by `{operator_label(made.name)}`, so it is not a leaf: the optimizer cannot train it"
        steps = (
            FaultStep("made", f"computed here by `{operator_label(made.name)}`", place),
            *step_at("call", "given to the optimizer here", scene.stack),
        )
        return Fault("non-leaf-optimized", message, place, steps, "error", {"torch": scene.message})

    def _empty_optimizer(self, scene: Scene) -> Fault | None:
        entry = self.modules.hidden_container()
        if entry is None:
            return self._used_up(scene)
        place = place_of(entry.stack[0])
        message = f"the parameters in `{entry.attribute}` are not registered: a plain {entry.kind} hides them from `parameters()`"
        steps = step_at("call", "the optimizer finds no parameter", scene.stack)
        return Fault("not-registered", message, place, steps, "error", {"torch": scene.message})

    def _used_up(self, scene: Scene) -> Fault | None:
        """The optimizer is given an iterator that somebody else has read to its end."""
        if not isinstance(scene.local("__init__", "params"), Iterator):
            return None
        found = earlier_readers(scene.stack[0], self.was_visited)
        if found is None:
            return None
        made, reader = found
        message = (
            f"`{text_of(made)}` can be read once, and line {reader.row} has: the optimizer finds no parameter"
        )
        steps = (
            FaultStep("read", "read to its end here", reader),
            *step_at("read", "the optimizer finds it used up", scene.stack),
        )
        return Fault("iterator-used-up", message, made, steps, "error", {"torch": scene.message})

    def _deepcopy(self, scene: Scene) -> Fault:
        tensor = scene.local("__deepcopy__", "self")
        made = self._maker(tensor)
        steps = (
            step_at("made", f"computed here by `{operator_label(made.name)}`", made.stack)
            if made is not None
            else ()
        )
        return self.at_error(
            "non-leaf-copied",
            f"`{text_of(scene.place)}` copies a tensor that is not a leaf",
            scene,
            steps,
        )

    def _inference(self, scene: Scene) -> Fault:
        made = self.backwards.situation.inference or (self.cuts.inference if self.cuts is not None else ())
        scope = no_grad_scope(made) if made else None
        if scope is None:
            message = f"`{text_of(scene.place)}` uses a tensor made in inference mode where backward needs it"
            return self.at_error("computed-without-grad", message, scene)
        message = (
            f"`{text_of(scope)}` makes tensors that backward cannot use, and line {scene.place.row} needs one"
        )
        steps = (
            *step_at("made", "made here, in inference mode", made),
            *step_at("saved", "backward would have to save it here", scene.stack),
        )
        return Fault("computed-without-grad", message, scope, steps, "error", {"torch": scene.message})

    def _custom_function(self, scene: Scene) -> Fault | None:
        match = re.search(r"[Ff]unction (\w+?)Backward", scene.message)
        name = match.group(1) if match else ""
        code = next(
            (
                code
                for kind in _subclasses(torch.autograd.Function)
                if kind.__name__ == name and (code := _user_code(getattr(kind, "backward", None))) is not None
            ),
            None,
        )
        where = (last_statement(code) if code is not None else None) or scene.place
        message = (
            f"the backward of `{name or 'a custom function'}` returns gradients that do not match its inputs"
        )
        steps = step_at("needed", "torch calls it in this backward", scene.stack)
        return Fault("gradient-count", message, where, steps, "error", {"torch": scene.message})

    def _grad_is_none(self, scene: Scene) -> Fault | None:
        """`.grad` was None on this line."""
        if self.grads is None:
            return None
        line = (id(scene.stack[0].code), line_of(scene.stack[0]))
        read = None
        for candidate in reversed(self.grads.none_reads):
            key = candidate.stack[0] if candidate.stack else None
            if key is not None and (id(key.code), line_of(key)) == line:
                read = candidate
                break
        if read is None and self.grads.none_reads and self.grads.none_reads[-1].stack:
            read = self.grads.none_reads[-1]
        if read is None:
            return None
        text = text_of(place_of(read.stack[0]))
        if not read.is_leaf:
            made = self.log.maker(read.made_by) if read.made_by is not None else None
            steps = (
                step_at("made", f"computed here by `{operator_label(made.name)}`", made.stack)
                if made is not None
                else ()
            )
            message = f"`{text}` is None: the tensor is computed, and only leaves keep their gradient"
            return self.at_error("grad-of-non-leaf", message, scene, steps)
        if self.unwaited is not None and self.unwaited():
            message = f"`{text}` is read while a thread that runs backward has not been waited for"
            return self.at_error("grad-read-in-race", message, scene)
        cause = self._why_none(read)
        when = (
            "no backward has run"
            if not read.backwards
            else "no backward reached this leaf, or it was cleared"
        )
        return self.at_error("grad-is-none", f"`{text}` is None: {when}", scene, cause)

    def _why_none(self, read: Any) -> tuple[FaultStep, ...]:
        if self.shadow is None or self.backwards.training is None:
            return ()
        for leaf in self.shadow.leaves:
            tensor = leaf.tensor()
            if tensor is None or id(tensor) != read.tensor_id:
                continue
            for reach in reversed(self.backwards.training.reaches):
                if reach.missing >> leaf.bit & 1:
                    return tuple(
                        step
                        for event, _ in cutting_events(self.shadow, 1 << leaf.bit, reach.events)
                        for step in step_at(
                            "cut", f"its path is cut here by `{operator_label(event.operator)}`", event.stack
                        )
                    )
            gains = self.backwards.training.gains.get(leaf.bit)
            if gains is not None and gains.dropped_at:
                return step_at("written", "cleared here", gains.dropped_at)
        return ()

    def at_error(
        self,
        kind: Kind,
        message: str,
        scene: Scene,
        steps: tuple[FaultStep, ...] = (),
        evidence: dict[str, Any] | None = None,
    ) -> Fault:
        """The fault on the line where torch raised."""
        return Fault(
            kind,
            message,
            scene.place,
            (
                *steps,
                *calls_of(scene.stack),
                *inside_library("torch is called", library_among(scene.frames)),
            ),
            "error",
            {"torch": scene.message, **(evidence or {})},
        )


def variable_name_in(scene: Scene, tensor: Any) -> str:
    """The user's variable that holds this tensor at the error."""
    if not isinstance(tensor, torch.Tensor):
        return ""
    for frame in reversed(scene.frames):
        if not is_user_file(frame.f_code.co_filename):
            continue
        for name, value in list(frame.f_locals.items()):
            if value is tensor and not name.startswith("__"):
                return name
            if isinstance(value, (list, tuple)) and len(value) < 200:
                for index, item in enumerate(value):
                    if item is tensor:
                        return f"{name}[{index}]"
    return ""


def _tensors_in(scene: Scene) -> Iterator[torch.Tensor]:
    """The tensors outside of the graph that variables of the failing lines hold."""
    for frame in reversed(scene.frames):
        if is_user_file(frame.f_code.co_filename):
            values = list(frame.f_locals.values())
            yield from (each for each in values if isinstance(each, torch.Tensor) and not each.requires_grad)


def _user_code(function: Any) -> Any:
    """The code of a function as the user wrote it."""
    function = getattr(function, "__wrapped__", function)
    code = getattr(function, "__code__", None)
    return code if code is not None and is_user_file(code.co_filename) else None


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def _subclasses(kind: type) -> Iterator[type]:
    children: list[type] = kind.__subclasses__()
    for child in children:
        yield child
        yield from _subclasses(child)
