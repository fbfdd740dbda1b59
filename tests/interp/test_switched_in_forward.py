"""Parts that a forward puts into eval mode whenever it runs, parameters that are compared with results, copies of counts."""

from __future__ import annotations

from tests.interp.checking import check

SWITCHED = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3))
        self.head = nn.Linear(3, 1)
    def forward(self, x):
        {inside}
        return self.head(self.body(x))

net = Net()
optimizer = torch.optim.SGD(net.parameters(), 0.1)
for epoch in range(2):
    for x in torch.randn(2, 4, 3):
        optimizer.zero_grad()
        net(x).mean().backward()
        optimizer.step()
    {outside}
    with torch.no_grad():
        print(net(torch.randn(4, 3)))
"""


def test_a_part_that_every_forward_puts_into_eval_mode_is_meant_to_be() -> None:
    check(SWITCHED.format(inside="self.body.eval()", outside="pass"))
    check(SWITCHED.format(inside="pass", outside="net.eval()  # GS505"))


COUNTED = """
from targets import find_targets

class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 2)
    def loss(self, x):
        scores = self.fc(x)
        {count}
        return scores.sum() / {copied}
"""


def test_a_copy_of_what_unknown_code_counts_is_not_reported() -> None:
    count = "labels, count = find_targets(scores)"
    check(COUNTED.format(count=count, copied="torch.tensor(count)"))
    check(COUNTED.format(count=count, copied="scores.new_tensor([count])"))
    check(COUNTED.format(count="count = scores.max()", copied="torch.tensor(count)  # GS201"))
