"""A layer that is created in `forward`.

## What goes wrong silently

A layer that is created in `forward` has new random weights in every call. No optimizer holds them, and the result differs each time.

```python
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(2, 3)

    def forward(self, x):
        head = nn.Linear(3, 1)  # warning: GS604
        return head(self.body(x))


net = Net()
x = torch.ones(4, 2)
assert not torch.equal(net(x), net(x))
```

## Use instead

Create the layer in `__init__`.

```python
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(2, 3)
        self.head = nn.Linear(3, 1)

    def forward(self, x):
        return self.head(self.body(x))


net = Net()
x = torch.ones(4, 2)
assert torch.equal(net(x), net(x))
```

## Not reported

Layers without parameters are fine, and so is a layer that is created once, when the first input is seen.

```python
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(2, 3)
        self.head = None

    def forward(self, x):
        hidden = nn.ReLU()(self.body(x))
        if self.head is None:
            self.head = nn.Linear(hidden.shape[1], 1)
        return self.head(hidden)


net = Net()
net(torch.ones(4, 2)).sum().backward()
```

## Fix safety

Moving the layer to `__init__` is unsafe: its sizes may not be known there.

See [Module](https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html) and a
[report](https://github.com/lafith/Mobile-UNet/issues/1) of a convolution that is made in every call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, named

if TYPE_CHECKING:
    from gradsight.fixes.draft import Drafts, FixCase


def judge(event: Event) -> Finding | None:
    message = f"{named(event, 'layer')} is created in every forward pass, so it never trains: create it in `__init__`"
    return make_finding(event, RULE.code, RULE.name, message, "warning")


def fix(case: FixCase) -> Drafts:
    from gradsight.fixes.modules import made_in_forward

    return made_in_forward(case)


RULE = Rule(
    "GS604",
    "layer-made-in-forward",
    ("layer-made-in-forward",),
    judge,
    __doc__,
    advice="create the layer once in `__init__`",
    fix=fix,
    observed_as=("layer-made-in-forward",),
    kin="parameters-untrained",
    excluded_by=lambda run, finding: run.is_all_in_optimizers(),
    needs_training=True,
)
