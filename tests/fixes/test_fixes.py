"""What is offered for a finding, how safe it is said to be, and what is left as it was."""

from __future__ import annotations

import logging
from dataclasses import replace
from textwrap import dedent
from typing import Any

import pytest
import torch

from gradsight.analysis import analyze
from gradsight.fixing import fix_all, fixes_for, suppress_edit
from gradsight.model import Finding, Report, Source, apply_edits
from tests.fixes.checking import PATH, check, check_none, check_safety, findings_of, fixes_of, source_of

OVERWRITTEN = """
    import torch

    x = torch.ones(3, requires_grad=True)
    y = x.exp()
    y *= 2  # twice
    y.sum().backward()
"""


def test_the_preferred_fix_comes_first_and_names_the_variable() -> None:
    _, fixes = fixes_of(OVERWRITTEN, "GS101")
    assert [fix.preferred for fix in fixes] == [True] + [False] * (len(fixes) - 1)
    assert fixes[0].title == "replace with `y = y * 2`"
    assert all(fix.code == "GS101" for fix in fixes)


def test_comments_stay_where_they_are() -> None:
    check(OVERWRITTEN, "GS101", OVERWRITTEN.replace("y *= 2", "y = y * 2"), "safe", place=0)


def test_a_tensor_with_another_reader_is_not_rewritten_safely() -> None:
    text = """
        import torch

        x = torch.ones(3, requires_grad=True)
        y = x.exp()
        same = y
        y *= 2
        (y + same).sum().backward()
    """
    check(text, "GS101", text.replace("y *= 2", "y = y * 2"), "unsafe")
    check_safety(text, "GS101", "unsafe")


def test_a_write_that_is_only_for_others_is_not_rewritten() -> None:
    text = """
        import torch

        rows = torch.ones(3, 3, requires_grad=True) * 2
        for row in rows:
            row *= 2
        rows.sum().backward()
    """
    check_none(text, "GS103")


def test_an_argument_that_every_caller_makes_anew_is_local() -> None:
    text = """
        import torch


        def scale(values, factor):
            values *= factor
            return values


        x = torch.ones(3, requires_grad=True)
        scale(x.exp(), 3.0).sum().backward()
    """
    check(text, "GS101", text.replace("values *= factor", "values = values * factor"), "safe", place=0)


def test_an_argument_that_a_caller_still_reads_is_not() -> None:
    text = """
        import torch


        def scale(values, factor):
            values *= factor
            return values


        x = torch.ones(3, requires_grad=True)
        y = x.exp()
        z = scale(y, 3.0)
        (z + y).sum().backward()
    """
    check(text, "GS101", text.replace("values *= factor", "values = values * factor"), "unsafe")


def test_neighbouring_updates_share_one_block() -> None:
    text = """
        import torch

        w = torch.ones(3, requires_grad=True)
        b = torch.ones(3, requires_grad=True)
        (w * w + b * b).sum().backward()
        w -= 0.1 * w.grad  # step
        b -= 0.1 * b.grad
    """
    after = """
        import torch

        w = torch.ones(3, requires_grad=True)
        b = torch.ones(3, requires_grad=True)
        (w * w + b * b).sum().backward()
        with torch.no_grad():
            w -= 0.1 * w.grad  # step
            b -= 0.1 * b.grad
    """
    check(text, "GS102", after, "safe", place=0)


def test_a_block_is_indented_as_the_text_is() -> None:
    text = "import torch\ndef f(w):\n\tw.sum().backward()\n\tw -= (\n\t\t0.1 * w.grad\n\t)\n\n\nf(torch.ones(2, requires_grad=True))\n"
    after = text.replace(
        "\tw -= (\n\t\t0.1 * w.grad\n\t)", "\twith torch.no_grad():\n\t\tw -= (\n\t\t\t0.1 * w.grad\n\t\t)"
    )
    check(text, "GS102", after, "safe", place=0)


def test_findings_with_one_cause_are_repaired_together() -> None:
    text = """
        import torch

        raw = torch.ones(4, 2, requires_grad=True)
        w, h = raw.sigmoid().unbind(-1)
        w.mul_(3)
        h.mul_(4)
        (w + h).sum().backward()
    """
    after = text.replace("w.mul_(3)", "w = w * 3").replace("h.mul_(4)", "h = h * 4")
    check(text, "GS103", after, "safe", place=0)


def test_what_a_fix_brings_to_light_is_repaired_with_it() -> None:
    text = """
        import torch
        from torch import nn

        net = nn.Linear(2, 1)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        values = []
        for x in torch.ones(3, 4, 2):
            values.append(net(x).mean().item())
        loss = torch.tensor(values).mean()
        loss.backward()
        optimizer.step()
    """
    after = text.replace(".mean().item()", ".mean()").replace("torch.tensor(values)", "torch.stack(values)")
    check(text, "GS202", after, "unsafe", place=0)


def test_an_import_is_added_where_it_is_needed() -> None:
    text = """
        from torch import nn
        from torch.optim import SGD

        net = nn.Linear(2, 2)
        for epoch in range(2):
            before = net.state_dict()
            optimizer = SGD(net.parameters(), lr=0.1)
            net.weight.sum().backward()
            optimizer.step()
            net.load_state_dict(before)
    """
    after = text.replace(
        "from torch import nn", "import copy\nfrom torch import nn".replace("\n", "\n        ")
    )
    after = after.replace("net.state_dict()", "copy.deepcopy(net.state_dict())")
    check(text, "GS107", after, "unsafe", place=0)


MIXED = """
    import torch

    w = torch.ones(4, requires_grad=True)
    q = w * torch.arange(4.0)
    cos, sin = 0.5, 0.25
    q[:2] = q[:2] * cos - q[2:] * sin
    q[2:] = q[2:] * cos + q[:2] * sin
    q.sum().backward()
"""


def test_parts_that_are_mixed_in_place_are_assigned_together() -> None:
    first, second = "q[:2] = q[:2] * cos - q[2:] * sin", "q[2:] = q[2:] * cos + q[:2] * sin"
    both = "q[:2], q[2:] = q[:2] * cos - q[2:] * sin, q[2:] * cos + q[:2] * sin"
    after = MIXED.replace(f"{first}\n    {second}", both)
    check(MIXED, "GS107", after, "unsafe", place=0)
    assert len(fixes_of(MIXED, "GS107")[1]) == 1
    seen: dict[str, Any] = {}
    exec(dedent(after), seen)
    old, turned = torch.arange(4.0), torch.tensor([0.75, 0.75, 0.25, 0.25]) * torch.arange(4.0)
    wanted = torch.cat([old[:2] * 0.5 - old[2:] * 0.25, old[2:] * 0.5 + old[:2] * 0.25])
    assert torch.equal(seen["q"], wanted)
    assert torch.equal(seen["w"].grad, turned)


def test_parts_with_something_between_are_left_alone() -> None:
    check_none(MIXED.replace("    q[2:] = ", "    print(q)\n    q[2:] = "), "GS107")


def test_a_sum_of_neighbouring_losses_is_walked_once() -> None:
    text = """
        import torch

        x = torch.ones(3, requires_grad=True)
        y = x.exp()
        first, second = y.sum(), (y * y).sum()
        first.backward()
        second.backward()
    """
    after = text.replace("        first.backward()\n", "").replace(
        "second.backward()", "(first + second).backward()"
    )
    check(text, "GS402", after, "safe", place=0)


def test_keeping_the_graph_is_unsafe() -> None:
    text = """
        import torch

        x = torch.ones(3, requires_grad=True)
        loss = x.exp().sum()
        loss.backward()
        loss.backward()
    """
    check(text, "GS402", text.replace("loss.backward()", "loss.backward(retain_graph=True)", 1), "unsafe")


@pytest.mark.parametrize("way", ["sum", "mean"])
def test_both_ways_to_reduce_are_offered_and_neither_is_safe(way: str) -> None:
    text = """
        import torch

        x = torch.ones(3, requires_grad=True)
        y = x * 2
        y.backward()
    """
    check(text, "GS401", text.replace("y.backward()", f"y.{way}().backward()"), "unsafe")


def test_an_argument_joins_a_call_in_the_way_it_is_written() -> None:
    text = """
        import torch
        from torch import nn

        net = nn.Linear(2, 1)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        x = torch.ones(4, 2, requires_grad=True)
        out = net(x).pow(2)
        (slope,) = torch.autograd.grad(
            out.sum(),
            x,  # the input
        )
        loss = net(x).mean() + slope.norm()
        loss.backward()
        optimizer.step()
    """
    after = text.replace("x,  # the input\n", "x,  # the input\n            create_graph=True,\n")
    check(text, "GS405", after, "safe", place=0)


@pytest.mark.parametrize(
    ("call", "after"),
    [
        ("torch.autograd.grad(out, x)", "torch.autograd.grad(out, x, create_graph=True)"),
        ("torch.autograd.grad(out,x)", "torch.autograd.grad(out,x,create_graph=True)"),
        ("torch.autograd.grad(\n    out, x\n)", "torch.autograd.grad(\n    out, x, create_graph=True\n)"),
        (
            "torch.autograd.grad(\n    out,\n    x  # in\n)",
            "torch.autograd.grad(\n    out,\n    x,  # in\n    create_graph=True\n)",
        ),
        (
            "torch.autograd.grad(out, x, retain_graph=True)",
            "torch.autograd.grad(out, x, create_graph=True)",
        ),
    ],
)
def test_calls_keep_their_layout(call: str, after: str) -> None:
    text = (
        "import torch\nfrom torch import nn\n\nnet = nn.Linear(2, 1)\n"
        "optimizer = torch.optim.SGD(net.parameters(), lr=0.1)\nx = torch.ones(4, 2, requires_grad=True)\n"
        f"out = net(x).pow(2).sum()\n(slope,) = {call}\n"
        "loss = net(x).mean() + slope.norm()\nloss.backward()\noptimizer.step()\n"
    )
    check(text, "GS405", text.replace(call, after), "safe", place=0)


def test_a_stop_gradient_is_never_dropped_without_being_asked() -> None:
    text = """
        import torch
        from torch import nn

        net, head = nn.Linear(2, 2), nn.Linear(2, 1)
        optimizer = torch.optim.SGD([*net.parameters(), *head.parameters()], lr=0.1)
        loss = head(net(torch.ones(4, 2)).detach()).mean()
        loss.backward()
        optimizer.step()
    """
    check_safety(text, "GS203", "unsafe")


def test_a_fix_that_leaves_the_finding_is_dropped_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    source = source_of(OVERWRITTEN)
    (finding,) = findings_of(source, "GS101")
    stubborn = Report(PATH, (finding,))
    with caplog.at_level(logging.INFO, logger="gradsight.fixing"):
        assert fixes_for(source, finding, check=lambda changed: stubborn) == []
    assert "the finding stays" in caplog.text


def test_a_fix_that_brings_another_finding_is_dropped_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    source = source_of(OVERWRITTEN)
    (finding,) = findings_of(source, "GS101")
    other = Finding("GS999", "other", "something else", "warning", "certain", PATH, finding.span)

    def check_changed(changed: Source) -> Report:
        return Report(PATH, (finding,) if changed.text == source.text else (other,))

    with caplog.at_level(logging.INFO, logger="gradsight.fixing"):
        assert fixes_for(source, finding, check=check_changed) == []
    assert "brings GS999" in caplog.text


def test_what_rests_on_an_assumption_is_not_changed_without_being_asked() -> None:
    text = """
        import torch
        from torch import nn

        net = nn.Linear(2, 1)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for x in torch.ones(3, 4, 2):
            loss = net(x).mean()
            loss.backward()
            optimizer.step()
    """
    source = source_of(text)
    (finding,) = findings_of(source, "GS501")
    assumed = replace(finding, certainty="assumed", assumption="the loop runs twice")
    report = Report(PATH, (assumed,))
    (fix,) = fixes_for(source, assumed, report=report)
    assert fix.safety == "unsafe"
    check_safety(text, "GS501", "safe")


def test_a_finding_of_another_file_has_no_fix_here() -> None:
    source = source_of(OVERWRITTEN)
    (finding,) = findings_of(source, "GS101")
    assert fixes_for(Source("other.py", source.text), finding) == []


def test_a_broken_text_has_no_fix() -> None:
    source = source_of(OVERWRITTEN)
    (finding,) = findings_of(source, "GS101")
    assert fixes_for(Source(PATH, source.text + "def f(:\n"), finding) == []


def test_everything_outside_the_statement_is_byte_identical() -> None:
    source = Source(PATH, source_of(OVERWRITTEN).text.replace("\n", "\r\n") + "\f\r\nweird  =  'é😀'   \r\n")
    report = analyze(source)
    (finding,) = [one for one in report.findings if one.code == "GS101"]
    for fix in fixes_for(source, finding, report=report):
        changed = apply_edits(source.text, fix.edits).split("\r\n")
        differing = [old for old, new in zip(source.text.split("\r\n"), changed) if old != new]
        assert len(differing) == 1


def test_fixing_everything_twice_changes_nothing_the_second_time() -> None:
    source = source_of(OVERWRITTEN)
    once, applied = fix_all(source)
    assert len(applied) == 1
    assert fix_all(Source(PATH, once)) == (once, [])


def test_unsafe_fixes_are_applied_only_when_asked_for() -> None:
    text = "import torch\nx = torch.ones(3, requires_grad=True)\ny = x * 2\ny.backward()\n"
    assert fix_all(Source(PATH, text)) == (text, [])
    changed, (fix,) = fix_all(Source(PATH, text), unsafe=True)
    assert fix.safety == "unsafe"
    assert ".sum().backward()" in changed


@pytest.mark.parametrize(
    ("line", "after"),
    [
        ("y *= 2", "y *= 2  # gradsight: ignore[GS101]"),
        ("y *= 2  # twice", "y *= 2  # twice  # gradsight: ignore[GS101]"),
        ("y *= 2  # gradsight: ignore[GS190]", "y *= 2  # gradsight: ignore[GS190, GS101]"),
        ("y *= (\n    2\n)", "y *= (\n    2\n)  # gradsight: ignore[GS101]"),
        ("y *= 2 + \\\n  1", "y *= 2 + \\\n  1  # gradsight: ignore[GS101]"),
    ],
)
def test_a_comment_silences_the_finding(line: str, after: str) -> None:
    text = source_of(OVERWRITTEN).text.replace("y *= 2  # twice", line)
    source = Source(PATH, text)
    (finding,) = findings_of(source, "GS101")
    fix = suppress_edit(source, finding)
    assert fix is not None
    changed = apply_edits(text, fix.edits)
    assert changed == text.replace(line, after)
    assert findings_of(Source(PATH, changed), "GS101") == []


def test_a_title_tells_every_step_of_a_repair() -> None:
    text = """
        import torch
        x = torch.ones(4, requires_grad=True)
        y = x.sigmoid()
        keep = y
        y *= 2
        (y + keep).sum().backward()
    """
    _, fixes = fixes_of(text, "GS101")
    assert [fix.title for fix in fixes] == [
        "replace with `y = y * 2` (the original keeps its value)",
        "clone the output of `sigmoid`, and clone `y` (values read later change)",
    ]


@pytest.mark.parametrize(
    ("statement", "name"), [("g = GRAD[0]", "g"), ("(g,) = GRAD", "g"), ("gs = GRAD; g = gs[0]", "gs")]
)
def test_the_title_for_a_penalty_names_the_gradient(statement: str, name: str) -> None:
    text = f"""
        import torch
        x = torch.ones(2, requires_grad=True)
        out = (x ** 3).sum()
        {statement.replace("GRAD", "torch.autograd.grad(out, x)")}
        (g.pow(2).sum() + x.sum()).backward()
    """
    _, fixes = fixes_of(text, "GS405")
    assert fixes[0].title in (
        f"replace with `{statement.partition(';')[0].replace('GRAD', 'torch.autograd.grad(out, x, create_graph=True)')}`",
        f"compute `{name}` with `create_graph=True`",
        f"replace with `{statement.replace('GRAD', 'torch.autograd.grad(out, x, create_graph=True)')}`",
    )
