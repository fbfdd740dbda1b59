"""`eval()` is never followed by `train()`.

## What goes wrong silently

`eval()` lasts until `train()` is called. After an evaluation inside the training loop, dropout does nothing and batch normalisation uses stale statistics for the rest of the training.

```python
import torch
from torch import nn

net = nn.Sequential(nn.Linear(2, 3), nn.Dropout(0.5), nn.Linear(3, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.ones(4, 2)
for epoch in range(2):
    optimizer.zero_grad()
    net(x).pow(2).mean().backward()
    optimizer.step()
    net.eval()  # warning: GS505
    with torch.no_grad():
        print(net(x).mean().item())
assert not net.training
```

## Use instead

Call `train()` where the next epoch begins.

```python
import torch
from torch import nn

net = nn.Sequential(nn.Linear(2, 3), nn.Dropout(0.5), nn.Linear(3, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.ones(4, 2)
for epoch in range(2):
    net.train()
    optimizer.zero_grad()
    net(x).pow(2).mean().backward()
    optimizer.step()
    net.eval()
    with torch.no_grad():
        print(net(x).mean().item())
```

## Not reported

An evaluation after training is fine, and so is a frozen part that stays in eval mode on purpose.

```python
import torch
from torch import nn

net = nn.Sequential(nn.Linear(2, 3), nn.Dropout(0.5), nn.Linear(3, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.ones(4, 2)
for epoch in range(2):
    optimizer.zero_grad()
    net(x).pow(2).mean().backward()
    optimizer.step()
net.eval()
with torch.no_grad():
    print(net(x).mean().item())
```

```python
import torch
from torch import nn

backbone = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
head = nn.Linear(3, 1)
backbone.eval()
optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
for epoch in range(2):
    optimizer.zero_grad()
    head(backbone(torch.ones(4, 2))).pow(2).mean().backward()
    optimizer.step()
```

## Fix safety

Calling `train()` is unsafe: dropout and batch statistics act again, and a part of the model may be meant to stay in eval mode.

See [Module.eval](https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.eval) and a
[report](https://github.com/ThilinaRajapakse/simpletransformers/issues/941) of an evaluation in the middle of an epoch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, named

if TYPE_CHECKING:
    from gradsight.fixes.draft import Drafts, FixCase


def judge(event: Event) -> Finding | None:
    message = f"{named(event, 'target', 'the model')} stays in eval mode from here on while it trains: call `train()` again"
    return make_finding(event, RULE.code, RULE.name, message, "warning")


def fix(case: FixCase) -> Drafts:
    from gradsight.fixes.training import eval_left_on

    return eval_left_on(case)


RULE = Rule(
    "GS505",
    "eval-left-on",
    ("eval-left-on",),
    judge,
    __doc__,
    advice="call `train()` again after the evaluation",
    fix=fix,
    observed_as=("eval-left-on",),
    needs_training=True,
)
