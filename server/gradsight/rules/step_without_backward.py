"""`step()` without a `backward()` before it.

## What goes wrong silently

Without a backward there is no gradient, and the step changes nothing.

```python
import torch
from torch import nn

net = nn.Linear(2, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
before = net.weight.detach().clone()
for step in range(3):
    optimizer.zero_grad()
    loss = net(torch.ones(4, 2)).pow(2).mean()
    optimizer.step()  # warning: GS503
assert torch.equal(net.weight, before)
```

A backward before the step does not help where every parameter of the optimizer is frozen: it leaves no gradient for them.
What no optimizer holds is reported then, where the optimizer is made.

```python
import torch
from torch import nn

encoder, head = nn.Linear(2, 2), nn.Linear(2, 1)
encoder.requires_grad_(False)
optimizer = torch.optim.SGD(encoder.parameters(), lr=0.1)  # warning: GS512
before = encoder.weight.detach().clone()
for step in range(3):
    head(encoder(torch.ones(4, 2))).pow(2).mean().backward()
    optimizer.step()
assert torch.equal(encoder.weight, before)
assert head.weight.grad is not None
```

A library that calls your function for the loss has nothing to differentiate where the function returns nothing: Lightning
skips the batch of a `training_step` without a `return`. It is reported where the function is defined.

## Use instead

Call `backward()` first; return the loss where a library does it.

```python
import torch
from torch import nn

net = nn.Linear(2, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
before = net.weight.detach().clone()
for step in range(3):
    optimizer.zero_grad()
    loss = net(torch.ones(4, 2)).pow(2).mean()
    loss.backward()
    optimizer.step()
assert not torch.equal(net.weight, before)
```

## Not reported

Gradients can also come from `autograd.grad`, from a closure or from an assignment.

```python
import torch

weight = torch.zeros(1, requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=1.0)
(weight.grad,) = torch.autograd.grad((weight * 2).sum(), weight)
optimizer.step()
assert weight.item() == -2.0
```

```python
import torch

weight = torch.zeros(1, requires_grad=True)
optimizer = torch.optim.LBFGS([weight], max_iter=1)


def closure():
    optimizer.zero_grad()
    loss = (weight - 1).pow(2).sum()
    loss.backward()
    return loss


optimizer.step(closure)
assert weight.item() != 0.0
```

## Fix safety

Calling `backward()` on the last loss first is unsafe: it is a guess which loss you want.

See [Optimizer.step](https://docs.pytorch.org/docs/stable/generated/torch.optim.Optimizer.step.html) and a
[report](https://github.com/yusukeurakami/plan2explore-pytorch/issues/4) of an optimizer that was given the wrong parameters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, named

if TYPE_CHECKING:
    from gradsight.fixes.draft import Drafts, FixCase


def judge(event: Event) -> Finding | None:
    message = "this `step()` changes nothing: no `backward()` before it reaches its parameters"
    if event.names.get("frozen"):
        message = "every parameter of this optimizer is frozen: this `step()` has no gradient to apply"
    if event.kind == "nothing-returned":
        message = f"{named(event, 'function')} returns nothing, so nothing is trained: return the loss"
    if event.names.get("loss"):
        message = (
            f"`backward()` is never called on {named(event, 'loss')}: this `step()` does not train on it"
        )
    return make_finding(event, RULE.code, RULE.name, message, "warning")


def fix(case: FixCase) -> Drafts:
    from gradsight.fixes.training import step_without_backward

    return step_without_backward(case)


RULE = Rule(
    "GS503",
    "step-without-backward",
    ("step-without-backward", "nothing-returned"),
    judge,
    __doc__,
    advice="call `backward()` on a loss of these parameters before `step()`",
    fix=fix,
    observed_as=("step-without-backward",),
    excluded_by=lambda run, finding: run.has_only_useful_steps(),
    needs_training=True,
)
