"""Objects whose `__init__` was not followed to its end, and values that are constants of a module."""

from __future__ import annotations

from pathlib import Path

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
