"""A loss that compares every prediction with every target.

## What goes wrong silently

A layer with one output returns `(N, 1)`, and targets are often `(N,)`. Torch broadcasts the two to `(N, N)`: the loss compares
each prediction with the targets of all samples, and what is learned is their mean. The loss functions warn of it once, plain
arithmetic does not.

```python
import torch
from torch import nn

net = nn.Linear(2, 1)
x, y = torch.randn(8, 2), torch.randn(8)
loss = nn.functional.mse_loss(net(x), y)  # warning: GS609  # warns: incorrect results due to broadcasting
error = net(x) - y  # warning: GS609
assert error.shape == (8, 8)
assert torch.allclose(loss, error.square().mean())
```

## Use instead

Give both the same shape.

```python
import torch
from torch import nn

net = nn.Linear(2, 1)
x, y = torch.randn(8, 2), torch.randn(8)
loss = nn.functional.mse_loss(net(x).squeeze(1), y)
by_hand = (net(x) - y.unsqueeze(1)).square().mean()
assert torch.allclose(loss, by_hand)
```

## Not reported

Pairs that are made on purpose.

```python
import torch
from torch import nn

net = nn.Linear(2, 1)
scores, levels = net(torch.randn(8, 2)), torch.arange(4.0)
above = torch.sigmoid(scores - levels)
distances = scores.squeeze(1)[:, None] - torch.randn(8)
assert above.shape == (8, 4)
```

## Fix safety

No fix is offered: which of the two is to change its shape is for the author to say.

See [broadcasting semantics](https://docs.pytorch.org/docs/stable/notes/broadcasting.html) and a
[report](https://github.com/manzilzaheer/DeepSets/pull/1) of a model that learned the mean of all targets.
"""

from __future__ import annotations

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, named


def judge(event: Event) -> Finding | None:
    one, other = named(event, "target"), named(event, "source")
    message = (
        f"{one} and {other} are (N, 1) and (N,), which torch broadcasts to (N, N): give both the same shape"
    )
    return make_finding(event, RULE.code, RULE.name, message, "warning")


RULE = Rule(
    "GS609",
    "loss-broadcast",
    ("loss-broadcast",),
    judge,
    __doc__,
    advice="give the prediction and the target the same shape: `.squeeze(1)`",
)
