"""The composite action, its own steps run by a shell as GitHub's runner would run them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.house.tree import ROOT

ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
INSTALL, CHECK = ACTION["runs"]["steps"]
FAILS = "import torch\n\nx = torch.ones(3, requires_grad=True)\ny = x.exp()\ny *= 3\ny.sum().backward()\n"


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checked-out project, and the installed program where the action looks for it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text(FAILS)
    return tmp_path


def check(expected: int, **inputs: str) -> tuple[str, str]:
    """Run the step; its output, and whether it says that something was found."""
    variables = {name: value_of(text, inputs) for name, text in CHECK["env"].items()}
    variables["GRADSIGHT"] = str(Path(sys.executable).parent / "gradsight")
    outputs = Path("outputs.txt")
    environment = {**os.environ, **variables, "GITHUB_OUTPUT": str(outputs)}
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", CHECK["run"]],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == expected, done.stdout + done.stderr
    return done.stdout, outputs.read_text().strip().splitlines()[-1]


def value_of(expression: str, inputs: dict[str, str]) -> str:
    """The value of `${{ inputs.x }}`: what was given, or the default."""
    name = expression.removeprefix("${{ ").removesuffix(" }}")
    if not name.startswith("inputs."):
        return ""
    name = name.removeprefix("inputs.")
    return inputs.get(name, ACTION["inputs"][name]["default"])


def test_findings_fail_the_step_with_annotations() -> None:
    out, told = check(1, paths="src")
    assert out.startswith("::error ")
    assert told == "findings=true"


def test_findings_can_be_told_without_failing() -> None:
    assert check(0, paths="src", fail="false")[1] == "findings=true"


def test_a_report_goes_to_a_file() -> None:
    assert check(1, paths="src", format="sarif", output="x.sarif")[0] == ""
    assert Path("x.sarif").read_text().startswith("{")


def test_rules_can_be_left_out() -> None:
    assert check(0, paths="src", ignore="GS101")[1] == "findings=false"


def test_a_wrong_call_fails_even_if_findings_do_not() -> None:
    check(2, paths="absent", fail="false")


def test_several_paths_are_checked_and_none_is_taken_for_code() -> None:
    Path("other").mkdir()
    check(1, paths="other src")
    check(2, paths="$(touch ran) --jobs")
    assert not Path("ran").exists()


def test_the_installation_makes_an_environment_of_its_own() -> None:
    assert '-m venv "$PLACE"' in INSTALL["run"]
    assert 'pip install --quiet --disable-pip-version-check "$ACTION"' in INSTALL["run"]


def test_every_input_is_used_and_none_is_pasted_into_a_script() -> None:
    used = " ".join(str(value) for step in (INSTALL, CHECK) for value in step["env"].values())
    assert [name for name in ACTION["inputs"] if f"inputs.{name} " not in used] == []
    assert "${{" not in INSTALL["run"] + CHECK["run"]
