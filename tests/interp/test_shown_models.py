"""Models that a script only shows, and modules that wrap the call of nn.Module: both are analysed as any other model."""

from tests.interp.checking import check

WRAPPED = """
import torch
from functools import partial
from torch import nn

class Base(nn.Module):
    recomputes = False

    def __call__(self, *args, **kwargs):
        if self.recomputes and self.training:
            return self.recompute(partial(super().__call__, **kwargs), *args)
        return super().__call__(*args, **kwargs)

class Block(Base):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        return torch.sigmoid(self.fc(x))

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block() for _ in range(3)])
        self.head = nn.Linear(4, 4)

    def forward(self, x):
"""


def test_call_of_nn_module_runs_the_forward() -> None:
    check(
        WRAPPED
        + """
        for block in self.blocks:
            x = block(x)
            x *= 2  # GS101
        return self.head(x)
"""
    )


def test_value_is_cut_behind_such_a_call() -> None:
    check(
        WRAPPED
        + """
        for block in self.blocks:
            x = torch.tensor(block(x))  # GS201
        return self.head(x)
"""
    )


def test_result_of_such_a_call_may_be_copied_and_written() -> None:
    check(
        WRAPPED
        + """
        for block in self.blocks:
            x = block(x).clone()
            x *= 2
        return self.head(x)
"""
    )


def test_sum_of_such_results_may_be_written() -> None:
    check(
        WRAPPED
        + """
        for block in self.blocks:
            x = x + block(x)
            x += 1
        return x
"""
    )


SHOWN = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        h = torch.sigmoid(self.first(x))
        h += 1{claim}
        return self.second(h)

if __name__ == "__main__":
"""


def test_model_is_analysed_beside_a_script_that_prints_a_shape() -> None:
    check(
        SHOWN.replace("{claim}", "  # GS101")
        + """
    print(Net()(torch.randn(2, 4)).shape)
"""
    )


def test_model_is_analysed_beside_a_function_that_tries_it() -> None:
    check(
        SHOWN.replace("{claim}", "  # GS101").replace(
            "if __name__",
            "def test():\n    y = Net()(torch.randn(2, 4))\n    assert y.shape == (2, 4)\n\nif __name__",
        )
        + """
    test()
"""
    )


def test_script_that_shows_a_model_with_grad_mode_off_needs_no_graph() -> None:
    check(
        SHOWN.replace("{claim}", "")
        + """
    with torch.no_grad():
        print(Net()(torch.randn(2, 4)).shape)
"""
    )


def test_script_that_uses_a_model_in_eval_mode_needs_no_graph() -> None:
    check(
        SHOWN.replace("{claim}", "")
        + """
    net = Net()
    net.eval()
    print(net(torch.randn(2, 4)).argmax(1))
"""
    )


def test_script_in_inference_mode_needs_no_graph() -> None:
    check(
        SHOWN.replace("{claim}", "")
        + """
    net = Net()
    with torch.inference_mode():
        for _ in range(3):
            print(net(torch.randn(2, 4)))
"""
    )
