"""higher, torchdiffeq, skorch: functions of the program that a library calls, and steps that are part of a graph."""

from __future__ import annotations

from tests.models.checking import check

META = """
import higher

def meta(tasks):
    model = nn.Linear(4, 1)
    outer = torch.optim.Adam(model.parameters())
    inner = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in tasks:
        CLEAR
        with higher.innerloop_ctx(model, innerOPTIONS) as (fast, steps):
            for _ in range(3):
                steps.step(F.mse_loss(fast(x), y))
            F.mse_loss(fast(x), y).backward()MARK
        outer.step()STEP
"""


def meta(clear: str = "outer.zero_grad()", options: str = "", mark: str = "", step: str = "") -> str:
    text = META.replace("CLEAR", clear).replace("OPTIONS", options)
    return text.replace("MARK", mark).replace("STEP", step)


def test_an_inner_loop_from_the_weights_themselves_trains_them() -> None:
    check(meta(options=", copy_initial_weights=False"))
    check(meta(clear="pass", options=", copy_initial_weights=False", mark="  # GS501"))


def test_an_inner_loop_from_copies_leaves_the_outer_optimizer_without_gradients() -> None:
    check(meta(step="  # GS503"))


FLOW = """
from torchdiffeq import odeint

class Field(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(2, 2)

    def forward(self, t, y):
        return RATE

field = Field()
optimizer = torch.optim.Adam(field.parameters())
for _ in range(9):
    start, goal = torch.randn(4, 2), torch.randn(4, 2)
    CLEAR
    F.mse_loss(odeint(field, start, torch.linspace(0, 1, 5))[-1], goal).backward()MARK
    optimizer.step()
"""


def flow(rate: str = "self.net(y)", clear: str = "optimizer.zero_grad()", mark: str = "") -> str:
    return FLOW.replace("RATE", rate).replace("CLEAR", clear).replace("MARK", mark)


def test_what_a_solver_calls_is_on_the_way_of_the_loss() -> None:
    check(flow())
    check(flow(clear="pass", mark="  # GS501"))
    check(flow("self.net(y).detach()  # GS203"))
    check(flow("torch.sigmoid(self.net(y)).mul_(2)  # GS101"))


NET = """
from skorch import NeuralNet

class Own(NeuralNet):
    def get_loss(self, y_pred, y_true, *args, **kwargs):
        loss = super().get_loss(y_pred, y_true, *args, **kwargs)
        return RETURNED
"""


def test_the_loss_of_a_net_of_skorch_is_differentiated() -> None:
    check(NET.replace("RETURNED", "loss + 0.1 * sum(p.abs().sum() for p in self.module_.parameters())"))
    check(NET.replace("RETURNED", "loss.detach()  # GS203"))
    check(NET.replace("RETURNED", "loss.item()  # GS202"))


def test_a_step_of_ones_own_in_a_net_of_skorch_clears_by_itself() -> None:
    step = """
        from skorch import NeuralNet

        class Own(NeuralNet):
            def train_step(self, batch, **options):
                CLEAR
                step = self.train_step_single(batch, **options)MARK
                self.optimizer_.step()
                return step
    """
    check(step.replace("CLEAR", "self.optimizer_.zero_grad()").replace("MARK", ""))
    check(step.replace("CLEAR", "pass").replace("MARK", "  # GS501"))
