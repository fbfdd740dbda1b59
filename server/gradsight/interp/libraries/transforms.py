"""Functional transforms: `functional_call`, `vmap`, `grad`, and derivatives of functions that ignore their input."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from gradsight.interp.libraries.library import Library
from gradsight.interp.tensors.shapes import certainly_not_scalar
from gradsight.interp.tensors.transform_levels import followed_by
from gradsight.model.sites import Site, Syntax
from gradsight.model.tensors import Node, Tensor, any_requires_grad, nodes_and_leaves
from gradsight.model.trace import NotScalar, TransformApplied, Transformed
from gradsight.model.values import (
    Function,
    Instance,
    Layer,
    Mapping,
    Module,
    Native,
    Seq,
    Value,
    module_state,
    tensors_in,
)

BY_POSITION = {"grad", "grad_and_value", "jacrev", "jacfwd"}
"""Transforms that are told by `argnums` what to differentiate."""
BY_INPUT = {"vjp", "jvp", "jacobian", "hvp", "vhp", "linearize"}
"""Transforms that differentiate with respect to every input."""


class Transforms(Library):
    """Modules and functions applied to other tensors than their own."""

    def transform(self, name: str, args: list[Value], kwargs: dict[str, Value], node: Syntax) -> Value:
        transformed = self.transformed(name, args, kwargs, node)
        if not self.path.is_watched or not isinstance(transformed, Native):
            return transformed
        inner = transformed.call

        def call(*given: Any) -> Value:
            with self.path.inside("transform"):
                return inner(*given)

        return Native(transformed.name, call)

    def transformed(self, name: str, args: list[Value], kwargs: dict[str, Value], node: Syntax) -> Value:
        if name == "functional_call":
            return self.functional_call(args, kwargs, node)
        if name == "stack_module_state" and len(args) == 1 and isinstance(args[0], Seq):
            stacked = self.stacked_state(args[0], node)
            if stacked is not None:
                return stacked
        function = args[0] if args else kwargs.get("func")
        if name in BY_POSITION or name in BY_INPUT or name == "hessian":
            chosen = args[1] if len(args) > 1 and name in BY_POSITION else kwargs.get("argnums", 0)
            self.path.tell(Transformed(function, positions(chosen, name in BY_INPUT), name, node))
            if name == "grad" and positions(chosen, False) == [0]:
                aux = kwargs.get("has_aux", args[2] if len(args) > 2 else False)
                return self.gradient_function(function, aux is not False, self.path.site(node))
        if name == "vmap":
            given = dict(zip(("in_dims", "out_dims"), args[1:])) | kwargs
            return self.mapped_function(function, given.get("in_dims", 0), given.get("out_dims", 0))
        return super().transform(name, args, kwargs, node)

    def nn_utility(self, name: str, args: list[Value], kwargs: dict[str, Value], node: Syntax) -> Value:
        if name == "functional_call":
            return self.functional_call(args, kwargs, node)
        return super().nn_utility(name, args, kwargs, node)

    # -- modules with other tensors ----------------------------------------------------------------------------------

    def functional_call(self, args: list[Value], kwargs: dict[str, Value], node: Syntax) -> Value:
        """`functional_call(module, tensors, args, kwargs)`: the module runs with these tensors in place of its own."""
        names = ("module", "parameter_and_buffer_dicts", "args", "kwargs")
        given = {**dict(zip(names, args)), **kwargs}
        module, chosen = given.get("module"), given.get("parameter_and_buffer_dicts")
        dicts: list[Any] = chosen.items if isinstance(chosen, Seq) else [chosen]
        known = all(isinstance(part, Mapping) and part.exact and not part.rest for part in dicts)
        if not isinstance(module, (Layer, Instance)) or module.module is None or not known:
            return self.nn.unknown_result("torch.func.functional_call", args, kwargs, node)
        wanted = {key: value for part in dicts for key, value in part.items.items()}
        inputs = given.get("args")
        positional = list(inputs.items) if isinstance(inputs, Seq) and inputs.kind == "tuple" else [inputs]
        named = given.get("kwargs")
        undo = self.replace_tensors(module, wanted)
        try:
            return self.language.call(
                module,
                positional if inputs is not None else [],
                {str(key): value for key, value in named.items.items()} if isinstance(named, Mapping) else {},
                node,
            )
        finally:
            for attributes, key, value in undo:
                attributes[key] = value

    def replace_tensors(
        self, module: Module, wanted: dict[Value, Value]
    ) -> list[tuple[dict[str, Value], str, Value]]:
        """Put other tensors in the places of a module's own, tied places too; what was there, to be put back."""
        places = [
            (f"{prefix}.{key}" if prefix else key, inner.attributes, key)
            for prefix, inner in self.nn.modules_in(module)
            for key, kind in module_state(inner).registered.items()
            if kind != "module" and key in inner.attributes
        ]
        tied = {id(attributes[key]): wanted[name] for name, attributes, key in places if name in wanted}
        undo: list[tuple[dict[str, Value], str, Value]] = []
        for _, attributes, key in places:
            old = attributes[key]
            if isinstance(old, Tensor) and id(old) in tied:
                undo.append((attributes, key, old))
        for attributes, key, old in undo:
            attributes[key] = tied[id(old)]
        return undo

    def stacked_state(self, members: Seq, node: Syntax) -> Value:
        """`stack_module_state(models)`: leaves of their own, with the models' tensors in their rows."""
        first = members.items[0] if members.items else None
        if not isinstance(first, (Layer, Instance)) or first.module is None or not members.exact:
            return None
        site, count = self.path.site(node), len(members.items)
        dicts: list[Value] = []
        for kind in ("parameter", "buffer"):
            stacked: dict[Any, Value] = {}
            for name, own in self.nn.tensors_of(first, kind):
                shape = (count, *own.shape) if own.shape is not None else None
                stacked[name] = leaf = Tensor(site, dtype=own.dtype, shape=shape)
                leaf.requires_grad, leaf.leaf_made = own.requires_grad, own.requires_grad is not False
                leaf.label = name
            dicts.append(Mapping(stacked))
        return Seq("tuple", dicts)

    # -- functions of functions --------------------------------------------------------------------------------------

    def mapped_function(self, function: Value, in_dims: Value, out_dims: Value) -> Value:
        """`torch.vmap(f)`: f on each slice; what it keeps and writes is as if it were applied to the whole."""

        def run(inner: list[Value], named: dict[str, Value], place: Syntax) -> Value:
            level = self.path.numbering.last
            dims = in_dims.items if isinstance(in_dims, Seq) else [in_dims] * len(inner)
            parts: list[Any] = []
            sizes: set[Any] = set()
            for arg, dim in zip(inner, [*dims, *[0] * len(inner)]):
                parts.append(arg if dim is None else changed(arg, partial(self.row, dim=dim)))
                if isinstance(arg, Tensor) and dim is not None:
                    shape = arg.shape
                    whole = isinstance(dim, int) and shape is not None and dim < len(shape)
                    sizes.add(shape[dim] if whole and shape is not None and isinstance(dim, int) else None)
            for part, arg in zip(parts, inner):
                if part is not arg:
                    followed_by(part, level)
            self.path.transforms.append(("vmap", level))
            try:
                result = self.language.call(function, parts, named, place)
            finally:
                self.path.transforms.pop()
            for part, arg in zip(parts, inner):
                if result is part and part is not arg:
                    # What comes back as it was is the argument itself.
                    return arg
            size = sizes.pop() if len(sizes) == 1 and out_dims == 0 else None
            for tensor in tensors_in(result):
                if all(tensor is not given for arg in inner for given in tensors_in(arg)):
                    shape = tensor.shape
                    tensor.shape = (size, *shape) if shape is not None and size is not None else None
            return result

        return Native("torch.vmap", run)

    def row(self, tensor: Tensor, dim: Value) -> Tensor:
        """What the function is given of a tensor that is mapped along a dimension; its gradient goes to the tensor."""
        shape = tensor.shape
        part = Tensor(
            tensor.site, tensor.storage, tensor.counter, tensor.node, tensor.needs_grad(), tensor.dtype
        )
        if shape is not None and isinstance(dim, int) and 0 <= dim < len(shape):
            part.shape = (*shape[:dim], *shape[dim + 1 :])
        if tensor.node is None and part.requires_grad is not False:
            part.node = Node("argument", tensor.site, [tensor], part.requires_grad, self.path.tick)
        part.label, part.cuts, part.source = tensor.label, tensor.cuts, tensor
        part.base, part.seen_rebases = tensor.base, tensor.seen_rebases
        return part

    def gradient_function(self, function: Value, has_aux: bool, made: Site) -> Value:
        """`torch.func.grad(f)`: a function whose result is shaped like its first argument and stays in the graph."""

        def run(inner: list[Value], named: dict[str, Value], place: Syntax) -> Value:
            first = inner[0] if inner else None
            if not tensors_in(first):
                return self.nn.unknown_result("result of torch.func.grad", [function, *inner], named, place)
            inputs: list[Tensor] = []
            level = self.path.numbering.last

            def differentiated(tensor: Tensor) -> Tensor:
                leaf = Tensor(tensor.site, requires_grad=True, dtype=tensor.dtype, shape=tensor.shape)
                inputs.append(leaf)
                part = Tensor(
                    tensor.site, tensor.storage, tensor.counter, dtype=tensor.dtype, shape=tensor.shape
                )
                part.node = Node("argument", tensor.site, [leaf], True, self.path.tick)
                part.requires_grad, part.label, part.cuts = True, tensor.label, tensor.cuts
                part.follows = tensor.follows | {level}
                return part

            given = [changed(first, differentiated), *inner[1:]]
            self.path.has_transformed = True
            self.path.transforms.append(("torch.func.grad", level))
            try:
                result = self.language.call(function, given, named, place)
            finally:
                self.path.transforms.pop()
            value = result.items[0] if has_aux and isinstance(result, Seq) and result.items else result
            if isinstance(value, Tensor) and certainly_not_scalar(value.shape):
                self.path.refuse(NotScalar(value, self.path.site(place), "torch.func.grad"))
            if isinstance(value, Tensor) and self.path.grad_mode:
                self.path.tell(TransformApplied(value, inputs, made, first_parameter(function), place))
            if isinstance(value, Tensor):
                self.check_kept(value, inputs, place)
            site = self.path.site(place)
            flag = any_requires_grad([tensor.needs_grad() for arg in inner for tensor in tensors_in(arg)])
            edges = [
                edge for arg in inner for tensor in tensors_in(arg) if (edge := tensor.edge()) is not None
            ]

            def gradient(tensor: Tensor) -> Tensor:
                grad = Tensor(site, dtype=tensor.dtype, shape=tensor.shape)
                grad.requires_grad = flag if self.path.grad_mode else False
                if grad.requires_grad is not False:
                    grad.node = Node("torch.func.grad", site, edges, grad.requires_grad, self.path.tick)
                    grad.node.holds = "sometimes"
                    grad.node.open = True
                return grad

            gradients = changed(first, gradient)
            if isinstance(result, Seq) and value is not result:
                return Seq("tuple", [gradients, *result.items[1:]])
            return gradients

        return Native("torch.func.grad", run)

    def check_kept(self, value: Tensor, inputs: list[Tensor], place: Syntax) -> None:
        """The transform runs backward at once, and meets what was written in the meantime.

        It follows its own inputs alone: an operator keeps nothing for the sake of another tensor that requires grad.  So it is
        told only of a graph that has no other leaves.
        """
        start = value.edge()
        if start is None:
            return
        for edge in nodes_and_leaves((start,)):
            if isinstance(edge, Node):
                if edge.open or edge.requires is not True:
                    return
            elif all(edge is not leaf for leaf in inputs):
                return
        self.autograd.walk([start], value, self.path.site(place), value.cuts, "torch.func.grad", "")


def changed(value: Value, change: Callable[[Tensor], Tensor], depth: int = 0) -> Value:
    """The same structure with every tensor in it replaced."""
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, Seq) and depth < 4:
        result = Seq(value.kind, [changed(item, change, depth + 1) for item in value.items], value.exact)
        result.fields = value.fields
        return result
    if isinstance(value, Mapping) and depth < 4:
        items = {key: changed(item, change, depth + 1) for key, item in value.items.items()}
        return Mapping(items, value.exact, value.kind)
    return value


def first_parameter(function: Value) -> str:
    """The name under which a function takes its first argument."""
    if isinstance(function, Function):
        syntax = function.node.args
        return next((argument.arg for argument in [*syntax.posonlyargs, *syntax.args]), "")
    return ""


def positions(chosen: Value, all_inputs: bool) -> list[int] | None:
    """The positions that are differentiated; None for all of them, empty where it cannot be told."""
    if all_inputs:
        return None
    if isinstance(chosen, int):
        return [chosen]
    listed = chosen.items if isinstance(chosen, Seq) else []
    known = [item for item in listed if isinstance(item, int)]
    return known if len(known) == len(listed) else []
