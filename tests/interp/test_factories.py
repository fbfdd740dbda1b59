"""Factories: what they make is a new model each time; one that raises behind its last `return` has returned."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interp import test_projects
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


def test_what_a_function_of_another_file_makes_is_a_new_model_each_time(tmp_path: Path) -> None:
    test_projects.check(
        tmp_path,
        nets="""
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.body, self.drop = nn.Linear(3, 3), nn.Dropout()
            def forward(self, x):
                return self.drop(self.body(x))

        def build():
            return Net()
        """,
        steps="""
        from nets import build

        def run():
            several = [build(), build(), build(), build()]
            value, reference, reward = build(), build(), build()
            opt = torch.optim.SGD(value.parameters(), 0.1)
            for _ in range(5):
                opt.zero_grad()
                value(torch.ones(2, 3)).mean().backward()
                opt.step()
                reward.eval()
                with torch.no_grad():
                    score = reward(torch.ones(2, 3))
        """,
        train="""
        from steps import run

        run()
        """,
    )
