"""`step()` that no `backward()` precedes.

## What goes wrong silently

Without a backward there is no gradient, and the step changes nothing.

```python
import torch
from torch import nn

net = nn.Linear(2, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
before = net.weight.detach().clone()
for step in range(3):
    optimizer.zero_grad()
    loss = net(torch.ones(4, 2)).pow(2).mean()
    optimizer.step()  # warning: GS503
assert torch.equal(net.weight, before)
```

## Use instead

Run the backward.

```python
import torch
from torch import nn

net = nn.Linear(2, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
before = net.weight.detach().clone()
for step in range(3):
    optimizer.zero_grad()
    loss = net(torch.ones(4, 2)).pow(2).mean()
    loss.backward()
    optimizer.step()
assert not torch.equal(net.weight, before)
```

## Not reported

Gradients that come from elsewhere: `autograd.grad`, a closure, an assignment.

```python
import torch

weight = torch.zeros(1, requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=1.0)
(weight.grad,) = torch.autograd.grad((weight * 2).sum(), weight)
optimizer.step()
assert weight.item() == -2.0
```

```python
import torch

weight = torch.zeros(1, requires_grad=True)
optimizer = torch.optim.LBFGS([weight], max_iter=1)


def closure():
    optimizer.zero_grad()
    loss = (weight - 1).pow(2).sum()
    loss.backward()
    return loss


optimizer.step(closure)
assert weight.item() != 0.0
```

## Fix safety

Running the backward of the last loss first is unsafe: which loss is meant is a guess.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, text

if TYPE_CHECKING:
    from gradsight.fixes.draft import Case, Drafts


def judge(event: Event) -> Finding | None:
    message = "no backward comes before this step: there is no gradient to apply"
    if event.names.get("loss"):
        message = f"nobody calls backward on {text(event, 'loss')}: this step has no gradient of it to apply"
    return make_finding(event, RULE.code, RULE.name, message, "warning")


def fix(case: Case) -> Drafts:
    from gradsight.fixes.training import step_without_backward

    return step_without_backward(case)


RULE = Rule(
    "GS503",
    "step-without-backward",
    ("step-without-backward",),
    judge,
    __doc__,
    advice="call `backward()` on a loss of these parameters before `step()`",
    fix=fix,
    observed_as=("step-without-backward",),
    excluded_by=lambda run, finding: run.has_only_useful_steps(),
    needs_training=True,
)
