"""Modules and their parameters: what is not registered, typos, layers made in forward, activations applied twice."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from gradsight.interp.layers import has_parameters
from gradsight.interp.sites import Frame, Site
from gradsight.interp.syntax import called_attribute, conditions_around, own_statements, statement_around
from gradsight.interp.targets import Targets
from gradsight.interp.tensors import Node, Tensor
from gradsight.interp.values import (
    ClassValue,
    Function,
    Instance,
    Layer,
    Mapping,
    Method,
    Seq,
    Unknown,
    tensors_in,
)
from gradsight.model.events import Step

SOFTMAX = {"softmax", "Softmax", "softmin"}
SIGMOIDS = {"sigmoid", "Sigmoid"}
TAKES_LOGITS = {"cross_entropy": SOFTMAX, "CrossEntropyLoss": SOFTMAX, "binary_cross_entropy_with_logits": SIGMOIDS, "BCEWithLogitsLoss": SIGMOIDS}  # fmt: skip
RESHAPING = {
    "squeeze", "unsqueeze", "view", "reshape", "flatten", "permute", "transpose", "t", "contiguous", "clone", "float",
    "to", "index", "movedim", "view_as", "AsStrided",
}  # fmt: skip
"""Operators after which the values are still those of the activation."""
TYPOS = {
    "require_grad": "requires_grad", "requires_grads": "requires_grad", "require_grads": "requires_grad", "required_grad": "requires_grad",
    "require_gradient": "requires_grad", "requires_gradient": "requires_grad", "requiers_grad": "requires_grad", "gradient": "grad", "grads": "grad",
}  # fmt: skip


class Registration(Targets):
    """Conclusions about modules."""

    def judge_registration(self, module: Any) -> None:
        if not isinstance(module, Instance) or module.module is None or module.open:
            return
        registered_names = module.module.registered
        if not any(
            isinstance(value, (Seq, Mapping, Tensor, Instance)) and name not in registered_names
            for name, value in module.attributes.items()
        ):
            return
        held = {tensor for optimizer in self.optimizers for tensor in self.ever_held_by(optimizer)}
        registered = {id(inner) for _, inner in self.modules_in(module)} | {
            id(t) for _, t in self.tensors_of(module, "parameter")
        }
        for name, value in module.attributes.items():
            if name.startswith("<") or name in module.module.registered:
                continue
            found = self.hidden_in(value, registered, module)
            if found is None or (
                found is value and not self.is_computed_with(found) and is_only_handed_on(module, name)
            ):
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
                what=word_for(found, value),
            )

    attribute_sites: dict[tuple[int, str], Site]
    made_at: dict[Tensor, tuple[int, Site]]
    """When and where the parameters of layers came to be."""

    def hidden_in(self, value: Any, registered: set[int], owner: Instance) -> Any:
        """A module or parameter made by the owner itself, inside a plain container."""
        if isinstance(value, Tensor):
            return value if not value.is_parameter and self.is_own_leaf(value, owner) else None
        if isinstance(value, Instance) and value.module is None:
            return self.trained_inside(value, registered, owner)
        items: list[Any] = []
        if isinstance(value, Seq):
            items = value.items
        elif isinstance(value, Mapping):
            items = [*value.items.values(), *value.rest]
        if any(id(item) in registered for item in flattened(items)):
            # Registered one by one, in a loop of which only the first rounds are executed.
            return None
        for item in items:
            if isinstance(item, (Layer, Instance)) and item.module is not None:
                if id(item) not in registered and item.site is not None and self.made_by(item.site, owner):
                    if any(True for _ in self.tensors_of(item, "parameter")):
                        return item
            elif isinstance(item, Tensor) and self.is_own_leaf(item, owner):
                return item
            elif isinstance(item, Instance):
                found = self.trained_inside(item, registered, owner)
                if found is not None:
                    return found
            elif isinstance(item, (Seq, Mapping)):
                found = self.hidden_in(item, registered, owner)
                if found is not None and not isinstance(found, Tensor):
                    return found
        return None

    def is_own_leaf(self, tensor: Tensor, owner: Instance) -> bool:
        """A leaf to be learned, made by a method of the owner and not as part of a layer."""
        if not tensor.is_leaf or not tensor.leaf_made or tensor in self.made_at:
            return False
        if tensor.is_parameter:
            return self.made_by(tensor.site, owner)
        # A plain tensor that some other method makes and keeps may be a result.
        return tensor.requires_grad is True and self.made_by(tensor.site, owner, "__init__")

    def is_computed_with(self, leaf: Tensor) -> bool:
        """Whether an operator, a library, or a backward has met the leaf."""
        return leaf in self.used or leaf in self.live_gradient_ticks

    def unknown_result(
        self, reason: str, args: list[Any], kwargs: dict[str, Any], node: ast.AST | None = None
    ) -> Unknown:
        given = [*args, *kwargs.values()]
        if not any(isinstance(value, (Function, Method, Instance, Layer)) for value in given):
            # What is given a function may run it, as a checkpoint does; what is given tensors alone computes with them.
            self.used.update(tensor for value in given for tensor in tensors_in(value))
        return super().unknown_result(reason, args, kwargs, node)

    def trained_inside(self, value: Instance, registered: set[int], owner: Instance) -> Any:
        """A layer inside a plain object, if gradients reach it: one that only serves is hidden there on purpose."""
        for item in value.attributes.values():
            if isinstance(item, (Layer, Instance)) and item.module is not None and id(item) not in registered:
                reached = [t for _, t in self.tensors_of(item, "parameter") if t in self.live_gradient_ticks]
                if reached and item.site is not None and self.made_by(item.site, owner):
                    return item
        return None

    def made_by(self, site: Site, owner: Instance, method: str = "") -> bool:
        """Whether something was made while a method of the owner was running."""
        frame: Any = site.frame
        while frame is not None:
            if frame.receiver is owner and frame.name in (method or frame.name, "reset_parameters", "build"):
                return True
            frame = frame.call_site.frame if frame.call_site is not None else None
        return False

    def attribute_assigned(self, owner: Any, name: str, value: Any, old: Any, node: ast.AST) -> None:
        self.attribute_sites[(id(owner), name)] = self.site(node)

    def layer_made(self, layer: Layer, node: ast.AST) -> None:
        """A layer with parameters that every forward pass makes anew; one that is made on a condition and kept is not."""
        super().layer_made(layer, node)
        frame = self.frame
        if frame.function is None or frame.function.name != "forward" or frame.owner is None:
            return
        if frame.owner.kind != "module" or not has_parameters(layer.name, layer.options):
            return
        if any(isinstance(value, Tensor) for value in layer.options.values()):
            # No layer is made of activations: the class is the default of what a caller hands in ready-made.
            return
        if not (is_kept(node, frame) and (frame.guards or conditions_around(node, frame))):
            self.made_in_forward.append((layer, self.site(node)))

    made_in_forward: list[tuple[Layer, Site]]

    def judge_made_in_forward(self) -> None:
        """A layer that is frozen once its weights are set is a constant: nothing of it was to be trained."""
        for layer, site in self.made_in_forward:
            own = [tensor for _, tensor in self.tensors_of(layer, "parameter")]
            if not own or any(tensor.requires_grad is not False for tensor in own):
                self.emit("layer-made-in-forward", site, [], layer=layer.name)

    def unknown_attribute_set(self, owner: Any, name: str, value: Any, site: Site) -> None:
        meant = TYPOS.get(name) or ("requires_grad" if is_misspelt(name, "requires_grad") else "")
        if meant:
            self.emit("attribute-typo", site, [], name=name, meant=meant, target=self.text_of_target(site))

    def operator_called(
        self, name: str, args: list[Any], kwargs: dict[str, Any], result: Any, node: ast.AST
    ) -> None:
        super().operator_called(name, args, kwargs, result, node)
        if name in TAKES_LOGITS and args and isinstance(args[0], Tensor):
            self.check_activated(name, args[0], node)

    def layer_called(self, layer: Layer, bound: dict[str, Any], result: Any, node: ast.AST) -> None:
        super().layer_called(layer, bound, result, node)
        name = layer.name.rpartition(".")[2]
        if name in TAKES_LOGITS:
            first = next(iter(bound.values()), None)
            if isinstance(first, Tensor):
                self.check_activated(name, first, node)

    def check_activated(self, loss: str, tensor: Tensor, node: ast.AST) -> None:
        grad_node = tensor.node
        while grad_node is not None and grad_node.op in RESHAPING and len(grad_node.inputs) == 1:
            source = grad_node.inputs[0]
            grad_node = source if isinstance(source, Node) else None
        if grad_node is not None and grad_node.op in TAKES_LOGITS[loss]:
            steps = [
                Step("made", grad_node.site, f"{grad_node.op} is applied here"),
                *self.call_steps(self.site(node)),
            ]
            self.emit("softmax-before-loss", self.site(node), steps, op=grad_node.op, loss=loss)


def word_for(found: Any, container: Any) -> str:
    """What is hidden: a parameter, a module, or an object that holds modules of its own."""
    if isinstance(found, Tensor):
        return "parameter"
    items = container.items if isinstance(container, (Seq, Mapping)) else []
    listed = items.values() if isinstance(items, dict) else items
    is_inside = any(isinstance(item, Instance) and item.module is None for item in listed)
    return "object" if is_inside else "module"


def container_word(value: Any) -> str:
    """How the container is spoken of."""
    if isinstance(value, Tensor):
        return "tensor"
    if isinstance(value, Mapping):
        return "dict"
    if isinstance(value, Instance):
        return "object"
    return value.kind if isinstance(value, Seq) else "container"


def is_only_handed_on(owner: Instance, name: str) -> bool:
    """Whether the methods of an object only give an attribute to calls.

    What is called may make nothing of it: a reentrant checkpoint asks for an input that requires grad, and any will do.
    """
    texts = [cls.node for cls in owner.cls.lineage() if isinstance(cls, ClassValue) and cls.node is not None]
    parts = [part for text in texts for part in ast.walk(text)]
    reads = [part for part in parts if is_read_of(part, name)]
    handed = [
        given
        for part in parts
        if isinstance(part, ast.Call)
        for given in part.args
        if is_read_of(given, name)
    ]
    return bool(reads) and len(handed) == len(reads)


def is_read_of(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == name and isinstance(node.ctx, ast.Load)


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


def is_misspelt(name: str, word: str) -> bool:
    """Whether a name is a long word with two letters confused, left out, doubled or swapped at most; the method of the
    same name, with an underscore, is another word."""
    if name in (word, f"{word}_") or abs(len(name) - len(word)) > 2 or name[:3] != word[:3]:
        return False
    from difflib import SequenceMatcher

    # Two letters of a word confused leave this much of both.
    return SequenceMatcher(None, name, word).ratio() >= (len(word) - 2) / len(word)


def flattened(items: list[Any]) -> Iterator[Any]:
    """The items of a container, and those of the containers in it."""
    for item in items:
        yield item
        if isinstance(item, Seq):
            yield from flattened(item.items)
        elif isinstance(item, Mapping):
            yield from flattened([*item.items.values(), *item.rest])
