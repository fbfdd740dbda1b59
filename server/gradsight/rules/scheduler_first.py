"""A scheduler steps before its optimizer.

## What goes wrong silently

A scheduler sets the learning rate of the next steps. Called before the first step of the optimizer it skips the first value, and every later one comes too early.

```python
import torch

weight = torch.zeros(1, requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=1.0)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)
for epoch in range(2):
    optimizer.zero_grad()
    (weight * 2).sum().backward()
    scheduler.step()  # warning: GS506  # warns: before `optimizer.step()`
    optimizer.step()
assert weight.item() == -1.5  # rates 0.5 and 0.25; 1 and 0.5 were meant
```

Nor does a scheduler know that its optimizer was replaced: the new one keeps its first learning rate.

```python
import torch

weight = torch.zeros(1, requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=1.0)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)
optimizer = torch.optim.SGD([weight], lr=1.0)
for epoch in range(2):
    optimizer.zero_grad()
    (weight * 2).sum().backward()
    optimizer.step()
    scheduler.step()  # warning: GS506  # warns: before `optimizer.step()`
assert weight.item() == -4.0  # both at the rate 1
```

## Use instead

Call the optimizer first, then the scheduler.

```python
import torch

weight = torch.zeros(1, requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=1.0)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)
for epoch in range(2):
    optimizer.zero_grad()
    (weight * 2).sum().backward()
    optimizer.step()
    scheduler.step()
assert weight.item() == -3.0
```

## Not reported

One scheduler step after many optimizer steps is fine.

```python
import torch

weight = torch.zeros(1, requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=1.0)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)
for epoch in range(2):
    for batch in range(3):
        optimizer.zero_grad()
        (weight * 2).sum().backward()
        optimizer.step()
    scheduler.step()
```

## Fix safety

Swapping the two lines is unsafe: the learning rates of all steps shift by one.

See [How to adjust learning rate](https://docs.pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate) and a
[report](https://github.com/michuanhaohao/reid-strong-baseline/issues/190) of a schedule that steps when an epoch begins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding

if TYPE_CHECKING:
    from gradsight.fixes.draft import Drafts, FixCase


def judge(event: Event) -> Finding | None:
    if event.kind == "scheduler-of-another":
        message = "the optimizer of this scheduler was replaced, so the learning rate stays: make a scheduler for the new one"
        return make_finding(event, RULE.code, RULE.name, message, "warning")
    message = "the scheduler steps before the optimizer, so the first learning rate is skipped: swap them"
    return make_finding(event, RULE.code, RULE.name, message, "warning")


def fix(case: FixCase) -> Drafts:
    from gradsight.fixes.training import scheduler_first

    return scheduler_first(case)


RULE = Rule(
    "GS506",
    "scheduler-first",
    ("scheduler-first", "scheduler-of-another"),
    judge,
    __doc__,
    advice="call `scheduler.step()` after `optimizer.step()`",
    fix=fix,
    observed_as=("scheduler-first",),
)
