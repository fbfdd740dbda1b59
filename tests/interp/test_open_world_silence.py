"""Public code that looks like a fault and is none: what it does shows that no graph, or no loss, is at stake."""

from __future__ import annotations

import pytest

from tests.interp.checking import check

NET = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)
"""


@pytest.mark.parametrize(
    "body",
    [
        # torch refuses `.numpy()` of a value with a graph: whoever calls this has none.
        "def boxes(pnet, images):\n    found = pnet(images)\n    return found.cpu().numpy()\n",
        "def boxes(pnet: nn.Module, images):\n    return np.tanh(pnet(images)[0])\n",
        NET + "    def forward(self, x):\n        h = x.cpu().numpy()\n        return torch.from_numpy(h)\n",
        NET + "    def project(self, f, u):\n        return np.array([[f / 2, u], [0, f * u]])\n",
    ],
)
def test_numpy_shows_that_a_value_has_no_graph(body: str) -> None:
    check("import numpy as np\n" + body)


def test_whole_numbers_carry_no_gradient() -> None:
    check(
        NET
        + """
    def forward(self, x):
        order = [pair for pair in self.a(x)]
        return torch.tensor(order, dtype=torch.int64)
"""
    )


def test_a_list_from_unknown_code_becomes_a_tensor() -> None:
    check(
        NET
        + """
    def forward(self, x):
        values = self.coder.decode(self.a(x))
        return torch.tensor(values) - 1
""".replace("self.coder", "coder")
        + "\nfrom elsewhere import coder\n"
    )


def test_the_own_value_of_a_weight_is_copied() -> None:
    check(
        NET
        + """
    def forward(self, x):
        self.b.weight.data = torch.tensor(self.a.weight.data.cpu().detach().numpy()).to(x.device)
        return self.b(x)
"""
    )


def test_an_initialiser_writes_to_its_argument() -> None:
    check(
        NET
        + """
    def forward(self, x):
        return self.b(self.a(x))
def trunc_normal_(tensor: torch.Tensor, std=1.0):
    with torch.no_grad():
        tensor.uniform_(-1, 1)
        tensor.mul_(std)
        return tensor
"""
    )


def test_losses_wait_in_a_list_for_their_backward() -> None:
    check(
        """
def several(model, batches):
    losses = []
    for x in batches:
        losses.append(model(x).mean())
    for loss in losses:
        loss.backward()
"""
    )


def test_counts_beside_a_loss_are_numbers() -> None:
    check(
        """
def train(model, loader, optimizer):
    seen = 0
    for batch in loader:
        optimizer.zero_grad()
        loss, sample_count = model.forward_loss(batch)
        loss.backward()
        optimizer.step()
        seen += sample_count
    return seen
"""
    )


def test_an_optimizer_does_not_step_a_target_network() -> None:
    check(
        """
class Agent:
    def __init__(self, critic, target_critic, optimizer):
        self.critic, self.target_critic, self.optimizer = critic, target_critic, optimizer
    def update(self, state, reward, following):
        with torch.no_grad():
            goal = reward + self.target_critic(following)
        loss = (self.critic(state) - goal).pow(2).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        for old, new in zip(self.target_critic.parameters(), self.critic.parameters()):
            old.data.copy_(new.data)
"""
    )


def test_a_fast_way_is_taken_where_no_gradient_is_needed() -> None:
    check(
        NET
        + """
    def forward(self, x):
        if x.requires_grad:
            return torch.sigmoid(x) * 2
        h = torch.sigmoid(x)
        return torch.mul(h, 2, out=h)
"""
    )


def test_numbers_are_no_tensors() -> None:
    check(
        NET
        + """
    def forward(self, x):
        return drop(x, 0.5, self.training)
def drop(inputs, rate, training):
    keep = 1 - rate
    noise = keep
    noise += torch.rand(3)
    return inputs / keep * torch.floor(noise)
"""
    )


def test_a_search_is_no_part_of_training() -> None:
    check(
        NET
        + """
    def forward(self, x):
        return self.b(self.a(x))
def penalize_repetition(tokens: torch.Tensor, scores: torch.Tensor):
    chosen = torch.gather(scores, 1, tokens)
    scores.scatter_(1, tokens, chosen * 2)
    return scores
"""
    )


def test_an_attack_is_given_data() -> None:
    check(
        """
def attack(model_fn, x, eps):
    step = x - model_fn(x).detach()
    size = (step ** 2).sum()
    step *= eps / size
    return x + step
"""
    )


def test_a_write_that_a_finding_tells_of_is_not_called_safe() -> None:
    report = check(
        NET
        + """
    def forward(self, x):
        both = self.a(x).reshape(2, -1)
        q, k = both.unbind(0)
        both *= 2
        return q * k  # GS103
"""
    )
    assert {finding.severity for finding in report.findings} == {"error"}


def test_the_fan_of_a_weight_is_a_number() -> None:
    check(
        """
import numpy as np
def init_lecun_normal(tensor, scale=1.0):
    fan_in = torch.nn.init._calculate_correct_fan(tensor, "fan_in")
    with torch.no_grad():
        return tensor.normal_(0, scale * np.sqrt(1.0 / fan_in))
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 4)
        init_lecun_normal(self.a.weight)
    def forward(self, x):
        return self.a(x)
"""
    )


def test_how_many_gradients_are_wanted_is_not_known_behind_a_star() -> None:
    check(
        """
class Cell(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, h, c):
        return x * weight + h + c
    @staticmethod
    def backward(ctx, grad):
        return grad, grad, grad, grad
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4))
    def forward(self, x, state):
        return Cell.apply(x, self.weight, *state)
"""
    )


def test_a_loss_of_unknown_modules_may_reach_the_parameters_that_are_stepped() -> None:
    check(
        """
def update(policy, critic, policy_optimizer, batch):
    actions = policy(batch).rsample()
    loss = -torch.mean(critic(batch, actions))
    policy_optimizer.zero_grad()
    loss.backward()
    policy_optimizer.step()
"""
    )


def test_a_base_that_was_called_has_initialised_the_module() -> None:
    check(
        """
from elsewhere import Algorithm
class Lagged(Algorithm, nn.Module):
    def __init__(self, policy, critic):
        super().__init__(policy=policy)
        self.critic = nn.Linear(4, 4)
    def forward(self, x):
        return self.critic(x)
"""
    )
    check(
        """
class Cell(nn.Module):
    def __init__(self, size):
        self.weight = nn.Parameter(torch.randn(size))  # GS603
        super().__init__()
"""
    )


def test_a_write_behind_a_dropout_of_unknown_probability_is_not_called_safe() -> None:
    report = check(
        """
class Net(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.dropout = nn.Dropout(config.probability)
    def forward(self, x):
        h = self.dropout(torch.softmax(x, -1))
        h *= 2
        return h
"""
    )
    assert not report.findings


def test_a_write_to_what_a_dropout_of_unknown_probability_was_given_is_not_called_safe() -> None:
    for drop in ("nn.Dropout(config.rate)(h)", "F.dropout(h, p=config.rate, training=self.training)"):
        report = check(
            f"""
class Net(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.config = config
    def forward(self, x, config):
        h = self.first(x)
        y = {drop}
        h.clamp_(min=0)
        return y + 1
"""
        )
        assert not report.findings


def test_a_write_whose_result_goes_into_an_expression_is_not_called_safe_if_the_name_is_read_again() -> None:
    report = check(
        """
class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 4)
    def forward(self, x):
        h = self.first(x)
        size = h.neg_().mean()
        return h + size
class Waves(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 4)
    def forward(self, x):
        h = self.first(x)
        return torch.cat([torch.neg_(h), torch.add(h, 1)])
"""
    )
    assert not report.findings
    report = check(
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 4)
    def forward(self, x):
        h = self.first(x)
        h = h.neg_()
        h.mul_(2)
        return h + 1
"""
    )
    assert [finding.severity for finding in report.findings] == ["hint", "hint"]


def test_an_argument_declared_as_a_number_stays_one_when_something_unknown_is_added() -> None:
    check("""
        class Adapter:
            def __init__(self, env):
                self.env = env
                self.last: int = 0
                self.seen = self.env.reset()

            def step(self, action):
                return self.env.step(action)

            def rollout(self, current_step: int, act, update, total):
                done = 0
                while current_step < total:
                    state, info = self.step(act(current_step, self.seen))
                    done += info["num_step"]
                    current_step += info["num_step"]
                    self.seen = state
                    if current_step - self.last >= 10:
                        update(current_step)
                        self.last = current_step
    """)
