"""A graph is carried from one iteration to the next.

## Why torch refuses

A hidden state that is used in the next step still belongs to the graph of this step. The next backward reaches that graph, which this backward has freed.

```python
import torch
from torch import nn

cell = nn.RNNCell(2, 3)
state = torch.zeros(4, 3)
for step in range(2):
    state = cell(torch.ones(4, 2), state)  # error: GS403
    loss = state.pow(2).mean()
    loss.backward()  # raises: a second time
```

## Use instead

Detach the state at the end of each step.

```python
import torch
from torch import nn

cell = nn.RNNCell(2, 3)
state = torch.zeros(4, 3)
for step in range(2):
    state = cell(torch.ones(4, 2), state.detach())
    loss = state.pow(2).mean()
    loss.backward()
```

## Not reported

A state that is created and used within one step, with one backward at its end, is fine.

```python
import torch
from torch import nn

cell = nn.RNNCell(2, 3)
for epoch in range(2):
    state = torch.zeros(4, 3)
    loss = 0
    for step in range(3):
        state = cell(torch.ones(4, 2), state)
        loss = loss + state.pow(2).mean()
    loss.backward()
```

A running average of detached values has no graph.

```python
import torch

weight = torch.ones(3, requires_grad=True)
average = torch.zeros(3)
for step in range(2):
    out = weight * 2
    out.sum().backward()
    average = 0.9 * average + 0.1 * out.detach()
```

## Fix safety

Detaching the carried state is unsafe: the gradient then ends at the start of the step. That is truncated backpropagation through time, which is a choice.

See [Tensor.detach](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.detach.html) and a
[report](https://github.com/LiyuanLucasLiu/LD-Net/issues/6) of a hidden state that is carried on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradsight.model.events import Event
from gradsight.model.finding import CULPRITS, Finding
from gradsight.model.rule import Rule, make_finding
from gradsight.model.torch_messages import SECOND_BACKWARD, Cause

if TYPE_CHECKING:
    from gradsight.fixes.draft import Drafts, FixCase


def judge(event: Event) -> Finding | None:
    message = "this still holds the last step's graph, which `backward()` freed: `detach()` it"
    # A dict under keys that are not known gives the old graph back only where a key comes again.
    return make_finding(
        event, RULE.code, RULE.name, message, "warning" if event.names.get("unsure") else "error"
    )


def fix(case: FixCase) -> Drafts:
    from gradsight.fixes.graphs import state_carried

    return state_carried(case)


def _same_cause(finding: Finding, fault: Finding) -> bool | None:
    """One graph, carried over by one line and saved by the other, and needed by one backward."""
    if finding.span.line in fault.lines(*CULPRITS) or fault.span.line not in finding.lines("saved"):
        return None
    return bool(finding.lines("needed") & fault.lines("needed"))


RULE = Rule(
    "GS403",
    "state-carried-over",
    ("state-carried",),
    judge,
    __doc__,
    advice="detach the state between iterations: `h = h.detach()`",
    fix=fix,
    messages=(Cause(SECOND_BACKWARD, rank=2),),
    observed_as=("state-carried",),
    kin="graph-carried",
    same_cause=_same_cause,
)
