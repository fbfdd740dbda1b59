"""Parameters that were frozen are unfrozen again before anything was computed with them.

## What goes wrong silently

`requires_grad` is a flag of each parameter, and the last one who sets it decides. A loop over all parameters that switches
it on after a part was frozen undoes the freeze: the part learns, and nothing says so.

```python
import torch
from torch import nn

backbone, head = nn.Linear(4, 4), nn.Linear(4, 2)
model = nn.Sequential(backbone, head)
for parameter in backbone.parameters():
    parameter.requires_grad = False
for parameter in model.parameters():
    parameter.requires_grad = True  # warning: GS516
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
before = backbone.weight.detach().clone()
for batch in torch.ones(3, 8, 4):
    optimizer.zero_grad()
    model(batch).square().mean().backward()
    optimizer.step()
assert not torch.equal(backbone.weight, before)
```

`train()` switches every part of a model. Norm layers that were put into eval mode before it, to keep their statistics, are in
train mode again.

```python
import torch
from torch import nn

model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
for module in model.modules():
    if isinstance(module, nn.BatchNorm1d):
        module.eval()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model.train()  # warning: GS516
for batch in torch.rand(3, 8, 4):
    optimizer.zero_grad()
    model(batch).square().mean().backward()
    optimizer.step()
assert model[1].running_mean.any()  # the statistics have moved
```

`nn.Parameter` requires grad, whatever the flag of the tensor inside says.

```python
import torch
from torch import nn

anchor = torch.ones(3)
anchor.requires_grad = False
weight = nn.Parameter(anchor)  # warning: GS516
optimizer = torch.optim.SGD([weight], lr=0.1)
for batch in torch.ones(2, 3):
    optimizer.zero_grad()
    (weight * batch).sum().backward()
    optimizer.step()
assert weight.tolist() != [1.0, 1.0, 1.0]
```

## Use instead

Freeze last.

```python
import torch
from torch import nn

backbone, head = nn.Linear(4, 4), nn.Linear(4, 2)
model = nn.Sequential(backbone, head)
for parameter in model.parameters():
    parameter.requires_grad = True
for parameter in backbone.parameters():
    parameter.requires_grad = False
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
before = backbone.weight.detach().clone()
for batch in torch.ones(3, 8, 4):
    optimizer.zero_grad()
    model(batch).square().mean().backward()
    optimizer.step()
assert torch.equal(backbone.weight, before)
```

## Not reported

Freezing everything and unfreezing a part of it, and unfreezing what was used while it was frozen.

```python
import torch
from torch import nn

backbone, head = nn.Linear(4, 4), nn.Linear(4, 2)
model = nn.Sequential(backbone, head)
model.requires_grad_(False)
head.requires_grad_(True)
optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
for batch in torch.ones(3, 8, 4):
    optimizer.zero_grad()
    model(batch).square().mean().backward()
    optimizer.step()
backbone.requires_grad_(True)
```

## Fix safety

No fix is offered: which of the two was meant is for the author to say.

See [requires_grad](https://docs.pytorch.org/docs/stable/notes/autograd.html#setting-requires-grad) and a
[report of a freeze without effect](https://github.com/CSCYQJ/MICCAI23-ProtoContra-SFDA/issues/18).
"""

from __future__ import annotations

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, named


def judge(event: Event) -> Finding | None:
    if event.names.get("how") == "mode":
        message = "this puts frozen norm layers back into train mode: freeze them after it"
        return make_finding(event, RULE.code, RULE.name, message, "warning")
    if event.names.get("how") == "wrapped":
        message = "`nn.Parameter` requires grad again: pass `requires_grad=False` to it"
        return make_finding(event, RULE.code, RULE.name, message, "warning")
    message = f"this unfreezes {named(event, 'target', 'what was frozen before')}, so the freeze has no effect: freeze last"
    return make_finding(event, RULE.code, RULE.name, message, "warning")


RULE = Rule(
    "GS516",
    "freeze-undone",
    ("freeze-undone",),
    judge,
    __doc__,
    advice="freeze last, or unfreeze only what should learn",
    observed_as=("freeze-undone",),
)
