"""Findings in functions that nothing calls: made-up inputs fit after what torch says about them, and prove the finding."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from gradsight.analysis import analyze
from gradsight.model.source import Source
from gradsight.probe.document import document_of
from gradsight.probe.feedback import revised
from gradsight.probe.guesses import Guess
from gradsight.probe.minimal import cut_out
from gradsight.probe.outcome import CouldNotRun, Observed, Outcome, Raised
from gradsight.probe.request import ProbeRequest
from gradsight.probe.standby import Standby
from gradsight.session.proofs import again, attempts
from gradsight.session.traces import traces_of
from gradsight.session.verdicts import judge, visited_lines

HEAD = "import torch\nfrom torch import nn\nimport torch.nn.functional as F\n\n\n"
LIBRARIES = {
    "a mask as long as the sequence": (
        "class Attention(nn.Module):\n    def __init__(self, dim):\n        super().__init__()\n"
        "        self.proj = nn.Linear(dim, dim)\n    def forward(self, x, keep):\n        b, t, d = x.shape\n"
        "        scores = self.proj(x) @ x.transpose(1, 2)\n        weights = scores.softmax(-1)\n"
        "        weights *= keep[:, None, :]\n        return weights @ x\n"
    ),
    "images with the channels of the first layer": (
        "class Net(nn.Module):\n    def __init__(self, channels=3):\n        super().__init__()\n"
        "        self.conv = nn.Conv2d(channels, 8, 3)\n    def forward(self, image):\n"
        "        h = torch.sigmoid(self.conv(image))\n        h += 1\n        return h.mean()\n"
    ),
    "whole numbers for an embedding": (
        "class Words(nn.Module):\n    def __init__(self, vocab, dim):\n        super().__init__()\n"
        "        self.embed = nn.Embedding(vocab, dim)\n    def forward(self, tokens):\n"
        "        h = self.embed(tokens).tanh()\n        h *= 2\n        return h\n"
    ),
    "a record with the fields that are read": (
        "def loss(batch):\n    weight = torch.ones(4, requires_grad=True)\n    h = torch.exp(batch.features * weight)\n    h /= 2\n"
        "    (h - batch.wanted).pow(2).sum().backward()\n"
    ),
    "pairs to go through": (
        "def epoch(pairs):\n    weight = torch.ones(4, requires_grad=True)\n    for x, y in pairs:\n        h = torch.tanh(x * weight)\n        h *= 2\n"
        "        F.mse_loss(h, y).backward()\n"
    ),
    "a size that only torch knows": (
        "class Deep(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.first = nn.Sequential(nn.LayerNorm(7), nn.Linear(7, 3))\n    def forward(self, x):\n"
        "        h = self.first(x).exp()\n        h.clamp_(max=5.0)\n        return h\n"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LIBRARIES)
def test_a_function_that_nothing_calls_is_proved_with(standby: Standby, tmp_path: Path, name: str) -> None:
    source = Source(str(tmp_path / "library.py"), HEAD + LIBRARIES[name])
    finding = next(each for each in analyze(source).findings if each.code == "GS101")
    programs = attempts(cut_out(source, finding, analyze), finding, source.text)
    outcome: Outcome | None = None
    verdicts = []
    while (attempt := programs.next(outcome)) is not None:
        assert attempt.is_made_up
        compile(attempt.snippet, "snippet", "exec")
        request = ProbeRequest(sys.executable, script=source.path, text=attempt.text, timeout=60)
        outcome = standby.run(request)
        report = getattr(outcome, "report", None) or {}
        judged = judge(
            [finding],
            document_of(outcome),
            visited_lines(report),
            source.text,
            source.path,
            traces_of(report),
        )
        verdicts.append(judged[0].verdict)
        if verdicts[-1] == "confirmed":
            break
    assert verdicts[-1:] == ["confirmed"], (verdicts, getattr(outcome, "report", outcome))


def test_a_function_with_its_own_backward_gets_no_other(standby: Standby, tmp_path: Path) -> None:
    """Its result has no graph, and the made-up backward would be the fault."""
    text = (
        "import torch\ndef compare():\n    w = torch.ones(3, requires_grad=True)\n    w.pow(2).sum().backward()\n"
        "    first = w.grad\n    w.pow(3).sum().backward()\n    return w.grad - first\n"
    )
    source = Source(str(tmp_path / "library.py"), text)
    [finding] = analyze(source).findings
    attempt = attempts(cut_out(source, finding, analyze), finding, text).next()
    assert attempt is not None
    assert attempt.snippet.count("backward()") == 2
    outcome = standby.run(ProbeRequest(sys.executable, script=source.path, text=attempt.text, timeout=60))
    assert isinstance(outcome, Observed)
    [fault] = document_of(outcome)["faults"]
    assert (fault["code"], fault["location"]["row"]) == (finding.code, finding.span.line)


ROWS = Guess("tensor", (2, 4))


@pytest.mark.parametrize(
    ("message", "before", "after"),
    [
        ("mat1 and mat2 shapes cannot be multiplied (2x4 and 6x8)", (2, 4), (2, 6)),
        ("Expected 3D (unbatched) or 4D (batched) input to conv2d, but got input of size: [2, 4]", (2, 4), (2, 4, 4, 4)),
        ("not enough values to unpack (expected 3, got 2)", (2, 4), (2, 3, 4)),
        ("not enough values to unpack (expected 2, got 1)", (2, 4), (2, 8)),
        ("Dimension out of range (expected to be in range of [-2, 1], but got 2)", (2, 4), (2, 3, 4)),
        ("input.size(-1) must be equal to input_size. Expected 3, got 4", (2, 4), (2, 3)),
    ],
)  # fmt: skip
def test_a_complaint_about_a_shape_is_understood(
    message: str, before: tuple[int, ...], after: tuple[int, ...]
) -> None:
    assert revised({"x": Guess("tensor", before)}, message) == {"x": Guess("tensor", after)}


def test_the_later_tensor_follows_the_first() -> None:
    message = "The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 3"
    guesses = {"x": Guess("tensor", (2, 3, 4)), "keep": ROWS}
    assert revised(guesses, message) == {**guesses, "keep": Guess("tensor", (2, 3))}


def test_a_record_gets_the_field_it_lacks() -> None:
    lesson = revised({"cfg": Guess("record")}, "'types.SimpleNamespace' object has no attribute 'width'")
    assert lesson is not None
    assert lesson["cfg"].written() == "types.SimpleNamespace(width=4)"


def test_a_complaint_about_something_else_changes_nothing() -> None:
    assert revised({"x": ROWS}, "division by zero") is None


def test_where_nothing_runs_nothing_more_is_tried() -> None:
    source = Source("library.py", HEAD + LIBRARIES["whole numbers for an embedding"])
    finding = analyze(source).findings[0]
    programs = attempts(cut_out(source, finding, analyze), finding, source.text)
    first = programs.next()
    assert first is not None
    assert programs.next(CouldNotRun("no interpreter")) is None
    assert again(first).next() == first


def test_the_attempts_end() -> None:
    source = Source("library.py", HEAD + LIBRARIES["a mask as long as the sequence"])
    finding = analyze(source).findings[0]
    programs = attempts(cut_out(source, finding, analyze), finding, source.text)
    message = "mat1 and mat2 shapes cannot be multiplied (2x{} and {}x8)"
    outcome: Outcome | None = None
    count = 0
    while programs.next(outcome) is not None:
        count += 1
        said = message.format(count + 3, count + 4)
        outcome = Raised({"error": {"type": "RuntimeError", "message": said}, "faults": []})
    assert 4 <= count <= 60


LAYERS = {
    "at the top level": (
        "inputs = torch.randn(3, 3)\nfirst = nn.Linear(3, 3)\nguess = first(inputs)\n"
        "act = nn.LeakyReLU(0.1, inplace=True)\nafter = act(inputs)\nguess.pow(2).sum().backward()\n"
    ),
    "in a module": (
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.first = nn.Linear(3, 3)\n        self.act = nn.ReLU(inplace=True)\n"
        "    def forward(self, x):\n        h = self.first(x).sigmoid()\n        k = h * h\n        return k + self.act(h)\n\n\n"
        "Net()(torch.randn(2, 3)).sum().backward()\n"
    ),
}


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_that_writes_is_seen_where_it_is_called(standby: Standby, tmp_path: Path, name: str) -> None:
    source = Source(str(tmp_path / "program.py"), HEAD + LAYERS[name])
    finding = next(each for each in analyze(source).findings if each.code == "GS101")
    assert "inplace=True" in source.text.splitlines()[finding.span.line - 1]
    outcome = standby.run(ProbeRequest(sys.executable, script=source.path, text=source.text, timeout=60))
    report = getattr(outcome, "report", None) or {}
    document = document_of(outcome)
    judged = judge([finding], document, visited_lines(report), source.text, source.path, traces_of(report))
    assert judged[0].verdict == "confirmed"
