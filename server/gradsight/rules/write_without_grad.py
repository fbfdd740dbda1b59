"""A tensor of the graph is written under no_grad or through .data, and its gradient is wrong.

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

The same goes for a write through `.data` or `detach()`, where backward reads the new value.

```python
import torch

x = torch.ones(3, requires_grad=True)
y = x * 2
y.data.mul_(5)  # warning: GS105
y.pow(2).sum().backward()
assert x.grad.tolist() == [40.0, 40.0, 40.0]  # the value is that of (10 * x) ** 2, whose gradient is 200
```

## Use instead

Write with grad mode on, or make a new tensor.

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

A write to a tensor without a graph is fine, and so is one to a detached copy.

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

A softmax passes no gradient on to elements that are far below the others, so that a mask of scores leaves the gradient exact.

```python
import torch

x = torch.ones(3, requires_grad=True)
scores = x * 2
scores.data.masked_fill_(torch.tensor([True, False, False]), float("-inf"))
scores.softmax(0).pow(2).sum().backward()
assert x.grad.tolist() == [0.0, 0.0, 0.0]
```

## Fix safety

Making a new tensor with grad mode on is unsafe: the value stays the same and the gradient changes, which may not be what you want.

See [torch.no_grad](https://docs.pytorch.org/docs/stable/generated/torch.no_grad.html) and a
[report](https://github.com/pytorch/pytorch/issues/7860) of a write through `detach()` that changes what is differentiated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, named, text

if TYPE_CHECKING:
    from gradsight.fixes.draft import Drafts, FixCase


ALIASES = {"data": "`.data`", "detach": "`detach()`"}


def judge(event: Event) -> Finding | None:
    write, alias = named(event, "here", "this write"), ALIASES.get(text(event, "through"), "")
    if alias:
        message = (
            f"{write} bypasses autograd through {alias}, so the gradient is wrong: write the tensor itself"
        )
    else:
        message = f"{write} runs with grad mode off, so the gradient is wrong: run it with grad mode on"
    return make_finding(event, RULE.code, RULE.name, message, "warning")


def fix(case: FixCase) -> Drafts:
    from gradsight.fixes.inplace import written_without_grad

    return written_without_grad(case)


RULE = Rule(
    "GS105",
    "write-without-grad",
    ("graph-written-without-grad",),
    judge,
    __doc__,
    advice="make a new tensor with grad mode on",
    fix=fix,
    is_bad_write=True,
    observed_as=("graph-written-without-grad",),
)
