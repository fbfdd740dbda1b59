"""A minimal program keeps the finding and its lines, can run, and leaves out the rest."""

from __future__ import annotations

import pytest

from gradsight.analysis import analyze
from gradsight.model.source import Source
from gradsight.probe.inputs import calls_for
from gradsight.probe.minimal import Minimal, cut_out

SCRIPT = """import os
import torch
from torch import nn

print("loading", os.getcwd())


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.other = nn.Linear(4, 2)

    def forward(self, x):
        y = torch.sigmoid(self.layer(x))
        y *= 2
        return y

    def describe(self):
        return "a model"


def helper():
    return 1


model = Model()
seen = []
for step in range(2):
    x = torch.randn(2, 4)
    seen.append(step)
    if step > 5:
        print("far")
    loss = model(x).sum()
    print(loss)
    loss.backward()
"""


def cut(text: str, code: str = "GS101") -> Minimal:
    """The minimal program around the first finding with this code."""
    source = Source("model.py", text)
    [finding] = [each for each in analyze(source).findings if each.code == code][:1]
    minimal = cut_out(source, finding, analyze)
    assert minimal is not None
    return minimal


def check(text: str, kept: str, gone: str, code: str = "GS101") -> Minimal:
    """Every word of `kept` is in the minimal program around the finding, none of `gone`; the finding has not moved."""
    minimal = cut(text, code)
    program = minimal.text()
    assert [word for word in kept.split("|") if word not in program] == []
    assert [word for word in gone.split("|") if word in program] == []
    before = [
        (each.code, each.span) for each in analyze(Source("model.py", text)).findings if each.code == code
    ]
    after = [(each.code, each.span) for each in analyze(Source("model.py", program)).findings]
    assert before[0] in after
    return minimal


def test_what_the_finding_needs_stays_and_the_rest_goes() -> None:
    check(
        SCRIPT,
        "import torch|super().__init__()|self.layer|y *= 2|return y|x = torch.randn|loss.backward()",
        "import os|loading|self.other|describe|helper|far|print(loss)",
    )


def test_a_name_that_is_used_keeps_its_first_meaning() -> None:
    text = """import torch
total = 0
w = torch.ones(2, requires_grad=True)
for _ in range(3):
    y = w.exp()
    y += 1
    total = total + y.sum()
total.backward()
"""
    check(text, "total = 0", "nothing")


def test_results_and_collected_values_stay() -> None:
    text = """import torch
def parts(x):
    found = []
    found.append(x.exp())
    return found
x = torch.ones(2, requires_grad=True)
(y,) = parts(x)
y *= 2
y.sum().backward()
"""
    check(text, "found.append|return found", "nothing")


def test_names_of_an_outer_function_keep_their_home() -> None:
    text = """import torch
def meter():
    total = torch.zeros(2)
    def add(value):
        nonlocal total
        total = total + value
        kept = total.exp()
        kept *= 2
        return kept
    return add
add = meter()
x = torch.ones(2, requires_grad=True)
add(x).sum().backward()
"""
    compile(check(text, "nonlocal total|total = torch.zeros(2)", "nothing").text(), "m", "exec")


def test_the_file_s_own_uses_and_what_becomes_of_them_are_one_more_program() -> None:
    text = """import torch
def learn(x):
    y = x.exp()
    y *= 2
    return y
noise = torch.randn(3)
bank = []
bank.append(torch.ones(3, requires_grad=True))
out = learn(bank[0])
out.sum().backward()
print(noise)
if __name__ == "__main__":
    learn(noise)
"""
    program = cut(text).text("", "called")
    for words in ("bank = []", "bank.append", "out = learn(bank[0])", "out.sum().backward()"):
        assert words in program
    for words in ("noise", "__main__"):
        assert words not in program
    compile(program, "m", "exec")


def test_an_emptied_block_passes() -> None:
    text = """import torch
def note():
    print(1)
    print(2)
x = torch.ones(2, requires_grad=True)
y = x.exp()
note()
with torch.enable_grad():
    y *= 2
y.sum().backward()
"""
    compile(check(text, "y *= 2", "print").text(), "m", "exec")


def test_the_program_to_show_has_no_holes() -> None:
    snippet = cut(SCRIPT).snippet()
    assert "\n\n\n\n" not in snippet
    assert snippet.startswith("import torch\nfrom torch import nn\n\n\nclass Model")
    compile(snippet, "m", "exec")


def test_a_program_that_leads_there_needs_no_call() -> None:
    minimal = cut(SCRIPT)
    source = Source("model.py", SCRIPT)
    assert minimal.entry is None
    assert [call.text() for call in calls_for(minimal, analyze(source).findings[0])] == [""]


LIBRARY = SCRIPT[: SCRIPT.index("model = Model()")]


def test_a_library_is_entered_through_its_function() -> None:
    minimal = cut(LIBRARY)
    assert minimal.entry is not None
    assert minimal.entry.function.name == "forward"
    finding = analyze(Source("model.py", LIBRARY)).findings[0]
    calls = calls_for(minimal, finding)
    assert calls[0].text() == (
        "torch.manual_seed(0)\nmodel = Model()\nresult = model(torch.randn(2, 4))\nresult.sum().backward()\n"
    )
    assert len(calls) > 1


@pytest.mark.parametrize(
    ("signature", "expected"),
    [
        ("width: int, x: torch.Tensor", "4, TENSOR"),
        ("x, lr, *, num_heads", "TENSOR, 0.1, num_heads=4"),
        ("x, scale=2", "TENSOR"),
        ("model, x", "torch.nn.Linear(4, 4), TENSOR"),
        ("x, labels", "TENSOR, torch.zeros(2, dtype=torch.long)"),
        ("x, device", "TENSOR, 'cpu'"),
    ],
)
def test_inputs_follow_annotations_defaults_and_names(signature: str, expected: str) -> None:
    body = "    w = torch.ones(4, requires_grad=True)\n    y = torch.exp(x * w)\n    y += 1\n    y.sum().backward()\n"
    text = f"import torch\ndef f({signature}):\n{body}"
    minimal = cut(text)
    finding = analyze(Source("model.py", text)).findings[0]
    tensor = "torch.randn(2, 4, requires_grad=True) * 1"
    call = calls_for(minimal, finding)[0].text()
    assert call == f"torch.manual_seed(0)\nf({expected.replace('TENSOR', tensor)})\n"


def test_statements_that_share_a_line_are_left_alone() -> None:
    text = "import torch; import os\nx = torch.ones(2, requires_grad=True); print(1)\ny = x.exp()\ny *= 2\ny.sum().backward()\n"
    check(text, "import os|print(1)", "nothing")


def test_a_text_that_does_not_parse_is_not_cut() -> None:
    source = Source("m.py", SCRIPT)
    finding = analyze(source).findings[0]
    assert cut_out(Source("m.py", SCRIPT + "("), finding, analyze) is None
