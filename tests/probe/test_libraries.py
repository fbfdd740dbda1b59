"""Blame stands on the user's line when a library does the work, and the library's line is in the trail."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gradsight.probe.document import document_of
from gradsight.probe.request import ProbeRequest
from gradsight.probe.standby import Standby
from tests.probe.expectation import PYTHON

LIBRARY = """\
class Accelerator:
    def backward(self, loss):
        loss.backward()

    def scale_(self, tensor):
        tensor.mul_(2)

    def fit(self, step):
        self.backward(step())


def reset(leaf):
    leaf += 1
"""
START = "import torch\nfrom fastfit.core import Accelerator, reset\nhelp = Accelerator()\nw = torch.ones(3, requires_grad=True)\n"
CUT = (
    "net = torch.nn.Linear(3, 3)\nlast = torch.nn.Linear(3, 1)\n"
    "o = torch.optim.SGD([*net.parameters(), *last.parameters()], lr=0.1)\n"
    "help.backward(last(net(w.detach()).detach()).sum())\no.step()\n"
)
PROGRAMS: dict[str, tuple[str, tuple[str, int], set[int]]] = {
    # The program, the fault, and the lines of the library in its trail.
    "backward": ("y = w.exp()\ny *= 2\nhelp.backward(y.sum())\n", ("GS101", 6), {3}),
    "write": ("y = w.exp()\nhelp.scale_(y)\ny.sum().backward()\n", ("GS101", 6), {6}),
    "both": ("y = w.exp()\nhelp.scale_(y)\nhelp.backward(y.sum())\n", ("GS101", 6), {3, 6}),
    "loop": (
        "def step():\n    y = w.exp()\n    y *= 2\n    return y.sum()\nhelp.fit(step)\n",
        ("GS101", 7),
        {3},
    ),
    "leaf": ("reset(w)\n", ("GS102", 5), {13}),
    "cut": (CUT, ("GS203", 8), {3}),
    "caught": (
        "y = w.exp()\ny *= 2\ntry:\n    help.backward(y.sum())\nexcept RuntimeError:\n    pass\n",
        ("GS101", 6),
        {3},
    ),
}


def check(standby: Standby, program: Path, folder: Path, fault: tuple[str, int], lines: set[int]) -> None:
    """The fault stands in the program, and these lines of the library are in its trail."""
    # A warm interpreter has read its search path already.
    program.write_text(f"import sys; sys.path.insert(0, {str(folder)!r}); {program.read_text()}")
    request = ProbeRequest(PYTHON, script=str(program), timeout=60, seed=0)
    document = document_of(standby.run(request))
    assert [(each["code"], each["location"]["row"], each["filename"]) for each in document["faults"]] == [
        (*fault, str(program))
    ], document
    library = str(folder / "fastfit" / "core.py")
    found: list[dict[str, Any]] = [
        step for step in document["faults"][0]["related"] if step["filename"] == library
    ]
    assert {step["location"]["row"] for step in found} == lines
    assert all("inside `fastfit`" in step["message"] for step in found)
    if document["error"] is not None:
        assert document["error"]["filename"] == str(program)


@pytest.mark.parametrize("place", ["site-packages", "vendored"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_fault_in_a_library_stands_on_the_users_line(
    standby: Standby, tmp_path: Path, name: str, place: str
) -> None:
    text, fault, lines = PROGRAMS[name]
    folder = tmp_path / place
    package = folder / "fastfit"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "core.py").write_text(LIBRARY)
    if place == "vendored":
        record = folder / "fastfit-1.0.dist-info"
        record.mkdir()
        (record / "RECORD").write_text("fastfit/__init__.py,,\nfastfit/core.py,,\n")
    program = tmp_path / "program.py"
    program.write_text(START + text)
    check(standby, program, folder, fault, lines)
