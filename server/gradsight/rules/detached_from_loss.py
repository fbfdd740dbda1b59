"""`detach()` or `.data` on the only way to the loss.

## Why torch refuses

`detach()` and `.data` give the value without its graph. If no other way leads from the parameters to the loss, `backward()` has no graph.

```python
import torch
from torch import nn

net = nn.Linear(2, 1)
out = net(torch.ones(4, 2))
loss = out.detach().pow(2).mean()  # error: GS203
loss.backward()  # raises: does not require grad
```

If a later layer still learns, backward runs, and everything before the cut gets no gradient.

```python
import torch
from torch import nn

encoder, decoder = nn.Linear(2, 3), nn.Linear(3, 1)
optimizer = torch.optim.SGD([*encoder.parameters(), *decoder.parameters()], lr=0.1)
code = encoder(torch.ones(4, 2)).detach()  # warning: GS203
loss = decoder(code).pow(2).mean()
loss.backward()
optimizer.step()
assert encoder.weight.grad is None
```

## Use instead

Stay in the graph on the way to the loss.

```python
import torch
from torch import nn

net = nn.Linear(2, 1)
out = net(torch.ones(4, 2))
loss = out.pow(2).mean()
loss.backward()
assert net.weight.grad is not None
```

## Not reported

Stopping the gradient on purpose is fine: for a target, for a value that only scales a term, for a part that is not trained.

```python
import torch
from torch import nn

policy, critic = nn.Linear(2, 1), nn.Linear(2, 1)
state, reward = torch.ones(4, 2), torch.ones(4, 1)
value = critic(state)
advantage = reward - value.detach()
loss = -(policy(state) * advantage).mean() + (value - reward).pow(2).mean()
loss.backward()
assert critic.weight.grad is not None
```

```python
import torch
from torch import nn

net = nn.Linear(2, 1)
loss = net(torch.ones(4, 2)).pow(2).mean()
loss.backward()
shown = loss.detach()
print(shown)
```

`clone()` stays in the graph.

```python
import torch

x = torch.ones(3, requires_grad=True)
y = (x * 2).clone()
(y * 3).sum().backward()
assert x.grad.tolist() == [6.0, 6.0, 6.0]
```

## Fix safety

Removing `detach()` is unsafe: stopping the gradient may have been intended.

See [Tensor.detach](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.detach.html) and a
[report](https://github.com/bboylyg/NAD/issues/8) of a distillation term that trains nothing.
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
    if not (event.names.get("cut") in ("detach", "data") and not event.names.get("hidden")):
        return None
    source = named(event, "source", "the value")
    message = f"{cut_name(event)} cuts {source} out of the graph, so {_starved(event)}: drop it"
    return make_finding(
        event, RULE.code, RULE.name, message, "error" if event.kind == "backward-without-graph" else "warning"
    )


def _starved(event: Event) -> str:
    if event.names.get("parameter"):
        return f"{named(event, 'parameter')} learns nothing from it"
    if event.names.get("one_side"):
        return "where this side is taken nothing learns"
    if event.names.get("skip"):
        return "what comes before learns through the layer alone"
    return "nothing before it learns"


def fix(case: FixCase) -> Drafts:
    from gradsight.fixes.cuts import detached

    return detached(case)


RULE = Rule(
    "GS203",
    "detached-from-loss",
    ("path-cut", "backward-without-graph", "term-cut"),
    judge,
    __doc__,
    advice="leave out `detach()` on the way to the loss; `clone()` copies and keeps the graph",
    fix=fix,
    messages=(Cause(NO_GRAPH),),
    observed_as=("detached",),
    kin="path-cut",
    excluded_by=lambda run, finding: run.has_no_cut(),
)
