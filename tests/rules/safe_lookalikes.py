"""Programs that look like a hazard of training and are none, by the rule they look like."""

from __future__ import annotations

SAFE_TRAINING = {
    "GS304 hook postacc": """
import torch
from torch import nn
m = nn.Linear(3, 3)
def report(p):
    p.grad.mul_(0.5)
for p in m.parameters():
    p.register_post_accumulate_grad_hook(report)
m(torch.ones(2, 3)).sum().backward()
""",
    "GS304 hook method": """
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)
        for p in self.parameters():
            p.register_post_accumulate_grad_hook(self.shrink)
    def shrink(self, p):
        p.grad.clamp_(-1, 1)
    def forward(self, x):
        return self.fc(x)
net = Net()
net(torch.ones(2, 3)).sum().backward()
""",
    "GS304 hook closure opt": """
import torch
from torch import nn
m = nn.Linear(3, 3)
opts = {p: torch.optim.SGD([p], lr=0.1) for p in m.parameters()}
def step(p):
    opts[p].step()
    opts[p].zero_grad()
for p in m.parameters():
    p.register_post_accumulate_grad_hook(step)
for _ in range(2):
    m(torch.ones(2, 3)).sum().backward()
""",
    "GS304 opt hook": """
import torch
from torch import nn
m = nn.Linear(3, 3)
opt = torch.optim.SGD(m.parameters(), lr=0.1)
def before(optimizer, args, kwargs):
    for group in optimizer.param_groups:
        for p in group["params"]:
            p.grad.mul_(0.5)
opt.register_step_pre_hook(before)
m(torch.ones(2, 3)).sum().backward()
opt.step()
""",
    "GS501 epoch": """
import torch
from torch import nn
m = nn.Linear(3, 3)
opt = torch.optim.SGD(m.parameters(), lr=0.1)
data = [torch.ones(2, 3) for _ in range(4)]
for epoch in range(3):
    opt.zero_grad()
    for x in data:
        m(x).sum().backward()
    opt.step()
""",
    "GS501 epoch fn": """
import torch
from torch import nn
def run_epoch(m, opt, loader):
    m.train()
    total = 0.0
    for x, y in loader:
        loss = nn.functional.mse_loss(m(x), y) / len(loader)
        loss.backward()
        total += loss.item()
    opt.step()
    return total
def main():
    m = nn.Linear(3, 3)
    opt = torch.optim.SGD(m.parameters(), lr=0.1)
    data = [(torch.ones(2, 3), torch.ones(2, 3)) for _ in range(4)]
    for epoch in range(3):
        opt.zero_grad()
        run_epoch(m, opt, data)
main()
""",
    "GS501 one epoch": """
import torch
from torch import nn
def epoch(m, loader):
    opt = torch.optim.SGD(m.parameters(), lr=0.1)
    for x, y in loader:
        loss = nn.functional.mse_loss(m(x), y) / len(loader)
        loss.backward()
    opt.step()
m = nn.Linear(3, 3)
epoch(m, [(torch.ones(2, 3), torch.ones(2, 3)) for _ in range(4)])
""",
    "GS508 trunk": """
import torch
from torch import nn
trunk = nn.Linear(4, 4)
a = nn.Linear(4, 1)
b = nn.Linear(4, 1)
opt_a = torch.optim.SGD(list(trunk.parameters()) + list(a.parameters()), lr=0.1)
opt_b = torch.optim.SGD(b.parameters(), lr=0.1)
for _ in range(3):
    x = torch.ones(2, 4)
    opt_a.zero_grad()
    opt_b.zero_grad()
    h = trunk(x)
    loss = a(h).mean() + b(h).mean()
    loss.backward()
    opt_a.step()
    opt_b.step()
""",
    "GS508 trunk cls": """
import torch
from torch import nn
class AC(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Linear(4, 4)
        self.actor = nn.Linear(4, 2)
        self.critic = nn.Linear(4, 1)
    def forward(self, x):
        h = torch.tanh(self.trunk(x))
        return self.actor(h), self.critic(h)
net = AC()
actor_opt = torch.optim.Adam([*net.trunk.parameters(), *net.actor.parameters()], lr=1e-3)
critic_opt = torch.optim.Adam(net.critic.parameters(), lr=1e-3)
for _ in range(3):
    x = torch.ones(2, 4)
    pi, v = net(x)
    critic_opt.zero_grad()
    (v ** 2).mean().backward(retain_graph=True)
    critic_opt.step()
    actor_opt.zero_grad()
    pi.mean().backward()
    actor_opt.step()
""",
    "GS302 create graph2": """
import torch
w = torch.ones(3, requires_grad=True)
grads = []
for k in range(3):
    (w ** 3).sum().backward(create_graph=True)
    grads.append(w.grad)
print(grads[0])
assert grads[0].tolist() == [3, 3, 3]
""",
    "GS304 full backward hook of a module": """
import torch
from torch import nn
net = nn.Linear(3, 3)
def shrink(module, grad_in, grad_out):
    for p in module.parameters():
        if p.grad is not None:
            p.grad.mul_(0.5)
net.register_full_backward_hook(shrink)
for _ in range(2):
    net(torch.ones(2, 3)).sum().backward()
""",
    "GS304 hook made by partial": """
import torch
from torch import nn
from functools import partial
net = nn.Linear(3, 3)
def clip(limit, p):
    p.grad.clamp_(-limit, limit)
for p in net.parameters():
    p.register_post_accumulate_grad_hook(partial(clip, 0.5))
net(torch.ones(2, 3)).sum().backward()
assert net.weight.grad.abs().max() <= 0.5
""",
    "GS304 uncalled hook class": """
import torch
from torch import nn
class Clip:
    def __init__(self, net):
        for p in net.parameters():
            p.register_post_accumulate_grad_hook(self.after)
    def after(self, p):
        p.grad.clamp_(-1, 1)
net = nn.Linear(3, 3)
Clip(net)
net(torch.ones(2, 3)).sum().backward()
""",
    "GS304 callback method": """
import torch
from torch import nn
class Callback:
    def on_after_backward(self, trainer, module):
        for p in module.parameters():
            p.grad.mul_(0.5)
    def on_before_optimizer_step(self, trainer, module, optimizer):
        norm = sum(p.grad.norm() for p in module.parameters())
        print(norm)
""",
    "GS304 multi grad hook": """
import torch
from torch import nn
a = torch.ones(2, requires_grad=True)
b = torch.ones(2, requires_grad=True)
def done(grads):
    print(len(grads))
torch.autograd.graph.register_multi_grad_hook([a, b], done)
(a * b).sum().backward()
""",
    "GS501 grads zeroed per epoch by hand": """
import torch
from torch import nn
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
data = [torch.ones(2, 3)] * 4
for epoch in range(3):
    for p in net.parameters():
        p.grad = None
    for x in data:
        (net(x).mean() / len(data)).backward()
    opt.step()
""",
    "GS501 one step per epoch with fresh optimizer": """
import torch
from torch import nn
net = nn.Linear(3, 1)
data = [torch.ones(2, 3)] * 4
for epoch in range(3):
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    net.zero_grad()
    for x in data:
        net(x).mean().backward()
    opt.step()
""",
    "GS501 only one epoch in function": """
import torch
from torch import nn
def train_epoch(net, opt, data):
    for x in data:
        (net(x).mean() / len(data)).backward()
    opt.step()
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
train_epoch(net, opt, [torch.ones(2, 3)] * 4)
""",
    "GS501 function one step per epoch uncalled": """
import torch
from torch import nn
def train_epoch(net, opt, data):
    for x in data:
        (net(x).mean() / len(data)).backward()
    opt.step()
""",
    "GS501 full batch gradient descent class": """
import torch
from torch import nn
class Trainer:
    def __init__(self, net):
        self.net = net
        self.opt = torch.optim.SGD(net.parameters(), lr=0.1)
    def epoch(self, data):
        for x in data:
            (self.net(x).mean() / len(data)).backward()
        self.opt.step()
        self.opt.zero_grad()
    def fit(self, data):
        for _ in range(3):
            self.epoch(data)
Trainer(nn.Linear(3, 1)).fit([torch.ones(2, 3)] * 4)
""",
    "GS508 encoder owned by first": """
import torch
from torch import nn
class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(4, 4)
        self.actor = nn.Linear(4, 2)
        self.critic = nn.Linear(4, 1)
agent = Agent()
critic_opt = torch.optim.Adam(list(agent.encoder.parameters()) + list(agent.critic.parameters()))
actor_opt = torch.optim.Adam(agent.actor.parameters())
for _ in range(3):
    x = torch.ones(2, 4)
    critic_loss = agent.critic(agent.encoder(x)).pow(2).mean()
    critic_opt.zero_grad()
    critic_loss.backward()
    critic_opt.step()
    actor_loss = agent.actor(agent.encoder(x)).mean()
    actor_opt.zero_grad()
    actor_loss.backward()
    actor_opt.step()
""",
    "GS508 trunk opt separate": """
import torch
from torch import nn
trunk, a, b = nn.Linear(4, 4), nn.Linear(4, 1), nn.Linear(4, 1)
ot = torch.optim.SGD(trunk.parameters(), lr=0.1)
oa = torch.optim.SGD(a.parameters(), lr=0.1)
ob = torch.optim.SGD(b.parameters(), lr=0.1)
for _ in range(3):
    x = torch.ones(2, 4)
    h = trunk(x)
    for o in (ot, oa, ob):
        o.zero_grad()
    (a(h).mean() + b(h).mean()).backward()
    for o in (ot, oa, ob):
        o.step()
""",
    "GS302 create graph kept list": """
import torch
from torch import nn
w = torch.ones(3, requires_grad=True)
(w ** 2).sum().backward()
before = w.grad
loss = (w ** 3).sum()
loss.backward(create_graph=True)
assert before.tolist() == [2, 2, 2]
assert w.grad.tolist() == [5, 5, 5]
print(before)
""",
    "GS302 autograd.backward create graph": """
import torch
from torch import nn
w = torch.ones(3, requires_grad=True)
(w ** 2).sum().backward()
before = w.grad
torch.autograd.backward((w ** 3).sum(), create_graph=True)
assert before.tolist() == [2, 2, 2]
print(before)
""",
    "GS502 GAN detach in generator step": """
import torch
from torch import nn
G, D = nn.Linear(4, 4), nn.Linear(4, 1)
og = torch.optim.SGD(G.parameters(), lr=0.1)
od = torch.optim.SGD(D.parameters(), lr=0.1)
for _ in range(2):
    fake = G(torch.ones(2, 4))
    od.zero_grad()
    D(fake.detach()).mean().backward()
    od.step()
    og.zero_grad()
    D(fake).mean().backward()
    og.step()
""",
}
