"""An optimizer that torch refuses to make.

## Why torch refuses

An optimizer without parameters could train nothing: where a module has registered none, torch says so at once. Layers that
are bound to plain names in `__init__`, and not to `self`, are not layers of the module.

```python
import torch
from torch import nn


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        hidden = nn.Linear(4, 2)
        self.width = hidden.out_features

    def forward(self, x):
        return x[..., : self.width]


encoder = Encoder()
optimizer = torch.optim.Adam(encoder.parameters(), lr=1e-3)  # error: GS518  # raises: empty parameter list
```

A parameter in two groups would be moved twice by one step.

```python
import torch
from torch import nn

net = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))
groups = [{"params": net.parameters()}, {"params": net[2].parameters(), "lr": 0.1}]
optimizer = torch.optim.SGD(groups, lr=0.01)  # error: GS518  # raises: more than one parameter group
```

An embedding with `sparse=True` has a sparse gradient, which most optimizers stop at. `SparseAdam` takes no other.

```python
import torch
from torch import nn

words = nn.Embedding(10, 4, sparse=True)
optimizer = torch.optim.Adam(words.parameters(), lr=1e-3)
words(torch.tensor([1, 2])).sum().backward()
optimizer.step()  # error: GS518  # raises: does not support sparse gradients
```

## Use instead

Bind layers to `self`, and give each parameter to one group.

```python
import torch
from torch import nn

net = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))
groups = [{"params": net[0].parameters()}, {"params": net[2].parameters(), "lr": 0.1}]
optimizer = torch.optim.SGD(groups, lr=0.01)
```

## Not reported

A group without members, and an optimizer in a class whose descendants bring the parameters.

```python
import torch
from torch import nn


class Trained(nn.Module):
    def configure(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)


class Encoder(Trained):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(4, 2)


optimizer = Encoder().configure()
words = nn.Embedding(10, 4, sparse=True)
sparse_optimizer = torch.optim.SparseAdam(words.parameters(), lr=1e-3)
words(torch.tensor([1, 2])).sum().backward()
sparse_optimizer.step()
unused: list[nn.Parameter] = []
torch.optim.SGD([{"params": unused}, {"params": nn.Linear(2, 1).parameters()}], lr=0.1)
```

## Fix safety

No fix is offered: which parameters belong into which group is for the author to say.

See [torch.optim.Optimizer](https://docs.pytorch.org/docs/stable/optim.html#torch.optim.Optimizer) and a
[report](https://github.com/Lightning-AI/pytorch-lightning/issues/2282).
"""

from __future__ import annotations

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, named
from gradsight.model.torch_messages import alone


def judge(event: Event) -> Finding | None:
    reason = event.names.get("reason")
    if reason in ("sparse", "dense"):
        other = (
            "use `SparseAdam` for it, or leave `sparse=True` away"
            if reason == "sparse"
            else "use `Adam` for it"
        )
        message = (
            f"`{event.names.get('target')}` does not take the {reason} gradient of a parameter here: {other}"
        )
    elif reason == "twice":
        message = f"{named(event, 'target', 'a parameter')} is in two groups of this optimizer, which torch refuses: keep it in one"
    else:
        message = "this optimizer gets no parameters, which torch refuses: the module has registered none"
    return make_finding(event, RULE.code, RULE.name, message, "error")


RULE = Rule(
    "GS518",
    "optimizer-refused",
    ("optimizer-refused",),
    judge,
    __doc__,
    advice="bind layers to `self`, and give each parameter to one group",
    torch_raises=True,
    messages=(
        alone(
            r"optimizer got an empty parameter list|parameters appear in more than one parameter group",
            "An optimizer was given no parameter at all, or one parameter in two groups.",
        ),
        alone(
            r"does not support (sparse|dense) gradients|not compatible with sparse gradients|add\(sparse, dense\) is not supported",
            "An embedding with `sparse=True` has a sparse gradient, and this optimizer does not take it; SparseAdam takes no dense one.",
        ),
    ),
    observed_as=("optimizer-refused",),
)
