"""Trainers beside the models that they train: parts that are given, models that cost too much, ways that lead nowhere."""

from __future__ import annotations

import pytest

from tests.interp.checking import check

DIFFUSION = """
class Diffusion(nn.Module):
    def __init__(self, denoise_fn{declared}, *, image_size, channels=3):
        super().__init__()
        self.denoise_fn, self.image_size, self.channels = denoise_fn, image_size, channels
    {more}
    def forward(self, x):
        return F.mse_loss(self.denoise_fn(x), x)
class Trainer:
    def __init__(self, diffusion_model, loader):
        self.model, self.loader = diffusion_model, loader
        self.size = diffusion_model.image_size, diffusion_model.channels
        self.opt = torch.optim.Adam(diffusion_model.parameters())
    def train(self):
        for x in self.loader:
            loss = self.model(x)
            loss.backward(){said}
            self.opt.step()
            {clear}
"""


@pytest.mark.parametrize(
    ("declared", "more"),
    [
        (": nn.Module", ""),
        ("", "def sample(self):\n        return next(self.denoise_fn.parameters()).device"),
    ],
)
def test_what_is_asked_for_its_parameters_is_a_module_whatever_its_name(declared: str, more: str) -> None:
    check(DIFFUSION.format(declared=declared, more=more, clear="pass", said="  # GS501"))
    check(DIFFUSION.format(declared=declared, more=more, clear="self.opt.zero_grad()", said=""))


def test_a_function_of_data_alone_may_be_a_network() -> None:
    check(DIFFUSION.format(declared="", more="", clear="self.opt.zero_grad()", said=""))


COSTLY = """
class Big(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
    def forward(self, x):
{body}
        return self.layer(x)
class Trainer:
    def __init__(self, loader):
        self.loader, self.model = loader, Big()
        self.opt = torch.optim.SGD(self.model.parameters(), lr=0.1)
    def train(self):
        for x in self.loader:
            loss = self.model(x).mean() + self.model(x + 1).mean()
            loss.backward(){said}
            self.opt.step()
            {clear}
"""


def test_a_model_that_costs_more_than_there_is_leaves_the_training_around_it_in_view() -> None:
    body = "\n".join(["        x = torch.sin(x + 1) * torch.cos(x - 1) + (x * 2 - 1) / (x * x + 3)"] * 900)
    check(COSTLY.format(body=body, clear="pass", said="  # GS501"))
    check(COSTLY.format(body=body, clear="self.opt.zero_grad()", said=""))


REFUSED = """
import yaml
def datasets(kinds):
    found = []
    for kind in kinds:
        if kind == "folder":
            found.append(kind)
    if len(found) > 0:
        return found
    raise ValueError("no such data")
def main(path, kinds="json", steps=10, verbose=False, **more):
    net = nn.Linear(4, 1)
    if more.get("seed"):
        torch.manual_seed(1)
    data = datasets(kinds)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(steps):
        {clear}
        net(torch.randn(8, 4)).mean().backward(){said}
        opt.step()
if __name__ == "__main__":
    main(**yaml.safe_load(open("settings.yaml")))
"""


def test_what_trains_is_executed_by_itself_where_every_way_to_it_raises() -> None:
    check(REFUSED.format(clear="pass", said="  # GS501"))
    check(REFUSED.format(clear="opt.zero_grad()", said=""))


MODULE = """
class Trainer(nn.Module):
    def __init__(self, model: nn.Module, loader, every: int):
        super().__init__()
        self.model, self.loader, self.every = model, loader, every
        self.opt = torch.optim.Adam(model.parameters())
    def forward(self):
        for x in self.loader:
            loss = self.model(x)
            ({loss} / self.every).backward(){said}
            self.opt.step()
            {clear}
"""


def test_a_trainer_may_be_a_module_that_trains_when_it_is_called() -> None:
    check(MODULE.format(loss="loss", clear="pass", said="  # GS501"))
    check(MODULE.format(loss="loss", clear="self.opt.zero_grad()", said=""))
    check(MODULE.format(loss="loss.detach()", clear="self.opt.zero_grad()", said="  # GS203"))


COUNTED = """
def train(model, loader, optimizer, every):
    for x in loader:
        for i in range(every):
            loss = model(x)
            ({loss} / every).backward(){said}
        optimizer.step()
        optimizer.zero_grad()
"""


def test_what_a_loop_counts_up_to_is_a_number() -> None:
    check(COUNTED.format(loss="loss.detach()", said="  # GS203"))
    check(COUNTED.format(loss="loss", said=""))


MANY = """
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4)
        self.d, self.e = nn.Linear(4, 4), nn.Linear(4, 4)
    def forward(self, x):
        return self.e(self.d(self.c(self.b(self.a(x)))))
class Net(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.blocks = nn.ModuleList(Block() for _ in range(depth))
    def forward(self, x):
        x = self.first(x)
        for block in self.blocks:
            x = block(x)
        return x
    def trained(self):
        found = []
        for one in self.parameters():
            found.append(one)
        return found
net = Net(32)
opt = torch.optim.AdamW(net.trained())
for _ in range(10):
    {clear}
    net(torch.randn(8, 4)).mean().backward(){said}
    opt.step()
"""


def test_a_long_list_of_parameters_holds_all_of_them() -> None:
    check(MANY.format(clear="pass", said="  # GS501"))
    check(MANY.format(clear="opt.zero_grad()", said=""))


SHARED = """
class Agent:
    def __init__(self):
        self.encoder, self.head, self.other = nn.Linear(4, 4), nn.Linear(4, 1), nn.Linear(4, 2)
        self.opt = torch.optim.Adam([*self.encoder.parameters(), *self.head.parameters()])
        self.other_opt = torch.optim.Adam(self.other.parameters())
    def update(self, x):
        {clear}
        loss = self.head(self.encoder(x)).mean()
        loss.backward(){said}
        self.opt.step()
        self.encoder.zero_grad()
        self.other_opt.zero_grad()
        self.other(self.encoder(x)).mean().backward()
        self.other_opt.step()
"""


def test_what_others_clear_of_the_parameters_of_an_optimizer_leaves_the_rest_as_it_is() -> None:
    check(SHARED.format(clear="pass", said="  # GS501"))
    check(SHARED.format(clear="self.opt.zero_grad()", said=""))
    check(SHARED.format(clear="self.head.zero_grad()", said=""))


CHOSEN = """
encoder, net = nn.Linear(4, 4), nn.Linear(4, 4)
opt = torch.optim.SGD([*encoder.parameters(), *net.parameters()], lr=0.1)
def loss_of(x, video):
    state = encoder(x)
    still = state.clone().detach(){said}
    moving = state.clone()
    {choice}
    return net(chosen).mean()
for x in torch.randn(10, 8, 4):
    opt.zero_grad()
    loss_of(x, x.sum() > 0).backward()
    opt.step()
"""


def test_a_cut_that_an_option_chooses_is_meant_be_it_that_it_has_a_name() -> None:
    check(CHOSEN.format(choice="chosen = still if video else moving", said=""))
    check(CHOSEN.format(choice="chosen = still", said="  # GS203"))


FOLLOWER = """
import copy
class Contrast(nn.Module):
    def __init__(self, critic, {name}):
        super().__init__()
        self.encoder = critic.encoder
        self.encoder_target = {name}.encoder{alias}
        self.weight = nn.Parameter(torch.rand(4, 4))
    def encode(self, x, ema=False):
        if ema:
            with torch.no_grad():
                return self.encoder_target(x)
        return self.encoder(x)
class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(4, 4)
critic, other = Critic(), Critic()
other.load_state_dict(critic.state_dict())
contrast = Contrast(critic, other)
opt = torch.optim.Adam(contrast.parameters())
for x in torch.randn(10, 8, 4):
    opt.zero_grad()
    loss = (contrast.encode(x) @ contrast.weight * contrast.encode(x, ema=True)).sum()
    loss.backward()
    opt.step()
"""


def test_a_part_of_a_target_network_that_is_applied_with_grad_mode_off_follows() -> None:
    check(FOLLOWER.format(name="critic_target", alias=""))
    check(FOLLOWER.format(name="second", alias="  # GS514"))


CONFIGURED = """
import lightning as L
from library import object_from
class Net(L.LightningModule):
    def __init__(self, config):
        super().__init__()
        self.config, self.model = config, object_from(config.model)
        self.loss = object_from(config.loss)
    def configure_optimizers(self):
        optimizer = object_from(self.config.opt, params=[x for x in self.model.parameters() if x.requires_grad])
        scheduler = object_from(self.config.schedule, optimizer=optimizer)
        return [optimizer], [scheduler]
    def training_step(self, batch, batch_idx):
        loss = self.loss(self.model(batch["image"]), batch["label"])
        return {returned}{said}
"""


def test_what_a_library_makes_by_a_config_is_the_optimizer_that_a_schedule_is_made_for() -> None:
    check(CONFIGURED.format(returned="loss", said=""))
    check(CONFIGURED.format(returned="loss.detach()", said="  # GS203"))


TRACKED = """
import argparse
from accelerate import Accelerator
from transformers import AutoModelForQuestionAnswering
from torch.utils.data import DataLoader
def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--with_tracking", action="store_true")
    args = parser.parse_args()
    accelerator = Accelerator()
    model = AutoModelForQuestionAnswering.from_pretrained("x")
    optimizer = torch.optim.AdamW(model.parameters())
    model, optimizer, loader = accelerator.prepare(model, optimizer, DataLoader(load()))
    for epoch in range(3):
        total_loss = 0
        for batch in loader:
            loss = model(**batch).loss
            if args.with_tracking:
                total_loss += {loss}{said}
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
        print(total_loss)
main()
"""


def test_what_a_library_decides_is_no_branch_of_the_program() -> None:
    check(TRACKED.format(loss="loss.float()", said="  # GS404"))
    check(TRACKED.format(loss="loss.detach().float()", said=""))


EPISODES = """
import gym
from library import improve
env, render = gym.make("CartPole-v1"), False
net = nn.Linear(4, 2)
opt = torch.optim.Adam(net.parameters())
for episode in range(10000):
    state = env.reset()
    for t in range(10000):
        if render and episode > 1000:
            {now_and_then}
    opt.zero_grad()
    loss = net(torch.as_tensor(state)).mean()
    opt.step(){said}
"""


def test_what_is_shown_now_and_then_differentiates_nothing() -> None:
    check(EPISODES.format(now_and_then="env.render()", said="  # GS503"))
    check(EPISODES.format(now_and_then="improve(net)", said=""))


FORGOTTEN = """
from library import loss_of
def train(net_g, net_d, loader):
    opt_g, opt_d = torch.optim.Adam(net_g.parameters()), torch.optim.Adam(net_d.parameters())
    for real in loader:
        with torch.no_grad():
            fake = net_g(torch.randn(8, 4))
        loss = loss_of(net_d(real), net_d(fake))
        opt_d.zero_grad()
        loss.backward()
        opt_d.step()
        loss = loss_of(net_d(net_g(torch.randn(8, 4))))
        opt_g.zero_grad()
        {backward}
        opt_g.step(){said}
"""


def test_a_loss_that_is_never_differentiated_is_the_cause_and_no_cut_before_it() -> None:
    check(FORGOTTEN.format(backward="pass", said="  # GS503"))
    check(FORGOTTEN.format(backward="loss.backward()", said=""))


KEPT_TOGETHER = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 4)
        self.head = nn.Linear(4, 4)
    def forward(self, x):
        return self.head(self.body(x))
class Runner:
    def __init__(self, model, loader):
        {keep}
        self.opt = torch.optim.Adam({trained}.parameters())
    def epoch(self):
        for x, y in self.loader:
            loss = F.mse_loss(self.model(x), y)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
"""


@pytest.mark.parametrize(
    "keep",
    [
        "self.model = model; self.loader = loader",
        "self.model, self.loader = model, loader",
        "(self.model, self.loader), self.size = (model, loader), 3",
    ],
)
def test_what_is_kept_together_with_something_else_is_of_the_same_class(keep: str) -> None:
    text = KEPT_TOGETHER.replace("self.opt =", "self.opt = ").format(keep=keep, trained="model")
    check(text)
    half = KEPT_TOGETHER.format(keep=keep, trained="model.body")
    check(half.replace(".body.parameters())", ".body.parameters())  # GS512"))


SIBLINGS = """
class Adversaries:
    def __init__(self, generator, critic, {given}):
        self.generator, self.critic = generator, critic
        {made}

    def train(self, loader):
        for real in loader:
            fake = self.generator(torch.randn(len(real), 8))
            self.critic_optimizer.zero_grad()
            F.softplus(self.critic(fake.detach()) - self.critic(real)).mean().backward()
            self.critic_optimizer.step()
            self.generator_optimizer.zero_grad(){claim}
            F.softplus(-self.critic(fake)).mean().backward()
            {step}
"""
GIVEN = {
    "given": "generator_optimizer, critic_optimizer",
    "made": "self.generator_optimizer, self.critic_optimizer = generator_optimizer, critic_optimizer",
}


def test_one_of_two_given_optimizers_is_never_stepped() -> None:
    check(SIBLINGS.format(**GIVEN, claim="  # GS512", step="pass"))


@pytest.mark.parametrize(
    "step",
    [
        "self.generator_optimizer.step()",
        "self.scaler.step(self.generator_optimizer)",
        "for one in (self.generator_optimizer, self.critic_optimizer):\n                one.step()",
        "take_step(self.generator_optimizer)",
    ],
)
def test_one_of_two_given_optimizers_is_stepped_in_another_way(step: str) -> None:
    check(SIBLINGS.format(**GIVEN, claim="", step=step))


def test_an_optimizer_that_a_base_brings_is_stepped_by_the_base() -> None:
    check("""
        from base import Trainer

        class Adversaries(Trainer):
            def train(self, loader):
                for real in loader:
                    self.first.zero_grad()
                    F.softplus(self.critic(real)).mean().backward()
                    self.first.step()
                    self.second.zero_grad()
                    F.softplus(-self.generator(real)).mean().backward()
    """)


METHODS = """
class Agent:
    def __init__(self, actor, critic):
        self.actor, self.critic = actor, critic
        self.actor_optimizer = torch.optim.Adam(self.actor.parameters())
        self.critic_optimizer = torch.optim.Adam(self.critic.parameters()){claim}

    def update(self, state, target):
        loss = (self.critic(state) - target).square().mean()
        self.critic_optimizer.zero_grad()
        loss.backward()
        {step}
        self.update_actor(state)

    def update_actor(self, state):
        loss = -self.critic(self.actor(state)).mean()
        self.actor_optimizer.zero_grad()
        loss.backward()
        self.actor_optimizer.step()
"""


def test_a_method_that_clears_and_differentiates_for_an_optimizer_of_its_object_steps_it() -> None:
    check(METHODS.format(claim="  # GS512", step="pass"))
    check(METHODS.format(claim="", step="self.critic_optimizer.step()"))
    check(METHODS.format(claim="", step="self.finish(self.critic_optimizer)"))


PARTS = """
class Model({base}):
    def __init__(self, options):
        super().__init__()
        self.net = nn.Linear(options.size, 2)
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=options.lr)
        {more}

    def backward(self):
        self.loss = self.net(self.input).square().mean()
        self.loss.backward(){claim}

    def optimize(self):
        self.optimizer.zero_grad()
        self.backward()
        {step}
"""


def test_a_method_differentiates_by_what_it_calls() -> None:
    check(PARTS.format(base="object", more="", claim="  # GS512", step="pass"))
    check(PARTS.format(base="object", more="", claim="", step="self.optimizer.step()"))
    check(PARTS.format(base="Steps", more="self.optimizers = [self.optimizer]", claim="", step="pass"))


EPOCHS = """
def fit(model, loader, optimizer, epochs):
    for epoch in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward(){claim}
            {step}
"""


def test_rounds_that_are_repeated_in_epochs_are_training() -> None:
    check(EPOCHS.format(claim="  # GS512", step="pass"))
    check(EPOCHS.format(claim="", step="optimizer.step()"))
    check(EPOCHS.format(claim="", step="norms.append(model.weight.grad.norm())"))


INSTANTIATED = """
import hydra

@hydra.main(config_path="conf")
def main(cfg):
    model = hydra.utils.instantiate(cfg.model)
    optimizer = hydra.utils.instantiate(cfg.optimizer, params=model.parameters())
    for epoch in range(cfg.epochs):
        for batch in hydra.utils.instantiate(cfg.loader):
            optimizer.zero_grad()
            model(batch).mean().backward(){claim}
            {step}
"""


def test_the_settings_for_an_optimizer_are_not_the_optimizer() -> None:
    check(INSTANTIATED.format(claim="  # GS512", step="pass"))
    check(INSTANTIATED.format(claim="", step="optimizer.step()"))
    check(INSTANTIATED.format(claim="", step="hydra.utils.call(cfg.step, optimizer)"))


SCALED = """
def train(model, loader, optimizer):
    scaler = torch.amp.GradScaler()
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        scaler.scale(loss).backward(){claim}
        {step}
        scaler.update()
"""


def test_gradients_that_are_scaled_are_for_a_step() -> None:
    check(SCALED.format(claim="  # GS512", step="pass"))
    check(SCALED.format(claim="", step="scaler.step(optimizer)"))
