"""The name that torch gives to a recorded operation, where it is the same in every call of the operator."""

from __future__ import annotations

import ast

from gradsight.interp.tensors.shapes import RESHAPES_IN_PLACE
from gradsight.model.tensors import Node

# Operators that are recorded under their own name: `log_softmax` and `nn.LogSoftmax` as LogSoftmaxBackward0.
OWN = """
Abs Acos Acosh Add Addbmm Addcdiv Addcmul Addmm Addmv Addr Amax Amin Aminmax Angle AsStrided AsStridedScatter Asin Asinh
Atan Atan2 Atanh AvgPool2D AvgPool3D Baddbmm BinaryCrossEntropy BinaryCrossEntropyWithLogits BlockDiag Bmm Cat Cdist Ceil
Celu CholeskyInverse CholeskySolve Clamp ClampMax ClampMin Clone Complex ConstantPadNd Copysign Cos Cosh Cummax Cummin
Cumprod Cumsum Deg2Rad DiagEmbed Diagonal DiagonalScatter Digamma Dist Div Dot Elu Embedding Erf Erfc Erfinv Exp Exp2
Expand Expm1 Fill Flip Floor Fmax Fmin Fmod Frac Gather Gelu Glu Hardshrink Hardsigmoid Hardswish Hardtanh HuberLoss Hypot
I0 IndexAdd IndexCopy IndexFill IndexReduce IndexSelect Kthvalue Ldexp LeakyRelu Lerp Lgamma Log Log10 Log1P Log2
LogSigmoid LogSoftmax Logaddexp Logaddexp2 Logcumsumexp Logit Logsumexp MaskedFill MaskedScatter MaskedSelect Maximum Mean
Median Minimum Mish Mm Mode MseLoss Mul Mv Mvlgamma NanToNum Nanmedian Nansum Neg Permute PixelShuffle PixelUnshuffle Polar
Polygamma Pow Rad2Deg Reciprocal Relu Remainder Renorm Repeat Roll Rot90 Round Rsqrt Rsub Scatter ScatterAdd
ScatterReduce Select SelectScatter Sgn Sigmoid Sign Silu Sin Sinc Sinh Slice SliceScatter SoftMarginLoss Softmax Softplus
Softshrink Sort SplitWithSizes Sqrt Squeeze Stack Std StdMean Sub Sum Take Tan Tanh Threshold Topk Trace Transpose
Tril Triu Trunc Unbind Unsqueeze Var VarMean Vdot View Where Xlogy Zero
"""
# Operators that are recorded under the name of another one.
OTHER = {
    "BCELoss": "BinaryCrossEntropy",
    "BCEWithLogitsLoss": "BinaryCrossEntropyWithLogits",
    "GroupNorm": "NativeGroupNorm",
    "LayerNorm": "NativeLayerNorm",
    "MaxPool2d": "MaxPool2DWithIndices",
    "MaxPool3d": "MaxPool3DWithIndices",
    "PReLU": "PreluKernel",
    "ReLU6": "Hardtanh",
    "SELU": "Elu",
    "column_stack": "Cat",
    "expand_as": "Expand",
    "fliplr": "Flip",
    "flipud": "Flip",
    "group_norm": "NativeGroupNorm",
    "hstack": "Cat",
    "layer_norm": "NativeLayerNorm",
    "max_pool2d": "MaxPool2DWithIndices",
    "max_pool3d": "MaxPool3DWithIndices",
    "normalize": "Div",
    "prelu": "PreluKernel",
    "relu6": "Hardtanh",
    "selu": "Elu",
    "square": "Pow",
    "take_along_dim": "Gather",
    "tile": "Repeat",
    "view_as": "View",
    "vstack": "Cat",
}
# Operators that write into their own result before they hand it out, so that its version does not begin at 0.
WRITTEN_INSIDE = frozenset(
    """
    CircularPad1d CircularPad2d CircularPad3d GRU GRUCell LSTM LSTMCell Linear LinearCrossEntropyLoss MarginRankingLoss
    MultiheadAttention RNN RNNCell Transformer TransformerDecoder TransformerDecoderLayer TransformerEncoder
    TransformerEncoderLayer alpha_dropout diff feature_alpha_dropout gaussian_nll_loss linear linear_cross_entropy
    margin_ranking_loss matmul matrix_power nanquantile one_hot pad poisson_nll_loss quantile stft
    """.split()
)
# They turn or fold a tensor without writing to its memory: a view that they change is recorded under their own name.
_BY_OPERATOR = {name.lower(): name for name in OWN.split()}
_NOT_THEIR_OWN = {"T", "H", "mT", "mH"}


def grad_fn_name(node: Node, is_view: bool = False) -> str:
    """`Exp` for `exp`; empty where it depends on shapes or values.  An in-place write to a view is recorded in its base."""
    op = node.op
    if op in ("AsStrided", "CopySlices"):
        return op
    if op.endswith("_"):
        if is_view and op not in RESHAPES_IN_PLACE:
            return "AsStrided"
        op = op[:-1]
    if op in ("sub", "div") and isinstance(node.site.node, ast.BinOp):
        return _arithmetic(op, node, node.site.node)
    return name_of(op)


def name_of(op: str) -> str:
    """The name of an operator's recorded operation."""
    if op in OTHER:
        return OTHER[op]
    return "" if op in _NOT_THEIR_OWN else _BY_OPERATOR.get(op.replace("_", "").lower(), "")


def _arithmetic(op: str, node: Node, syntax: ast.BinOp) -> str:
    """`1 - x` is recorded as Rsub and `1 / x` as Mul; with two tensors, or a number on the right, the name is its own."""
    if len(node.operands) == 2 or isinstance(syntax.right, ast.Constant):
        return name_of(op)
    return {"sub": "Rsub", "div": "Mul"}[op] if isinstance(syntax.left, ast.Constant) else ""
