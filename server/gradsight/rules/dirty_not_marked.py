"""A custom forward that changes its input without `mark_dirty`.

## What goes wrong silently

`mark_dirty` tells autograd that `forward` wrote its input. Without it the write is not part of the graph: what is computed from the input afterwards has the new value and the old gradient.

```python
import torch


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, values):
        values.mul_(2)  # warning: GS703
        return values.clone()

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


x = torch.ones(3, requires_grad=True)
hidden = x * 1
Double.apply(hidden)
hidden.sum().backward()
assert hidden.tolist() == [2.0, 2.0, 2.0]
assert x.grad.tolist() == [1.0, 1.0, 1.0]  # the value was doubled, the gradient was not
```

## Use instead

Leave the input as it is, and write to a new tensor.

```python
import torch


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, values):
        return values * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


x = torch.ones(3, requires_grad=True)
hidden = x * 1
Double.apply(hidden)
hidden.sum().backward()
assert hidden.tolist() == [1.0, 1.0, 1.0]
```

## Not reported

An input that is marked and returned is fine.

```python
import torch


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, values):
        values.mul_(2)
        ctx.mark_dirty(values)
        return values

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


x = torch.ones(3, requires_grad=True)
hidden = x * 1
Double.apply(hidden)
hidden.sum().backward()
assert x.grad.tolist() == [2.0, 2.0, 2.0]
```

A buffer that needs no gradient and is not returned may be written: no gradient flows through it, and `mark_dirty` would refuse it.

```python
import torch


class Counted(torch.autograd.Function):
    @staticmethod
    def forward(ctx, values, count):
        count.add_(1)
        return values * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 2, None


x, count = torch.ones(3, requires_grad=True), torch.zeros(())
Counted.apply(x, count).sum().backward()
assert x.grad.tolist() == [2.0, 2.0, 2.0]
assert count == 1
```

## Fix safety

Writing to a new tensor is unsafe: the caller's tensor no longer changes.

See [Extending torch.autograd](https://docs.pytorch.org/docs/stable/notes/extending.html) and a
[report](https://github.com/pytorch/pytorch/issues/5871) of an addition in place whose gradient is lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, named, text
from gradsight.model.torch_messages import MODIFIED_IN_PLACE, Cause

if TYPE_CHECKING:
    from gradsight.fixes.draft import Drafts, FixCase


def judge(event: Event) -> Finding | None:
    message = f"`{text(event, 'cls')}.forward` changes {named(event, 'target', 'its input')} in place: call `ctx.mark_dirty` or write to a copy"
    return make_finding(event, RULE.code, RULE.name, message, "warning")


def fix(case: FixCase) -> Drafts:
    from gradsight.fixes.functions import dirty

    return dirty(case)


RULE = Rule(
    "GS703",
    "dirty-not-marked",
    ("dirty-not-marked",),
    judge,
    __doc__,
    advice="call `ctx.mark_dirty(x)`, or write to a copy",
    fix=fix,
    is_bad_write=True,
    messages=(Cause(MODIFIED_IN_PLACE, rank=4),),
    observed_as=("dirty-not-marked",),
)
