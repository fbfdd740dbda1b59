"""Objects that were not followed to the end of what fills them."""

from __future__ import annotations

from gradsight.model.values import Instance, Layer, Seq

CONTAINERS = {"nn.Sequential", "nn.ModuleList", "nn.ModuleDict", "nn.ParameterList", "nn.ParameterDict"}


def leave_unfinished(instance: Instance) -> None:
    """Whoever goes on knows only what was made of it so far: there may be more attributes, and more in its lists."""
    instance.open = True
    for value in instance.attributes.values():
        if isinstance(value, Layer) and value.name in CONTAINERS:
            value.options["inexact"] = True
        elif isinstance(value, Seq) and value.kind == "list":
            value.exact = False
