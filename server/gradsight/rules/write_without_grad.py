"""A tensor of the graph is written under no_grad, and its gradient does not know.

## What goes wrong silently

Under `no_grad` a write changes the value and is not recorded. Whatever is computed from the tensor later sees the new value, and its gradient is that of the old one.

```python
import torch

x = torch.ones(3, requires_grad=True)
y = x * 2
with torch.no_grad():
    y.mul_(5)  # warning: GS105
y.sum().backward()
assert y.tolist() == [10.0, 10.0, 10.0]
assert x.grad.tolist() == [2.0, 2.0, 2.0]  # the value was multiplied by 10, the gradient by 2
```

## Use instead

Let the write be recorded, or write out of place.

```python
import torch

x = torch.ones(3, requires_grad=True)
y = x * 2
y = y * 5
y.sum().backward()
assert x.grad.tolist() == [10.0, 10.0, 10.0]
```

## Not reported

Updating a leaf is what `no_grad` is for.

```python
import torch

weight = torch.ones(3, requires_grad=True)
(weight * 2).sum().backward()
with torch.no_grad():
    weight -= 0.1 * weight.grad
```

Nor is a write to a tensor without a graph, or to a copy that is cut off.

```python
import torch

x = torch.ones(3, requires_grad=True)
y = x * 2
shown = y.detach().clone()
with torch.no_grad():
    shown.mul_(5)
y.sum().backward()
assert x.grad.tolist() == [2.0, 2.0, 2.0]
```

## Fix safety

Writing out of place with grad mode on is unsafe: the value stays the same and the gradient changes, and the author may have wanted the gradient not to see the write.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, text

if TYPE_CHECKING:
    from gradsight.fixes.draft import Case, Drafts


def judge(event: Event) -> Finding | None:
    message = f"{text(event, 'target')} is written by {text(event, 'op')} without grad mode: its value changes and its gradient does not"
    return make_finding(event, RULE.code, RULE.name, message, "warning")


def fix(case: Case) -> Drafts:
    from gradsight.fixes.inplace import written_without_grad

    return written_without_grad(case)


RULE = Rule(
    "GS105",
    "write-without-grad",
    ("graph-written-without-grad",),
    judge,
    __doc__,
    advice="compute the new value out of place and with grad mode on",
    fix=fix,
    is_bad_write=True,
    observed_as=("graph-written-without-grad",),
)
