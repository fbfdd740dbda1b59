"""`out=` with arguments that require grad.

## Why torch refuses

`out=` writes a result into memory that is already there, and autograd does not record it. With grad mode on, torch refuses as soon as an input or the target requires grad.

```python
import torch

weight = torch.ones(3, requires_grad=True)
x = torch.ones(3)
buffer = torch.empty(3)
torch.mul(x, weight, out=buffer)  # error: GS108  # raises: functions with out=... arguments
```

## Use instead

Assign the result.

```python
import torch

weight = torch.ones(3, requires_grad=True)
x = torch.ones(3)
buffer = torch.empty(3)
buffer = torch.mul(x, weight)
```

## Not reported

Inputs that do not require grad are fine, and so is a block with grad mode off.

```python
import torch

weight = torch.ones(3, requires_grad=True)
x = torch.ones(3)
buffer = torch.empty(3)
torch.mul(x, x, out=buffer)
with torch.no_grad():
    torch.mul(x, weight, out=buffer)
```

## Fix safety

Assigning the result (`buffer = torch.mul(x, weight)`) is safe when no other variable shares the memory of the buffer; otherwise it is unsafe, because those variables would no longer see the change.

See [the out= argument of torch.add](https://docs.pytorch.org/docs/stable/generated/torch.add.html) and a
[report](https://github.com/pytorch/pytorch/issues/93683) of a buffer for similarities.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, text
from gradsight.model.torch_messages import alone

if TYPE_CHECKING:
    from gradsight.fixes.draft import Drafts, FixCase


def judge(event: Event) -> Finding | None:
    message = f"`{text(event, 'op')}(..., out=...)` raises when an argument requires grad: assign the result instead"
    return make_finding(event, RULE.code, RULE.name, message, "error")


def fix(case: FixCase) -> Drafts:
    from gradsight.fixes.inplace import written_to_out

    return written_to_out(case)


RULE = Rule(
    "GS108",
    "out-with-grad",
    ("out-refused",),
    judge,
    __doc__,
    fix=fix,
    is_bad_write=True,
    messages=(
        alone(
            r"don't support automatic differentiation, but one of the arguments requires grad",
            "`out=` writes into a given tensor, which autograd does not record.",
        ),
    ),
    advice="assign the result: `y = torch.mul(a, b)`",
    observed_as=("out-refused",),
)
