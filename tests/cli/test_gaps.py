"""`--gaps`: what was not understood is shown, counted, and in the right file; a fault of ours costs one entry."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from gradsight import analysis, cli
from gradsight.cli import shell
from gradsight.model.report import Coverage, Gap, GapKind

CALLS = """import torch
from elsewhere import change

x = torch.ones(3, requires_grad=True)
y = change(x)
"""
FAILS = "import torch\n\nx = torch.ones(3, requires_grad=True)\ny = x.exp()\ny *= 3\ny.sum().backward()\n"


@pytest.fixture(autouse=True)
def project(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """An empty project that is the working folder."""
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GRADSIGHT_CACHE_DIR", str(tmp_path_factory.mktemp("own")))
    return tmp_path


@pytest.fixture
def check(capsys: pytest.CaptureFixture[str]) -> Any:
    """Writes files, checks the folder, and hands back exit code, output and complaints."""

    def run(files: dict[str, str], *options: str) -> tuple[int, str, str]:
        for name, text in files.items():
            Path(name).write_text(text)
        capsys.readouterr()
        code = cli.main(["check", *options, "."])
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


@pytest.fixture
def reporting(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Lets the engine report gaps and counts that it has no reason for."""

    def add(gaps: tuple[Gap, ...], coverage: Coverage | None = None) -> None:
        real = analysis.analyze

        def reported(*arguments: Any) -> Any:
            report = real(*arguments)
            return dataclasses.replace(report, gaps=gaps, coverage=coverage)

        monkeypatch.setattr(analysis, "analyze", reported)

    return add


def test_gaps_are_told_on_demand_with_place_reason_and_count(check: Any) -> None:
    assert "not known" not in check({"a.py": CALLS})[1]
    code, out, _ = check({}, "--gaps")
    assert code == shell.CLEAN
    assert "a.py: 0 functions, all analysed, 1 gap\n  line 5: not known: call of elsewhere.change\n" in out


def test_kept_results_keep_their_gaps(check: Any) -> None:
    first = check({"a.py": CALLS}, "--gaps", "--no-cache")
    check({})
    assert check({}, "--gaps") == first


def test_a_gap_in_an_imported_file_is_told_there(check: Any) -> None:
    helper = "import elsewhere\n\n\n\n\ndef change(x):\n    return elsewhere.call(x)\n"
    text = CALLS.replace("elsewhere", "helper")
    out = check({"a.py": text, "helper.py": helper}, "--gaps")[1]
    assert "helper.py, line 7: not known: call of elsewhere.call" in out


def test_json_has_a_field_for_gaps(check: Any, project: Path) -> None:
    told = json.loads(check({"a.py": CALLS}, "--gaps", "--format", "json")[1])
    (file,) = told["files"]
    assert told["findings"] == []
    assert file["filename"] == str(project / "a.py")
    (gap,) = file["gaps"]
    assert (gap["kind"], gap["row"], gap["count"]) == ("unknown", 5, 1)
    assert (file["functions"], file["not_analysed"]) == (0, 0)


def test_a_format_that_has_no_place_for_gaps_refuses_them(check: Any) -> None:
    code, _, err = check({"a.py": CALLS}, "--gaps", "--format", "junit")
    assert code == shell.FAILED
    assert "--gaps is written as text or json" in err


def test_functions_are_counted_where_the_engine_counts_them(check: Any, reporting: Any) -> None:
    reporting((Gap("too many paths", 3, 2, "budget"),), Coverage(31, 2))
    out = check({"a.py": CALLS}, "--gaps", "--no-cache")[1]
    assert (
        "a.py: 31 functions, 2 not analysed, 1 gap\n  line 3: limit of work: too many paths (2 times)\n"
        in out
    )


@pytest.mark.parametrize("kind", ["budget", "import", "unknown", "syntax", "internal", "detector"])
def test_every_kind_has_words(check: Any, reporting: Any, kind: GapKind) -> None:
    reporting((Gap("the reason", 3, kind=kind),))
    assert "the reason" in check({"a.py": CALLS}, "--gaps", "--no-cache")[1]


def test_a_fault_of_ours_costs_its_entry_and_is_told_with_how_to_report_it(
    check: Any, reporting: Any
) -> None:
    reporting((Gap("ValueError in step", 4, kind="internal"),))
    code, out, err = check({"a.py": FAILS})
    assert code == shell.FAILED
    assert "GS101" in out
    assert err.startswith("gradsight: internal error in a.py:4, a fault of gradsight: ValueError in step; ")
    assert "the rest of the file was checked (how to report it: https://" in err
    assert check({})[2] == err, "what came of a fault is not kept"
