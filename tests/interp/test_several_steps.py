"""Rounds in which one optimizer steps for several losses, and loops beside each other of which one clears nothing."""

from __future__ import annotations

from tests.interp.checking import check

PAIR = """
        body, head = nn.Linear(4, 4), nn.Linear(4, 2)
        opt_b, opt_h = torch.optim.SGD(body.parameters(), lr=0.1), torch.optim.SGD(head.parameters(), lr=0.1)
"""


def test_gradients_of_a_first_loss_that_the_second_step_applies_again_are_reported() -> None:
    check(
        PAIR
        + """
        for x in torch.randn(3, 8, 4):
            opt_b.zero_grad()
            opt_h.zero_grad()
            head(body(x)).square().mean().backward()
            opt_b.step()
            opt_h.step()
            F.l1_loss(head(body(x)), torch.ones(8, 2)).backward()  # GS501
            opt_h.step()
    """
    )


def test_a_second_loss_after_a_clear_is_silent() -> None:
    check(
        PAIR
        + """
        def clear():
            opt_b.zero_grad()
            opt_h.zero_grad()

        for x in torch.randn(3, 8, 4):
            head(body(x)).square().mean().backward()
            opt_b.step()
            opt_h.step()
            clear()
            F.l1_loss(head(body(x)), torch.ones(8, 2)).backward()
            opt_h.step()
            clear()
    """
    )


def test_losses_of_different_parameters_of_one_optimizer_are_silent() -> None:
    check(
        """
        first, second = nn.Linear(4, 1), nn.Linear(4, 1)
        opt = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.1)
        for x in torch.randn(3, 8, 4):
            opt.zero_grad()
            first(x).square().mean().backward()
            opt.step()
            first.zero_grad()
            second(x).square().mean().backward()
            opt.step()
    """
    )


def test_an_optimizer_that_steps_at_two_places_and_is_never_cleared_is_reported() -> None:
    check(
        PAIR
        + """
        for x in torch.randn(4, 8, 4):
            opt_b.zero_grad()
            head(body(x)).square().mean().backward()  # GS501
            opt_b.step()
            opt_h.step()
            F.l1_loss(head(body(x).detach()), torch.ones(8, 2)).backward()
            opt_h.step()
    """
    )


def test_a_loop_without_a_clear_is_reported_beside_one_that_clears() -> None:
    check(
        """
        net = nn.Linear(4, 2)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(3):
            for x in torch.randn(5, 8, 4):
                net(x).square().mean().backward()  # GS501
                opt.step()
            for x in torch.randn(5, 8, 4):
                opt.zero_grad()
                net(x).square().mean().backward()
                opt.step()
    """
    )


def test_a_rhythm_within_the_loop_is_silent() -> None:
    check(
        """
        net = nn.Linear(4, 2)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(3):
            for i, x in enumerate(torch.randn(50, 8, 4)):
                net(x).square().mean().backward()
                if i % 4 == 3:
                    opt.step()
                    opt.zero_grad()
    """
    )
