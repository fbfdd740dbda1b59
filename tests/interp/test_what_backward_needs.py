"""Roles without names: what a backward must have its graph from, what alone can step, and what nothing tells."""

from __future__ import annotations

import pytest

from tests.interp.checking import check

LOOP = """
def run({given}):
    for a, b in d:
        {clear}
        e = {loss}
        e.backward(){said}
        s.step()
"""
GIVEN = "f, g, d, s, w"


@pytest.mark.parametrize(
    "loss",
    [
        "F.mse_loss(f(a), b)",
        "F.mse_loss(g(f(a)), b)",
        "w(f(a).relu(), b)",
        "(f(a) - b).pow(2).mean()",
    ],
)
def test_what_brings_the_graph_is_a_module_and_what_steps_an_optimizer(loss: str) -> None:
    check(LOOP.format(given=GIVEN, loss=loss, clear="pass", said="  # GS501"))
    check(LOOP.format(given=GIVEN, loss=loss, clear="s.zero_grad()", said=""))


def test_a_name_in_between_changes_nothing() -> None:
    text = """
        def run(f, d, s):
            for a, b in d:
                s.zero_grad()
                h = f(a)
                k = torch.exp(h)
                k += 1{said}
                e = k.mean()
                e.backward()
                s.step()
    """
    check(text.format(said="  # GS101"))
    check(text.format(said="").replace("k += 1", "k = k + 1"))


@pytest.mark.parametrize(
    "text",
    [
        # What is cut off, or made with grad mode off, brings no graph: which of two brings it, is not told by being called.
        "e = F.mse_loss(f(a), g(a).detach())",
        "with torch.no_grad():\n            t = g(a)\n        e = F.mse_loss(f(a), t)",
        # Another function of the file may bring it.
        "e = F.mse_loss(g(made(a)), b)",
    ],
)
def test_what_is_not_on_the_way_to_the_loss_is_not_trained(text: str) -> None:
    check(
        f"""
def made(x):
    return known(x)
def run(f, g, d, s):
    for a, b in d:
        s.zero_grad()
        {text}
        e.backward()
        s.step()
"""
    )


@pytest.mark.parametrize(
    "stepped", ["env.step()", "progress.step()", "profiler.step()", "timer.step()", "r.step(); q.step()"]
)
def test_other_things_step_too(stepped: str) -> None:
    check(
        f"""
def run(f, d, env, progress, profiler, timer, r, q):
    for a, b in d:
        e = F.mse_loss(f(a), b)
        e.backward()
        {stepped}
"""
    )


TWO = """
def step(generator, discriminator, optimizer, loader):
    {learns}
    for real in loader:
        fake = generator(torch.randn(real.shape[0], 10)).detach(){said}
        loss = F.softplus(discriminator(fake)).mean() + F.softplus(-discriminator(real)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


def test_an_optimizer_beside_two_modules_may_be_for_one_of_them() -> None:
    check(TWO.format(learns="discriminator.train()", said=""))
    check(TWO.format(learns="pass", said=""))


def test_a_module_that_is_told_to_train_is_meant_to_learn() -> None:
    check(TWO.format(learns="generator.train(); discriminator.train()", said="  # GS203"))


def test_a_frozen_trunk_below_a_head_is_no_fault_of_grad_mode() -> None:
    check("""
def probe(encoder, classifier, optimizer, loader):
    for x, y in loader:
        with torch.no_grad():
            h = encoder(x)
        loss = F.cross_entropy(classifier(h), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
""")


VALIDATION = """
from models import build_model
def validate(model, batches):
    {before}
    model.eval(){said}
    with torch.no_grad():
        for x, y in batches:
            print(model(x) - y)
    {after}
model = build_model()
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    for x, y in torch.load("data"):
        loss = (model(x) - y).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    validate(model, torch.load("val"))
"""


def test_an_unknown_model_gets_back_the_mode_that_it_had() -> None:
    restored = "model.train(was_training)"
    check(VALIDATION.format(before="was_training = model.training", after=restored, said=""))
    check(VALIDATION.format(before="pass", after="pass", said="  # GS505"))


SEVERAL = """
def run(net, opt, loader):
    for x in loader:
        one, two = {made}
        opt.zero_grad()
        {first}.backward()
        {second}.backward(){said}
        opt.step()
"""


def test_losses_that_an_unknown_module_returns_may_have_graphs_of_their_own() -> None:
    check(SEVERAL.format(made="net.losses(x)", first="one", second="two", said=""))
    check(SEVERAL.format(made="net(x)", first="one", second="two", said=""))
    check(SEVERAL.format(made="net(x)", first="one", second="one", said="  # GS402"))
    check(SEVERAL.format(made="net(x)", first="one.sum()", second="two.sum()", said="  # GS402"))


CODES = """
def run(codebook, encoder, optimizer, x):
    for _ in range(3):
        code = encoder(x)
        chosen = codebook(torch.cdist(code.detach(), codebook.weight.detach()).argmin(1))
        optimizer.zero_grad()
        (F.mse_loss(code, chosen.detach()) + F.mse_loss(chosen, code.detach())).backward()
        optimizer.step()
"""


def test_a_term_may_train_what_is_not_known() -> None:
    check(CODES)


WRAPPED = """
from engine import Task
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 4)
    def forward(self, x):
        return self.body(x)
def main(loader):
    net = Net()
    task = Task(model=net)
    model = {trained}
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        result = task(x, y)
        optimizer.zero_grad()
        result["loss"].backward()
        optimizer.step()
"""


@pytest.mark.parametrize("trained", ["task.get_trainable_module()", "net"])
def test_what_a_wrapper_hands_out_may_be_what_it_was_given(trained: str) -> None:
    check(WRAPPED.format(trained=trained))
