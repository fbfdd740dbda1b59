"""A backward or hook edits the gradient in place.

## What goes wrong silently

The gradient that a `backward` or a hook receives may be the same tensor that another branch of the graph receives. An in-place write changes the gradient there too.

```python
import torch


class Halve(torch.autograd.Function):
    @staticmethod
    def forward(ctx, values):
        return values.clone()

    @staticmethod
    def backward(ctx, grad):
        return grad.mul_(0.5)  # warning: GS704


x = torch.ones(3, requires_grad=True)
other = torch.ones(3, requires_grad=True)
side = other * 1
out = Halve.apply(x) + side
out.pow(2).sum().backward()
assert x.grad.tolist() == [2.0, 2.0, 2.0]
assert other.grad.tolist() == [2.0, 2.0, 2.0]  # 4 is right
```

A hook receives the same tensor.

```python
import torch

x = torch.ones(3, requires_grad=True)
other = torch.ones(3, requires_grad=True)
side = other * 1
hidden = x * 1
hidden.register_hook(lambda grad: grad.mul_(0.5))  # warning: GS704
(hidden + side).pow(2).sum().backward()
assert other.grad.tolist() == [2.0, 2.0, 2.0]  # 4 is right
```

## Use instead

Return a new gradient.

```python
import torch


class Halve(torch.autograd.Function):
    @staticmethod
    def forward(ctx, values):
        return values.clone()

    @staticmethod
    def backward(ctx, grad):
        return grad * 0.5


x = torch.ones(3, requires_grad=True)
other = torch.ones(3, requires_grad=True)
side = other * 1
out = Halve.apply(x) + side
out.pow(2).sum().backward()
assert x.grad.tolist() == [2.0, 2.0, 2.0]
assert other.grad.tolist() == [4.0, 4.0, 4.0]
```

## Not reported

Returning a new gradient is fine, and so is writing to a copy.

```python
import torch

x = torch.ones(3, requires_grad=True)
other = torch.ones(3, requires_grad=True)
side = other * 1
hidden = x * 1
hidden.register_hook(lambda grad: grad * 0.5)
(hidden + side).pow(2).sum().backward()
assert other.grad.tolist() == [4.0, 4.0, 4.0]
```

## Fix safety

Returning a new gradient is safe: what is returned is the same, and the other branch has its own.

See [Tensor.register_hook](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.register_hook.html) and a
[report](https://github.com/pytorch/pytorch/issues/81417) of a backward that adds to its argument.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, named, text

if TYPE_CHECKING:
    from gradsight.fixes.draft import Drafts, FixCase


def judge(event: Event) -> Finding | None:
    message = f"{named(event, 'name', 'the gradient')} is edited in place: return a new gradient instead"
    if event.names.get("returns") == "nothing":
        message = f"this {text(event, 'how')} returns nothing, so {_consequence(event)}"
    return make_finding(event, RULE.code, RULE.name, message, "warning")


def _consequence(event: Event) -> str:
    if event.names.get("how") == "hook":
        return "the new gradient is lost: return it"
    return "the gradient ends here: return a gradient"


def fix(case: FixCase) -> Drafts:
    from gradsight.fixes.functions import gradient_edited

    return gradient_edited(case)


RULE = Rule(
    "GS704",
    "gradient-edited",
    ("gradient-edited",),
    judge,
    __doc__,
    advice="compute a new gradient and return it",
    fix=fix,
    observed_as=("gradient-edited",),
    kin="result-lost",
)
