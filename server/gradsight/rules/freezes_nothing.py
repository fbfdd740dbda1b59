"""A freeze by name that no parameter's name fits.

## What goes wrong silently

A model is frozen in part by a condition on the names of its parameters. If no name fits, nothing is frozen, and nobody says so:
the optimizer moves what was to stand still.

```python
import torch
from torch import nn

model = nn.Sequential()
model.add_module("attention", nn.Linear(4, 4))
model.add_module("head", nn.Linear(4, 2))
for name, p in model.named_parameters():
    if "attn" in name:  # warning: GS522
        p.requires_grad = False
assert all(p.requires_grad for p in model.parameters())
```

Of several texts, one may be wrong: a path into the model that is not there.

```python
import torch
from torch import nn

model = nn.Sequential()
model.add_module("encoder", nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4)))
model.add_module("head", nn.Linear(4, 2))
frozen = ["head", "model.encoder.1."]
for name, p in model.named_parameters():
    if any(part in name for part in frozen):  # warning: GS522
        p.requires_grad = False
assert model.encoder[1].weight.requires_grad
```

## Use instead

Print the names once, and test for a text that they have.

```python
import torch
from torch import nn

model = nn.Sequential()
model.add_module("attention", nn.Linear(4, 4))
model.add_module("head", nn.Linear(4, 2))
for name, p in model.named_parameters():
    if "attention" in name:
        p.requires_grad = False
assert not model.attention.weight.requires_grad
```

## Not reported

A helper for many models may ask for layers that one of them lacks, as long as it was not asked to freeze these.

```python
import torch
from torch import nn


def freeze(model, head=True, norms=False):
    for name, p in model.named_parameters():
        if "norm" in name:
            p.requires_grad = not norms
        elif "head" in name:
            p.requires_grad = not head


model = nn.Sequential()
model.add_module("head", nn.Linear(4, 2))
freeze(model)
assert not model.head.weight.requires_grad
```

## Fix safety

No fix is offered: which layers are meant is yours to say.

See [Module.named_parameters](https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html) and a
[report](https://github.com/optuna/optuna/issues/3855) of a name that is nowhere.
"""

from __future__ import annotations

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, text


def judge(event: Event) -> Finding | None:
    missed, test = text(event, "target", ""), text(event, "test", "this condition")
    message = (
        f"no parameter has {missed} in its name: that part is not frozen"
        if missed
        else f"no name fits {test}: nothing is frozen here"
    )
    return make_finding(event, RULE.code, RULE.name, message, "warning")


RULE = Rule(
    "GS522",
    "freezes-nothing",
    ("freezes-nothing",),
    judge,
    __doc__,
    advice="test for a text that the names have: `model.named_parameters()` lists them",
)
