"""A frozen parameter that its optimizer still moves.

## What goes wrong silently

`requires_grad = False` stops new gradients. An optimizer that holds the parameter still moves it as long as `.grad` is not `None`: by the old gradient, by momentum, by weight decay.

```python
import torch
from torch import nn

net = nn.Linear(2, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
net(torch.ones(4, 2)).pow(2).mean().backward()
optimizer.step()
net.weight.requires_grad = False  # warning: GS509
before = net.weight.detach().clone()
net(torch.ones(4, 2)).pow(2).mean().backward()
optimizer.step()
assert not torch.equal(net.weight, before)
```

## Use instead

Set the gradient to `None` as well: a step skips parameters without one.

```python
import torch
from torch import nn

net = nn.Linear(2, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
net(torch.ones(4, 2)).pow(2).mean().backward()
optimizer.step()
net.weight.requires_grad = False
net.weight.grad = None
before = net.weight.detach().clone()
net(torch.ones(4, 2)).pow(2).mean().backward()
optimizer.step()
assert torch.equal(net.weight, before)
```

## Not reported

A parameter that is frozen before the first backward has no gradient to apply, and neither has one whose gradient is cleared in every step.

```python
import torch
from torch import nn

net = nn.Linear(2, 1)
net.weight.requires_grad = False
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=0.1)
before = net.weight.detach().clone()
net(torch.ones(4, 2)).pow(2).mean().backward()
optimizer.step()
assert torch.equal(net.weight, before)
```

```python
import torch
from torch import nn

net = nn.Linear(2, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
for epoch in range(3):
    if epoch == 1:
        net.weight.requires_grad = False
        before = net.weight.detach().clone()
    optimizer.zero_grad()
    net(torch.ones(4, 2)).pow(2).mean().backward()
    optimizer.step()
assert torch.equal(net.weight, before)
```

## Fix safety

Setting `.grad` to `None` as well is safe: the parameter stays where it was frozen.

See [Setting requires_grad](https://docs.pytorch.org/docs/stable/notes/autograd.html#setting-requires-grad) and a
[report](https://github.com/facebookresearch/fairseq/issues/4702) of frozen layers that still change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, named

if TYPE_CHECKING:
    from gradsight.fixes.draft import Drafts, FixCase


def judge(event: Event) -> Finding | None:
    message = f"{named(event, 'parameter', 'the parameter')} is frozen, but the optimizer still moves it: leave it out"
    if event.names.get("zeroed"):
        message = f"a zero gradient does not freeze {named(event, 'parameter', 'the parameter')}: momentum or weight decay still moves it"
    return make_finding(event, RULE.code, RULE.name, message, "warning")


def fix(case: FixCase) -> Drafts:
    from gradsight.fixes.training import frozen_moves

    return frozen_moves(case)


RULE = Rule(
    "GS509",
    "frozen-still-moves",
    ("frozen-still-moves",),
    judge,
    __doc__,
    advice="leave frozen parameters out of the optimizer",
    fix=fix,
    observed_as=("frozen-still-moves",),
    needs_training=True,
)
