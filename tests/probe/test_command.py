"""`gradsight run` from the shell's side."""

from __future__ import annotations

import argparse
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from gradsight.cli import run as command
from gradsight.cli.progress import TerminalLine
from gradsight.probe import host
from gradsight.probe.outcome import Progress
from gradsight.probe.standby import Standby
from tests.probe.expectation import FIXTURES

RAISING = str(FIXTURES / "raising" / "exp_scaled_in_place.py")
SAFE = str(FIXTURES / "safe" / "micro_batches.py")


@pytest.fixture
def gradsight(standby: Standby, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Runs the command in this process, its probes in the warm interpreter."""
    monkeypatch.setattr(host, "run", standby.run)

    def call(*arguments: str) -> tuple[int, str, str]:
        parser = argparse.ArgumentParser()
        command.add_arguments(parser)
        status = command.run(parser.parse_args(list(arguments)))
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return call


def test_json_is_one_object_on_stdout(gradsight) -> None:
    status, out, _ = gradsight("--format", "json", RAISING)
    document = json.loads(out)
    assert status == 1
    assert document["outcome"] == "raised"
    assert document["error"]["location"]["row"] == 6
    assert [finding["code"] for finding in document["faults"]] == ["GS101"]
    assert document["torch"]
    assert document["facts"]


def test_what_ended_early_is_not_blamed_for_gradients_that_never_came(gradsight, tmp_path: Path) -> None:
    """One backward ended, the other one raised: the parameters of the second are not listed as without a gradient."""
    program = tmp_path / "train.py"
    program.write_text(
        "import torch\n\nfirst = torch.nn.Linear(2, 1)\nsecond = torch.nn.Linear(2, 1)\n"
        "torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.1)\n"
        "first(torch.ones(1, 2)).sum().backward()\ny = second(torch.ones(1, 2)).exp()\ny *= 2\ny.sum().backward()\n"
    )
    status, out, _ = gradsight(str(program))
    assert status == 1
    assert "first.weight" in out
    assert "second.weight" not in out
    assert "none" not in out


def test_a_file_that_is_not_there_is_said_in_one_line(gradsight, tmp_path: Path) -> None:
    status, out, err = gradsight(str(tmp_path / "missing.py"))
    assert status == 2
    assert (out + err).count("\n") == 1
    assert "there is no file" in out + err


def test_json_has_every_field_of_the_contract(gradsight) -> None:
    _, out, _ = gradsight("--format", "json", RAISING)
    document = json.loads(out)
    assert {"outcome", "error", "faults", "parameters", "facts", "torch", "python", "seconds"} <= set(
        document
    )
    assert {"type", "message", "location"} <= set(document["error"])
    (fault,) = document["faults"]
    assert {step["role"] for step in fault["related"]} == {"saved", "written", "needed"}
    assert fault["evidence"]["torch"] == document["error"]["message"]
    assert (fault["evidence"]["version_saved"], fault["evidence"]["version_found"]) == (0, 1)
    fact = next(fact for fact in document["facts"] if fact["name"] == "weights")
    kept = {"shape", "dtype", "device", "requires_grad", "is_leaf", "grad_fn", "version"}
    assert kept == set(fact["first"]) == set(fact["last"])
    assert "grad_norm" in fact
    assert isinstance(document["seconds"], float)


def test_faults_have_the_fields_of_checked_findings(gradsight) -> None:
    _, out, _ = gradsight("--format", "json", RAISING)
    checked = subprocess.run(
        [sys.executable, "-m", "gradsight", "check", "--format", "json", RAISING],
        capture_output=True,
        text=True,
        check=False,
    )
    (finding,), (fault,) = json.loads(checked.stdout), json.loads(out)["faults"]
    assert set(finding) <= set(fault)
    assert {key: fault[key] for key in ("code", "name", "severity", "filename", "location", "url")} == {
        key: finding[key] for key in ("code", "name", "severity", "filename", "location", "url")
    }
    assert fault["fix"]["edits"] == finding["fix"]["edits"]


def test_parameters_have_a_state_and_a_norm(gradsight) -> None:
    code = (
        "import torch\nnet = torch.nn.Linear(2, 2)\nother = torch.nn.Linear(2, 2)\n"
        "torch.optim.SGD([*net.parameters(), *other.parameters()], lr=0.1)\n"
        "(net(torch.ones(1, 2)).sum() + 0 * other.weight.sum()).backward()\n"
    )
    _, out, _ = gradsight("--format", "json", "-c", code)
    states = {row["name"]: (row["grad"], row["norm"] is None) for row in json.loads(out)["parameters"]}
    assert states["net.weight"] == ("ok", False)
    assert states["other.weight"][0] == "zero"
    assert states["other.bias"] == ("none", True)


@pytest.mark.parametrize("form", ["json", "sarif"])
@pytest.mark.parametrize("value", ["nan", "inf", "-inf"])
def test_gradients_that_are_no_numbers_leave_valid_json(gradsight, value: str, form: str) -> None:
    text = f"import torch; w = torch.tensor([float('{value}')], requires_grad=True); l = (w * w).sum(); l.backward()"
    status, out, _ = gradsight("--format", form, "-c", text)
    assert status == 0

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is no JSON")

    json.loads(out, parse_constant=refuse)


def test_limits_of_time_and_memory_and_the_seed_are_handed_on(gradsight) -> None:
    status, out, _ = gradsight("--format", "json", "--timeout", "1", "-c", "import torch\nwhile True: pass")
    assert (status, json.loads(out)["outcome"]) == (2, "timeout")
    status, out, _ = gradsight(
        "--format", "json", "--memory", "2000", "-c", "import torch\ntorch.ones(10**10).sum()"
    )
    assert (status, json.loads(out)["outcome"]) == (1, "raised")
    code = "import torch\nx = torch.randn(1, requires_grad=True)\n(x * x).backward()"
    norms = []
    for _ in range(2):
        _, out, _ = gradsight("--format", "json", "--seed", "7", "-c", code)
        norms.append(json.loads(out)["parameters"][0]["norm"])
    assert norms[0] == norms[1]


def test_a_notebook_is_a_program(gradsight, tmp_path: Path) -> None:
    cells = ["import torch\nx = torch.ones(2, requires_grad=True)", "y = x.exp()\ny *= 2\ny.sum().backward()"]
    notebook = tmp_path / "steps.ipynb"
    notebook.write_text(
        json.dumps(
            {
                "cells": [
                    {
                        "cell_type": "code",
                        "source": cell,
                        "metadata": {},
                        "outputs": [],
                        "execution_count": None,
                    }
                    for cell in cells
                ],
                "metadata": {},
                "nbformat": 4,
                "nbformat_minor": 5,
            }
        )
    )
    status, out, _ = gradsight("--format", "json", str(notebook))
    (fault,) = json.loads(out)["faults"]
    assert (status, fault["cell"], fault["location"]["row"]) == (1, 2, 2)


def test_an_interpreter_without_torch_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "torch.py").write_text("raise ImportError('there is no torch here')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    assert command.run(parser.parse_args(["-c", "pass"])) == 2
    said = " ".join(capsys.readouterr().out.split())
    assert f"tried in {sys.executable}: --python names another" in said


def test_clean_program_exits_with_zero(gradsight) -> None:
    status, out, _ = gradsight("--format", "json", SAFE)
    assert (status, json.loads(out)["outcome"]) == (0, "clean")


def test_sarif_is_written(gradsight) -> None:
    status, out, _ = gradsight("--format", "sarif", RAISING)
    assert status == 1
    (result,) = json.loads(out)["runs"][0]["results"]
    assert result["ruleId"] == "GS101"
    assert result["fixes"][0]["artifactChanges"][0]["replacements"][0]["deletedRegion"]["startLine"] == 5


def test_text_shows_the_story(gradsight) -> None:
    status, out, _ = gradsight(RAISING)
    assert status == 1
    assert "error GS101" in out
    assert "= help:" in out
    assert "= fix: replace with `weights = weights / weights.sum()`\n  5 - weights /= weights.sum()" in out
    assert "5 + weights = weights / weights.sum()" in out


def test_arguments_after_the_script_belong_to_it(gradsight, tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text("import sys\nassert sys.argv[1:] == ['--steps', '9', '-c', 'x'], sys.argv\n")
    status, out, _ = gradsight("--format", "json", str(script), "--steps", "9", "-c", "x")
    assert (status, json.loads(out)["error"]) == (0, None)


def test_code_and_module_take_the_rest_of_the_line(gradsight) -> None:
    status, out, _ = gradsight(
        "--format", "json", "-c", "import sys; assert sys.argv[1:] == ['--fast']", "--fast"
    )
    assert (status, json.loads(out)["error"]) == (0, None)


def test_missing_script_could_not_run(gradsight, tmp_path: Path) -> None:
    status, out, _ = gradsight("--format", "json", str(tmp_path / "absent.py"))
    assert (status, json.loads(out)["outcome"]) == (2, "could-not-run")


@pytest.mark.parametrize("arguments", [(), ("--no-such-option",), ("--graph", "x.png", SAFE)])
def test_wrong_calls_exit_with_two(gradsight, arguments: tuple[str, ...]) -> None:
    try:
        status, _, _ = gradsight(*arguments)
    except SystemExit as stop:
        status = stop.code
    assert status == 2


@pytest.mark.parametrize(("suffix", "start"), [(".svg", "<svg"), (".dot", "digraph")])
def test_graph_is_drawn_into_a_file(gradsight, tmp_path: Path, suffix: str, start: str) -> None:
    target = tmp_path / f"graph{suffix}"
    gradsight("--format", "json", "--graph", str(target), RAISING)
    assert target.read_text("utf-8").startswith(start)


def test_steps_and_fast_are_handed_on(gradsight, tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(
        "import torch\nx = torch.ones(1, requires_grad=True)\nwhile True:\n    (x * x).backward()\n"
    )
    status, out, _ = gradsight("--format", "json", "--fast", "--steps", "3", str(script))
    document = json.loads(out)
    assert status == 0
    assert document["facts"] == []
    assert "stopped after 3 backward calls" in document["notes"]


def test_progress_line_is_only_for_terminals() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal, file = Terminal(), io.StringIO()
    for stream in (terminal, file):
        line = TerminalLine(stream)
        line.show(command.told(Progress(backwards=4, steps=2, faults=1, seconds=0.5)))
        line.clear()
    assert "4 backward, 2 steps, 0.5 s, 1 fault" in terminal.getvalue()
    assert terminal.getvalue().endswith("\r\x1b[K")
    assert file.getvalue() == ""


def test_command_works_from_a_shell() -> None:
    """Output of the program goes to stdout as it comes, the report follows."""
    code = "import torch; print('hello'); x = torch.ones(1, requires_grad=True); x += 1"
    done = subprocess.run(
        [sys.executable, "-m", "gradsight", "run", "-c", code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stdout.startswith("hello\n")
    assert "error GS102" in done.stdout


def test_a_mistake_in_working_out_a_repair_leaves_the_report(
    gradsight, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*unused: object) -> None:
        raise AssertionError("ours")

    monkeypatch.delenv("GRADSIGHT_STRICT", raising=False)
    monkeypatch.setattr("gradsight.analysis.analyze", fail)
    status, out, _ = gradsight("--format", "json", RAISING)
    (fault,) = json.loads(out)["faults"]
    assert (status, fault["code"], fault["fix"]) == (1, "GS101", None)
