"""No `zero_grad()` in the training loop.

## What goes wrong silently

`backward()` adds to `.grad`. Without clearing, each step uses the sum of all gradients so far.

```python
import torch

weight = torch.zeros(1, requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=1.0)
for step in range(3):
    loss = (weight * 2).sum()
    loss.backward()  # warning: GS501
    optimizer.step()
assert weight.item() == -12.0  # three steps of 2 are 6
```

LBFGS calls its closure several times in one step. A closure that does not clear adds up the gradients of all calls.

```python
import torch

weight = torch.ones(1, requires_grad=True)
optimizer = torch.optim.LBFGS([weight], lr=0.1, max_iter=5)
seen = []


def closure():
    loss = weight.square().sum()
    loss.backward()  # warning: GS501
    seen.append((weight.item(), weight.grad.item()))
    return loss


optimizer.zero_grad()
optimizer.step(closure)
assert any(abs(gradient - 2 * value) > 0.1 for value, gradient in seen)
```

Where one round steps for two losses, the first gradients are still there when the second ones arrive: they are applied twice.

```python
import torch

weight = torch.zeros(1, requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=1.0)
for step in range(3):
    optimizer.zero_grad()
    (weight * 2).sum().backward()
    optimizer.step()
    (weight * 3).sum().backward()  # warning: GS501
    optimizer.step()
assert weight.item() == -21.0  # three steps of 2 and three of 3 are 15
```

## Use instead

Clear the gradients in every step.

```python
import torch

weight = torch.zeros(1, requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=1.0)
for step in range(3):
    optimizer.zero_grad()
    loss = (weight * 2).sum()
    loss.backward()
    optimizer.step()
assert weight.item() == -6.0
```

## Not reported

Accumulating gradients on purpose over several batches, and clearing them after the step, is fine.

```python
import torch

weight = torch.zeros(1, requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=1.0)
for step in range(8):
    loss = (weight * 2).sum() / 4
    loss.backward()
    if (step + 1) % 4 == 0:
        optimizer.step()
        optimizer.zero_grad()
assert weight.item() == -4.0
```

Gradients may also be cleared by hand or through the module.

```python
import torch
from torch import nn

net = nn.Linear(2, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(3):
    net.zero_grad()
    net(torch.ones(4, 2)).pow(2).mean().backward()
    optimizer.step()
```

```python
import torch

weight = torch.zeros(1, requires_grad=True)
for step in range(3):
    (weight * 2).sum().backward()
    with torch.no_grad():
        weight -= 0.1 * weight.grad
    weight.grad = None
```

## Fix safety

Adding `zero_grad()` at the start of an iteration with a single backward is safe: each step uses its own gradient. With several, or where the step comes elsewhere, it is unsafe: gradients may be meant to add up.

See [Optimizer.zero_grad](https://docs.pytorch.org/docs/stable/generated/torch.optim.Optimizer.zero_grad.html) and a
[report](https://github.com/locuslab/fast_adversarial/issues/26) of a perturbation whose gradients add up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding

if TYPE_CHECKING:
    from gradsight.fixes.draft import Drafts, FixCase
    from gradsight.model.run_traces import RunTraces


def judge(event: Event) -> Finding | None:
    message = "no `zero_grad()` in this loop: gradients add up from step to step"
    if event.kind == "gradients-left-by-step":
        message = (
            f"no `zero_grad()`: each call of `{event.names['method']}` adds to the gradients of earlier calls"
        )
    if event.kind == "gradients-stepped-again":
        message = "no `zero_grad()` since the last `step()`: the next one applies its gradients again"
    if event.names.get("in_closure"):
        message = "no `zero_grad()` in the closure: one `step()` adds up the gradients of all its calls"
    return make_finding(event, RULE.code, RULE.name, message, "warning")


def fix(case: FixCase) -> Drafts:
    from gradsight.fixes.training import never_cleared

    return never_cleared(case)


def _excluded(run: RunTraces, finding: Finding) -> bool:
    """Each optimizer has found gradients in several steps, and the agent, which looks for old ones there, saw none."""
    if finding.data.get("in_closure") or finding.data.get("between"):
        # Within one step, and between steps for different losses, the agent does not look.
        return False
    return bool(run.optimizers) and all(useful > 1 for _, useful in run.optimizers)


RULE = Rule(
    "GS501",
    "gradients-never-cleared",
    ("gradients-never-cleared", "gradients-left-by-step", "gradients-stepped-again"),
    judge,
    __doc__,
    advice="call `optimizer.zero_grad()` once per step",
    fix=fix,
    observed_as=("gradients-never-cleared",),
    excluded_by=_excluded,
)
