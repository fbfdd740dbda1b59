"""A write through one name changes a value that is read later under another.

## What goes wrong silently

Assignment, indexing by slice, `view`, `detach`, `append` and `state_dict()` copy nothing. A later write in place changes everything that shares the memory, and autograd has no objection: the graph is consistent, only the values are not the expected ones.

```python
import torch

state = torch.zeros(3)
states = []
for step in range(3):
    state += 1  # warning: GS107
    states.append(state)
history = torch.stack(states)
assert history[:, 0].tolist() == [3.0, 3.0, 3.0]  # 1, 2, 3 was meant
```

A `state_dict()` holds the parameters' own memory.

```python
import torch
from torch import nn

net = nn.Linear(2, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=1.0)
best = net.state_dict()  # warning: GS107
net(torch.ones(1, 2)).sum().backward()
optimizer.step()
net.load_state_dict(best)
assert best["weight"].data_ptr() == net.weight.data_ptr()  # nothing is restored
```

## Use instead

Copy where the value is meant to stay.

```python
import torch

state = torch.zeros(3)
states = []
for step in range(3):
    state += 1
    states.append(state.clone())
history = torch.stack(states)
assert history[:, 0].tolist() == [1.0, 2.0, 3.0]
```

```python
import copy

import torch
from torch import nn

net = nn.Linear(2, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=1.0)
best = copy.deepcopy(net.state_dict())
net(torch.ones(1, 2)).sum().backward()
optimizer.step()
assert not torch.equal(best["weight"], net.weight)
net.load_state_dict(best)
assert torch.equal(best["weight"], net.weight)
```

## Not reported

A write out of place makes a new tensor, and the old one stays.

```python
import torch

state = torch.zeros(3)
states = []
for step in range(3):
    state = state + 1
    states.append(state)
history = torch.stack(states)
assert history[:, 0].tolist() == [1.0, 2.0, 3.0]
```

A view that is written in order to change its base is meant that way.

```python
import torch

grid = torch.zeros(4, 4)
inner = grid[1:3, 1:3]
inner += 1
assert grid.sum() == 4
```

## Fix safety

Keeping a clone, and writing out of place, are unsafe: values that are read later change, and somebody may rely on the shared memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, text

if TYPE_CHECKING:
    from gradsight.fixes.draft import Case, Drafts


def judge(event: Event) -> Finding | None:
    message = _message(event)
    return make_finding(event, RULE.code, RULE.name, message, "warning")


def _message(event: Event) -> str:
    how = event.names.get("how")
    name = text(event, "target", "the value")
    if how == "list" and any(step.role == "written" for step in event.steps):
        return "every entry that is stored here is one tensor: a later write changes them all"
    if how == "list":
        return f"every stored entry is {name} itself: this in-place write changes them all"
    if how == "name":
        return f"{text(event, 'alias')} and {name} are one tensor: this in-place write changes {name} too, which is read later"
    if how == "argument":
        return f"this changes the caller's {name} too, which is read again after the call"
    if how == "source":
        return f"{text(event, 'alias')} shares memory with {name}: this write changes {name} too, which is read later"
    if how == "state":
        return f"state_dict() holds the model's own memory: this write changes {name} of the model, which is used again"
    if how == "itself" and any(step.role == "written" for step in event.steps):
        return f"{name} is not a copy: what it is compared with later is the same tensor, changed with it"
    if how == "itself":
        return (
            f"this write changes the kept {name} too: comparing the two later compares a tensor with itself"
        )
    if how == "exchange":
        return f"{text(event, 'alias')} is a view, not a copy: this write changes it before it is assigned"
    if how == "class":
        return f"{name} belongs to the class {text(event, 'alias')}: this write changes it for every instance"
    if how == "shared":
        return f"this gives two parameters one memory: writing the one changes {name} as well"
    if how == "state_dict":
        return f"state_dict() gives the parameters themselves, not copies: {text(event, 'alias')} changes before it is read"
    return f"{text(event, 'alias')} is not a copy: it changes with its source before it is read"


def fix(case: Case) -> Drafts:
    from gradsight.fixes.inplace import alias_changed

    return alias_changed(case)


RULE = Rule(
    "GS107",
    "alias-of-changed-value",
    ("alias-read-after-write",),
    judge,
    __doc__,
    advice="store or change a copy: `.clone()`",
    fix=fix,
    is_bad_write=True,
    observed_as=("alias-read-after-write",),
    shown_by=lambda run, finding: run.is_read_after_write(finding),
)
