"""Values that were put aside without a copy: compared with themselves, exchanged, shared by a class or a cache."""

from __future__ import annotations

from tests.interp.checking import check


def test_weights_kept_by_name_and_compared_after_the_step_are_reported() -> None:
    check("""
        net = nn.Linear(3, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        before = net.weight  # GS107
        net(torch.randn(8, 3)).pow(2).mean().backward()
        opt.step()
        print((net.weight - before).norm())
    """)


def test_a_copy_of_the_weights_is_left_alone() -> None:
    check("""
        net = nn.Linear(3, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        before = net.weight.detach().clone()
        start = [p.detach().clone() for p in net.parameters()]
        net(torch.randn(8, 3)).pow(2).mean().backward()
        opt.step()
        print((net.weight - before).norm())
        print(sum((a - b).norm() for a, b in zip(start, net.parameters())))
    """)


def test_parameters_kept_in_a_list_or_a_dict_are_no_anchor() -> None:
    check("""
        net = nn.Linear(3, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        start = [p for p in net.parameters()]  # GS107
        anchor = {n: p.detach() for n, p in net.named_parameters()}  # GS107
        for _ in range(3):
            opt.zero_grad()
            loss = net(torch.randn(8, 3)).pow(2).mean()
            for n, p in net.named_parameters():
                loss = loss + (p - anchor[n]).pow(2).sum()
            loss.backward()
            opt.step()
        print(sum((a - b).norm() for a, b in zip(start, net.parameters())))
    """)


def test_restoring_parameters_from_themselves_is_reported() -> None:
    check("""
        class Keeper:
            def __init__(self, net):
                self.net = net
            def keep(self):
                self.best = list(self.net.parameters())  # GS107
            def restore(self):
                with torch.no_grad():
                    for p, best in zip(self.net.parameters(), self.best):
                        p.copy_(best)  # GS515
        net = nn.Linear(3, 1)
        keeper = Keeper(net)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        keeper.keep()
        net(torch.randn(8, 3)).pow(2).mean().backward()
        opt.step()
        keeper.restore()
    """)


def test_the_results_of_two_calls_that_are_one_tensor_are_reported() -> None:
    check("""
        class Simulator:
            def __init__(self):
                self.state = torch.zeros(3)
            def step(self, force):
                self.state.mul_(0.9).add_(force)  # GS107
                return self.state
        simulator = Simulator()
        w = torch.randn(3, requires_grad=True)
        first = simulator.step(torch.ones(3))
        second = simulator.step(torch.zeros(3))
        ((w * first).sum() + (w * second).sum()).backward()
    """)


def test_a_buffer_that_is_used_before_it_is_filled_again_is_left_alone() -> None:
    check("""
        class Simulator:
            def __init__(self):
                self.state = torch.zeros(3)
            def step(self, force):
                self.state.mul_(0.9).add_(force)
                return self.state
        simulator = Simulator()
        w = torch.randn(3, requires_grad=True)
        loss = 0.0
        for _ in range(3):
            state = simulator.step(torch.ones(3))
            loss = loss + (w * state.clone()).sum()
        loss.backward()
    """)


def test_the_previous_value_of_an_attribute_is_a_copy_or_it_is_none() -> None:
    check("""
        class Filter:
            def __init__(self):
                self.state = torch.zeros(3)
            def step(self, x):
                self.previous = self.state
                self.state += 0.1 * x  # GS107
                return self.state - self.previous
        class Right:
            def __init__(self):
                self.state = torch.zeros(3)
            def step(self, x):
                self.previous = self.state
                self.state = self.state + 0.1 * x
                return self.state - self.previous
        w = torch.randn(3, requires_grad=True)
        (w * Filter().step(torch.ones(3)) + w * Right().step(torch.ones(3))).sum().backward()
    """)


def test_differences_of_two_views_of_one_tensor_are_left_alone() -> None:
    check("""
        points = torch.randn(5, 2)
        points += 1.0
        same = points
        w = torch.randn(2, requires_grad=True)
        gaps = points[:, None] - same[None, :]
        ((gaps * w).pow(2).sum() + (w * (points - points.mean(0))).sum()).backward()
    """)


def test_items_exchanged_through_views_are_reported() -> None:
    check("""
        w = torch.randn(4, 3, requires_grad=True)
        y = w * 3
        y[0], y[1] = y[1], y[0]  # GS107
        y.pow(2).sum().backward()
    """)


def test_items_exchanged_through_copies_are_left_alone() -> None:
    check("""
        w = torch.randn(4, 3, requires_grad=True)
        y = w * 3
        y[0], y[1] = y[1].clone(), y[0].clone()
        y[[2, 3]] = y[[3, 2]]
        pair = [w * 1, w * 2]
        pair[0], pair[1] = pair[1], pair[0]
        (y.pow(2).sum() + pair[0].sum()).backward()
    """)


def test_a_tensor_of_the_class_that_instances_write_as_their_own_is_reported() -> None:
    check("""
        class Layer(nn.Module):
            trace = torch.zeros(3)
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(3, 3)
            def forward(self, x):
                rate = torch.sigmoid(self.fc(x) - self.trace)
                with torch.no_grad():
                    self.trace.mul_(0.8).add_(rate.mean(0))  # GS107
                return rate
        net = nn.Sequential(Layer(), Layer())
        net(torch.randn(4, 3)).sum().backward()
    """)


def test_a_tensor_of_the_class_that_is_only_read_or_written_for_the_class_is_left_alone() -> None:
    check("""
        class Scaled:
            scale = torch.ones(3)
            count = torch.zeros(1)
            def __call__(self, x):
                Scaled.count.add_(1)
                return x * self.scale
        class Single:
            trace = torch.zeros(3)
            def update(self, x):
                self.trace.add_(x)
                return self.trace.clone()
        w = torch.randn(3, requires_grad=True)
        only = Single()
        (Scaled()(w) + Scaled()(w) + w * only.update(torch.ones(3)) + w * only.update(torch.ones(3))).sum().backward()
    """)


def test_a_graph_in_a_cache_is_carried_into_the_next_round() -> None:
    check("""
        import functools
        class Bank(nn.Module):
            def __init__(self):
                super().__init__()
                self.center = nn.Parameter(torch.ones(4))
            @functools.lru_cache(maxsize=4)  # GS403
            def matrix(self, n):
                return torch.exp(-self.center * n)
            def forward(self, x):
                return x * self.matrix(4)
        bank = Bank()
        opt = torch.optim.SGD(bank.parameters(), lr=0.1)
        for _ in range(3):
            opt.zero_grad()
            bank(torch.randn(2, 4)).sum().backward()
            opt.step()
    """)


def test_a_cache_of_constants_and_a_cache_that_lives_one_round_are_left_alone() -> None:
    check("""
        import functools
        @functools.cache
        def grid(n):
            return torch.linspace(0, 1, n)
        class Once:
            def __init__(self, w):
                self.w = w
            @functools.cached_property
            def scaled(self):
                return self.w.exp()
        w = torch.randn(3, requires_grad=True)
        opt = torch.optim.SGD([w], lr=0.1)
        for _ in range(3):
            opt.zero_grad()
            once = Once(w)
            (once.scaled * grid(3) + once.scaled).sum().backward()
            opt.step()
    """)


def test_a_cached_property_keeps_its_graph() -> None:
    check("""
        import functools
        class Kernel:
            def __init__(self, w):
                self.w = w
            @functools.cached_property  # GS403
            def scaled(self):
                return self.w.exp()
        w = torch.randn(3, requires_grad=True)
        kernel = Kernel(w)
        opt = torch.optim.SGD([w], lr=0.1)
        for _ in range(3):
            opt.zero_grad()
            kernel.scaled.sum().backward()
            opt.step()
    """)


def test_a_dataclass_that_is_a_module_needs_its_own_call_of_init() -> None:
    check("""
        from dataclasses import dataclass
        @dataclass(eq=False)
        class Block(nn.Module):
            width: int
            def __post_init__(self):
                self.fc = nn.Linear(self.width, self.width)  # GS603
        @dataclass(eq=False)
        class Right(nn.Module):
            width: int
            def __post_init__(self):
                super().__init__()
                self.fc = nn.Linear(self.width, self.width)
            def forward(self, x):
                return self.fc(x)
        Right(3)(torch.ones(2, 3)).sum().backward()
        Block(3)
    """)


def test_rows_of_a_nested_list_keep_the_other_operands_alive() -> None:
    check("""
        gate = nn.Linear(2, 3)
        experts = nn.ModuleList(nn.Linear(4, 1) for _ in range(3))
        opt = torch.optim.SGD([*gate.parameters(), *experts.parameters()], lr=0.1)
        past, season = torch.randn(5, 4), torch.randn(5, 2)
        for _ in range(2):
            opt.zero_grad()
            rows = []
            for series, shares in zip(past, gate(season).softmax(-1).tolist()):  # GS202
                rows.append(sum(share * expert(series) for share, expert in zip(shares, experts)))
            torch.stack(rows).pow(2).mean().backward()
            opt.step()
    """)


def test_a_function_of_a_parameter_computed_by_math_is_taken_for_a_constant() -> None:
    check("""
        import math
        log_var = nn.Parameter(torch.tensor(0.5))
        net = nn.Linear(3, 1)
        opt = torch.optim.SGD([log_var, *net.parameters()], lr=0.1)
        for _ in range(2):
            opt.zero_grad()
            error = net(torch.randn(4, 3)).pow(2).mean()
            loss = math.exp(-log_var) * error + log_var  # GS202
            loss.backward()
            opt.step()
    """)


def test_a_temperature_with_a_loss_of_its_own_may_be_a_number() -> None:
    check("""
        log_alpha = nn.Parameter(torch.tensor(0.1))
        actor = nn.Linear(3, 1)
        opt = torch.optim.Adam(actor.parameters(), lr=1e-3)
        opt_alpha = torch.optim.Adam([log_alpha], lr=1e-3)
        for _ in range(2):
            log_prob = actor(torch.randn(4, 3)).mean()
            alpha = log_alpha.exp().item()
            opt.zero_grad()
            (alpha * log_prob).backward()
            opt.step()
            opt_alpha.zero_grad()
            (log_alpha * (log_prob.detach() + 1.0)).backward()
            opt_alpha.step()
    """)


def test_a_memory_under_unknown_keys_carries_its_graph() -> None:
    check("""
        cell = nn.GRUCell(3, 4)
        table = {i: torch.zeros(4) for i in range(10)}
        opt = torch.optim.SGD(cell.parameters(), lr=0.1)
        for _ in range(4):
            ids = torch.randint(0, 10, (6,)).tolist()
            state = cell(torch.randn(6, 3), torch.stack([table[i] for i in ids]))
            opt.zero_grad()
            state.pow(2).mean().backward()
            opt.step()
            for i, row in zip(ids, state):
                table[i] = row  # GS403
    """)


def test_a_memory_of_detached_rows_is_left_alone() -> None:
    check("""
        cell = nn.GRUCell(3, 4)
        table = {i: torch.zeros(4) for i in range(10)}
        opt = torch.optim.SGD(cell.parameters(), lr=0.1)
        for _ in range(4):
            ids = torch.randint(0, 10, (6,)).tolist()
            state = cell(torch.randn(6, 3), torch.stack([table[i] for i in ids]))
            opt.zero_grad()
            state.pow(2).mean().backward()
            opt.step()
            for i, row in zip(ids, state.detach()):
                table[i] = row
    """)


def test_totals_in_a_dict_keep_every_graph() -> None:
    check("""
        net = nn.Linear(3, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        totals = {}
        for _ in range(4):
            loss = net(torch.randn(4, 3)).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            totals["loss"] = totals.get("loss", 0.0) + loss  # GS404
        print(totals["loss"] / 4)
    """)


def test_parameters_appended_each_round_are_reported_where_they_are_kept() -> None:
    check("""
        net = nn.Linear(3, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        kept = []
        for _ in range(4):
            opt.zero_grad()
            net(torch.randn(4, 3)).pow(2).mean().backward()
            opt.step()
            kept.append(net.weight.detach())  # GS107
        print(torch.stack(kept).mean(0))
    """)


def test_parameters_that_were_gone_through_are_not_there_a_second_time() -> None:
    check("""
        net = nn.Linear(3, 1)
        params = net.parameters()
        chosen = filter(lambda p: p.requires_grad, net.parameters())
        opt = torch.optim.SGD([{"params": params}], lr=0.1)
        for _ in range(2):
            opt.zero_grad()
            net(torch.randn(4, 3)).pow(2).mean().backward()
            nn.utils.clip_grad_norm_(params, 1.0)  # GS510
            print(sum(p.grad.norm() for p in chosen))  # GS510
            opt.step()
    """)


def test_batches_of_a_generator_may_be_drained_in_pieces() -> None:
    check("""
        from itertools import islice
        def batches():
            while True:
                yield torch.randn(4, 3)
        net = nn.Linear(3, 1)
        params = list(net.parameters())
        opt = torch.optim.SGD(params, lr=0.1)
        stream = batches()
        for _ in range(2):
            opt.zero_grad()
            for batch in islice(stream, 3):
                net(batch).pow(2).mean().backward()
            nn.utils.clip_grad_norm_(params, 1.0)
            print(sum(p.numel() for p in params), next(net.parameters()).device)
            opt.step()
    """)


def test_one_tensor_under_all_keys_is_reported() -> None:
    check("""
        names = ["a", "b", "c"]
        w = torch.randn(3, requires_grad=True)
        inbox = dict.fromkeys(names, torch.zeros(3))
        rows = [torch.zeros(3)] * 2
        for scale, name in enumerate(names):
            inbox[name] += w * scale  # GS107
        for i in range(2):
            rows[i] += w * i  # GS107
        (inbox["a"].pow(2).sum() + rows[0].pow(2).sum()).backward()
    """)


def test_one_tensor_under_one_key_may_be_counted_up() -> None:
    check("""
        w = torch.randn(3, requires_grad=True)
        totals = dict.fromkeys(["loss"], torch.zeros(3))
        fresh = {name: torch.zeros(3) for name in ("a", "b")}
        plain = dict.fromkeys(["a", "b"], torch.zeros(3))
        for step in range(3):
            totals["loss"] += step
            fresh["a"] += step
            plain["a"] = plain["a"] + step
        (w * totals["loss"] + w * fresh["a"] * fresh["b"] + w * plain["a"] * plain["b"]).sum().backward()
    """)


def test_a_detached_state_kept_in_an_attribute_and_faded_changes_what_was_collected() -> None:
    check("""
        class Memory:
            def __init__(self):
                self.context = None
            def fade(self):
                if self.context is not None:
                    self.context.mul_(0.5)  # GS107
            def write(self, h):
                self.context = h.detach()
        drive, head = nn.Linear(3, 3), nn.Linear(3, 1)
        memory, states = Memory(), []
        for word in torch.randn(4, 2, 3).unbind(0):
            memory.fade()
            h = drive(word)
            memory.write(h)
            states.append(h)
        head(torch.stack(states)).pow(2).mean().backward()
    """)


def test_a_state_that_an_endless_generator_yields_again_and_again_is_reported() -> None:
    check("""
        import itertools
        def integrate(rate):
            state = torch.ones(2)
            while True:
                yield state
                state += 0.1 * rate * state.clone()  # GS107
        rate = torch.tensor(0.5, requires_grad=True)
        path = torch.stack(list(itertools.islice(integrate(rate), 48))[::4])
        path.log().sum().backward()
    """)


def test_a_gradient_asked_for_behind_a_cut_is_reported_at_the_cut() -> None:
    check("""
        def compliance(density):
            density = density.detach().requires_grad_(True)  # GS406
            return density.pow(3).sum()
        raw = torch.randn(4, requires_grad=True)
        goal = compliance(torch.sigmoid(raw))
        torch.autograd.grad(goal, raw)
    """)


def test_one_tensor_stored_under_a_new_key_each_round_is_reported_when_one_is_read() -> None:
    check("""
        dose = torch.tensor(4.0, requires_grad=True)
        amount, levels = torch.zeros(2), {}
        for hour in range(1, 9):
            amount *= 0.8  # GS107
            amount += dose * torch.ones(2)
            levels[hour] = amount
        sum(levels[hour].square().sum() for hour in (2, 5)).backward()
    """)


def test_a_second_name_for_a_buffer_that_is_being_filled_is_left_alone() -> None:
    check("""
        w = torch.randn(3, requires_grad=True)
        gathered = torch.zeros(3)
        total = gathered
        total += w
        total.mul_(2)
        gathered.sum().backward()
    """)
