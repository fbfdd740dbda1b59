"""An optimizer that is made again in every iteration.

## What goes wrong silently

Adam, RMSprop and momentum keep averages of earlier gradients. An optimizer that the loop makes in every iteration has none:
each step is a first step, and for Adam that is the sign of the gradient times the learning rate.

```python
import torch

torch.manual_seed(0)
weight = torch.ones(2, requires_grad=True)
for scale in (1.0, 100.0):
    optimizer = torch.optim.Adam([weight], lr=0.1)  # warning: GS521
    optimizer.zero_grad()
    (scale * weight).sum().backward()
    optimizer.step()
steps = optimizer.state[weight]["step"]
assert steps == 1  # the second step knows nothing of the first
```

## Use instead

Make the optimizer once, before the loop.

```python
import torch

torch.manual_seed(0)
weight = torch.ones(2, requires_grad=True)
optimizer = torch.optim.Adam([weight], lr=0.1)
for scale in (1.0, 100.0):
    optimizer.zero_grad()
    (scale * weight).sum().backward()
    optimizer.step()
assert optimizer.state[weight]["step"] == 2
```

## Not reported

An optimizer for parameters that are new or put back in every iteration, one that steps more than once before it is made
again, and plain `SGD`, which keeps nothing.

```python
import torch

images = torch.rand(3, 4)
for image in images:
    noise = torch.zeros(4, requires_grad=True)
    optimizer = torch.optim.Adam([noise], lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        (image + noise).square().sum().backward()
        optimizer.step()
weight = torch.ones(4, requires_grad=True)
for image in images:
    plain = torch.optim.SGD([weight], lr=0.1)
    plain.zero_grad()
    (weight * image).sum().backward()
    plain.step()
```

## Fix safety

No fix is offered: where the optimizer belongs depends on who else uses it.

See [torch.optim](https://docs.pytorch.org/docs/stable/optim.html) and a
[report](https://github.com/Wangyixinxin/ACN/issues/9) of a discriminator's optimizer that is made for every batch.
"""

from __future__ import annotations

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, named


def judge(event: Event) -> Finding | None:
    message = f"{named(event, 'optimizer')} is made in every iteration: make it once, before the loop"
    return make_finding(event, RULE.code, RULE.name, message, "warning")


RULE = Rule(
    "GS521",
    "optimizer-made-again",
    ("optimizer-made-again",),
    judge,
    __doc__,
    advice="make the optimizer before the loop",
    needs_training=True,
)
