"""Hovering tells what is known about a place, in the words that are right for torch."""

from __future__ import annotations

import pytest

from tests.lsp.editor import Editor
from tests.lsp.programs import EMOJI, HAZARD

TEXT = """import torch
import torch.nn.functional as F
from torch import nn

x = torch.ones(3, requires_grad=True)
y = x.clone()
z = y.detach()
w = F.softmax(y, dim=0)
s = "😀"; v = torch.exp(y)
with torch.no_grad():
    z.mul_(2)
w.sum().backward(retain_graph=True)
g = x.grad
names = ["b", "a"]
names.sort()
layer = nn.ReLU(inplace=True)
m = (x) * 2 + len(names) * 3 - names.index("a")
m *= 2
q = x.data  # gradsight: ignore[GS104]
"""


def test_an_attribute_is_explained_once(editor: Editor) -> None:
    uri = editor.open("file:///h/attribute.py", TEXT)
    editor.diagnostics(uri)
    text = editor.hover(uri, TEXT.index("grad\nnames")) or ""
    assert "the next backward *adds into the same tensor*" in text
    assert "Tensor.grad" not in text


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("clone()", ["stays in the graph", "does not detach"]),
        ("detach()", ["shares memory", "version counter", "does not copy"]),
        ("softmax(y", ["saves its *output* for backward", "measured on torch"]),
        ("exp(y)", ["saves its *output*", "overwriting the input is fine"]),
        ("no_grad()", ["nothing is recorded", "does not switch dropout"]),
        ("mul_(2)", ["writes `self` in place"]),
        ("retain_graph=", ["keeps what the graph saved", "does not fix an in-place error"]),
        ("grad\nnames", ["filled on leaves only", "is not a copy"]),
        ("ReLU(", ["with `inplace=True`"]),
        ("inplace=True)", ["writes the output over the input"]),
        ("data  #", ["version counter *of its own*"]),
        ("GS104]", ["GS104 silent-write-to-saved"]),
        ("backward(", ["adds gradients"]),
        ("* 2 +", ["Tensor.mul(other)", "for backward"]),
        ("*= 2", ["Tensor.mul_(other)", "writes `self` in place"]),
        ("- names", ["Tensor.sub(other", "saves nothing for backward"]),
    ],
)
def test_a_word_of_torch_is_explained(editor: Editor, place: str, words: list[str]) -> None:
    check(editor, TEXT, place, words)


@pytest.mark.parametrize("place", ["names.sort", "sort()", '"b"', "s = ", "as F", "* 3"])
def test_what_is_not_torch_is_passed_over(editor: Editor, place: str) -> None:
    uri = editor.open("file:///h/none.py", TEXT)
    assert editor.hover(uri, TEXT.index(place)) is None


@pytest.mark.parametrize(
    ("place", "words"),
    [
        (
            "x = torch.ones",
            ["shape [3]", "a leaf, requires grad", "made on line 5", "never written in place"],
        ),
        ("y = x.clone", ["not a leaf, requires grad", "made by `clone` on line 6 (grad_fn Clone)"]),
        ("z = y.detach", ["a leaf, does not require grad", "a view of `y`"]),
        ("w = F.softmax", ["saved for backward by `softmax` on line 8", "grad_fn Softmax"]),
        ("v = torch.exp", ["saved for backward by `exp` on line 9"]),
        ("z.mul_", ["a view of `y`"]),
    ],
)
def test_a_tensor_name_is_told_as_it_is_there(editor: Editor, place: str, words: list[str]) -> None:
    check(editor, TEXT, place, words)


def test_a_name_that_differs_from_round_to_round_says_so(editor: Editor) -> None:
    text = "import torch\n\nw = torch.ones(3, requires_grad=True)\nh = torch.zeros(3)\nfor _ in range(9):\n    h = h + w\nh.sum().backward()\n"
    check(editor, text, "h + w", ["not certain: it differs between iterations of the loop"])
    check(editor, text, "h.sum", ["made by `+` on line 6 (grad_fn Add)"])


def test_a_finding_is_told_with_its_trail_and_its_rule(editor: Editor) -> None:
    words = [
        "GS101 inplace-on-saved",
        "1. line 4: `exp` saves its output",
        "2. line 6",
        "inplace-on-saved.md",
    ]
    check(editor, HAZARD, "*= 3", words)


def test_a_hover_behind_an_emoji_is_on_its_word(editor: Editor) -> None:
    uri = editor.open("file:///h/emoji.py", EMOJI)
    editor.diagnostics(uri)
    place = {"textDocument": {"uri": uri}, "position": editor.position(uri, EMOJI.index("*= 3"))}
    shown = editor.request("textDocument/hover", place)["range"]
    assert (
        editor.texts[uri][editor.offset(uri, shown["start"]) : editor.offset(uri, shown["end"])] == "y *= 3"
    )


def test_a_client_without_markdown_gets_plain_text() -> None:
    with Editor(capabilities={}, options={"debounce": 0}) as plain:
        uri = plain.open("file:///h/plain.py", HAZARD)
        plain.diagnostics(uri)
        params = {"textDocument": {"uri": uri}, "position": plain.position(uri, HAZARD.index("*= 3"))}
        contents = plain.request("textDocument/hover", params)["contents"]
        assert contents["kind"] == "plaintext"
        assert not set("`*") & set(contents["value"].replace("*=", ""))


def test_a_document_that_was_never_opened_has_no_hover(editor: Editor) -> None:
    params = {"textDocument": {"uri": "file:///h/never.py"}, "position": {"line": 0, "character": 0}}
    assert editor.request("textDocument/hover", params) is None


def test_a_place_outside_the_text_has_no_hover(editor: Editor) -> None:
    uri = editor.open("file:///h/outside.py", HAZARD)
    params = {"textDocument": {"uri": uri}, "position": {"line": 999, "character": 999}}
    assert editor.request("textDocument/hover", params) is None


def test_a_file_without_torch_is_left_alone(editor: Editor) -> None:
    uri = editor.open("file:///h/plain_python.py", "a.clone()\n")
    assert editor.hover(uri, 3) is None


def check(editor: Editor, text: str, place: str, words: list[str]) -> None:
    """The hover at the first character of a piece of text says these words."""
    uri = editor.open("file:///h/words.py", text, version=editor.versions.get("file:///h/words.py", 0) + 1)
    editor.diagnostics(uri)
    said = editor.hover(uri, text.index(place))
    assert said is not None
    assert [word for word in words if word not in said] == [], said
