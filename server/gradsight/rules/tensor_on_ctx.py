"""A tensor is stored on `ctx` instead of `save_for_backward`.

## What goes wrong silently

`save_for_backward` remembers the version of a tensor and refuses one that was changed in between. An attribute of `ctx` remembers nothing: backward computes with the changed value. It also holds memory that torch would have freed.

```python
import torch


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, values):
        ctx.values = values  # warning: GS702
        return values * values

    @staticmethod
    def backward(ctx, grad):
        return 2 * ctx.values * grad


x = torch.ones(3, requires_grad=True)
hidden = x * 1
out = Square.apply(hidden)
hidden.mul_(10)
out.sum().backward()
assert x.grad.tolist() == [20.0, 20.0, 20.0]  # 2 is right
```

## Use instead

Use `save_for_backward`: a change in between is then an error instead of a wrong gradient.

```python
import torch


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, values):
        ctx.save_for_backward(values)
        return values * values

    @staticmethod
    def backward(ctx, grad):
        (values,) = ctx.saved_tensors
        return 2 * values * grad


x = torch.ones(3, requires_grad=True)
hidden = x * 1
out = Square.apply(hidden)
out.sum().backward()
assert x.grad.tolist() == [2.0, 2.0, 2.0]
```

## Not reported

Numbers, shapes and flags may be stored on `ctx`.

```python
import torch


class Repeat(torch.autograd.Function):
    @staticmethod
    def forward(ctx, values, times):
        ctx.times = times
        ctx.shape = values.shape
        return values.repeat(times)

    @staticmethod
    def backward(ctx, grad):
        return grad.reshape(ctx.times, *ctx.shape).sum(dim=0), None


x = torch.ones(3, requires_grad=True)
Repeat.apply(x, 2).sum().backward()
assert x.grad.tolist() == [2.0, 2.0, 2.0]
```

## Fix safety

Saving a copy for backward is safe: the gradient is taken at the values that `forward` saw. Saving the tensor itself is unsafe: a change in between, unnoticed so far, becomes an error.

See [Extending torch.autograd](https://docs.pytorch.org/docs/stable/notes/extending.html) and a
[report](https://github.com/sniklaus/softmax-splatting/issues/50) of inputs that were changed before backward.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, text

if TYPE_CHECKING:
    from gradsight.fixes.draft import Drafts, FixCase


def judge(event: Event) -> Finding | None:
    message = f"`ctx.{text(event, 'name')}` skips autograd's check for overwritten tensors: use `ctx.save_for_backward`"
    return make_finding(event, RULE.code, RULE.name, message, "warning")


def fix(case: FixCase) -> Drafts:
    from gradsight.fixes.functions import kept_on_ctx

    return kept_on_ctx(case)


def _same_cause(finding: Finding, fault: Finding) -> bool:
    """The finding is where the context gets the tensor, the fault where the tensor is overwritten."""
    kept = f"ctx.{finding.data.get('name', '')}" == fault.data.get("saved_as")
    return kept and bool(finding.lines("call") & fault.lines("saved"))


RULE = Rule(
    "GS702",
    "tensor-on-ctx",
    ("tensor-on-ctx",),
    judge,
    __doc__,
    advice="save tensors with `ctx.save_for_backward`, which checks that they are unchanged",
    fix=fix,
    is_bad_write=True,
    spoils_saved=True,
    observed_as=("tensor-on-ctx",),
    same_cause=_same_cause,
)
