"""A second backward through a graph that was freed.

## Why torch refuses

`backward()` frees the tensors that the operators saved. A second `backward()` through the same operators no longer finds them.

```python
import torch

x = torch.ones(3, requires_grad=True)
loss = (x * x).sum()
loss.backward()
loss.backward()  # error: GS402  # raises: a second time
```

Two losses that share a part of the graph go through that part twice.

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

Retain the graph in the first call if you need both.

```python
import torch

x = torch.ones(3, requires_grad=True)
loss = (x * x).sum()
loss.backward(retain_graph=True)
loss.backward()
assert x.grad.tolist() == [4.0, 4.0, 4.0]
```

Add the losses that share a graph, and call `backward()` once.

```python
import torch
from torch import nn

encoder = nn.Sequential(nn.Linear(2, 3), nn.Tanh())
head, other_head = nn.Linear(3, 1), nn.Linear(3, 1)
code = encoder(torch.ones(4, 2))
(head(code).mean() + other_head(code).mean()).backward()
```

## Not reported

Where nothing was saved, nothing is missing: addition and `sum` save no tensor.

```python
import torch

x = torch.ones(3, requires_grad=True)
loss = (x + 1).sum()
loss.backward()
loss.backward()
assert x.grad.tolist() == [2.0, 2.0, 2.0]
```

A loss that is computed again each time has a new graph each time.

```python
import torch

x = torch.ones(3, requires_grad=True)
for _ in range(2):
    loss = (x * x).sum()
    loss.backward()
```

## Fix safety

Adding losses that share a graph and calling `backward()` once is safe: the gradient is the sum of both. `retain_graph=True` is unsafe: the second backward adds to the gradient of the first, which may not be what you want.

See [Tensor.backward](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.backward.html) and a
[report](https://github.com/karpathy/nn-zero-to-hero/issues/31) of a forward pass that stands before the loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding
from gradsight.model.torch_messages import SECOND_BACKWARD, Cause

if TYPE_CHECKING:
    from gradsight.fixes.draft import Drafts, FixCase


def judge(event: Event) -> Finding | None:
    if event.names.get("again"):
        message = "part of this graph is built once and freed by the first `backward()`: rebuild it each time"
    else:
        message = "this graph was freed by an earlier `backward()`: add the losses and call it once"
    return make_finding(event, RULE.code, RULE.name, message, "error")


def fix(case: FixCase) -> Drafts:
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
