"""Gradients that are applied twice: two steps move a parameter by one backward.

## What goes wrong silently

A step applies what is in `.grad`, and leaves it there. A second one applies it again: the learning rate of these parameters
is doubled, and with Adam or momentum each optimizer keeps statistics of its own and works against the other. This happens
where a parameter is given to two optimizers:

```python
import torch
from torch import nn

body, first, second = nn.Linear(2, 2), nn.Linear(2, 1), nn.Linear(2, 1)
one = torch.optim.SGD([*body.parameters(), *first.parameters()], lr=0.1)
other = torch.optim.SGD([*body.parameters(), *second.parameters()], lr=0.1)
before = body.weight.detach().clone()
features = body(torch.ones(4, 2))
(first(features).mean() + second(features).mean()).backward()
one.step()
other.step()  # warning: GS520
assert torch.allclose(body.weight, before - 0.2 * body.weight.grad)
```

It also happens where `optimizer.step()` was left beside the step of a gradient scaler, and where a closure computes
nothing: LBFGS asks it for new gradients several times in one step.

```python
import torch
from torch import nn

net = nn.Linear(2, 1)
optimizer = torch.optim.LBFGS(net.parameters(), max_iter=5)
loss = net(torch.ones(4, 2)).pow(2).mean()
loss.backward()
before = net.weight.grad.clone()
optimizer.step(lambda: loss)  # warning: GS520
assert torch.equal(net.weight.grad, before)
```

Two parameters that share memory by `.data` are still two: each has a gradient and averages of its own, and a step writes the
memory once for each.

```python
import torch
from torch import nn

embed, head = nn.Embedding(5, 3), nn.Linear(3, 5, bias=False)
head.weight.data = embed.weight.data  # warning: GS520
optimizer = torch.optim.Adam([*embed.parameters(), *head.parameters()], lr=0.1)
words = torch.tensor([0, 1, 2])
for _ in range(2):
    optimizer.zero_grad()
    nn.functional.cross_entropy(head(embed(words)), words).backward()
    optimizer.step()
assert head.weight.data_ptr() == embed.weight.data_ptr()
assert len(optimizer.state) == 2  # `head.weight = embed.weight` gives one, with the sum of both gradients
```

Of a list that has a parameter twice torch only warns. With two networks one name too few is left out:

```python
import torch
from torch import nn

first, second = nn.Linear(2, 1), nn.Linear(2, 1)
both = [*first.parameters(), *first.parameters()]
optimizer = torch.optim.SGD(both, lr=0.1)  # warning: GS520  # warns: duplicate parameters
before = first.weight.detach().clone()
first(torch.ones(4, 2)).mean().backward()
optimizer.step()
assert torch.allclose(first.weight, before - 0.2 * first.weight.grad)
```

## Use instead

Give each parameter to one optimizer, and step it once for each backward.

```python
import torch
from torch import nn

body, first, second = nn.Linear(2, 2), nn.Linear(2, 1), nn.Linear(2, 1)
one = torch.optim.SGD([*body.parameters(), *first.parameters()], lr=0.1)
other = torch.optim.SGD(second.parameters(), lr=0.1)
before = body.weight.detach().clone()
features = body(torch.ones(4, 2))
(first(features).mean() + second(features).mean()).backward()
one.step()
other.step()
assert torch.allclose(body.weight, before - 0.1 * body.weight.grad)
```

## Not reported

Two optimizers over one network that have a backward each, with the gradients cleared in between.

```python
import torch
from torch import nn

net = nn.Linear(2, 1)
fast = torch.optim.SGD(net.parameters(), lr=0.1)
slow = torch.optim.SGD(net.parameters(), lr=0.01)
for optimizer in (fast, slow):
    optimizer.zero_grad()
    net(torch.ones(4, 2)).mean().backward()
    optimizer.step()
```

## Fix safety

No fix is offered: the code does not say which of the two should have the parameters.

See [torch.optim](https://docs.pytorch.org/docs/stable/optim.html) and a
[report of two optimizers over one network](https://github.com/instadeepai/Mava/issues/364).
"""

from __future__ import annotations

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, quoted

MESSAGES = {
    "closure": "this closure computes no new gradients: call `zero_grad()`, forward and `backward()` in it",
    "shared": "two optimizers hold {parameter}, so its gradient is applied twice: give it to one of them",
    "memory": "{parameter} shares the memory of another parameter: assign the parameter itself",
    "repeated": "{parameter} is twice in one list, so each step applies its gradient twice: list it once",
    "again": "this step applies the same gradients again: call `step()` once for each `backward()`",
}


def judge(event: Event) -> Finding | None:
    names = event.names
    label = names.get("parameter")
    parameter = quoted(label) if isinstance(label, str) and label else "one parameter"
    message = MESSAGES[str(names.get("how", "again"))].format(parameter=parameter)
    return make_finding(event, RULE.code, RULE.name, message, "warning")


RULE = Rule(
    "GS520",
    "gradients-applied-twice",
    ("gradients-applied-twice",),
    judge,
    __doc__,
    advice="step once for each `backward()`, and give a parameter to one optimizer",
    needs_training=True,
    observed_as=("gradients-applied-twice",),
)
