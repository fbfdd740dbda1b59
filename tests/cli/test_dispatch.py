"""The command line: what is mounted, what it imports, and how every way to end becomes an exit code."""

from __future__ import annotations

import argparse
import io
import subprocess
import sys
import types

import pytest

from gradsight import __version__, cli
from gradsight.cli import commands, shell

HEAVY = ("rich", "pygls", "lsprotocol", "libcst", "torch")


@pytest.fixture
def greet(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """A command named `greet`, mounted as any other."""
    module = types.ModuleType("gradsight.cli.greet")
    module.__dict__.update(
        __spec__=argparse.Namespace(name=module.__name__),
        add_arguments=lambda parser: parser.add_argument("name"),
        run=lambda args: print(f"hello {args.name}") or shell.CLEAN,
    )
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(commands, "COMMANDS", (("greet", "say hello"), ("leave", "has no module")))
    return module


def check(
    capsys: pytest.CaptureFixture[str], argv: list[str], code: int, out: str = "", err: str = ""
) -> None:
    """This call ends with this code and says these words."""
    assert cli.main(argv) == code
    said = capsys.readouterr()
    assert out in said.out
    assert err in said.err
    assert "Traceback" not in said.err or code == shell.FAILED


def test_a_command_reads_its_own_arguments(
    greet: types.ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    check(capsys, ["greet", "Ada"], shell.CLEAN, out="hello Ada")


def test_a_command_without_a_module_is_not_offered(
    greet: types.ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    check(capsys, ["--help"], shell.CLEAN, out="say hello")
    assert list(commands.mounted_commands()) == ["greet"]


def test_the_help_of_a_command_shows_its_arguments(
    greet: types.ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    check(capsys, ["greet", "--help"], shell.CLEAN, out="usage: gradsight greet")


def test_a_misspelt_command_gets_the_nearest_one(
    greet: types.ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    check(capsys, ["gret"], shell.FAILED, err="gradsight: no command 'gret': did you mean 'greet'?\n")


def test_an_unknown_command_gets_the_list(
    greet: types.ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    check(capsys, ["zzz"], shell.FAILED, err="choose from greet")


def test_no_command_shows_the_help(greet: types.ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    check(capsys, [], shell.FAILED, out="say hello")


def test_an_option_before_the_command_is_refused(
    greet: types.ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    check(capsys, ["--loud", "greet"], shell.FAILED, err="a command comes first, before --loud")


def test_a_missing_argument_is_a_wrong_call(
    greet: types.ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    message = "gradsight: the following arguments are required: name (options: gradsight greet --help)\n"
    check(capsys, ["greet"], shell.FAILED, err=message)


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    check(capsys, ["--version"], shell.CLEAN, out=f"gradsight {__version__}\n")


@pytest.mark.parametrize(
    ("ending", "code"),
    [
        (KeyboardInterrupt(), shell.INTERRUPTED),
        (BrokenPipeError(), shell.READER_LEFT),
        (SystemExit(), shell.CLEAN),
        (SystemExit(1), shell.FINDINGS),
        (SystemExit("no such folder"), shell.FAILED),
        (ValueError("of ours"), shell.FAILED),
    ],
)
def test_every_way_to_end_is_an_exit_code(
    ending: BaseException, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def command() -> int:
        raise ending

    monkeypatch.setattr(shell, "silence_stdout", lambda: None)
    assert shell.guarded(command) == code


def test_a_fault_of_ours_says_so_and_shows_where(
    greet: types.ModuleType, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(greet, "run", lambda args: 1 // 0)
    check(capsys, ["greet", "Ada"], shell.FAILED, err="internal error, a fault of gradsight")


def test_a_reader_that_leaves_ends_the_command_quietly() -> None:
    code = (
        "from gradsight.cli import shell\n"
        "def command():\n"
        "    for _ in range(100_000): print('a line of output')\n"
        "    return 0\n"
        "raise SystemExit(shell.guarded(command))"
    )
    writer = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert writer.stdout
    assert writer.stderr
    writer.stdout.readline()
    writer.stdout.close()
    assert writer.stderr.read() == b""
    assert writer.wait() == shell.READER_LEFT


def test_a_terminal_without_unicode_gets_a_question_mark() -> None:
    code = "from gradsight.cli import shell; shell.guarded(lambda: print('\\u2192 here') or 0)"
    outcome = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONIOENCODING": "ascii"}, capture_output=True, check=True
    )
    assert outcome.stdout.rstrip() == b"? here"


def test_a_stream_that_is_no_terminal_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stdout", stream)
    assert shell.guarded(lambda: shell.CLEAN) == shell.CLEAN
    assert sys.stdout is stream


@pytest.mark.parametrize("argv", [["--version"], ["--help"]])
def test_start_up_imports_nothing_heavy(argv: list[str]) -> None:
    code = (
        "import sys\n"
        "from gradsight.cli import main\n"
        f"main({argv!r})\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)"
    )
    outcome = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert outcome.stderr == "[]\n"
