"""Writes and cuts that look like a hazard and are none, by the rule they look like."""

from __future__ import annotations

SAFE_WRITES = {
    "GS105 add noise": """
import torch
x = torch.ones(3, requires_grad=True)
h = x.exp() * 2
with torch.no_grad():
    h.add_(torch.randn(3))
h.sum().backward()
assert torch.allclose(x.grad, 2 * x.detach().exp())
""",
    "GS107 reshape": """
import torch
x = torch.ones(2, 3, requires_grad=True)
y = x * 2
flat = y.reshape(-1)
a = flat[:3]
b = flat[3:]
kept = a
b.mul_(2)
print(kept)
y.sum().backward()
""",
    "GS107 rows reshape2": """
import torch
buf = torch.zeros(4, 2, 3)
outs = []
for i in range(4):
    buf[i] = torch.full((2, 3), float(i))
    outs.append(buf[i].reshape(-1))
print(sum(o.sum() for o in outs))
""",
    "GS107 cloned entry": """
import torch
buf = torch.zeros(3)
outs = []
for i in range(4):
    buf.add_(1)
    outs.append(buf)
    outs[-1] = outs[-1].clone()
print(outs[0])
assert outs[0][0] == 1
""",
    "GS104 relu sign": """
import torch
x = torch.randn(3, requires_grad=True)
y = torch.relu(x)
y.data.mul_(2)
y.sum().backward()
assert torch.equal(x.grad, (x > 0).float())
""",
    "GS104 unchanged": """
import torch
x = torch.randn(3, requires_grad=True)
y = torch.exp(x)
y.data.mul_(1)
y.data.add_(0)
y.data.copy_(y)
y.sum().backward()
assert torch.equal(x.grad, x.detach().exp())
""",
    "GS104 clone back": """
import torch
x = torch.randn(3, requires_grad=True)
y = torch.exp(x)
old = y.detach().clone()
y.data.copy_(old)
y.sum().backward()
assert torch.equal(x.grad, x.detach().exp())
""",
    "GS209 alias": """
import numpy as xp
import torch as th
from torch import no_grad as ng
from torch import tensor as mk
w = th.ones(3, requires_grad=True)
t = th.tensor(xp.ones(3))
u = mk([1.0, 2.0])
k = mk(w.detach())
(w * u[0]).sum().backward()
""",
    "GS204 frozen read": """
import torch
from torch import nn
backbone = nn.Linear(4, 4)
for p in backbone.parameters():
    p.requires_grad = False
head = nn.Linear(4, 1)
head(backbone(torch.ones(2, 4))).sum().backward()
for name, p in backbone.named_parameters():
    print(name, p.grad)
print(backbone.weight.grad)
assert backbone.weight.grad is None
""",
    "GS105 augmented item": """
import torch
from torch import nn
x = torch.ones(3, requires_grad=True)
h = x * 2
with torch.no_grad():
    h[0] += 1
    h += torch.arange(3.0)
(h ** 2).sum().backward()
assert torch.allclose(x.grad, 4 * h.detach())
""",
    "GS105 data add": """
import torch
from torch import nn
x = torch.ones(3, requires_grad=True)
h = x * 2
h.data.add_(torch.randn(3))
h.data -= 0.5
(h * 3).sum().backward()
assert x.grad.tolist() == [6, 6, 6]
""",
    "GS105 noise in forward": """
import torch
from torch import nn
class Noisy(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)
    def forward(self, x):
        h = self.fc(x)
        with torch.no_grad():
            h += 0.1 * torch.randn_like(h)
        return h.relu()
net = Noisy()
net(torch.ones(2, 3)).sum().backward()
""",
    "GS105 bias free constant detach": """
import torch
from torch import nn
x = torch.ones(3, requires_grad=True)
c = torch.tensor([1.0, 2.0, 3.0])
h = x.sin()
with torch.no_grad():
    h.sub_(c.mean())
    h.add_(c, alpha=2)
h.sum().backward()
assert torch.allclose(x.grad, x.detach().cos())
""",
    "GS107 disjoint rows reshape": """
import torch
from torch import nn
buf = torch.zeros(4, 6)
flat = buf.reshape(-1)
parts = []
for i in range(4):
    row = flat[i * 6:(i + 1) * 6]
    row.fill_(float(i))
    parts.append(row)
assert [p[0].item() for p in parts] == [0, 1, 2, 3]
""",
    "GS107 rows view flat": """
import torch
from torch import nn
buf = torch.zeros(3, 4)
rows = [buf[i].reshape(-1) for i in range(3)]
for i, row in enumerate(rows):
    row += i
first = rows[0]
rows[1].mul_(5)
assert first.tolist() == [0, 0, 0, 0]
""",
    "GS107 row then other row": """
import torch
from torch import nn
m = torch.arange(6.0).reshape(2, 3)
first = m[0].reshape(-1)
m[1].reshape(-1).mul_(10)
assert first.tolist() == [0, 1, 2]
print(first)
""",
    "GS107 flat halves": """
import torch
from torch import nn
m = torch.arange(6.0).reshape(2, 3)
flat = m.reshape(-1)
top = flat[:3]
flat[3:] *= 10
assert top.tolist() == [0, 1, 2]
print(top)
""",
    "GS107 view rows then flat index": """
import torch
from torch import nn
m = torch.zeros(2, 3)
top = m[0]
flat = m.view(-1)
flat[3:] += 1
assert top.tolist() == [0, 0, 0]
print(top)
""",
    "GS107 cloned entries later": """
import torch
from torch import nn
state = torch.zeros(2)
log = []
for i in range(3):
    state += 1
    log.append(state)
    log[i] = log[i].clone()
assert [e[0].item() for e in log] == [1, 2, 3]
""",
    "GS107 dict cloned": """
import torch
from torch import nn
state = torch.zeros(2)
log = {}
for i in range(3):
    state += 1
    log[i] = state
    log[i] = log[i].detach().clone()
assert [e[0].item() for e in log.values()] == [1, 2, 3]
""",
    "GS107 tuple entry cloned": """
import torch
from torch import nn
state = torch.zeros(2)
log = []
for i in range(3):
    state += 1
    log.append((i, state))
    log[-1] = (i, log[-1][1].clone())
assert [e[1][0].item() for e in log] == [1, 2, 3]
""",
    "GS107 list rebuilt cloned": """
import torch
from torch import nn
state = torch.zeros(2)
log = []
for i in range(3):
    state += 1
    log.append(state)
    log = [e.clone() for e in log]
assert [e[0].item() for e in log] == [1, 2, 3]
""",
    "GS107 pop clone append": """
import torch
from torch import nn
state = torch.zeros(2)
log = []
for i in range(3):
    state += 1
    log.append(state)
    log.append(log.pop().clone())
assert [e[0].item() for e in log] == [1, 2, 3]
""",
    "GS104 relu module half": """
import torch
from torch import nn
net = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
h = net(torch.ones(2, 3))
h.data.mul_(0.5)
h.sum().backward()
h2 = net[0](torch.ones(2, 3)).abs()
h2.sum().backward()
""",
    "GS104 abs input scaled": """
import torch
from torch import nn
x = torch.randn(4, requires_grad=True)
a = x * 1.0
y = a.abs()
a.data.mul_(3)
y.sum().backward()
assert torch.equal(x.grad, x.detach().sign())
""",
    "GS104 backup restored": """
import torch
from torch import nn
w = torch.ones(3, requires_grad=True)
loss = (w * w).sum()
backup = w.data.clone()
w.data.add_(0.1)
print(w.sum())
w.data.copy_(backup)
loss.backward()
assert torch.allclose(w.grad, torch.full((3,), 2.0))
""",
    "GS104 maxpool scaled": """
import torch
from torch import nn
x = torch.randn(1, 1, 4, 4, requires_grad=True)
h = x * 1.0
y = nn.functional.max_pool2d(h, 2)
h.data.mul_(2)
y.sum().backward()
assert x.grad.sum() == 4
""",
    "GS209 aliases": """
import torch
from torch import nn
from torch import float64 as f64, tensor as T
import torch as tt
import torch.nn.functional as FF
x = tt.randn(3, requires_grad=True)
y = x.to(f64)
k = T([1.0, 2.0, 3.0], dtype=f64)
(y * k).sum().backward()
z = FF.relu(tt.as_tensor(x)).sum()
z.backward()
""",
    "GS204 frozen grad norm report": """
import torch
from torch import nn
net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1))
for p in net[0].parameters():
    p.requires_grad_(False)
net(torch.ones(2, 4)).sum().backward()
report = {}
for name, p in net.named_parameters():
    report[name] = p.grad
frozen = net[0].weight.grad
assert frozen is None
print(report, frozen)
""",
    "GS204 frozen passes grad to helper": """
import torch
from torch import nn
def show(name, grad):
    print(name, grad)
backbone, head = nn.Linear(4, 4), nn.Linear(4, 1)
backbone.requires_grad_(False)
head(backbone(torch.ones(2, 4))).sum().backward()
show("w", backbone.weight.grad)
grads = [p.grad for p in backbone.parameters()]
assert all(g is None for g in grads)
""",
}
