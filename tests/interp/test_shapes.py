"""The shapes that the machine tells of results, held against torch."""

from __future__ import annotations

import ast

import pytest
import torch

from gradsight.analysis import analyze
from gradsight.model import Source
from tests.interp.checking import check
from tests.interp.running import refused, safe

CALLS = """
    a.repeat(2, 2)
    b.unfold(0, 2, 1)
    torch.einsum("ij,jk->ik", a, b)
    torch.einsum("...ij,...jk->...ik", a, b)
    torch.einsum("...ij,...jk->...ik", c, c)
    torch.einsum("...ij,jk->...ik", c, c[0])
    torch.einsum("i...,i...->...", a, a)
    torch.einsum("b...->...b", c)
    b.unfold(-1, 2, 2)
    a.repeat(3, 1, 2)
    a.repeat((2, 1))
    a.tile(2)
    a.tile((1, 2))
    a.repeat_interleave(2)
    a.repeat_interleave(2, dim=0)
    torch.repeat_interleave(a, 3, dim=-1)
    F.pad(a, (1, 2))
    F.pad(a, (1, 1))[..., 1:-1]
    F.pad(a, [0, 1, 2, 0], value=1.0)
    F.scaled_dot_product_attention(b[None], b[None], b[None, :, :2])
    torch.addmm(a, a, b)
    torch.addmv(a[0], b, a[0])
    torch.baddbmm(c, c, c)
    a.index_select(0, torch.tensor([0, 1, 0]))
    torch.take_along_dim(a, a.argsort(dim=-1), dim=-1)
    torch.take_along_dim(b, b.argsort(dim=0)[:2], 0)
    a.take_along_dim(a[0].argsort()[None, :2], dim=1)
    torch.take_along_dim(a, a.long())
    a[a[:, 0] > 0].mean(0)
    c[:, c[0] > 0].mean(1)
    c[c > 2].sum(0, keepdim=True)
    c[c[0] > 0, 1:].mean(0)
    c[..., c[0, 0] > 0, :].mean(1)
    c[c[0] > 0, ..., None].mean(0)
    F.glu(c)
    F.glu(c, dim=1)
    torch.vmap(torch.sin)(a)
    torch.vmap(lambda row: row.sum())(a)
    torch.vmap(lambda column: column * 2, in_dims=1)(a)
    torch.vmap(torch.dot, in_dims=(0, None))(a, a[0])
"""


@pytest.mark.parametrize("call", [line.strip() for line in CALLS.strip().splitlines()])
def test_a_result_has_the_shape_that_torch_gives_it(call: str) -> None:
    made = "a, b, c = torch.rand(2, 3), torch.rand(3, 3), torch.rand(2, 2, 2)\n"
    names = {"torch": torch, "F": torch.nn.functional}
    exec(made, names)
    size = torch.Size(eval(compile(ast.parse(call, mode="eval"), "call", "eval"), names).shape)
    for shape, is_shape in ((size, True), (torch.Size([*size[:-1], size[-1] + 1]), False)):
        # The shape that torch gives is taken as known, and another one as known not to be.
        text = (
            f"import torch\nimport torch.nn.functional as F\n{made}leaf = torch.ones(1, requires_grad=True)\nkept = leaf.exp()\n"
            f"if ({call}).shape == {tuple(shape)}:\n    kept.mul_(2)\nkept.sum().backward()\n"
        )
        said = [finding.code for finding in analyze(Source("program.py", text)).findings]
        assert ("GS101" in said) is is_shape, (call, shape)


def test_sizes_below_nothing_can_be_sliced() -> None:
    check("""
        net = nn.Conv1d(3, 3, kernel_size=9)
        out = net(torch.randn(2, 3, 4))
        print(out[:, :, 1:], out[..., -2:], out[:, :, 0])
    """)


ATTENTION = """
    weight = torch.rand(2, 2, requires_grad=True)
    table = torch.block_diag(weight, weight){shaped}
    out = F.scaled_dot_product_attention(table, table, table)
    out += 1{said}
    out.sum().backward()
"""


def test_what_is_kept_for_some_numbers_of_dimensions_is_not_sure_for_an_unknown_one() -> None:
    safe(ATTENTION.format(shaped="", said=""))
    refused(ATTENTION.format(shaped=".view(1, 1, 4, 4)", said="  # GS101"), "inplace")


def test_a_factor_of_a_product_is_kept_where_its_dimensions_are_known() -> None:
    program = """
        weight = torch.rand(2, 2, requires_grad=True)
        rows = torch.block_diag(weight, weight){rows}
        factor = (weight * 2).sum() * {factor}
        out = rows @ factor
        factor += 1{said}
        out.sum().backward()
    """
    safe(program.format(rows="", factor="torch.ones(3, 4, 4)", said=""))
    refused(program.format(rows=".view(4, 4)", factor="torch.ones(4, 4)", said="  # GS101"), "inplace")
