"""`.grad` of a tensor that is not a leaf.

## What goes wrong silently

Backward fills `.grad` of leaves only. A computed tensor passes its gradient on and does not store it, so its `.grad` is `None`.

```python
import torch

x = torch.ones(3, requires_grad=True)
y = x * 2
y.sum().backward()
print(y.grad)  # warning: GS301  # warns: not a leaf
```

Where the gradient is used, the program fails.

```python
import torch

x = torch.ones(3, requires_grad=True)
y = x * 2
y.sum().backward()
norm = y.grad.norm()  # error: GS301  # warns: not a leaf  # raises: 'NoneType' object has no attribute
```

Moving a tensor, or scaling it, turns what looks like a leaf into a computed tensor.

```python
import torch

x = (torch.randn(3, requires_grad=True) * 0.1).double()
x.sum().backward()
print(x.grad)  # warning: GS301  # warns: not a leaf
```

## Use instead

`retain_grad()` stores the gradient of a computed tensor.

```python
import torch

x = torch.ones(3, requires_grad=True)
y = x * 2
y.retain_grad()
y.sum().backward()
print(y.grad)
```

## Not reported

A leaf has a `.grad`. A computed tensor that needs no gradient is a leaf too.

```python
import torch

x = torch.ones(3, requires_grad=True)
plain = torch.ones(3) * 2
(x * plain).sum().backward()
assert x.grad.tolist() == [2.0, 2.0, 2.0]
assert plain.grad is None
```

## Fix safety

`retain_grad()` before the backward is safe: values and other gradients stay as they are. Where the tensor was meant to be the leaf, `requires_grad_()` at the end of the line that makes it is safe as well.

See [Tensor.is_leaf](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.is_leaf.html) and a
[report](https://github.com/BorealisAI/advertorch/issues/49) of an attacked image without a gradient.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, named
from gradsight.model.torch_messages import GRADIENT_IS_NONE, Cause, alone

if TYPE_CHECKING:
    from gradsight.fixes.draft import Drafts, FixCase


def judge(event: Event) -> Finding | None:
    message = f"{named(event, 'target', 'this tensor')} is not a leaf: its `.grad` is None unless `retain_grad()` was called"
    return make_finding(
        event, RULE.code, RULE.name, message, "error" if event.names.get("used") else "warning"
    )


def fix(case: FixCase) -> Drafts:
    from gradsight.fixes.gradients import non_leaf_read

    return non_leaf_read(case)


RULE = Rule(
    "GS301",
    "grad-of-non-leaf",
    ("grad-of-non-leaf",),
    judge,
    __doc__,
    advice="call `retain_grad()` before backward, or use `torch.autograd.grad`",
    fix=fix,
    messages=(
        alone(
            r"\.grad attribute of a Tensor that is not a leaf",
            "Only leaves keep their gradient; call `retain_grad()` on the tensor before the backward.",
        ),
        Cause(GRADIENT_IS_NONE, rank=2),
    ),
    observed_as=("grad-of-non-leaf",),
)
