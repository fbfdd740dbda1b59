"""Arms that only objects with other options than the defaults of their class go into are executed, too."""

from __future__ import annotations

from textwrap import dedent

import pytest

from tests.interp.checking import check
from tests.interp.running import run

MODIFIED = "modified by an inplace operation"


@pytest.mark.parametrize(
    ("default", "kept", "asked"),
    [
        ("gate=False", "gate", "self.gate"),
        ("gate=None", "exists(gate)", "self.gate"),
        ("gate=None", "gate", "self.gate is not None"),
        ("gate=0", "gate", "self.gate > 0"),
        ("gate=0", "gate > 0", "self.gate"),
        ("*, gate=0.0", "bool(gate)", "self.gate and self.training"),
    ],
)
def test_a_write_in_the_arm_of_an_option_that_is_off_by_default_is_reported(
    default: str, kept: str, asked: str
) -> None:
    program = dedent(f"""
        def exists(value):
            return value is not None

        class Net(nn.Module):
            def __init__(self, width, {default}):
                super().__init__()
                self.first, self.last = nn.Linear(width, width), nn.Linear(width, width)
                self.gate = {kept}

            def forward(self, x):
                h = self.first(x)
                if {asked}:
                    h = torch.sigmoid(h)
                    h *= 2  # GS101
                return self.last(h)
    """)
    check(program)
    run(program + "Net(3)(torch.randn(2, 3)).sum().backward()\n")
    with pytest.raises(RuntimeError, match=MODIFIED):
        run(program + "Net(3, gate=1)(torch.randn(2, 3)).sum().backward()\n")


def test_the_arm_of_an_option_that_is_on_by_default_is_not_the_only_one() -> None:
    check("""
        class Net(nn.Module):
            def __init__(self, width, norm=True):
                super().__init__()
                self.first, self.last = nn.Linear(width, width), nn.Linear(width, width)
                self.norm = norm

            def forward(self, x):
                h = self.first(x)
                if self.norm:
                    h = h * 2
                else:
                    h = torch.sigmoid(h)
                    h += 1  # GS101
                return self.last(h)
    """)


def test_what_an_option_allows_stays_silent() -> None:
    program = dedent("""
        class Net(nn.Module):
            def __init__(self, width, shift=False, scale=None):
                super().__init__()
                self.first, self.last = nn.Linear(width, width), nn.Linear(width, width)
                self.shift = shift
                self.scale = scale

            def forward(self, x):
                h = self.first(x)
                if self.shift:
                    h += 1
                if self.scale is not None:
                    h = h * self.scale
                    h += 1
                return self.last(h)
    """)
    check(program)
    for options in ("False, None", "True, None", "False, 2.0", "True, 2.0"):
        run(program + f"Net(3, {options})(torch.randn(2, 3)).sum().backward()\n")


def test_options_that_exclude_each_other_are_decided_where_the_object_is_made() -> None:
    program = dedent("""
        class Net(nn.Module):
            def __init__(self, width, gate=False, shift=False):
                super().__init__()
                if gate and shift:
                    raise ValueError("one of them")
                self.first, self.last = nn.Linear(width, width), nn.Linear(width, width)
                self.gate = gate
                self.shift = shift

            def forward(self, x):
                h = self.first(x)
                if self.gate:
                    h = torch.sigmoid(h)
                if self.shift:
                    h += 1
                return self.last(h)
    """)
    check(program)
    for option in ("gate", "shift"):
        run(program + f"Net(3, {option}=True)(torch.randn(2, 3)).sum().backward()\n")
