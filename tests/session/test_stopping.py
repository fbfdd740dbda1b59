"""An analysis that nobody waits for any more is given up, and what it found out serves the next one."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradsight.analysis import Analyser, Stop, analyze
from gradsight.model.settings import Settings
from gradsight.model.source import Source
from gradsight.session.analyser import Incremental

FUNCTION = """

def step_{0}(x):
    w = x.exp()
    w *= {1}
    w.sum().backward()
    return x.grad
"""
TEXT = "import torch\n" + "".join(FUNCTION.format(number, 2) for number in range(12))


def after(questions: int) -> Stop:
    """Says yes when it has been asked so often."""
    left = [questions]

    def stop() -> bool:
        left[0] -= 1
        return left[0] < 0

    return stop


def test_a_stopped_analysis_says_nothing() -> None:
    assert Analyser().analyze_unless(after(3), Source("a.py", TEXT)) is None


def test_what_was_worked_out_before_a_stop_is_kept() -> None:
    analyser = Analyser()
    analyser.analyze(Source("a.py", TEXT))
    for round_number in range(12):
        edited = TEXT.replace(f"def step_{round_number}(x)", f"def step_{round_number}(x, y)")
        stopped = analyser.analyze_unless(after(round_number), Source("a.py", edited))
        assert stopped is None
        assert analyser.analyze(Source("a.py", edited)) == analyze(Source("a.py", edited))


def test_stops_in_the_middle_of_typing_lose_nothing() -> None:
    path = Path(__file__).parents[2] / "benchmarks" / "texts" / "train_classifier.py"
    text = path.read_text(encoding="utf-8")
    analyser = Analyser()
    place = text.index("    return", len(text) // 2)
    for size in range(1, 14):
        edited = text[:place] + "    spare = (1)\n"[:size] + text[place:]
        analyser.analyze_unless(after(size % 5), Source("a.py", edited))
        if size % 3 == 0:
            assert analyser.analyze(Source("a.py", edited)) == analyze(Source("a.py", edited))


def test_a_short_analysis_is_done_at_once_and_a_long_one_is_left_to_the_worker() -> None:
    analyser = Incremental()
    source = Source("a.py", TEXT)
    assert analyser.analyze_at_once(source, Settings(), None) is None
    analyser.analyze(source, Settings(), None, lambda: False)
    analyser._last_took = 0.0
    assert analyser.analyze_at_once(source, Settings(), None) == analyze(source)
    analyser._last_took = 1.0
    assert analyser.analyze_at_once(source, Settings(), None) is None


def test_what_takes_longer_than_a_moment_is_given_up_and_loses_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("gradsight.session.analyser.A_MOMENT", 0.0)
    analyser = Incremental()
    analyser.analyze(Source("a.py", TEXT), Settings(), None, lambda: False)
    analyser._last_took = 0.0
    edited = Source("a.py", TEXT.replace("def step_3(x)", "def step_3(x, y)"))
    assert analyser.analyze_at_once(edited, Settings(), None) is None
    assert analyser.analyze(edited, Settings(), None, lambda: False) == analyze(edited)
