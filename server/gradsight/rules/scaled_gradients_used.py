"""Clipping or reading gradients before `unscale_`.

## What goes wrong silently

With a `GradScaler` the gradients are multiplied by the scale, 65536 at the start. Clipping them to a norm before `unscale_` leaves almost nothing after the scale is divided out again.

```python
import torch
from torch import nn

net = nn.Linear(2, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=1.0)
scaler = torch.amp.GradScaler("cpu")
before = net.weight.detach().clone()
loss = (net(torch.ones(4, 2)) - 10).pow(2).mean()
scaler.scale(loss).backward()
nn.utils.clip_grad_norm_(net.parameters(), 1.0)  # warning: GS507
scaler.step(optimizer)
scaler.update()
assert (net.weight - before).norm() < 0.001  # a step of norm 1 was meant
```

## Use instead

Divide the scale out first.

```python
import torch
from torch import nn

net = nn.Linear(2, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=1.0)
scaler = torch.amp.GradScaler("cpu")
before = net.weight.detach().clone()
loss = (net(torch.ones(4, 2)) - 10).pow(2).mean()
scaler.scale(loss).backward()
scaler.unscale_(optimizer)
nn.utils.clip_grad_norm_(net.parameters(), 1.0)
scaler.step(optimizer)
scaler.update()
assert (net.weight - before).norm() > 0.5
```

## Not reported

Clipping without a scaler is fine, and so is a scaler without clipping.

```python
import torch
from torch import nn

net = nn.Linear(2, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=1.0)
scaler = torch.amp.GradScaler("cpu")
scaler.scale(net(torch.ones(4, 2)).pow(2).mean()).backward()
scaler.step(optimizer)
scaler.update()
```

## Fix safety

`scaler.unscale_(optimizer)` before the clipping is safe: the clipping then sees the unscaled gradients.

See [Working with unscaled gradients](https://docs.pytorch.org/docs/stable/notes/amp_examples.html#working-with-unscaled-gradients) and a
[report](https://github.com/milesial/Pytorch-UNet/issues/468) of gradients that are clipped while they are scaled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding

if TYPE_CHECKING:
    from gradsight.fixes.draft import Drafts, FixCase


def judge(event: Event) -> Finding | None:
    message = "gradients are still scaled here: call `scaler.unscale_(optimizer)` before clipping"
    return make_finding(event, RULE.code, RULE.name, message, "warning")


def fix(case: FixCase) -> Drafts:
    from gradsight.fixes.training import scaled_used

    return scaled_used(case)


RULE = Rule(
    "GS507",
    "scaled-gradients-used",
    ("scaled-gradients-used",),
    judge,
    __doc__,
    advice="call `scaler.unscale_(optimizer)` first",
    fix=fix,
    observed_as=("scaled-gradients-used",),
)
