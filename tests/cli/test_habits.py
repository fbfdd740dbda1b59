"""What whoever knows ruff's command line expects of this one: formats, marks, files, exit codes, comments."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gradsight.cli import main, report_text, shell, watching
from gradsight.session import finding_text

BROKEN = """\
import torch

x = torch.ones(3, requires_grad=True)
y = x.exp()
y *= 2
y.sum().backward()
"""
FINE = "import torch\n\nx = torch.ones(3)\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken.py").write_text(BROKEN)
    (tmp_path / "fine.py").write_text(FINE)
    return tmp_path


def check(capsys: pytest.CaptureFixture[str], code: int, *words: str) -> str:
    """What a call says, when it ends with this exit code."""
    assert main(["check", "--no-cache", *words]) == code
    return capsys.readouterr().out


def test_a_finding_with_a_safe_fix_is_marked_and_counted(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = check(capsys, 1, "--output-format", "concise")
    assert "broken.py:5:1: error GS101 [*] `y *= 2`" in said
    assert "1 fixable with `gradsight fix`" in said


def test_a_finding_with_an_unsafe_fix_is_counted_too(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    unsafe = "import torch\n\nw = torch.ones(3, requires_grad=True)\n(w * w).backward()\n"
    (folder / "fine.py").write_text(unsafe)
    said = check(capsys, 1, "fine.py", "--output-format", "concise")
    assert "[*]" not in said
    assert said.endswith("1 error in 1 file with torch, 1 fixable with `gradsight fix --unsafe`\n")
    said = check(capsys, 1, "--output-format", "concise")
    assert said.endswith(", 1 fixable with `gradsight fix`, 1 more with `--unsafe`\n")
    assert main(["fix", "--unsafe-fixes", "fine.py"]) == 0


def test_where_nobody_waits_for_the_fixes_it_is_said_how_to_see_them(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report_text, "MOST_TRIED", 0)
    said = check(capsys, 1, "--output-format", "concise")
    assert said.endswith(", `gradsight fix --diff` shows what can be fixed\n")


def test_a_file_that_is_named_is_read_as_python_even_without_torch(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "other.py").write_text("def f(:\n")
    assert "error GS000 does not parse" in check(capsys, 1, "other.py")
    (folder / "other.py").write_text("name = '\\d'\n")
    assert "1 file checked, no torch in it" in check(capsys, 0, "other.py")
    (folder / "other.txt").write_text("no Python at all (")
    check(capsys, 0, "other.txt")


def test_a_place_leads_a_terminal_to_its_line(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TERM_PROGRAM", raising=False)
    (folder / "broken.py").rename(folder / "new broken.py")
    said = check(capsys, 1, "--color", "always", "--output-format", "concise")
    address = (folder / "new broken.py").as_uri()
    assert f";{address}#5\x1b\\" in said
    monkeypatch.setenv("TERM_PROGRAM", "vscode")
    # It finds `file.py:5:1` by itself.
    plain = check(capsys, 1, "--color", "always", "--output-format", "concise")
    assert address not in plain
    assert "new broken.py:5:1" in plain
    assert "%20" in address


def test_findings_are_grouped_by_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = check(capsys, 1, "--output-format", "grouped").splitlines()
    assert lines[0] == "broken.py:"
    assert lines[1].startswith("  5:1 error GS101 [*]")


def test_gitlab_gets_a_fingerprint_that_survives_a_moved_line(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    [before] = json.loads(check(capsys, 1, "--output-format", "gitlab"))
    (folder / "broken.py").write_text("# one more line\n" + BROKEN)
    [after] = json.loads(check(capsys, 1, "--output-format", "gitlab"))
    assert before["fingerprint"] == after["fingerprint"]
    assert after["location"]["positions"]["begin"]["line"] == 6
    assert after["severity"] == "major"


def test_azure_gets_a_logging_command(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = check(capsys, 1, "--output-format", "azure")
    assert said.startswith(
        "##vso[task.logissue type=error;sourcepath=broken.py;linenumber=5;columnnumber=1;code=GS101;]"
    )


def test_reviewdog_gets_diagnostics_with_ranges(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = json.loads(check(capsys, 1, "--output-format", "rdjson"))
    [found] = told["diagnostics"]
    assert found["severity"] == "ERROR"
    assert found["location"]["range"]["start"] == {"line": 5, "column": 1}
    assert found["code"]["value"] == "GS101"


def test_the_old_name_of_the_option_still_works(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(capsys, 1, "--format", "text") == check(capsys, 1, "--output-format", "full")


def test_findings_can_be_left_out_of_the_exit_code(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "GS101" in check(capsys, 0, "--exit-zero")


def test_quiet_says_nothing_where_there_is_nothing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(capsys, 0, "--quiet", "fine.py") == ""
    said = check(capsys, 1, "--quiet", "--output-format", "concise", "broken.py")
    assert [line.split()[2] for line in said.splitlines()] == ["GS101"]


def test_the_report_goes_to_a_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(capsys, 1, "--output-file", "report.json", "--output-format", "json") == ""
    assert json.loads((folder / "report.json").read_text())[0]["code"] == "GS101"
    assert main(["check", "--no-cache", "--output-file", "absent/report.txt"]) == 2


def test_files_are_excluded_by_the_call(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(capsys, 0, "--exclude", "broken.py").startswith("no findings")
    assert check(capsys, 0, "--exclude", "broken.py,fine.py", "--show-files") == ""
    (folder / "pyproject.toml").write_text('[tool.gradsight]\nexclude = ["fine.py"]\n')
    assert check(capsys, 0, "--extend-exclude", "broken.py", "--show-files") == ""
    assert check(capsys, 0, "--show-files") == "broken.py\n"


def test_settings_are_shown_with_where_they_come_from(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "pyproject.toml").write_text('[tool.gradsight]\nignore = ["GS3"]\n')
    said = check(capsys, 0, "--show-settings")
    assert said.startswith("# from pyproject.toml\n")
    assert 'ignore = ["GS3"]' in said
    # What is shown can be written back.
    (folder / "pyproject.toml").write_text("[tool.gradsight]\n" + said.replace("{}", "{ }"))
    assert check(capsys, 0, "--show-settings") == said


def test_a_reader_that_leaves_is_no_fault_of_the_output_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def leave(*_: object) -> None:
        raise BrokenPipeError(32, "Broken pipe")

    monkeypatch.setattr(report_text, "put", leave)
    monkeypatch.setattr(shell, "silence_stdout", lambda: None)
    assert main(["check", "--no-cache", "broken.py"]) == shell.READER_LEFT
    assert capsys.readouterr().err == ""


def test_a_message_is_wrapped_between_words_where_the_terminal_is_narrow(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = check(capsys, 1, "broken.py")
    monkeypatch.setattr(finding_text, "terminal_width", lambda: 44)
    narrow = check(capsys, 1, "broken.py")
    first = narrow.split(" | ")[0]
    assert max(map(len, first.splitlines()[:-1])) <= 44
    assert " ".join(first.split()[:-1]) == " ".join(whole.split(" | ")[0].split()[:-1])


def test_rules_are_ignored_in_some_files(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "pyproject.toml").write_text('[tool.gradsight.per-file-ignores]\n"bro*.py" = ["GS1"]\n')
    assert check(capsys, 0).startswith("no findings")
    (folder / "other.py").write_text(BROKEN)
    assert "other.py:5:1" in check(capsys, 1)


def test_a_rule_is_ignored_in_a_file_by_its_comment(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "broken.py").write_text(f"# gradsight: ignore-file[GS101]\n{BROKEN}")
    assert check(capsys, 0).startswith("no findings")
    (folder / "fine.py").write_text(f"# gradsight: ignore-file[GS101]\n{FINE}")
    assert "this comment silences nothing: no GS101 in this file" in check(capsys, 0)


def test_every_finding_can_be_ignored_from_now_on(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(capsys, 0, "--add-ignore") == "1 finding ignored from now on\n"
    assert "y *= 2  # gradsight: ignore[GS101]" in (folder / "broken.py").read_text()
    assert check(capsys, 0).startswith("no findings")


def test_check_fixes_and_says_what_is_left(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = check(capsys, 0, "--fix")
    assert "GS101 replace with `y = y * 2`" in said
    assert "no findings in 2 files" in said
    assert "y = y * 2" in (folder / "broken.py").read_text()


def test_a_misspelt_option_is_answered_with_the_one_that_is_meant(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", "--exit-zreo"]) == 2
    assert "no option --exit-zreo: did you mean --exit-zero?" in capsys.readouterr().err
    assert main(["check", "--output-format", "jsn"]) == 2
    assert "--output-format cannot be 'jsn': did you mean json?" in capsys.readouterr().err
    assert main(["completions", "tcsh-like"]) == 2
    assert "cannot be 'tcsh-like': choose from bash, zsh, fish" in capsys.readouterr().err
    assert main(["check", "--select", "GS1O1"]) == 2
    assert "did you mean GS101?" in capsys.readouterr().err


def test_a_change_is_checked_again(folder: Path) -> None:
    runs: list[int] = []
    paths = [str(folder / "fine.py")]

    def run() -> int:
        runs.append(len(runs))
        if len(runs) == 1:
            os.utime(paths[0], ns=(1, 1))
            return 0
        raise KeyboardInterrupt

    assert watching.watch(lambda: paths, run, pause=0.01) == 0
    assert runs == [0, 1]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_commands_and_options(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completions", shell]) == 0
    said = capsys.readouterr().out
    assert "check" in said
    assert "exit-zero" in said
    assert "GS101" in said


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("gradsight ch", ["check"]),
        ("gradsight check --exit-z", ["--exit-zero"]),
        ("gradsight check --output-format g", ["github", "gitlab", "grouped"]),
        ("gradsight check --select GS21", ["GS210", "GS211", "GS212"]),
        ("gradsight explain inplace-on-sa", ["inplace-on-saved"]),
        ("gradsight check tra", []),
    ],
)
def test_bash_takes_its_completions(typed: str, offered: list[str], tmp_path: Path) -> None:
    script = (
        'eval "$("$0" -m gradsight completions bash)"; COMP_WORDS=($1); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); '
        '_gradsight; echo "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        ["bash", "-c", script, sys.executable, typed],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert sorted(done.stdout.split()) == offered, done.stderr


def test_zsh_gets_what_its_completions_need_before_them(capsys: pytest.CaptureFixture[str]) -> None:
    main(["completions", "zsh"])
    said = capsys.readouterr().out
    assert said.index("compinit -u") < said.index("bashcompinit") < said.index("complete -o default")


def test_fish_offers_files_only_where_they_are_wanted(capsys: pytest.CaptureFixture[str]) -> None:
    main(["completions", "fish"])
    lines = capsys.readouterr().out.splitlines()
    assert all(" -f " in line for line in lines if "__fish_use_subcommand" in line)
    [formats] = [line for line in lines if "from check'" in line and "-l output-format " in line]
    assert "azure" in formats.split(" -x -a ")[1]
    [written] = [line for line in lines if "from check'" in line and "-l output-file " in line]
    assert written.endswith(" -r")
