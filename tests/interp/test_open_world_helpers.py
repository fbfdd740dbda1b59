"""Networks that helpers apply and declarations name, clips of what was cleared, lists that hold the terms of every loss."""

from __future__ import annotations

import pytest

from tests.interp.checking import check

POLICY = """
def log_prob(model, tokens):
    return model(tokens).log_softmax(dim=-1).gather(-1, tokens)

class Preference(nn.Module):
    def __init__(self, model, reference):
        super().__init__()
        self.policy = model
        self.reference = reference

    def forward(self, good, bad):
        with torch.no_grad():
            known = {library}(log_prob(self.reference, good) - log_prob(self.reference, bad))
        learned = (log_prob(self.policy, good) - log_prob(self.policy, bad)){cut}
        return -F.logsigmoid(0.1 * (learned - known)).mean()

class Tuner{base}:
    def __init__(self, preference: Preference, optimizer):
        {init}
        self.preference = preference
        self.optimizer = optimizer

    def fit(self, pairs):
        for good, bad in pairs:
            loss = self.preference(good, bad)
            loss.backward(){mark}
            self.optimizer.step()
            {clear}
"""
CUT = ".detach()  # GS203"


def policy(
    library: str = "",
    cut: str = "",
    mark: str = "",
    clear: str = "self.optimizer.zero_grad()",
    base: str = "",
) -> str:
    init = "super().__init__()" if base else "pass"
    return POLICY.format(library=library, cut=cut, mark=mark, clear=clear, base=base, init=init)


@pytest.mark.parametrize("base", ["", "(nn.Module)"])
def test_network_of_a_declared_class_is_applied_by_a_helper(base: str) -> None:
    check(policy(cut=CUT, base=base))
    check(policy(mark="  # GS501", clear="pass", base=base))
    check(policy(base=base))


def test_function_of_a_library_brings_no_graph_to_what_was_cut_off() -> None:
    check("from helpers import masked_mean\n" + policy("masked_mean", CUT))
    check("from helpers import masked_mean\n" + policy("masked_mean"))


UNDECLARED = """
def train(policy, reference, optimizer, loader):
    for good, bad in loader:
        with torch.no_grad():
            known = reference(bad)
        learned = policy(good){cut}
        loss = (learned - known).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


def test_what_unknown_code_makes_of_data_without_grad_brings_no_graph() -> None:
    check(UNDECLARED.format(cut=""))
    check(UNDECLARED.format(cut=CUT))


def test_leaf_that_is_made_of_it_later_carries_a_graph() -> None:
    check("""
    from attacks import craft

    def train(policy, optimizer, pairs):
        for good, bad in pairs:
            with torch.no_grad():
                moved = craft(good)
            moved.requires_grad_()
            loss = policy(moved).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    """)


ORDER = """
net = nn.Linear(4, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for number in range(10):
    net(torch.randn(3, 4)).sum().backward()
    if (number + 1) % {every} == 0:
        {body}
"""


@pytest.mark.parametrize("every", [1, 2])
def test_clip_of_gradients_that_were_cleared_after_the_step(every: int) -> None:
    clip = "nn.utils.clip_grad_norm_(net.parameters(), 1.0)"
    late = f"optimizer.step()\n        optimizer.zero_grad()\n        {clip}  # GS513"
    right = f"{clip}\n        optimizer.step()\n        optimizer.zero_grad()"
    check(ORDER.format(every=every, body=late))
    check(ORDER.format(every=every, body=right))


KEPT = """
class History:
    def __init__(self):
        self.values = {empty}

    def after_step(self, losses):
        for name, value in losses.items():
            {store}

net = nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
{before}
for x in torch.randn(50, 3, 4):
    optimizer.zero_grad()
    losses = {{"square": net(x).pow(2).mean(), "size": net(x).abs().mean()}}
    sum(losses.values()).backward()
    optimizer.step()
    {within}
    getattr(history, "after_step")(losses)
"""
STORES = [("[]", "self.values.append(value"), ("{}", "self.values.setdefault(name, []).append(value")]


@pytest.mark.parametrize(("empty", "store"), STORES)
def test_terms_of_every_loss_are_kept_by_an_object_that_outlives_the_loop(empty: str, store: str) -> None:
    outlives = {"empty": empty, "before": "history = History()", "within": "pass"}
    check(KEPT.format(store=store + ")  # GS404", **outlives))
    check(KEPT.format(store=store + ".detach())", **outlives))


@pytest.mark.parametrize(("empty", "store"), STORES)
def test_terms_of_one_loss_are_kept_by_an_object_of_one_round(empty: str, store: str) -> None:
    check(KEPT.format(store=store + ")", empty=empty, before="", within="history = History()"))


def test_terms_that_a_list_lets_go_of_before_the_next_round() -> None:
    check(
        KEPT.format(
            store=STORES[0][1] + ")",
            empty="[]",
            before="history = History()",
            within="history.values.clear()",
        )
    )


OF_THE_FILE = """
import lightning as L
class Net(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 1)
    def training_step(self, batch, index):
        return self.layer(batch).mean()
    def configure_optimizers(self):
        return torch.optim.SGD({trained}.parameters(), lr=0.1){said}
model = Net()
other = nn.Linear(2, 2)
"""


def test_a_library_runs_the_object_that_the_file_made() -> None:
    check(OF_THE_FILE.format(trained="self", said=""))
    check(OF_THE_FILE.format(trained="model", said=""))
    check(OF_THE_FILE.format(trained="other", said="  # GS512"))
