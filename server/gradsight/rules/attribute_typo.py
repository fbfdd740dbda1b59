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

## Use instead

The right name.

```python
import torch
from torch import nn

net = nn.Linear(2, 1)
for parameter in net.parameters():
    parameter.requires_grad = False
assert not net.weight.requires_grad
```

## Not reported

Attributes of one's own that resemble nothing of torch's.

```python
import torch
from torch import nn

net = nn.Linear(2, 1)
net.weight.is_shared_with_head = True
net.description = "scores"
```

## Fix safety

The right name is safe: it is the only one that torch knows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, text

if TYPE_CHECKING:
    from gradsight.fixes.draft import Case, Drafts


def judge(event: Event) -> Finding | None:
    message = f"torch has no attribute {text(event, 'name')}: {text(event, 'meant')} is meant, and this line does nothing"
    return make_finding(event, RULE.code, RULE.name, message, "warning")


def fix(case: Case) -> Drafts:
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
