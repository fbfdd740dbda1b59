"""An optimizer over a module whose size a setting decides: what it does not list is that module's own, and nobody else's."""

from __future__ import annotations

import pytest

from tests.interp.checking import check

PARTS = """
import itertools

class Tower(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(8, 8) for _ in range(config.depth)])
        self.out = nn.Linear(8, 8)

    def forward(self, x):
        for layer in self.layers:
            x = torch.tanh(layer(x))
        return self.out(x)

class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(8, 8)

    def forward(self, x):
        return self.out(x)

def train(config, loader):
    query = Tower(config)
    document = {document}
    {before}
    optimizer = torch.optim.Adam({parameters}, lr=1e-3){expected}
    for asked, text in loader:
        scores = query(asked) @ document(text).t()
        loss = F.cross_entropy(scores, torch.arange(len(asked)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
ALONE = (
    "query.parameters()",
    "list(query.parameters())",
    "filter(lambda p: p.requires_grad, query.parameters())",
    "[p for p in query.parameters() if p.requires_grad]",
    "(p for n, p in query.named_parameters() if 'bias' not in n)",
    "itertools.chain(query.layers.parameters(), query.out.parameters())",
    "list(query.layers.parameters()) + list(query.out.parameters())",
    "[{'params': query.parameters(), 'lr': 0.1}]",
)
BOTH = (
    "itertools.chain(query.parameters(), document.parameters())",
    "list(query.parameters()) + list(document.parameters())",
    "[*query.parameters(), *document.parameters()]",
    "[{'params': query.parameters()}, {'params': document.parameters()}]",
    "[p for part in (query, document) for p in part.parameters()]",
)


def program(parameters: str, expected: str = "", document: str = "Small()", before: str = "pass") -> str:
    return PARTS.format(parameters=parameters, expected=expected, document=document, before=before)


@pytest.mark.parametrize("document", ["Small()", "Tower(config)"])
@pytest.mark.parametrize("parameters", ALONE)
def test_the_rest_of_one_module_holds_nothing_of_another(parameters: str, document: str) -> None:
    check(program(parameters, "  # GS512", document))


@pytest.mark.parametrize("document", ["Small()", "Tower(config)"])
@pytest.mark.parametrize("parameters", BOTH)
def test_what_is_listed_beside_it_is_held(parameters: str, document: str) -> None:
    check(program(parameters, document=document))


@pytest.mark.parametrize(
    "before",
    [
        "held = list(query.parameters()) + more(document)",
        "held = list(query.parameters()); held.extend(more(document))",
        "held = list(query.parameters()); held += list(document.parameters())",
        "held = [of(document, p) for p in query.parameters()]",
    ],
)
def test_a_list_that_unknown_code_filled_may_hold_anything(before: str) -> None:
    check("from elsewhere import more, of\n" + program("held", before=before))


def test_a_second_tower_that_was_frozen_or_loaded_stays_as_it_is() -> None:
    check(program("query.parameters()", before="document.requires_grad_(False)"))
    check(program("query.parameters()", before="document.load_state_dict(torch.load('x.pt'))"))
    check(program("query.parameters()", before="document.eval()"))


TWO_OPTIMIZERS = """
class Scorer(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(8, 1)

    def forward(self, x):
        return self.out(x)

maker = nn.Linear(8, 8)
body = nn.Linear(8, 8)
scorer = Scorer()
for_maker = torch.optim.Adam(maker.parameters())
for_scorer = torch.optim.Adam({parameters}){expected}
for step in range(100):
    x = torch.randn(4, 8)
    for_scorer.zero_grad()
    F.binary_cross_entropy_with_logits(scorer(body(maker(x).detach())), torch.zeros(4, 1)).backward()
    for_scorer.step()
    for_maker.zero_grad()
    F.binary_cross_entropy_with_logits(scorer(body(maker(x))), torch.ones(4, 1)).backward()
    for_maker.step()
"""


def test_what_two_losses_reach_is_left_out_once() -> None:
    check(TWO_OPTIMIZERS.format(parameters="body.parameters()", expected="  # GS512"))


def test_two_optimizers_that_hold_all_are_fine() -> None:
    held = "[*body.parameters(), *scorer.parameters()]"
    check(TWO_OPTIMIZERS.format(parameters=held, expected=""))


CARRIED = """
class Tower(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(8, 8) for _ in range(config.depth)])
        self.out = nn.Linear(8, 8)

    def forward(self, x):
        for layer in self.layers:
            {applied}
        return self.out(x)

def train(config, loader):
    tower = Tower(config)
    optimizer = torch.optim.Adam(tower.parameters())
    queue = []
    for batch in loader:
        keys = tower(batch)
        loss = (torch.cat([keys, *queue]) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        queue.append({kept}){expected}
        if len(queue) > config.size:
            queue.pop(0)
"""


@pytest.mark.parametrize("applied", ["x = torch.relu(layer(x))", "x = x + layer(x)"])
def test_a_queue_keeps_the_graph_of_a_module_of_unknown_depth(applied: str) -> None:
    check(CARRIED.format(applied=applied, kept="keys", expected="  # GS403"))
    check(CARRIED.format(applied=applied, kept="keys.detach()", expected=""))


STATEFUL = """
class Cell(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.state = 0.0

    def forward(self, x):
        self.state = torch.tanh(self.fc(x) + self.state)
        return self.state

    def reset(self):
        self.state = 0.0

def train(config, loader):
    net = nn.Sequential(*[Cell() for _ in range(config.depth)])
    optimizer = torch.optim.Adam(net.parameters())
    for x in loader:
        optimizer.zero_grad()
        net(x).sum().backward()
        optimizer.step()
        for cell in net:
            {reset}
"""


@pytest.mark.parametrize("reset", ["cell.reset()", "cell.state = 0.0"])
def test_a_loop_that_resets_the_cells_resets_those_that_were_not_executed(reset: str) -> None:
    check(STATEFUL.format(reset=reset))


def test_what_unknown_code_froze_by_its_name_is_no_part_that_is_left_out() -> None:
    program = """
        import copy
        from library import momentum

        class Pair(nn.Module):
            def __init__(self):
                super().__init__()
                self.net = nn.Linear(3, 4)
                self.second = copy.deepcopy(self.net)
                momentum.FREEZE(self.second)

        pair = Pair()
        opt = torch.optim.SGD(pair.net.parameters(), lr=0.1)
        for x in load():
            momentum.follow(pair.net, pair.second)
            opt.zero_grad()
            F.mse_loss(pair.net(x), pair.second(x)).backward()
            opt.step()
    """
    check(program.replace("FREEZE", "deactivate_requires_grad"))
    check(program.replace("FREEZE", "freeze"))


def test_who_clears_what_unknown_code_made_of_a_network_clears_the_network() -> None:
    program = """
        from apex import amp

        def train(loader, model, optimizer):
            for x, y in loader:
                CLEAR
                loss = F.mse_loss(model(x), y)
                loss.backward()CLAIM
                optimizer.step()

        net = nn.Linear(3, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        net, opt = amp.initialize(net, opt, opt_level="O1")
        net = nn.DataParallel(net)
        train(load(), net, opt)
    """
    check(program.replace("CLEAR", "model.zero_grad()").replace("CLAIM", ""))
    check(program.replace("CLEAR", "optimizer.zero_grad()").replace("CLAIM", ""))
    check(program.replace("CLEAR", "pass").replace("CLAIM", "  # GS501"))


MADE_ELSEWHERE = """
    from lib import make_optimizer
    def main(cfg, loader):
        student, head = nn.Linear(4, 4), nn.Linear(4, 4)
        opt = make_optimizer({given})
        for x, y in loader:
            loss = F.mse_loss(head(student(x)), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
"""


def test_an_optimizer_made_elsewhere_holds_no_more_than_the_parameters_that_were_given() -> None:
    given = "student.parameters(), lr=0.1"
    check(MADE_ELSEWHERE.replace("{given})", f"{given})  # GS512"))


@pytest.mark.parametrize(
    "given",
    [
        "[*student.parameters(), *head.parameters()]",
        "cfg, student.parameters()",
        "student.parameters(), loader",
        "[student, head]",
    ],
)
def test_who_is_given_more_may_have_made_an_optimizer_for_more(given: str) -> None:
    check(MADE_ELSEWHERE.format(given=given))
