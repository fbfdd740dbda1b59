"""An activation before a loss that already includes it.

## What goes wrong silently

`cross_entropy` applies `log_softmax` to its input, and `binary_cross_entropy_with_logits` a sigmoid. Applied twice, the scores are squeezed into a narrow range: the loss cannot come near zero, and the gradient is small and wrong.

```python
import torch
from torch import nn

scores = torch.tensor([[20.0, 0.0, 0.0]], requires_grad=True)
probabilities = torch.softmax(scores, dim=1)
loss = nn.functional.cross_entropy(probabilities, torch.tensor([0]))  # warning: GS605
loss.backward()
assert loss.item() > 0.5  # the prediction is right, and the loss should be near 0
```

```python
import torch
from torch import nn

net = nn.Sequential(nn.Linear(2, 1), nn.Sigmoid())
loss = nn.BCEWithLogitsLoss()(net(torch.ones(4, 2)), torch.zeros(4, 1))  # warning: GS605
loss.backward()
assert loss.item() > 0.69  # it cannot become smaller
```

The reverse is as wrong: `binary_cross_entropy` wants probabilities and `nll_loss` their logarithms. Raw scores give a loss
that raises outside of 0 and 1, or falls without end.

```python
import torch
from torch import nn

net = nn.Linear(2, 3)
scores = net(torch.full((1, 2), 100.0))
loss = nn.functional.nll_loss(scores, torch.tensor([0]))  # warning: GS605
assert torch.equal(loss, -scores[0, 0])
```

Probabilities in the place of their logarithms are the third form: the loss is negative, and its gradient does not grow where
the prediction is wrong.

```python
import torch
from torch import nn

scores = torch.tensor([[-20.0, 0.0]], requires_grad=True)
loss = nn.functional.nll_loss(torch.softmax(scores, dim=1), torch.tensor([0]))  # warning: GS605
loss.backward()
assert scores.grad.abs().max() < 1e-6  # wrong by a lot, and nothing is learned
```

```python
import torch
from torch import nn

teacher = torch.softmax(torch.tensor([[2.0, 0.0]]), dim=1)
student = torch.tensor([[0.0, 0.0]], requires_grad=True)
loss = nn.functional.kl_div(torch.softmax(student, dim=1), teacher, reduction="sum")  # warning: GS605
assert loss.item() < 0  # a divergence never is
```

## Use instead

Pass the raw scores to the loss.

```python
import torch
from torch import nn

scores = torch.tensor([[20.0, 0.0, 0.0]], requires_grad=True)
loss = nn.functional.cross_entropy(scores, torch.tensor([0]))
loss.backward()
assert loss.item() < 0.001
```

## Not reported

Some losses expect probabilities or their logarithms.

```python
import torch
from torch import nn

scores = torch.tensor([[2.0, 0.0, 0.0]], requires_grad=True)
loss = nn.functional.nll_loss(torch.log_softmax(scores, dim=1), torch.tensor([0]))
loss = loss + nn.functional.binary_cross_entropy(torch.sigmoid(scores), torch.zeros(1, 3))
loss.backward()
```

Probabilities that are only printed are fine.

```python
import torch
from torch import nn

scores = torch.tensor([[2.0, 0.0, 0.0]], requires_grad=True)
print(torch.softmax(scores, dim=1))
nn.functional.cross_entropy(scores, torch.tensor([0])).backward()
```

## Fix safety

Removing the activation is unsafe: the loss and its gradient change.

See [CrossEntropyLoss](https://docs.pytorch.org/docs/stable/generated/torch.nn.CrossEntropyLoss.html) and a
[report](https://github.com/jindongwang/Deep-learning-activity-recognition/issues/10) of a softmax before it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, named

if TYPE_CHECKING:
    from gradsight.fixes.draft import Drafts, FixCase


def judge(event: Event) -> Finding | None:
    if event.names.get("missing"):
        message = f"{named(event, 'loss')} gets raw scores but expects the output of {named(event, 'op')}: apply it first"
        return make_finding(event, RULE.code, RULE.name, message, "warning")
    if event.names.get("no_log"):
        message = f"{named(event, 'loss')} gets probabilities but expects their logarithms: use `log_softmax`"
        return make_finding(event, RULE.code, RULE.name, message, "warning")
    message = f"{named(event, 'op')} is applied twice: {named(event, 'loss')} already includes it, so pass the raw scores"
    return make_finding(event, RULE.code, RULE.name, message, "warning")


def fix(case: FixCase) -> Drafts:
    from gradsight.fixes.modules import activation_twice

    return activation_twice(case)


RULE = Rule(
    "GS605",
    "softmax-before-loss",
    ("softmax-before-loss",),
    judge,
    __doc__,
    advice="pass the scores as they are: the loss applies the activation itself",
    fix=fix,
    observed_as=("softmax-before-loss",),
)
