"""The words in which operator facts are told.

*Argument* is a parameter name as the callable's signature has it; a method's receiver is `self`, the first argument of
a `torch.` function is usually `input`.  For a module (`nn.Linear`), arguments of `forward` keep their names and the
module's own tensors are written `self.weight`, `self.running_mean`; recurrent and transformer modules speak of their
parameters together, as `self.parameters`.
*Result* is `result` for a single tensor and `result.0`, `result.1`, ... for a tuple.
A *case* holds under conditions on the arguments (their kind or value); the first case that fits a call is the fact.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

When = Literal["always", "sometimes", "never"]
Origin = Literal["measured", "formula", "schema", "hand"]


@dataclass(frozen=True, slots=True)
class Condition:
    """A test on one argument.

    kind `number`/`tensor`/`none`/`sequence`/`text`: what the argument is (an omitted one is `none` unless its default says
    otherwise); kind `equals`: its value, as Python writes it (`True`, `'none'`, `0.0`); kind `not`: any other value.
    Numbers are compared by value and written as floats.
    kind `basic`/`indices`: an index made of integers, slices, `...` and None only / one that gathers (a tensor, list or
    boolean anywhere in it; a lone index tensor is kind `tensor`).
    kind `integral`: a tensor of integers or booleans.
    kind `rank`: the tensor's number of dimensions (value `0`, `1`, `<3`, `>2`, ...); such cases are the unusual ones: a rank
    that is not known may be taken as not fitting, as long as what the case does not keep is not taken as kept.
    For a module the argument may also be a constructor option or `training`.
    """

    argument: str
    kind: Literal[
        "number",
        "tensor",
        "none",
        "sequence",
        "text",
        "equals",
        "not",
        "basic",
        "indices",
        "integral",
        "rank",
    ]
    value: str = ""


@dataclass(frozen=True, slots=True)
class Save:
    """Backward keeps `what` (an argument or a result); of a parameter that takes several tensors, at least one.

    `needs`: kept only if one of these arguments requires grad; empty = as soon as the result requires grad.  For a
    parameter that takes several tensors, `operands:others` = an element is kept if another element requires grad,
    `operands:itself` = if the element itself does.
    `when`: `sometimes` = depends on shape or value in a way no condition tells.
    `contiguous`: only a contiguous tensor is kept itself; of any other torch keeps a copy.
    `noticed`: False where backward does not see a later write and silently gives a wrong gradient.
    """

    what: str
    needs: tuple[str, ...] = ()
    when: When = "always"
    contiguous: bool = False
    noticed: bool = True


@dataclass(frozen=True, slots=True)
class Output:
    """One tensor that comes out.

    `gradient`: `flows`, `none` (no grad_fn), `zero` (flows but is identically zero) or `undefined` (the result requires
    grad, but torch has no derivative: backward raises).
    `flows`: `sometimes` = not in every call, in a way no condition tells (`to` an integer dtype).
    `needs`: gradient flows only from these arguments (empty = from every floating argument).
    `zero_for`: the result requires grad because of these arguments too, but their gradient is identically zero.
    `undefined_for`: torch has no derivative for these arguments: backward raises if one of them requires grad.
    `alias`: the argument whose storage it shares, if any; `aliased`: always or sometimes.
    `same`: the result *is* that argument object: always / sometimes / never.
    `shares_version`: a write through the alias is noticed by autograd (`detach` yes, `.data` no).
    `one_of_many`: one of several views made at once (in-place writes are refused under grad mode).
    `overlapping`: several elements share memory (in-place writes are refused).
    `dtype`: `same` (as the inputs promote), `bool`, `int`, `float`, `complex`, `any`.
    `dtype_name`: the exact dtype (`float64`) where it does not follow from the arguments.
    `shape`: `scalar`, `like:ARG`, `broadcast`, `reduce` (by dim/keepdim arguments), or empty when not told.
    `leaf`: a fresh leaf made by a factory.
    """

    gradient: Literal["flows", "none", "zero", "undefined"] = "flows"
    needs: tuple[str, ...] = ()
    alias: str = ""
    aliased: When = "never"
    same: When = "never"
    shares_version: bool = True
    one_of_many: bool = False
    overlapping: bool = False
    dtype: Literal["same", "bool", "int", "float", "complex", "any"] = "same"
    shape: str = ""
    leaf: bool = False
    zero_for: tuple[str, ...] = ()
    dtype_name: str = ""
    undefined_for: tuple[str, ...] = ()
    flows: When = "always"


@dataclass(frozen=True, slots=True)
class Case:
    """What the operator does when all conditions of `when` hold."""

    when: tuple[Condition, ...] = ()
    saves: tuple[Save, ...] = ()
    outputs: tuple[Output, ...] = ()
    writes: tuple[str, ...] = ()
    bumps_version: bool = True
    sequence: bool = False
    """The result is a tuple or list of unknown length, each like `outputs[0]`."""
    holds_saved: When = "always"
    """Whether the node keeps any saved tensor at all, so that a second backward is refused."""
    holds_needs: tuple[str, ...] = ()
    """`holds_saved` applies only if one of these arguments requires grad; empty = any."""
    may_write: tuple[str, ...] = ()
    """Arguments that are written in some calls, in a way no condition tells."""
    quiet: tuple[str, ...] = ()
    """Those of the written arguments whose version counter does not move: autograd does not notice."""
    refuses: tuple[str, ...] = ()
    """Arguments that must not require grad: the call itself raises."""
    no_grad: bool = False
    """The write happens under `no_grad`: a leaf that requires grad is not refused."""
    returns: Literal["tensor", "tuple", "sequence", "number", "array", "object", "none"] = "tensor"
    """What comes out; `tuple` has one entry of `outputs` per tensor, `sequence` one for all.

    `array` is a NumPy array, told as an output; for `Tensor.__setitem__`, which returns nothing, the output is the tensor
    afterwards.
    """
    structure: str = ""
    """How a nested tuple is built, by index into `outputs`: `0,(1,2)`."""


@dataclass(frozen=True, slots=True)
class OpFact:
    """Everything known about one callable.

    `parameters` are in positional order; a name with a star (`*size`) collects the remaining positional arguments (or takes
    one list), and those in `keyword_only` come last.  For a module they are the parameters of `forward`, and `options` those
    of the constructor.  `by_tensor`: a tensor given at the place of the first name is the argument of the second name
    (`torch.max(x, y)`).  `synonyms`: keywords that mean another parameter.
    """

    name: str
    parameters: tuple[str, ...] = ()
    cases: tuple[Case, ...] = ()
    origin: Origin = "measured"
    defaults: dict[str, str] = field(default_factory=dict, hash=False)
    note: str = ""
    keyword_only: tuple[str, ...] = ()
    by_tensor: dict[str, str] = field(default_factory=dict, hash=False)
    synonyms: dict[str, str] = field(default_factory=dict, hash=False)
    options: tuple[str, ...] = ()
    option_defaults: dict[str, str] = field(default_factory=dict, hash=False)
    names_all_parameters: bool = field(init=False, repr=False, compare=False)
    """Whether it speaks of the layer's parameters as a whole."""

    def __post_init__(self) -> None:
        saved = (save.what for case in self.cases for save in case.saves)
        object.__setattr__(self, "names_all_parameters", "self.parameters" in saved)


NOT_TENSORS = frozenset(
    "dim dims dim0 dim1 dim2 start_dim end_dim keepdim dtype device layout memory_format requires_grad size stride offset diagonal "
    "kernel_size dilation groups output_size output_padding ceil_mode align_corners mode padding_mode padding_idx pad "
    "split_size split_sizes sections chunks normalized_shape reduction ignore_index unbiased rounding_mode largest sorted "
    "descending training is_causal non_blocking num_layers shape sizes repeats shifts k length num_classes num_samples "
    "correction stable sparse_grad scale_factor padding upscale_factor downscale_factor n_fft hop_length win_length center".split()
)
"""Parameters at which no operator of torch takes a tensor but of integers: what is given there brings no graph, whatever it is."""


OF_WHOLE_NUMBERS = frozenset({"index", "mask", "condition"})
"""Parameters at which operators of torch take tensors of whole numbers or of truth values alone."""


OF_CLASSES = frozenset(
    "nll_loss NLLLoss NLLLoss2d cross_entropy CrossEntropyLoss multi_margin_loss MultiMarginLoss multilabel_margin_loss "
    "MultiLabelMarginLoss ctc_loss CTCLoss".split()
)
"""Losses whose target names classes; that of `cross_entropy` may be probabilities, too."""


def takes_no_graph(op: str, parameter: str) -> bool:
    """Whether what is given at a parameter brings no graph; `max(a, b)` and `min(a, b)` take a tensor at the place of `dim`."""
    if parameter in OF_WHOLE_NUMBERS:
        return True
    return parameter in NOT_TENSORS and not (parameter == "dim" and op in ("max", "min"))


def names_classes(op: str, parameter: str) -> bool:
    """Whether the target of a loss is given at a parameter: nobody differentiates by it, unless it is known to have a graph."""
    return parameter in ("target", "targets") and op.rpartition(".")[2] in OF_CLASSES


def output_name(what: str) -> str:
    """An output in words: `result` is the only one, `result.1` the second."""
    number = what.partition("result.")[2]
    if not number:
        return "output"
    return f"{_ORDINALS[int(number)]} output" if int(number) < len(_ORDINALS) else f"output {int(number) + 1}"


_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth")
