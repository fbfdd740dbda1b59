"""`gradsight check`: what it says, in which form, about which files, and how it ends."""

from __future__ import annotations

import gc
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gradsight import cli
from gradsight.cli import checking, shell
from gradsight.interp.paths.assembly import Machine
from gradsight.model.settings import Settings

FAILS = """\
import torch

x = torch.ones(3, requires_grad=True)
y = x.exp()
y *= 2
y.sum().backward()
"""
SAFE = "import torch\n\nx = torch.ones(3, requires_grad=True)\n(x * 2).sum().backward()\n"


@pytest.fixture(autouse=True)
def project(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """An empty project that is the working folder."""
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GRADSIGHT_STRICT", "1")
    monkeypatch.setenv("GRADSIGHT_CACHE_DIR", str(tmp_path_factory.mktemp("own")))
    return tmp_path


def check(
    files: dict[str, str | bytes], *arguments: str, code: int | None = None, paths: str = "."
) -> list[dict[str, Any]]:
    """Write the files, check the folder, compare the exit code, and hand back the JSON findings."""
    for name, content in files.items():
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    out, sys.stdout = sys.stdout, io.StringIO()
    try:
        ended = cli.main(["check", "--format", "json", *arguments, *paths.split()])
        said = sys.stdout.getvalue()
    finally:
        sys.stdout = out
    if code is not None:
        assert ended == code
    findings: list[dict[str, Any]] = json.loads(said) if said else []
    return findings


def places(findings: list[dict[str, Any]]) -> list[tuple[str, str, int]]:
    """File name, code and row of each finding."""
    return [(os.path.basename(f["filename"]), f["code"], f["location"]["row"]) for f in findings]


def test_a_failing_program_is_found_on_its_line() -> None:
    assert places(check({"train.py": FAILS}, code=shell.FINDINGS)) == [("train.py", "GS101", 5)]


def test_a_safe_program_is_clean() -> None:
    assert check({"train.py": SAFE}, code=shell.CLEAN) == []


def test_json_has_the_promised_fields(project: Path) -> None:
    (finding,) = check({"train.py": FAILS})
    assert list(finding) == [
        "code", "name", "message", "severity", "certainty", "filename",
        "location", "end_location", "related", "fix", "url",
    ]  # fmt: skip
    assert finding["name"] == "inplace-on-saved"
    assert finding["severity"] == "error"
    assert finding["certainty"] == "certain"
    assert finding["filename"] == str(project / "train.py")
    assert finding["location"] == {"row": 5, "column": 1}
    assert finding["end_location"] == {"row": 5, "column": 7}
    assert set(finding["fix"]) == {"message", "applicability", "edits"}
    assert finding["url"].endswith("/inplace-on-saved.md")
    roles = {step["role"]: step for step in finding["related"]}
    assert roles["saved"]["location"] == {"row": 4, "column": 5}
    assert set(roles["saved"]) == {"role", "message", "filename", "location", "end_location"}


def test_text_shows_the_excerpt_and_the_trail(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "train.py").write_text(FAILS)
    assert cli.main(["check", "train.py"]) == shell.FINDINGS
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("train.py:5:1: error GS101 [*] `y *= 2` overwrites")
    assert said[1] == "  4 | y = x.exp()"
    assert said[2].startswith("    |     ------- `exp` saves")
    assert said[3] == "  5 | y *= 2"
    assert said[4] == "    | ^^^^^^"
    assert said[6].startswith("    | ------------------ this `backward()` needs")
    assert said[-1] == "1 error in 1 file with torch, 1 fixable with `gradsight fix`"
    assert not any("\x1b" in line for line in said)


def test_marks_stand_below_wide_characters_and_tabs(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = FAILS.replace("y *= 2", 'if True:\n\tname = "漢🔥"; y *= 2')
    (project / "train.py").write_text(text)
    cli.main(["check", "train.py"])
    said = capsys.readouterr().out.splitlines()
    line = next(index for index, text in enumerate(said) if "漢" in text)
    assert said[line] == '  6 |     name = "漢🔥"; y *= 2'
    assert said[line + 1] == "    | " + " " * 19 + "^^^^^^"


def test_a_long_line_is_shown_in_part(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = FAILS.replace("y *= 2", f"junk = '{'a' * 5_000}'; y *= 2; more = '{'b' * 5_000}'")
    (project / "train.py").write_text(text)
    cli.main(["check", "train.py"])
    said = capsys.readouterr().out.splitlines()
    line = next(index for index, text in enumerate(said) if "; y *= 2" in text)
    assert len(said[line]) < 200
    assert said[line].index("y *= 2") == said[line + 1].index("^^^^^^")


def test_control_characters_never_reach_the_terminal(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "train.py").write_text(FAILS.replace("y *= 2", "y *= 2  # \x1b[31m red \x07"))
    cli.main(["check", "train.py"])
    said = capsys.readouterr().out
    assert "\x1b" not in said
    assert "\x07" not in said


def test_colours_are_used_when_asked_for(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "train.py").write_text(FAILS)
    cli.main(["check", "--color", "always", "train.py"])
    assert "\x1b[" in capsys.readouterr().out


def test_hints_are_shown_only_when_asked_for() -> None:
    table = '[tool.gradsight.severity]\nGS101 = "hint"\n'
    assert check({"train.py": FAILS, "pyproject.toml": table}, code=shell.CLEAN) == []
    assert places(check({}, "--hints", code=shell.CLEAN)) == [("train.py", "GS101", 5)]
    assert len(check({"pyproject.toml": f"[tool.gradsight]\nhints = true\n{table}"})) == 1


def test_select_takes_a_prefix_and_ignore_a_name() -> None:
    assert check({"train.py": FAILS}, "--select", "GS2,GS3", code=shell.CLEAN) == []
    assert check({}, "--ignore", "inplace-on-saved", code=shell.CLEAN) == []
    assert len(check({}, "--select", "gs101", code=shell.FINDINGS)) == 1


def test_an_unknown_code_is_a_wrong_call(capsys: pytest.CaptureFixture[str]) -> None:
    check({"train.py": FAILS}, "--select", "GS999", code=shell.FAILED)
    assert "no rule has the code or name 'GS999'" in capsys.readouterr().err


@pytest.mark.parametrize("comment", ["# gradsight: ignore[GS101]", "# gradsight: ignore", "# noqa: GS101"])
def test_a_comment_silences_its_line(comment: str) -> None:
    program = FAILS.replace("y *= 2", f"y *= 2  {comment}")
    assert check({"train.py": program}, code=shell.CLEAN) == []


def test_a_comment_that_silences_nothing_is_told() -> None:
    program = SAFE + "y = x * 2  # gradsight: ignore[GS101]\n"
    assert places(check({"train.py": program}, code=shell.CLEAN)) == [("train.py", "GS001", 5)]


def test_pyproject_chooses_the_rules() -> None:
    files: dict[str, str | bytes] = {
        "train.py": FAILS,
        "pyproject.toml": '[tool.gradsight]\nignore = ["GS1"]\n',
    }
    assert check(files, code=shell.CLEAN) == []
    assert len(check({}, "--ignore", "GS2", code=shell.FINDINGS)) == 1


def test_pyproject_changes_a_severity() -> None:
    files: dict[str, str | bytes] = {
        "train.py": FAILS,
        "pyproject.toml": '[tool.gradsight.severity]\nGS1 = "info"\n',
    }
    (finding,) = check(files, code=shell.CLEAN)
    assert finding["severity"] == "info"


def test_bad_settings_are_told_once_and_the_check_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    table = '[tool.gradsight]\nselekt = ["GS1"]\nhints = "yes"\n'
    found = check(
        {"a/train.py": FAILS, "b/train.py": FAILS, "pyproject.toml": table}, code=shell.FAILED, paths="a b"
    )
    said = capsys.readouterr().err
    assert len(found) == 2
    assert said.count("unknown option selekt: did you mean select?") == 1
    assert said.count("hints: true or false is expected") == 1


def test_a_pyproject_that_is_no_toml_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    check({"train.py": FAILS, "pyproject.toml": "[tool.gradsight\n"}, code=shell.FAILED)
    assert "not valid TOML" in capsys.readouterr().err


def test_excluded_and_usual_and_ignored_folders_are_left_out() -> None:
    files: dict[str, str | bytes] = {
        "pyproject.toml": '[tool.gradsight]\nexclude = ["old", "gen_*.py"]\n',
        ".gitignore": "scratch/\n",
        **{
            f"{folder}/train.py": FAILS
            for folder in ("old", "scratch", ".venv", "build", "node_modules", "src")
        },
        "src/gen_net.py": FAILS,
    }
    found = check(files)
    assert [os.path.relpath(f["filename"]) for f in found] == [os.path.join("src", "train.py")]


def test_a_named_file_is_checked_wherever_it_lies() -> None:
    assert len(check({"build/train.py": FAILS}, paths="build/train.py")) == 1
    assert len(check({".gitignore": "build/\n"}, paths="build")) == 1


def test_a_file_without_torch_is_not_read_as_python() -> None:
    assert check({"broken.py": "def ("}, code=shell.CLEAN) == []


def test_the_model_in_another_file_is_known() -> None:
    files: dict[str, str | bytes] = {
        "net.py": "import torch\n\n\ndef scale(values):\n    values.mul_(2)\n    return values\n",
        "train.py": "import torch\nfrom net import scale\n\nx = torch.ones(3, requires_grad=True)\nscale(x).sum().backward()\n",
    }
    assert places(check(files, paths="train.py")) == [("net.py", "GS102", 5)]
    assert places(check({})) == [("net.py", "GS102", 5)]


def test_a_comment_in_the_imported_file_is_honoured_and_used() -> None:
    files: dict[str, str | bytes] = {
        "net.py": "import torch\n\n\ndef scale(values):\n    values.mul_(2)  # gradsight: ignore[GS102]\n    return values\n",
        "train.py": "import torch\nfrom net import scale\n\nx = torch.ones(3, requires_grad=True)\nscale(x).sum().backward()\n",
    }
    assert check(files, code=shell.CLEAN) == []


def test_a_comment_for_a_rule_that_is_switched_off_is_not_called_unused() -> None:
    files: dict[str, str | bytes] = {
        "train.py": SAFE.replace("(x * 2)", "(x * 3)").rstrip("\n") + "  # gradsight: ignore[GS101]\n"
    }
    assert places(check(files, code=shell.CLEAN)) == [("train.py", "GS001", 4)]
    assert check(files, "--ignore", "GS101", code=shell.CLEAN) == []
    assert check(files, "--select", "GS2", code=shell.CLEAN) == []


def test_a_broken_file_is_told_and_the_rest_of_it_checked() -> None:
    found = check({"train.py": FAILS + "def (\n"}, code=shell.FINDINGS)
    assert places(found) == [("train.py", "GS101", 5), ("train.py", "GS000", 7)]
    assert found[1]["severity"] == "error"
    check({"train.py": "import torch\ndef (\n"}, code=shell.FINDINGS)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"import torch\xff\xfe", "is not utf-8 text (byte 12)"),
        (b"torch\0\xff\xfe", "is not a text file"),
        (b"# coding: klingon\nimport torch\n", "declares the encoding klingon"),
    ],
)
def test_what_cannot_be_read_is_told(content: bytes, reason: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = check({"odd.py": content, "train.py": FAILS}, code=shell.FINDINGS)
    assert places(found) == [("train.py", "GS101", 5)]
    assert f"gradsight: odd.py: {reason}" in capsys.readouterr().err
    check({}, code=shell.FAILED, paths="odd.py")


def test_null_bytes_are_a_clean_message() -> None:
    assert places(check({"odd.py": b"import torch\n\0\n"}, code=shell.FINDINGS)) == [("odd.py", "GS000", 2)]


def test_declared_encodings_and_byte_order_marks_are_honoured() -> None:
    latin = ("# -*- coding: latin-1 -*-\n" + FAILS + "# é\n").encode("latin-1")
    found = check({"latin.py": latin, "marked.py": b"\xef\xbb\xbf" + FAILS.encode()})
    assert places(found) == [("latin.py", "GS101", 6), ("marked.py", "GS101", 5)]


def test_windows_line_ends_keep_their_rows() -> None:
    assert places(check({"train.py": FAILS.replace("\n", "\r\n")})) == [("train.py", "GS101", 5)]


def test_a_missing_path_is_a_wrong_call_and_the_others_are_checked(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert len(check({"train.py": FAILS}, code=shell.FAILED, paths="nowhere train.py")) == 1
    assert "no such file or folder: nowhere" in capsys.readouterr().err


def test_standard_input_is_checked_under_the_given_name(project: Path) -> None:
    (project / "pyproject.toml").write_text('[tool.gradsight]\nignore = ["GS102"]\n')
    outcome = piped("-", "--stdin-filename", "nets/train.py", "--format", "json", stdin=FAILS)
    (finding,) = json.loads(outcome.stdout)
    assert outcome.returncode == shell.FINDINGS
    assert finding["filename"] == str(project / "nets" / "train.py")
    assert piped("-", stdin=FAILS).stdout.startswith("<stdin>:5:1: error GS101")


def test_many_processes_say_what_one_says(project: Path) -> None:
    filler = "".join(f"value_{number} = {number}\n" for number in range(4_000))
    files: dict[str, str | bytes] = {f"part_{number}.py": FAILS + filler for number in range(6)}
    alone = check(files, "--jobs", "1")
    assert len(alone) == 6
    assert check({}, "--jobs", "3", "--no-cache") == alone


def test_a_process_that_dies_costs_one_file_only() -> None:
    from gradsight.cli.pool import WorkerDied, work_through

    results = dict(work_through(die_on_three, list(range(8)), 2))
    assert isinstance(results.pop(3), WorkerDied)
    assert results == {number: number * 10 for number in (0, 1, 2, 4, 5, 6, 7)}


def test_processes_end_with_the_one_that_started_them() -> None:
    code = (
        "import os, sys, time\n"
        "from gradsight.cli.pool import work_through\n"
        "def work(number):\n"
        # One write for a line: what two processes print at the same time must not mix.
        "    os.write(1, b'%d\\n' % os.getpid())\n"
        "    time.sleep(0.2)\n"
        "for _ in work_through(work, range(1_000), 2): pass\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert parent.stdout
    workers: set[int] = set()
    while len(workers) < 2:
        workers.add(int(parent.stdout.readline()))
    parent.kill()
    parent.wait()
    # The end of the output is the end of the last process that could write to it.
    parent.stdout.read()


def die_on_three(number: int) -> int:
    """Work that ends its process at the third piece."""
    if number == 3:
        os._exit(7)
    return number * 10


def test_a_fault_of_ours_is_told_and_the_other_files_are_checked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from gradsight import analysis

    real = analysis.explore_module

    def failing(program: Any, source: Any, *rest: Any) -> Any:
        if source.path.endswith("bad.py"):
            raise ZeroDivisionError("of ours")
        return real(program, source, *rest)

    monkeypatch.delenv("GRADSIGHT_STRICT")
    monkeypatch.setattr(analysis, "explore_module", failing)
    found = check({"bad.py": FAILS, "train.py": FAILS}, code=shell.FAILED)
    assert places(found) == [("train.py", "GS101", 5)]
    assert "internal error in bad.py" in capsys.readouterr().err


def test_a_run_without_torch_does_not_load_the_engine() -> None:
    code = (
        "import sys\nfrom gradsight.cli import main\nmain(['check', '.'])\n"
        "print([name for name in ('gradsight.analysis', 'rich', 'libcst', 'pygls', 'torch') if name in sys.modules])"
    )
    Path("plain.py").write_text("print('hello')\n")
    outcome = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert outcome.stdout.splitlines()[-1] == "[]"


def test_progress_is_for_terminals_only() -> None:
    from gradsight.cli.progress import CheckProgress

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    pipe, terminal = io.StringIO(), Terminal()
    for out in (pipe, terminal):
        with CheckProgress(2, out) as progress:
            progress.next_time = 0
            progress.step()
    assert pipe.getvalue() == ""
    assert "checking [==========          ] 1 of 2 files" in terminal.getvalue()
    assert terminal.getvalue().endswith("\r\x1b[K")


def piped(*arguments: str, stdin: str) -> subprocess.CompletedProcess[str]:
    """`gradsight check` as a process of its own that reads this."""
    return subprocess.run(
        [sys.executable, "-m", "gradsight", "check", *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
    )


def test_garbage_of_the_files_before_does_not_pile_up(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def machines_alive(worth: int) -> int:
        monkeypatch.setattr(checking, "YOUNG_WORTH_COLLECTING", worth)
        gc.collect()
        gc.disable()
        try:
            checker = checking.Checker(tasks)
            for number in range(len(tasks)):
                checker(number)
            return sum(isinstance(each, Machine) for each in gc.get_objects())
        finally:
            gc.enable()

    paths = [project / f"part{number}.py" for number in range(8)]
    for path in paths:
        path.write_text(FAILS)
    tasks = tuple(checking.Task(str(path), str(project), Settings(), len(FAILS)) for path in paths)
    assert machines_alive(worth=0) < machines_alive(worth=10**9)


def test_processes_share_what_may_be_left_uncollected(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    collected: list[int] = []
    monkeypatch.setattr(checking.gc, "isenabled", lambda: False)
    monkeypatch.setattr(checking.gc, "collect", collected.append)
    task = checking.Task(str(project / "none.py"), str(project), Settings(), checking.LEFT_UNCOLLECTED // 4)
    for processes, times in ((0, 4), (1, 0), (2, 1), (8, 4)):
        collected.clear()
        checker = checking.Checker((task,) * 4, processes=processes)
        for number in range(4):
            checker(number)
        assert collected.count(0) == times


def test_modules_that_were_imported_are_forgotten_once_there_are_too_many(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def checked(most: int) -> tuple[list[tuple[str, ...]], int]:
        """The findings of each file, and the most that was known of modules behind one of them."""
        monkeypatch.setattr(checking, "MOST_KNOWN", most)
        monkeypatch.setattr(checking, "LEAST_KNOWN", most)
        checker, known = checking.Checker(tasks, processes=2), [0]
        found = []
        for number in range(len(tasks)):
            found.append(tuple(finding.message for finding in checker(number).findings))
            known.append(sum(modules.length() for modules in checker.modules.values()))
        return found, max(known)

    text = FAILS.replace("y *= 2", "scale(y)")
    for number in range(6):
        part = f"from common import FACTOR\n\n\ndef scale(value):\n    value *= FACTOR + {number}\n"
        (project / f"part{number}.py").write_text(part)
        (project / f"uses{number}.py").write_text(f"from part{number} import scale\n{text}")
    (project / "common.py").write_text("FACTOR = 2\n")
    paths = [project / f"uses{number}.py" for number in range(6)]
    tasks = tuple(checking.Task(str(path), str(project), Settings(), len(text)) for path in paths)
    everything, all_parts = checked(10**9)
    assert all(len(messages) == 1 for messages in everything)
    assert checked(2 * len(part)) == (everything, pytest.approx(2 * len(part), abs=len(part)))
    assert all_parts > 4 * len(part)
