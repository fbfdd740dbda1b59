"""An optimizer is given a tensor that is not a leaf.

## Why torch refuses

An optimizer only updates leaves. Every operation on a tensor that requires grad gives a computed tensor: also `.double()`, `* 0.1`, and a `.to(...)` that changes something.

```python
import torch

weight = torch.randn(3, requires_grad=True) * 0.1  # error: GS303
optimizer = torch.optim.SGD([weight], lr=0.1)  # raises: can't optimize a non-leaf Tensor
```

## Use instead

Compute first, then call `requires_grad_()`.

```python
import torch

weight = (torch.randn(3) * 0.1).requires_grad_()
optimizer = torch.optim.SGD([weight], lr=0.1)
```

## Not reported

A `.to()` that changes nothing returns the leaf itself.

```python
import torch

weight = torch.randn(3, requires_grad=True).to(torch.float32)
optimizer = torch.optim.SGD([weight], lr=0.1)
```

`nn.Parameter` makes a leaf of a plain value.

```python
import torch
from torch import nn

weight = nn.Parameter(torch.randn(3) * 0.1)
optimizer = torch.optim.SGD([weight], lr=0.1)
```

## Fix safety

`requires_grad_()` at the end, where the tensor is finished, is safe: the numbers are the same, and nothing was recorded that could be lost.

See [torch.optim](https://docs.pytorch.org/docs/stable/optim.html) and a
[report](https://github.com/pytorch/pytorch/issues/140469) of a latent code that is scaled first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, named
from gradsight.model.torch_messages import alone

if TYPE_CHECKING:
    from gradsight.fixes.draft import Drafts, FixCase


def judge(event: Event) -> Finding | None:
    message = f"{named(event, 'target', 'this tensor')} is not a leaf, which the optimizer refuses: call `requires_grad_()` last"
    return make_finding(event, RULE.code, RULE.name, message, "error")


def fix(case: FixCase) -> Drafts:
    from gradsight.fixes.gradients import non_leaf_optimized

    return non_leaf_optimized(case)


RULE = Rule(
    "GS303",
    "non-leaf-in-optimizer",
    ("non-leaf-optimized",),
    judge,
    __doc__,
    advice="make the leaf last: `(torch.randn(3) * 0.1).requires_grad_()`",
    fix=fix,
    companions=("made", "saved", "needed"),
    messages=(
        alone(
            r"can't optimize a non-leaf Tensor",
            "The optimizer was given the result of an operation, such as `.to(...)` or `* 0.1`, "
            "instead of the leaf itself.",
        ),
    ),
    observed_as=("non-leaf-optimized",),
)
