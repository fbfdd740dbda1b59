"""Habits that look like faults and are none: each program runs on torch to its end, and GradSight keeps silent.

Beside them stand the faults they resemble, which are still told.
"""

from __future__ import annotations

from textwrap import dedent

import pytest

from tests.interp.checking import PREAMBLE, check
from tests.interp.running import seed

TRAINING = """
        net = nn.Linear(2, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
"""
ROUND = """
            loss = net(torch.ones(1, 2)).pow(2).sum()
            opt.zero_grad()
            loss.backward()
            opt.step()
"""


def runs_in_silence(program: str) -> None:
    """The program runs on torch, and GradSight says nothing about it."""
    seed()
    exec(compile(PREAMBLE + dedent(program), "program.py", "exec"), {"__name__": "__main__"})
    check(program)


# -- how many gradients backward returns -----------------------------------------------------------------------------

SCALE = """
        class Scale(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, a, b):
                ctx.save_for_backward(x)
                return x * 2
            @staticmethod
            def backward(ctx, {parameters}):
                {body}
        x = torch.ones(2, requires_grad=True)
        Scale.apply(x, 1, 2).sum().backward()
"""


@pytest.mark.parametrize(
    ("parameters", "body"),
    [
        ("g", "return (g * 2,) + (None,) * 2"),
        ("g", "return (g * 2, *[None] * 2)"),
        ("g", "return (g * 2,) + tuple(None for _ in range(2))"),
        ("*g", "return g + (None, None)"),
        ("*g", "return g[:1] + (None, None)"),
        ("g", "rest = (None,) * 2; return (g,) + rest"),
        ("g", "grads = (g * 2,) + (None, None); return grads"),
        ("g", "return ctx.saved_tensors + (None, None)"),
        ("g", "return 1 * [g, None, None][:] if False else (g, None, None)"),
    ],
)
def test_tuples_are_put_together(parameters: str, body: str) -> None:
    runs_in_silence(SCALE.format(parameters=parameters, body=body))


@pytest.mark.parametrize(
    "body", ["return (g * 2,) + (None,)", "return g * 2", "x, = ctx.saved_tensors; return g * x + x"]
)
def test_a_tuple_that_is_too_short_is_told(body: str) -> None:
    check(SCALE.format(parameters="g", body=body + "  # GS701"))


# -- writes in a custom forward --------------------------------------------------------------------------------------


def test_a_buffer_may_be_written_by_a_custom_forward() -> None:
    runs_in_silence("""
        class Centred(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, mean, count):
                mean.mul_(0.9).add_(0.1 * x.mean(0))
                count += 1
                return x - mean
            @staticmethod
            def backward(ctx, g):
                return g, None, None
        class Norm(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("mean", torch.zeros(3))
                self.register_buffer("count", torch.zeros(()))
            def forward(self, x):
                return Centred.apply(x, self.mean, self.count)
        x = torch.ones(2, 3, requires_grad=True)
        Norm()(x).sum().backward()
    """)


def test_a_written_input_that_is_returned_or_needs_a_gradient_must_be_marked() -> None:
    check("""
        class Add(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, total):
                total.add_(x)  # GS703
                return total
            @staticmethod
            def backward(ctx, g):
                return g, g
        class Drop(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                x.mul_(2)  # GS703
                return x.clone()
            @staticmethod
            def backward(ctx, g):
                return g * 2
        x = torch.ones(3, requires_grad=True)
        Add.apply(x, torch.zeros(3)).sum().backward()
        Drop.apply(x * 1).sum().backward()
    """)


# -- totals ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("start", "addition"),
    [
        ("tot = torch.zeros(())", "with torch.no_grad(): tot += loss"),
        ("tot = 0.0", "with torch.no_grad(): tot += loss"),
        ("tot = 0.0", "with torch.inference_mode(): tot = tot + loss"),
        ("tot = torch.zeros(())", "tot += loss; tot = tot.detach()"),
        ("tot = torch.zeros(())", "tot += loss; tot.detach_()"),
        ("tot = 0.0", "tot = tot + loss; tot = float(tot)"),
        ("tot = torch.zeros(())", "tot = tot.detach() + loss"),
        ("tot = 0.0", "tot = (tot + loss).detach()"),
    ],
)
def test_a_total_without_a_graph(start: str, addition: str) -> None:
    runs_in_silence(f"""{TRAINING}
        {start}
        for _ in range(3):{ROUND}
            {addition}
    """)


@pytest.mark.parametrize("rounds", [6, 100])
@pytest.mark.parametrize(
    ("start", "addition", "reset"),
    [
        ("run = 0", "run += loss", "print(run.item()); run = 0"),
        ("run, n = 0, 0", "run = run + loss; n += 1", "run, n = 0, 0"),
        ("run = torch.zeros(())", "run += loss", "run = torch.zeros(())"),
        ("run = []", "run.append(loss)", "print(sum(b.item() for b in run)); run.clear()"),
        ("run = []", "run.append(loss)", "run = []"),
        ("run = []", "run.append(loss)", "del run[:]"),
        ("run = []", "run.append(loss)", "run = run[-2:]"),
    ],
)
def test_a_total_that_starts_anew(rounds: int, start: str, addition: str, reset: str) -> None:
    runs_in_silence(f"""{TRAINING}
        {start}
        for i in range({rounds}):{ROUND}
            {addition}
            if i % 3 == 2:
                {reset}
    """)


@pytest.mark.parametrize(
    ("adding", "resetting"),
    [
        ("with torch.no_grad(): self.s += v", "pass"),
        ("self.s += v", "self.s = 0.0"),
        ("self.s = self.s + v", "self.s = self.s.detach()"),
        ("self.all.append(v)", "self.all.clear()"),
    ],
)
def test_a_meter_that_lets_go(adding: str, resetting: str) -> None:
    runs_in_silence(f"""
        class Meter:
            def __init__(self):
                self.s = 0.0
                self.all = []
            def add(self, v):
                {adding}
            def reset(self):
                {resetting}
        {TRAINING}
        meter = Meter()
        for i in range(6):{ROUND}
            meter.add(loss)
            if i % 2 == 1:
                meter.reset()
    """)


def test_a_decorated_meter_and_a_global_total_record_nothing() -> None:
    runs_in_silence(f"""
        class Meter:
            def __init__(self):
                self.s = 0.0
            @torch.no_grad()
            def add(self, v):
                self.s += v
        tot = 0.0
        @torch.no_grad()
        def note(v):
            global tot
            tot += v
        {TRAINING}
        meter = Meter()
        for _ in range(3):{ROUND}
            meter.add(loss)
            note(loss)
        assert meter.s.grad_fn is None and tot.grad_fn is None
    """)


def test_a_total_that_starts_anew_only_in_an_outer_loop_is_told() -> None:
    check(f"""{TRAINING}
        for epoch in range(2):
            run = 0
            kept = []
            for i in range(6):
                loss = net(torch.ones(1, 2)).pow(2).sum()
                opt.zero_grad()
                loss.backward()
                opt.step()
                run += loss  # GS404
                kept.append(loss)  # GS404
            print(run / 6)
    """)


def test_a_meter_that_is_only_read_is_told() -> None:
    check(f"""
        class Meter:
            def __init__(self):
                self.s = 0.0
            def add(self, v):
                self.s += v  # GS404
            def mean(self, n):
                return self.s / n
            def reset(self):
                self.s = 0.0
        {TRAINING}
        meter = Meter()
        for i in range(6):{ROUND}
            meter.add(loss)
        print(meter.mean(6))
    """)


# -- who clears gradients --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "hook",
    [
        "opt.register_step_post_hook(lambda o, a, k: o.zero_grad())",
        "opt.register_step_post_hook(clear)",
        "net.register_forward_pre_hook(lambda m, i: m.zero_grad())",
        "net.register_forward_pre_hook(lambda m, i: opt.zero_grad(set_to_none=False))",
        "net.register_full_backward_pre_hook(lambda m, g: m.zero_grad())",
        "net.register_forward_hook(lambda m, i, o: m.zero_grad())",
    ],
)
@pytest.mark.parametrize(
    "body", ["nn.Linear(2, 1)", "nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))", "Net()"]
)
def test_a_hook_that_clears(body: str, hook: str) -> None:
    runs_in_silence(f"""
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.body = nn.Linear(2, 1)
            def forward(self, x):
                return self.body(x)
        def clear(optimizer, args, kwargs):
            for group in optimizer.param_groups:
                for p in group["params"]:
                    p.grad = None
        net = {body}
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        {hook}
        for _ in range(3):
            net(torch.ones(1, 2)).sum().backward()
            opt.step()
    """)


@pytest.mark.parametrize(
    "registering",
    [
        "opt.register_step_post_hook(lambda o, a, k: print('stepped'))",
        "opt.register_step_post_hook(lambda o, a, k: o.zero_grad()).remove()",
        "net.register_forward_pre_hook(lambda m, i: m.zero_grad()).remove()",
        "net.register_full_backward_hook(lambda m, i, o: print(o[0].norm()))",
    ],
)
def test_a_hook_that_does_not_clear_is_no_excuse(registering: str) -> None:
    check(f"""{TRAINING}
        {registering}
        for _ in range(3):
            net(torch.ones(1, 2)).sum().backward()  # GS501
            opt.step()
    """)


@pytest.mark.parametrize(
    "clearing",
    [
        "for p in net.parameters(): del p.grad",
        "del net.weight.grad, net.bias.grad",
        "for g in opt.param_groups:\n                for p in g['params']:\n                    del p.grad",
    ],
)
def test_deleted_gradients_are_cleared(clearing: str) -> None:
    runs_in_silence(f"""{TRAINING}
        for _ in range(3):
            net(torch.ones(1, 2)).sum().backward()
            opt.step()
            {clearing}
    """)


def test_a_forward_pre_hook_changes_what_forward_is_given() -> None:
    check("""
        enc, head = nn.Linear(2, 2), nn.Linear(2, 1)
        opt = torch.optim.SGD([*enc.parameters(), *head.parameters()], lr=0.1)
        head.register_forward_pre_hook(lambda m, i: (i[0].detach(),))  # GS203
        for _ in range(3):
            opt.zero_grad()
            head(enc(torch.ones(1, 2))).sum().backward()
            opt.step()
    """)


# -- phases of training ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rounds", [4, 40])
@pytest.mark.parametrize(
    "features",
    [
        "z = enc(x)\n            if e < 2: z = z.detach()",
        "z = enc(x).detach() if e < 2 else enc(x)",
        "z = enc(x)\n            if e % 2 == 0: z = z.detach()",
        "with torch.set_grad_enabled(e >= 2): z = enc(x)",
        "z = features(x, warm=e < 2)",
    ],
)
def test_a_warm_up_cuts_in_some_rounds_only(rounds: int, features: str) -> None:
    runs_in_silence(f"""
        enc, head = nn.Linear(3, 4), nn.Linear(4, 2)
        opt = torch.optim.SGD([*enc.parameters(), *head.parameters()], lr=0.1)
        before = enc.weight.detach().clone()
        def features(x, warm):
            z = enc(x)
            if warm:
                z = z.detach()
            return z
        for e in range({rounds}):
            x = torch.randn(5, 3)
            {features}
            opt.zero_grad()
            head(z).pow(2).mean().backward()
            opt.step()
        assert not torch.equal(before, enc.weight)
    """)


@pytest.mark.parametrize("condition", ["True", "x.dim() == 2", "z is not None", "x.shape[0] > 1"])
def test_a_cut_in_every_round_is_told(condition: str) -> None:
    check(f"""
        enc, head = nn.Linear(3, 4), nn.Linear(4, 2)
        opt = torch.optim.SGD([*enc.parameters(), *head.parameters()], lr=0.1)
        for e in range(4):
            x = torch.randn(5, 3)
            z = enc(x)
            if {condition}:
                z = z.detach()  # GS203
            opt.zero_grad()
            head(z).pow(2).mean().backward()
            opt.step()
    """)


@pytest.mark.parametrize("rounds", [6, 40])
def test_a_gradient_that_stops_after_some_rounds_is_told(rounds: int) -> None:
    check(f"""
        enc, head = nn.Linear(3, 4), nn.Linear(4, 2)
        opt = torch.optim.SGD([*enc.parameters(), *head.parameters()], lr=0.1)
        for e in range({rounds}):
            z = enc(torch.randn(5, 3))
            if e >= 3:
                z = z.detach()  # GS203
            opt.zero_grad()
            head(z).pow(2).mean().backward()
            opt.step()
    """)


# -- statements that are executed for themselves ---------------------------------------------------------------------


def test_a_call_that_is_tried_or_timed_needs_no_result() -> None:
    runs_in_silence("""
        import time
        def viewable(t, *shape):
            try:
                t.view(*shape)
            except RuntimeError:
                return False
            return True
        def broadcastable(t, shape):
            try:
                t.expand(shape)
                return True
            except (RuntimeError, ValueError):
                return False
        assert viewable(torch.zeros(2, 2), -1) and not viewable(torch.zeros(2, 3).t(), -1)
        assert broadcastable(torch.zeros(1, 3), (2, 3)) and not broadcastable(torch.zeros(2), (3,))
        a = torch.randn(8, 8)
        start = time.perf_counter()
        for _ in range(3):
            a.matmul(a)
        print(time.perf_counter() - start)
        def bench(n):
            for i in range(n):
                a.exp()
                a.sort()
        bench(4)
    """)


def test_a_dropped_result_in_a_loop_over_tensors_is_told() -> None:
    check("""
        for p in [torch.randn(2), torch.randn(2)]:
            p.clamp(0, 1)  # GS209
        try:
            x = torch.randn(3)
            x.clamp(0, 1)  # GS209
            print(x)
        finally:
            print("done")
    """)


def test_a_frozen_layer_made_in_forward_is_a_constant() -> None:
    runs_in_silence("""
        class Blur(nn.Module):
            def forward(self, x):
                c = nn.Conv1d(1, 1, 3, padding=1, bias=False)
                c.weight.requires_grad_(False).fill_(1 / 3)
                return c(x)
        class Sharpen(nn.Module):
            def forward(self, x):
                c = nn.Conv1d(1, 1, 3, padding=1).requires_grad_(False)
                nn.init.constant_(c.weight, 0.5)
                nn.init.zeros_(c.bias)
                return x - c(x)
        class Edges(nn.Module):
            def forward(self, x):
                c = nn.Conv1d(1, 1, 3, padding=1)
                for p in c.parameters():
                    p.requires_grad = False
                c.weight[:] = torch.tensor([-1.0, 0.0, 1.0])
                return c(x)
        x = torch.randn(1, 1, 5, requires_grad=True)
        (Blur()(x) + Sharpen()(x) + Edges()(x)).sum().backward()
    """)


def test_a_meter_with_its_own_addition_keeps_what_it_likes() -> None:
    runs_in_silence(f"""
        class Meter:
            def __init__(self):
                self.total, self.count = torch.zeros(()), 0
            def __iadd__(self, value):
                self.total += value.detach()
                self.count += 1
                return self
        {TRAINING}
        meter = Meter()
        meters = dict(loss=Meter())
        for _ in range(3):{ROUND}
            meter += loss
            meters["loss"] += loss
        print(meter.total, meters["loss"].count)
    """)


def test_a_freeze_for_the_time_of_an_evaluation_is_no_lost_freeze() -> None:
    check("""
        from contextlib import contextmanager
        @contextmanager
        def frozen(model):
            before = {weight: weight.requires_grad for weight in model.parameters()}
            try:
                for weight in model.parameters():
                    weight.requires_grad = False
                yield
            finally:
                for weight, flag in before.items():
                    weight.requires_grad = flag
        def evaluate(model, loss_fn, loader):
            total = 0.0
            with frozen(model):
                for batch in loader:
                    total += loss_fn(model(batch), batch).item()
            return total
        def train(model, loss_fn, optimizer, loader, valid):
            for _ in range(3):
                for batch in loader:
                    optimizer.zero_grad()
                    loss_fn(model(batch), batch).backward()
                    optimizer.step()
                evaluate(model, loss_fn, valid)
    """)


def test_a_freeze_of_an_unknown_model_that_is_undone_before_it_is_called_is_told() -> None:
    check("""
        def train(model, loss_fn, optimizer, loader):
            for weight in model.parameters():
                weight.requires_grad = False
            for weight in model.parameters():
                weight.requires_grad = True  # GS516
            for batch in loader:
                optimizer.zero_grad()
                loss_fn(model(batch), batch).backward()
                optimizer.step()
    """)
