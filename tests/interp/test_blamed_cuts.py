"""Of several cuts before a backward, the one that is reported; and totals of losses that are let go of seldom."""

from __future__ import annotations

import pytest

from tests.interp.checking import check

NETS = """
        import copy

        import torch
        import torch.nn.functional as F
        from torch import nn

        net = nn.Linear(4, 2)
        old = copy.deepcopy(net)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
"""


def test_the_network_that_is_trained_is_named_and_not_the_target_network() -> None:
    check(f"""{NETS}
        for _ in range(3):
            with torch.no_grad():  # GS204
                q = net(torch.ones(3, 4)).max(1)[0]
            with torch.no_grad():
                goal = 1.0 + 0.9 * old(torch.ones(3, 4)).max(1)[0]
            opt.zero_grad()
            F.mse_loss(q, goal).backward()
            opt.step()
    """)


def test_an_operator_without_gradient_is_named_and_not_the_frozen_teacher() -> None:
    check(f"""{NETS}
        for _ in range(3):
            scores = net(torch.ones(3, 4)).argmax(1).float()  # GS205
            with torch.no_grad():
                wanted = old(torch.ones(3, 4))[:, 0]
            opt.zero_grad()
            F.mse_loss(scores, wanted).backward()
            opt.step()
    """)


@pytest.mark.parametrize(("condition", "lines", "said"), [("if flag:", 1, "  # GS205"), ("if True:", 0, "")])
def test_the_operator_is_named_where_it_depends_on_more_than_the_mode(
    condition: str, lines: int, said: str
) -> None:
    report = check(f"""{NETS}
        import random
        flag = random.random() > 0.5
        x = torch.ones(3, 4)
        y = x
        with torch.no_grad():  # GS204
            {condition}
                y = net(x)
        y.sum().backward(){said}
    """)
    named = [step for one in report.findings for step in one.related if "grad mode off" in step.message]
    assert len(named) == lines


def test_the_cut_that_loses_more_of_what_is_trained_is_named() -> None:
    check("""
        import torch
        from torch import nn
        from torch.distributions import Categorical

        class Agent(nn.Module):
            def __init__(self):
                super().__init__()
                self.body, self.policy, self.value = nn.Linear(4, 8), nn.Linear(8, 2), nn.Linear(8, 1)
            def forward(self, x):
                h = torch.tanh(self.body(x))
                return Categorical(logits=self.policy(h)), self.value(h).squeeze(-1)

        agent = Agent()
        opt = torch.optim.SGD(agent.parameters(), lr=0.1)
        for _ in range(3):
            with torch.no_grad():  # GS204
                dist, value = agent(torch.ones(5, 4))
                chance = dist.log_prob(dist.sample())
            with torch.no_grad():
                _, after = agent(torch.ones(5, 4))
            advantage = 1.0 + 0.99 * after - value
            loss = -(chance * advantage.detach()).mean() + advantage.pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
    """)


def test_a_generator_that_is_cut_off_for_its_critic_is_not_named() -> None:
    check("""
        generator, critic = nn.Sequential(nn.Linear(3, 8), nn.Linear(8, 4)), nn.Linear(4, 1)
        opt_g = torch.optim.Adam(generator.parameters())
        opt_c = torch.optim.Adam(critic.parameters())
        for _ in range(3):
            fake = generator(torch.randn(6, 3)).detach()
            mixed = (0.5 * torch.randn(6, 4) + 0.5 * fake).requires_grad_(True)
            with torch.no_grad():  # GS204
                score = critic(mixed)
            (slope,) = torch.autograd.grad(score.sum(), mixed, create_graph=True)
            opt_c.zero_grad()
            (slope.norm(dim=1) - 1).pow(2).mean().backward()
            opt_c.step()
            opt_g.zero_grad()
            (-critic(generator(torch.randn(6, 3))).mean()).backward()
            opt_g.step()
    """)


def test_averaged_weights_are_not_named() -> None:
    check(f"""{NETS}
        for _ in range(3):
            features = net(torch.ones(3, 4)).detach()  # GS203
            for new, kept in zip(net.parameters(), old.parameters()):
                kept.data = 0.9 * kept.data + 0.1 * new.data
            with torch.no_grad():
                keys = old(torch.ones(3, 4))
            opt.zero_grad()
            (features * keys).sum().backward()
            opt.step()
    """)


TRAINING = """
        import sys

        import torch
        from torch import nn

        every = int(sys.argv[1])
        net = nn.Linear(2, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
"""


def test_a_total_that_starts_anew_in_one_round_of_many_is_reported() -> None:
    check(f"""{TRAINING}
        run, seen = 0.0, []
        for i in range(1000):
            loss = net(torch.ones(1, 2)).pow(2).sum()
            opt.zero_grad()
            loss.backward()
            opt.step()
            run += loss  # GS404
            seen.append(loss)  # GS404
            if i % every == every - 1:
                print(run / every)
                run = 0.0
            if i % 200 == 0:
                seen.clear()
    """)


def test_a_total_that_starts_anew_after_a_few_rounds_or_an_episode_is_left_alone() -> None:
    check(f"""{TRAINING}
        run, episode, few = 0.0, 0.0, 4
        for i in range(1000):
            loss = net(torch.ones(1, 2)).pow(2).sum()
            opt.zero_grad()
            loss.backward()
            opt.step()
            run += loss
            episode += loss
            if (i + 1) % few == 0:
                print(run / few)
                run = 0.0
            if loss.item() < 0.1:
                episode = 0.0
    """)


def test_a_total_that_is_differentiated_every_so_many_rounds_is_left_alone() -> None:
    check(f"""{TRAINING}
        run = 0.0
        for i in range(1000):
            run = run + net(torch.ones(1, 2)).pow(2).sum()
            if (i + 1) % every == 0:
                opt.zero_grad()
                run.backward()
                opt.step()
                run = 0.0
    """)


def test_a_part_of_a_tensor_that_losses_are_added_to_is_reported() -> None:
    check(f"""{TRAINING}
        stats = torch.zeros(2)
        for i in range(100):
            loss = net(torch.ones(1, 2)).pow(2).sum()
            opt.zero_grad()
            loss.backward()
            opt.step()
            stats[0] += loss  # GS404
            stats[1] += 1
    """)


def test_a_part_of_a_tensor_that_numbers_are_added_to_is_left_alone() -> None:
    check(f"""{TRAINING}
        stats = torch.zeros(2)
        for i in range(100):
            loss = net(torch.ones(1, 2)).pow(2).sum()
            opt.zero_grad()
            loss.backward()
            opt.step()
            stats[0] += loss.detach()
            stats[1] += loss.item()
    """)


def test_a_mean_beside_the_loss_that_is_kept_is_reported() -> None:
    check(f"""{TRAINING}
        history = []
        for i in range(100):
            each = net(torch.ones(3, 2)).pow(2)
            history.append(each.mean())  # GS404
            opt.zero_grad()
            each.sum().backward()
            opt.step()
    """)


def test_a_mean_of_the_detached_parts_that_is_kept_is_left_alone() -> None:
    check(f"""{TRAINING}
        history = []
        for i in range(100):
            each = net(torch.ones(3, 2)).pow(2)
            history.append(each.detach().mean())
            opt.zero_grad()
            each.sum().backward()
            opt.step()
    """)


def test_what_an_unknown_holder_of_data_was_given_carries_no_graph() -> None:
    check("""
        from graphs.data import NodeData

        net = nn.Linear(16, 4)
        opt = torch.optim.Adam(net.parameters())
        data = NodeData(x=torch.randn(30, 16), y=torch.randint(0, 4, (30,)))
        data.seen = torch.rand(30) > 0.3

        def train():
            opt.zero_grad()
            out = net(data.x).detach()  # GS203
            F.cross_entropy(out[data.seen], data.y[data.seen]).backward()
            opt.step()

        for _ in range(4):
            train()
    """)


def test_an_unknown_layer_with_data_in_its_name_may_bring_a_graph() -> None:
    check("""
        from graphs.layers import BatchEmbedding

        extra = BatchEmbedding(torch.ones(3))
        net = nn.Linear(16, 4)
        opt = torch.optim.Adam([*net.parameters(), *extra.parameters()])
        for _ in range(4):
            opt.zero_grad()
            F.mse_loss(extra(net(torch.ones(2, 16)).detach()), extra.scale).backward()  # GS203
            opt.step()
    """)
    check("""
        from graphs.layers import BatchEmbedding

        extra = BatchEmbedding(torch.ones(3))
        opt = torch.optim.Adam(extra.parameters())
        for _ in range(4):
            opt.zero_grad()
            F.mse_loss(extra(torch.ones(2, 16)), extra.scale).backward()
            opt.step()
    """)


def test_of_a_term_that_was_cut_off_what_was_computed_without_grad_mode_is_not_blamed() -> None:
    program = """
        policy = nn.Linear(4, 2)
        value = nn.Linear(4, 1)
        opt = torch.optim.Adam([*policy.parameters(), *value.parameters()], lr=0.1)
        for _ in range(4):
            obs = torch.randn(8, 4)
            with torch.no_grad():
                old = policy(obs).log_softmax(-1)[:, 0]
                advantage = torch.randn(8) - value(obs).squeeze(-1)
            for _ in range(3):
                log_prob = policy(obs).log_softmax(-1)[:, 0]
                ratio = (LOG_PROB - old).exp()CLAIM
                loss = -(ratio * advantage).mean() + value(obs).pow(2).mean()
                opt.zero_grad()
                loss.backward()
                opt.step()
    """
    check(program.replace("LOG_PROB", "log_prob").replace("CLAIM", ""))
    check(program.replace("LOG_PROB", "log_prob.detach()").replace("CLAIM", "  # GS203"))


def test_of_a_term_that_was_cut_off_its_weight_is_not_blamed() -> None:
    program = """
        policy = nn.Linear(4, 2)
        value = nn.Linear(4, 1)
        opt = torch.optim.Adam([*policy.parameters(), *value.parameters()], lr=0.1)
        for _ in range(4):
            obs = torch.randn(8, 4)
            log_prob = policy(obs).log_softmax(-1)[:, 0]
            advantage = torch.randn(8) - value(obs).squeeze(-1)
            gain = LOG_PROBCLAIM
            loss = advantage.pow(2).mean() - (gain * advantage.detach()).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
    """
    check(program.replace("LOG_PROB", "log_prob").replace("CLAIM", ""))
    check(program.replace("LOG_PROB", "log_prob.detach()").replace("CLAIM", "  # GS203"))
