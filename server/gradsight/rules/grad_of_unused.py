"""`autograd.grad` of a tensor that the output does not depend on.

## Why torch refuses

`autograd.grad` is asked for the gradient of a tensor that the result was not computed from.

```python
import torch

x = torch.ones(3, requires_grad=True)
other = torch.ones(3, requires_grad=True)
(slope,) = torch.autograd.grad((x * 2).sum(), other)  # error: GS406  # raises: not have been used
```

Computing a tensor from the input a second time gives another tensor, which the result does not depend on.

```python
import torch

x = torch.ones(3, requires_grad=True)
loss = (x * 2).sum()
part = x[:2]
(slope,) = torch.autograd.grad(loss, part)  # error: GS406  # raises: not have been used
```

## Use instead

Ask for the gradient of the tensor that was used.

```python
import torch

x = torch.ones(3, requires_grad=True)
other = torch.ones(3, requires_grad=True)
(slope,) = torch.autograd.grad((x * 2).sum(), x)
```

## Not reported

With `allow_unused=True` the call says that it expects this.

```python
import torch

x = torch.ones(3, requires_grad=True)
other = torch.ones(3, requires_grad=True)
(slope,) = torch.autograd.grad((x * 2).sum(), other, allow_unused=True)
assert slope is None
```

## Fix safety

Making the tensor require grad before it is used is safe where it is made on the spot, and unsafe elsewhere. `allow_unused=True` is not among the fixes: it would only hide the mistake.

See [torch.autograd.grad](https://docs.pytorch.org/docs/stable/generated/torch.autograd.grad.html) and a
[report](https://github.com/showlab/BoxDiff/issues/20) of latents that the loss does not depend on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, named
from gradsight.model.torch_messages import UNUSED_IN_GRAPH, Cause

if TYPE_CHECKING:
    from gradsight.fixes.draft import Drafts, FixCase


def judge(event: Event) -> Finding | None:
    target = named(event, "target", "the input")
    message = (
        f"the output does not depend on {target}, which raises: leave it out or pass `allow_unused=True`"
    )
    if event.names.get("needs_none"):
        message = f"{target} does not require grad, so `autograd.grad` raises: call `requires_grad_()` before it is used"
    return make_finding(event, RULE.code, RULE.name, message, "error")


def fix(case: FixCase) -> Drafts:
    from gradsight.fixes.graphs import unused

    return unused(case)


RULE = Rule(
    "GS406",
    "grad-of-unused",
    ("grad-of-unused",),
    judge,
    __doc__,
    advice="take the gradient of a tensor that the output is computed from, or pass `allow_unused=True`",
    fix=fix,
    messages=(Cause(UNUSED_IN_GRAPH),),
    observed_as=("grad-of-unused",),
)
