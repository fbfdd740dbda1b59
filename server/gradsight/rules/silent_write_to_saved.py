"""A write through `.data` or NumPy silently changes a value that backward needs.

## What goes wrong silently

`.data` shares the memory of its tensor and has a version counter of its own, and NumPy knows no versions at all. A write through either is invisible to autograd: backward computes with the changed value.

```python
import torch

x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
y = x * x
x.data.mul_(10)  # warning: GS104
y.sum().backward()
assert x.grad.tolist() == [20.0, 40.0, 60.0]  # the gradient of y was 2, 4, 6
```

```python
import torch

x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
h = x + 1
y = h.sin()
values = h.detach().numpy()
values += 1  # warning: GS104
y.sum().backward()
assert not torch.allclose(x.grad, torch.cos(torch.tensor([2.0, 3.0, 4.0])))
```

## Use instead

Run backward before the value is changed, and change it under `no_grad`, where autograd sees the write.

```python
import torch

x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
y = x * x
y.sum().backward()
with torch.no_grad():
    x.mul_(10)
assert x.grad.tolist() == [2.0, 4.0, 6.0]
```

## Not reported

A write after the backward is fine, and so is one to a value that no operator saved.

```python
import torch

x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
y = x * 2
x.data.mul_(10)
y.sum().backward()
assert x.grad.tolist() == [2.0, 2.0, 2.0]
```

```python
import torch

weight = torch.ones(3, requires_grad=True)
for _ in range(2):
    (weight * weight).sum().backward()
    weight.data -= 0.1 * weight.grad
    weight.grad = None
```

`detach()` shares the version counter, so torch itself notices a write through it: that is reported as `inplace-on-saved`.

## Fix safety

Giving the operator a clone is safe: every value stays as it is, and the gradient is taken at the values that the operator saw.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, named
from gradsight.model.torch_messages import MODIFIED_IN_PLACE, Cause

if TYPE_CHECKING:
    from gradsight.fixes.draft import Drafts, FixCase


def judge(event: Event) -> Finding | None:
    if event.names.get("by_step"):
        return None
    message = f"{named(event, 'here', 'this write')} silently changes what {named(event, 'saver')} saved, so the gradient is wrong: use a copy"
    return make_finding(event, RULE.code, RULE.name, message, "warning")


def fix(case: FixCase) -> Drafts:
    from gradsight.fixes.inplace import saved_changed_silently

    return saved_changed_silently(case)


RULE = Rule(
    "GS104",
    "silent-write-to-saved",
    ("saved-changed-silently",),
    judge,
    __doc__,
    advice="work on a copy: `x.detach().clone()` instead of `x.data` or the array of `x.numpy()`",
    fix=fix,
    silences=("GS105", "GS107", "GS190"),
    is_bad_write=True,
    spoils_saved=True,
    is_drawable=True,
    messages=(Cause(MODIFIED_IN_PLACE, rank=3),),
    observed_as=("saved-changed-silently",),
    excluded_by=lambda run, finding: run.was_written(finding),
    stands_on="write",
)
