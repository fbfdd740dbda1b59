"""Functions that work on models, optimizers and helpers from elsewhere: what they keep, pass on and leave switched off."""

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist

from gradsight.interp.paths.library_evidence import OF_DISTRIBUTIONS
from tests.interp.checking import check

EPOCHS = """
def run(model, train_data, held_back, optimizer, criterion, epochs):
    {before}
    for epoch in range(epochs):
        {first}
        for x, y in train_data:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
        {after}
        for x, y in held_back:
            print(criterion(model(x), y).item())
        {last}
"""


def epochs(before: str = "pass", first: str = "pass", after: str = "pass", last: str = "pass") -> str:
    return EPOCHS.format(before=before, first=first, after=after, last=last)


def test_what_unknown_code_computes_where_nothing_is_recorded_has_no_graph() -> None:
    check(epochs(after="torch.set_grad_enabled(False)  # GS210"))


def test_grad_mode_that_is_switched_on_again_is_fine() -> None:
    check(epochs(after="torch.set_grad_enabled(False)", last="torch.set_grad_enabled(True)"))


def test_an_unknown_model_that_is_switched_to_eval_mode_and_never_back() -> None:
    check(epochs(before="model.train()", after="model.eval()  # GS505"))


def test_an_unknown_model_that_is_switched_back_is_fine() -> None:
    check(epochs(first="model.train()", after="model.eval()"))
    check(epochs(before="model.train()", after="model.eval()", last="model.train()"))


OF_THE_FILE = """
encoder = nn.Sequential(nn.Linear(8, 16), nn.ReLU())
head = nn.Linear(16, 2)
optimizer = torch.optim.Adam([*encoder.parameters(), *head.parameters()])


def train(loader):
    for x, y in loader:
        {features}
        loss = nn.functional.cross_entropy(head(features), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


def test_the_optimizer_of_the_file_moves_the_modules_of_the_file() -> None:
    check(OF_THE_FILE.format(features="features = encoder(x).detach()  # GS203"))
    check(OF_THE_FILE.format(features="with torch.no_grad(): features = encoder(x)  # GS204"))
    check(OF_THE_FILE.format(features="features = encoder(x)"))


def test_a_layer_made_after_the_optimizer_of_the_file() -> None:
    check(
        """
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)  # GS512
model[2] = nn.Linear(16, 2)


def train(loader):
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
    )


@pytest.mark.parametrize("second", ["second = {make}", "kept = [{make}]", "kept = {{'other': {make}}}"])
def test_every_optimizer_of_the_file_counts(second: str) -> None:
    made = second.format(make="torch.optim.SGD(critic.parameters(), lr=0.1)")
    check(
        f"""
maker = nn.Linear(4, 4)
critic = nn.Linear(4, 1)
first = torch.optim.SGD(maker.parameters(), lr=0.1)
{made}


def train_maker(loader):
    for x in loader:
        loss = -critic(maker(x)).mean()
        first.zero_grad()
        critic.zero_grad()
        loss.backward()
        first.step()
"""
    )


RECURRENT = """
class Reader(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.cells = nn.GRU(size, size, batch_first=True)
        self.out = nn.Linear(size, size)

    def forward(self, x, state=None):
        y, state = self.cells(x, state)
        return self.out(y), {returned}

{more}
def train(model, loader, optimizer, criterion):
    state = None
    for x, y in loader:
        optimizer.zero_grad()
        {call}
        criterion(guess, y).backward()
        optimizer.step()
"""


def recurrent(call: str, returned: str = "state", more: str = "") -> str:
    return RECURRENT.format(call=call, returned=returned, more=more)


def test_an_argument_that_is_applied_like_the_only_model_of_the_file_is_it() -> None:
    check(recurrent("guess, state = model(x, state)  # GS403"))


def test_a_state_that_is_cut_off_may_be_carried() -> None:
    check(recurrent("guess, state = model(x, None if state is None else state.detach())"))
    check(recurrent("guess, state = model(x, state)", returned="state.detach()"))


def test_of_two_models_none_is_taken() -> None:
    other = "class Other(nn.Module):\n    def forward(self, x, memory):\n        return x, memory\n"
    check(recurrent("guess, state = model(x, state)", more=other))


PROXIMAL = """
class Proximal:
    def __init__(self, policy):
        self.policy = policy
        self.optimizer = torch.optim.Adam(policy.parameters(), lr=3e-4)
        self.seen = []

    def update(self, states, advantages, rounds=4):
        chance = self.policy.distribution(states)
        actions = chance.sample()
        self.seen.append(actions)
        before = {before}
        for _ in range(rounds):
            now = self.policy.distribution(states).log_prob(actions)
            loss = -((now - before).exp() * advantages).mean()
            self.optimizer.zero_grad()
            loss.backward(){found}
            self.optimizer.step()
"""


def test_the_log_probability_of_an_unknown_policy_has_a_graph() -> None:
    check(PROXIMAL.format(before="chance.log_prob(actions)", found="  # GS402"))


def test_a_log_probability_that_is_cut_off_is_fine() -> None:
    check(PROXIMAL.format(before="chance.log_prob(actions).detach()", found=""))


PAIR = """
def step(maker, critic, of_maker, of_critic, criterion, real, noise):
    fake = maker(noise)
    loss = criterion(critic(real), torch.ones(8, 1)) + criterion(critic(fake.detach()), torch.zeros(8, 1))
    {early}
    of_critic.zero_grad()
    loss.backward()
    of_critic.step(){found}
    {late}
    of_maker.zero_grad()
    second.backward()
    of_maker.step()
"""
JUDGED = "second = criterion(critic(fake), torch.ones(8, 1))"


def test_unknown_modules_keep_their_parameters_for_backward() -> None:
    check(PAIR.format(early=JUDGED, late="", found="  # GS106"))
    check(PAIR.format(early="", late=JUDGED, found=""))


GATHERED = """
import torch.distributed as dist


def train(model, loader, optimizer):
    for x, y in loader:
        mine = model(x)
        parts = {parts}
        dist.all_gather(parts, mine){found}
        {own}
        loss = (torch.cat(parts) - y).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    "parts",
    [
        "[torch.zeros_like(mine), torch.zeros_like(mine)]",
        "[torch.zeros_like(mine) for _ in range(dist.get_world_size())]",
    ],
)
def test_what_is_gathered_from_other_processes_has_no_graph(parts: str) -> None:
    check(GATHERED.format(parts=parts, found="  # GS205", own=""))
    check(GATHERED.format(parts=parts, found="", own="parts[dist.get_rank()] = mine"))
    check(GATHERED.format(parts=parts, found="", own="parts.append(mine)"))


def test_a_second_backward_through_what_an_unknown_model_returned() -> None:
    check(
        """
def train(model, loader, optimizer, first, second):
    for x, y, z in loader:
        a, b = model(x)
        optimizer.zero_grad()
        first(a, y).backward()
        second(b, z).backward()  # GS402
        optimizer.step()


def add_up(model, loader, optimizer, criterion):
    total = 0
    for x, y in loader:
        optimizer.zero_grad()
        total = total + criterion(model(x), y)  # GS403
        total.backward()
        optimizer.step()
"""
    )


def test_graphs_that_are_kept_and_values_that_an_unknown_model_may_have_cut_off() -> None:
    check(
        """
def both(model, loader, optimizer, first, second):
    for x, y, z in loader:
        a, b = model(x)
        optimizer.zero_grad()
        first(a, y).backward(retain_graph=True)
        second(b, z).backward()
        optimizer.step()


def parts(model, loader, of_actor, of_critic):
    for x, advantage, worth in loader:
        guess = model(x)
        of_actor.zero_grad()
        (guess["chance"] * advantage).mean().backward()
        of_actor.step()
        of_critic.zero_grad()
        (guess["value"] - worth).pow(2).mean().backward()
        of_critic.step()


def with_memory(model, loader, optimizer):
    memory = ()
    for x, y in loader:
        result = model(x, y, *memory)
        loss, memory = result[0], result[1:]
        optimizer.zero_grad()
        loss.mean().backward()
        optimizer.step()


def with_mask(model, loader, optimizer, criterion, size):
    mask = model.make_mask(size)
    state = model.first_state(size)
    for x, y in loader:
        guess, state = model(x, state)
        loss = (criterion(guess, y) * mask).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
    )


def test_torch_says_the_same_of_gathered_tensors_and_distributions() -> None:
    mine = torch.ones(2, requires_grad=True) * 2
    parts = [torch.zeros(2)]
    store = dist.HashStore()
    dist.init_process_group("gloo", store=store, rank=0, world_size=1)
    try:
        dist.all_gather(parts, mine)
    finally:
        dist.destroy_process_group()
    assert parts[0].tolist() == mine.tolist()
    assert not parts[0].requires_grad
    chance = torch.distributions.Normal(mine, mine)
    for name in OF_DISTRIBUTIONS:
        assert not hasattr(torch.Tensor, name)
        given = (torch.zeros(2),) if name == "log_prob" else ()
        assert getattr(chance, name)(*given).requires_grad


COMPUTED_ELSEWHERE = """
from losses import objective

class Loop:
    def __init__(self, model, process, data):
        self.model, self.process, self.data = model, process, data
        self.optimizer = torch.optim.AdamW(self.model.parameters())

    def run(self):
        for batch in self.data:
            {clear}
            weights = torch.from_numpy(batch.weights)
            terms = {terms}
            loss = (terms["loss"] * weights).mean()
            {backward}
            self.optimizer.step()
"""


@pytest.mark.parametrize("terms", ["self.process.losses(self.model, batch)", "objective(self.model, batch)"])
def test_code_that_computes_a_loss_from_a_model_leaves_its_gradients(terms: str) -> None:
    check(COMPUTED_ELSEWHERE.format(clear="pass", terms=terms, backward="loss.backward()  # GS501"))
    check(
        COMPUTED_ELSEWHERE.format(clear="self.optimizer.zero_grad()", terms=terms, backward="loss.backward()")
    )


def test_code_that_gets_the_model_for_something_else_may_clear() -> None:
    check(
        COMPUTED_ELSEWHERE.format(
            clear="objective(self.model)",
            terms="self.process.losses(self.model, batch)",
            backward="loss.backward()",
        )
    )


def test_a_number_has_no_graph_wherever_it_comes_from() -> None:
    terms = "self.process.losses(batch)"
    check(
        COMPUTED_ELSEWHERE.format(
            clear="self.optimizer.zero_grad()", terms=terms, backward="loss.item().backward()  # GS202"
        )
    )


APPLIED = """
def judge(critic, images, devices):
    return F.binary_cross_entropy_with_logits(nn.parallel.data_parallel(critic, images, devices), torch.ones(3))

def fit(loader, maker, critic, devices):
    optimizer = torch.optim.Adam(maker.parameters())
    for noise in loader:
        maker.zero_grad()
        images, mean = nn.parallel.data_parallel(maker, noise, devices)
        loss = judge(critic, images, devices)
        total = {term} + mean.pow(2).mean(){code}
        total.backward()
        optimizer.step()
"""


def test_what_is_applied_to_several_devices_is_a_module() -> None:
    check(APPLIED.format(term="loss.item()", code="  # GS202"))
    check(APPLIED.format(term="loss", code=""))
