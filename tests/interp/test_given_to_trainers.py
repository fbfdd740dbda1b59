"""What a trainer is given when it is made is of the one class that has all that its methods ask of it."""

from __future__ import annotations

import pytest

from tests.interp.checking import check

PROGRAM = """
        class Diffusion(nn.Module):
            def __init__(self, model, *, size):
                super().__init__()
                self.model = model
                self.channels = model.channels
                self.size = size

            def losses(self, x):
                noise = torch.randn_like(x)
                out = self.model(x + noise)
                return F.mse_loss({out}, noise)

            def forward(self, x):
                return self.losses(x * 2 - 1)


        class Trainer:
            def __init__(self, {parameter}, loader, *, rate=1e-3):
                self.net = {parameter}
                self.channels = {parameter}.channels
                self.loader = loader
                self.opt = torch.optim.Adam({parameter}.parameters(), lr=rate)

            def train(self):
                for data in self.loader:
                    self.opt.zero_grad()
                    loss = self.net(data)
                    loss.backward()
                    self.opt.step()
"""


def test_a_name_alone_breaks_a_tie() -> None:
    check(PROGRAM.format(parameter="diffusion_model", out="out.detach()  # GS203\n                    "))
    check(PROGRAM.format(parameter="diffusion_model", out="out"))


ANOTHER = """
        class Classifier(nn.Module):
            def forward(self, x):
                return x.mean()
"""


def test_one_attribute_and_another_name_tell_nothing_where_there_are_two_models() -> None:
    check(PROGRAM.format(parameter="given", out="out.detach()") + ANOTHER)


def test_one_attribute_tells_of_the_only_model() -> None:
    check(PROGRAM.format(parameter="given", out="out.detach()  # GS203\n                    "))
    check(PROGRAM.format(parameter="given", out="out"))


def test_what_methods_ask_of_the_attribute_counts() -> None:
    check("""
        class Coder(nn.Module):
            def __init__(self):
                super().__init__()
                self.enc, self.dec = nn.Linear(8, 3), nn.Linear(3, 8)

            def encode(self, x):
                return torch.sigmoid(self.enc(x))

            def decode(self, z):
                z *= 2  # GS101
                return self.dec(z)

        class Trainer:
            def __init__(self, given, opt):
                self.given, self.opt = given, opt
                self.thing = given

            def step(self, x):
                self.opt.zero_grad()
                z = self.thing.encode(x)
                loss = F.mse_loss(self.thing.decode(z), x)
                loss.backward()
                self.opt.step()
    """)


@pytest.mark.parametrize("other", ["encode", "unheard_of"])
def test_a_class_that_lacks_what_is_asked_is_not_meant(other: str) -> None:
    check(f"""
        class Coder(nn.Module):
            def __init__(self):
                super().__init__()
                self.enc = nn.Linear(8, 3)

            def encode(self, x):
                return self.enc(x).detach()

        class Trainer:
            def __init__(self, coder, opt):
                self.coder, self.opt = coder, opt
                self.shape = coder.unheard_of_shape

            def step(self, x):
                self.opt.zero_grad()
                loss = self.coder.{other}(x).mean()
                loss.backward()
                self.opt.step()
    """)
