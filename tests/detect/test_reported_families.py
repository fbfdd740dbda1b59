"""Families of silent faults after users' reports: each hazard on its line, and the right program beside it silent."""

from __future__ import annotations

from textwrap import dedent

import pytest

from gradsight.analysis import analyze
from gradsight.model import Source

HEAD = """\
import numpy as np
import torch
import torch.nn as nn
from torch.distributions import Normal
from torch.utils.checkpoint import checkpoint
"""


def check(text: str, *expected: tuple[str, str]) -> None:
    """Compare the alarms with the expected codes, each on the line that begins with a text."""
    program = HEAD + dedent(text)
    lines = program.split("\n")
    alarms = [
        (finding.code, lines[finding.span.line - 1].strip())
        for finding in analyze(Source("program.py", program)).findings
        if finding.severity in ("error", "warning")
    ]
    assert [(code, line.startswith(start)) for (code, line), (_, start) in zip(alarms, expected)] == [
        (code, True) for code, _ in expected
    ], alarms
    assert len(alarms) == len(expected), alarms


def trained(model: str, loss: str) -> str:
    return f"""
net = {model}
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(2):
    loss = {loss}
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


ROWS = """
net = nn.Linear(4, 3)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(2):
    points = torch.rand(9, 4)
    cells = {cells}
    grid = torch.zeros(12, 3)
    {write}
    optimizer.zero_grad()
    grid.pow(2).mean().backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    "cells",
    ["torch.randint(0, 12, (9,))", "(points[:, 0] * 12).long()", "torch.cdist(points, points).argmin(1)"],
)
def test_a_sum_over_rows_that_come_several_times_is_reported(cells: str) -> None:
    check(ROWS.format(cells=cells, write="grid[cells] += net(points)"), ("GS107", "grid[cells] +="))


@pytest.mark.parametrize(
    ("cells", "write"),
    [
        ("torch.randperm(12)[:9]", "grid[cells] += net(points)"),
        ("torch.arange(9)", "grid[cells] += net(points)"),
        ("torch.randint(0, 12, (9,))", "grid = grid.index_add(0, cells, net(points))"),
        ("points[:, 0] > 0.5", "grid[:9][cells] += net(points[cells])"),
    ],
)
def test_rows_that_come_once_and_sums_by_index_add_are_silent(cells: str, write: str) -> None:
    check(ROWS.format(cells=cells, write=write))


SCALED = """
class Head(nn.Module):
    {cls}
    def __init__(self):
        super().__init__()
        self.f = nn.Linear(4, 3)
        {init}

    def forward(self, x):
        return self.f(x) * self.scale
"""


def test_a_parameter_of_a_class_is_registered_by_no_instance() -> None:
    text = SCALED.format(cls="scale = nn.Parameter(torch.ones(3))", init="pass")
    check(text + trained("Head()", "net(torch.randn(5, 4)).pow(2).mean()"), ("GS601", "scale ="))


def test_a_parameter_in_a_buffer_is_given_to_no_optimizer() -> None:
    text = SCALED.format(cls="", init='self.register_buffer("scale", nn.Parameter(torch.ones(3)))')
    check(text + trained("Head()", "net(torch.randn(5, 4)).pow(2).mean()"), ("GS601", "self.register_buffer"))


@pytest.mark.parametrize(
    ("cls", "init"),
    [
        ("", "self.scale = nn.Parameter(torch.ones(3))"),
        ("", 'self.register_buffer("scale", torch.ones(3))'),
        ("scale = 2.0", "pass"),
        ("scale = torch.ones(3)", "pass"),
    ],
)
def test_parameters_buffers_and_constants_in_their_place_are_silent(cls: str, init: str) -> None:
    check(
        SCALED.format(cls=cls, init=init) + trained("Head()", "net(torch.randn(5, 4)).pow(2).mean()"),
    )


STATISTICS = """
norm = nn.BatchNorm1d(4)
norm.eval()
x = torch.randn(6, 4, requires_grad=True)
out = norm(x)
{before}
out.pow(2).mean().backward()
{after}
"""


def test_statistics_that_are_written_between_forward_and_backward_are_reported() -> None:
    write = "norm.running_mean.mul_(0.9)"
    check(STATISTICS.format(before=write, after=""), ("GS101", write))
    check(STATISTICS.format(before="", after=write))


def test_a_norm_that_is_called_twice_in_training_is_silent() -> None:
    check("""
        norm = nn.BatchNorm1d(4)
        x = torch.randn(6, 4, requires_grad=True)
        (norm(x).pow(2).mean() + norm(2 * x).mean()).backward()
        """)


CUBE = """
class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        {keep}
        return x * x * x

    @staticmethod
    def backward(ctx, grad):
        {read}
        return grad * 3 * square

x = torch.randn(4, requires_grad=True)
y = Cube.apply(x).sum()
(slope,) = torch.autograd.grad(y, x, create_graph=True)
{end}
"""


def test_what_is_computed_and_kept_on_ctx_has_no_graph_in_a_second_derivative() -> None:
    kept = {"keep": "ctx.square = x * x", "read": "square = ctx.square"}
    check(CUBE.format(**kept, end="slope.pow(2).sum().backward()"), ("GS706", "ctx.square ="))
    check(CUBE.format(**kept, end="print(slope)"))
    saved = {"keep": "ctx.save_for_backward(x)", "read": "square = ctx.saved_tensors[0] ** 2"}
    check(CUBE.format(**saved, end="slope.pow(2).sum().backward()"))


RECOMPUTED = """
block = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 5))
optimizer = torch.optim.SGD(block.parameters(), lr=0.1)
for _ in range(2):
    hidden = {hidden}
    other = block(torch.randn(6, 4)).pow(2).mean()
    optimizer.zero_grad()
    other.backward()
    {between}
    hidden.pow(2).mean().backward()
    optimizer.step()
"""
CHECKPOINTED = "checkpoint(block, torch.randn(6, 4), use_reentrant=False)"


def test_a_step_before_a_recomputation_is_reported() -> None:
    check(RECOMPUTED.format(hidden=CHECKPOINTED, between="optimizer.step()"), ("GS104", "optimizer.step()"))


def test_a_step_after_all_recomputations_is_silent() -> None:
    check(RECOMPUTED.format(hidden=CHECKPOINTED, between="pass"))


ADVERSARIAL = """
maker, critic = nn.Linear(4, 4), nn.Linear(6, 1)
opt_m = torch.optim.Adam(maker.parameters(), lr=1e-3)
opt_c = torch.optim.Adam(critic.parameters(), lr=1e-3)
for _ in range(2):
    x, real = torch.randn(5, 4), torch.randn(5, 4)
    fake = maker(x)
    loss_c = critic(torch.cat([fake.detach(), x[:, :2]], 1)).mean() - critic(torch.cat([real, x[:, :2]], 1)).mean()
    opt_c.zero_grad()
    loss_c.backward()
    opt_c.step()
    judged = critic(torch.cat([{judged}, x[:, :2]], 1))
    loss_m = -judged.mean() + nn.functional.l1_loss(fake, real)
    opt_m.zero_grad()
    loss_m.backward()
    opt_m.step()
"""


def test_a_critic_that_judges_a_detached_result_is_reported() -> None:
    check(ADVERSARIAL.format(judged="fake"))
    # The other half of the batch keeps the critic in the graph.
    check(
        ADVERSARIAL.format(judged="fake.detach()").replace(
            "x[:, :2]], 1))\n    loss_m", "maker(x)[:, :2]], 1))\n    loss_m"
        ),
        ("GS203", "judged ="),
    )


VARIATIONAL = """
encoder, scale, decoder = nn.Linear(6, 2), nn.Linear(6, 2), nn.Linear(2, 6)
optimizer = torch.optim.Adam([*encoder.parameters(), *scale.parameters(), *decoder.parameters()], lr=1e-3)
for _ in range(2):
    x = torch.randn(5, 6)
    posterior = Normal(encoder(x), scale(x).exp())
    code = posterior.{draw}()
    kl = (posterior.mean.pow(2) + posterior.stddev.pow(2) - 2 * posterior.stddev.log() - 1).mean()
    loss = (decoder(code) - x).pow(2).mean() + kl
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def test_a_code_that_is_drawn_without_a_path_is_reported() -> None:
    check(VARIATIONAL.format(draw="sample"), ("GS205", "code ="))
    check(VARIATIONAL.format(draw="rsample"))


ACCUMULATED = """
net = nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu")
for number in range(6):
    scaler.scale(net(torch.randn(5, 4)).mean()).backward()
    {each}
    if (number + 1) % 3 == 0:
        {once}
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
"""


def test_gradients_that_are_unscaled_twice_are_reported() -> None:
    unscale = "scaler.unscale_(optimizer)"
    check(ACCUMULATED.format(each=unscale, once="pass"), ("GS511", unscale))
    check(ACCUMULATED.format(each="pass", once=unscale))


ARRAYS = """
class Series(torch.utils.data.Dataset):
    def __init__(self, values):
        self.values = values.astype(np.float32)

    def __len__(self):
        return 4

    def __getitem__(self, index):
        piece = torch.from_numpy(self.values[index * 3 : index * 3 + 3]{copy})
        {write}
        return piece

net = nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
loader = torch.utils.data.DataLoader(Series(np.random.rand(12)), batch_size=2)
for _ in range(2):
    for batch in loader:
        optimizer.zero_grad()
        net(batch).pow(2).mean().backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("copy", "write", "told"),
    [
        ("", "piece -= 0.5", [("GS107", "piece -=")]),
        (".copy()", "piece -= 0.5", []),
        ("", "piece = piece - 0.5", []),
    ],
)
def test_a_sample_that_lies_in_the_array_of_a_dataset_is_not_to_be_changed(
    copy: str, write: str, told: list[tuple[str, str]]
) -> None:
    check(ARRAYS.format(copy=copy, write=write), *told)


ATTACK = """
net = nn.Linear(4, 2)
x, y = torch.rand(5, 4), torch.randint(0, 2, (5,))
delta = torch.zeros_like(x).requires_grad_()
for _ in range(4):
    loss = nn.functional.cross_entropy(net(x + delta), y)
    net.zero_grad()
    loss.backward()
    delta.data = torch.clamp(delta.detach() + 0.1 * delta.grad.detach().sign(), -0.3, 0.3)
    delta.data = torch.max(torch.min(1 - x, delta.data), 0 - x)
    {clear}
"""


def test_the_gradient_of_a_perturbation_that_nobody_clears_is_reported() -> None:
    check(ATTACK.format(clear="pass"), ("GS501", "loss.backward()"))
    check(ATTACK.format(clear="delta.grad = None"))


def averaged(update: str) -> str:
    return f"""
net, target = nn.Linear(3, 2), nn.Linear(3, 2)
target.load_state_dict(net.state_dict())
tau = 0.1
for step in range(3):
    net(torch.ones(1, 3)).sum().backward()
    slow, fast = target.state_dict(), net.state_dict()
    for name in slow:
        {update}
    target.load_state_dict(slow)
"""


def test_an_average_of_a_tensor_with_itself_is_reported() -> None:
    check(averaged("slow[name] = 0.9 * slow[name] + 0.1 * slow[name]"), ("GS515", "slow[name] = 0.9"))
    check(averaged("slow[name] = slow[name] * (1 - tau) + tau * slow[name]"), ("GS515", "slow[name] = slow"))


def test_an_average_of_two_tensors_is_not() -> None:
    check(averaged("slow[name] = 0.9 * slow[name] + 0.1 * fast[name]"))
    check(averaged("slow[name] = 0.5 * slow[name] + 0.7 * slow[name]"))
    check(averaged("slow[name] = (1 - tau) * slow[name].clone() + tau * fast[name]"))


def rotated(cache: str, freqs: str = 'torch.einsum("i,f->if", positions, self.freqs)') -> str:
    return f"""
class Rotary(nn.Module):
    def __init__(self):
        super().__init__()
        self.freqs = nn.Parameter(torch.ones(4))
        self.cached = None

    def forward(self, length):
        if self.cached is not None and length <= self.cached.shape[0]:
            return self.cached[:length]
        positions = torch.arange(length).float()
        freqs = {freqs}
        {cache}
        return freqs

rotary = Rotary()
optimizer = torch.optim.SGD(rotary.parameters(), lr=0.1)
for _ in range(2):
    x = torch.randn(5, 4)
    loss = (x * rotary(5).cos()).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def test_a_cache_that_keeps_its_graph_is_told_where_it_is_filled() -> None:
    check(rotated("self.cached = freqs"), ("GS403", "self.cached = freqs"))


def test_frequencies_that_are_computed_in_each_round_are_not() -> None:
    check(rotated("pass"))


def placed(term: str, total: str = "losses.sum()") -> str:
    return f"""
body, head = nn.Linear(3, 4), nn.Linear(4, 2)
teacher = nn.Linear(3, 2).requires_grad_(False)
optimizer = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.1)
for _ in range(2):
    x, y = torch.randn(5, 3), torch.rand(5, 2)
    scores = head(torch.relu(body(x)))
    losses = torch.zeros(2)
    losses[0] = scores.square().mean()
    losses[1] = 0.3 * nn.functional.binary_cross_entropy_with_logits(scores, y) + 2 * {term}
    optimizer.zero_grad()
    {total}.backward()
    optimizer.step()
"""


def test_a_term_that_is_cut_in_a_place_of_a_loss_is_reported() -> None:
    check(placed("(scores.detach() - teacher(x)).square().mean()"), ("GS203", "losses[1]"))
    check(placed("(scores.detach() - teacher(x)).square().mean()", "losses[1]"), ("GS203", "losses[1]"))


def test_a_term_with_its_graph_or_of_a_teacher_alone_is_not() -> None:
    check(placed("(scores - teacher(x)).square().mean()"))
    check(placed("teacher(x).square().mean()"))
    check(placed("(scores - teacher(x).detach()).square().mean()"))


def in_turn(before: str, after: str) -> str:
    return f"""
generator, critic = nn.Linear(3, 4), nn.Linear(4, 1)
optimizers = [torch.optim.Adam(generator.parameters()), torch.optim.Adam(critic.parameters())]
for real in torch.randn(3, 5, 4):
    for number, optimizer in enumerate(optimizers):
        fake = generator(torch.randn(5, 3))
        {before}
        if number == 0:
            loss = -critic(fake).mean()
        else:
            loss = critic(fake.detach()).mean() - critic(real).mean()
        loss.backward()
        optimizer.step()
        {after}
"""


def test_optimizers_in_turn_that_clear_only_their_own_gradients_are_reported() -> None:
    check(in_turn("pass", "optimizer.zero_grad()"), ("GS508", "loss.backward()"))


def test_optimizers_in_turn_that_clear_before_their_loss_are_not() -> None:
    check(in_turn("optimizer.zero_grad()", "pass"))
    check(in_turn("for other in optimizers: other.zero_grad()", "pass"))
    check(in_turn("pass", "generator.zero_grad(); critic.zero_grad()"))
    check(in_turn("critic.requires_grad_(number == 1)", "optimizer.zero_grad()"))


def summed(terms: str) -> str:
    return f"""
class Tasks(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(3, 4)
        self.heads = nn.ModuleList(nn.Linear(4, 1) for _ in range(3))

    def losses(self, x):
        h = torch.relu(self.body(x))
{terms}

net = Tasks()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(2):
    loss = net.losses(torch.randn(5, 3))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def test_a_sum_of_losses_that_is_overwritten_is_reported() -> None:
    check(
        summed(
            "        loss = 0.0\n        for head in self.heads:\n            loss = head(h).square().mean()\n        return loss"
        ),
        ("GS209", "loss = head(h)"),
    )
    check(
        summed(
            "        loss = self.heads[0](h).square().mean()\n        loss += self.heads[1](h).square().mean()\n"
            "        loss = 0.1 * self.heads[2](h).square().mean()\n        return loss"
        ),
        ("GS209", "loss = 0.1"),
    )


def test_a_sum_that_goes_on_or_begins_again_is_not() -> None:
    check(
        summed(
            "        loss = 0.0\n        for head in self.heads:\n            loss = loss + head(h).square().mean()\n        return loss"
        )
    )
    check(
        summed(
            "        loss = 0.0\n        for _ in range(3):\n            h = h + torch.tanh(h)\n            loss = self.heads[0](h).square().mean()\n"
            "        return loss + self.heads[1](h).mean() + self.heads[2](h).mean()"
        )
    )
    check(
        summed(
            "        parts = []\n        for head in self.heads:\n            loss = head(h).square().mean()\n            loss += head(h).abs().mean()\n"
            "            parts.append(loss)\n        return sum(parts)"
        )
    )


ROWS_OF_TERMS = """
body, head = nn.Linear(3, 4), nn.Linear(4, 2)
out = head(body(torch.randn(5, 3)))
rows = {rows}
for j in range(2):
    {fill}
sum(rows[0]).backward()
"""


def test_entries_that_are_all_one_list_are_reported_where_they_are_made() -> None:
    check(ROWS_OF_TERMS.format(rows="[[]] * 2", fill="rows[j].append(out[:, j].mean())"), ("GS107", "rows ="))


def test_lists_of_their_own_are_not() -> None:
    check(ROWS_OF_TERMS.format(rows="[[] for _ in range(2)]", fill="rows[j].append(out[:, j].mean())"))
    check(ROWS_OF_TERMS.format(rows="[[]] * 2", fill="rows[j] = [out[:, j].mean()]"))
