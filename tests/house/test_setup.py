"""The set-up script says clearly what is missing, installs once, and installs again when something changed.

Each test runs the real script in a small copy of the repository, with a PATH that holds only what the test puts there:
stand-ins for Python, Node and npm that answer as the real ones do and write down what they were asked to install.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.house.tree import ROOT

SHELL_TOOLS = ("sh", "bash", "dirname", "cat", "mkdir", "rm", "cksum", "chmod", "cp", "make")

PYTHON = """#!/bin/sh
# Python {version} in {home}: makes environments that are copies of itself, and writes down what pip is asked.
case "$*" in
    *sys.exit*) exit {too_old} ;;
    *'%d.%d.%d'*) echo {version} ;;
    *base_prefix*) echo {version} {home} ;;
    *ensurepip*) exit {no_venv} ;;
    '-m venv '*) mkdir -p "$3/{folder}" && cp "$0" "$3/{folder}/{program}" ;;
    '-m pip install '*) echo "$*" >>pip.log; [ ! -e offline ] ;;
esac
"""

NODE = """#!/bin/sh
echo {version}
"""

NPM = """#!/bin/sh
echo "$*" >>npm.log
rm -rf node_modules && mkdir node_modules
"""


@dataclass(frozen=True)
class Machine:
    """A machine with an almost empty PATH and a copy of the files that set-up reads."""

    folder: Path
    programs: Path

    def install(self, name: str, text: str) -> Path:
        program = self.programs / name
        program.write_text(text)
        program.chmod(0o755)
        return program

    def install_python(
        self,
        name: str = "python3",
        version: str = "3.12.1",
        too_old: int = 0,
        no_venv: int = 0,
        is_windows: bool = False,
    ) -> Path:
        folder, program = ("Scripts", "python.exe") if is_windows else ("bin", "python")
        home = self.programs / name
        text = PYTHON.format(
            version=version, home=home, too_old=too_old, no_venv=no_venv, folder=folder, program=program
        )
        return self.install(name, text)

    def install_node(self, name: str = "node", version: str = "v22.3.0") -> Path:
        self.install("npm", NPM)
        return self.install(name, NODE.format(version=version))

    def run(self, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            cwd=self.folder,
            env={"PATH": str(self.programs), **variables},
            capture_output=True,
            text=True,
            check=False,
        )

    def installations(self, log: str) -> int:
        path = self.folder / log
        return len(path.read_text().splitlines()) if path.exists() else 0


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    folder, programs = tmp_path / "repository", tmp_path / "bin"
    (folder / ".ci").mkdir(parents=True)
    programs.mkdir()
    for name in ("Makefile", ".ci/setup", ".ci/run", "pyproject.toml", "constraints.txt", "package.json"):
        shutil.copy(ROOT / name, folder / name)
    shutil.copy(ROOT / "package-lock.json", folder)
    for tool in SHELL_TOOLS:
        os.symlink(shutil.which(tool) or tool, programs / tool)
    return Machine(folder, programs)


def check_refusal(outcome: subprocess.CompletedProcess[str], *words: str) -> None:
    """Set-up stopped before installing anything, with one line that holds these words."""
    assert outcome.returncode == 2
    [line] = [line for line in outcome.stderr.splitlines() if line.startswith("GradSight")]
    for word in words:
        assert word in line


def test_no_python_is_said(machine: Machine) -> None:
    check_refusal(
        machine.run(".ci/setup", "python"), "needs Python 3.10", "no python3 on the PATH", "PYTHON="
    )


def test_an_old_python_is_named_with_its_version(machine: Machine) -> None:
    machine.install_python(version="3.8.2", too_old=1)
    check_refusal(machine.run(".ci/setup", "python"), "needs Python 3.10", "python3 is 3.8.2")


def test_a_newer_python_under_another_name_is_found(machine: Machine) -> None:
    machine.install_python(version="3.8.2", too_old=1)
    machine.install_python("python3.13", version="3.13.0")
    assert machine.run(".ci/setup", "python").returncode == 0


def test_a_chosen_python_that_is_not_there_is_said(machine: Machine) -> None:
    machine.install_python()
    check_refusal(machine.run(".ci/setup", "python", PYTHON="/absent/python"), "PYTHON=/absent/python")


def test_a_chosen_python_that_is_too_old_is_not_replaced_by_another(machine: Machine) -> None:
    machine.install_python()
    old = machine.install_python("python3.9", version="3.9.1", too_old=1)
    check_refusal(machine.run(".ci/setup", "python", PYTHON=str(old)), "is 3.9.1")


def test_a_python_that_cannot_make_environments_is_said(machine: Machine) -> None:
    machine.install_python(no_venv=1)
    check_refusal(machine.run(".ci/setup", "python"), "'venv' module is missing", "python3-venv")


def test_the_python_packages_are_installed_once(machine: Machine) -> None:
    machine.install_python()
    assert "Installing GradSight" in machine.run(".ci/setup", "python").stdout
    asked = machine.installations("pip.log")
    again = machine.run(".ci/setup", "python")
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "")
    assert machine.installations("pip.log") == asked


def test_changed_pins_are_installed(machine: Machine) -> None:
    machine.install_python()
    machine.run(".ci/setup", "python")
    asked = machine.installations("pip.log")
    with (machine.folder / "constraints.txt").open("a") as pins:
        pins.write("another-package==1.0\n")
    machine.run(".ci/setup", "python")
    assert machine.installations("pip.log") == 2 * asked


def test_a_failed_installation_shows_why_and_is_done_again(machine: Machine) -> None:
    machine.install_python()
    (machine.folder / "offline").touch()
    check_refusal(machine.run(".ci/setup", "python"), "this command failed", "pip install")
    (machine.folder / "offline").unlink()
    assert "Installing GradSight" in machine.run(".ci/setup", "python").stdout


def test_a_moved_folder_is_set_up_again(machine: Machine) -> None:
    machine.install_python()
    machine.run(".ci/setup", "python")
    moved = Machine(machine.folder.rename(machine.folder.with_name("moved")), machine.programs)
    assert "Installing GradSight" in moved.run(".ci/setup", "python").stdout


def test_another_chosen_python_gets_a_new_environment_and_keeps_it(machine: Machine) -> None:
    machine.install_python()
    machine.run(".ci/setup", "python")
    other = machine.install_python("python3.14", version="3.14.0")
    assert "Creating .venv" in machine.run("make", "setup-python", f"PYTHON={other}").stdout
    assert machine.run("make", "setup-python").stdout == ""


def test_no_node_is_said(machine: Machine) -> None:
    check_refusal(machine.run(".ci/setup", "node"), "needs Node 20", "there is no node", "NODE=")


def test_an_old_node_is_named_with_its_version(machine: Machine) -> None:
    machine.install_node(version="v18.19.0")
    check_refusal(machine.run(".ci/setup", "node"), "needs Node 20", "v18.19.0")


def test_a_program_that_is_no_node_is_said(machine: Machine) -> None:
    machine.install_node(version="hello")
    check_refusal(machine.run(".ci/setup", "node"), "needs Node 20", "hello")


def test_a_node_without_npm_is_said(machine: Machine) -> None:
    machine.install_node()
    (machine.programs / "npm").unlink()
    check_refusal(machine.run(".ci/setup", "node"), "needs npm")


def test_the_client_packages_are_installed_once(machine: Machine) -> None:
    machine.install_node()
    assert machine.run("make", "setup-node").returncode == 0
    assert machine.run("make", "setup-node").stdout == ""
    assert machine.installations("npm.log") == 1


def test_a_chosen_node_is_used(machine: Machine) -> None:
    chosen = machine.install_node("node24", version="v24.0.0")
    assert machine.run("make", "setup-node", NODE=str(chosen)).returncode == 0
    check_refusal(machine.run("make", "setup-node"), "there is no node")


def test_packing_needs_no_torch_and_no_tools_of_development(machine: Machine) -> None:
    machine.install_python()
    done = machine.run(".ci/setup", "packing")
    assert done.stdout.splitlines()[-1] == "build/packing/bin/python"
    asked = (machine.folder / "pip.log").read_text()
    assert "--editable ." in asked
    assert "[dev]" not in asked
    machine.run(".ci/setup", "packing")
    assert (machine.folder / "pip.log").read_text() == asked


def test_an_environment_of_windows_is_set_up_and_used_by_every_command(machine: Machine) -> None:
    machine.install_python(is_windows=True)
    assert "Installing GradSight" in machine.run("make", "setup-python").stdout
    asked = machine.installations("pip.log")
    assert machine.run("make", "setup-python").stdout == ""
    assert machine.installations("pip.log") == asked
    assert not (machine.folder / ".venv" / "bin").exists()
    assert machine.run(".ci/setup", "which", ".venv").stdout == ".venv/Scripts/python.exe\n"
    assert machine.run(".ci/setup", "packing").stdout.splitlines()[-1] == ".venv/Scripts/python.exe"
    for target in ("test-python", "demo"):
        done = machine.run("make", target)
        assert done.returncode == 0, done.stderr


def test_packing_on_windows_has_an_environment_of_its_own(machine: Machine) -> None:
    machine.install_python(is_windows=True)
    assert machine.run(".ci/setup", "packing").stdout.splitlines()[-1] == "build/packing/Scripts/python.exe"


def test_no_command_names_a_folder_that_only_some_systems_have() -> None:
    for name in ("Makefile", ".ci/setup", ".ci/run"):
        text = (ROOT / name).read_text("utf-8").replace('"$1/bin/python"', "")
        assert "bin/python" not in text, name


def test_packing_looks_for_node_before_anything_is_installed(machine: Machine) -> None:
    machine.install_python()
    done = machine.run("make", "vsix")
    assert done.returncode != 0
    assert "needs Node 20" in done.stderr
    assert machine.installations("pip.log") == 0


def test_make_stops_at_what_is_missing(machine: Machine) -> None:
    for target in ("demo", "test"):
        outcome = machine.run("make", target)
        assert outcome.returncode == 2
        assert "GradSight set-up: needs" in outcome.stderr


def test_continuous_integration_without_make_says_so(machine: Machine) -> None:
    (machine.programs / "make").unlink()
    check_refusal(machine.run("bash", ".ci/run"), "needs make")


REPORT = '<testsuites><testsuite><testcase name="works"/></testsuite></testsuites>'
MAKE = f"""#!/bin/sh
echo "$*" >>make.log
mkdir -p build/reports
case "$*" in
    '-k test') for name in client python; do echo '{REPORT}' >build/reports/$name.xml; done ;;
    test-facts) echo '{REPORT}' >build/reports/facts.xml ;;
    test-setups) echo '{REPORT}' >build/reports/setups.xml ;;
    test-vsix) echo '{REPORT}' >build/reports/packed.xml ;;
    'test-vscode PACKING=') echo '{REPORT}' >build/reports/vscode.xml ;;
esac
[ ! -e broken ]
"""


@pytest.fixture
def continuous(machine: Machine) -> Machine:
    """A machine on which everything is set up and every test passes."""
    (machine.programs / "make").unlink()
    machine.install("make", MAKE)
    shutil.copy(ROOT / ".ci" / "counts.py", machine.folder / ".ci")
    python = machine.folder / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    editor = machine.folder / ".ci" / "vscode"
    editor.write_text("#!/bin/sh\n[ ! -e closed ] || { echo 'no VS Code here' >&2; exit 2; }\n")
    editor.chmod(0o755)
    return machine


def test_continuous_integration_counts_all_suites(continuous: Machine) -> None:
    outcome = continuous.run("sh", ".ci/run")
    assert outcome.returncode == 0
    assert outcome.stdout.splitlines()[-1] == "total: 6 passed, 0 failed, 0 skipped"


def test_continuous_integration_fails_when_a_suite_fails(continuous: Machine) -> None:
    (continuous.folder / "broken").touch()
    assert continuous.run("sh", ".ci/run").returncode == 1
    made = (continuous.folder / "make.log").read_text().splitlines()
    assert made == [
        "-k test", "test-facts", "test-setups", "test-vsix", "lint typecheck", "release-check TARGETS=linux-x64", "test-vscode PACKING=",
    ]  # fmt: skip


def test_continuous_integration_says_when_there_is_no_editor(continuous: Machine) -> None:
    (continuous.folder / "closed").touch()
    outcome = continuous.run("sh", ".ci/run")
    assert outcome.returncode == 0
    assert "no VS Code here" in outcome.stderr
    assert "vscode: not run; the reason is above" in outcome.stdout
    assert outcome.stdout.splitlines()[-1] == "total: 5 passed, 0 failed, 0 skipped"
