"""`gradsight facts NAME`: cards and their JSON, coverage, and names that are not known."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from gradsight import cli
from gradsight.cli.card import plain_card, sections, signature
from gradsight.ops.cache import load


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADSIGHT_CACHE_DIR", str(tmp_path))


def check(capsys: pytest.CaptureFixture[str], argv: list[str], code: int, *said: str) -> str:
    """The command ends with this code and says these words; the text is handed back."""
    assert cli.main(["facts", *argv]) == code
    captured = capsys.readouterr()
    text = captured.out if code == 0 else captured.err
    for words in said:
        assert words in text
    return text


def test_exp_keeps_its_result(capsys: pytest.CaptureFixture[str]) -> None:
    check(
        capsys,
        ["exp"],
        0,
        "torch.exp(input, *, out=None)",
        "its output",
        "input may be",
        "measured",
        "a new tensor",
    )


def test_dropout_tells_its_modes_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    text = check(capsys, ["nn.Dropout"], 0, "if training is False", "input itself", "writes", "otherwise")
    assert text.index("training is False") < text.index("otherwise")


def test_cases_that_say_the_same_stand_together(capsys: pytest.CaptureFixture[str]) -> None:
    text = check(capsys, ["nn.Dropout"], 0, "if training is False, or p is 0\n")
    assert text.count("input itself") == 2
    text = check(capsys, ["nn.functional.mse_loss"], 0)
    assert "otherwise" not in text


def test_only_tensors_are_told_to_be_overwritten(capsys: pytest.CaptureFixture[str]) -> None:
    for name, word in (("torch.einsum", "equation"), ("torch.zeros", "size"), ("checkpoint", "function")):
        text = check(capsys, [name], 0)
        assert word in text.splitlines()[0]
        assert not any(word in line for line in text.splitlines() if line.startswith("  overwrite"))


def test_results_that_are_alike_are_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    text = check(capsys, ["Tensor.aminmax"], 0, "2 tensors")
    assert text.count("flows") == 1
    check(capsys, ["torch.max"], 0, "saves     its second output")
    check(capsys, ["torch.max"], 0, "second output: none: the output is integer")


def test_a_property_is_shown_as_it_is_read(capsys: pytest.CaptureFixture[str]) -> None:
    text = check(capsys, ["Tensor.grad"], 0, "not a copy")
    assert text.startswith("Tensor.grad\n")


def test_what_has_no_gradient_says_nothing_about_backward(capsys: pytest.CaptureFixture[str]) -> None:
    text = check(capsys, ["torch.argmax"], 0, "none: the output is integer")
    assert "backward  " not in text


def test_augmented_multiplication_writes_its_left_side(capsys: pytest.CaptureFixture[str]) -> None:
    check(capsys, ["Tensor.__imul__"], 0, "Tensor.__imul__(other)", "writes    self", "if self requires grad")


def test_names_may_be_bare_or_full(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("torch.nn.functional.gelu", "F.gelu", "gelu", "nn.functional.gelu"):
        check(capsys, [name], 0, "gelu(input")


def test_a_card_as_json_has_the_fields_of_the_fact(capsys: pytest.CaptureFixture[str]) -> None:
    fact = json.loads(check(capsys, ["torch.exp", "--format", "json"], 0))
    assert fact["name"] == "torch.exp"
    assert fact["torch"] == load().torch_version
    assert fact["cases"][-1]["saves"][0]["what"] == "result"


def test_an_unknown_operator_gets_near_names(capsys: pytest.CaptureFixture[str]) -> None:
    text = check(capsys, ["torch.expp"], 2, "no fact about torch.expp", "torch.exp")
    assert text.count("\n") == 1


def test_a_name_without_a_fact_gets_the_reason(capsys: pytest.CaptureFixture[str]) -> None:
    check(capsys, ["nn.Sequential"], 2, "a container")


@pytest.mark.parametrize("name", ["", " ", "torch.", "..", "\x00", "x" * 500, "Tensor", "🦆"])
def test_odd_names_are_refused_in_one_line(capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert check(capsys, [name], 2).count("\n") == 1


def test_nothing_asked_is_a_wrong_call(capsys: pytest.CaptureFixture[str]) -> None:
    check(capsys, [], 2, "say which operator")


def test_coverage_ends_with_the_total(capsys: pytest.CaptureFixture[str]) -> None:
    text = check(capsys, ["--coverage"], 0, "torch.Tensor", "torch.nn modules", "measured", "without a fact")
    last = text.strip().splitlines()[-1]
    assert last.startswith("total: ")
    assert last.endswith(" %")
    assert float(last[7:-2]) >= 97.0
    assert json.loads(check(capsys, ["--coverage", "--format", "json"], 0))["percent"] >= 97.0


def test_every_fact_has_a_readable_card() -> None:
    table = load()
    for name in table.names():
        fact = table.find(name)
        assert fact is not None
        lines = plain_card(fact, table.torch_version)
        assert lines[0] == signature(fact)
        assert len(lines) >= 4, name
        assert all(row.text for _, rows in sections(fact) for row in rows), name


def test_a_card_on_a_terminal_says_the_same_as_a_plain_one() -> None:
    from rich.console import Console

    from gradsight.cli.card import render_card

    fact = load().find("nn.ReLU")
    assert fact is not None
    console = Console(width=100, color_system=None, highlight=False)
    with console.capture() as capture:
        render_card(console, fact, "2.13.0")
    words = capture.get().split()
    assert [word for word in " ".join(plain_card(fact, "2.13.0")).split() if word not in words] == []


def test_the_command_needs_no_torch() -> None:
    program = (
        "import sys; from gradsight import cli; cli.main(['facts', 'exp']); print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip().splitlines()[-1] == "False"
