"""One module stands in several places of a row.

## What goes wrong silently

`[layer] * 3` is a list of three names for one object, and so is a comprehension over a layer that was made before. The row is as
deep as it should be, and all of its places have the same weights: their gradients add up in one set of parameters.

```python
from torch import nn

layer = nn.Linear(4, 4)
blocks = nn.ModuleList([layer] * 3)  # warning: GS608
assert len(list(blocks.parameters())) == 2  # and not 6
```

```python
from torch import nn


def stack(layer, depth):
    return nn.Sequential(*[layer for _ in range(depth)])  # warning: GS608


net = stack(nn.Linear(4, 4), 3)
assert net[0].weight is net[2].weight
```

```python
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        block = nn.Linear(4, 4)
        rows = []
        for _ in range(2):
            rows.append(nn.ReLU())
            rows.append(block)
        self.rows = nn.Sequential(*rows)  # warning: GS608

    def forward(self, x):
        return self.rows(x)


net = Net()
net(torch.ones(2, 4)).sum().backward()
assert sum(p.numel() for p in net.parameters()) == 20
```

## Use instead

Make a layer for each place, or copy the one that there is.

```python
import copy

from torch import nn

blocks = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))
layer = nn.Linear(4, 4)
copies = nn.ModuleList(copy.deepcopy(layer) for _ in range(3))
assert copies[0].weight is not copies[2].weight
```

## Not reported

A layer without parameters can stand in many places, and what is written out place by place is shared on purpose.

```python
from torch import nn

act = nn.ReLU()
acts = nn.ModuleList([act] * 3)
shared = nn.Linear(4, 4)
net = nn.Sequential(shared, nn.ReLU(), shared)
```

So is a module that its owner also has under a name of its own.

```python
from torch import nn


class Heads(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.classify = nn.Linear(4, 2)
        self.heads = nn.ModuleList([self.classify for _ in range(depth)])


heads = Heads(3)
```

## Fix safety

No fix is offered: copies of one layer begin with the same weights, and layers that are made for each place do not.

See [ModuleList](https://docs.pytorch.org/docs/stable/generated/torch.nn.ModuleList.html) and a
[report](https://github.com/yaoppeng/U-Net_v2/issues/10) of four convolutions that are one.
"""

from __future__ import annotations

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, named


def judge(event: Event) -> Finding | None:
    message = f"{named(event, 'layer')} stands in every place of this row, so all share its weights: make one for each"
    return make_finding(event, RULE.code, RULE.name, message, "warning")


RULE = Rule(
    "GS608",
    "module-repeated",
    ("module-repeated",),
    judge,
    __doc__,
    advice="make a layer for each place: `nn.ModuleList(nn.Linear(4, 4) for _ in range(3))`",
    observed_as=("module-repeated",),
)
