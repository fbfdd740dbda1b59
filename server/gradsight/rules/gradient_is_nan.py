"""A gradient that is NaN where the NaN of the result was masked.

## What goes wrong silently

`torch.where` computes both arms, and backward goes through both. The arm that was not taken gets a gradient of zero. Where the
derivative of that arm is infinite, zero times infinity is NaN: the loss is right, and one optimizer step later every parameter is NaN.

```python
import torch

total = torch.tensor([0.0, 6.0], requires_grad=True)
count = torch.tensor([0.0, 2.0])
mean = torch.where(count == 0, torch.zeros(2), total / count)  # warning: GS212
mean.sum().backward()
assert mean.tolist() == [0.0, 3.0]
assert total.grad.isnan().tolist() == [True, False]
```

The root of zero and its logarithm are the same, and so are other ways to mask.

```python
import torch

x = torch.tensor([[0.0, 0.0], [3.0, 4.0]], requires_grad=True)
squares = (x * 1.0).pow(2).sum(1)
norm = torch.where(squares > 0, squares.sqrt(), torch.zeros(2))  # warning: GS212
norm.sum().backward()
assert x.grad.isnan().any()
```

```python
import torch

p = torch.tensor([0.0, 0.5], requires_grad=True)
weight = p * 1.0
entropy = (weight * weight.log()).masked_fill(weight == 0, 0.0)  # warning: GS212
entropy.sum().backward()
assert p.grad.isnan().tolist() == [True, False]
```

```python
import torch

total = torch.tensor([0.0, 6.0], requires_grad=True)
count = torch.tensor([0.0, 2.0])
mean = torch.nan_to_num(total / count)  # warning: GS212
mean.sum().backward()
assert total.grad.isnan().tolist() == [True, False]
```

## Use instead

Make the operand safe first, and select afterwards.

```python
import torch

total = torch.tensor([0.0, 6.0], requires_grad=True)
count = torch.tensor([0.0, 2.0])
safe = torch.where(count == 0, torch.ones(2), count)
mean = torch.where(count == 0, torch.zeros(2), total / safe)
mean.sum().backward()
assert total.grad.tolist() == [0.0, 0.5]
```

## Not reported

A divisor that is kept away from zero is safe, whatever is selected afterwards.

```python
import torch

total = torch.tensor([0.0, 6.0], requires_grad=True)
count = torch.tensor([0.0, 2.0])
mean = torch.where(count > 0, total / count.clamp(min=1), torch.zeros(2))
mean.sum().backward()
assert total.grad.tolist() == [0.0, 0.5]
```

So is an arm that was computed without a gradient.

```python
import torch

weight = torch.tensor([1.0, 6.0], requires_grad=True)
count = torch.tensor([0.0, 2.0])
share = torch.where(count == 0, torch.zeros(2), 1 / count)
(weight * share).sum().backward()
assert weight.grad.tolist() == [0.0, 0.5]
```

## Fix safety

No fix is offered: which number may stand for the zero is yours to say.

See [autograd's notes](https://docs.pytorch.org/docs/stable/notes/autograd.html) and a
[report](https://github.com/pytorch/pytorch/issues/68425) of `where`.
"""

from __future__ import annotations

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, named


def judge(event: Event) -> Finding | None:
    zero = named(event, "target", "the operand")
    message = f"{named(event, 'op')} masks the result of {named(event, 'steep')}, not its gradient: that is NaN where {zero} is 0"
    return make_finding(event, RULE.code, RULE.name, message, "warning")


RULE = Rule(
    "GS212",
    "gradient-is-nan",
    ("gradient-is-nan",),
    judge,
    __doc__,
    advice="replace the zero before the division, root or logarithm, and select afterwards",
    observed_as=("gradient-is-nan",),
)
