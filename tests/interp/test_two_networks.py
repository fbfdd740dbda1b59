"""Two networks and two optimizers: what the backward of one leaves in the other, and what is cut between them."""

from __future__ import annotations

from tests.interp.checking import check

PAIR = """
        G = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
        D = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1))
        opt_g, opt_d = torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters())
"""


def test_a_generator_that_its_own_loss_does_not_reach_is_reported_at_the_cut() -> None:
    check(
        PAIR
        + """
        for step in range(20):
            opt_d.zero_grad()
            fake = G(torch.randn(5, 4))
            (D(fake).mean() - D(torch.randn(5, 3)).mean()).backward()
            opt_d.step()
            opt_g.zero_grad()
            fake = G(torch.randn(5, 4))
            (-D(fake.detach()).mean()).backward()  # GS203
            opt_g.step()
    """
    )


def test_a_cut_under_the_condition_of_the_step_is_reported() -> None:
    check(
        PAIR
        + """
        for step in range(20):
            opt_d.zero_grad()
            fake = G(torch.randn(5, 4))
            (D(fake).mean() - D(torch.randn(5, 3)).mean()).backward()
            opt_d.step()
            if (step + 1) % 5 == 0:
                opt_g.zero_grad()
                fake = G(torch.randn(5, 4))
                (-D(fake.detach()).mean()).backward()  # GS203
                opt_g.step()
    """
    )


def test_a_cut_under_a_condition_of_its_own_is_meant() -> None:
    check(
        PAIR
        + """
        for step in range(20):
            fake = G(torch.randn(5, 4))
            if step < 5:
                fake = fake.detach()
            opt_d.zero_grad()
            opt_g.zero_grad()
            (-D(fake).mean()).backward()
            opt_g.step()
            opt_d.step()
    """
    )


def test_what_the_other_loss_left_may_be_cleared_after_the_own_step() -> None:
    check(
        PAIR
        + """
        for step in range(20):
            opt_d.zero_grad()
            fake = G(torch.randn(5, 4))
            (D(fake.detach()).mean() - D(torch.randn(5, 3)).mean()).backward()
            opt_d.step()
            if (step + 1) % 5 == 0:
                opt_g.zero_grad()
                (-D(G(torch.randn(5, 4))).mean()).backward()
                opt_g.step()
    """
    )


def test_a_generator_that_is_cleared_between_its_backward_and_its_step_is_reported_there() -> None:
    check(
        PAIR
        + """
        for step in range(20):
            opt_d.zero_grad()
            fake = G(torch.randn(5, 4))
            (D(fake.detach()).mean() - D(torch.randn(5, 3)).mean()).backward()
            opt_d.step()
            (-D(G(torch.randn(5, 4))).mean()).backward()
            opt_g.zero_grad()  # GS502
            opt_g.step()
    """
    )
