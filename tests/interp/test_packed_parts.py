"""What `einops.unpack` gives are slices: each may be written, unless the memory that they share is needed."""

from __future__ import annotations

from tests.interp.checking import check

PACKED = """
from einops import pack, unpack

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x, registers):
        x, shapes = pack([x, registers], "b * d")
"""


def test_part_may_be_written() -> None:
    check(
        PACKED
        + """
        x, _ = unpack(self.fc(x), shapes, "b * d")
        x += 1
        return x.mean(1)
"""
    )


def test_part_of_a_saved_output_may_not_be_written() -> None:
    check(
        PACKED
        + """
        x, _ = unpack(torch.sigmoid(self.fc(x)), shapes, "b * d")
        x *= 2  # GS101
        return x.mean(1)
"""
    )


def test_copy_of_a_part_may_be_written() -> None:
    check(
        PACKED
        + """
        x, _ = unpack(torch.sigmoid(self.fc(x)), shapes, "b * d")
        x = x * 2
        x += 1
        return x.mean(1)
"""
    )
