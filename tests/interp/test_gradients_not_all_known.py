"""Where a backward may have reached more than is known, or the path went past other ways to train: what still holds."""

from __future__ import annotations

from tests.interp.checking import check


def test_backward_through_code_that_is_not_known_clears_nothing() -> None:
    check("""
        import elsewhere

        model = nn.Linear(3, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x in elsewhere.batches():
            elsewhere.penalty().backward()
            model(torch.randn(4, 3)).sum().backward()  # GS501
            optimizer.step()
    """)


def test_hook_that_touches_gradients_may_clear_them() -> None:
    check("""
        def step_and_forget(module, grad_input, grad_output):
            for parameter in module.parameters():
                parameter.grad = None

        model = nn.Linear(3, 1)
        model.register_full_backward_hook(step_and_forget)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(10):
            model(torch.randn(4, 3)).sum().backward()
            optimizer.step()
    """)


TWO_WAYS = """
import math
import sys

def train(model, optimizer, loader, epoch, args, scaler=None):
    model.train()
    schedule = None
    if epoch == 0:
        schedule = torch.optim.lr_scheduler.LinearLR(optimizer)
    for x, y in loader:
        loss = F.mse_loss(model(x), y)
        if not math.isfinite(loss.item()):
            sys.exit(1)
        if args.verbose:
            print(loss.item())
        {clear}
        if scaler is not None:
            scaler.scale(loss).backward(){mark}
            scaler.step(optimizer)
            scaler.update()
        else:
            loss.backward(){mark}
            optimizer.step()
        if schedule is not None:
            schedule.step()
"""


def test_the_other_way_to_step_clears_nothing() -> None:
    check(TWO_WAYS.format(clear="pass", mark="  # GS501"))
    check(TWO_WAYS.format(clear="optimizer.zero_grad()", mark=""))


def test_optimizer_of_a_network_that_nobody_uses_has_nothing_to_apply() -> None:
    check("""
        import elsewhere

        def penalize():
            elsewhere.penalty().backward()

        spare = nn.Linear(3, 1)
        optimizer = torch.optim.SGD(spare.parameters(), lr=0.1)
        for x in elsewhere.batches():
            optimizer.zero_grad()
            penalize()
            optimizer.step()  # GS503
    """)


def test_network_that_code_which_is_not_known_was_given_may_be_trained_by_it() -> None:
    check("""
        import elsewhere

        model = nn.Linear(3, 1)
        penalty = elsewhere.Penalty(model)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x in elsewhere.batches():
            optimizer.zero_grad()
            penalty(x).backward()
            optimizer.step()
    """)
