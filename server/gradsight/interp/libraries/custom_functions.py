"""Custom autograd Functions: how many gradients, what is kept on ctx, what is written."""

from __future__ import annotations

from gradsight.interp.libraries.distributions import Distributions
from gradsight.model.library_objects import FunctionContext
from gradsight.model.sites import Site, Syntax
from gradsight.model.tensors import Node, RequiresGrad, Saved, Tensor, any_requires_grad
from gradsight.model.trace import CustomApplied
from gradsight.model.values import (
    Bound,
    ClassValue,
    Function,
    Seq,
    Unknown,
    Value,
    tensors_in,
)


class CustomFunctions(Distributions):
    """`MyFunction.apply(...)`."""

    def apply_custom_function(
        self, cls: ClassValue, args: list[Value], kwargs: dict[str, Value], node: Syntax
    ) -> Value:
        forward, _ = cls.find("forward")
        backward, _ = cls.find("backward")
        setup, _ = cls.find("setup_context")
        site = self.path.site(node)
        if not isinstance(forward, Function):
            return self.path.gap("autograd function without forward", node)
        context = FunctionContext(cls.name, site)
        inputs = [tensor for arg in args for tensor in tensors_in(arg) if isinstance(arg, Tensor)]
        epochs = {tensor: tensor.storage.epoch for tensor in inputs}
        flag = any_requires_grad([tensor.needs_grad() for tensor in inputs])
        # Inside forward grad mode is off; what is computed there is not a cut, the Function is the way back.
        before = (self.path.grad_mode, self.path.mode_site)
        self.path.grad_mode = False
        inner_inputs = [self.masked(arg) for arg in args]
        try:
            given = inner_inputs if isinstance(setup, Function) else [context, *inner_inputs]
            result = self.language.call_function(forward, given, kwargs, node)
            if isinstance(setup, Function):
                self.language.call_function(setup, [context, Seq("tuple", inner_inputs), result], {}, node)
        finally:
            self.path.grad_mode, self.path.mode_site = before
        dirty = {tensor.storage for tensor in context.dirty}
        outputs = self.wrap_outputs(result, cls, inputs, context, flag, site)
        recorded = flag is True and self.path.grad_mode
        kept = context.kept
        self.path.tell(
            CustomApplied(cls, backward, len(args), inputs, epochs, dirty, kept, result, flag, recorded, site)
        )
        return outputs

    def masked(self, value: Value) -> Value:
        """Inside forward a tensor is seen without its history."""
        if not isinstance(value, Tensor):
            return value
        inner = Tensor(value.site, value.storage, value.counter, dtype=value.dtype, shape=value.shape)
        inner.label = value.label
        inner.source = value
        inner.dense = value.dense
        inner.leaf_made = False
        return inner

    def wrap_outputs(
        self,
        result: Value,
        cls: ClassValue,
        inputs: list[Tensor],
        context: FunctionContext,
        flag: RequiresGrad,
        site: Site,
    ) -> Value:
        recording = flag if self.path.grad_mode and not self.path.inference else False
        if recording is False:
            return result
        edges = [edge for tensor in inputs if (edge := tensor.edge()) is not None]
        grad_node = Node(cls.name, site, edges, recording, self.path.tick)
        for tensor in context.saved:
            grad_node.saved.append(Saved(tensor, "input", self.autograd.saves_are_certain))
            grad_node.holds = "always"
        silent = {id(tensor) for tensor in context.non_differentiable}
        for tensor in tensors_in(result):
            if id(tensor) in silent or tensor.dtype in ("int", "bool"):
                continue
            owner = next((source for source in inputs if source.storage is tensor.storage), None)
            target = tensor
            if owner is not None and owner.storage in {t.storage for t in context.dirty}:
                target = owner
            target.node = grad_node
            target.requires_grad = recording
            tensor.node = grad_node
            tensor.requires_grad = recording
            tensor.base = None
        return result

    # -- ctx ---------------------------------------------------------------------------------------------------------

    def context_method(
        self, context: FunctionContext, name: str, args: list[Value], kwargs: dict[str, Value], node: Syntax
    ) -> Value:
        tensors = [tensor for arg in args for tensor in tensors_in(arg)]
        if name == "save_for_backward":
            context.saved.extend(tensors)
        elif name == "mark_dirty":
            context.dirty.extend(tensors)
        elif name == "mark_non_differentiable":
            context.non_differentiable.extend(tensors)
        return None

    def context_attribute(self, context: FunctionContext, name: str) -> Value:
        if name in context.kept:
            return context.kept[name][0]
        if name in ("saved_tensors", "saved_variables"):
            return Seq("tuple", list(context.saved))
        if name == "needs_input_grad":
            return Seq("tuple", [Unknown("needs_input_grad", "bool")], False)
        return Bound(context, name)

    def set_context_attribute(self, context: FunctionContext, name: str, value: Value, node: Syntax) -> None:
        context.kept[name] = (value, self.path.site(node))
