"""Modules and parameters in plain containers and attributes, which their owner does not register."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from gradsight.detect.claims import Claims
from gradsight.detect.gradient_flow import is_stand_in
from gradsight.detect.gradient_ledger import GradientLedger
from gradsight.detect.path import Path
from gradsight.detect.replaced_parameters import ReplacedParameters
from gradsight.interp.syntax import remembered, statement_around
from gradsight.interp.syntax_parts import assigned, parts_of, syntax_parts
from gradsight.model.sites import Site
from gradsight.model.tensors import Edge, Tensor
from gradsight.model.trace import AttributeSet
from gradsight.model.values import (
    ClassValue,
    Instance,
    Layer,
    Mapping,
    Seq,
)

MOST_STEPS = 16
"""How far back what an attribute was computed from is looked for."""
REGISTERING = {"add_module", "register_module", "setattr", "__setattr__", "_modules", "__dict__", "vars"}
"""How a text can register what it keeps in a container."""


Shared = Tensor | Layer | Instance


class Registration:
    """Modules and parameters that a module does not know of."""

    def __init__(
        self, path: Path, claims: Claims, replaced: ReplacedParameters, ledger: GradientLedger
    ) -> None:
        self.path = path
        self.claims = claims
        self.replaced = replaced
        self.ledger = ledger
        self.attribute_sites: dict[tuple[int, str], Site] = {}

    def finish(self) -> None:
        told: set[int] = set()
        in_classes: dict[ClassValue, list[tuple[str, Shared]]] = {}
        for module in self.path.modules_made:
            self.find_hidden(module)
            if isinstance(module, Instance) and module.module is not None and not self.path.ended_early:
                shared = in_classes.get(module.cls)
                if shared is None:
                    shared = in_classes[module.cls] = shared_by_class(module.cls)
                if shared:
                    self.find_in_class(module, shared, told)
                if self.path.optimizers:
                    self.find_in_buffers(module, told)

    def find_in_class(self, module: Instance, shared: list[tuple[str, Shared]], told: set[int]) -> None:
        """A parameter or module in the body of a class: no instance registers it, and all of them share it."""
        registered = {id(tensor) for _, tensor in self.path.tensors_of(module, "parameter")}
        held = {tensor for optimizer in self.path.optimizers for tensor in self.path.ever_held_by(optimizer)}
        for name, value in shared:
            own = (
                [value]
                if isinstance(value, Tensor)
                else [tensor for _, tensor in self.path.tensors_of(value, "parameter")]
            )
            filled = [one for one in own if one in self.ledger.records and id(one) not in registered]
            if not filled or held.intersection(own) or id(value) in told or value.site is None:
                continue
            told.add(id(value))
            self.claims.explained.update(own)
            self.claims.add(
                "not-registered", value.site, [], name=name, container="class", what=word_for(value, value)
            )

    def find_in_buffers(self, module: Instance, told: set[int]) -> None:
        """`register_buffer("mu", nn.Parameter(…))`: a buffer is no parameter, whatever it is made of."""
        held = {tensor for optimizer in self.path.optimizers for tensor in self.path.ever_held_by(optimizer)}
        for name, tensor in self.path.tensors_of(module, "buffer"):
            if tensor.is_parameter and tensor in self.ledger.records and tensor not in held:
                if id(tensor) not in told and held and is_in_place(module, name):
                    told.add(id(tensor))
                    self.claims.explained.add(tensor)
                    self.claims.add(
                        "not-registered", tensor.site, [], name=name, container="buffer", what="parameter"
                    )

    def find_hidden(self, module: Any) -> None:
        if not isinstance(module, Instance) or module.module is None:
            return
        is_whole = not module.open and not self.path.ended_early
        registered_names = module.module.registered
        if not any(
            isinstance(value, (Seq, Mapping, Tensor, Instance)) and name not in registered_names
            for name, value in module.attributes.items()
        ):
            return
        held = {tensor for optimizer in self.path.optimizers for tensor in self.path.ever_held_by(optimizer)}
        registered = {id(inner) for _, inner in self.path.modules_in(module)} | {
            id(t) for _, t in self.path.tensors_of(module, "parameter")
        }
        for name, value in module.attributes.items():
            if name.startswith("<") or name in module.module.registered:
                continue
            if not is_whole and not (isinstance(value, (Seq, Mapping)) and is_left_alone(module, name)):
                continue
            found = self.hidden_in(value, registered, module)
            if found is None or (
                found is value
                and isinstance(found, Tensor)
                and not self.is_computed_with(found)
                and is_only_handed_on(module, name)
            ):
                continue
            place = self.attribute_sites.get((id(module), name))
            if place is None:
                continue
            parameters = (
                [found]
                if isinstance(found, Tensor)
                else [tensor for _, tensor in self.path.tensors_of(found, "parameter")]
            )
            if all(id(one) in registered or is_stand_in(one) for one in parameters) or is_kept_from_view(
                place
            ):
                continue
            if any(parameter in held for parameter in parameters):
                continue
            self.claims.explained.update(parameters, self.parameters_in(value))
            self.claims.add(
                "not-registered",
                place,
                [],
                name=name,
                container=container_word(value),
                what=word_for(found, value),
                mixed=is_mixed(found, value),
            )

    def hidden_in(self, value: Any, registered: set[int], owner: Instance) -> Any:
        """A module or parameter made by the owner itself, inside a plain container."""
        if isinstance(value, Tensor):
            hides = self.is_own_leaf(value, owner) or self.is_computed_from_parameter(
                value, registered, owner
            )
            return value if not value.is_parameter and hides else None
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
                if id(item) not in registered and item.site is not None:
                    is_own = self.made_by(item.site, owner) or self.is_lost_in(item, owner)
                    if is_own and any(True for _ in self.path.tensors_of(item, "parameter")):
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

    def is_lost_in(self, item: Any, owner: Instance) -> bool:
        """Whether a module that the owner was given learns nothing because the owner keeps it in a plain container.

        A backward reaches it, no module registers it and no optimizer holds it, but one holds what the owner is a part of.
        """
        own = {tensor for _, tensor in self.path.tensors_of(item, "parameter")}
        held = {tensor for optimizer in self.path.optimizers for tensor in self.path.ever_held_by(optimizer)}
        if not own or own & held or not own & self.path.live_gradient_ticks.keys():
            return False
        if not all(self.path.knows_all_parameters(optimizer) for optimizer in self.path.optimizers):
            return False
        around = [
            module
            for module in self.path.modules_made
            if any(part is owner for _, part in self.path.modules_in(module))
        ]
        for module in self.path.modules_made:
            if module is not item and any(part is item for _, part in self.path.modules_in(module)):
                return False
        return any(
            held & {tensor for _, tensor in self.path.tensors_of(module, "parameter")} for module in around
        )

    def parameters_in(self, container: Any) -> list[Tensor]:
        """The parameters of everything in a container."""
        items = container.items if isinstance(container, (Seq, Mapping)) else []
        listed = flattened(list(items.values()) if isinstance(items, dict) else items)
        return [
            tensor
            for item in listed
            if isinstance(item, (Layer, Instance)) and item.module is not None
            for _, tensor in self.path.tensors_of(item, "parameter")
        ]

    def is_computed_from_parameter(self, tensor: Tensor, registered: set[int], owner: Instance) -> bool:
        """`self.scale = nn.Parameter(t).to(dtype)`: the result is computed from a parameter that nobody knows, and is none itself."""
        leaves: list[Tensor] = []
        todo: list[Edge] = [tensor.node] if tensor.node is not None else []
        for _ in range(MOST_STEPS):
            if not todo:
                break
            edge = todo.pop()
            if isinstance(edge, Tensor):
                leaves.append(edge)
            elif edge.open:
                return False
            else:
                todo += edge.inputs
        return (
            not todo
            and bool(leaves)
            and all(
                leaf.is_parameter
                and id(leaf) not in registered
                and leaf not in self.replaced.made_at
                and self.made_by(leaf.site, owner, "__init__")
                for leaf in leaves
            )
        )

    def is_own_leaf(self, tensor: Tensor, owner: Instance) -> bool:
        """A leaf to be learned, made by a method of the owner and not as part of a layer."""
        if not tensor.is_leaf or not tensor.leaf_made or tensor in self.replaced.made_at:
            return False
        if tensor.is_parameter:
            return self.made_by(tensor.site, owner)
        # A plain tensor that some other method makes and keeps may be a result.
        return tensor.requires_grad is True and self.made_by(tensor.site, owner, "__init__")

    def is_computed_with(self, leaf: Tensor) -> bool:
        """Whether an operator, a library, or a backward has met the leaf."""
        return leaf in self.ledger.used or leaf in self.path.live_gradient_ticks

    def trained_inside(self, value: Instance, registered: set[int], owner: Instance) -> Any:
        """A layer inside a plain object, if gradients reach it: one that only serves is hidden there on purpose."""
        for item in value.attributes.values():
            if isinstance(item, (Layer, Instance)) and item.module is not None and id(item) not in registered:
                reached = [
                    t
                    for _, t in self.path.tensors_of(item, "parameter")
                    if t in self.path.live_gradient_ticks
                ]
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

    def on_attribute_set(self, fact: AttributeSet) -> None:
        self.attribute_sites[(id(fact.owner), fact.name)] = self.path.site(fact.node)


def shared_by_class(cls: ClassValue) -> list[tuple[str, Shared]]:
    """The parameters and modules that the bodies of a class and its ancestors hold."""
    return [
        (name, value)
        for one in cls.lineage()
        if isinstance(one, ClassValue) and not (one.unit is not None and one.unit.library)
        for name, value in one.namespace.items()
        if (isinstance(value, Tensor) and value.is_parameter)
        or (isinstance(value, (Layer, Instance)) and value.module is not None)
    ]


def word_for(found: Any, container: Any) -> str:
    """What is hidden: a parameter, a module, or an object that holds modules of its own."""
    if isinstance(found, Tensor):
        return "parameter"
    items = container.items if isinstance(container, (Seq, Mapping)) else []
    listed = items.values() if isinstance(items, dict) else items
    is_inside = any(isinstance(item, Instance) and item.module is None for item in listed)
    return "object" if is_inside else "module"


def is_mixed(found: Any, container: Any) -> bool:
    """Whether a container holds, or may hold, something else than what is hidden in it: lists, strings, None."""
    if not isinstance(container, (Seq, Mapping)):
        return False
    items = container.items if isinstance(container, Seq) else [*container.items.values(), *container.rest]
    if isinstance(found, Tensor):
        return any(not isinstance(item, Tensor) for item in items)
    return any(not isinstance(item, (Layer, Instance)) or item.module is None for item in items)


def is_kept_from_view(place: Site) -> bool:
    """`self.teacher = [teacher]`: a list for one module that has a name already is there to keep it out of `parameters()`."""
    statement = statement_around(place.node, place.frame)
    value = getattr(statement, "value", None)
    return (
        isinstance(value, (ast.List, ast.Tuple))
        and len(value.elts) == 1
        and isinstance(value.elts[0], ast.Name)
    )


def is_in_place(module: Instance, name: str) -> bool:
    """Whether a buffer is the module's own, not one of a part of it."""
    return "." not in name and name in module.attributes


def container_word(value: Any) -> str:
    """How the container is spoken of."""
    if isinstance(value, Tensor):
        return "tensor"
    if isinstance(value, Mapping):
        return "dict"
    if isinstance(value, Instance):
        return "object"
    return value.kind if isinstance(value, Seq) else "container"


def is_left_alone(owner: Instance, name: str) -> bool:
    """Whether the text of a module that was not executed to its end leaves a container as it is.

    What its `__init__` goes on to do was not seen: none may read the attribute, and no class that names it registers by hand.
    """
    texts = [cls.node for cls in owner.cls.lineage() if isinstance(cls, ClassValue) and cls.node is not None]
    for text in texts:
        attributes, names = remembered(text, "spellings", spellings_in)
        if name not in attributes:
            continue
        if REGISTERING & (attributes | names):
            return False
        makers = remembered(text, "makers", makers_in)
        if any(is_read_of(part, name) for maker in makers for part in syntax_parts(maker)):
            return False
        if any(is_handed_on_by_name(maker, name) for maker in makers):
            return False
    return True


def is_handed_on_by_name(maker: ast.AST, name: str) -> bool:
    """`self.layers = layers`, and then `nn.Sequential(*layers)`: what has the list by its other name may register all of it."""
    others = {
        value.id
        for target, value in assigned(maker)
        if isinstance(target, ast.Attribute) and target.attr == name and isinstance(value, ast.Name)
    }
    given = [argument for call in parts_of(maker, ast.Call) for argument in call.args]
    plain = [one.value if isinstance(one, ast.Starred) else one for one in given]
    return any(isinstance(one, ast.Name) and one.id in others for one in plain)


def makers_in(text: ast.ClassDef) -> list[ast.AST]:
    """Every `__init__` in a class, those of inner classes too."""
    parts = syntax_parts(text)
    return [part for part in parts if isinstance(part, ast.FunctionDef) and part.name == "__init__"]


def spellings_in(text: ast.ClassDef) -> tuple[frozenset[str], frozenset[str]]:
    """The attributes and the names that a class spells anywhere."""
    parts = syntax_parts(text)
    attributes = frozenset(part.attr for part in parts if isinstance(part, ast.Attribute))
    return attributes, frozenset(part.id for part in parts if isinstance(part, ast.Name))


def is_only_handed_on(owner: Instance, name: str) -> bool:
    """Whether the methods of an object only give an attribute to calls.

    What is called may make nothing of it: a reentrant checkpoint asks for an input that requires grad, and any will do.
    """
    texts = [cls.node for cls in owner.cls.lineage() if isinstance(cls, ClassValue) and cls.node is not None]
    parts = [part for text in texts for part in syntax_parts(text)]
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


def flattened(items: list[Any]) -> Iterator[Any]:
    """The items of a container, and those of the containers in it."""
    for item in items:
        yield item
        if isinstance(item, Seq):
            yield from flattened(item.items)
        elif isinstance(item, Mapping):
            yield from flattened([*item.items.values(), *item.rest])
