"""Ways to run: script, module, code, notebook; deep, fake, many ranks; steps, seeds, facts and drawings."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from pathlib import Path

import pytest

from gradsight.cli.documents import Documents
from gradsight.cli.graph_picture import dot_of, svg_of
from gradsight.probe import deep, ranks
from gradsight.probe.outcome import Observed, Raised, Streams
from gradsight.probe.request import ProbeRequest
from gradsight.probe.standby import Environment, Standby
from gradsight.session.graphs import draw
from gradsight.session.verdicts import fault_finding
from tests.probe.expectation import FIXTURES

LOOP = (
    "import torch\nfrom torch import nn\n"
    "net = nn.Linear(3, 1)\noptimizer = torch.optim.SGD(net.parameters(), lr=0.1)\n"
    "for step in range(50):\n"
    "    optimizer.zero_grad()\n    loss = net(torch.ones(2, 3)).pow(2).mean()\n    loss.backward()\n"
    "    optimizer.step()\n"
)


def observed(standby: Standby, **options: object) -> dict[str, object]:
    outcome = standby.run(ProbeRequest(sys.executable, timeout=60, **options))  # type: ignore[arg-type]
    assert isinstance(outcome, (Observed, Raised)), outcome
    assert outcome.report["internal_error"] == ""
    return dict(outcome.report)


def test_code_is_run_like_python_c(standby: Standby) -> None:
    text = "import sys, torch\nassert sys.argv[1:] == ['a', '--b']\nx = torch.ones(1, requires_grad=True)\nx += 1\n"
    report = observed(standby, code=text, arguments=("a", "--b"))
    assert [(fault["code"], fault["location"]["row"]) for fault in report["faults"]] == [("GS102", 4)]


def test_module_is_run_like_python_m(standby: Standby, tmp_path: Path) -> None:
    package = tmp_path / "trainer"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "scale.py").write_text("def grow(x):\n    x += 1\n")
    (package / "__main__.py").write_text(
        "import torch\nfrom .scale import grow\nassert __name__ == '__main__'\ngrow(torch.ones(1, requires_grad=True))\n"
    )
    report = observed(standby, module="trainer", directory=str(tmp_path))
    (fault,) = report["faults"]
    assert fault["code"] == "GS102"
    assert fault["filename"].endswith("scale.py")
    assert [step["location"]["row"] for step in fault["related"] if step["role"] == "call"] == [4]


def test_notebook_is_run_cell_by_cell(standby: Standby, tmp_path: Path) -> None:
    cells = [
        {"cell_type": "markdown", "source": ["# A notebook"]},
        {
            "cell_type": "code",
            "source": ["%matplotlib inline\n", "import torch\n", "x = torch.ones(2, requires_grad=True)"],
        },
        {"cell_type": "code", "source": "y = torch.exp(x)\n!ls\ny *= 2\ny.sum().backward()"},
    ]
    path = tmp_path / "study.ipynb"
    path.write_text(json.dumps({"cells": cells, "nbformat": 4}))
    report = observed(standby, script=str(path))
    (fault,) = report["faults"]
    assert (fault["code"], fault["cell"], fault["location"]["row"]) == ("GS101", 3, 3)
    assert fault["filename"] == str(path)


def test_text_of_the_editor_is_run_instead_of_the_file(standby: Standby, tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text("raise SystemExit('the file itself')\n")
    report = observed(
        standby, script=str(path), text="import torch\n\nx = torch.ones(1, requires_grad=True)\nx += 1\n"
    )
    assert [(fault["code"], fault["location"]["row"]) for fault in report["faults"]] == [("GS102", 4)]


def test_main_guard_and_neighbour_modules_work(standby: Standby, tmp_path: Path) -> None:
    (tmp_path / "helpers.py").write_text("import torch\n\n\ndef spoil(y):\n    y.mul_(2)\n")
    (tmp_path / "main.py").write_text(
        "import torch\nfrom helpers import spoil\n\n\ndef main():\n    y = torch.exp(torch.ones(2, requires_grad=True))\n"
        "    spoil(y.detach())\n    y.sum().backward()\n\n\nif __name__ == '__main__':\n    main()\n"
    )
    report = observed(standby, script=str(tmp_path / "main.py"))
    (fault,) = report["faults"]
    assert (Path(fault["filename"]).name, fault["location"]["row"]) == ("helpers.py", 5)
    assert not list(tmp_path.rglob("*.pyc"))


def test_steps_stop_the_loop(standby: Standby) -> None:
    report = observed(standby, code=LOOP, steps=4)
    assert report["steps"] == 4
    assert report["stopped"] == "4 optimizer steps"
    assert report["outcome"] == "clean"


def test_seed_makes_two_runs_equal(standby: Standby) -> None:
    text = "import random, torch, numpy\nprint(random.random(), torch.rand(1).item(), numpy.random.rand())\n"
    outputs = [standby.run(ProbeRequest(sys.executable, code=text, seed=seed)).output for seed in (3, 3, 4)]
    assert outputs[0] == outputs[1] != outputs[2]


def test_parameters_show_the_state_of_their_gradient(standby: Standby) -> None:
    text = (
        "import torch\nfrom torch import nn\n"
        "net = nn.ModuleDict({'used': nn.Linear(2, 1), 'unused': nn.Linear(2, 1), 'dead': nn.Linear(2, 1)})\n"
        "optimizer = torch.optim.SGD(net.parameters(), lr=0.1)\nx = torch.ones(3, 2)\n"
        "loss = net['used'](x).sum() + 0.0 * net['dead'](x).sum()\nloss.backward()\noptimizer.step()\n"
    )
    report = observed(standby, code=text)
    states = {row["name"]: (row["grad"], row["norm"]) for row in report["parameters"]}
    assert states["net.used.weight"][0] == "ok"
    assert states["net.used.bias"] == ("ok", 3.0)
    assert states["net.unused.weight"] == ("none", None)
    assert states["net.dead.weight"] == ("zero", 0.0)


def test_facts_have_the_first_and_the_last_visit(standby: Standby, tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(
        "import torch\nw = torch.ones(2, 2, requires_grad=True)\nfor n in (1, 3):\n    y = torch.ones(n, 2) @ w\n"
        "    y += 1\n    y.sum().backward()\n"
    )
    facts = {(fact["line"], fact["name"]): fact for fact in observed(standby, script=str(path))["facts"]}
    leaf, product, shifted = facts[2, "w"], facts[4, "y"], facts[5, "y"]
    assert leaf["last"] == {
        "shape": [2, 2], "dtype": "float32", "device": "cpu", "requires_grad": True, "is_leaf": True, "grad_fn": None,
        "version": 0,
    }  # fmt: skip
    assert leaf["grad_norm"] == 8.0
    assert (product["visits"], product["first"]["shape"], product["last"]["shape"]) == (2, [1, 2], [3, 2])
    assert product["last"]["grad_fn"] == "MmBackward0"
    assert shifted["last"]["version"] == 1
    assert shifted["filename"] == str(path)


def test_graph_marks_the_broken_node(standby: Standby) -> None:
    path = FIXTURES / "raising" / "exp_scaled_in_place.py"
    report = observed(standby, script=str(path), graph=True)
    graph = report["graph"]
    assert [node["name"] for node in graph["nodes"] if node["broken"]] == ["ExpBackward0"]
    (fault,) = report["faults"]
    drawing = draw(graph, fault_finding(fault), str(fault["evidence"]["operator"]), Documents().line)
    assert 'label="saved for backward\\nexp\\n4: ' in dot_of(drawing)
    picture = svg_of(drawing)
    assert picture.startswith("<svg")
    assert [picture.count(f'class="{role}"') for role in ("saved", "written", "needed")] == [1, 1, 1]
    # Every box stands in the picture, and none upon another.
    corners = re.findall(r'<rect x="(\d+)" y="(\d+)"', picture)
    assert len(set(corners)) == len(corners) == len(drawing.nodes)


def test_deep_look_measures_the_difference(standby: Standby) -> None:
    path = FIXTURES / "silent" / "data_written_after_save.py"
    outcome = deep.run(ProbeRequest(sys.executable, script=str(path), timeout=60, seed=0), runner=standby.run)
    assert isinstance(outcome, Observed)
    (fault,) = outcome.report["faults"]
    assert (fault["code"], fault["location"]["row"]) == ("GS104", 5)
    # The angle was tripled after `angle * angle` had saved it: the gradient is three times the right one.
    assert abs(fault["evidence"]["gradient_error"] - 2.0) < 1e-6


def test_deep_look_finds_the_line_that_torch_does_not_run(standby: Standby, tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(
        "import numpy, torch\nscale = torch.ones(3, requires_grad=True)\nblock = numpy.ones(3, dtype=numpy.float32)\n"
        "scaled = torch.from_numpy(block) * scale\nnumpy.copyto(block, 7.0)\nscaled.sum().backward()\n"
    )
    outcome = deep.run(ProbeRequest(sys.executable, script=str(path), timeout=60, seed=0), runner=standby.run)
    (fault,) = outcome.report["faults"]
    assert (fault["code"], fault["location"]["row"]) == ("GS104", 5)


def test_deep_look_lets_equal_contents_pass(standby: Standby, tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(
        "import torch\nx = torch.ones(3, requires_grad=True)\ny = x * x\nx.data.mul_(1.0)\ny.sum().backward()\n"
    )
    outcome = deep.run(ProbeRequest(sys.executable, script=str(path), timeout=60, seed=0), runner=standby.run)
    assert outcome.report["faults"] == []


def test_huge_model_is_probed_without_memory(standby: Standby) -> None:
    path = FIXTURES / "llama_seventy_billion.py"
    lines = path.read_text("utf-8").splitlines()
    for plan, code in (("gate", "GS101"), ("order", "GS106")):
        report = observed(standby, script=str(path), arguments=(plan, "2"), fake=True)
        (fault,) = report["faults"]
        assert fault["code"] == code
        assert lines[fault["location"]["row"] - 1].endswith(f"# {plan}: written")
        roles = {step["role"]: lines[step["location"]["row"] - 1] for step in fault["related"]}
        assert roles["needed"].endswith(f"# {plan}: needed")
        assert any("without values" in note for note in report["notes"])
    report = observed(standby, script=str(path), arguments=("clean", "2"), fake=True)
    assert report["outcome"] == "clean"
    assert {row["grad"] for row in report["parameters"]} == {"ok"}


def test_ranks_are_merged_into_one_report() -> None:
    path = FIXTURES / "ddp_buffers_rebroadcast.py"
    lines = path.read_text("utf-8").splitlines()
    outcome = ranks.run(ProbeRequest(sys.executable, script=str(path), timeout=120), 2, Streams())
    assert isinstance(outcome, Observed), outcome
    (fault,) = outcome.report["faults"]
    assert (fault["code"], fault["rank"]) == ("GS104", [1])
    assert lines[fault["location"]["row"] - 1].endswith("# written")
    roles = {step["role"]: lines[step["location"]["row"] - 1] for step in fault["related"]}
    assert roles["saved"].endswith("# saved")
    assert roles["needed"].endswith("# needed")


def test_warm_interpreter_is_dropped_when_the_environment_changes(tmp_path: Path) -> None:
    python = tmp_path / "bin" / "python"
    packages = tmp_path / "lib" / "python3.11" / "site-packages"
    python.parent.mkdir()
    packages.mkdir(parents=True)
    python.write_text("")
    before = Environment.of(str(python))
    assert Environment.of(str(python)) == before
    (packages / "torch").mkdir()
    (packages / "torch" / "version.py").write_text("__version__ = '9'")
    assert Environment.of(str(python)) != before


def test_warm_interpreter_that_dies_is_replaced() -> None:
    warm = Standby()
    try:
        first = warm.run(ProbeRequest(sys.executable, code="import os; print(os.getppid())"))
        assert isinstance(first, Observed)
        os.kill(int(first.output), signal.SIGKILL)
        second = warm.run(ProbeRequest(sys.executable, code="print('again')"))
        assert isinstance(second, Observed)
        assert second.output == "again\n"
    finally:
        warm.drop()


def test_where_forking_is_not_safe_a_spare_interpreter_waits(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("gradsight.probe.standby._can_fork", lambda: False)
    script = tmp_path / "program.py"
    script.write_text("import torch, os\nx = torch.ones(2, requires_grad=True)\n(x * x).sum().backward()\n")
    request = ProbeRequest(sys.executable, script=str(script), timeout=60)
    spares = Standby()
    try:
        pids = []
        for _ in range(3):
            waiting = spares._spare
            outcome = spares.run(request)
            assert isinstance(outcome, Observed), outcome
            pids.append(waiting.conversation.group if waiting is not None else 0)
        assert pids[0] == 0, "the first probe starts fresh"
        assert len(set(pids)) == 3, "each spare runs one probe"
        with_variable = ProbeRequest(sys.executable, script=str(script), timeout=60, environment={"A": "1"})
        assert isinstance(spares.run(with_variable), Observed)
    finally:
        last = spares._spare
        spares.drop()
    assert last is not None
    assert last.conversation.process is not None
    assert last.conversation.process.poll() is not None, "no interpreter is left behind"
