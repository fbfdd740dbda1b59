"""A functional transform over a function that ignores the given parameters.

## What goes wrong silently

`torch.func.grad` differentiates by the argument. A function that uses the module it closes over, and not the parameters it is given, does not depend on its argument: the gradient is zero.

```python
import torch
from torch import nn
from torch.func import grad

net = nn.Linear(2, 1)
x = torch.ones(4, 2)


def loss_of(parameters):
    return net(x).pow(2).mean()  # warning: GS407


slopes = grad(loss_of)(dict(net.named_parameters()))
assert slopes["weight"].tolist() == [[0.0, 0.0]]
```

So does a function that computes with the given parameters and then leaves the graph.

```python
import torch
from torch import nn
from torch.func import functional_call, grad

net = nn.Linear(2, 1)


def loss_of(parameters, x):
    return functional_call(net, parameters, (x,)).detach().pow(2).mean()  # warning: GS407


slopes = grad(loss_of)(dict(net.named_parameters()), torch.ones(4, 2))
assert slopes["weight"].tolist() == [[0.0, 0.0]]
```

## Use instead

`functional_call` puts the given parameters in place of the module's own.

```python
import torch
from torch import nn
from torch.func import functional_call, grad

net = nn.Linear(2, 1)
x = torch.ones(4, 2)


def loss_of(parameters):
    return functional_call(net, parameters, (x,)).pow(2).mean()


slopes = grad(loss_of)(dict(net.named_parameters()))
assert slopes["weight"].abs().sum() > 0
```

## Not reported

A function that uses its argument is fine.

```python
import torch
from torch.func import grad

slope = grad(lambda x: (x * x).sum())(torch.ones(3))
assert slope.tolist() == [2.0, 2.0, 2.0]
```

## Fix safety

No fix is offered: only you know how the inputs reach the module.

See [torch.func.functional_call](https://docs.pytorch.org/docs/stable/generated/torch.func.functional_call.html) and a
[report](https://github.com/pytorch/pytorch/issues/49171) of a Jacobian that is full of zeros.
"""

from __future__ import annotations

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, named


def judge(event: Event) -> Finding | None:
    message = f"the function ignores its argument {named(event, 'target')}, so its gradient is zero: compute with it"
    if event.names.get("cut"):
        message = f"what the function computes from its argument {named(event, 'target')} leaves the graph here, so its gradient is zero"
    return make_finding(event, RULE.code, RULE.name, message, "warning")


RULE = Rule(
    "GS407",
    "func-ignores-parameters",
    ("func-ignores-parameters",),
    judge,
    __doc__,
    advice="compute with the parameters that are passed in: `functional_call(model, params, inputs)`",
    observed_as=("func-ignores-parameters",),
)
