"""Averages of parameters and statistics that every step makes of themselves, with a graph or without one."""

from __future__ import annotations

import pytest

from tests.interp.checking import check

TRAINING = """
    net = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 2))
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    average = torch.zeros(2, 3)
    shadow = {{name: p.detach().clone() for name, p in net.named_parameters()}}
    for step in range(100):
        opt.zero_grad()
        net(torch.randn(4, 3)).sum().backward()
        opt.step()
        {}
"""


@pytest.mark.parametrize(
    "update",
    [
        "average = 0.9 * average + 0.1 * net[1].weight",
        "average = torch.lerp(average, net[1].weight, 0.1)",
        "average.mul_(0.9).add_(net[1].weight, alpha=0.1)",
        "average.lerp_(net[1].weight, 0.1)",
        "shadow['1.weight'] = 0.9 * shadow['1.weight'] + 0.1 * net[1].weight",
    ],
)
def test_an_average_that_is_recorded_is_reported(update: str) -> None:
    check(TRAINING.format(update + "  # GS404"))


@pytest.mark.parametrize(
    "update",
    [
        "average = 0.9 * average + 0.1 * net[1].weight.detach()",
        "average = (0.9 * average + 0.1 * net[1].weight).detach()",
        "average.mul_(0.9).add_(net[1].weight.data, alpha=0.1)",
        "average = 0.1 * net[1].weight",
        "shadow['1.weight'] = 0.9 * shadow['1.weight'].detach() + 0.1 * net[1].weight",
    ],
)
def test_an_average_that_lets_go_of_its_graph_is_fine(update: str) -> None:
    check(TRAINING.format(update))


def test_an_average_under_no_grad_is_fine() -> None:
    check(
        """
        net = nn.Linear(3, 2)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        shadow = {name: p.detach().clone() for name, p in net.named_parameters()}
        for step in range(100):
            opt.zero_grad()
            net(torch.randn(4, 3)).sum().backward()
            opt.step()
            with torch.no_grad():
                for name, p in net.named_parameters():
                    shadow[name] = 0.9 * shadow[name] + 0.1 * p
        """
    )


def test_a_class_that_averages_an_unknown_model_is_reported() -> None:
    check(
        """
        class Average:
            def __init__(self, model, decay=0.999):
                self.decay = decay
                self.shadow = {n: p.clone().detach() for n, p in model.named_parameters()}
            def update(self, model):
                for n, p in model.named_parameters():
                    self.shadow[n] = self.decay * self.shadow[n] + (1 - self.decay) * p  # GS404

        def train(model, loader, optimizer):
            average = Average(model)
            for x, y in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(x), y).backward()
                optimizer.step()
                average.update(model)
        """
    )


STATISTICS = """
    class Centre(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("mean", torch.zeros(3))

        def forward(self, x):
            mean = x.mean(0)
            {}
            return x - mean

    first, centre = nn.Linear(3, 3), Centre()
    opt = torch.optim.SGD(first.parameters(), lr=0.1)
    for step in range(100):
        opt.zero_grad()
        centre(first(torch.randn(4, 3))).square().sum().backward()
        opt.step()
"""


def test_statistics_that_are_recorded_are_reported() -> None:
    check(STATISTICS.format("self.mean = 0.9 * self.mean + 0.1 * mean  # GS404"))
    check(STATISTICS.format("self.mean = 0.9 * self.mean + 0.1 * mean.detach()"))


def test_a_value_that_the_loss_is_made_of_is_no_average() -> None:
    check(
        """
        net = nn.Linear(3, 3)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for step in range(100):
            state = torch.zeros(3)
            for turn in range(5):
                state = 0.9 * state + 0.1 * net(torch.randn(3))
            opt.zero_grad()
            state.square().sum().backward()
            opt.step()
        """
    )


def test_a_sum_over_all_steps_that_is_differentiated_in_the_end_is_no_average() -> None:
    check(
        """
        net, other = nn.Linear(3, 3), torch.ones(3, requires_grad=True)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        far = torch.zeros(3)
        for step in range(100):
            opt.zero_grad()
            net(torch.randn(3)).square().sum().backward()
            opt.step()
            far = 0.9 * far + other
        far.square().sum().backward()
        """
    )


def test_a_record_of_the_loop_that_trains_is_reported_beside_one_that_validates() -> None:
    check(
        """
        from collections import defaultdict

        net = nn.Linear(4, 1)
        opt = torch.optim.Adam(net.parameters())
        for epoch in range(3):
            for split in ["train", "valid"]:
                tracker = defaultdict(torch.Tensor)
                for x in torch.randn(10, 4, 4):
                    loss = net(x).square().mean()
                    if split == "train":
                        opt.zero_grad()
                        loss.backward()
                        opt.step()
                    tracker["loss"] = torch.cat((tracker["loss"], loss.view(1)))  # GS404
                print(tracker["loss"].mean())
    """
    )
