"""Habits of published training code that are right, each beside the fault that it resembles."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interp.checking import check
from tests.interp.test_projects import check as check_files

MOVED = """
def start(device):
    image = {made}
    image = image.cuda(){claim}
    torch.optim.SGD([image], lr=1)
"""
OUTPUT_PARAMETER = """
def match(cost, chosen):
    best = cost.sum(0) > 0
    count = best.sum().item()
    chosen[chosen.clone()] = best{claim}
    return count{more}

def assign(cost, boxes):
    chosen = boxes.sum(0) > 1
    count = match(cost, chosen)
    return count, cost[:, chosen]

assign(torch.rand(3, 4), torch.rand(3, 4))
"""
FISHER = """
def fisher(model, data):
    for x, y in data:
        output = model(x)
        for label in range(output.shape[1]):
            loss = F.cross_entropy(output, torch.tensor([label]))
            loss.backward({option}){claim}

fisher(nn.Linear(4, int(input())), [(torch.rand(1, 4), torch.zeros(1))])
"""
THAWED = """
class Net(nn.Module):
    def __init__(self, count):
        super().__init__()
        self.weights = nn.ParameterList([nn.Parameter(torch.rand(3)) for _ in range(count)])
        for index in range(count):
            self.weights[index].requires_grad = False
        {thawing}{claim}

    def forward(self, x):
        return self.weights[0] * x
"""
PARAMETERS_LISTED = """
class Flow(nn.Module):
    def __init__(self, size, count):
        super().__init__()
        self.steps = []{claim}
        parameters = []
        for _ in range(count):
            layer = nn.Linear(size, size)
            parameters += list(layer.parameters())
            self.steps.append((layer, size))
        {registered}

    def forward(self, z):
        for layer, _ in self.steps:
            z = layer(z)
        return z
"""
PICKED = """
import sys

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(2, 2)

    def forward(self, x):
        return self.body(x)

    def picked(self, keys=None, is_in=True):
        if keys is None:
            yield from self.parameters()
        else:
            for name, parameter in self.named_parameters():
                if (name in keys) == is_in:
                    yield parameter

def build(settings, net):
    keys = settings.split("#")
    return torch.optim.SGD([{groups}], 0.1){claim}

build(sys.argv[1], Net())
"""
FITTED = """
class Fit:
    def __init__(self, body):
        self.body = body

    def run(self, target):
        pose = torch.zeros(3, requires_grad=True)
        place = torch.zeros(3, requires_grad=True)
        for held in [pose, place], [pose]:
            optimizer = torch.optim.Adam(held)
            for _ in range(10):
                loss = ((self.body(pose) - target + place) ** 2).sum()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
"""
TWO_LOSSES = """
import zoo.losses as losses

def train(policy, critic, actor_step, critic_step, x, returns):
    values = critic(x)
    policy_loss = losses.{policy}(policy(x), returns - values).loss
    value_loss = losses.by_value(returns, values).loss
    critic_step.zero_grad()
    value_loss.backward()
    critic_step.step()
    actor_step.zero_grad()
    policy_loss.backward(){claim}
    actor_step.step()
"""
OWN_STEP = """
def train(model, loader, marks):
    model.train()
    for x, y in loader:
        model.optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        model.optimizer.step({given}){claim}
        print(loss.item())
"""


@pytest.mark.parametrize(
    "made",
    [
        "torch.rand(3).cuda().requires_grad_()",
        'torch.rand(3, device="cuda", requires_grad=True)',
        "torch.rand(3, device=device, requires_grad=True)",
        "torch.rand(3).to(device).requires_grad_()",
        "(torch.rand(3).cuda() * 2).requires_grad_()",
        "torch.autograd.Variable(torch.rand(3).cuda(), requires_grad=True)",
    ],
)
def test_a_tensor_that_is_on_the_device_stays_the_leaf_that_it_is(made: str) -> None:
    check(MOVED.format(made=made, claim=""))


@pytest.mark.parametrize(
    "made",
    [
        "torch.rand(3).requires_grad_()",
        'torch.rand(3, device="cpu").requires_grad_()',
        "torch.autograd.Variable(torch.rand(3), requires_grad=True)",
    ],
)
def test_a_tensor_that_is_moved_is_no_leaf(made: str) -> None:
    check(MOVED.format(made=made, claim="  # GS303"))


def test_what_a_function_writes_and_reads_no_more_is_for_its_caller() -> None:
    check(OUTPUT_PARAMETER.format(claim="", more=""))


def test_what_a_function_writes_and_goes_on_with_is_its_own_affair() -> None:
    check(OUTPUT_PARAMETER.format(claim="  # GS107", more=", cost[:, chosen]"))


@pytest.mark.parametrize(
    "option",
    [
        "retain_graph=True if label + 1 < output.shape[1] else False",
        "retain_graph=label + 1 < output.shape[1]",
        "retain_graph=True",
    ],
)
def test_a_graph_is_kept_for_all_labels_but_the_last(option: str) -> None:
    check(FISHER.format(option=option, claim=""))


@pytest.mark.parametrize("option", ["", "retain_graph=False"])
def test_a_graph_is_freed_with_the_first_label(option: str) -> None:
    check(FISHER.format(option=option, claim="  # GS402"))


@pytest.mark.parametrize(
    "thawing",
    [
        "self.weights[0].requires_grad = True",
        "self.weights[-1].requires_grad_(True)",
        "for weight in list(self.weights)[1:]: weight.requires_grad = True",
    ],
)
def test_the_part_that_is_thawed_by_its_place_is_chosen(thawing: str) -> None:
    check(THAWED.format(thawing=thawing, claim=""))


def test_all_that_was_frozen_is_thawed() -> None:
    check(THAWED.format(thawing="for weight in self.weights: weight.requires_grad = True", claim="  # GS516"))


def test_layers_in_a_list_are_registered_by_their_parameters() -> None:
    registered = "self.parameters_of_steps = nn.ParameterList(parameters)"
    check(PARAMETERS_LISTED.format(registered=registered, claim=""))


def test_layers_in_a_list_whose_parameters_are_copied_are_registered_nowhere() -> None:
    registered = "self.copies = nn.ParameterList([one.detach().clone() for one in parameters])"
    check(PARAMETERS_LISTED.format(registered=registered, claim="  # GS601"))


def test_groups_that_a_generator_picks_by_names_share_nothing() -> None:
    groups = '{"params": net.picked(keys)}, {"params": net.picked(keys, False)}'
    check(PICKED.format(groups=groups, claim=""))


def test_groups_that_are_all_parameters_share_them() -> None:
    groups = '{"params": net.picked()}, {"params": net.picked()}'
    check(PICKED.format(groups=groups, claim="  # GS518"))


def test_a_pose_is_fitted_to_a_given_body() -> None:
    check(FITTED)


def test_a_step_that_is_given_data_may_train_by_itself() -> None:
    check(OWN_STEP.format(given="x, y, marks", claim=""))
    check(OWN_STEP.format(given="", claim="  # GS503"))


def test_a_module_that_loads_itself_is_meant_to() -> None:
    check(
        """
        class Net(nn.Linear):
            def load_state_dict(self, state):
                own = self.state_dict()
                for key in state:
                    own[key] = state[key]
                super().load_state_dict(own)

        def train(manager, state):
            manager.net = Net(2, 2)
            dynamic_net = manager.net
            dynamic_net.load_state_dict(state)
            return dynamic_net.weight
        """
    )


def test_a_folder_without_init_is_a_package(tmp_path: Path) -> None:
    check_files(
        tmp_path,
        zoo__base="""
            class Out:
                def __init__(self, loss):
                    self.loss = loss
        """,
        zoo__losses="""
            from zoo import base

            def by_policy(chosen, advantage):
                return base.Out((chosen * advantage.detach()).mean())

            def attached(chosen, advantage):
                return base.Out((chosen * advantage).mean())

            def by_value(returns, values):
                return base.Out(((returns - values) ** 2).mean())
        """,
        right=TWO_LOSSES.format(policy="by_policy", claim=""),
        wrong=TWO_LOSSES.format(policy="attached", claim="  # GS402"),
    )


@pytest.mark.parametrize("gradient", ["loss.clone().detach()", "torch.ones_like(loss)", "loss.detach() * 2"])
def test_a_backward_is_given_a_gradient_made_from_the_loss(gradient: str) -> None:
    check(
        f"""
        def backward(self, loss):
            self.optimizer.zero_grad()
            loss.backward({gradient})
            self.optimizer.step()
        """
    )


def test_an_engine_is_given_a_loss_that_was_cut() -> None:
    check(
        """
        def train(engine, model, x):
            loss = model(x).mean()
            engine.backward(loss.detach())  # GS203
            engine.step()
        """
    )


@pytest.mark.parametrize(
    ("loss", "scaled", "claim"),
    [
        ("self.forward_loss(data)", "self.scaler.scale(loss).backward()", ""),
        ("self.net(data).mean()", "self.scaler.scale(loss).backward()", ""),
        ("self.net(data).mean()", "loss.backward()", "  # GS511"),
    ],
)
def test_gradients_of_a_loss_that_was_scaled_are_unscaled(loss: str, scaled: str, claim: str) -> None:
    check(
        f"""
        class Trainer:
            def __init__(self, net, optimizer, settings):
                self.net, self.optimizer = net, optimizer
                self.scaler = torch.amp.GradScaler("cuda", **vars(settings))

            def forward_loss(self, data):
                raise RuntimeError

            def update(self, data):
                loss = {loss}
                self.optimizer.zero_grad()
                {scaled}
                self.scaler.unscale_(self.optimizer){claim}
                nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)
                self.scaler.step(self.optimizer)
                self.scaler.update()
        """
    )


@pytest.mark.parametrize(("condition", "claim"), [("batches == 0", ""), ("True", "  # GS521")])
def test_an_optimizer_is_made_when_the_first_batch_has_made_the_layers(condition: str, claim: str) -> None:
    check(
        f"""
        class Supervisor:
            def __init__(self, model, seen):
                self.model, self.seen = model, seen

            def train(self, loader):
                batches = self.seen()
                for x, y in loader:
                    out = self.model(x)
                    if {condition}:
                        optimizer = torch.optim.Adam(self.model.parameters()){claim}
                    loss = F.mse_loss(out, y)
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
                    batches += 1
        """
    )


@pytest.mark.parametrize(
    ("losses", "claim"),
    [
        ("mine, theirs, logs = self.criterion(outputs=made, data=x)", ""),
        ("mine, theirs = F.mse_loss(made, x), F.l1_loss(made, x)", "  # GS402"),
        ("mine, theirs = self.criterion(made, x), self.criterion(made, -x)", "  # GS402"),
    ],
)
def test_losses_that_one_call_returns_may_have_graphs_of_their_own(losses: str, claim: str) -> None:
    check(
        f"""
        class Trainer:
            def __init__(self, generator, criterion, mover, judge_mover):
                self.generator, self.criterion = generator, criterion
                self.mover, self.judge_mover = mover, judge_mover

            def train(self, loader):
                for x in loader:
                    made = self.generator(x)
                    {losses}
                    self.mover.zero_grad()
                    mine.backward()
                    self.mover.step()
                    self.judge_mover.zero_grad()
                    theirs.backward(){claim}
                    self.judge_mover.step()
        """
    )


@pytest.mark.parametrize(
    ("again", "claim"),
    [("x.detach().requires_grad_()", ""), ("x.detach().add_(1).requires_grad_()", "  # GS705")],
)
def test_a_backward_computes_again_with_what_was_saved(again: str, claim: str) -> None:
    check(
        f"""
        class Root(torch.autograd.Function):
            @staticmethod
            def forward(ctx, f, y):
                x = y / 2
                ctx.f = f
                ctx.save_for_backward(x)
                return x

            @staticmethod
            def backward(ctx, grad):
                f = ctx.f
                (x,) = ctx.saved_tensors
                with torch.enable_grad():
                    x = {again}{claim}
                    y = f(x)
                (slope,) = torch.autograd.grad(y, x, torch.ones_like(y))
                return None, grad / slope

        def run(f, w):
            root = Root.apply(f, w)
            root.sum().backward(retain_graph=True)
            return root

        run(torch.sin, torch.rand(3, requires_grad=True))
        """
    )
