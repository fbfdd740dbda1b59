"""Grad mode is switched off and not switched on again.

## What goes wrong silently

`torch.set_grad_enabled(False)`, called as a function, lasts until it is called again. Everything after it is computed without a graph.

```python
import torch
from torch import nn

net = nn.Linear(2, 1)


def evaluate(x):
    torch.set_grad_enabled(False)  # warning: GS210
    return net(x).mean().item()


evaluate(torch.ones(4, 2))
loss = net(torch.ones(4, 2)).pow(2).mean()
assert not loss.requires_grad
```

An early exit leaves it off as well.

```python
import torch
from torch import nn

net = nn.Linear(2, 1)


def evaluate(batches):
    torch.set_grad_enabled(False)  # warning: GS210
    if not batches:
        return 0.0
    total = sum(net(x).mean().item() for x in batches)
    torch.set_grad_enabled(True)
    return total


evaluate([])
assert not torch.is_grad_enabled()
```

## Use instead

Use a `with` block, which restores grad mode however it is left.

```python
import torch
from torch import nn

net = nn.Linear(2, 1)


def evaluate(x):
    with torch.no_grad():
        return net(x).mean().item()


evaluate(torch.ones(4, 2))
loss = net(torch.ones(4, 2)).pow(2).mean()
assert loss.requires_grad
```

## Not reported

A call that is undone on every path is fine, and so is a script that only evaluates.

```python
import torch
from torch import nn

net = nn.Linear(2, 1)


def evaluate(x):
    torch.set_grad_enabled(False)
    try:
        return net(x).mean().item()
    finally:
        torch.set_grad_enabled(True)


evaluate(torch.ones(4, 2))
net(torch.ones(4, 2)).pow(2).mean().backward()
```

```python
import torch
from torch import nn

torch.set_grad_enabled(False)
net = nn.Linear(2, 1)
print(net(torch.ones(4, 2)))
```

## Fix safety

A `torch.no_grad()` block is safe where the mode is switched on again further down, which shows where the block ends; otherwise it is unsafe.

See [torch.set_grad_enabled](https://docs.pytorch.org/docs/stable/generated/torch.set_grad_enabled.html) and a
[report](https://github.com/davidmascharka/tbd-nets/issues/8) of a validation that leaves grad mode off.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding
from gradsight.model.torch_messages import NO_GRAPH, Cause

if TYPE_CHECKING:
    from gradsight.fixes.draft import Drafts, FixCase


def judge(event: Event) -> Finding | None:
    if event.kind == "backward-without-graph" and event.names.get("cut") != "left-off":
        return None
    message = "grad mode is switched off here and can stay off: use `with torch.no_grad():`"
    return make_finding(
        event, RULE.code, RULE.name, message, "error" if event.kind == "backward-without-graph" else "warning"
    )


def fix(case: FixCase) -> Drafts:
    from gradsight.fixes.cuts import mode_left_off

    return mode_left_off(case)


RULE = Rule(
    "GS210",
    "grad-mode-left-off",
    ("grad-mode-left-off", "backward-without-graph"),
    judge,
    __doc__,
    advice="use `with torch.no_grad():` so that grad mode comes back",
    fix=fix,
    messages=(Cause(NO_GRAPH, rank=7),),
    observed_as=("grad-mode-left-off",),
)
