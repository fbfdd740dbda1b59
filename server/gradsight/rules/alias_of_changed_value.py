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

A forward hook runs after the layer. The input that it is given has been overwritten then, if the layer works in place.

```python
import torch
from torch import nn

seen = {}
layer = nn.Linear(1, 1, bias=False)
activation = nn.ReLU(inplace=True)
activation.register_forward_hook(lambda module, inputs, output: seen.update(before=inputs[0]))
nn.init.constant_(layer.weight, -1.0)
out = activation(layer(torch.ones(1, 1)))  # warning: GS107
assert seen["before"].item() == 0.0
```

## Use instead

Clone the value that has to stay as it is.

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

An expression such as `x + 1` makes a new tensor, and the old one stays as it is.

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

Writing through a view in order to change its base is a common idiom.

```python
import torch

grid = torch.zeros(4, 4)
inner = grid[1:3, 1:3]
inner += 1
assert grid.sum() == 4
```

## Fix safety

Storing a clone, and writing to a new tensor, are unsafe: values that are read later change, and other code may rely on the shared memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, named

if TYPE_CHECKING:
    from gradsight.fixes.draft import Drafts, FixCase


def judge(event: Event) -> Finding | None:
    message = _message(event)
    return make_finding(event, RULE.code, RULE.name, message, "warning")


def _message(event: Event) -> str:
    how = event.names.get("how")
    name, alias = named(event, "target", "the tensor"), named(event, "alias")
    if how == "list" and any(step.role == "written" for step in event.steps):
        return "every entry is the same tensor, which a later write changes: store a clone"
    if how == "list":
        return f"every stored entry is {name} itself, so this write changes all of them: store a clone"
    if how == "name":
        return f"{alias} and {name} are one tensor: this write changes both, and {name} is read later"
    if how == "argument":
        return f"this write also changes the caller's {name}, which is read after the call: clone it first"
    if how == "source":
        return f"{alias} shares memory with {name}: this write changes both, and {name} is read later"
    if how == "state":
        return f"`state_dict()` holds the model's own memory: this write changes {name} in the model too"
    if how == "itself" and any(step.role == "written" for step in event.steps):
        return f"{name} is not a copy: it changes with the tensor it is compared with later, so clone it"
    if how == "itself":
        return f"this write also changes {name}, which is not a copy: comparing the two later finds no difference"
    if how == "exchange":
        return f"{alias} is a view, not a copy: this write changes it before it is assigned, so clone it"
    if how == "hook":
        return "this layer overwrites its input in place before the forward hook sees it: the hook keeps the result"
    if how == "class":
        return f"{name} belongs to the class {alias}: this write changes it for every instance"
    if how == "shared":
        return f"two parameters share one memory here: writing one changes {name} too, so clone it"
    if how == "state_dict":
        return (
            f"`state_dict()` returns the parameters themselves: {alias} changes before it is read, so copy it"
        )
    return f"{alias} is not a copy: it changes with its source before it is read, so clone it"


def fix(case: FixCase) -> Drafts:
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
