"""What `einsum` keeps of its operands, asked of torch for every form of product."""

from __future__ import annotations

from textwrap import dedent

import pytest
import torch

from gradsight.interp.tensors.einsum import COPIED, KEPT, operands_kept
from tests.interp.checking import check

EQUATIONS = """
    i,i-> i,j->ij ij,jk->ik ij,kj->ik ji,jk->ik ij,jk ij,ij-> ij,ij->i ij,ij->ij ij,ji-> ij,ji->ij i,i->i ij,i->ij
    ij,k->ik ij,k->k ij,j->i ij,j->ij ijk,jk->i ijk,k->ij ijk,j->ik ijk,j->ikj ijk,ilk->jl bij,bjk->bik bqd,bkd->bqk
    bhqd,bhkd->bhqk bqhd,bkhd->bhqk bhij,bjhd->bihd bhqk,bkhd->bqhd bqh,bkh->bqkh ...ij,...jk->...ik ...i,i->... zb,ba->za
    acb,cb->a acb,bc->a abc,cab->
""".split()
SIZES = {"i": 3, "j": 4, "k": 2, "b": 2, "h": 3, "q": 4, "d": 5, "l": 6, "z": 2, "a": 3, "c": 4}


def noticed(equation: str, written: int) -> bool:
    """Whether backward refuses after one operand was written, when the other one requires grad."""
    terms = equation.partition("->")[0].replace("...", "b").split(",")
    operands = [torch.randn([SIZES[label] for label in term]) for term in terms]
    operands[1 - written].requires_grad_()
    result = torch.einsum(equation, operands)
    operands[written].add_(1)
    try:
        result.sum().backward()
    except RuntimeError as error:
        return "modified by an inplace operation" in str(error)
    return False


@pytest.mark.parametrize("equation", EQUATIONS)
def test_torch_keeps_the_operands_that_are_said_to_be_kept(equation: str) -> None:
    kept = operands_kept(equation)
    assert kept is not None
    assert [told.how == KEPT for told in kept] == [noticed(equation, 0), noticed(equation, 1)]
    assert all(told.how in (KEPT, COPIED) for told in kept)


@pytest.mark.parametrize(
    ("equation", "index"),
    [("bhtd,bhd->bht", ":, :, :3"), ("bhtd,bhd->bht", ":, :2"), ("bhtd,hbd->hbt", ":, :, :3")],
)
def test_a_part_of_an_operand_is_kept_where_its_dimensions_merge(equation: str, index: str) -> None:
    program = f"""
        whole = torch.randn(2, 3, 4, 5, requires_grad=True) * 1
        part = whole[{index}]
        labels = dict(zip("bhtd", part.shape))
        other = torch.randn([labels[label] for label in "{equation.split(",")[1].partition("-")[0]}"], requires_grad=True)
        result = torch.einsum("{equation}", part, other)
        whole.add_(1)
        result.sum().backward()
    """
    text = "import torch\n" + dedent(program)
    try:
        exec(text, {})
    except RuntimeError:
        program = program.replace("add_(1)", "add_(1)  # GS101")
    check(program)


@pytest.mark.parametrize("equation", ["i,j->ij", "i,i->i", "i,j->", "i,i->"])
@pytest.mark.parametrize("learned", [(True, False), (False, True), (True, True)])
def test_a_product_cannot_be_differentiated_twice(equation: str, learned: tuple[bool, bool]) -> None:
    """Whatever is summed over, each factor is kept for the gradient of the other one."""
    factors = [torch.rand(3, requires_grad=flag) for flag in learned]
    result = torch.einsum(equation, factors).sum()
    result.backward()
    with pytest.raises(RuntimeError, match="second time"):
        result.backward()
