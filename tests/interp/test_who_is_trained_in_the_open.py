"""Optimizers of models that are not known: which of them holds what the loss trains."""

from __future__ import annotations

import pytest

from tests.interp.checking import check

LATER = """
from library import build_encoder, build_decoder, wrap

def main(args, loader):
    encoder = build_encoder(args)
    decoder = build_decoder(args)
    optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()])
    {again}
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(decoder(encoder(x)), y).backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    "again",
    [
        "decoder = build_decoder(args, True)",
        "decoder = copy.deepcopy(decoder)",
        "decoder = nn.Linear(8, 3)",
    ],
)
def test_a_model_that_is_made_anew_is_not_the_one_that_the_optimizer_holds(again: str) -> None:
    check("import copy\n" + LATER.format(again=f"{again}  # GS504"))


@pytest.mark.parametrize(
    "again",
    [
        "decoder = decoder.to(args.device)",
        "decoder = torch.compile(decoder)",
        "decoder = nn.DataParallel(decoder)",
        "decoder = wrap(decoder)",
        "decoder = decoder.prepared_for_training()",
        "decoder, optimizer = args.accelerator.prepare(decoder, optimizer)",
        "decoder.reset_parameters()",
        "decoder = build_decoder(args)\n    optimizer.add_param_group({'params': decoder.parameters()})",
        "decoder = build_decoder(args)\n    optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()])",
        "previous = decoder\n    result = build_decoder(args)",
    ],
)
def test_a_model_that_is_wrapped_or_held_again_is_the_one_that_the_optimizer_holds(again: str) -> None:
    check(LATER.format(again=again))


ALONE = """
def fit(encoder, loader):
    scale = nn.Parameter(torch.ones(1))
    optimizer = {optimizer}
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(encoder(x) / scale, y).backward()
        {more}
        optimizer.step()
"""


def test_a_parameter_that_no_module_and_no_optimizer_has_is_never_trained() -> None:
    check(ALONE.format(optimizer="torch.optim.Adam(encoder.parameters())  # GS512", more="pass"))


@pytest.mark.parametrize(
    ("optimizer", "more"),
    [
        ("torch.optim.Adam([*encoder.parameters(), scale])", "pass"),
        ("torch.optim.Adam([{'params': encoder.parameters()}, {'params': [scale], 'lr': 0.1}])", "pass"),
        ("torch.optim.Adam(encoder.parameters())", "scale.data -= 0.1 * scale.grad; scale.grad = None"),
        ("torch.optim.Adam(encoder.parameters())", "print(scale.grad)"),
        ("make_optimizer(encoder, scale)", "pass"),
    ],
)
def test_a_parameter_that_somebody_moves_is_trained(optimizer: str, more: str) -> None:
    check(ALONE.format(optimizer=optimizer, more=more))


FROZEN = """
def fit(encoder, decoder, loader):
    for p in encoder.parameters():
        p.requires_grad = False
    {more}
    optimizer = torch.optim.Adam({held}.parameters())
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(decoder(encoder(x)), y).backward()
        optimizer.step(){claim}
"""


def test_an_optimizer_of_a_frozen_model_moves_nothing() -> None:
    check(FROZEN.format(more="pass", held="encoder", claim="  # GS503"))


@pytest.mark.parametrize(
    ("more", "held"),
    [
        ("pass", "decoder"),
        ("encoder.last.requires_grad_(True)", "encoder"),
        ("encoder.head = nn.Linear(2, 2)", "encoder"),
        ("add_adapters(encoder)", "encoder"),
    ],
)
def test_an_optimizer_of_what_learns_again_moves_it(more: str, held: str) -> None:
    check(FROZEN.format(more=more, held=held, claim=""))
