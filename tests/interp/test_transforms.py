"""Functional transforms run backward at once: what their function wrote must not have been kept.  Each program runs on torch."""

from __future__ import annotations

from textwrap import dedent

from gradsight.analysis import analyze
from gradsight.model import Source
from tests.interp.checking import PREAMBLE
from tests.interp.running import refused, safe

STALE = "modified by an inplace operation"
CALLED = """
    net = nn.Sequential(nn.Linear(3, 3), {layers})
    params = {{name: p.detach() for name, p in net.named_parameters()}}
    def objective(given):
        return torch.func.functional_call(net, given, (torch.ones(2, 3),)).sum()
    grads = torch.func.grad(objective)(params)
    assert list(grads) == ["0.weight", "0.bias"]
"""
SCALED = """
    weight = torch.ones(3, requires_grad=True)
    def objective(x):
        hidden = x + 1
        scaled = hidden * {factor}
        hidden.mul_(2){said}
        return scaled.sum()
    grad = torch.func.grad(objective)(torch.ones(3))
    assert grad.tolist() == [1, 1, 1]
"""


def test_a_layer_in_place_behind_one_that_kept_its_result_is_refused() -> None:
    refused(CALLED.replace("{layers})", "nn.Tanh(), nn.ReLU(inplace=True))  # GS101").format(), STALE)


def test_a_layer_in_place_behind_one_that_kept_nothing_is_fine() -> None:
    safe(CALLED.format(layers="nn.ReLU(inplace=True), nn.Tanh()"))


def test_a_transform_keeps_what_its_own_input_needs() -> None:
    refused(SCALED.format(factor="hidden", said="  # GS101"), STALE)


def test_a_transform_keeps_nothing_for_the_sake_of_other_tensors() -> None:
    safe(SCALED.format(factor="weight", said=""))


def test_a_second_derivative_is_refused_where_the_first_is() -> None:
    program = """
        def objective(x):
            y = x.exp()
            {write}
            return y.sum()
        torch.func.grad(torch.func.grad(objective))(torch.ones(()))
    """
    refused(program.format(write="y += 1  # GS101"), STALE)
    safe(program.format(write="y = y + 1"))


def hinted_lines(program: str) -> list[str]:
    """The lines of which GradSight says that a write in place is safe."""
    text = PREAMBLE + dedent(program)
    findings = analyze(Source("program.py", text)).findings
    lines = text.splitlines()
    return [lines[finding.span.line - 1].strip() for finding in findings if finding.code == "GS190"]


def test_a_write_is_called_safe_only_where_nothing_may_have_kept_the_old_value() -> None:
    program = """
        net = nn.Linear(3, 3)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            hidden = net(torch.ones(2, 3))
            hidden *= 2
            out = torch.sinh(hidden)
            hidden += 1
        out.float().sum().backward()
    """
    assert hinted_lines(program) == ["hidden *= 2"]
    refused(program, STALE)
    unused = """
        x = torch.ones(3, requires_grad=True)
        y = x * 2
        y *= 3
        z = y ** 2
        y -= 1
    """
    assert hinted_lines(unused) == ["y *= 3"]


def test_a_dropout_that_may_hand_on_what_it_was_given_makes_no_write_safe() -> None:
    program = """
        import sys
        net, rate = nn.Linear(3, 3), float(sys.argv[1])
        weights = F.dropout(net(torch.ones(2, 3)).sigmoid(), rate)
        weights *= 2
        weights.sum().backward()
    """
    assert hinted_lines(program) == []
    assert hinted_lines(program.replace("float(sys.argv[1])", "0.5")) == ["weights *= 2"]
