"""A `forward` in another file that raises on the way that was taken: its result depends on its parameters all the same."""

from __future__ import annotations

import pytest

from tests.interp.test_importing import check

UNDECIDED = """
    import torch
    from torch import nn

    class Net(nn.Module):
        def __init__(self, args):
            super().__init__()
            self.args = args
            self.layer = nn.Linear(3, 3)

        def forward(self, x):
            if self.args.strict:
                raise ValueError("strict")
            return self.layer(x).log_softmax(-1)
"""
COUNTED = """
    import torch
    from torch import nn

    class Net(nn.Module):
        def __init__(self, args):
            super().__init__()
            self.args = args
            for number, size in enumerate(args.sizes):
                self.add_module(str(number), nn.Linear(size, 3))

        def layer(self, number):
            if number >= len(self._modules):
                raise IndexError(number)
            return list(self._modules.values())[number]

        def forward(self, x):
            for number, _ in enumerate(self.args.sizes[:-1]):
                x = self.layer(number)(x)
            return self.layer(number + 1)(x).log_softmax(-1)
"""
SCRIPT = """
    import torch
    import torch.nn.functional as F
    from model import Net

    def evaluate(net, loader):
        net.eval()
        with torch.no_grad():
            for x, y in loader:
                F.nll_loss(net(x), y).item()

    def train(args, loader):
        net = Net(args)
        optimizer = torch.optim.Adam(net.parameters())
        for epoch in range(args.epochs):
            net.train()
            for x, y in loader:
                CLEAR
                loss = LOSS
                loss.backward()
                optimizer.step()
            evaluate(net, loader)
"""


@pytest.mark.parametrize("model", [UNDECIDED, COUNTED])
@pytest.mark.parametrize(
    ("clear", "loss", "expected"),
    [
        ("pass", "F.nll_loss(net(x), y)", [("GS501", "main.py", 20)]),
        ("optimizer.zero_grad()", "F.nll_loss(net(x).detach(), y)", [("GS203", "main.py", 19)]),
        ("optimizer.zero_grad()", "F.nll_loss(net(x), y)", []),
        ("optimizer.zero_grad()", "F.nll_loss(net(x), y.detach())", []),
    ],
)
def test_training_goes_on_where_a_forward_raised(
    model: str, clear: str, loss: str, expected: list[tuple[str, str, int]]
) -> None:
    check(SCRIPT.replace("CLEAR", clear).replace("LOSS", loss), expected, model=model)


def test_a_forward_that_only_raises_is_no_result() -> None:
    check(
        """
        import torch
        from model import Base

        net = Base()
        optimizer = torch.optim.Adam(net.parameters())
        for step in range(3):
            net(torch.randn(2, 3)).sum().backward()
            optimizer.step()
        """,
        [],
        model="""
        from torch import nn

        class Base(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(3, 3)

            def forward(self, x):
                raise TypeError("abstract")
        """,
    )
