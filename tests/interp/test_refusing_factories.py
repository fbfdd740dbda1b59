"""Factories that return in an `if` and raise behind it: the program goes on, so it has returned."""

from __future__ import annotations

import pytest

from tests.interp.checking import check

FACTORIES = {
    "one name": """
            if kind == "conv":
                return nn.Conv1d(3, 3, 1)
            raise ValueError(kind)
    """,
    "two names": """
            if kind == "conv":
                return nn.Conv1d(3, 3, 1)
            if kind == "linear":
                return nn.Linear(3, 3)
            raise RuntimeError(f"no {kind}")
    """,
    "a chain": """
            if kind == "conv":
                return nn.Conv1d(3, 3, 1)
            elif kind == "linear":
                return nn.Linear(3, 3)
            raise KeyError(kind)
    """,
    "inside a block": """
            with torch.random.fork_rng():
                if kind == "linear":
                    return nn.Linear(3, 3)
                raise KeyError(kind)
    """,
}


@pytest.mark.parametrize("factory", FACTORIES.values(), ids=FACTORIES)
def test_what_a_factory_makes_is_trained(factory: str) -> None:
    check(f"""
        def make(kind):
            {factory.strip()}

        class Trainer:
            def __init__(self, cfg):
                self.net = make(cfg["kind"])
                self.opt = torch.optim.SGD(self.net.parameters(), cfg["rate"])

            def fit(self, loader):
                for x in loader:
                    loss = self.net(x).pow(2).mean()
                    loss.backward()  # GS501
                    self.opt.step()
    """)


def test_an_early_return_without_a_refusal_behind_it_is_gone_past_first() -> None:
    check("""
        def run(net, x, opt, is_dry):
            opt.zero_grad()
            y = net(x).exp()
            if is_dry:
                return y
            y *= 2  # GS101
            y.sum().backward()
            opt.step()
    """)
