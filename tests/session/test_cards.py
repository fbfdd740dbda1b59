"""Cards say what torch does: every myth is refuted by torch itself, every operator card by its measured facts."""

from __future__ import annotations

import subprocess
import sys

import pytest

from gradsight.model.card import SavedBy, TensorCard
from gradsight.model.source import Span
from gradsight.ops.table import shipped
from gradsight.session.fact_card import fact_card
from gradsight.session.myths import ALL, PREAMBLE, Myth
from gradsight.session.tensor_text import hint_label, hint_legend, hint_parts, tensor_card

RUN_ALL = "import sys\nfor proof in sys.stdin.read().split('\\0'):\n    exec(proof, {})\n    print('ran')\n"


def test_torch_agrees_with_every_myth_entry() -> None:
    proofs = [PREAMBLE + entry.proof for entry in ALL]
    outcome = subprocess.run(
        [sys.executable, "-c", RUN_ALL], input="\0".join(proofs), capture_output=True, text=True, check=False
    )
    ran = outcome.stdout.count("ran")
    assert ran == len(ALL), f"{ALL[ran].names}: {outcome.stderr}"


def test_every_proof_ends_in_an_assertion() -> None:
    assert [entry.names for entry in ALL if "assert " not in entry.proof] == []


def test_no_word_has_two_entries() -> None:
    names = [name for entry in ALL for name in entry.names]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("entry", ALL, ids=lambda entry: entry.names[0])
def test_an_entry_speaks_in_whole_sentences(entry: Myth) -> None:
    for text in (entry.truth, entry.myth):
        assert not text or (text.endswith(".") and "!" not in text)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("exp", ["saves its *output* for backward", "overwriting the input is fine"]),
        ("sin", ["saves `input` for backward", "overwriting the output is fine"]),
        ("mul", ["`input` (if `other` requires grad)", "`other` (if `input` requires grad)"]),
        ("add", ["saves nothing for backward"]),
        ("Tensor.mul_", ["writes `self` in place"]),
        ("Tensor.detach", ["view of `self`", "autograd notices writes", "no gradient flows"]),
        ("Tensor.data", ["autograd does not notice"]),
        ("Tensor.unbind", ["each output is a view", "raise"]),
        ("Tensor.item", ["Python number", "the graph ends here"]),
        ("round", ["always zero"]),
        ("argmax", ["integer", "no gradient"]),
        ("nn.ReLU", ["with `inplace=True`", "writes `input` in place"]),
        ("Tensor.reshape", ["in some calls"]),
        ("torch.tensor", ["new leaf"]),
    ],
)
def test_a_card_tells_what_is_kept_and_what_may_be_overwritten(name: str, words: list[str]) -> None:
    fact = shipped().lookup(name)
    assert fact is not None
    card = fact_card(fact, "2.13.0")
    assert [word for word in words if word not in card] == [], card


def test_every_operator_of_the_table_has_a_card() -> None:
    table = shipped()
    for name in table.names():
        fact = table.find(name)
        assert fact is not None
        card = fact_card(fact, table.torch_version)
        assert card.startswith("**`")
        assert "None" not in card.split("\n")[0]


def test_a_tensor_card_tells_leaf_maker_saver_and_writes() -> None:
    card = TensorCard(
        "y", Span(3, 0, 3, 1), is_leaf=False, requires_grad=True, made_by="exp", grad_fn="Exp", made_line=3,
        view_of="base", shape="[3]", version=2, saved=(SavedBy(3, "exp"),), writes=(5, 7),
    )  # fmt: skip
    text = tensor_card(card)
    assert "shape" not in tensor_card(card, has_run=True), "what the run saw says it"
    for word in (
        "- shape [3]\n",
        "not a leaf, requires grad",
        "made by `exp` on line 3 (grad_fn Exp)",
        "view of `base`",
        "by `exp` on line 3",
        "2 times (lines 5, 7)",
    ):
        assert word in text


@pytest.mark.parametrize(
    ("card", "label"),
    [
        (TensorCard("x", Span(1, 0, 1, 1), is_leaf=True, requires_grad=True), "leaf"),
        (TensorCard("x", Span(1, 0, 1, 1), is_leaf=False, requires_grad=True, grad_fn="Exp"), "grad_fn=Exp"),
        (TensorCard("x", Span(1, 0, 1, 1), is_leaf=False, requires_grad=True, grad_fn="Mul", version=1), "grad_fn=Mul v1"),
        (TensorCard("x", Span(1, 0, 1, 1), requires_grad=False), "no grad"),
        (TensorCard("x", Span(1, 0, 1, 1)), ""),
    ],
)  # fmt: skip
def test_a_hint_is_a_few_words(card: TensorCard, label: str) -> None:
    assert hint_label(card) == label


def test_the_parts_of_a_hint_are_explained_once_each() -> None:
    card = TensorCard(
        "y", Span(3, 0, 3, 1), is_leaf=False, requires_grad=True, made_line=3, version=2, writes=(4, 5)
    )
    parts = hint_parts(card, "[8, 4] |grad|=0.33", "Addmm")
    assert [(part.words, part.line) for part in parts] == [
        ("[8, 4] |grad|=0.33", 0),
        ("grad_fn=Addmm", 3),
        ("v2", 5),
    ]
    told = hint_legend(parts)
    assert "`[8, 4] |grad|=0.33`: the shape in the last run, and the norm of its gradient" in told
    assert "`v2`: written in place 2 times (line 5)" in told
    assert "`grad_fn=Addmm`: the operator that made it (line 3)" in told
