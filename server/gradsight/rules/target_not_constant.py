"""A regression target that is not constant.

## What goes wrong silently

When the target of a loss is computed by the network that is trained on it, the gradient flows into the target as well and moves it towards the prediction. Temporal-difference learning means the target to stand still.

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

A target computed under `no_grad` or by another network.

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

Two sides of one network that are both meant to learn.

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
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, text

if TYPE_CHECKING:
    from gradsight.fixes.draft import Case, Drafts


def judge(event: Event) -> Finding | None:
    message = f"{text(event, 'target', 'the target')} is meant as a constant here, and carries a gradient of what is trained on it"
    return make_finding(event, RULE.code, RULE.name, message, "info")


def fix(case: Case) -> Drafts:
    from gradsight.fixes.cuts import target_moves

    return target_moves(case)


RULE = Rule(
    "GS290",
    "target-not-constant",
    ("target-not-constant",),
    judge,
    __doc__,
    advice="detach the target if it is meant as a constant",
    fix=fix,
    observed_as=("target-not-constant",),
    # That a target carries a gradient is shown only when a backward took it.
    needs_whole_run=True,
)
