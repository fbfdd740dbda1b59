"""An optimizer holds parameters that were replaced.

## What goes wrong silently

An optimizer holds the parameters it was given. A layer that is replaced afterwards has new ones, which no step ever updates.

```python
import torch
from torch import nn

net = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
net[1] = nn.Linear(3, 2)  # warning: GS504
before = net[1].weight.detach().clone()
net(torch.ones(4, 2)).pow(2).mean().backward()
optimizer.step()
assert torch.equal(net[1].weight, before)
```

A weight that two layers share is untied where one of them gets a new parameter.

```python
import torch
from torch import nn

table, head = nn.Embedding(10, 4), nn.Linear(4, 10, bias=False)
net = nn.Sequential(table, head)
head.weight = table.weight
table.weight = nn.Parameter(0.1 * torch.randn(10, 4))  # warning: GS504
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
net(torch.tensor([1, 2])).pow(2).mean().backward()
optimizer.step()
assert head.weight is not table.weight
```

## Use instead

Create the optimizer last.

```python
import torch
from torch import nn

net = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
net[1] = nn.Linear(3, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
before = net[1].weight.detach().clone()
net(torch.ones(4, 2)).pow(2).mean().backward()
optimizer.step()
assert not torch.equal(net[1].weight, before)
```

## Not reported

`load_state_dict` and `to` fill or move the parameters that are there.

```python
import torch
from torch import nn

net = nn.Linear(2, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
net.load_state_dict(nn.Linear(2, 1).state_dict())
net.to(torch.float64)
before = net.weight.detach().clone()
net(torch.ones(4, 2, dtype=torch.float64)).pow(2).mean().backward()
optimizer.step()
assert not torch.equal(net.weight, before)
```

New parameters can be added to the optimizer.

```python
import torch
from torch import nn

net = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
optimizer = torch.optim.SGD(net[0].parameters(), lr=0.1)
net[1] = nn.Linear(3, 2)
optimizer.add_param_group({"params": net[1].parameters()})
net(torch.ones(4, 2)).pow(2).mean().backward()
optimizer.step()
```

## Fix safety

Creating the optimizer after the replacement is safe: it was not used in between, so nothing is lost.

See [torch.optim](https://docs.pytorch.org/docs/stable/optim.html) and a
[report](https://github.com/huggingface/transformers/pull/3532) of embeddings that are resized after the optimizer was made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, named, text

if TYPE_CHECKING:
    from gradsight.fixes.draft import Drafts, FixCase


def judge(event: Event) -> Finding | None:
    if event.kind == "tie-broken":
        message = f"this unties {named(event, 'name')}, so the two places learn apart from here on: tie them again after it"
        return make_finding(event, RULE.code, RULE.name, message, "warning")
    name = "this module" if text(event, "name").isdigit() else named(event, "name")
    message = f"{name} gets new parameters, but the optimizer holds the old ones: create the optimizer later"
    if event.names.get("lazy"):
        message = f"{name} gets its parameters after the optimizer was created: create the optimizer later"
    return make_finding(event, RULE.code, RULE.name, message, "warning")


def fix(case: FixCase) -> Drafts:
    from gradsight.fixes.training import parameters_replaced

    return parameters_replaced(case)


def _same_cause(finding: Finding, fault: Finding) -> bool | None:
    """The parameters are made inside what the line of the finding calls."""
    return True if finding.span.line in fault.lines("call") else None


RULE = Rule(
    "GS504",
    "parameters-replaced",
    ("parameters-replaced", "tie-broken"),
    judge,
    __doc__,
    advice="create the optimizer after the last change of the model",
    fix=fix,
    observed_as=("parameters-replaced",),
    kin="parameters-untrained",
    same_cause=_same_cause,
    excluded_by=lambda run, finding: run.is_all_in_optimizers(),
    needs_training=True,
)
