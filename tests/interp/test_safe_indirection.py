"""Safe programs that reach what makes them safe by a detour, beside faults that the same detour does not hide.

Each safe program is run on torch, each faulty one is refused by it on the announced line.
"""

from __future__ import annotations

import sys
import traceback
from textwrap import dedent
from types import ModuleType

import pytest

from tests.interp.checking import PREAMBLE, announced, check


def safe(program: str) -> None:
    """GradSight is silent, and torch runs the program."""
    assert not announced(dedent(program).splitlines())
    check(program)
    run(program)


def refused(program: str, message: str) -> None:
    """GradSight speaks on the announced line, and torch raises there or when it goes on from there."""
    check(program)
    with pytest.raises(RuntimeError, match=message):
        run(program)


def run(program: str) -> None:
    text = PREAMBLE + dedent(program)
    module = ModuleType("program")
    sys.modules["program"] = module
    try:
        exec(compile(text, "program.py", "exec"), module.__dict__)
    except AssertionError:
        line = traceback.extract_tb(sys.exc_info()[2])[-1].lineno or 1
        raise AssertionError(text.splitlines()[line - 1]) from None
    finally:
        del sys.modules["program"]


# -- grad modes ------------------------------------------------------------------------------------------------------


def test_a_mode_entered_on_a_stack_lasts_until_the_stack_closes() -> None:
    safe("""
        import contextlib
        p = nn.Parameter(torch.ones(2))
        with contextlib.ExitStack() as stack:
            stack.enter_context(torch.no_grad())
            p.mul_(2)
        assert torch.is_grad_enabled()
    """)
    refused(
        """
        import contextlib
        p = nn.Parameter(torch.ones(2))
        with contextlib.ExitStack() as stack:
            stack.enter_context(torch.no_grad())
        p.mul_(2)  # GS102
        """,
        "leaf Variable",
    )


def test_a_stack_of_an_object_keeps_its_mode_until_the_object_closes_it() -> None:
    safe("""
        from contextlib import ExitStack
        class Quiet:
            def __enter__(self):
                self.stack = ExitStack().__enter__()
                self.stack.enter_context(torch.no_grad())
                return self
            def __exit__(self, *error):
                return self.stack.__exit__(*error)
        p = nn.Parameter(torch.ones(2))
        with Quiet():
            p.mul_(2)
        assert torch.is_grad_enabled()
        out = (p * 2).sum()
        out.backward()
    """)


def test_exits_moved_to_another_stack_wait_for_that_one() -> None:
    safe("""
        from contextlib import ExitStack
        p = nn.Parameter(torch.ones(2))
        with ExitStack() as stack:
            stack.enter_context(torch.no_grad())
            kept = stack.pop_all()
        p.mul_(2)
        kept.close()
        (p * 2).sum().backward()
    """)


def test_a_stack_enters_the_contexts_of_the_program_too() -> None:
    safe("""
        from contextlib import ExitStack, contextmanager
        @contextmanager
        def quiet():
            with torch.no_grad():
                yield
        class Log(ExitStack):
            def __enter__(self):
                super().__enter__()
                self.enter_context(quiet())
                return self
        p = nn.Parameter(torch.ones(2))
        with ExitStack() as stack:
            stack.enter_context(quiet())
            p.mul_(2)
        with Log() as log:
            p.mul_(2)
        assert torch.is_grad_enabled()
        (p * 2).sum().backward()
    """)


def test_a_mode_on_a_generator_function_is_around_every_resume_and_nothing_else() -> None:
    safe("""
        @torch.no_grad()
        def walk(p):
            for _ in range(2):
                p.add_(1)
                yield p * 2
        class Walker:
            @torch.inference_mode()
            def steps(self, p):
                yield p.detach() * 2
                yield p.detach() * 3
        p = nn.Parameter(torch.ones(2))
        for doubled in walk(p):
            assert not doubled.requires_grad
            (p * doubled).sum().backward()
        for scaled in Walker().steps(p):
            assert torch.is_grad_enabled()
    """)
    refused(
        """
        @torch.no_grad()
        def walk(p):
            p.add_(1)
            yield p
            p.add_(1)
            yield p
        p = nn.Parameter(torch.ones(2))
        for q in walk(p):
            q.mul_(2)  # GS102
        """,
        "leaf Variable",
    )


def test_a_mode_wraps_a_lambda_and_leaves_the_function_it_was_given() -> None:
    safe("""
        clip = torch.no_grad()(lambda t: t.clamp_(-1, 1))
        p = nn.Parameter(torch.ones(2) * 3)
        clip(p)
        def bump(t):
            return t.add_(1)
        quiet_bump = torch.no_grad()(bump)
        quiet_bump(p)
        torch.inference_mode(lambda: None)()
    """)
    refused(
        """
        def bump(t):
            t.add_(1)  # GS102
        quiet = torch.no_grad()(bump)
        p = nn.Parameter(torch.ones(2))
        quiet(p)
        bump(p)
        """,
        "leaf Variable",
    )


def test_a_context_manager_used_as_a_decorator_is_entered_for_each_call() -> None:
    safe("""
        import contextlib
        @contextlib.contextmanager
        def quiet():
            with torch.no_grad():
                yield
        @quiet()
        def bump(t):
            t.add_(1)
        class Editor:
            @quiet()
            def shift(self, t):
                t.add_(1)
        p = nn.Parameter(torch.ones(2))
        bump(p)
        bump(p)
        Editor().shift(p)
        quiet()(lambda t: t.add_(1))(p)
        assert p.tolist() == [5, 5]
        (p * 2).sum().backward()
    """)
    safe("""
        import contextlib
        class Quiet(contextlib.ContextDecorator):
            def __enter__(self):
                self.before = torch.is_grad_enabled()
                torch.set_grad_enabled(False)
            def __exit__(self, *error):
                torch.set_grad_enabled(self.before)
        @Quiet()
        def bump(t):
            t.add_(1)
        p = nn.Parameter(torch.ones(2))
        bump(p)
        (p * 2).sum().backward()
    """)


def test_a_context_manager_around_a_generator_function_is_left_before_it_runs() -> None:
    refused(
        """
        import contextlib
        @contextlib.contextmanager
        def quiet():
            with torch.no_grad():
                yield
        @quiet()
        def walk(p):
            p.add_(1)  # GS102
            yield p
        p = nn.Parameter(torch.ones(2))
        for q in walk(p):
            pass
        """,
        "leaf Variable",
    )


def test_a_mode_entered_by_hand_lasts_until_it_is_left_by_hand() -> None:
    safe("""
        p = nn.Parameter(torch.ones(2))
        guard = torch.no_grad()
        guard.__enter__()
        p.add_(1)
        guard.__exit__(None, None, None)
        (p * 2).sum().backward()
        class Off:
            def __init__(self):
                self.guard = torch.no_grad()
            def __enter__(self):
                self.guard.__enter__()
            def __exit__(self, *error):
                self.guard.__exit__(*error)
        with Off():
            p.add_(1)
            with Off():
                p.add_(1)
            p.add_(1)
        assert torch.is_grad_enabled()
        p.grad = None
        (p * 2).sum().backward()
    """)
    refused(
        """
        p = nn.Parameter(torch.ones(2))
        guard = torch.no_grad()
        guard.__enter__()
        p.add_(1)
        guard.__exit__(None, None, None)
        p.add_(1)  # GS102
        """,
        "leaf Variable",
    )


def test_classes_derived_from_modes_are_modes() -> None:
    safe("""
        class freeze(torch.no_grad):
            pass
        class counted(torch.no_grad):
            def __init__(self):
                super().__init__()
                self.count = 0
            def __enter__(self):
                self.count += 1
                super().__enter__()
        class thaw(torch.enable_grad):
            pass
        p = nn.Parameter(torch.ones(2))
        with freeze():
            p.add_(1)
            with thaw():
                loss = (p * 2).sum()
        loss.backward()
        with counted() as nothing:
            p.add_(1)
        @freeze()
        def bump(t):
            t.add_(1)
        @freeze
        def walk(t):
            t.add_(1)
            yield t
        bump(p)
        list(walk(p))
        assert torch.is_grad_enabled()
    """)
    refused(
        """
        class thaw(torch.enable_grad):
            pass
        p = nn.Parameter(torch.ones(2))
        with torch.no_grad():
            with thaw():
                p.add_(1)  # GS102
        """,
        "leaf Variable",
    )
