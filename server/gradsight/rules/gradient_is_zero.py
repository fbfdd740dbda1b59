"""An operator whose gradient is identically zero.

## What goes wrong silently

`round`, `floor`, `ceil`, `trunc` and `sign` are differentiable for torch, with derivative zero. Backward runs, every gradient before them is zero, and nothing is learned.

```python
import torch
from torch import nn

net = nn.Linear(2, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
level = net(torch.ones(4, 2)).round()  # warning: GS208
loss = (level - 3).pow(2).mean()
loss.backward()
optimizer.step()
assert net.weight.grad.tolist() == [[0.0, 0.0]]
```

A straight-through estimator without its `detach()` does the same: the two gradients of `x` cancel.

```python
import torch
from torch import nn

encoder = nn.Linear(2, 2)
x = encoder(torch.ones(1, 2))
quantized = x.round()
y = x + (quantized - x)  # warning: GS208
y.sum().backward()
assert not encoder.weight.grad.any()
```

A softmax over one element is one, whatever it is given, and the cross entropy of a single class is zero.

```python
import torch
from torch import nn

net = nn.Sequential(nn.Linear(2, 1), nn.Softmax(dim=1))
loss = (net(torch.ones(4, 2)) - 0.5).pow(2).mean()  # warning: GS208
loss.backward()
assert net[0].weight.grad.abs().sum() == 0
```

```python
import torch
from torch import nn

net = nn.Linear(2, 1)
loss = nn.functional.cross_entropy(net(torch.ones(4, 2)), torch.zeros(4, dtype=torch.long))  # warning: GS208
loss.backward()
assert loss.item() == 0
```

## Use instead

Train on the value before rounding, and round where it is used.

```python
import torch
from torch import nn

net = nn.Linear(2, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
level = net(torch.ones(4, 2))
loss = (level - 3).pow(2).mean()
loss.backward()
optimizer.step()
assert net.weight.grad.abs().sum() > 0
```

## Not reported

The straight-through estimator uses the rounded value and the gradient of the value before rounding.

```python
import torch

x = torch.tensor([0.2, 0.7], requires_grad=True)
rounded = x + (x.round() - x).detach()
rounded.sum().backward()
assert x.grad.tolist() == [1.0, 1.0]
```

Rounding a value that is only printed is fine.

```python
import torch
from torch import nn

net = nn.Linear(2, 1)
out = net(torch.ones(4, 2))
print(out.round().mean())
out.pow(2).mean().backward()
assert net.weight.grad.abs().sum() > 0
```

## Fix safety

Passing the gradient through unchanged is unsafe: it is an estimate, and a smooth form or the value before rounding may be what you want.

See [torch.round](https://docs.pytorch.org/docs/stable/generated/torch.round.html) and a
[report](https://github.com/eladhoffer/quantized.pytorch/issues/5) of weights that are rounded to levels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, named, operator_named

if TYPE_CHECKING:
    from gradsight.fixes.draft import Drafts, FixCase
    from gradsight.model.run_traces import RunTraces


def judge(event: Event) -> Finding | None:
    if event.kind == "gradient-cancels":
        message = f"the gradient of {named(event, 'target', 'this tensor')} cancels in this sum: `detach()` the difference"
        return make_finding(event, RULE.code, RULE.name, message, "warning")
    if event.kind == "gradient-even":
        message = f"{named(event, 'op')} goes over one element here, so its result never changes and nothing before it learns"
        return make_finding(event, RULE.code, RULE.name, message, "warning")
    if event.names.get("cut") != "zero":
        return None
    lost = f"{named(event, 'parameter', 'what comes before')} learns nothing{' from it' if event.names.get('partly') else ''}"
    message = f"the gradient of {operator_named(event)} is zero everywhere, so {lost}: use a smooth form"
    return make_finding(event, RULE.code, RULE.name, message, "warning")


def fix(case: FixCase) -> Drafts:
    from gradsight.fixes.cuts import gradient_zero

    return gradient_zero(case)


def _excluded(run: RunTraces, finding: Finding) -> bool:
    """Every parameter has got a gradient, and none of them is zero; where other terms train it, that says nothing."""
    return (
        not finding.data.get("partly")
        and run.is_all_trained()
        and all((row.get("norm") or 0) > 0 for row in run.parameters)
    )


RULE = Rule(
    "GS208",
    "gradient-is-zero",
    ("path-cut", "gradient-cancels", "term-cut", "gradient-even"),
    judge,
    __doc__,
    advice="use a straight-through estimator or a smooth form",
    fix=fix,
    observed_as=("gradient-zero",),
    excluded_by=_excluded,
)
