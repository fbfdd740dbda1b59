"""Changes that no version counter shows: which of them backward sees.  Each program runs on torch."""

from __future__ import annotations

import pytest

from tests.interp.checking import check
from tests.interp.running import refused, run, safe

REPLACED = """
    x = (torch.rand(3, 3) / 2 + 0.3).requires_grad_()
    w = (torch.rand(3, 3) / 2 + 0.3).requires_grad_()
    value = {value}
    loss = ({call}).sum()
    wanted = torch.autograd.grad(loss, [x, w], retain_graph=True, allow_unused=True)
    value.data = value.data * 0.5 + torch.eye(3) / 9{said}
    loss.backward()
    given = [x.grad, w.grad]
    assert {claim}(torch.allclose(a, b) for a, b in zip(wanted, given) if a is not None)
"""
SEEN = [
    *(
        f"torch.{name}(value)"
        for name in "sin cos sinh cosh asin acos atan log log2 log10 log1p square erf lgamma digamma norm prod".split()
    ),
    *(f"F.{name}(value)" for name in "gelu silu softplus mish hardswish".split()),
    *(f"torch.{name}(value, w)" for name in "mul mm matmul maximum minimum".split()),
    "w / value",
    "value ** 3",
    "value @ w",
    "torch.mm(w, value)",
    "torch.mv(value, w[0])",
    "torch.addmm(w, value, w)",
    "torch.addcmul(w, value, w)",
    "torch.atan2(value, w)",
    "torch.lerp(w, w * 2, value)",
    "torch.hypot(value, w)",
    "torch.cumprod(value, 0)",
    "torch.var(value)",
    "torch.std(value)",
    "torch.logsumexp(value, 0)",
    "F.mse_loss(value, w)",
    "F.smooth_l1_loss(value, w)",
    "nn.GELU()(value)",
]
NOT_SEEN = [
    "value.exp()",
    "torch.sigmoid(value)",
    "F.linear(w, value)",
    "F.linear(w, value, w[0])",
    "value[None] @ w[None]",
    "torch.bmm(value[None], w[None])",
    "torch.baddbmm(w, value[None], w[None])",
    "torch.einsum('ij,jk->ik', value, w)",
    "torch.outer(value[0], w[0])",
    "value[1:] * w[1:]",
    "value.t() * w",
    "value.detach() * w",
]


@pytest.mark.parametrize("call", SEEN)
@pytest.mark.parametrize("value", ["x", "x * 1"])
def test_other_data_is_seen_where_the_object_was_kept(call: str, value: str) -> None:
    program = REPLACED.format(value=value, call=call, said="  # GS104", claim="not all")
    check(program)
    run(program)


@pytest.mark.parametrize("call", NOT_SEEN)
@pytest.mark.parametrize("value", ["x", "x * 1"])
def test_other_data_is_not_seen_where_a_view_or_a_result_was_kept(call: str, value: str) -> None:
    safe(REPLACED.format(value=value, call=call, said="", claim="all"))


@pytest.mark.parametrize("product", ["torch.kron(left, right)", "left.kron(right)"])
def test_a_write_that_torch_does_not_compare_changes_the_gradient(product: str) -> None:
    program = f"""
        x = torch.ones(2, requires_grad=True)
        left, right = x * 2, x * 3
        out = {product}.sum()
        right.mul_(5)  # GS104
        out.backward()
        assert x.grad.tolist() == [36 * 2, 36 * 2]
    """
    check(program)
    run(program)


WHOLE = """
    source = torch.ones(2, requires_grad=True)
    owner = torch.zeros({size})
    table = owner{part}
    {write}
    table.sum().backward()
    table.sum().backward(){said}
"""


@pytest.mark.parametrize("index", ["...", ":", "0:2", ":,", "..., :", "()", "0:5"])
def test_an_assignment_to_the_whole_keeps_nothing(index: str) -> None:
    safe(WHOLE.format(size=2, part="", write=f"table[{index}] = source", said=""))


@pytest.mark.parametrize(
    ("size", "part", "write"),
    [
        (3, "", "table[0:2] = source"),
        (2, "", "table[None] = source"),
        (2, "", "table[torch.tensor([0, 1])] = source"),
        (3, "[:2]", "table[...] = source"),
        (2, "", "table[0] = source[0]"),
    ],
)
def test_an_assignment_to_a_part_keeps_where_it_went(size: int, part: str, write: str) -> None:
    refused(WHOLE.format(size=size, part=part, write=write, said="  # GS402"), "second time")


@pytest.mark.parametrize(
    "write",
    [
        "hidden[:, 1] = 0",
        "row = hidden[0]; row.zero_()",
        "row = hidden[0]; row[1] = 0",
        "row, _ = hidden.unbind(0); row.zero_()",
        "flat = hidden.view(-1); flat[1] = 0",
        "[row.zero_() for row in hidden]",
    ],
)
def test_a_write_without_grad_mode_changes_the_value_and_not_the_gradient(write: str) -> None:
    program = f"""
        net = nn.Linear(3, 3)
        hidden = net(torch.ones(2, 3))
        with torch.no_grad():
            {write}  # GS105
        hidden.sin().sum().backward()
        blank = hidden.detach() == 0
        assert blank.any() and net.bias.grad.ne(0).all()
    """
    check(program)
    run(program)


def test_rows_without_a_graph_may_be_written() -> None:
    safe("""
        data = torch.ones(2, 3)
        with torch.no_grad():
            for row in data:
                row[1] = 0
        kept = nn.Linear(3, 3)(data)
        with torch.no_grad():
            for row in kept.clone():
                row.zero_()
        kept.sin().sum().backward()
    """)


@pytest.mark.parametrize("row", ["state[1]", "state.select(0, 1)", "state.narrow(0, 1, 1)"])
@pytest.mark.parametrize(("written", "said"), [(0, ""), (1, "  # GS104")])
def test_a_write_beside_what_was_kept_does_not_touch_it(row: str, written: int, said: str) -> None:
    program = f"""
        w = torch.rand(2, 4, requires_grad=True)
        state = w * 2
        part = {row}
        loss = (part * part).sum()
        state.data[{written}] = 0.5{said}
        loss.backward()
        assert torch.allclose(w.grad[1], 8 * w[1]) is {not said}
    """
    check(program)
    run(program)


def test_the_base_of_a_view_keeps_its_memory() -> None:
    safe("""
        w = torch.rand(4, requires_grad=True)
        flat = w.view(-1)
        flat.data = flat.data * 0.1
        loss = (w * w).sum()
        flat.data.mul_(10)
        loss.backward()
        assert torch.allclose(w.grad, 2 * w)
    """)


@pytest.mark.parametrize(
    "write",
    ["fill_(1)", "zero_()", "masked_fill_(rows > 0, 1)", "index_fill_(0, torch.tensor([0]), 1)", "fill_diagonal_(1)", "tril_()", "triu_()"],
)  # fmt: skip
def test_some_writes_to_repeated_elements_are_performed(write: str) -> None:
    safe(f"rows = torch.rand(3).expand(3, 3)\nrows.{write}\n")


@pytest.mark.parametrize("write", ["mul_(2)", "copy_(torch.rand(3, 3))", "normal_()", "clamp_(0)", "index_add_(0, torch.tensor([0]), rows[:1])"])  # fmt: skip
def test_other_writes_to_repeated_elements_are_refused(write: str) -> None:
    refused(f"rows = torch.rand(3).expand(3, 3)\nrows.{write}  # GS103\n", "single memory location")


@pytest.mark.parametrize(("made", "refusing"), [("a + b", 0), ("a + b.t()", 0), ("b.t() + a", 1), ("torch.where(b.t() > a, b.t(), a)", 1), ("b.t().sin()", 1), ("b.t().clone()", 1), ("b.t().contiguous()", 0)])  # fmt: skip
@pytest.mark.parametrize("along", [0, 1])
def test_overlapping_windows_are_refused_where_they_have_no_gaps(
    made: str, refusing: int, along: int
) -> None:
    write = "out[1:] += out[:-1]" if along == 0 else "out[:, 1:] += out[:, :-1]"
    program = f"a, b = torch.rand(3, 3), torch.rand(3, 3)\nout = {made}\n{write}"
    if along != refusing:
        safe(program)
    elif refusing == 0 and "t()" not in made:
        refused(program + "  # GS103", "single memory location")
    else:
        with pytest.raises(RuntimeError, match="single memory location"):
            run(program)


def test_a_threshold_on_repeated_elements_is_performed() -> None:
    safe("rows = torch.rand(3).expand(3, 3)\nF.threshold_(rows, 0.5, 1)\n")
