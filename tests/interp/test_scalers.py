"""Gradient scalers that a flag switches on: each program runs on torch both ways, and only the forgotten `unscale_` is told."""

from __future__ import annotations

import pytest

from tests.interp.checking import check
from tests.interp.running import run, safe

ROUND = """
net = nn.Linear(6, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(2):
    opt.zero_grad()
    loss = net(torch.ones(1, 6)).sum()
    scaler.scale(loss).backward()
    {before}
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    before = net.weight.detach().clone()
    scaler.step(opt)
    assert {moved}
    scaler.update()
"""
FLAG = """
import os
amp = os.environ.get("GRADSIGHT_TEST_AMP", "0") == "1"
"""
SWITCHES = [
    ('scaler = torch.amp.GradScaler("cpu", enabled=amp)', "amp"),
    ('scaler = torch.amp.GradScaler("cpu", enabled=amp)', "scaler.is_enabled()"),
    ('scaler = torch.amp.GradScaler("cpu", 65536.0, 2.0, 0.5, 2000, amp)', "amp"),
    ("scaler = torch.cpu.amp.GradScaler(65536.0, 2.0, 0.5, 2000, amp)", "amp"),
    ('scaler = torch.amp.GradScaler("cuda", enabled=torch.cuda.is_available())', "torch.cuda.is_available()"),
    ('scaler = torch.amp.GradScaler("cuda")', "scaler.is_enabled()"),
]


MOVES = "0.05 < (net.weight - before).norm() < 0.11"
"""What a step of a tenth does with gradients that were clipped to norm one."""
STANDS = "(net.weight - before).norm() < 1e-5"
"""What is left of it when they were clipped while they were scaled."""


@pytest.mark.filterwarnings("ignore:.*GradScaler")
@pytest.mark.parametrize("setting", ["0", "1"])
@pytest.mark.parametrize(("making", "condition"), SWITCHES)
def test_unscaling_under_the_flag_of_the_scaler_is_enough(
    making: str, condition: str, setting: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRADSIGHT_TEST_AMP", setting)
    safe(FLAG + making + ROUND.format(before=f"if {condition}: scaler.unscale_(opt)", moved=MOVES))


@pytest.mark.parametrize("before", ["pass", "if not amp: amp", "if not scaler.is_enabled(): print()"])
def test_a_flag_does_not_excuse_clipping_scaled_gradients(
    before: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = FLAG + 'scaler = torch.amp.GradScaler("cpu", enabled=amp)' + ROUND
    told = program.replace("1.0)\n", "1.0)  # GS507\n")
    check(told.format(before=before, moved=STANDS))
    monkeypatch.setenv("GRADSIGHT_TEST_AMP", "1")
    run(program.format(before=before, moved=STANDS))
    monkeypatch.setenv("GRADSIGHT_TEST_AMP", "0")
    run(program.format(before=before, moved=MOVES))


def test_comparing_scaled_gradients_does_not_use_them() -> None:
    program = """
    net = nn.Linear(2, 2)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler()
    for _ in range(3):
        opt.zero_grad()
        scaler.scale(net(torch.randn(2, 2)).sum()).backward()
        USE
        scaler.step(opt)
        scaler.update()
    """
    check(program.replace("USE", "assert torch.allclose(net.weight.grad, net.weight.grad)"))
    check(program.replace("USE", "print(torch.linalg.norm(net.weight.grad))  # GS507"))
