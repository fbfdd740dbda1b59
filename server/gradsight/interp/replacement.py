"""Parameters that came into a model after its optimizer was made, so that no step moves them."""

from __future__ import annotations

import ast
from typing import Any

from gradsight.interp.registration import Registration
from gradsight.interp.syntax import statement_around
from gradsight.model.events import Step
from gradsight.model.sites import Site
from gradsight.model.tensors import Tensor
from gradsight.model.values import MISSING, Instance, Layer, Opaque, tensors_in


class Replacement(Registration):
    """Old parameters in the optimizer, new ones in the model."""

    replacements: list[tuple[Opaque, Site, list[Tensor], str, bool]]

    def attribute_assigned(self, owner: Any, name: str, value: Any, old: Any, node: ast.AST) -> None:
        super().attribute_assigned(owner, name, value, old, node)
        self.retired.update(self.parameters_in(old))
        self.retired.difference_update(self.parameters_in(value))
        if not self.optimizers or old is value:
            return
        lazy = old is None or old is MISSING
        if lazy and self.frame.function is not None and self.frame.function.name == "__init__":
            return
        gone = (
            [tensor for _, tensor in self.tensors_of(owner, "parameter")] if lazy else self.parameters_in(old)
        )
        self.parameters_arrived(self.parameters_in(value), gone, name, lazy, node)

    def container_method(
        self, module: Any, name: str, args: list[Any], kwargs: dict[str, Any], node: ast.AST
    ) -> Any:
        before = [tensor for _, tensor in self.tensors_of(module, "parameter")] if self.optimizers else []
        result = super().container_method(module, name, args, kwargs, node)
        if before and args:
            after = [tensor for _, tensor in self.tensors_of(module, "parameter")]
            fresh = [tensor for tensor in after if not any(tensor is known for known in before)]
            self.parameters_arrived(fresh, before, self.text_of_target(self.site(node)), True, node)
        return result

    def parameters_arrived(
        self, fresh: list[Tensor], gone: list[Tensor], name: str, lazy: bool, node: ast.AST
    ) -> None:
        """Parameters that join or replace some that an optimizer holds; those made of a graph are another fault."""
        fresh = [tensor for tensor in fresh if not any(cut.kind == "parameter" for cut in tensor.cuts)]
        for optimizer in self.optimizers if fresh else []:
            held = set(self.parameters_of(optimizer))
            if any(tensor in held for tensor in gone):
                # What wraps old parameters adds to them and replaces none of them.
                new = [tensor for tensor in fresh if tensor not in held]
                wraps = len(new) < len(fresh)
                if new:
                    self.replacements.append((optimizer, self.site(node), new, name, lazy or wraps))

    def parameters_in(self, value: Any) -> list[Tensor]:
        if isinstance(value, (Layer, Instance)) and value.module is not None:
            return [tensor for _, tensor in self.tensors_of(value, "parameter")]
        return (
            [tensor for tensor in tensors_in(value) if tensor.is_parameter]
            if isinstance(value, Tensor)
            else []
        )

    def step_parameters(self, optimizer: Opaque, site: Site) -> None:
        if self.replacements:
            held = {tensor for other in self.optimizers for tensor in self.parameters_of(other)}
            for owner, place, fresh, name, lazy in self.replacements:
                if (
                    owner is not optimizer
                    or any(tensor in held for tensor in fresh)
                    or self.retired.issuperset(fresh)
                ):
                    continue
                if lazy and not any(tensor in self.live_gradient_ticks for tensor in fresh):
                    continue
                self.parameters_not_held(optimizer, place, site, name, lazy)
        super().step_parameters(optimizer, site)

    def parameters_not_held(self, optimizer: Opaque, place: Site, step: Site, name: str, lazy: bool) -> None:
        self.emit(
            "parameters-replaced",
            place,
            [
                Step("made", optimizer.site or place, "the optimizer took the parameters that were there"),
                Step("needed", step, "this step does not move the new ones"),
                *self.call_steps(place),
            ],
            name=name,
            lazy=lazy,
        )

    # -- a model made, or copied, after its optimizer ----------------------------------------------------------------

    def layer_made(self, layer: Layer, node: ast.AST) -> None:
        super().layer_made(layer, node)
        for tensor in layer.attributes.values():
            if isinstance(tensor, Tensor) and tensor.is_parameter:
                self.made_at[tensor] = (self.tick, self.site(node))

    def copy_deep(self, args: list[Any], kwargs: dict[str, Any], node: ast.AST) -> Any:
        self.tick += 1
        result = super().copy_deep(args, kwargs, node)
        for tensor in self.parameters_in(result):
            self.made_at[tensor] = (self.tick, self.site(node))
        return result

    def trained_instead(self, optimizer: Opaque) -> Site | None:
        """Where the parameters were made that the backwards reach, if all of them came after the optimizer."""
        places: list[tuple[int, Site]] = []
        held = {tensor for other in self.optimizers for tensor in self.ever_held_by(other)}
        for run in self.backwards:
            for leaf in run.leaves:
                if not leaf.is_parameter:
                    continue
                tick, place = self.made_at.get(leaf, (-1, None))
                if leaf in held or place is None or tick < optimizer.state["created"]:
                    return None
                places.append((tick, place))
        return min(places, key=lambda made: (made[0], made[1].line))[1] if places else None

    def name_bound_at(self, site: Site) -> str:
        """The name that the statement around a place binds."""
        statement = statement_around(site.node, site.frame)
        target = statement.targets[0] if isinstance(statement, ast.Assign) else None
        return ast.unparse(target) if target is not None else "the model"
