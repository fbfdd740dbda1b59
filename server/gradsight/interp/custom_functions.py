"""Custom autograd Functions: how many gradients, what is kept on ctx, what is written."""

from __future__ import annotations

import ast
from typing import Any

from gradsight.interp.autograd import INTEGRAL
from gradsight.interp.hooks import GradientHooks
from gradsight.interp.syntax import own_statements
from gradsight.interp.tensors import Node, Saved, Tensor, any_requires_grad
from gradsight.interp.values import (
    Bound,
    ClassValue,
    Function,
    Opaque,
    Seq,
    Unknown,
    tensors_in,
)
from gradsight.model.events import Step


class CustomFunctions(GradientHooks):
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
        for tensor in inputs:
            if tensor.storage.epoch != epochs[tensor] and tensor.storage not in dirty:
                write = next(w for w in tensor.storage.writes if w.epoch > epochs[tensor])
                if write.mode == "silent":
                    # Who writes through `.data` here means to go past autograd.
                    continue
                self.emit(
                    "dirty-not-marked",
                    write.site,
                    [Step("call", site, "applied here")],
                    target=tensor.label,
                    cls=cls.name,
                )
        returned = self.count_returned(backward, len(args))
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
            self.judge_gradient_function(backward, site, "backward", first=1)
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
            grad_node.saved.append(Saved(tensor, "input", True))
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

    def count_returned(self, backward: Any, wanted: int) -> tuple[int, ast.AST] | None:
        """The number of gradients that every return of backward gives, if they agree; torch takes None beyond the last."""
        if not isinstance(backward, Function) or isinstance(backward.node, ast.Lambda):
            return None
        returns = [inner for inner in own_statements(backward.node.body) if isinstance(inner, ast.Return)]
        counts = set()
        for statement in returns:
            value = statement.value
            if value is None:
                return None
            if isinstance(value, ast.Tuple):
                if any(isinstance(element, ast.Starred) for element in value.elts):
                    return None
                beyond = value.elts[wanted:]
                if not any(self.is_gradient(backward.node, element) for element in beyond):
                    counts.add(min(len(value.elts), wanted))
                else:
                    counts.add(len(value.elts))
            elif self.is_gradient(backward.node, value) or (
                isinstance(value, ast.Constant) and value.value is None
            ):
                counts.add(1)
            else:
                return None
        return (counts.pop(), returns[-1]) if len(counts) == 1 else None

    def is_gradient(self, function: ast.FunctionDef | ast.AsyncFunctionDef, value: ast.expr) -> bool:
        """Whether an expression is one tensor for certain: arithmetic, or a name for nothing else."""
        if isinstance(value, ast.Name):
            return self.single_gradient(function, value.id)
        return isinstance(value, (ast.BinOp, ast.UnaryOp, ast.Subscript))

    def single_gradient(self, function: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> bool:
        """Whether a local name is bound to one plain expression only."""
        values = [
            statement.value for statement in ast.walk(function)
            if isinstance(statement, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in statement.targets)
        ]  # fmt: skip
        parameters = [argument.arg for argument in function.args.args]
        if not values:
            return name in parameters
        return all(isinstance(value, (ast.BinOp, ast.UnaryOp, ast.Subscript)) or (isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in ("clone", "neg", "mul", "sum")) for value in values)  # fmt: skip

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
