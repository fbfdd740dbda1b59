"""A module with a `backward` method, which autograd never calls.

## What goes wrong silently

Autograd differentiates what `forward` of a module computes. A method `backward` is called by nobody: only a
`torch.autograd.Function` has a backward of its own. A gradient reversal layer that is written as a module passes the
gradient on as it is.

```python
import torch
from torch import nn


class Reverse(nn.Module):
    def forward(self, x):
        return x

    def backward(self, grad):  # warning: GS707
        return -grad


layer, reverse = nn.Linear(2, 1, bias=False), Reverse()
reverse(layer(torch.ones(1, 2))).sum().backward()
assert layer.weight.grad.tolist() == [[1.0, 1.0]]  # not reversed
```

## Use instead

Write a `torch.autograd.Function`, and let the module apply it.

```python
import torch
from torch import nn


class ReverseFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return -grad


class Reverse(nn.Module):
    def forward(self, x):
        return ReverseFunction.apply(x)


layer, reverse = nn.Linear(2, 1, bias=False), Reverse()
reverse(layer(torch.ones(1, 2))).sum().backward()
assert layer.weight.grad.tolist() == [[-1.0, -1.0]]
```

## Not reported

A method that calls `backward()` of a loss, clears or steps: it belongs to a training loop. A method that the program calls
with a gradient, and one that overrides a method of a library, as in a `LightningModule`.

```python
import torch
from torch import nn


class Learner(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 1)

    def forward(self, x):
        return self.layer(x)

    def backward(self, loss):
        loss.backward()
        return loss.item()


learner = Learner()
learner.backward(learner(torch.ones(1, 2)).sum())
```

## Fix safety

No fix is offered: the forward of a Function is another text than that of a module.

See [Extending torch.autograd](https://docs.pytorch.org/docs/stable/notes/extending.html) and a
[report](https://github.com/hash2430/pitchtron/issues/3) of a reversal that does not reverse.
"""

from __future__ import annotations

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, text


def judge(event: Event) -> Finding | None:
    message = f"autograd never calls `{text(event, 'cls')}.backward`: write a `torch.autograd.Function`"
    return make_finding(event, RULE.code, RULE.name, message, "warning")


RULE = Rule(
    "GS707",
    "backward-of-module",
    ("backward-of-module",),
    judge,
    __doc__,
    is_uncalled=True,
    advice="write a `torch.autograd.Function` and apply it in `forward`",
)
