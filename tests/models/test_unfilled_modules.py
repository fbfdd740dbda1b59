"""Modules whose class leaves methods to others, and that a library runs: what others add learns, and nothing more is known."""

from __future__ import annotations

import pytest

from tests.models.checking import check

BASE = """
import lightning as L
from abc import ABC, abstractmethod

class Base(L.LightningModule, ABC):
    def __init__(self, config):
        super().__init__()
        self.seen = []
        self.build(config)

    @abstractmethod
    def build(self, config):
        pass

    {decorator}
    def loss_of(self, batch):
        {body}

    {decorator}
    def labels_of(self, batch):
        {body}

    @property
    {decorator}
    def backbone(self):
        {body}

    def on_batch_shown(self, batch):
        pass

    def forward(self, batch):
        return self.head(self.backbone(batch["x"]))

{methods}
"""
WAYS = [
    ("@abstractmethod", "pass"),
    ("@abstractmethod", '"""Others fill it in."""'),
    ("", "raise NotImplemented" + "Error"),
    ("", "raise NotImplemented" + 'Error("others fill it in")'),
]


def base(methods: str, decorator: str = "@abstractmethod", body: str = "pass") -> str:
    text = BASE.replace("    {decorator}\n", f"    {decorator}\n" if decorator else "")
    lines = "\n".join("    " + line for line in methods.strip("\n").splitlines())
    return text.replace("{body}", body).replace("{methods}", lines)


@pytest.mark.parametrize(("decorator", "body"), WAYS)
def test_loss_that_others_compute_is_cut_off_by_the_step_that_returns_it(decorator: str, body: str) -> None:
    cut = "def training_step(self, batch, i):\n    loss = self.loss_of(batch)\n    return loss.detach()  # GS203"
    whole = "def training_step(self, batch, i):\n    loss = self.loss_of(batch)\n    self.log('loss', loss.detach())\n    return loss"
    check(base(cut, decorator, body))
    check(base(cut.replace("detach", "item").replace("GS203", "GS202"), decorator, body))
    check(base(whole, decorator, body))


@pytest.mark.parametrize(("decorator", "body"), WAYS)
def test_parts_that_others_make_are_applied_and_learn(decorator: str, body: str) -> None:
    step = """
def training_step(self, batch, i):
    out = self(batch)
    CUT
    return F.mse_loss(out, batch["y"])
"""
    check(base(step.replace("CUT", "out = out.detach()  # GS203"), decorator, body))
    check(base(step.replace("CUT", "self.log('mean', out.detach().mean())"), decorator, body))


def test_forward_that_others_fill_in_records_nothing_with_grad_mode_off() -> None:
    step = """
import lightning as L

class Base(L.LightningModule):
    def forward(self, batch):
        raise REFUSAL

    def training_step(self, batch, i):
        with torch.MODE():CLAIM
            out = self(batch)
        return F.mse_loss(out, batch["y"])
""".replace("REFUSAL", "NotImplemented" + "Error")
    check(step.replace("MODE", "no_grad").replace("CLAIM", "  # GS204"))
    check(step.replace("MODE", "enable_grad").replace("CLAIM", ""))


MANUAL = """
def __init__(self, config):
    super().__init__()
    self.automatic_optimization = False
    self.net = nn.Linear(4, 1)

def configure_optimizers(self):
    return torch.optim.Adam(self.PARAMETERS(), lr=0.1)

def training_step(self, batch, i):
    opt = self.optimizers()
    CLEAR
    self.manual_backward(self.loss_of(batch))CLAIM
    opt.step()
"""


def test_gradients_of_a_loss_that_others_compute_add_up() -> None:
    step = MANUAL.replace("PARAMETERS", "parameters")
    check(base(step.replace("CLEAR", "pass").replace("CLAIM", "  # GS501")))
    check(base(step.replace("CLEAR", "opt.zero_grad()").replace("CLAIM", "")))


def test_optimizer_of_some_parts_is_the_business_of_those_who_fill_in_the_rest() -> None:
    step = MANUAL.replace("PARAMETERS", "net.parameters")
    check(base(step.replace("CLEAR", "opt.zero_grad()").replace("CLAIM", "")))


@pytest.mark.parametrize(
    "step",
    [
        # What is not a loss may have no graph.
        "self.seen.append(self.labels_of(batch))\nreturn self.loss_of(batch)",
        "labels = self.labels_of(batch).detach()\nreturn F.mse_loss(self(batch), labels)",
        "with torch.no_grad():\n    labels = self.labels_of(batch)\nreturn F.mse_loss(self(batch), labels)",
        "self.on_batch_shown(batch)\nreturn self.loss_of(batch)",
        "shown = self.loss_of(batch)\nself.log('loss', shown.item())\nreturn shown",
        "labels = self.labels_of(batch)\nlabels[0] = 0\nreturn F.mse_loss(self(batch), labels)",
        "labels = self.labels_of(batch)\nlabels.requires_grad = False\nreturn F.mse_loss(self(batch), labels)",
    ],
)
def test_whatever_others_return_may_have_no_graph(step: str) -> None:
    body = "\n".join("    " + line for line in step.splitlines())
    check(base(f"def training_step(self, batch, i):\n{body}"))


def test_class_that_fills_everything_in_is_run_as_it_is() -> None:
    program = (
        base("def training_step(self, batch, i):\n    return self.loss_of(batch)")
        + """
class Whole(Base):
    def build(self, config):
        self.head = nn.Linear(4, 1)

    @property
    def backbone(self):
        return self.head

    def labels_of(self, batch):
        return batch["y"]

    def loss_of(self, batch):
        out = torch.sigmoid(self.head(batch["x"]))
        OUT
        return F.mse_loss(out, self.labels_of(batch))

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=0.1)
"""
    )
    check(program.replace("OUT", "out *= 2  # GS101"))
    check(program.replace("OUT", "out = out * 2"))


def test_abstract_module_that_the_program_makes_is_no_other() -> None:
    check(
        """
        class Base(nn.Module):
            def __init__(self):
                super().__init__()
                self.net = nn.Linear(4, 1)

            def forward(self, x):
                raise REFUSAL

        model = Base()
        try:
            loss = model(torch.randn(2, 4)).sum().detach()
        except REFUSAL:
            loss = model.net(torch.randn(2, 4)).sum()
        loss.backward()
    """.replace("REFUSAL", "NotImplemented" + "Error")
    )
