"""One network's backward leaves gradients in another.

## What goes wrong silently

The loss of a generator goes through the discriminator, and its backward fills the discriminator's gradients too. If they are not cleared before the discriminator's own backward, its step uses both.

```python
import torch
from torch import nn

generator, critic = nn.Linear(2, 2), nn.Linear(2, 1, bias=False)
generator_optimizer = torch.optim.SGD(generator.parameters(), lr=0.1)
critic_optimizer = torch.optim.SGD(critic.parameters(), lr=0.1)
noise, real = torch.ones(4, 2), torch.zeros(4, 2)
for step in range(2):
    generator_optimizer.zero_grad()
    (-critic(generator(noise)).mean()).backward()  # warning: GS508
    generator_optimizer.step()
    left = critic.weight.grad.clone()
    critic(real).mean().backward()
    assert torch.equal(critic.weight.grad, left)  # the gradient of this loss alone is 0
    critic_optimizer.step()
    critic_optimizer.zero_grad()
```

## Use instead

Clear each network's gradients before its own backward.

```python
import torch
from torch import nn

generator, critic = nn.Linear(2, 2), nn.Linear(2, 1, bias=False)
generator_optimizer = torch.optim.SGD(generator.parameters(), lr=0.1)
critic_optimizer = torch.optim.SGD(critic.parameters(), lr=0.1)
noise, real = torch.ones(4, 2), torch.zeros(4, 2)
for step in range(2):
    generator_optimizer.zero_grad()
    (-critic(generator(noise)).mean()).backward()
    generator_optimizer.step()
    critic_optimizer.zero_grad()
    critic(real).mean().backward()
    assert critic.weight.grad.abs().sum() == 0
    critic_optimizer.step()
```

## Not reported

A generator whose output is detached where the critic is trained leaves no gradients behind.

```python
import torch
from torch import nn

generator, critic = nn.Linear(2, 2), nn.Linear(2, 1)
critic_optimizer = torch.optim.SGD(critic.parameters(), lr=0.1)
for step in range(2):
    critic_optimizer.zero_grad()
    critic(generator(torch.ones(4, 2)).detach()).mean().backward()
    critic_optimizer.step()
assert generator.weight.grad is None
```

Networks that are trained together by one loss share one backward.

```python
import torch
from torch import nn

encoder, decoder = nn.Linear(2, 3), nn.Linear(3, 2)
encoder_optimizer = torch.optim.SGD(encoder.parameters(), lr=0.1)
decoder_optimizer = torch.optim.SGD(decoder.parameters(), lr=0.1)
for step in range(2):
    encoder_optimizer.zero_grad()
    decoder_optimizer.zero_grad()
    decoder(encoder(torch.ones(4, 2))).pow(2).mean().backward()
    encoder_optimizer.step()
    decoder_optimizer.step()
```

## Fix safety

Clearing right before the network's own backward is safe where no other backward adds to the gradients between two of its steps; otherwise it is unsafe.

See [Optimizer.zero_grad](https://docs.pytorch.org/docs/stable/generated/torch.optim.Optimizer.zero_grad.html) and a
[report](https://github.com/FoundationVision/OmniTokenizer/issues/15) of a discriminator that is stepped by the generator's loss.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, named

if TYPE_CHECKING:
    from gradsight.fixes.draft import Drafts, FixCase


def judge(event: Event) -> Finding | None:
    message = f"this `backward()` also leaves gradients in {named(event, 'parameter', 'the other network')}: clear them before its optimizer steps"
    return make_finding(event, RULE.code, RULE.name, message, "warning")


def fix(case: FixCase) -> Drafts:
    from gradsight.fixes.training import foreign_gradients

    return foreign_gradients(case)


RULE = Rule(
    "GS508",
    "foreign-gradients",
    ("foreign-gradients",),
    judge,
    __doc__,
    advice="clear the gradients of both networks before each backward",
    fix=fix,
    observed_as=("foreign-gradients",),
)
