"""Conditions on one unknown value agree with each other on every path.

Every program runs on torch with many values: none of them fails where GradSight is silent, and one does where it speaks.
"""

from __future__ import annotations

import argparse
import itertools
import random
import re
import sys
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from gradsight.interp.path_constraints import PathConstraints, evaluate
from tests.interp.checking import check
from tests.interp.running import run

PROGRAM = """
    import sys
    import argparse
    args = argparse.ArgumentParser().parse_args()
    n = len(sys.argv)
    leaf = torch.randn(3, requires_grad=True)
    kept = leaf.exp()
    copy = kept
    if {first}:
        copy = kept.clone()
    if {second}:
        copy.mul_(2){said}
    kept.sum().backward()
    assert torch.equal(leaf.grad, leaf.detach().exp())
"""
VALUES: dict[str, tuple[object, ...]] = {
    "depth": (None, 0, 1, 2, 3, 4, 5, 7, 13),
    "path": (None, "", "file"),
    "mode": ("train", "eval", "both", "other"),
    "items": ([], [1], [1, 2], [1, 2, 3]),
    "names": ([], ["two"]),
    "low": (0, 1, 2),
    "high": (0, 1, 2),
}
ARGUMENTS = range(8)
IMPLIED = [
    ("n > 3", "n > 3"),
    ("n > 3", "3 < n"),
    ("n >= 2", "n > 3"),
    ("n != 1", "n > 3"),
    ("not n == 1", "n == 5"),
    ("n > 1", "n in (2, 3)"),
    ("n > 1", "n in {2: 'a', 3: 'b'}"),
    ("n in (1, 2, 3)", "n == 2"),
    ("n not in (1, 2)", "n == 3"),
    ("n > 2", "n > 1 and n != 2"),
    ("n == 2", "1 < n < 3"),
    ("n <= 4", "2 <= n <= 4"),
    ("n < 2 or n > 4", "n == 7"),
    ("n - 1 >= 2", "n > 3"),
    ("sys.argv[1:]", "len(sys.argv) > 3"),
    ("bool(sys.argv[2:])", "len(sys.argv) - 1 > 2"),
    ("args.depth > 2", "args.depth == 3"),
    ("args.depth", "args.depth > 2"),
    ("args.depth is not None", "args.depth == 3"),
    ("args.path is not None", "args.path"),
    ("args.mode != 'eval'", "args.mode == 'train'"),
    ("args.mode in ('train', 'both')", "args.mode == 'train'"),
    ("args.items", "len(args.items) == 2"),
    ("len(args.items) != 0", "args.items"),
    ("args.depth % 2 == 1", "args.depth % 2 == 1"),
    ("args.low < args.high", "args.high > args.low"),
    ("int(args.depth) > 0", "int(args.depth) == 4"),
]
FREE = [
    ("n > 3", "n >= 2"),
    ("n == 2", "n in (2, 3)"),
    ("n < 2", "n != 2"),
    ("1 < n < 3", "n > 1"),
    ("args.depth", "args.depth is not None"),
    ("args.mode == 'train'", "args.mode != 'eval'"),
    ("args.depth % 2 == 1", "args.depth % 3 == 1"),
    ("len(args.items) > 1", "args.items"),
    ("args.low < args.high", "args.low != args.high"),
]


def never_fails(program: str) -> None:
    """GradSight is silent, and torch runs the program whatever the values are."""
    check(program)
    assert set(outcomes(program)) == {"ends"}


def fails_for_some(program: str) -> None:
    """GradSight speaks, and torch refuses some values and takes others."""
    check(program)
    assert set(outcomes(program)) == {"ends", "refused"}


def outcomes(program: str) -> Iterator[str]:
    """How torch ends the program, for each set of values; values that the program cannot compare are left out."""
    names = sorted(set(re.findall(r"args\.(\w+)", program)) & VALUES.keys())
    counts = ARGUMENTS if "sys.argv" in program else (0,)
    for count, *values in itertools.product(counts, *(VALUES[name] for name in names)):
        given = {
            name: list(value) if isinstance(value, list) else value for name, value in zip(names, values)
        }
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", ["program.py", *["1"] * count])
            patch.setattr(
                argparse.ArgumentParser, "parse_args", lambda _, given=given: SimpleNamespace(**given)
            )
            try:
                run(program)
            except TypeError:
                continue
            except RuntimeError as error:
                yield "refused" if "modified by an inplace operation" in str(error) else str(error)
            else:
                yield "ends"


@pytest.mark.parametrize(("first", "second"), IMPLIED)
def test_what_one_condition_implies_is_not_tried_the_other_way(first: str, second: str) -> None:
    never_fails(PROGRAM.format(first=first, second=second, said=""))
    # Some values do reach the write: without the copy they are refused.
    assert "refused" in outcomes(PROGRAM.format(first="False", second=second, said=""))


@pytest.mark.parametrize(("first", "second"), FREE)
def test_a_condition_that_is_open_is_tried_both_ways(first: str, second: str) -> None:
    fails_for_some(PROGRAM.format(first=first, second=second, said="  # GS101"))


def test_a_container_that_was_filled_is_asked_again() -> None:
    fails_for_some("""
        import argparse
        args = argparse.ArgumentParser().parse_args()
        leaf = torch.randn(3, requires_grad=True)
        kept = leaf.exp()
        if len(args.names) == 0:
            args.names.append("one")
            if len(args.names) == 0:
                kept = kept.clone()
            if args.names:
                kept.mul_(2)  # GS101
        kept.sum().backward()
    """)


def test_a_match_on_several_values_takes_each_of_them() -> None:
    never_fails("""
        import argparse
        args = argparse.ArgumentParser().parse_args()
        leaf = torch.randn(3, requires_grad=True)
        kept = leaf.exp()
        copy = kept
        match args.mode:
            case "train" | "both":
                copy = kept.clone()
        if args.mode == "both":
            copy.mul_(2)
        kept.sum().backward()
    """)


def test_later_rounds_of_a_counted_loop_are_above_the_first() -> None:
    never_fails("""
        import sys
        leaf = torch.randn(3, requires_grad=True)
        for step in range(len(sys.argv)):
            kept = leaf.exp()
            copy = kept.clone() if step > 0 else kept
            if step >= 1:
                print(copy.mul_(2))
            kept.sum().backward()
    """)


def test_assumptions_imply_what_every_remaining_value_shares() -> None:
    constants = [0, 1, 2, 3, 4, 2.5]
    for seed in range(400):
        chance = random.Random(seed)
        whole = chance.random() < 0.5
        left = list(range(12)) if whole else [value / 2 for value in range(-6, 24)]
        assumed = PathConstraints(object(), numeric=True, whole=whole)
        for _ in range(6):
            kind = chance.choice(["<", ">", "==", "in", "truth"])
            constant = tuple(chance.sample(constants, 2)) if kind == "in" else chance.choice(constants)
            outcomes = {evaluate(kind, value, constant) for value in left}
            answer = assumed.answer(kind, constant)
            assert answer is None or outcomes == {answer}, (seed, kind, constant)
            if len(outcomes) == 1 and not whole:
                continue
            outcome = evaluate(kind, chance.choice(left), constant)
            assert outcome is not None
            left = [value for value in left if evaluate(kind, value, constant) is outcome]
            assumed.assume(kind, constant, outcome)
            assert assumed.answer(kind, constant) is outcome, (seed, kind, constant)


def test_a_sequence_is_matched_item_by_item() -> None:
    never_fails("""
        leaf = torch.randn(3, requires_grad=True)
        kept = leaf.exp()
        match ("scale", 2, 3):
            case "scale" | "shift":
                kept.mul_(2)
            case ("scale", factor):
                kept.mul_(2)
            case ("shift", *rest):
                kept.add_(2)
            case ("scale", *factors, 3):
                kept = kept * factors[0]
            case _:
                kept.zero_()
        kept.sum().backward()
    """)


def test_text_that_is_no_number_raises() -> None:
    never_fails("""
        leaf = torch.randn(3, requires_grad=True)
        kept = leaf.exp()
        try:
            int("seven")
        except ValueError:
            kept = kept * 2
        else:
            kept.mul_(2)
        kept.sum().backward()
    """)


def test_the_type_of_a_constant_is_known() -> None:
    check("""
        leaf = torch.randn(3, requires_grad=True)

        class Settings(dict):
            def __init__(self, **kwargs):
                super().__init__()
                for name, value in kwargs.items():
                    setattr(self, name, value)
            def __setattr__(self, name, value):
                self[name] = Settings(**value) if type(value) is dict else value
            def __getattr__(self, name):
                return self[name]

        def scaled(value, by):
            if type(by) is list:
                value.mul_(2)
            if type(by) in (dict, str):
                value.mul_(2)
            return value * by

        settings = Settings(rate=0.5, sizes=[1, 2])
        settings.deep = Settings()
        settings.deep.factor = 2.0
        kept = leaf.exp()
        scaled(kept, settings.rate).sum().backward(retain_graph=True)
        scaled(kept, settings.deep.factor).sum().backward(retain_graph=True)
        if type(settings.sizes) is list:
            kept.add_(1)  # GS101
        kept.sum().backward()
    """)
