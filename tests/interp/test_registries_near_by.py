"""A class that a registry gives under a name that is not known: one from a file near by, whichever was imported first."""

from __future__ import annotations

import pytest

from gradsight.analysis import Analyser, analyze
from gradsight.model import Source

LEARNER = """
import torch
from torch import nn
from registry import LEARNERS
@LEARNERS.register
class {name}:
    def __init__(self):
        self.net = nn.Linear(3, 1)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)
    def update(self, x):
        self.optimizer.zero_grad()
        y = torch.sigmoid(self.net(x))
        {write}
        y.sum().backward()
        self.optimizer.step()
"""
AGENT = """
import torch
from {first} import *
from {second} import *
from registry import LEARNERS
def main(args):
    learner = LEARNERS.known.get(args.learner)()
    for _ in range(3):
        learner.update(torch.randn(2, 3))
if __name__ == "__main__":
    import argparse
    main(argparse.ArgumentParser().parse_args())
"""
WORKSPACE = {
    "registry.py": """
class Registry:
    def __init__(self):
        self.known = {}
    def register(self, cls):
        self.known[cls.__name__] = cls
        return cls
LEARNERS = Registry()
""",
    "right/learner.py": LEARNER.format(name="RightLearner", write="y = y * 2"),
    "wrong/learner.py": LEARNER.format(name="WrongLearner", write="y *= 2"),
}


def find(name: str, level: int, importer: str) -> Source | None:
    path = name.replace(".", "/") + ".py"
    return Source(f"/project/{path}", WORKSPACE[path]) if path in WORKSPACE else None


@pytest.mark.parametrize("modules", [("right.learner", "wrong.learner"), ("wrong.learner", "right.learner")])
@pytest.mark.parametrize(("folder", "codes"), [("right", []), ("wrong", ["GS101"])])
def test_the_class_near_by_is_meant(modules: tuple[str, str], folder: str, codes: list[str]) -> None:
    source = Source(f"/project/{folder}/agent.py", AGENT.format(first=modules[0], second=modules[1]))
    found = analyze(source, None, find, Analyser()).findings
    assert [finding.code for finding in found] == codes
    assert all(finding.severity == "warning" and "is chosen" in finding.assumption for finding in found)
