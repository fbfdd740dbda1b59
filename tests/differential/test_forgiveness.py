"""What the differential tester forgives: each time a program that deserves it, and one beside it that does not."""

from __future__ import annotations

from textwrap import dedent

import pytest
import torch

from gradsight.model import Certainty, Finding, Span
from gradsight_dev.fuzz import case
from gradsight_dev.fuzz.oracle import judge

torch.set_num_threads(1)
OPENING = "import torch\nimport torch.nn as nn\n"


def marked_lines(text: str) -> set[int]:
    return {number for number, line in enumerate(text.splitlines(), 1) if line.endswith("# here")}


# -- a hidden write that changes nothing by luck ---------------------------------------------------------------------


def check_unseen(program: str, verdict: str) -> None:
    """Judge the program; the lines marked `# here` must be those that changed a saved value unseen."""
    text = OPENING + dedent(program)
    truth = judge(text)
    assert truth.verdict == verdict, truth
    assert truth.unseen == marked_lines(text)


SAVED = """
x = torch.ones(3, requires_grad=True)
y = x ** 2
"""


@pytest.mark.parametrize(
    "write",
    [
        "x.data.clamp_(-9, 9)",
        "x.data[0] = 1",
        "x.data[1:].mul_(1)",
        "x.data.view(3, 1)[2, 0] = 1",
        "x.data = x.data.clone()",
    ],
)
def test_a_write_that_by_luck_leaves_a_saved_value_is_masked(write: str) -> None:
    check_unseen(SAVED + f"{write}  # here\ny.sum().backward()\n", "masked")


@pytest.mark.parametrize(
    "no_write",
    [
        "x.requires_grad_(True)",
        "x.data.unsqueeze_(0)",
        "x.data[3:].mul_(1)",
        "x.data.clone().clamp_(-9, 9)",
        "other = torch.ones(3)\nother.data = x.data.clone()",
    ],
)
def test_what_only_looks_like_a_write_to_a_saved_value_is_not(no_write: str) -> None:
    check_unseen(SAVED + f"{no_write}\ny.sum().backward()\n", "exact")


def test_a_write_between_the_elements_of_a_saved_view_is_no_change() -> None:
    program = """
        x = torch.ones(2, 2, requires_grad=True)
        y = x[:, 0] ** 2
        x.data[:, {column}].mul_(1){mark}
        y.sum().backward()
    """
    check_unseen(program.format(column=0, mark="  # here"), "masked")
    check_unseen(program.format(column=1, mark=""), "exact")


def test_a_write_before_the_save_or_behind_the_pass_is_no_change() -> None:
    check_unseen(
        """
        x = torch.ones(3, requires_grad=True)
        x.data.mul_(1)
        y = x ** 2
        y.sum().backward()
        x.data.mul_(1)
    """,
        "exact",
    )


def test_the_writers_of_every_path_are_known() -> None:
    check_unseen(
        """
        import random
        x = torch.ones(3, requires_grad=True)
        y = x ** 2
        if random.random() < 0.5:
            x.data.mul_(2)  # here
        else:
            x.data.mul_(1)  # here
        y.sum().backward()
    """,
        "silent",
    )


# -- an assumption about a function that nobody calls ----------------------------------------------------------------


def check_refuted(program: str, certainty: Certainty, result: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Weigh a finding on the line marked `# here` of a program that torch finds exact."""
    text = OPENING + dedent(program)
    (line,) = marked_lines(text)
    finding = Finding("GS101", "name", "message", "warning", certainty, "<program>", Span(line, 0, line, 1))
    monkeypatch.setattr(case, "findings_of", lambda text, path: [finding])
    truth = judge(text)
    assert truth.verdict == "exact"
    comparison, crash = case.weigh(text, "<program>", truth)
    assert not crash
    assert comparison is not None
    assert comparison.result == result


UNCALLED = """
    def shift(value, much=False):
        kept = value.exp()
        if much:
            kept += 1  # here
        return kept
    x = torch.ones(3, requires_grad=True)
    {call}.sum().backward()
"""


def test_a_function_that_nobody_calls_refutes_no_assumption(monkeypatch: pytest.MonkeyPatch) -> None:
    check_refuted(UNCALLED.format(call="x"), "assumed", "agrees", monkeypatch)


def test_a_function_that_nobody_calls_refutes_what_is_said_to_be_certain(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    check_refuted(UNCALLED.format(call="x"), "certain", "false alarm", monkeypatch)


def test_a_line_that_is_skipped_in_a_called_function_refutes_an_assumption(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    check_refuted(UNCALLED.format(call="shift(x)"), "assumed", "false alarm", monkeypatch)


def test_a_line_that_is_skipped_outside_functions_refutes_an_assumption(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    program = """
        x = torch.ones(3, requires_grad=True)
        kept = x.exp()
        if kept.shape == (4,):
            kept += 1  # here
        kept.sum().backward()
    """
    check_refuted(program, "assumed", "false alarm", monkeypatch)


def test_a_method_on_a_path_that_is_taken_sometimes_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    program = """
        import random
        class Scale:
            def __call__(self, value):
                return value * 2  # here
        x = torch.ones(3, requires_grad=True)
        if random.random() < 0.5:
            Scale()(x).sum().backward()
    """
    check_refuted(program, "assumed", "false alarm", monkeypatch)


# -- what switches grad mode off around a cut ------------------------------------------------------------------------


def check_causes(program: str) -> None:
    """The program has no graph to go back through; the lines marked `# here` are exactly the causing ones."""
    text = OPENING + "from contextlib import contextmanager\n" + dedent(program)
    truth = judge(text)
    assert [failure.family for failure in truth.failures] == ["no_graph"]
    assert truth.failures[0].causes == marked_lines(text)


def test_a_manager_of_the_program_is_a_cause_where_it_switches_and_where_it_is_entered() -> None:
    check_causes("""
        @contextmanager
        def frozen():
            with torch.no_grad():  # here
                yield
        x = torch.ones(3, requires_grad=True)
        with frozen():  # here
            y = x * 2  # here
        y.sum().backward()  # here
    """)


def test_a_manager_that_does_not_switch_is_no_cause() -> None:
    check_causes("""
        @contextmanager
        def timed():
            with torch.enable_grad():
                torch.zeros(3)
            yield
        @contextmanager
        def unused():
            with torch.no_grad():
                yield
        x = torch.ones(3, requires_grad=True)
        with timed():
            y = (x * 2).detach()  # here
        y.sum().backward()  # here
    """)


def test_an_object_is_a_cause_where_it_switches_off_and_nowhere_else() -> None:
    check_causes("""
        class Frozen:
            def __enter__(self):
                self.before = torch.is_grad_enabled()
                torch.set_grad_enabled(False)  # here
            def __exit__(self, *error):
                torch.set_grad_enabled(self.before)
            def peek(self, value):
                with torch.no_grad():
                    return value * 3
        x = torch.ones(3, requires_grad=True)
        with Frozen():  # here
            y = x * 2  # here
        y.sum().backward()  # here
    """)


def test_a_block_that_is_over_is_no_cause() -> None:
    check_causes("""
        x = torch.ones(3, requires_grad=True)
        with torch.no_grad():  # here
            with torch.inference_mode(False):
                pass
            with torch.no_grad():
                shown = x * 5
            with torch.enable_grad():
                kept = x * 4
            y = x * 2  # here
        torch.set_grad_enabled(True)
        y.sum().backward()  # here
    """)


def test_a_switch_in_a_function_is_a_cause_with_its_call_until_it_is_undone() -> None:
    check_causes("""
        def freeze():
            torch.set_grad_enabled(False)  # here
        x = torch.ones(3, requires_grad=True)
        torch.set_grad_enabled(False)
        shown = x * 3
        torch.set_grad_enabled(True)
        freeze()  # here
        y = x * 2  # here
        torch.set_grad_enabled(True)
        y.sum().backward()  # here
    """)


def test_a_decorator_of_the_program_is_a_cause_if_it_switches() -> None:
    check_causes("""
        def timed(function):
            def timing(value):
                return function(value)  # here
            return timing
        def frozen(function):
            def freezing(value):
                with torch.no_grad():  # here
                    return function(value)  # here
            return freezing
        @frozen  # here
        @timed
        def double(value):
            return value * 2  # here
        x = torch.ones(3, requires_grad=True)
        y = double(x)  # here
        y.sum().backward()  # here
    """)
