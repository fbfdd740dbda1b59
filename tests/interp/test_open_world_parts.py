"""Model files whose other half is elsewhere: tables of classes and functions, decorators of other files, work that ends early."""

from __future__ import annotations

import textwrap

import pytest

from gradsight.analysis import analyze
from gradsight.interp.paths import entries
from gradsight.model import Source
from tests.interp.checking import check


def findings(main: str, **files: str) -> list[tuple[str, int]]:
    """The alarms in a file that imports from others."""
    sources = {f"{name}.py": textwrap.dedent(text) for name, text in files.items()}

    def finder(module: str, level: int, importing_path: str) -> Source | None:
        path = f"{module}.py"
        return Source(path, sources[path]) if path in sources else None

    report = analyze(Source("main.py", textwrap.dedent(main)), None, finder)
    return [
        (one.code, one.span.line)
        for one in report.findings
        if one.severity in ("error", "warning") and one.path == "main.py"
    ]


TABLES = """
class Normed(nn.Module):
    def __init__(self, width, act_layer=nn.ReLU):
        super().__init__()
        self.norm, self.act = nn.BatchNorm2d(width), act_layer(inplace=True)
    def forward(self, x):
        return self.act(self.norm(x))
class Grouped(nn.Module):
    pass
WITH_ACT = {Normed, Grouped}
BY_NAME = dict(batchnorm2d=Normed, groupnorm=Grouped)
def normed(layer):
    return layer if layer in WITH_ACT else BY_NAME.get(layer.__name__.lower(), None)
class Conv(nn.Module):
    def __init__(self, width, layer=nn.BatchNorm2d):
        super().__init__()
        self.conv, self.bn = nn.Conv2d(width, width, 3), normed(layer)(width)
"""


def test_a_class_of_torch_is_none_of_a_set_of_others_and_has_a_name() -> None:
    report = check(
        TABLES
        + """
    def forward(self, x):
        y = self.bn(self.conv(x))
        y += 1  # GS101
        return y
"""
    )
    alarm = next(one for one in report.findings if one.severity == "warning")
    assert "`ReLU`" in alarm.message
    check(TABLES + "    def forward(self, x):\n        return self.bn(self.conv(x)) + 1\n")
    check(
        TABLES
        + """
    def forward(self, x):
        y = self.conv(x).exp()
        if nn.ReLU in WITH_ACT or nn.ReLU.__name__ != "ReLU" or Grouped not in WITH_ACT or Conv == Grouped:
            y += 1
        return y
"""
    )


REGISTRY = """
from elsewhere import FUNCTIONS
def plain_attention(q, k, v):
    weights = (q @ k.transpose(-2, -1)).softmax(-1)
    return weights @ v, weights
class Attention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.q, self.k, self.v = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4)
    def forward(self, x):
        attend = FUNCTIONS.get(self.config.kind, plain_attention)
        mixed, weights = attend(self.q(x), self.k(x), self.v(x))
"""


def test_the_default_of_an_unknown_table_is_tried() -> None:
    check(REGISTRY + "        weights += 1  # GS101\n        return mixed\n")
    check(REGISTRY + "        weights = weights + 1\n        return mixed, weights\n")


def test_the_default_is_tried_where_a_base_class_is_not_known() -> None:
    check(
        """
from collections.abc import MutableMapping
class Table(MutableMapping):
    def interface(self, kind, default):
        return super().get(kind, default)
TABLE = Table()
def scale(x):
    return x.exp()
class Net(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config, self.layer = config, nn.Linear(4, 4)
    def forward(self, x):
        y = TABLE.interface(self.config.kind, scale)(self.layer(x))
        y += 1  # GS101
        return y
"""
    )


def test_a_decorator_of_another_file_that_refuses_unknown_settings_is_left_away() -> None:
    decorators = """
        from functools import wraps
        def with_defaults(function):
            @wraps(function)
            def wrapper(self, *args, **kwargs):
                for name in ["cache", "layer", "strategy", "ratio"]:
                    index = None
                    if name in function.__code__.co_varnames:
                        index = function.__code__.co_varnames.index(name) - 1
                    if index is not None and len(args) > index and args[index] is not None:
                        value = args[index]
                    elif kwargs.get(name) is not None:
                        value = kwargs[name]
                    else:
                        value = getattr(self.config, name, None)
                    if value is not None:
                        if name == "cache":
                            if getattr(self, "checkpointing", False) and self.training and value:
                                value = False
                        elif name == "strategy":
                            known = ["default", "full"]
                            if value not in known:
                                raise ValueError(value)
                        kwargs[name] = value
                return function(self, *args, **kwargs)
            return wrapper
    """
    main = """
        import torch
        from torch import nn
        from decorators import with_defaults
        class Inner(nn.Module):
            def __init__(self, config):
                super().__init__()
                self.config, self.layer = config, nn.Linear(4, 4)
            @with_defaults
            def forward(self, x, **kwargs):
                return self.layer(x)
        class Outer(nn.Module):
            def __init__(self, config):
                super().__init__()
                self.inner = Inner(config)
            def forward(self, x):
                y = self.inner(x).exp()
                y += 1
                return y
    """
    assert findings(main, decorators=decorators) == [("GS101", 18)]
    assert findings(main.replace("y += 1", "y = y + 1"), decorators=decorators) == []


LONG = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)
    def forward(self, x):
        h = self.a(x).sigmoid()
        {write}
        total = self.b(h)
        for index in range(3):
            for other in range(3):
                total = self.b(total).tanh() + self.b(total).tanh() + self.b(total).tanh() * self.b(total).tanh()
                total = self.b(total).tanh() + self.b(total).tanh() + self.b(total).tanh() * self.b(total).tanh()
        return total
"""


def test_what_was_found_before_the_work_ended_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entries, "ENTRY_BUDGET", 130)
    monkeypatch.setattr(entries, "ENTRY_PER_LINE", 0)
    monkeypatch.setattr(entries, "SHARED_BUDGET", 130)
    monkeypatch.setattr(entries, "SHARED_PER_LINE", 0)
    report = check(LONG.format(write="h += 1  # GS101"))
    assert any("limit of work" in gap.reason for gap in report.gaps)
    report = check(LONG.format(write="h = h + 1"))
    assert any("limit of work" in gap.reason for gap in report.gaps)


def test_names_that_are_read_no_more_are_not_taken_for_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entries, "ENTRY_BUDGET", 130)
    monkeypatch.setattr(entries, "ENTRY_PER_LINE", 0)
    monkeypatch.setattr(entries, "SHARED_BUDGET", 130)
    monkeypatch.setattr(entries, "SHARED_PER_LINE", 0)
    check(LONG.replace("self.b(h)", "self.b(x)").format(write="h += 1"))


def test_what_a_forward_returns_counts_where_a_decorator_loses_it() -> None:
    decorators = """
        from functools import wraps
        from elsewhere import STORE
        def kept(function):
            @wraps(function)
            def wrapper(self, *args, **kwargs):
                STORE.put(function(self, *args, **kwargs))
                return STORE.take()
            return wrapper
    """
    main = """
        import torch
        from torch import nn
        from decorators import kept
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(4, 4)
            @kept
            def forward(self, x):
                y = self.layer(x).exp()
                y += 1
                return y
    """
    assert findings(main, decorators=decorators) == [("GS101", 12)]
    assert findings(main.replace("y += 1", "y = y + 1"), decorators=decorators) == []


def test_a_list_in_a_part_that_was_not_made_to_its_end_may_become_a_module_list() -> None:
    work = "\n".join("                size = size * 2 + 1" for _ in range(400))
    check(f"""
        class Stage(nn.Module):
            def __init__(self, size, depth):
                super().__init__()
                self.layers = []
                for _ in range(depth):
                    self.layers.append(nn.Linear(4, 4))
{work}
                self.layers = nn.ModuleList(self.layers)
            def forward(self, x):
                for layer in self.layers:
                    x = layer(x)
                return x
        class Encoder(nn.Module):
            def __init__(self, config):
                super().__init__()
                self.stage = Stage(config.size, config.depth)
            def forward(self, x):
                return self.stage(x)
        class Model(nn.Module):
            def __init__(self, config):
                super().__init__()
                self.encoder = Encoder(config)
            def forward(self, x):
                y = self.encoder(x)
                y.mul_(2)
                return y
    """)
