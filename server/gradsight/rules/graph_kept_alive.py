"""A running total keeps every graph in memory.

## What goes wrong silently

Adding a loss to a total adds its graph as well, and memory grows with every step. A loss that was not backpropagated keeps everything its graph saved. After a backward the saved tensors are freed, but the nodes of the graph are still held, step after step.

```python
import torch

x = torch.ones(3, requires_grad=True)
total = 0
for step in range(3):
    loss = (x * x).sum()
    loss.backward()
    total += loss  # warning: GS404
print(total / 3)
assert total.grad_fn is not None  # the graphs of all steps hang on it
```

The saved tensors of a graph are freed by its backward, and the nodes of the graph stay:

```python
import torch

x = torch.ones(3, requires_grad=True)
total = 0
for step in range(3):
    loss = (x * x).sum()
    loss.backward()
    total += loss  # warning: GS404
assert total.grad_fn is not None  # the graphs of all steps hang on it
product = loss.grad_fn.next_functions[0][0]
assert product.name() == "MulBackward0"  # the nodes stay
try:
    product._saved_self
    raise AssertionError("still there")
except RuntimeError as error:
    assert "already been freed" in str(error)  # backward has freed what they saved
```

An average that is made of itself in every step holds the nodes of all steps before, too, where it is recorded:

```python
import torch

weight = torch.ones(3, requires_grad=True)
average = torch.zeros(3)
for step in range(3):
    (weight * weight).sum().backward()
    average = 0.9 * average + 0.1 * weight  # warning: GS404
nodes, depth = average.grad_fn, 0
while nodes is not None:
    nodes, depth = nodes.next_functions[0][0], depth + 1
assert depth > 3  # every step has made it longer
```

## Use instead

Add the number: `loss.item()`.

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

A total that is itself the loss needs its graph.

```python
import torch

x = torch.ones(3, requires_grad=True)
total = 0
for step in range(3):
    total = total + (x * x).sum()
total.backward()
```

An average under `no_grad` is not recorded.

```python
import torch

weight = torch.ones(3, requires_grad=True)
average = torch.zeros(3)
for step in range(3):
    (weight * weight).sum().backward()
    with torch.no_grad():
        average = 0.9 * average + 0.1 * weight
assert average.grad_fn is None
```

A total that records nothing is fine, and so is one that is reset every few steps.

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

See [Frequently asked questions](https://docs.pytorch.org/docs/stable/notes/faq.html) and a
[report](https://github.com/BatsResearch/labelmodels/issues/4) of a running loss that keeps every graph.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, named, text

if TYPE_CHECKING:
    from gradsight.fixes.draft import Drafts, FixCase


def judge(event: Event) -> Finding | None:
    if event.names.get("updates"):
        message = (
            f"{named(event, 'target')} records every update but is never differentiated: use `no_grad()`"
        )
        return make_finding(event, RULE.code, RULE.name, message, "warning")
    loss = text(event, "loss", "loss")
    cure = f"`{loss}.item()`" if loss.isidentifier() else "`.item()` or `.detach()`"
    message = f"{named(event, 'target')} keeps the graph of every step in memory: use {cure}"
    return make_finding(event, RULE.code, RULE.name, message, "warning")


def fix(case: FixCase) -> Drafts:
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
