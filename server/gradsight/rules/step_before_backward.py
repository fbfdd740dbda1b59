"""A parameter is updated between a forward pass and its backward.

## Why torch refuses

A layer saves its weight for backward. `optimizer.step()` writes the weight in place, so a backward through the older forward pass finds another version.

```python
import torch
from torch import nn

net = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.randn(4, 2)
first = net(x).mean()
second = net(x).pow(2).mean()
first.backward()
optimizer.step()  # error: GS106
second.backward()  # raises: modified by an inplace operation
```

An update by hand does the same.

```python
import torch

weight = torch.ones(3, requires_grad=True)
first = (weight * 2).sum()
second = (weight * weight).sum()
first.backward()
with torch.no_grad():
    weight -= 0.1 * weight.grad  # error: GS106
second.backward()  # raises: modified by an inplace operation
```

With `fused=True` the step does not raise the version: torch does not notice, and the gradient is computed with the new weight.

```python
import torch

weight = torch.ones(3, requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=0.5, fused=True)
first = (weight * 2).sum()
second = (weight * weight).sum()
first.backward()
optimizer.step()  # warning: GS106
optimizer.zero_grad()
second.backward()
assert weight.grad.tolist() == [0.0, 0.0, 0.0]  # the gradient of second was 2
```

## Use instead

Run all backward passes first, then step.

```python
import torch
from torch import nn

net = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.randn(4, 2)
first = net(x).mean()
second = net(x).pow(2).mean()
first.backward()
second.backward()
optimizer.step()
```

Or compute the second loss after the step.

```python
import torch
from torch import nn

net = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.randn(4, 2)
net(x).mean().backward()
optimizer.step()
optimizer.zero_grad()
net(x).pow(2).mean().backward()
optimizer.step()
```

## Not reported

A single layer on plain input does not save its weight, because no gradient has to flow through it to anything before.

```python
import torch
from torch import nn

net = nn.Linear(2, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.randn(4, 2)
first = net(x).mean()
second = net(x).mean()
first.backward()
optimizer.step()
second.backward()
```

A step of an optimizer that holds other parameters than the later backward needs is fine.

```python
import torch
from torch import nn

actor, critic = nn.Linear(2, 2), nn.Linear(2, 1)
actor_optimizer = torch.optim.SGD(actor.parameters(), lr=0.1)
x = torch.randn(4, 2)
actor_loss = actor(x).pow(2).mean()
critic_loss = critic(x).pow(2).mean()
actor_loss.backward()
actor_optimizer.step()
critic_loss.backward()
```

## Fix safety

Moving the step after the last backward is unsafe: both gradients are then applied in one step.

See [In-place correctness checks](https://docs.pytorch.org/docs/stable/notes/autograd.html#in-place-correctness-checks) and a
[report](https://github.com/rail-berkeley/rlkit/pull/109) of critics that are stepped before the policy's backward.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, named
from gradsight.model.torch_messages import MODIFIED_IN_PLACE, Cause

if TYPE_CHECKING:
    from gradsight.fixes.draft import Drafts, FixCase


def judge(event: Event) -> Finding | None:
    if not (bool(event.names.get("by_step")) or _is_update(event)):
        return None
    message = _message(event)
    return make_finding(
        event, RULE.code, RULE.name, message, "warning" if event.kind == "saved-changed-silently" else "error"
    )


def _is_update(event: Event) -> bool:
    """A parameter that is updated by hand under no_grad."""
    return bool(event.names.get("is_parameter")) and event.names.get("mode") == "no_grad"


def _message(event: Event) -> str:
    subject, saver = named(event, "target", "a parameter"), named(event, "saver")
    if event.kind == "saved-changed-silently":
        return f"this step silently changes {subject}, which {saver} saved: the later `backward()` gives wrong gradients"
    return (
        f"this step changes {subject}, which {saver} saved for a later `backward()`: call `step()` after it"
    )


def fix(case: FixCase) -> Drafts:
    from gradsight.fixes.inplace import step_before_backward

    return step_before_backward(case)


RULE = Rule(
    "GS106",
    "step-before-backward",
    ("saved-overwritten", "saved-changed-silently"),
    judge,
    __doc__,
    advice="call `backward()` before `step()`, or compute the second loss again after the step",
    fix=fix,
    silences=("GS105", "GS107", "GS190"),
    is_bad_write=True,
    spoils_saved=True,
    is_drawable=True,
    torch_raises=True,
    messages=(Cause(MODIFIED_IN_PLACE, rank=2),),
    observed_as=("parameter-stepped",),
    stands_on="write",
)
