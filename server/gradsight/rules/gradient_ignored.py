"""A custom backward that ignores the gradient it is given.

## What goes wrong silently

The argument of `backward` is the gradient of the loss with respect to the output. Every factor between the output and the loss
arrives there: the weight of a term, the `1 / n` of a mean, the scale of a `GradScaler`. A backward that returns a gradient it
has prepared, without multiplying by its argument, drops them all.

```python
import torch


class Guide(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, direction):
        ctx.save_for_backward(direction)
        return (x * direction).sum()

    @staticmethod
    def backward(ctx, grad):
        (direction,) = ctx.saved_tensors
        return direction, None  # warning: GS708


x = torch.ones(3, requires_grad=True)
loss = 0.1 * Guide.apply(x, torch.tensor([1.0, 2.0, 3.0]))
loss.backward()
assert x.grad.tolist() == [1.0, 2.0, 3.0]  # the factor 0.1 is lost
```

## Use instead

Multiply by the argument.

```python
import torch


class Guide(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, direction):
        ctx.save_for_backward(direction)
        return (x * direction).sum()

    @staticmethod
    def backward(ctx, grad):
        (direction,) = ctx.saved_tensors
        return direction * grad, None


x = torch.ones(3, requires_grad=True)
loss = 0.5 * Guide.apply(x, torch.tensor([1.0, 2.0, 3.0]))
loss.backward()
assert x.grad.tolist() == [0.5, 1.0, 1.5]
```

## Not reported

Where the output is the loss itself, or is only added to others, the argument is one, and the gradient is right.

```python
import torch


class Guide(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, direction):
        ctx.save_for_backward(direction)
        return (x * direction).sum()

    @staticmethod
    def backward(ctx, grad):
        (direction,) = ctx.saved_tensors
        return direction, None


x = torch.ones(3, requires_grad=True)
loss = Guide.apply(x, torch.tensor([1.0, 2.0, 3.0])) + x.sum()
loss.backward()
assert x.grad.tolist() == [2.0, 3.0, 4.0]
```

## Fix safety

No fix is offered: which of the arguments a gradient belongs to is for the author to say.

See [Extending torch.autograd](https://docs.pytorch.org/docs/stable/notes/extending.html) and a
[report](https://github.com/ashawkey/stable-dreamfusion/issues/158) of a loss that a gradient scaler does not reach.
"""

from __future__ import annotations

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, text


def judge(event: Event) -> Finding | None:
    message = (
        f"`{text(event, 'cls')}.backward` ignores `{text(event, 'given')}`: multiply what it returns by it"
    )
    return make_finding(event, RULE.code, RULE.name, message, "warning")


RULE = Rule(
    "GS708",
    "gradient-ignored",
    ("gradient-ignored",),
    judge,
    __doc__,
    advice="multiply what `backward` returns by its argument",
)
