"""What a checkpoint keeps: its inputs, for the time it runs the function again."""

from __future__ import annotations

from tests.interp.checking import check

OPENING = """
        from torch.utils.checkpoint import checkpoint
        x = torch.randn(3, requires_grad=True)
        h = x * 2
"""


def test_the_input_of_a_checkpoint_is_kept() -> None:
    check(
        OPENING
        + """
        y = checkpoint(torch.sin, h, use_reentrant=False)
        h += 1  # GS101
        y.sum().backward()
    """
    )


def test_nothing_is_run_again_where_nothing_is_kept() -> None:
    check(
        OPENING
        + """
        y = checkpoint(lambda t: t + 1, h, use_reentrant=False)
        h += 1
        y.sum().backward()
    """
    )


def test_a_reentrant_checkpoint_keeps_its_input_in_any_case() -> None:
    check(
        OPENING
        + """
        y = checkpoint(lambda t: t + 1, h, use_reentrant=True)
        h += 1  # GS101
        y.sum().backward()
    """
    )


def test_a_write_before_the_checkpoint_is_fine() -> None:
    check(
        OPENING
        + """
        h += 1
        y = checkpoint(torch.sin, h, use_reentrant=False)
        y.sum().backward()
    """
    )


def test_a_source_of_indexed_adding_may_not_be_the_target() -> None:
    check("""
        table = torch.randn(3, 3)
        rows = torch.arange(3)
        table.index_add_(0, rows, table)  # GS103
        table.index_add_(0, rows, table.clone())
        table.add_(table)
    """)


def test_a_product_is_assigned_out_of_place() -> None:
    check("""
        weight = torch.randn(3, 3, requires_grad=True)
        state = weight
        state @= weight
        table = torch.zeros(2, 3)
        table[0] @= weight  # GS101
        kept = (weight @ weight).sum()
        if weight.grad is not None:
            with torch.no_grad():
                weight.sub_(1)
        (kept + state.sum() + table.sum()).backward()
    """)
