"""An in-place write to a leaf that requires grad.

## Why torch refuses

A leaf holds the value that the gradient is taken at. If a recorded operation could overwrite it, that value would be gone, so torch refuses at once.

```python
import torch

x = torch.ones(3, requires_grad=True)
x += 1  # error: GS102  # raises: a leaf Variable that requires grad
```

Writing to a part of a leaf is writing through a view of it, and is refused as well.

```python
import torch

x = torch.ones(3, requires_grad=True)
x[0] = 5.0  # error: GS102  # raises: a view of a leaf Variable that requires grad
```

The write may be in a function that was handed the leaf.

```python
import torch


def scale(values, weight):
    return values.mul_(weight)  # error: GS102  # raises: a leaf Variable that requires grad


x = torch.ones(3, requires_grad=True)
y = scale(x, torch.tensor([1.0, 2.0, 3.0]))
```

## Use instead

Make a new tensor: it is not a leaf, and the gradient flows back to the old one.

```python
import torch

x = torch.ones(3, requires_grad=True)
x = x + 1
```

To change the value of a parameter, as an optimizer does, use `torch.no_grad()`.

```python
import torch

weight = torch.ones(3, requires_grad=True)
(weight * 2).sum().backward()
with torch.no_grad():
    weight -= 0.1 * weight.grad
assert weight.is_leaf
```

## Not reported

A leaf that needs no gradient is plain memory.

```python
import torch

x = torch.ones(3)
x += 1
x.requires_grad_()
(x * x).sum().backward()
```

The result of an operation is not a leaf.

```python
import torch

x = torch.ones(3, requires_grad=True)
y = x.clone()
y[0] = 5.0
y.sum().backward()
assert x.grad.tolist() == [0.0, 1.0, 1.0]
```

`nn.init` and other functions that write under `no_grad` are how a leaf is meant to be filled.

```python
import torch
from torch import nn

layer = nn.Linear(2, 2)
nn.init.zeros_(layer.bias)
layer(torch.ones(1, 2)).sum().backward()
```

## Fix safety

A step against the gradient (`w -= 0.1 * w.grad`) under `torch.no_grad()` is safe: it is how a leaf is updated by hand. Any other write under `torch.no_grad()` is unsafe, because no gradient reflects it. A new tensor (`x = x + 1`) is unsafe too: `x` becomes a computed tensor, its `.grad` stays `None`, and an optimizer that holds the leaf does not see the change.

See [In-place operations with autograd](https://docs.pytorch.org/docs/stable/notes/autograd.html#in-place-operations-with-autograd) and a
[report](https://github.com/PingoLH/FCHarDNet/issues/61) of kernels that are copied into a layer.
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
    if event.names.get("resized"):
        message = f"{named(event, 'here', 'this call')} resizes a tensor that requires grad, which raises: use `reshape`"
        return make_finding(event, RULE.code, RULE.name, message, "error")
    message = f"{named(event, 'here', 'this write')} changes {_what(event)} that requires grad, which raises: use `no_grad()` or a new tensor"
    return make_finding(event, RULE.code, RULE.name, message, "error")


def _what(event: Event) -> str:
    return "a view of a leaf" if event.names.get("view") is True else "a leaf"


def fix(case: FixCase) -> Drafts:
    from gradsight.fixes.inplace import leaf_written

    return leaf_written(case)


RULE = Rule(
    "GS102",
    "inplace-on-leaf",
    ("leaf-written",),
    judge,
    __doc__,
    advice="put the update under `torch.no_grad()`, or compute a new tensor",
    fix=fix,
    silences=("GS105", "GS107", "GS190"),
    is_bad_write=True,
    torch_raises=True,
    messages=(
        alone(
            r"leaf Variable that requires grad",
            "A leaf that requires grad, a parameter for example, was written in place while autograd "
            "was recording. Its gradient would have to be about the value before and after the write.",
        ),
    ),
    observed_as=("leaf-written",),
    kin="write-refused",
    stands_on="write",
)
