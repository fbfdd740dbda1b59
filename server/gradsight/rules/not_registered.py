"""Modules or parameters that are not registered.

## What goes wrong silently

A module registers the modules and parameters that are assigned to it directly. Those in a plain list or dict, and tensors that merely require grad, are missing from `parameters()`: no optimizer updates them, `to()` does not move them, and a checkpoint does not contain them.

```python
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = [nn.Linear(2, 2), nn.Linear(2, 1)]  # warning: GS601

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


net = Net()
assert list(net.parameters()) == []
```

```python
import torch
from torch import nn


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 1)
        self.scale = torch.ones(1, requires_grad=True)  # warning: GS601

    def forward(self, x):
        return self.layer(x) * self.scale


net = Scaled()
assert "scale" not in dict(net.named_parameters())
```

A parameter that is converted is none any more: `.to(dtype)` computes a new tensor from it.

```python
import torch
from torch import nn


class Scale(nn.Module):
    def __init__(self):
        super().__init__()
        self.factor = nn.Parameter(torch.ones(3)).to(torch.float64)  # warning: GS601

    def forward(self, x):
        return x * self.factor


assert list(Scale().parameters()) == []
```

## Use instead

Use `nn.ModuleList`, `nn.ModuleDict`, `nn.ParameterList` or `nn.Parameter`.

```python
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 1)])

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


net = Net()
assert len(list(net.parameters())) == 4
```

## Not reported

A list that only helps to build a registered module is fine, and so are modules without parameters.

```python
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        layers = []
        for width in (2, 3):
            layers.append(nn.Linear(width, width + 1))
        self.body = nn.Sequential(*layers)
        self.activations = [torch.relu, torch.tanh]

    def forward(self, x):
        return self.activations[0](self.body(x))


net = Net()
assert len(list(net.parameters())) == 4
```

A tensor that does not require grad is not meant to train.

```python
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 1)
        self.register_buffer("mean", torch.zeros(2))

    def forward(self, x):
        return self.layer(x - self.mean)


Net()(torch.ones(4, 2)).sum().backward()
```

## Fix safety

`nn.ModuleList(...)` around the list, and `nn.Parameter` in place of the tensor, are safe where the class only uses what both kinds of container have; otherwise they are unsafe. `register_buffer` for a tensor is unsafe: it moves and is saved with the module, and is no longer trained.

See [ModuleList](https://docs.pytorch.org/docs/stable/generated/torch.nn.ModuleList.html) and a
[report](https://github.com/pytorch/pytorch/issues/715) of layers in a plain list.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, named, text

if TYPE_CHECKING:
    from gradsight.fixes.draft import Drafts, FixCase


def judge(event: Event) -> Finding | None:
    message = _message(event)
    return make_finding(event, RULE.code, RULE.name, message, "warning")


def _message(event: Event) -> str:
    name, container, what = named(event, "name"), text(event, "container"), text(event, "what")
    if container == "buffer":
        return f"{name} is a buffer, so no optimizer is given it and it never trains: assign the `nn.Parameter` to `self`"
    if container == "class":
        return (
            f"{name} belongs to the class, which registers nothing, so it never trains: make it in `__init__`"
        )
    if container == "tensor":
        return f"{name} is a plain tensor, so it never trains: make it an `nn.Parameter`"
    if what == "object":
        return f"{name} is a plain {container} of objects, so their modules never train: subclass `nn.Module`"
    if container == "object":
        return f"{name} is not a module, so its {what}s never train: subclass `nn.Module`"
    return f"{name} is a plain {container}, so its {what}s never train: use `{_holder(container, what)}`"


def _holder(container: str, what: str) -> str:
    """The container of torch's that registers what is in it."""
    return f"nn.{'Parameter' if what == 'parameter' else 'Module'}{'Dict' if container == 'dict' else 'List'}"


def fix(case: FixCase) -> Drafts:
    from gradsight.fixes.modules import not_registered

    return not_registered(case)


RULE = Rule(
    "GS601",
    "not-registered",
    ("not-registered",),
    judge,
    __doc__,
    advice="hold modules in `nn.ModuleList` or `nn.ModuleDict`, tensors in `nn.Parameter`",
    fix=fix,
    observed_as=("not-registered",),
    excluded_by=lambda run, finding: run.is_all_in_optimizers(),
    needs_training=True,
)
