"""A loss that is cut off, beside values that were there before the loop: those bring no graph of what the loop applies."""

from __future__ import annotations

import pytest

from tests.interp.checking import check

FUNCTION = """
def fit(model, loader, optimizer, {given}):
    model.train()
    for x, y in loader:
        {before}
        loss = F.cross_entropy(model(x){cut}, y) {beside}{said}
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
"""
BESIDE = [
    ("w", "* w"),
    ("w", "+ w"),
    ("settings", "* settings.train.w"),
    ("settings", '* settings["w"]'),
    ("w", "/ w[0]"),
]


@pytest.mark.parametrize(("given", "beside"), BESIDE)
def test_a_factor_that_was_there_before_hides_no_cut(given: str, beside: str) -> None:
    program = FUNCTION.format(given=given, before="pass", cut=".detach()", beside=beside, said="  # GS203")
    check(program)
    check(program.replace(".detach()", "").replace("  # GS203", ""))


METHOD = """
class Trainer:
    def __init__(self, model, optimizer, {given}):
        self.model, self.optimizer, self.{given} = model, optimizer, {given}
    def fit(self, loader):
        self.model.train()
        for x, y in loader:
            loss = F.cross_entropy(self.model(x){cut}, y) {beside}{said}
            loss.backward()
            self.optimizer.step()
            self.optimizer.zero_grad()
"""


@pytest.mark.parametrize(("given", "beside"), BESIDE)
def test_nor_does_one_that_an_object_was_made_with(given: str, beside: str) -> None:
    beside = beside.replace(given, f"self.{given}", 1)
    check(METHOD.format(given=given, cut=".detach()", beside=beside, said="  # GS203"))
    check(METHOD.format(given=given, cut="", beside=beside, said=""))


@pytest.mark.parametrize(
    ("before", "beside"),
    [
        ("given.update(x)", "+ given.loss"),
        ("work(given, model, x)", "+ given.loss"),
        ("pass", "+ given.penalty()"),
        ("pass", "+ model.extra"),
    ],
)
def test_what_code_in_the_loop_may_have_left_there_can_bring_the_graph(before: str, beside: str) -> None:
    check(FUNCTION.format(given="given", before=before, cut=".detach()", beside=beside, said=""))


def test_without_a_loop_an_argument_may_bring_the_graph_of_the_same_module() -> None:
    check(
        """
        class Agent:
            def __init__(self, net, opt):
                self.net, self.opt = net, opt
            def learn(self, chosen, rewards, states):
                base = self.net(states).detach()
                loss = -(chosen * (rewards - base)).sum()
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
        """
    )


def test_a_graph_that_every_round_walks_again_is_kept_by_the_program() -> None:
    check(
        """
        def fit(model, loader, optimizer, w):
            for x, y in loader:
                loss = F.cross_entropy(model(x).detach(), y) * w
                loss.backward(retain_graph=True)
                optimizer.step()
                optimizer.zero_grad()
        """
    )
