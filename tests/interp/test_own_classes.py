"""Operators, constructors and containers of the user's own making; derivatives and terms without a graph."""

from __future__ import annotations

import pytest

from tests.interp.checking import check


def test_operators_of_own_classes_are_executed() -> None:
    check("""
        class Belief:
            def __init__(self, p):
                self.p = p
            def __imul__(self, likelihood):
                self.p *= likelihood  # GS101
                return self
            def __matmul__(self, motion):
                return Belief(self.p @ motion)
        prior, motion = nn.Parameter(torch.randn(3)), nn.Parameter(torch.randn(3, 3))
        belief = Belief(prior.softmax(0))
        for seen in torch.rand(2, 3):
            belief *= seen
            belief = belief @ motion.softmax(1)
        belief.p.log().sum().backward()
    """)


def test_a_meter_that_adds_detached_values_keeps_no_graph() -> None:
    check("""
        class Meter:
            def __init__(self):
                self.total = torch.zeros(())
            def __iadd__(self, value):
                self.total += value.detach()
                return self
        net = nn.Linear(3, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        meters = {"loss": Meter()}
        for _ in range(4):
            loss = net(torch.randn(4, 3)).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            meters["loss"] += loss
    """)


def test_a_class_that_derives_from_dict_holds_what_it_is_given() -> None:
    check("""
        class Losses(dict):
            def __getattr__(self, key):
                return self[key]
        critic, actor = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)), nn.Linear(3, 3)
        opt = torch.optim.SGD(critic.parameters(), lr=0.1)
        x = torch.randn(5, 3)
        losses = Losses(critic=critic(x).pow(2).mean(), actor=-critic(torch.tanh(actor(x))).mean())
        opt.zero_grad()
        losses.critic.backward()
        opt.step()  # GS106
        losses.actor.backward()
    """)


def test_a_wrapped_constructor_initialises_its_class() -> None:
    check("""
        import functools
        def configured(init):
            @functools.wraps(init)
            def wrapper(self, *args, **kwargs):
                init(self, *args, **kwargs)
            return wrapper
        class Net(nn.Module):
            @configured
            def __init__(self, width=3):
                super().__init__()
                self.fc = nn.Linear(width, 1)
            def forward(self, x):
                return self.fc(x)
        Net()(torch.ones(2, 3)).sum().backward()
    """)


def test_a_derivative_without_a_graph_beside_one_with_a_graph_is_reported() -> None:
    check("""
        w = torch.randn(3, requires_grad=True)
        x = torch.rand(4, requires_grad=True)
        u = w.sum() * x ** 3
        (u_x,) = torch.autograd.grad(u, x, torch.ones_like(u), create_graph=True)
        (u_xx,) = torch.autograd.grad(u_x, x, torch.ones_like(u), retain_graph=True)  # GS405
        (u_x - u_xx).square().mean().backward()
    """)


@pytest.mark.parametrize(("option", "said"), [("", "  # GS405"), (", create_graph=False", "")])
def test_a_first_order_step_by_hand_is_left_alone_where_it_is_asked_for(option: str, said: str) -> None:
    check(f"""
        w = torch.randn(3, requires_grad=True)
        opt = torch.optim.SGD([w], lr=0.1)
        for _ in range(2):
            inner = (w * 2 - 1).square().mean()
            (g,) = torch.autograd.grad(inner, w{option}){said}
            fast = w - 0.1 * g
            opt.zero_grad()
            (fast * 3).square().mean().backward()
            opt.step()
    """)


def test_losses_copied_into_a_new_leaf_beside_a_penalty_are_reported() -> None:
    check("""
        net = nn.Linear(3, 2)
        out = net(torch.randn(4, 3))
        losses = [out[:, 0].pow(2).mean(), out[:, 1].abs().mean()]
        total = torch.tensor([*losses], requires_grad=True).sum()  # GS201
        penalty = 1e-3 * sum(p.square().sum() for p in net.parameters())
        (total + penalty).backward()
    """)


def test_gradients_are_not_known_after_a_library_ran_the_backward() -> None:
    check("""
        def step(net, batch, accelerator):
            loss = net(batch).pow(2).mean()
            accelerator.backward(loss)
            return torch.stack([p.grad.norm() for p in net.parameters()])
        net = nn.Linear(3, 1)
        def run(accelerator, batch):
            return step(net, batch, accelerator)
    """)


def test_a_metaclass_may_initialise_the_module() -> None:
    check("""
        class Prepared(type):
            def __call__(cls, *args, **kwargs):
                made = cls.__new__(cls)
                nn.Module.__init__(made)
                made.__init__(*args, **kwargs)
                return made
        class Base(nn.Module, metaclass=Prepared):
            pass
        class Net(Base):
            def __init__(self):
                self.fc = nn.Linear(3, 1)
            def forward(self, x):
                return self.fc(x)
        Net()(torch.ones(2, 3)).sum().backward()
    """)


def test_a_derivative_without_a_graph_beside_its_own_function_is_reported() -> None:
    check("""
        net = nn.Sequential(nn.Linear(1, 4), nn.Tanh(), nn.Linear(4, 1))
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        t = torch.rand(5, 1, requires_grad=True)
        for _ in range(2):
            opt.zero_grad()
            u = net(t)
            (slope,) = torch.autograd.grad(u, t, torch.ones_like(u), retain_graph=True)  # GS405
            (slope + 0.5 * u).square().mean().backward()
            opt.step()
    """)


def test_a_flag_that_asks_for_work_in_place_is_the_callers_business() -> None:
    check("""
        class Layer(nn.Module):
            def __init__(self):
                super().__init__()
                self.bias, self.mix = nn.Linear(4, 4), nn.Linear(4, 4)
            def forward(self, x, inplace_safe: bool = False):
                x = torch.relu(x)
                bias = self.bias(x)
                out = x if inplace_safe else torch.zeros_like(x)
                out[:] = self.mix(bias)
                return out + bias
    """)


def test_items_are_stored_with_a_stride_in_a_list_of_unknown_length() -> None:
    check(
        """
def interleaved(parts, between):
    made = [between] * (len(parts) * 2 + 1)
    made[1::2] = parts
    return made
def load(names, layer):
    return interleaved(names, 0), interleaved([layer(torch.ones(3)), layer(torch.ones(3))], 0)
"""
    )
