"""A custom Function whose backward is differentiated, and cannot be.

## What goes wrong silently

With `create_graph=True` autograd records what `backward` computes, from what it is given: the inputs and outputs that forward
saved have their graph, but an intermediate result was computed with grad mode off, and is a number there. The second
derivative misses every term that leads through it.

```python
import torch


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        square = x * x
        ctx.save_for_backward(square)  # warning: GS706
        return square * x

    @staticmethod
    def backward(ctx, grad):
        (square,) = ctx.saved_tensors
        return 3 * square * grad


x = torch.tensor(2.0, requires_grad=True)
(slope,) = torch.autograd.grad(Cube.apply(x) * x, x, create_graph=True)
slope.backward()
assert x.grad.item() != 12 * 2.0**2
```

Where the author has said that `backward` is differentiable once, torch refuses.

```python
import torch
from torch.autograd.function import once_differentiable


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 3 * x * x * grad


x = torch.tensor(2.0, requires_grad=True)
(slope,) = torch.autograd.grad(Cube.apply(x) * x, x, create_graph=True)
slope.backward()  # error: GS706  # raises: differentiate twice
```

## Use instead

Save inputs and outputs, and compute the rest in `backward`.

```python
import torch


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 3 * x * x * grad


x = torch.tensor(2.0, requires_grad=True)
(slope,) = torch.autograd.grad(Cube.apply(x) * x, x, create_graph=True)
slope.backward()
assert x.grad.item() == 12 * 2.0**2
```

## Not reported

A Function that is differentiated once may save what it likes.

```python
import torch


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        square = x * x
        ctx.save_for_backward(square)
        return square * x

    @staticmethod
    def backward(ctx, grad):
        (square,) = ctx.saved_tensors
        return 3 * square * grad


x = torch.tensor(2.0, requires_grad=True)
Cube.apply(x).backward()
assert x.grad.item() == 12.0
```

## Fix safety

No fix is offered: how `backward` gets the value from inputs and outputs is for the author to say.

See [double backward with custom functions](https://docs.pytorch.org/tutorials/intermediate/custom_function_double_backward_tutorial.html)
and a [report](https://github.com/pytorch/pytorch/issues/104040).
"""

from __future__ import annotations

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, named, text
from gradsight.model.torch_messages import alone


def judge(event: Event) -> Finding | None:
    cls = text(event, "cls")
    if event.names.get("reason") == "once":
        message = f"`{cls}.backward` is marked `once_differentiable`, so a second derivative raises: make it differentiable"
        return make_finding(event, RULE.code, RULE.name, message, "error")
    message = (
        f"`{cls}.backward` uses {named(event, 'name')} without its graph, so the second derivative is wrong"
    )
    return make_finding(event, RULE.code, RULE.name, message, "warning")


RULE = Rule(
    "GS706",
    "differentiated-twice",
    ("differentiated-twice",),
    judge,
    __doc__,
    advice="save inputs and outputs of forward only, and compute the rest in backward",
    messages=(
        alone(
            r"differentiate twice a function that was marked with @once_differentiable",
            "A custom function says that its backward can be differentiated once, and a second derivative is asked for.",
        ),
    ),
)
