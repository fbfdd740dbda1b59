"""How often an optimizer calls its closure.  Each program runs on torch."""

from __future__ import annotations

import pytest

from tests.interp.running import refused, safe

CLOSURE = """
    net = nn.Linear(2, 1)
    opt = torch.optim.LBFGS({options})
    loss = net(torch.ones(1, 2)).pow(4).sum()
    def closure():
        opt.zero_grad()
        loss.backward(){said}
        return loss
    opt.step(closure)
"""


@pytest.mark.parametrize("options", ["max_iter=1", "1, 1", "max_iter=round(1.2)"])
def test_a_closure_that_is_called_once_may_use_up_its_graph(options: str) -> None:
    options = f"net.parameters(), {options}"
    safe(CLOSURE.format(options=options, said=""))


@pytest.mark.parametrize("options", ["lr=0.1", "max_iter=2", "max_iter=1, line_search_fn='strong_wolfe'"])
def test_a_closure_that_is_called_again_may_not(options: str) -> None:
    options = f"net.parameters(), {options}"
    refused(CLOSURE.format(options=options, said="  # GS402"), "second time")
