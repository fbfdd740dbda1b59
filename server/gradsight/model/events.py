"""Facts that the machine reports and the rules judge: past events, without judgement.

*Place* is anywhere a text range can be asked for; it is asked only when a finding is made, so that an event stays right
when the code above it moves.  *Step* is one place of the trail, with its role.
*Assumption* is empty when everything on the path is known; otherwise it is the one sentence that must hold.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from gradsight.model.finding import Role, Severity
from gradsight.model.source import Span


class Place(Protocol):
    """A place in some source text."""

    @property
    def path(self) -> str: ...

    def span(self) -> Span: ...


@dataclass(frozen=True, slots=True)
class Step:
    """One place of the trail and what happened there."""

    role: Role
    place: Place
    message: str


@dataclass(frozen=True, slots=True, eq=False)
class Event:
    """Something that happened on one path.

    `kind` is the fact's name (see `KINDS`); `names` are the user's variables and torch's operators to speak of.
    `alternatives` counts the undecided branches, beyond one, that the path had to take: the more, the less it is worth.
    `context` is `script` (the module's own run), `forward` (an nn.Module method), `loss`, `function`, or `evidence` where
    the program treats its unknown values as what the assumption says they are.
    """

    kind: str
    place: Place
    steps: tuple[Step, ...] = ()
    names: Mapping[str, str | int | bool] = field(default_factory=dict)
    assumption: str = ""
    alternatives: int = 0
    context: str = "script"


PARAMETERS_OF = "'s parameters"
"""Ends the label of the one parameter that stands for those of a module that is not known."""
KINDS: dict[str, str] = {
    "saved-overwritten": "a tensor saved for backward was written, and a backward needs it",
    "saved-changed-silently": "a tensor saved for backward was changed without a version bump",
    "leaf-written": "a leaf that requires grad was written with grad mode on",
    "numpy-refused": "NumPy was to have the memory of a tensor that requires grad",
    "shared-view-written": "one of several views, or overlapping memory, was written",
    "graph-written-without-grad": "a tensor of the graph was written under no_grad and then used",
    "alias-read-after-write": "a value was read under one name after a write under another",
    "written-in-transform": "a value that a functional transform follows was written into a tensor that it does not follow",
    "out-refused": "`out=` was used while an argument requires grad",
    "inplace-recorded": "an in-place operation was recorded and nothing was lost",
    "path-cut": "a parameter that should learn got no gradient because the path was cut",
    "term-cut": "a term of the loss carries no graph although it was computed from parameters",
    "gradient-cancels": "two terms of a sum hand a tensor gradients that cancel",
    "gradient-is-nan": "a result was masked where it is NaN, and its gradient is NaN there all the same",
    "gradient-even": "a softmax over one element gave the same whatever it was given",
    "backward-without-graph": "backward was called on a value without a graph",
    "result-ignored": "the result of a pure tensor method was not used",
    "grad-mode-left-off": "grad mode was switched off and not restored",
    "checkpoint-without-grad": "a reentrant checkpoint got no input that requires grad",
    "target-not-constant": "a regression target carries a gradient of the same network",
    "grad-of-non-leaf": "`.grad` of a non-leaf was read",
    "grad-alias-overwritten": "a kept `.grad` was overwritten and then read",
    "non-leaf-optimized": "an optimizer got a non-leaf",
    "grad-is-none": "`.grad` was used while it is None",
    "grad-read-in-race": "`.grad` was read while another thread may run backward",
    "non-leaf-copied": "deepcopy of a non-leaf",
    "requires-grad-refused": "a flag or a hook was asked of a tensor that cannot have it",
    "optimizer-refused": "an optimizer was to be made without parameters, or with a tensor in two groups",
    "function-refused": "the object of a custom Function was called, or a backward met one that has none",
    "checkpoint-refused": "a backward for some inputs goes through a reentrant checkpoint",
    "write-lost": "a copy that nothing reads was written in place",
    "result-lost": "a result with a graph was given a name that the next iteration binds again, and nothing reads it",
    "term-unused": "a scalar with a graph was given a name that nothing reads, and a step moved what it was computed from",
    "statistics-left": "parameters follow those of another network, and the statistics of their norm layers do not",
    "gradient-refused": "a gradient was given that does not fit its tensor",
    "non-scalar-backward": "backward of a non-scalar without a gradient argument",
    "backward-twice": "a second backward through a freed graph",
    "state-carried": "a graph was carried into the next iteration and freed there",
    "graph-kept-alive": "a graph was kept alive by a running total or a list",
    "penalty-without-graph": "a gradient was used in a loss without create_graph",
    "grad-of-unused": "autograd.grad of a tensor that is not in the graph",
    "func-ignores-parameters": "a functional transform over a closure that ignores its parameters",
    "graph-grows": "retain_graph in a loop whose graph grows",
    "gradients-never-cleared": "gradients accumulate over optimizer steps",
    "gradients-left-by-step": "a method steps once and leaves its gradients to the next call",
    "gradients-stepped-again": "a step applied gradients that the next one applies again",
    "cleared-before-step": "gradients were cleared between backward and step",
    "step-without-backward": "a step that no backward precedes",
    "nothing-returned": "a function that a library calls for a loss returns nothing",
    "iterator-used-up": "an iterator that was used up was read again",
    "parameters-replaced": "an optimizer holds parameters that the model no longer has",
    "loss-broadcast": "a loss was given shapes that torch broadcasts to a matrix of pairs",
    "tie-broken": "one of two places that share a parameter was given another one",
    "parameters-not-optimized": "a backward reaches parameters that no optimizer holds",
    "optimizer-never-stepped": "a backward reaches the parameters of an optimizer that is never stepped",
    "freezes-nothing": "a loop over the named parts of a model was to freeze some, and none has such a name",
    "freeze-undone": "frozen parameters were unfrozen before anything was computed with them",
    "layer-unused": "an optimizer holds parameters that nothing is computed with",
    "eval-left-on": "training goes on in eval mode",
    "scheduler-of-another": "a schedule goes on for an optimizer that another one has replaced",
    "scheduler-first": "a scheduler stepped before its optimizer",
    "scaled-gradients-used": "gradients were clipped or read before unscale_",
    "scaler-misused": "scaled gradients were applied, or a scaler stepped twice without an update",
    "clip-misplaced": "gradients were clipped before all of them were computed, or after the step",
    "gradients-applied-twice": "two steps applied the gradients of one backward to the same parameters",
    "update-lost": "a new tensor was bound to the name of a loop, and the parameter stayed as it was",
    "model-not-copied": "a model got a second name and is used as if it were a copy",
    "foreign-gradients": "gradients left by another loss reach a step",
    "frozen-still-moves": "a frozen parameter is still moved by its optimizer",
    "not-registered": "modules or parameters in a plain container",
    "attribute-typo": "an attribute that torch does not know was set",
    "before-super-init": "a module was assigned before super().__init__()",
    "parameter-refused": "a plain tensor was assigned to the name of a parameter",
    "layer-made-in-forward": "a layer with parameters was created in forward",
    "module-repeated": "one module with parameters stands in several places of a row",
    "forward-called": "the forward of a module was called by its name",
    "softmax-before-loss": "softmax before a loss that applies it",
    "gradient-count": "a custom backward returns the wrong number of gradients",
    "tensor-on-ctx": "a tensor was kept on ctx instead of save_for_backward",
    "dirty-not-marked": "a custom forward modified its input without mark_dirty",
    "saved-written-in-backward": "a custom backward wrote a tensor that forward saved for it",
    "differentiated-twice": "the backward of a custom Function was differentiated, and cannot be",
    "optimizer-made-again": "a loop made an optimizer in every iteration and stepped it once",
    "gradient-ignored": "a custom backward returned gradients that do not depend on the one it got",
    "backward-of-module": "a module has a backward of its own, which autograd does not call",
    "gradient-edited": "a backward or hook returned nothing or edited the gradient in place",
}

SEVERITY_ORDER: dict[Severity, int] = {"error": 0, "warning": 1, "info": 2, "hint": 3}
