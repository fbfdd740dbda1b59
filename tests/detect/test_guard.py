"""A detector that fails costs its own findings and nothing else, and the report says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gradsight.analysis import analyze
from gradsight.detect import listening
from gradsight.detect.graph_leaks import GraphLeaks
from gradsight.detect.listening import Detectors
from gradsight.detect.training_protocol import TrainingProtocol
from gradsight.model import Source
from tests.detect.staging import Stage

PROGRAM = """\
import torch

net = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
total = 0.0
for x in torch.ones(5, 4, 2):
    loss = net(x).sum()
    loss.backward()
    optimizer.step()
    total += loss
x = torch.ones(3, requires_grad=True)
y = x.exp()
y *= 2
y.sum().backward()
"""


def codes(report: Any) -> set[str]:
    return {finding.code for finding in report.findings if finding.severity != "hint"}


def fail(*given: Any) -> None:
    raise ZeroDivisionError("a fault of ours")


@pytest.mark.parametrize(
    ("detector", "method", "lost"),
    [
        (GraphLeaks, "finish", {"GS404"}),
        (GraphLeaks, "on_augmented", {"GS404"}),
        (TrainingProtocol, "finish", {"GS501"}),
    ],
)
def test_a_failing_detector_costs_its_own_findings(
    monkeypatch: pytest.MonkeyPatch, detector: type, method: str, lost: set[str]
) -> None:
    monkeypatch.delenv("GRADSIGHT_STRICT", raising=False)
    before = codes(analyze(Source("program.py", PROGRAM)))
    assert lost < before
    monkeypatch.setattr(detector, method, fail)
    monkeypatch.setattr(listening, "HEARD", {})
    report = analyze(Source("program.py", PROGRAM))
    assert codes(report) == before - lost
    assert any(detector.__name__ in gap.reason for gap in report.gaps)


def test_a_failing_detector_is_raised_where_faults_are_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADSIGHT_STRICT", "1")
    monkeypatch.setattr(GraphLeaks, "finish", fail)
    with pytest.raises(ZeroDivisionError):
        analyze(Source("program.py", PROGRAM))


def test_every_detector_is_tried_alone_by_facts() -> None:
    texts = [path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("test_*_detectors.py")]
    texts.append(Path(__file__).with_name("test_detectors.py").read_text(encoding="utf-8"))
    listed = [type(detector).__name__ for detector in Detectors(Stage("x = 1")).listed]
    untried = [name for name in listed if not any(f"{name}(stage, " in text for text in texts)]
    assert not untried, f"tests/detect tries no facts on {untried}"
