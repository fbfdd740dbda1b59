"""`gradsight.watch()` in this process: notes on errors, a report at the end, and nothing left behind."""

from __future__ import annotations

import linecache
import re
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
import torch
from torch import nn

import gradsight
from gradsight.agent.watch import Watch
from gradsight.live import watching
from gradsight.session.watch_notes import notes_in

PLACES = (
    (torch.autograd, "_engine_run_backward"),
    (torch.autograd.graph, "_engine_run_backward"),
    (torch.autograd, "_make_grads"),
    (torch.autograd.Function, "apply"),
    (torch.autograd.function.FunctionCtx, "mark_dirty"),
    (torch.optim.Optimizer, "add_param_group"),
    (nn.Module, "__setattr__"),
    (nn.Module, "register_parameter"),
    (threading.Thread, "run"),
    (sys, "excepthook"),
    (threading, "excepthook"),
)


@pytest.fixture(autouse=True)
def _ends() -> Iterator[None]:
    yield
    if watching.is_watching():
        watching.current().stop()


def run(tmp_path: Path, text: str, name: str = "train.py") -> dict[str, Any]:
    """Executes a program as a file of the user."""
    path = tmp_path / name
    path.write_text(dedent(text).lstrip())
    linecache.checkcache()
    scope: dict[str, Any] = {"__name__": "program", "torch": torch, "nn": nn}
    exec(compile(path.read_text(), str(path), "exec"), scope)
    return scope


def notes_of(tmp_path: Path, text: str) -> str:
    with pytest.raises(Exception) as caught, gradsight.watch():
        run(tmp_path, text)
    return "\n".join(getattr(caught.value, "__notes__", ()))


def test_the_note_names_who_saved_who_wrote_and_which_backward(tmp_path: Path) -> None:
    notes = notes_of(
        tmp_path,
        """
        w = torch.ones(3, requires_grad=True)
        y = w.exp()
        y *= 3
        y.sum().backward()
        """,
    )
    (note,) = notes_in(notes)
    assert note.said.startswith("`y *= 3` overwrites")
    assert note.code == "GS101"
    assert [(step.role, step.line) for step in note.steps] == [
        ("saved", 2),
        ("overwritten", 3),
        ("needed", 4),
    ]
    assert {step.path for step in note.steps} == {str(tmp_path / "train.py")}
    assert note.advice.startswith("write to a new tensor")


def test_the_message_stays_torchs_own(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError) as caught, gradsight.watch():
        run(tmp_path, "w = torch.ones(3, requires_grad=True)\nw.mul_(2)\n")
    assert str(caught.value) == "a leaf Variable that requires grad is being used in an in-place operation."


@pytest.mark.parametrize(
    ("text", "line", "code"),
    [
        ("w = torch.ones(3, requires_grad=True)\nw.mul_(2)\n", 2, "GS102"),
        ("w = torch.ones(3, requires_grad=True)\ny = w * 2\ny.backward()\n", 2, "GS401"),
        ("w = torch.ones(3, requires_grad=True)\nloss = w.detach().sum()\nloss.backward()\n", 2, "GS203"),
        (
            "w = torch.ones(3, requires_grad=True)\nwith torch.no_grad():\n    y = w * 2\ny.sum().backward()\n",
            2,
            "GS204",
        ),
        ("w = torch.ones(3, requires_grad=True)\ntorch.tensor(w.sum().item()).backward()\n", 2, ""),
        ("w = torch.ones(3, requires_grad=True)\nprint(w.grad.norm())\n", 2, "GS304"),
        ("w = torch.ones(3, requires_grad=True)\ntorch.optim.SGD([w * 2], 0.1)\n", 2, ""),
        (
            "w = torch.ones(3, requires_grad=True)\nloss = (w * w).sum()\nloss.backward()\nloss.backward()\n",
            4,
            "GS402",
        ),
    ],
)
def test_every_kind_of_error_gets_its_line(tmp_path: Path, text: str, line: int, code: str) -> None:
    notes = notes_of(tmp_path, text)
    (note,) = notes_in(notes)
    assert line in [step.line for step in note.steps], notes
    assert code in note.code


def test_an_error_that_has_no_gradient_story_gets_no_note(tmp_path: Path) -> None:
    assert notes_of(tmp_path, "torch.ones(3) @ torch.ones(4)\n") == ""
    assert notes_of(tmp_path, "{}['missing']\n") == ""


def test_an_error_that_is_caught_carries_its_note_too(tmp_path: Path) -> None:
    with gradsight.watch(report=False):
        scope = run(
            tmp_path,
            """
            w = torch.ones(3, requires_grad=True)
            for _ in range(2):
                try:
                    w.mul_(2)
                except RuntimeError as error:
                    notes = error.__notes__
            """,
        )
        assert len(scope["notes"]) == 1
        assert "train.py:4" in scope["notes"][0]


def test_an_error_in_a_thread_is_explained(tmp_path: Path) -> None:
    heard: list[Any] = []
    before = threading.excepthook
    threading.excepthook = heard.append
    try:
        with gradsight.watch(report=False):
            run(
                tmp_path,
                """
                import threading
                def work():
                    w = torch.ones(3, requires_grad=True)
                    y = w.exp()
                    y += 1
                    y.sum().backward()
                thread = threading.Thread(target=work)
                thread.start()
                thread.join()
                """,
            )
    finally:
        threading.excepthook = before
    assert "train.py:5" in heard[0].exc_value.__notes__[0]


def test_everything_is_put_back_as_it_was() -> None:
    from torch.optim import optimizer

    before = [vars(owner).get(name) for owner, name in PLACES]
    hooks = len(optimizer._global_optimizer_pre_hooks), len(optimizer._global_optimizer_post_hooks)
    modes = torch.overrides._get_current_function_mode_stack()
    with gradsight.watch(report=False):
        assert [vars(owner).get(name) for owner, name in PLACES] != before
    after = [vars(owner).get(name) for owner, name in PLACES]
    assert all(one is other for one, other in zip(before, after, strict=True))
    assert (len(optimizer._global_optimizer_pre_hooks), len(optimizer._global_optimizer_post_hooks)) == hooks
    assert torch.overrides._get_current_function_mode_stack() == modes


def test_a_wrapper_that_somebody_put_around_ours_stays_and_ours_falls_silent() -> None:
    before = torch.autograd._make_grads
    watch = gradsight.watch(report=False)
    ours = torch.autograd._make_grads

    def theirs(*args: Any, **kwargs: Any) -> Any:
        return ours(*args, **kwargs)

    torch.autograd._make_grads = theirs
    try:
        watch.stop()
        assert torch.autograd._make_grads is theirs
        with pytest.raises(RuntimeError) as caught:
            torch.ones(3, requires_grad=True).exp().backward()
        assert not hasattr(caught.value, "__notes__")
    finally:
        torch.autograd._make_grads = before


def test_a_second_watch_takes_the_place_of_the_first() -> None:
    first = gradsight.watch(report=False)
    second = gradsight.watch(report=False)
    assert not first.is_on
    assert second.is_on


@pytest.mark.parametrize("every", [0, -1, 1.5, True, "many"])
def test_every_is_a_whole_number(every: Any) -> None:
    with pytest.raises(ValueError, match="every must be a whole number"):
        gradsight.watch(every=every)
    assert not watching.is_watching()


def test_a_report_without_a_watch_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "_current", None)
    with pytest.raises(RuntimeError, match=r"call gradsight\.watch\(\) first"):
        gradsight.report()


TRAINING = """
net, unused, dead = nn.Linear(3, 2), nn.Linear(2, 2), nn.Linear(2, 1)
still = nn.Parameter(torch.ones(2))
opt = torch.optim.SGD([
    {"params": [*net.parameters(), *unused.parameters(), *dead.parameters()]},
    {"params": [still], "lr": 0.0},
], lr=0.1)
for step in range(5):
    opt.zero_grad()
    loss = (net(torch.ones(4, 3)) * still).sum() + 0 * dead(torch.ones(1, 2)).sum()
    loss.backward()
    opt.step()
report = __import__("gradsight").report()
"""


def test_the_report_names_what_is_not_trained(tmp_path: Path) -> None:
    with gradsight.watch(report=False):
        report = run(tmp_path, TRAINING)["report"]
    lines = [str(line) for line in report.parameters]
    assert len(lines) == 3, lines
    assert "`unused.weight`, `unused.bias`: no gradient in any of 5 steps" in lines[0]
    assert "`dead.weight`, `dead.bias`: the gradient was zero in all of 5 steps" in lines[1]
    assert "`still`: has a gradient, and `SGD` did not move it in 5 steps" in lines[2]
    assert all("train.py:11" in line for line in lines)
    assert report.steps == 5


def test_a_step_that_takes_here_what_it_adds_there_is_a_move(tmp_path: Path) -> None:
    with gradsight.watch(report=False):
        report = run(
            tmp_path,
            """
            w = nn.Parameter(torch.tensor([0.40, -0.30]))
            opt = torch.optim.SGD([w], lr=0.0625)
            w.sum().backward()
            before = w.detach().view(torch.int32).sum().item()
            opt.step()
            assert w.detach().view(torch.int32).sum().item() == before
            report = __import__("gradsight").report()
            """,
        )["report"]
    assert not report.parameters


def test_a_sound_program_has_a_clean_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with gradsight.watch():
        run(
            tmp_path,
            """
            net = nn.Linear(3, 2)
            opt = torch.optim.Adam(net.parameters())
            for _ in range(3):
                opt.zero_grad()
                net(torch.ones(4, 3)).square().sum().backward()
                opt.step()
            """,
        )
    assert capsys.readouterr().err == "gradsight: no fault seen, 3 optimizer steps watched\n"


def test_one_step_in_several_is_watched_and_the_others_cost_no_mode(tmp_path: Path) -> None:
    seen: list[bool] = []
    scope = {"seen": seen, "stack": torch.overrides._get_current_function_mode_stack}
    with gradsight.watch(every=3, report=False) as watch:
        net = nn.Linear(3, 2)
        opt = torch.optim.SGD(net.parameters(), 0.1)
        for _ in range(7):
            seen.append(bool(scope["stack"]()))
            opt.zero_grad()
            net(torch.ones(4, 3)).sum().backward()
            opt.step()
        assert watch.report().steps == 3
        assert "one step in 3 was watched" in str(watch.report())
    assert seen == [True, False, False, True, False, False, True]


def test_a_tensor_can_be_asked_who_made_who_saved_and_who_wrote_it(tmp_path: Path) -> None:
    with gradsight.watch(report=False) as watch:
        program = "w = torch.ones(3, requires_grad=True)\ny = w.exp()\ny.add_(1)\nz = y * w\nfree = y + 1\n"
        scope = run(tmp_path, program)
        text = watch.state_of("y", scope["y"])
    assert text.startswith("y: [3] float32, requires grad, not a leaf, version 1")
    assert "made by" in text
    assert re.search(r"saved by `exp` \(.*train.py:2\)", text)
    assert re.search(r"saved by `(mul|\*)` \(.*train.py:4\)", text)
    assert text.count("saved by") == 2
    assert "overwritten by `add_`" in text
    assert "train.py:3" in text


def test_gradients_are_bitwise_the_same(tmp_path: Path) -> None:
    program = """
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(5, 7), nn.GELU(), nn.LayerNorm(7), nn.Dropout(0.3), nn.Linear(7, 2))
        opt = torch.optim.AdamW(net.parameters(), 1e-2)
        for _ in range(4):
            opt.zero_grad()
            net(torch.randn(6, 5)).square().mean().backward()
            opt.step()
        values = [p.detach().clone() for p in net.parameters()] + [p.grad.clone() for p in net.parameters()]
        """
    plain = run(tmp_path, program)["values"]
    with gradsight.watch(report=False):
        watched = run(tmp_path, program)["values"]
    assert all(torch.equal(one, other) for one, other in zip(plain, watched, strict=True))


def test_a_failure_of_ours_never_reaches_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: Any, error: BaseException) -> None:
        raise KeyError("ours")

    monkeypatch.setattr("gradsight.agent.blame.Blame.explain_on_its_way", broken)
    with gradsight.watch(report=False) as watch:
        with pytest.raises(RuntimeError, match="leaf Variable") as caught:
            run(tmp_path, "w = torch.ones(3, requires_grad=True)\nw.mul_(2)\n")
        assert not hasattr(caught.value, "__notes__")
        assert "internal error of GradSight" in str(watch.report())


def test_memory_of_the_program_is_not_kept(tmp_path: Path) -> None:
    import gc
    import weakref

    kept: list[Any] = []

    def make() -> None:
        net = nn.Linear(3, 3)
        opt = torch.optim.SGD(net.parameters(), 0.1)
        loss = net(torch.ones(2, 3)).detach().sum() + net(torch.ones(2, 3)).sum()
        loss.backward()
        opt.step()
        kept.extend(weakref.ref(each) for each in (net, net.weight, loss, opt))

    with gradsight.watch(report=False):
        make()
        gc.collect()
        assert [each() for each in kept] == [None] * 4


def tell_nobody(error: BaseException, fault: Any) -> None:
    return None


def test_stopping_twice_is_stopping_once() -> None:
    watch = Watch(tell_nobody)
    watch.start()
    watch.stop()
    watch.stop()
    assert not watch.is_on


def test_a_step_with_a_closure_is_counted_too(tmp_path: Path) -> None:
    with gradsight.watch(report=False) as watch:
        run(
            tmp_path,
            """
            net, unused = nn.Linear(3, 1), nn.Linear(3, 1)
            optimizer = torch.optim.SGD([*net.parameters(), *unused.parameters()], lr=0.1)

            def closure():
                optimizer.zero_grad()
                loss = net(torch.ones(4, 3)).mean()
                loss.backward()
                return loss

            for _ in range(2):
                optimizer.step(closure)
            """,
        )
        lines = [str(line) for line in watch.report().parameters]
    assert len(lines) == 1
    assert "no gradient in any of 2 steps" in lines[0]
