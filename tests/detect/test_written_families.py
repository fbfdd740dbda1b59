"""What programs of the random tester's families have shown: each hazard on its line, and the right program beside it silent."""

from __future__ import annotations

import pytest

from tests.detect.test_reported_families import check, trained

PERTURBED = """
def perturb(z, noise):
    {change}
    return z

net = nn.Linear(4, 3)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    {kept}
    noise = torch.randn(6, 3)
    z = perturb(z, noise)
    loss = z.pow(2).mean() + {read}.abs().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
HELD = [
    ("kept = net(torch.randn(6, 4)); z = kept", "kept"),
    ('kept = {"mu": net(torch.randn(6, 4))}\n    z = kept["mu"]', 'kept["mu"]'),
]


@pytest.mark.parametrize(("kept", "read"), HELD)
@pytest.mark.parametrize("change", ["z += noise", "z.add_(noise)", "z.mul_(1 + noise.tanh())"])
def test_what_a_call_changes_under_another_name_is_told(kept: str, read: str, change: str) -> None:
    check(PERTURBED.format(change=change, kept=kept, read=read), ("GS107", change))


@pytest.mark.parametrize(("kept", "read"), HELD)
@pytest.mark.parametrize("change", ["z = z + noise", "z = z.clone(); z += noise"])
def test_a_call_that_changes_its_own_copy_is_not_told(kept: str, read: str, change: str) -> None:
    check(PERTURBED.format(change=change, kept=kept, read=read))


def test_what_is_not_read_again_may_be_changed() -> None:
    kept, _ = HELD[0]
    check(PERTURBED.format(change="z += noise", kept=kept, read="z"))


NORMALISED = """
def normalise(batch):
    {change}
    return batch

net = nn.Sequential(nn.GELU(), nn.Linear(4, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
points = torch.randn(12, 4)
for _ in range(3):
    batch = points{rows}.contiguous()
    batch = normalise(batch)
    loss = net(batch).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize("rows", ["", "[2:]"])
@pytest.mark.parametrize(
    "change", ["batch -= 0.5", "batch.sub_(0.5).div_(2)", "batch[:, 0] = batch[:, 0] * 0.5"]
)
def test_data_that_a_function_rescales_in_every_round_is_told(rows: str, change: str) -> None:
    check(NORMALISED.format(change=change, rows=rows).replace("nn.GELU(), ", ""), ("GS107", change))


@pytest.mark.parametrize(
    "change",
    [
        "batch = batch - 0.5",
        "batch = batch.clone(); batch -= 0.5",
        "batch.clamp_(0, 1)",
        "batch += torch.randn(10, 4)",
    ],
)
def test_copies_bounds_and_states_are_not_told_as_data(change: str) -> None:
    check(NORMALISED.format(change=change, rows="[2:]"))


def test_rows_that_are_summed_by_a_plain_assignment_are_told() -> None:
    text = trained(
        "nn.Linear(4, 3)", "put(torch.zeros(4, 3), torch.arange(6) // 2, net(torch.rand(6, 4))).pow(2).mean()"
    )
    put = "\ndef put(total, rows, h):\n    total[rows] = total[rows] {} h\n    return total\n"
    check(put.format("+") + text, ("GS107", "total[rows]"))
    check(put.format("*") + text)


STACKED = "torch.stack([net(torch.ones(5, 4)).pow(2).mean(), 0.5 * {}]).{}"


def test_a_term_that_was_stacked_without_its_graph_is_told() -> None:
    penalty = "\ndef penalty(h):\n    flat = h.detach()\n    return flat.abs().mean()\n"
    term = "penalty(net(torch.rand(5, 4)))"
    check(penalty + trained("nn.Linear(4, 3)", STACKED.format(term, "sum()")), ("GS203", "flat = h.detach()"))
    check(penalty + trained("nn.Linear(4, 3)", STACKED.format(term, "sum(0)[None][0]")))
    check(penalty.replace(".detach()", "") + trained("nn.Linear(4, 3)", STACKED.format(term, "sum()")))


def test_a_term_whose_gradient_is_zero_everywhere_is_told() -> None:
    term = "\ndef term(h):\n    coarse = {}\n    return coarse.pow(2).mean() + coarse.mean()\n"
    text = trained(
        "nn.Linear(4, 3)", "net(torch.ones(5, 4)).pow(2).mean() + 0.1 * term(net(torch.rand(5, 4)))"
    )
    check(term.format("h.round()") + text, ("GS208", "coarse = h.round()"))
    check(term.format("h + (h.round() - h).detach()") + text)
    check(term.format("h * h.sign()") + text)


@pytest.mark.parametrize("total", ["z + (q - z)", "q + (z - z)", "z - (z - q)", "q - z + z"])
def test_a_gradient_that_cancels_in_any_order_is_told(total: str) -> None:
    text = """
    encoder, decoder = nn.Linear(4, 3), nn.Linear(3, 4)
    optimizer = torch.optim.SGD([*encoder.parameters(), *decoder.parameters()], lr=0.1)
    for _ in range(2):
        z = encoder(torch.rand(5, 4))
        q = z.round()
        code = TOTAL
        optimizer.zero_grad()
        decoder(code).pow(2).mean().backward()
        optimizer.step()
    """
    check(text.replace("TOTAL", total), ("GS208", "code = "))
    check(text.replace("TOTAL", "q.detach() + z - z.detach()"))
    check(text.replace("TOTAL", "q - z + z + z"))


AVERAGED = """
import copy
net = nn.Sequential(nn.Linear(4, 5), {norm}, nn.Linear(5, 1))
ema = copy.deepcopy(net).eval()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    loss = net(torch.randn(6, 4)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for slow, fast in zip(ema.parameters(), net.parameters()):
            slow.copy_({average})
print(ema(torch.ones(3, 4)))
"""


@pytest.mark.parametrize("average", ["0.9 * slow + 0.1 * fast", "slow + 0.1 * (fast - slow)"])
def test_an_average_by_operators_leaves_statistics_behind_too(average: str) -> None:
    check(AVERAGED.format(norm="nn.BatchNorm1d(5)", average=average), ("GS519", "slow.copy_"))
    check(AVERAGED.format(norm="nn.LayerNorm(5)", average=average))


def test_a_step_by_a_method_that_nobody_keeps_is_told() -> None:
    text = """
    net = nn.Linear(4, 1)
    for _ in range(3):
        net(torch.rand(5, 4)).pow(2).mean().backward()
        with torch.no_grad():
            for p in net.parameters():
                STEP
        net.zero_grad()
    """
    check(text.replace("STEP", "p = p.sub(p.grad, alpha=0.1)"), ("GS515", "p = p.sub"))
    check(text.replace("STEP", "p.copy_(p.sub(p.grad, alpha=0.1))"))
    check(text.replace("STEP", "p.sub_(p.grad, alpha=0.1)"))


def test_an_array_has_no_backward() -> None:
    text = """
    net = nn.Linear(4, 1)
    loss = net(torch.rand(5, 4)).pow(2).mean()NUMBER
    loss.backward()
    """
    check(text.replace("NUMBER", ".detach().numpy()"), ("GS202", "loss = "))
    check(text.replace("NUMBER", ""))


SQUARE = """
class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, given, factor):
        ctx.save_for_backward(given)
        return given * given * factor
    @staticmethod
    def backward(ctx, grad):
        (kept,) = ctx.saved_tensors
        {change}
        return {returned}

def square(*given):
    return Square.apply(*given)
"""
SQUARED = trained("nn.Linear(4, 3)", "square(net(torch.rand(5, 4)), 1.0).mean()")


@pytest.mark.parametrize("change", ["kept.mul_(2).mul_(grad)", "kept.data.mul_(2)", "kept.detach().mul_(2)"])
def test_writes_in_a_chain_or_through_data_to_what_was_saved_are_told(change: str) -> None:
    check(SQUARE.format(change=change, returned="grad * kept, None") + SQUARED, ("GS705", change))
    check(SQUARE.format(change="slope = kept.mul(2).mul_(grad)", returned="slope, None") + SQUARED)


def test_gradients_are_counted_where_all_arguments_are_handed_on() -> None:
    check(
        SQUARE.format(change="pass", returned="grad * kept, None, grad") + SQUARED,
        ("GS701", "return grad * kept"),
    )
    check(SQUARE.format(change="pass", returned="grad * kept, None, None") + SQUARED)


def test_a_gradient_of_none_is_told_where_the_batch_has_no_known_size() -> None:
    text = """
    from torch.utils.data import DataLoader, TensorDataset
    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx, given, weight):
            ctx.save_for_backward(given, weight)
            return given * weight
        @staticmethod
        def backward(ctx, grad):
            given, weight = ctx.saved_tensors
            return RETURNED
    net, weight = nn.Linear(4, 3), nn.Parameter(torch.ones(3))
    optimizer = torch.optim.SGD([*net.parameters(), weight], lr=0.1)
    for (x,) in DataLoader(TensorDataset(torch.randn(18, 4)), batch_size=6):
        loss = Scale.apply(net(x), weight).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    """
    check(text.replace("RETURNED", "grad * weight, None"), ("GS205", "return grad * weight"))
    check(text.replace("RETURNED", "grad * weight, (grad * given).sum(0)"))


def test_what_a_reentrant_checkpoint_overwrites_is_told() -> None:
    text = """
    def block(x):
        h = x.exp()
        CHANGE
        return h * 0.5
    net, head = nn.Linear(4, 4), nn.Linear(4, 1)
    loss = head(checkpoint(block, net(torch.rand(5, 4)), use_reentrant=True)).mean()
    loss.backward()
    """
    check(text.replace("CHANGE", "h.add_(1)"), ("GS101", "h.add_(1)"))
    check(text.replace("CHANGE", "h = h.add(1)"))
