"""A model that was given a second name where a copy was meant.

## What goes wrong silently

`best = model` copies nothing: both names are one module, and every step changes it under both. What was to be kept is gone
by the end of training.

```python
import torch
from torch import nn

model = nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
lowest = float("inf")
for batch in torch.ones(3, 4, 2):
    optimizer.zero_grad()
    loss = model(batch).square().mean()
    if loss.item() < lowest:
        lowest = loss.item()
        best_model = model  # warning: GS514
        kept = model.weight.detach().clone()
    loss.backward()
    optimizer.step()
assert not torch.equal(best_model.weight, kept)
```

A target network that is the network itself moves with every step. `copy.copy(net)` is no better: the new module has the
same parameters.

```python
import copy

import torch
from torch import nn

policy = nn.Linear(2, 1)
target = copy.copy(policy)  # warning: GS514
optimizer = torch.optim.SGD(policy.parameters(), lr=0.1)
before = target.weight.detach().clone()
for state in torch.ones(3, 4, 2):
    with torch.no_grad():
        wanted = 1 + target(state)
    optimizer.zero_grad()
    nn.functional.mse_loss(policy(state), wanted).backward()
    optimizer.step()
assert not torch.equal(target.weight, before)
```

What is kept in a collection is the model itself, too: a dict of what was best, or a list to which one model is added
again and again.

```python
import torch
from torch import nn

model = nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
history = []
for batch in torch.ones(3, 4, 2):
    optimizer.zero_grad()
    loss = model(batch).square().mean()
    history.append((loss.item(), model))  # warning: GS514
    loss.backward()
    optimizer.step()
assert torch.equal(history[0][1].weight, history[-1][1].weight)
```

A model that is given its own state stays as it is.

```python
import copy

import torch
from torch import nn

policy = nn.Linear(2, 1)
target = copy.deepcopy(policy)
optimizer = torch.optim.SGD(policy.parameters(), lr=0.1)
for batch in torch.ones(2, 4, 2):
    with torch.no_grad():
        goal = 1 + 0.9 * target(batch)
    optimizer.zero_grad()
    nn.functional.mse_loss(policy(batch), goal).backward()
    optimizer.step()
    target.load_state_dict(target.state_dict())  # warning: GS514
assert not torch.equal(target.weight, policy.weight)
```

## Use instead

`copy.deepcopy` makes a model of its own.

```python
import copy

import torch
from torch import nn

policy = nn.Linear(2, 1)
target = copy.deepcopy(policy)
optimizer = torch.optim.SGD(policy.parameters(), lr=0.1)
before = target.weight.detach().clone()
for state in torch.ones(3, 4, 2):
    with torch.no_grad():
        wanted = 1 + target(state)
    optimizer.zero_grad()
    nn.functional.mse_loss(policy(state), wanted).backward()
    optimizer.step()
assert torch.equal(target.weight, before)
```

## Not reported

A second name that does not say that a copy is meant, one that is used before the next step only, and a model that is wrapped
under its first name.

```python
import torch
from torch import nn

model = nn.Linear(2, 1)
plain_model = model
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for batch in torch.ones(3, 4, 2):
    best_model = model
    state = {name: tensor.clone() for name, tensor in best_model.state_dict().items()}
    optimizer.zero_grad()
    model(batch).square().mean().backward()
    optimizer.step()
print(plain_model.weight)
```

## Fix safety

No fix is offered: some programs keep a state dict or a file instead of a second model.

See [saving and loading](https://docs.pytorch.org/tutorials/beginner/saving_loading_models.html) and reports of
[a best model](https://github.com/zhangj111/astnn/issues/8) and
[a target network](https://github.com/andri27-ts/Reinforcement-Learning/issues/14) that were the model itself.
"""

from __future__ import annotations

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, named, text


def judge(event: Event) -> Finding | None:
    target = named(event, "target", "this")
    origin, model = text(event, "origin", "model"), named(event, "origin", "the model")
    cure = f"use `copy.deepcopy({origin})`"
    message = f"{target} is {model} itself, and every step changes both: {cure}"
    if event.names.get("how") == "itself":
        message = f"{target} is given its own state, so this changes nothing: load the state of the model that trains"
    if event.names.get("how") == "copy":
        message = f"`copy.copy` shares the parameters, so every step changes {target} too: {cure}"
    if event.names.get("how") == "kept":
        message = f"{target} keeps {model} itself, not a copy: {cure}"
    return make_finding(event, RULE.code, RULE.name, message, "warning")


RULE = Rule(
    "GS514",
    "model-not-copied",
    ("model-not-copied",),
    judge,
    __doc__,
    advice="keep a copy: `copy.deepcopy(model)`",
    needs_training=True,
    observed_as=("model-not-copied",),
)
