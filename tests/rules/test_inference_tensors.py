"""GS204 for tensors made in inference mode: the words are those of what torch refuses, and the fix makes the program run."""

from __future__ import annotations

import pytest

from gradsight.analysis import analyze
from gradsight.fixing import fix_all
from gradsight.model.source import Source

HEAD = "import torch\nfrom torch import inference_mode\nw = torch.ones(4, requires_grad=True)\n"
PROGRAMS = {
    "with torch.inference_mode():\n    t = torch.ones(4)\nt.mul_(w)\n": (
        "Inplace update to inference tensor",
        "`t` was made in inference mode, so torch refuses to write it here: clone it first",
    ),
    "with inference_mode():\n    t = torch.ones(4)\n(t * w).sum().backward()\n": (
        "Inference tensors cannot be saved",
        "a tensor made in inference mode cannot be saved for `backward()`: use `torch.no_grad()`, or clone it",
    ),
    "@torch.inference_mode()\ndef make():\n    return torch.ones(4)\nt = make()\nt += w\n": (
        "Inplace update to inference tensor",
        "`t` was made in inference mode, so torch refuses to write it here: clone it first",
    ),
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_words_are_torchs_and_the_fix_helps(program: str) -> None:
    refusal, message = PROGRAMS[program]
    source = Source("a.py", HEAD + program)
    with pytest.raises(RuntimeError, match=refusal):
        exec(source.text, {})
    report = analyze(source)
    assert [(finding.code, finding.message) for finding in report.findings] == [("GS204", message)]
    fixed, _ = fix_all(source)
    assert "torch.no_grad()" in fixed
    exec(fixed, {})
