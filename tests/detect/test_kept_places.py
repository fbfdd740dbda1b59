"""What is kept in collections, written by row numbers, or unpacked: each hazard on its line, and the right program beside it silent."""

from __future__ import annotations

import pytest

from tests.detect.test_reported_families import check

TRAINING = """
import copy
net = nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.7)
best, history = {{"loss": 9e9, "model": None}}, []
for x in torch.randn(4, 8, 3):
    optimizer.zero_grad()
    loss = (net(x) - 1).pow(2).mean()
    if loss.item() < best["loss"]:
        {kept}
    loss.backward()
    optimizer.step()
    {collected}
{read}
"""


@pytest.mark.parametrize("model", ["net", "copy.deepcopy(net)"])
@pytest.mark.parametrize(
    ("kept", "read"),
    [
        ('best = {{"loss": loss.item(), "model": {}}}', 'print(best["model"].weight)'),
        ('best["model"] = {}', 'print(best["model"].weight)'),
    ],
)
def test_a_best_model_in_a_dict_is_told_where_it_is_no_copy(kept: str, read: str, model: str) -> None:
    text = TRAINING.format(kept=kept.format(model), collected="pass", read=read)
    check(text, *([("GS514", "best")] if model == "net" else []))


@pytest.mark.parametrize("model", ["net", "copy.deepcopy(net)"])
@pytest.mark.parametrize("entry", ["{}", "(loss.item(), {})"])
def test_a_list_of_one_model_again_and_again_is_told(entry: str, model: str) -> None:
    text = TRAINING.format(
        kept="pass", collected=f"history.append({entry.format(model)})", read="print(history[0], history[1])"
    )
    check(text, *([("GS514", "history.append")] if model == "net" else []))


def test_models_that_are_only_handed_on_are_not_told() -> None:
    check(
        TRAINING.format(
            kept='best = {"loss": loss.item(), "model": net}\n        print(best["model"])',
            collected="history.append(loss.item())",
            read="print(history)",
        )
    )
    check(
        TRAINING.format(
            kept="pass", collected="history.append((loss.item(), net))", read="print(history[-1][1].weight)"
        )
    )
    check(
        """
models = []
for fold in range(3):
    net = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x in torch.randn(2, 4, 3):
        optimizer.zero_grad()
        net(x).pow(2).mean().backward()
        optimizer.step()
    models.append(net)
print([m.weight for m in models])
"""
    )


ROWS = """
net = nn.Linear(2, 2)
rows = {rows}
values = net(torch.randn(4, 2))
total = torch.zeros({size}, 2)
{write}
total.pow(2).sum().backward()
"""


@pytest.mark.parametrize(
    "write",
    [
        "total.index_put_((rows,), values)",
        "total = total.scatter(0, rows[:, None].expand(-1, 2), values)",
        "total[rows] = values",
    ],
)
def test_values_that_are_set_by_repeated_row_numbers_are_told(write: str) -> None:
    repeated = ROWS.format(rows="torch.tensor([0, 2, 2, 1])", size=3, write=write)
    check(repeated, ("GS107", write))
    check(ROWS.format(rows="torch.tensor([0, 2, 3, 1])", size=4, write=write))


def test_more_row_numbers_than_rows_are_told_of_scatter() -> None:
    write = "total = total.scatter(0, rows[:, None].expand(-1, 2), values)"
    check(ROWS.format(rows="(torch.randn(4) > 0).long()", size=2, write=write), ("GS107", write))
    check(ROWS.format(rows="torch.randperm(4)", size=4, write=write))


@pytest.mark.parametrize(
    "write",
    ["total.index_put_((rows,), values, accumulate=True)", "total = total.index_add(0, rows, values)"],
)
def test_values_that_are_added_are_not_told(write: str) -> None:
    check(ROWS.format(rows="torch.tensor([0, 2, 2, 1])", size=3, write=write))


def test_a_list_of_row_numbers_is_looked_at_too() -> None:
    write = "total[rows] -= values"
    check(ROWS.format(rows="[0, 2, 2, 1]", size=3, write=write), ("GS107", write))
    check(ROWS.format(rows="[0, 2, 3, 1]", size=4, write=write))
    check(ROWS.format(rows="[0, 2, 2, 1]", size=3, write="total[0, 0] = values.sum()"))


UNPACKED = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(3, 3), nn.Linear(3, 3)])
        self.act = nn.LeakyReLU(0.1, {inplace})

    def forward(self, x):
        logits = []
        for layer in self.layers:
            x = layer(x)
            logits.append(x)
            x = self.act(x)
        return logits

low, high = Net()(torch.randn(4, 3))
(low.pow(2).mean() + high.pow(2).mean()).backward()
"""


def test_a_list_is_read_where_it_is_unpacked() -> None:
    check(UNPACKED.format(inplace=True), ("GS107", "x = self.act(x)"))
    check(UNPACKED.format(inplace=False))


SHIFTED = """
from types import SimpleNamespace
net = nn.Linear(3, 3)
q = SimpleNamespace(loc=net(torch.randn(4, 3)))
sample = {sample}
sample.add_(torch.randn(4, 3))
kl = q.loc.pow(2).sum()
(sample.sum() + kl).backward()
"""


def test_the_name_of_a_place_may_be_read_after_the_place() -> None:
    check(SHIFTED.format(sample="q.loc"), ("GS107", "sample.add_"))
    check(SHIFTED.format(sample="q.loc * 1"))


ENERGY = """
net = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1))
bias = nn.Parameter(torch.zeros(()))
terms = [net(torch.randn(1, 1)).squeeze() for _ in range(3)]
energy = {energy} + bias
energy.backward()
"""


def test_terms_that_are_copied_into_a_loss_are_told_without_a_step() -> None:
    check(ENERGY.format(energy="torch.tensor(terms).sum()"), ("GS201", "energy ="))
    check(ENERGY.format(energy="torch.stack(terms).sum()"))
    check(ENERGY.format(energy="torch.stack(terms).sum() - torch.tensor(terms).mean()"))
