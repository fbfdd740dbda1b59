"""Running backward: freed and growing graphs, graphs kept alive, penalties, functional transforms."""

from __future__ import annotations

import pytest

from tests.interp.checking import check
from tests.interp.running import refused, run, safe


def test_a_second_backward_is_reported() -> None:
    check("""
        x = torch.randn(3, requires_grad=True)
        y = (x ** 2).sum()
        y.backward()
        y.backward()  # GS402
    """)


def test_a_second_backward_through_a_trunk_is_reported() -> None:
    check("""
        trunk, a, b = nn.Linear(4, 8), nn.Linear(8, 1), nn.Linear(8, 1)
        h = torch.tanh(trunk(torch.randn(3, 4)))
        a(h).mean().backward()
        b(h).mean().backward()  # GS402
    """)


def test_two_losses_of_one_function_are_reported() -> None:
    check("""
        trunk, a, b = nn.Linear(4, 8), nn.Linear(8, 1), nn.Linear(8, 1)
        opt = torch.optim.SGD([*trunk.parameters(), *a.parameters(), *b.parameters()], lr=0.1)
        def losses(x):
            h = torch.relu(trunk(x))
            return a(h).pow(2).mean(), b(h).abs().mean()
        la, lb = losses(torch.randn(4, 4))
        opt.zero_grad()
        la.backward()
        lb.backward()  # GS402
        opt.step()
    """)


def test_a_loss_made_before_the_loop_is_reported() -> None:
    check("""
        w = torch.randn(3, requires_grad=True)
        opt = torch.optim.SGD([w], lr=0.1)
        loss = (w ** 2).sum()
        for _ in range(3):
            opt.zero_grad()
            loss.backward()  # GS402
            opt.step()
    """)


def test_a_retained_graph_is_left_alone() -> None:
    check("""
        trunk, a, b = nn.Linear(4, 8), nn.Linear(8, 1), nn.Linear(8, 1)
        h = torch.tanh(trunk(torch.randn(3, 4)))
        a(h).mean().backward(retain_graph=True)
        b(h).mean().backward()
    """)


def test_a_hidden_state_carried_on_is_reported() -> None:
    check("""
        rnn, head = nn.RNN(3, 5), nn.Linear(5, 1)
        opt = torch.optim.SGD([*rnn.parameters(), *head.parameters()], lr=0.1)
        h = torch.zeros(1, 2, 5)
        for _ in range(3):
            out, h = rnn(torch.randn(4, 2, 3), h)  # GS403
            loss = head(out).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
    """)


def test_a_hidden_state_kept_by_the_module_is_reported() -> None:
    check("""
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.cell = nn.GRUCell(3, 5)
                self.out = nn.Linear(5, 1)
                self.h = torch.zeros(1, 5)
            def forward(self, x):
                self.h = self.cell(x, self.h)  # GS403
                return self.out(self.h)
        net = Net()
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(3):
            loss = net(torch.randn(1, 3)).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
    """)


def test_a_running_mean_with_a_graph_is_reported() -> None:
    check("""
        net = nn.Linear(3, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        baseline = torch.zeros(1)
        for _ in range(3):
            v = net(torch.randn(4, 3)).mean()
            baseline = 0.9 * baseline + 0.1 * v  # GS403
            loss = (v - baseline).pow(2).sum()
            opt.zero_grad()
            loss.backward()
            opt.step()
    """)


def test_a_detached_state_is_left_alone() -> None:
    check("""
        rnn, head = nn.LSTM(3, 5), nn.Linear(5, 1)
        opt = torch.optim.SGD([*rnn.parameters(), *head.parameters()], lr=0.1)
        state = None
        for _ in range(3):
            out, state = rnn(torch.randn(4, 2, 3), state)
            state = tuple(s.detach() for s in state)
            loss = head(out).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
    """)


def test_a_total_of_losses_is_reported() -> None:
    check("""
        net = nn.Linear(3, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        total = 0
        for _ in range(5):
            loss = net(torch.randn(4, 3)).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss  # GS404
        print(total / 5)
    """)


def test_a_meter_that_adds_losses_is_reported() -> None:
    check("""
        net = nn.Linear(3, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        class Meter:
            def __init__(self):
                self.total, self.n = 0.0, 0
            def update(self, v):
                self.total += v  # GS404
                self.n += 1
        meter = Meter()
        for _ in range(4):
            loss = net(torch.randn(5, 3)).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            meter.update(loss)
        print(meter.total / meter.n)
    """)


def test_a_list_of_outputs_is_reported() -> None:
    check("""
        net = nn.Linear(3, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        preds = []
        for _ in range(4):
            out = net(torch.randn(5, 3))
            loss = out.pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            preds.append(out)  # GS404
    """)


def test_a_list_of_losses_is_reported() -> None:
    check("""
        net = nn.Linear(3, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        history = {"loss": []}
        for _ in range(3):
            loss = net(torch.randn(4, 3)).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            history["loss"].append(loss)  # GS404
    """)


def test_detached_losses_are_left_alone() -> None:
    check("""
        net = nn.Linear(3, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        total, losses = 0, []
        for _ in range(5):
            loss = net(torch.randn(4, 3)).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.detach()
            losses.append(loss.detach())
    """)


def test_a_sum_that_is_differentiated_is_left_alone() -> None:
    check("""
        net = nn.Linear(3, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(3):
            total = 0
            for _ in range(4):
                total += net(torch.randn(4, 3)).pow(2).mean()
            opt.zero_grad()
            total.backward()
            opt.step()
    """)


def test_only_the_last_loss_kept_is_left_alone() -> None:
    check("""
        net = nn.Linear(3, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        log = {}
        for _ in range(3):
            loss = net(torch.randn(4, 3)).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            log["last"] = loss
        print(log["last"].item())
    """)


def test_a_penalty_without_create_graph_is_reported() -> None:
    check("""
        D = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1))
        opt = torch.optim.Adam(D.parameters())
        def penalty(x):
            x = x.clone().requires_grad_(True)
            out = D(x)
            g = torch.autograd.grad(out.sum(), x)[0]  # GS405
            return ((g.norm(dim=1) - 1) ** 2).mean()
        for _ in range(3):
            x = torch.randn(8, 2)
            loss = D(x).mean() + 10 * penalty(x)
            opt.zero_grad()
            loss.backward()
            opt.step()
    """)


def test_a_residual_without_create_graph_is_reported() -> None:
    check("""
        net = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
        opt = torch.optim.Adam(net.parameters())
        x = torch.randn(8, 2, requires_grad=True)
        for _ in range(3):
            u = net(x)
            (ux,) = torch.autograd.grad(u.sum(), x)  # GS405
            residual = ux[:, 0] - 1.0
            loss = residual.pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
    """)


def test_an_eikonal_term_without_create_graph_is_reported() -> None:
    check("""
        f = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
        opt = torch.optim.Adam(f.parameters())
        for _ in range(3):
            x = torch.randn(16, 2, requires_grad=True)
            y = f(x)
            g = torch.autograd.grad(y, x, torch.ones_like(y), retain_graph=True)[0]  # GS405
            eik = (g.norm(dim=1) - 1).pow(2).mean()
            loss = y.abs().mean() + 0.1 * eik
            opt.zero_grad()
            loss.backward()
            opt.step()
    """)


def test_a_jacobian_penalty_without_create_graph_is_reported() -> None:
    check("""
        net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        def jac_norm(x):
            x = x.detach().requires_grad_()
            out = net(x)
            total = 0.0
            for k in range(out.shape[1]):
                g, = torch.autograd.grad(out[:, k].sum(), x, retain_graph=True)  # GS405
                total = total + g.pow(2).sum(1).mean()
            return total
        for _ in range(2):
            x, y = torch.randn(8, 4), torch.randint(0, 3, (8,))
            loss = F.cross_entropy(net(x), y) + 0.01 * jac_norm(x)
            opt.zero_grad()
            loss.backward()
            opt.step()
    """)


def test_a_penalty_of_grad_after_backward_is_reported() -> None:
    check("""
        net = nn.Sequential(nn.Linear(4, 8), nn.Softplus(), nn.Linear(8, 1))
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        x = torch.randn(8, 4, requires_grad=True)
        for _ in range(2):
            out = net(x).mean()
            opt.zero_grad()
            x.grad = None
            out.backward(retain_graph=True)  # GS405
            penalty = x.grad.pow(2).sum()
            loss = out + penalty
            loss.backward()
            opt.step()
    """)


def test_a_saliency_used_as_weight_is_left_alone() -> None:
    check("""
        net = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
        opt = torch.optim.Adam(net.parameters())
        for _ in range(3):
            x = torch.randn(8, 2, requires_grad=True)
            out = net(x)
            (g,) = torch.autograd.grad(out.sum(), x, retain_graph=True)
            weights = g.abs().mean(1, keepdim=True)
            loss = (out * weights).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
    """)


def test_the_gradient_of_an_unused_tensor_is_reported() -> None:
    check("""
        a = torch.randn(3, requires_grad=True)
        b = torch.randn(3, requires_grad=True)
        loss = (a * 2).sum()
        torch.autograd.grad(loss, [a, b])  # GS406
    """)


def test_an_unused_tensor_may_be_allowed() -> None:
    check("""
        a = torch.randn(3, requires_grad=True)
        b = torch.randn(3, requires_grad=True)
        loss = (a * 2).sum()
        torch.autograd.grad(loss, [a, b], allow_unused=True)
    """)


def test_a_jacobian_of_a_closure_is_reported() -> None:
    check("""
        from torch.autograd.functional import jacobian
        w = torch.randn(3)
        x = torch.randn(5, 3)
        def model(weight):
            return torch.sigmoid(x @ w)
        J = jacobian(model, w)  # GS407
    """)


def test_a_transform_of_a_closure_over_the_model_is_reported() -> None:
    check("""
        from torch.func import functional_call, grad
        net = nn.Linear(3, 1)
        x, y = torch.randn(4, 3), torch.randn(4, 1)
        def loss_fn(params):
            return F.mse_loss(functional_call(net, dict(net.named_parameters()), (x,)), y)
        g = grad(loss_fn)({k: v.detach() for k, v in net.named_parameters()})  # GS407
    """)


def test_transforms_of_what_uses_its_input_are_left_alone() -> None:
    check("""
        from torch.func import jacrev, vmap, grad
        w = torch.randn(3)
        def f(x):
            return torch.tanh(x * w)
        J = jacrev(f)(torch.randn(3))
        def loss(params, x):
            a, b = params
            return (x * a + b).sum()
        g = grad(loss)((torch.randn(3), torch.randn(3)), torch.randn(3))
        h = vmap(grad(lambda p, x: (p * x).sum()), in_dims=(None, 0))(torch.randn(3), torch.randn(5, 3))
        k = grad(lambda a, b: (b ** 2).sum(), argnums=1)(torch.randn(3), torch.randn(3))
    """)


def test_a_retained_graph_that_grows_is_reported() -> None:
    check("""
        net = nn.Linear(3, 3)
        h = torch.zeros(3)
        for _ in range(4):
            h = net(h)
            loss = h.sum()
            loss.backward(retain_graph=True)  # GS408
    """)


def test_a_step_between_two_backwards_is_reported() -> None:
    check("""
        net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        out = net(torch.randn(5, 3))
        la, lb = out[:, 0].pow(2).mean(), out[:, 1].abs().mean()
        la.backward(retain_graph=True)
        opt.step()  # GS106
        lb.backward()
    """)


UNUSED = """
    used, unused = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    grads = torch.autograd.grad((used * 2).sum(), [used, unused], {option}=True)
    assert grads[0].tolist() == [2, 2, 2]
    if grads[1] is not None:
        unused.mul_(2){said}
"""


def test_the_gradient_of_an_unused_tensor_is_none_where_that_is_allowed() -> None:
    safe(UNUSED.format(option="allow_unused", said=""))


def test_the_gradient_of_an_unused_tensor_is_zero_where_that_is_asked_for() -> None:
    refused(UNUSED.format(option="materialize_grads", said="  # GS102"), "leaf Variable")


@pytest.mark.parametrize("operator", ["add_", "sub_", "mul_", "div_"])
@pytest.mark.parametrize(("other", "refused"), [("2.0", False), ("[2.0]", False), ("[q]", True)])
def test_foreach_keeps_numbers_as_numbers(operator: str, other: str, refused: bool) -> None:
    is_freed = refused and operator in ("mul_", "div_")
    program = f"""
        p, q = torch.full((2,), 0.5, requires_grad=True), torch.ones(2, requires_grad=True)
        out = p.clone()
        torch._foreach_{operator}([out], {other})
        out.sum().backward()
        out.sum().backward(){"  # GS402" if is_freed else ""}
    """
    check(program)
    if is_freed:
        with pytest.raises(RuntimeError, match="second time"):
            run(program)
    else:
        run(program)


CURVATURE = """
def flat_gradient(output, inputs, left_out=(), create_graph=False):
    inputs = list(inputs)
    wanted = [one for index, one in enumerate(inputs) if index not in left_out]
    grads = torch.autograd.grad(output, wanted, retain_graph=True, create_graph=create_graph)
    place = 0
    found = []
    for index, one in enumerate(inputs):
        if index in left_out:
            found.append(torch.zeros(one.view(-1).shape))
        else:
            found.append(grads[place].view(-1))
            place += 1
    return torch.cat(found)

def step(policy, states, damping):
    def product(v):
        spread, mu, info = policy.spread_of(states)
        mu = mu.view(-1)
        left_out = set() if policy.is_discrete else set([info["index"]])
        t = torch.ones(mu.size(), requires_grad=True)
        along = (flat_gradient((mu * t).sum(), policy.parameters(), left_out, create_graph=True) * v).sum()
        back = torch.autograd.grad(along, t)[0]
        through = (spread * back.detach() * mu).sum()
        return flat_gradient(through, policy.parameters(), left_out).detach() + v * damping

    grads = torch.autograd.grad(policy(states).mean(), policy.parameters())
    return product(torch.cat([one.view(-1) for one in grads]).detach())
"""


def test_a_gradient_that_is_detached_is_meant_as_a_direction() -> None:
    check(CURVATURE)


def test_a_detached_tensor_is_refused_by_a_gradient_penalty() -> None:
    check(
        """
        def penalty(D, real, fake):
            mix = torch.rand(8, 1)
            x = mix * real + (1 - mix) * fake
            g = torch.autograd.grad(D(x).sum(), x, create_graph=True)[0]  # GS406
            return ((g.norm(2, 1) - 1) ** 2).mean()

        def train(G, D, optimizer, loader):
            for real, _ in loader:
                fake = G(torch.randn(8, 4))
                loss = D(fake).mean() - D(real).mean() + 10 * penalty(D, real, fake.detach())
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """
    )
