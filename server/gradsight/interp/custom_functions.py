"""Custom autograd Functions: how many gradients, what is kept on ctx, what is written."""

from __future__ import annotations

import ast
from typing import Any

from gradsight.interp.autograd import INTEGRAL
from gradsight.interp.distributions import Distributions
from gradsight.interp.returned_gradients import count_returned
from gradsight.model.events import Step
from gradsight.model.tensors import Node, Saved, Tensor, any_requires_grad
from gradsight.model.trace import CustomApplied
from gradsight.model.values import (
    Bound,
    ClassValue,
    Function,
    Opaque,
    Seq,
    Unknown,
    tensors_in,
)


class CustomFunctions(Distributions):
    """`MyFunction.apply(...)`."""

    def apply_custom_function(
        self, cls: ClassValue, args: list[Any], kwargs: dict[str, Any], node: ast.AST
    ) -> Any:
        forward, _ = cls.find("forward")
        backward, _ = cls.find("backward")
        setup, _ = cls.find("setup_context")
        site = self.site(node)
        if not isinstance(forward, Function):
            return self.gap("autograd function without forward", node)
        context = Opaque("ctx", cls.name, site)
        context.state.update(saved=[], kept={}, dirty=[], non_differentiable=[])
        inputs = [tensor for arg in args for tensor in tensors_in(arg) if isinstance(arg, Tensor)]
        epochs = {tensor: tensor.storage.epoch for tensor in inputs}
        flag = any_requires_grad([tensor.needs_grad() for tensor in inputs])
        # Inside forward grad mode is off; what is computed there is not a cut, the Function is the way back.
        before = (self.grad_mode, self.mode_site)
        self.grad_mode = False
        inner_inputs = [self.masked(arg) for arg in args]
        try:
            given = inner_inputs if isinstance(setup, Function) else [context, *inner_inputs]
            result = self.call_function(forward, given, kwargs, node)
            if isinstance(setup, Function):
                self.call_function(setup, [context, Seq("tuple", inner_inputs), result], {}, node)
        finally:
            self.grad_mode, self.mode_site = before
        dirty = {tensor.storage for tensor in context.state["dirty"]}
        given_back = {tensor.storage for tensor in tensors_in(result)}
        for tensor in inputs:
            if tensor.storage.epoch != epochs[tensor] and tensor.storage not in dirty:
                write = next(w for w in tensor.storage.writes if w.epoch > epochs[tensor])
                if tensor.needs_grad() is False and tensor.storage not in given_back:
                    # A buffer: nothing goes back through it, and `mark_dirty` refuses what is not returned.
                    continue
                if write.mode == "silent" or write.writer.snapshot == "data":
                    # Who writes through `.data` here means to go past autograd.
                    continue
                self.emit(
                    "dirty-not-marked",
                    write.site,
                    [Step("call", site, "applied here")],
                    target=tensor.label,
                    cls=cls.name,
                )
        returned = None
        if isinstance(backward, Function) and not isinstance(backward.node, ast.Lambda):
            returned = count_returned(backward.node, len(args))
        if returned is not None and returned[0] != len(args) and flag is not False:
            self.emit(
                "gradient-count",
                self.place_in(backward, returned[1]),
                [Step("call", site, f"applied to {len(args)} arguments here")],
                cls=cls.name,
                returned=returned[0],
                wanted=len(args),
            )
        if isinstance(backward, Function) and flag is True and self.grad_mode:
            self.tell(CustomApplied(backward, site))
        outputs = self.wrap_outputs(result, cls, inputs, context, flag, site)
        self.judge_context(context, cls, inputs, result, site)
        return outputs

    def masked(self, value: Any) -> Any:
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
        self, result: Any, cls: ClassValue, inputs: list[Tensor], context: Opaque, flag: Any, site: Any
    ) -> Any:
        recording = flag if self.grad_mode and not self.inference else False
        if recording is False:
            return result
        edges = [edge for tensor in inputs if (edge := tensor.edge()) is not None]
        grad_node = Node(cls.name, site, edges, recording, self.tick)
        for tensor in context.state["saved"]:
            grad_node.saved.append(Saved(tensor, "input", self.saves_are_certain))
            grad_node.holds = "always"
        silent = {id(tensor) for tensor in context.state["non_differentiable"]}
        for tensor in tensors_in(result):
            if id(tensor) in silent or tensor.dtype in ("int", "bool"):
                continue
            owner = next((source for source in inputs if source.storage is tensor.storage), None)
            target = tensor
            if owner is not None and owner.storage in {t.storage for t in context.state["dirty"]}:
                target = owner
            target.node = grad_node
            target.requires_grad = recording
            tensor.node = grad_node
            tensor.requires_grad = recording
            tensor.base = None
        return result

    def judge_context(
        self, context: Opaque, cls: ClassValue, inputs: list[Tensor], result: Any, site: Any
    ) -> None:
        """Tensors set as attributes of ctx escape the version check and keep memory alive."""
        outputs = tensors_in(result)
        for name, (value, place) in context.state["kept"].items():
            for tensor in tensors_in(value):
                if tensor.snapshot == "detach" or tensor.dtype in INTEGRAL or tensor.dtype == "?":
                    continue
                given = any(tensor.storage is source.storage for source in inputs)
                made = any(tensor.storage is output.storage for output in outputs)
                if given or made:
                    self.emit(
                        "tensor-on-ctx",
                        place,
                        [Step("call", site, "applied here")],
                        name=name,
                        cls=cls.name,
                        output=made,
                    )

    # -- ctx ---------------------------------------------------------------------------------------------------------

    def context_method(
        self, context: Opaque, name: str, args: list[Any], kwargs: dict[str, Any], node: ast.AST
    ) -> Any:
        tensors = [tensor for arg in args for tensor in tensors_in(arg)]
        if name == "save_for_backward":
            context.state["saved"].extend(tensors)
        elif name == "mark_dirty":
            context.state["dirty"].extend(tensors)
        elif name == "mark_non_differentiable":
            context.state["non_differentiable"].extend(tensors)
        return None

    def context_attribute(self, context: Opaque, name: str) -> Any:
        if name in context.state["kept"]:
            return context.state["kept"][name][0]
        if name in ("saved_tensors", "saved_variables"):
            return Seq("tuple", list(context.state["saved"]))
        if name == "needs_input_grad":
            return Seq("tuple", [Unknown("needs_input_grad", "bool")], False)
        return Bound(context, name)

    def set_context_attribute(self, context: Opaque, name: str, value: Any, node: ast.AST) -> None:
        context.state["kept"][name] = (value, self.site(node))
