"""A tensor indexed by what is not known: a number shows a part of it, a list or a mask copies, and nothing is said of a write."""

from __future__ import annotations

import pytest

from tests.interp.checking import check
from tests.interp.running import safe


@pytest.mark.parametrize("table", ["table.weight.data", "table.weight.detach()", "torch.zeros(10, 5)"])
def test_a_row_whose_place_a_setting_tells_may_be_written(table: str) -> None:
    report = check(f"""
        def initialise(config):
            table = nn.Embedding(10, 5, padding_idx=config.pad)
            {table}[config.pad].zero_()
            return table
    """)
    assert not report.findings


def test_the_row_of_an_embedding_for_padding_may_be_written_through_data() -> None:
    safe("""
        class Words(nn.Module):
            def __init__(self, config):
                super().__init__()
                self.words = nn.Embedding(config.words, config.width, padding_idx=config.pad)
                self.apply(self.initialise)

            def initialise(self, module):
                if isinstance(module, nn.Embedding):
                    module.weight.data.normal_()
                    if module.padding_idx is not None:
                        module.weight.data[module.padding_idx].zero_()

            def forward(self, ids):
                return self.words(ids)

        class Config:
            words, width, pad = 5, 4, 2

        words = Words(Config())
        assert words.words.weight[2].abs().sum() == 0
    """)


def test_rows_picked_by_a_list_are_still_a_copy() -> None:
    check("""
        def initialise(rows: list[int]):
            table = nn.Embedding(10, 5)
            table.weight.data[[1, 2]].zero_()  # GS209
            return table
    """)
