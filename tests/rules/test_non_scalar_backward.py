"""GS401: the words fit the call, and what they name is an argument of it."""

from __future__ import annotations

import inspect
import re

import pytest
import torch

from gradsight.analysis import analyze
from gradsight.model.source import Source

CALLS = {
    "(a + 2).backward()": (torch.Tensor.backward, "`a + 2` has shape [5]: `backward()` needs a scalar or a `gradient=`"),
    "torch.autograd.backward(a + 2)": (
        torch.autograd.backward, "`a + 2` has shape [5]: `backward()` needs a scalar or a `grad_tensors=`"
    ),
    "torch.autograd.grad(a + 2, a)": (
        torch.autograd.grad, "`a + 2` has shape [5]: `autograd.grad` needs a scalar or a `grad_outputs=`"
    ),
    "torch.autograd.backward(a if a is not None else 0)": (
        torch.autograd.backward, "`a if a is not None else 0` has shape [5]: `backward()` needs a scalar or a `grad_tensors=`"
    ),
}  # fmt: skip


@pytest.mark.parametrize("call", CALLS)
def test_the_argument_that_is_named_belongs_to_the_call(call: str) -> None:
    function, message = CALLS[call]
    text = f"import torch\na = torch.ones(5, requires_grad=True)\n{call}\n"
    with pytest.raises(RuntimeError, match="scalar"):
        exec(text, {})
    assert [finding.message for finding in analyze(Source("a.py", text)).findings] == [message]
    (argument,) = re.findall(r"`(\w+)=`", message)
    assert argument in inspect.signature(function).parameters
