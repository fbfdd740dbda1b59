"""`retain_graph=True` with a graph that grows each iteration.

## What goes wrong silently

A state that is carried on without `detach()` makes the second backward fail, and `retain_graph=True` hides that. The graph then grows with every step, every backward goes through all earlier steps, and memory and time grow with it.

```python
import torch

weight = torch.tensor(0.5, requires_grad=True)
state = torch.tensor(1.0)
slopes = []
for step in range(3):
    state = state * weight
    weight.grad = None
    state.backward(retain_graph=True)  # warning: GS408
    slopes.append(weight.grad.item())
assert slopes == [1.0, 1.0, 0.75]  # the derivative of weight ** (step + 1), through all rounds
```

## Use instead

Detach the state at the end of each step; then nothing has to be retained.

```python
import torch

weight = torch.tensor(0.5, requires_grad=True)
state = torch.tensor(1.0)
slopes = []
for step in range(3):
    state = state.detach() * weight
    weight.grad = None
    state.backward()
    slopes.append(weight.grad.item())
assert slopes == [1.0, 0.5, 0.25]
```

## Not reported

Two backward passes through the graph of one step are fine.

```python
import torch

x = torch.ones(3, requires_grad=True)
for step in range(2):
    shared = x * x
    shared.sum().backward(retain_graph=True)
    shared.mean().backward()
```

## Fix safety

Freeing the graph in each step is unsafe: the gradient then ends at the start of the step.

See [Tensor.backward](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.backward.html) and a
[report](https://github.com/isds-neu/PeRCNN/issues/3) of a recurrent network that keeps its graphs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding

if TYPE_CHECKING:
    from gradsight.fixes.draft import Drafts, FixCase


def judge(event: Event) -> Finding | None:
    message = "`retain_graph=True` keeps the graphs of all earlier steps: detach what is carried over instead"
    return make_finding(event, RULE.code, RULE.name, message, "warning")


def fix(case: FixCase) -> Drafts:
    from gradsight.fixes.graphs import grows

    return grows(case)


RULE = Rule(
    "GS408",
    "graph-grows",
    ("graph-grows",),
    judge,
    __doc__,
    advice="detach what is carried over, and drop `retain_graph=True`",
    fix=fix,
    observed_as=("graph-grows",),
)
