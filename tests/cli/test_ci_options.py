"""What a team puts into continuous integration: formats, a baseline, changed lines, counts, kept results."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest

from gradsight.cli import main
from gradsight.cli.kept_folder import read_sealed, write_sealed
from tests.cli.sarif_schema import sarif_schema

ROOT = Path(__file__).parents[2]
FAILS = """import torch

x = torch.ones(3, requires_grad=True)
y = x.exp()
y *= 3
y.sum().backward()
"""
WARNS = """import torch

x = torch.ones(3, requires_grad=True)
x.pow(2).sum().backward()
kept = x.grad
x.pow(3).sum().backward()
print(kept)
"""
CLEAN = FAILS.replace("y *= 3", "y = y * 3")


@pytest.fixture(autouse=True)
def project(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """An empty project to work in."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GRADSIGHT_CACHE", raising=False)
    monkeypatch.setenv("GRADSIGHT_CACHE_DIR", str(tmp_path_factory.mktemp("own")))
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'p'\n")
    return tmp_path


@pytest.fixture
def check(capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs `gradsight check` on files; the exit code, the output and the complaints."""

    def run(files: dict[str, str], *options: str) -> tuple[int, str, str]:
        for name, text in files.items():
            Path(name).parent.mkdir(parents=True, exist_ok=True)
            Path(name).write_text(text)
        capsys.readouterr()
        code = main(["check", *options])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


# Formats.


def test_json_lines_are_one_finding_each(check: Any) -> None:
    code, out, _ = check({"a.py": FAILS, "b.py": WARNS}, "--format", "json-lines")
    findings = [json.loads(line) for line in out.splitlines()]
    assert code == 1
    assert [(Path(each["filename"]).name, each["code"]) for each in findings] == [
        ("a.py", "GS101"),
        ("b.py", "GS302"),
    ]
    assert check({"a.py": CLEAN, "b.py": ""}, "--format", "json-lines")[:2] == (0, "")


def test_github_gets_a_command_for_each_finding(check: Any) -> None:
    code, out, _ = check({"pkg/a, b.py": FAILS}, "--format", "github")
    [line] = out.splitlines()
    assert code == 1
    assert line.startswith(
        "::error title=GS101 inplace-on-saved,file=pkg/a%2C b.py,line=5,endLine=5,col=1,endColumn=7::"
    )
    assert "%0A" in line, "the trail follows on lines of its own"


def test_github_leaves_columns_out_of_a_range_over_several_lines(check: Any) -> None:
    _, out, _ = check({"a.py": FAILS.replace("y *= 3", "y.mul_(\n    3\n)")}, "--format", "github")
    assert ",line=5,endLine=7::" in out


def test_github_levels_follow_severity(check: Any) -> None:
    assert check({"a.py": WARNS}, "--format", "github")[1].startswith("::warning ")
    Path("pyproject.toml").write_text("[tool.gradsight]\nseverity = { GS302 = 'info' }\n")
    code, out, _ = check({}, "--format", "github")
    assert (code, out[:9]) == (0, "::notice ")


def validated(out: str) -> dict[str, Any]:
    log: dict[str, Any] = json.loads(out)
    jsonschema.Draft7Validator(sarif_schema()).validate(log)
    return log


def test_sarif_is_valid_and_tells_the_trail(check: Any) -> None:
    code, out, _ = check({"a.py": FAILS, "b.py": WARNS}, "--format", "sarif")
    run = validated(out)["runs"][0]
    first = run["results"][0]
    assert code == 1
    assert first["ruleId"] == run["tool"]["driver"]["rules"][first["ruleIndex"]]["id"] == "GS101"
    place = first["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "a.py", "uriBaseId": "SRCROOT"}
    assert place["region"] == {"startLine": 5, "startColumn": 1, "endLine": 5, "endColumn": 7}
    steps = first["codeFlows"][0]["threadFlows"][0]["locations"]
    assert [step["location"]["physicalLocation"]["region"]["startLine"] for step in steps] == [4, 6]


def test_sarif_of_nothing_is_valid(check: Any) -> None:
    code, out, _ = check({"a.py": CLEAN}, "--format", "sarif")
    assert code == 0
    assert validated(out)["runs"][0]["results"] == []


def test_sarif_of_a_notebook_names_the_cell(check: Any) -> None:
    shutil.copy(ROOT / "client" / "samples" / "notebook.ipynb", "n.ipynb")
    result = validated(check({}, "--format", "sarif")[1])["runs"][0]["results"][0]
    assert result["locations"][0]["logicalLocations"][0]["name"] == "cell 3"


def test_every_rule_makes_valid_sarif(check: Any) -> None:
    _, out, _ = check({}, str(ROOT / "fixtures" / "programs"), "--format", "sarif", "--hints", "--no-cache")
    log = validated(out)
    assert len(log["runs"][0]["tool"]["driver"]["rules"]) > 40


def test_a_probe_makes_valid_sarif(capfd: pytest.CaptureFixture[str]) -> None:
    Path("a.py").write_text(FAILS)
    assert main(["run", "--format", "sarif", "a.py"]) == 1
    validated(capfd.readouterr().out)


def test_a_fingerprint_stays_when_lines_move(check: Any) -> None:
    def fingerprints(text: str) -> list[str]:
        log = validated(check({"a.py": text}, "--format", "sarif")[1])
        return [next(iter(each["partialFingerprints"].values())) for each in log["runs"][0]["results"]]

    assert fingerprints(FAILS) == fingerprints("# a comment\n\n" + FAILS)
    assert fingerprints(FAILS) != fingerprints(FAILS.replace("y *= 3", "y *= 4"))


def test_junit_counts_alarms_as_failures(check: Any) -> None:
    Path("pyproject.toml").write_text("[tool.gradsight]\nseverity = { GS302 = 'info' }\n")
    code, out, _ = check({"a.py": FAILS, "b.py": WARNS}, "--format", "junit")
    suites = ElementTree.fromstring(out).findall("testsuite")
    assert code == 1
    assert [(suite.get("name"), suite.get("tests"), suite.get("failures")) for suite in suites] == [
        ("a.py", "1", "1"),
        ("b.py", "1", "0"),
    ]
    failure = suites[0].find("testcase/failure")
    assert failure is not None
    assert "`exp` saves its output" in (failure.text or "")


def test_junit_of_nothing_is_one_case_that_passed(check: Any) -> None:
    code, out, _ = check({"a.py": CLEAN}, "--format", "junit")
    [suite] = ElementTree.fromstring(out).findall("testsuite")
    assert (code, suite.get("tests"), suite.get("failures")) == (0, "1", "0")


def test_junit_survives_characters_that_xml_has_not(check: Any) -> None:
    text = FAILS.replace("y", "ÿ").replace("ÿ *= 3", "ÿ *= 3  # \x0c")
    ElementTree.fromstring(check({"a.py": text}, "--format", "junit")[1])


# The baseline.


def test_known_findings_do_not_fail_and_new_ones_do(check: Any) -> None:
    code, out, err = check({"a.py": FAILS}, "--baseline", "known.json", "--write-baseline")
    assert code == 0
    assert "1 finding taken as known: written to known.json" in err
    assert out == ""
    assert check({}, "--baseline", "known.json")[0] == 0
    code, out, err = check({"b.py": WARNS}, "--baseline", "known.json")
    assert code == 1
    assert "GS302" in out
    assert "GS101" not in out
    assert "1 finding known to known.json left out" in err


def test_a_baseline_survives_moved_lines_and_notices_changed_ones(check: Any) -> None:
    check({"a.py": FAILS}, "--baseline", "known.json", "--write-baseline")
    assert check({"a.py": "# new\n\n" + FAILS}, "--baseline", "known.json")[0] == 0
    assert check({"a.py": FAILS.replace("*= 3", "*= 5")}, "--baseline", "known.json")[0] == 1


def test_a_second_finding_on_an_equal_line_is_new(check: Any) -> None:
    check({"a.py": FAILS}, "--baseline", "known.json", "--write-baseline")
    twice = FAILS + FAILS.replace("import torch\n", "")
    assert check({"a.py": twice}, "--baseline", "known.json")[0] == 1


def test_entries_that_no_longer_apply_are_told(check: Any) -> None:
    check({"a.py": FAILS}, "--baseline", "known.json", "--write-baseline")
    assert "1 entry is no longer found" in check({"a.py": CLEAN}, "--baseline", "known.json")[2]
    check({"a.py": FAILS, "b.py": ""}, "--baseline", "known.json", "--write-baseline")
    assert "no longer found" not in check({}, "b.py", "--baseline", "known.json")[2]


def test_a_baseline_works_from_another_folder(check: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    check({"src/a.py": FAILS}, "--baseline", "known.json", "--write-baseline")
    monkeypatch.chdir("src")
    assert check({}, "a.py", "--baseline", "../known.json")[0] == 0


@pytest.mark.parametrize(
    "content", ["", "[]", '{"version": 9}', '{"version": 1}', '{"version": 1, "findings": [1]}']
)
def test_a_file_that_is_no_baseline_is_said(check: Any, content: str) -> None:
    code, _, err = check({"a.py": FAILS, "known.json": content}, "--baseline", "known.json")
    assert code == 2
    assert err.startswith("gradsight: known.json is not a baseline")


def test_a_missing_baseline_is_said(check: Any) -> None:
    code, _, err = check({"a.py": FAILS}, "--baseline", "known.json")
    assert (code, err) == (2, "gradsight: no such file: known.json (make it with --write-baseline)\n")
    assert check({}, "--write-baseline")[0] == 2


# Changed lines.


def git(*arguments: str) -> None:
    identity = {
        "GIT_AUTHOR_NAME": "a",
        "GIT_AUTHOR_EMAIL": "a@b",
        "GIT_COMMITTER_NAME": "a",
        "GIT_COMMITTER_EMAIL": "a@b",
    }
    subprocess.run(["git", *arguments], check=True, capture_output=True, env={**os.environ, **identity})


@pytest.fixture
def repository(project: Path) -> Path:
    """A repository with one file that has one old finding."""
    git("init", "-q")
    (project / "old.py").write_text(FAILS)
    git("add", ".")
    git("commit", "-q", "-m", "first")
    return project


def test_what_did_not_change_is_left_out(check: Any, repository: Path) -> None:
    assert check({}, "--diff", "HEAD")[0] == 0
    code, out, _ = check({"new.py": WARNS}, "--diff", "HEAD")
    assert code == 1
    assert "GS302" in out
    assert "GS101" not in out


def test_a_change_of_the_line_counts(check: Any, repository: Path) -> None:
    assert check({"old.py": FAILS.replace("*= 3", "*= 4")}, "--diff", "HEAD")[0] == 1


def test_a_change_of_a_line_that_the_finding_rests_on_counts(check: Any, repository: Path) -> None:
    assert check({"old.py": FAILS.replace("x.exp()", "x.tanh()")}, "--diff", "HEAD")[0] == 1


def test_a_change_elsewhere_in_the_file_does_not(check: Any, repository: Path) -> None:
    assert check({"old.py": "# a comment\n" + FAILS + "\nprint(x)\n"}, "--diff", "HEAD")[0] == 0


def test_committed_changes_count_against_an_older_commit(check: Any, repository: Path) -> None:
    Path("later é.py").write_text(WARNS)
    git("add", ".")
    git("commit", "-q", "-m", "second")
    assert check({}, "--diff", "HEAD")[0] == 0
    assert check({}, "--diff", "HEAD~1")[0] == 1


def test_a_commit_that_git_does_not_know_is_said(check: Any, repository: Path) -> None:
    for base in ("absent", "--output=x"):
        code, _, err = check({}, f"--diff={base}")
        assert code == 2
        assert err.startswith("gradsight: git cannot tell what changed")
    assert not Path("x").exists()


def test_a_folder_without_git_is_said(check: Any) -> None:
    code, _, err = check({"a.py": FAILS}, "--diff", "HEAD")
    assert code == 2
    assert "not a git repository" in err


# Counts.


def test_statistics_count_by_rule(check: Any) -> None:
    code, out, _ = check({"a.py": FAILS, "b.py": FAILS, "c.py": WARNS}, "--statistics")
    rows = [line.split()[:4] for line in out.splitlines()]
    assert code == 1
    assert rows == [
        ["2", "error", "GS101", "inplace-on-saved"],
        ["1", "warning", "GS302", "grad-alias"],
        ["3", "in", "3", "files"],
    ]


def test_statistics_for_machines(check: Any) -> None:
    table = json.loads(check({"a.py": FAILS}, "--statistics", "--format", "json")[1])
    assert table == [{"code": "GS101", "name": "inplace-on-saved", "severity": "error", "count": 1}]


# Kept results.


def analyses(check: Any, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], *options: str) -> list[str]:
    """The files that a run analyses; what it says must be what a run without kept results says."""
    from gradsight import analysis

    seen: list[str] = []
    real = analysis.analyze
    monkeypatch.setattr(
        analysis, "analyze", lambda source, *rest: seen.append(Path(source.path).name) or real(source, *rest)
    )
    said = check(files, "--jobs", "1", "--format", "json", *options)
    monkeypatch.setattr(analysis, "analyze", real)
    assert said == check({}, "--jobs", "1", "--format", "json", "--no-cache", *options)
    return sorted(seen)


def test_what_did_not_change_is_not_analysed_again(check: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"a.py": FAILS, "b.py": WARNS}
    assert analyses(check, monkeypatch, files) == ["a.py", "b.py"]
    assert analyses(check, monkeypatch, {}) == []
    assert analyses(check, monkeypatch, {"a.py": CLEAN}) == ["a.py"]


def test_other_settings_are_another_question(check: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    analyses(check, monkeypatch, {"a.py": FAILS})
    assert analyses(check, monkeypatch, {}, "--ignore", "GS101") == ["a.py"]


HELPER = "def scale(t):\n    t *= 3\n    return t\n"
IMPORTS = "import torch\nfrom helper import scale\nx = torch.ones(3, requires_grad=True)\nscale(x.exp()).sum().backward()\n"


def test_a_change_in_an_imported_file_is_noticed(check: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert analyses(check, monkeypatch, {"a.py": IMPORTS, "helper.py": HELPER}) == ["a.py"]
    assert analyses(check, monkeypatch, {}) == []
    assert analyses(check, monkeypatch, {"helper.py": HELPER.replace("t *= 3", "t = t * 3")}) == ["a.py"]


def test_an_imported_file_that_appears_is_noticed(check: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert analyses(check, monkeypatch, {"a.py": IMPORTS}) == ["a.py"]
    assert analyses(check, monkeypatch, {"helper.py": HELPER}) == ["a.py"]
    Path("helper.py").unlink()
    assert analyses(check, monkeypatch, {}) == ["a.py"]


def test_a_file_that_is_deleted_is_forgotten(check: Any) -> None:
    check({"a.py": FAILS, "b.py": WARNS})
    Path("a.py").unlink()
    check({"b.py": WARNS + "\n"})
    kept = json.loads(read_sealed(".gradsight_cache/check.json") or b"")
    assert [Path(path).name for path in kept["entries"]] == ["b.py"]


@pytest.mark.parametrize(
    "content",
    ["", "[]", "{", '{"engine": 1}', "\x00", '{"engine": "ENGINE", "entries": {"PATH": {"text": 1}}}'],
)
def test_a_corrupt_cache_is_ignored(check: Any, monkeypatch: pytest.MonkeyPatch, content: str) -> None:
    from gradsight.cli.result_cache import engine_mark

    check({"a.py": FAILS})
    text = content.replace("ENGINE", engine_mark()).replace("PATH", str(Path("a.py").resolve()))
    write_sealed(".gradsight_cache/check.json", text.encode())
    assert analyses(check, monkeypatch, {}) == ["a.py"]
    assert analyses(check, monkeypatch, {}) == []


def test_a_cache_with_damaged_findings_is_ignored(check: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    check({"a.py": FAILS})
    path = Path(".gradsight_cache/check.json")
    kept = json.loads(read_sealed(str(path)) or b"")
    next(iter(kept["entries"].values()))["findings"] = [{"about": ["GS101"]}]
    write_sealed(str(path), json.dumps(kept).encode())
    assert analyses(check, monkeypatch, {}) == ["a.py"]


def test_a_folder_that_cannot_be_written_is_no_problem(check: Any) -> None:
    Path(".gradsight_cache").write_text("a file where the folder should be")
    assert check({"a.py": FAILS})[0] == 1


def test_deleting_the_cache_changes_nothing(check: Any) -> None:
    before = check({"a.py": FAILS})
    shutil.rmtree(".gradsight_cache")
    assert check({}) == before


def test_another_engine_starts_anew(check: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from gradsight.cli import result_cache

    check({"a.py": FAILS})
    monkeypatch.setattr(result_cache, "_engine_mark", ["another"])
    assert analyses(check, monkeypatch, {}) == ["a.py"]


def test_other_facts_give_other_results(check: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from gradsight.cli import result_cache

    check({"a.py": FAILS})
    assert analyses(check, monkeypatch, {}) == []
    monkeypatch.setattr(result_cache, "facts_mark", lambda file: "facts of another torch")
    assert analyses(check, monkeypatch, {}) == ["a.py"]


def test_nothing_is_kept_outside_of_projects(check: Any) -> None:
    Path("pyproject.toml").unlink()
    check({"a.py": FAILS})
    assert not Path(".gradsight_cache").exists()


def test_the_cache_can_be_kept_elsewhere(check: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADSIGHT_CACHE", "elsewhere")
    check({"a.py": FAILS})
    assert list(Path("elsewhere").rglob("check.json"))
    assert not Path(".gradsight_cache").exists()


def test_the_cache_is_not_committed_by_accident(check: Any) -> None:
    check({"a.py": FAILS})
    assert Path(".gradsight_cache/.gitignore").read_text() == "*\n"


def test_a_second_run_over_an_unchanged_tree_takes_a_tenth_of_the_time(project: Path) -> None:
    shutil.copytree(ROOT / "fixtures" / "programs", project / "programs")

    def seconds() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            [sys.executable, "-m", "gradsight", "check", "programs"], capture_output=True, check=False
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    cold = seconds()
    warm = min(seconds() for _ in range(3))
    assert cold >= 10 * warm, f"{cold:.2f} s cold, {warm:.2f} s warm"
