"""The shrinker: small programs that keep the property, and fixtures that keep small programs."""

from __future__ import annotations

import itertools
from pathlib import Path

from gradsight_dev.fuzz.grammar import generate
from gradsight_dev.fuzz.keep import claim_of, keep, kept_programs, renew_claims
from gradsight_dev.fuzz.oracle import judge
from gradsight_dev.fuzz.shrink import shrink

BUSY = """
import sys
import torch

def twice(t):
    unused = t + 1
    return t * 2

x = torch.ones(3, requires_grad=True)
w = torch.randn(3, requires_grad=True)
y = twice(x).exp() + 0
for i in range(3):
    w = w + 1
if len(sys.argv) >= 0:
    z = y.exp()
    z.mul_(2)
else:
    z = w
loss = (z * 3 + w.mean()).sum() + 5
loss.backward()
"""


def fails_by_version(text: str) -> bool:
    truth = judge(text)
    return truth.verdict == "raises" and truth.failures[0].family == "version"


def test_what_does_not_matter_goes() -> None:
    small = shrink(BUSY, fails_by_version)
    assert fails_by_version(small)
    assert "twice" not in small
    assert "sys" not in small
    assert "for" not in small
    assert len(small.splitlines()) <= 6


def test_a_property_of_the_text_alone_is_reached() -> None:
    assert shrink(BUSY, lambda text: "backward" in text) == "loss.backward()\n"


def test_a_program_without_the_property_stays() -> None:
    assert shrink(BUSY, lambda text: False) == BUSY


def test_generated_failures_get_shorter() -> None:
    programs = (generate(seed) for seed in range(40_000, 40_200))
    failing = (program for program in programs if fails_by_version(program.text))
    for program in itertools.islice(failing, 3):
        small = shrink(program.text, fails_by_version, trials=100)
        assert fails_by_version(small)
        assert len(small.splitlines()) < len(program.text.splitlines())


def test_kept_programs_carry_their_truth(tmp_path: Path) -> None:
    path = keep(
        "import torch\nx = torch.ones(3, requires_grad=True)\nx += 1\n", "miss leaf straight", tmp_path
    )
    assert path.name == "001_miss_leaf_straight.py"
    (kept,) = kept_programs(tmp_path)
    assert kept.claim == "raises RuntimeError (leaf) at line 5 because of line 5"
    assert claim_of(judge(kept.text)) == kept.claim


def test_wrong_claims_are_renewed(tmp_path: Path) -> None:
    path = keep("import torch\nx = torch.ones(3)\n", "false alarm", tmp_path)
    path.write_text(path.read_text().replace("# torch: exact", "# torch: silent"))
    assert renew_claims(tmp_path) == [path]
    assert path.read_text().startswith("# torch: exact\n# false alarm\nimport torch\n")
    assert not renew_claims(tmp_path)


def test_a_program_is_kept_once(tmp_path: Path) -> None:
    for _ in range(2):
        keep("import torch\n", "false alarm", tmp_path)
    assert len(kept_programs(tmp_path)) == 1
