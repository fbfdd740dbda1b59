"""A stored `.grad` is overwritten later.

## What goes wrong silently

`.grad` is a tensor of its own, and the next backward adds to it in place, unless it is called with `create_graph=True`. Assigning it to a variable does not copy it: the next backward or `zero_()` changes that variable too.

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

Clone the gradient that you want to compare later.

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

`zero_grad()` sets `.grad` to `None` by default and does not write zeros: the stored gradient survives.

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

With `create_graph=True` backward gives the leaf a new `.grad` and leaves the old tensor as it is.

```python
import torch

x = torch.ones(3, requires_grad=True)
(x * 2).sum().backward()
before = x.grad
(x * 3).sum().backward(create_graph=True)  # warns: create_graph=True
assert before.tolist() == [2.0, 2.0, 2.0]
assert x.grad.tolist() == [5.0, 5.0, 5.0]
```

A variable that is not read after the write does no harm.

```python
import torch

x = torch.ones(3, requires_grad=True)
(x * 2).sum().backward()
grad = x.grad
print(grad.norm())
x.grad.zero_()
```

## Fix safety

`.detach().clone()` is safe: the variable keeps its value and nothing else changes.

See [Tensor.grad](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.grad.html) and a
[report](https://github.com/huggingface/pytorch-image-models/pull/2786) of a previous gradient that is the present one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, gradient_name, make_finding, text

if TYPE_CHECKING:
    from gradsight.fixes.draft import Drafts, FixCase


def judge(event: Event) -> Finding | None:
    write = text(event, "write")
    write = f"{write}()" if write in ("backward", "zero_grad") else write
    message = f"this is {gradient_name(event)} itself: `{write}` changes it before it is read, so clone it"
    return make_finding(event, RULE.code, RULE.name, message, "warning")


def fix(case: FixCase) -> Drafts:
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
