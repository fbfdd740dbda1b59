"""Objects whose `__init__` was not followed to its end, and values that are constants of a module."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradsight.analysis import Analyser
from gradsight.model.settings import Settings
from gradsight.model.source import Source
from gradsight.session.reading import reader
from gradsight.session.workspace import WorkspaceFinder
from tests.interp.checking import check

BLOCK = """
import torch
from torch import nn

class Block(nn.Module):
    def __init__(self, width, wanted):
        super().__init__()
        self.parts = nn.ModuleList()
        {}
        for name in {}:
            self.parts.append(nn.Linear(width, width))
    def forward(self, x):
        for part in self.parts:
            x = part(x)
        return x
"""
NET = """
import torch
from torch import nn
from block import Block

class Net(nn.Module):
    def __init__(self, width, wanted):
        super().__init__()
        self.start = nn.Parameter(torch.ones(width))
        self.block = Block(width, wanted)
    def forward(self, y):
        x = self.block(self.start.unsqueeze(0))
        x += y
        return x
"""


def found_in(folder: Path, text: str) -> set[str]:
    finder = WorkspaceFinder(str(folder), reader())
    report = Analyser().analyze(Source(str(folder / "net.py"), text), Settings(), finder)
    return {finding.code for finding in report.findings}


def test_a_list_whose_filling_was_not_followed_is_not_taken_for_empty(tmp_path: Path) -> None:
    costly = "table = [[[max(i, j, k) for i in range(400)] for j in range(400)] for k in range(400)]"
    (tmp_path / "block.py").write_text(BLOCK.format(costly, "wanted"))
    assert found_in(tmp_path, NET) == set()
    (tmp_path / "block.py").write_text(BLOCK.format("pass", "()"))
    assert found_in(tmp_path, NET) == {"GS102"}


AVERAGED = """
class Projector(nn.Module):
    def __init__(self, mapping, images):
        super().__init__()
        with torch.no_grad():{}
            codes = mapping(torch.randn(64, 8))
        {} = codes.mean(0){}
        self.code = nn.Parameter(torch.zeros(8))
    def forward(self, render, target):
        return F.mse_loss(render(self.code + self.centre), target)

def project(mapping, render, target):
    projector = Projector(mapping, target)
    optimizer = torch.optim.Adam([projector.code, *mapping.parameters()])
    for _ in range(10):
        optimizer.zero_grad()
        projector(render, target).backward()
        optimizer.step()
"""


def test_a_statistic_that_is_kept_as_a_buffer_is_a_constant_on_purpose() -> None:
    registered = AVERAGED.replace("{} = codes.mean(0){}", 'self.register_buffer("centre", codes.mean(0))')
    check(registered.format(""))


def test_a_script_module_is_a_module() -> None:
    check(
        """
        class Encoder(torch.jit.ScriptModule):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(4, 4)

            @torch.jit.script_method
            def forward(self, x):
                h = torch.tanh(self.fc(x))
                h *= 2  # GS101
                return h

        encoder, decoder = Encoder(), nn.Linear(4, 4)
        opt = torch.optim.Adam(decoder.parameters())  # GS512
        for _ in range(5):
            opt.zero_grad()
            F.mse_loss(decoder(encoder(torch.randn(8, 4))), torch.randn(8, 4)).backward()
            opt.step()
    """
    )


def test_a_part_from_elsewhere_that_is_applied_by_its_forward_is_a_module() -> None:
    check(
        """
        from parts import Encoder, Decoder

        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.encoder = Encoder(3)
                self.decoder = Decoder(3)

            def forward(self, x):
                memory, mask = self.encoder.forward(x)  # info GS606
                out, _ = self.decoder.forward(memory, mask)  # info GS606
                return out, mask

        def main(loader):
            model = nn.DataParallel(Model())
            opt = torch.optim.Adam(model.parameters())
            for x, y in loader:
                out, _ = model.forward(x)  # info GS606
                nn.L1Loss()(out, y).backward()  # GS501
                opt.step()
    """
    )


REGISTRY = """
class Registry:
    def __init__(self):
        self.known = {}
    def register(self, cls):
        self.known[cls.__name__] = cls
        return cls

HEADS = Registry()

def build(config):
    arguments = config.copy()
    kind = arguments.pop("type")
    return HEADS.known.get(kind, None)(**arguments)
"""
BRAIN = """
import torch
from torch import nn
from registry import build

class Brain(nn.Module):
    def __init__(self, body, head):
        super().__init__()
        if not body:
            self.body = nn.Identity()
            head.settings.width = head.settings.sizes[0]
        else:
            self.body = build(body)
            head.settings.width = self.body(torch.zeros(1, *head.settings.sizes)).size(1)
        self.head = build(head)
    def forward(self, x):
        return self.head(self.body(x))
"""
LEARNER = """
import torch
import torch.nn.functional as F
from brain import Brain

class Learner:
    def __init__(self, settings, body, head, saved):
        self.settings, self.body, self.head = settings, body, head
        self.make()
        if saved is not None:
            self.first.load_state_dict(torch.load(saved))
    def make(self):
        self.first = Brain(self.body.critic, self.head.critic).to(self.settings.device)
        self.second = Brain(self.body.critic, self.head.critic).to(self.settings.device)
        self.third = Brain(self.body.value, self.head.value).to(self.settings.device)
        self.first_optimizer = torch.optim.Adam(self.first.parameters(), lr=self.settings.rate)
        self.second_optimizer = torch.optim.Adam(self.second.parameters(), lr=self.settings.rate)
        self.third_optimizer = torch.optim.Adam(self.third.parameters(), lr=self.settings.rate)
    def learn(self, states, wanted):
        first_loss = F.mse_loss(self.first(states), wanted)
        second_loss = F.mse_loss(self.second(states), wanted)
        third_loss = F.mse_loss(self.third(states), wanted)
        self.first_optimizer.zero_grad()
        first_loss.backward()
        self.first_optimizer.step()
        self.second_optimizer.zero_grad()
        second_loss.backward()
        self.second_optimizer.step()
        self.third_optimizer.zero_grad()
        third_loss.backward()
        self.third_optimizer.step()
"""


def test_networks_that_another_file_makes_of_settings_are_made_to_their_end(tmp_path: Path) -> None:
    (tmp_path / "registry.py").write_text(REGISTRY)
    (tmp_path / "brain.py").write_text(BRAIN)
    assert found_in(tmp_path, LEARNER) == set()
    assert found_in(tmp_path, LEARNER.replace("self.third_optimizer.zero_grad()", "pass")) == {"GS501"}
    assert found_in(tmp_path, LEARNER.replace("Adam(self.second.p", "Adam(self.first.p")) == {"GS512"}
    assert found_in(tmp_path, LEARNER.replace("        self.second_optimizer.step()\n", "")) == {"GS512"}


COSTLY = """
import torch
from torch import nn

class Block(nn.Module):
    def __init__(self, width, norm, act):
        super().__init__()
        layers = []
        for _ in range(3):
            layers += [nn.Conv2d(width, width, 3, padding=1)]
            layers += [nn.BatchNorm2d(width)] if norm == "batch" else [nn.InstanceNorm2d(width)]
            layers += [nn.ReLU()] if act == "relu" else [nn.LeakyReLU(0.2)]
        self.body = nn.Sequential(*layers)
        for part in self.modules():
            if isinstance(part, nn.Conv2d):
                nn.init.kaiming_normal_(part.weight)
                nn.init.zeros_(part.bias)
    def forward(self, x):
        return x + self.body(x)

class Net(nn.Module):
    def __init__(self, width=64, norm="batch", act="relu", depths=(3, 4, 23, 3)):
        super().__init__()
        {first}
        self.stages = nn.ModuleList()
        for depth in depths:
            self.stages.append(nn.Sequential(*[Block(width, norm, act) for _ in range(depth)]))
        self.head = nn.Linear(width, 1)
    def forward(self, x):
        for stage in self.stages:
            x = stage(x)
        return self.head(x.mean((2, 3)))
"""
TWO_NETS = """
import torch
from net import Net

class Pair:
    def __init__(self, settings):
        self.weight = settings.weight
        self.maker = Net(settings.width, settings.norm, settings.act)
        self.maker.train()
        self.judge = Net(settings.width, settings.norm, settings.act)
        self.judge.train()
        if settings.gpu:
            self.maker.cuda()
            self.judge.cuda()
        self.maker_optimizer = torch.optim.Adam(self.maker.parameters(), lr=settings.rate)
        self.judge_optimizer = torch.optim.Adam(self.judge.parameters(), lr=settings.rate)
    def train_maker(self, images):
        for one in self.judge.parameters():
            one.requires_grad = False
        loss = -self.judge(self.maker(images)).mean() * self.weight
        self.maker_optimizer.zero_grad()
        loss.backward()
        self.maker_optimizer.step()
    def train_judge(self, images):
        for one in self.judge.parameters():
            one.requires_grad = True
        made = self.maker(images).detach()
        loss = self.judge(made).mean() - self.judge(images).mean()
        self.judge_optimizer.zero_grad()
        loss.backward()
        self.judge_optimizer.step()
"""


@pytest.mark.parametrize(
    "first", ["pass", "table = [[[max(i, j, k) for i in range(90)] for j in range(90)] for k in range(90)]"]
)
def test_a_network_that_was_not_made_to_its_end_is_trained_as_any_other(tmp_path: Path, first: str) -> None:
    (tmp_path / "net.py").write_text(COSTLY.format(first=first))
    assert found_in(tmp_path, TWO_NETS) == set()
    assert found_in(tmp_path, TWO_NETS.replace("self.maker_optimizer.zero_grad()", "pass")) == {"GS501"}
    assert found_in(tmp_path, TWO_NETS.replace("self.judge_optimizer.zero_grad()", "pass")) == {"GS501"}
    assert found_in(tmp_path, TWO_NETS.replace("self.judge_optimizer.step()", "pass")) == {"GS512"}


def test_a_loss_that_was_not_made_to_its_end_needs_no_optimizer(tmp_path: Path) -> None:
    table = "table = [[[max(i, j, k) for i in range(90)] for j in range(90)] for k in range(90)]"
    (tmp_path / "net.py").write_text(COSTLY.format(first=table).replace("class Net", "class Distance"))
    assert (
        found_in(
            tmp_path,
            """
import torch
from net import Distance

class Trainer:
    def __init__(self, net, settings):
        self.net = net
        self.distance = Distance(settings.width)
        self.optimizer = torch.optim.Adam(self.net.parameters())
    def learn(self, images, wanted):
        loss = self.distance(self.net(images) - wanted).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
""",
        )
        == set()
    )


HELPERS = """
import torch

def one_hot(labels, count=3):
    kinds = torch.eye(count)
    labels = labels.long()
    return kinds[labels]

def tanh(x):
    return torch.tanh(x)
"""
CHOOSING = """
import torch
import torch.nn.functional as F
from torch import nn
import helpers

class Net(nn.Module):
    def __init__(self, settings):
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.activation = getattr(helpers, settings.activation)
    def forward(self, x):
        return self.activation(self.layer(x))

def train(loader, settings):
    net = Net(settings)
    optimizer = torch.optim.Adam(net.parameters())
    for x, y in loader:
        optimizer.zero_grad()
        F.mse_loss(net(x), y.detach()).backward()
        optimizer.step()
"""


def test_a_helper_of_another_file_is_not_taken_for_the_one_that_a_setting_names(tmp_path: Path) -> None:
    (tmp_path / "helpers.py").write_text(HELPERS)
    assert found_in(tmp_path, CHOOSING) == set()


CHOSEN = """
class First(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)
    def forward(self, x):
        return self.layer(x).detach()  # GS203

class Second(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)
    def forward(self, x):
        return self.layer(x)

KINDS = {kinds}

def train(loader, settings):
    net = KINDS[settings.kind]()
    optimizer = torch.optim.Adam(net.parameters())
    for x in loader:
        optimizer.zero_grad()
        net(x).sum().backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("kinds", "severity", "certainty"),
    [("{'first': First}", "error", "certain"), ("{'first': First, 'second': Second}", "warning", "assumed")],
)
def test_what_is_wrong_with_one_of_several_classes_is_assumed_of_the_chosen_one(
    kinds: str, severity: str, certainty: str
) -> None:
    (finding,) = check(CHOSEN.format(kinds=kinds)).findings
    assert (finding.severity, finding.certainty) == (severity, certainty)


FROZEN = """
class Net(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.table = [[[max(i, j, k) for i in range(400)] for j in range(400)] for k in range(400)]
        for index in range(len(sizes)):
            setattr(self, f"part{{index}}", nn.Linear(sizes[index], 2))

def renew(old, sizes):
    new = Net(sizes).eval(){frozen}
    for tensor, kept in zip(new.parameters(), old.parameters()):
        tensor.copy_(kept.detach()){claim}
    return new

def main(path, sizes):
    renew(torch.load(path), sizes)

if __name__ == "__main__":
    import sys
    main(sys.argv[1], [int(one) for one in sys.argv[2:]])
"""


def test_what_stands_for_parameters_that_were_not_made_is_frozen_with_the_module() -> None:
    check(FROZEN.format(frozen=".requires_grad_(False)", claim=""))
    check(FROZEN.format(frozen="", claim="  # GS102"))
