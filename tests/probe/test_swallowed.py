"""Errors that torch raised and somebody caught: told as faults, they confirm what was predicted, and nothing is refuted by them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gradsight.analysis import analyze
from gradsight.model.source import Source
from gradsight.probe.document import document_of, exit_code_of
from gradsight.probe.request import ProbeRequest
from gradsight.probe.standby import Standby
from gradsight.session.traces import traces_of
from gradsight.session.verdicts import judge, visited_lines
from tests.probe.expectation import PYTHON

HAZARD = "import torch\nw = torch.ones(3, requires_grad=True)\ny = w.exp()\ny += 1\n"
BODY = "    w = torch.ones(3, requires_grad=True)\n    y = w.exp()\n    y += 1\n"
SWALLOWED = {
    "thread": HAZARD
    + "import threading\ndef go():\n    y.sum().backward()\nt = threading.Thread(target=go)\nt.start()\nt.join()\n",
    "pool": HAZARD
    + "from concurrent.futures import ThreadPoolExecutor\ndef go():\n    y.sum().backward()\n"
    + "with ThreadPoolExecutor(1) as pool:\n    future = pool.submit(go)\n",
    "unittest": "import unittest, torch\nclass T(unittest.TestCase):\n  def test_a(self):\n"
    + BODY
    + "    y.sum().backward()\nif __name__ == '__main__':\n    unittest.main(exit=False)\n",
    "retry": "import functools, torch\ndef retry(f):\n    @functools.wraps(f)\n    def again(*a):\n        for _ in range(3):\n"
    "            try:\n                return f(*a)\n            except Exception:\n                continue\n    return again\n"
    "@retry\ndef step():\n" + BODY + "    y.sum().backward()\nstep()\n",
    "gather": "import asyncio, torch\nasync def f():\n"
    + BODY
    + "    y.sum().backward()\nasync def main():\n    await asyncio.gather(f(), return_exceptions=True)\nasyncio.run(main())\n",
    "finally": "import torch\ndef f():\n"
    + BODY
    + "    try:\n        y.sum().backward()\n    finally:\n        return 3\nf()\n",
    "del": "import torch\nclass A:\n    def __init__(self):\n        w = torch.ones(3, requires_grad=True)\n        self.y = w.exp()\n"
    "        self.y += 1\n    def __del__(self):\n        self.y.sum().backward()\na = A()\ndel a\n",
}


AT_THE_END = HAZARD + "import atexit\n@atexit.register\ndef go():\n    y.sum().backward()\n"


def test_what_is_called_at_the_end_is_still_watched(standby: Standby, tmp_path: Path) -> None:
    document, _ = probe(standby, tmp_path, AT_THE_END)
    assert [each["code"] for each in document["faults"]] == ["GS101"]
    assert exit_code_of(document) == 1


def test_a_call_at_the_end_that_does_not_come_back_is_left(standby: Standby, tmp_path: Path) -> None:
    text = "import atexit, time, torch\natexit.register(time.sleep, 1000)\ntorch.ones(3, requires_grad=True).sum().backward()\n"
    document, _ = probe(standby, tmp_path, text)
    assert (document["outcome"], document["faults"]) == ("clean", [])


def test_a_call_at_the_end_that_was_taken_back_is_not_made(standby: Standby, tmp_path: Path) -> None:
    document, _ = probe(standby, tmp_path, AT_THE_END + "atexit.unregister(go)\n")
    assert document["faults"] == []


def probe(standby: Standby, folder: Path, text: str, **options: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The document of a probe, and the agent's report."""
    path = folder / "program.py"
    path.write_text(text)
    request = ProbeRequest(PYTHON, script=str(path), timeout=60, seed=0, touches=True, **options)
    outcome = standby.run(request)
    return document_of(outcome), dict(getattr(outcome, "report", None) or {})


def check(standby: Standby, folder: Path, text: str, expected: dict[str, str]) -> dict[str, Any]:
    """What a run says of the findings of a program, by code; no finding of it is refuted."""
    document, report = probe(standby, folder, text)
    path = str(folder / "program.py")
    findings = [each for each in analyze(Source(path, text)).findings if each.severity != "hint"]
    judged = judge(findings, document, visited_lines(report), text, path, traces_of(report))
    verdicts = {each.finding.code: each.verdict for each in judged}
    assert {code: verdicts.get(code, "") for code in expected} == expected
    assert "refuted" not in verdicts.values()
    return document


@pytest.mark.parametrize("how", SWALLOWED)
def test_an_error_that_somebody_swallowed_confirms_its_finding(
    standby: Standby, tmp_path: Path, how: str
) -> None:
    document = check(standby, tmp_path, SWALLOWED[how], {"GS101": "confirmed"})
    assert document["outcome"] == "faults"
    assert exit_code_of(document) == 1
    [caught] = document["caught"]
    assert (caught["type"], caught["code"], caught["in_backward"]) == ("RuntimeError", "GS101", True)
    assert any("the program went on" in note for note in document["notes"])
    [fault] = [each for each in document["faults"] if each["code"] == "GS101"]
    assert fault["evidence"]["caught"]


@pytest.mark.parametrize(("status", "outcome"), [(0, "faults"), (7, "raised")])
def test_a_program_that_leaves_by_the_back_door_is_told_of(
    standby: Standby, tmp_path: Path, status: int, outcome: str
) -> None:
    text = (
        HAZARD
        + f"try:\n    y.sum().backward()\nexcept RuntimeError:\n    pass\nimport os\nos._exit({status})\n"
    )
    document, report = probe(standby, tmp_path, text)
    assert (document["outcome"], report["exit_code"]) == (outcome, status)
    assert [each["code"] for each in document["faults"]] == ["GS101"]


def test_a_failing_attempt_before_a_good_one_is_told(standby: Standby, tmp_path: Path) -> None:
    text = HAZARD + "try:\n    y.sum().backward()\nexcept RuntimeError:\n    w.exp().sum().backward()\n"
    document, _ = probe(standby, tmp_path, text)
    assert [(each["code"], each["location"]["row"]) for each in document["faults"]] == [("GS101", 4)]


@pytest.mark.parametrize(
    ("line", "code"),
    [("w += 1", "GS102"), ("w.view(3).mul_(2)", "GS102"), ("(w * 2).chunk(3)[0].mul_(2)", "GS103"),
     ("(w * 2).backward()", "GS401"), ("torch.autograd.backward(w * 2)", "GS401"), ("w.detach().sum().backward()", "GS203")],
)  # fmt: skip
def test_what_torch_refuses_on_the_spot_is_told_though_it_was_caught(
    standby: Standby, tmp_path: Path, line: str, code: str
) -> None:
    text = f"import torch\nw = torch.ones(3, requires_grad=True)\ntry:\n    {line}\nexcept RuntimeError:\n    pass\n"
    document, _ = probe(standby, tmp_path, text)
    assert document["outcome"] == "faults"
    assert [(each["code"], each["location"]["row"]) for each in document["faults"]] == [(code, 4)]


def test_an_error_that_the_program_waits_for_is_no_fault(standby: Standby, tmp_path: Path) -> None:
    text = (
        "import unittest, torch\nclass T(unittest.TestCase):\n  def test_a(self):\n"
        + BODY
        + "    with self.assertRaises(RuntimeError):\n        y.sum().backward()\nunittest.main(exit=False)\n"
    )
    document, _ = probe(standby, tmp_path, text)
    assert (document["outcome"], document["faults"]) == ("clean", [])
    assert [each["expected"] for each in document["caught"]] == [True]


def test_the_error_that_ends_the_program_is_not_called_caught(standby: Standby, tmp_path: Path) -> None:
    document, _ = probe(
        standby,
        tmp_path,
        HAZARD + "try:\n    y.sum().backward()\nexcept RuntimeError:\n    raise ValueError\n",
    )
    assert (document["outcome"], document["caught"]) == ("raised", [])
    assert [each["code"] for each in document["faults"]] == ["GS101"]


def test_a_thousand_failing_rounds_are_one_error(standby: Standby, tmp_path: Path) -> None:
    text = (
        "import torch\nfor _ in range(300):\n"
        + BODY
        + "    try:\n        y.sum().backward()\n    except RuntimeError:\n        pass\n"
    )
    document, _ = probe(standby, tmp_path, text)
    assert (len(document["caught"]), len(document["faults"])) == (1, 1)


@pytest.mark.parametrize(
    ("line", "kind", "words"),
    [
        ("import sys; sys.exit(3)", "SystemExit", "exit status 3"),
        ("import sys; sys.exit('bad')", "SystemExit", "exit status 1: bad"),
        ("raise SystemExit([1, 2])", "SystemExit", "exit status 1"),
        ("import argparse; p = argparse.ArgumentParser(); p.add_argument('--data', required=True); p.parse_args()",
         "SystemExit", "exit status 2"),
        ("class E(Exception):\n    def __str__(self): raise RuntimeError('no')\n    __repr__ = __str__\nraise E", "E", "cannot be shown"),
        ("class E(Exception):\n    def __str__(self): return 5\nraise E", "E", "cannot be shown"),
    ],
)  # fmt: skip
def test_a_program_that_ended_badly_is_not_clean(
    standby: Standby, tmp_path: Path, line: str, kind: str, words: str
) -> None:
    document, _ = probe(
        standby, tmp_path, f"import torch\ntorch.ones(1, requires_grad=True).sum().backward()\n{line}\n"
    )
    assert document["outcome"] == "raised"
    assert exit_code_of(document) == 1
    assert document["error"]["type"] == kind
    assert words in document["error"]["message"]
    assert document["error"]["location"]["row"] >= 3


@pytest.mark.parametrize(
    "line", ["import sys; sys.exit()", "import sys; sys.exit(0)", "raise SystemExit(False)"]
)
def test_a_program_that_ended_well_is_clean(standby: Standby, tmp_path: Path, line: str) -> None:
    document, _ = probe(
        standby, tmp_path, f"import torch\ntorch.ones(1, requires_grad=True).sum().backward()\n{line}\n"
    )
    assert (document["outcome"], exit_code_of(document)) == ("clean", 0)


def test_a_backward_that_was_patched_away_refutes_nothing(standby: Standby, tmp_path: Path) -> None:
    for patch in ("torch.autograd.backward", "torch.Tensor.backward"):
        text = f"import torch\n{patch} = lambda *a, **k: None\n{HAZARD}y.sum().backward()\n"
        check(standby, tmp_path, text, {"GS101": "undecided"})


def test_a_run_that_takes_another_path_refutes_nothing(standby: Standby, tmp_path: Path) -> None:
    text = (
        "import sys\nimport torch\nx = torch.ones(3, requires_grad=True)\ny = x.exp() if len(sys.argv) > 8 else x * 2\n"
        "y *= 3\ny.sum().backward()\n"
    )
    check(standby, tmp_path, text, {"GS101": "undecided"})


ELSEWHERE = """import sys
import torch
w = torch.ones(3, requires_grad=True)
v = torch.ones(3, requires_grad=True)
base = w * 2
if sys.argv[1:]:
    base = base + v
y = base.exp()
y += 1
loss = y.sum() + (v * v).sum()
torch.autograd.grad(loss, [v])
"""


def test_a_backward_that_never_looks_at_what_was_saved_refutes_nothing(
    standby: Standby, tmp_path: Path
) -> None:
    """Asked for the gradient of `v` alone, torch goes past `exp`; with an argument it would raise there."""
    check(standby, tmp_path, ELSEWHERE, {"GS101": "undecided"})
    check(standby, tmp_path, ELSEWHERE.replace("[v])", "[w])"), {"GS101": "confirmed"})


def test_a_write_to_another_tensor_refutes_nothing(standby: Standby, tmp_path: Path) -> None:
    """With an argument the leaf itself is written, and torch raises."""
    text = (
        "import sys\nimport torch\nleaf = torch.ones(3, requires_grad=True)\ncopy = leaf * 2\n"
        "row = leaf if len(sys.argv) > 3 else copy\nrow[1:].mul_(0.5)\ncopy.sum().backward()\n"
    )
    check(standby, tmp_path, text, {"GS102": "undecided"})


@pytest.mark.parametrize(
    ("replaced", "expected"),
    [
        ("z.data = torch.zeros(3)", {"GS104": "confirmed"}),
        ("z.data = z.data * 2", {"GS104": "confirmed"}),
    ],
)
def test_memory_that_is_replaced_under_what_was_saved_is_seen(
    standby: Standby, tmp_path: Path, replaced: str, expected: dict[str, str]
) -> None:
    text = f"import torch\nu = torch.ones(3, requires_grad=True)\nz = u * 3\ne = torch.mul(u, z)\n{replaced}\ne.sum().backward()\n"
    check(standby, tmp_path, text, expected)


def test_a_product_in_place_on_the_line_of_the_save_is_not_the_product_that_saved(
    standby: Standby, tmp_path: Path
) -> None:
    """With an argument the product of the parts stays in the graph, and torch raises."""
    text = (
        "import functools\nimport sys\nimport torch\n\n\ndef feed(t, rounds):\n    for _ in range(rounds):\n        yield t\n        t *= 0.5\n\n\n"
        "scale = torch.rand(3, 3, requires_grad=True)\na = scale.square()\nproj = functools.reduce(torch.mul, feed(a, 2))\n"
        "if len(sys.argv) in (1, 2):\n    proj = a + 1\na.sub_(proj)\na.sum().backward()\n"
    )
    check(standby, tmp_path, text, {"GS101": "undecided"})


def test_memory_that_is_replaced_by_its_copy_or_under_an_alias_is_no_fault(
    standby: Standby, tmp_path: Path
) -> None:
    text = (
        "import torch\nu = torch.ones(3, requires_grad=True)\nz = u * 3\ne = torch.mul(u, z)\nz.data = z.data.clone()\n"
        "same = torch.ones(3)\nk = u * same\nother = u * 2\nother.data = same\n(e + k).sum().backward()\n"
    )
    document, _ = probe(standby, tmp_path, text)
    assert document["faults"] == []
