"""torch's own layers: their constructor options and the tensors they hold."""

from __future__ import annotations

from typing import Any

from gradsight.model.values import Unknown

CONTAINERS = {"nn.Sequential", "nn.ModuleList", "nn.ModuleDict", "nn.ParameterList", "nn.ParameterDict"}

_CONV = (
    "in_channels",
    "out_channels",
    "kernel_size",
    "stride",
    "padding",
    "dilation",
    "groups",
    "bias",
    "padding_mode",
)
_CONV_T = (
    "in_channels",
    "out_channels",
    "kernel_size",
    "stride",
    "padding",
    "output_padding",
    "groups",
    "bias",
    "dilation",
)
_BATCH = ("num_features", "eps", "momentum", "affine", "track_running_stats")
_LOSS = ("size_average", "reduce", "reduction")
_RNN = ("input_size", "hidden_size", "num_layers", "bias", "batch_first", "dropout", "bidirectional")

SIGNATURES: dict[str, tuple[str, ...]] = {
    "nn.Linear": ("in_features", "out_features", "bias"),
    "nn.LazyLinear": ("out_features", "bias"),
    "nn.Bilinear": ("in1_features", "in2_features", "out_features", "bias"),
    **{f"nn.Conv{n}d": _CONV for n in (1, 2, 3)},
    **{f"nn.ConvTranspose{n}d": _CONV_T for n in (1, 2, 3)},
    **{f"nn.BatchNorm{n}d": _BATCH for n in (1, 2, 3)},
    "nn.SyncBatchNorm": _BATCH,
    **{f"nn.InstanceNorm{n}d": _BATCH for n in (1, 2, 3)},
    "nn.LayerNorm": ("normalized_shape", "eps", "elementwise_affine", "bias"),
    "nn.RMSNorm": ("normalized_shape", "eps", "elementwise_affine"),
    "nn.GroupNorm": ("num_groups", "num_channels", "eps", "affine"),
    "nn.Embedding": ("num_embeddings", "embedding_dim", "padding_idx"),
    "nn.EmbeddingBag": ("num_embeddings", "embedding_dim"),
    "nn.RNN": _RNN, "nn.LSTM": _RNN, "nn.GRU": _RNN,
    "nn.RNNCell": ("input_size", "hidden_size", "bias", "nonlinearity"),
    "nn.LSTMCell": ("input_size", "hidden_size", "bias"),
    "nn.GRUCell": ("input_size", "hidden_size", "bias"),
    "nn.MultiheadAttention": ("embed_dim", "num_heads", "dropout", "bias"),
    "nn.TransformerEncoderLayer": ("d_model", "nhead", "dim_feedforward", "dropout", "activation"),
    "nn.TransformerDecoderLayer": ("d_model", "nhead", "dim_feedforward", "dropout", "activation"),
    "nn.TransformerEncoder": ("encoder_layer", "num_layers", "norm"),
    "nn.TransformerDecoder": ("decoder_layer", "num_layers", "norm"),
    "nn.Transformer": ("d_model", "nhead"),
    "nn.PReLU": ("num_parameters", "init"),
    **{f"nn.{name}": ("inplace",) for name in ("ReLU", "ReLU6", "SiLU", "SELU", "Mish", "Hardswish", "Hardsigmoid")},
    "nn.LeakyReLU": ("negative_slope", "inplace"), "nn.ELU": ("alpha", "inplace"), "nn.CELU": ("alpha", "inplace"),
    "nn.RReLU": ("lower", "upper", "inplace"), "nn.Hardtanh": ("min_val", "max_val", "inplace"),
    "nn.Threshold": ("threshold", "value", "inplace"),
    **{f"nn.{name}": ("p", "inplace") for name in ("Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout", "FeatureAlphaDropout")},
    "nn.Softmax": ("dim",), "nn.LogSoftmax": ("dim",), "nn.Softmin": ("dim",), "nn.GELU": ("approximate",),
    "nn.Flatten": ("start_dim", "end_dim"), "nn.Unflatten": ("dim", "unflattened_size"),
    **{f"nn.{name}": _LOSS for name in ("MSELoss", "L1Loss")},
    "nn.SmoothL1Loss": (*_LOSS, "beta"), "nn.HuberLoss": ("reduction", "delta"),
    "nn.CrossEntropyLoss": ("weight", "size_average", "ignore_index", "reduce", "reduction", "label_smoothing"),
    "nn.NLLLoss": ("weight", "size_average", "ignore_index", "reduce", "reduction"),
    "nn.BCELoss": ("weight", *_LOSS), "nn.BCEWithLogitsLoss": ("weight", *_LOSS, "pos_weight"),
    "nn.KLDivLoss": (*_LOSS, "log_target"), "nn.CosineEmbeddingLoss": ("margin", *_LOSS),
    "nn.MarginRankingLoss": ("margin", *_LOSS), "nn.TripletMarginLoss": ("margin", "p"), "nn.CTCLoss": ("blank", "reduction"),
    "nn.MaxPool1d": ("kernel_size", "stride"), "nn.MaxPool2d": ("kernel_size", "stride"), "nn.MaxPool3d": ("kernel_size", "stride"),
    "nn.AvgPool2d": ("kernel_size", "stride"), "nn.AdaptiveAvgPool2d": ("output_size",), "nn.Upsample": ("size", "scale_factor", "mode"),
}  # fmt: skip

DEFAULTS: dict[str, Any] = {
    "bias": True, "affine": True, "track_running_stats": True, "elementwise_affine": True, "inplace": False,
    "reduction": "mean", "num_layers": 1, "bidirectional": False, "p": 0.5, "momentum": 0.1, "dropout": 0.0,
}  # fmt: skip


def constructor_options(name: str, args: list[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Constructor arguments by name, defaults filled in where they decide what the layer does."""
    signature = SIGNATURES.get(name, ())
    options = {key: DEFAULTS[key] for key in signature if key in DEFAULTS}
    if name.startswith("nn.InstanceNorm"):
        options.update(affine=False, track_running_stats=False)
    if name == "nn.Dropout" or name.startswith(("nn.Dropout", "nn.AlphaDropout", "nn.FeatureAlpha")):
        options["p"] = 0.5
    if name == "nn.TransformerEncoderLayer" or name == "nn.TransformerDecoderLayer":
        options["dropout"] = 0.1
    for key, value in zip(signature, args):
        options[key] = value
    options.update(kwargs)
    return options


def make_tensors(name: str, options: dict[str, Any]) -> dict[str, tuple[str, Any]]:
    """Names of the layer's own tensors, whether parameter or buffer, and their shapes where known."""

    def size(key: str) -> Any:
        value = options.get(key)
        return value if isinstance(value, int) else None

    def wanted(key: str) -> bool:
        value = options.get(key, True)
        return value is not False and value is not None

    parameter, buffer = "parameter", "buffer"
    found: dict[str, tuple[str, Any]]
    if name == "nn.Linear":
        found = {"weight": (parameter, (size("out_features"), size("in_features")))}
        if wanted("bias"):
            found["bias"] = (parameter, (size("out_features"),))
        return found
    if name in ("nn.Bilinear", "nn.LazyLinear") or name.startswith(("nn.Conv", "nn.LazyConv")):
        found = {"weight": (parameter, None)}
        if wanted("bias"):
            found["bias"] = (parameter, None)
        return found
    if name.startswith(("nn.BatchNorm", "nn.InstanceNorm", "nn.SyncBatchNorm")):
        found = {}
        if wanted("affine"):
            found = {
                "weight": (parameter, (size("num_features"),)),
                "bias": (parameter, (size("num_features"),)),
            }
        if wanted("track_running_stats"):
            found.update(
                running_mean=(buffer, None), running_var=(buffer, None), num_batches_tracked=(buffer, ())
            )
        return found
    if name in ("nn.LayerNorm", "nn.GroupNorm", "nn.RMSNorm"):
        if not wanted("elementwise_affine" if name != "nn.GroupNorm" else "affine"):
            return {}
        found = {"weight": (parameter, None)}
        if name != "nn.RMSNorm":
            found["bias"] = (parameter, None)
        return found
    if name in ("nn.Embedding", "nn.EmbeddingBag"):
        return {"weight": (parameter, (size("num_embeddings"), size("embedding_dim")))}
    if name in ("nn.RNN", "nn.LSTM", "nn.GRU"):
        found = {}
        layers = size("num_layers") or 1
        for layer in range(min(layers, 8)):
            for suffix in ("", "_reverse") if options.get("bidirectional") is True else ("",):
                for key in ("weight_ih", "weight_hh", *(("bias_ih", "bias_hh") if wanted("bias") else ())):
                    found[f"{key}_l{layer}{suffix}"] = (parameter, None)
        return found
    if name in ("nn.RNNCell", "nn.LSTMCell", "nn.GRUCell"):
        keys = ("weight_ih", "weight_hh", *(("bias_ih", "bias_hh") if wanted("bias") else ()))
        return dict.fromkeys(keys, (parameter, None))
    if name == "nn.MultiheadAttention":
        found = {"in_proj_weight": (parameter, None), "out_proj.weight": (parameter, None)}
        if wanted("bias"):
            found.update({"in_proj_bias": (parameter, None), "out_proj.bias": (parameter, None)})
        return found
    if name == "nn.PReLU":
        return {"weight": (parameter, None)}
    if name.startswith("nn.Transformer"):
        options["unknown"] = True
        return {"weight": (parameter, None)}
    return {}


def has_parameters(name: str, options: dict[str, Any]) -> bool:
    """Whether such a layer learns."""
    return any(kind == "parameter" for kind, _ in make_tensors(name, dict(options)).values())


__all__ = ["CONTAINERS", "Unknown", "constructor_options", "has_parameters", "make_tensors"]
