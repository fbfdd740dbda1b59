"""A program that never says torch, and starts modules of the workspace that do."""

from __future__ import annotations

from gradsight.model.source import Source
from gradsight.session.starting_files import starts_torch
from tests.cli.test_check import check, places, project

__all__ = ["project"]

AGENT = """\
from torch import nn


class Agent:
    def __init__(self, width):
        self.policy, self.target = nn.Linear(width, 2), nn.Linear(width, 2)

    def follow(self):
        for target, source in zip(self.target.parameters(), self.policy.parameters()):
            target.mul_(0.9).add_(source, alpha=0.1)
"""
MAIN = """\
from {module} import Agent

if __name__ == "__main__":
    agent = Agent(4)
    for episode in range(3):
        agent.follow()
"""


def test_what_a_program_without_the_word_starts_is_found() -> None:
    found = check({"agent.py": AGENT, "main.py": MAIN.format(module="agent")}, code=1)
    assert places(found) == [("agent.py", "GS102", 10)]


def test_the_module_may_stand_in_a_package_or_behind_another() -> None:
    files = {"parts/__init__.py": "", "parts/agent.py": AGENT, "main.py": MAIN.format(module="parts.agent")}
    assert len(check({**files})) == 1
    behind = {
        "agent.py": AGENT,
        "runner.py": "from agent import Agent\n",
        "main.py": MAIN.format(module="runner"),
    }
    assert any(row == 10 for _, _, row in places(check(behind)))


def test_a_text_that_starts_nothing_or_something_else_is_left_out() -> None:
    sources = {
        "agent": Source("/w/agent.py", AGENT),
        "plain": Source("/w/plain.py", "class Agent:\n    pass\n"),
    }

    def finder(module: str, level: int, path: str) -> Source | None:
        return sources.get(module)

    def starts(text: str) -> bool:
        return starts_torch(Source("/w/main.py", text), finder)

    assert starts(MAIN.format(module="agent"))
    assert starts("import agent\n\nagent.Agent(2).follow()\n")
    assert not starts(MAIN.format(module="plain"))
    assert not starts("from agent import Agent\n\n\ndef unused():\n    return Agent(2)\n")
    assert not starts("import agent\n\nlogger = agent.get_logger(__name__)\n")
    assert not starts("import jax\n" + MAIN.format(module="agent"))
    assert not starts(MAIN.format(module="agent") + "def broken(:\n")
