"""Reading gradients: of results, before backward, and under names that follow later changes."""

from __future__ import annotations

from tests.interp.checking import check


def test_the_gradient_of_a_result_is_reported() -> None:
    check("""
        x = torch.randn(3, requires_grad=True)
        y = x * 2
        y.sum().backward()
        print(y.grad)  # GS301
    """)


def test_the_gradient_of_an_activation_is_reported() -> None:
    check("""
        net = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
        h = net[:2](torch.randn(2, 4))
        out = net[2](h).sum()
        out.backward()
        saliency = h.grad.abs().sum()  # GS301
    """)


def test_the_gradient_of_a_scaled_weight_is_reported() -> None:
    check("""
        w = (torch.randn(3, requires_grad=True) * 0.1)
        loss = (w ** 2).sum()
        loss.backward()
        with torch.no_grad():
            w -= 0.1 * w.grad  # GS301
    """)


def test_a_retained_gradient_is_left_alone() -> None:
    check("""
        x = torch.randn(3, requires_grad=True)
        y = x * 2
        y.retain_grad()
        y.sum().backward()
        print(y.grad)
    """)


def test_a_gradient_that_the_next_backward_adds_to_is_reported() -> None:
    check("""
        w = torch.ones(3, requires_grad=True)
        (w * 2).sum().backward()
        first = w.grad  # GS302
        (w * 3).sum().backward()
        second = w.grad
        print(first, second)
    """)


def test_kept_gradients_that_are_zeroed_in_place_are_reported() -> None:
    check("""
        net = nn.Linear(3, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        saved = []
        for _ in range(3):
            opt.zero_grad(set_to_none=False)
            net(torch.randn(4, 3)).mean().backward()
            saved.append(net.weight.grad)  # GS302
        print(torch.stack(saved))
    """)


def test_kept_gradients_that_are_dropped_are_left_alone() -> None:
    check("""
        net = nn.Linear(3, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        saved = []
        for _ in range(3):
            opt.zero_grad()
            net(torch.randn(4, 3)).mean().backward()
            saved.append(net.weight.grad)
        print(torch.stack(saved))
    """)


def test_clipped_gradients_read_under_their_old_name_are_left_alone() -> None:
    check("""
        net = nn.Linear(3, 1)
        net(torch.randn(4, 3)).mean().backward()
        grads = [p.grad for p in net.parameters()]
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        norm = torch.stack([g.norm() for g in grads]).norm()
        print(norm)
    """)


def test_a_dict_of_gradients_that_change_is_reported() -> None:
    check("""
        net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
        x = torch.randn(8, 3)
        def collect():
            return {n: p.grad for n, p in net.named_parameters()}  # GS302
        net(x).mean().backward()
        first = collect()
        net(x).pow(2).mean().backward()
        second = collect()
        diff = {n: (second[n] - first[n]).norm() for n in first}
        print(diff)
    """)


def test_the_gradient_of_the_first_task_is_reported() -> None:
    check("""
        shared, a, b = nn.Linear(4, 4), nn.Linear(4, 1), nn.Linear(4, 1)
        x = torch.randn(6, 4)
        a(shared(x)).mean().backward()
        g_a = shared.weight.grad  # GS302
        shared.zero_grad(set_to_none=False)
        b(shared(x)).mean().backward()
        g_b = shared.weight.grad
        cos = F.cosine_similarity(g_a.flatten(), g_b.flatten(), dim=0)
        print(cos)
    """)


def test_a_cloned_gradient_is_left_alone() -> None:
    check("""
        shared, a, b = nn.Linear(4, 4), nn.Linear(4, 1), nn.Linear(4, 1)
        x = torch.randn(6, 4)
        a(shared(x)).mean().backward()
        g_a = shared.weight.grad.clone()
        shared.zero_grad(set_to_none=False)
        b(shared(x)).mean().backward()
        cos = F.cosine_similarity(g_a.flatten(), shared.weight.grad.flatten(), dim=0)
        print(cos)
    """)


def test_the_gradient_of_the_step_before_is_reported() -> None:
    check("""
        net = nn.Linear(3, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        prev = None
        for _ in range(4):
            opt.zero_grad(set_to_none=False)
            net(torch.randn(5, 3)).pow(2).mean().backward()
            if prev is not None:
                print((net.weight.grad - prev).norm())
            prev = net.weight.grad  # GS302
            opt.step()
    """)


def test_a_gradient_before_backward_is_reported() -> None:
    check("""
        net = nn.Linear(3, 1)
        print(net.weight.grad.norm())  # GS304
    """)


def test_a_gradient_after_zero_grad_is_reported() -> None:
    check("""
        net = nn.Linear(3, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        net(torch.randn(4, 3)).mean().backward()
        opt.step()
        opt.zero_grad()
        print(net.weight.grad.abs().mean())  # GS304
    """)


def test_a_gradient_that_is_asked_for_first_is_left_alone() -> None:
    check("""
        net = nn.Linear(3, 1)
        for p in net.parameters():
            if p.grad is not None:
                print(p.grad.norm())
        total = sum(p.grad.norm() for p in net.parameters() if p.grad is not None)
    """)


def test_a_deep_copy_of_a_result_is_reported() -> None:
    check("""
        import copy
        x = torch.randn(3, requires_grad=True)
        y = x * 2
        z = copy.deepcopy(y)  # GS306
    """)


def test_an_optimizer_of_a_result_is_reported() -> None:
    check("""
        w = torch.randn(3, 3, requires_grad=True) / 3  # GS303
        opt = torch.optim.SGD([w], lr=0.1)
    """)


def test_what_follows_an_assertion_that_there_is_a_gradient_is_not_reached_without_one() -> None:
    check("""
        def convert(module, function, keeps):
            for key, weight in module.named_parameters():
                if keeps(weight):
                    made = weight
                else:
                    made = nn.Parameter(function(weight.detach()), weight.requires_grad)
                if weight.grad is not None and keeps(weight.grad):
                    assert made.grad is not None
                    made.grad.data = function(weight.grad)
        w = torch.ones(3, requires_grad=True)
        made = nn.Parameter(w.detach())
        assert made.grad is not None
        made.grad.data = torch.zeros(3)
    """)
