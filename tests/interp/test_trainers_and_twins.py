"""Optimizers that a model makes, networks that belong together, updates by hand, and goals behind the same flag twice."""

from __future__ import annotations

import pytest

from tests.interp.checking import check

MADE_BY_THE_MODEL = """
class Trainer:
    def __init__(self, config, model):
        self.config, self.model, self.optimizer = config, model, None

    def run(self, loader):
        model = self.model
        self.optimizer = model.configure_optimizers(self.config)
        for x, y in loader:
            {clear}
            logits, self.loss = model(x, y)
            self.loss.backward(){said}
            self.optimizer.step()
"""


def test_what_a_model_makes_and_a_trainer_steps_holds_its_parameters() -> None:
    check(MADE_BY_THE_MODEL.format(clear="pass", said="  # GS501"))


@pytest.mark.parametrize("clear", ["model.zero_grad(set_to_none=True)", "self.optimizer.zero_grad()"])
def test_a_trainer_that_clears_by_either_is_fine(clear: str) -> None:
    check(MADE_BY_THE_MODEL.format(clear=clear, said=""))


TWINS = """
from elsewhere import batches
class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 1)
    def forward(self, x):
        return self.fc(x)
first, second = Critic(), Critic()
{more}
opt = torch.optim.Adam({held}, lr=1e-3){said}
for x, y in batches:
    loss = F.mse_loss(first(x), y) + F.mse_loss(second(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


def test_of_two_networks_that_one_loss_trains_one_is_forgotten() -> None:
    check(TWINS.format(more="", held="first.parameters()", said="  # GS512"))


@pytest.mark.parametrize(
    ("more", "held"),
    [
        ("", "[*first.parameters(), *second.parameters()]"),
        ("second.load_state_dict(first.state_dict())", "first.parameters()"),
        ("for p in second.parameters(): p.requires_grad = False", "first.parameters()"),
        ("second.eval()", "first.parameters()"),
    ],
)
def test_a_twin_that_stays_as_it_is_can_be_meant(more: str, held: str) -> None:
    check(TWINS.format(more=more, held=held, said=""))


def test_of_two_optimizers_with_the_same_parameters_the_one_named_after_the_other_network_is_wrong() -> None:
    check(
        """
        from elsewhere import images
        generator = nn.Sequential(nn.Linear(8, 16), nn.Tanh())
        discriminator = nn.Sequential(nn.Linear(16, 1))
        optimizer_G = torch.optim.Adam(discriminator.parameters())  # GS512
        optimizer_D = torch.optim.Adam(discriminator.parameters())
        for real in images:
            fake = generator(torch.randn(4, 8))
            optimizer_D.zero_grad()
            (discriminator(fake.detach()).mean() - discriminator(real).mean()).backward()
            optimizer_D.step()
            optimizer_G.zero_grad()
            (-discriminator(fake).mean()).backward()
            optimizer_G.step()
        """
    )


BY_HAND = """
import argparse
args = argparse.ArgumentParser().parse_args()
net = nn.Linear(2, 2)
for i in range(10):
    {clear}
    loss = net(torch.randn(4, 2)).sum()
    {first}
    {second}
    for p in net.parameters():
        {update}
"""


@pytest.mark.parametrize(
    "update",
    ["p.data.add_(p.grad, alpha=-args.lr)", "p.data -= args.lr * p.grad", "p.data += p.grad * -args.lr"],
)
def test_an_update_by_hand_with_a_rate_of_the_settings_is_an_update(update: str) -> None:
    check(BY_HAND.format(clear="pass", first="loss.backward()  # GS501", second="pass", update=update))
    check(BY_HAND.format(clear="net.zero_grad()", first="loss.backward()", second="pass", update=update))


def test_clipping_before_the_backward_of_an_update_by_hand() -> None:
    clip, run = "torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)", "loss.backward()"
    update = "p.data.add_(p.grad, alpha=-args.lr)"
    check(BY_HAND.format(clear="net.zero_grad()", first=f"{clip}  # GS513", second=run, update=update))
    check(BY_HAND.format(clear="net.zero_grad()", first=run, second=clip, update=update))


@pytest.mark.parametrize("clear", ["net.zero_grad()", "opt.zero_grad()"])
def test_clipping_after_an_update_by_hand(clear: str) -> None:
    program = """
        net = nn.Linear(3, 1)
        opt = torch.optim.SGD(net.parameters(), 0.1)
        for _ in range(5):
            {clear}
            net(torch.ones(2, 3)).mean().backward()
            {first}
            for p in net.parameters():
                p.data.add_(p.grad, alpha=-0.1)
            {second}
    """
    clip = "nn.utils.clip_grad_norm_(net.parameters(), 1.0)"
    check(program.format(clear=clear, first="pass", second=f"{clip}  # GS513"))
    check(program.format(clear=clear, first=clip, second="pass"))
    check(program.format(clear="pass", first=clip, second=clear))


ACCUMULATING = """
def train(model, loader, criterion, optimizer, every):
    for step, (x, y) in enumerate(loader):
        {early}
        (criterion(model(x), y) / every).backward()
        if {condition}:
            optimizer.step()
            optimizer.zero_grad()
"""


def test_accumulation_over_an_unknown_number_of_steps_is_lost_by_a_clear_in_each() -> None:
    check(ACCUMULATING.format(early="optimizer.zero_grad()  # GS502", condition="(step + 1) % every == 0"))


def test_accumulation_that_clears_after_the_step_is_fine() -> None:
    check(ACCUMULATING.format(early="pass", condition="(step + 1) % every == 0"))


def test_a_step_that_is_left_out_for_bad_gradients_is_no_accumulation() -> None:
    check(ACCUMULATING.format(early="optimizer.zero_grad()", condition="every.is_finite()"))


TUNED = """
from settings import args
from elsewhere import sample
actor = nn.Linear(3, 1)
opt = torch.optim.Adam(actor.parameters())
if args.autotune:
    log_alpha = torch.zeros(1, requires_grad=True)
    a_opt = torch.optim.Adam([log_alpha])
for step in range(args.steps):
    if step < args.starts:
        x = torch.rand(3)
    if step > args.starts:
        loss = actor(sample()).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % args.frequency == 0:
            if args.autotune:
                {clear}
                (log_alpha.exp() * 2).mean().backward(){said}
                a_opt.step()
"""


def test_a_goal_behind_a_flag_that_was_decided_long_before_is_reached() -> None:
    check(TUNED.format(clear="pass", said="  # GS501"))
    check(TUNED.format(clear="a_opt.zero_grad()", said=""))


def test_the_sign_of_an_argument_keeps_its_graph() -> None:
    check(
        """
        class Net(nn.Module):
            def forward(self, x):
                y = torch.sigmoid(-x)
                y += 1  # GS101
                return y
        """
    )


@pytest.mark.parametrize(
    "update",
    ["p = p - args.lr * p.grad  # GS515", "p = p - p.grad * 0.1  # GS515", "p = p + p.grad  # GS515"],
)
def test_an_update_that_binds_the_name_of_the_loop_is_lost(update: str) -> None:
    check(
        BY_HAND.format(clear="net.zero_grad()", first="loss.backward()", second="moved = []", update=update)
    )


FOLLOWING = """
        import copy

        net = nn.Linear(3, 1)
        target = copy.deepcopy(net)
        opt = torch.optim.SGD(net.parameters(), 0.1)
        for _ in range(5):
            opt.zero_grad()
            loss = F.mse_loss(net(torch.ones(2, 3)), target(torch.ones(2, 3)).detach() + 1)
            loss.backward()
            opt.step()
            with torch.no_grad():
                for old, new in zip(target.parameters(), net.parameters()):
                    {update}
"""


@pytest.mark.parametrize(
    "update",
    ["old = 0.9 * old + 0.1 * new  # GS515", "old = old.data * 0.9 + new.data * 0.1  # GS515"],
)
def test_a_target_that_only_gets_a_new_name_does_not_follow(update: str) -> None:
    check(FOLLOWING.format(update=update))


@pytest.mark.parametrize(
    "update",
    [
        "old.data = 0.9 * old + 0.1 * new",
        "old.copy_(0.9 * old + 0.1 * new)",
        "gap = (old - new).norm()",
        "both = old + new; old.copy_(both / 2)",
    ],
)
def test_a_target_that_is_written_follows(update: str) -> None:
    check(FOLLOWING.format(update=update))


@pytest.mark.parametrize(
    "update",
    [
        "p.data = p - args.lr * p.grad",
        "q = p - args.lr * p.grad; moved.append(q)",
        "p = p.detach() - p.grad.norm()",
        "moved.append(p - args.lr * p.grad)",
    ],
)
def test_new_tensors_that_are_kept_or_measured_are_no_lost_updates(update: str) -> None:
    check(
        BY_HAND.format(clear="net.zero_grad()", first="loss.backward()", second="moved = []", update=update)
    )


OWN_OPTIMIZERS = """
class Algorithm:
    def __init__(self, policy_class, env):
        self.policy_class, self.env = policy_class, env
        self._setup_model()

    def _setup_model(self):
        self.policy = self.policy_class(self.env.observation_space)
        self.actor = self.policy.actor
        self.critic = self.policy.critic

    def train(self, steps, buffer):
        for _ in range(steps):
            data = buffer.sample(16)
            loss = sum(F.mse_loss(q, data.rewards) for q in self.critic(data.observations, data.actions))
            {critic}
            loss.backward(){first}
            self.critic.optimizer.step()
            actor_loss = -self.critic(data.observations, self.actor(data.observations))[0].mean()
            {actor}
            actor_loss.backward(){second}
            self.actor.optimizer.step()
"""


def test_an_optimizer_that_a_part_of_a_policy_has_is_for_that_part() -> None:
    clear = "self.{}.optimizer.zero_grad()".format
    check(OWN_OPTIMIZERS.format(critic=clear("critic"), actor=clear("actor"), first="", second=""))
    check(OWN_OPTIMIZERS.format(critic="pass", actor=clear("actor"), first="  # GS501", second=""))
    check(OWN_OPTIMIZERS.format(critic=clear("critic"), actor="pass", first="", second="  # GS501"))


def test_every_term_of_a_sum_over_what_was_computed_without_grad_mode_is_without_a_graph() -> None:
    check(
        """
        def train(model, loader, optimizer):
            for x, y in loader:
                with torch.no_grad():  # GS204
                    heads = model(x)
                loss = sum(F.mse_loss(head, y) for head in heads)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """
    )


IN_A_LIST = """
class Critics(nn.Module):
    def __init__(self, space, count=2):
        super().__init__()
        self.nets = []{said}
        for index in range(count):
            net = nn.Sequential(nn.Linear(space.shape[0], 64), nn.ReLU(), nn.Linear(64, 1))
            {registered}
            self.nets.append(net)

    def forward(self, x):
        return tuple(net(x) for net in self.nets)
"""


def test_modules_with_a_name_of_their_own_in_a_plain_list_are_not_registered() -> None:
    check(IN_A_LIST.format(said="  # GS601", registered="pass"))
    check(IN_A_LIST.format(said="", registered='self.add_module(f"net{index}", net)'))


def test_a_backward_of_an_unknown_graph_is_a_backward() -> None:
    check(
        """
        from elsewhere import episodes
        policy = nn.Linear(4, 2)
        optimizer = torch.optim.Adam(policy.parameters())
        for states, returns in episodes:
            saved = [policy(state).log_softmax(0)[0] for state in states]
            losses = []
            for log_prob, value in zip(saved, returns):
                losses.append(-log_prob.detach() * value)
            optimizer.zero_grad()
            torch.stack(losses).sum().backward()
            optimizer.step()
        """
    )


def test_gradients_that_are_handed_to_a_shared_model_are_used() -> None:
    check(
        """
        from elsewhere import batches
        shared, local = nn.Linear(2, 1), nn.Linear(2, 1)
        local.load_state_dict(shared.state_dict())
        optimizer = torch.optim.Adam(shared.parameters())
        for x in batches:
            optimizer.zero_grad()
            local.zero_grad()
            local(x).mean().backward()
            for theirs, ours in zip(shared.parameters(), local.parameters()):
                theirs._grad = ours.grad
            optimizer.step()
            local.load_state_dict(shared.state_dict())
        """
    )


def test_the_data_of_what_an_unknown_model_returned_can_be_an_array() -> None:
    check(
        """
        def train(model, loader, optimizer, writer):
            for x, y in loader:
                y_hat, attn = model(x)
                loss = F.mse_loss(y_hat, y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                writer.add_image("attn", attn[0, 0].data.cpu().numpy())
        """
    )


RESET = """
from library import deactivate_requires_grad
import copy
class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(3, 1)
        self.follower = copy.deepcopy(self.net)
        self.follower.requires_grad_(False)
    def reset(self):
        self.follower = copy.deepcopy(self.net){said}
        {freeze}
    def forward(self, x):
        return (self.net(x) - self.follower(x)).pow(2).mean()
pair = Pair()
opt = torch.optim.SGD(pair.parameters(), lr=0.1)
for x in torch.randn(6, 4, 3):
    opt.zero_grad()
    pair.reset()
    pair(x).backward()
    opt.step()
"""


@pytest.mark.parametrize(
    "freeze", ["self.follower.requires_grad_(False)", "deactivate_requires_grad(self.follower)"]
)
def test_a_frozen_part_that_is_made_anew_misses_no_step(freeze: str) -> None:
    check(RESET.format(freeze=freeze, said=""))


def test_a_part_that_is_made_anew_and_learns_misses_its_steps() -> None:
    check(RESET.format(freeze="pass", said="  # GS504"))
