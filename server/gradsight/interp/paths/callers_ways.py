"""What is called in a helper, and brings the graph that a caller of the helper differentiates.

`loss = step(net, x)` in a text that calls `loss.backward()`, and `net(x)` on the way to what `step` returns: the graph has
come from `net`, unless something else that stands on one of these ways may have brought it.
"""

from __future__ import annotations

import ast
from typing import Any

from gradsight.interp.path_state import PathState
from gradsight.interp.paths.graph_makers import Way, key_of_name, root_of, way_to_backward, way_to_return
from gradsight.interp.paths.held_names import is_module
from gradsight.interp.paths.roles import deeds_of, own_optimizers
from gradsight.model.sites import Frame
from gradsight.model.values import External, Instance, Layer


def brings_graph(path: PathState, key: str) -> bool:
    """Whether what the running function calls by this name has brought the graph of a backward in one of its callers."""
    way = _way(path.frame, to_return=True)
    if way is None or key not in way.makers or way.unseen or _has_known_maker(path, path.frame, way, key):
        return False
    return _leads_to_backward(path)


def makes_loss(path: PathState, key: str, call: ast.AST) -> bool:
    """Whether a method of what has this name makes a loss that is differentiated here, or in a caller.

    Nothing else on the way may have brought the graph: `loss = diffusion.losses(x)` and `loss.backward()`.
    """
    way = _way(path.frame, to_return=False)
    is_differentiated = way is not None
    if way is None:
        way = _way(path.frame, to_return=True)
    if way is None or way.final != {call} or way.makers or way.unseen:
        return False
    if _has_known_maker(path, path.frame, way, key):
        return False
    return is_differentiated or _leads_to_backward(path)


def is_only_source(path: PathState, key: str, call: ast.AST) -> bool:
    """Whether a method of what has this name stands on the way to a backward here, and nothing else there can bring the graph.

    `features = net.encode(x)`, and then `F.cross_entropy(net.head(features), y).backward()`: the rest are methods of the same object,
    those of tensors, and functions.
    """
    way = _way(path.frame, to_return=False)
    if way is None or call not in way.calls or way.makers or way.unseen:
        return False
    members: list[str] = []
    for function in (one.func for one in way.calls):
        if not isinstance(function, ast.Attribute) or path.table.find(f"Tensor.{function.attr}") is not None:
            continue
        if key_of_name(function.value) == key:
            members.append(function.attr)
        elif not _is_of_torch(path, root_of(function)):
            return False
    # What is asked for one thing twice may have several networks, and optimizers of theirs; what is asked but once, the data.
    is_one = 1 < len(members) == len(set(members)) and not own_optimizers(key, deeds_of(_text(path, key)))
    return is_one and not _has_known_maker(path, path.frame, way, key)


def _text(path: PathState, key: str) -> ast.AST:
    """What speaks of a key: the running function, or the class of its object."""
    receiver, function = path.frame.receiver, path.frame.function
    if key.startswith("self.") and isinstance(receiver, Instance) and receiver.cls.node is not None:
        return receiver.cls.node
    return function.node if function is not None else path.node


def _is_of_torch(path: PathState, name: str) -> bool:
    known = _outside(path, path.frame, name)
    return isinstance(known, External) and known.path.partition(".")[0] == "torch"


def _leads_to_backward(path: PathState) -> bool:
    """Whether what the running function returns is differentiated further out, and nothing there brings another graph."""
    frame: Frame = path.frame
    while frame.call_site is not None:
        call, frame = frame.call_site.node, frame.call_site.frame
        way = _way(frame, to_return=False)
        is_differentiated = way is not None
        if way is None:
            way = _way(frame, to_return=True)
        if way is None or call not in way.calls or way.unseen - {call}:
            return False
        if _has_known_maker(path, frame, way, ""):
            return False
        if is_differentiated:
            return True
    return False


def _way(frame: Frame, to_return: bool) -> Way | None:
    node = frame.function.node if frame.function is not None else None
    if not isinstance(node, ast.FunctionDef):
        return None
    return way_to_return(node) if to_return else way_to_backward(node)


def _has_known_maker(path: PathState, frame: Frame, way: Way, key: str) -> bool:
    """Whether a known module, or an object that may have some, stands on the way: the graph may be its own."""
    given = [_held(frame, other) for other in way.makers | way.handed if other != key]
    outside = [_outside(path, frame, name) for name in way.through]
    return any(is_module(one) for one in given) or any(isinstance(one, (Instance, Layer)) for one in outside)


def _held(frame: Frame, key: str) -> Any:
    owner, _, name = key.rpartition(".")
    if not owner:
        return frame.namespace.get(name)
    return frame.receiver.attributes.get(name) if isinstance(frame.receiver, Instance) else None


def _outside(path: PathState, frame: Frame, name: str) -> Any:
    """What a name that a function does not bind stands for; whoever asks that rests on it."""
    scope = frame.scope
    while scope is not None:
        if scope.outer is None:
            path.asked.add(name)
        if name in scope.names:
            return scope.names[name]
        scope = scope.outer
    return None
