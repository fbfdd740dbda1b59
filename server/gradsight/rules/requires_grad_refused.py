"""A flag or a hook that torch refuses.

## Why torch refuses

Only floating-point and complex tensors can require grad. A tensor that was computed has its flag from its inputs, so it can
be taken out of the graph by `detach()`, never by `requires_grad = False`. And where no gradient will come, there is none to
retain or to hook.

```python
import torch

positions = torch.arange(3)
positions.requires_grad_()  # error: GS307  # raises: floating point
```

```python
import torch

x = torch.ones(3, requires_grad=True)
features = x * 2
features.requires_grad = False  # error: GS307  # raises: leaf variables
```

```python
import torch

batch = torch.ones(4, 3)
batch.register_hook(print)  # error: GS307  # raises: doesn't require gradient
```

```python
import torch

batch = torch.ones(4, 3)
batch.retain_grad()  # error: GS307  # raises: requires_grad=False
```

```python
import torch

x = torch.ones(3, requires_grad=True)
features = x * 2
features.register_post_accumulate_grad_hook(print)  # error: GS307  # raises: leaf tensors
```

```python
import torch

with torch.inference_mode():
    embedding = torch.ones(3)
embedding.requires_grad_()  # error: GS307  # raises: inference tensor
```

## Use instead

Make the tensor a floating-point one, `detach()` the result, or ask for the gradient before anything is computed.

```python
import torch

positions = torch.arange(3.0)
positions.requires_grad_()
x = torch.ones(3, requires_grad=True)
features = (x * 2).detach()
batch = torch.ones(4, 3, requires_grad=True)
batch.register_hook(print)
batch.retain_grad()
```

## Not reported

Whole numbers that require no grad, results that are asked to require what they require already, and parameters that are frozen.

```python
import torch
from torch import nn

steps = nn.Parameter(torch.zeros(1, dtype=torch.long), requires_grad=False)
net = nn.Linear(3, 2)
net.weight.requires_grad = False
features = net(torch.ones(4, 3))
features.requires_grad_(True)
if features.requires_grad:
    features.register_hook(print)
```

## Fix safety

No fix is offered: whether the numbers should be floating, or the flag should not be asked for, is for the author to say.

See [torch.Tensor.requires_grad](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.requires_grad.html) and a
[report](https://github.com/pytorch/pytorch/issues/72332).
"""

from __future__ import annotations

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, named, text
from gradsight.model.torch_messages import alone


def judge(event: Event) -> Finding | None:
    target = named(event, "target", "the tensor")
    reason = event.names.get("reason")
    if reason == "integer":
        message = f"{target} holds integers: only floating-point tensors can require grad"
    elif reason == "result":
        message = f"{target} is not a leaf, so `requires_grad` cannot be switched off: use `detach()`"
    elif reason == "inference":
        message = f"{target} was made in inference mode and can never require grad: `clone()` it first"
    elif reason == "accumulated":
        message = f"{target} is not a leaf, and this hook works only on leaves: use `register_hook`"
    else:
        message = f"`{text(event, 'how')}` raises here, because {target} does not require grad"
    return make_finding(event, RULE.code, RULE.name, message, "error")


RULE = Rule(
    "GS307",
    "requires-grad-refused",
    ("requires-grad-refused",),
    judge,
    __doc__,
    advice="use a floating-point tensor, `detach()` instead of the flag, or a tensor that requires grad",
    messages=(
        alone(
            r"can require gradients|only change requires_grad flags of leaf|hook on a tensor that doesn't require"
            r"|post accumulate grad hooks cannot be registered on non-leaf|can't retain_grad on Tensor|Setting requires_grad=True on inference tensor",
            "This tensor cannot have the flag or the hook: it holds integers, is not a leaf, or does not require grad.",
        ),
    ),
)
