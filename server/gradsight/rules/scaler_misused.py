"""A gradient scaler is bypassed, or never updated.

## What goes wrong silently

With a `GradScaler` the gradients are multiplied by the scale, 65536 at the start. `optimizer.step()` applies them as they
are: the step is 65536 times too large. Only `scaler.step(optimizer)` divides the scale out, and skips a step whose gradients
are not finite.

```python
import torch
from torch import nn

net = nn.Linear(2, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu")
before = net.weight.detach().clone()
scaler.scale(net(torch.ones(4, 2)).mean()).backward()
optimizer.step()  # warning: GS511
assert (net.weight - before).norm() > 1000
```

After `scaler.step(optimizer)` comes `scaler.update()`. Without it torch refuses the next step.

```python
import torch
from torch import nn

net = nn.Linear(2, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu")
for x in torch.ones(3, 4, 2):
    optimizer.zero_grad()
    scaler.scale(net(x).mean()).backward()
    scaler.step(optimizer)  # error: GS511  # raises: has already been called since the last update
```

Nor may gradients be unscaled twice between two updates, as happens where they are clipped after each backward of an
accumulation.

```python
import torch
from torch import nn

net = nn.Linear(2, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu")
for number, x in enumerate(torch.ones(4, 4, 2)):
    scaler.scale(net(x).mean()).backward()
    scaler.unscale_(optimizer)  # error: GS511  # raises: unscale_() has already been called
    if number % 2:
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
```

Who forgets to scale the loss has the opposite: a scaler that has scaled nothing refuses to step, and one that has scaled another
loss divides gradients by a scale that they never had.

```python
import torch
from torch import nn

net = nn.Linear(2, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu")
net(torch.ones(4, 2)).mean().backward()
scaler.step(optimizer)  # error: GS511  # raises: Attempted step but _scale is None
```

```python
import torch
from torch import nn

first, second = nn.Linear(2, 1), nn.Linear(2, 1)
optimizers = [torch.optim.SGD(net.parameters(), lr=0.1) for net in (first, second)]
scaler = torch.amp.GradScaler("cpu")
before = second.weight.detach().clone()
scaler.scale(first(torch.ones(4, 2)).mean()).backward()
second(torch.ones(4, 2)).mean().backward()
scaler.step(optimizers[0])
scaler.step(optimizers[1])  # warning: GS511
assert (second.weight - before).abs().max() < 1e-5
```

## Use instead

Step through the scaler, and update it.

```python
import torch
from torch import nn

net = nn.Linear(2, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu")
before = net.weight.detach().clone()
scaler.scale(net(torch.ones(4, 2)).mean()).backward()
scaler.step(optimizer)
scaler.update()
assert (net.weight - before).norm() < 1
```

## Not reported

A step after `unscale_` is fine, and so are a scaler that is switched off and two optimizers with one update after both.

```python
import torch
from torch import nn

first, second = nn.Linear(2, 2), nn.Linear(2, 1)
optimizers = [torch.optim.SGD(net.parameters(), lr=0.1) for net in (first, second)]
scaler = torch.amp.GradScaler("cpu")
for x in torch.ones(3, 4, 2):
    for optimizer in optimizers:
        optimizer.zero_grad()
    scaler.scale(second(first(x)).mean()).backward()
    scaler.step(optimizers[0])
    scaler.step(optimizers[1])
    scaler.update()
```

## Fix safety

No fix is offered: where the update belongs depends on the loop.

See [Gradient scaling](https://docs.pytorch.org/docs/stable/amp.html#gradient-scaling) and a
[report](https://github.com/Azure/MS-AMP/pull/45) of a scaler that is never updated.
"""

from __future__ import annotations

from dataclasses import replace

from gradsight.model.events import Event
from gradsight.model.finding import Finding, Severity
from gradsight.model.rule import Rule, make_finding


def judge(event: Event) -> Finding | None:
    severity: Severity = "warning"
    message = "this step applies scaled gradients: call `scaler.step(optimizer)` instead"
    if event.names.get("how") == "update":
        message = (
            "`scaler.step` is called again without `scaler.update()`, which raises: update after each step"
        )
        severity = "error"
    if event.names.get("how") == "unscale":
        message = (
            "`unscale_` is called again before `scaler.update()`, which raises: unscale right before the step"
        )
        severity = "error"
    if event.names.get("how") == "refused":
        message = "the scaler steps before it has scaled any loss, which raises: call `scaler.scale(loss).backward()`"
        severity = "error"
    if event.names.get("how") == "nothing":
        message = "no parameter of this optimizer has a gradient, and then `scaler.step` raises: step only after its backward"
        severity = "error"
    if event.names.get("how") == "unscaled":
        message = "these gradients were never scaled, and the scaler divides them by its scale: call `scaler.scale(loss).backward()`"
    finding = make_finding(event, RULE.code, RULE.name, message, severity)
    if event.assumption and event.alternatives < 1:
        # Who makes a scaler means it to scale: what is assumed is the device that the program is written for.
        return replace(finding, severity="warning")
    return finding


RULE = Rule(
    "GS511",
    "scaler-misused",
    ("scaler-misused",),
    judge,
    __doc__,
    advice="step through the scaler, then call `scaler.update()`",
    observed_as=("scaler-misused",),
)
