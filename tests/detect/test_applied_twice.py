"""Gradients that two steps apply, and clips that come before all gradients are there."""

from __future__ import annotations

from textwrap import dedent

import pytest

from gradsight.analysis import analyze
from gradsight.model import Source

HEAD = """
import torch
from torch import nn

body, first, second = nn.Linear(4, 5), nn.Linear(5, 1), nn.Linear(5, 1)
"""


def check(text: str, *expected: tuple[str, int]) -> None:
    alarms = [
        (finding.code, finding.span.line)
        for finding in analyze(Source("program.py", text)).findings
        if finding.severity in ("error", "warning")
    ]
    assert alarms == list(expected)


def two(other: str, loop: str) -> str:
    text = f"""
one = torch.optim.Adam([*body.parameters(), *first.parameters()], lr=0.01)
other = torch.optim.Adam({other}, lr=0.01)
for _ in range(3):
"""
    return HEAD + text + "\n".join(f"    {line}" for line in dedent(loop).strip().split("\n"))


JOINT = """
features = body(torch.randn(6, 4)).relu()
loss = first(features).mean() + second(features).mean()
one.zero_grad()
other.zero_grad()
loss.backward()
one.step()
other.step()
"""


def test_a_network_in_two_optimizers_is_moved_twice() -> None:
    check(two("[*body.parameters(), *second.parameters()]", JOINT), ("GS520", 16))


def test_optimizers_of_their_own_parameters_are_silent() -> None:
    check(two("second.parameters()", JOINT))


def test_two_losses_that_are_cleared_in_between_are_silent() -> None:
    check(
        two(
            "[*body.parameters(), *second.parameters()]",
            """
            one.zero_grad()
            first(body(torch.randn(6, 4))).mean().backward()
            one.step()
            other.zero_grad()
            second(body(torch.randn(6, 4))).mean().backward()
            other.step()
            """,
        )
    )


@pytest.mark.parametrize(
    ("line", "expected"), [("optimizer.step()", [("GS520", 11)]), ("scaler.update()", [])]
)
def test_a_step_beside_that_of_the_scaler_is_reported(line: str, expected: list[tuple[str, int]]) -> None:
    check(
        HEAD
        + f"""optimizer = torch.optim.SGD(body.parameters(), lr=0.01)
scaler = torch.amp.GradScaler("cpu")
for _ in range(3):
    optimizer.zero_grad()
    scaler.scale(body(torch.randn(6, 4)).mean()).backward()
    scaler.step(optimizer); {line}
""".replace("step(optimizer); optimizer", "step(optimizer)\n    scaler.update(); optimizer"),
        *([(code, 12) for code, _ in expected]),
    )


def closure(lines: str) -> str:
    return HEAD + dedent(f"""
        optimizer = torch.optim.LBFGS(body.parameters(), lr=0.5)
        for _ in range(2):
            optimizer.zero_grad()
            loss = body(torch.randn(6, 4)).pow(2).mean()
            loss.backward(retain_graph=True)
            def closure():
                {lines}
            optimizer.step(closure)
        """)


def test_a_closure_that_computes_nothing_is_reported() -> None:
    check(closure("return loss"), ("GS520", 14))


def test_a_closure_that_computes_all_anew_is_silent() -> None:
    again = (
        "optimizer.zero_grad(); again = body(torch.ones(6, 4)).pow(2).mean(); again.backward(); return again"
    )
    check(closure(again))


def accumulated(inner: str, outer: str) -> str:
    return HEAD + dedent(f"""
        optimizer = torch.optim.SGD(body.parameters(), lr=0.1)
        optimizer.zero_grad()
        for step in range(6):
            (body(torch.randn(6, 4)).mean() / 3).backward()
            {inner}
            if (step + 1) % 3 == 0:
                {outer}
                optimizer.step()
                optimizer.zero_grad()
        """)


CLIP = "nn.utils.clip_grad_norm_(body.parameters(), 1.0)"


def test_a_clip_after_each_backward_of_an_accumulation_is_reported() -> None:
    check(accumulated(CLIP, "pass"), ("GS513", 11))


def test_one_clip_before_the_step_of_an_accumulation_is_silent() -> None:
    check(accumulated("pass", CLIP))


def test_the_clips_of_two_losses_are_silent() -> None:
    check(
        HEAD
        + dedent(f"""
        optimizer = torch.optim.SGD(body.parameters(), lr=0.1)
        for step in range(3):
            optimizer.zero_grad()
            body(torch.randn(6, 4)).mean().backward()
            {CLIP}
            body(torch.randn(6, 4)).pow(2).mean().backward()
            {CLIP}
            optimizer.step()
        """)
    )


def test_two_losses_of_one_body_are_silent() -> None:
    check(
        two(
            "[*body.parameters(), *second.parameters()]",
            """
            features = body(torch.randn(6, 4)).relu()
            one.zero_grad()
            first(features).mean().backward(retain_graph=True)
            other.zero_grad()
            second(features).mean().backward()
            one.step()
            other.step()
            """,
        )
    )
