"""`python -m gradsight_dev.fuzz_hovers`: every claim of every hover on random programs, held against torch.

Names: leaf or not, requires grad or not, the grad_fn, the version, and who keeps it for backward.  Calls: what the operator keeps,
what may be overwritten, what is written, whose memory the result shares, whether a gradient flows through it.
With `--operators` a program is made of one call for each case of each operator that plain arguments can meet, and the hover over
it must tell of that case.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from gradsight.analysis import Analyser
from gradsight.model import Source
from gradsight.model.card import Card
from gradsight.ops.fact import Case, Condition, OpFact
from gradsight.ops.table import shipped
from gradsight_dev.fuzz.campaign import prepare
from gradsight_dev.fuzz.grammar import generate
from gradsight_dev.hover_calls import compare_calls, observed_calls
from gradsight_dev.hover_oracle import Verdict, compare, compare_saved, memories, observations

HEAD = "import torch\nimport torch.nn.functional as F\nx = torch.rand(3, 3, requires_grad=True)\n"
VALUES = {
    "tensor": "x",
    "number": "2.0",
    "sequence": "(0, 1)",
    "text": "'mean'",
    "basic": "0",
    "indices": "[0, 1]",
}
NUMBERS = {"dim": "0", "n": "2", "q": "0.5", "p": "0.5", "output_size": "2"}
"""What a parameter of this name takes for a number."""
USUAL = {
    "dim": "0",
    "dim0": "0",
    "dim1": "1",
    "dims": "(0, 1)",
    "p": "0.5",
    "train": "True",
    "training": "True",
    "n": "2",
    "k": "2",
    "q": "0.5",
    "size": "(3, 3)",
    "stride": "(3, 1)",
    "shape": "(9,)",
    "repeats": "2",
    "sections": "3",
    "indices_or_sections": "3",
    "chunks": "3",
    "split_size": "1",
    "split_size_or_sections": "1",
    "output_size": "2",
    "kernel_size": "2",
    "tensors": "[x, x]",
    "index": "torch.tensor([0, 1])",
    "indices": "torch.tensor([[0, 1, 0]])",
    "mask": "x > 0",
    "condition": "x > 0",
    "vec": "x[0]",
    "vec1": "x[0]",
    "vec2": "x[1]",
    "value": "2.0",
    "momentum": "0.1",
    "eps": "1e-5",
    "cudnn_enabled": "False",
    "running_mean": "torch.zeros(3)",
    "running_var": "torch.ones(3)",
    "boundaries": "torch.tensor([0.2, 0.5])",
    "normalized_shape": "(3,)",
    "num_groups": "3",
    "weight": "x",
}
"""What a parameter of this name takes where a tensor of two dimensions does not fit."""
FITS = ("tensor", "number", "sequence", "text")
REPORTED = 50
"""A long run tells how far it is after so many programs."""
Given = dict[str, tuple[str, str]]
"""For each argument its kind and its text."""


@dataclass(slots=True)
class HoverTally:
    """How many claims were held against torch, and those that torch denies."""

    programs: int = 0
    names: int = 0
    saves: int = 0
    calls: int = 0
    denied: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{self.programs} programs: {self.names} claims about names, {self.saves} about who keeps them, "
            f"{self.calls} calls; {len(self.denied)} denied"
        )


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m gradsight_dev.fuzz_hovers", description=__doc__)
    parser.add_argument("--count", type=int, default=1_000, help="how many programs to run")
    parser.add_argument("--start", type=int, default=0, help="the first seed")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after this time")
    parser.add_argument("--operators", action="store_true", help="every case of every operator instead")
    given = parser.parse_args(arguments)
    prepare()
    tally = of_operators() if given.operators else campaign(given.start, given.count, given.seconds)
    print(tally)
    for text in tally.denied:
        print(text)
    return 1 if tally.denied else 0


def campaign(start: int, count: int, seconds: float = float("inf")) -> HoverTally:
    """Hold the hovers of so many programs against torch."""
    tally, started = HoverTally(), time.monotonic()
    for seed in range(start, start + count):
        if time.monotonic() - started > seconds:
            break
        program = generate(seed)
        examine(program.text, program.path, tally, f"seed {seed}, line ")
        if tally.programs % REPORTED == 0:
            print(f"{tally} (seeds {start} to {seed}) {tally.denied}", flush=True)
    return tally


def of_operators() -> HoverTally:
    """One call for each case, each in a program of its own: a call that raises must not hide the others."""
    tally = HoverTally()
    for fact, number, call, _ in operator_calls(usual=True):
        examine(f"{HEAD}y = {call}\n", "<operator>", tally, f"{call}, case {number} of {fact.name}, line ")
    return tally


def examine(text: str, path: str, tally: HoverTally, prefix: str) -> None:
    """Hold every hover of one program against torch."""
    lines = text.split("\n")
    cards: tuple[Card, ...] = Analyser().cards(Source(path, text), 1, len(lines))
    tally.programs += 1
    names = compare(cards, observations(text, path), lines)
    saves = compare_saved(cards, memories(text, path), lines)
    calls = compare_calls(cards, observed_calls(text, path))
    tally.names += names.claims
    tally.saves += saves.claims
    tally.calls += calls.claims
    verdicts: tuple[Verdict, ...] = (names, saves, calls)
    tally.denied += [f"{prefix}{lie}" for verdict in verdicts for lie in verdict.lies]


# -- one call for each case of each operator -----------------------------------------------------------------------------


def operator_calls(usual: bool = False) -> Iterator[tuple[OpFact, int, str, tuple[str, ...]]]:
    """For each case that plain arguments can meet: the call, and the arguments that are no tensors in it or left out.

    With `usual`, arguments that no condition speaks of are such that torch runs most of the calls.
    """
    table = shipped()
    for known in table.names():
        fact = table.find(known)
        assert fact is not None
        room, _, name = fact.name.rpartition(".")
        if (
            len(fact.cases) < 2
            or room not in ("torch", "Tensor")
            or not name.isidentifier()
            or name[0] == "_"
        ):
            continue
        if fact.note or any(parameter.startswith("*") for parameter in fact.parameters):
            continue
        for number, case in enumerate(fact.cases):
            given = arguments_for(fact, case, usual)
            if given is None or first_case(fact, given) != number:
                continue
            plain = tuple(key for key, value in given.items() if value[0] != "tensor")
            left_out = tuple(name for name in fact.defaults if name not in given)
            yield fact, number, spelled(fact, given), (*plain, *left_out)


def arguments_for(fact: OpFact, case: Case, usual: bool = False) -> Given | None:
    """Kinds and texts of arguments that meet the conditions of a case; None where that takes more than a plain value."""
    given: Given = {}
    for name in fact.parameters:
        conditions = [each for each in case.when if each.argument == name]
        if not conditions:
            if name not in fact.defaults:
                text = USUAL.get(name, "x") if usual else "x"
                given[name] = ("tensor" if "torch" in text or "x" in text else "number", text)
            continue
        chosen: tuple[str, str] | None = None
        for each in conditions:
            if each.kind in FITS:
                numbers = NUMBERS if usual and each.kind == "number" else {}
                chosen = (each.kind, numbers.get(name, VALUES[each.kind]))
            elif each.kind == "equals":
                chosen = kind_of(each.value)
            elif each.kind == "none":
                chosen = ("none", "")
        if chosen is None or any(not holds(each, chosen) for each in conditions):
            return None
        if chosen[0] != "none":
            given[name] = chosen
    if any(each.argument not in fact.parameters for each in case.when):
        return None
    return given if given.get("self", given.get("input", ("tensor",)))[0] == "tensor" else None


def kind_of(value: str) -> tuple[str, str]:
    return ("text" if value[:1] in "'\"" else "none" if value == "None" else "number", value)


def holds(condition: Condition, value: tuple[str, str]) -> bool:
    kind, text = value
    if condition.kind in ("equals", "not"):
        same = text == condition.value or (kind == "number" and number_of(text) == number_of(condition.value))
        return same if condition.kind == "equals" else not same
    return condition.kind == kind


def number_of(text: str) -> bool | float | str:
    if text in ("True", "False"):
        return text == "True"
    return float(text) if re.fullmatch(r"-?[0-9.]+(e-?[0-9]+)?", text) else text


def first_case(fact: OpFact, given: Given) -> int | None:
    """The first case whose conditions these arguments meet; None where one cannot be told by kinds alone."""
    for number, case in enumerate(fact.cases):
        if any(each.kind in ("rank", "integral", "basic", "indices") for each in case.when):
            return None
        values = [
            (each, given.get(each.argument) or kind_of(fact.defaults.get(each.argument, "None")))
            for each in case.when
        ]
        if all(holds(each, value) for each, value in values):
            return number
    return None


def spelled(fact: OpFact, given: Given) -> str:
    """The call as a program writes it."""
    room, _, name = fact.name.rpartition(".")
    named = [f"{key}={text}" for key, (_, text) in given.items() if key not in ("self", "input")]
    if room == "Tensor":
        return f"x.{name}({', '.join(named)})"
    first = [text for key, (_, text) in given.items() if key in ("self", "input")]
    return f"torch.{name}({', '.join([*first, *named])})"


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
