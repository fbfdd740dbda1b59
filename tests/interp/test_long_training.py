"""Training over many rounds as people write it: each program runs on torch to its end, and GradSight keeps silent.

Beside them stand late faults, which are told although the first rounds are sound.
"""

from __future__ import annotations

from textwrap import dedent, indent

import pytest

from tests.interp.checking import PREAMBLE, check
from tests.interp.test_safe_habits import runs_in_silence

START = """
import copy, random
from collections import deque
net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.05)
x, y = torch.randn(4, 3), torch.randn(4, 1)
"""
UPDATE = "opt.zero_grad()\nloss.backward()\nopt.step()\n"
ROUNDS = {
    "a warm-up of the rate": "for g in opt.param_groups: g['lr'] = 0.1 * min(1.0, (step + 1) / 20)\n{fit}",
    "a curriculum": "n = 1 if step < 20 else 2 if step < 30 else 4\nloss = F.mse_loss(net(x[:n]), y[:n])\n{update}",
    "a log every ten": "{fit}if (step + 1) % 10 == 0:\n    print(step, loss.item())\n",
    "a checkpoint every fifteen": "{fit}if step % 15 == 14:\n    saved = copy.deepcopy(net.state_dict())\n",
    "a late term": "loss = F.mse_loss(net(x), y)\nif step >= 25:\n    loss = loss + 0.1 * net(x).abs().mean()\n{update}",
    "a term that fades": "w = max(0.0, 1 - step / 30)\nloss = F.mse_loss(net(x), y)\nif w > 0:\n    loss = loss + w * net(x).mean()\n{update}",
    "accumulation": "loss = F.mse_loss(net(x), y) / 8\nloss.backward()\nif (step + 1) % 8 == 0:\n    opt.step()\n    opt.zero_grad()\n",
    "evaluation every twelve": "net.train()\n{fit}if step % 12 == 11:\n    net.eval()\n    with torch.no_grad():\n        print(net(x).mean())\n    net.train()\n",
    "pruning at rounds": "{fit}if step in (15, 30):\n    with torch.no_grad():\n        for p in net.parameters():\n            p.mul_((p.abs() > 1e-3).float())\n",
    "clipping after a while": "loss = F.mse_loss(net(x), y)\nopt.zero_grad()\nloss.backward()\nif step > 20:\n    nn.utils.clip_grad_norm_(net.parameters(), 1.0)\nopt.step()\n",
    "a penalty every sixteenth": "xs = x.clone().requires_grad_(step % 16 == 15)\nout = net(xs).sum()\nloss = out\nif step % 16 == 15:\n    (g,) = torch.autograd.grad(out, xs, create_graph=True)\n    loss = loss + g.pow(2).sum()\n{update}",
    "noise until late": "inp = x + 0.1 * torch.randn_like(x) if step < 30 else x\nloss = F.mse_loss(net(inp), y)\n{update}",
    "a reset of the optimizer": "if step == 25:\n    opt = torch.optim.Adam(net.parameters(), lr=0.01)\n{fit}",
    "rounds that are skipped": "if step % 7 == 3:\n    continue\n{fit}",
    "a match on the round": "loss = F.mse_loss(net(x), y)\nmatch step:\n    case 20:\n        loss = loss * 2\n    case 30:\n        loss = loss + net(x).mean()\n{update}",
}
FIT = "loss = F.mse_loss(net(x), y)\n" + UPDATE
HEADERS = {"for": "for step in range(40):\n", "while": "step = -1\nwhile step < 39:\n    step += 1\n"}


@pytest.mark.parametrize("header", HEADERS)
@pytest.mark.parametrize("title", ROUNDS)
def test_rounds_that_differ(title: str, header: str) -> None:
    body = ROUNDS[title].format(fit=FIT, update=UPDATE)
    runs_in_silence(START + HEADERS[header] + indent(body, "    "))


PROGRAMS = {
    "patience": """
        best, bad, kept = float("inf"), 0, None
        for epoch in range(60):
            loss = F.mse_loss(net(x), y)
            opt.zero_grad(); loss.backward(); opt.step()
            if loss.item() < best - 1e-3:
                best, bad, kept = loss.item(), 0, copy.deepcopy(net.state_dict())
            else:
                bad += 1
                if bad >= 15:
                    break
        if kept is not None:
            net.load_state_dict(kept)
        """,
    "a target network": """
        target = copy.deepcopy(net).requires_grad_(False)
        for step in range(60):
            with torch.no_grad():
                aim = target(x)
            loss = F.mse_loss(net(x), aim + y)
            opt.zero_grad(); loss.backward(); opt.step()
            if (step + 1) % 20 == 0:
                target.load_state_dict(net.state_dict())
        """,
    "an average after a warm-up": """
        ema = copy.deepcopy(net)
        for step in range(40):
            loss = F.mse_loss(net(x), y)
            opt.zero_grad(); loss.backward(); opt.step()
            if step < 15:
                continue
            with torch.no_grad():
                for e, p in zip(ema.parameters(), net.parameters()):
                    e.lerp_(p, 0.1)
        """,
    "an averaged model": """
        swa = torch.optim.swa_utils.AveragedModel(net)
        for epoch in range(30):
            loss = F.mse_loss(net(x), y)
            opt.zero_grad(); loss.backward(); opt.step()
            if epoch >= 20:
                swa.update_parameters(net)
        print(swa(x).mean())
        """,
    "progressive thawing": """
        net[0].requires_grad_(False)
        for epoch in range(30):
            if epoch == 15:
                net[0].requires_grad_(True)
            loss = F.mse_loss(net(x), y)
            opt.zero_grad(); loss.backward(); opt.step()
        print(net[0].weight.grad.norm())
        """,
    "a new group at a round": """
        head = nn.Linear(1, 1)
        for epoch in range(30):
            if epoch == 18:
                opt.add_param_group({"params": head.parameters()})
            out = net(x) if epoch < 18 else head(net(x))
            loss = F.mse_loss(out, y)
            opt.zero_grad(); loss.backward(); opt.step()
        print(head.weight.grad)
        """,
    "a replay queue": """
        memory = deque(maxlen=32)
        for step in range(80):
            memory.append((torch.randn(3), torch.randn(1)))
            if len(memory) < 16:
                continue
            batch = random.sample(list(memory), 8)
            a, b = (torch.stack(part) for part in zip(*batch))
            loss = F.mse_loss(net(a), b)
            opt.zero_grad(); loss.backward(); opt.step()
        """,
    "a reservoir": """
        reservoir = []
        for seen in range(60):
            item = torch.randn(3)
            if len(reservoir) < 20:
                reservoir.append(item)
            elif random.randint(0, seen) < 20:
                reservoir[random.randrange(20)] = item
            if seen >= 30:
                loss = net(torch.stack(reservoir)).pow(2).mean()
                opt.zero_grad(); loss.backward(); opt.step()
        """,
    "truncated time": """
        cell = nn.GRUCell(3, 4)
        opt = torch.optim.Adam(cell.parameters())
        h, loss = torch.zeros(1, 4), 0.0
        for t in range(48):
            h = cell(torch.randn(1, 3), h)
            loss = loss + h.pow(2).mean()
            if (t + 1) % 16 == 0:
                opt.zero_grad(); loss.backward(); opt.step()
                h, loss = h.detach(), 0.0
        """,
    "a window of losses": """
        losses = []
        for t in range(60):
            losses.append(F.mse_loss(net(x), y))
            if len(losses) == 15:
                opt.zero_grad(); torch.stack(losses).mean().backward(); opt.step()
                losses.clear()
        """,
    "teacher forcing": """
        cell, out = nn.GRUCell(1, 4), nn.Linear(4, 1)
        opt = torch.optim.SGD([*cell.parameters(), *out.parameters()], lr=0.1)
        for epoch in range(30):
            ratio = max(0.0, 1 - epoch / 20)
            h, prev, loss = torch.zeros(1, 4), torch.zeros(1, 1), 0.0
            for t in range(15):
                h = cell(prev, h)
                pred = out(h)
                loss = loss + (pred - 1).pow(2).mean()
                prev = torch.ones(1, 1) if random.random() < ratio else pred.detach()
            opt.zero_grad(); loss.backward(); opt.step()
        """,
    "two optimizers in turns": """
        other = nn.Linear(1, 1)
        opt2 = torch.optim.SGD(other.parameters(), lr=0.1)
        for step in range(45):
            if step // 15 % 2 == 0:
                loss = F.mse_loss(net(x), y)
                opt.zero_grad(); loss.backward(); opt.step()
            else:
                loss = F.mse_loss(other(net(x).detach()), y)
                opt2.zero_grad(); loss.backward(); opt2.step()
        print(other.weight.grad)
        """,
    "a critic five times as often": """
        critic = nn.Linear(1, 1)
        opt_c = torch.optim.RMSprop(critic.parameters())
        for step in range(40):
            fake = net(x)
            opt_c.zero_grad()
            (critic(fake.detach()).mean() - critic(y).mean()).backward()
            opt_c.step()
            if step % 5 == 4:
                opt.zero_grad()
                (-critic(fake).mean()).backward()
                opt.step()
        """,
    "a search for the rate": """
        rates, seen, best = [], [], None
        for i in range(40):
            rate = 1e-4 * 1.2 ** i
            for group in opt.param_groups:
                group["lr"] = rate
            loss = F.mse_loss(net(x), y)
            if best is None or loss.item() < best:
                best = loss.item()
            if i > 20 and loss.item() > 4 * best:
                break
            opt.zero_grad(); loss.backward(); opt.step()
            rates.append(rate); seen.append(loss.item())
        """,
    "a trainer that counts": """
        class Trainer:
            def __init__(self):
                self.step, self.total = 0, None
            def add(self, batch):
                self.step += 1
                if self.step < 20:
                    return
                term = net(batch).pow(2).mean()
                self.total = term if self.total is None else self.total + term
        trainer = Trainer()
        for batch in torch.randn(50, 4, 3):
            trainer.add(batch)
        trainer.total.backward()
        """,
    "a global count": """
        count = 0
        def term(batch):
            global count
            count += 1
            if count <= 25:
                return torch.zeros(())
            return net(batch).mean()
        total = torch.zeros(())
        for batch in torch.randn(40, 4, 3):
            total = total + term(batch)
        total.backward()
        """,
    "a stream of batches": """
        def stream(count):
            for number in range(count):
                yield number, torch.randn(4, 3)
        total = torch.zeros(())
        for number, batch in stream(50):
            if number >= 30:
                total = total + net(batch).mean()
        total.backward()
        """,
    "a schedule by name": """
        phases, phase, total = {0: "warm", 20: "main"}, "warm", torch.zeros(())
        for step in range(40):
            phase = phases.get(step, phase)
            if phase == "main":
                total = total + net(x).mean()
        total.backward()
        """,
    "a number in a dict": """
        state, total = {"step": 0}, torch.zeros(())
        for batch in torch.randn(40, 4, 3):
            state["step"] += 1
            if state["step"] > 30:
                total = total + net(batch).mean()
        total.backward()
        """,
    "a full queue and a thaw": """
        net.requires_grad_(False)
        queue = deque(maxlen=9)
        for it in range(1, 22):
            queue.append(torch.randn(3))
            if it >= 9:
                net.requires_grad_(True)
            loss = net(torch.stack(list(queue))).mean()
            if len(queue) == queue.maxlen:
                opt.zero_grad(); loss.backward(); opt.step()
        """,
    "a gradient read later": """
        for it in range(20):
            if it == 12:
                print(net[0].weight.grad.norm())
            if it <= 5:
                continue
            loss = F.mse_loss(net(x), y)
            opt.zero_grad(); loss.backward(); opt.step()
        """,
    "even and odd": """
        for step in range(40):
            if step % 2 == 0:
                loss = F.mse_loss(net(x), y)
            else:
                opt.zero_grad(); loss.backward(); opt.step()
            if step >= 25:
                shown = loss.item()
        """,
    "the last rounds keep their graph": """
        cell = nn.GRUCell(3, 4)
        h, count = torch.zeros(1, 4), 0
        while True:
            count += 1
            if count > 54:
                break
            h = cell(torch.randn(1, 3), h)
            if count % 9 == 0:
                h.sum().backward()
                if count <= 50:
                    h = h.detach()
        """,
    "a cache that is renewed": """
        for step in range(40):
            if step % 13 == 0:
                with torch.no_grad():
                    anchor = net(x)
            loss = F.mse_loss(net(x), anchor + y)
            opt.zero_grad(); loss.backward(); opt.step()
        """,
    "epochs and batches": """
        seen = 0
        for epoch in range(15):
            for batch in torch.randn(20, 4, 3):
                seen += 1
                if seen <= 150:
                    continue
                loss = net(batch).pow(2).mean()
                opt.zero_grad(); loss.backward(); opt.step()
        print(net[0].weight.grad.norm())
        """,
}


@pytest.mark.parametrize("title", PROGRAMS)
def test_what_changes_on_the_way(title: str) -> None:
    runs_in_silence(START + dedent(PROGRAMS[title]))


FAULTS = {
    "written in a late round": """
        for step in range(40):
            out = torch.sigmoid(net(x))
            if step == 25:
                out.mul_(0.5)  # GS101
            loss = out.mean()
            opt.zero_grad(); loss.backward(); opt.step()
        """,
    "not cut off any more": """
        cell = nn.GRUCell(3, 4)
        h = torch.zeros(1, 4)
        for t in range(60):
            h = cell(torch.randn(1, 3), h)  # GS403
            if (t + 1) % 6 == 0:
                h.sum().backward()
                if t < 30:
                    h = h.detach()
        """,
    "a leaf written late": """
        w = torch.ones(3, requires_grad=True)
        def stream(count):
            for number in range(count):
                yield number
        for number in stream(40):
            (w * number).sum().backward()
            if number > 20:
                w.clamp_(-1, 1)  # GS102
        """,
    "read before it is there": """
        w = torch.ones(3, requires_grad=True)
        for step in range(40):
            if step == 7:
                print(w.grad.norm())  # GS304
            if step > 20:
                (w * step).sum().backward()
        """,
}


@pytest.mark.parametrize("title", FAULTS)
def test_late_faults_are_told(title: str) -> None:
    program = START + dedent(FAULTS[title])
    check(program)
    with pytest.raises((RuntimeError, AttributeError)):
        exec(compile(PREAMBLE + program, "program.py", "exec"), {"__name__": "__main__"})


@pytest.mark.parametrize(
    "condition",
    ["t <= (1, 2)[0]", "t is 3", "t is not None", "level < float('inf')", "level != float('nan')", "t in (1, 2)", "(t,) < (3,)", "'a' < 'b'", "t < True", "t in 'abc' if t is None else True"],
)  # fmt: skip
def test_any_comparison_in_a_long_loop_is_understood_or_left(condition: str) -> None:
    check(f"""
        level = float("inf")
        for t in range(40):
            if {condition}:
                level = level - t
            level = level * 2
    """)
