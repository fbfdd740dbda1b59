"""`net.forward(x)` is called instead of `net(x)`.

## What goes wrong silently

Hooks run when a module is called. `net.forward(x)` bypasses them: forward hooks are not run, and backward hooks of the
module never fire, so that whatever they clip, freeze or log is missing.

```python
import torch
from torch import nn

seen = []
net = nn.Linear(2, 1)
net.register_forward_hook(lambda module, inputs, output: seen.append(output))
x = torch.ones(4, 2)
loss = net.forward(x).sum()  # warning: GS606
loss.backward()
assert seen == []
```

## Use instead

Call the module itself.

```python
import torch
from torch import nn

seen = []
net = nn.Linear(2, 1)
net.register_forward_hook(lambda module, inputs, output: seen.append(output))
x = torch.ones(4, 2)
loss = net(x).sum()
loss.backward()
assert len(seen) == 1
```

## Not reported

`super().forward(x)`, and `self.forward(x)` in a method of the module: the hooks of `self` run around the outer call, or the
class says itself what its methods are.

```python
import torch
from torch import nn


class Scaled(nn.Linear):
    def forward(self, x):
        return super().forward(x) * 2

    def predict(self, x):
        return self.forward(x)


net = Scaled(2, 1)
net(torch.ones(4, 2)).sum().backward()
net.predict(torch.ones(4, 2))
```

## Fix safety

Calling the module is unsafe: hooks that did not run before now do.

See [Module.forward](https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.forward) and a
[report](https://github.com/numenta/nupic.torch/pull/51) of hooks that are not called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradsight.model.events import Event
from gradsight.model.finding import Finding, Severity
from gradsight.model.rule import Rule, make_finding, text

if TYPE_CHECKING:
    from gradsight.fixes.draft import Drafts, FixCase


def judge(event: Event) -> Finding | None:
    target = text(event, "target")
    message = f"`{target}.forward(...)` skips the module's hooks: call `{target}(...)` instead"
    severity: Severity = "warning" if event.names.get("is_hooked") else "info"
    return make_finding(event, RULE.code, RULE.name, message, severity)


def fix(case: FixCase) -> Drafts:
    from gradsight.fixes.modules import forward_called

    return forward_called(case)


RULE = Rule(
    "GS606",
    "forward-called-directly",
    ("forward-called",),
    judge,
    __doc__,
    advice="call the module itself, so that its hooks run",
    fix=fix,
)
