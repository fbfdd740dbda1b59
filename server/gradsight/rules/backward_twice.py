"""A second backward through a graph that was freed.

## Why torch refuses

Backward frees what the operators kept. A second backward through the same operators finds it gone.

```python
import torch

x = torch.ones(3, requires_grad=True)
loss = (x * x).sum()
loss.backward()
loss.backward()  # error: GS402  # raises: a second time
```

Two losses that share a part of the graph are a second time for that part.

```python
import torch
from torch import nn

encoder = nn.Sequential(nn.Linear(2, 3), nn.Tanh())
head, other_head = nn.Linear(3, 1), nn.Linear(3, 1)
code = encoder(torch.ones(4, 2))
head(code).mean().backward()
other_head(code).mean().backward()  # error: GS402  # raises: a second time
```

## Use instead

Keep the graph in the first call, if both are needed.

```python
import torch

x = torch.ones(3, requires_grad=True)
loss = (x * x).sum()
loss.backward(retain_graph=True)
loss.backward()
assert x.grad.tolist() == [4.0, 4.0, 4.0]
```

Add losses that share a graph, and go back once.

```python
import torch
from torch import nn

encoder = nn.Sequential(nn.Linear(2, 3), nn.Tanh())
head, other_head = nn.Linear(3, 1), nn.Linear(3, 1)
code = encoder(torch.ones(4, 2))
(head(code).mean() + other_head(code).mean()).backward()
```

## Not reported

Where nothing was kept, nothing is missing: addition and `sum` keep no tensor.

```python
import torch

x = torch.ones(3, requires_grad=True)
loss = (x + 1).sum()
loss.backward()
loss.backward()
assert x.grad.tolist() == [2.0, 2.0, 2.0]
```

A loss that is computed anew each time.

```python
import torch

x = torch.ones(3, requires_grad=True)
for _ in range(2):
    loss = (x * x).sum()
    loss.backward()
```

## Fix safety

Adding losses that share a graph and going back once is safe: the gradient is the sum of both. `retain_graph=True` is unsafe: the second backward adds to the gradient of the first, which may not be meant.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding
from gradsight.model.torch_messages import SECOND_BACKWARD, Cause

if TYPE_CHECKING:
    from gradsight.fixes.draft import Case, Drafts


def judge(event: Event) -> Finding | None:
    freed = next(step.place for step in event.steps if step.role == "needed")
    message = f"backward goes through a graph that was freed by the backward on line {freed.span().line}"
    return make_finding(event, RULE.code, RULE.name, message, "error")


def fix(case: Case) -> Drafts:
    from gradsight.fixes.graphs import backward_twice

    return backward_twice(case)


RULE = Rule(
    "GS402",
    "backward-twice",
    ("backward-twice",),
    judge,
    __doc__,
    advice="add the losses and call backward once, or pass `retain_graph=True` to the first call",
    fix=fix,
    torch_raises=True,
    messages=(Cause(SECOND_BACKWARD),),
    observed_as=("backward-twice",),
    stands_on="backward",
)
