"""The result of a pure tensor method is not used.

## What goes wrong silently

A tensor method without a trailing underscore returns a new tensor and leaves its own as it is. As a statement of its own it does nothing.

```python
import torch

x = torch.ones(3, requires_grad=True)
loss = (x - 5).sum()
loss.clamp(min=0)  # warning: GS209
loss.backward()
assert x.grad.tolist() == [1.0, 1.0, 1.0]  # the clamped loss has gradient 0
```

```python
import torch

x = torch.ones(3, requires_grad=True)
hidden = x * 2
hidden.detach()  # warning: GS209
assert hidden.requires_grad
```

## Use instead

Assign the result.

```python
import torch

x = torch.ones(3, requires_grad=True)
loss = (x - 5).sum()
loss = loss.clamp(min=0)
loss.backward()
assert x.grad.tolist() == [0.0, 0.0, 0.0]
```

## Not reported

Methods that act on their tensor are fine.

```python
import torch

x = torch.ones(3, requires_grad=True)
hidden = x * 2
hidden.retain_grad()
hidden.register_hook(lambda grad: grad * 2)
hidden.sum().backward()
```

## Fix safety

Assigning the result to the same name is unsafe, because the value changes. For `detach()`, which leaves the value as it is, it is safe.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, named

if TYPE_CHECKING:
    from gradsight.fixes.draft import Drafts, FixCase


def judge(event: Event) -> Finding | None:
    message = f"{named(event, 'method')} returns a new tensor and does not change {named(event, 'target')}: assign the result"
    return make_finding(event, RULE.code, RULE.name, message, "warning")


def fix(case: FixCase) -> Drafts:
    from gradsight.fixes.cuts import result_ignored

    return result_ignored(case)


RULE = Rule(
    "GS209",
    "result-ignored",
    ("result-ignored",),
    judge,
    __doc__,
    advice="assign the result: `x = x.clamp(0)`",
    fix=fix,
    observed_as=("result-ignored",),
    kin="result-lost",
)
