"""Where the parameters of an optimizer are chosen: where it is made, or where a function that makes it is handed them.

`make_optimizer(critic.parameters(), config)`: the function cannot know that another network is left out; its caller does.
"""

from __future__ import annotations

from gradsight.model.library_objects import Optimizer
from gradsight.model.sites import Frame, Site
from gradsight.model.tensors import Tensor
from gradsight.model.values import Seq, Stream, Value


def chosen_at(optimizer: Optimizer) -> Site | None:
    """The innermost place that is not in a function which was handed the parameters."""
    site: Site | None = optimizer.site
    while site is not None and site.frame.call_site is not None and was_handed_parameters(site.frame):
        if site.frame.call_site.unit.library:
            break
        site = site.frame.call_site
    return site


def was_handed_parameters(frame: Frame) -> bool:
    """Whether an argument of a call is a collection of parameters."""
    if frame.function is None:
        return False
    given = frame.function.node.args
    names = [one.arg for one in [*given.posonlyargs, *given.args, *given.kwonlyargs]]
    return any(holds_parameters(frame.namespace.get(name)) for name in names)


def holds_parameters(value: Value) -> bool:
    if isinstance(value, Stream):
        return bool(value.owners)
    return isinstance(value, Seq) and any(isinstance(one, Tensor) and one.is_parameter for one in value.items)
