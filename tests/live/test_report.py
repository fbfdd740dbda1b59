"""What a watch reports at its end beside parameters: the cuts that explain them, and graphs that are kept."""

from __future__ import annotations

from pathlib import Path

import pytest

import gradsight
from gradsight.live.report import WatchReport
from tests.live.test_watch import run

PARTS = """
encoder, head = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 4)), nn.Linear(4, 1)
opt = torch.optim.SGD([*encoder.parameters(), *head.parameters()], lr=0.01)
data = torch.randn(12, 5, 3)
"""


def report_of(tmp_path: Path, loop: str, every: int = 1) -> WatchReport:
    """What is reported of a training loop, which begins in line 4."""
    with gradsight.watch(every=every, report=False) as watch:
        run(tmp_path, PARTS.lstrip() + loop.lstrip())
        return watch.report()


def loop(body: str) -> str:
    lines = [f"    {line}" for line in body.strip().splitlines()]
    return "\n".join(["for x in data:", "    opt.zero_grad()", *lines, "    opt.step()", ""])


@pytest.mark.parametrize(
    ("body", "line", "code"),
    [
        ("h = encoder(x).detach()\nhead(h).sum().backward()", 6, "GS203"),
        ("h = encoder(x).data\nhead(h).sum().backward()", 6, "GS203"),
        ("with torch.no_grad():\n    h = encoder(x)\nhead(h).sum().backward()", 6, "GS204"),
        ("h = torch.tensor(encoder(x).tolist())\nhead(h).sum().backward()", 6, "GS202"),
        (
            "h = encoder(x).argmax(-1, keepdim=True).expand(5, 4).float()\nhead(h).sum().backward()",
            6,
            "GS205",
        ),
        ("h = encoder(x).mean().item()\n(head(torch.ones(4)) * h).sum().backward()", 6, "GS202"),
        (
            "a, b = encoder[0](x).detach(), encoder[2](torch.ones(4)).detach()\nc = a + b\nhead(c).sum().backward()",
            6,
            "GS203",
        ),
    ],
)
def test_the_cut_is_named_that_keeps_parameters_from_the_loss(
    tmp_path: Path, body: str, line: int, code: str
) -> None:
    report = report_of(tmp_path, loop(body))
    assert report.parameters == ()
    assert report.cuts, str(report)
    named = [name for fault in report.cuts for name in fault.evidence["parameters"]]
    assert len(named) == 4, named
    assert {name.rpartition(".")[2] for name in named} == {"weight", "bias"}
    said = str(report)
    assert f" {code} " in said
    assert {fault.place.row for fault in report.cuts} == {line}, said
    assert f"needed train.py:{line + len(body.splitlines()) - 1}" in said.replace(str(tmp_path) + "/", "")


def test_a_cut_off_value_that_no_loss_takes_in_explains_nothing(tmp_path: Path) -> None:
    report = report_of(
        tmp_path, loop("print(end='', *encoder(x).detach()[:0])\nhead(torch.ones(4)).sum().backward()")
    )
    assert report.cuts == ()
    assert "no gradient in any of 12 steps" in str(report.parameters[0])


def test_a_cut_beside_a_path_that_trains_is_no_fault(tmp_path: Path) -> None:
    body = (
        "h = encoder(x)\nloss = head(h).sum() + (head(h.detach()) * float(h.mean())).sum()\nloss.backward()"
    )
    assert report_of(tmp_path, loop(body)).is_clean


def test_the_cut_is_named_when_the_model_is_gone(tmp_path: Path) -> None:
    body = PARTS.strip().splitlines() + loop("head(encoder(x).detach()).sum().backward()").splitlines()
    text = "\n".join(["def train():", *(f"    {line}" for line in body), "train()", ""])
    with gradsight.watch(report=False) as watch:
        run(tmp_path, text)
        report = watch.report()
    assert "cuts the path from the loss to `Sequential.0.weight` and 3 more parameters" in str(report)


KEPT = "loss = head(encoder(x)).square().mean()\nloss.backward()\n"


@pytest.mark.parametrize("every", [1, 2])
@pytest.mark.parametrize(
    ("before", "body", "line", "holder"),
    [
        ("history = []", "history.append(loss)", 9, "history"),
        ("history = []", "history.append((loss * 2).sqrt())", 9, "history"),
        ("history = {}", "history[float(x[0, 0])] = loss", 9, "history"),
        ("total = 0", "total = total + loss", 9, "total"),
        ("total = 0", "total += loss / len(data)", 9, "total"),
    ],
)
def test_a_line_that_keeps_every_graph_is_named(
    tmp_path: Path, before: str, body: str, line: int, holder: str, every: int
) -> None:
    report = report_of(tmp_path, f"{before}\n{loop(KEPT + body)}", every)
    [fault] = report.kept_graphs
    assert fault.place.row == line
    assert f"keeps the graph of every step in memory, in `{holder}`" in fault.message
    assert " GS404 " in str(report)
    assert not report.is_clean


def test_what_a_helper_returns_into_a_list_is_named_where_it_is_made(tmp_path: Path) -> None:
    text = """
        def step(x):
            loss = head(encoder(x)).square().mean()
            loss.backward()
            return loss

        kept = [None] * len(data)
        for index, x in enumerate(data):
            kept[index] = step(x)
            opt.step()
        """
    from textwrap import dedent

    [fault] = report_of(tmp_path, dedent(text)).kept_graphs
    assert "keeps the graph of every step in memory" in fault.message


@pytest.mark.parametrize(
    "body",
    [
        KEPT + "history.append(loss.item())",
        KEPT + "history.append(loss.detach())",
        KEPT + "history[:] = [loss]",
        KEPT + "best = loss if not history else best",
        "terms = []\nfor row in x:\n    terms.append(head(encoder(row)).square().mean())\nsum(terms).backward()",
        "total = 0\nfor row in x:\n    total = total + head(encoder(row)).square().mean()\ntotal.backward()",
    ],
)
def test_what_ends_with_its_step_is_no_fault(tmp_path: Path, body: str) -> None:
    report = report_of(tmp_path, f"history, best = [], None\n{loop(body)}")
    assert report.kept_graphs == (), str(report)


def test_losses_of_several_steps_that_wait_for_their_backward_are_no_fault(tmp_path: Path) -> None:
    text = """
        inner = nn.Linear(3, 1)
        inner_opt = torch.optim.SGD(inner.parameters(), 0.1)
        outer = 0
        for x in data:
            inner_opt.zero_grad()
            inner(x).sum().backward()
            inner_opt.step()
            outer = outer + head(encoder(x)).square().mean()
        outer.backward()
        opt.step()
        """
    from textwrap import dedent

    report = report_of(tmp_path, dedent(text))
    assert report.is_clean, str(report)
