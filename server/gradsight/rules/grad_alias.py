"""A kept `.grad` that is overwritten later.

## What goes wrong silently

`.grad` is a tensor of its own, and the next backward adds to it in place. A name for it is no copy: the value behind the name changes with the next backward or with `zero_()`.

```python
import torch

x = torch.ones(3, requires_grad=True)
(x * 2).sum().backward()
before = x.grad  # warning: GS302
x.grad.zero_()
print(before)
assert before.tolist() == [0.0, 0.0, 0.0]  # 2 was meant
```

```python
import torch

x = torch.ones(3, requires_grad=True)
(x * 2).sum().backward()
first = x.grad  # warning: GS302
(x * 3).sum().backward()
print(first)
assert first.tolist() == [5.0, 5.0, 5.0]  # 2 was meant
```

## Use instead

Copy what is meant to stay.

```python
import torch

x = torch.ones(3, requires_grad=True)
(x * 2).sum().backward()
before = x.grad.detach().clone()
x.grad.zero_()
print(before)
assert before.tolist() == [2.0, 2.0, 2.0]
```

## Not reported

`zero_grad()` drops the gradient instead of zeroing it, unless it is told otherwise: the kept one survives.

```python
import torch

x = torch.ones(3, requires_grad=True)
optimizer = torch.optim.SGD([x], lr=0.1)
(x * 2).sum().backward()
before = x.grad
optimizer.zero_grad()
(x * 3).sum().backward()
assert before.tolist() == [2.0, 2.0, 2.0]
```

A name that is not read after the write.

```python
import torch

x = torch.ones(3, requires_grad=True)
(x * 2).sum().backward()
grad = x.grad
print(grad.norm())
x.grad.zero_()
```

## Fix safety

`.detach().clone()` is safe: the name keeps its value and nothing else changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, text

if TYPE_CHECKING:
    from gradsight.fixes.draft import Case, Drafts


def judge(event: Event) -> Finding | None:
    message = f"this keeps the gradient of {text(event, 'target', 'the tensor')} itself, not a copy; {text(event, 'write')} changes it before it is read"
    return make_finding(event, RULE.code, RULE.name, message, "warning")


def fix(case: Case) -> Drafts:
    from gradsight.fixes.gradients import gradient_kept

    return gradient_kept(case)


RULE = Rule(
    "GS302",
    "grad-alias",
    ("grad-alias-overwritten",),
    judge,
    __doc__,
    advice="keep a copy: `.grad.detach().clone()`",
    fix=fix,
    observed_as=("grad-alias-overwritten",),
    excluded_by=lambda run, finding: run.is_never_overwritten(finding),
)
