"""What a program keeps its networks, optimizers and losses in: dicts with attributes, results that are dicts, modules by parts."""

from __future__ import annotations

import pytest

from tests.interp.checking import check

KINDS = {
    "by methods": """
class Bag(dict):
    def __getattr__(self, name):
        return self[name]

    def __setattr__(self, name, value):
        self[name] = value
""",
    "by assignment": """
class Bag(dict):
    __getattr__ = dict.__getitem__
    __setattr__ = dict.__setitem__
""",
    "by its own namespace": """
class Bag(dict):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.__dict__ = self
""",
    "of munch": "from munch import Munch as Bag\n",
    "of easydict": "from easydict import EasyDict as Bag\n",
}
TRAINING = """
nets = Bag(generator=nn.Linear(3, 3), critic=nn.Linear(3, 1))
optims = Bag()
for name in nets.keys():
    optims[name] = torch.optim.Adam(nets[name].parameters())
for _ in range(10):
    {clear}
    loss = nets.critic(nets.generator(torch.randn(4, 3))).mean()
    loss.backward(){mark}
    optims.generator.step()
"""


@pytest.mark.parametrize("kind", KINDS)
def test_networks_in_a_dict_with_attributes_are_trained(kind: str) -> None:
    check(KINDS[kind] + TRAINING.format(clear="pass", mark="  # GS501"))


@pytest.mark.parametrize("kind", KINDS)
def test_clearing_what_a_dict_with_attributes_holds_counts(kind: str) -> None:
    check(
        KINDS[kind] + TRAINING.format(clear="for one in optims.values():\n        one.zero_grad()", mark="")
    )


def test_method_of_what_getattr_finds_is_called() -> None:
    check("""
        class Wrapped:
            def __init__(self, inner):
                self.inner = inner

            def __getattr__(self, name):
                return getattr(self.inner, name)

        model = nn.Linear(3, 1)
        optimizer = Wrapped(torch.optim.SGD(model.parameters(), lr=0.1))
        for _ in range(10):
            model(torch.randn(4, 3)).sum().backward()  # GS501
            optimizer.step()
    """)


LOSSES_BY_NAME = """
def train_one_epoch(model, optimizer, loader, device):
    model.train()
    for images, targets in loader:
        {clear}
        losses = model(images, targets)
        total = {total}
        total.backward(){mark}
        optimizer.step()
"""


@pytest.mark.parametrize(
    "total",
    [
        "sum(loss for loss in losses.values())",
        "sum(loss for name, loss in losses.items())",
        "losses.get('total')",
        "losses.pop('total')",
    ],
)
def test_losses_that_a_model_returns_by_name_have_its_graph(total: str) -> None:
    check(LOSSES_BY_NAME.format(clear="pass", total=total, mark="  # GS501"))
    check(LOSSES_BY_NAME.format(clear="optimizer.zero_grad()", total=total, mark=""))


def test_names_of_losses_are_no_tensors() -> None:
    check("""
        def train_one_epoch(model, optimizer, loader, log):
            model.train()
            for images, targets in loader:
                optimizer.zero_grad()
                losses = model(images, targets)
                for name, loss in losses.items():
                    log[name] = log.get(name, 0) + loss.item()
                sum(losses.values()).backward()
                optimizer.step()
    """)


def test_parameters_of_a_module_alone_are_not_those_of_its_parts() -> None:
    check("""
        model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
        norms, others = [], []
        for module in model.modules():
            for name, parameter in module.named_parameters(recurse=False):
                (norms if isinstance(module, nn.BatchNorm1d) else others).append(parameter)
        assert not list(model.parameters(recurse=False))
        optimizer = torch.optim.SGD([{"params": norms, "weight_decay": 0}, {"params": others}], lr=0.1)
        for _ in range(10):
            optimizer.zero_grad()
            model(torch.randn(4, 3)).sum().backward()
            optimizer.step()
    """)
