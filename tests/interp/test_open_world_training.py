"""Training code whose model, optimizer and data come from elsewhere: the program's own actions are the evidence."""

from __future__ import annotations

import pytest

from tests.interp.checking import check

HEADS = [
    "def train(model, loader, optimizer, criterion):",
    "def train(model: nn.Module, loader, optimizer: torch.optim.Optimizer, criterion: nn.Module):",
    "def fit_one_epoch(net, train_loader, opt, loss_fn, model=None):",
]
NAMES = [("model", "loader", "optimizer", "criterion")] * 2 + [("net", "train_loader", "opt", "loss_fn")]


def training(body: str, which: int = 0) -> str:
    model, loader, optimizer, criterion = NAMES[which]
    lines = (
        body.format(model=model, optimizer=optimizer, criterion=criterion, loader=loader)
        .strip("\n")
        .split("\n")
    )
    return "\n".join([HEADS[which], *("    " + line for line in lines)]) + "\n"


@pytest.mark.parametrize("which", range(3))
def test_a_loop_that_never_clears_is_reported(which: int) -> None:
    check(
        training(
            """
for x, y in {loader}:
    loss = {criterion}({model}(x), y)
    loss.backward()  # GS501
    {optimizer}.step()
""",
            which,
        )
    )


@pytest.mark.parametrize("which", range(3))
@pytest.mark.parametrize("clear", ["{optimizer}.zero_grad()", "{model}.zero_grad(set_to_none=True)"])
def test_a_loop_that_clears_is_fine(which: int, clear: str) -> None:
    check(
        training(
            f"""
for x, y in {{loader}}:
    {clear}
    loss = {{criterion}}({{model}}(x), y)
    loss.backward()
    {{optimizer}}.step()
""",
            which,
        )
    )


def test_clearing_by_code_that_is_not_seen_is_allowed_for() -> None:
    check(
        training("""
for x, y in {loader}:
    prepare_step({optimizer})
    loss = {criterion}({model}(x), y)
    loss.backward()
    {optimizer}.step()
""")
    )


def test_a_total_of_losses_is_reported_and_a_total_of_numbers_is_not() -> None:
    check(
        training("""
total, numbers, losses = 0.0, 0.0, []
for x, y in {loader}:
    {optimizer}.zero_grad()
    loss = {criterion}({model}(x), y)
    loss.backward()
    {optimizer}.step()
    total += loss  # GS404
    numbers += loss.item()
    losses.append(loss)  # GS404
return total, numbers, losses
""")
    )


def test_clearing_between_backward_and_step_is_reported() -> None:
    check(
        training("""
for x, y in {loader}:
    loss = {criterion}({model}(x), y)
    loss.backward()
    {optimizer}.zero_grad()  # GS502
    {optimizer}.step()
""")
    )


def test_a_cut_loss_is_reported() -> None:
    check(
        training("""
for x, y in {loader}:
    {optimizer}.zero_grad()
    loss = {criterion}({model}(x).detach(), y)  # GS203
    loss.backward()
    {optimizer}.step()
""")
    )


def test_a_forward_without_grad_mode_is_reported() -> None:
    check(
        training("""
for x, y in {loader}:
    {optimizer}.zero_grad()
    with torch.no_grad():  # GS204
        out = {model}(x)
    loss = F.cross_entropy(out, y)
    loss.backward()
    {optimizer}.step()
""")
    )


def test_a_write_to_what_an_operator_saved_is_reported() -> None:
    check(
        training("""
for x, y in {loader}:
    {optimizer}.zero_grad()
    out = torch.sigmoid({model}(x))
    out *= 2  # GS101
    loss = {criterion}(out, y)
    loss.backward()
    {optimizer}.step()
""")
    )


def test_a_write_to_the_result_of_an_unknown_module_is_not_judged() -> None:
    check(
        training("""
for x, y in {loader}:
    {optimizer}.zero_grad()
    out = {model}(x)
    out *= 2
    loss = {criterion}(out, y)
    loss.backward()
    {optimizer}.step()
""")
    )


TRAINER = """
class Trainer:
    def __init__(self, model, optimizer=None):
        self.model = model
        {making}
    {elsewhere}
    def fit(self, loader):
        for x, y in loader:
            {clear}
            loss = F.mse_loss(self.model(x), y)
            loss.backward(){claim}
            self.optimizer.step()
"""


@pytest.mark.parametrize(
    ("making", "elsewhere"),
    [
        ("self.optimizer = torch.optim.Adam(self.model.parameters())", "pass"),
        ("self.optimizer = optimizer", "pass"),
        ("self.optimizer = None", "def setup(self): self.optimizer = make_optimizer(self.model)"),
        ("self.setup()", "def setup(self): self.optimizer = torch.optim.Adam(self.model.parameters())"),
    ],
)
def test_a_trainer_that_nobody_makes_is_executed(making: str, elsewhere: str) -> None:
    for clear, claim in (
        ("pass", "  # GS501"),
        ("self.optimizer.zero_grad()", ""),
        ("self.model.zero_grad()", ""),
    ):
        check(TRAINER.format(making=making, elsewhere=elsewhere, clear=clear, claim=claim))


@pytest.mark.parametrize(
    "made",
    [
        "timm.create_model('resnet18')",
        "torchvision.models.resnet18()",
        "torch.hub.load('pytorch/vision', 'resnet18')",
        "hydra.utils.instantiate(config.model)",
        "REGISTRY[name](config)",
        "build_model(config)",
        "getattr(models, name)()",
    ],
)
def test_a_model_from_elsewhere_is_a_module(made: str) -> None:
    program = """
        import timm, torchvision, hydra
        from here import REGISTRY, build_model, config, name, models, loader
        model = {made}
        optimizer = torch.optim.AdamW(model.parameters())
        for x, y in loader:
            {clear}
            loss = F.cross_entropy(model(x), y)
            loss.backward(){claim}
            optimizer.step()
    """
    check(program.format(made=made, clear="pass", claim="  # GS501"))
    check(program.format(made=made, clear="optimizer.zero_grad()", claim=""))


@pytest.mark.parametrize(
    "loss", ["outputs.loss", "outputs['loss']", "outputs[0]", "model(x)", "model.loss(x)"]
)
def test_what_a_module_returns_brings_its_graph_along(loss: str) -> None:
    program = f"""
        def train(model, loader, optimizer):
            model.train()
            total = 0
            for x in loader:
                outputs = model(x)
                loss = {loss}
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
                total += loss  # GS404
    """
    check(program)
    check(program.replace("total += loss  # GS404", "total += loss.detach()"))


@pytest.mark.parametrize("size", ["args.n", "env.observation_space.shape[0]", "config['n']", "int(args.n)"])
def test_a_layer_of_unknown_size_is_a_layer(size: str) -> None:
    program = f"""
        import argparse, gym, yaml
        args = argparse.ArgumentParser().parse_args()
        env = gym.make("CartPole")
        config = yaml.safe_load(open("config.yaml"))
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.size = {size}
                self.layer = nn.Linear(self.size, 1)
                self.drop = nn.Dropout(args.p)
            def forward(self, x):
                return self.drop(self.layer(x))
        net = Net()
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(5):
            net(torch.randn(8, 4)).mean().backward()  # GS501
            opt.step()
    """
    check(program)
    check(
        program.replace(".backward()  # GS501", ".backward()").replace(
            "opt.step()", "opt.step(); opt.zero_grad()"
        )
    )


@pytest.mark.parametrize(
    "wrapped",
    [
        "nn.DataParallel(net)",
        "nn.parallel.DistributedDataParallel(net, device_ids=[0])",
        "torch.compile(net)",
        "torch.jit.script(net)",
        "torch.distributed.fsdp.FullyShardedDataParallel(net)",
    ],
)
def test_a_wrapped_module_is_the_module(wrapped: str) -> None:
    program = f"""
        net = nn.Sequential(nn.Linear(4, 4), nn.Sigmoid())
        net = {wrapped}
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(5):
            net(torch.randn(8, 4)).mean().backward()  # GS501
            opt.step()
    """
    check(program)
    check(
        program.replace(".backward()  # GS501", ".backward()").replace(
            "opt.step()", "opt.step(); opt.zero_grad()"
        )
    )


def test_a_scheduler_of_another_library_leaves_the_optimizer_as_it_is() -> None:
    program = """
        from transformers import get_linear_schedule_with_warmup
        net = nn.Linear(4, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        scheduler = get_linear_schedule_with_warmup(opt, 10, 100)
        for _ in range(5):
            net(torch.randn(8, 4)).mean().backward()  # GS501
            opt.step()
            scheduler.step()
    """
    check(program)
    check(
        program.replace(".backward()  # GS501", ".backward()").replace(
            "opt.step()\n", "opt.step(); opt.zero_grad()\n"
        )
    )


def test_two_networks_have_the_optimizers_of_their_names() -> None:
    program = """
        def train(netG, netD, optimizerG, optimizerD, loader, criterion):
            for real, ones in loader:
                {clear_d}
                lossD = criterion(netD(real), ones) + criterion(netD(netG(real).detach()), ones)
                lossD.backward(){claim_d}
                optimizerD.step()
                {clear_g}
                lossG = criterion(netD(netG(real)), ones)
                lossG.backward()
                optimizerG.step()
    """
    check(program.format(clear_d="netD.zero_grad()", clear_g="netG.zero_grad()", claim_d=""))
    check(program.format(clear_d="optimizerD.zero_grad()", clear_g="optimizerG.zero_grad()", claim_d=""))


def test_a_batch_of_an_unknown_dataset_carries_no_graph() -> None:
    check("""
        import torchvision
        loader = torch.utils.data.DataLoader(torchvision.datasets.MNIST("."))
        net = nn.Linear(4, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for x, y in loader:
            opt.zero_grad()
            loss = F.mse_loss(net(x).detach(), y)  # GS203
            loss.backward()
            opt.step()
    """)


def test_an_environment_that_was_given_a_function_returns_no_graph() -> None:
    program = """
        import gym
        envs = gym.vector.SyncVectorEnv([lambda: 1])
        q = nn.Linear(4, 1)
        opt = torch.optim.SGD(q.parameters(), lr=0.1)
        for step in range(10):
            obs = envs.step(1)
            loss = F.mse_loss(obs.t, q(obs.x))
            loss.backward()  # GS501
            opt.step()
    """
    check(program)
    check(program.replace("loss.backward()  # GS501", "opt.zero_grad(); loss.backward()"))


def test_a_flag_of_a_library_is_not_known_to_be_true() -> None:
    check("""
        from helpers import HAS_APEX, clear
        net = nn.Linear(4, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(5):
            loss = net(torch.randn(8, 4)).mean()
            if HAS_APEX:
                clear(net, opt)
            else:
                loss = loss.detach()  # GS203
            loss.backward()
            opt.step()
            opt.zero_grad()
    """)


def test_frozen_parts_of_an_unknown_model_are_believed() -> None:
    check("""
        def finetune(model, loader):
            for parameter in model.backbone.parameters():
                parameter.requires_grad = False
            optimizer = torch.optim.Adam(model.head.parameters())
            for x, y in loader:
                optimizer.zero_grad()
                loss = F.cross_entropy(model(x), y)
                loss.backward()
                optimizer.step()
    """)


def test_what_is_not_done_as_with_a_module_stays_unknown() -> None:
    check("""
        def run(trainer, data, table):
            for row in data:
                table.step(row)
                trainer.train()
                score = trainer(row)
                score += 1
    """)


def test_the_gradients_of_an_unknown_model_may_have_been_filled_before() -> None:
    check("""
        def norms(model):
            return [parameter.grad.norm() for parameter in model.parameters()]
        def average(model, ema_model, decay):
            for ours, theirs in zip(ema_model.parameters(), model.parameters()):
                ours.mul_(decay).add_(theirs, alpha=1 - decay)
    """)


def test_whoever_calls_a_function_may_ask_it_not_to_clear() -> None:
    check(
        """
def run(model, loader, optimizer, criterion, clear=True):
    for x, y in loader:
        if clear:
            optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()


def train(model, loader, optimizer, criterion, settings):
    for x, y in loader:
        if settings:
            print(x)
        loss = criterion(model(x), y)
        loss.backward()  # GS501
        optimizer.step()
"""
    )
