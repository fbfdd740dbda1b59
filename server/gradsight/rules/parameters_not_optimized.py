"""Parameters that the loss trains and no optimizer moves.

## What goes wrong silently

`backward()` computes a gradient for every parameter that the loss depends on; `step()` moves those that the optimizer was
given. A network that was left out keeps its random weights to the end: the loss still falls a little, as the rest learns
around it.

```python
import torch
from torch import nn

encoder, decoder = nn.Linear(4, 2), nn.Linear(2, 4)
optimizer = torch.optim.SGD(decoder.parameters(), lr=0.1)  # warning: GS512
before = encoder.weight.detach().clone()
for batch in torch.ones(3, 8, 4):
    optimizer.zero_grad()
    nn.functional.mse_loss(decoder(encoder(batch)), batch).backward()
    optimizer.step()
assert torch.equal(encoder.weight, before)
```

Two optimizers over one network leave the other one out.

```python
import torch
from torch import nn

actor, critic = nn.Linear(4, 2), nn.Linear(4, 1)
actor_optimizer = torch.optim.Adam(actor.parameters(), lr=0.1)
critic_optimizer = torch.optim.Adam(actor.parameters(), lr=0.1)  # warning: GS512
before = critic.weight.detach().clone()
state = torch.ones(8, 4)
actor_optimizer.zero_grad()
actor(state).logsumexp(1).mean().backward()
actor_optimizer.step()
critic_optimizer.zero_grad()
critic(state).square().mean().backward()
critic_optimizer.step()
assert torch.equal(critic.weight, before)
```

An optimizer that is never stepped moves nothing either: here the wrong one steps.

```python
import torch
from torch import nn

critic, generator = nn.Linear(2, 1), nn.Linear(2, 2)
critic_optimizer = torch.optim.Adam(critic.parameters(), lr=0.1)
generator_optimizer = torch.optim.Adam(generator.parameters(), lr=0.1)
before = generator.weight.detach().clone()
for noise in torch.ones(3, 8, 2):
    critic_optimizer.zero_grad()
    critic(generator(noise).detach()).mean().backward()
    critic_optimizer.step()
    generator_optimizer.zero_grad()
    critic_optimizer.zero_grad()
    (-critic(generator(noise)).mean()).backward()
    critic_optimizer.step()  # warning: GS512
assert torch.equal(generator.weight, before)
```

Here none does: the loop clears what it computes, and `step()` is missing.

```python
import torch
from torch import nn

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
before = model.weight.detach().clone()
for batch in torch.ones(3, 8, 4):
    optimizer.zero_grad()
    model(batch).square().mean().backward()  # warning: GS512
assert torch.equal(model.weight, before)
```

## Use instead

Give the optimizer the parameters of everything that is to learn.

```python
import torch
from torch import nn

encoder, decoder = nn.Linear(4, 2), nn.Linear(2, 4)
optimizer = torch.optim.SGD([*encoder.parameters(), *decoder.parameters()], lr=0.1)
before = encoder.weight.detach().clone()
for batch in torch.ones(3, 8, 4):
    optimizer.zero_grad()
    nn.functional.mse_loss(decoder(encoder(batch)), batch).backward()
    optimizer.step()
assert not torch.equal(encoder.weight, before)
```

## Not reported

A loop without `step()` that reads the gradients it computes; a part that is frozen, run under `no_grad`, in eval mode, or has weights that were loaded or copied; a network that another
optimizer holds; a tensor of its own that is trained through a network.

It is a remark only where a loop is given an optimizer that it never steps, and nothing in it shows that it trains: a model
that is switched to train mode, gradients that are clipped or scaled, a schedule, epochs.

```python
import torch
from torch import nn

backbone, head = nn.Linear(4, 4), nn.Linear(4, 2)
backbone.requires_grad_(False)
optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
for batch in torch.ones(3, 8, 4):
    optimizer.zero_grad()
    head(backbone(batch)).square().mean().backward()
    optimizer.step()
```

```python
import torch
from torch import nn

victim = nn.Linear(4, 2)
change = torch.zeros(4, requires_grad=True)
attack = torch.optim.SGD([change], lr=0.1)
for batch in torch.ones(3, 8, 4):
    attack.zero_grad()
    victim(batch + change).square().mean().backward()
    attack.step()
```

## Fix safety

No fix is offered: whether a part is to learn or to be frozen is for the author to say.

See [torch.optim](https://docs.pytorch.org/docs/stable/optim.html) and a
[request for such a check](https://github.com/facebookresearch/mmf/issues/104).
"""

from __future__ import annotations

from gradsight.model.events import Event
from gradsight.model.finding import Finding, Severity
from gradsight.model.rule import Rule, make_finding, named, quoted, text


def judge(event: Event) -> Finding | None:
    if event.kind == "optimizer-never-stepped":
        message = (
            f"{named(event, 'optimizer')} is never stepped, so its parameters never change: call `step()`"
        )
    elif ", " in text(event, "parameters"):
        message = f"{_listed(text(event, 'parameters'))} get gradients but are in no optimizer, so they never train: add them"
    else:
        message = (
            f"{named(event, 'parameters')} gets gradients but is in no optimizer, so it never trains: add it"
        )
    severity: Severity = "info" if event.names.get("left_to") else "warning"
    return make_finding(event, RULE.code, RULE.name, message, severity)


def _listed(parameters: str) -> str:
    """The first two of some parameters, and how many more there are."""
    first, second, *more = (quoted(name) for name in parameters.split(", "))
    return f"{first}, {second} and {len(more)} more" if more else f"{first} and {second}"


RULE = Rule(
    "GS512",
    "parameters-not-optimized",
    ("parameters-not-optimized", "optimizer-never-stepped"),
    judge,
    __doc__,
    advice="give the optimizer these parameters, or freeze them with `requires_grad_(False)`",
    needs_training=True,
    observed_as=("parameters-not-optimized",),
)
