"""An operator without a gradient on the way to the loss.

## Why torch refuses

`argmax`, comparisons, and casts to an integer type have no derivative. Their result has no graph, and backward from there has nothing to do.

```python
import torch
from torch import nn

net = nn.Linear(2, 3)
prediction = net(torch.ones(4, 2)).argmax(dim=1)  # error: GS205
loss = (prediction.float() - 1).abs().mean()
loss.backward()  # raises: does not require grad
```

```python
import torch

scores = torch.tensor([0.2, 0.7], requires_grad=True)
correct = (scores * 2 > 1).float()  # error: GS205
loss = 1 - correct.mean()
loss.backward()  # raises: does not require grad
```

A term of the loss that is counted so teaches nothing, while the rest trains.

```python
import torch
from torch import nn

net = nn.Linear(3, 2)
x, y = torch.ones(4, 3), torch.zeros(4, dtype=torch.long)
logits = net(x)
loss = nn.functional.cross_entropy(logits, y)
loss = loss + (logits.argmax(1) != y).float().mean()  # warning: GS205
loss.backward()
alone = nn.functional.cross_entropy(net(x), y)
assert torch.equal(net.weight.grad, torch.autograd.grad(alone, net.weight)[0])
```

Where `one_hot` of the largest weight replaces the weights, the layer that computes them learns nothing.

```python
import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.score, self.value = nn.Linear(4, 3), nn.Linear(4, 3)

    def forward(self, x):
        weights = self.score(x).softmax(-1)
        chosen = nn.functional.one_hot(weights.argmax(-1), 3).float()  # warning: GS205
        return chosen * self.value(x)


net = Attention()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
net(torch.ones(2, 4)).sum().backward()
optimizer.step()
assert net.score.weight.grad is None
```

## Use instead

Compute the loss on the scores themselves.

```python
import torch
from torch import nn

net = nn.Linear(2, 3)
scores = net(torch.ones(4, 2))
loss = nn.functional.cross_entropy(scores, torch.tensor([1, 1, 1, 1]))
loss.backward()
```

## Not reported

Indices, masks and accuracies that are only printed need no gradient.

```python
import torch
from torch import nn

net = nn.Linear(2, 3)
scores = net(torch.ones(4, 2))
best = scores.argmax(dim=1)
chosen = scores[torch.arange(4), best]
loss = torch.where(chosen > 0, chosen, -chosen).mean()
loss.backward()
print((best == 1).float().mean())
```

The straight-through estimator passes the gradient around the operator on purpose.

```python
import torch

x = torch.tensor([0.2, 0.7], requires_grad=True)
hard = (x > 0.5).float()
y = hard + x - x.detach()
y.sum().backward()
assert x.grad.tolist() == [1.0, 1.0]
```

## Fix safety

`rsample()` in place of `sample()` is unsafe: not every distribution has it. There is no fix for the other operators: only you know which differentiable loss you want.

See [torch.argmax](https://docs.pytorch.org/docs/stable/generated/torch.argmax.html) and a
[report](https://github.com/LZGMatrix/BOP19_CDPN_2019ICCV/issues/4) of coordinates that are taken by `argmax`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, named, operator_named, text
from gradsight.model.torch_messages import NO_GRAPH, Cause

if TYPE_CHECKING:
    from gradsight.fixes.draft import Drafts, FixCase


def judge(event: Event) -> Finding | None:
    if not (event.names.get("cut") in ("op", "sample", "leaf", "none") and not event.names.get("hidden")):
        return None
    message = _message(event)
    return make_finding(
        event, RULE.code, RULE.name, message, "error" if event.kind == "backward-without-graph" else "warning"
    )


def _message(event: Event) -> str:
    kind = event.names.get("cut")
    if kind in ("leaf", "none"):
        end = "raises" if event.kind == "backward-without-graph" else "has nothing to do"
        return f"{named(event, 'loss', 'the loss')} comes from tensors that do not require grad: `backward()` {end}"
    if kind == "sample":
        return "`sample()` carries no gradient: use `rsample()` or the log-probability"
    if text(event, "op").endswith(".backward"):
        source = named(event, "source", "an input that needs a gradient")
        return (
            f"{named(event, 'op')} returns None for {source}, so nothing before it learns: return a gradient"
        )
    if event.kind == "term-cut":
        return f"{operator_named(event)} has no gradient, so this term of the loss trains nothing: use a differentiable form"
    return f"{operator_named(event)} has no gradient, so nothing before it learns: use a differentiable form"


def fix(case: FixCase) -> Drafts:
    from gradsight.fixes.cuts import without_gradient

    return without_gradient(case)


RULE = Rule(
    "GS205",
    "operator-without-gradient",
    ("path-cut", "backward-without-graph", "term-cut"),
    judge,
    __doc__,
    advice="use a differentiable form (softmax, a soft mask) on the way to the loss",
    fix=fix,
    messages=(Cause(NO_GRAPH, rank=5),),
    observed_as=("no-derivative",),
    kin="path-cut",
    excluded_by=lambda run, finding: run.has_no_cut(),
)
