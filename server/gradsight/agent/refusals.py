"""What torch refuses on the spot, beside writes and backwards: the line, who made the tensor, and what to do instead.

Each explanation belongs to one sentence of torch.  `HELP` in the evidence of a fault stands for the advice of its rule.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from gradsight.agent import audit
from gradsight.agent.faults import Fault, FaultStep, Kind, step_at
from gradsight.agent.oplog import operator_label
from gradsight.agent.scene import Scene
from gradsight.agent.sites import place_of, text_of

if TYPE_CHECKING:
    from gradsight.agent.blame import Blame

HELP = "help"


def _plain(kind: Kind, sentence: str, help_text: str = "") -> Callable[[Blame, Scene], Fault | None]:
    """A refusal whose line is all that there is to say; `{}` in the sentence is the user's expression."""

    def explain(blame: Blame, scene: Scene) -> Fault | None:
        message = sentence.format(f"`{text_of(scene.place)}`")
        return blame.at_error(kind, message, scene, (), {HELP: help_text} if help_text else None)

    return explain


def _needs_graph(blame: Blame, scene: Scene) -> Fault | None:
    """A hook, or `retain_grad`, on a tensor that is not in the graph: what took it out is the cause."""
    owner = scene.local("register_hook", "self")
    if owner is None:
        owner = _owner_in(scene)
    fault = blame.lost_graph(scene, owner) if isinstance(owner, torch.Tensor) else None
    if fault is not None:
        return fault
    message = f"`{text_of(scene.place)}` listens for a gradient, and the tensor is in no graph"
    return blame.at_error("computed-without-grad", message, scene)


def _owner_in(scene: Scene) -> Any:
    """The tensor that the failing line names first, when it is a plain variable."""
    name = re.match(r"\w+", text_of(scene.place))
    for frame in reversed(scene.frames):
        if name is not None and name.group() in frame.f_locals:
            return frame.f_locals[name.group()]
    return None


def _hook_result(blame: Blame, scene: Scene) -> Fault | None:
    match = re.search(r"hook '?([\w.<>]+)'? has changed the (\w+)", scene.message)
    name, what = (match.group(1), match.group(2)) if match else ("hook", "size")
    place = _definition(name.rpartition(".")[2], scene) or scene.place
    message = f"the hook `{name}` returns a gradient of another {what}, and torch refuses it"
    steps = step_at("needed", "torch calls it in this backward", scene.stack)
    return Fault("gradient-refused", message, place, steps, "error", {"torch": scene.message})


def _definition(name: str, scene: Scene) -> Any:
    """Where the hook with this name gives its result back."""
    from gradsight.agent.custom import last_statement
    from gradsight.agent.sites import is_user_file

    for frame in reversed(scene.frames):
        for scope in (frame.f_locals, frame.f_globals):
            code = getattr(scope.get(name), "__code__", None)
            if code is not None and is_user_file(code.co_filename):
                return last_statement(code)
    return None


def _no_derivative(blame: Blame, scene: Scene) -> Fault | None:
    match = re.search(r"derivative for '?(?:aten::)?(\w+)", scene.message)
    name = operator_label(match.group(1)) if match else ""
    spelled = [f"{prefix}{name}" for prefix in ("", "special_", "linalg_", "fft_")] if name else []
    made = next((found for each in spelled if (found := blame.log.latest(each)) is not None), None)
    what = f"`{name}`" if name else "an operator of this graph"
    message = f"torch has no derivative for {what}, and this backward needs one"
    if made is None or not made.stack:
        return blame.at_error("no-derivative", message, scene)
    steps = (
        *step_at("cut", "it is called here", made.stack),
        *step_at("needed", "this backward", scene.stack),
    )
    return Fault("no-derivative", message, place_of(made.stack[0]), steps, "error", {"torch": scene.message})


def _nan_gradient(blame: Blame, scene: Scene) -> Fault | None:
    """Anomaly mode stops where a gradient is not a number: the operator has no finite derivative at these values."""
    match = re.search(r"Function '(\w+?)Backward\d*' returned nan", scene.message)
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", match.group(1)).lower() if match else ""
    made = blame.log.latest(name) if name else None
    message = f"the gradient of `{name or scene.message}` is not a number at these values"
    extra = {
        HELP: "keep its argument away from where the derivative is infinite: `clamp(min=…)`, or a small number added"
    }
    if made is None or not made.stack:
        return blame.at_error("no-derivative", message, scene, (), extra)
    steps = (
        *step_at("made", "it is called here", made.stack),
        *step_at("needed", "this backward", scene.stack),
    )
    evidence = {"torch": scene.message, **extra}
    return Fault("no-derivative", message, place_of(made.stack[0]), steps, "error", evidence)


def _once_differentiable(blame: Blame, scene: Scene) -> Fault | None:
    message = "a custom function is marked `once_differentiable`, and this asks for its second derivative"
    extra = {HELP: "write its backward with differentiable operators, and remove the decorator"}
    return blame.at_error("no-derivative", message, scene, (), extra)


def _version_outside(blame: Blame, scene: Scene) -> Fault | None:
    """Somebody asks a node for what it saved, and it has been overwritten."""
    writes = audit.hidden_clash(blame.log, scene.message)
    if not writes:
        message = f"`{text_of(scene.place)}` needs a tensor that was changed after it was saved"
        return blame.at_error("saved-overwritten", message, scene)
    place = place_of(writes[-1].stack[0])
    message = (
        f"`{text_of(place)}` overwrites what was saved for backward, and line {scene.place.row} reads it"
    )
    steps = (
        *step_at("written", "the last write that fits torch's message", writes[-1].stack),
        *step_at("read", "the saved tensor is read here", scene.stack),
    )
    return Fault("saved-overwritten", message, place, steps, "error", {"torch": scene.message})


def _freed_outside(blame: Blame, scene: Scene) -> Fault | None:
    first = blame.backwards.past[-1].stack if blame.backwards.past else ()
    message = f"`{text_of(scene.place)}` reads a saved tensor that backward has freed"
    steps = step_at("call", "this backward frees what was saved", first) if first else ()
    return blame.at_error("backward-twice", message, scene, steps)


def _number_backward(blame: Blame, scene: Scene) -> Fault | None:
    """`loss.backward()` on a number: somebody took it out of the graph."""
    lost = blame.number_taken(_owner_in(scene))
    message = f"`{text_of(scene.place)}` calls backward on a number, which has no graph"
    if not lost:
        return blame.at_error("number-taken", message, scene)
    place = place_of(lost[0])
    message = f"`{text_of(place)}` makes a number of the loss, and a number has no backward"
    steps = (
        FaultStep("cut", "a number leaves the graph here", place),
        *step_at("needed", "backward fails here", scene.stack),
    )
    return Fault("number-taken", message, place, steps, "error", {"torch": scene.message})


def _unused_in_ddp(blame: Blame, scene: Scene) -> Fault | None:
    """DistributedDataParallel waits for a gradient of every parameter, and some are in no graph."""
    wrapper = scene.local("forward", "self") or scene.local("_pre_forward", "self")
    named = (
        wrapper.module.named_parameters()
        if isinstance(wrapper, torch.nn.Module) and hasattr(wrapper, "module")
        else ()
    )
    unused = [(name, each) for name, each in named if each.requires_grad and not blame.has_gained(each)]
    help_text = {HELP: "use them in forward, remove them, or pass `find_unused_parameters=True`"}
    if not unused:
        message = f"`{text_of(scene.place)}`: parameters of the model got no gradient in the backward before"
        return blame.at_error("grad-of-unused", message, scene, (), help_text)
    more = f" and {len(unused) - 1} more" if len(unused) > 1 else ""
    message = f"`{unused[0][0]}`{more} got no gradient, and DistributedDataParallel waits for one of every parameter"
    birth = blame.modules.birth(unused[0][1])
    if birth is None or not birth.stack:
        return blame.at_error("grad-of-unused", message, scene, (), help_text)
    steps = step_at("needed", "torch refuses the next forward", scene.stack)
    evidence = {"torch": scene.message, "parameters": [name for name, _ in unused][:20], **help_text}
    return Fault("grad-of-unused", message, place_of(birth.stack[0]), steps, "error", evidence)


def _nothing_to_train(blame: Blame, scene: Scene) -> Fault | None:
    message = f"`{text_of(scene.place)}` is given no parameter: the module has registered none"
    return blame.at_error("optimizer-refused", message, scene)


_REFUSALS: tuple[tuple[str, Callable[..., Any]], ...] = (
    (r"cannot assign (module|parameters?) before (Module|Parameter)\.__init__", _plain("before-super-init", "{} runs before `super().__init__()`")),
    (r"Can't call numpy\(\) on Tensor that requires grad", _plain("number-taken", "{} takes a tensor of the graph to NumPy")),
    (r"you can only change requires_grad flags of leaf", _plain("cut-hidden", "{} changes requires_grad of a computed tensor; only leaves have the flag")),
    (r"cannot assign '.*' as parameter", _plain("parameter-refused", "{} puts a plain tensor where the module keeps a parameter")),
    (r"[Oo]nly Tensors of floating point", _plain("no-derivative", "{} asks for a gradient on integers")),
    (r"out=\.\.\. arguments don't support automatic differentiation", _plain("out-refused", "{} writes with `out=`, which autograd does not record")),
    (r"cannot register a hook on a tensor that doesn't require grad|can't retain_grad on Tensor that has requires_grad=False", _needs_graph),
    (r"hook '?[\w.<>]+'? has changed the", _hook_result),
    (r"derivative for .{1,60} is not implemented|does not have a derivative formula", _no_derivative),
    (r"marked with @once_differentiable", _once_differentiable),
    (r"Can't detach views in-place", _plain("shared-view-written", "{} detaches a view in place, which torch refuses", "use `detach()`, which gives a new tensor")),
    (r"cannot resize variables that require grad", _plain("leaf-written", "{} resizes a tensor that requires grad", "make a new tensor of that size")),
    (r"checkpoint is incompatible with \.grad\(\)", _plain("checkpoint-without-grad", "{} goes through a reentrant checkpoint, which knows `backward()` only")),
    (r"(different number of tensors was saved|[Rr]ecomputed values for the following tensors have different metadata)",
     _plain("saved-overwritten", "{}: the checkpointed function computes something else the second time",
            "have the checkpointed function depend on its arguments only")),
    (r"(unscale_\(\)|step\(\)) (has already been called|is being called after)|No inf checks were recorded|Attempting to unscale FP16", _plain("scaler-misused", "{} comes out of order for the gradient scaler")),
    (r"Legacy autograd function with non-static forward", _plain("gradient-count", "{} calls a custom function whose `forward` is not a static method", "make `forward` and `backward` static methods with `ctx`, and call `apply`")),
    (r"vmap: inplace arithmetic|vmap: aten::\w+_\(self, \*extra_args\) is not possible", _plain("written-in-transform", "{} writes a batched value into a tensor that `vmap` does not batch", "compute a new tensor with `torch.stack` or `torch.where`, or create it with `zeros_like` of a batched one")),
    (r"function provided attempted to call in-place operation", _plain("written-in-transform", "{} writes a tensor from outside the function, and the transform refuses it", "compute a new tensor, and return it")),
    (r"vmap: It looks like you're calling \.item\(\)", _plain("number-taken", "{} makes a number of a value that `vmap` maps", "keep it a tensor")),
    (r"vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow",
     _plain("number-taken", "{} decides by a value that `vmap` maps: each sample may go another way", "use `torch.where`")),
    (r"must implement either the backward or vjp", _plain("gradient-count", "{} comes to a custom function that has no `backward`", "write a `backward` with one gradient per input")),
    (r"save_for_backward can only save variables", _plain("gradient-count", "{}: `save_for_backward` is given something other than a tensor", "keep it on `ctx` by a name of its own")),
    (r"marked as dirty during the forward method were not returned", _plain("dirty-not-marked", "{}: forward marks an input as dirty and does not return it", "return what `mark_dirty` was given")),
    (r"Backward hook returned an invalid number of grad_input", _plain("gradient-refused", "a backward hook returns another number of gradients than {} wants", "return one gradient per input of the module")),
    (r"`inputs` argument to `backward\(\)` cannot be empty", _plain("gradient-refused", "{} is asked for the gradient of nothing")),
    (r"implicitly created only for real scalar", _plain("non-scalar-backward", "{} starts from a complex number", "take `.real` or `.abs()`")),
    (r"data set to a tensor that requires gradients must be floating", _plain("no-derivative", "{} gives integers to a tensor that requires grad")),
    (r"Function '\w+' returned nan values", _nan_gradient),
    (r"Expected f\(\*args\) to return a scalar [Tt]ensor", _plain("non-scalar-backward", "{} differentiates a function that returns no scalar", "reduce its result: `.sum()` or `.mean()`")),
    (r"attempting to assign a gradient (of|with)|assigned grad (has data of a different|expected to be)",
     _plain("gradient-refused", "{} sets a gradient that does not fit its tensor")),
    (r"expected Variable, but hook returned", _plain("gradient-refused", "a hook returns no tensor as a gradient in {}", "return a tensor, or nothing")),
    (r"Expected to have finished reduction in the prior iteration", _unused_in_ddp),
    (r"modified by an inplace operation", _version_outside),
    (r"saved tensors after they have already been freed", _freed_outside),
    (r"'(float|int)' object has no attribute 'backward'", _number_backward),
    (r"optimizer got an empty parameter list", _nothing_to_train),
    (r"does not support sparse gradients|not compatible with sparse gradients|add\(sparse, dense\) is not supported",
     _plain("optimizer-refused", "{} is given a sparse gradient, which this optimizer does not take", "use `SparseAdam` for it, or leave `sparse=True` away")),
    (r"does not support dense gradients", _plain("optimizer-refused", "{} is given a dense gradient, and `SparseAdam` takes sparse ones only", "use `Adam` for it")),
    (r"some parameters appear in more than one parameter group", _plain("optimizer-refused", "{} has a parameter in two groups")),
)  # fmt: skip


def explanations(blame: Blame) -> tuple[tuple[str, Callable[[Scene], Fault | None]], ...]:
    """The table of refusals, for this blame."""

    def bound(explain: Callable[..., Any]) -> Callable[[Scene], Fault | None]:
        def call(scene: Scene) -> Fault | None:
            result: Fault | None = explain(blame, scene)
            return result

        return call

    return tuple((pattern, bound(explain)) for pattern, explain in _REFUSALS)
