"""A write in place that `vmap` or `torch.func.grad` refuses.

## Why torch refuses

Inside a function that `vmap` runs over a batch, a value that comes from the batch stands for all slices at once. A tensor
that was made by `torch.zeros(…)` there, or comes from outside, holds one slice only, so nothing of the batch can be written into it.

```python
import torch


def first_only(row):
    result = torch.zeros(3)
    result[0] = row.sum()  # error: GS109  # raises: vmap
    return result


torch.vmap(first_only)(torch.ones(2, 3))
```

`torch.func.grad` differentiates what happens inside the function. A tensor from outside that is written there would be part of it afterwards.

```python
import torch

kept = torch.zeros(3)


def loss(weights):
    kept.copy_(weights)  # error: GS109  # raises: captured Tensor
    return kept.sum()


torch.func.grad(loss)(torch.ones(3))
```

## Use instead

Make the tensor from one of the batch (`zeros_like`, `new_zeros`), or compute a new one.

```python
import torch


def first_only(row):
    result = torch.zeros_like(row)
    result[0] = row.sum()
    return result


torch.vmap(first_only)(torch.ones(2, 3))
```

## Not reported

Writes into tensors of the batch itself, and writes of values that are the same for all slices.

```python
import torch


def shifted(row):
    offsets = torch.zeros(3)
    offsets[0] = 1.0
    total = row.clone()
    total += offsets
    total[1] = row.sum()
    return total


torch.vmap(shifted)(torch.ones(2, 3))
```

## Fix safety

No fix is offered: which of the two forms is right depends on the shape that is wanted.

See [limitations of torch.func](https://docs.pytorch.org/docs/stable/func.ux_limitations.html) and a
[report](https://github.com/pytorch/pytorch/issues/97248).
"""

from __future__ import annotations

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, named, text
from gradsight.model.torch_messages import alone


def judge(event: Event) -> Finding | None:
    write, name = named(event, "here", "this write"), text(event, "transform")
    if name == "vmap":
        message = f"{write} writes batched values into a tensor that `vmap` does not batch: create it with `zeros_like`"
    else:
        message = (
            f"{write} writes a tensor from outside the function, which `{name}` refuses: compute a new one"
        )
    return make_finding(event, RULE.code, RULE.name, message, "error")


RULE = Rule(
    "GS109",
    "inplace-in-transform",
    ("written-in-transform",),
    judge,
    __doc__,
    advice="create the tensor with `zeros_like` of an input, or compute a new tensor",
    silences=("GS105", "GS107", "GS190"),
    is_bad_write=True,
    observed_as=("written-in-transform",),
    torch_raises=True,
    messages=(
        alone(
            r"vmap: .*is not possible because|would mutate a captured Tensor",
            "Inside a function that `vmap` or `torch.func.grad` runs, a value that it follows was written into a tensor that "
            "it does not follow.",
        ),
    ),
    stands_on="write",
)
