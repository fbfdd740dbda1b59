"""`.grad` is read while another thread may run backward.

## What goes wrong silently

`Thread.start()` returns at once. Until `join()` the other thread may not have begun its backward, or may be in the middle of it: what is read can be `None`, an old gradient or a new one.

```python
import threading

import torch

x = torch.ones(3, requires_grad=True)
gate = threading.Event()


def work():
    gate.wait(timeout=2)
    (x * 2).sum().backward()


worker = threading.Thread(target=work)
worker.start()
early = x.grad  # warning: GS305
gate.set()
worker.join()
assert early is None
assert x.grad is not None
```

## Use instead

Wait for the thread before reading.

```python
import threading

import torch

x = torch.ones(3, requires_grad=True)
gate = threading.Event()


def work():
    gate.wait(timeout=2)
    (x * 2).sum().backward()


worker = threading.Thread(target=work)
worker.start()
gate.set()
worker.join()
early = x.grad
assert early is not None
assert x.grad is not None
```

## Not reported

A thread that runs no backward does no harm.

```python
import threading

import torch

x = torch.ones(3, requires_grad=True)
worker = threading.Thread(target=print, args=("saved",))
worker.start()
(x * 2).sum().backward()
print(x.grad)
worker.join()
```

## Fix safety

Waiting for the thread first is safe: what is read is the finished gradient. It is unsafe where the threads already wait for each other, as with the event above: one more wait could block forever.

See [Multithreaded autograd](https://docs.pytorch.org/docs/stable/notes/autograd.html#multithreaded-autograd) and a
[report](https://github.com/pytorch/pytorch/pull/182604) on gradients that several threads add up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, gradient_name, make_finding

if TYPE_CHECKING:
    from gradsight.fixes.draft import Drafts, FixCase


def judge(event: Event) -> Finding | None:
    message = f"{gradient_name(event)} is read while another thread may still run `backward()`: wait for that thread"
    return make_finding(event, RULE.code, RULE.name, message, "warning")


def fix(case: FixCase) -> Drafts:
    from gradsight.fixes.gradients import read_in_race

    return read_in_race(case)


RULE = Rule(
    "GS305",
    "grad-read-in-race",
    ("grad-read-in-race",),
    judge,
    __doc__,
    advice="wait for the thread before reading: `thread.join()`, `future.result()`",
    fix=fix,
    observed_as=("grad-read-in-race",),
)
