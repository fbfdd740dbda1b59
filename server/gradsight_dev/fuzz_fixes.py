"""`python -m gradsight_dev.fuzz_fixes`: writes variants of hazards, lets the safe fixes repair them, and asks torch.

A *seed* is a hazard with its reference: a fixture program, or the first block of a rule page and its *Use instead*.  A variant
spells both in another way that means the same (inside a function, a method, a loop; other names, attributes, dict entries,
methods for signs).  It is judged if a safe fix changed it: the repaired text must run, and leave the values and gradients of the
reference in every tensor that both have.
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
from types import SimpleNamespace
from typing import Any

import torch

from gradsight.fixing import fix_all
from gradsight.model.source import Source
from gradsight.rules import ALL
from gradsight_dev.fuzz_variants import VARIATIONS, Unfit, varied
from gradsight_dev.verify_fixtures import COLLECTIONS, read_labels

BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)
CLAIM = re.compile(r"#\s*(?:error|warning): (GS\d{3})")


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
    broken: list[str] = field(default_factory=list)
    other: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        codes = ", ".join(f"{code} {count}" for code, count in sorted(self.judged.items()))
        return (
            f"{self.variants} variants, {sum(self.judged.values())} changed by safe fixes ({codes}): "
            f"{len(self.broken)} broken, {len(self.other)} with other values or gradients"
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
    return 1 if tally.broken or tally.other else 0


def campaign(
    count: int, number: int = 0, only: str = "", show: bool = False, seconds: float = float("inf")
) -> FixTally:
    """Judge so many variants, the seeds and their variations in an order that the number decides."""
    rng = random.Random(number)
    chosen = [seed for seed in seeds() if only in seed.name]
    plans = [(seed, names) for seed in chosen for names in variations(rng)]
    rng.shuffle(plans)
    tally = FixTally()
    started = time.monotonic()
    for seed, names in plans:
        if sum(tally.judged.values()) >= count or time.monotonic() - started > seconds:
            break
        judge(seed, names, tally, show)
    return tally


def variations(rng: random.Random) -> Iterator[tuple[str, ...]]:
    """Each variation alone, and some pairs."""
    yield ()
    names = list(VARIATIONS)
    for name in names:
        yield (name,)
    for _ in range(8):
        yield tuple(rng.sample(names, 2))


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
    try:
        hazard, reference = varied(seed.hazard, names), varied(seed.reference, names)
    except Unfit:
        return
    tally.variants += 1
    repaired, applied = fix_all(Source("variant.py", hazard))
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
    if got.error and got.error != original.error:
        tally.broken.append(f"{title}: {got.error}")
    elif not got.error and (wrong := differences(got.values, wanted.values, original.values)):
        tally.other.append(f"{title}: {', '.join(wrong)}")
    else:
        return
    if show:
        print(f"--- {title}\n{hazard}\n+++\n{repaired}\n{got.error or ''}\n")


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
            yield from ((f"{name}.{key}.grad", one.grad) for key, one in value.named_parameters())


def differences(got: dict[str, Any], wanted: dict[str, Any], original: dict[str, Any]) -> list[str]:
    """The names that both programs have and that differ, unless the hazard's own value is what the fix kept."""
    return [
        name
        for name in got.keys() & wanted.keys()
        if not same(got[name], wanted[name]) and not (name in original and same(got[name], original[name]))
    ]


def same(one: Any, other: Any) -> bool:
    if not isinstance(one, torch.Tensor) or not isinstance(other, torch.Tensor):
        return isinstance(one, torch.Tensor) == isinstance(other, torch.Tensor)
    if one.shape != other.shape:
        return False
    return bool(torch.allclose(one, other.to(one.dtype), rtol=1e-4, atol=1e-6, equal_nan=True))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
