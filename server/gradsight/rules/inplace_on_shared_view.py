"""An in-place write to one of several views, or to overlapping memory.

## Why torch refuses

`unbind`, `chunk`, `split` and iteration over a tensor return several views at once. Autograd cannot record a write to one of them.

```python
import torch

x = torch.ones(4, requires_grad=True)
left, right = (x * 2).chunk(2)
left += 1  # error: GS103  # raises: is a view and is being modified inplace
```

In an expanded tensor several elements are one place in memory, and a write would mean something else for each.

```python
import torch

x = torch.ones(1)
wide = x.expand(4)
wide += 1  # error: GS103  # raises: refers to a single memory location
```

A full backward hook sees the gradient of a module's result through a view of it, which cannot be written either.

```python
import torch
from torch import nn

layer = nn.Linear(2, 2)
layer.register_full_backward_hook(lambda module, grad_input, grad_output: None)
y = layer(torch.ones(1, 2))
y *= 2  # error: GS103  # raises: is a view and is being modified inplace
```

## Use instead

Write out of place.

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

Without a graph, one of several views is plain memory.

```python
import torch

table = torch.zeros(2, 3)
for row in table:
    row += 1
assert table.sum() == 6
```

## Fix safety

Writing out of place, and a clone where the view is made, are safe when nobody reads the base for the change; otherwise they are unsafe.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, text
from gradsight.model.torch_messages import alone

if TYPE_CHECKING:
    from gradsight.fixes.draft import Case, Drafts


def judge(event: Event) -> Finding | None:
    message = f"{text(event, 'target')} {_why(event)}{_refusal(event)}"
    return make_finding(event, RULE.code, RULE.name, message, "error")


def _refusal(event: Event) -> str:
    return (
        ""
        if event.names.get("reason") == "used"
        else f" and cannot be written in place by {text(event, 'op')}"
    )


def _why(event: Event) -> str:
    view = text(event, "view")
    made = f"is one of several views made by {view}"
    if view.startswith("register_"):
        made = f"is a view that {view} puts in place of the result"
    if event.names.get("reason") == "used":
        return f"{made}, whose base has been written: it can no longer be used"
    if event.names.get("reason") == "mode":
        return "is a view made without grad mode"
    if event.names.get("reason") == "operands":
        return "overlaps in memory with a value it is combined with"
    if event.names.get("reason") == "overlap":
        return f"has elements that share memory (made by {text(event, 'view')})"
    return made


def fix(case: Case) -> Drafts:
    from gradsight.fixes.inplace import shared_view_written

    return shared_view_written(case)


RULE = Rule(
    "GS103",
    "inplace-on-shared-view",
    ("shared-view-written",),
    judge,
    __doc__,
    advice="write out of place: `x = x + y`, or clone the view first",
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
