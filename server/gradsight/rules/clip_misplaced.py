"""Gradients that are clipped before all of them are there, or clipped or changed after the step.

## What goes wrong silently

Clipping changes what is in `.grad` at that moment. After `step()` the gradients have been applied in full, and the next
`zero_grad()` throws the clipped ones away: one exploding batch ruins the weights although the program clips.

```python
import torch
from torch import nn

net = nn.Linear(2, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=1.0)
before = net.weight.detach().clone()
for batch in 1000 * torch.ones(2, 4, 2):
    optimizer.zero_grad()
    net(batch).mean().backward()
    optimizer.step()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)  # warning: GS513
assert (net.weight - before).norm() > 1000
```

Before `backward()` there is nothing to clip: the gradients were cleared.

```python
import torch
from torch import nn

net = nn.Linear(2, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=1.0)
before = net.weight.detach().clone()
for batch in 1000 * torch.ones(2, 4, 2):
    loss = net(batch).mean()
    optimizer.zero_grad()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)  # warning: GS513
    loss.backward()
    optimizer.step()
assert (net.weight - before).norm() > 1000
```

Where gradients are accumulated, a clip after each backward clips the sum of all so far, again and again: the early batches
are scaled down by what the later ones bring.

```python
import torch
from torch import nn

net = nn.Linear(2, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=1.0)
for number, batch in enumerate(torch.eye(2).repeat(2, 1)):
    (10 * net(batch) / 2).backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)  # warning: GS513
    if (number + 1) % 2 == 0:
        optimizer.step()
        first, second = net.weight.grad[0]
        optimizer.zero_grad()
assert second > 1.2 * first
```

Any other change of a gradient after the step is lost in the same way: a penalty, a decay, noise.

```python
import torch
from torch import nn

net = nn.Linear(2, 1, bias=False)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
before = net.weight.detach().clone()
for batch in torch.zeros(2, 4, 2):
    net(batch).mean().backward()
    optimizer.step()
    net.weight.grad.add_(0.1 * torch.sign(net.weight.detach()))  # warning: GS513
    optimizer.zero_grad()
assert torch.equal(net.weight, before)
```

## Use instead

Clip between `backward()` and `step()`.

```python
import torch
from torch import nn

net = nn.Linear(2, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=1.0)
before = net.weight.detach().clone()
for batch in 1000 * torch.ones(2, 4, 2):
    optimizer.zero_grad()
    net(batch).mean().backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    optimizer.step()
assert (net.weight - before).norm() < 3
```

## Not reported

A norm that is only measured, with an endless limit; a clip at the start of a round whose gradients are still to be applied.

```python
import torch
from torch import nn

net = nn.Linear(2, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
norms = []
for batch in torch.ones(3, 4, 2):
    optimizer.zero_grad()
    net(batch).mean().backward()
    optimizer.step()
    norms.append(nn.utils.clip_grad_norm_(net.parameters(), float("inf")))
```

## Fix safety

No fix is offered: other statements may stand between the step and where the clip belongs.

See [clip_grad_norm_](https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.clip_grad_norm_.html) and a
[report of a clip after the step](https://github.com/VGraphRNN/VGRNN/issues/4).
"""

from __future__ import annotations

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding


def judge(event: Event) -> Finding | None:
    message = "gradients are clipped before they exist: clip between `backward()` and `step()`"
    if event.names.get("how") == "partial":
        message = "gradients are clipped before all of them are there: clip once, right before `step()`"
    if event.names.get("how") == "edited":
        message = (
            "the gradient is changed after `step()` has used it: change it between `backward()` and `step()`"
        )
    if event.names.get("how") == "late":
        message = "gradients are clipped after `step()` has used them: clip between `backward()` and `step()`"
    return make_finding(event, RULE.code, RULE.name, message, "warning")


RULE = Rule(
    "GS513",
    "clip-misplaced",
    ("clip-misplaced",),
    judge,
    __doc__,
    advice="clip between `backward()` and `step()`",
    needs_training=True,
    observed_as=("clip-misplaced",),
)
