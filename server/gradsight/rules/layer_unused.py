"""A layer that is made, given to the optimizer, and never used.

## What goes wrong silently

A layer that forward does not reach has no gradient, and the optimizer skips it: the model is smaller than it looks. Most
often another layer is used twice instead.

```python
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.second = nn.Linear(4, 4)  # warning: GS517

    def forward(self, x):
        return self.first(torch.relu(self.first(x)))


net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for batch in torch.ones(3, 8, 4):
    optimizer.zero_grad()
    net(batch).square().mean().backward()
    optimizer.step()
assert net.second.weight.grad is None
```

`DistributedDataParallel` expects a gradient for every parameter. It raises in the next forward pass, unless it was made
with `find_unused_parameters=True`, so the finding is an error. That is so too where each iteration uses another part of
the model, one expert of several for example.

## Use instead

Use the layer, or do not make it.

```python
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.second = nn.Linear(4, 4)

    def forward(self, x):
        return self.second(torch.relu(self.first(x)))


net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for batch in torch.ones(3, 8, 4):
    optimizer.zero_grad()
    net(batch).square().mean().backward()
    optimizer.step()
assert net.second.weight.grad is not None
```

## Not reported

A layer that is used on some path, one that is frozen, and one whose module was given to code that is not known. Where a
method of the class reads the layer, and this program does not get there, the finding is an information and no warning.

```python
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, deep):
        super().__init__()
        self.deep = deep
        self.first = nn.Linear(4, 4)
        self.second = nn.Linear(4, 4)

    def forward(self, x):
        h = torch.relu(self.first(x))
        return self.second(h) if self.deep else h


net = Net(deep=True)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for batch in torch.ones(3, 8, 4):
    optimizer.zero_grad()
    net(batch).square().mean().backward()
    optimizer.step()
```

## Fix safety

No fix is offered: whether the layer is to be used or to go is for the author to say.

See [DistributedDataParallel](https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html)
and a [request to name such parameters](https://github.com/Lightning-AI/pytorch-lightning/issues/17212).
"""

from __future__ import annotations

from gradsight.model.events import Event
from gradsight.model.finding import Finding, Severity
from gradsight.model.rule import Rule, make_finding, named


def judge(event: Event) -> Finding | None:
    name, how = named(event, "target"), event.names.get("how")
    message = f"{name} is never used, so it gets no gradient: use it or remove it"
    severity: Severity = "warning"
    if how == "waited":
        message = f"{name} is never used, and `DistributedDataParallel` waits for its gradient: the next forward raises"
        severity = "error"
    elif how == "at times":
        message = f"`DistributedDataParallel` waits for the gradient of {name}, which not every iteration uses: the next forward raises"
        severity = "error"
    elif how == "mentioned":
        message = f"{name} is not used in this training loop, so its parameters get no gradient"
        severity = "info"
    return make_finding(event, RULE.code, RULE.name, message, severity)


RULE = Rule(
    "GS517",
    "layer-unused",
    ("layer-unused",),
    judge,
    __doc__,
    advice="use the layer in `forward`, or remove it",
    needs_training=True,
    observed_as=("layer-unused",),
)
