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
