"""A gradient penalty without `create_graph`.

## What goes wrong silently

`autograd.grad` gives a plain value unless `create_graph=True`. A penalty computed from it is a constant for the loss, and trains nothing.

```python
import torch
from torch import nn

critic = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
x = torch.ones(4, 2, requires_grad=True)
score = critic(x)
(slope,) = torch.autograd.grad(score.sum(), x, retain_graph=True)  # warning: GS405
penalty = (slope.norm(dim=1) - 1).pow(2).mean()
loss = score.mean() + 10 * penalty
loss.backward()
assert not penalty.requires_grad
```

So is a step that a model takes inside of its training: weights that are moved by such a gradient do not know that it depends
on them, and MAML becomes its first-order approximation.

```python
import torch
from torch import nn

weight = nn.Parameter(torch.ones(3))
optimizer = torch.optim.SGD([weight], lr=0.1)
inner = weight.pow(3).sum()
(slope,) = torch.autograd.grad(inner, weight)  # warning: GS405
fast = weight - 0.1 * slope
fast.sum().backward()
optimizer.step()
assert torch.equal(weight.grad, torch.ones(3))
```

## Use instead

Pass `create_graph=True`, so that the gradient has a graph of its own.

```python
import torch
from torch import nn

critic = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
x = torch.ones(4, 2, requires_grad=True)
score = critic(x)
(slope,) = torch.autograd.grad(score.sum(), x, create_graph=True)
penalty = (slope.norm(dim=1) - 1).pow(2).mean()
loss = score.mean() + 10 * penalty
loss.backward()
assert penalty.requires_grad
```

## Not reported

A gradient that is only printed, or that is only used for a step, needs no graph; who writes `create_graph=False` wants none.

```python
import torch

x = torch.ones(3, requires_grad=True)
(slope,) = torch.autograd.grad((x * x).sum(), x)
with torch.no_grad():
    x -= 0.1 * slope
print(slope.norm())
```

```python
import torch
from torch import nn

weight = nn.Parameter(torch.ones(3))
optimizer = torch.optim.SGD([weight], lr=0.1)
(slope,) = torch.autograd.grad(weight.pow(3).sum(), weight, create_graph=False)
(weight - 0.1 * slope).sum().backward()
optimizer.step()
```

## Fix safety

`create_graph=True` is safe: the values are the same, and the penalty gets its gradient.

See [torch.autograd.grad](https://docs.pytorch.org/docs/stable/generated/torch.autograd.grad.html) and a
[report](https://github.com/dragen1860/MAML-Pytorch/issues/32) of a meta gradient that is only of first order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding
from gradsight.model.torch_messages import UNUSED_IN_GRAPH, Cause

if TYPE_CHECKING:
    from gradsight.fixes.draft import Drafts, FixCase


def judge(event: Event) -> Finding | None:
    if event.kind != "penalty-without-graph" and event.names.get("cut") != "grad":
        return None
    message = "this gradient has no graph, so the penalty trains nothing: pass `create_graph=True`"
    if event.names.get("how") == "step":
        message = (
            "this gradient has no graph, so the step made with it is a constant: pass `create_graph=True`"
        )
    return make_finding(
        event, RULE.code, RULE.name, message, "error" if event.kind == "backward-without-graph" else "warning"
    )


def fix(case: FixCase) -> Drafts:
    from gradsight.fixes.graphs import penalty

    return penalty(case)


RULE = Rule(
    "GS405",
    "penalty-without-graph",
    ("penalty-without-graph", "backward-without-graph", "path-cut"),
    judge,
    __doc__,
    advice="pass `create_graph=True` to `torch.autograd.grad`",
    fix=fix,
    messages=(Cause(UNUSED_IN_GRAPH, rank=2),),
    observed_as=("penalty-without-graph",),
)
