"""An update that only gives a new meaning to the loop's own name: the parameter does not move.

## What goes wrong silently

The line `p = p - lr * p.grad` computes a new tensor and calls it `p`. The module still holds the old one, and the next iteration
binds `p` to the next parameter.

```python
import torch
from torch import nn

net = nn.Linear(2, 1)
before = net.weight.detach().clone()
for batch in torch.ones(3, 4, 2):
    net.zero_grad()
    net(batch).sum().backward()
    for p in net.parameters():
        p = p - 0.1 * p.grad  # warning: GS515
assert torch.equal(net.weight, before)
```

The same happens under `no_grad`, and with names beside it.

```python
import torch
from torch import nn

net = nn.Linear(2, 1)
before = net.weight.detach().clone()
net(torch.ones(4, 2)).sum().backward()
with torch.no_grad():
    for name, weight in net.named_parameters():
        weight = weight - weight.grad * 0.1  # warning: GS515
assert torch.equal(net.weight, before)
```

A tensor that is copied onto itself stays as it is, too. Here the buffers of the average were to come from the model that
is trained.

```python
import torch
from torch import nn

model, average = nn.BatchNorm1d(2), nn.BatchNorm1d(2)
model(torch.ones(4, 2))
latest = dict(average.named_buffers())
for name, buffer in average.named_buffers():
    buffer.copy_(latest[name])  # warning: GS515
assert not torch.equal(average.running_mean, model.running_mean)
```

So does the average of a tensor with itself.

```python
import torch
from torch import nn

model, target = nn.Linear(2, 1), nn.Linear(2, 1)
before = target.weight.detach().clone()
with torch.no_grad():
    for slow, fast in zip(target.parameters(), model.parameters()):
        slow.copy_(0.9 * slow + 0.1 * slow)  # warning: GS515
assert torch.allclose(target.weight, before)
```

## Use instead

Write to the parameter in place, under `no_grad`.

```python
import torch
from torch import nn

net = nn.Linear(2, 1)
before = net.weight.detach().clone()
for batch in torch.ones(3, 4, 2):
    net.zero_grad()
    net(batch).sum().backward()
    with torch.no_grad():
        for p in net.parameters():
            p -= 0.1 * p.grad
assert not torch.equal(net.weight, before)
```

## Not reported

New tensors that are kept, as in meta-learning: they are what the next forward pass uses.

```python
import torch
from torch import nn

net = nn.Linear(2, 1)
net(torch.ones(4, 2)).sum().backward()
adapted = []
for p in net.parameters():
    p = p - 0.1 * p.grad
    adapted.append(p)
weight, bias = adapted
after = nn.functional.linear(torch.ones(4, 2), weight, bias)
```

## Fix safety

No fix is offered: whether the update is to stand under `no_grad` alone or the whole loop is for the author to say.

See [no_grad](https://docs.pytorch.org/docs/stable/generated/torch.no_grad.html) and a
[report](https://github.com/lucidrains/ema-pytorch/issues/8).
"""

from __future__ import annotations

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, text


def judge(event: Event) -> Finding | None:
    target = text(event, "target")
    if event.names.get("average"):
        message = f"the average of {target} with itself is {target}: one of the two was to be another tensor"
        return make_finding(event, RULE.code, RULE.name, message, "warning")
    if event.names.get("itself"):
        message = f"this copies {target} onto itself, so nothing changes: copy from the other model"
        return make_finding(event, RULE.code, RULE.name, message, "warning")
    if event.names.get("gradient"):
        message = f"this only rebinds {target}, so the gradient stays as it was: write to it in place"
        return make_finding(event, RULE.code, RULE.name, message, "warning")
    message = f"this only rebinds {target}, so the parameter never changes: write to it in place"
    return make_finding(event, RULE.code, RULE.name, message, "warning")


RULE = Rule(
    "GS515",
    "update-lost",
    ("update-lost",),
    judge,
    __doc__,
    advice="write to the parameter in place, under `no_grad`",
    observed_as=("update-lost",),
)
