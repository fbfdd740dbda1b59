"""An attribute that torch does not know.

## What goes wrong silently

Python lets any attribute be set on a tensor or a module. A misspelt `requires_grad` freezes nothing.

```python
import torch
from torch import nn

net = nn.Linear(2, 1)
for parameter in net.parameters():
    parameter.require_grad = False  # warning: GS602
assert net.weight.requires_grad
```

A module has no such flag at all: the attribute is set, and every parameter goes on learning.

```python
import torch
from torch import nn

net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
net[0].requires_grad = False  # warning: GS602
assert net[0].weight.requires_grad
```

A method that is assigned to is replaced on that object, and nothing is written.

```python
import torch
from torch import nn

layer = nn.Linear(2, 1)
before = layer.weight.detach().clone()
layer.weight.data.copy_ = torch.zeros(1, 2)  # warning: GS602
assert torch.equal(layer.weight, before)
```

## Use instead

Use the attribute that torch knows; for a module, the method `requires_grad_()`.

```python
import torch
from torch import nn

net = nn.Linear(2, 1)
for parameter in net.parameters():
    parameter.requires_grad = False
assert not net.weight.requires_grad
```

## Not reported

Attributes of your own that do not resemble one of torch's are fine.

```python
import torch
from torch import nn

net = nn.Linear(2, 1)
net.weight.is_shared_with_head = True
net.description = "scores"
```

## Fix safety

Correcting the name is safe: it is the only one that torch knows. So is `requires_grad_(False)` on a module.
Calling the method that was overwritten is unsafe: the program writes then what it did not write before.

See [Module.requires_grad_](https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html) and a
[report of a module that was not frozen](https://github.com/CSCYQJ/MICCAI23-ProtoContra-SFDA/issues/18).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, named, text

if TYPE_CHECKING:
    from gradsight.fixes.draft import Drafts, FixCase


def judge(event: Event) -> Finding | None:
    if event.names.get("of_module"):
        message = (
            "a module has no `requires_grad` of its own, so this freezes nothing: call `requires_grad_()`"
        )
        return make_finding(event, RULE.code, RULE.name, message, "warning")
    if event.names.get("of_method"):
        message = f"this replaces the method `{text(event, 'name')}` and writes nothing: call `{text(event, 'meant')}`"
        return make_finding(event, RULE.code, RULE.name, message, "warning")
    message = f"torch has no attribute {named(event, 'name')}, so this line does nothing: did you mean {named(event, 'meant')}?"
    return make_finding(event, RULE.code, RULE.name, message, "warning")


def fix(case: FixCase) -> Drafts:
    from gradsight.fixes.modules import typo

    return typo(case)


RULE = Rule(
    "GS602",
    "attribute-typo",
    ("attribute-typo",),
    judge,
    __doc__,
    advice="the attribute is `requires_grad`",
    fix=fix,
    observed_as=("attribute-typo",),
)
