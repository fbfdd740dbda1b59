"""Errors that a program provokes and catches, and memory that it shares on purpose: GradSight keeps silent."""

from __future__ import annotations

import pytest

from tests.interp.checking import check
from tests.interp.test_safe_habits import runs_in_silence

# -- errors that are provoked ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fault",
    [
        "w += 1",
        "w[0] = 1",
        "(w * 2).backward()",
        "done.backward()",
        "w.numpy()",
        "torch.zeros(2).sum().backward()",
        "a, b = w.exp().split(1); a.mul_(2); a.sum().backward()",
        "y = w.exp(); y += 1; y.sum().backward()",
    ],
)
@pytest.mark.parametrize(
    "waiting",
    [
        "try:\n            {fault}\n        except RuntimeError as error:\n            print('refused:', error)",
        "try:\n            {fault}\n        except Exception:\n            pass",
        "with contextlib.suppress(RuntimeError):\n            {fault}",
        "with unittest.TestCase().assertRaises(RuntimeError):\n            {fault}",
        "with pytest.raises(RuntimeError, match='.'):\n            {fault}",
        "with Refused():\n            {fault}",
        "with refused():\n            {fault}",
        "def act():\n            global w\n            {fault}\n        attempt(act)",
    ],
)
def test_an_error_that_is_waited_for(waiting: str, fault: str) -> None:
    runs_in_silence(f"""
        import contextlib, unittest, pytest
        class Refused:
            def __enter__(self):
                return self
            def __exit__(self, kind, error, trace):
                assert kind is not None
                return issubclass(kind, RuntimeError)
        @contextlib.contextmanager
        def refused():
            try:
                yield
            except RuntimeError as error:
                print("refused:", error)
        def attempt(function):
            try:
                function()
            except RuntimeError as error:
                return str(error)
            return ""
        w = torch.ones(2, requires_grad=True)
        done = (w * w).sum()
        done.backward()
        {waiting.format(fault=fault)}
        print((w * 3).sum().item())
    """)


def test_a_fallback_is_taken_where_the_write_is_refused() -> None:
    runs_in_silence("""
        def add_one(x):
            try:
                return x.add_(1)
            except RuntimeError:
                return x + 1
        x = torch.ones(2, requires_grad=True)
        add_one(x).sum().backward()
        assert x.grad.tolist() == [1, 1]
    """)


@pytest.mark.parametrize(
    "handler",
    [
        "except KeyboardInterrupt:\n            print('stopped')",
        "except (ValueError, KeyError):\n            print('bad input')",
        "except RuntimeError:\n            print('failed')\n            raise",
        "except RuntimeError as error:\n            if 'out of memory' in str(error): torch.cuda.empty_cache()",
        "finally:\n            print('done')",
    ],
)
def test_an_error_that_nobody_waits_for_is_told(handler: str) -> None:
    check(f"""
        w = torch.ones(2, requires_grad=True)
        try:
            w += 1  # GS102
        {handler}
    """)


def test_a_safety_net_around_the_whole_program_expects_nothing() -> None:
    check("""
        def main():
            w = torch.ones(2, requires_grad=True)
            w += 1  # GS102
        try:
            main()
        except Exception as error:
            print("failed:", error)
    """)


@pytest.mark.parametrize("handler", ["except Exception as error:", "except:"])
def test_a_safety_net_around_a_step_of_training_expects_nothing(handler: str) -> None:
    check(f"""
        net = torch.nn.Linear(3, 3)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(3):
            try:
                optimizer.zero_grad()
                hidden = net(torch.ones(2, 3)).sigmoid()
                hidden += 1  # GS101
                hidden.sum().backward()
                optimizer.step()
            {handler}
                print("skipping the batch")
    """)


# -- memory that is shared on purpose --------------------------------------------------------------------------------


def test_an_output_argument_may_have_a_short_name() -> None:
    runs_in_silence("""
        def accumulate(out, xs):
            acc = out
            for x in xs:
                acc += x
            return out
        def fill(out, value, *, count=0):
            o = out
            o[0] = value
            o.add_(1)
            return out, count + 1
        total = torch.zeros(2)
        assert accumulate(total, [torch.ones(2), torch.ones(2)]) is total
        filled, n = fill(torch.zeros(2), 3.0)
        print(filled, n, total)
    """)


def test_a_caller_may_ask_for_a_change_in_place() -> None:
    runs_in_silence("""
        def scale(x, inplace=False):
            out = x if inplace else x.clone()
            out *= 2
            return out
        a = torch.ones(2)
        b = scale(a, inplace=True)
        c = scale(a, True)
        assert b is a and c is a and a.tolist() == [4, 4]
    """)


def test_a_window_on_blank_memory_follows_it() -> None:
    runs_in_silence("""
        ring = torch.zeros(5)
        window = ring[-3:]
        for i in range(5):
            ring.copy_(torch.roll(ring, -1))
            ring[-1] = i
        assert window.tolist() == [2, 3, 4]
    """)


def test_a_second_name_that_is_compared_is_told() -> None:
    check("""
        def change(x):
            y = x
            y += torch.ones(2)  # GS107
            return y - x
        def double(x):
            x *= 2  # GS107
            return x
        print(change(torch.ones(2)))
        a = torch.ones(2)
        b = double(a)
        print(a, b)
    """)


def test_steps_between_which_a_test_asserts_what_they_did_are_meant() -> None:
    program = """
    def test_steps():
        net = nn.Linear(2, 2)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        net(torch.ones(2, 2)).sum().backward()
        opt.step()
        SAID
        opt.step()WHAT

    test_steps()
    """
    check(program.replace("SAID", "print(net.weight)").replace("WHAT", "  # GS520"))
    check(program.replace("SAID", "assert net.weight.sum() < 9").replace("WHAT", ""))
