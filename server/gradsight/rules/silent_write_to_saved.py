"""A write through `.data` or NumPy silently changes a value that backward needs.

## What goes wrong silently

`.data` shares the memory of its tensor and has a version counter of its own, and NumPy knows no versions at all. A write through either is invisible to autograd: backward computes with the changed value.

```python
import torch

x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
y = x * x
x.data.mul_(10)  # warning: GS104
y.sum().backward()
assert x.grad.tolist() == [20.0, 40.0, 60.0]  # the gradient of y was 2, 4, 6
```

```python
import torch

x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
h = x + 1
y = h.sin()
values = h.detach().numpy()
values += 1  # warning: GS104
y.sum().backward()
assert not torch.allclose(x.grad, torch.cos(torch.tensor([2.0, 3.0, 4.0])))
```

A norm layer in eval mode saves its running statistics, and in train mode it updates them without a version.

```python
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3))
clean, other = torch.randn(4, 3), 5 + torch.randn(4, 3)
net.eval()
(right,) = torch.autograd.grad(net(clean).square().mean(), net[0].weight)
loss = net(clean).square().mean()
net.train()
net(other)  # warning: GS104
(wrong,) = torch.autograd.grad(loss, net[0].weight)
assert not torch.allclose(right, wrong)
```

A checkpointed function runs again in backward, and what it saves then is used as it is: no version is compared.

```python
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)
layer = nn.Linear(4, 4)


def block(x):
    h = torch.tanh(layer(x))
    h += x  # warning: GS104
    return h * h


x = torch.randn(2, 4, requires_grad=True)
checkpoint(block, x, use_reentrant=False).sum().backward()
h = torch.tanh(layer(x)) + x
(right,) = torch.autograd.grad((h * h).sum(), layer.weight)
assert not torch.allclose(layer.weight.grad, right)
```

Memory that such a function moves on is moved once more, before backward computes with it.

```python
import torch
from torch.utils.checkpoint import checkpoint

steps = torch.zeros(3)


def block(x):
    steps.add_(1)  # warning: GS104
    return x * steps


x = torch.ones(3, requires_grad=True)
checkpoint(block, x, use_reentrant=False).sum().backward()
assert x.grad.tolist() == [2.0, 2.0, 2.0]  # the gradient of x * 1 was 1
```

## Use instead

Run backward before the value is changed, and change it under `no_grad`, where autograd sees the write.

```python
import torch

x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
y = x * x
y.sum().backward()
with torch.no_grad():
    x.mul_(10)
assert x.grad.tolist() == [2.0, 4.0, 6.0]
```

## Not reported

A write after the backward is fine, and so is one to a value that no operator saved.

```python
import torch

x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
y = x * 2
x.data.mul_(10)
y.sum().backward()
assert x.grad.tolist() == [2.0, 2.0, 2.0]
```

```python
import torch

weight = torch.ones(3, requires_grad=True)
for _ in range(2):
    (weight * weight).sum().backward()
    weight.data -= 0.1 * weight.grad
    weight.grad = None
```

In train mode a norm layer does not need its running statistics for backward.

```python
import torch
from torch import nn

net = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3))
first, second = net(torch.randn(4, 3)), net(torch.randn(4, 3))
(first + second).sum().backward()
```

`detach()` shares the version counter, so torch itself notices a write through it: that is reported as `inplace-on-saved`.

## Fix safety

Giving the operator a clone is safe: every value stays as it is, and the gradient is taken at the values that the operator saw.

See [how autograd checks versions](https://docs.pytorch.org/docs/stable/notes/autograd.html#in-place-correctness-checks) and
[checkpoint](https://docs.pytorch.org/docs/stable/checkpoint.html).

See [In-place operations with autograd](https://docs.pytorch.org/docs/stable/notes/autograd.html#in-place-operations-with-autograd) and a
[report](https://github.com/pytorch/pytorch/issues/6990) on what `.data` hides from autograd.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, named
from gradsight.model.torch_messages import MODIFIED_IN_PLACE, Cause

if TYPE_CHECKING:
    from gradsight.fixes.draft import Drafts, FixCase


def judge(event: Event) -> Finding | None:
    if event.names.get("by_step"):
        return None
    if event.names.get("by_statistics"):
        message = f"this updates the running statistics that {named(event, 'saver')} saved in eval mode: call `backward()` first"
        return make_finding(event, RULE.code, RULE.name, message, "warning")
    if event.names.get("saver") == "checkpoint" and event.names.get("write") == "optimizer step":
        message = "`checkpoint` computes with these parameters again in `backward()`: step only after it"
        return make_finding(event, RULE.code, RULE.name, message, "warning")
    if event.names.get("is_run_again"):
        message = f"`checkpoint` runs {named(event, 'here', 'this write')} again in `backward()`: the gradient is wrong, write outside"
        return make_finding(event, RULE.code, RULE.name, message, "warning")
    message = f"{named(event, 'here', 'this write')} silently changes what {named(event, 'saver')} saved, so the gradient is wrong: use a copy"
    return make_finding(event, RULE.code, RULE.name, message, "warning")


def fix(case: FixCase) -> Drafts:
    from gradsight.fixes.inplace import saved_changed_silently

    return saved_changed_silently(case)


RULE = Rule(
    "GS104",
    "silent-write-to-saved",
    ("saved-changed-silently",),
    judge,
    __doc__,
    advice="work on a copy: `x.detach().clone()` instead of `x.data` or the array of `x.numpy()`",
    fix=fix,
    silences=("GS105", "GS107", "GS190"),
    is_bad_write=True,
    spoils_saved=True,
    is_drawable=True,
    messages=(Cause(MODIFIED_IN_PLACE, rank=3),),
    observed_as=("saved-changed-silently",),
    excluded_by=lambda run, finding: run.was_written(finding),
    stands_on="write",
)
