"""`requires_grad` on a detached tensor hides the cut.

## What goes wrong silently

A detached tensor makes `backward()` fail, and `requires_grad_()` hides that: the tensor becomes a leaf and collects the gradient. Nothing before it gets one.

```python
import torch

x = torch.ones(3, requires_grad=True)
optimizer = torch.optim.SGD([x], lr=0.1)
y = x * 2
z = y.detach().requires_grad_()  # warning: GS206
(z * 3).sum().backward()
optimizer.step()
assert x.tolist() == [1.0, 1.0, 1.0]  # nothing was learned
```

```python
import torch
from torch import nn

net = nn.Linear(2, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
out = net(torch.ones(4, 2))
loss = torch.tensor(out.pow(2).mean().item(), requires_grad=True)  # warning: GS206
loss.backward()
optimizer.step()
assert net.weight.grad is None
```

## Use instead

Stay in the graph; the result then needs no `requires_grad_()`.

```python
import torch

x = torch.ones(3, requires_grad=True)
optimizer = torch.optim.SGD([x], lr=0.1)
y = x * 2
z = y
(z * 3).sum().backward()
optimizer.step()
assert x.tolist() != [1.0, 1.0, 1.0]
```

## Not reported

A new leaf that is made on purpose, whose gradient is read or whose value is optimized, is fine.

```python
import torch
from torch import nn

net = nn.Linear(2, 1)
image = torch.ones(1, 2)
adversarial = image.clone().requires_grad_()
net(adversarial).sum().backward()
assert adversarial.grad is not None
```

```python
import torch
from torch import nn

net = nn.Linear(2, 1)
with torch.no_grad():
    start = net(torch.ones(1, 2))
latent = start.detach().clone().requires_grad_()
optimizer = torch.optim.SGD([latent], lr=0.1)
latent.pow(2).sum().backward()
optimizer.step()
```

## Fix safety

Removing the cut is unsafe: the gradient then reaches what came before, which may not be what you want.

See [Tensor.requires_grad_](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.requires_grad_.html) and a
[report](https://github.com/speechbrain/speechbrain/issues/735) of a loss that is wrapped again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, cut_name, make_finding, named
from gradsight.model.torch_messages import NO_GRAPH, Cause

if TYPE_CHECKING:
    from gradsight.fixes.draft import Drafts, FixCase


def judge(event: Event) -> Finding | None:
    if not (bool(event.names.get("hidden"))):
        return None
    if event.names.get("cut") in ("no_grad", "inference"):
        message = "this runs with grad mode off, and `requires_grad` only hides it: switch grad mode on"
    else:
        message = f"{cut_name(event)} cuts {named(event, 'source', 'the value')} out of the graph, and `requires_grad` only hides it: drop both"
    return make_finding(event, RULE.code, RULE.name, message, "warning")


def fix(case: FixCase) -> Drafts:
    from gradsight.fixes.cuts import hidden

    return hidden(case)


RULE = Rule(
    "GS206",
    "hidden-cut",
    ("path-cut",),
    judge,
    __doc__,
    advice="leave out `detach()`: `requires_grad_()` makes a new leaf and hides the cut",
    fix=fix,
    messages=(Cause(NO_GRAPH, rank=6),),
    observed_as=("cut-hidden",),
    kin="path-cut",
    excluded_by=lambda run, finding: run.has_no_cut(),
)
