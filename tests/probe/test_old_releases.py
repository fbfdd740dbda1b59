"""The agent runs on Python 3.9 and on torch 2.0: its syntax, its library, and the parts of torch it must do without."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from gradsight.probe.kinds import code_of
from tests.probe.expectation import FIXTURES, expected_of

AGENT = Path(__file__).resolve().parents[2] / "server" / "gradsight" / "agent"
OLDEST = (3, 9)
# Names that the standard library has since Python 3.10 or later.
NEWER_NAMES = frozenset(
    "pairwise bit_count aclosing stdlib_module_names orig_argv NoneType EllipsisType get_annotations ExceptionGroup "
    "BaseExceptionGroup add_note tomllib TaskGroup batched monitoring StrEnum UTC file_digest override Self "
    "ParamSpec TypeAlias TypeGuard anext aiter".split()
)
NEWER_KEYWORDS = {
    "zip": {"strict"},
    "dataclass": {"slots", "kw_only"},
    "bisect_left": {"key"},
    "insort": {"key"},
}
# torch 2.0 numbers no nodes, shows no saved tensors and has no Python function around the engine.
# torch is imported once; each program runs in a child of its own.
OLD_TORCH = """
import json, os, sys, torch
del torch._C._autograd._get_sequence_nr
from gradsight.agent.program import load
from gradsight.agent.stage import Stage

def run(script, level):
    request = {"script": script, "args": [], "without": ["saved-data", "engine-function"], "fast": level == "fast"}
    stage = Stage(request, lambda: None)
    stage.prepare()
    error = stage.run(load(request))
    fault = stage.instruments.blame.explain(error) if error is not None else None
    if fault is not None:
        stage.ledger.add(fault)
    stage.instruments.finish()
    faults = [(each.kind, each.place.row) for each in stage.ledger.faults]
    print("@@" + json.dumps([script, level, faults, stage.ledger.problems]), flush=True)

for script in sys.argv[1:]:
    for level in ("default", "fast"):
        if os.fork() == 0:
            try:
                run(script, level)
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(0)
        os.wait()
"""
Told = dict[tuple[str, str], tuple[list[tuple[str, int]], list[str]]]


def agent_files() -> list[Path]:
    return sorted(AGENT.rglob("*.py"))


@pytest.mark.parametrize("path", agent_files(), ids=lambda path: str(path.relative_to(AGENT)))
def test_the_agent_speaks_the_oldest_python(path: Path) -> None:
    tree = ast.parse(path.read_text("utf-8"), feature_version=OLDEST)
    assert newer_parts(tree) == []


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("from itertools import pairwise", ["pairwise"]),
        ("import tomllib", ["tomllib"]),
        ("x = sys.monitoring", ["monitoring"]),
        ("zip(a, b, strict=True)", ["zip(strict=)"]),
        ("@dataclass(slots=True)\nclass A: pass", ["dataclass(slots=)"]),
        ("Name = int | None", ["int | None"]),
        ("isinstance(a, int | str)", ["int | str"]),
        ("def f(a: int | None) -> str | None: b: int | str = a | c", []),
    ],
)
def test_newer_parts_are_recognised(code: str, found: list[str]) -> None:
    assert newer_parts(ast.parse(code)) == found


@pytest.mark.parametrize("code", ["match a:\n    case 1: pass", "try: pass\nexcept* ValueError: pass"])
def test_newer_syntax_is_refused(code: str) -> None:
    with pytest.raises(SyntaxError):
        ast.parse(code, feature_version=OLDEST)


ON_OLD_TORCH = (
    "raising/softmax_masked_in_place",
    "raising/recurrent_table_rows",
    "raising/custom_function_saved_input",
    "raising/step_between_two_losses",
    "safe/optimizer_loop",
    "safe/gru_cell_interleaved_gates",
)
ON_NEW_TORCH = ("raising/custom_function_saved_input",)
# torch 2.15 has no Python around `Function.apply`: the class method is one of C.
NEW_TORCH = OLD_TORCH.replace(
    "del torch._C._autograd._get_sequence_nr",
    'torch.autograd.Function.apply = vars(torch._C._FunctionBase)["apply"]',
).replace('["saved-data", "engine-function"]', "[]")


def told_by(torch: str, names: tuple[str, ...]) -> Told:
    """What the agent tells of these programs on such a torch: by program and level, faults and problems of its own."""
    scripts = [str(FIXTURES / f"{name}.py") for name in names]
    done = subprocess.run(
        [sys.executable, "-c", torch, *scripts], capture_output=True, text=True, check=False
    )
    told: Told = {}
    for line in done.stdout.splitlines():
        if line.startswith("@@"):
            script, level, faults, problems = ast.literal_eval(line[2:])
            told[script, level] = faults, problems
    assert len(told) == 2 * len(names), done.stderr
    return told


@pytest.fixture(scope="module")
def on_old_torch() -> Told:
    return told_by(OLD_TORCH, ON_OLD_TORCH)


@pytest.fixture(scope="module")
def on_new_torch() -> Told:
    return told_by(NEW_TORCH, ON_NEW_TORCH)


def check(told: Told, name: str, level: str) -> None:
    path = FIXTURES / f"{name}.py"
    faults, problems = told[str(path), level]
    assert problems == []
    assert {(code_of(kind), row) for kind, row in faults} == expected_of(path.read_text("utf-8")).faults


@pytest.mark.parametrize("level", ["default", "fast"])
@pytest.mark.parametrize("name", ON_OLD_TORCH)
def test_lines_are_named_without_what_newer_torch_offers(on_old_torch: Told, name: str, level: str) -> None:
    check(on_old_torch, name, level)


@pytest.mark.parametrize("level", ["default", "fast"])
@pytest.mark.parametrize("name", ON_NEW_TORCH)
def test_custom_functions_are_followed_where_apply_is_a_method_of_c(
    on_new_torch: Told, name: str, level: str
) -> None:
    check(on_new_torch, name, level)


def newer_parts(tree: ast.Module) -> list[str]:
    """What Python 3.9 would not have: names of the library, options of its functions, unions that are evaluated."""
    annotations = {
        id(part)
        for node in ast.walk(tree)
        for field in ("annotation", "returns")
        if isinstance(getattr(node, field, None), ast.expr)
        for part in ast.walk(getattr(node, field))
    }
    found: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            found += [each.name for each in node.names if each.name in NEWER_NAMES]
        elif isinstance(node, ast.Attribute) and node.attr in NEWER_NAMES:
            found.append(node.attr)
        elif isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            options = NEWER_KEYWORDS.get(name, set())
            found += [f"{name}({each.arg}=)" for each in node.keywords if each.arg in options]
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr) and id(node) not in annotations:
            if any(_is_type(side) for side in (node.left, node.right)):
                found.append(ast.unparse(node))
    return found


def _is_type(node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return node.value is None
    return isinstance(node, ast.Name) and node.id in ("int", "str", "float", "bool", "list", "dict", "tuple")
