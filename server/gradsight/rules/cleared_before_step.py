"""`zero_grad()` between `backward()` and `step()`.

## What goes wrong silently

The gradients are dropped before they are used. The step finds none and changes nothing.

```python
import torch

weight = torch.zeros(1, requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=1.0)
for step in range(3):
    loss = (weight * 2).sum()
    loss.backward()
    optimizer.zero_grad()  # warning: GS502
    optimizer.step()
assert weight.item() == 0.0
```

## Use instead

Clear before the backward or after the step.

```python
import torch

weight = torch.zeros(1, requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=1.0)
for step in range(3):
    optimizer.zero_grad()
    loss = (weight * 2).sum()
    loss.backward()
    optimizer.step()
assert weight.item() == -6.0
```

## Not reported

Clearing the gradients of another network in between.

```python
import torch
from torch import nn

generator, critic = nn.Linear(2, 2), nn.Linear(2, 1)
optimizer = torch.optim.SGD(generator.parameters(), lr=0.1)
for step in range(2):
    optimizer.zero_grad()
    critic(generator(torch.ones(4, 2))).mean().backward()
    critic.zero_grad()
    optimizer.step()
assert generator.weight.grad is not None
```

## Fix safety

Moving `zero_grad()` in front of the backward is safe: the step gets the gradient that was computed for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding

if TYPE_CHECKING:
    from gradsight.fixes.draft import Case, Drafts


def judge(event: Event) -> Finding | None:
    message = "the gradients are cleared between backward and step: the step has nothing to apply"
    if event.names.get("accumulating"):
        message = "the gradients are cleared in every round: the step that comes every few rounds gets the last one only"
    return make_finding(event, RULE.code, RULE.name, message, "warning")


def fix(case: Case) -> Drafts:
    from gradsight.fixes.training import cleared_before_step

    return cleared_before_step(case)


RULE = Rule(
    "GS502",
    "cleared-before-step",
    ("cleared-before-step",),
    judge,
    __doc__,
    advice="call `zero_grad()` before `backward()` or after `step()`",
    fix=fix,
    observed_as=("cleared-before-step",),
    excluded_by=lambda run, finding: run.has_only_useful_steps(),
)
