"""Objects that methods are executed on: what they may cost, what a decorator hides, and what stacks of blocks cost."""

from __future__ import annotations

import pytest
import torch

from tests.interp.checking import check

DEEP = """
class Part(nn.Module):
    def __init__(self, width):
        super().__init__()
        layers = []
        for index in range(width):
            layers.append(nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4), nn.ReLU()))
            layers.append(nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4), nn.ReLU()))
        self.layers = nn.Sequential(*layers)
    def forward(self, x):
        return self.layers(x)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = Part(4000)
        self.second = Part(4000)
        self.third = Part(4000)
        self.last = nn.Linear(4, 4)
"""


def test_what_an_object_costs_leaves_enough_for_its_method() -> None:
    check(
        DEEP
        + """
    def forward(self, x):
        y = self.third(self.second(self.first(x)))
        h = torch.sigmoid(self.last(y))
        h += 1  # GS101
        return h
"""
    )
    check(DEEP + "    def forward(self, x):\n        return self.last(self.third(self.first(x))) + 1\n")


def test_a_stack_of_blocks_in_a_plain_list_is_not_registered() -> None:
    program = """
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(4, 16), nn.Linear(16, 4)
    def forward(self, x):
        return x + self.down(torch.relu(self.up(x)))
class Net(nn.Module):
    def __init__(self, depth=24):
        super().__init__()
        self.blocks = [Block() for _ in range(depth)]  # GS601
        self.head = nn.Linear(4, 2)
    def shorten(self, count):
        self.blocks = self.blocks[:count]
    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x)
"""
    check(program)
    check(
        program.replace(
            "[Block() for _ in range(depth)]  # GS601", "nn.ModuleList(Block() for _ in range(depth))"
        )
    )


def test_the_method_behind_a_wrapper_is_executed() -> None:
    check(
        """
import functools
def scaled(name):
    def decorator(forward_fn):
        @functools.wraps(forward_fn)
        def wrapper(self, *args, **kwargs):
            return forward_fn(self, *args, **kwargs)
        return wrapper
    return decorator
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)
    @scaled("kwargs")
    def forward(self, x):
        h = torch.sigmoid(self.a(x))
        h += 1  # GS101
        return self.b(h)
"""
    )


def test_an_object_is_initialised_when_a_method_of_it_runs() -> None:
    check(
        """
from elsewhere import Noise, Mixin
class Sparse(nn.Module, Mixin):
    def __init__(self, dim):
        Noise.__init__(self, dim)
    def set_value(self, value):
        self.raw = nn.Parameter(value.to(self.raw))
    def forward(self, x):
        return x * self.raw
"""
    )


def test_a_write_through_data_of_what_unknown_code_returned_is_reported() -> None:
    check(
        """
from elsewhere import Norm
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = Norm(4)
    def forward(self, x):
        h = self.norm(x)
        h.data.mul_(2)  # GS105
        return h
"""
    )


ATTENTION = """
class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.to_q, self.to_k, self.to_v = nn.Linear(dim, dim), nn.Linear(dim, dim), nn.Linear(dim, dim)
class Processor:
    def __call__(self, attn: Attention, hidden, mask=None):
        batch = hidden.shape[0]
        q = attn.to_q(hidden).view(batch, -1, attn.heads, 8).transpose(1, 2)
        k = attn.to_k(hidden).view(batch, -1, attn.heads, 8).transpose(1, 2)
        v = attn.to_v(hidden).view(batch, -1, attn.heads, 8).transpose(1, 2)
        if mask is not None:
            mask = mask.view(batch, 1, 1, -1)
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
"""


def test_attention_keeps_heads_that_were_brought_to_the_front() -> None:
    check(ATTENTION + "        q += 1  # GS101\n        return out\n")
    check(ATTENTION + "        q = q + 1\n        return out + q\n")


def test_heads_that_are_merged_behind_attention_are_what_it_saved() -> None:
    merged = """
        out = out.transpose(1, 2).reshape(batch, -1, attn.heads * 8)
        out += 1{claim}
        return out
"""
    check(ATTENTION + merged.format(claim="  # GS101"))
    layer, x = torch.nn.Linear(16, 16), torch.randn(2, 5, 16)
    q, k, v = (layer(x).view(2, -1, 2, 8).transpose(1, 2) for _ in range(3))
    out = torch.nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(2, -1, 16)
    out += 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


UNFINISHED = """
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(4, 16), nn.Linear(16, 4)
    def forward(self, x):
        return x + self.down(torch.relu(self.up(x)))
class Base(nn.Module):
    def prepare(self):
        for index in range(1000):
            for name in ("a", "b", "c", "d"):
                if self.config.get(name) == index:
                    setattr(self, name, index)
        raise ValueError
class Net(Base):
    def __init__(self, config):
        super().__init__()
        self.config = config
        {made}
        self.prepare()
    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x
"""


def test_a_plain_list_is_told_in_a_module_that_was_not_made_to_its_end() -> None:
    check(UNFINISHED.format(made="self.blocks = [Block() for index in range(3)]  # GS601"))
    check(UNFINISHED.format(made="self.blocks = nn.ModuleList([Block() for index in range(3)])"))


def test_a_list_that_is_read_later_in_an_unfinished_init_may_be_registered() -> None:
    made = UNFINISHED.format(made="self.blocks = [Block() for index in range(3)]")
    check(made.replace("self.prepare()", "self.prepare()\n        self.all = nn.ModuleList(self.blocks)"))
    check(
        made.replace(
            "self.prepare()",
            "self.prepare()\n        for n, b in enumerate(self.blocks): self.add_module(str(n), b)",
        )
    )
