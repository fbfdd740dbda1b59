"""`zero_grad()` between `backward()` and `step()`.

## What goes wrong silently

The gradients are cleared before they are used. The step finds none and changes nothing.
With `zero_grad(set_to_none=False)` it finds zeros, which is not the same: momentum and weight decay still move the parameters, but nothing is learned from this backward.

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

```python
import torch

weight = torch.ones(1, requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=0.1, weight_decay=0.5)
for step in range(3):
    loss = (weight * 2).sum()
    loss.backward()
    optimizer.zero_grad(set_to_none=False)  # warning: GS502
    optimizer.step()
assert weight.item() < 1.0  # only weight decay was applied: the gradient of 2 never was
assert abs(weight.item() - 0.95**3) < 1e-6
```

A clear in an inner loop, with the step after it, throws away the gradients of all but the last iteration.

```python
import torch

weight = torch.zeros(1, requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=1.0)
for batch in range(2):
    for part in range(3):
        optimizer.zero_grad()  # warning: GS502
        (weight * 2).sum().backward()
    optimizer.step()
assert weight.item() == -4.0  # not -12: two parts in three were dropped
```

A step that comes before the backward has nothing to apply, and what the backward leaves is cleared before the next step.

```python
import torch

weight = torch.zeros(1, requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=1.0)
for step in range(3):
    optimizer.zero_grad()
    loss = (weight * 2).sum()
    optimizer.step()  # warning: GS502
    loss.backward()
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

Clearing the gradients of another network in between is fine.

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
Moving a backward in front of the step is unsafe: another step may have been meant.

See [Optimizer.zero_grad](https://docs.pytorch.org/docs/stable/generated/torch.optim.Optimizer.zero_grad.html) and a
[report](https://github.com/meta-pytorch/opacus/issues/93) of an accumulation that is cleared in each part.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding

if TYPE_CHECKING:
    from gradsight.fixes.draft import Drafts, FixCase


def judge(event: Event) -> Finding | None:
    message = "gradients are cleared before `step()` uses them: clear them before `backward()`"
    if event.names.get("accumulating"):
        message = "gradients are cleared in every iteration, so `step()` applies only the last ones: clear them after `step()`"
    elif event.names.get("is_step_first"):
        message = "this `step()` comes before `backward()`, and the gradients are cleared in between: nothing is learned"
    return make_finding(event, RULE.code, RULE.name, message, "warning")


def is_of_all(finding: Finding) -> bool:
    """Whether a step is said to get nothing at all, and not the last of several gradients or those of another part."""
    return not (finding.data.get("accumulating") or finding.data.get("of_a_part"))


def fix(case: FixCase) -> Drafts:
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
    excluded_by=lambda run, finding: is_of_all(finding) and run.has_only_useful_steps(),
)
