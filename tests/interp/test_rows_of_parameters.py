"""What `nn.ParameterList` and `nn.ParameterDict` make of the tensors that they are given: parameters, as torch does."""

from __future__ import annotations

import pytest

from tests.interp.checking import PREAMBLE, check

FILLED = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        {filled}

    def forward(self, x):
        return x @ self.rows[{key}]

net = Net()
for p in net.parameters():
    p.register_hook(lambda gradient: gradient * 2)
opt = torch.optim.SGD(net.parameters(), 0.1)
net(torch.ones(1, 3)).sum().backward()
opt.step()
"""


@pytest.mark.parametrize(
    ("filled", "key"),
    [
        ("self.rows = nn.ParameterList([torch.eye(3)])", "0"),
        ("self.rows = nn.ParameterList()\n        self.rows.append(torch.eye(3))", "0"),
        ("self.rows = nn.ParameterList()\n        self.rows.extend([torch.eye(3)])", "0"),
        ("self.rows = nn.ParameterList([torch.eye(3)])\n        self.rows[0] = torch.ones(3, 3)", "0"),
        ("self.rows = nn.ParameterDict({'a': torch.eye(3)})", "'a'"),
        ("self.rows = nn.ParameterDict()\n        self.rows['a'] = torch.eye(3)", "'a'"),
        ("self.rows = nn.ParameterDict()\n        self.rows.update({'a': torch.eye(3)})", "'a'"),
        ("self.rows = nn.ParameterList([nn.Parameter(torch.eye(3))])", "0"),
    ],
)
def test_a_tensor_in_a_row_of_parameters_is_a_parameter(filled: str, key: str) -> None:
    program = FILLED.format(filled=filled, key=key)
    check(program)
    names: dict[str, object] = {}
    exec(PREAMBLE + program, names)
    net = names["net"]
    assert [p.requires_grad for p in net.parameters()] == [True]  # type: ignore[attr-defined]


def test_a_parameter_that_is_frozen_stays_frozen_in_a_row() -> None:
    check("""
    fixed = nn.Parameter(torch.eye(3), requires_grad=False)
    rows = nn.ParameterList()
    rows.append(fixed)
    learned = nn.Linear(3, 1)
    learned(torch.ones(1, 3) @ rows[0]).sum().backward()
    fixed.add_(1)
    """)
