"""Right programs that look like a fault, family by family: torch runs them, and nothing is reported."""

from __future__ import annotations

import contextlib
import io
from textwrap import dedent

import pytest
import torch

from gradsight.analysis import analyze
from gradsight.model.source import Source

RIGHT = {
    "GS409 given other memory": """
        import torch
        w = torch.rand(3, requires_grad=True)
        w.data = torch.rand(5)
        w.grad = torch.zeros(5)
    """,
    "GS409 turned in place": """
        import torch
        w = torch.rand(2, 3)
        w.t_()
        w.requires_grad_()
        w.grad = torch.zeros(3, 2)
    """,
    "GS304 post hook": """
        import torch
        from torch import nn
        net = nn.Linear(3, 2)
        def hook(param):
            param.grad.mul_(0.5)
        for one in net.parameters():
            one.register_post_accumulate_grad_hook(hook)
        net(torch.randn(4, 3)).sum().backward()
    """,
    "GS304 post hook method": """
        import torch
        from torch import nn
        class Clipper:
            def __init__(self, model, most):
                self.most = most
                self.handles = [p.register_post_accumulate_grad_hook(self.clip) for p in model.parameters()]
            def clip(self, p):
                p.grad.clamp_(-self.most, self.most)
        net = nn.Linear(3, 2)
        clipper = Clipper(net, 0.1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(3):
            opt.zero_grad()
            net(torch.randn(4, 3)).sum().backward()
            opt.step()
    """,
    "GS304 optim in backward": """
        import torch
        from torch import nn
        net = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1))
        opts = {p: torch.optim.SGD([p], lr=0.1) for p in net.parameters()}
        def step(p):
            opts[p].step()
            opts[p].zero_grad()
        for p in net.parameters():
            p.register_post_accumulate_grad_hook(step)
        for _ in range(2):
            net(torch.randn(2, 3)).mean().backward()
    """,
    "GS304 full backward hook module": """
        import torch
        from torch import nn
        net = nn.Linear(3, 2)
        seen = []
        def hook(module, gin, gout):
            seen.append(gout[0].norm().item())
        net.register_full_backward_hook(hook)
        x = torch.randn(4, 3, requires_grad=True)
        net(x).sum().backward()
        print(seen)
    """,
    "GS304 optimizer hook": """
        import torch
        from torch import nn
        net = nn.Linear(3, 2)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        def before(optimizer, args, kwargs):
            for group in optimizer.param_groups:
                for q in group["params"]:
                    q.grad.mul_(0.5)
        opt.register_step_pre_hook(before)
        net(torch.randn(4, 3)).sum().backward()
        opt.step()
    """,
    "GS304 hook function uncalled": """
        import torch
        from torch import nn
        def scale(param):
            param.grad.mul_(0.5)
        def install(model: nn.Module):
            for q in model.parameters():
                q.register_post_accumulate_grad_hook(scale)
    """,
    "GS105 noise": """
        import torch
        from torch import nn
        net = nn.Linear(3, 3)
        head = nn.Linear(3, 1)
        x = torch.randn(4, 3)
        h = net(x)
        with torch.no_grad():
            h.add_(torch.randn_like(h))
        head(h).sum().backward()
    """,
    "GS105 const sub": """
        import torch
        w = torch.ones(3, requires_grad=True)
        h = w * 2
        with torch.no_grad():
            h -= 0.5
            h.add_(1)
            h += torch.arange(3.)
        (h * 3).sum().backward()
        assert torch.equal(w.grad, torch.full((3,), 6.))
    """,
    "GS105 mean detached": """
        import torch
        w = torch.ones(3, requires_grad=True)
        mu = torch.randn(3)
        h = w * 2
        with torch.no_grad():
            h.sub_(mu)
        h.sum().backward()
        assert torch.equal(w.grad, torch.full((3,), 2.))
    """,
    "GS105 function": """
        import torch
        from torch import nn
        class Noisy(nn.Module):
            def __init__(self):
                super().__init__()
                self.l = nn.Linear(3, 3)
            def forward(self, x, noise):
                h = self.l(x)
                if self.training:
                    with torch.no_grad():
                        h.add_(noise, alpha=0.1)
                return h
        net = Noisy()
        net(torch.randn(2, 3), torch.randn(2, 3)).sum().backward()
    """,
    "GS105 slice const": """
        import torch
        w = torch.ones(3, requires_grad=True)
        h = w * 2
        with torch.no_grad():
            h[0] += 1
        h.sum().backward()
        assert torch.equal(w.grad, torch.full((3,), 2.))
    """,
    "GS105 decorated": """
        import torch
        @torch.no_grad()
        def perturb(h, eps):
            h.add_(torch.randn_like(h) * eps)
            return h
        w = torch.ones(3, requires_grad=True)
        h = w * 2
        perturb(h, 0.1)
        h.sum().backward()
        assert torch.equal(w.grad, torch.full((3,), 2.))
    """,
    "GS105 data add": """
        import torch
        w = torch.ones(3, requires_grad=True)
        h = w * 2
        h.data.add_(torch.randn(3))
        h.sum().backward()
        assert torch.equal(w.grad, torch.full((3,), 2.))
    """,
    "GS107 reshape rows": """
        import torch
        w = torch.ones(4, 3, requires_grad=True)
        table = torch.zeros(4, 3)
        first = table[0].reshape(-1)
        table[1] = 5
        print((first * w[0]).sum())
    """,
    "GS107 reshape flat rows": """
        import torch
        grid = torch.zeros(2, 2, 3)
        a = grid[0].reshape(-1)
        grid[1] = 7
        loss = (a * torch.ones(6, requires_grad=True)).sum()
        loss.backward()
    """,
    "GS107 view rows loop": """
        import torch
        w = torch.ones(3, requires_grad=True)
        buf = torch.zeros(4, 3)
        rows = []
        for i in range(4):
            buf[i] = float(i)
            rows.append(buf[i].view(-1))
        total = sum((r * w).sum() for r in rows)
        total.backward()
    """,
    "GS107 flat pieces": """
        import torch
        flat = torch.zeros(12)
        a = flat[:6].reshape(2, 3)
        b = flat[6:].reshape(-1)
        b.fill_(1)
        print(a.sum())
    """,
    "GS107 cloned entry": """
        import torch
        w = torch.ones(3, requires_grad=True)
        buf = torch.zeros(3)
        kept = []
        for i in range(3):
            buf.fill_(i)
            kept.append(buf)
            kept[-1] = kept[-1].clone()
        print(torch.stack(kept) @ w)
    """,
    "GS107 cloned entry2": """
        import torch
        state = {"h": torch.zeros(3)}
        old = state["h"].clone()
        state["h"].add_(1)
        print(old)
    """,
    "GS107 cloned entry3": """
        import torch
        state = torch.zeros(3)
        history = []
        for t in range(4):
            history.append(state.clone())
            state.add_(1)
        print(torch.stack(history))
    """,
    "GS107 flatten of copy": """
        import torch
        m = torch.zeros(3, 4)
        v = m.t().reshape(-1)
        m.fill_(2)
        print(v)
    """,
    "GS107 replaced entry": """
        import torch
        hidden = [torch.zeros(3) for _ in range(2)]
        snap = list(hidden)
        for i in range(2):
            hidden[i] = hidden[i].clone()
            hidden[i].add_(1)
        print(snap)
    """,
    "GS104 relu sign": """
        import torch
        w = torch.tensor([1., -1.], requires_grad=True)
        y = torch.relu(w)
        y.data.mul_(2)
        y.sum().backward()
        assert torch.equal(w.grad, torch.tensor([1., 0.]))
    """,
    "GS104 relu positive scale": """
        import torch
        from torch import nn
        net = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
        h = net(torch.randn(2, 3))
        h.data.div_(3.0)
        h.sum().backward()
    """,
    "GS104 value unchanged": """
        import torch
        w = torch.ones(3, requires_grad=True)
        y = w.exp()
        y.data.mul_(1)
        y.sum().backward()
    """,
    "GS104 value unchanged2": """
        import torch
        w = torch.ones(3, requires_grad=True)
        y = w.exp()
        y.data.add_(0)
        y.data.copy_(y.data)
        y.data.clamp_(min=0)
        y.sum().backward()
    """,
    "GS104 div1": """
        import torch
        w = torch.ones(3, requires_grad=True)
        y = w.sigmoid()
        y.data.div_(1.0)
        y.data.sub_(0.0)
        y.data.pow_(1)
        y.sum().backward()
    """,
    "GS104 relu6 leaky": """
        import torch
        import torch.nn.functional as F
        w = torch.tensor([1., -1.], requires_grad=True)
        y = F.leaky_relu(w)
        y.data.mul_(2)
        y.sum().backward()
        assert torch.equal(w.grad, torch.tensor([1., 0.01]))
    """,
    "GS104 sign saved abs": """
        import torch
        w = torch.tensor([1., -1.], requires_grad=True)
        x = w * 1.5
        y = x.abs()
        x.data.mul_(2)
        y.sum().backward()
        assert torch.equal(w.grad, torch.tensor([1.5, -1.5]))
    """,
    "GS501 epoch step": """
        import torch
        from torch import nn
        net = nn.Linear(3, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        loader = [torch.randn(4, 3) for _ in range(5)]
        for epoch in range(3):
            opt.zero_grad()
            for x in loader:
                (net(x).mean() / len(loader)).backward()
            opt.step()
    """,
    "GS501 epoch step fn": """
        import torch
        from torch import nn
        def fit(net, loader, epochs, opt):
            for epoch in range(epochs):
                opt.zero_grad()
                for x, y in loader:
                    loss = nn.functional.mse_loss(net(x), y) / len(loader)
                    loss.backward()
                opt.step()
    """,
    "GS501 step then zero after epoch": """
        import torch
        from torch import nn
        net = nn.Linear(3, 1)
        opt = torch.optim.Adam(net.parameters())
        data = [torch.randn(4, 3) for _ in range(5)]
        for epoch in range(3):
            for x in data:
                net(x).pow(2).mean().backward()
            opt.step()
            opt.zero_grad()
    """,
    "GS501 one epoch class": """
        import torch
        from torch import nn
        class Trainer:
            def __init__(self, net, opt):
                self.net, self.opt = net, opt
            def epoch(self, data):
                self.opt.zero_grad(set_to_none=True)
                for x in data:
                    self.net(x).mean().backward()
                self.opt.step()
        net = nn.Linear(3, 1)
        trainer = Trainer(net, torch.optim.SGD(net.parameters(), lr=0.1))
        for _ in range(3):
            trainer.epoch([torch.randn(2, 3)] * 4)
    """,
    "GS501 single backward": """
        import torch
        from torch import nn
        net = nn.Linear(3, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        losses = []
        for x in [torch.randn(4, 3) for _ in range(5)]:
            losses.append(net(x).mean())
        torch.stack(losses).mean().backward()
        opt.step()
    """,
    "GS508 trunk": """
        import torch
        from torch import nn
        trunk = nn.Linear(3, 4)
        actor = nn.Linear(4, 2)
        critic = nn.Linear(4, 1)
        opt_a = torch.optim.Adam([*trunk.parameters(), *actor.parameters()])
        opt_c = torch.optim.Adam(critic.parameters())
        for _ in range(3):
            h = trunk(torch.randn(8, 3))
            loss = actor(h).mean() + critic(h).pow(2).mean()
            opt_a.zero_grad()
            opt_c.zero_grad()
            loss.backward()
            opt_a.step()
            opt_c.step()
    """,
    "GS508 trunk class": """
        import torch
        from torch import nn
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.trunk = nn.Linear(3, 4)
                self.pi = nn.Linear(4, 2)
                self.v = nn.Linear(4, 1)
            def forward(self, x):
                h = self.trunk(x).tanh()
                return self.pi(h), self.v(h)
        net = Net()
        opt_pi = torch.optim.Adam(list(net.trunk.parameters()) + list(net.pi.parameters()))
        opt_v = torch.optim.Adam(net.v.parameters())
        for _ in range(2):
            logits, value = net(torch.randn(5, 3))
            opt_pi.zero_grad(); opt_v.zero_grad()
            (logits.logsumexp(1).mean() + value.pow(2).mean()).backward()
            opt_pi.step(); opt_v.step()
    """,
    "GS508 two losses seq": """
        import torch
        from torch import nn
        trunk, a, b = nn.Linear(3, 4), nn.Linear(4, 1), nn.Linear(4, 1)
        opt_trunk = torch.optim.SGD(trunk.parameters(), lr=0.1)
        opt_heads = torch.optim.SGD([*a.parameters(), *b.parameters()], lr=0.01)
        for _ in range(3):
            opt_trunk.zero_grad()
            opt_heads.zero_grad()
            x = torch.randn(6, 3)
            a(trunk(x)).mean().backward()
            b(trunk(x)).mean().backward()
            opt_trunk.step()
            opt_heads.step()
    """,
    "GS302 create graph": """
        import torch
        x = torch.tensor([2.0], requires_grad=True)
        (x ** 2).backward(create_graph=True)
        kept = x.grad
        (x ** 3).backward(create_graph=True)
        print(kept, x.grad)
        assert kept.item() == 4.0
    """,
    "GS302 create graph kw": """
        import torch
        x = torch.tensor([2.0], requires_grad=True)
        torch.autograd.backward(x ** 2, create_graph=True)
        kept = x.grad
        torch.autograd.backward(x ** 3, create_graph=True)
        assert kept.item() == 4.0
    """,
    "GS302 none between": """
        import torch
        x = torch.tensor([2.0], requires_grad=True)
        (x ** 2).backward()
        kept = x.grad
        x.grad = None
        (x ** 3).backward()
        assert kept.item() == 4.0
    """,
    "GS502 gan": """
        import torch
        from torch import nn
        G, D = nn.Linear(2, 3), nn.Linear(3, 1)
        og, od = torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters())
        bce = nn.BCEWithLogitsLoss()
        for _ in range(3):
            fake = G(torch.randn(4, 2))
            od.zero_grad()
            (bce(D(torch.randn(4, 3)), torch.ones(4, 1)) + bce(D(fake.detach()), torch.zeros(4, 1))).backward()
            od.step()
            og.zero_grad()
            bce(D(fake), torch.ones(4, 1)).backward()
            og.step()
    """,
    "GS204 frozen read": """
        import torch
        from torch import nn
        net = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1))
        for q in net[0].parameters():
            q.requires_grad = False
        net(torch.randn(2, 3)).sum().backward()
        for name, q in net.named_parameters():
            print(name, q.grad)
    """,
    "GS204 frozen read2": """
        import torch
        from torch import nn
        enc, head = nn.Linear(3, 3), nn.Linear(3, 1)
        enc.requires_grad_(False)
        head(enc(torch.randn(2, 3))).sum().backward()
        assert enc.weight.grad is None
        print(enc.weight.grad, head.weight.grad)
    """,
    "GS204 frozen assert": """
        import torch
        from torch import nn
        def grads(model):
            return {n: (q.grad.norm() if q.grad is not None else 0.0) for n, q in model.named_parameters()}
        enc, head = nn.Linear(3, 3), nn.Linear(3, 1)
        for q in enc.parameters():
            q.requires_grad_(False)
        loss = head(enc(torch.randn(2, 3))).sum()
        loss.backward()
        print(grads(enc), grads(head))
        if enc.weight.grad is None:
            print("frozen")
    """,
}
OPENING = "import torch\nimport torch as th\nfrom torch import nn\n"
LOOK_ALIKES = {
    "a limit that something passes": (
        "w = torch.ones(3, requires_grad=True)\ny = w.exp()\ny.data.clamp_(max=2)\ny.sum().backward()\n",
        "GS104",
    ),
    "a limit after a write": (
        "w = torch.ones(3, requires_grad=True)\ny = w.exp()\ny.data.neg_()\ny.data.clamp_(min=0)\ny.sum().backward()\n",
        "GS104",
    ),
    "something learned, with grad mode off": (
        "w = torch.ones(3, requires_grad=True)\nh = w * 2\nwith torch.no_grad():\n    h.sub_(h.mean())\nh.sum().backward()\n",
        "GS105",
    ),
}


@pytest.mark.filterwarnings("ignore:Using backward")
@pytest.mark.parametrize("name", RIGHT)
def test_a_right_program_is_not_reported(name: str) -> None:
    text = dedent(RIGHT[name]).lstrip("\n")
    torch.manual_seed(0)
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(text, name, "exec"), {"__name__": "program"})
    loud = [
        one for one in analyze(Source("program.py", text)).findings if one.severity in ("error", "warning")
    ]
    assert [(one.code, one.span.line, one.message) for one in loud] == []


@pytest.mark.parametrize("depth", [60, 120])
def test_a_long_line_of_ancestors_makes_every_layer(depth: int) -> None:
    """Each class of a line calls `super().__init__()` before it assigns a layer."""
    text = "import torch\nfrom torch import nn\n\n\nclass L0(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.at0 = nn.Linear(2, 2)\n"
    for level in range(1, depth):
        text += f"class L{level}(L{level - 1}):\n    def __init__(self):\n        super().__init__()\n        self.at{level} = nn.Linear(2, 2)\n"
    text += f"net = L{depth - 1}()\n" + "".join(
        f"net.at{level}(torch.ones(1, 2)).sum().backward()\n" for level in range(depth)
    )
    assert [one.code for one in analyze(Source("program.py", text)).findings if one.severity != "hint"] == []


@pytest.mark.parametrize("name", LOOK_ALIKES)
def test_its_faulty_look_alike_is(name: str) -> None:
    text, code = LOOK_ALIKES[name]
    found = analyze(Source("program.py", OPENING + text)).findings
    assert code in [one.code for one in found if one.severity in ("error", "warning")]
