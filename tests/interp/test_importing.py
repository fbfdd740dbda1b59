"""Workspace modules: a script knows what it imports, and pays only for what it uses."""

from __future__ import annotations

import textwrap

import pytest

from gradsight.analysis import analyze
from gradsight.interp.lazy_imports import divide
from gradsight.interp.parsing import parse_text
from gradsight.model import Source
from gradsight.model.report import Report

MODEL = """
    import torch
    from torch import nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(3, 3)

        def forward(self, x):
            y = self.layer(x).exp()
            y *= 2
            return y
"""


def check(main: str, expected: list[tuple[str, str, int]], **files: str) -> Report:
    """The alarms (code, file, line) about a script in a workspace of modules."""
    sources = {f"{name}.py": textwrap.dedent(text) for name, text in files.items()}

    def finder(module: str, level: int, importing_path: str) -> Source | None:
        path = f"{module.replace('.', '/')}.py"
        return Source(path, sources[path]) if path in sources else None

    report = analyze(Source("main.py", textwrap.dedent(main)), None, finder)
    found = [
        (finding.code, finding.path, finding.span.line)
        for finding in report.findings
        if finding.severity in ("error", "warning")
    ]
    assert found == expected, found
    return report


def waiting_in(text: str, foreign: set[str]) -> set[str]:
    """The names of a module that wait until they are needed."""
    units = parse_text("m.py", textwrap.dedent(text)).units
    return set(divide(units, lambda name, level: name in foreign)[1])


def test_a_script_knows_the_model_it_imports() -> None:
    check(
        """
        import torch
        from model import Net

        Net()(torch.randn(2, 3)).sum().backward()
        """,
        [("GS101", "model.py", 12)],
        model=MODEL,
    )


def test_a_module_imported_under_no_grad_is_not_made_without_gradients() -> None:
    check(
        """
        import torch
        import shared

        with torch.no_grad():
            shown = shared.scaled.detach().clone()
        shared.scaled.sum().backward()
        """,
        [],
        shared="""
            import torch
            weight = torch.randn(3, requires_grad=True)
            scaled = weight * 2
        """,
    )


def test_what_an_imported_script_does_as_the_main_program_is_not_done() -> None:
    check(
        """
        import torch
        from tools import scale, weight

        loss = scale(weight).sum()
        loss.backward()
        """,
        [],
        tools="""
            import torch
            weight = torch.randn(3, requires_grad=True)

            def scale(x):
                return x * 2

            if __name__ == "__main__":
                torch.set_grad_enabled(False)
        """,
    )


def test_grad_mode_that_an_import_switches_off_is_off() -> None:
    check(
        """
        import torch
        import tools

        weight = torch.randn(3, requires_grad=True)
        (weight * tools.factor).sum().backward()
        """,
        [("GS204", "main.py", 6)],
        tools="""
            import torch
            factor = 2
            torch.set_grad_enabled(False)
        """,
    )


def test_names_of_a_star_import_are_known() -> None:
    check(
        """
        import torch
        from model import *

        Net()(torch.randn(2, 3)).sum().backward()
        """,
        [("GS101", "model.py", 12)],
        model=MODEL,
    )


@pytest.mark.parametrize("count", [40, 300])
@pytest.mark.parametrize("is_circle", [False, True], ids=["chain", "circle"])
def test_a_long_chain_of_star_imports_hides_nothing_behind_it(count: int, is_circle: bool) -> None:
    files = {f"m{number}": f"import torch\nfrom m{number + 1} import *\n" for number in range(count)}
    files[f"m{count}"] = "import torch\n" + ("from m0 import *\n" if is_circle else "LAST = 3\n")
    report = check(
        """
        from m0 import *
        import torch

        w = torch.ones(3, requires_grad=True)
        y = w.exp()
        y += 1
        y.sum().backward()
        """,
        [("GS101", "main.py", 7)],
        **files,
    )
    # What is too deep to be followed is said.
    assert bool(report.gaps) is (count > 100)


def test_what_a_registry_of_the_workspace_holds_is_known() -> None:
    check(
        """
        import torch
        from nets import build

        build("net")(torch.randn(2, 3)).sum().backward()
        """,
        [("GS101", "nets.py", 22)],
        nets="""
            import torch
            from torch import nn

            REGISTRY = {}

            def register(cls):
                REGISTRY["net"] = cls
                return cls

            def build(name):
                return REGISTRY[name]()

            @register
            class Net(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.layer = nn.Linear(3, 3)

                def forward(self, x):
                    y = self.layer(x).exp()
                    y *= 2
                    return y
        """,
    )


def test_a_global_that_one_function_sets_is_not_set_for_another() -> None:
    check(
        """
        import torch
        state = None

        def first(x):
            global state
            state = x.exp()
            return state

        def second(x):
            y = x.exp()
            if state is not None:
                y *= 2
            return y
        """,
        [],
    )


def test_definitions_and_foreign_decorators_wait_and_registries_do_not() -> None:
    text = """
        import torch
        from ours import register

        VALUE, OTHER = make()
        TABLE = {}
        TABLE["a"] = 1

        @torch.no_grad()
        def plain():
            pass

        @register
        def kept():
            pass

        if VALUE:
            import extra
        print(VALUE)
    """
    assert waiting_in(text, {"torch"}) == {"torch", "register", "VALUE", "OTHER", "TABLE", "plain", "extra"}


def test_a_name_bound_twice_keeps_the_order_of_its_bindings() -> None:
    text = """
        a = 1
        for a in range(3):
            pass
        b = 1
        b = 2
    """
    assert waiting_in(text, set()) == {"b"}


def test_a_method_behind_a_decorator_of_another_file_is_tried_until_it_trains() -> None:
    check(
        """
        import torch
        from torch import nn
        from base import seeded

        class Model:
            def __init__(self):
                self.seed = None

            def drawn(self, x):
                for _ in range(3):
                    y = x + torch.randn(2, 3)
                    if not torch.isnan(y).any():
                        return y
                raise ValueError("nothing but NaN")

            @seeded
            def fit(self, loader):
                net = nn.Linear(3, 1)
                optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
                for x in loader:
                    net(self.drawn(x)).mean().backward()
                    optimizer.step()
        """,
        [("GS501", "main.py", 22)],
        base="""
        def seeded(function):
            def wrapper(self, *args):
                if self.seed is None:
                    return function(self, *args)
                raise ValueError(self.seed)
            return wrapper
        """,
    )


def test_a_call_into_another_file_that_raises_or_costs_too_much_ends_itself_only() -> None:
    check(
        """
        import torch
        from torch import nn
        from data import load, check_size

        check_size(load("images"))
        images = load("images")
        net = nn.Linear(3, 1)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for step in range(4):
            net(images).mean().backward()
            optimizer.step()
        """,
        [("GS501", "main.py", 11)],
        data="""
        import os

        def load(path):
            if os.path.exists(path):
                raise ValueError(path)
            total = 0
            for a in range(1000):
                for b in range(1000):
                    for c in range(1000):
                        total = (total + a * b * c) % (7 + total)
            return total

        def check_size(images):
            if len(images) < 3:
                pass
            else:
                raise ValueError("too many")
            if images.size:
                raise ValueError("too large")
        """,
    )


def test_what_a_call_that_was_given_up_did_to_modes_is_not_known() -> None:
    check(
        """
        import torch
        from torch import nn
        from evaluation import evaluate

        net = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5), nn.Linear(3, 1))
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(3):
            for step in range(3):
                optimizer.zero_grad()
                net(torch.ones(2, 3)).mean().backward()
                optimizer.step()
            evaluate(net, epoch)
        """,
        [],
        evaluation="""
        def evaluate(net, images):
            net.eval()
            if images.size:
                raise ValueError("too large")
            else:
                raise ValueError("too small")
            net.train()
        """,
    )
