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


def test_clean_program_exits_with_zero(gradsight) -> None:
    status, out, _ = gradsight("--format", "json", SAFE)
    assert (status, json.loads(out)["outcome"]) == (0, "clean")


def test_sarif_is_written(gradsight) -> None:
    status, out, _ = gradsight("--format", "sarif", RAISING)
    assert status == 1
    assert json.loads(out)["runs"][0]["results"][0]["ruleId"] == "GS101"


def test_text_shows_the_story(gradsight) -> None:
    status, out, _ = gradsight(RAISING)
    assert status == 1
    assert "error[GS101]" in out
    assert "= help:" in out


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
        line = command.ProgressLine(stream)
        line.show(Progress(backwards=4, steps=2, faults=1, seconds=0.5))
        line.clear()
    assert "4 backward, 2 steps, 0.5 s, 1 fault" in terminal.getvalue()
    assert terminal.getvalue().endswith("\r")
    assert file.getvalue() == ""


def test_command_works_from_a_shell() -> None:
    """Output of the program goes to stdout as it comes, the report follows."""
    code = "import torch; print('hello'); x = torch.ones(1, requires_grad=True); x += 1"
    done = subprocess.run(
        [sys.executable, "-m", "gradsight", "run", "-c", code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stdout.startswith("hello\n")
    assert "error[GS102]" in done.stdout
