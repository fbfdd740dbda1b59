"""Training classes and scripts: decorated methods, steps whose loop is elsewhere, what `__init__` has made, unknown weights."""

from __future__ import annotations

import textwrap

import pytest

from gradsight.analysis import analyze
from gradsight.model import Source
from tests.interp.checking import check

AGENT = """
class Agent:
    def __init__(self, size):
        self.net = nn.Linear(size, 1)
        self.optimizer = torch.optim.Adam(self.net.parameters())
{more}
    def update(self, states, rewards):
        loss = F.mse_loss(self.net(states), rewards)
{body}
"""


def agent(body: str, more: str = "") -> str:
    return AGENT.format(
        body=textwrap.indent(body.strip("\n"), " " * 8), more=textwrap.indent(more.strip("\n"), " " * 4)
    )


# -- steps whose loop is elsewhere --------------------------------------------------------------------------------------


def test_a_method_that_steps_and_never_clears_leaves_its_gradients_to_the_next_call() -> None:
    report = check(agent("loss.backward()  # GS501\nself.optimizer.step()"))
    (finding,) = [one for one in report.findings if one.code == "GS501"]
    assert finding.assumption == "`update` is called for every batch"


@pytest.mark.parametrize(
    "body",
    [
        "self.optimizer.zero_grad()\nloss.backward()\nself.optimizer.step()",
        "loss.backward()\nself.optimizer.step()\nself.optimizer.zero_grad()",
        "self.net.zero_grad()\nloss.backward()\nself.optimizer.step()",
        "for one in self.net.parameters():\n    one.grad = None\nloss.backward()\nself.optimizer.step()",
    ],
)
def test_a_method_that_clears_in_any_way_is_fine(body: str) -> None:
    check(agent(body))


def test_another_method_may_clear_for_it() -> None:
    check(
        agent(
            "loss.backward()\nself.optimizer.step()",
            "def begin(self):\n    self.optimizer.zero_grad()\n",
        )
    )


def test_whoever_calls_it_may_clear_for_it() -> None:
    check(
        agent("loss.backward()\nself.optimizer.step()")
        + """
def play(agent, batches):
    for states, rewards in batches:
        agent.optimizer.zero_grad()
        agent.update(states, rewards)
"""
    )


def test_a_method_that_clears_now_and_then_accumulates() -> None:
    check(
        agent(
            "loss.backward()\nself.calls += 1\nif self.calls % 4 == 0:\n    self.optimizer.step()\n    self.optimizer.zero_grad()"
        )
    )


def test_an_optimizer_made_in_the_call_is_gone_with_it() -> None:
    check("""
class Fit:
    def __init__(self):
        self.net = nn.Linear(3, 1)

    def once(self, x):
        optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)
        self.net(x).mean().backward()
        optimizer.step()
""")


# -- decorated functions ------------------------------------------------------------------------------------------------

WRAPPED = """
import functools

def {decorator}(function):
    @functools.wraps(function)
    def wrapper(self, *args, **kwargs):
        if self.seed is None:
            return function(self, *args, **kwargs)
        with torch.random.fork_rng():
            return function(self, *args, **kwargs)
    return wrapper

class Model:
    def __init__(self):
        self.seed = None

    @{decorator}
    def fit(self, loader):
        net = nn.Linear(3, 1)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for x, y in loader:
            {clear}
            F.mse_loss(net(x), y).backward(){claim}
            optimizer.step()
"""


@pytest.mark.parametrize(("clear", "claim"), [("pass", "  # GS501"), ("optimizer.zero_grad()", "")])
def test_a_method_behind_a_decorator_is_executed(clear: str, claim: str) -> None:
    check(WRAPPED.format(decorator="seeded", clear=clear, claim=claim))


def test_what_a_decorator_switches_off_is_off() -> None:
    check("""
def frozen(function):
    def wrapper(*args):
        with torch.no_grad():
            return function(*args)
    return wrapper

class Model:
    def __init__(self):
        self.net = nn.Linear(3, 3)

    @frozen
    def update(self, rate):
        for one in self.net.parameters():
            one.mul_(rate)
""")


# -- what __init__ has made ---------------------------------------------------------------------------------------------

SOLVER = """
class Solver:
    def __init__(self, config):
        self.weight = config.weight
        self.every = config.every
        self.build()

    def build(self):
        self.G = nn.Linear(3, 3)
        self.D = nn.Linear(3, 1)
        self.g_optimizer = torch.optim.Adam(self.G.parameters())
        self.d_optimizer = torch.optim.Adam(self.D.parameters())

    def clear(self):
        self.g_optimizer.zero_grad()
        self.d_optimizer.zero_grad()

    def train(self, loader):
        for step, x in enumerate(loader):
            fake = self.G(x)
            d_loss = self.D(fake.detach()).mean() - self.D(x).mean()
            {first}
            d_loss.backward(){claim}
            self.d_optimizer.step()
            if (step + 1) % self.every == 0:
                g_loss = -self.D(self.G(x)).mean()
                self.clear()
                g_loss.backward()
                self.g_optimizer.step()
"""


def test_methods_that_help_init_alone_make_the_object() -> None:
    check(SOLVER.format(first="self.clear()", claim=""))


def test_rounds_without_the_part_that_clears_are_looked_at() -> None:
    text = SOLVER.format(first="pass", claim="")
    report = analyze(Source("solver.py", "import torch\nfrom torch import nn\n" + text))
    lines = text.splitlines()
    said = {lines[one.span.line - 3].strip() for one in report.findings if one.code == "GS501"}
    assert said == {"d_loss.backward()"}


# -- weights of the configuration ---------------------------------------------------------------------------------------

WEIGHTED = """
class Trainer:
    def __init__(self, config):
        self.weight = config.weight
        self.net = nn.Linear(3, 1)
        self.optimizer = torch.optim.Adam(self.net.parameters())

    def train(self, loader):
        for x, y in loader:
            loss = F.mse_loss(self.net(x), y)
            size = self.net.weight.pow(2).sum()
            total = loss + self.weight * {term}
            self.optimizer.zero_grad()
            total.backward()
            self.optimizer.step()
"""


@pytest.mark.parametrize("term", ["size.item()  # GS202", "size", "(x.sum().item())"])
def test_a_number_that_an_unknown_weight_scales_is_a_number(term: str) -> None:
    text = WEIGHTED.format(term=term)
    check(text if "size" in term else text.replace("            size = self.net.weight.pow(2).sum()\n", ""))


# -- refusals -----------------------------------------------------------------------------------------------------------


def test_a_program_that_refuses_its_arguments_is_tried_with_others() -> None:
    check("""
class Model:
    def check(self, data, columns):
        wrong = []
        for column in columns:
            if column < 0 or column >= data.shape[1]:
                wrong.append(column)
        if wrong:
            raise ValueError(wrong)
        if set(columns) - set(data.columns):
            raise ValueError(columns)

    def fit(self, data, columns, loader):
        self.check(data, columns)
        net = nn.Linear(3, 1)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for x, y in loader:
            F.mse_loss(net(x), y).backward()  # GS501
            optimizer.step()
""")


def test_the_parameters_of_one_module_less_those_of_another_are_known() -> None:
    check("""
net = nn.ModuleDict({"body": nn.Linear(3, 3), "head": nn.Linear(3, 1)})
rest = set(net.parameters()) - set(net["body"].parameters())
optimizer = torch.optim.SGD(list(rest), lr=0.1)
for step in range(4):
    net["head"](torch.ones(2, 3)).mean().backward()  # GS501
    optimizer.step()
""")


# -- graphs in lists ----------------------------------------------------------------------------------------------------


def test_a_list_that_one_call_fills_from_a_loop_of_its_own_is_gone_with_it() -> None:
    check("""
def names_and_values(losses):
    names, values = [], []
    for name, value in losses.items():
        names.append(name)
        values.append(value)
    return dict(zip(names, [value.item() for value in values]))

net = nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(4):
    optimizer.zero_grad()
    out = net(torch.ones(2, 3))
    first, second = out.mean(), out.pow(2).mean()
    (first + second).backward()
    optimizer.step()
    print(names_and_values({"first": first, "second": second}))
""")


# -- wrapped modules ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("clear", "claim"), [("pass", "  # GS501"), ("net.zero_grad()", "")])
def test_the_module_of_a_wrapped_module_is_the_module(clear: str, claim: str) -> None:
    check(f"""
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(3, 3)

    def forward(self, x):
        return self.body(x)

net = nn.DataParallel(Net())
optimizer = torch.optim.SGD(net.module.body.parameters(), lr=0.1)
for step in range(4):
    {clear}
    net(torch.ones(2, 3)).mean().backward(){claim}
    optimizer.step()
""")


# -- totals and modes ---------------------------------------------------------------------------------------------------

TOTAL = """
class Trainer:
    def __init__(self):
        self.net = nn.Linear(3, 1)
        self.optimizer = torch.optim.Adam(self.net.parameters())

    def epoch(self, loader, coefficient):
        total = 0
        for x, y in loader:
            out = self.net(x)
            value_loss, size = F.mse_loss(out, y), out.pow(2).mean()
            self.optimizer.zero_grad()
            (value_loss * coefficient + 0.1 * size).backward()
            self.optimizer.step()
            {statement}
        return total
"""


@pytest.mark.parametrize(
    "statement",
    [
        "total += value_loss  # GS404",
        "total = total + size  # GS404",
        "self.all = getattr(self, 'all', 0) + value_loss  # GS404",
        "total += value_loss.item()",
        "self.all = getattr(self, 'all', 0) + value_loss.detach()",
        "total = value_loss + size",
    ],
)
def test_a_total_of_a_term_of_the_loss_keeps_its_graphs(statement: str) -> None:
    check(TOTAL.format(statement=statement))


EVALUATED = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 1)

    def forward(self, x):
        return self.layer(F.dropout(x, training={training}))

net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

def train():
    {first}
    optimizer.zero_grad()
    net(torch.ones(2, 3)).mean().backward()
    optimizer.step()

@torch.no_grad()
def test():
    net.eval(){claim}
    return net(torch.ones(2, 3)).mean()

for epoch in range(4):
    train()
    test()
"""


@pytest.mark.parametrize(
    ("training", "first", "claim"),
    [("self.training", "pass", "  # GS505"), ("self.training", "net.train()", ""), ("True", "pass", "")],
)
def test_a_class_that_reads_its_mode_is_trained_in_train_mode(training: str, first: str, claim: str) -> None:
    check(EVALUATED.format(training=training, first=first, claim=claim))
