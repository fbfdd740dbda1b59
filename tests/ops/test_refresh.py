"""`gradsight facts --refresh`: what happens with good, missing, hanging, broken and old interpreters and caches."""

from __future__ import annotations

import os
import stat
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gradsight import cli
from gradsight.analysis import analyze
from gradsight.model.settings import Settings
from gradsight.model.source import Source
from gradsight.ops import cache, refresh
from gradsight.ops.cache import facts_mark, load, measured_facts
from gradsight.ops.environment import installed_torch
from gradsight.ops.table import SHIPPED
from gradsight.session.options import FolderOptions, Options
from gradsight.session.probe_options import ProbeOptions
from gradsight.session.session import EditorSession


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every test has a cache folder of its own."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("GRADSIGHT_CACHE_DIR", str(folder))
    return folder


def check_refused(capsys: pytest.CaptureFixture[str], python: str, *said: str, timeout: str = "60") -> None:
    """The refresh ends with 2 and one line that says these words; the shipped table stays in use."""
    assert cli.main(["facts", "--refresh", "--python", python, "--timeout", timeout]) == 2
    message = capsys.readouterr().err
    assert message.count("\n") == 1, message
    for words in (*said, "stay as they are"):
        assert words in message
    assert load("9.9.9").source == SHIPPED


def stand_in(folder: Path, program: str) -> str:
    """An executable that behaves as told instead of as Python."""
    path = folder / "python"
    path.write_text(f"#!{sys.executable}\n{program}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def with_torch(folder: Path, source: str) -> str:
    """An interpreter whose torch is this source."""
    package = folder / "lib" / "torch"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(source)
    program = f"import os, sys; os.environ['PYTHONPATH'] = {str(folder / 'lib')!r}\n"
    return stand_in(folder, program + "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])")


def test_an_interpreter_that_does_not_exist(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    check_refused(capsys, str(tmp_path / "nowhere" / "python"), "no interpreter")


def test_a_file_that_is_no_program(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("not a program")
    check_refused(capsys, str(path), "no interpreter")


def test_an_interpreter_that_hangs(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    check_refused(capsys, stand_in(tmp_path, "import time; time.sleep(600)"), "did not answer", timeout="1")


def test_a_program_that_is_no_python(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    check_refused(capsys, stand_in(tmp_path, "print('hello')"), "is not a Python interpreter")


def test_an_interpreter_without_torch(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    program = "import os, sys; os.execv(sys.executable, [sys.executable, '-S', '-I', *sys.argv[1:]])"
    check_refused(capsys, stand_in(tmp_path, program), "has no torch")


def test_a_torch_that_breaks_while_it_is_imported(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    python = with_torch(tmp_path, "raise OSError('libtorch_cpu.so: cannot open shared object file')")
    check_refused(capsys, python, "cannot be imported", "libtorch_cpu.so")


def test_a_torch_that_is_too_old(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    check_refused(capsys, with_torch(tmp_path, "__version__ = '1.13.1+cu117'"), "1.13.1", "too old")


def test_a_torch_that_lacks_what_is_needed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    check_refused(capsys, with_torch(tmp_path, "__version__ = '2.9.0'"), "torch cannot be imported")


def test_an_interpreter_that_answers_and_then_hangs(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    program = "import sys, time\nsys.stdout.write('torch 2.9.0') if len(sys.argv) == 3 else time.sleep(600)"
    check_refused(capsys, stand_in(tmp_path, program), "did not end within", timeout="3")


def test_an_interpreter_that_dies_while_measuring(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    program = "import os, sys\nsys.stdout.write('torch 2.9.0') if len(sys.argv) == 3 else os.abort()"
    check_refused(capsys, stand_in(tmp_path, program), "died while it was measured")


def test_a_cache_folder_that_cannot_be_written(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("GRADSIGHT_CACHE_DIR", str(tmp_path / "file" / "cache"))
    check_refused(capsys, sys.executable, "cannot be written")


def test_a_timeout_must_be_a_number_of_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["facts", "--refresh", "--timeout", "soon"]) == 2
    assert "not a number of seconds" in capsys.readouterr().err


@pytest.mark.facts
def test_a_refreshed_table_is_used_from_then_on(own_cache: Path) -> None:
    made = refresh.refresh(sys.executable, every=200)
    assert made.torch_version.startswith(installed_torch(sys.executable) or "")
    table = load(made.torch_version)
    assert Path(table.source).parent == own_cache
    assert set(table.names()) >= set(load().names()) - set(load().about["further"])
    assert table.find("torch.exp") == load().find("torch.exp")
    assert load("0.0.1").source == SHIPPED


def forgetful_exp(own_cache: Path) -> None:
    """Keep a table for the torch of this environment in which exp keeps nothing."""
    own_cache.mkdir()
    lines = [line for line in Path(SHIPPED).read_text(encoding="utf-8").splitlines() if line[:1] != "-"]
    version = installed_torch(sys.executable)
    assert version is not None
    told = "Tensor.exp torch.exp:input\t" + '{"sig":"self","cases":[{"out":["flows"],"held":"never"}]}'
    Path(cache.table_path(version)).write_text("\n".join([*lines, told]), encoding="utf-8")


def test_the_table_of_the_environment_is_used_without_asking(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    monkeypatch.delenv("CONDA_PREFIX", raising=False)
    assert (load().source, facts_mark(measured_facts())) == (SHIPPED, "")
    forgetful_exp(own_cache)
    assert Path(load().source).parent == own_cache
    assert facts_mark(measured_facts()).startswith(load().source)
    assert measured_facts(str(own_cache / "bin" / "python")) == ""


EXP_WRITTEN = (
    "import torch\nx = torch.rand(3, requires_grad=True)\ny = torch.exp(x)\ny *= 3\ny.sum().backward()\n"
)


def test_a_report_depends_on_the_facts_that_it_is_asked_with_alone(own_cache: Path) -> None:
    forgetful_exp(own_cache)
    source = Source("program.py", EXP_WRITTEN)
    of_own_torch, of_shipped = Settings(facts=measured_facts(sys.executable)), Settings()

    def codes(settings: Settings) -> set[str]:
        return {each.code for each in analyze(source, settings).findings if each.severity == "error"}

    with ThreadPoolExecutor(2) as threads:
        found = list(threads.map(codes, [of_own_torch, of_shipped] * 4))
    assert found == [set(), {"GS101"}] * 4


def test_folders_with_different_interpreters_have_the_facts_of_their_own(
    own_cache: Path, tmp_path: Path
) -> None:
    forgetful_exp(own_cache)
    torchless = stand_in(tmp_path, "")
    session = EditorSession()
    folders = {}
    for name, python in (("measured", sys.executable), ("plain", torchless)):
        folder = tmp_path / name
        folder.mkdir()
        folders[str(folder)] = Options(probe=ProbeOptions(interpreter=python))
    session.use_options(FolderOptions(folders=folders))
    facts = [session.settings_at(str(Path(folder) / "program.py")).facts for folder in folders]
    assert facts == [measured_facts(sys.executable), ""]
    assert facts[0]


def test_a_check_speaks_by_the_refreshed_table(
    capsys: pytest.CaptureFixture[str], own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    monkeypatch.delenv("CONDA_PREFIX", raising=False)
    program = tmp_path / "program.py"
    program.write_text(EXP_WRITTEN)
    assert cli.main(["check", "--no-cache", str(program)]) == 1
    forgetful_exp(own_cache)
    assert cli.main(["check", "--no-cache", str(program)]) == 0
    capsys.readouterr()


@pytest.mark.parametrize("content", ["", "\x00\x01", '{"format":0,"torch":"2.0"}', '{"format":1,'])
def test_a_cache_file_that_cannot_be_used_gives_way_to_the_shipped_table(
    content: str, own_cache: Path
) -> None:
    own_cache.mkdir()
    path = Path(cache.table_path("2.5.0"))
    path.write_text(content)
    with pytest.warns(UserWarning, match="shipped ones"):
        assert load("2.5.0").source == SHIPPED
    assert path.read_text() == content


def test_a_damaged_line_in_the_cache_does_not_hide_the_others(own_cache: Path) -> None:
    own_cache.mkdir()
    shipped = Path(SHIPPED).read_text(encoding="utf-8").splitlines()
    damaged = []
    for line in shipped:
        head, tab, body = line.partition("\t")
        speaks_of_exp = any(spelled.partition(":")[0] == "torch.exp" for spelled in head.split(" "))
        damaged.append(head + tab + body[: len(body) // 2] if speaks_of_exp else line)
    assert damaged != shipped
    Path(cache.table_path("2.5.0")).write_text("\n".join(damaged), encoding="utf-8")
    with warnings.catch_warnings(record=True) as noted:
        warnings.simplefilter("always")
        table = load("2.5.0")
        assert table.find("torch.exp") is None
        assert table.find("torch.mul") == load().find("torch.mul")
    assert any("torch.exp" in str(each.message) for each in noted)


def test_storing_leaves_the_old_table_until_the_new_one_is_complete(own_cache: Path) -> None:
    path = cache.store("2.5.0+cpu", "first")
    assert cache.store("2.5.0", "second") == path
    assert Path(path).read_text() == "second"
    assert os.listdir(own_cache) == [os.path.basename(path)]
