"""What a program does to values that nobody shows: other methods fill them, other functions use them, backward needs them."""

from __future__ import annotations

import pytest

from tests.interp.checking import check

FILLED_LATER = """
class Cloning:
    def __init__(self, policy, data=None):
        self.loader = None
        self.policy = policy
        self.optimizer = torch.optim.Adam(self.policy.parameters())
        if data is not None:
            self.set_data(data)

    def set_data(self, data):
        self.loader = make_loader(data)

    def fit(self):
        assert self.loader is not None
        for x, y in self.loader:
            {clear}
            loss = F.mse_loss(self.policy(x), y)
            loss.backward(){claim}
            self.optimizer.step()
"""


def test_none_that_another_method_fills_is_filled_before_training() -> None:
    check(FILLED_LATER.format(clear="pass", claim="  # GS501"))
    check(FILLED_LATER.format(clear="self.optimizer.zero_grad()", claim=""))


BY_NAME_ALONE = """
class Rounds:
    def __init__(self, loader, epochs, batches):
        if (epochs is None) == (batches is None):
            raise ValueError("one of them")
        self.loader = loader

    def __iter__(self):
        return iter(self.loader)


def fit(model, loader, optimizer, *, epochs=None, batches=None):
    for x, y in Rounds(loader, epochs, batches):
        {clear}
        loss = F.mse_loss(model(x), y)
        loss.backward(){claim}
        optimizer.step()
"""


def test_arguments_that_are_passed_by_name_may_be_given() -> None:
    check(BY_NAME_ALONE.format(clear="pass", claim="  # GS501"))
    check(BY_NAME_ALONE.format(clear="optimizer.zero_grad()", claim=""))


LEFT_TO_OTHERS = """
import abc

class Trainer(abc.ABC):
    def __init__(self, net):
        self.net = net
        self.optimizer = torch.optim.Adam(self.net.parameters())

    @abc.abstractmethod
    def logits(self, x):
        "What others compute."

    def fit(self, loader):
        for x, y in loader:
            self.optimizer.zero_grad()
            {forward}
            loss = F.binary_cross_entropy_with_logits(out, y)
            {backward}
            self.optimizer.step()
"""
PLAIN = {"forward": "out = self.logits(x)", "backward": "loss.backward()"}


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"forward": "out = self.logits(x).detach()  # GS203"},
        {"backward": "loss = loss.detach(); loss.backward()  # GS203"},
        {"backward": "loss.item().backward()  # GS202"},
        {"forward": "with torch.no_grad(): out = self.logits(x)  # GS204"},
        {"forward": "out = self.logits(x); shown = out.detach()"},
    ],
)
def test_what_others_compute_is_cut_like_anything_else(changed: dict[str, str]) -> None:
    check(LEFT_TO_OTHERS.format(**{**PLAIN, **changed}))


SCALED_ELSEWHERE = """
def differentiate(total, scaler):
    if scaler is not None:
        scaler.scale({total}).backward(){claim}
    else:
        total.backward()


def fit(model, loader, losses_of, optimizer, scaler):
    model.train()
    for images, texts in loader:
        optimizer.zero_grad()
        {forward}
        losses = losses_of(**out, output_dict=True)
        total = sum(losses.values())
        differentiate(total, scaler)
        scaler.step(optimizer)
        scaler.update()
"""


@pytest.mark.parametrize(
    ("total", "claim", "forward"),
    [
        ("total", "", "out = model(images, texts)"),
        ("total.item()", "  # GS202", "out = model(images, texts)"),
        ("total", "", "with torch.no_grad(): out = model(images, texts)  # GS204"),
    ],
)
def test_what_a_caller_shows_of_an_argument_and_what_is_spread_into_a_call(
    total: str, claim: str, forward: str
) -> None:
    check(SCALED_ELSEWHERE.format(total=total, claim=claim, forward=forward))


STRATEGY = """
class Trainer:
    def __init__(self, model, optimizer, strategy, loss_fn):
        self.model, self.optimizer, self.strategy, self.loss_fn = model, optimizer, strategy, loss_fn

    def fit(self, loader):
        self.model.train()
        for x, y in loader:
            loss = self.loss_fn(self.model(x), y)
            self.strategy.backward({loss}, self.model, self.optimizer)
            self.strategy.optimizer_step(self.optimizer, self.model)
"""


def test_engine_of_the_program_differentiates_what_it_is_given() -> None:
    check(STRATEGY.format(loss="loss"))
    check(STRATEGY.format(loss="loss.item()").replace("self.optimizer)\n", "self.optimizer)  # GS202\n", 1))


FLAGGED_SCALER = """
import argparse

parser = argparse.ArgumentParser()
parser.add_argument("--amp", action="store_true")
args = parser.parse_args()
dtype = "bfloat16"
model = nn.Linear(3, 1)
optimizer = torch.optim.Adam(model.parameters())
scaler = torch.amp.GradScaler("cuda", enabled={enabled})
for _ in range(5):
    loss = model(torch.randn(2, 3)).mean()
    scaler.scale(loss).backward()
    {unscale}
    nn.utils.clip_grad_norm_(model.parameters(), 1.0){claim}
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
"""


@pytest.mark.parametrize(
    ("enabled", "unscale", "claim"),
    [
        ("args.amp", "pass", "  # GS507"),
        ("(dtype == 'float16')", "pass", "  # info GS507"),
        ("(dtype == 'float16')", "scaler.unscale_(optimizer)", ""),
        ("args.amp", "if args.amp: scaler.unscale_(optimizer)", ""),
        ("args.amp", "scaler.unscale_(optimizer)", ""),
        ("False", "pass", ""),
    ],
)
def test_scaler_that_a_flag_switches_on_is_used_as_one_that_is_on(
    enabled: str, unscale: str, claim: str
) -> None:
    check(FLAGGED_SCALER.format(enabled=enabled, unscale=unscale, claim=claim))


SOME_FROZEN = """
def fit(names, loader):
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1))
    for name, p in model.named_parameters():
        p.requires_grad = True
        if any(one in name for one in names):
            p.requires_grad = False
    optimizer = torch.optim.Adam(model.parameters())
    for x, y in loader:
        {clear}
        F.mse_loss(model(x), y).backward(){claim}
        optimizer.step()
"""


def test_condition_in_a_loop_freezes_some_parameters_and_not_all() -> None:
    check(SOME_FROZEN.format(clear="pass", claim="  # GS501"))
    check(SOME_FROZEN.format(clear="optimizer.zero_grad()", claim=""))


CLEARED_BY_MODULE = """
class Trainer:
    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.Adam(self.model.parameters())

    def run(self, loader):
        for x, y in loader:
            loss = F.mse_loss(self.model(x), y)
            self.model.zero_grad(set_to_none=True)
            loss.backward(){claim}
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            {step}
"""


def test_optimizer_whose_module_clears_the_gradients_is_stepped() -> None:
    check(CLEARED_BY_MODULE.format(claim="  # GS512", step="pass"))
    check(CLEARED_BY_MODULE.format(claim="", step="self.optimizer.step()"))
    check(CLEARED_BY_MODULE.format(claim="", step="apply(self.optimizer)"))


KNOWN_BY_BACKWARD = """
from heads import compute

def fit(config, loader):
    model = nn.Linear(config.width, 1)
    optimizer = torch.optim.Adam(model.parameters())
    for x, y in loader:
        {clear}
        loss = torch.zeros(1) + compute(x, y)
        loss.backward(){claim}
        optimizer.step()
"""


def test_loss_of_which_only_the_backward_is_known_is_for_the_one_optimizer() -> None:
    check(KNOWN_BY_BACKWARD.format(clear="pass", claim="  # GS501"))
    check(KNOWN_BY_BACKWARD.format(clear="optimizer.zero_grad()", claim=""))
