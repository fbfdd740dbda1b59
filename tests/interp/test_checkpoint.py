"""What a checkpoint keeps: its inputs, for the time it runs the function again.  Each program runs on torch."""

from __future__ import annotations

from tests.interp.running import refused, safe

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
