"""Libraries that bring parts: networks, environments, layers, metrics, learners."""

from __future__ import annotations

import pytest

from tests.models.checking import check

NETWORK = """
import timm
import torchvision
import segmentation_models_pytorch as smp

model = MADE
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in torch.utils.data.DataLoader(load_images()):
    CLEAR
    loss = F.cross_entropy(model(x), y)
    loss.backward()MARK
    opt.step()
"""


@pytest.mark.parametrize(
    "made",
    [
        "torchvision.models.resnet18(weights='DEFAULT')",
        "torchvision.models.vgg16(pretrained=True)",
        "timm.create_model('vit_tiny', pretrained=True, num_classes=3)",
        "smp.Unet('resnet34', classes=2)",
    ],
)
def test_network_of_a_library_has_parameters_that_a_loop_trains(made: str) -> None:
    check(NETWORK.replace("MADE", made).replace("CLEAR", "pass").replace("MARK", "  # GS501"))
    check(NETWORK.replace("MADE", made).replace("CLEAR", "opt.zero_grad()").replace("MARK", ""))


def test_head_that_replaces_the_one_of_the_library_is_trained() -> None:
    check("""
        import torchvision

        model = torchvision.models.resnet18(weights=None)
        for parameter in model.parameters():
            parameter.requires_grad = False
        model.fc = nn.Linear(512, 3)
        opt = torch.optim.SGD(model.fc.parameters(), lr=0.1)
        for x, y in torch.utils.data.DataLoader(load_images()):
            opt.zero_grad()
            F.cross_entropy(model(x), y).backward()
            opt.step()
    """)


def test_what_a_library_writes_in_place_is_its_own_business() -> None:
    report = check("""
        import torchvision

        model = torchvision.models.resnet18()
        model(torch.randn(2, 3, 8, 8)).sum().backward()
    """)
    assert report.findings == ()


GYM = """
import LIBRARY as gym

q = nn.Linear(4, 2)
opt = torch.optim.Adam(q.parameters())
envs = gym.vector.SyncVectorEnv([lambda: gym.make("CartPole-v1")])
obs, _ = envs.reset(seed=1)
for step in range(10):
    obs, reward, done, truncated, info = envs.step(q(torch.as_tensor(obs)).argmax(1).numpy())
    loss = F.mse_loss(torch.as_tensor(reward), q(torch.as_tensor(obs)).max(1)[0])
    CLEAR
    loss.backward()MARK
    opt.step()
"""


@pytest.mark.parametrize("library", ["gym", "gymnasium"])
def test_environment_brings_no_graph(library: str) -> None:
    program = GYM.replace("LIBRARY", library)
    check(program.replace("CLEAR", "pass").replace("MARK", "  # GS501"))
    check(program.replace("CLEAR", "opt.zero_grad()").replace("MARK", ""))


def test_rearranged_tensor_shares_its_memory() -> None:
    check("""
        from einops import rearrange

        net = nn.Linear(4, 4)
        out = torch.sigmoid(net(torch.randn(2, 4)))
        flat = rearrange(out, "b c -> (b c)")
        flat += 1  # GS101
        flat.sum().backward()
    """)


HEADS = """
        from einops import rearrange

        net = nn.Linear(6, 18)
        parts = net(torch.randn(3, 5, 6)).chunk(3, dim=-1)
        q, k, v = map(lambda t: rearrange(t, "b n (h d) -> b h n d", h=2), parts)
"""


def test_heads_that_are_split_off_parts_are_views_of_them() -> None:
    check(HEADS + "        q *= 0.5  # GS103\n        (q @ k.transpose(-1, -2) @ v).sum().backward()\n")
    check(HEADS + "        q = q * 0.5\n        (q @ k.transpose(-1, -2) @ v).sum().backward()\n")


def test_heads_are_copied_by_a_product_and_by_a_merge() -> None:
    check(
        HEADS
        + """
        k = k * 2
        weights = torch.einsum("b h i d, b h j d -> b h i j", q, k)
        k[..., 0] = 0
        weights.sum().backward()
        """
    )
    check("""
        from einops import rearrange

        x = nn.Linear(4, 4)(torch.randn(3, 5, 4))
        swapped = rearrange(x, "b n d -> b (d n)").pow(2)
        x += 1
        swapped.sum().backward()
    """)
    check("""
        from einops import rearrange

        x = nn.Linear(4, 4)(torch.randn(3, 5, 4))
        merged = rearrange(x, "b n d -> b (n d)").pow(2)
        x += 1  # GS101
        merged.sum().backward()
    """)


def test_what_is_repeated_along_a_new_axis_is_a_view_and_a_merge_is_a_copy() -> None:
    check("""
        from einops import repeat

        token = nn.Parameter(torch.randn(1, 1, 4))
        tokens = repeat(token, "() n d -> b n d", b=3)
        tokens += 1  # GS102
        tokens.sum().backward()
    """)
    check("""
        from einops import repeat

        x = nn.Linear(4, 4)(torch.randn(3, 5, 4))
        twice = repeat(x, "b n d -> (b r) n d", r=2).pow(2)
        x += 1
        twice.sum().backward()
    """)


def test_layers_of_einops_stand_in_a_sequential() -> None:
    check("""
        from einops.layers.torch import Rearrange

        net = nn.Sequential(nn.Linear(4, 4), Rearrange("b c -> c b"))
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for step in range(10):
            net(torch.randn(2, 4)).sum().backward()  # GS501
            opt.step()
    """)


def test_metric_keeps_no_graph() -> None:
    check("""
        import torchmetrics

        net = nn.Linear(4, 3)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        accuracy = torchmetrics.Accuracy(task="multiclass", num_classes=3)
        history = []
        for step in range(10):
            opt.zero_grad()
            out = net(torch.randn(2, 4))
            loss = F.cross_entropy(out, torch.tensor([0, 1]))
            history.append(accuracy(out, torch.tensor([0, 1])))
            loss.backward()
            opt.step()
        print(accuracy.compute())
    """)


def test_messages_are_passed_along_the_graph() -> None:
    program = """
        from torch_geometric.nn import MessagePassing

        class Conv(MessagePassing):
            def __init__(self):
                super().__init__(aggr="add")
                self.lin = nn.Linear(4, 4)

            def forward(self, x, edge_index):
                return self.propagate(edge_index, x=self.lin(x))

            def message(self, x_j):
                out = x_j.sigmoid()
                out *= 2  # GS101
                return out

        Conv()(torch.randn(3, 4), torch.tensor([[0, 1], [1, 2]])).sum().backward()
    """
    check(program)
    check(program.replace("out *= 2  # GS101", "out = out * 2"))


def test_callback_of_fastai_that_cuts_the_loss_is_told() -> None:
    check("""
        from fastai.vision.all import Callback

        class Clip(Callback):
            def before_step(self):
                nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)

        class Cut(Callback):
            def after_loss(self):
                self.learn.loss_grad = self.learn.loss_grad.detach()  # GS203
    """)


def test_train_method_of_an_algorithm_is_run() -> None:
    program = """
        from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm

        class Own(OnPolicyAlgorithm):
            def train(self):
                for data in self.rollout_buffer.get(self.batch_size):
                    values, log_prob, entropy = self.policy.evaluate_actions(data.observations, data.actions)
                    loss = -(data.advantages * torch.exp(log_prob - data.old_log_prob)).mean()
                    loss = loss + F.mse_loss(data.returns, values)
                    CLEAR
                    loss.backward()MARK
                    self.policy.optimizer.step()
    """
    check(program.replace("CLEAR", "pass").replace("MARK", "  # GS501"))
    check(program.replace("CLEAR", "self.policy.optimizer.zero_grad()").replace("MARK", ""))


def test_name_that_a_model_does_not_have_is_unknown_and_no_error() -> None:
    check("""
        import lightning as L
        from lightning.pytorch.strategies import SomeStrategy

        strategy = SomeStrategy(L.whatever(3), L.pytorch.plugins.Deep.thing)
        net = nn.Linear(2, 1)
        net(torch.randn(3, 2)).sum().backward()
    """)


REWARDED = """
    from transformers import AutoModelForSequenceClassification

    def rewards(model, ids):
        trunk = getattr(model, model.base_model_prefix)
        output = trunk(input_ids=ids, output_hidden_states=True)
        return model.score(output.hidden_states[-1]).squeeze(-1)

    def main(args, loader):
        model = AutoModelForSequenceClassification.from_pretrained(args.name, num_labels=1)
        opt = torch.optim.AdamW(MEMBERS, lr=args.lr)
        for batch in loader:
            reward = rewards(model, batch["ids"])CUT
            loss = -F.logsigmoid(reward[:4] - reward[4:]).mean()
            CLEAR
            loss.backward()CLAIM
            opt.step()
"""


def test_parts_of_a_network_of_a_library_that_its_model_leaves_out_are_trained_with_it() -> None:
    def program(
        members: str = "model.parameters()", cut: str = "", clear: str = "opt.zero_grad()", claim: str = ""
    ) -> str:
        text = REWARDED.replace("MEMBERS", members).replace("CUT", cut)
        return text.replace("CLEAR", clear).replace("CLAIM", claim)

    check(program())
    check(program(clear="pass", claim="  # GS501"))
    check(program(cut=".detach()  # GS203"))
    check(program(members="[*model.parameters(), *model.score.parameters()]"))


OFF_POLICY = """
    from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
    from stable_baselines3.common.utils import polyak_update

    class Own(OffPolicyAlgorithm):
        def _setup_model(self):
            super()._setup_model()
            self.actor = self.policy.actor
            self.critic = self.policy.critic
            self.critic_target = self.policy.critic_target

        def train(self, gradient_steps, batch_size=64):
            self._update_learning_rate([self.actor.optimizer, self.critic.optimizer])
            losses = []
            for _ in range(gradient_steps):
                data = self.replay_buffer.sample(batch_size)
                actions, log_prob = self.actor.action_log_prob(data.observations)
                with torch.no_grad():
                    target = data.rewards + self.critic_target(data.next_observations, data.actions)
                value_loss = F.mse_loss(self.critic(data.observations, data.actions), target)
                losses.append(value_loss.item())
                CLEAR_CRITIC
                value_loss.backward()CRITIC
                self.critic.optimizer.step()
                loss = (log_prob - self.critic(data.observations, actions)).mean()
                CLEAR_ACTOR
                loss.backward()ACTOR
                self.actor.optimizer.step()
                polyak_update(self.critic.parameters(), self.critic_target.parameters(), 0.005)
"""


@pytest.mark.parametrize(
    ("critic", "actor", "claims"),
    [
        ("self.critic.optimizer.zero_grad()", "self.actor.optimizer.zero_grad()", ("", "")),
        ("pass", "self.actor.optimizer.zero_grad()", ("  # GS501", "")),
        ("self.critic.optimizer.zero_grad()", "pass", ("", "  # GS501")),
    ],
)
def test_networks_with_optimizers_of_their_own_are_told_apart(
    critic: str, actor: str, claims: tuple[str, str]
) -> None:
    text = OFF_POLICY.replace("CLEAR_CRITIC", critic).replace("CLEAR_ACTOR", actor)
    check(text.replace("CRITIC", claims[0]).replace("ACTOR", claims[1]))


def test_the_optimizer_of_a_policy_leaves_the_part_that_follows_another() -> None:
    check("""
        import torch as th
        from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
        from stable_baselines3.common.utils import polyak_update

        class Quantiles(OffPolicyAlgorithm):
            def __init__(self, policy, env):
                super().__init__(policy, env)
                self._setup_model()

            def _setup_model(self):
                super()._setup_model()
                self.quantile_net = self.policy.quantile_net
                self.quantile_net_target = self.policy.quantile_net_target

            def _on_step(self):
                polyak_update(self.quantile_net.parameters(), self.quantile_net_target.parameters(), self.tau)

            def train(self, gradient_steps, batch_size=100):
                self.policy.set_training_mode(True)
                self._update_learning_rate(self.policy.optimizer)
                for _ in range(gradient_steps):
                    data = self.replay_buffer.sample(batch_size)
                    with th.no_grad():
                        following = self.quantile_net_target(data.next_observations)
                        target = data.rewards + (1 - data.dones) * self.gamma * following
                    current = self.quantile_net(data.observations)
                    loss = (current - target).abs().mean()
                    self.policy.optimizer.zero_grad()
                    loss.backward()
                    self.policy.optimizer.step()
    """)
