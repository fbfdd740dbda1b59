"""Trainers whose parts come from libraries that nobody knows: parameters by another name, copies of a model, steps by the batch."""

from __future__ import annotations

import pytest

from tests.interp.checking import check

AGENT = """
    class Agent:
        def __init__(self, algorithm):
            self.algorithm = algorithm
            self.optimizer = torch.optim.Adam(self.algorithm.get_parameters(), lr=0.1)

        def update(self, batch):
            loss = self.algorithm.losses(batch)
            BEFORE
            loss.backward()MARK
            self.optimizer.step()
            AFTER
"""


def test_a_step_by_the_batch_on_parameters_that_a_library_hands_out_is_never_cleared() -> None:
    check(AGENT.replace("MARK", "  # GS501").replace("BEFORE", "pass").replace("AFTER", "pass"))


CLEARED = {
    "by the optimizer": ("self.optimizer.zero_grad()", "pass"),
    "after the step": ("pass", "self.optimizer.zero_grad()"),
    "through what made them": ("self.algorithm.zero_grad()", "pass"),
    "perhaps by the library": ("pass", "self.algorithm.reset_gradients()"),
}


@pytest.mark.parametrize(("before", "after"), CLEARED.values(), ids=CLEARED)
def test_what_is_or_may_be_cleared_is_no_fault(before: str, after: str) -> None:
    check(AGENT.replace("MARK", "").replace("BEFORE", before).replace("AFTER", after))


def test_one_of_two_optimizers_of_unknown_parameters_may_be_cleared_through_the_other() -> None:
    check("""
        class Agent:
            def __init__(self, algorithm):
                self.algorithm = algorithm
                self.optimizer = torch.optim.Adam(self.algorithm.get_parameters(), lr=0.1)
                self.other = torch.optim.Adam(self.algorithm.all_parameters(), lr=0.1)

            def update(self, batch):
                loss = self.algorithm.losses(batch)
                loss.backward()
                self.optimizer.step()
                self.other.zero_grad()
    """)


def test_a_copy_that_a_library_made_of_a_model_may_bring_it_its_gradients() -> None:
    check("""
        import other

        def meta(tasks):
            model = nn.Linear(4, 1)
            outer = torch.optim.Adam(model.parameters())
            inner = torch.optim.SGD(model.parameters(), lr=0.1)
            for x, y in tasks:
                outer.zero_grad()
                with other.context(model, inner) as (copied, steps):
                    F.mse_loss(copied(x), y).backward()
                outer.step()
    """)


def test_a_method_that_unfreezes_is_called_when_the_training_has_begun() -> None:
    check("""
        class Tuned(nn.Module):
            def __init__(self):
                super().__init__()
                self.body = nn.Linear(4, 8)
                self.head = nn.Linear(8, 2)
                self.body.requires_grad_(False)

            def forward(self, x):
                return self.head(self.body(x).relu())

            def unfreeze(self):
                self.body.requires_grad_(True)
    """)


def test_a_method_that_freezes_and_unfreezes_is_reported() -> None:
    check("""
        class Tuned(nn.Module):
            def __init__(self):
                super().__init__()
                self.body = nn.Linear(4, 8)
                self.prepare()

            def prepare(self):
                self.body.requires_grad_(False)
                for parameter in self.parameters():
                    parameter.requires_grad = True  # GS516

            def forward(self, x):
                return self.body(x)
    """)


WRAPPED = """
    class Wrapped(torch.autograd.Function):
        @staticmethod
        def forward(ctx, loss, out):
            ctx.save_for_backward(out)
            return loss

        @staticmethod
        def backward(ctx, grad_output):
            (out,) = ctx.saved_tensors
            return grad_output, torch.zeros_like(out)

    net = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        out = net(torch.randn(2, 3))CUT
        optimizer.zero_grad()
        Wrapped.apply(out.mean(), out).backward()
        optimizer.step()
"""


def test_what_was_cut_before_a_function_of_the_users_own_is_cut_behind_it() -> None:
    check(WRAPPED.replace("CUT", ".detach()  # GS203"))
    check(WRAPPED.replace("CUT", ""))


def test_an_optimizer_made_elsewhere_is_not_for_the_target_that_follows_its_critic() -> None:
    check("""
        from copy import deepcopy

        from base import Policy
        from torch import optim


        class Agent(Policy):
            def __init__(self, env, scalarization):
                super().__init__(env)
                self.scalarization = scalarization
                self.actor, self.qf1, self.qf1_target = env.networks()
                self.q_optimizer = env.optimizer()
                self.actor_optimizer = env.optimizer()

            def __deepcopy__(self, memo):
                copied = type(self)(self.env, self.scalarization)
                copied.actor = deepcopy(self.actor)
                copied.qf1 = deepcopy(self.qf1)
                copied.qf1_target = deepcopy(self.qf1_target)
                copied.actor_optimizer = optim.Adam(copied.actor.parameters(), lr=0.1)
                copied.q_optimizer = optim.Adam(copied.qf1.parameters(), lr=0.1)
                return copied

            def update(self):
                obs, act, nxt, reward = self.buffer.sample(3)
                with torch.no_grad():
                    goal = reward + self.qf1_target(nxt, self.actor(nxt))
                loss = F.mse_loss(self.qf1(obs, act), goal)
                self.q_optimizer.zero_grad(set_to_none=True)
                loss.backward()
                self.q_optimizer.step()
                follow(params=self.qf1.parameters(), target_params=self.qf1_target.parameters())
                actor_loss = -self.qf1(obs, self.actor(obs)).mean()
                self.actor_optimizer.zero_grad()
                actor_loss.backward()
                self.actor_optimizer.step()

            def train(self, steps):
                for _ in range(steps):
                    self.update()


        def follow(params, target_params):
            for mine, theirs in zip(params, target_params):
                theirs.data.copy_(mine.data)
    """)


SCALED = """
    def train(loader):
        net = nn.Linear(3, 4)
        optimizer = torch.optim.SGD(net.parameters(), 0.1)
        for x, prior in loader:
            scores = prior + 0.5 * net(x)
            shifted = scores - torch.logsumexp(scores, dim=1, keepdim=True)
            optimizer.zero_grad()
            shifted.square().mean().backward()
            optimizer.step()
"""


def test_what_a_value_is_scaled_by_is_made_of_it_and_has_no_target() -> None:
    check(SCALED)
