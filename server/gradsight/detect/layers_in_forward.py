"""Layers with parameters that every forward pass makes anew."""

from __future__ import annotations

import ast

from gradsight.detect.claims import Claims
from gradsight.detect.path import Path
from gradsight.interp.syntax import called_attribute, conditions_around, own_statements, statement_around
from gradsight.interp.tensors.layers import has_parameters
from gradsight.model.sites import Frame, Site
from gradsight.model.tensors import Tensor
from gradsight.model.trace import LayerMade
from gradsight.model.values import Layer


class LayersInForward:
    """A layer that is made on a condition and kept is not meant; one that is frozen is a constant."""

    def __init__(self, path: Path, claims: Claims) -> None:
        self.path = path
        self.claims = claims
        self.made_in_forward: list[tuple[Layer, Site]] = []

    def on_layer_made(self, fact: LayerMade) -> None:
        layer, node = fact.layer, fact.node
        frame = self.path.frame
        if frame.function is None or frame.function.name != "forward" or frame.owner is None:
            return
        if frame.owner.kind != "module" or not has_parameters(layer.name, layer.options):
            return
        if any(isinstance(value, Tensor) for value in layer.options.values()):
            # No layer is made of activations: the class is the default of what a caller hands in ready-made.
            return
        if not (is_kept(node, frame) and (frame.guards or conditions_around(node, frame))):
            self.made_in_forward.append((layer, self.path.site(node)))

    def finish(self) -> None:
        """A layer that is frozen once its weights are set is a constant: nothing of it was to be trained."""
        for layer, site in self.made_in_forward:
            own = [tensor for _, tensor in self.path.tensors_of(layer, "parameter")]
            if not own or any(tensor.requires_grad is not False for tensor in own):
                self.claims.explained.update(own)
                self.claims.add("layer-made-in-forward", site, [], layer=layer.name)


def is_kept(node: ast.AST, frame: Frame) -> bool:
    """Whether what an expression makes is stored beyond the call: in an attribute, an item, or by a registering call."""
    statement = statement_around(node, frame)
    if isinstance(statement, ast.Expr):
        return called_attribute(statement.value) != "" and statement.value is not node
    if not isinstance(statement, (ast.Assign, ast.AnnAssign)):
        return False
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    if any(isinstance(target, (ast.Attribute, ast.Subscript)) for target in targets):
        return True
    names = {target.id for target in targets if isinstance(target, ast.Name)}
    for other in own_statements(frame.function.node.body):
        if isinstance(other, ast.Assign) and isinstance(other.value, ast.Name) and other.value.id in names:
            if any(isinstance(target, (ast.Attribute, ast.Subscript)) for target in other.targets):
                return True
        if isinstance(other, ast.Expr) and isinstance(other.value, ast.Call):
            if any(isinstance(given, ast.Name) and given.id in names for given in other.value.args):
                return True
    return False
