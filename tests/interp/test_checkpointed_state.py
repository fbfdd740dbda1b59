"""Memory that a checkpointed function moves on is moved once more in backward: torch says where the gradient is another one."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from gradsight.analysis import analyze
from gradsight.fixing import fixes_for
from gradsight.model.source import Source

HEAD = """import torch
from torch.utils.checkpoint import checkpoint

w = torch.tensor([0.1, 0.2, 0.3], requires_grad=True)
state = torch.ones(3)


def part(h):
"""
WRONG = {
    "a step before it is saved": "    state.add_(1)\n    return h * state\n",
    "an augmented assignment": "    global state\n    state += 1\n    return h * state\n",
    "an average": "    state.mul_(0.9).add_(h.detach(), alpha=0.1)\n    return (h - state) ** 2\n",
    "an average by lerp": "    state.lerp_(h.detach(), 0.1)\n    return (h - state) ** 2\n",
}
WRONG_WITHOUT_VERSIONS = {"a step after it was saved": "    y = h * state\n    state.add_(1)\n    return y\n"}
RIGHT = {
    "nothing is made of it": "    y = h.exp()\n    state.add_(y.detach())\n    return y\n",
    "nothing that is made of it is saved": "    state.add_(1)\n    return h - state\n",
    "filled first": "    state.zero_()\n    state.add_(2)\n    return h * state\n",
    "copied anew": "    state.copy_(h.detach() * 2)\n    return h * state\n",
    "by nothing": "    state.add_(0)\n    return h * state\n",
    "centred": "    state.sub_(state.mean())\n    return h * state\n",
    "centred by a name": "    mean = state.mean()\n    state.sub_(mean)\n    return h * state\n",
    "memory of its own": "    own = torch.ones(3)\n    own.add_(1)\n    return h * own\n",
}


def program(body: str, reentrant: bool) -> str:
    return f"{HEAD}{body}\n\ncheckpoint(part, w * 1.5, use_reentrant={reentrant}).sum().backward()\n"


def is_right(body: str, reentrant: bool) -> bool:
    """Whether the gradient is the same without a checkpoint; where torch refuses that, the same with a copy of the state."""
    kept: dict[str, Any] = {}
    exec(program(body, reentrant), kept)
    plain: dict[str, Any] = {}
    exec(f"{HEAD}{body.replace('h * state', 'h * state.clone()')}\n\npart(w * 1.5).sum().backward()\n", plain)
    return bool(torch.allclose(kept["w"].grad, plain["w"].grad))


def reported(text: str) -> list[tuple[str, int]]:
    return [
        (each.code, each.span.line)
        for each in analyze(Source("a.py", text)).findings
        if each.severity == "warning"
    ]


@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("name", WRONG)
def test_memory_that_is_moved_on_twice_is_reported(name: str, reentrant: bool) -> None:
    text = program(WRONG[name], reentrant)
    assert not is_right(WRONG[name], reentrant)
    line = next(at for at, line in enumerate(text.split("\n"), 1) if "_(" in line or "+=" in line)
    assert reported(text) == [("GS104", line)]


def test_a_copy_is_no_fix_for_it() -> None:
    source = Source("a.py", program(WRONG["a step before it is saved"], reentrant=False))
    (finding,) = (each for each in analyze(source).findings if each.code == "GS104")
    assert fixes_for(source, finding) == []


@pytest.mark.parametrize("name", WRONG_WITHOUT_VERSIONS)
def test_what_is_saved_again_after_it_was_moved_on_is_reported(name: str) -> None:
    body = WRONG_WITHOUT_VERSIONS[name]
    assert not is_right(body, reentrant=False)
    assert reported(program(body, reentrant=False)) == [("GS104", 10)]


@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("name", RIGHT)
def test_what_is_the_same_after_a_second_time_is_not_reported(name: str, reentrant: bool) -> None:
    assert is_right(RIGHT[name], reentrant)
    assert reported(program(RIGHT[name], reentrant)) == []
