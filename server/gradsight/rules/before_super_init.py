"""A module is assigned before `super().__init__()`.

## Why torch refuses

`nn.Module.__init__` creates the tables in which modules and parameters are registered. Before it has run, there is no place to put them.

```python
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        self.layer = nn.Linear(2, 1)  # error: GS603  # raises: cannot assign module before
        super().__init__()


net = Net()
```

```python
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        self.scale = nn.Parameter(torch.ones(1))  # error: GS603  # raises: cannot assign parameters before


net = Net()
```

## Use instead

Call `super().__init__()` first.

```python
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 1)


net = Net()
```

## Not reported

Plain values may be set before it.

```python
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, width):
        self.width = width
        super().__init__()
        self.layer = nn.Linear(width, 1)


net = Net(2)
```

## Fix safety

Moving `super().__init__()` to the top is safe: without it, nothing before it could have worked.

See [Module](https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html) and a
[report](https://github.com/pyg-team/pytorch_geometric/issues/681) of a part that is assigned too early.
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
    message = f"{named(event, 'name')} is assigned before `super().__init__()`, which raises: call it first"
    return make_finding(event, RULE.code, RULE.name, message, "error")


def fix(case: FixCase) -> Drafts:
    from gradsight.fixes.modules import super_first

    return super_first(case)


RULE = Rule(
    "GS603",
    "before-super-init",
    ("before-super-init",),
    judge,
    __doc__,
    advice="call `super().__init__()` first",
    fix=fix,
    messages=(
        alone(
            r"before (?:Module|Parameter)\.__init__",
            "`super().__init__()` has to come before the first module or parameter is assigned.",
        ),
    ),
    observed_as=("before-super-init",),
)
