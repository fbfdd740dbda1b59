"""Runs of layers inside a library's network, which are applied as one operator on all their parameters.

Nobody but the library looks between the layers of a `Sequential` that it made: what comes out depends on what went in and on
every parameter, and backward needs every weight.  The first layer is applied by itself if its input is the user's, and the
last one if the user gets what it returns: what those save and write are tensors that the program has.
"""

from __future__ import annotations

from collections.abc import Sequence

from gradsight.interp.library_places import is_of_library
from gradsight.model.sites import Frame
from gradsight.model.tensors import Tensor
from gradsight.model.values import Instance, Layer, Module, ModuleState, Value, module_state
from gradsight.ops.fact import Case, Output, Save

RUN = Case(saves=(Save("self.weights"),), outputs=(Output(),))
"""What a run of layers does, with its weights apart from its other parameters, which no layer saves."""
SHORTEST = 2
"""Fewer layers than these are applied one by one."""


class LayerRun:
    """The layers from `start` to `stop` of a `Sequential`, and their parameters."""

    __slots__ = ("others", "start", "stop", "weights")

    def __init__(self, start: int, stop: int) -> None:
        self.start = start
        self.stop = stop
        self.weights: dict[int, Tensor] = {}
        self.others: dict[int, Tensor] = {}

    def take(self, module: Module) -> bool:
        """Take in a module, unless it is the user's own or watched by a hook."""
        state = module_state(module)
        if not is_closed(module, state):
            return False
        for name, kind in state.registered.items():
            value = module.attributes.get(name)
            if kind == "parameter" and isinstance(value, Tensor):
                (self.weights if name == "weight" else self.others)[id(value)] = value
            elif isinstance(value, (Layer, Instance)) and not self.take(value):
                return False
        return True


def run_of(layer: Layer, children: Sequence[Value], value: Value, frame: Frame) -> LayerRun | None:
    """The layers of a library's `Sequential` that are applied at once."""
    if layer.site is None or not layer.site.library:
        return None
    is_inside = bool(frame.unit.library)
    first = 0 if is_inside and isinstance(value, Tensor) and value.site.library else 1
    last = len(children) - (0 if is_inside and children and isinstance(children[-1], Instance) else 1)
    if last - first < SHORTEST:
        return None
    run = LayerRun(first, last)
    for child in children[first:last]:
        if not isinstance(child, (Layer, Instance)) or not run.take(child):
            return None
    return run


def is_closed(module: Module, state: ModuleState) -> bool:
    """Whether all of a module is the library's business."""
    if state.pre_hooks or state.forward_hooks or state.backward_hooks or module.escaped:
        return False
    if isinstance(module, Instance):
        return is_of_library(module.cls) and not module.open and "forward" not in module.attributes
    if module.options.get("inexact") or module.options.get("unknown"):
        return False
    return module.site is not None and bool(module.site.library)
