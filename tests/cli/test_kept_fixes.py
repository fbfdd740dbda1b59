"""Fixes that were tried are kept with the results: a run after an edit elsewhere does not try them again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gradsight.cli import main
from gradsight.cli.kept_folder import read_sealed, write_sealed

FAILS = """import torch
from helper import factor

x = torch.ones(3, requires_grad=True)
y = x.exp()
y *= factor(3)
y.sum().backward()
"""
HELPER = "def factor(count):\n    return count + 1\n"
OTHER = "import torch\n\nx = torch.ones(3, requires_grad=True)\n(x * 2).sum().backward()\n"
FILES = {"a.py": FAILS, "b.py": OTHER, "helper.py": HELPER}
KEPT = ".gradsight_cache/fixes.json"


@pytest.fixture(autouse=True)
def project(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A project to work in."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GRADSIGHT_CACHE", raising=False)
    monkeypatch.setenv("GRADSIGHT_CACHE_DIR", str(tmp_path_factory.mktemp("own")))
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'p'\n")


@pytest.fixture(params=["json", "json-lines", "full"])
def tried(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Any:
    """Checks the project after some files were written: the findings whose fixes were tried for it.

    What is said must be what a run without kept results says.
    """
    from gradsight import fixing

    real = fixing.fixes_for
    seen: list[str] = []

    def fixes_for(source: Any, finding: Any, *rest: Any, **named: Any) -> Any:
        seen.append(finding.code)
        return real(source, finding, *rest, **named)

    def run(files: dict[str, str]) -> list[str]:
        for name, text in files.items():
            Path(name).write_text(text)
        seen.clear()
        capsys.readouterr()
        with monkeypatch.context() as patched:
            patched.setattr(fixing, "fixes_for", fixes_for)
            main(["check", "--jobs", "1", "--format", request.param])
        said = capsys.readouterr()
        main(["check", "--jobs", "1", "--format", request.param, "--no-cache"])
        assert capsys.readouterr() == said
        return list(seen)

    return run


def test_a_fix_that_was_tried_is_not_tried_again_after_an_edit_elsewhere(tried: Any) -> None:
    assert tried(FILES) == ["GS101"]
    assert tried({"b.py": OTHER + "print(x)\n"}) == []


def test_an_edit_of_the_file_or_of_what_it_imports_has_its_fixes_tried_again(tried: Any) -> None:
    tried(FILES)
    assert tried({"a.py": FAILS + "print(x)\n"}) == ["GS101"]
    assert tried({"helper.py": HELPER.replace("+ 1", "+ 2")}) == ["GS101"]


@pytest.mark.parametrize(
    "content", ["", "{", '{"engine": 1}', '{"engine": "ENGINE", "entries": {"PATH": 1}}']
)
def test_kept_fixes_that_are_damaged_are_ignored(tried: Any, content: str) -> None:
    from gradsight.cli.result_cache import engine_mark

    tried(FILES)
    text = content.replace("ENGINE", engine_mark()).replace("PATH", str(Path("a.py").resolve()))
    write_sealed(KEPT, text.encode())
    assert tried({"b.py": OTHER + "print(x)\n"}) == ["GS101"]


@pytest.mark.parametrize("damaged", [[1], ["a title"], {"title": 1}, 7])
def test_a_kept_fix_that_is_no_fix_is_ignored(tried: Any, damaged: Any) -> None:
    tried(FILES)
    kept = json.loads(read_sealed(KEPT) or b"")
    (entry,) = kept["entries"].values()
    entry["fixes"] = dict.fromkeys(entry["fixes"], damaged)
    write_sealed(KEPT, json.dumps(kept).encode())
    assert tried({"b.py": OTHER + "print(x)\n"}) == ["GS101"]


def test_what_is_kept_of_a_project_is_read_once_however_many_files_it_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from gradsight.cli import result_cache

    for number in range(5):
        Path(f"m{number}.py").write_text(OTHER)
    main(["check"])
    read: list[str] = []
    real = result_cache.read_entries
    monkeypatch.setattr(result_cache, "read_entries", lambda path: read.append(path) or real(path))
    Path("m0.py").write_text(OTHER + "print(x)\n")
    main(["check"])
    assert len(read) == 1


@pytest.fixture(params=[["--jobs", "1"], ["--jobs", "1", "--no-cache"]])
def analysed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Checks the project with some options: how often each text was analysed."""
    from gradsight import analysis

    real = analysis.Analyser._analyze
    seen: list[tuple[str, str]] = []

    def analyze(self: Any, stop: Any, source: Any, *rest: Any) -> Any:
        seen.append((Path(source.path).name, source.text))
        return real(self, stop, source, *rest)

    def run(*options: str) -> dict[str, int]:
        for name, text in FILES.items():
            Path(name).write_text(text)
        seen.clear()
        with monkeypatch.context() as patched:
            patched.setattr(analysis.Analyser, "_analyze", analyze)
            main(["check", *request.param, *options])
        return {name: seen.count((name, text)) for name, text in FILES.items() if "torch" in text}

    return run


@pytest.mark.parametrize("form", ["json", "json-lines", "full", "concise", "grouped", "sarif"])
def test_a_file_with_findings_is_not_analysed_a_second_time_for_its_fixes(analysed: Any, form: str) -> None:
    assert analysed("--format", form) == {"a.py": 1, "b.py": 1}


def test_fixes_that_nobody_is_told_of_are_not_tried(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from gradsight import fixing

    for name, text in FILES.items():
        Path(name).write_text(text)
    monkeypatch.setattr(fixing, "fixes_for", lambda *given, **named: pytest.fail("a fix was tried"))
    for options in (["--statistics"], ["--format", "junit"]):
        assert main(["check", "--jobs", "1", "--no-cache", *options]) == 1


def test_where_nobody_waits_for_fixes_none_are_tried_any_more() -> None:
    from gradsight.analysis import analyze
    from gradsight.cli.checking import FixWish
    from gradsight.model.source import Source

    findings = analyze(Source("a.py", FAILS.replace("from helper import factor", "factor = int"))).findings
    assert findings
    wish = FixWish(("error",), most=2)
    assert wish.among(findings, "a.py") == list(findings)
    assert wish.among(findings, "b.py") == []
    assert wish.seen == 1
    assert wish.among((*findings, *findings), "a.py") == []
    assert wish.among(findings, "a.py") == []
