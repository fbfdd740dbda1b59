"""Training where all that the optimizer holds was frozen: backward finds no graph, whatever the data are."""

from __future__ import annotations

import pytest

from tests.interp.checking import check

FREEZES = {
    "a loop": "for p in model.parameters():\n                p.requires_grad = False",
    "a call": "model.requires_grad_(False)",
    "one by one": "for name, p in model.named_parameters():\n                p.requires_grad_(False)",
}


@pytest.mark.parametrize("freeze", FREEZES.values(), ids=FREEZES)
@pytest.mark.parametrize("model", ["nn.Linear(3, 2)", "given", "build('x')"])
def test_a_loader_brings_no_graph_to_a_frozen_model(freeze: str, model: str) -> None:
    report = check(f"""
        from models import build

        def train(loader, given):
            model = {model}
            {freeze}
            opt = torch.optim.SGD(model.parameters(), 0.1)
            for x, y in loader:
                opt.zero_grad()
                loss = F.cross_entropy(model(x), y)
                loss.backward()  # GS205
                opt.step()
    """)
    assert any("frozen here" in step.message for finding in report.findings for step in finding.related)


def test_a_teacher_that_is_meant_to_stand_still_is_not_the_cause() -> None:
    check("""
        def train(loader, args):
            model, teacher = nn.Linear(3, 2), nn.Linear(3, 2)
            for p in model.parameters():
                p.requires_grad = False
            opt = torch.optim.SGD(model.parameters(), 0.1)
            for x, y in loader:
                opt.zero_grad()
                loss = F.cross_entropy(model(x), y)
                if args.distill:
                    with torch.no_grad():
                        soft = teacher(x)
                    loss = loss + F.mse_loss(model(x), soft)
                loss.backward()  # GS205
                opt.step()
    """)


def test_a_factory_with_a_known_and_an_unknown_arm_is_frozen_on_both() -> None:
    check("""
        from torchvision import models

        def build(name):
            if name == "small":
                return nn.Linear(3, 2)
            return models.__dict__[name]()

        def train(loader, name):
            model = build(name)
            for p in model.parameters():
                p.requires_grad = False
            opt = torch.optim.SGD(model.parameters(), 0.1)
            for x, y in loader:
                opt.zero_grad()
                loss = F.cross_entropy(model(x), y)
                loss.backward()  # GS205
                opt.step()
    """)


SAFE = {
    "a new head": "model.fc = nn.Linear(3, 2)",
    "one part is thawed": "for p in model.fc.parameters():\n                p.requires_grad = True",
    "thawed as a whole, which is told": "model.requires_grad_(True)  # GS516",
}


@pytest.mark.parametrize("thaw", SAFE.values(), ids=SAFE)
def test_what_trains_again_is_no_fault(thaw: str) -> None:
    check(f"""
        import torchvision

        def train(loader):
            model = torchvision.models.resnet18()
            for p in model.parameters():
                p.requires_grad = False
            {thaw}
            opt = torch.optim.SGD(model.parameters(), 0.1)
            for x, y in loader:
                opt.zero_grad()
                loss = F.cross_entropy(model(x), y)
                loss.backward()
                opt.step()
    """)


def test_the_gradient_of_an_input_is_no_fault() -> None:
    check("""
        def attack(model, loader):
            for p in model.parameters():
                p.requires_grad = False
            for x, y in loader:
                x.requires_grad_()
                loss = F.cross_entropy(model(x), y)
                loss.backward()
                yield x + 0.1 * x.grad.sign()
    """)


def test_a_prompt_before_a_frozen_model_trains() -> None:
    check("""
        def tune(model, loader):
            for p in model.parameters():
                p.requires_grad = False
            prompt = nn.Parameter(torch.zeros(3))
            opt = torch.optim.SGD([prompt], 0.1)
            for x, y in loader:
                opt.zero_grad()
                loss = F.cross_entropy(model(x + prompt), y)
                loss.backward()
                opt.step()
    """)


def test_a_discriminator_frozen_for_the_step_of_the_generator() -> None:
    check("""
        def train(G, D, loader, opt_g, opt_d):
            for real in loader:
                for p in D.parameters():
                    p.requires_grad = True
                opt_d.zero_grad()
                loss = D(G(real).detach()).mean() - D(real).mean()
                loss.backward()
                opt_d.step()
                for p in D.parameters():
                    p.requires_grad = False
                opt_g.zero_grad()
                loss = -D(G(real)).mean()
                loss.backward()
                opt_g.step()
    """)


TRAINER = """
        import copy

        class Trainer:
            def __init__(self, rate):
                self.G, self.D = nn.Linear(3, 3), nn.Linear(3, 1)
                self.average = copy.deepcopy(self.G)
                for p in self.{frozen}.parameters():
                    p.requires_grad_(False)
                self.opt_g = torch.optim.Adam(self.G.parameters(), lr=rate)
                self.opt_d = torch.optim.Adam(self.D.parameters(), lr=rate)

            def discriminate(self, real):
                self.opt_d.zero_grad()
                loss = self.D(self.G(torch.randn(4, 3)).detach()).mean() - self.D(real).mean()
                loss.backward()
                self.opt_d.step()

            def generate(self):
                {thaw}
                self.opt_g.zero_grad()
                loss = -self.D(self.G(torch.randn(4, 3))).mean()
                loss.backward()
                self.opt_g.step(){told}

            def fit(self, loader):
                for real in loader:
                    self.discriminate(real)
                    self.generate()
"""


def test_a_trainer_that_freezes_the_network_in_place_of_its_average() -> None:
    check(TRAINER.format(frozen="G", thaw="pass", told="  # GS503"))


@pytest.mark.parametrize(
    ("frozen", "thaw"),
    [
        ("average", "pass"),
        ("G", "self.G.requires_grad_(True)"),
        ("G", "self.set_requires_grad(self.G, self.is_on)"),
        ("G", "self.unfreeze()"),
    ],
)
def test_a_trainer_that_may_thaw_it_or_freezes_the_average(frozen: str, thaw: str) -> None:
    check(TRAINER.format(frozen=frozen, thaw=thaw, told=""))


ALTERNATING = """
        gen, disc = nn.Linear(8, 16), nn.Linear(16, 1)
        opt_g = torch.optim.Adam(gen.parameters())
        opt_d = torch.optim.Adam(disc.parameters())
        for z in torch.randn(9, 4, 8):
            opt_d.zero_grad()
            opt_g.zero_grad()
            disc.requires_grad_({trained})
            with torch.no_grad():{cut}
                fake = gen(z)
            disc(fake).mean().backward(){failed}
            {served}.step()
            disc.requires_grad_(False)
    """


def test_a_frozen_critic_is_blamed_and_not_the_generator_that_was_cut_off_on_purpose() -> None:
    check(ALTERNATING.format(trained=False, served="opt_d", cut="", failed="  # GS205"))


def test_a_generator_that_was_cut_off_for_its_own_step_is_blamed() -> None:
    check(ALTERNATING.format(trained=False, served="opt_g", cut="  # GS204", failed=""))


def test_a_critic_that_is_thawed_for_its_step_learns_from_a_generator_that_was_cut_off() -> None:
    check(ALTERNATING.format(trained=True, served="opt_d", cut="", failed=""))
