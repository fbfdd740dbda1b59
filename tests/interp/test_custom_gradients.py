"""Custom Functions and hooks: what they return, keep and write."""

from __future__ import annotations

from tests.interp.checking import check


def test_too_few_gradients_are_reported() -> None:
    check("""
        class Mul(torch.autograd.Function):
            @staticmethod
            def forward(ctx, a, b):
                ctx.save_for_backward(a, b)
                return a * b
            @staticmethod
            def backward(ctx, g):
                a, b = ctx.saved_tensors
                return g * b  # GS701
        x = torch.randn(3, requires_grad=True)
        Mul.apply(x, torch.randn(3)).sum().backward()
    """)


def test_too_few_gradients_beside_setup_context_are_reported() -> None:
    check("""
        class Mul(torch.autograd.Function):
            @staticmethod
            def forward(a, b):
                return a * b
            @staticmethod
            def setup_context(ctx, inputs, output):
                ctx.save_for_backward(*inputs)
            @staticmethod
            def backward(ctx, g):
                a, b = ctx.saved_tensors
                return g * b  # GS701
        x = torch.randn(3, requires_grad=True)
        Mul.apply(x, torch.randn(3)).sum().backward()
    """)


def test_none_beyond_the_arguments_is_accepted() -> None:
    check("""
        class Mul(torch.autograd.Function):
            @staticmethod
            def forward(a, b):
                return a * b
            @staticmethod
            def setup_context(ctx, inputs, output):
                ctx.save_for_backward(*inputs)
            @staticmethod
            def backward(ctx, g):
                a, b = ctx.saved_tensors
                return g * b, g * a, None, None
        x = torch.randn(3, requires_grad=True)
        Mul.apply(x, torch.randn(3)).sum().backward()
    """)


def test_gradients_of_omitted_arguments_are_accepted() -> None:
    check("""
        class Lin(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, w, b=None):
                ctx.save_for_backward(x, w, b)
                out = x.mm(w.t())
                if b is not None:
                    out = out + b
                return out
            @staticmethod
            def backward(ctx, g):
                x, w, b = ctx.saved_tensors
                gx = gw = gb = None
                if ctx.needs_input_grad[0]:
                    gx = g.mm(w)
                if ctx.needs_input_grad[1]:
                    gw = g.t().mm(x)
                if b is not None and ctx.needs_input_grad[2]:
                    gb = g.sum(0)
                return gx, gw, gb
        w = torch.randn(2, 3, requires_grad=True)
        Lin.apply(torch.randn(4, 3), w).sum().backward()
    """)


def test_an_input_kept_on_ctx_is_reported() -> None:
    check("""
        class Sq(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.x = x  # GS702
                return x * x
            @staticmethod
            def backward(ctx, g):
                return 2 * g * ctx.x
        x = torch.randn(3, requires_grad=True)
        Sq.apply(x).sum().backward()
    """)


def test_numbers_and_masks_on_ctx_are_left_alone() -> None:
    check("""
        class Sc(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, k):
                ctx.k = k
                ctx.shape = x.shape
                ctx.mask = x > 0
                return x.clamp(min=0) * k
            @staticmethod
            def backward(ctx, g):
                return g * ctx.mask * ctx.k, None
        x = torch.randn(3, requires_grad=True)
        Sc.apply(x, 2.0).sum().backward()
    """)


def test_an_unmarked_write_is_reported() -> None:
    check("""
        class Relu(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                x.clamp_(min=0)  # GS703
                ctx.save_for_backward(x)
                return x
            @staticmethod
            def backward(ctx, g):
                (x,) = ctx.saved_tensors
                return g * (x > 0)
        w = torch.randn(3, requires_grad=True)
        Relu.apply(w * 2).sum().backward()
    """)


def test_a_gradient_clamped_in_place_is_reported() -> None:
    check("""
        class Clip(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x.view_as(x)
            @staticmethod
            def backward(ctx, g):
                g.clamp_(-1, 1)  # GS704
                return g
        x = torch.randn(3, requires_grad=True)
        Clip.apply(x).sum().backward()
    """)


def test_a_clone_may_be_edited() -> None:
    check("""
        class Clip(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x.clamp(min=0)
            @staticmethod
            def backward(ctx, grad_output):
                x, = ctx.saved_tensors
                grad_input = grad_output.clone()
                grad_input[x < 0] = 0
                return grad_input
        x = torch.randn(3, requires_grad=True)
        Clip.apply(x).sum().backward()
    """)


def test_a_backward_that_says_none_is_left_alone() -> None:
    check("""
        class Argm(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                out = x.argmax(-1).float()
                return out
            @staticmethod
            def backward(ctx, g):
                return None
        class NoGrad(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2
            @staticmethod
            def backward(ctx, g):
                raise RuntimeError("not differentiable")
        x = torch.randn(3, requires_grad=True)
        y = NoGrad.apply(x)
    """)


def test_a_hook_that_forgets_to_return_is_reported() -> None:
    check("""
        w = torch.randn(3, requires_grad=True)
        def halve(grad):
            grad = grad * 0.5  # GS704
        w.register_hook(halve)
        (w ** 2).sum().backward()
    """)


def test_hooks_that_log_are_left_alone() -> None:
    check("""
        log = []
        w = torch.randn(3, requires_grad=True)
        def watch(grad):
            norm = grad.norm()
            if norm > 10:
                print("large", norm)
            log.append(norm.item())
        class Watcher:
            def __init__(self):
                self.last = None
            def hook(self, grad):
                self.last = grad.detach().clone()
        ww = Watcher()
        w.register_hook(watch)
        w.register_hook(ww.hook)
        (w ** 2).sum().backward()
    """)


def test_a_hook_that_edits_a_clone_is_left_alone() -> None:
    check("""
        w = torch.ones(3, requires_grad=True)
        def mask_first(grad):
            grad = grad.clone()
            grad[0] = 0
            return grad
        w.register_hook(mask_first)
        w.register_hook(lambda g: print(g.norm()))
        w.register_hook(lambda g: g.clamp(-1, 1))
        (w * w).sum().backward()
    """)


def test_a_function_that_is_given_unknown_values_may_have_a_graph() -> None:
    check("""
        class LogNormalizer(torch.autograd.Function):
            @staticmethod
            def forward(ctx, scale, count):
                ctx.save_for_backward(scale)
                count = torch.tensor(int(count)).double()
                return torch.lgamma(count).float() + scale.log()
            @staticmethod
            def backward(ctx, g):
                scale, = ctx.saved_tensors
                return g / scale, None
        def slope(scale, count):
            with torch.enable_grad():
                scale = scale.float()
                made = LogNormalizer.apply(scale, count)
                return torch.autograd.grad(made, scale, grad_outputs=torch.ones_like(scale))
    """)


def test_a_function_that_is_given_settings_alone_has_no_graph() -> None:
    check("""
        class LogGamma(torch.autograd.Function):
            @staticmethod
            def forward(ctx, count, rate):
                return torch.lgamma(count) * rate
            @staticmethod
            def backward(ctx, g):
                return g, None
        def slope(config):
            made = LogGamma.apply(torch.ones(3), config.rate).sum()
            made.backward()  # GS205
    """)


EXCHANGE = """
class Exchange(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rank, group, tensor, other):
        ctx.group = group
        ctx.rank = rank
        KEPT
        return exchange(rank, tensor, group=group) + other

    @staticmethod
    def backward(ctx, *gradients):
        return RETURNED

def loss_of(rank, group, tensor, other):
    return Exchange.apply(rank, group, tensor, other).sum()
"""


def test_sum_with_a_tuple_is_a_tuple_of_unknown_length() -> None:
    check(
        EXCHANGE.replace("KEPT", "").replace(
            "RETURNED", "(None, None) + Exchange.apply(ctx.rank, *gradients)"
        )
    )
    check("""
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad + 1  # GS701

    x = torch.ones(2, requires_grad=True)
    Double.apply(x, x).sum().backward()
    """)


def test_arguments_that_nothing_shows_to_be_tensors_may_be_kept_on_ctx() -> None:
    returned = "(None, None, gradients[0], gradients[0])"
    check(EXCHANGE.replace("KEPT", "").replace("RETURNED", returned))
    check(EXCHANGE.replace("KEPT", "ctx.other = other  # GS702").replace("RETURNED", returned))


NEAREST = """
class Nearest(torch.autograd.Function):
    @staticmethod
    def forward(ctx, count, points, centers):
        found = torch.cdist(centers, points).topk(count).indices.float()
        {mark}
        return found
    @staticmethod
    def backward(ctx, gradient=None):
        return None, None{said}
points = torch.randn(5, 3, requires_grad=True)
found = Nearest.apply(2, points, torch.randn(4, 3))
loss = points.sum() + found.sum()
loss.backward()
"""


def test_a_backward_that_torch_never_calls_may_return_what_it_likes() -> None:
    check(NEAREST.format(mark="ctx.mark_non_differentiable(found)", said=""))
    check(
        NEAREST.format(mark="if torch.__version__ != 'parrots': ctx.mark_non_differentiable(found)", said="")
    )
    check(NEAREST.format(mark="pass", said="  # GS701"))
