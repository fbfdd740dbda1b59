"""A model that is not known is frozen, and a part of it learns again: only where nothing of it can is a backward refused."""

from __future__ import annotations

import pytest

from tests.interp.checking import check

TRAINING = """
from models import build

def main(args, loader):
    model = build(args)
    {frozen}
    {more}
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward(){claim}
        optimizer.step()
"""
FREEZING = [
    "model.requires_grad_(False)",
    "for p in model.parameters():\n        p.requires_grad = False",
    "for name, p in model.named_parameters():\n        p.requires_grad_(False)",
]
LEARNING_AGAIN = [
    "model.head.requires_grad_(True)",
    "for p in model.head.parameters():\n        p.requires_grad = True",
    "model.fc = nn.Linear(8, 3)",
    "model.classifier[1].requires_grad_(True)",
    "for name, p in model.named_parameters():\n        if 'head' in name:\n            p.requires_grad = True",
    "model.fc.weight.requires_grad = True",
    "for m in model.modules():\n        if isinstance(m, nn.BatchNorm2d):\n            m.weight.requires_grad_(True)",
    "for layer in model.layers[-2:]:\n        for p in layer.parameters():\n            p.requires_grad = True",
    "getattr(model, args.head).requires_grad_(True)",
    "model.unfreeze_head()",
    "unfreeze(model)",
    "model = get_peft_model(model)",
    "for p in list(model.parameters())[-2:]:\n        p.requires_grad = True",
    "model.head.apply(lambda m: m.requires_grad_(True))",
    "setattr(model, 'fc', nn.Linear(2, 2))",
    "model.add_module('adapter', nn.Linear(2, 2))",
]
STILL_FROZEN = [
    "",
    "print(model.config.hidden_size)",
    "model.to(args.device)",
    "model.train()",
    "count = sum(p.numel() for p in model.parameters())",
    "for name, p in model.named_parameters():\n        p.requires_grad = False",
]


@pytest.mark.parametrize("more", LEARNING_AGAIN)
@pytest.mark.parametrize("frozen", FREEZING)
def test_a_part_that_learns_again_is_trained(frozen: str, more: str) -> None:
    check(TRAINING.format(frozen=frozen, more=more, claim=""))


@pytest.mark.parametrize("more", STILL_FROZEN)
@pytest.mark.parametrize("frozen", FREEZING)
def test_a_model_that_stays_frozen_has_nothing_to_learn(frozen: str, more: str) -> None:
    check(TRAINING.format(frozen=frozen, more=more, claim="  # GS205"))


def test_a_part_that_was_put_in_before_is_frozen_with_the_whole() -> None:
    put_in, frozen = "model.fc = nn.Linear(8, 3)", "model.requires_grad_(False)"
    check(TRAINING.format(frozen=put_in, more=frozen, claim="  # GS205"))


def test_what_a_file_that_is_not_there_makes_is_as_unknown_as_a_library() -> None:
    check("""
        from .models import build

        def main(args, loader):
            model = build(args)
            optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
            for x, y in loader:
                optimizer.zero_grad()
                loss = F.cross_entropy(model(x), y)
                loss.backward()
                loss.backward()  # GS402
                optimizer.step()
    """)


def test_a_module_of_the_package_is_not_taken_for_a_library_of_its_name() -> None:
    check("""
        from .torch import zeros
        from .timm import create_model

        def main(args, loader):
            start = zeros(3)
            model = create_model(args.name)
            optimizer = torch.optim.Adam(model.parameters())
            for x, y in loader:
                optimizer.zero_grad()
                (model(x) - y + start).square().mean().backward()
                optimizer.step()
    """)
