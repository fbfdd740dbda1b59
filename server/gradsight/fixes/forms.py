"""The in-place callables of torch and how each is written out of place, or why it is not.

*Twin*: the method without the underscore, which gives the same value and type in a new tensor.  What has no twin, or a
twin of another type (`x.gt_(0)` stays a float, `x.gt(0)` is a bool), is run on a clone.
*Flag*: an argument `inplace`, which may be given by its place.
"""

from __future__ import annotations

OPERATORS = {
    "add_": "+",
    "sub_": "-",
    "subtract_": "-",
    "mul_": "*",
    "multiply_": "*",
    "div_": "/",
    "divide_": "/",
    "true_divide_": "/",
}

WITH_TWIN = frozenset(
    """abs_ absolute_ acos_ acosh_ add_ addbmm_ addcdiv_ addcmul_ addmm_ addmv_ addr_ arccos_ arccosh_ arcsin_ arcsinh_
    arctan2_ arctan_ arctanh_ as_strided_ asin_ asinh_ atan2_ atan_ atanh_ baddbmm_ ceil_ clamp_ clamp_max_ clamp_min_ clip_
    conj_physical_ copysign_ cos_ cosh_ cumprod_ cumsum_ deg2rad_ detach_ digamma_ div_ divide_ erf_ erfc_ erfinv_ exp2_ exp_ expm1_
    fix_ floor_ floor_divide_ fmod_ frac_ heaviside_ hypot_ i0_ igamma_ igammac_ index_add_ index_copy_ index_fill_
    index_put_ index_reduce_ ldexp_ lerp_ lgamma_ log10_ log1p_ log2_ log_ logit_ masked_fill_ masked_scatter_ mul_
    multiply_ mvlgamma_ nan_to_num_ neg_ negative_ nextafter_ polygamma_ pow_ put_ rad2deg_ reciprocal_ relu_ remainder_
    renorm_ round_ rsqrt_ scatter_ scatter_add_ scatter_reduce_ sgn_ sigmoid_ sign_ sin_ sinc_ sinh_ sqrt_ square_
    squeeze_ sub_ subtract_ swapaxes_ swapdims_ t_ tan_ tanh_ transpose_ tril_ triu_ true_divide_ trunc_ unsqueeze_
    xlogy_""".split()
)

BY_CLONE = frozenset(
    """apply_ bernoulli_ bitwise_and_ bitwise_left_shift_ bitwise_not_ bitwise_or_ bitwise_right_shift_ bitwise_xor_ cauchy_
    copy_ eq_ exponential_ fill_ fill_diagonal_ float_power_ gcd_ ge_ geometric_ greater_ greater_equal_ gt_ lcm_ le_
    less_ less_equal_ log_normal_ logical_and_ logical_not_ logical_or_ logical_xor_ lt_ map2_ map_ ne_ normal_ not_equal_ random_
    uniform_ zero_""".split()
)

INPLACE = WITH_TWIN | BY_CLONE

FUNCTION_TWINS = frozenset(
    """abs_ acos_ acosh_ addmv_ alpha_dropout_ arccos_ arccosh_ arcsin_ arcsinh_ arctan_ arctanh_ as_strided_ asin_ asinh_
    atan_ atanh_ ceil_ celu_ clamp_ clamp_max_ clamp_min_ clip_ conj_physical_ cos_ cosh_ deg2rad_ detach_ dropout_ elu_
    erf_ erfc_ exp2_ exp_ expm1_ feature_alpha_dropout_ feature_dropout_ fix_ floor_ frac_ hardtanh_ i0_ index_put_
    ldexp_ leaky_relu_ log10_ log1p_ log2_ log_ logit_ nan_to_num_ neg_ negative_ rad2deg_ reciprocal_ relu_ round_
    rrelu_ rsqrt_ selu_ sigmoid_ sin_ sinc_ sinh_ sqrt_ square_ tan_ tanh_ threshold_ trunc_ xlogy_""".split()
)
FUNCTION_CLONES = frozenset("embedding_renorm_ fill_ gcd_ lcm_ zero_".split())

INITS = frozenset(
    """constant_ dirac_ eye_ kaiming_normal_ kaiming_uniform_ normal_ ones_ orthogonal_ sparse_ trunc_normal_ uniform_
    xavier_normal_ xavier_uniform_ zeros_""".split()
)

FLAG_PLACES = {
    "alpha_dropout": 3, "celu": 2, "dropout": 3, "dropout1d": 3, "dropout2d": 3, "dropout3d": 3, "elu": 2,
    "feature_alpha_dropout": 3, "hardsigmoid": 1, "hardswish": 1, "hardtanh": 3, "leaky_relu": 2, "mish": 1, "relu": 1,
    "relu6": 1, "rrelu": 4, "selu": 1, "silu": 1, "threshold": 3,
    "AlphaDropout": 1, "CELU": 1, "Dropout": 1, "Dropout1d": 1, "Dropout2d": 1, "Dropout3d": 1, "ELU": 1,
    "FeatureAlphaDropout": 1, "Hardsigmoid": 0, "Hardswish": 0, "Hardtanh": 2, "LeakyReLU": 1, "Mish": 0, "RReLU": 2,
    "ReLU": 0, "ReLU6": 0, "SELU": 0, "SiLU": 0, "Threshold": 2,
}  # fmt: skip
"""The functions of `nn.functional` and the layers with a flag, and its place among the arguments."""

FACTORIES = frozenset("arange empty eye full linspace logspace ones rand randint randn range zeros".split())
"""They take type and device from `out=`, and have their own without it."""

OWN_TYPE = frozenset(
    """all any argmax argmin argsort bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor
    bucketize eq gcd ge greater greater_equal gt isin isneginf isposinf lcm le less less_equal logical_and logical_not logical_or logical_xor lt matrix_rank multinomial ne
    nonzero nonzero_static not_equal randperm searchsorted signbit""".split()
)
"""Their result has a type of its own, which `out=` may not have had."""

_MEMORY = "it changes what memory the tensor stands on, and the elements it gains hold nothing that could be computed"
_NO_VALUE = "it changes no value"
_STATE = "it keeps its state there from call to call"
_MANY = "it writes tensors that others own, all of them at once"
WITHOUT_NEW_TENSOR = {
    "Tensor.requires_grad_": _NO_VALUE,
    "Tensor.share_memory_": _NO_VALUE,
    "Tensor.resize_": _MEMORY,
    "Tensor.resize_as_": _MEMORY,
    "Tensor.resize_as_sparse_": _MEMORY,
    "Tensor.sparse_resize_": _MEMORY,
    "Tensor.sparse_resize_and_clear_": _MEMORY,
    "Tensor.set_": "it makes the tensor stand on the memory of another one, which can be used instead",
    "torch.resize_as_": _MEMORY,
    "torch.resize_as_sparse_": _MEMORY,
    "torch.batch_norm": _STATE,
    "torch.native_batch_norm": _STATE,
    "torch.instance_norm": _STATE,
    "torch.fused_moving_avg_obs_fake_quant": _STATE,
    "nn.functional.batch_norm": _STATE,
    "nn.functional.instance_norm": _STATE,
    "nn.functional.embedding": "with max_norm it shortens the rows that it reads, for good",
    "nn.Embedding": "with max_norm it shortens the rows that it reads, for good",
    "nn.BatchNorm1d": _STATE,
    "nn.BatchNorm2d": _STATE,
    "nn.BatchNorm3d": _STATE,
    "nn.InstanceNorm1d": _STATE,
    "nn.InstanceNorm2d": _STATE,
    "nn.InstanceNorm3d": _STATE,
    "nn.LazyBatchNorm1d": _STATE,
    "nn.LazyBatchNorm2d": _STATE,
    "nn.LazyBatchNorm3d": _STATE,
    "nn.LazyInstanceNorm1d": _STATE,
    "nn.LazyInstanceNorm2d": _STATE,
    "nn.LazyInstanceNorm3d": _STATE,
    "nn.utils.clip_grad_norm_": _MANY,
    "nn.utils.clip_grad_value_": _MANY,
    "nn.utils.clip_grads_with_norm_": _MANY,
    "nn.utils.vector_to_parameters": _MANY,
    "nn.utils.rnn.unpad_sequence": "it turns the dimensions of what it is given around and changes no value",
    "optim.": _MANY,
}
"""Callables that write a tensor, or are named as if they did, and have no out-of-place form; with a dot at the end, all
of a namespace."""
