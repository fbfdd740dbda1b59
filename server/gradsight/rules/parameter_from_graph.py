"""`nn.Parameter` around a tensor of the graph.

## What goes wrong silently

`nn.Parameter(t)` makes a new leaf with the value but without the graph. Around a computed tensor it cuts the graph: what the tensor was computed from gets no gradient.

```python
import torch
from torch import nn

base = torch.ones(3, requires_grad=True)
optimizer = torch.optim.SGD([base], lr=0.1)
scaled = nn.Parameter(base * 2)  # warning: GS207
loss = scaled.pow(2).sum()
loss.backward()
optimizer.step()
assert base.tolist() == [1.0, 1.0, 1.0]  # nothing was learned
```

In `forward` it is created again in every call, so no optimizer ever sees it.

```python
import torch
from torch import nn


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(3))

    def forward(self, x):
        weight = nn.Parameter(self.scale * 2)  # warning: GS207
        return x * weight


net = Scaled()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
net(torch.ones(2, 3)).sum().backward()
optimizer.step()
assert net.scale.grad is None
```

## Use instead

Use the computed tensor as it is.

```python
import torch
from torch import nn

base = torch.ones(3, requires_grad=True)
optimizer = torch.optim.SGD([base], lr=0.1)
scaled = base * 2
loss = scaled.pow(2).sum()
loss.backward()
optimizer.step()
assert base.tolist() != [1.0, 1.0, 1.0]
```

## Not reported

A parameter that is made of plain numbers, once, where a module is built, is fine.

```python
import torch
from torch import nn


class Scaled(nn.Module):
    def __init__(self, start):
        super().__init__()
        self.scale = nn.Parameter(start.detach() * 2)

    def forward(self, x):
        return x * self.scale


net = Scaled(torch.ones(3))
net(torch.ones(2, 3)).sum().backward()
assert net.scale.grad is not None
```

## Fix safety

Using the tensor without `nn.Parameter` is safe: the value is the same, and the gradient reaches what it was computed from.

See [Parameter](https://docs.pytorch.org/docs/stable/generated/torch.nn.parameter.Parameter.html) and a
[report](https://github.com/chr5tphr/zennit/pull/185) of merged weights that lose their gradient.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, named
from gradsight.model.torch_messages import NO_GRAPH, Cause

if TYPE_CHECKING:
    from gradsight.fixes.draft import Drafts, FixCase


def judge(event: Event) -> Finding | None:
    if not (event.names.get("cut") == "parameter" and not event.names.get("hidden")):
        return None
    message = f"`nn.Parameter` cuts {named(event, 'source', 'a computed value')} out of the graph: use the tensor itself"
    return make_finding(
        event, RULE.code, RULE.name, message, "error" if event.kind == "backward-without-graph" else "warning"
    )


def fix(case: FixCase) -> Drafts:
    from gradsight.fixes.cuts import parameter_made

    return parameter_made(case)


RULE = Rule(
    "GS207",
    "parameter-from-graph",
    ("path-cut", "backward-without-graph"),
    judge,
    __doc__,
    advice="create the parameter once in `__init__`, and use computed tensors as they are",
    fix=fix,
    messages=(Cause(NO_GRAPH, rank=8),),
    observed_as=("parameter-made",),
    kin="path-cut",
    excluded_by=lambda run, finding: run.has_no_cut(),
    needs_training=True,
)
