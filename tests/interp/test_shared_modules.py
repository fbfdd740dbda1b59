"""A module is executed once for many files, and no file finds what another has done to it."""

from __future__ import annotations

import random
import threading

import pytest

from gradsight.analysis import Analyser, analyze, no_modules
from gradsight.interp.paths import shared_modules
from gradsight.interp.paths.shared_modules import SharedModules
from gradsight.model import Source
from gradsight.model.report import Report

HAZARD = """
    x = torch.ones(3, requires_grad=True)
    y = x.exp()
    y.add_(1)
    y.sum().backward()
"""
WORKSPACE = {
    "state.py": """
CACHE = []
FLAGS = {"strict": False}
COUNT = 0
class Config:
    items = []
    limit = 0
class Plain:
    def __init__(self):
        self.seen = 0
SETTINGS = Plain()
def remember(value, seen=[]):
    seen.append(value)
    return len(seen)
def count():
    global COUNT
    COUNT += 1
    return COUNT
def make_counter():
    number = 0
    kept = []
    def advance():
        nonlocal number
        number += 1
        kept.append(number)
        return number + len(kept)
    return advance
advance = make_counter()
def plain():
    pass
""",
    "registry.py": """
MODELS = {}
def register(function):
    MODELS[function.__name__] = function
    return function
""",
    "first.py": """
from registry import register
@register
def small():
    return 1
""",
    "second.py": """
import state
state.COUNT = 10
from registry import register
@register
def large():
    return 2
""",
    "keeper.py": """
class Keeper:
    def __init__(self):
        self.known = dict()
    def register(self, cls):
        self.known[cls.__name__] = cls
        return cls
KEEPER = Keeper()
""",
    "third.py": """
from keeper import KEEPER
@KEEPER.register
class Third:
    size = 3
""",
    "patching.py": """
from state import Config
Config.limit = 5
""",
    "live.py": """
import torch
weight = torch.ones(3, requires_grad=True)
product = weight.exp()
""",
    "layers.py": """
import torch
from live import weight
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(3, 3)
    def forward(self, x):
        y = torch.sigmoid(self.fc(x))
        y += 1
        return y
""",
    "left.py": "from right import beta\nALPHA = 1\ndef alpha():\n    return beta()\n",
    "right.py": "from left import ALPHA\ndef beta():\n    return ALPHA\n",
    "lazy.py": "import state\nNUMBER = state.count()\n",
}


def program(condition: str, *statements: str) -> str:
    lines = ["import torch", *statements, f"if {condition}:{HAZARD}"]
    return "\n".join(lines)


PROGRAMS = {
    "list.py": program("len(CACHE) > 1", "from state import CACHE", "CACHE.append(1)"),
    "dict.py": program("before", "from state import FLAGS", "before = FLAGS['strict']", "FLAGS['strict'] = True"),
    "dict_before.py": program("FLAGS['strict']", "from state import FLAGS"),
    "through_module.py": program("state.FLAGS['strict'] or state.extra", "import state", "state.extra = False"),
    "class_list.py": program("len(Config.items) > 1", "from state import Config", "Config.items.append(1)"),
    "class_attribute.py": program("Config.limit", "from state import Config", "seen = Config.limit", "Config.limit = seen"),
    "class_set.py": program("False", "from state import Config", "Config.limit = 3"),
    "default.py": program("remember(1) > 1", "from state import remember"),
    "global.py": program("count() > 1", "from state import count"),
    "nonlocal.py": program("advance() > 2", "from state import advance"),
    "instance.py": program("SETTINGS.seen > 1", "from state import SETTINGS", "SETTINGS.seen += 1"),
    "function_set.py": program("plain.calls > 1", "from state import plain", "plain.calls = 1"),
    "registered.py": program("len(MODELS) == 1", "from registry import MODELS", "import first"),
    "registered_both.py": program("len(MODELS) == 2", "from registry import MODELS", "import first", "import second"),
    "registered_none.py": program("len(MODELS)", "from registry import MODELS"),
    "kept.py": program("len(KEEPER.known) == 1", "from keeper import KEEPER", "from third import Third", "size = Third.size"),
    "kept_none.py": program("len(KEEPER.known)", "from keeper import KEEPER"),
    "patched.py": program("Config.limit == 5", "from state import Config", "import patching"),
    "bound_elsewhere.py": program("state.COUNT == 10", "import state", "import second"),
    "bound_by_count.py": program("NUMBER == 1 and state.COUNT == 1", "import state", "from lazy import NUMBER"),
    "tensor.py": "from live import product\nproduct.add_(1)\nproduct.sum().backward()\n",
    "tensor_again.py": "from live import product\nproduct.sum().backward()\nproduct.sum().backward()\n",
    "model.py": "import torch\nfrom layers import Net\nnet = Net()\nnet(torch.ones(1, 3)).sum().backward()\n",
    "circle.py": program("alpha() == 1", "from left import alpha"),
    "functions.py": """
import torch
from state import CACHE, Config, advance
def train(model, x):
    CACHE.append(x)
    Config.limit += 1
    y = torch.exp(model(x))
    if len(CACHE) == 1 and advance() == 2:
        y += 1
    y.sum().backward()
def again(model, x):
    y = torch.exp(model(x))
    if CACHE or Config.limit:
        y += 1
    y.sum().backward()
""",
}  # fmt: skip
TOLD = [
    "registered.py", "registered_both.py", "kept.py", "patched.py", "bound_elsewhere.py", "bound_by_count.py", "tensor.py", "tensor_again.py",
    "model.py", "circle.py", "functions.py",
]  # fmt: skip


def find(name: str, level: int, importer: str) -> Source | None:
    path = f"/project/{name.replace('.', '/')}.py"
    text = WORKSPACE.get(path.removeprefix("/project/"))
    return Source(path, text) if text is not None else None


def report(name: str, modules: SharedModules | None = None) -> Report:
    return analyze(Source(f"/project/{name}", PROGRAMS[name]), None, find, Analyser(modules))


def loud(told: Report) -> list[str]:
    return [finding.code for finding in told.findings if finding.severity in ("error", "warning")]


def test_what_a_file_does_to_a_module_is_seen_by_that_file_alone() -> None:
    assert [name for name in PROGRAMS if loud(report(name))] == TOLD


@pytest.mark.parametrize("seed", range(6))
def test_in_any_order_a_file_is_told_what_it_is_told_alone(seed: int) -> None:
    alone = {name: report(name) for name in PROGRAMS}
    modules = no_modules()
    names = [*PROGRAMS, *PROGRAMS]
    random.Random(seed).shuffle(names)
    for name in names:
        assert report(name, modules) == alone[name], name


def test_two_threads_with_modules_of_their_own_say_what_one_says() -> None:
    alone = {name: report(name) for name in PROGRAMS}
    wrong: list[str] = []

    def work(seed: int) -> None:
        modules = no_modules()
        names = [*PROGRAMS]
        random.Random(seed).shuffle(names)
        wrong.extend(name for name in names if report(name, modules) != alone[name])

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def executed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the modules of which something is executed from now on."""
    told: list[str] = []
    original = SharedModules.execute

    def execute(self: SharedModules, execution: shared_modules.Execution, *rest: object) -> None:
        told.append(execution.module.name)
        original(self, execution, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(SharedModules, "execute", execute)
    return told


def test_a_module_is_executed_once_for_all_files(monkeypatch: pytest.MonkeyPatch) -> None:
    modules = no_modules()
    report("functions.py", modules)
    again = executed(monkeypatch)
    report("functions.py", modules)
    report("list.py", modules)
    report("class_list.py", modules)
    assert again == []


def test_an_edit_of_the_script_does_not_execute_its_imports_again(monkeypatch: pytest.MonkeyPatch) -> None:
    analyser = Analyser()
    text = PROGRAMS["list.py"]
    analyser.analyze(Source("/project/list.py", text), None, find)
    again = executed(monkeypatch)
    edited = text.replace("CACHE.append(1)", "CACHE.append(1)\nCACHE.append(2)")
    told = analyser.analyze(Source("/project/list.py", edited), None, find)
    assert again == []
    assert loud(told)


def test_what_rests_on_a_changed_module_is_executed_again_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    analyser = Analyser()
    files = {
        "/project/size.py": "SIZE = 1\n",
        "/project/other.py": "NAME = 1\n",
        "/project/middle.py": "from size import SIZE\nTWICE = 2 * SIZE\n",
    }

    def finder(name: str, level: int, importer: str) -> Source | None:
        path = f"/project/{name}.py"
        return Source(path, files[path]) if path in files else None

    text = program("TWICE > 2", "from other import NAME", "from middle import TWICE", "told = NAME")
    source = Source("/project/main.py", text)
    assert not loud(analyser.analyze(source, None, finder))
    files["/project/size.py"] = "SIZE = 2\n"
    again = executed(monkeypatch)
    analyser.forget(source.path)
    assert loud(analyser.analyze(source, None, finder))
    assert "middle" in again
    assert "other" not in again


def test_an_import_that_costs_too_much_is_a_gap_of_that_module_and_the_file_goes_on() -> None:
    heavy = "total = 0\n" + "for a in range(9):\n    total += a\n" * 8000 + "LATE = 1\n"
    text = program("True", "from heavy import LATE", "from light import NAME", "told = (LATE, NAME)")

    def finder(name: str, level: int, importer: str) -> Source | None:
        found = {"heavy": heavy, "light": "NAME = 1\n"}.get(name)
        return Source(f"/project/{name}.py", found) if found is not None else None

    told = analyze(Source("/project/main.py", text), None, finder)
    assert loud(told)
    assert [gap.line for gap in told.gaps if "while heavy was imported" in gap.reason] == [4]
