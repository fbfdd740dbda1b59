"""Why two sources differ about an operator: each reason was found by running the operator."""

from __future__ import annotations

import re

# (source, operator, text): regular expressions; the first entry that matches gives the reason.
REASONS: tuple[tuple[str, str, str, str], ...] = (
    ("methods", r".*\.(to_dense|spmm|dsmm)|sparse\..*", "", "sparse: the walk compares strided storages only"),
    ("methods", r"torch\.(native_batch_norm|embedding_bag)", r"result\.", "saved but empty here: the walk passes over empty tensors"),
    ("formulas", r"Tensor\.__rpow__", "PowBackward2", "the scalar base is the formula's `self`, the tensor is its `exponent`"),
    ("formulas", r"Tensor\.__r(true)?div__", "MulBackward0", "runs as `self.reciprocal() * other`: the reciprocal is saved, not `self`"),
    ("formulas", r"Tensor\.(sparse_mask|values)|sparse\.(log_softmax|softmax|sum)", "", "sparse: the walk compares strided storages only"),
    ("formulas", r"sparse\.mm", "", "runs as `sparse.addmm` of zeros: the factors are that formula's `mat1` and `mat2`"),
    ("formulas", r"nn\.CTCLoss", "targets", "targets are converted to another integer type first; the converted copy is saved"),
    ("formulas", r".*\.conv[123]d", "", "with uneven padding='same' the input is padded first; the padded copy is saved"),
    ("formulas", r".*\.(group_norm|pdist)", "", "of a non-contiguous input a contiguous copy is saved"),
    ("formulas", r"nn\.functional\.scaled_dot_product_attention", "attn_mask", "a boolean mask is converted to numbers first; the converted copy is saved"),
    ("writes", r"(Tensor|torch)\.(detach_|requires_grad_)", "", "changes the tensor's place in the graph; its memory and version stay"),
    ("writes", r"torch\.(native_batch_norm|batch_norm|instance_norm)", "", "running statistics are written in training mode; the schema does not say so"),
    ("views", r"Tensor\.(ccol_indices|col_indices|crow_indices|row_indices)", "", "index tensors of a sparse tensor: integers, not its values"),
    ("views", r"Tensor\.__getitem__", "", "indexing is Python's; the schema of this name is TorchScript's, for lists"),
    ("views", r".*\.conj_physical", "", "a real tensor is returned itself"),
    ("views", r"Tensor\.data", "", "Python-level property over `detach`-like aliasing with a counter of its own"),
    ("views", r"(Tensor|torch)\.(detach_|requires_grad_)", "", "returns the tensor itself"),
    ("views", r"Tensor\.(to_dense|type_as|sum_to_size)", "", "returns the tensor itself when nothing is to change"),
    ("views", r".*\.unsafe_(chunk|split|split_with_sizes)", "", "views that are deliberately not declared, so that they may be written"),
    ("views", r"torch\.(alpha_dropout|dropout|feature_alpha_dropout|feature_dropout)", "", "outside training the input is returned itself"),
    ("views", r"torch\.(atleast_[123]d|broadcast_tensors|meshgrid|cartesian_prod|einsum)", "", "composed of views; the schema of the whole does not say so"),
    ("views", r"torch\.histogramdd", "", "given bin edges are handed back"),
    ("views", r"torch\.sparse_.*_tensor", "", "the sparse tensor holds the given parts themselves"),
)  # fmt: skip


def reason_of(source: str, name: str, text: str) -> str:
    """The reason for a difference, or empty when none is known."""
    for wanted, operator, said, reason in REASONS:
        if wanted == source and re.fullmatch(operator, name) and re.search(said, text):
            return reason
    return ""
