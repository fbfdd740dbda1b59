"""What stands around the training of whole programs: data that costs much, evaluations, optimizers that are handed on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interp import test_projects
from tests.interp.checking import check


def test_part_that_a_package_imports_from_itself_is_its_module(tmp_path: Path) -> None:
    (tmp_path / "kit").mkdir()
    (tmp_path / "kit" / "__init__.py").write_text("from . import nets\n")
    test_projects.check(
        tmp_path,
        kit__nets="""
            class Net(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.body = nn.Linear(3, 3)
                def forward(self, x):
                    return torch.sigmoid(self.body(x))
        """,
        main="""
            import kit

            net = kit.nets.Net()
            for _ in range(3):
                h = net(torch.ones(2, 3))
                h += 1  # GS101
                h.sum().backward()
                g = net(torch.ones(2, 3))
                g = g + 1
                g.sum().backward()
        """,
    )


COSTLY = "\n".join(
    f"        row['k{n}'] = [tok(w) for w in text if len(w) > {n} and w != 'k{n}']" for n in range(400)
)
READER = f"""
def tokenize(text, tok):
    row = {{}}
    for text in text:
{COSTLY}
    return row

def batches(names, tok, size):
    while True:
        batch = []
        for name in names:
            batch.append(tokenize(name, tok))
            if len(batch) == size:
                yield batch
                batch = []
"""


@pytest.mark.parametrize(("clear", "said"), [("pass", "  # GS501"), ("self.opt.zero_grad()", "")])
def test_data_that_cost_too_much_to_follow_leave_the_training_to_be_followed(
    tmp_path: Path, clear: str, said: str
) -> None:
    test_projects.check(
        tmp_path,
        reading=READER,
        training=f"""
            from reading import batches

            class Trainer:
                def __init__(self, model: nn.Module, config):
                    self.model = model
                    self.train_batches = batches(config.names, config.tok, config.size)
                    self.held_out = list(batches(config.held_out, config.tok, config.size))

                def train(self, rate):
                    self.opt = torch.optim.SGD(self.model.parameters(), lr=rate)
                    for batch in self.train_batches:
                        {clear}
                        self.model(batch["x"]).mean().backward(){said}
                        self.opt.step()
        """,
    )


HELD_OUT = """
def train(model: nn.Module, loader, held_out, opt: torch.optim.Optimizer, every):
    for number, x in enumerate(loader):
        if number % every == 0:
            model.eval()
            for one in held_out:
                with torch.no_grad():
                    for part in one:
                        for piece in part:
                            {work}
            model.train()
        {clear}
        model(x).mean().backward(){said}
        opt.step()
"""
WORK = "; ".join(f"a{n} = model(piece[{n}]).mean().item() + len(piece)" for n in range(90))


def test_evaluation_is_repeated_in_brief() -> None:
    check(HELD_OUT.format(work=WORK, clear="pass", said="  # GS501"))
    check(HELD_OUT.format(work=WORK, clear="opt.zero_grad()", said=""))


def test_loop_that_begins_to_train_late_gets_its_rounds() -> None:
    program = """
net, head = nn.Linear(3, 3), nn.Linear(3, 1)
opt = torch.optim.SGD([*net.parameters(), *head.parameters()], lr=0.1)

def run(loader, epochs):
    for epoch in range(epochs):
        for x in loader:
            if epoch >= 2:
                {clear}
                head(net(x)).mean().backward(){said}
                opt.step()
"""
    check(program.format(clear="pass", said="  # GS501"))
    check(program.format(clear="opt.zero_grad()", said=""))


EPISODES = """
import gym
env = gym.make("Pendulum-v1")
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)

def learn():
    {clear}
    net(torch.ones(4, 3)).mean().backward(){said}
    opt.step()

total, start, longest = 0, 25e3, env._max_episode_steps
while total < 3e6:
    state, steps, done = env.reset(), 0, False
    while not done:
        steps += 1
        if total < start:
            action = env.action_space.sample()
        else:
            action = net(torch.tensor(state)).detach().numpy()
        state, reward, done, _ = env.step(action)
        if done and steps != longest:
            over = True
        else:
            over = False
        if total >= start:
            learn()
        total += 1
"""


def test_round_that_is_the_first_to_learn_is_followed_by_another() -> None:
    check(EPISODES.format(clear="pass", said="  # GS501"))
    check(EPISODES.format(clear="opt.zero_grad()", said=""))


HANDED = """
def lower(opt, epoch):
    for group in opt.param_groups:
        group["lr"] = 0.1 / (epoch + 1)

def save(path, net, opt):
    torch.save({{"net": net.state_dict(), "opt": opt.state_dict()}}, path)

{helper}

def train(net, loader, opt):
    for x in loader:
        opt.zero_grad()
        net(x).mean().backward(){said}
        {step}

def main(loader):
    net = nn.Linear(3, 1)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(5):
        lower(opt, epoch)
        train(net, loader, opt=opt)
        save("last.pt", net, opt)
"""


@pytest.mark.parametrize(
    ("step", "helper"),
    [
        ("opt.step()", ""),
        ("finish(opt, len(x))", "def finish(opt, count):\n    if count > 1:\n        opt.step()"),
        ("finish(opt)", "from elsewhere import finish"),
        ("getattr(opt, 'step')()", ""),
        ("finish = opt; finish.step()", ""),
    ],
)
def test_optimizer_that_is_handed_on_may_be_stepped_there(step: str, helper: str) -> None:
    check(HANDED.format(step=step, helper=helper, said=""))


def test_optimizer_that_is_handed_to_what_does_not_step_it_is_never_stepped() -> None:
    check(HANDED.format(step="pass", helper="", said="  # GS512"))


PREPARED = """
from accelerate import Accelerator

def main(loader):
    accelerator = Accelerator()
    net = nn.Linear(3, 1)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    net, opt, loader = accelerator.prepare(net, opt, loader)
    for x in loader:
        opt.zero_grad()
        accelerator.backward(net(x).mean()){said}
        {step}
"""


def test_optimizer_that_a_library_prepares_is_stepped_by_the_program() -> None:
    check(PREPARED.format(step="pass", said="  # GS512"))
    check(PREPARED.format(step="opt.step()", said=""))


SIZES = """
def train(net: nn.Module, loader, args, opt: torch.optim.Optimizer):
    for x in loader:
        opt.zero_grad()
        out = net(x){cut}
        loss = {made}.mean()
        loss.backward()
        opt.step()
"""


@pytest.mark.parametrize(
    "made",
    [
        "out.reshape(2 * args.size * args.count, 1)",
        "torch.reshape(out, (args.size, -1))",
        "out.repeat(args.count, 1)",
        "out.topk(args.count)[0]",
        "torch.roll(out, args.shift, 0)",
        "F.interpolate(out, scale_factor=args.scale)",
    ],
)
def test_size_that_is_not_known_brings_no_graph(made: str) -> None:
    check(SIZES.format(cut=".detach()  # GS203", made=made))
    check(SIZES.format(cut="", made=made))


SQUASHED = """
from torch.distributions import Normal

actor, critic = nn.Linear(3, 2), nn.Linear(5, 1)
opt = torch.optim.Adam(actor.parameters(), lr=0.1)
for _ in range(5):
    state, gain = torch.ones(4, 3), torch.ones(4)
    dist = Normal(actor(state), torch.ones(2))
    action = dist.{sample}()
    log_pi = dist.log_prob(action).sum(-1)
    log_pi -= torch.log(1 - torch.tanh(action).pow(2) + 1e-6).sum(-1)
    opt.zero_grad()
    {loss}.mean().backward()
    opt.step()
"""
VALUED = "(0.2 * log_pi - critic(torch.cat([state, action], -1)).squeeze(-1))"


def test_value_of_a_sample_trains_no_policy() -> None:
    check(SQUASHED.format(sample="sample", loss=VALUED).replace("dist.sample()", "dist.sample()  # GS205"))
    check(SQUASHED.format(sample="rsample", loss=VALUED))
    check(SQUASHED.format(sample="sample", loss="-(log_pi * gain)"))


FINAL_TEST = """
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)

def train(loader):
    for x in loader:
        {clear}
        net(x).mean().backward(){said}
        opt.step()

def test(loader):
    for x in loader:
        net.zero_grad()
        print(net(x).mean().item())

def main(loader, held_out):
    for epoch in range(5):
        train(loader)
        {between}
    test(held_out)
"""


def test_clearing_after_the_training_clears_nothing_for_it() -> None:
    check(FINAL_TEST.format(clear="pass", said="  # GS501", between="pass"))
    check(FINAL_TEST.format(clear="net.zero_grad()", said="", between="pass"))
    # What is cleared between two epochs has been summed within each of them.
    check(FINAL_TEST.format(clear="pass", said="  # GS501", between="test(held_out)"))


ADDED = """
first, second = nn.Linear(3, 1), nn.Linear(3, 1)
opt = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.1)
average = torch.zeros(())
for _ in range(5):
    x, loss = torch.ones(2, 3), 0
    loss += {term}
    loss += second(x).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    average += loss.detach()
"""


def test_first_term_of_a_sum_that_is_cut_off_trains_nothing() -> None:
    check(ADDED.format(term="first(x).mean().detach()  # GS203"))
    check(ADDED.format(term="first(x).mean().item()  # GS202"))
    check(ADDED.format(term="first(x).mean()"))
    check(ADDED.format(term="first(x).mean() + average"))
    check(ADDED.format(term="x.mean().detach() + first(x).mean()"))


def test_module_that_is_copied_by_hand_is_not_followed() -> None:
    check("""
        def copied(module):
            clone = module.__new__(type(module))
            clone.__dict__ = module.__dict__.copy()
            clone._parameters = clone._parameters.copy()
            for name in module._parameters:
                clone._parameters[name] = module._parameters[name].clone()
            return clone

        net = nn.Linear(3, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(5):
            opt.zero_grad()
            for _ in range(2):
                learner = copied(net)
                loss = learner(torch.ones(2, 3)).mean()
                for name, gradient in zip(learner._parameters, torch.autograd.grad(loss, list(learner._parameters.values()), create_graph=True)):
                    learner._parameters[name] = learner._parameters[name] - 0.1 * gradient
                learner(torch.ones(2, 3)).mean().backward()
            opt.step()
    """)


PICKED = """
nets = {{"a": nn.Linear(3, 1), "b": nn.Linear(3, 1)}}

def run(name, loader):
    opt = torch.optim.SGD(nets[{held}].parameters(), lr=0.1){said}
    for x in loader:
        opt.zero_grad()
        nets[{used}](x).mean().backward()
        opt.step()
"""


def test_network_that_is_picked_by_a_name_nobody_knows_may_be_any() -> None:
    check(PICKED.format(held="'b'", used="name", said=""))
    check(PICKED.format(held="name", used="name", said=""))
    check(PICKED.format(held="'b'", used="'a'", said="  # GS512"))


SETTINGS = """
import yaml

class Settings:
    values = None
    def get(self, name):
        if {missing}:
            raise RuntimeError("load the settings first")
        return self.values[name]

settings = Settings()

def load(path):
    settings.values = yaml.safe_load(open(path))

def main(loader):
    net = nn.Linear(3, settings.get("width"))
    opt = torch.optim.SGD(net.parameters(), lr=settings.get("rate"))
    for x in loader:
        {clear}
        net(x).mean().backward(){said}
        opt.step()
"""


@pytest.mark.parametrize("missing", ["self.values is None", "not self.values"])
def test_settings_that_refuse_until_they_are_loaded_do_not_hide_the_training(missing: str) -> None:
    check(SETTINGS.format(missing=missing, clear="pass", said="  # GS501"))
    check(SETTINGS.format(missing=missing, clear="opt.zero_grad()", said=""))
    # Called at the top of the module, before anything is loaded, it raises.
    check(SETTINGS.format(missing=missing, clear="pass", said="") + "\nmain([])\n")
