"""`deepcopy` of a tensor that is not a leaf.

## Why torch refuses

A deep copy of a computed tensor would need a copy of its whole graph. Only leaves are supported; a module that has a computed tensor as an attribute cannot be copied either.

```python
import copy

import torch

x = torch.ones(3, requires_grad=True)
y = x * 2
kept = copy.deepcopy(y)  # error: GS306  # raises: Only Tensors created explicitly by the user
```

```python
import copy

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 1)
        self.last = None

    def forward(self, x):
        self.last = self.layer(x)
        return self.last


net = Net()
net(torch.ones(4, 2)).sum().backward()
best = copy.deepcopy(net)  # error: GS306  # raises: Only Tensors created explicitly by the user
```

## Use instead

`clone()` copies the value and keeps the graph; `detach().clone()` copies the value alone.

```python
import copy

import torch

x = torch.ones(3, requires_grad=True)
y = x * 2
kept = y.detach().clone()
```

## Not reported

Leaves, parameters and modules made of them can be copied.

```python
import copy

import torch
from torch import nn

net = nn.Linear(2, 1)
net(torch.ones(4, 2)).sum().backward()
best = copy.deepcopy(net)
assert best.weight.is_leaf
```

## Fix safety

`.detach().clone()` is unsafe: the copy has the value but no graph.

See [Tensor.is_leaf](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.is_leaf.html) and a
[report](https://github.com/pytorch/pytorch/issues/54580) of a model that is copied after a forward pass.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, named
from gradsight.model.torch_messages import alone

if TYPE_CHECKING:
    from gradsight.fixes.draft import Drafts, FixCase


def judge(event: Event) -> Finding | None:
    message = f"{named(event, 'target', 'a tensor in it')} is not a leaf, so `deepcopy` raises: copy it with `detach().clone()`"
    return make_finding(event, RULE.code, RULE.name, message, "error")


def fix(case: FixCase) -> Drafts:
    from gradsight.fixes.gradients import non_leaf_copied

    return non_leaf_copied(case)


RULE = Rule(
    "GS306",
    "deepcopy-of-non-leaf",
    ("non-leaf-copied",),
    judge,
    __doc__,
    advice="copy with `.detach().clone()`",
    fix=fix,
    messages=(
        alone(
            r"Only Tensors created explicitly by the user",
            "A tensor that is part of a graph cannot be deep-copied; copy a leaf, or a detached clone.",
        ),
    ),
    observed_as=("non-leaf-copied",),
)
