"""Modules that only a helper applies: a backward further out shows that they brought its graph."""

from __future__ import annotations

import pytest

from tests.interp.checking import check

HELPED = """
def measure(v1, v2, v3):
    return F.mse_loss({inner}, v3)

def fit(v4, v5, v6):
    for v7, v8 in v5:
        {clear}
        v9 = measure(v4, v7, v8){outer}
        v9.backward(){said}
        v6.step()
"""


def test_what_a_helper_applies_on_the_way_to_a_backward_is_a_module_whatever_its_name() -> None:
    check(HELPED.format(inner="v1(v2)", clear="pass", outer="", said="  # GS501"))
    check(HELPED.format(inner="v1(v2)", clear="v6.zero_grad()", outer="", said=""))
    check(HELPED.format(inner="v1(v2).relu()", clear="v6.zero_grad()", outer=" * 2", said=""))


METHODS = """
class Worker:
    def __init__(self, v1, v2):
        self.v1, self.v2 = v1, v2
    def measure(self, batch):
        x, y = batch
        return F.mse_loss({inner}, y)
    def work(self, loader):
        for batch in loader:
            {clear}
            loss = self.measure(batch)
            loss.backward(){said}
            self.v2.step()
"""


def test_what_another_method_applies_is_a_module() -> None:
    check(METHODS.format(inner="self.v1(x)", clear="pass", said="  # GS501"))
    check(METHODS.format(inner="self.v1(x)", clear="self.v2.zero_grad()", said=""))


@pytest.mark.parametrize(
    "measure",
    [
        "def measure(v1, v2, v3): return head(v1(v2)) - v3",
        "def measure(v1, v2, v3): return net(v1(v2)).sum() - v3",
    ],
)
def test_what_only_prepares_data_for_a_module_that_is_known_is_none(measure: str) -> None:
    check(f"""
        net = nn.Linear(3, 1)
        head = net
        {measure}
        def fit(v4, v5):
            v6 = torch.optim.SGD(net.parameters(), 0.1)
            for v7, v8 in v5:
                v6.zero_grad()
                measure(v4, v7, v8).sum().backward()
                v6.step()
    """)


def test_a_module_that_is_known_beside_it_leaves_what_a_helper_applies_open() -> None:
    check(
        """
        def measure(v1, change, v2, v3):
            return F.mse_loss(v1(change(v2)), v3)

        def fit(v5, change):
            v4 = nn.Linear(3, 1)
            v6 = torch.optim.SGD(v4.parameters(), 0.1)
            for v7, v8 in v5:
                v6.zero_grad()
                measure(v4, change, v7, v8).backward()
                v6.step()
        """
    )


HANDED = """
from objectives import find

def fit(model, loader, optimizer, extra):
    {mode}
    for x, y in loader:
        {clear}
        loss, shown = find({model}, x, y, extra)
        loss.backward(){said}
        optimizer.step()
"""


def test_unknown_code_that_makes_the_loss_has_its_graph_from_the_model_it_is_given() -> None:
    check(HANDED.format(mode="pass", clear="pass", model="model", said="  # GS501"))
    check(HANDED.format(mode="pass", clear="optimizer.zero_grad()", model="model", said=""))
    check(HANDED.format(mode="extra.train()", clear="pass", model="x.device", said="  # GS501"))


def test_data_that_unknown_code_is_given_is_no_model() -> None:
    check(HANDED.format(mode="pass", clear="pass", model="x.device", said=""))


def test_an_object_that_was_made_of_a_model_makes_its_loss() -> None:
    check(
        """
        from objectives import Objective

        def fit(model, loader, optimizer):
            objective = Objective(model)
            for x, y in loader:
                loss = objective(x, y)
                loss.backward()  # GS501
                optimizer.step()
        """
    )


ASKED = """
def fit(v1, loader, v2):
    for x, y in loader:
        {clear}
        {bound} = v1.{asked}{rest}
        loss.backward(){said}
        v2.step()
"""


@pytest.mark.parametrize(
    ("bound", "asked", "rest"),
    [
        ("loss", "losses(x, y)", ""),
        ("loss", "losses(x, y)", " / 4"),
        ("loss", "losses(x, y)", '["total"]'),
        ("loss, shown", "losses(x, y)", ""),
        ("found = v1.losses(x); loss", "mean_of(found)", ""),
    ],
)
def test_what_is_asked_for_a_loss_is_the_module_or_has_it(bound: str, asked: str, rest: str) -> None:
    check(ASKED.format(clear="pass", bound=bound, asked=asked, rest=rest, said="  # GS501"))
    check(ASKED.format(clear="v2.zero_grad()", bound=bound, asked=asked, rest=rest, said=""))


@pytest.mark.parametrize(
    "lines",
    [
        "pred, y = v1.draw(x); loss = (pred - y).pow(2).mean()",
        "loss = compare(v1.draw(x), y)",
        "loss = x.sum()",
    ],
)
def test_what_data_comes_from_is_no_module(lines: str) -> None:
    check(f"""
        def fit(v1, loader, v2):
            for x, y in loader:
                {lines}
                loss.backward()
                v2.step()
    """)


FILLED_IN = """
import abc

class Base(abc.ABC):
    def __init__(self, {given}, optimizer, loader):
        self.{given}, self.optimizer, self.loader = {given}, optimizer, loader
    def fit(self, n):
        for batch in self.loader:
            {clear}
            loss = self.measure(batch)
            loss.backward(){said}
            self.optimizer.step()
    @abc.abstractmethod
    def measure(self, batch): ...
"""


def test_a_loss_that_derived_classes_fill_in_comes_from_what_is_called_a_model() -> None:
    check(FILLED_IN.format(given="model", clear="pass", said="  # GS501"))
    check(FILLED_IN.format(given="model", clear="self.optimizer.zero_grad()", said=""))
    check(FILLED_IN.format(given="thing", clear="pass", said=""))


def test_a_method_of_a_base_is_executed_on_the_class_that_fills_it_in() -> None:
    check(
        """
        class Base:
            def __init__(self, model, optimizer, loader):
                self.model, self.optimizer, self.loader = model, optimizer, loader
            def fit(self, n):
                for batch in self.loader:
                    self.optimizer.zero_grad()
                    loss = self.measure(batch)
                    loss.backward()
                    self.optimizer.step()

        class Mine(Base):
            def measure(self, batch):
                x, y = batch
                return F.cross_entropy(self.model(x).detach(), y)  # GS203

        class Right(Base):
            def measure(self, batch):
                x, y = batch
                return F.cross_entropy(self.model(x), y)
        """
    )
