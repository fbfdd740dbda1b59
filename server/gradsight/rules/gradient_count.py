"""A custom backward that is missing, or returns the wrong number of gradients.

## Why torch refuses

`backward` returns one gradient per argument of `forward`, `ctx` not counted, with `None` for arguments that are not tensors or need no gradient.

```python
import torch


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, values, factor):
        ctx.factor = factor
        return values * factor

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.factor  # error: GS701


x = torch.ones(3, requires_grad=True)
Scale.apply(x, 2.0).sum().backward()  # raises: returned an incorrect number of gradients
```

A Function without `backward` works until its gradient is needed. One whose methods are not static is never called.

```python
import torch


class Half(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x / 2


x = torch.ones(3, requires_grad=True)
half = Half.apply(x)  # error: GS701
half.sum().backward()  # raises: You must implement
```

```python
import torch


class Twice(torch.autograd.Function):
    def forward(self, x):
        return x * 2

    def backward(self, grad):
        return grad * 2


x = torch.ones(3, requires_grad=True)
y = Twice()(x)  # error: GS701  # raises: Legacy autograd function
```

Tensors alone can be saved, and what is marked as written must be returned.

```python
import torch


class Power(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, exponent):
        ctx.save_for_backward(x, exponent)  # error: GS701
        return x**exponent

    @staticmethod
    def backward(ctx, grad):
        x, exponent = ctx.saved_tensors
        return grad * exponent * x ** (exponent - 1), None


x = torch.ones(3, requires_grad=True)
y = Power.apply(x, 2.0)  # raises: save_for_backward can only save variables
```

```python
import torch


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)  # error: GS701
        x.mul_(2)
        return x + 1

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


x = torch.ones(3, requires_grad=True)
y = Doubled.apply(x * 1)  # raises: marked as dirty during the forward method were not returned
```

## Use instead

Return `None` for the number.

```python
import torch


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, values, factor):
        ctx.factor = factor
        return values * factor

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.factor, None


x = torch.ones(3, requires_grad=True)
Scale.apply(x, 2.0).sum().backward()
assert x.grad.tolist() == [2.0, 2.0, 2.0]
```

## Not reported

Returning more `None`s than there are arguments is accepted by torch.

```python
import torch


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, values, factor):
        ctx.factor = factor
        return values * factor

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.factor, None, None


x = torch.ones(3, requires_grad=True)
Scale.apply(x, 2.0).sum().backward()
```

## Fix safety

`None` for the missing gradients is safe where the call gives plain numbers for those arguments. Elsewhere it is unsafe: if one of them belongs to a tensor, its gradient is silently lost.

See [Extending torch.autograd](https://docs.pytorch.org/docs/stable/notes/extending.html) and a
[report](https://github.com/evanmy/sae/issues/5) of a prior that returns one gradient for two inputs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, text
from gradsight.model.torch_messages import alone

if TYPE_CHECKING:
    from gradsight.fixes.draft import Drafts, FixCase


def judge(event: Event) -> Finding | None:
    if event.names.get("reason") == "missing":
        message = f"`{text(event, 'cls')}` has no `backward`, but its gradient is needed: define one"
        return make_finding(event, RULE.code, RULE.name, message, "error")
    if event.names.get("reason") == "number":
        message = "`save_for_backward` takes tensors only: store other values on `ctx` itself"
        return make_finding(event, RULE.code, RULE.name, message, "error")
    if event.names.get("reason") == "dirty":
        message = (
            f"`{text(event, 'cls')}.forward` calls `mark_dirty` on this but does not return it: return it"
        )
        return make_finding(event, RULE.code, RULE.name, message, "error")
    if event.names.get("reason") == "instance":
        message = f"an instance of `{text(event, 'cls')}` is called, which torch refuses: make its methods static, and use `apply`"
        return make_finding(event, RULE.code, RULE.name, message, "error")
    message = f"`{text(event, 'cls')}.backward` must return one gradient per input: {text(event, 'wanted')} inputs, {text(event, 'returned')} returned"
    return make_finding(event, RULE.code, RULE.name, message, "error")


def fix(case: FixCase) -> Drafts:
    from gradsight.fixes.functions import gradient_count

    return gradient_count(case)


RULE = Rule(
    "GS701",
    "gradient-count",
    ("gradient-count", "function-refused"),
    judge,
    __doc__,
    advice="return one gradient per input of `forward`, None where there is none",
    fix=fix,
    messages=(
        alone(
            r"must implement either the backward|save_for_backward can only save|marked as dirty during the forward|Legacy autograd function|returned an incorrect number of gradients|returned an invalid gradient",
            "A custom function's `backward` must return one gradient for each argument of its `forward`.",
        ),
    ),
    observed_as=("gradient-count",),
)
