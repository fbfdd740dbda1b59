"""An in-place write to one of several views, or to overlapping memory.

## Why torch refuses

`unbind`, `chunk`, `split` and iteration over a tensor return several views at once. Autograd cannot record a write to one of them.

```python
import torch

x = torch.ones(4, requires_grad=True)
left, right = (x * 2).chunk(2)
left += 1  # error: GS103  # raises: is a view and is being modified inplace
```

In an expanded tensor several elements share one place in memory, so an in-place write has no single meaning.

```python
import torch

x = torch.ones(1)
wide = x.expand(4)
wide += 1  # error: GS103  # raises: refers to a single memory location
```

A full backward hook makes a module return a view of its output, which cannot be written either.

```python
import torch
from torch import nn

layer = nn.Linear(2, 2)
layer.register_full_backward_hook(lambda module, grad_input, grad_output: None)
y = layer(torch.ones(1, 2))
y *= 2  # error: GS103  # raises: is a view and is being modified inplace
```

## Use instead

Write to a new tensor.

```python
import torch

x = torch.ones(4, requires_grad=True)
left, right = (x * 2).chunk(2)
left = left + 1
```

`clone()` gives an expanded tensor memory of its own.

```python
import torch

x = torch.ones(1)
wide = x.expand(4).clone()
wide += 1
assert wide.tolist() == [2.0, 2.0, 2.0, 2.0]
```

## Not reported

A single view may be written; the write is recorded for its base.

```python
import torch

x = torch.ones(4, requires_grad=True)
y = x * 2
head = y[:2]
head *= 3
y.sum().backward()
assert x.grad.tolist() == [6.0, 6.0, 2.0, 2.0]
```

Without a graph, one of several views may be written.

```python
import torch

table = torch.zeros(2, 3)
for row in table:
    row += 1
assert table.sum() == 6
```

## Fix safety

Writing to a new tensor, and cloning the view where it is made, are safe when nothing reads the change through the base; otherwise they are unsafe.

See [Tensor Views](https://docs.pytorch.org/docs/stable/tensor_view.html) and a
[report](https://github.com/haofanwang/Score-CAM/issues/28) of channels that are normalised one by one.
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
    message = _message(event)
    return make_finding(event, RULE.code, RULE.name, message, "error")


def _message(event: Event) -> str:
    write, view, reason = named(event, "here", "this write"), text(event, "view"), event.names.get("reason")
    maker = "iterating a tensor" if view.startswith("unbind (") else f"`{view}`"
    if reason == "used":
        return f"{named(event, 'target')} is a view made by {maker}, and its base was written in place: clone it first"
    if reason == "detach":
        return f"{write} detaches a view in place, which raises: use `detach()`"
    if reason == "mode":
        return f"{write} writes a view that was made with grad mode off, which raises: clone it first"
    if reason == "operands":
        return f"{write} reads and writes overlapping memory, which raises: clone the value it reads"
    if reason == "overlap":
        return f"{write} writes elements that share memory (made by {maker}), which raises: clone it first"
    if view.startswith("register_"):
        return f"{write} writes a view that {maker} returns, which raises: write to a new tensor"
    return f"{write} writes one of several views made by {maker}, which raises: write to a new tensor"


def fix(case: FixCase) -> Drafts:
    from gradsight.fixes.inplace import shared_view_written

    return shared_view_written(case)


RULE = Rule(
    "GS103",
    "inplace-on-shared-view",
    ("shared-view-written",),
    judge,
    __doc__,
    advice="write to a new tensor: `x = x + y`, or clone the view first",
    fix=fix,
    silences=("GS105", "GS107", "GS190"),
    is_bad_write=True,
    torch_raises=True,
    messages=(
        alone(
            r"is a view and (?:its base or another view|is being modified)|returns multiple views|created in no_grad mode",
            "The tensor is one of several views of one memory, and autograd cannot record a write to it.",
        ),
        alone(
            r"single memory location",
            "Several elements of the tensor are one place in memory, after `expand` for example, so a "
            "write has no one meaning.",
        ),
    ),
    observed_as=("shared-view-written",),
    kin="write-refused",
    stands_on="write",
)
