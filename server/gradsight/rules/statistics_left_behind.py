"""An average of a model that leaves the statistics of its norm layers behind.

## What goes wrong silently

`parameters()` does not hold `running_mean` and `running_var`: they are buffers. A copy whose parameters follow those of a model in
training keeps the statistics that it was made with, and computes with them in eval mode.

```python
import copy

import torch
from torch import nn

model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
average = copy.deepcopy(model).eval()
for batch in torch.randn(3, 8, 2) * 5:
    model(batch)
    with torch.no_grad():
        for slow, fast in zip(average.parameters(), model.parameters()):
            slow.lerp_(fast, 0.1)  # warning: GS519
prediction = average(torch.ones(1, 2))
assert torch.equal(average[1].running_mean, torch.zeros(3))
```

## Use instead

Copy the buffers too.

```python
import copy

import torch
from torch import nn

model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
average = copy.deepcopy(model).eval()
for batch in torch.randn(3, 8, 2) * 5:
    model(batch)
    with torch.no_grad():
        for slow, fast in zip(average.parameters(), model.parameters()):
            slow.lerp_(fast, 0.1)
        for slow_buffer, fast_buffer in zip(average.buffers(), model.buffers()):
            slow_buffer.copy_(fast_buffer)
prediction = average(torch.ones(1, 2))
assert torch.equal(average[1].running_mean, model[1].running_mean)
```

## Not reported

A copy that computes in train mode, as the key encoder of momentum contrast does: its batch gives it the statistics.

```python
import copy

import torch
from torch import nn

model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
average = copy.deepcopy(model)
for batch in torch.randn(3, 8, 2):
    model(batch)
    with torch.no_grad():
        for slow, fast in zip(average.parameters(), model.parameters()):
            slow.lerp_(fast, 0.1)
        average(batch)
average.eval()
prediction = average(torch.ones(1, 2))
```

## Fix safety

No fix is offered: whether buffers are copied or averaged is for the author to say.

See [torch.optim.swa_utils](https://docs.pytorch.org/docs/stable/optim.html#weight-averaging-swa-and-ema) and a
[report](https://github.com/FlyreelAI/sesemi/issues/36).
"""

from __future__ import annotations

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding


def judge(event: Event) -> Finding | None:
    message = "the averaged model lacks `running_mean` and `running_var`: copy the buffers too"
    return make_finding(event, RULE.code, RULE.name, message, "warning")


RULE = Rule(
    "GS519",
    "statistics-left-behind",
    ("statistics-left",),
    judge,
    __doc__,
    advice="copy the buffers of the model to the average too",
    observed_as=("statistics-left",),
)
