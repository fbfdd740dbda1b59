"""What comes later than the first rounds, entries and calls: long loops, lists that shrink, unknown parts, transforms."""

from __future__ import annotations

from tests.interp.checking import check


def test_branch_that_waits_for_a_full_memory_is_executed() -> None:
    check("""
        import random
        net = nn.Linear(3, 2)
        memory = []
        def learn():
            if len(memory) < 32:
                return
            loss = net(torch.stack(random.sample(memory, 8))).pow(2)
            loss.backward()  # GS401
        for step in range(50):
            memory.append(torch.randn(3))
            learn()
    """)


def test_counter_of_an_object_passes_its_threshold() -> None:
    check("""
        class Learner:
            def __init__(self):
                self.net = nn.Linear(3, 2)
                self.seen = 0
            def observe(self, x):
                self.seen = min(self.seen + 1, 100)
                if self.seen > 20:
                    self.net(x).backward()  # GS401
        learner = Learner()
        for step in range(40):
            learner.observe(torch.randn(4, 3))
    """)


def test_items_that_were_deleted_are_gone() -> None:
    check("""
        net = nn.Linear(3, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        losses = []
        for step in range(4):
            losses.append(net(torch.randn(2, 3)).mean())
            opt.zero_grad()
            torch.stack(losses).sum().backward()
            opt.step()
            if step % 2:
                del losses[:]
            else:
                losses[:] = []
    """)


def test_entry_of_a_list_read_by_its_index_follows_the_last_write() -> None:
    check("""
        w = torch.ones(3, requires_grad=True)
        x, states = torch.zeros(3), []
        for step in range(3):
            x += 1.0  # GS107
            states.append(x)
        loss = ((states[2] - states[0]) * w).sum()
        loss.backward()
    """)


def test_one_tensor_twice_in_a_list_made_on_the_spot_is_meant() -> None:
    check("""
        net = nn.Linear(6, 1)
        x = torch.zeros(3)
        total = 0.0
        for step in range(3):
            x += 1.0
            total = total + net(torch.cat([x, x])).sum()
        print(total.item())
    """)


def test_module_runs_on_the_tensors_that_functional_call_gives_it() -> None:
    check("""
        from torch.func import functional_call
        net = nn.Linear(3, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        x = torch.randn(4, 3)
        fast = {name: p.detach().clone().requires_grad_() for name, p in net.named_parameters()}  # GS206
        loss = functional_call(net, fast, (x,)).pow(2).mean()
        loss.backward()
        opt.step()
    """)


def test_derivative_by_an_argument_that_only_looks_used_is_zero() -> None:
    check("""
        from torch.func import grad
        net = nn.Linear(3, 1)
        x = torch.randn(4, 3)
        def loss_of(parameters):
            names = list(parameters)
            return net(x).pow(2).mean() * len(names)
        slopes = grad(loss_of)(dict(net.named_parameters()))  # GS407
    """)


def test_gradient_depends_on_the_gradient_it_was_given() -> None:
    check("""
        x = torch.randn(3, requires_grad=True)
        y = x * 2
        seed = torch.zeros_like(y, requires_grad=True)
        (g,) = torch.autograd.grad(y, x, seed, create_graph=True)
        (jvp,) = torch.autograd.grad(g, seed, torch.ones(3))
    """)


def test_options_that_are_spread_may_allow_unused_inputs() -> None:
    check("""
        def vjp(x, **options):
            z = torch.ones(3, requires_grad=True)
            return torch.autograd.grad((x * 2).sum(), z, **options)
        x = torch.randn(3, requires_grad=True)
        vjp(x, allow_unused=True)
    """)


def test_divergence_of_unknown_distributions_may_have_a_graph() -> None:
    check("""
        def constrained(first, second, loss):
            kl = torch.distributions.kl_divergence(first, second)
            kl.backward()
            return loss
    """)


def test_tensors_that_a_method_keeps_as_results_are_no_parameters() -> None:
    check("""
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(3, 3)
            def attribute(self):
                scores = [torch.ones(3).requires_grad_(True)]
                scores.append(torch.abs(self.fc.weight).sum(0) * scores[0])
                self.scores = scores
                return scores
        net = Net()
        net.attribute()
    """)


def test_numpy_gets_no_memory_that_requires_grad() -> None:
    check("""
        import numpy as np
        net = nn.Linear(3, 1)
        y = net(torch.randn(4, 3))
        a = y.numpy()  # GS202
        b = np.log(y)  # GS202
        c = y.detach().numpy()
        d = np.shape(y)
        with torch.no_grad():
            e = net.weight.numpy()
    """)


def test_parameter_on_the_memory_of_another_is_found_when_it_is_written() -> None:
    check("""
        online, target = nn.Linear(3, 3), nn.Linear(3, 3)
        for p, q in zip(online.parameters(), target.parameters()):
            q.data = p.data  # GS107
        with torch.no_grad():
            for p, q in zip(online.parameters(), target.parameters()):
                q.mul_(0.9).add_(p, alpha=0.1)
    """)


def test_parameter_that_gets_new_memory_each_time_is_apart() -> None:
    check("""
        online, target = nn.Linear(3, 3), nn.Linear(3, 3)
        for p, q in zip(online.parameters(), target.parameters()):
            q.data = p.data
        for step in range(2):
            for p, q in zip(online.parameters(), target.parameters()):
                q.data = q.data * 0.9 + p.data * 0.1
    """)


def test_wrapped_function_is_the_wrapper() -> None:
    check("""
        import functools
        net = nn.Linear(3, 2)
        def logged(function):
            @functools.wraps(function)
            def wrapper(*args, **kwargs):
                return function(*args, **kwargs)
            return wrapper
        @logged
        def loss_of(x):
            return net(x)
        loss_of(torch.randn(4, 3)).backward()  # GS401
    """)


def test_object_copied_with_changed_fields_holds_the_same_tensors() -> None:
    check("""
        from dataclasses import dataclass, replace
        @dataclass
        class State:
            h: torch.Tensor
            step: int = 0
        cell = nn.RNNCell(2, 4)
        state = State(torch.zeros(1, 4))
        for step in range(3):
            h = cell(torch.randn(1, 2), state.h)
            state = replace(state, h=h)  # GS403
            h.sum().backward()
    """)


def test_results_of_a_function_collected_in_a_comprehension_may_be_one_tensor() -> None:
    check("""
        w = torch.ones(3, requires_grad=True)
        def smooth(x, state=torch.zeros(3)):
            state.mul_(0.5).add_(x)
            return state
        rows = [smooth(x) for x in torch.randn(4, 3)]  # GS107
        loss = (torch.stack(rows) * w).sum()
        loss.backward()
    """)
