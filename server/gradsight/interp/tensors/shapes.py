"""Shapes, as far as they can be told: a tuple of sizes (None for an unknown one), or None when nothing is known."""

from __future__ import annotations

from collections.abc import Callable

from gradsight.interp.path_state import PathState, RaisedError
from gradsight.interp.tensors.sizes import broadcast, index_shape, shape_of, sizes, whole
from gradsight.model.library_objects import RaisedObject
from gradsight.model.tensors import Shape, Tensor
from gradsight.model.values import Seq, Unknown, Value
from gradsight.ops.fact import Output

Operands = list[tuple[str, Tensor]]
Rule = Callable[[Shape, dict[str, Value], Operands], Shape]


class ShapesClash(Exception):
    """torch refuses operands of these shapes."""


def stretched(shapes: list[Shape]) -> Shape:
    """The shape of operands that are stretched to each other."""
    result = broadcast(shapes)
    for shape in shapes:
        for size, common in zip(reversed(shape or ()), reversed(result or ())):
            if size not in (1, None, common) and common is not None:
                raise ShapesClash
    return result


def shape_or_error(
    path: PathState, op: str, output: Output, bound: dict[str, Value], operands: list[tuple[str, Tensor]]
) -> Shape:
    """The shape of a result; where torch refuses the operands, a program that waits for an error gets it."""
    try:
        return infer_shape(op, output, bound, operands)
    except ShapesClash:
        if path.frame.expecting and not path.premises:
            raise RaisedError(RaisedObject("RuntimeError", path.site())) from None
        return None


def infer_shape(
    op: str, output: Output, bound: dict[str, Value], operands: list[tuple[str, Tensor]]
) -> Shape:
    """The shape of a result: by the operator's own rule where it has one, else by its measured shape fact."""
    rule = RULES.get(op)
    if rule in LOSS_RULES and bound.keys().isdisjoint(REDUCING):
        rule = None  # what a loss does by default is measured: `torch.kl_div` reduces nothing, `nn.functional.kl_div` does
    values = list(bound.values())
    first = values[0] if values else None
    told = output.shape
    if rule is not None:
        shape = first.shape if isinstance(first, Tensor) else None
        try:
            return rule(shape, bound, operands)
        except (TypeError, LookupError, ValueError, AttributeError, ZeroDivisionError):
            return None
    if told == "scalar":
        return ()
    if told == "broadcast":
        return broadcast([tensor.shape for _, tensor in operands])
    if told.startswith("like:"):
        source = bound.get(told[5:])
        return source.shape if isinstance(source, Tensor) else None
    if told == "reduce":
        shape = first.shape if isinstance(first, Tensor) else None
        return reduced(shape, bound)
    return None


def reduced(shape: Shape, bound: dict[str, Value]) -> Shape:
    """The shape after a reduction over `dim`."""
    dim = bound.get("dim", bound.get("axis"))
    if dim is None:
        return () if not bound.get("keepdim") else None
    dims = dim.items if isinstance(dim, Seq) else [dim]
    keep = bound.get("keepdim", False)
    if shape is None or not all(isinstance(axis, int) for axis in dims) or not isinstance(keep, bool):
        return None
    axes = {axis % len(shape) for axis in dims if isinstance(axis, int)} if shape else set()
    if keep:
        return tuple(1 if index in axes else size for index, size in enumerate(shape))
    return tuple(size for index, size in enumerate(shape) if index not in axes)


def numel(shape: Shape) -> int | None:
    """The number of elements, or None."""
    if shape is None:
        return None
    count = 1
    for size in shape:
        if not isinstance(size, int):
            return 0 if size == 0 else None
        count *= size
    return count


RESHAPES_IN_PLACE = frozenset("squeeze_ swapaxes_ swapdims_ t_ transpose_ unsqueeze_".split())
"""Writes that change the shape of a tensor and none of its values."""


def certainly_differ(one: Shape, other: Shape) -> bool:
    """Whether two shapes are known to be different."""
    if one is None or other is None:
        return False
    if len(one) != len(other):
        return True
    return any(
        isinstance(left, int) and isinstance(right, int) and left != right for left, right in zip(one, other)
    )


def can_be_summed(gradient: Shape, wanted: Shape) -> bool:
    """Whether a gradient has the shape of its tensor, or one that the tensor broadcasts to; or that cannot be told."""
    if gradient is None or wanted is None:
        return True
    if len(gradient) < len(wanted):
        return False
    pairs = zip(reversed(gradient), reversed(wanted))
    return all(left == right or right == 1 or left is None or right is None for left, right in pairs)


def spelled(shape: Shape) -> str:
    """A shape as torch prints it, with `?` for a size that is not known."""
    return f"[{', '.join('?' if size is None else str(size) for size in shape or ())}]"


def certainly_not_scalar(shape: Shape) -> bool:
    """Whether the tensor surely has more than one element."""
    if shape is None:
        return False
    known = [size for size in shape if isinstance(size, int)]
    count = numel(shape)
    if count is not None:
        return count != 1
    return any(size > 1 for size in known) and 0 not in known


def sizes_of(values: list[Value]) -> Shape:
    """Sizes given one by one or as one sequence."""
    if len(values) == 1 and isinstance(values[0], Seq):
        values = values[0].items if values[0].exact else []
        if not values:
            return None
    return tuple(value if isinstance(value, int) else None for value in values)


def _view(shape: Shape, bound: dict[str, Value], operands: Operands) -> Shape:
    wanted = sizes_of(list(bound.values())[1:])
    if wanted is None:
        return None
    if -1 in wanted:
        total = numel(shape)
        known = 1
        for size in wanted:
            if size is None:
                return tuple(None if entry in (-1, None) else entry for entry in wanted)
            if size != -1:
                known *= size
        fill = total // known if total is not None and known else None
        return tuple(fill if size == -1 else size for size in wanted)
    return wanted


def _matmul(shape: Shape, bound: dict[str, Value], operands: Operands) -> Shape:
    tensors = [value for value in bound.values() if isinstance(value, Tensor)]
    left, right = tensors[0].shape, tensors[1].shape
    return product(left, right)


def product(left: Shape, right: Shape) -> Shape:
    """The shape of `left @ right`."""
    if left is None or right is None or not left or not right:
        return None
    inner = {left[-1], right[-2] if len(right) > 1 else right[0]}
    if len(inner) == 2 and None not in inner:
        raise ShapesClash
    if len(left) == 1 and len(right) == 1:
        return ()
    if len(left) == 1:
        return (*right[:-2], right[-1])
    if len(right) == 1:
        return left[:-1]
    batch = stretched([left[:-2], right[:-2]])
    return None if batch is None else (*batch, left[-2], right[-1])


def _transpose_last(shape: Shape, bound: dict[str, Value], operands: Operands) -> Shape:
    return None if shape is None else tuple(reversed(shape)) if len(shape) <= 2 else None


def _transpose(shape: Shape, bound: dict[str, Value], operands: Operands) -> Shape:
    first, second = map(whole, list(bound.values())[1:3])
    result = list(sizes(shape))
    result[first], result[second] = result[second], result[first]
    return tuple(result)


def _permute(shape: Shape, bound: dict[str, Value], operands: Operands) -> Shape:
    order = sizes_of(list(bound.values())[1:])
    return tuple(sizes(shape)[whole(axis)] for axis in sizes(order))


def _unfold(shape: Shape, bound: dict[str, Value], operands: Operands) -> Shape:
    """Windows of a dimension: their number takes its place, and their size comes last."""
    if shape is None:
        return None
    dim, size, step = bound["dimension"], bound["size"], bound["step"]
    if not isinstance(dim, int) or not isinstance(size, int) or not isinstance(step, int):
        return None
    windows = [*shape]
    length = shape[dim]
    windows[dim] = (length - size) // step + 1 if length is not None else None
    return (*windows, size)


def _unsqueeze(shape: Shape, bound: dict[str, Value], operands: Operands) -> Shape:
    dim = whole(bound.get("dim", list(bound.values())[-1]))
    result = list(sizes(shape))
    result.insert(dim if dim >= 0 else len(result) + 1 + dim, 1)
    return tuple(result)


def _squeeze(shape: Shape, bound: dict[str, Value], operands: Operands) -> Shape:
    dims = list(bound.values())[1:]
    if not dims:
        return None if shape is None or None in shape else tuple(size for size in shape if size != 1)
    axis = dims[0]
    if shape is None or not isinstance(axis, int):
        return None
    axis %= len(shape)
    if shape[axis] is None:
        return None
    return shape[:axis] + shape[axis + 1 :] if shape[axis] == 1 else shape


def _flatten(shape: Shape, bound: dict[str, Value], operands: Operands) -> Shape:
    if shape is None:
        return None
    start = whole(bound.get("start_dim", 0))
    end = whole(bound.get("end_dim", -1)) % max(1, len(shape))
    return (*shape[:start], numel(shape[start : end + 1]), *shape[end + 1 :])


def _expand(shape: Shape, bound: dict[str, Value], operands: Operands) -> Shape:
    wanted = sizes(sizes_of(list(bound.values())[1:]))
    offset = len(wanted) - len(shape) if shape is not None else 0
    return tuple(
        (shape[index - offset] if shape is not None and index >= offset else None) if size == -1 else size
        for index, size in enumerate(wanted)
    )


def _expand_as(shape: Shape, bound: dict[str, Value], operands: Operands) -> Shape:
    other = list(bound.values())[1]
    return other.shape if isinstance(other, Tensor) else None


def _sequence(bound: dict[str, Value]) -> Seq:
    return next((value for value in bound.values() if isinstance(value, Seq)), Seq("list", [], False))


def _stack(shape: Shape, bound: dict[str, Value], operands: Operands) -> Shape:
    items = _sequence(bound)
    shapes = [item.shape for item in items.items if isinstance(item, Tensor)]
    if not shapes or shapes[0] is None:
        return None
    dim = whole(bound.get("dim", 0))
    result = list(shapes[0])
    result.insert(dim if dim >= 0 else len(result) + 1 + dim, len(items.items) if items.exact else None)
    return tuple(result)


def _cat(shape: Shape, bound: dict[str, Value], operands: Operands) -> Shape:
    items = _sequence(bound)
    shapes = [sizes(item.shape) for item in items.items if isinstance(item, Tensor)]
    if len({len(each) for each in shapes}) != 1:
        return None
    dim = whole(bound.get("dim", bound.get("axis", 0))) % len(shapes[0])
    lengths = [entry[dim] for entry in shapes]
    known = [length for length in lengths if length is not None]
    total = sum(known) if items.exact and len(known) == len(lengths) else None
    return tuple(total if index == dim else size for index, size in enumerate(shapes[0]))


def _linear(shape: Shape, bound: dict[str, Value], operands: Operands) -> Shape:
    weight = bound.get("weight")
    if shape is None or not isinstance(weight, Tensor) or weight.shape is None:
        return None
    return (*shape[:-1], *weight.shape[:-1])


def _embedding(shape: Shape, bound: dict[str, Value], operands: Operands) -> Shape:
    weight = bound.get("weight")
    if shape is None or not isinstance(weight, Tensor) or weight.shape is None:
        return None
    return (*shape, weight.shape[1])


def _loss(shape: Shape, bound: dict[str, Value], operands: Operands) -> Shape:
    reduction = bound.get("reduction", "mean")
    if reduction in ("mean", "sum", "batchmean"):
        return ()
    return None


def _class_loss(shape: Shape, bound: dict[str, Value], operands: Operands) -> Shape:
    if bound.get("reduction", "mean") == "none" and "reduce" not in bound:
        return by_class(bound.get("target"))
    return _loss(shape, bound, operands)


def by_class(target: Value) -> Shape:
    """The shape of a loss without reduction that is told the right classes: one number for each of them."""
    return target.shape if isinstance(target, Tensor) and target.dtype == "int" else None


def _cosine_similarity(shape: Shape, bound: dict[str, Value], operands: Operands) -> Shape:
    joined = broadcast([tensor.shape for _, tensor in operands])
    return None if joined is None else reduced(joined, {"dim": bound.get("dim", 1)})


def _einsum(shape: Shape, bound: dict[str, Value], operands: Operands) -> Shape:
    equation = next((value for value in bound.values() if isinstance(value, str)), "")
    shapes = [sizes(tensor.shape) for _, tensor in operands]
    inputs, arrow, output = equation.replace(" ", "").partition("->")
    terms = inputs.split(",")
    if not arrow or len(terms) != len(shapes):
        return None
    lengths: dict[str, int | None] = {}
    unnamed: list[Shape] = []
    for term, known in zip(terms, shapes):
        # The dots stand for the dimensions that have no letter.
        before, dots, after = term.partition("...")
        count = len(known) - len(before) - len(after)
        if count < 0 or (count and not dots):
            return None
        start = len(before)
        unnamed.append(known[start : start + count])
        named = zip(before + after, known[:start] + known[start + count :])
        lengths.update({letter: size for letter, size in named if size is not None})
    before, dots, after = output.partition("...")
    middle = sizes(broadcast(unnamed)) if dots else ()
    return (*(lengths.get(each) for each in before), *middle, *(lengths.get(each) for each in after))


def _pool(shape: Shape, bound: dict[str, Value], operands: Operands) -> Shape:
    """Pooling and convolution keep the batch; what becomes of the rest is not worth telling."""
    return None if shape is None or len(shape) < 3 else (shape[0], *([None] * (len(shape) - 1)))


def _topk(shape: Shape, bound: dict[str, Value], operands: Operands) -> Shape:
    count, dim = bound.get("k"), bound.get("dim", -1)
    axis = whole(dim) % len(sizes(shape))
    kept = count if isinstance(count, int) else None
    return tuple(kept if index == axis else size for index, size in enumerate(sizes(shape)))


def _elementwise_loss(shape: Shape, bound: dict[str, Value], operands: Operands) -> Shape:
    if bound.get("reduction", "mean") == "none":
        return broadcast([tensor.shape for _, tensor in operands])
    return _loss(shape, bound, operands)


def _reduce(shape: Shape, bound: dict[str, Value], operands: Operands) -> Shape:
    arguments = dict(bound)
    values = list(bound.items())
    if (
        len(values) > 1
        and values[1][0] not in ("keepdim", "dtype", "out", "correction", "unbiased")
        and "dim" not in arguments
    ):
        arguments["dim"] = values[1][1]
    return reduced(shape, arguments)


def _norm(shape: Shape, bound: dict[str, Value], operands: Operands) -> Shape:
    return reduced(shape, bound)


def _index(shape: Shape, bound: dict[str, Value], operands: Operands) -> Shape:
    return index_shape(shape, list(bound.values())[1])


def _chunk(shape: Shape, bound: dict[str, Value], operands: Operands) -> Shape:
    chunks = bound.get("chunks")
    dim = bound.get("dim", 0)
    if shape is None or not isinstance(chunks, int) or not isinstance(dim, int):
        return None
    axis = dim % len(shape)
    size = shape[axis]
    return tuple(
        (-(-size // chunks) if isinstance(size, int) else None) if index == axis else entry
        for index, entry in enumerate(shape)
    )


def _split(shape: Shape, bound: dict[str, Value], operands: Operands) -> Shape:
    if shape is None:
        return None
    axis = whole(bound.get("dim", 0)) % len(shape)
    return tuple(None if index == axis else entry for index, entry in enumerate(shape))


def _unbind(shape: Shape, bound: dict[str, Value], operands: Operands) -> Shape:
    if shape is None:
        return None
    axis = whole(bound.get("dim", 0)) % len(shape)
    return tuple(entry for index, entry in enumerate(shape) if index != axis)


def _gather(shape: Shape, bound: dict[str, Value], operands: Operands) -> Shape:
    index = bound.get("index")
    return index.shape if isinstance(index, Tensor) else None


def _diagonal(shape: Shape, bound: dict[str, Value], operands: Operands) -> Shape:
    if shape is None or len(shape) != 2 or len(bound) > 1:
        return None
    known = [size for size in shape if size is not None]
    return (min(known),) if len(known) == 2 else (None,)


def _narrow(shape: Shape, bound: dict[str, Value], operands: Operands) -> Shape:
    length = bound.get("length", list(bound.values())[-1])
    axis = bound.get("dim", list(bound.values())[1])
    return tuple(
        (length if isinstance(length, int) else None) if i == whole(axis) % len(sizes(shape)) else size
        for i, size in enumerate(sizes(shape))
    )


def _take_along(shape: Shape, bound: dict[str, Value], operands: Operands) -> Shape:
    """Along the dimension as many as there are indices, elsewhere both stretched to each other; else one long row."""
    index = shape_of(bound["indices"])
    if bound.get("dim") is None:
        return (numel(index),)
    axis = whole(bound["dim"]) % len(sizes(shape))
    result = list(sizes(broadcast([shape, index])))
    result[axis] = sizes(index)[axis]
    return tuple(result)


def _halved(shape: Shape, bound: dict[str, Value], operands: Operands) -> Shape:
    """Half as many along the dimension."""
    axis = whole(bound.get("dim", -1)) % len(sizes(shape))
    return tuple(
        size // 2 if index == axis and isinstance(size, int) else size
        for index, size in enumerate(sizes(shape))
    )


def _same(shape: Shape, bound: dict[str, Value], operands: Operands) -> Shape:
    return shape


def _outer(shape: Shape, bound: dict[str, Value], operands: Operands) -> Shape:
    tensors = [sizes(tensor.shape) for _, tensor in operands[:2]]
    return (tensors[0][0], tensors[1][0])


def _repeat_interleave(shape: Shape, bound: dict[str, Value], operands: Operands) -> Shape:
    """Each element several times, along a dimension or in one long row."""
    times, dim = bound.get("repeats"), bound.get("dim")
    if times is None:
        return None
    result = [numel(shape)] if dim is None else list(sizes(shape))
    place = 0 if dim is None else whole(dim)
    size = result[place]
    result[place] = size * times if isinstance(size, int) and type(times) is int else None
    return tuple(result)


def _repeat(shape: Shape, bound: dict[str, Value], operands: Operands) -> Shape:
    """Copies side by side; dimensions are added in front where more counts than dimensions are given."""
    times = _numbers(bound.get("repeats", bound.get("dims")))
    result = [1] * (len(times) - len(sizes(shape))) + list(sizes(shape))
    times = [*([1] * (len(result) - len(times))), *times]
    return tuple(
        size * count if isinstance(size, int) and isinstance(count, int) else None
        for size, count in zip(result, times)
    )


def _numbers(given: Value) -> list[Value]:
    """Several numbers, given one by one or in a sequence."""
    if isinstance(given, Seq) and len(given.items) == 1 and isinstance(given.items[0], Seq):
        given = given.items[0]
    return list(given.items) if isinstance(given, Seq) else [given]


def _add_product(shape: Shape, bound: dict[str, Value], operands: Operands) -> Shape:
    """A product of matrices, or of a matrix and a vector, with something added that is stretched to it."""
    left, right = list(bound.values())[1:3]
    return product(shape_of(left), shape_of(right))


def _index_select(shape: Shape, bound: dict[str, Value], operands: Operands) -> Shape:
    index = bound["index"]
    count = numel(index.shape) if isinstance(index, Tensor) else None
    result = list(sizes(shape))
    result[whole(bound["dim"])] = count
    return tuple(result)


def _pad(shape: Shape, bound: dict[str, Value], operands: Operands) -> Shape:
    """Elements added before and behind, told from the last dimension forwards."""
    counts = _numbers(bound.get("pad"))
    result = list(sizes(shape))
    for place, (before, behind) in enumerate(zip(counts[::2], counts[1::2]), start=1):
        size = result[-place]
        if isinstance(size, int) and isinstance(before, int) and isinstance(behind, int):
            result[-place] = size + before + behind
        else:
            result[-place] = None
    return tuple(result)


def _attention(shape: Shape, bound: dict[str, Value], operands: Operands) -> Shape:
    """As many rows as queries, each as wide as the values."""
    value = shape_of(bound["value"])
    return None if shape is None or not value else (*shape[:-1], value[-1])


def _elementwise(shape: Shape, bound: dict[str, Value], operands: Operands) -> Shape:
    unknown = [value for value in bound.values() if isinstance(value, Unknown) and not value.hint]
    if any(value.plain or value.graph is not None or value.argument for value in unknown):
        return None
    if unknown and any(tensor.shape != () for _, tensor in operands):
        return None
    # What is not known and scales one number (`config.weight * loss`) is a number.
    return stretched([tensor.shape for _, tensor in operands])


LOSS_RULES: frozenset[Rule | None] = frozenset((_loss, _class_loss, _elementwise_loss))
PER_ITEM = "<one per item>"
"""The attribute of what a loss without a reduction returns."""
MANY_ITEMS = "there is more than one item in a batch"
REDUCING = frozenset(("reduction", "reduce", "size_average"))
RULES: dict[str, Rule] = {
    **dict.fromkeys(("view", "reshape"), _view),
    **dict.fromkeys(("matmul", "mm", "bmm", "mv"), _matmul),
    "T": _transpose_last, "t": _transpose_last, "H": _transpose_last,
    **dict.fromkeys(("transpose", "swapaxes", "swapdims"), _transpose),
    "permute": _permute, "unsqueeze": _unsqueeze, "unfold": _unfold, "squeeze": _squeeze, "flatten": _flatten, "Flatten": _flatten, "expand": _expand, "broadcast_to": _expand, "expand_as": _expand_as, "view_as": _expand_as, "reshape_as": _expand_as,
    "stack": _stack, **dict.fromkeys(("cat", "concat", "concatenate"), _cat),
    "linear": _linear, "embedding": _embedding,
    **dict.fromkeys(("ctc_loss", "multi_margin_loss", "multilabel_margin_loss"), _loss),
    **dict.fromkeys(("cross_entropy", "nll_loss"), _class_loss),
    "pad": _pad, "scaled_dot_product_attention": _attention,
    "repeat": _repeat, "tile": _repeat, "repeat_interleave": _repeat_interleave, "index_select": _index_select,
    **dict.fromkeys(("addmm", "baddbmm", "addmv"), _add_product),
    "cosine_similarity": _cosine_similarity, "einsum": _einsum, "topk": _topk,
    **dict.fromkeys(("max_pool1d", "max_pool2d", "max_pool3d", "avg_pool1d", "avg_pool2d", "avg_pool3d"), _pool),
    **dict.fromkeys(("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy", "kl_div",
                     "binary_cross_entropy_with_logits", "poisson_nll_loss", "gaussian_nll_loss", "soft_margin_loss",
                     "hinge_embedding_loss", "margin_ranking_loss", "cosine_embedding_loss", "triplet_margin_loss"),
                    _elementwise_loss),
    **dict.fromkeys(("sum", "mean", "max", "min", "amax", "amin", "prod", "std", "var", "logsumexp", "all", "any", "argmax",
                     "argmin", "median", "nansum", "nanmean", "count_nonzero"), _reduce),
    **dict.fromkeys(("norm", "vector_norm", "matrix_norm"), _norm),
    "index": _index, "diagonal": _diagonal, "narrow": _narrow, "chunk": _chunk, "split": _split, "unbind": _unbind, "gather": _gather, "take_along_dim": _take_along, "glu": _halved, "outer": _outer,
    **dict.fromkeys(("add", "sub", "mul", "div", "true_divide", "divide", "multiply", "subtract", "pow", "where", "maximum", "minimum", "remainder", "floor_divide", "lt", "le",
                     "gt", "ge", "eq", "ne", "bitwise_and", "bitwise_or", "atan2", "fmod"), _elementwise),
    **dict.fromkeys(("clone", "detach", "data", "exp", "log", "relu", "sigmoid", "tanh", "softmax", "log_softmax", "dropout",
                     "neg", "abs", "sqrt", "sin", "cos", "square", "clamp", "clip", "float", "double", "half", "to", "sign",
                     "round", "floor", "ceil", "gelu", "silu", "elu", "leaky_relu", "softplus", "normalize", "contiguous",
                     "layer_norm", "group_norm", "batch_norm", "cumsum", "cumprod", "masked_fill", "rsqrt", "reciprocal",
                     "log1p", "expm1", "erf", "hardtanh", "logsigmoid", "triu", "tril", "flip", "roll", "long", "int", "bool",
                     "type", "clamp_min", "clamp_max", "selu", "mish", "requires_grad_", "nan_to_num", "logit"), _same),
}  # fmt: skip
