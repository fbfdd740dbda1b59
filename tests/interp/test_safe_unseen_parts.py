"""Right programs that look wrong because a part of them is elsewhere, each beside a wrong one where that part is known."""

from __future__ import annotations

import pytest

from tests.interp.checking import check

HANDING_OVER = """
class Policy(nn.Module):
    def __init__(self, inputs):
        super().__init__()
        self.body = nn.Linear(inputs, 16)
        self.mix = nn.Linear(16, 16)
        self.head = nn.Linear(16, 4)

    def forward(self, x):
        return self.head(F.relu(self.mix(F.relu(self.body(x)))))

def hand_over(local, shared):
    for own, other in zip(local.parameters(), shared.parameters()):
        if other.grad is not None:
            return
        other._grad = own.grad

def work(args, shared, optimizer=None):
    local = Policy(args.inputs)
    if optimizer is None:
        optimizer = torch.optim.Adam(shared.parameters(), lr=args.lr)  # GS512
    while True:
        local.load_state_dict(shared.state_dict())
        loss = local(torch.randn(2, args.inputs)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        hand_over(local, shared)
        optimizer.step()
"""
LAZY = """
from tools import warm_up

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 4)
        self.head = None

    def forward(self, x):
        x = self.body(x)
        if self.head is None:
            self.head = nn.Linear(x.shape[1], 2)  # GS504
        return self.head(x)

net = Net()
warm_up(net)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    opt.zero_grad()
    net(torch.randn(2, 4)).sum().backward()
    opt.step()
"""
EXTRACTING = """
from torchvision.models import resnet18, ResNet18_Weights

class Encoder(nn.Module):
    def __init__(self, size):
        super().__init__()
        resnet = resnet18(HOW)
        self.body = nn.Sequential(*list(resnet.children())[:-1])
        self.head = nn.Linear(resnet.fc.in_features, size)

    def forward(self, x):
        with torch.no_grad():  # GS204
            x = self.body(x)
        return self.head(x.flatten(1))

model = Encoder(5)
opt = torch.optim.Adam(model.parameters())
for _ in range(3):
    loss = model(torch.randn(2, 3, 32, 32)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


def test_gradients_handed_over_to_a_module_of_unknown_size_raise_no_alarm() -> None:
    check(HANDING_OVER.replace("  # GS512", ""))


def test_gradients_that_nobody_hands_over_are_reported() -> None:
    check(HANDING_OVER.replace("        hand_over(local, shared)\n", ""))


def test_a_layer_that_unknown_code_may_have_made_raises_no_alarm() -> None:
    check(LAZY.replace("  # GS504", ""))


def test_a_layer_made_after_the_optimizer_is_reported() -> None:
    check(LAZY.replace("warm_up(net)\n", ""))


@pytest.mark.parametrize("how", ["pretrained=True", "weights=ResNet18_Weights.DEFAULT"])
def test_a_pretrained_part_applied_without_grad_mode_raises_no_alarm(how: str) -> None:
    check(EXTRACTING.replace("HOW", how).replace("  # GS204", ""))


def test_a_fresh_part_applied_without_grad_mode_is_reported() -> None:
    check(EXTRACTING.replace("HOW", ""))


@pytest.mark.parametrize("outer", ["torch.inference_mode()", "torch.no_grad()"])
def test_inference_mode_switched_off_turns_grad_mode_on(outer: str) -> None:
    check(f"""
        net = nn.Linear(3, 1)
        with {outer}:
            with torch.inference_mode(False):
                net(torch.randn(2, 3)).sum().backward()
    """)


def test_grad_mode_inside_inference_mode_records_nothing() -> None:
    check("""
        net = nn.Linear(3, 1)
        for _ in range(2):
            with torch.inference_mode():  # GS204
                torch.set_grad_enabled(True)
                net(torch.randn(2, 3)).sum().backward()
                torch.set_grad_enabled(False)
    """)


@pytest.mark.parametrize("kind", ["Tensor", "FloatTensor"])
def test_whole_numbers_become_floating_point_numbers(kind: str) -> None:
    check(f"""
        point = nn.Parameter(torch.{kind}([5, 5]))
        (point * 2).sum().backward()
    """)


def test_whole_numbers_that_stay_whole_are_refused() -> None:
    check("""
        point = nn.Parameter(torch.tensor([5, 5]))  # GS307
    """)


MIXED = """
import sys

net = nn.Linear(3, 1)
steps = int(sys.argv[1])
losses = [0 for _ in range(steps + 1)]
for _ in range(4):
    with torch.no_grad():
        losses[0] += net(torch.randn(2, 3)).sum()
    with torch.no_grad():
        losses[1] += net(torch.randn(2, 3)).sum()
    for k in range(1, steps):
        losses[k + 1] += net(torch.randn(2, 3)).sum()
losses[-1].backward()
"""


def test_the_last_item_of_a_list_of_unknown_length_is_not_the_second() -> None:
    check(MIXED)


def test_an_item_that_was_stored_at_its_index_is_read_there() -> None:
    check(
        MIXED.replace("losses[-1].backward()", "losses[1].backward()")
        .replace("        losses[1] +=", "        losses[1] = 0 +")
        .replace(
            "    with torch.no_grad():\n        losses[1]",
            "    with torch.no_grad():  # GS204\n        losses[1]",
        )
    )


POLICY = """
class Fixed(torch.distributions.Categorical):
    def log_probs(self, actions):
        return super().log_prob(actions.squeeze(-1)).view(actions.size(0), -1).sum(-1).unsqueeze(-1)

    def best(self):
        return self.probs.argmax(-1)

class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(4, 3)
        self.critic = nn.Linear(4, 1)

    def evaluate(self, x, actions):
        dist = Fixed(logits=self.head(x))
        return self.critic(x), dist.log_probs(actions), dist.entropy().mean()

policy = Policy()
opt = torch.optim.RMSprop(policy.parameters())
for _ in range(3):
    values, log_probs, entropy = policy.evaluate(torch.randn(6, 4), torch.zeros(6, 1, dtype=torch.long))
    advantages = torch.randn(6, 1) - values
    action_loss = -(advantages.detach() * log_probs).mean()
    opt.zero_grad()
    (advantages.pow(2).mean() + action_loss - entropy * 0.01).backward()
    opt.step()
"""


def test_a_distribution_of_the_program_s_own_carries_the_graph_of_its_parameters() -> None:
    check(POLICY)


def test_a_sample_of_a_distribution_of_the_program_s_own_carries_none() -> None:
    check("""
        class Fixed(torch.distributions.Normal):
            def draw(self):
                return self.sample()  # GS205

        net = nn.Linear(4, 3)
        Fixed(net(torch.randn(2, 4)), torch.ones(3)).draw().sum().backward()
    """)


def test_a_call_of_super_without_parentheses_ends_the_path() -> None:
    check(POLICY.replace("super().log_prob", "super.log_prob"))


def test_methods_of_unknown_objects_that_only_sound_like_those_of_tensors_raise_no_alarm() -> None:
    check("""
        import tools

        net = nn.Linear(4, 1)
        loss = net(torch.randn(2, 4)).pow(2).mean()
        output = tools.Result(minimize=loss)
        output.log("loss", loss, prog_bar=True)
        output.add(loss)
        shown = tools.scale(net(torch.randn(2, 4)))
        shown.clamp(min=0)  # GS209
        loss.backward()
    """)


STEPPING = """
class Trainer(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(size, 8), nn.ReLU(), nn.Linear(8, 1))
        self.opt = torch.optim.AdamW(self.net.parameters(), lr=0.1)
        self.start = self.net(torch.zeros(1, size)).item()

    def update(self):
        self.opt.step()  # GS503
        self.opt.zero_grad()

    def forward(self, x):
        loss = self.net(x).pow(2).mean()
        if self.training:
            loss.backward()
        return loss.item()
"""


def test_a_method_that_steps_after_another_has_differentiated_raises_no_alarm() -> None:
    check(STEPPING.replace("  # GS503", ""))


def test_a_method_that_steps_where_nothing_is_differentiated_is_reported() -> None:
    check(STEPPING.replace("        if self.training:\n            loss.backward()\n", ""))


def test_the_old_name_of_retain_graph_keeps_the_graph() -> None:
    check("""
        x = torch.ones(2, requires_grad=True)
        y = x * x
        y.backward(torch.tensor([1.0, 0.0]), retain_variables=True)
        y.backward(torch.tensor([0.0, 1.0]))
        y.backward(torch.tensor([0.0, 1.0]))  # GS402
    """)


POOLED = """
from pooling import Pooling

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
        self.pool = Pooling()

    def forward(self, x, edge_index):
        pooled = self.pool(self.lin(x), edge_index)
        chosen = torch.cat([pooled.WHICH, torch.zeros(2, 1)], dim=1)
        mask = chosen[0] > 1
        kept = chosen[:, mask]
        mask.logical_not_()  # GS101
        return kept.sum() + pooled.x.sum()
"""


def test_places_among_what_unknown_code_returns_carry_no_graph() -> None:
    check(POOLED.replace("WHICH", "features"))
    check(POOLED.replace("WHICH", "edge_index").replace("  # GS101", ""))


LEFT_OUT = """
class Conv(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor, weight: torch.Tensor | None = None):
        if weight is None:
            weight = INSTEAD
        degree = 1.0 / weight
        with torch.no_grad():
            degree *= 2  # GS105
        return self.lin(x) * degree
"""


def test_argument_that_is_a_constant_if_it_is_left_out_carries_no_graph() -> None:
    check(LEFT_OUT.replace("INSTEAD", "self.lin(x)"))
    check(LEFT_OUT.replace("INSTEAD", "x.new_ones(4)").replace("  # GS105", ""))


def test_anchors_of_a_detector_are_constants() -> None:
    program = """
    class Loss(nn.Module):
        def forward(self, predictions, target, OTHER):
            target[..., 3:5] = torch.log(1e-16 + target[..., 3:5] / OTHER)HERE
            return F.mse_loss(predictions[..., 3:5], target[..., 3:5])
    """
    check(program.replace("OTHER", "scaling").replace("HERE", "  # GS101"))
    check(program.replace("OTHER", "anchors").replace("HERE", ""))


def test_a_method_of_what_nobody_knows_may_be_of_no_tensor() -> None:
    check("""
        import lmdb
        environment = lmdb.open("images")
        transaction = environment.begin(write=True)
        for key in range(3):
            transaction.put(key, torch.zeros(2))
    """)
    check("""
        def step(net, optimizer, loader):
            for x in loader:
                hidden = net(x)
                hidden.detach()  # GS209
                optimizer.zero_grad()
                hidden.sum().backward()
                optimizer.step()
    """)
