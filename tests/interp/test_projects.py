"""Programs in several files: the other half of a program is found where it is, and each mechanism has a safe twin."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from gradsight.analysis import analyze
from gradsight.model.source import Source
from gradsight.session.reading import reader
from gradsight.session.workspace import WorkspaceFinder
from tests.interp.checking import announced

HEAD = "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n"


def check(folder: Path, **files: str) -> None:
    """Every file says what its trailing comments announce, and says it in no other file."""
    (folder / "pyproject.toml").touch()
    texts = {name.replace("__", "/") + ".py": HEAD + dedent(text) for name, text in files.items()}
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    finder = WorkspaceFinder(str(folder), reader())
    said: set[tuple[str, int, str]] = set()
    for name, text in texts.items():
        for finding in analyze(Source(str(folder / name), text), None, finder).findings:
            if finding.severity in ("error", "warning"):
                path = str(Path(finding.path).relative_to(folder))
                said.add((path, finding.span.line, finding.code))
    wanted = {
        (name, line, code) for name, text in texts.items() for line, code, _ in announced(text.splitlines())
    }
    assert said == wanted


def twins(folder: Path, wrong: str, right: str, **files: str) -> None:
    """The files say what they announce; with `wrong` replaced by `right` nothing is said."""
    (folder / "wrong").mkdir()
    (folder / "right").mkdir()
    check(folder / "wrong", **files)
    changed = {name: text.replace(wrong, right) for name, text in files.items()}
    assert changed != files
    quiet = {
        name: "\n".join(line.partition("  # GS")[0] for line in text.split("\n"))
        for name, text in changed.items()
    }
    check(folder / "right", **quiet)


def test_module_that_its_package_imports_with_a_star_knows_its_base(tmp_path: Path) -> None:
    twins(
        tmp_path,
        "std *= 2",
        "std = std * 2",
        models____init__="from .base import *\nfrom .vae import *\n\nMODELS = {'vae': VAE}\n",
        models__base="""
            class Base(nn.Module):
                def __init__(self):
                    super().__init__()

                def sample(self, mean, spread):
                    raise RuntimeError("a part of it samples")
        """,
        models__vae="""
            from models import Base

            class VAE(Base):
                def __init__(self):
                    super().__init__()
                    self.encoder = nn.Linear(4, 4)

                def sample(self, mean, spread):
                    std = torch.exp(0.5 * spread)
                    std *= 2  # GS101
                    return torch.randn_like(std) * std + mean

                def forward(self, x):
                    x = self.encoder(x)
                    return self.sample(x, x)
        """,
    )


def test_optimizer_of_a_base_class_in_another_file_belongs_to_the_model_of_the_class(tmp_path: Path) -> None:
    twins(
        tmp_path,
        "pass",
        "self.optimizer.zero_grad()",
        base="""
            class Base:
                def __init__(self, options):
                    self.options = options
                    self.model = self.build()
                    self.make_optimizer()

                def make_optimizer(self):
                    self.optimizer = torch.optim.SGD(self.model.parameters(), lr=self.options.lr)
        """,
        train="""
            from base import Base

            class Trainer(Base):
                def build(self):
                    return nn.Linear(4, 1)

                def train(self, loader):
                    for x, y in loader:
                        pass
                        loss = F.mse_loss(self.model(x), y)
                        loss.backward()  # GS501
                        self.optimizer.step()
        """,
    )


def test_optimizer_that_another_method_sets_belongs_to_the_model_that_is_there(tmp_path: Path) -> None:
    twins(
        tmp_path,
        "pass",
        "self.optimizer.zero_grad()",
        net="""
            class Net(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.layer = nn.Linear(4, 1)

                def forward(self, x):
                    return self.layer(x)
        """,
        train="""
            from net import Net

            class Trainer:
                def __init__(self):
                    self.net = Net()

                def setup(self, lr):
                    self.optimizer = torch.optim.SGD(self.net.parameters(), lr=lr)

                def train(self, loader):
                    for x, y in loader:
                        pass
                        loss = F.mse_loss(self.net(x), y)
                        loss.backward()  # GS501
                        self.optimizer.step()
        """,
    )


def test_argument_is_an_object_of_the_class_of_another_file_that_it_is_declared_to_be(tmp_path: Path) -> None:
    twins(
        tmp_path,
        "loss.detach() / options.rounds()",
        "loss / options.rounds()",
        engine="""
            from dataclasses import dataclass

            @dataclass
            class Options:
                batch: int | None = None
                micro: int = 1

                def rounds(self):
                    return self.batch // self.micro

            class Engine:
                def __init__(self, device="cpu"):
                    self.device = device

                def differentiate(self, loss):
                    loss.backward()
        """,
        train="""
            from engine import Engine, Options

            def train(engine: Engine, model: nn.Module, loader, optimizer, options: Options):
                for x, y in loader:
                    optimizer.zero_grad()
                    loss = F.mse_loss(model(x), y)
                    engine.differentiate(loss.detach() / options.rounds())  # GS203
                    optimizer.step()
        """,
    )


def test_default_of_an_argument_is_what_it_is_called_with(tmp_path: Path) -> None:
    twins(
        tmp_path,
        "value.detach()",
        "value",
        losses="""
            class Loss:
                def __call__(self, value, target):
                    return F.mse_loss(value.detach(), target)  # GS203
        """,
        train="""
            from losses import Loss

            def train(model: nn.Module, loader, optimizer, criterion=Loss()):
                for x, y in loader:
                    optimizer.zero_grad()
                    criterion(model(x), y).backward()
                    optimizer.step()
        """,
    )


def test_function_that_is_handed_over_is_executed_with_the_values_of_its_caller(tmp_path: Path) -> None:
    twins(
        tmp_path,
        "pass",
        "optimizer.zero_grad()",
        launching="""
            class Launcher:
                def launch(self, function, *values):
                    return function(*values)
        """,
        train="""
            from launching import Launcher

            def main(net, rounds):
                optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
                for _ in range(rounds):
                    pass
                    net(torch.randn(8, 4)).sum().backward()  # GS501
                    optimizer.step()

            def setup():
                Launcher().launch(main, nn.Linear(4, 1), 10)
        """,
    )


def test_iterator_of_the_program_gives_batches(tmp_path: Path) -> None:
    twins(
        tmp_path,
        "pass",
        "optimizer.zero_grad()",
        data="""
            class Cycle:
                def __init__(self, iterable):
                    self.iterable = iterable
                    self.epoch = 0
                    self.iterator = None

                def __iter__(self):
                    return self

                def __next__(self):
                    if self.iterator is None:
                        self.iterator = iter(self.iterable)
                    try:
                        return next(self.iterator)
                    except StopIteration:
                        self.epoch += 1
                        self.iterator = iter(self.iterable)
                        return next(self.iterator)
        """,
        train="""
            from data import Cycle
            from torch.utils.data import DataLoader

            def train(model: nn.Module, loader: DataLoader, optimizer, last):
                for step, batch in enumerate(Cycle(loader)):
                    if step > last:
                        break
                    pass
                    model(batch["x"]).mean().backward()  # GS501
                    optimizer.step()
        """,
    )


def test_settings_that_are_checked_by_raising_do_not_hide_the_training(tmp_path: Path) -> None:
    twins(
        tmp_path,
        "pass",
        "optimizer.zero_grad()",
        checks="""
            def validate(options):
                problems = []
                for name in ("epochs", "rate"):
                    if getattr(options, name) is None:
                        problems.append(name)
                if problems:
                    raise ValueError(problems)
        """,
        train="""
            from checks import validate

            def train(model: nn.Module, loader, optimizer, options):
                validate(options)
                for x, y in loader:
                    pass
                    F.mse_loss(model(x), y).backward()  # GS501
                    optimizer.step()
        """,
    )


def test_method_that_takes_any_number_of_arguments_is_executed(tmp_path: Path) -> None:
    twins(
        tmp_path,
        "divergence.item()",
        "divergence",
        vae="""
            class VAE(nn.Module):
                def loss_function(self, *args, **kwargs):
                    image, wanted, mean, spread = args[0], args[1], args[2], args[3]
                    divergence = -0.5 * torch.mean(1 + spread - mean**2 - spread.exp())
                    return F.mse_loss(image, wanted) + kwargs["weight"] * divergence.item()  # GS202
        """,
    )


@pytest.mark.parametrize("words", ["self.options.rate", "args.rate", "config.loss.rate"])
def test_number_of_the_settings_brings_no_graph(tmp_path: Path, words: str) -> None:
    root = words.partition(".")[0]
    twins(
        tmp_path,
        ".detach()",
        "",
        train=f"""
            class Trainer:
                def __init__(self, model: nn.Module, options):
                    self.model, self.options = model, options

                def train(self, loader, optimizer, {root if root != "self" else "_"}):
                    for x, y in loader:
                        optimizer.zero_grad()
                        loss = F.mse_loss(self.model(x).detach(), y)  # GS203
                        loss = loss * {words}
                        loss.backward()
                        optimizer.step()
        """,
    )


def test_schedule_belongs_to_the_optimizer_beside_it(tmp_path: Path) -> None:
    twins(
        tmp_path,
        "scheduler.step()  # GS506\n        optimizer.step()",
        "optimizer.step()\n        scheduler.step()",
        train=dedent(
            """
            def train(state, loader):
                model, optimizer, scheduler = state["model"], state["optimizer"], state["scheduler"]
                model.train()
                for x, y in loader:
                    optimizer.zero_grad()
                    F.mse_loss(model(x), y).backward()
                    scheduler.step()  # GS506
                    optimizer.step()
            """
        ),
    )


def test_example_in_the_repository_of_its_library_means_the_library_of_its_users(tmp_path: Path) -> None:
    twins(
        tmp_path,
        "pass",
        "optimizer.zero_grad()",
        src__accelerate____init__="__version__ = '1.0'\nfrom .accelerator import Accelerator\n",
        src__accelerate__accelerator="""
            class Accelerator:
                def __init__(self, **options):
                    self.state = make_state(options)

                def prepare(self, *objects):
                    return self.state.prepare_all(objects)

                def backward(self, loss):
                    self.state.plugins["scaler"].differentiate(loss)
        """,
        examples__train="""
            from accelerate import Accelerator

            accelerator = Accelerator()
            model = nn.Linear(4, 1)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            model, optimizer = accelerator.prepare(model, optimizer)
            for _ in range(10):
                pass
                loss = model(torch.randn(8, 4)).sum()
                accelerator.backward(loss)  # GS501
                optimizer.step()
        """,
    )


def test_standard_library_is_not_a_file_of_the_same_name_in_a_package(tmp_path: Path) -> None:
    check(
        tmp_path,
        package____init__="",
        package__copy="import copy\n\ndef twice(x):\n    return copy.deepcopy(x)\n",
        package__train="""
            from package.copy import twice

            net = twice(nn.Linear(4, 1))
            out = torch.sigmoid(net(torch.randn(2, 4)))
            out *= 2  # GS101
            out.sum().backward()
        """,
    )


def test_list_that_is_made_longer_by_adding_keeps_graphs(tmp_path: Path) -> None:
    twins(
        tmp_path,
        "[loss]",
        "[loss.item()]",
        train="""
            class Trainer:
                def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer):
                    self.model, self.optimizer = model, optimizer

                def train(self, loader):
                    for x, y in loader:
                        self.optimizer.zero_grad()
                        loss = F.mse_loss(self.model(x), y)
                        loss.backward()
                        self.optimizer.step()
                        self.history = getattr(self, "history", []) + [loss]  # GS404
        """,
    )


def test_trainer_on_accelerate_with_an_average_of_weights_is_followed(tmp_path: Path) -> None:
    twins(
        tmp_path,
        "pass",
        "self.opt.zero_grad()",
        train="""
            from accelerate import Accelerator
            from ema_pytorch import EMA

            def cycle(loader):
                while True:
                    for batch in loader:
                        yield batch

            class Trainer:
                def __init__(self, model, dataset, *, rounds=2, steps=1000, rate=1e-4):
                    self.accelerator = Accelerator(mixed_precision="no")
                    self.model, self.rounds, self.steps = model, rounds, steps
                    loader = torch.utils.data.DataLoader(dataset, batch_size=4)
                    self.loader = cycle(self.accelerator.prepare(loader))
                    self.opt = torch.optim.Adam(model.parameters(), lr=rate)
                    self.ema = EMA(model, beta=0.99)
                    self.step = 0
                    self.model, self.opt = self.accelerator.prepare(self.model, self.opt)

                def train(self):
                    while self.step < self.steps:
                        pass
                        for _ in range(self.rounds):
                            loss = self.model(next(self.loader)) / self.rounds
                            self.accelerator.backward(loss)  # GS501
                        self.accelerator.clip_grad_norm_(self.model.parameters(), 1.0)
                        self.opt.step()
                        self.step += 1
                        self.ema.update()
        """,
    )


def test_copy_of_an_unknown_model_is_frozen_without_it(tmp_path: Path) -> None:
    twins(
        tmp_path,
        "pass",
        "self.opt.zero_grad()",
        agent="""
            import copy

            class Agent:
                def __init__(self, net, opt):
                    self.net, self.opt = net, opt
                    self.target = copy.deepcopy(net)
                    for parameter in self.target.parameters():
                        parameter.requires_grad = False

                def train(self, loader):
                    for x, reward, following in loader:
                        pass
                        loss = F.mse_loss(self.net(x), reward + self.target(following).max())
                        loss.backward()  # GS501
                        self.opt.step()
        """,
    )


def test_import_fills_the_registry_that_another_file_keeps(tmp_path: Path) -> None:
    twins(
        tmp_path,
        "model = build({'type': 'net'})  # GS504\n    for",
        "for",
        registry="""
            MODELS = {}

            def register(name):
                def enter(cls):
                    MODELS[name] = cls
                    return cls
                return enter

            def build(options):
                return MODELS[options["type"]]()
        """,
        nets="""
            from registry import register

            @register("net")
            class Net(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.layer = nn.Linear(4, 1)

                def forward(self, x):
                    return self.layer(x)
        """,
        train=dedent(
            """
            import nets
            from registry import build

            def main():
                model = build({'type': 'net'})
                optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
                model = build({'type': 'net'})  # GS504
                for _ in range(5):
                    optimizer.zero_grad()
                    model(torch.randn(8, 4)).mean().backward()
                    optimizer.step()

            main()
            """
        ),
    )


def test_a_far_function_that_detaches_what_it_is_given_may_have_cut_it_off(tmp_path: Path) -> None:
    check(
        tmp_path,
        helpers="""
            def cut_loose(state):
                if isinstance(state, torch.Tensor):
                    return state.detach()
                return tuple(cut_loose(part) for part in state)
        """,
        train="""
            import argparse
            from fast_cells import FastLayer
            from helpers import cut_loose

            parser = argparse.ArgumentParser()
            parser.add_argument("--layers", type=int, default=3)
            args = parser.parse_args()

            class Net(nn.Module):
                def __init__(self, layers):
                    super().__init__()
                    self.cells = nn.ModuleList([FastLayer(4, 4) for _ in range(layers)])
                    self.head = nn.Linear(4, 1)

                def forward(self, x, states):
                    x = self.head.weight.exp() * x
                    kept = []
                    for place, cell in enumerate(self.cells):
                        x, new = cell(x, states[place])
                        kept.append(new)
                    return self.head(x), kept

            net = Net(args.layers)
            optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

            def train(data):
                states = [(torch.zeros(2, 4), torch.zeros(2, 4)) for _ in range(args.layers)]
                place = 0
                while place < data.size(0) - 1:
                    states = cut_loose(states)
                    optimizer.zero_grad()
                    out, states = net(data[place], states)
                    out.mean().backward()
                    optimizer.step()
                    place += 1

            train(torch.ones(20, 2, 4))
        """,
    )
