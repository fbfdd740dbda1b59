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


BLOCKS = """
        import argparse
        args = argparse.ArgumentParser().parse_args()
        class Net(nn.Module):
            def __init__(self, depth):
                super().__init__()
                self.first = nn.Linear(4, 4)
                self.blocks = nn.ModuleList(nn.Linear(4, 4) for _ in range(depth))
            def forward(self, x):
                x = self.first(x)
                for block in self.blocks:
                    x = torch.tanh(block(x))
                return x
        net = Net(args.depth)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
"""


def test_known_members_of_a_list_of_unknown_length_show_that_nobody_clears() -> None:
    check(
        BLOCKS
        + """
        for _ in range(8):
            net(torch.randn(2, 4)).mean().backward()  # GS501
            opt.step()
    """
    )


def test_known_members_of_a_list_of_unknown_length_show_an_early_clear() -> None:
    check(
        BLOCKS
        + """
        for _ in range(8):
            net(torch.randn(2, 4)).mean().backward()
            opt.zero_grad()  # GS502
            opt.step()
    """
    )


def test_a_model_of_unknown_depth_that_is_cleared_is_fine() -> None:
    check(
        BLOCKS
        + """
        for _ in range(8):
            opt.zero_grad()
            net(torch.randn(2, 4)).mean().backward()
            opt.step()
        for _ in range(8):
            net(torch.randn(2, 4)).mean().backward()
            opt.step()
            net.zero_grad()
    """
    )


def test_an_early_clear_through_a_wrapper_is_reported_where_the_order_is_wrong() -> None:
    check("""
        class Scheduled:
            def __init__(self, optimizer):
                self.optimizer = optimizer
            def step_and_update(self):
                self.optimizer.step()
            def zero_grad(self):
                self.optimizer.zero_grad()
        net = nn.Linear(4, 1)
        opt = Scheduled(torch.optim.SGD(net.parameters(), lr=0.1))
        for _ in range(8):
            net(torch.randn(2, 4)).mean().backward()
            opt.zero_grad()  # GS502
            opt.step_and_update()
    """)


def test_a_pinned_copy_stays_in_the_graph() -> None:
    check("""
        def batch(data):
            return data.pin_memory()
        net = nn.Linear(4, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(8):
            net(batch(torch.randn(2, 4))).mean().backward()  # GS501
            opt.step()
    """)


def test_a_loss_whose_graph_comes_from_unknown_code_may_have_used_the_parameters() -> None:
    check("""
        class Policy:
            def update(self, obs: torch.Tensor, action: torch.Tensor) -> None:
                advantage = self.critic(obs, action) - self.critic(obs, self.actor.predict(obs))
                weight = torch.exp(advantage.detach() / 3)
                self.actor(obs)
                loss = (weight * -self.actor.log_prob(action)).mean()
                self.actor_optimizer.zero_grad()
                loss.backward()
                self.actor_optimizer.step()
    """)


def test_what_is_a_tensor_already_stays_in_the_graph_of_as_tensor() -> None:
    check("""
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.model = nn.Linear(3, 2)
            def forward(self, obs: torch.Tensor) -> torch.Tensor:
                obs = torch.as_tensor(obs, dtype=torch.float32)
                return self.model(obs)
        class Critic(nn.Module):
            def __init__(self, encoder):
                super().__init__()
                self.encoder = encoder
                self.last = Net()
            def forward(self, obs: torch.Tensor) -> torch.Tensor:
                obs = torch.as_tensor(obs, dtype=torch.float32).flatten(1)
                obs, _ = self.encoder(obs)
                return self.last(obs)
    """)


AGENT = """
        class Agent:
            def __init__(self, config):
                self.network = config.network_fn()
                self.optimizer = config.optimizer_fn(self.network.parameters())
            def step(self, state: torch.Tensor, target: torch.Tensor):
                loss = (self.network(state)["q"] - target).pow(2).mean()
"""


def test_an_optimizer_that_a_factory_makes_is_known_by_what_it_was_given() -> None:
    check(
        AGENT
        + """
                loss.backward()  # GS501
                self.optimizer.step()
        class Other:
            def learn(self, net, x):
                self.opt.zero_grad()
                net(x).sum().backward()
                self.opt.step()
    """
    )


def test_whoever_clears_around_the_call_of_a_method_clears_for_it() -> None:
    check(
        AGENT
        + """
                loss.backward()
                self.optimizer.step()
        def learn(agent, batches):
            for state, target in batches:
                agent.network.zero_grad()
                agent.step(state, target)
    """
    )


LENGTH_OF_SPEECH = """
class Length(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])
        self.last = nn.Linear(4, 1)
    def forward(self, h):
        h = torch.detach(h)
        for layer in self.layers:
            h = torch.relu(layer(h))
        return self.last(h)
class Speech(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.ModuleList([nn.Linear(4, 4) for _ in range(40)])
        self.length = Length()
    def forward(self, x):
        for layer in self.encoder:
            x = x + layer(x)
        return x, self.length(x)
model = Speech()
optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
for _ in range(4):
    optimizer.zero_grad()
    out, length = model(torch.ones(2, 4))
    loss = F.mse_loss(out, torch.zeros(2, 4)) + length.float().sum()
    loss.backward()
    optimizer.step()
"""


def test_a_term_may_train_parameters_of_an_optimizer_that_holds_more_than_is_known() -> None:
    check(LENGTH_OF_SPEECH)


TAUGHT = """
    class Agent:
        def __init__(self, policy, critic):
            self.policy = policy
            self.critic = critic
            self.policy_optimizer = torch.optim.Adam(self.policy.parameters(), lr=0.1)
            self.critic_optimizer = torch.optim.Adam(self.critic.parameters(), lr=0.1)

        def update(self, batch):
            value_loss = F.mse_loss(self.critic(batch["obs"], batch["actions"]), batch["returns"])
            self.critic_optimizer.zero_grad()
            value_loss.backward()
            self.critic_optimizer.step()
            actions = self.policy(batch["obs"])
            loss = -self.critic(batch["obs"], GIVEN).mean()
            self.policy_optimizer.zero_grad()
            loss.backward()
            self.policy_optimizer.step()
"""


def test_critic_that_is_given_detached_actions_does_not_teach_the_policy() -> None:
    check(TAUGHT.replace("GIVEN", "actions"))
    check(TAUGHT.replace("GIVEN).mean()", "actions.detach()).mean()  # GS203"))
    check(
        TAUGHT.replace("GIVEN", "actions").replace('batch["actions"])', 'self.policy(batch["obs"]).detach())')
    )


TWINS = """
    class Agent:
        def __init__(self, qf1, qf2, lr):
            self.qf1, self.qf2 = qf1, qf2
            self.first = torch.optim.Adam(self.qf1.parameters(), lr=lr)
            self.second = torch.optim.Adam(self.HELD.parameters(), lr=lr)CLAIM

        def update(self, batch):
            first = (self.qf1(batch["obs"]) - batch["returns"]).pow(2).mean()
            second = (self.qf2(batch["obs"]) - batch["returns"]).pow(2).mean()
            self.first.zero_grad()
            first.backward()
            self.first.step()
            self.second.zero_grad()
            second.backward()
            self.second.step()
"""


def test_network_beside_another_one_of_its_name_is_a_network() -> None:
    check(TWINS.replace("HELD", "qf2").replace("CLAIM", ""))
    check(TWINS.replace("HELD", "qf1").replace("CLAIM", "  # GS512"))


MIXED_UP = """
    class Pair(nn.Module):
        def __init__(self):
            super().__init__()
            self.generator = nn.Linear(3, 4)
            self.discriminator = nn.Linear(4, 1)

    pair = Pair()
    opt_g = torch.optim.Adam(pair.GENERATOR.parameters(), lr=0.1)CLAIM_G
    opt_d = torch.optim.Adam(pair.DISCRIMINATOR.parameters(), lr=0.1)CLAIM_D
    for _ in range(4):
        noise, real = torch.randn(5, 3), torch.randn(5, 4)
        opt_g.zero_grad()
        pair.discriminator(pair.generator(noise)).mean().backward()
        opt_g.step()
        opt_d.zero_grad()
        fake = pair.generator(noise).detach()
        (pair.discriminator(fake).mean() - pair.discriminator(real).mean()).backward()
        opt_d.step()
"""


def test_of_two_optimizers_over_one_network_the_one_named_like_the_other_network_is_told() -> None:
    def program(generator: str, discriminator: str, claim_g: str = "", claim_d: str = "") -> str:
        text = MIXED_UP.replace("GENERATOR", generator).replace("DISCRIMINATOR", discriminator)
        return text.replace("CLAIM_G", claim_g).replace("CLAIM_D", claim_d)

    check(program("generator", "discriminator"))
    check(program("generator", "generator", claim_d="  # GS512"))
    check(program("discriminator", "discriminator", claim_g="  # GS512"))


def test_an_optimizer_that_a_part_makes_behind_the_end_of_the_work_counts() -> None:
    work = "\n".join("                size = size * 2 + 1" for _ in range(600))
    check(f"""
        class Policy(nn.Module):
            def __init__(self, size):
                super().__init__()
                self.build(size)
            def build(self, size):
                self.actor = nn.Linear(4, 2)
                self.actor_optimizer = torch.optim.Adam(self.actor.parameters())
                self.critic = nn.Linear(2, 1)
{work}
                self.critic_optimizer = torch.optim.Adam(self.critic.parameters())
        class Agent(nn.Module):
            def __init__(self, size):
                super().__init__()
                self.policy = Policy(size)
            def learn(self, buffer):
                for state in buffer:
                    loss = -self.policy.critic(self.policy.actor(state)).mean()
                    self.policy.actor_optimizer.zero_grad()
                    loss.backward()
                    self.policy.actor_optimizer.step()
    """)


ENSEMBLE = """
class Agent:
    def __init__(self, actor, critic, actor_optim, critic_optim, rounds):
        self.actor, self.critic = nn.Linear(2, 2), nn.Linear(2, 2)
        self.actor_optim = torch.optim.SGD(self.actor.parameters(), lr=0.1)
        self.critic_optim = torch.optim.SGD(self.critic.parameters(), lr=0.1)
        self.rounds = rounds

    def update(self, x):
        for i in range(self.rounds):
            self.critic_optim.zero_grad()
            self.critic(self.actor(x)).pow(2).mean().backward()
            if (i + 1) % self.rounds == 0:
                SECOND
                self.actor_optim.step()
            self.critic_optim.step()
"""


def test_clear_that_makes_room_for_another_loss_drops_nothing_that_was_wanted() -> None:
    second = "self.actor_optim.zero_grad()\n                (-self.critic(self.actor(x))).mean().backward()"
    check(ENSEMBLE.replace("SECOND", second))
    check("""
    net = nn.Linear(2, 2)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for i in range(9):
        opt.zero_grad()  # GS502
        net(torch.ones(2, 2)).sum().backward()
        if (i + 1) % 3 == 0:
            opt.step()
    """)


JOINT = """
actor, critic = nn.Linear(3, 2), nn.Linear(3, 1)
actor_optimizer = torch.optim.SGD(actor.parameters(), lr=0.1)
critic_optimizer = torch.optim.SGD(critic.parameters(), lr=0.1)
for _ in range(3):
    states = torch.randn(4, 3)
    values = critic(states)
    gains = 1 - values.data{code}
    chosen = {chosen}
    loss = (chosen * gains).mean() + values.pow(2).mean()
    critic_optimizer.zero_grad()
    loss.backward(retain_graph=True)
    critic_optimizer.step()
    actor_optimizer.zero_grad()
    {again}
    actor_optimizer.step()
"""


def test_a_loss_that_is_differentiated_for_each_optimizer_trains_by_all_of_its_terms() -> None:
    chosen = "actor(states).log_softmax(-1)[:, :1]"
    check(JOINT.format(code="", chosen=chosen, again="loss.backward()"))


def test_a_term_that_no_optimizer_learns_from_is_dead() -> None:
    chosen, again = "torch.ones(4, 1)", "actor(states).square().mean().backward()"
    check(JOINT.format(code="  # GS203", chosen=chosen, again=again))
