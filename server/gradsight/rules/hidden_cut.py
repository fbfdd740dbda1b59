"""`requires_grad` on a cut tensor hides the cut.

## What goes wrong silently

A cut tensor makes backward fail, and `requires_grad_()` makes the failure go away: the cut tensor becomes a leaf of its own and collects the gradient. Nothing before it gets any.

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

Keep the history; the result then needs no `requires_grad_()`.

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

A new leaf made on purpose, whose gradient is read or whose value is optimized.

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

Leaving out the cut is unsafe: the gradient then reaches what came before, which may not be meant.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, text
from gradsight.model.torch_messages import NO_GRAPH, Cause

if TYPE_CHECKING:
    from gradsight.fixes.draft import Case, Drafts


def judge(event: Event) -> Finding | None:
    if not (bool(event.names.get("hidden"))):
        return None
    message = f"{text(event, 'op')} cuts {text(event, 'source', 'the value')} off its history, and requires_grad only hides it: no gradient reaches what came before"
    return make_finding(event, RULE.code, RULE.name, message, "warning")


def fix(case: Case) -> Drafts:
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
