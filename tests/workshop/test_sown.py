"""Sown edits: where a text trains, which edits its rounds get, and what makes a label right."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from gradsight_dev.injected.edits import edited
from gradsight_dev.sown.command import main, table
from gradsight_dev.sown.fields import half_of, trains, users_of
from gradsight_dev.sown.harvest import reap
from gradsight_dev.sown.rounds import read
from gradsight_dev.sown.sowing import sown

LOOP = dedent("""
    import torch
    from torch import nn
    import torch.nn.functional as F

    net = nn.Linear(4, 1)
    critic = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    critic_optimizer = torch.optim.SGD(critic.parameters(), lr=0.1)
    for x, y in [(torch.randn(8, 4), torch.randn(8, 1)) for _ in range(3)]:
        out = net(x)
        loss = F.mse_loss(out, y)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        both = critic(x).mean()
        critic_optimizer.zero_grad()
        both.backward()
        critic_optimizer.step()
""")


def kinds(text: str) -> set[str]:
    return {edit.name.split(" ")[0] for edit in sown(text)}


def result_of(text: str, name: str) -> str:
    chosen = [edit for edit in sown(text) if edit.name.split(" ")[0] == name]
    return "\n".join(row.text for row in edited(text, chosen[0].changes))


def test_a_round_is_a_backward_and_the_step_after_it() -> None:
    rounds = read(LOOP).rounds
    assert [(one.loss, one.optimizer, one.zero is not None, one.single) for one in rounds] == [
        ("loss", "optimizer", True, True),
        ("both", "critic_optimizer", True, True),
    ]


def test_every_kind_of_edit_is_made_at_most_once_and_still_parses() -> None:
    edits = sown(LOOP)
    names = [edit.name.split(" ")[0] for edit in edits]
    assert len(names) == len(set(names))
    assert {
        "zero-removed",
        "zero-between",
        "step-early",
        "step-gone",
        "clip-late",
        "loss-cut",
        "loss-number",
        "output-cut",
        "forward-unrecorded",
        "others-parameters",
        "zero-none-True",
        "loss-cloned",
        "loss-shown",
    } <= set(names)
    for edit in edits:
        compile("\n".join(row.text for row in edited(LOOP, edit.changes)), edit.name, "exec")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("output-cut", "out = net(x).detach()"),
        ("forward-unrecorded", "with torch.no_grad(): out = net(x)"),
    ],
)
def test_what_an_edit_writes(name: str, expected: str) -> None:
    assert expected in result_of(LOOP, name)


def test_two_optimizers_get_the_parameters_of_one_network() -> None:
    text = result_of(LOOP, "others-parameters")
    assert {text.count("SGD(net.parameters()"), text.count("SGD(critic.parameters()")} == {0, 2}


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        # Something else clears: nothing is wrong without this one.
        ("        loss.backward()", "        net.zero_grad()\n        loss.backward()", "zero-removed"),
        ("        loss.backward()", "        for p in net.parameters(): p.grad = None", "zero-removed"),
        # Another way leads to the network, or the loss is made in two steps.
        ("F.mse_loss(out, y)", "F.mse_loss(out, net(y))", "output-cut"),
        ("F.mse_loss(out, y)", "F.mse_loss(out, y)\n    loss += out.mean()", "loss-cut"),
        # The steps are not in a straight line.
        ("    optimizer.step()", "    if x.mean() > 0:\n        optimizer.step()", "step-early"),
    ],
)
def test_a_label_that_may_be_wrong_is_not_given(old: str, new: str, kind: str) -> None:
    single = LOOP.partition("    both = ")[0]
    old = old.strip() if old.startswith("        ") else old
    new = new.strip() if new.startswith("        ") else new
    assert kind in kinds(single)
    assert kind not in kinds(single.replace(old, new))


def test_a_text_that_does_not_parse_gets_no_edit() -> None:
    assert sown("def f(:\n") == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("loss.backward()\noptimizer.step()\n", True),
        ("import accelerate\nloss.backward()\noptimizer.step()\n", False),
        ("loss.backward()\n", False),
    ],
)
def test_files_that_train_by_themselves(text: str, expected: bool) -> None:
    assert trains(text) is expected


def test_the_half_of_a_repository_goes_by_its_name() -> None:
    assert half_of("Some/Name") == half_of("some/name")
    assert {half_of(f"owner/{number}") for number in range(20)} == {"open", "closed"}


def test_edits_are_scored_in_the_file_and_through_its_users(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    repository = tmp_path / "owner+name"
    repository.mkdir()
    (repository / "train.py").write_text(LOOP)
    (repository / "main.py").write_text("import train\n")
    assert users_of(repository / "train.py", repository) == [repository / "main.py"]
    reaped = list(reap(repository / "train.py", repository, "zero"))
    assert {one.result for one in reaped if one.edit.verdict == "bug"} == {"found"}
    assert {one.result for one in reaped if one.edit.verdict == "safe"} == {"silent"}
    assert any(line.startswith("bug") for line in table(reaped))
    assert main([str(tmp_path), "--only", "zero-removed"]) == 0
    assert "zero-removed" in capsys.readouterr().out
