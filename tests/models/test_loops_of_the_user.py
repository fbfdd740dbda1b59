"""Accelerate, DeepSpeed, Ignite: the user writes the loop, or the function for a batch."""

from __future__ import annotations

from tests.models.checking import check

ACCELERATE = """
from accelerate import Accelerator

accelerator = Accelerator(gradient_accumulation_steps=2)
net = nn.Linear(4, 1)
opt = torch.optim.AdamW(net.parameters())
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(8, 4)))
schedule = torch.optim.lr_scheduler.StepLR(opt, 1)
net, opt, loader, schedule = accelerator.prepare(net, opt, loader, schedule)
total = 0.0
for (x,) in loader:
    with accelerator.accumulate(net):
        loss = net(x).mean()
        accelerator.backward(loss)MARK
        if accelerator.sync_gradients:
            accelerator.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
        schedule.step()
        CLEAR
    total += ADDED
torch.save(accelerator.unwrap_model(net).state_dict(), "net.pt")
"""


def accelerate(clear: str = "opt.zero_grad()", mark: str = "", added: str = "loss.item()") -> str:
    return ACCELERATE.replace("CLEAR", clear).replace("MARK", mark).replace("ADDED", added)


def test_accelerate_loop_is_silent_when_it_is_right() -> None:
    check(accelerate())
    check(accelerate(added="accelerator.gather(loss.detach()).mean()"))


def test_accelerate_loop_that_never_clears_is_told() -> None:
    check(accelerate(clear="pass", mark="  # GS501"))


def test_total_of_losses_under_accelerate_keeps_graphs_alive() -> None:
    check(accelerate(added="loss  # GS404"))


def test_loss_without_a_graph_is_told_where_it_was_cut() -> None:
    check("""
        from accelerate import Accelerator

        accelerator = Accelerator()
        net = accelerator.prepare(nn.Linear(4, 1))
        loss = net(torch.randn(8, 4)).sum().detach()  # GS203
        accelerator.backward(loss)
    """)


def test_engine_of_deepspeed_is_its_module() -> None:
    check("""
        import deepspeed

        net = nn.Linear(4, 1)
        engine, _, _, _ = deepspeed.initialize(model=net, model_parameters=net.parameters())
        for step in range(10):
            out = engine(torch.randn(8, 4)).exp()
            out += 1  # GS101
            engine.backward(out.sum())
            engine.step()
    """)


def test_engine_of_deepspeed_clears_with_its_step() -> None:
    check("""
        import deepspeed

        net = nn.Linear(4, 1)
        engine, optimizer, _, _ = deepspeed.initialize(model=net, model_parameters=net.parameters())
        for step in range(10):
            loss = engine(torch.randn(8, 4)).sum()
            engine.backward(loss)
            engine.step()
    """)


IGNITE = """
from ignite.engine import Engine, Events, create_supervised_trainer

net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)

def update(engine, batch):
    x, y = batch
    CLEAR
    loss = F.mse_loss(net(x), y)
    loss.backward()MARK
    opt.step()
    return loss.item()

trainer = Engine(update)

@trainer.on(Events.ITERATION_COMPLETED)
def tell(engine):
    print(engine.state.output)

trainer.run(torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(8, 4), torch.randn(8, 1))), max_epochs=2)
"""


def test_function_of_an_ignite_engine_is_run_for_every_batch() -> None:
    check(IGNITE.replace("CLEAR", "pass").replace("MARK", "  # GS501"))
    check(IGNITE.replace("CLEAR", "opt.zero_grad()").replace("MARK", ""))


MADE_FOR_OTHERS = """
from ignite.engine import Engine, Events

def create_trainer(model, optimizer, criterion):
    def update(engine, batch):
        model.train()
        loss = criterion(model(batch[0]), batch[1])
        CLEAR
        loss.backward()MARK
        optimizer.step()
        return loss.item()

    trainer = Engine(update)
    HANDLER
    return trainer
"""
CLEARS = "trainer.add_event_handler(Events.ITERATION_STARTED, lambda engine: optimizer.zero_grad())"


def test_engine_that_a_function_makes_is_run_by_its_caller() -> None:
    made = MADE_FOR_OTHERS.replace("HANDLER", "pass")
    check(made.replace("CLEAR", "pass").replace("MARK", "  # GS501"))
    check(made.replace("CLEAR", "optimizer.zero_grad()").replace("MARK", ""))
    check(MADE_FOR_OTHERS.replace("HANDLER", CLEARS).replace("CLEAR", "pass").replace("MARK", ""))


WATCHED = """
from ignite.contrib.handlers import PiecewiseLinear, ProgressBar
from ignite.contrib.handlers.tensorboard_logger import OptimizerParamsHandler, TensorboardLogger
from ignite.engine import Engine, Events
from ignite.handlers import ModelCheckpoint
from ignite.metrics import RunningAverage

net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)

def update(engine, batch):
    x, y = batch
    CLEAR
    loss = F.mse_loss(net(x), y)
    loss.backward()MARK
    opt.step()
    return loss.item()

trainer = Engine(update)
trainer.add_event_handler(Events.ITERATION_STARTED, PiecewiseLinear(opt, "lr", [(0, 0.1), (100, 0.0)]))
RunningAverage(output_transform=lambda x: x).attach(trainer, "loss")
ProgressBar(persist=True).attach(trainer, metric_names=["loss"])
logger = TensorboardLogger("runs")
logger.attach(trainer, log_handler=OptimizerParamsHandler(opt), event_name=Events.ITERATION_STARTED)
trainer.add_event_handler(Events.EPOCH_COMPLETED, ModelCheckpoint("runs", "net"), {"net": net})
trainer.run(torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(8, 4), torch.randn(8, 1))), max_epochs=2)
"""


def test_handlers_and_metrics_of_ignite_clear_nothing() -> None:
    check(WATCHED.replace("CLEAR", "pass").replace("MARK", "  # GS501"))
    check(WATCHED.replace("CLEAR", "opt.zero_grad()").replace("MARK", ""))


def test_trainer_that_ignite_makes_clears_and_steps() -> None:
    check("""
        from ignite.engine import create_supervised_trainer

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(4, 1)

            def forward(self, x):
                out = self.layer(x).tanh()
                out *= 2  # GS101
                return out

        net = Net()
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        data = torch.utils.data.TensorDataset(torch.randn(8, 4), torch.randn(8, 1))
        create_supervised_trainer(net, opt, F.mse_loss).run(torch.utils.data.DataLoader(data), max_epochs=1)
    """)


CONDITIONED = """
from diffusers import {network}

class Projected(nn.Module):
    def __init__(self, network):
        super().__init__()
        self.network, self.project = network, nn.Linear(8, 64)

    def forward(self, x, t, image):
        {use}

network = {network}.from_pretrained("model")
network.requires_grad_(False)
model = Projected(network)
optimizer = torch.optim.AdamW(model.project.parameters(), lr=1e-4)

def train(loader):
    for batch in loader:
        out = model(batch["x"], batch["t"], batch["image"])
        loss = F.mse_loss(out{cut}, batch["noise"])
        {clear}
        loss.backward(){said}
        optimizer.step()
"""
ATTENDED = "return self.network(x, t, self.project(image)).sample"


def test_denoiser_learns_through_what_it_is_conditioned_on() -> None:
    made = CONDITIONED.replace("{network}", "UNet2DConditionModel").replace("{use}", ATTENDED)
    check(made.format(cut="", clear="optimizer.zero_grad()", said=""))
    check(made.format(cut="", clear="pass", said="  # GS501"))
    cut = made.format(cut=".detach()", clear="optimizer.zero_grad()", said="")
    check(cut.replace('batch["noise"])', 'batch["noise"])  # GS203'))
