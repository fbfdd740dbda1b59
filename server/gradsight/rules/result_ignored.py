"""The result of a pure tensor method, or a term of the loss, is not used.

## What goes wrong silently

A tensor method without a trailing underscore returns a new tensor and leaves its own as it is. As a statement of its own it does nothing.

```python
import torch

x = torch.ones(3, requires_grad=True)
loss = (x - 5).sum()
loss.clamp(min=0)  # warning: GS209
loss.backward()
assert x.grad.tolist() == [1.0, 1.0, 1.0]  # the clamped loss has gradient 0
```

```python
import torch

x = torch.ones(3, requires_grad=True)
hidden = x * 2
hidden.detach()  # warning: GS209
assert hidden.requires_grad
```

The same goes for a term that is computed, given a name and left out of the loss.

```python
import torch
from torch import nn

critic = nn.Linear(3, 1)
optimizer = torch.optim.SGD(critic.parameters(), lr=0.1)
for batch in torch.ones(2, 4, 3):
    penalty = (critic.weight.norm() - 1) ** 2  # warning: GS209
    loss = critic(batch).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
assert torch.allclose(critic.weight.grad, torch.ones(1, 3))
```

Or the total is built and logged, and the backward goes through one of its terms.

```python
import torch
from torch import nn

net, prior = nn.Linear(3, 1), nn.Linear(3, 1)
optimizer = torch.optim.SGD([*net.parameters(), *prior.parameters()], lr=0.1)
for batch in torch.ones(2, 4, 3):
    fit = (net(batch) - 1).square().mean()
    total = fit + 0.1 * prior(batch).square().mean()  # warning: GS209
    print(total.item())
    optimizer.zero_grad()
    fit.backward()
    optimizer.step()
assert prior.weight.grad is None
```

A loop loses a result too: under its own name, or under one that the next iteration binds again. Here every layer is given `x`,
and what the last one makes of it is all that stays.

```python
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4)])

    def forward(self, x):
        for layer in self.layers:
            out = layer(x)  # warning: GS209
        return out


net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for batch in torch.ones(3, 8, 4):
    optimizer.zero_grad()
    net(batch).square().mean().backward()
    optimizer.step()
assert net.layers[0].weight.grad is None
```

A write is lost where it goes into a copy: indexing with row numbers or with a mask copies, and so does `clone`.

```python
import torch
from torch import nn

table = nn.Embedding(4, 2)
before = table.weight.detach().clone()
rows = torch.tensor([0, 2])
with torch.no_grad():
    table.weight[rows].zero_()  # warning: GS209
    flat = nn.utils.parameters_to_vector(table.parameters())
    flat.clamp_(-0.1, 0.1)  # warning: GS209
assert torch.equal(table.weight, before)
```

A forward hook that binds `output` and returns nothing leaves the layer's output as it was. A hook on a view of a parameter,
`weight[:].register_hook(f)`, is not run by what is computed with the parameter itself.

So is a term that was added up and overwritten, or bound again in each iteration: `=` stands where `+=` was meant.

```python
import torch
from torch import nn

body, heads = nn.Linear(2, 2), nn.ModuleList([nn.Linear(2, 1), nn.Linear(2, 1)])
features = body(torch.ones(4, 2))
loss = 0.0
for head in heads:
    loss = head(features).pow(2).mean()  # warning: GS209
loss.backward()
assert heads[0].weight.grad is None
```

## Use instead

Assign the result.

```python
import torch

x = torch.ones(3, requires_grad=True)
loss = (x - 5).sum()
loss = loss.clamp(min=0)
loss.backward()
assert x.grad.tolist() == [0.0, 0.0, 0.0]
```

## Not reported

Methods that act on their tensor are fine.

```python
import torch

x = torch.ones(3, requires_grad=True)
hidden = x * 2
hidden.retain_grad()
hidden.register_hook(lambda grad: grad * 2)
hidden.sum().backward()
```

## Fix safety

Assigning the result to the same name is unsafe, because the value changes. For `detach()`, which leaves the value as it is, it is safe.

See [Tensor.clamp](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.clamp.html) and a
[report](https://github.com/LixiangHan/GANs-for-1D-Signal/issues/7) of a penalty that is left out of the loss.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, named

if TYPE_CHECKING:
    from gradsight.fixes.draft import Drafts, FixCase


def judge(event: Event) -> Finding | None:
    if event.kind == "term-unused":
        if event.names.get("overwritten"):
            message = f"{named(event, 'target')} is overwritten and never differentiated, so its terms are lost: `+=` adds to it"
            return make_finding(event, RULE.code, RULE.name, message, "warning")
        if event.names.get("shown"):
            message = f"{named(event, 'target')} is only shown: no backward comes through its other terms"
            return make_finding(event, RULE.code, RULE.name, message, "warning")
        message = f"{named(event, 'target')} is never used, so this term trains nothing: add it to the loss"
        return make_finding(event, RULE.code, RULE.name, message, "warning")
    if event.kind == "write-lost":
        message = f"{named(event, 'source')} is a copy, so this write is lost"
        return make_finding(event, RULE.code, RULE.name, message, "warning")
    if event.kind == "result-lost":
        message = f"{named(event, 'target')} is bound again in the next iteration, so this result is lost: collect it in a list"
        if event.names.get("how") == "hook":
            message = f"this hook returns nothing, so the layer's own {named(event, 'target')} is used: return the new one"
        elif event.names.get("how") == "view":
            message = f"this hook belongs to a view of {named(event, 'target')} that no backward reaches: register it on the parameter"
        elif event.names.get("how") == "round":
            message = f"each iteration overwrites {named(event, 'target')}, so only the last layer is trained: pass the result on"
        return make_finding(event, RULE.code, RULE.name, message, "warning")
    message = f"{named(event, 'method')} returns a new tensor and does not change {named(event, 'target')}: assign the result"
    return make_finding(event, RULE.code, RULE.name, message, "warning")


def fix(case: FixCase) -> Drafts:
    from gradsight.fixes.cuts import result_ignored

    return result_ignored(case)


RULE = Rule(
    "GS209",
    "result-ignored",
    ("result-ignored", "term-unused", "result-lost", "write-lost"),
    judge,
    __doc__,
    advice="assign the result: `x = x.clamp(0)`",
    fix=fix,
    observed_as=("result-ignored",),
    kin="result-lost",
)
