"""The forward pass ran with grad mode off.

## Why torch refuses

Under `no_grad` and `inference_mode` nothing is recorded, so the loss has no graph, no matter where `backward()` is called.

```python
import torch
from torch import nn

net = nn.Linear(2, 1)
with torch.no_grad():  # error: GS204
    out = net(torch.ones(4, 2))
loss = out.pow(2).mean()
loss.backward()  # raises: does not require grad
```

A decorator does the same for a whole function.

```python
import torch
from torch import nn

net = nn.Linear(2, 1)


@torch.no_grad()  # error: GS204
def predict(x):
    return net(x)


loss = predict(torch.ones(4, 2)).pow(2).mean()
loss.backward()  # raises: does not require grad
```

The `backward` of a custom Function runs with grad mode off too: what it computes has no graph.

```python
import torch


class Score(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.pow(2).sum()

    @staticmethod
    def backward(ctx, grad):
        x = ctx.saved_tensors[0].detach().requires_grad_()
        out = x.pow(2).sum()
        return torch.autograd.grad(out, x, grad)[0]  # error: GS204  # raises: does not require grad


x = torch.ones(3, requires_grad=True)
Score.apply(x).backward()
```

## Use instead

Run the forward pass of training with grad mode on.

```python
import torch
from torch import nn

net = nn.Linear(2, 1)
out = net(torch.ones(4, 2))
loss = out.pow(2).mean()
loss.backward()
```

## Not reported

A network that only provides a target may run with grad mode off, and so may an evaluation between two steps.

```python
import torch
from torch import nn

student, teacher = nn.Linear(2, 1), nn.Linear(2, 1)
x = torch.ones(4, 2)
with torch.no_grad():
    target = teacher(x)
loss = (student(x) - target).pow(2).mean()
loss.backward()
```

```python
import torch
from torch import nn

net = nn.Linear(2, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.ones(4, 2)
for step in range(2):
    optimizer.zero_grad()
    net(x).pow(2).mean().backward()
    optimizer.step()
    with torch.no_grad():
        print(net(x).mean().item())
```

## Fix safety

Running the block with grad mode on, and removing the decorator, are unsafe: the forward pass may have been meant to stay without a graph.

See [Locally disabling gradient computation](https://docs.pytorch.org/docs/stable/notes/autograd.html#locally-disabling-gradient-computation) and a
[report](https://github.com/rll-research/cic/issues/5) of an encoder that is applied with grad mode off.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, named
from gradsight.model.torch_messages import NO_GRAPH, Cause, alone

if TYPE_CHECKING:
    from gradsight.fixes.draft import Drafts, FixCase


def judge(event: Event) -> Finding | None:
    if not (event.names.get("cut") in ("no_grad", "inference") and not event.names.get("hidden")):
        return None
    message = _refused(event) or f"forward runs with grad mode off, so {_starved(event)}: switch it on"
    return make_finding(
        event, RULE.code, RULE.name, message, "error" if event.kind == "backward-without-graph" else "warning"
    )


def _refused(event: Event) -> str:
    """What torch refuses to do with a tensor that was made in inference mode."""
    refused = event.names.get("refused")
    if refused == "inner":
        return f"a custom `backward` runs with grad mode off, so {named(event, 'source')} has no graph to differentiate: compute it under `torch.enable_grad()`"
    if refused == "write":
        return f"{named(event, 'source')} was made in inference mode, so torch refuses to write it here: clone it first"
    if refused == "save":
        return "a tensor made in inference mode cannot be saved for `backward()`: use `torch.no_grad()`, or clone it"
    return ""


def _starved(event: Event) -> str:
    if event.kind == "term-cut":
        learner = named(event, "parameter") if event.names.get("parameter") else ""
        return f"{learner} learns nothing from it" if learner else "this term of the loss trains nothing"
    if event.names.get("parameter"):
        return f"{named(event, 'parameter')} gets no gradient"
    return "`backward()` finds no graph"


def fix(case: FixCase) -> Drafts:
    from gradsight.fixes.cuts import without_grad

    return without_grad(case)


RULE = Rule(
    "GS204",
    "forward-without-grad",
    ("path-cut", "backward-without-graph", "term-cut"),
    judge,
    __doc__,
    advice="compute the loss outside `no_grad` and `inference_mode`",
    fix=fix,
    messages=(
        Cause(NO_GRAPH, rank=4),
        alone(
            r"[Ii]nference tensors? ",
            "A tensor made under `inference_mode` can never take part in a graph; make it outside, or "
            "clone it.",
        ),
    ),
    observed_as=("computed-without-grad",),
    kin="path-cut",
    excluded_by=lambda run, finding: run.has_no_cut(),
)
