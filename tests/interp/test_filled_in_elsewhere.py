"""Trainers that leave a method to other classes: what it returns is unknown, and the loop around it is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interp.checking import check
from tests.interp.test_projects import twins

BASE = """
class Trainer:
    def __init__(self, config):
        self.model = self.make_model(config)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=config.lr)

    {decorator}
    def make_model(self, config):
        {body}

    {decorator}
    def loss_of(self, batch):
        {body}

    def fit(self, loader):
        self.model.train()
        for batch in loader:
            {clear}
            loss, numbers = self.loss_of(batch)
            loss{number}.backward(){claim}
            self.optimizer.step()
"""
REFUSAL = "NotImplementedError"
EMPTY = [
    ("@abc.abstractmethod", "pass"),
    ("@abstractmethod", '"""The loss of a batch."""'),
    ("", f"raise {REFUSAL}"),
    ("", f'raise {REFUSAL}("fill this in")'),
]


@pytest.mark.parametrize(("decorator", "body"), EMPTY)
def test_loop_around_a_method_that_others_fill_in_is_seen(decorator: str, body: str) -> None:
    program = "import abc\nfrom abc import abstractmethod\n" + BASE
    names = {"decorator": decorator, "body": body}
    check(program.format(clear="pass", number="", claim="  # GS501", **names))
    check(program.format(clear="self.optimizer.zero_grad()", number="", claim="", **names))
    check(program.format(clear="self.optimizer.zero_grad()", number=".item()", claim="  # GS202", **names))


def test_loop_of_a_class_with_an_unknown_base_is_seen() -> None:
    program = """
        from somewhere import Base

        class Trainer(Base):
            def fit(self, model, loader):
                opt = torch.optim.Adam(model.parameters(), lr=0.1)
                for batch in loader:
                    loss = F.mse_loss(model(self.prepared(batch)), batch.y)
                    CLEAR
                    loss.backward()CLAIM
                    opt.step()
    """
    check(program.replace("CLEAR", "pass").replace("CLAIM", "  # GS501"))
    check(program.replace("CLEAR", "opt.zero_grad()").replace("CLAIM", ""))
    check(program.replace("CLEAR", "self.optimizer_step_begins(opt)").replace("CLAIM", ""))


def test_empty_method_whose_value_nobody_takes_does_nothing() -> None:
    check("""
        class Trainer:
            def __init__(self, model):
                self.model = model
                self.optimizer = torch.optim.Adam(model.parameters(), lr=0.1)

            def before_step(self):
                pass

            def fit(self, loader):
                for x, y in loader:
                    loss = F.mse_loss(self.model(x), y)
                    loss.backward()  # GS501
                    self.before_step()
                    self.optimizer.step()
    """)


def test_base_in_another_file_trains_with_what_the_class_fills_in(tmp_path: Path) -> None:
    twins(
        tmp_path,
        "outputs.detach()",
        "outputs",
        base="""
            class Trainer:
                def __init__(self, model, lr=1e-3):
                    self.model = model
                    self.optimizer = torch.optim.Adam(model.parameters(), lr=lr)

                def fit(self, loader):
                    for batch in loader:
                        self.optimizer.zero_grad()
                        self.loss_of(batch).backward()
                        self.optimizer.step()

                def loss_of(self, batch):
                    raise REFUSAL
        """.replace("REFUSAL", REFUSAL),
        mine="""
            from base import Trainer

            class Mine(Trainer):
                def loss_of(self, batch):
                    x, y = batch
                    outputs = self.model(x)
                    return F.mse_loss(outputs.detach(), y)  # GS203
        """,
    )


@pytest.mark.parametrize(
    "scaled", ["loss = loss * self.args.scale", "loss /= self.args.scale", "loss = (loss + 2).mean()", "pass"]
)
def test_a_loss_that_another_class_computes_is_scaled(scaled: str) -> None:
    program = f"""
        import abc

        class Trainer:
            def __init__(self, args, model, loader):
                self.args, self.model, self.loader = args, model, loader
                self.optimizer = torch.optim.AdamW(self.model.parameters())

            @abc.abstractmethod
            def compute_loss(self, batch):
                ...

            def fit(self):
                self.model.train()
                for batch in self.loader:
                    CLEAR
                    loss = self.compute_loss(batch)
                    {scaled}
                    loss.backward()MARK
                    self.optimizer.step()
    """
    check(program.replace("CLEAR", "pass").replace("MARK", "  # GS501"))
    check(program.replace("CLEAR", "self.optimizer.zero_grad()").replace("MARK", ""))
