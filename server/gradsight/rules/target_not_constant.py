"""A regression target that is not constant.

## What goes wrong silently

When the target of a loss is computed by the network that is trained on it, the gradient flows into the target as well and moves it towards the prediction. In temporal-difference learning the target is meant to be a constant.

```python
import torch
from torch import nn

critic = nn.Linear(2, 1, bias=False)
state, following, reward = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]]), torch.ones(1, 1)
target = reward + 0.9 * critic(following)
loss = (critic(state) - target).pow(2).mean()  # info: GS290
loss.backward()
assert critic.weight.grad[0, 1] != 0  # this weight is used by the target alone
```

Where an optimizer then moves that network, the target moves with every step, and it is a warning.

```python
import torch
from torch import nn

critic = nn.Linear(2, 1, bias=False)
optimizer = torch.optim.SGD(critic.parameters(), lr=0.1)
before = critic.weight.detach().clone()
state, following, reward = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]]), torch.ones(1, 1)
target = reward + 0.9 * critic(following)
loss = (critic(state) - target).pow(2).mean()  # warning: GS290
loss.backward()
optimizer.step()
assert critic.weight[0, 1] != before[0, 1]  # moved, although only the target uses it
```

## Use instead

Stop the gradient at the target.

```python
import torch
from torch import nn

critic = nn.Linear(2, 1, bias=False)
state, following, reward = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]]), torch.ones(1, 1)
target = (reward + 0.9 * critic(following)).detach()
loss = (critic(state) - target).pow(2).mean()
loss.backward()
assert critic.weight.grad[0, 1] == 0
```

## Not reported

A target that is computed under `no_grad` or by another network is a constant.

```python
import torch
from torch import nn

critic, slow = nn.Linear(2, 1), nn.Linear(2, 1)
state, following, reward = torch.ones(1, 2), torch.ones(1, 2), torch.ones(1, 1)
with torch.no_grad():
    target = reward + 0.9 * slow(following)
loss = (critic(state) - target).pow(2).mean()
loss.backward()
```

Two sides of one network may both be meant to train.

```python
import torch
from torch import nn

net = nn.Linear(2, 3)
left, right = net(torch.ones(4, 2)), net(torch.zeros(4, 2))
loss = (left - right).pow(2).mean()
loss.backward()
```

## Fix safety

`.detach()` on the target is unsafe: some methods train both sides.

See [Tensor.detach](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.detach.html) and a
[report](https://github.com/higgsfield/RL-Adventure/issues/32) of a bootstrapped target.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradsight.model.events import Event
from gradsight.model.finding import Finding, Severity
from gradsight.model.rule import Rule, make_finding, named

if TYPE_CHECKING:
    from gradsight.fixes.draft import Drafts, FixCase


def judge(event: Event) -> Finding | None:
    message = f"{named(event, 'target', 'this')} is a target that requires grad: `detach()` it if it should be constant"
    severity: Severity = "warning" if event.names.get("is_trained") else "info"
    return make_finding(event, RULE.code, RULE.name, message, severity)


def fix(case: FixCase) -> Drafts:
    from gradsight.fixes.cuts import target_moves

    return target_moves(case)


RULE = Rule(
    "GS290",
    "target-not-constant",
    ("target-not-constant",),
    judge,
    __doc__,
    advice="detach the target if it should be constant",
    fix=fix,
    observed_as=("target-not-constant",),
    # That a target carries a gradient is shown only when a backward took it.
    needs_whole_run=True,
)
