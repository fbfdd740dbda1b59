"""A plain tensor takes the name of a parameter.

## Why torch refuses

A module keeps its parameters in a table of their own. What is assigned to a name in it must be an `nn.Parameter` again: with a plain tensor the module would go on with something that no optimizer is given.

```python
import torch
from torch import nn

layer = nn.Linear(2, 1)
layer.weight = torch.zeros(1, 2)  # error: GS607  # raises: cannot assign
```

```python
import torch
from torch import nn


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(3))

    def forward(self, x):
        self.scale = self.scale * 2  # error: GS607  # raises: cannot assign
        return x * self.scale


Scaled()(torch.ones(3))
```

## Use instead

Write into the parameter under `no_grad`: the optimizer keeps it.

```python
import torch
from torch import nn

layer = nn.Linear(2, 1)
with torch.no_grad():
    layer.weight.zero_()
```

A value that is computed in every forward has a name of its own.

```python
import torch
from torch import nn


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(3))

    def forward(self, x):
        scale = self.scale * 2
        return x * scale


Scaled()(torch.ones(3)).sum().backward()
```

## Not reported

A new `nn.Parameter` may take the place of one, and `None` too. A name that was deleted first is free.

```python
import torch
from torch import nn

layer = nn.Linear(2, 1)
layer.weight = nn.Parameter(torch.zeros(1, 2))
layer.bias = None
base = layer.weight
del layer.weight
layer.weight = base * 2
layer(torch.ones(3, 2)).sum().backward()
assert base.grad is not None
```

## Fix safety

`nn.Parameter(...)` around the tensor is unsafe: an optimizer that was made before does not know the new parameter. Around a tensor with a graph it is not offered.

See [Parameter](https://docs.pytorch.org/docs/stable/generated/torch.nn.parameter.Parameter.html) and a
[report](https://github.com/pytorch/pytorch/issues/44022) of weights that a softmax is assigned to.
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
    instead = "give the value another name" if event.names.get("graph") else "write into it under `no_grad`"
    message = f"{named(event, 'name')} is a parameter, and torch refuses a plain tensor for it: {instead}"
    return make_finding(event, RULE.code, RULE.name, message, "error")


def fix(case: FixCase) -> Drafts:
    from gradsight.fixes.modules import parameter_refused

    return parameter_refused(case)


RULE = Rule(
    "GS607",
    "parameter-refused",
    ("parameter-refused",),
    judge,
    __doc__,
    advice="write into the parameter under `no_grad`, or assign an `nn.Parameter`",
    fix=fix,
    messages=(
        alone(
            r"cannot assign '.*' as parameter",
            "A plain tensor is assigned to a name that the module keeps for a parameter.",
        ),
    ),
    observed_as=("parameter-refused",),
)
