"""The same faults in other forms: other places, other containers, other spellings."""

from __future__ import annotations

from tests.interp.checking import check
from tests.interp.running import refused, safe


def test_clearing_outside_the_condition_of_an_accumulation_is_reported() -> None:
    check("""
        net = nn.Linear(4, 2)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for i in range(8):
            loss = F.cross_entropy(net(torch.randn(8, 4)), torch.randint(0, 2, (8,))) / 4
            loss.backward()
            if (i + 1) % 4 == 0:
                opt.step()
            opt.zero_grad()  # GS502
    """)


IN_RHYTHM = """
def main(model, loader, optimizer, n):
    done = 0
    for epoch in range(10):
        optimizer.zero_grad()
        for x, y in loader:
            {}
            (model(x, y).mean() / n).backward()
            if done % n == 0:
                optimizer.step()
                {}
            done += 1
"""


def test_what_is_cleared_once_before_the_rounds_that_accumulate_is_left_alone() -> None:
    check(IN_RHYTHM.format("pass", "optimizer.zero_grad()"))
    check(IN_RHYTHM.format("optimizer.zero_grad()  # GS502", "pass"))


def test_a_step_before_backward_that_finds_cleared_gradients_is_reported() -> None:
    check("""
        net = nn.Linear(4, 2)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for i in range(4):
            loss = net(torch.randn(8, 4)).pow(2).mean()
            opt.step()  # GS502
            loss.backward()
            opt.zero_grad()
    """)


def test_clearing_only_in_the_first_round_is_reported() -> None:
    check("""
        net = nn.Linear(4, 2)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(4):
            if epoch == 0:
                opt.zero_grad()
            net(torch.randn(8, 4)).pow(2).mean().backward()  # GS501
            opt.step()
    """)


def test_a_closure_that_clears_last_is_reported() -> None:
    check("""
        net = nn.Linear(4, 2)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        def closure():
            loss = net(torch.randn(8, 4)).pow(2).mean()
            loss.backward()
            opt.zero_grad()  # GS502
            return loss
        for _ in range(3):
            opt.step(closure)
    """)


def test_clearing_in_a_finally_block_is_reported() -> None:
    check("""
        net = nn.Linear(4, 2)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        def backward(loss):
            try:
                loss.backward()
            finally:
                opt.zero_grad()  # GS502
        for _ in range(3):
            backward(net(torch.randn(8, 4)).pow(2).mean())
            opt.step()
    """)


def test_zero_grad_that_is_not_called_is_reported() -> None:
    check("""
        net = nn.Linear(4, 2)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(3):
            opt.zero_grad  # GS501
            net(torch.randn(8, 4)).pow(2).mean().backward()
            opt.step()
    """)


def test_heads_assigned_to_a_dict_are_reported() -> None:
    check("""
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.body = nn.Linear(4, 4)
                self.heads = {}  # GS601
                for name in ("a", "b"):
                    self.heads[name] = nn.Linear(4, 1)
            def forward(self, x):
                h = self.body(x)
                return {k: f(h) for k, f in self.heads.items()}
        net = Net()
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        sum(v.mean() for v in net(torch.randn(2, 4)).values()).backward()
        opt.step()
    """)


def test_layers_in_nested_lists_are_reported() -> None:
    check("""
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.out = nn.Linear(4, 1)
                self.stages = [[nn.Linear(4, 4), nn.Linear(4, 4)] for _ in range(2)]  # GS601
            def forward(self, x):
                for stage in self.stages:
                    for l in stage:
                        x = torch.relu(l(x))
                return self.out(x)
        net = Net()
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        net(torch.randn(2, 4)).mean().backward()
        opt.step()
    """)


def test_layers_built_by_a_method_are_reported() -> None:
    check("""
        class Net(nn.Module):
            def __init__(self, widths):
                super().__init__()
                self.layers = self.build(widths)  # GS601
                self.scale = nn.Parameter(torch.ones(1))
            def build(self, widths):
                return [nn.Linear(a, b) for a, b in zip(widths, widths[1:])]
            def forward(self, x):
                for l in self.layers:
                    x = torch.tanh(l(x))
                return self.scale * x
        net = Net([4, 8, 1])
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        net(torch.randn(2, 4)).mean().backward()
        opt.step()
    """)


def test_leaves_in_a_list_are_reported() -> None:
    check("""
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(4, 2)
                self.biases = [torch.zeros(2, requires_grad=True) for _ in range(2)]  # GS601
            def forward(self, x):
                return self.fc(x) + sum(self.biases)
        net = Net()
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        net(torch.randn(2, 4)).mean().backward()
        opt.step()
    """)


def test_a_layer_inside_a_plain_object_is_reported() -> None:
    check("""
        class Head:
            def __init__(self):
                self.fc = nn.Linear(4, 1)
            def __call__(self, x):
                return self.fc(x)
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.body = nn.Linear(4, 4)
                self.head = Head()  # GS601
            def forward(self, x):
                return self.head(self.body(x))
        net = Net()
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        net(torch.randn(2, 4)).mean().backward()
        opt.step()
    """)


def test_leaves_given_to_the_optimizer_are_left_alone() -> None:
    check("""
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.scales = [torch.ones(2, requires_grad=True) for _ in range(2)]
                self.fc = nn.Linear(4, 2)
            def forward(self, x):
                return self.fc(x) * self.scales[0] * self.scales[1]
        net = Net()
        opt = torch.optim.SGD([*net.parameters(), *net.scales], lr=0.1)
        net(torch.randn(2, 4)).mean().backward()
        opt.step()
    """)


def test_a_view_of_a_gradient_is_reported() -> None:
    check("""
        w = torch.randn(3, requires_grad=True)
        (w * 2).sum().backward()
        g = w.grad.view(-1)  # GS302
        (w * w).sum().backward()
        print(g)
    """)


def test_a_detached_gradient_is_reported() -> None:
    check("""
        w = torch.randn(3, requires_grad=True)
        (w * 2).sum().backward()
        g = w.grad.detach()  # GS302
        w.grad.zero_()
        (w * w).sum().backward()
        print(g - w.grad)
    """)


def test_a_gradient_kept_as_attribute_is_reported() -> None:
    check("""
        class Monitor:
            def __init__(self, p):
                self.p, self.last = p, None
            def record(self):
                self.last = self.p.grad  # GS302
            def change(self):
                return (self.p.grad - self.last).norm()
        net = nn.Linear(3, 1)
        m = Monitor(net.weight)
        net(torch.randn(4, 3)).mean().backward()
        m.record()
        net(torch.randn(4, 3)).pow(2).mean().backward()
        print(m.change())
    """)


def test_gradients_kept_to_be_added_later_are_reported() -> None:
    check("""
        net = nn.Linear(3, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        net(torch.randn(4, 3)).mean().backward()
        saved = [p.grad for p in net.parameters()]  # GS302
        opt.zero_grad(set_to_none=False)
        net(torch.randn(4, 3)).pow(2).mean().backward()
        for p, g in zip(net.parameters(), saved):
            p.grad = p.grad + g
        opt.step()
    """)


def test_a_total_by_plain_addition_is_reported() -> None:
    check("""
        net = nn.Linear(3, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        running = 0
        for _ in range(4):
            loss = net(torch.randn(4, 3)).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            running = running + loss  # GS404
        print(running)
    """)


def test_a_running_average_of_losses_is_reported() -> None:
    check("""
        net = nn.Linear(3, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        ema = None
        for _ in range(4):
            loss = net(torch.randn(4, 3)).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            ema = loss if ema is None else 0.9 * ema + 0.1 * loss  # GS404
            print(ema.item())
    """)


def test_losses_in_a_list_of_the_trainer_are_reported() -> None:
    check("""
        class T:
            def __init__(self):
                self.net = nn.Linear(3, 1)
                self.opt = torch.optim.SGD(self.net.parameters(), lr=0.1)
                self.losses = []
            def step(self):
                loss = self.net(torch.randn(4, 3)).pow(2).mean()
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
                self.losses.append(loss)  # GS404
        t = T()
        for _ in range(4):
            t.step()
        print(sum(t.losses) / 4)
    """)


def test_losses_in_rows_are_reported() -> None:
    check("""
        net = nn.Linear(3, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        rows = []
        for epoch in range(4):
            loss = net(torch.randn(4, 3)).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            rows.append((epoch, loss))  # GS404
    """)


def test_slices_of_one_buffer_are_reported() -> None:
    check("""
        buf = torch.zeros(4)
        w = torch.randn(4, requires_grad=True)
        views = []
        for t in range(3):
            buf[:] = torch.randn(4)  # GS107
            views.append(buf[:2])
        print(torch.stack(views) @ w[:2].detach())
    """)


def test_one_state_in_many_records_is_reported() -> None:
    check("""
        from dataclasses import dataclass
        @dataclass
        class Step:
            t: int
            state: torch.Tensor
        state = torch.zeros(3)
        steps = []
        for t in range(3):
            state += torch.randn(3)  # GS107
            steps.append(Step(t, state))
        net = nn.Linear(3, 1)
        net(torch.stack([s.state for s in steps])).mean().backward()
    """)


def test_a_generator_that_yields_one_tensor_is_reported() -> None:
    check("""
        def walk(n):
            pos = torch.zeros(2)
            for _ in range(n):
                pos += torch.randn(2)  # GS107
                yield pos
        path = torch.stack(list(walk(4)))
        w = torch.randn(2, requires_grad=True)
        (path @ w).sum().backward()
    """)


def test_a_generator_that_yields_clones_is_left_alone() -> None:
    check("""
        def walk(n):
            pos = torch.zeros(2)
            for _ in range(n):
                pos += torch.randn(2)
                yield pos.clone()
        path = torch.stack(list(walk(4)))
        w = torch.randn(2, requires_grad=True)
        (path @ w).sum().backward()
    """)


def test_a_generator_consumed_step_by_step_is_left_alone() -> None:
    check("""
        def walk(n):
            pos = torch.zeros(2)
            for _ in range(n):
                pos += torch.randn(2)
                yield pos
        w = torch.randn(2, requires_grad=True)
        total = 0.0
        for p in walk(4):
            total = total + (p.clone() @ w)
        total.backward()
    """)


def test_weights_decayed_before_backward_are_reported() -> None:
    check("""
        net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
        loss = net(torch.randn(5, 3)).pow(2).mean()
        for p in net.parameters():
            p.data.mul_(0.99)  # GS104
        loss.backward()
    """)


def test_weights_clamped_before_backward_are_reported() -> None:
    check("""
        net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(2):
            out = net(torch.randn(5, 3))
            with torch.no_grad():
                for p in net.parameters():
                    p.clamp_(-0.1, 0.1)  # GS106
            opt.zero_grad()
            out.pow(2).mean().backward()
            opt.step()
    """)


def test_a_parameter_made_of_a_layer_result_is_reported() -> None:
    check("""
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.hyper, self.base = nn.Linear(2, 9), nn.Linear(3, 3)
            def forward(self, x, z):
                w = nn.Parameter(self.hyper(z).view(3, 3))  # GS207
                return F.linear(self.base(x), w)
        net = Net()
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        net(torch.randn(4, 3), torch.randn(2)).pow(2).mean().backward()
        opt.step()
    """)


def test_a_passed_operator_is_told_where_it_was_given_its_options() -> None:
    program = """
        from functools import partial, reduce
        x = torch.ones(2, requires_grad=True)
        steps = [
            torch.exp,
            partial(torch.{}, max=5.0),{}
            torch.sum,
        ]
        reduce(lambda value, step: step(value), steps, x).backward()
    """
    refused(program.format("clamp_", "  # GS101"), "modified by an inplace operation")
    safe(program.format("clamp", ""))


def test_a_passed_function_is_told_where_it_writes() -> None:
    program = """
        from functools import partial
        def shift(y, by):
            y.add_(by)  # GS101
            return y
        x = torch.ones(2, requires_grad=True)
        moved = partial(shift, by=1.0)
        moved(x.exp()).sum().backward()
    """
    refused(program, "modified by an inplace operation")


def test_an_expression_in_a_text_is_evaluated_where_eval_stands() -> None:
    program = """
        w = eval("torch.ones(3, requires_grad=True)")
        y = eval(" w.exp()" if w is not None else "")
        y {} 1{}
        y.sum().backward()
    """
    refused(program.format("+=", "  # GS101"), "modified by an inplace operation")
    safe(program.format("= y +", ""))
    refused(
        """
        def act(x, kind):
            return eval(f"torch.{kind}")(x)
        w = torch.ones(3, requires_grad=True)
        y = act(w, "sigmoid")
        y += 1  # GS101
        y.sum().backward()
        """,
        "modified by an inplace operation",
    )


def test_a_text_that_is_no_expression_or_has_names_of_its_own_is_not_known() -> None:
    safe("""
        w = torch.ones(3, requires_grad=True)
        y = eval("w.exp()", {"w": torch.ones(3)})
        y += 1
        z = eval("exp(w)", {"exp": torch.neg, "w": w})
        z += 1
        z.sum().backward()
    """)


def test_a_list_that_is_filled_by_every_other_place_loses_nothing() -> None:
    refused(
        """
        flags = [1] * 1000
        flags[::2] = [0] * 500
        flags[::-1] = range(1000)
        del flags[1::2]
        w = torch.ones(3, requires_grad=True)
        kept = [w.exp(), w.exp()]
        kept[::2] = [w.sin()]
        kept[1] += 1  # GS101
        kept[1].sum().backward()
        """,
        "modified by an inplace operation",
    )
    refused(
        """
        flags = [1] * 4
        try:
            flags[::2] = [0]
        except ValueError:
            print("of another size")
        w = torch.ones(3, requires_grad=True)
        y = w.exp()
        y += 1  # GS101
        y.sum().backward()
        """,
        "modified by an inplace operation",
    )
