"""A function that nobody calls and that makes all it works on says as much as the same lines in a script."""

from __future__ import annotations

import pytest

from gradsight.model.report import Report
from tests.interp.checking import check

FROZEN = """
{outside}
def {signature}:
    {made}
    for p in net.parameters():
        p.requires_grad = {flag}
    optimizer = torch.optim.SGD([p for p in net.parameters() if p.requires_grad], lr=0.1){refused}
    for x in range(3):
        optimizer.zero_grad()
        net(torch.randn(3, 4)).sum().backward(){without_graph}
        optimizer.step()
"""
MADE = "net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))"


def frozen(
    outside: str = "",
    signature: str = "main()",
    made: str = MADE,
    flag: str = "False",
    refused: str = "",
    without_graph: str = "",
) -> str:
    return FROZEN.format(
        outside=outside,
        signature=signature,
        made=made,
        flag=flag,
        refused=refused,
        without_graph=without_graph,
    )


def severities(report: Report) -> dict[str, str]:
    return {finding.code: finding.severity for finding in report.findings}


@pytest.mark.parametrize("signature", ["main()", "main(epochs, loader=None)"])
def test_what_a_function_makes_itself_is_certain(signature: str) -> None:
    said = check(frozen(signature=signature, refused="  # GS518", without_graph="  # GS205"))
    assert severities(said) == {"GS518": "error", "GS205": "error"}


def test_plain_values_of_the_file_change_nothing() -> None:
    said = check(
        frozen(
            "SIZES = [4, 4]\nRATES = {'a': 0.1}",
            made=f"print(SIZES, RATES); {MADE}",
            refused="  # GS518",
            without_graph="  # GS205",
        )
    )
    assert severities(said) == {"GS518": "error", "GS205": "error"}


def test_a_module_of_the_file_may_have_been_changed_before() -> None:
    said = check(frozen(MADE, made="pass", without_graph="  # info GS205"))
    assert severities(said) == {"GS205": "info"}


def test_what_the_caller_hands_in_may_have_parameters() -> None:
    check(frozen(signature="main(net)", made="pass"))


def test_parameters_that_are_not_frozen_are_fine() -> None:
    check(frozen(flag="True"))
