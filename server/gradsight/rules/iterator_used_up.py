"""An iterator of parameters is used a second time.

## What goes wrong silently

`net.parameters()`, `filter(...)` and generator expressions can be iterated once. The second loop over them does nothing: no gradient is clipped, no weight decays, and torch does not report it.

```python
import torch
from torch import nn

net = nn.Linear(2, 1)
parameters = net.parameters()
optimizer = torch.optim.SGD(parameters, lr=0.1)
net(torch.full((4, 2), 100.0)).sum().backward()
for parameter in parameters:  # warning: GS510
    parameter.grad.clamp_(-1, 1)
assert net.weight.grad.tolist() == [[400.0, 400.0]]
```

An optimizer refuses such an iterator, because it finds no parameter in it.

```python
import torch
from torch import nn

net = nn.Linear(2, 1)
trainable = (p for p in net.parameters() if p.requires_grad)
print(sum(p.numel() for p in trainable))
optimizer = torch.optim.SGD(trainable, lr=0.1)  # error: GS510  # raises: empty parameter list
```

## Use instead

Store a list.

```python
import torch
from torch import nn

net = nn.Linear(2, 1)
parameters = list(net.parameters())
optimizer = torch.optim.SGD(parameters, lr=0.1)
net(torch.full((4, 2), 100.0)).sum().backward()
for parameter in parameters:
    parameter.grad.clamp_(-1, 1)
assert net.weight.grad.tolist() == [[1.0, 1.0]]
```

## Not reported

Asking for a new iterator each time is fine, and so is leaving one before its end.

```python
import torch
from torch import nn

net = nn.Linear(2, 1)
device = next(net.parameters()).device
print(sum(p.numel() for p in net.parameters()))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
net(torch.ones(4, 2, device=device)).sum().backward()
for parameter in net.parameters():
    parameter.grad.clamp_(-1, 1)
optimizer.step()
assert net.weight.grad.tolist() == [[1.0, 1.0]]
```

## Fix safety

Storing a list is unsafe: the code that did nothing so far then runs.

See [Module.parameters](https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.parameters) and a
[report](https://github.com/pytorch/torchtitan/pull/1258) of a norm that uses up the parameters to clip.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, named

if TYPE_CHECKING:
    from gradsight.fixes.draft import Drafts, FixCase


def judge(event: Event) -> Finding | None:
    message = (
        f"{named(event, 'target', 'this iterator')} is an iterator that is already used up: make it a list"
    )
    return make_finding(
        event, RULE.code, RULE.name, message, "error" if event.names.get("refused") else "warning"
    )


def fix(case: FixCase) -> Drafts:
    from gradsight.fixes.training import iterator_used_up

    return iterator_used_up(case)


RULE = Rule(
    "GS510",
    "iterator-used-up",
    ("iterator-used-up",),
    judge,
    __doc__,
    advice="store a list: `params = list(net.parameters())`",
    fix=fix,
    observed_as=("iterator-used-up",),
)
