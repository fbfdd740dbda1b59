"""Features that go on cut off while a penalty, or another network, still trains what computed them."""

from __future__ import annotations

import pytest

from tests.interp.checking import check

CODER = """
        import torch
        import torch.nn.functional as F
        from torch import nn

        encoder, decoder = nn.Linear(8, 3), nn.Linear(3, 8)
        head = nn.Linear(3, 2)
        opt = torch.optim.SGD([*encoder.parameters(), *decoder.parameters(), *head.parameters()], lr=0.1)
        data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(32, 8), torch.randn(32, 2)), batch_size=8)
"""


def trained_by(lines: str) -> str:
    body = "\n".join(" " * 12 + line for line in lines.strip("\n").split("\n"))
    return f"""{CODER}
        for x, y in data:
{body}
            opt.zero_grad()
            loss.backward()
            opt.step()
    """


@pytest.mark.parametrize("cut", ["z.detach()", "z.data", "torch.from_numpy(z.detach().numpy())"])
def test_an_encoder_that_only_a_penalty_trains_is_reported(cut: str) -> None:
    code = "GS202" if "numpy" in cut else "GS203"
    check(
        trained_by(f"""
z = encoder(x)
back = decoder({cut})  # {code}
loss = F.mse_loss(back, x) + 0.1 * z.pow(2).mean()
""")
    )


def test_an_encoder_whose_code_is_computed_with_grad_mode_off_is_reported() -> None:
    check(
        trained_by("""
z = encoder(x)
with torch.no_grad():  # GS204
    noisy = z + torch.randn_like(z)
loss = F.mse_loss(decoder(noisy), x) + 0.1 * z.pow(2).mean()
""")
    )


@pytest.mark.parametrize(
    ("computed", "loss"),
    [
        ("noisy = z.roll(1, 0)", "F.mse_loss(decoder(z), x) + F.mse_loss(head(noisy), y)"),
        ("size = z.norm(dim=1, keepdim=True)", "F.mse_loss(decoder(z / size), x) + 0.1 * z.pow(2).mean()"),
        ("noisy = z * 2", "F.mse_loss(decoder(noisy), x) + F.mse_loss(head(z), y)"),
        (
            "near = torch.cdist(z, z).argmin(1)",
            "F.mse_loss(decoder(z), x) + 0.1 * (z - z[near]).pow(2).mean()",
        ),
    ],
    ids=["probe", "scale", "taught elsewhere", "index"],
)
def test_what_is_computed_with_grad_mode_off_beside_features_that_learn_is_left_alone(
    computed: str, loss: str
) -> None:
    check(
        trained_by(f"""
z = encoder(x)
with torch.no_grad():
    {computed}
loss = {loss}
""")
    )


def test_a_sampled_code_that_is_cut_off_is_reported() -> None:
    check("""
        class Coder(nn.Module):
            def __init__(self):
                super().__init__()
                self.body, self.mean, self.spread = nn.Linear(8, 6), nn.Linear(6, 3), nn.Linear(6, 3)
                self.back = nn.Linear(3, 8)
            def forward(self, x):
                h = torch.relu(self.body(x))
                mean, spread = self.mean(h), self.spread(h)
                z = mean + torch.exp(0.5 * spread) * torch.randn(len(x), 3)
                return self.back(z.detach()), mean, spread  # GS203

        net = Coder()
        opt = torch.optim.Adam(net.parameters())
        for _ in range(4):
            x = torch.randn(5, 8)
            back, mean, spread = net(x)
            gap = -0.5 * (1 + spread - mean.pow(2) - spread.exp()).sum(1).mean()
            loss = F.mse_loss(back, x) + 0.01 * gap
            opt.zero_grad()
            loss.backward()
            opt.step()
    """)


SAMPLING = """
        from torch.distributions import Normal, kl_divergence
"""


def test_a_code_that_is_drawn_without_gradient_beside_its_divergence_is_reported() -> None:
    check(
        SAMPLING
        + trained_by("""
q = Normal(encoder(x), torch.ones(3))
z = q.sample()  # GS205
loss = F.mse_loss(decoder(z), x) + 0.1 * kl_divergence(q, Normal(torch.zeros(3), torch.ones(3))).mean()
""")
    )


@pytest.mark.parametrize(
    ("drawn", "loss"),
    [
        ("q.rsample()", "error + 0.1 * kl_divergence(q, Normal(torch.zeros(3), torch.ones(3))).mean()"),
        ("q.sample()", "error + error.detach() * q.log_prob(z).sum() - 0.1 * q.entropy().mean()"),
        ("q.sample()", "error + error.item() * q.log_prob(z).sum()"),
        ("q.sample()", "error + F.mse_loss(q.mean @ torch.ones(3, 8), x)"),
    ],
    ids=["reparameterised", "score function", "score as a number", "data of its own"],
)
def test_draws_that_are_right_or_trained_otherwise_are_left_alone(drawn: str, loss: str) -> None:
    check(
        SAMPLING
        + trained_by(f"""
q = Normal(encoder(x), torch.ones(3))
z = {drawn}
error = F.mse_loss(decoder(z), x)
loss = {loss}
""")
    )


def test_stages_with_losses_of_their_own_are_left_alone() -> None:
    check(
        trained_by("""
z = encoder(x)
loss = F.mse_loss(decoder(z.detach()), x) + F.mse_loss(z[:, :2], y)
""")
    )


def test_a_probe_on_trained_features_is_left_alone() -> None:
    check(
        trained_by("""
z = encoder(x)
loss = F.mse_loss(head(z), y) + F.mse_loss(decoder(z.detach()), x) + 0.01 * z.abs().mean()
""")
    )


def test_features_that_another_backward_trains_are_left_alone() -> None:
    check(
        trained_by("""
z = encoder(x)
opt.zero_grad()
F.mse_loss(head(z), y).backward()
opt.step()
z = encoder(x)
loss = F.mse_loss(decoder(z.detach()), x) + 0.01 * z.abs().mean()
""")
    )


def test_a_codebook_with_a_commitment_is_left_alone() -> None:
    check("""
        encoder, decoder, codes = nn.Linear(8, 3), nn.Linear(3, 8), nn.Embedding(16, 3)
        opt = torch.optim.SGD([*encoder.parameters(), *decoder.parameters(), *codes.parameters()], lr=0.1)
        for _ in range(4):
            x = torch.randn(5, 8)
            z = encoder(x)
            near = codes(torch.cdist(z, codes.weight).argmin(1))
            fit = F.mse_loss(near, z.detach()) + 0.25 * F.mse_loss(z, near.detach())
            loss = F.mse_loss(decoder(z + (near - z).detach()), x) + fit
            opt.zero_grad()
            loss.backward()
            opt.step()
    """)


CYCLE = """
        import itertools

        there, back = nn.Linear(4, 4), nn.Linear(4, 4)
        judge = nn.Linear(4, 1)
        opt = torch.optim.Adam(itertools.chain(there.parameters(), back.parameters()))
        for _ in range(4):
            a, b = torch.randn(6, 4), torch.randn(6, 4)
            fake_b, fake_a = there(a), back(b)
            fooled = (judge(fake_b) - 1).pow(2).mean() + (judge(fake_a) - 1).pow(2).mean()
"""


def test_a_cycle_that_is_cut_between_its_networks_is_reported() -> None:
    check(f"""{CYCLE}
            kept = F.l1_loss(back(fake_b.detach()), a) + F.l1_loss(there(fake_a), b)  # GS203
            opt.zero_grad()
            (fooled + 10 * kept).backward()
            opt.step()
    """)


def test_a_whole_cycle_is_left_alone() -> None:
    check(f"""{CYCLE}
            kept = F.l1_loss(back(fake_b), a) + F.l1_loss(there(fake_a), b)
            same = F.l1_loss(back(a.detach()), a) + F.l1_loss(there(b), b)
            opt.zero_grad()
            (fooled + 10 * kept + 5 * same).backward()
            opt.step()
    """)


def test_only_the_last_cut_of_a_term_is_reported() -> None:
    check("""
        net, codes = nn.Linear(4, 3), nn.Embedding(5, 3)
        opt = torch.optim.SGD([*net.parameters(), *codes.parameters()], lr=0.1)
        for _ in range(4):
            z = net(torch.randn(6, 4))
            near = codes(torch.cdist(z, codes.weight).argmin(1))
            fit = F.mse_loss(near, z.detach()) + F.mse_loss(z, near.detach())
            loss = z.mean() + fit.item()  # GS202
            opt.zero_grad()
            loss.backward()
            opt.step()
    """)


@pytest.mark.parametrize(
    ("made", "loss"),
    [
        ("copy = torch.tensor(z)  # GS201", "F.mse_loss(head(z * copy), y)"),
        ("copy = z.detach()", "F.mse_loss(head(z * copy), y)"),
        ("copy = torch.tensor(z)", "F.mse_loss(head(z), y) + F.mse_loss(z, copy)"),
        ("copy = torch.tensor(z.argmax(1))", "F.mse_loss(head(z), y[copy.clamp(0, 1)])"),
    ],
    ids=["on the way to a layer", "meant", "compared with", "index"],
)
def test_features_that_torch_tensor_copies_beside_others_that_learn(made: str, loss: str) -> None:
    check(
        trained_by(f"""
z = encoder(x)
{made}
loss = {loss}
""")
    )


SENTENCES = """
class Coder(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(20, 8)
        self.read, self.write = nn.GRU(8, 4, batch_first=True), nn.GRU(8, 4, batch_first=True)
        self.mean, self.logv, self.back = nn.Linear(4, 2), nn.Linear(4, 2), nn.Linear(2, 4)
        self.out, self.topic = nn.Linear(4, 20), nn.Linear(4, 3)

    def forward(self, x):
        e = self.words(x)
        _, h = self.read(e)
        mean, logv = self.mean(h[0]), self.logv(h[0])
        z = {z}
        o, _ = self.write(e, self.back(z).unsqueeze(0))
        return self.out(o), mean, logv, self.topic({topic})

coder = Coder()
opt = torch.optim.Adam(coder.parameters())
for x in torch.randint(0, 20, (10, 4, 8)):
    logits, mean, logv, topic = coder(x)
    penalty = -0.5 * (1 + logv - mean.square() - logv.exp()).sum()
    loss = F.cross_entropy(logits.flatten(0, 1), x.flatten()) + 0.1 * penalty
    loss = loss + F.cross_entropy(topic, torch.randint(0, 3, (4,)))
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
DRAWN = "torch.randn(4, 2) * torch.exp(0.5 * logv) + mean"


def test_an_encoder_that_a_penalty_alone_trains_is_reported_beside_words_that_both_read() -> None:
    check(SENTENCES.format(z=f"({DRAWN}).detach()  # GS203", topic="o[:, -1]"))


def test_an_encoder_that_its_decoder_or_another_loss_trains_is_silent() -> None:
    check(SENTENCES.format(z=DRAWN, topic="o[:, -1]"))
    check(SENTENCES.format(z=f"({DRAWN}).detach()", topic="torch.cat([mean, logv], -1)"))
