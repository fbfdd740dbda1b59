"""An in-place write destroys a value that backward still needs.

## Why torch refuses

Every in-place write raises the version of its tensor, and `backward()` refuses a saved tensor whose version has changed.
Many operators save a tensor for backward: some an input (`sin`, `pow`, `matmul`), some their output (`exp`, `sigmoid`, `tanh`, `softmax`, `relu`).
The error comes from `backward()` and does not name the line that wrote.

```python
import torch

x = torch.ones(3, requires_grad=True)
y = x.exp()
y *= 2  # error: GS101
y.sum().backward()  # raises: modified by an inplace operation
```

A view shares memory and version with its base, so a write to the base also changes what was saved through the view.

```python
import torch

x = torch.ones(4, requires_grad=True)
y = x * 2
half = y[:2]
z = half * half
y.add_(1)  # error: GS101
z.sum().backward()  # raises: modified by an inplace operation
```

In a module it is often an activation that works in place on the output of another one.

```python
import torch
from torch import nn

net = nn.Sequential(nn.Linear(2, 2), nn.Sigmoid(), nn.ReLU(inplace=True))  # error: GS101
out = net(torch.randn(4, 2))
out.sum().backward()  # raises: modified by an inplace operation
```

## Use instead

Write the result to a new tensor: the saved one stays as it was.

```python
import torch

x = torch.ones(3, requires_grad=True)
y = x.exp()
y = y * 2
y.sum().backward()
```

## Not reported

A tensor that nothing saved may be overwritten: multiplying by a number saves nothing, so the gradient is exact.

```python
import torch

x = torch.ones(3, requires_grad=True)
y = x * 2
y *= 3
y.sum().backward()
assert x.grad.tolist() == [6.0, 6.0, 6.0]
```

`exp` saves its output and not its input, so its input may be overwritten.

```python
import torch

x = torch.ones(3, requires_grad=True)
y = x * 2
z = y.exp()
y.zero_()
z.sum().backward()
```

`Linear` saves its input and its weight, and `ReLU` saves its own output, so this common chain is fine.

```python
import torch
from torch import nn

net = nn.Sequential(nn.Linear(2, 4), nn.ReLU(inplace=True), nn.Linear(4, 2), nn.ReLU(inplace=True))
net(torch.randn(4, 2)).sum().backward()
```

Nothing is lost when no backward goes through the operator that saved the value.

```python
import torch

x = torch.ones(3)
y = x.exp()
y *= 2
```

## Fix safety

Writing to a new tensor (`y = y * 2`) is safe when no other variable shares the memory of the written tensor; otherwise it is unsafe, because those variables would no longer see the change. Giving the operator a clone, and removing `inplace=True` from a layer, are safe: every value stays as it is.

See [In-place operations with autograd](https://docs.pytorch.org/docs/stable/notes/autograd.html#in-place-operations-with-autograd) and a
[report](https://github.com/Jee-King/TSAN/issues/3) of a skip connection that overwrites the output of a sigmoid.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, named, text
from gradsight.model.torch_messages import MODIFIED_IN_PLACE, Cause

if TYPE_CHECKING:
    from gradsight.fixes.draft import Drafts, FixCase


def judge(event: Event) -> Finding | None:
    if not (not event.names.get("by_step") and not _is_update(event)):
        return None
    saved = "the output" if event.names.get("what") == "result" else "an input"
    cure = "drop `inplace=True`" if "inplace=True" in text(event, "here") else "use a new tensor"
    message = f"{named(event, 'here', 'this write')} overwrites {saved} of {named(event, 'saver')}, which `backward()` needs: {cure}"
    return make_finding(event, RULE.code, RULE.name, message, "error")


def _is_update(event: Event) -> bool:
    """A parameter that is updated by hand under no_grad: told as a step before backward."""
    return bool(event.names.get("is_parameter")) and event.names.get("mode") == "no_grad"


def fix(case: FixCase) -> Drafts:
    from gradsight.fixes.inplace import saved_overwritten

    return saved_overwritten(case)


RULE = Rule(
    "GS101",
    "inplace-on-saved",
    ("saved-overwritten",),
    judge,
    __doc__,
    advice="write to a new tensor (`x = x * 2` instead of `x *= 2`), or clone the tensor before it is changed",
    fix=fix,
    silences=("GS105", "GS107", "GS190"),
    # The fault of a layer that writes in place is told where the layer is made, and its hint where it is called.
    silences_callers=("GS190",),
    is_bad_write=True,
    spoils_saved=True,
    is_drawable=True,
    torch_raises=True,
    messages=(Cause(MODIFIED_IN_PLACE),),
    observed_as=("saved-overwritten",),
    stands_on="write",
)
