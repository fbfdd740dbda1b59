"""One sentence of help per code, for the end of a report."""

from __future__ import annotations

_HELP = {
    "GS101": "write out of place (`x = x * 2` instead of `x *= 2`), or clone the tensor before it is changed",
    "GS102": "put the update under `torch.no_grad()`, or compute a new tensor",
    "GS103": "write out of place: `x = x + y`, or clone the view first",
    "GS104": "work on a copy: `x.detach().clone()` instead of `x.data`",
    "GS105": "compute the new value out of place and with grad mode on",
    "GS106": "call `backward()` before `step()`, or compute the second loss again after the step",
    "GS107": "store or change a copy: `.clone()`",
    "GS201": "use `torch.stack([...])` for a list of tensors, and the tensor itself instead of a copy",
    "GS202": "stay in torch until after `backward()`; take numbers out only for logging",
    "GS203": "leave out `detach()` on the way to the loss; `clone()` copies and keeps the graph",
    "GS204": "compute the loss outside `no_grad` and `inference_mode`",
    "GS205": "use a differentiable form (softmax, a soft mask) on the way to the loss",
    "GS206": "leave out `detach()`: `requires_grad_()` makes a new leaf and hides the cut",
    "GS207": "make the parameter once in `__init__`, and use computed tensors as they are",
    "GS208": "use a straight-through estimator or a smooth form",
    "GS209": "assign the result: `x = x.clamp(0)`",
    "GS210": "use `with torch.no_grad():` so that grad mode comes back",
    "GS211": "call checkpoint with `use_reentrant=False`",
    "GS301": "call `retain_grad()` before backward, or use `torch.autograd.grad`",
    "GS302": "keep a copy: `.grad.detach().clone()`",
    "GS303": "make the leaf last: `(torch.randn(3) * 0.1).requires_grad_()`",
    "GS304": "read `.grad` after backward, and check that the tensor is on the way to the loss",
    "GS306": "copy with `.detach().clone()`",
    "GS401": "reduce to a scalar (`.sum()`, `.mean()`), or pass `gradient=`",
    "GS402": "add the losses and call backward once, or pass `retain_graph=True` to the first call",
    "GS403": "detach the state between iterations: `h = h.detach()`",
    "GS404": "add up `loss.item()` or `loss.detach()`",
    "GS405": "pass `create_graph=True` to `torch.autograd.grad`",
    "GS406": "take the gradient of a tensor that the output is computed from, or pass `allow_unused=True`",
    "GS408": "detach what is carried over, and drop `retain_graph=True`",
    "GS501": "call `optimizer.zero_grad()` once per step",
    "GS502": "call `zero_grad()` before `backward()` or after `step()`",
    "GS503": "call `backward()` on a loss of these parameters before `step()`",
    "GS504": "make the optimizer after the last change of the model",
    "GS505": "call `train()` again after the evaluation",
    "GS508": "clear the gradients of both networks before each backward",
    "GS509": "leave frozen parameters out of the optimizer",
    "GS601": "hold modules in `nn.ModuleList` or `nn.ModuleDict`, tensors in `nn.Parameter`",
    "GS602": "the attribute is `requires_grad`",
    "GS603": "call `super().__init__()` first",
    "GS604": "make the layer once in `__init__`",
    "GS605": "pass the scores as they are: the loss applies the activation itself",
    "GS701": "return one gradient per input of `forward`, None where there is none",
    "GS703": "call `ctx.mark_dirty(x)`, or write to a copy",
    "GS704": "compute a new gradient and return it",
}


def help_for(code: str) -> str:
    """What to do about a fault with this code."""
    return _HELP.get(code, "")
