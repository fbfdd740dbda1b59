"""What a checkpoint keeps: its inputs, for the time it runs the function again.  Each program runs on torch."""

from __future__ import annotations

import pytest

from tests.interp.checking import check
from tests.interp.running import refused, run, safe

STALE = "modified by an inplace operation"
OPENING = """
        from torch.utils.checkpoint import checkpoint
        x = torch.randn(3, requires_grad=True)
        h = x * 2
"""


def test_the_input_of_a_checkpoint_is_kept() -> None:
    refused(
        OPENING
        + """
        y = checkpoint(torch.sin, h, use_reentrant=False)
        h += 1  # GS101
        y.sum().backward()
    """,
        STALE,
    )


def test_nothing_is_run_again_where_nothing_is_kept() -> None:
    safe(
        OPENING
        + """
        y = checkpoint(lambda t: t + 1, h, use_reentrant=False)
        h += 1
        y.sum().backward()
        assert x.grad.tolist() == [2, 2, 2]
    """
    )


def test_a_reentrant_checkpoint_keeps_its_input_in_any_case() -> None:
    refused(
        OPENING
        + """
        y = checkpoint(lambda t: t + 1, h, use_reentrant=True)
        h += 1  # GS101
        y.sum().backward()
    """,
        STALE,
    )


def test_a_write_before_the_checkpoint_is_fine() -> None:
    safe(
        OPENING
        + """
        h += 1
        y = checkpoint(torch.sin, h, use_reentrant=False)
        y.sum().backward()
        assert torch.allclose(x.grad, 2 * torch.cos(2 * x.detach() + 1))
    """
    )


def test_a_source_of_indexed_adding_may_not_be_the_target() -> None:
    program = """
        table = torch.randn(3, 3)
        rows = torch.arange(3)
        table.index_add_(0, rows, {source}){said}
        table.add_(table)
    """
    refused(program.format(source="table", said="  # GS103"), "single memory location")
    safe(program.format(source="table.clone()", said=""))


PRODUCTS = """
        weight = torch.randn(3, 3, requires_grad=True)
        state = weight
        state @= weight
        assert state is not weight
        table = torch.zeros(2, 3)
        table[0] {into}
        kept = (weight @ weight).sum()
        if weight.grad is not None:
            with torch.no_grad():
                weight.sub_(1)
        (kept + state.sum() + table.sum()).backward()
"""


def test_a_product_is_assigned_out_of_place() -> None:
    safe(PRODUCTS.format(into="= table[0].clone() @ weight"))


def test_a_product_with_a_part_of_a_table_is_written_into_the_table() -> None:
    refused(PRODUCTS.format(into="@= weight  # GS101"), STALE)


DUMMY = """
        from torch.utils.checkpoint import checkpoint
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.a = nn.Linear(3, 3)
                self.dummy = torch.ones(3, requires_grad=True){said}
            def stem(self, x, dummy):
                return {result}
            def forward(self, x):
                return {forward}
        def build():
            return Net()
        net = build()
        opt = torch.optim.SGD(net.parameters(), 0.1)
        for _ in range(2):
            opt.zero_grad()
            net(torch.randn(3)).pow(2).mean().backward()
            opt.step()
        assert net.a.weight.grad is not None and net.dummy.grad is {grad}None
"""
CHECKPOINTS = [
    "checkpoint(self.stem, x, self.dummy, use_reentrant=True)",
    "checkpoint(self.stem, x, self.dummy, use_reentrant=False)",
    "checkpoint(self.stem, x, self.dummy, use_reentrant=True) if self.training else self.stem(x, self.dummy)",
]


COMPUTING = [
    "self.stem(x, self.dummy)",
    "self.a(self.dummy)",
    "torch.einsum('i,i->i', self.a(x), self.dummy)",
    "torch.block_diag(self.dummy, self.a(x))",
    "torch.broadcast_tensors(self.a(x), self.dummy)[1] * self.a(x)",
]


@pytest.mark.parametrize("forward", CHECKPOINTS)
def test_an_input_that_a_checkpoint_makes_nothing_of_need_not_be_registered(forward: str) -> None:
    safe(DUMMY.format(said="", result="self.a(x).relu()", forward=forward, grad=""))


@pytest.mark.parametrize("forward", [*CHECKPOINTS, *COMPUTING])
def test_an_input_that_a_checkpoint_computes_with_is_to_be_registered(forward: str) -> None:
    program = DUMMY.format(said="  # GS601", result="self.a(x * dummy)", forward=forward, grad="not ")
    check(program)
    run(program)


MUTATED = """
        from torch.autograd import graph
        a = torch.ones(2, 3, requires_grad=True)
        b = a.clone()
        {before}
        with graph.{context}:
            {inside}
            out = ({operator}).sum()
            {written}
            out.backward()
        assert torch.equal(a.grad, torch.full((2, 3), 2.0))
"""
COPYING = ["allow_mutation_on_saved_tensors()", "saved_tensors_hooks(lambda t: t.clone(), lambda t: t)"]


@pytest.mark.parametrize("context", COPYING)
@pytest.mark.parametrize("written", ["b.sin_()", "b[0] = 5", "b.data.zero_()", "b += 1"])
def test_what_is_kept_as_a_copy_may_be_written(context: str, written: str) -> None:
    safe(MUTATED.format(before="", context=context, inside="", operator="b ** 2", written=written))
    custom = """
        class Square(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * x
            @staticmethod
            def backward(ctx, g):
                return 2 * g * ctx.saved_tensors[0]
    """
    applied = MUTATED.format(
        before="", context=context, inside="", operator="Square.apply(b)", written=written
    )
    safe(custom + applied)


@pytest.mark.parametrize("context", COPYING)
def test_what_was_kept_before_or_is_kept_after_may_not_be_written(context: str) -> None:
    written = "b.sin_()  # GS101"
    early = MUTATED.format(before="c = b ** 2", context=context, inside="", operator="c", written=written)
    refused(early, STALE)
    late = """
        from torch.autograd import graph
        a = torch.ones(2, 3, requires_grad=True)
        with graph.{}:
            b = a.clone()
        c = b ** 2
        b.sin_()  # GS101
        c.sum().backward()
    """
    refused(late.format(context), STALE)


BLOCK = """
    from torch.utils.checkpoint import checkpoint

    net = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3), nn.BatchNorm1d(3))

    def block(x):
        h = net(x)
        {}
        return h * h

    x = torch.randn(4, 3, requires_grad=True)
    checkpoint(block, checkpoint(block, x, use_reentrant=False), use_reentrant=False).sum().backward()
"""


def test_a_norm_layer_in_a_checkpoint_updates_its_statistics() -> None:
    safe(BLOCK.format("pass"))


def test_what_is_written_behind_it_is_told() -> None:
    check(BLOCK.format("h = h.exp(); h.data.mul_(2)  # GS104"))
