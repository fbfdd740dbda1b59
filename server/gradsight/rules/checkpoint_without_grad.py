"""A reentrant checkpoint whose inputs need no gradient, or that is asked for some gradients only.

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

A reentrant checkpoint runs a backward of its own, which fills the gradients of everything inside. So torch refuses it where
some gradients are asked for only.

```python
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

block = nn.Linear(2, 3)
x = torch.ones(4, 2, requires_grad=True)
hidden = checkpoint(block, x, use_reentrant=True)
torch.autograd.grad(hidden.sum(), x)  # error: GS211  # raises: incompatible with .grad()
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

See [torch.utils.checkpoint](https://docs.pytorch.org/docs/stable/checkpoint.html) and a
[report](https://github.com/huggingface/transformers/issues/21381) of a frozen model whose checkpoints train nothing.
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
    if event.kind == "checkpoint-refused":
        asked = "`autograd.grad`" if event.names.get("how") == "autograd.grad" else "`backward(inputs=…)`"
        message = (
            f"{asked} goes through a reentrant checkpoint, which torch refuses: pass `use_reentrant=False`"
        )
        return make_finding(event, RULE.code, RULE.name, message, "error")
    message = "no input of this checkpoint requires grad, so nothing in it trains: pass `use_reentrant=False`"
    return make_finding(event, RULE.code, RULE.name, message, "warning")


def fix(case: FixCase) -> Drafts:
    from gradsight.fixes.cuts import checkpointed

    return checkpointed(case)


RULE = Rule(
    "GS211",
    "checkpoint-without-grad",
    ("checkpoint-without-grad", "checkpoint-refused"),
    judge,
    __doc__,
    advice="call checkpoint with `use_reentrant=False`",
    fix=fix,
    messages=(
        alone(
            r"None of the inputs have requires_grad=True|checkpoint is incompatible with",
            "A reentrant checkpoint cuts the graph when none of its inputs requires grad.",
        ),
    ),
    observed_as=("checkpoint-without-grad",),
)
