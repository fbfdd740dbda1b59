"""A gradient that does not fit its tensor.

## Why torch refuses

The gradient that a backward starts from, or that is put into `.grad`, has the shape of its tensor: nothing is broadcast.
Several outputs want as many gradients.

```python
import torch

x = torch.ones(3, 2, requires_grad=True)
rows = (x * 2).sum(1)
rows.backward(torch.ones(3, 2))  # error: GS409  # raises: Mismatch in shape
```

```python
import torch

x = torch.ones(3, requires_grad=True)
y, z = x * 2, x * 3
torch.autograd.grad([y, z], x, grad_outputs=[torch.ones(3)])  # error: GS409  # raises: got 2 tensors and 1
```

```python
import torch

weight = torch.ones(3, requires_grad=True)
weight.grad = torch.zeros(2)  # error: GS409  # raises: assign a gradient of size
```

A hook that returns a gradient replaces it, so the same holds for what it returns.

```python
import torch

x = torch.ones(3, 2, requires_grad=True)
hidden = x * 2
hidden.register_hook(lambda grad: grad.sum(0))  # error: GS409
hidden.sum().backward()  # raises: changed the size
```

And so it does for the gradients that a custom `backward` returns, unless they can be summed to the shape of the input.

```python
import torch


class Project(torch.autograd.Function):
    @staticmethod
    def forward(ctx, values, weight):
        ctx.save_for_backward(values, weight)
        return values @ weight

    @staticmethod
    def backward(ctx, grad):
        values, weight = ctx.saved_tensors
        return grad @ weight.t(), grad.t() @ values  # error: GS409


values = torch.ones(5, 4, requires_grad=True)
weight = torch.ones(4, 3, requires_grad=True)
Project.apply(values, weight).sum().backward()  # raises: invalid gradient
```

A gradient is a tensor: a number is refused wherever one is given.

```python
import torch

x = torch.ones(3, requires_grad=True)
x.grad = 0.0  # error: GS409  # raises: expected to be a Tensor
```

## Use instead

Give the gradient the shape of the tensor.

```python
import torch

x = torch.ones(3, 2, requires_grad=True)
rows = (x * 2).sum(1)
rows.backward(torch.ones_like(rows))
```

## Not reported

Gradients of the right shape, in a list where there are several, and hooks that keep it.

```python
import torch

x = torch.ones(3, requires_grad=True)
y, z = x * 2, x * 3
torch.autograd.grad([y, z], x, grad_outputs=[torch.ones(3), torch.ones(3)])
hidden = x * 2
hidden.register_hook(lambda grad: grad * 0.5)
hidden.sum().backward()
x.grad = torch.zeros_like(x)
```

## Fix safety

No fix is offered: which of the two shapes was meant is for the author to say.

See [torch.autograd.backward](https://docs.pytorch.org/docs/stable/generated/torch.autograd.backward.html) and a
[report](https://github.com/pytorch/pytorch/issues/49126).
"""

from __future__ import annotations

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, named, text
from gradsight.model.torch_messages import alone


def judge(event: Event) -> Finding | None:
    return make_finding(event, RULE.code, RULE.name, _message(event), "error")


def _message(event: Event) -> str:
    target, how = named(event, "target", "the tensor"), text(event, "how")
    given, wanted = text(event, "given"), text(event, "wanted")
    reason = event.names.get("reason")
    if reason == "itself":
        return f"{target} cannot be its own gradient"
    if reason == "dtype":
        return f"{target} is {wanted} and this gradient is {given}: `.grad` must have the tensor's type"
    if reason == "number":
        return f"{_GIVES.get(how, 'the gradient is')} the number `{given}` for {target}, but torch wants a tensor"
    if reason == "inputs":
        return "`inputs=` is empty, so this `backward()` raises: name the tensors or drop it"
    if reason == "count":
        return f"`{how}` got {given} gradient{'' if given == '1' else 's'} for {wanted} output{'' if wanted == '1' else 's'}"
    if how == "hook":
        return f"the hook returns a gradient of shape {given} for {target}, which has shape {wanted}"
    if how == "backward of a Function":
        return f"`backward` returns a gradient of shape {given} for {target}, which has shape {wanted}"
    return f"a gradient of shape {given} does not fit {target}, which has shape {wanted}"


_GIVES = {
    "hook": "the hook returns",
    "backward of a Function": "`backward` returns",
    ".grad": "`.grad` is set to",
}
"""Who gives a gradient, as a sentence begins."""

RULE = Rule(
    "GS409",
    "gradient-refused",
    ("gradient-refused",),
    judge,
    __doc__,
    advice="give the gradient the shape of the tensor",
    messages=(
        alone(
            r"Mismatch in shape: grad_output|attempting to assign a gradient|assigned grad has data of a different|hook.* has changed the size"
            r"|invalid gradient at index|assigned grad expected to be a Tensor|expected Variable or None|expected Variable, but hook"
            r"|inputs. argument to backward cannot be empty",
            "A gradient has another shape, or type, than the tensor that it belongs to.",
        ),
    ),
    observed_as=("gradient-refused",),
)
