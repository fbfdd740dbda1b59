"""`python -m gradsight_dev.fuzz_fixes`: writes variants of hazards, lets the safe fixes repair them, and asks torch.

A *seed* is a hazard with its reference: a fixture program, or the first block of a rule page and its *Use instead*.  A variant
spells both in another way that means the same: in other words (names, attributes, items, methods for signs), laid out otherwise
(one-line blocks, semicolons, brackets, backslashes, several targets), in another place (functions, coroutines, blocks), as a
notebook.  It is judged if a safe fix changed it: the repaired text must run, and leave the values and gradients of the reference
in every tensor that both have.  A value may also be what it was in the hazard; a gradient only if a finding is left.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import io
import random
import re
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import zip_longest
from types import SimpleNamespace
from typing import Any

import torch

from gradsight.analysis import analyze
from gradsight.fixing import fix_all
from gradsight.model.fix import Fix
from gradsight.model.source import Source
from gradsight.rules import ALL
from gradsight.session.notebook_edits import with_module
from gradsight.session.notebooks import JoinedCells, read_notebook
from gradsight_dev.fuzz_layouts import LAYOUTS, SPARE, TEXTS, Unfit, notebook_of
from gradsight_dev.fuzz_variants import PLACES, VARIATIONS, WORDINGS, parsed, varied
from gradsight_dev.verify_fixtures import COLLECTIONS, read_labels

BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)
CLAIM = re.compile(r"#\s*(?:error|warning): (GS\d{3})")
LOUD = ("error", "warning")
NOTEBOOK = "notebook"
REPORTED = 100
"""A long run tells how far it is after so many variants."""


@dataclass(frozen=True, slots=True)
class Seed:
    """A hazard, and the program that computes what is meant."""

    name: str
    hazard: str
    reference: str


@dataclass(slots=True)
class FixTally:
    """How many variants there were, how many a safe fix changed, and what was wrong with some of them."""

    variants: int = 0
    judged: Counter[str] = field(default_factory=Counter)
    spelled: Counter[str] = field(default_factory=Counter)
    """How many of those that were changed had each variation."""
    broken: list[str] = field(default_factory=list)
    other: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        codes = ", ".join(f"{code} {count}" for code, count in sorted(self.judged.items()))
        spelled = ", ".join(f"{name} {count}" for name, count in sorted(self.spelled.items()))
        return (
            f"{self.variants} variants, {sum(self.judged.values())} changed by safe fixes ({codes}): "
            f"{len(self.broken)} broken, {len(self.other)} with other values or gradients\nspelled: {spelled}"
        )


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m gradsight_dev.fuzz_fixes", description=__doc__)
    parser.add_argument("--count", type=int, default=2_500, help="how many variants to judge")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="seeds whose name contains this")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after this time")
    parser.add_argument("--show", action="store_true", help="print what is wrong with its texts")
    given = parser.parse_args(arguments)
    torch.set_num_threads(1)
    tally = campaign(given.count, given.seed, given.only, given.show, given.seconds)
    print(tally)
    for text in (*tally.broken, *tally.other):
        print(text)
    return 1 if tally.broken or tally.other else 0


def campaign(
    count: int, number: int = 0, only: str = "", show: bool = False, seconds: float = float("inf")
) -> FixTally:
    """Judge so many variants, the seeds and their variations in an order that the number decides."""
    rng = random.Random(number)
    chosen = [seed for seed in seeds() if only in seed.name and is_repaired(seed.hazard)]
    by_rule: dict[str, list[tuple[Seed, tuple[str, ...]]]] = {}
    for seed in chosen:
        by_rule.setdefault(seed.name[:5], []).extend((seed, names) for names in variations(rng))
    for plans in by_rule.values():
        rng.shuffle(plans)
    tally = FixTally()
    started = time.monotonic()
    # Each rule gets as many turns as the others, until its variants are used up.
    for round_of_rules in zip_longest(*by_rule.values()):
        for seed, names in filter(None, round_of_rules):
            if sum(tally.judged.values()) >= count or time.monotonic() - started > seconds:
                return tally
            judge(seed, names, tally, show)
            if tally.variants % REPORTED == 0:
                print(
                    f"{tally.variants} variants: {[*tally.broken, *tally.other]}",
                    flush=True,
                )
    return tally


def is_repaired(hazard: str) -> bool:
    """Whether a safe fix changes the seed as it is."""
    return fix_all(Source("variant.py", hazard))[0] != hazard


def variations(rng: random.Random) -> Iterator[tuple[str, ...]]:
    """Each variation alone, and some of every way to put two or three together, as a file or as a notebook."""
    yield ()
    yield (NOTEBOOK,)
    for name in VARIATIONS:
        yield (name,)
    kinds = [list(kind) for kind in (WORDINGS, LAYOUTS, PLACES, TEXTS)]
    for _ in range(12):
        first, second, third, last = (rng.choice(kind) for kind in kinds)
        yield from ((first, second), (second, third), (first, third), (first, second, third), (third, last))
        yield (rng.choice([first, second, third]), NOTEBOOK)


def seeds() -> list[Seed]:
    """Everything that has a reference."""
    found = []
    for rule in ALL:
        blocks = [
            (block.group(1), rule.page.rfind("\n## ", 0, block.start()))
            for block in BLOCK.finditer(rule.page)
        ]
        headings = {start: rule.page[start + 4 :].split("\n", 1)[0] for _, start in blocks}
        hazards = [text for text, start in blocks if CLAIM.search(text) and headings[start] != "Use instead"]
        instead = [text for text, start in blocks if headings[start] == "Use instead"]
        if hazards and instead:
            found.append(Seed(f"{rule.code} page", bare(hazards[0]), bare(instead[0])))
    for collection in COLLECTIONS:
        for label in read_labels(collection):
            if label["verdict"] != "safe":
                texts = [
                    (folder / label["file"]).read_text(encoding="utf-8")
                    for folder in (collection.programs, collection.references)
                ]
                found.append(Seed(f"{'+'.join(label['rule'])} {label['file']}", *texts))
    return found


def bare(text: str) -> str:
    """An example without its claims: they are about the hazard."""
    return ast.unparse(ast.fix_missing_locations(WithoutClaims().visit(ast.parse(text)))) + "\n"


class WithoutClaims(ast.NodeTransformer):
    """Leaves assertions out."""

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        return ast.Pass()


def judge(seed: Seed, names: tuple[str, ...], tally: FixTally, show: bool) -> None:
    """Vary, repair, run and compare one seed."""
    spelled = tuple(name for name in names if name != NOTEBOOK)
    try:
        hazard, reference = varied(seed.hazard, spelled), varied(seed.reference, spelled)
        book = notebook_of(*parsed(hazard)) if NOTEBOOK in names else ""
    except Unfit:
        return
    tally.variants += 1
    repaired, applied = repaired_cells(book) if book else fix_all(Source("variant.py", hazard))
    if not applied or repaired == hazard:
        return
    wanted, got = run(reference), run(repaired)
    if wanted.error:
        return
    original = run(hazard)
    title = f"{seed.name} {'+'.join(names) or 'as it is'}: {'; '.join(fix.title for fix in applied)}"
    for fix in applied:
        tally.judged[fix.code] += 1
        break
    tally.spelled.update(names or ("as it is",))
    is_left = any(one.severity in LOUD for one in analyze(Source("variant.py", repaired)).findings)
    if got.error and got.error != original.error:
        tally.broken.append(f"{title}: {got.error}")
    elif not got.error and (wrong := differences(got.values, wanted.values, original.values, is_left)):
        tally.other.append(f"{title}: {', '.join(wrong)}")
    else:
        return
    if show:
        print(f"--- {title}\n{hazard}\n+++\n{repaired}\n{got.error or ''}\n")


def repaired_cells(text: str) -> tuple[str, list[Fix]]:
    """The program of a notebook after the safe fixes, as its file holds it then."""
    cells = read_notebook("variant.ipynb", text)
    assert isinstance(cells, JoinedCells)
    module, applied = fix_all(cells.source)
    written = with_module(text, cells, module)
    if written is None:
        return cells.source.text, []
    again = read_notebook("variant.ipynb", written)
    assert isinstance(again, JoinedCells)
    return again.source.text, applied


@dataclass(frozen=True, slots=True)
class Ran:
    """What a program left behind: its tensors and their gradients by name, or the error it ended with."""

    values: dict[str, Any]
    error: str


def run(text: str) -> Ran:
    """Execute a program from the same state as every other, silenced."""
    torch.set_grad_enabled(True)
    torch.set_default_dtype(torch.float32)
    torch.manual_seed(0)
    random.seed(0)
    namespace: dict[str, Any] = {"__name__": "__main__"}
    error = ""
    with (
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        try:
            exec(compile(text, "<variant>", "exec"), namespace)
        except Exception as problem:
            lines = [frame.line or "" for frame in traceback.extract_tb(problem.__traceback__)][-1:]
            error = f"{type(problem).__name__}: {problem}".split("\n")[0] + "".join(lines)
        finally:
            torch.set_grad_enabled(True)
            torch.set_default_dtype(torch.float32)
    return Ran(dict(tensors(namespace)), error)


def tensors(namespace: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The gradients that a program names as its result; without that all its tensors, and their gradients."""
    told = namespace.get("GRADS")
    if isinstance(told, dict):
        yield from ((f"GRADS {name}", value) for name, value in told.items())
        return
    for name, value in namespace.items():
        if isinstance(value, SimpleNamespace):
            yield from tensors(vars(value))
        elif isinstance(value, torch.Tensor):
            yield name, value.detach()
            if value.is_leaf:
                yield f"{name}.grad", value.grad
        elif isinstance(value, torch.nn.Module):
            for key, one in value.named_parameters():
                yield f"{name}.{key}", one.detach()
                yield f"{name}.{key}.grad", one.grad if one.is_leaf else None


def differences(
    got: dict[str, Any], wanted: dict[str, Any], original: dict[str, Any], is_left: bool
) -> list[str]:
    """The names that both programs have and that differ, unless the hazard's own value is what the fix kept.

    The gradient of a hazard may be wrong: to keep it is excused only where a finding says so still, and where none is left of
    it after a step that is right now.  A second name that a layout gave and nothing reads is not looked at: where one is read,
    as other layouts do, the fix has to know.
    """

    def is_kept(name: str) -> bool:
        if name not in original or not same(got[name], original[name]):
            return False
        if is_left or "grad" not in name.lower():
            return True
        trained = name.removesuffix(".grad")
        now, meant, before = (one.get(trained) for one in (got, wanted, original))
        return got[name] is None and same(now, meant) and not same(before, meant)

    return [
        name
        for name in got.keys() & wanted.keys()
        if not name.startswith(SPARE) and not same(got[name], wanted[name]) and not is_kept(name)
    ]


def same(one: Any, other: Any) -> bool:
    if not isinstance(one, torch.Tensor) or not isinstance(other, torch.Tensor):
        return isinstance(one, torch.Tensor) == isinstance(other, torch.Tensor)
    if one.shape != other.shape:
        return False
    return bool(torch.allclose(one, other.to(one.dtype), rtol=1e-4, atol=1e-6, equal_nan=True))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
