"""A reentrant checkpoint whose inputs need no gradient.

## What goes wrong silently

With `use_reentrant=True`, and in torch 2.13 also where the argument is left out, the checkpoint is recorded only if one of its tensor inputs requires grad. Parameters used inside do not count, so a first block on plain data gets no gradient.

```python
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

block, head = nn.Linear(2, 3), nn.Linear(3, 1)
x = torch.ones(4, 2)
hidden = checkpoint(block, x, use_reentrant=True)  # warning: GS211  # warns: None of the inputs have
head(hidden).pow(2).mean().backward()
assert block.weight.grad is None
```

```python
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

block, head = nn.Linear(2, 3), nn.Linear(3, 1)
x = torch.ones(4, 2)
hidden = checkpoint(block, x)  # warning: GS211  # warns: None of the inputs  # warns: should be passed
head(hidden).pow(2).mean().backward()
assert block.weight.grad is None
```

## Use instead

Use the other implementation, which sees the parameters.

```python
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

block, head = nn.Linear(2, 3), nn.Linear(3, 1)
x = torch.ones(4, 2)
hidden = checkpoint(block, x, use_reentrant=False)
head(hidden).pow(2).mean().backward()
assert block.weight.grad is not None
```

## Not reported

Every block after the first gets an input that requires grad.

```python
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

stem, block = nn.Linear(2, 3), nn.Linear(3, 1)
hidden = checkpoint(block, stem(torch.ones(4, 2)), use_reentrant=True)
hidden.pow(2).mean().backward()
assert block.weight.grad is not None
```

## Fix safety

`use_reentrant=False` is safe: the values are the same, and the gradient is there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding
from gradsight.model.torch_messages import alone

if TYPE_CHECKING:
    from gradsight.fixes.draft import Drafts, FixCase


def judge(event: Event) -> Finding | None:
    message = "no input of this checkpoint requires grad, so nothing in it trains: pass `use_reentrant=False`"
    return make_finding(event, RULE.code, RULE.name, message, "warning")


def fix(case: FixCase) -> Drafts:
    from gradsight.fixes.cuts import checkpointed

    return checkpointed(case)


RULE = Rule(
    "GS211",
    "checkpoint-without-grad",
    ("checkpoint-without-grad",),
    judge,
    __doc__,
    advice="call checkpoint with `use_reentrant=False`",
    fix=fix,
    messages=(
        alone(
            r"None of the inputs have requires_grad=True",
            "A reentrant checkpoint cuts the graph when none of its inputs requires grad.",
        ),
    ),
    observed_as=("checkpoint-without-grad",),
)
