"""`torch.tensor(t)` copies a value out of the graph.

## Why torch refuses

`torch.tensor` reads numbers and makes a new leaf of them. What it was given is not part of the new tensor's graph, so a backward from there finds nothing.

```python
import torch

x = torch.ones(3, requires_grad=True)
losses = [(x * 2).sum(), (x * 3).sum()]
total = torch.tensor(losses).sum()  # error: GS201  # warns: Converting a tensor with requires_grad
total.backward()  # raises: does not require grad
```

When another term of the loss still has a graph, nothing fails: the copied term is a constant.

```python
import torch

x = torch.ones(3, requires_grad=True)
penalty = torch.tensor(x.pow(2).sum())  # warning: GS201  # warns: To copy construct from a tensor
loss = (x * 2).sum() + penalty
loss.backward()
assert x.grad.tolist() == [2.0, 2.0, 2.0]  # the penalty would have added 2
```

## Use instead

`torch.stack` joins tensors and keeps their graphs.

```python
import torch

x = torch.ones(3, requires_grad=True)
losses = [(x * 2).sum(), (x * 3).sum()]
total = torch.stack(losses).sum()
total.backward()
assert x.grad.tolist() == [5.0, 5.0, 5.0]
```

## Not reported

A tensor made of plain numbers is fine, and so is a copy that is only printed or logged.

```python
import torch

x = torch.ones(3, requires_grad=True)
losses = [(x * 2).sum(), (x * 3).sum()]
history = torch.tensor([loss.item() for loss in losses])
print(history.mean())
torch.stack(losses).sum().backward()
```

## Fix safety

`torch.stack` in place of `torch.tensor` is safe where the entries are single numbers or are reduced at once, and unsafe where their shapes are not known. Using the tensor itself in place of its copy is safe: the value is the same, and the gradient flows again.

See [torch.tensor](https://docs.pytorch.org/docs/stable/generated/torch.tensor.html) and a
[report](https://github.com/laekov/fastmoe/issues/49) of a balance loss that is not optimized.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, named
from gradsight.model.torch_messages import NO_GRAPH, Cause

if TYPE_CHECKING:
    from gradsight.fixes.draft import Drafts, FixCase


def judge(event: Event) -> Finding | None:
    if not (event.names.get("cut") == "copy" and not event.names.get("hidden")):
        return None
    message = f"`torch.tensor` copies {named(event, 'source', 'values')} out of the graph: use the tensor or `torch.stack`"
    return make_finding(
        event, RULE.code, RULE.name, message, "error" if event.kind == "backward-without-graph" else "warning"
    )


def fix(case: FixCase) -> Drafts:
    from gradsight.fixes.cuts import copied

    return copied(case)


RULE = Rule(
    "GS201",
    "copied-by-tensor",
    ("path-cut", "backward-without-graph", "term-cut"),
    judge,
    __doc__,
    advice="use `torch.stack([...])` for a list of tensors, and the tensor itself instead of a copy",
    fix=fix,
    messages=(Cause(NO_GRAPH, rank=2),),
    observed_as=("value-copied",),
    kin="path-cut",
    excluded_by=lambda run, finding: run.has_no_cut(),
)
