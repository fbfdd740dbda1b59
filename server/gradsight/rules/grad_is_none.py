"""`.grad` is used while it is None.

## Why torch refuses

Before the first backward there is no gradient, and `zero_grad()` sets it back to `None`.

```python
import torch

x = torch.ones(3, requires_grad=True)
loss = (x * 2).sum()
norm = x.grad.norm()  # error: GS304  # raises: 'NoneType' object has no attribute 'norm'
loss.backward()
```

```python
import torch

x = torch.ones(3, requires_grad=True)
optimizer = torch.optim.SGD([x], lr=0.1)
(x * 2).sum().backward()
optimizer.step()
optimizer.zero_grad()
norm = x.grad.norm()  # error: GS304  # raises: 'NoneType' object has no attribute 'norm'
```

## Use instead

Read the gradient between the backward and the clearing.

```python
import torch

x = torch.ones(3, requires_grad=True)
loss = (x * 2).sum()
loss.backward()
norm = x.grad.norm()
```

## Not reported

A gradient that is compared with `None` before it is used is fine, and so is one that is set to zeros.

```python
import torch

x = torch.ones(3, requires_grad=True)
if x.grad is not None:
    x.grad.zero_()
(x * 2).sum().backward()
```

```python
import torch

x = torch.ones(3, requires_grad=True)
optimizer = torch.optim.SGD([x], lr=0.1)
(x * 2).sum().backward()
optimizer.zero_grad(set_to_none=False)
assert x.grad.norm() == 0
```

## Fix safety

Moving the line after the backward, or the clearing after the line, is unsafe: other lines may rely on the order.
Skipping what has no gradient is safe, unless a cut is reported in the same file: then the cut is what to change.

See [Tensor.grad](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.grad.html) and a
[report](https://github.com/anishmadan23/adversarial-attacks-pytorch/issues/1) of an attack on an input that needs no gradient.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, gradient_name, make_finding, named
from gradsight.model.torch_messages import GRADIENT_IS_NONE, Cause

if TYPE_CHECKING:
    from gradsight.fixes.draft import Drafts, FixCase


def judge(event: Event) -> Finding | None:
    message = f"{gradient_name(event)} is None here: {_why(event)}"
    return make_finding(event, RULE.code, RULE.name, message, "error")


def _why(event: Event) -> str:
    if event.names.get("cause") in ("needs-none", "without"):
        return f"{named(event, 'target', 'the tensor')} does not require grad"
    if event.names.get("cause") == "cleared":
        return "it was cleared, so read it before that"
    return "call `backward()` before reading it"


def fix(case: FixCase) -> Drafts:
    from gradsight.fixes.gradients import gradient_none

    return gradient_none(case)


RULE = Rule(
    "GS304",
    "grad-is-none",
    ("grad-is-none",),
    judge,
    __doc__,
    advice="read `.grad` after backward, and check that the tensor is on the way to the loss",
    fix=fix,
    messages=(Cause(GRADIENT_IS_NONE),),
    observed_as=("grad-is-none",),
)
