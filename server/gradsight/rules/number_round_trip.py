"""A round trip through Python numbers or NumPy on the way to the loss.

## Why torch refuses

`item()`, `float()`, `tolist()` and `numpy()` give plain numbers. Whatever is computed from them starts a new graph, or none.

```python
import torch

x = torch.ones(3, requires_grad=True)
value = (x * x).sum().item()  # error: GS202
loss = torch.tensor(value) * 2
loss.backward()  # raises: does not require grad
```

A tensor that requires grad cannot be turned into a NumPy array at all.

```python
import torch

x = torch.ones(3, requires_grad=True)
values = (x * x).numpy()  # error: GS202  # raises: Can't call numpy() on Tensor that requires grad
```

Next to a term that has a graph this goes wrong silently: the number is a constant, and what it was computed from does not train.

```python
import torch

weight = torch.ones(3, requires_grad=True)
temperature = torch.ones(1, requires_grad=True)
optimizer = torch.optim.SGD([weight, temperature], lr=0.1)
loss = (weight * 2).sum() / temperature.item()  # warning: GS202
loss.backward()
optimizer.step()
assert temperature.grad is None
```

## Use instead

Use tensors until after the backward.

```python
import torch

x = torch.ones(3, requires_grad=True)
value = (x * x).sum()
loss = value * 2
loss.backward()
assert x.grad.tolist() == [4.0, 4.0, 4.0]
```

## Not reported

Numbers for a log are fine, and so are numbers that never get into a loss.

```python
import torch

x = torch.ones(3, requires_grad=True)
total = 0.0
for step in range(3):
    loss = (x * step).sum()
    loss.backward()
    total += loss.item()
print(total)
```

## Fix safety

Removing `.item()` is safe where the number goes straight into arithmetic with tensors; elsewhere it is unsafe, because what was a number becomes a tensor.

See [Tensor.item](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.item.html) and a
[report](https://github.com/guopengf/FL-MRCM/issues/10) of an adversarial term that is added as a number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, named
from gradsight.model.torch_messages import NO_GRAPH, Cause, alone

if TYPE_CHECKING:
    from gradsight.fixes.draft import Drafts, FixCase


def judge(event: Event) -> Finding | None:
    if not (event.names.get("cut") in ("number", "numpy") and not event.names.get("hidden")):
        return None
    if event.kind == "numpy-refused":
        message = f"{named(event, 'source', 'this tensor')} requires grad, so converting it to NumPy raises: call `detach()` first"
        return make_finding(event, RULE.code, RULE.name, message, "error")
    message = f"{named(event, 'op')} takes {named(event, 'source', 'the value')} out of the graph: keep it a tensor so that gradients flow"
    return make_finding(
        event, RULE.code, RULE.name, message, "error" if event.kind == "backward-without-graph" else "warning"
    )


def fix(case: FixCase) -> Drafts:
    from gradsight.fixes.cuts import turned_into_number

    return turned_into_number(case)


RULE = Rule(
    "GS202",
    "number-round-trip",
    ("path-cut", "backward-without-graph", "term-cut", "numpy-refused"),
    judge,
    __doc__,
    advice="stay in torch until after `backward()`; take numbers out only for logging",
    fix=fix,
    messages=(
        Cause(NO_GRAPH, rank=3),
        alone(
            r"numpy\(\) on Tensor that requires grad",
            "NumPy knows nothing of graphs: detach the tensor first, and only where its value is not "
            "part of the loss.",
        ),
    ),
    observed_as=("number-taken",),
    kin="path-cut",
    excluded_by=lambda run, finding: run.has_no_cut(),
)
