"""Lightning: the module that nobody fits, manual optimization, hooks, callbacks, Fabric."""

from __future__ import annotations

import pytest

from gradsight.analysis import analyze
from gradsight.model import Source
from tests.interp.checking import PREAMBLE
from tests.models.checking import check


def lit(body: str, base: str = "import lightning as L", optimizers: str = "") -> str:
    """A module with one layer, the given methods, and an optimizer."""
    methods = "\n".join("    " + line for line in body.strip("\n").splitlines())
    configure = optimizers or "return torch.optim.SGD(self.parameters(), lr=0.1)"
    return f"""
{base}

class Lit(L.LightningModule):
    def __init__(self, width=4):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Linear(width, 1)

{methods}

    def configure_optimizers(self):
        {configure}
"""


WRITE = """
def training_step(self, batch, batch_idx):
    x, y = batch
    out = torch.sigmoid(self.net(x))
    out *= 2  # GS101
    return F.mse_loss(out, y)
"""
CLEAN = """
def training_step(self, batch, batch_idx):
    x, y = batch
    loss = F.mse_loss(self.net(x), y)
    self.log("loss", loss)
    return loss
"""


@pytest.mark.parametrize(
    "base",
    [
        "import lightning as L",
        "import lightning.pytorch as L",
        "import pytorch_lightning as L",
        "from lightning import pytorch as L",
    ],
)
def test_training_step_is_run_under_every_name_of_the_package(base: str) -> None:
    check(lit(WRITE, base))


@pytest.mark.parametrize("room", ["core", "core.lightning", "core.module"])
@pytest.mark.parametrize("package", ["pytorch_lightning", "lightning.pytorch"])
def test_a_class_is_the_same_in_every_room_of_its_library(package: str, room: str) -> None:
    program = """
    from {package}.{room} import LightningModule

    class Net(LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 1)

        def training_step(self, batch, batch_idx):
            x, y = batch
            return F.mse_loss(self.layer(x), y){number}

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)
    """
    check(program.format(package=package, room=room, number=".item()  # GS202"))
    check(program.format(package=package, room=room, number=""))


def test_trail_names_the_library_and_the_return_that_hands_the_loss_over() -> None:
    (finding,) = check(lit(WRITE)).findings
    assert [step.message for step in finding.related] == [
        "`sigmoid` saves its output here",
        "`Trainer.fit` uses what is returned here: this `backward()` needs the old value",
        "no caller found: assumed to be called by its library",
    ]
    assert finding.certainty == "certain"


def test_clean_module_is_silent() -> None:
    check(lit(CLEAN))


@pytest.mark.parametrize(
    "optimizers",
    [
        "return torch.optim.SGD(self.parameters(), lr=0.1)",
        "return [torch.optim.SGD(self.parameters(), lr=0.1)]",
        "opt = torch.optim.SGD(self.parameters(), lr=0.1); return [opt], [torch.optim.lr_scheduler.StepLR(opt, 1)]",
        "opt = torch.optim.SGD(self.parameters(), lr=0.1); return {'optimizer': opt, 'lr_scheduler': {'scheduler': torch.optim.lr_scheduler.StepLR(opt, 1), 'interval': 'step'}}",
        "return {'optimizer': torch.optim.SGD(self.parameters(), lr=self.hparams.lr)}",
    ],
)
def test_every_form_of_configure_optimizers_is_understood(optimizers: str) -> None:
    check(lit(CLEAN, optimizers=optimizers))
    detached = CLEAN.replace("return loss", "return loss.detach()  # GS203")
    check(lit(detached, optimizers=optimizers))


def test_loss_in_a_dict_is_differentiated() -> None:
    check(lit(WRITE.replace("return F.mse_loss(out, y)", 'return {"loss": F.mse_loss(out, y), "x": 1}')))


def test_number_as_a_loss_is_told_where_it_is_read() -> None:
    check(lit(CLEAN.replace("return loss", "return loss.item()  # GS202")))


def test_batch_may_be_left_out_by_returning_none() -> None:
    check(lit(CLEAN.replace("return loss", "return loss if batch_idx else None")))


def test_gradients_are_there_in_the_hooks_after_backward() -> None:
    hooks = """
def on_after_backward(self):
    self.log("norm", self.net.weight.grad.norm())

def on_before_optimizer_step(self, optimizer):
    self.log("norm", self.net.weight.grad.norm())
"""
    check(lit(CLEAN + hooks))


def test_gradients_are_gone_in_the_hook_before_backward() -> None:
    hooks = """
def on_before_backward(self, loss):
    self.log("norm", self.net.weight.grad.norm())  # GS304
"""
    check(lit(CLEAN + hooks))


def test_validation_needs_no_graph() -> None:
    steps = """
def validation_step(self, batch, batch_idx):
    x, y = batch
    out = torch.sigmoid(self.net(x))
    out *= 2
    self.log("val", F.mse_loss(out, y).item())
"""
    check(lit(CLEAN + steps))


MANUAL = """
import lightning as L

class Gan(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.one, self.two = nn.Linear(4, 4), nn.Linear(4, 1)

    def training_step(self, batch, batch_idx):
        first, second = self.optimizers()
        fake = self.one(batch)
        loss = self.two(fake.detach()).mean()
        second.zero_grad()
        self.manual_backward(loss)
        second.step()
        loss = -self.two(fake).mean()
        CLEAR
        self.manual_backward(loss)MARK
        first.step()

    def configure_optimizers(self):
        return torch.optim.SGD(self.one.parameters(), lr=0.1), torch.optim.SGD(self.two.parameters(), lr=0.1)
"""


def test_manual_optimization_that_never_clears_is_told() -> None:
    check(MANUAL.replace("CLEAR", "pass").replace("MARK", "  # GS501"))


def test_manual_optimization_that_clears_is_silent() -> None:
    check(MANUAL.replace("CLEAR", "first.zero_grad()").replace("MARK", ""))


def test_toggled_optimizers_train_in_turn() -> None:
    clears = "first.zero_grad(); self.toggle_optimizer(first)"
    check(
        MANUAL.replace("CLEAR", clears)
        .replace("MARK", "")
        .replace("        first.step()\n", "        first.step()\n        self.untoggle_optimizer(first)\n")
    )


def test_fit_in_the_same_file_is_followed() -> None:
    fit = "\nL.Trainer(max_epochs=1).fit(Lit(), torch.utils.data.DataLoader(torch.ones(8, 2)))\n"
    check(lit(WRITE) + fit)
    check(lit(CLEAN) + fit)


def test_loss_is_kept_alive_by_a_list_of_the_module() -> None:
    body = CLEAN.replace("self.log(", "self.losses.append(loss)  # GS404\n    self.log(")
    check(lit(body).replace("super().__init__()", "super().__init__()\n        self.losses = []"))


def test_callback_sees_gradients_after_backward() -> None:
    check("""
        import lightning as L

        class Norms(L.Callback):
            def on_after_backward(self, trainer, pl_module):
                for name, parameter in pl_module.named_parameters():
                    print(name, parameter.grad.norm())

            def on_before_optimizer_step(self, trainer, pl_module, optimizer):
                print(pl_module.layer.weight.grad.abs().max())
    """)


FABRIC = """
from lightning.fabric import Fabric

fabric = Fabric(accelerator="cpu", devices=1)
fabric.launch()
net = nn.Linear(4, 1)
opt = torch.optim.Adam(net.parameters())
net, opt = fabric.setup(net, opt)
loader = fabric.setup_dataloaders(torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(8, 4))))
for (x,) in loader:
    CLEAR
    loss = net(x).mean()LOSS
    fabric.backward(loss)MARK
    fabric.clip_gradients(net, opt, max_norm=1.0)
    opt.step()
"""


def test_fabric_loop_that_never_clears_is_told() -> None:
    check(FABRIC.replace("CLEAR", "pass").replace("LOSS", "").replace("MARK", "  # GS501"))


def test_fabric_loop_without_a_graph_is_told() -> None:
    check(
        FABRIC.replace("CLEAR", "opt.zero_grad()").replace("LOSS", ".detach()  # GS203").replace("MARK", "")
    )


def test_fabric_loop_that_clears_is_silent() -> None:
    check(FABRIC.replace("CLEAR", "opt.zero_grad()").replace("LOSS", "").replace("MARK", ""))


def test_step_that_runs_its_closure_several_times_clears_each_time() -> None:
    check("""
        import lightning as L

        class Repeated(L.LightningModule):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(4, 1)

            def training_step(self, batch, batch_idx):
                return self.layer(batch).sum()

            def optimizer_step(self, *args, **kwargs):
                for _ in range(4):
                    super().optimizer_step(*args, **kwargs)

            def configure_optimizers(self):
                return torch.optim.SGD(self.parameters(), lr=0.1)
    """)


TWO_OPTIMIZERS = """
import torch
from torch import nn
import pytorch_lightning as pl


class Gan(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.generator, self.critic = nn.Linear(4, 4), nn.Linear(4, 1)

    def configure_optimizers(self):
        return [torch.optim.Adam(self.generator.parameters()), torch.optim.Adam(self.critic.parameters())], []

    def training_step(self, batch, batch_idx, optimizer_idx):
        fake = self.generator(torch.randn(2, 4))
        if optimizer_idx == 0:
            return self.critic(GENERATED).mean()
        return self.critic(batch).mean() + self.critic(fake.detach()).mean()
"""


def test_each_of_two_optimizers_has_a_training_step_of_its_own() -> None:
    check(TWO_OPTIMIZERS.replace("GENERATED", "fake"))


def test_a_generator_that_is_cut_off_from_its_own_step_is_reported() -> None:
    check(TWO_OPTIMIZERS.replace("(GENERATED).mean()", "(fake.detach()).mean()  # GS203"))


BY_HAND = """
import torch
from torch import nn
import pytorch_lightning as pl


class Gan(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.generator, self.critic = nn.Linear(4, 4), nn.Linear(4, 1)

    def configure_optimizers(self):
        generating = torch.optim.Adam(self.generator.parameters())
        judging = torch.optim.Adam(self.critic.parameters())MARK
        return [generating, judging], []

    def training_step(self, batch, batch_idx):
        generating, judging = self.optimizers()
        fake = self.generator(torch.randn(2, 4))
        judging.zero_grad()
        self.manual_backward(self.critic(batch).mean() - self.critic(fake.detach()).mean())
        STEP
        generating.zero_grad()
        self.manual_backward(self.critic(fake).mean())
        generating.step()

    def later(self, optimizer):
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("step", "mark"),
    [
        ("pass", "  # GS512"),
        ("judging.step()", ""),
        ("self.later(judging)", ""),
        ("[one.step() for one in self.optimizers()[1:]]", ""),
    ],
)
def test_an_optimizer_that_manual_optimization_never_steps_is_reported(step: str, mark: str) -> None:
    check(BY_HAND.replace("STEP", step).replace("MARK", mark))


SILENT = """
def training_step(self, batch, batch_idx):{said}
    x, y = batch
    loss = F.mse_loss(self.net(x), y)
    self.log("loss", loss)
    {end}

def validation_step(self, batch, batch_idx):
    x, y = batch
    self.log("held out", F.mse_loss(self.net(x), y))
"""
FITTED = """

    L.Trainer(max_epochs=2).fit(Lit(), torch.utils.data.DataLoader([1]))
"""


@pytest.mark.parametrize("rest", ["", FITTED.replace("    ", "")])
def test_training_step_that_returns_nothing_trains_nothing(rest: str) -> None:
    check(lit(SILENT.format(end="pass", said="  # GS503")) + rest)
    check(lit(SILENT.format(end="return loss", said="")) + rest)
    check(lit(SILENT.format(end="return loss if loss.isfinite() else None", said="")) + rest)


def test_training_step_that_optimizes_by_itself_returns_nothing() -> None:
    by_hand = """
def training_step(self, batch, batch_idx):
    x, y = batch
    opt = self.optimizers()
    opt.zero_grad()
    self.manual_backward(F.mse_loss(self.net(x), y))
    opt.step()

@property
def automatic_optimization(self):
    return False
"""
    check(lit(by_hand))


def test_trainer_of_the_command_line_fits() -> None:
    end = "\nL.Trainer.from_argparse_args(args).fit(Lit(), loader)\n"
    check(lit(WRITE, "import pytorch_lightning as L") + end)


def test_a_step_that_switches_grad_mode_on_may_be_validated_without_inference_mode() -> None:
    program = """
def energy(self, x):
    MODEx = x.requires_grad_(True)
    return torch.autograd.grad(self.net(x).sum(), x, create_graph=True)[0]HERE

def training_step(self, batch, batch_idx):
    return self.energy(batch).pow(2).mean()

def validation_step(self, batch, batch_idx):
    return self.energy(batch).pow(2).mean()
"""
    check(lit(program.replace("MODE", "torch.set_grad_enabled(True)\n    ").replace("HERE", "")))
    wrong = lit(program.replace("MODE", "").replace("HERE", ""))
    report = analyze(Source("program.py", PREAMBLE + wrong))
    assert "GS204" in {finding.code for finding in report.findings}
