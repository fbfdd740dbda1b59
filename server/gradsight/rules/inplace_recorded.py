"""An in-place operation that autograd records correctly.

## Why it is worth knowing

In place is not wrong in itself. Autograd records the write, and the gradient is exact as long as nothing saved the old value. This hint marks such places; it is left out unless hints are switched on.

```python
import torch

x = torch.ones(3, requires_grad=True)
y = x * 2
y *= 3  # hint: GS190
y.sum().backward()
assert x.grad.tolist() == [6.0, 6.0, 6.0]
```

## Use instead

Nothing has to change. A new tensor gives the same result, and stays correct when a line that saves the old value is added later.

```python
import torch

x = torch.ones(3, requires_grad=True)
y = x * 2
y = y * 3
y.sum().backward()
assert x.grad.tolist() == [6.0, 6.0, 6.0]
```

## Not reported

A write to a tensor without a graph is not recorded.

```python
import torch

counts = torch.zeros(3)
counts += 1
```

## Fix safety

Writing to a new tensor is safe when no other variable shares the memory; otherwise it is unsafe.

See [In-place operations with autograd](https://docs.pytorch.org/docs/stable/notes/autograd.html#in-place-operations-with-autograd) and a
[report](https://github.com/pytorch/vision/issues/807) that asks why torchvision's models may use in-place layers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, named

if TYPE_CHECKING:
    from gradsight.fixes.draft import Drafts, FixCase


def judge(event: Event) -> Finding | None:
    message = f"{named(event, 'here', 'this write')} works in place and is safe: nothing saved the old value"
    return make_finding(event, RULE.code, RULE.name, message, "hint")


def fix(case: FixCase) -> Drafts:
    from gradsight.fixes.inplace import recorded

    return recorded(case)


RULE = Rule(
    "GS190",
    "inplace-recorded",
    ("inplace-recorded",),
    judge,
    __doc__,
    fix=fix,
    says_harmless=True,
)
