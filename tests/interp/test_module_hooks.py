"""Hooks on modules: what they see, replace and write, and when they are gone.  Each program runs on torch."""

from __future__ import annotations

from tests.interp.running import refused, safe

NET = """
        net = nn.Sequential(nn.Linear(3, 3), nn.Sigmoid())
        x = torch.randn(2, 3)
"""


def test_a_hook_before_a_module_may_not_write_a_leaf() -> None:
    refused(
        NET
        + """
        def double(module, args):
            args[0].mul_(2)  # GS102
        net.register_forward_pre_hook(double)
        net(x.requires_grad_()).sum().backward()
    """,
        "leaf Variable",
    )


def test_a_hook_behind_a_sequential_writes_what_its_last_layer_kept() -> None:
    refused(
        NET
        + """
        def double(module, args, output):
            output.mul_(2)  # GS101
        net.register_forward_hook(double)
        net(x).sum().backward()
    """,
        "modified by an inplace operation",
    )


def test_a_hook_that_was_removed_does_nothing() -> None:
    safe(
        NET
        + """
        def double(module, args, output):
            output.mul_(2)
        handle = net.register_forward_hook(double)
        handle.remove()
        out = net(x)
        assert torch.equal(out, torch.sigmoid(net[0](x)))
        out.sum().backward()
    """
    )


def test_what_a_hook_gives_back_takes_the_place_of_the_input() -> None:
    safe(
        NET
        + """
        net.register_forward_pre_hook(lambda module, args: (args[0].clone(),))
        leaf = x.requires_grad_()
        net[0].register_forward_pre_hook(lambda module, args: (args[0].mul_(2),))
        before = leaf.detach().clone()
        net(leaf).sum().backward()
        assert torch.equal(leaf.detach(), before)
        plain = torch.sigmoid(F.linear(2 * leaf, net[0].weight, net[0].bias)).sum()
        assert torch.allclose(leaf.grad, torch.autograd.grad(plain, leaf)[0])
    """
    )


HOOKED = (
    NET
    + """
        handle = net.register_full_backward_hook(lambda module, grad_input, grad_output: None)
        y = net(x)
        {write}
        handle.remove()
        z = net[0](x)
        z += 1
        with torch.no_grad():
            net(x).mul_(2)
        {loss}.backward()
    """
)


def test_a_full_backward_hook_makes_the_result_a_view() -> None:
    refused(HOOKED.format(write="y += 1  # GS103", loss="z.sum()"), "is a view and is being modified inplace")


def test_a_result_without_a_hook_or_without_a_graph_may_be_written() -> None:
    safe(HOOKED.format(write="y = y + 1", loss="(y.sum() + z.sum())"))


def test_an_in_place_layer_behind_a_hooked_one_is_refused() -> None:
    refused(
        """
        net = nn.Sequential(nn.Linear(3, 3), nn.ReLU(inplace=True))
        net[0].register_full_backward_hook(lambda module, grad_input, grad_output: None)
        net(torch.randn(2, 3)).sum().backward()  # GS103
    """,
        "is a view and is being modified inplace",
    )
