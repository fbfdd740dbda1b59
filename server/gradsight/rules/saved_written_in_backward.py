"""A custom backward that writes what forward saved for it.

## What goes wrong silently

`ctx.saved_tensors` gives back the very tensors that forward saved, not copies. A backward that writes one changes the input
or the output for everybody who still uses it, and a second backward starts from the changed values.

```python
import torch


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, left, right):
        ctx.save_for_backward(left, right)
        return left * right

    @staticmethod
    def backward(ctx, grad):
        left, right = ctx.saved_tensors
        return right.mul_(grad), left * grad  # warning: GS705


x = torch.ones(3, requires_grad=True)
scale = torch.full((3,), 2.0, requires_grad=True) * 1
Product.apply(x, scale).sum().mul(5).backward()
assert scale.tolist() == [10.0, 10.0, 10.0]
```

## Use instead

Compute a new tensor.

```python
import torch


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, left, right):
        ctx.save_for_backward(left, right)
        return left * right

    @staticmethod
    def backward(ctx, grad):
        left, right = ctx.saved_tensors
        return right.mul(grad), left * grad


x = torch.ones(3, requires_grad=True)
scale = torch.full((3,), 2.0, requires_grad=True) * 1
Product.apply(x, scale).sum().mul(5).backward()
assert scale.tolist() == [2.0, 2.0, 2.0]
```

## Not reported

A tensor that forward made for backward alone, and that one backward uses up.

```python
import torch


class LogSumExp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, values):
        weights = values.softmax(-1)
        ctx.save_for_backward(weights)
        return values.logsumexp(-1)

    @staticmethod
    def backward(ctx, grad):
        (weights,) = ctx.saved_tensors
        weights.mul_(grad.unsqueeze(-1))
        return weights


x = torch.zeros(1, 4, requires_grad=True)
LogSumExp.apply(x).sum().backward()
assert x.grad.tolist() == [[0.25, 0.25, 0.25, 0.25]]
```

## Fix safety

The write is turned into a new tensor. This is unsafe: a name that was to hold the changed tensor later on may be meant.

See [extending torch.autograd](https://docs.pytorch.org/docs/stable/notes/extending.html) and a
[report](https://github.com/linkedin/Liger-Kernel/issues/254).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, named, text

if TYPE_CHECKING:
    from gradsight.fixes.draft import Drafts, FixCase


def judge(event: Event) -> Finding | None:
    seen = "and the program still uses it" if event.names.get("shared") else "so the next backward is wrong"
    message = f"`{text(event, 'cls')}.backward` overwrites {named(event, 'name')}, which `forward` saved, {seen}: write to a copy"
    return make_finding(event, RULE.code, RULE.name, message, "warning")


def fix(case: FixCase) -> Drafts:
    from gradsight.fixes.functions import saved_written

    return saved_written(case)


RULE = Rule(
    "GS705",
    "saved-written-in-backward",
    ("saved-written-in-backward",),
    judge,
    __doc__,
    advice="compute a new tensor instead of writing the saved one",
    fix=fix,
    is_bad_write=True,
)
