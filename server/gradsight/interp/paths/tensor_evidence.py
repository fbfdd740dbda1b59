"""What is known of tensors that stand for unknown values."""

from __future__ import annotations

import ast
from typing import Any

from gradsight.interp.paths.unknown_graphs import UnknownGraphsAutograd
from gradsight.model.tensors import Maybe, Tensor
from gradsight.model.values import Array, Unknown, Value

ONLY_ARRAYS = {"copy", "astype", "tobytes", "fill"}
"""Methods of arrays that no tensor has."""


class EvidenceAutograd(UnknownGraphsAutograd):
    """What Evidence adds to autograd."""

    def read_grad(self, tensor: Tensor, node: ast.AST) -> Value:
        is_filled_here = tensor in self.path.gradient_ticks
        if tensor.grad is None and (tensor.attributes or {}).get("<stand in>") and not is_filled_here:
            return Unknown("gradient of an unknown module, which other code may have filled")
        if tensor.grad is None and self.path.isolated and tensor.site.frame.function is None:
            # A function that is executed by itself finds what the program has done to its globals by then.
            return Unknown("gradient of a global, which other code may have filled")
        return super().read_grad(tensor, node)

    def tensor_attribute(self, tensor: Tensor, name: str, node: ast.AST) -> Any:
        if name == "requires_grad" and self.path.assuming:
            flag = tensor.needs_grad()
            if isinstance(flag, Maybe) and not flag.weak:
                # Whatever is concluded on this path rests on that assumption.
                return True
        return super().tensor_attribute(tensor, name, node)

    def method_numpy(self, tensor: Tensor, args: list[Any], kwargs: dict[str, Any], node: ast.AST) -> Any:
        forced = kwargs.get("force", args[0] if args else False) is not False
        if not forced and self.path.grad_mode and self.entry.is_graph_assumed(tensor):
            # torch would refuse this very line: the value has no graph here.
            return Array(tensor, tensor.cuts, None)
        return super().method_numpy(tensor, args, kwargs, node)

    def tensor_method(
        self, tensor: Tensor, name: str, args: list[Any], kwargs: dict[str, Any], node: ast.AST
    ) -> Any:
        if name in ONLY_ARRAYS and self.entry.is_graph_assumed(tensor):
            tensor.node, tensor.requires_grad = None, False
            return Array(None, tensor.cuts)
        return super().tensor_method(tensor, name, args, kwargs, node)
