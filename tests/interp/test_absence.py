"""What is missing on one path and there on another is not reported: each program runs on torch to its end, in silence.

Long loops are executed for some of their rounds only, so what a later round brings must not be taken for missing.
"""

from __future__ import annotations

from textwrap import dedent

import pytest

from tests.interp.checking import PREAMBLE, check
from tests.interp.test_safe_habits import runs_in_silence

WEIGHT = "import random\nw = torch.ones(3, requires_grad=True)\n"
PROGRAMS = {
    "a sum whose terms wait": """
        seen = []
        def term(row):
            seen.append(0)
            return torch.zeros(()) if len(seen) < 20 else (w * row).sum()
        sum(term(row) for row in torch.ones(50, 3)).backward()
        """,
    "a stack whose parts wait": """
        seen = []
        def term(row):
            seen.append(0)
            if len(seen) < 20:
                return torch.zeros(())
            return (w * row).sum()
        torch.stack([term(row) for row in torch.ones(50, 3)]).sum().backward()
        """,
    "cleared every fourth round": """
        net = nn.Linear(3, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for i in range(40):
            if i % 4 == 0:
                opt.zero_grad()
            net(torch.randn(2, 3)).mean().backward()
            opt.step()
        """,
    "a total after a warm-up": """
        total = torch.zeros(())
        for t in range(30):
            if t < 7:
                continue
            total = total + (w * t).sum()
        total.backward()
        """,
    "a window that fills": """
        losses, buf = [], []
        for t in range(30):
            buf.append(t)
            if len(buf) < 8:
                continue
            losses.append((w * t).sum())
        torch.stack(losses).mean().backward()
        """,
    "a text that grows": """
        text = ""
        for i in range(100):
            text += "ab"
            if text.endswith("ab" * 40): w.sum().backward()
        print(w.grad.norm())
        """,
    "a table that fills": """
        seen = {}
        for i in range(200):
            seen[i * i % 173] = i
            if len(seen) == 80: w.sum().backward()
        print(w.grad.norm())
        """,
    "terms by chance": """
        total = torch.zeros(())
        for t in range(30):
            if random.random() < 0.5:
                continue
            total = total + (w * t).sum()
        total.backward()
        """,
    "the last round only": """
        loss = None
        for t in range(30):
            if t == 29:
                loss = (w * t).sum()
        loss.backward()
        """,
    "every tenth round": """
        losses = []
        for t in range(1, 101):
            y = w * t
            if t % 10 == 0:
                losses.append(y.sum())
        sum(losses).backward()
        """,
    "a while loop past its beginning": """
        losses = []
        t = 0
        while t < 40:
            t += 1
            if t < 20:
                continue
            losses.append((w * t).sum())
        torch.stack(losses).sum().backward()
        """,
    "a counter": """
        losses = []
        seen = 0
        for x in torch.randn(50, 3):
            seen += 1
            if seen <= 16:
                continue
            losses.append((w * x).sum())
        torch.stack(losses).sum().backward()
        """,
    "an enumeration": """
        losses = []
        for i, x in enumerate(torch.randn(50, 3)):
            if i >= 16:
                losses.append((w * x).sum())
        torch.cat([l.view(1) for l in losses]).sum().backward()
        """,
    "gradients of late rounds": """
        for t in range(50):
            if t >= 20:
                (w * t).sum().backward()
        print(w.grad.norm())
        """,
    "a buffer that says when it is ready": """
        class Buffer:
            def __init__(self):
                self.items = []
            def push(self, x):
                self.items.append(x)
            def ready(self):
                return len(self.items) >= 16
        buf = Buffer()
        total = 0.0
        for t in range(100):
            buf.push(torch.randn(3))
            if not buf.ready():
                continue
            total = total + (w * torch.stack(buf.items[-16:])).sum()
        total.backward()
        """,
    "terms by name": """
        terms = {}
        for t in range(30):
            if t > 20:
                terms[t] = (w * t).sum()
        sum(terms.values()).backward()
        """,
    "a state set in one round": """
        w2 = torch.zeros(3)
        state = None
        for epoch in range(30):
            if epoch == 20:
                state = (w * 2)
        out = state if state is not None else w2
        out.sum().backward()
        """,
    "rounds that fail": """
        total = torch.zeros(())
        for t in range(30):
            try:
                v = 1 / max(t - 20, 0)
            except ZeroDivisionError:
                continue
            total = total + (w * v).sum()
        total.backward()
        """,
    "a loop in a function": """
        def run():
            losses = []
            for t in range(100):
                if t < 50:
                    continue
                losses.append((w * t).sum())
            return torch.stack(losses).mean()
        run().backward()
        """,
    "a comprehension": """
        losses = [(w * t).sum() for t in range(50) if t > 30]
        torch.stack(losses).mean().backward()
        """,
    "a conditional term": """
        total = torch.zeros(())
        for t in range(50):
            total = total + ((w * t).sum() if t > 30 else 0.0)
        total.backward()
        """,
    "a choice by and": """
        total = torch.zeros(())
        for t in range(50):
            total = t > 30 and (w * t).sum() or total
        total.backward()
        """,
    "a case of match": """
        total = torch.zeros(())
        for t in range(50):
            match t:
                case 40:
                    total = total + (w * t).sum()
        total.backward()
        """,
    "nested loops": """
        total = torch.zeros(())
        for e in range(20):
            for t in range(20):
                if e * 20 + t < 100:
                    continue
                total = total + (w * t).sum()
        total.backward()
        """,
    "a helper that waits": """
        def step(t):
            if t < 20:
                return torch.zeros(())
            return (w * t).sum()
        total = torch.zeros(())
        for t in range(50):
            total = total + step(t)
        total.backward()
        """,
    "a scheduled weight": """
        def weight(t):
            return 0.0 if t < 20 else 1.0
        total = torch.zeros(())
        for t in range(50):
            c = weight(t)
            if c > 0:
                total = total + c * (w * t).sum()
        total.backward()
        """,
    "weights that thaw": """
        p = torch.nn.Linear(3, 1)
        p.requires_grad_(False)
        opt = torch.optim.SGD(p.parameters(), lr=0.1)
        for t in range(50):
            if t == 20:
                p.requires_grad_(True)
            out = p(torch.ones(2, 3)).sum()
            if t >= 20:
                opt.zero_grad()
                out.backward()
                opt.step()
        """,
    "a generator that skips": """
        def windows(n):
            for t in range(n):
                if t < 20:
                    continue
                yield t
        total = torch.zeros(())
        for t in windows(50):
            total = total + (w * t).sum()
        total.backward()
        """,
    "a gradient of a late term": """
        total = torch.ones(3, requires_grad=True).sum()
        for t in range(30):
            if t < 17:
                continue
            total = total + (w * t).sum()
        print(torch.autograd.grad(total, w))
        """,
    "a backward by chance": """
        for t in range(30):
            if random.random() < 0.5:
                (w * t).sum().backward()
        print(w.grad.norm())
        """,
    "a step after backwards by chance": """
        opt = torch.optim.SGD([w], lr=0.1)
        for t in range(30):
            if random.random() < 0.5:
                (w * t).sum().backward()
        opt.step()
        """,
    "steps of late rounds": """
        opt = torch.optim.SGD([w], lr=0.1)
        for t in range(30):
            loss = (w * t).sum()
            if t >= 20:
                opt.zero_grad()
                loss.backward()
                opt.step()
        """,
    "a counter in a helper": """
        class Trainer:
            def __init__(self):
                self.n = 0
            def step(self):
                self.n += 1
                if self.n < 20:
                    return torch.zeros(())
                return (w * self.n).sum()
        tr = Trainer()
        total = torch.zeros(())
        for _ in range(50):
            total = total + tr.step()
        total.backward()
        """,
    "a counter over batches": """
        class Trainer:
            def __init__(self):
                self.n = 0
                self.total = torch.zeros(())
            def step(self, x):
                self.n += 1
                if self.n < 20:
                    return
                self.total = self.total + (w * x).sum()
        loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(100, 3)), batch_size=1)
        tr = Trainer()
        for (x,) in loader:
            tr.step(x)
        tr.total.backward()
        """,
    "a full queue": """
        from collections import deque
        q = deque(maxlen=16)
        total = torch.zeros(())
        for t in range(50):
            q.append(torch.randn(3))
            if len(q) == q.maxlen:
                total = total + (w * torch.stack(list(q))).sum()
        total.backward()
        """,
    "a replay memory": """
        class Replay:
            def __init__(self, cap):
                self.cap, self.store = cap, []
            def add(self, x):
                self.store.append(x)
            def sample(self, n):
                return random.sample(self.store, n)
            def __len__(self):
                return len(self.store)
        mem = Replay(100)
        net = nn.Linear(3, 1)
        opt = torch.optim.Adam(net.parameters())
        losses = []
        for step in range(200):
            mem.add(torch.randn(3))
            if len(mem) < 32:
                continue
            batch = torch.stack(mem.sample(32))
            loss = net(batch).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            losses.append(loss.item())
        print(net.weight.grad.norm(), sum(losses) / len(losses))
        """,
    "the best of many": """
        best, best_loss = None, float("inf")
        for t in range(30):
            out = w * (t - 15)
            if out.sum().item() < best_loss:
                best, best_loss = out, out.sum().item()
        best.sum().backward()
        """,
    "an early end": """
        total = torch.tensor(0.0)
        n = 0
        for x in torch.randn(100, 3):
            if x.norm() < 1.0:
                continue
            n += 1
            total = total + (w * x).sum()
            if n >= 5:
                break
        (total / max(n, 1)).backward()
        """,
    "a loss that may be None": """
        loss = None
        for x in torch.randn(100, 3):
            if x.norm() < 0.5:
                continue
            term = (w * x).sum()
            loss = term if loss is None else loss + term
        if loss is not None:
            loss.backward()
        """,
    "a masked loss": """
        def masked_loss(pred, mask):
            total = pred.new_zeros(())
            for i in range(pred.shape[0]):
                if not mask[i]:
                    continue
                total = total + pred[i].pow(2)
            return total / mask.sum().clamp(min=1)
        mask = torch.tensor([True, False, True])
        masked_loss(w * 2, mask).backward()
        """,
    "a term of one layer": """
        class Net(nn.Module):
            def __init__(self, blocks=16):
                super().__init__()
                self.layers = nn.ModuleList(nn.Linear(3, 3) for _ in range(blocks))
            def forward(self, x):
                aux = torch.zeros(())
                for i, layer in enumerate(self.layers):
                    x = layer(x)
                    if i == 14:
                        aux = aux + x.abs().mean()
                return aux
        Net()(torch.randn(2, 3)).backward()
        """,
    "a loss that may need no gradient": """
        net = nn.Linear(3, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        WARMUP = 10
        for epoch in range(40):
            loss = torch.zeros(())
            if epoch >= WARMUP:
                loss = loss + net(torch.randn(4, 3)).mean()
            if loss.requires_grad:
                opt.zero_grad()
                loss.backward()
                opt.step()
        """,
    "batches without valid rows": """
        vals = []
        for chunk in torch.randn(64, 3).split(4):
            valid = chunk[chunk[:, 0] > 0]
            if valid.numel() == 0:
                continue
            vals.append((valid * w).sum())
        torch.stack(vals).mean().backward()
        """,
    "groups that are large enough": """
        groups = {}
        for i in range(40):
            groups.setdefault(i % 4, []).append(i)
        total = 0
        for key, members in groups.items():
            if len(members) < 2:
                continue
            total = total + (w * len(members)).sum()
        total.backward()
        """,
    "distant pairs": """
        pts = torch.randn(20, 3)
        e = torch.zeros(())
        for i in range(20):
            for j in range(20):
                if j <= i + 14:
                    continue
                e = e + ((pts[i] - pts[j]) * w).pow(2).sum()
        e.backward()
        """,
    "an endless loop with a guard": """
        e = torch.zeros(())
        step = 0
        while True:
            step += 1
            if step < 30:
                continue
            e = e + (w * step).sum()
            if step > 40:
                break
        e.backward()
        """,
    "a penalty now and then": """
        net = nn.Linear(3, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for it in range(40):
            x = torch.randn(4, 3, requires_grad=True)
            out = net(x).sum()
            penalty = torch.zeros(())
            if it % 16 == 15:
                (g,) = torch.autograd.grad(out, x, create_graph=True)
                penalty = g.pow(2).sum()
            (out + penalty).backward()
            opt.step(); opt.zero_grad()
        """,
    "a history that is compared": """
        hist = []
        p = torch.zeros(3, requires_grad=True)
        opt = torch.optim.SGD([p], lr=0.1)
        for i in range(30):
            opt.zero_grad()
            loss = (p - w.detach()).pow(2).sum()
            hist.append(loss.detach())
            if i > 15 and hist[-1] > hist[-10]:
                break
            loss.backward()
            opt.step()
        print(p.grad)
        """,
}


@pytest.mark.parametrize("title", PROGRAMS)
def test_what_comes_later_is_not_missing(title: str) -> None:
    runs_in_silence(WEIGHT + dedent(PROGRAMS[title]))


@pytest.mark.parametrize("many", [3, 12, 13, 17, 70])
@pytest.mark.parametrize(
    "program",
    [
        """
        leaves = [torch.ones(2, requires_grad=True) for _ in range(MANY)]
        total = torch.zeros(())
        for leaf in leaves:
            total = total + leaf.pow(2).sum()
        print(torch.autograd.grad(total, leaves)[-1])
        """,
        """
        parts = nn.ModuleList(nn.Linear(3, 1) for _ in range(MANY))
        for part, opt in [(part, torch.optim.SGD(part.parameters(), lr=0.1)) for part in parts]:
            opt.zero_grad()
            part(torch.ones(2, 3)).sum().backward()
            opt.step()
        print(parts[MANY - 1].weight.grad.norm())
        """,
        """
        net = nn.Linear(3, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for number in range(MANY):
            if number % 3 == 0:
                opt.zero_grad()
            net(torch.ones(2, 3)).mean().backward()
            if number % 3 == 2:
                opt.step()
        """,
    ],
)
def test_many_are_treated_as_few_are(program: str, many: int) -> None:
    runs_in_silence(f"MANY = {many}\n" + dedent(program))


MISSING = {
    "cleared in the first round only": """
        net = nn.Linear(3, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for i in range(40):
            if i == 0:
                opt.zero_grad()
            net(torch.randn(2, 3)).mean().backward()  # GS501
            opt.step()
        """,
    "no round adds a term": """
        total = torch.zeros(())
        for t in range(50):
            if t < 20:
                continue
            seen = (w * t).sum().detach()
        total.backward()  # GS205
        """,
    "a branch for show": """
        total = torch.zeros(())
        shown = False
        for t in range(50):
            if shown:
                print(t)
        total.backward()  # GS205
        """,
    "read before any backward": """
        norm = w.grad.norm()  # GS304
        for t in range(50):
            if t > 20:
                (w * t).sum().backward()
        """,
    "a step without any backward": """
        opt = torch.optim.SGD([w], lr=0.1)
        for t in range(50):
            loss = (w * t).sum()
            if t > 20:
                opt.step()  # GS503
        """,
    "either way nothing": """
        if random.random() < 0.5:
            total = torch.zeros(())
        else:
            total = torch.ones(())
        total.backward()  # GS205
        """,
    "unused, whatever the round": """
        other = torch.ones(3, requires_grad=True)
        total = other.sum()
        for t in range(50):
            if t > 20:
                total = total + other.sum() * t
        torch.autograd.grad(total, w)  # GS406
        """,
}


@pytest.mark.parametrize("title", MISSING)
def test_what_no_path_brings_is_missing(title: str) -> None:
    program = WEIGHT + dedent(MISSING[title])
    check(program)
    if "GS5" not in program:
        with pytest.raises((RuntimeError, AttributeError)):
            exec(compile(PREAMBLE + program, "program.py", "exec"), {"__name__": "__main__"})
