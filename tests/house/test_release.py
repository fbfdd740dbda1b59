"""The road to a release: workflows that call make, versions that come from tags, and a wheel that works alone."""

from __future__ import annotations

import datetime
import json
import re
import shutil
import subprocess
import zipfile
from pathlib import Path

import jsonschema
import pytest
import yaml
from packaging.utils import canonicalize_name

from gradsight_dev import licences, other_torch, package_vsix, release
from tests.cli.sarif_schema import stored_schema
from tests.house.tree import ROOT

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def steps_of(path: Path) -> list[dict[str, str]]:
    content = yaml.safe_load(path.read_text("utf-8"))
    return [step for job in content["jobs"].values() for step in job["steps"]]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_every_shell_step_is_a_make_target_that_exists(path: Path) -> None:
    commands = [step["run"] for step in steps_of(path) if "run" in step]
    assert commands
    for command in commands:
        plain = (
            re.sub(r"\$\{\{[^}]*\}\}", "v1.2.3", command)
            .replace("-C source ", "")
            .replace("MIRROR=../", "MIRROR=")
        )
        assert plain.startswith("make "), command
        arguments = [*plain.split()[1:], "NODE=true"]
        done = subprocess.run(
            ["make", "-n", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_fits_the_schema_of_its_host(path: Path) -> None:
    content = yaml.safe_load(path.read_text("utf-8"))
    # YAML reads the key `on` as a truth value.
    content["on"] = content.pop(True)
    schema = stored_schema("reusableWorkflowCallJob")
    jsonschema.validate(content, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**content, "jobs": {"one": {"steps": [{"runs": "make"}]}}}, schema)
    assert set(content) <= {"name", "on", "permissions", "concurrency", "jobs"}
    assert all("uses" in step or "run" in step for step in steps_of(path))
    assert all(re.search(r"@(v\d|release/)", step["uses"]) for step in steps_of(path) if "uses" in step)


def test_the_client_cannot_go_to_npm_by_mistake_and_goes_to_the_marketplaces() -> None:
    assert json.loads((ROOT / "package.json").read_text("utf-8"))["private"] is True
    publisher = ROOT / "node_modules" / "@vscode" / "vsce" / "out"
    if publisher.is_dir():
        sources = [publisher / name for name in ("package.js", "publish.js", "validation.js")]
        assert not [path for path in sources if ".private" in path.read_text("utf-8")]


def test_every_python_system_and_torch_is_in_the_matrix() -> None:
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "test.yml").read_text("utf-8"))["jobs"]
    assert jobs["test"]["strategy"]["matrix"]["python"] == ["3.10", "3.11", "3.12", "3.13", "3.14"]
    assert len(jobs["test"]["strategy"]["matrix"]["os"]) == 3
    torches = jobs["torch"]["strategy"]["matrix"]["torch"]
    assert len(torches) == 3
    assert all(other_torch.is_torch(each) for each in torches)


def test_the_newest_torch_is_asked_for_without_a_version() -> None:
    assert other_torch.requirements("newest") == ["torch", "numpy"]
    assert other_torch.requirements("2.2.2") == ["torch==2.2.2", "numpy<2"]
    assert not other_torch.is_torch("latest")


@pytest.mark.parametrize("tag", ["1.2.3", "v1.2", "release-1.2.3", "v1.2.3-beta"])
def test_what_is_no_tag_of_a_release_is_refused(tag: str) -> None:
    with pytest.raises(SystemExit, match="no tag of a release"):
        release.version_of(tag)


def test_a_tag_gives_every_file_its_version_and_the_changelog_the_day(tmp_path: Path) -> None:
    for name in (release.INIT, "package.json", "package-lock.json", "CHANGELOG.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    changes = tmp_path / "CHANGELOG.md"
    changes.write_text(
        changes.read_text("utf-8").replace("# Changes\n", "# Changes\n\n## 9.8.7\n\n- New.\n", 1), "utf-8"
    )
    release.stamp(tmp_path, release.version_of("v9.8.7"), datetime.date(2027, 1, 2))
    assert '__version__ = "9.8.7"' in (tmp_path / release.INIT).read_text("utf-8")
    assert json.loads((tmp_path / "package.json").read_text("utf-8"))["version"] == "9.8.7"
    assert (
        json.loads((tmp_path / "package-lock.json").read_text("utf-8"))["packages"][""]["version"] == "9.8.7"
    )
    assert "\n## 9.8.7 (2027-01-02)\n" in changes.read_text("utf-8")
    with pytest.raises(SystemExit, match=r"CHANGELOG\.md"):
        release.stamp(tmp_path, "9.9.9", datetime.date(2027, 1, 2))


@pytest.mark.setups
def test_the_wheel_and_the_source_are_complete_and_work_in_an_empty_environment(tmp_path: Path) -> None:
    wheel, archive = release.build(tmp_path / "built")
    assert list(release.metadata_problems(wheel)) == []
    release.try_archive(archive)
    assert not re.findall(r"\]\((?!https?:|#)", described(wheel)), (
        "links that lead nowhere on a package index"
    )
    assert "![A finding in VS Code" in described(wheel)
    environment = release.install(wheel, tmp_path)
    release.try_installed(environment, tmp_path)
    listed = subprocess.run(
        [
            str(environment.program("python")),
            "-m",
            "pip",
            "--disable-pip-version-check",
            "list",
            "--format=json",
        ],
        check=True,
        capture_output=True,
        text=True,
    )
    names = {canonicalize_name(each["name"]) for each in json.loads(listed.stdout)}
    wanted = {canonicalize_name(each.name) for each in release.needed("gradsight")}
    assert names - {"setuptools"} == wanted | {"gradsight", "pip"}


def described(wheel: Path) -> str:
    """The text that a package index shows."""
    with zipfile.ZipFile(wheel) as archive:
        name = next(each for each in archive.namelist() if each.endswith(".dist-info/METADATA"))
        return archive.read(name).decode("utf-8")


def test_an_extension_without_a_server_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "empty.vsix", "w") as archive:
        archive.writestr("extension/package.json", "{}")
    with pytest.raises(SystemExit, match="no client or no server"):
        release.try_extension(tmp_path / "empty.vsix", tmp_path / "unpacked")


def test_an_extension_that_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(release, "build", lambda folder: (tmp_path / "a.whl", tmp_path / "a.tar.gz"))
    for step in ("metadata_problems", "try_archive", "install", "try_installed", "try_extension"):
        monkeypatch.setattr(release, step, lambda *_: [])
    there = [tmp_path / package_vsix.package_name(name) for name in package_vsix.TARGETS]
    assert len(there) == 8
    release.check(there, None, list(package_vsix.TARGETS))
    with pytest.raises(SystemExit, match=r"there is no gradsight-win32-arm64-"):
        release.check(there[:-1], None, list(package_vsix.TARGETS))


def extension_of(path: Path, name: str) -> Path:
    manifest = (
        f'<Identity Language="en-US" Id="{name}" Version="1.0.0" Publisher="me" TargetPlatform="linux-x64"/>\n'
        '<Installation><InstallationTarget Id="Microsoft.VisualStudio.Code"/></Installation>\n'
    )
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("extension.vsixmanifest", manifest)
        archive.writestr("extension/package.json", '{"publisher": "me", "name": "one", "version": "1.0.0"}')
    return path


def test_an_extension_goes_where_an_editor_puts_it(tmp_path: Path) -> None:
    home = release.unpack_as_editor(extension_of(tmp_path / "a.vsix", "one"), tmp_path / "extensions")
    assert home == tmp_path / "extensions" / "me.one-1.0.0-linux-x64"
    assert (home / "package.json").is_file()
    with pytest.raises(SystemExit, match="manifests do not agree"):
        release.unpack_as_editor(extension_of(tmp_path / "b.vsix", "two"), tmp_path / "others")


def test_what_twine_refuses_is_refused(tmp_path: Path) -> None:
    def twine(words: str, status: int) -> Path:
        path = tmp_path / f"twine{status}"
        path.write_text(f"#!/bin/sh\necho \"$*\" >{tmp_path}/asked\necho '{words}'\nexit {status}\n")
        path.chmod(0o755)
        return path

    files = [tmp_path / "a.whl", tmp_path / "a.tar.gz"]
    release.check_by_twine(twine("PASSED PASSED", 0), files)
    assert (tmp_path / "asked").read_text().startswith("-m twine check --strict ")
    with pytest.raises(SystemExit, match="no long_description"):
        release.check_by_twine(twine("PASSED WARNING no long_description", 1), files)


def test_the_list_of_licences_is_fresh_and_complete() -> None:
    text = licences.page()
    assert licences.PAGE.read_text("utf-8") == text, "run `make licences`"
    assert "not said" not in text


def test_the_mirror_is_a_project_that_installs_this_version(tmp_path: Path) -> None:
    origin, folder = tmp_path / "origin.git", tmp_path / "mirror"
    for command in (["init", "-q", "--bare", str(origin)], ["clone", "-q", str(origin), str(folder)]):
        subprocess.run(["git", *command], check=True, capture_output=True)
    release.write_mirror(folder, "1.2.3")

    def pushed(name: str) -> str:
        shown = subprocess.run(
            ["git", "show", f"v1.2.3:{name}"], cwd=origin, check=True, capture_output=True, text=True
        )
        return shown.stdout

    hooks = yaml.safe_load(pushed(".pre-commit-hooks.yaml"))
    assert [hook["additional_dependencies"] for hook in hooks] == [["gradsight==1.2.3"]] * 2
    # pre-commit installs the repository itself first.
    project = pushed("pyproject.toml")
    assert 'dependencies = ["gradsight==1.2.3"]' in project
    assert "build-backend" in project
