"""A graph is kept alive by a running total.

## What goes wrong silently

Adding a loss to a total adds its graph as well. Nothing can be freed until the total is gone, and memory grows with every round.

```python
import torch

x = torch.ones(3, requires_grad=True)
total = 0
for step in range(3):
    loss = (x * x).sum()
    loss.backward()
    total += loss  # warning: GS404
print(total / 3)
assert total.grad_fn is not None  # the graphs of all rounds hang on it
```

## Use instead

Add the number.

```python
import torch

x = torch.ones(3, requires_grad=True)
total = 0
for step in range(3):
    loss = (x * x).sum()
    loss.backward()
    total += loss.item()
print(total / 3)
```

## Not reported

A total that is itself the loss.

```python
import torch

x = torch.ones(3, requires_grad=True)
total = 0
for step in range(3):
    total = total + (x * x).sum()
total.backward()
```

A total that records nothing, or that starts anew within the same loop.

```python
import torch

x = torch.ones(3, requires_grad=True)
total, running = torch.zeros(()), 0
for step in range(4):
    loss = (x * x).sum()
    loss.backward()
    with torch.no_grad():
        total += loss
    running += loss
    if step % 2 == 1:
        print(running.item() / 2)
        running = 0
assert total.grad_fn is None
```

## Fix safety

Adding the number, or the detached loss, is safe where the total is never differentiated: its value is the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, text

if TYPE_CHECKING:
    from gradsight.fixes.draft import Case, Drafts


def judge(event: Event) -> Finding | None:
    message = f"{text(event, 'target')} keeps the graph of every {text(event, 'loss', 'loss')} alive; add its value instead"
    return make_finding(event, RULE.code, RULE.name, message, "warning")


def fix(case: Case) -> Drafts:
    from gradsight.fixes.graphs import kept_alive

    return kept_alive(case)


RULE = Rule(
    "GS404",
    "graph-kept-alive",
    ("graph-kept-alive",),
    judge,
    __doc__,
    advice="add up `loss.item()` or `loss.detach()`",
    fix=fix,
    observed_as=("graph-kept-alive",),
    kin="graph-carried",
)
