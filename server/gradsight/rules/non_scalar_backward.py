"""`backward()` of a tensor with more than one element.

## Why torch refuses

Backward computes a product with the gradient of the result. For a single number that gradient is 1; for several numbers you have to pass it.

```python
import torch

x = torch.ones(3, requires_grad=True)
y = x * 2
y.backward()  # error: GS401  # raises: grad can be implicitly created only for scalar outputs
```

A loss without reduction has one element per sample.

```python
import torch
from torch import nn

net = nn.Linear(2, 1)
criterion = nn.MSELoss(reduction="none")
loss = criterion(net(torch.ones(4, 2)), torch.zeros(4, 1))
loss.backward()  # error: GS401  # raises: grad can be implicitly created only for scalar outputs
```

## Use instead

Reduce to one number, or pass the gradient.

```python
import torch

x = torch.ones(3, requires_grad=True)
y = x * 2
y.sum().backward()
```

```python
import torch

x = torch.ones(3, requires_grad=True)
y = x * 2
y.backward(gradient=torch.ones(3))
assert x.grad.tolist() == [2.0, 2.0, 2.0]
```

## Not reported

One element is enough, whatever the number of dimensions.

```python
import torch

x = torch.ones(1, 1, requires_grad=True)
(x * 2).backward()
```

## Fix safety

`.sum()` and `.mean()` are both offered and both unsafe: they differ by a factor, and only you know which one you want.

See [Tensor.backward](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.backward.html) and a
[report](https://github.com/mindee/doctr/pull/379) of a loss with one value for each word.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, named, text
from gradsight.model.torch_messages import alone

if TYPE_CHECKING:
    from gradsight.fixes.draft import Drafts, FixCase


def judge(event: Event) -> Finding | None:
    how, argument = text(event, "how", "backward"), text(event, "argument")
    called = "backward()" if how == "backward" else how
    needs = f"`{called}` needs a scalar" + (f" or a `{argument}=`" if argument else "")
    shape = text(event, "shape", "")
    has = f"has shape {shape}" if shape else "has a value for each item"
    message = f"{named(event, 'target', 'the tensor')} {has}: {needs}"
    return make_finding(event, RULE.code, RULE.name, message, "error")


def fix(case: FixCase) -> Drafts:
    from gradsight.fixes.graphs import non_scalar

    return non_scalar(case)


RULE = Rule(
    "GS401",
    "non-scalar-backward",
    ("non-scalar-backward",),
    judge,
    __doc__,
    advice="reduce to a scalar (`.sum()`, `.mean()`), or pass the gradient of the output",
    fix=fix,
    torch_raises=True,
    messages=(
        alone(
            r"implicitly created only for scalar outputs",
            "`backward()` was called on a tensor with more than one element. Reduce it to a loss "
            "first, or pass `gradient=`.",
        ),
    ),
    observed_as=("non-scalar-backward",),
    stands_on="backward",
)
