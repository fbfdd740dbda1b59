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

A layer that works in place at the head of a residual branch changes the other branch too.

```python
import torch
from torch import nn

body = nn.Sequential(nn.ReLU(inplace=True), nn.Linear(2, 2))
stem = nn.Linear(1, 2, bias=False)
nn.init.constant_(stem.weight, -1.0)
x = stem(torch.ones(1, 1))
skipped = x.detach().clone()
out = x + body(x)  # warning: GS107
assert skipped.min() < 0 and x.min() == 0
```

So does a layer after a value was put into a list.

```python
import torch
from torch import nn

layer, activation = nn.Linear(1, 1, bias=False), nn.ReLU(inplace=True)
nn.init.constant_(layer.weight, -1.0)
features = []
h = layer(torch.ones(1, 1))
features.append(h)
h = activation(h)  # warning: GS107
assert features[0].item() == 0.0  # -1 was meant
```

An entry of a dict has two names then, and both are used.

```python
import torch
from torch import nn

encoder, decoder = nn.Linear(4, 2), nn.Linear(2, 4)
batch = torch.ones(3, 4)
stats = {"mean": encoder(batch)}
z = stats["mean"]
z += torch.ones(3, 2)  # warning: GS107
loss = nn.functional.mse_loss(decoder(z), batch) + stats["mean"].square().mean()
assert torch.equal(z, stats["mean"])
```

Data that is normalised in place where it is fetched is normalised once more in every epoch.

```python
import torch
from torch.utils.data import DataLoader, Dataset


class Points(Dataset):
    def __init__(self):
        self.data = torch.ones(4, 2)

    def __len__(self):
        return len(self.data)

    def __getitem__(self, index):
        point = self.data[index]
        point /= 2.0  # warning: GS107
        return point


loader = DataLoader(Points(), batch_size=4)
means = [batch.mean().item() for epoch in range(2) for batch in loader]
assert means == [0.5, 0.25]
```

Slices are views: here the second line reads what the first has written.

```python
import torch

x = torch.tensor([1.0, 1.0])
first, second = x[..., :1], x[..., 1:]
x[..., :1] = first - second  # warning: GS107
x[..., 1:] = second + 2 * first
assert x.tolist() == [0.0, 1.0]  # 0, 3 was meant
```

An index that names a row several times is one memory with several meanings, too: one of the values stays, and autograd gives
all of them its gradient. `check` reports it where the numbers are written out or drawn, `gradsight run` wherever they
come from; `index_add` adds them all.

```python
import torch

rows, values = torch.tensor([0, 0]), torch.ones(2, requires_grad=True)
grid = torch.zeros(3)
grid[rows] += values  # warning: GS107
grid.sum().backward()
assert grid[0].item() == 1.0
assert values.grad.tolist() == [1.0, 1.0]
```

`scatter` and `index_put_` set a row to one of its values as well, where `scatter_add` and `accumulate=True` add them. That is
reported where the row numbers are written out, or where there are more of them than rows.

```python
import torch

rows, values = torch.tensor([0, 0, 1]), torch.ones(3, requires_grad=True)
grid = torch.zeros(2).scatter(0, rows, values)  # warning: GS107
grid.sum().backward()
assert grid[0].item() == 1.0
assert values.grad.tolist() == [1.0, 1.0, 1.0]
```

A list that is repeated is one list in every place.

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)
losses = [[]] * 2  # warning: GS107
for number in range(2):
    losses[number].append(weight[number] ** 2)
sum(losses[0]).backward()
assert weight.grad.tolist() == [2.0, 4.0]
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

To fetch a state and to advance it in place is an idiom too, as long as only one of the two names is used afterwards.

```python
import torch

state = {"average": torch.ones(3)}
average = state["average"]
average *= 0.9
assert state["average"].sum() < 3
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

See [tensor views](https://docs.pytorch.org/docs/stable/tensor_view.html) and a
[report of a hook that kept an overwritten input](https://github.com/pytorch/pytorch/issues/95617).
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
    if how == "rows-of-one":
        return "every entry is the same list, so what is put into one is in all: make them in a comprehension"
    if how == "list":
        return f"every stored entry is {name} itself, so this write changes all: store a clone"
    if how == "name":
        return f"{alias} and {name} are one tensor: this write changes both, and {name} is read later"
    if how == "argument":
        return f"this write also changes the caller's {name}, which is read after the call: clone it first"
    if how == "layer":
        return f"this call overwrites {name}, and {name} is used again after it: clone it first"
    if how == "kept":
        return "this layer works in place on a value that was stored before: the stored entry changes too"
    if how == "stored":
        return f"this changes {alias or 'the stored data'} each time an item is fetched: clone the item first"
    if how == "rows":
        instead = event.names.get("instead") or "index_add"
        return f"one row of {name} can get several values, of which one stays: use `{instead}`"
    if how == "parts":
        return f"{name} was overwritten before this line reads it: compute both parts first, then assign"
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
        return "this layer overwrites its input before the forward hook sees it: clone it in a pre-hook"
    if how == "class":
        return f"{name} belongs to the class {alias}: this write changes it for every instance"
    if how == "shared":
        return f"two parameters share memory here: writing one changes {name} too, so clone it"
    if how == "state_dict":
        return (
            f"`state_dict()` returns the parameters themselves: {alias} changes before it is read, so copy it"
            if alias != "it"
            else "`state_dict()` returns the parameters themselves, which change before they are read: copy them"
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
    observed_as=("alias-read-after-write", "rows-written-twice"),
    shown_by=lambda run, finding: run.is_read_after_write(finding),
)
