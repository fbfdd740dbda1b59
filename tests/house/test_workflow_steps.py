"""Every shell step of a workflow is a make target that is run: here in a copy of the project, or by `.ci/run`.

In the copy the interpreters are the real ones; what would reach out of this machine is a stand-in that writes down what it
is asked for, and repositories are folders.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from tests.house.tree import ROOT, relative, tracked_files

pytestmark = pytest.mark.setups

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@dataclass(frozen=True)
class Project:
    """A copy of the project, with what it would call outside in a folder of stand-ins."""

    folder: Path
    outside: Path

    def make(self, *arguments: str) -> str:
        """What make prints; it must succeed."""
        done = subprocess.run(
            ["make", *arguments],
            cwd=self.folder,
            env={**os.environ, "PATH": f"{self.outside}{os.pathsep}{os.environ['PATH']}", "MAKEFLAGS": ""},
            capture_output=True,
            text=True,
            check=False,
            timeout=500,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def stand_in(self, name: str, *, answers: str = "") -> None:
        """A program that writes down what it is called with, and the secrets that it can see."""
        path = self.outside / name
        path.write_text(
            f'#!/bin/sh\n[ "$1" = --version ] && {{ echo {answers or "1.0"}; exit; }}\n'
            f'echo "{name} $* VSCE_PAT=$VSCE_PAT OVSX_PAT=$OVSX_PAT" >>{self.outside}/asked\n'
        )
        path.chmod(0o755)

    def asked(self) -> list[str]:
        """What was asked of the stand-ins."""
        path = self.outside / "asked"
        return path.read_text().splitlines() if path.exists() else []


@pytest.fixture
def project(tmp_path: Path) -> Project:
    folder, outside = tmp_path / "project", tmp_path / "outside"
    outside.mkdir()
    for path in tracked_files():
        target = folder / relative(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    wrapper(folder / ".venv" / "bin" / "python", folder)
    # As `.ci/setup` writes it when all is installed.
    stamp = "pwd; cksum pyproject.toml constraints.txt; .venv/bin/python -c 'import sys; print(sys.version, sys.base_prefix)'"
    (folder / ".venv" / ".stamp").write_bytes(
        subprocess.run(["sh", "-c", stamp], cwd=folder, check=True, capture_output=True).stdout
    )
    return Project(folder, outside)


def wrapper(path: Path, folder: Path) -> None:
    """This interpreter, for which the copy is the project."""
    path.parent.mkdir(parents=True)
    path.write_text(f'#!/bin/sh\nPYTHONPATH={folder}/server exec {sys.executable} "$@"\n')
    path.chmod(0o755)


def run_version(project: Project) -> None:
    changes = project.folder / "CHANGELOG.md"
    changes.write_text(
        changes.read_text("utf-8").replace("# Changes\n", "# Changes\n\n## 9.8.7\n\n- New.\n", 1), "utf-8"
    )
    project.make("release-version", "TAG=v9.8.7")
    assert '__version__ = "9.8.7"' in (project.folder / "server/gradsight/__init__.py").read_text("utf-8")
    assert '"version": "9.8.7"' in (project.folder / "package.json").read_text("utf-8")
    assert re.search(r"^## 9\.8\.7 \(\d{4}-\d\d-\d\d\)$", changes.read_text("utf-8"), re.MULTILINE)


def run_mirror(project: Project) -> None:
    origin, mirror = project.outside / "origin.git", project.outside / "mirror"
    for command in (["init", "-q", "--bare", str(origin)], ["clone", "-q", str(origin), str(mirror)]):
        subprocess.run(["git", *command], check=True, capture_output=True)
    project.make("-C", str(project.folder), "release-mirror", "TAG=v1.2.3", f"MIRROR={mirror}")
    shown = subprocess.run(
        ["git", "show", "v1.2.3:.pre-commit-hooks.yaml"],
        cwd=origin,
        check=True,
        capture_output=True,
        text=True,
    )
    assert [hook["additional_dependencies"] for hook in yaml.safe_load(shown.stdout)] == [
        ["gradsight==1.2.3"]
    ] * 2


def with_extensions(project: Project) -> list[str]:
    (project.folder / "build").mkdir(exist_ok=True)
    (project.folder / "node_modules").mkdir()
    names = [f"build/gradsight-{system}-1.2.3.vsix" for system in ("alpine-x64", "linux-x64", "win32-x64")]
    for name in names:
        (project.folder / name).write_bytes(b"")
    project.stand_in("node", answers="v20.0.0")
    project.stand_in("npm")
    project.stand_in("npx")
    return names


def run_marketplace(project: Project) -> None:
    names = with_extensions(project)
    os.environ["VSCE_PAT"] = "secret"
    try:
        project.make("publish-marketplace")
    finally:
        del os.environ["VSCE_PAT"]
    assert [line for line in project.asked() if line.startswith("node ")] == [
        f"node node_modules/@vscode/vsce/vsce publish --packagePath {name} VSCE_PAT=secret OVSX_PAT="
        for name in names
    ]


def run_openvsx(project: Project) -> None:
    names = with_extensions(project)
    os.environ["OVSX_PAT"] = "secret"
    try:
        project.make("publish-openvsx")
    finally:
        del os.environ["OVSX_PAT"]
    asked = [line for line in project.asked() if line.startswith("npx ")]
    assert [re.sub(r"ovsx@[\d.]+", "ovsx@", line) for line in asked] == [
        f"npx --yes ovsx@ publish {name} VSCE_PAT= OVSX_PAT=secret" for name in names
    ]


def run_site(project: Project) -> None:
    project.make("site")
    assert "watch" in (project.folder / "site" / "index.html").read_text("utf-8")
    assert any((project.folder / "site").rglob("watch*"))


def run_torch(project: Project) -> None:
    """With the torch that is here, and one small test in the place of many."""
    wrapper(project.folder / "build" / "torch-2.13.0" / "bin" / "python", project.folder)
    from gradsight_dev.other_torch import TESTS

    for name in TESTS:
        (project.folder / name).write_text(
            "import os\n\ndef test_the_other_torch_is_probed():\n"
            "    assert 'torch-2.13.0' in os.environ['GRADSIGHT_PROBED_PYTHON']\n"
        )
    said = project.make("test-torch", "TORCH=2.13.0")
    assert re.search(rf"^\| 2\.13\.0\S* \| [\d.]+ \| {len(TESTS)} passed", said, re.MULTILINE), said


def with_environment(project: Project, name: str) -> list[str]:
    """An environment with libraries in the place of one that would be filled from outside; what was asked of it comes back."""
    python, asked = project.folder / "build" / name / "bin" / "python", project.outside / f"{name}-asked"
    python.parent.mkdir(parents=True)
    python.write_text(
        f'#!/bin/sh\necho "$*" >>{asked}\n[ "$2" = pip ] && exit\nPYTHONPATH={project.folder}/server exec {sys.executable} "$@"\n'
    )
    python.chmod(0o755)
    project.make(f"test-{name}")
    return asked.read_text().splitlines()


def stub(project: Project, name: str) -> None:
    """A script that needs what is not here says only that it was called."""
    (project.folder / name).write_text(
        f"import sys\nopen({name + '.called'!r}, 'w').write(str(sys.argv[1:]))\n"
    )


def called(project: Project, name: str) -> str:
    return (project.folder / f"{name}.called").read_text()


def run_models(project: Project) -> None:
    scripts = [f"tests/models/{name}.py" for name in ("recorder", "callbacks", "from_config", "surface")]
    for script in scripts:
        stub(project, script)
    asked = with_environment(project, "models")
    # torch comes first, so that nothing else chooses it.
    assert [line.split()[-1] for line in asked[:2]] == ["torch==2.13.0", "tests/models/requirements.txt"]
    assert called(project, scripts[0]) == "['--check']"
    assert called(project, scripts[1]) == "[]"
    assert called(project, scripts[2]) == "['build/models/bin/python']"
    assert called(project, scripts[3]) == "['--check']"


def run_live(project: Project) -> None:
    stub(project, "tests/live/kernel.py")
    asked = with_environment(project, "live")
    assert [line.split()[-1] for line in asked[:2]] == ["torch==2.13.0", "ipykernel"]
    assert called(project, "tests/live/kernel.py") == "[]"


def run_nodes(project: Project) -> None:
    stub(project, "server/gradsight_dev/two_nodes.py")
    project.make("test-nodes")
    assert called(project, "server/gradsight_dev/two_nodes.py") == "[]"


RUN_HERE: dict[str, Callable[[Project], None]] = {
    "release-version": run_version,
    "release-mirror": run_mirror,
    "publish-marketplace": run_marketplace,
    "publish-openvsx": run_openvsx,
    "site": run_site,
    "test-torch": run_torch,
    "test-models": run_models,
    "test-live": run_live,
    "test-nodes": run_nodes,
}


@pytest.mark.parametrize("target", RUN_HERE)
def test_a_step_does_its_work(target: str, project: Project) -> None:
    RUN_HERE[target](project)


def run_by_ci() -> set[str]:
    """The targets that `.ci/run` runs."""
    commands = re.findall(r"^\s*make (.+?) \|\| ", (ROOT / ".ci" / "run").read_text("utf-8"), re.MULTILINE)
    return {word for command in commands for word in command.split() if not word.startswith("-")}


def jobs_of(name: str) -> dict[str, dict[str, object]]:
    content: dict[str, dict[str, dict[str, object]]] = yaml.safe_load(
        (ROOT / ".github" / "workflows" / name).read_text("utf-8")
    )
    return content["jobs"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_every_shell_step_is_run_by_a_test(path: Path) -> None:
    text = path.read_text("utf-8")
    commands = [
        re.sub(r"\$\{\{[^}]*\}\}", "_", each) for each in re.findall(r"^\s+run: (.+)$", text, re.MULTILINE)
    ]
    # A step of several lines would be more than a target.
    assert len(commands) == sum(
        "run" in step for job in yaml.safe_load(text)["jobs"].values() for step in job["steps"]
    )
    for command in commands:
        assert command.startswith("make "), command
        words = re.sub(r"-C \S+ ", "", command).split()[1:]
        targets = {word for word in words if "=" not in word}
        assert targets
        assert targets <= set(RUN_HERE) | run_by_ci(), command


def test_a_release_goes_to_every_place_that_users_install_from() -> None:
    jobs = jobs_of("release.yml")
    python = jobs["python"]
    assert python["permissions"] == {"id-token": "write"}
    assert "pypa/gh-action-pypi-publish" in str(python["steps"])
    assert "password" not in str(python)
    extension = str(jobs["extension"]["steps"])
    assert "make publish-marketplace" in extension
    assert "make publish-openvsx" in extension
    assert "release-mirror" in str(jobs["mirror"]["steps"])
    assert [jobs[name]["needs"] for name in ("python", "extension", "mirror")] == ["build", "build", "python"]
    pages = jobs_of("docs.yml")
    assert "make site" in str(pages["build"]["steps"])
    assert "actions/deploy-pages" in str(pages["publish"]["steps"])
