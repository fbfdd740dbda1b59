"""An in-place operation that autograd records correctly.

## Why it is worth knowing

In place is not wrong in itself. Autograd records the write, and the gradient is exact as long as nobody kept the old value. This hint marks such places; it is left out unless hints are switched on.

```python
import torch

x = torch.ones(3, requires_grad=True)
y = x * 2
y *= 3  # hint: GS190
y.sum().backward()
assert x.grad.tolist() == [6.0, 6.0, 6.0]
```

## Use instead

Nothing has to change. Out of place says the same and stays right when a line that keeps the old value is added later.

```python
import torch

x = torch.ones(3, requires_grad=True)
y = x * 2
y = y * 3
y.sum().backward()
assert x.grad.tolist() == [6.0, 6.0, 6.0]
```

## Not reported

A write to a tensor without a graph.

```python
import torch

counts = torch.zeros(3)
counts += 1
```

## Fix safety

Writing out of place is safe when no other name shares the memory; otherwise it is unsafe.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, text

if TYPE_CHECKING:
    from gradsight.fixes.draft import Case, Drafts


def judge(event: Event) -> Finding | None:
    message = f"{text(event, 'op')} works in place and is safe here: nothing kept the old value"
    return make_finding(event, RULE.code, RULE.name, message, "hint")


def fix(case: Case) -> Drafts:
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
