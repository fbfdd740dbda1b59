"""The in-place methods of a tensor and how each is written out of place.

*Twin*: the method without the underscore, which gives the same value and type in a new tensor.  What has no twin, or a
twin of another type (`x.gt_(0)` stays a float, `x.gt(0)` is a bool), is run on a clone.
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
    arctan2_ arctan_ arctanh_ asin_ asinh_ atan2_ atan_ atanh_ baddbmm_ ceil_ clamp_ clamp_max_ clamp_min_ clip_
    copysign_ cos_ cosh_ cumprod_ cumsum_ deg2rad_ detach_ digamma_ div_ divide_ erf_ erfc_ erfinv_ exp2_ exp_ expm1_
    fix_ floor_ floor_divide_ fmod_ frac_ heaviside_ hypot_ i0_ igamma_ igammac_ index_add_ index_copy_ index_fill_
    index_put_ index_reduce_ ldexp_ lerp_ lgamma_ log10_ log1p_ log2_ log_ logit_ masked_fill_ masked_scatter_ mul_
    multiply_ mvlgamma_ nan_to_num_ neg_ negative_ nextafter_ polygamma_ pow_ put_ rad2deg_ reciprocal_ relu_ remainder_
    renorm_ round_ rsqrt_ scatter_ scatter_add_ scatter_reduce_ sgn_ sigmoid_ sign_ sin_ sinc_ sinh_ sqrt_ square_
    squeeze_ sub_ subtract_ swapaxes_ swapdims_ t_ tan_ tanh_ transpose_ tril_ triu_ true_divide_ trunc_ unsqueeze_
    xlogy_""".split()
)

BY_CLONE = frozenset(
    """bernoulli_ bitwise_and_ bitwise_left_shift_ bitwise_not_ bitwise_or_ bitwise_right_shift_ bitwise_xor_ cauchy_
    copy_ eq_ exponential_ fill_ fill_diagonal_ float_power_ gcd_ ge_ geometric_ greater_ greater_equal_ gt_ lcm_ le_
    less_ less_equal_ log_normal_ logical_and_ logical_not_ logical_or_ logical_xor_ lt_ ne_ normal_ not_equal_ random_
    uniform_ zero_""".split()
)

INPLACE = WITH_TWIN | BY_CLONE

FUNCTIONS = frozenset(
    """alpha_dropout_ celu_ dropout_ elu_ feature_alpha_dropout_ feature_dropout_ hardtanh_ leaky_relu_ relu_ rrelu_ selu_
    threshold_ abs_ ceil_ clamp_ clamp_max_ clamp_min_ cos_ exp_ floor_ log_ nan_to_num_ neg_ round_ rsqrt_ sigmoid_ sin_
    sqrt_ square_ tan_ tanh_ trunc_""".split()
)
