"""More programs of `test_errors_of_torch`: a name, the text with the lines of the cause marked, and what torch says."""

from __future__ import annotations

from tests.interp.errors_of_torch import HEAD, WRITES_AND_FLAGS

PROGRAMS: dict[str, tuple[str, str]] = {
    **WRITES_AND_FLAGS,
    "save_non_tensor": (
        HEAD
        + """\
class Keep(Function):
    @staticmethod
    def forward(ctx, x, n):
        ctx.save_for_backward(x, n)  # here
        return x * n

    @staticmethod
    def backward(ctx, g):
        return g, None

Keep.apply(torch.randn(3, requires_grad=True), 2)  # here
""",
        "save_for_backward",
    ),
    "mark_dirty_leaf": (
        HEAD
        + """\
class Inc(Function):
    @staticmethod
    def forward(ctx, x):
        x.add_(1)
        ctx.mark_dirty(x)  # here
        return x

    @staticmethod
    def backward(ctx, g):
        return g

x = torch.randn(3, requires_grad=True)
Inc.apply(x)  # here
""",
        "leaf",
    ),
    "mark_dirty_not_returned": (
        HEAD
        + """\
class Inc(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x.add_(1))  # here
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2

x = torch.randn(3, requires_grad=True)
Inc.apply(x * 1)  # here
""",
        "as\\ dirty",
    ),
    "once_differentiable_twice": (
        HEAD
        + """\
from torch.autograd.function import once_differentiable


class Cube(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x ** 3

    @staticmethod
    @once_differentiable  # here
    def backward(ctx, g):
        x, = ctx.saved_tensors
        return 3 * x * x * g

x = torch.randn(3, requires_grad=True)
g, = torch.autograd.grad(Cube.apply(x).sum(), x, create_graph=True)
g.sum().backward()  # here
""",
        "does\\ not\\ require\\ grad",
    ),
    "saved_tensor_written_custom": (
        HEAD
        + """\
class Square(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        return 2 * x * g

a = torch.randn(3, requires_grad=True)
b = a * 1
c = Square.apply(b)
b.zero_()  # here
c.sum().backward()
""",
        "inplace",
    ),
    "access_saved_after_free": (
        HEAD
        + """\
class Square(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        return 2 * x * g

x = torch.randn(3, requires_grad=True)
y = Square.apply(x).sum()
y.backward()
y.backward()  # here
""",
        "second\\ time",
    ),
    "grad_assign_shape": (
        HEAD
        + """\
x = torch.randn(5, 5, requires_grad=True)
x.grad = torch.randn(2, 2)  # here
""",
        "size",
    ),
    "grad_assign_type": (
        HEAD
        + """\
x = torch.randn(5, requires_grad=True)
x.grad = torch.zeros(5, dtype=torch.double)  # here
""",
        "dtype",
    ),
    "grad_assign_self": (
        HEAD
        + """\
x = torch.randn(5, requires_grad=True)
x.grad = x  # here
""",
        "own\\ grad",
    ),
    "grad_assign_number": (
        HEAD
        + """\
x = torch.randn(5, requires_grad=True)
x.grad = 0  # here
""",
        "Tensor",
    ),
    "backward_none_for_vector": (
        HEAD
        + """\
a = torch.rand(3, requires_grad=True)
torch.autograd.backward([a * 2], [None])  # here
""",
        "scalar",
    ),
    "backward_empty_inputs": (
        HEAD
        + """\
x = torch.rand(3, requires_grad=True)
(x * 2).sum().backward(inputs=[])  # here
""",
        "empty",
    ),
    "optimizer_nonleaf": (
        HEAD
        + """\
x = torch.rand(3, requires_grad=True) * 2  # here
torch.optim.SGD([x], lr=0.1)  # here
""",
        "non\\-leaf",
    ),
    "optimizer_tensor_instead_of_list": (
        HEAD
        + """\
x = torch.rand(3, requires_grad=True)
torch.optim.SGD(x, lr=0.1)  # here
""",
        "iterable",
    ),
    "optimizer_empty": (
        HEAD
        + """\
net = nn.ReLU()
torch.optim.Adam(net.parameters())  # here
""",
        "empty\\ parameter\\ list",
    ),
    "step_between_backwards": (
        HEAD
        + """\
net = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.randn(4, 3)
first, second = net(x).mean(), net(x).pow(2).mean()
first.backward()
opt.step()  # here
second.backward()  # here
""",
        "inplace",
    ),
    "checkpoint_reentrant_autograd_grad": (
        HEAD
        + """\
from torch.utils.checkpoint import checkpoint

x = torch.randn(3, requires_grad=True)
y = checkpoint(torch.sin, x, use_reentrant=True).sum()  # here
torch.autograd.grad(y, x)  # here
""",
        "checkpoint",
    ),
    "checkpoint_without_grad_input": (
        HEAD
        + """\
from torch.utils.checkpoint import checkpoint

net = nn.Linear(3, 3)
y = checkpoint(net, torch.randn(2, 3), use_reentrant=True).sum()  # here
y.backward()  # here
""",
        "does\\ not\\ require\\ grad",
    ),
    "vmap_inplace_unbatched": (
        HEAD
        + """\
from torch.func import vmap

def f(x):
    out = torch.zeros(3)
    out.copy_(x)  # here
    return out

vmap(f)(torch.randn(2, 3))  # here
""",
        "vmap",
    ),
    "func_grad_nonscalar": (
        HEAD
        + """\
from torch.func import grad

grad(torch.sin)(torch.randn(3))  # here
""",
        "scalar",
    ),
    "func_grad_captured_write": (
        HEAD
        + """\
from torch.func import grad

seen = torch.zeros(())

def f(x):
    y = x.sin().sum()
    seen.copy_(y)  # here
    return y

grad(f)(torch.randn(3))  # here
""",
        "",
    ),
    "vmap_item": (
        HEAD
        + """\
from torch.func import vmap

vmap(lambda x: x * x.sum().item())(torch.randn(3, 3))  # here
""",
        "vmap",
    ),
    "expanded_write": (
        HEAD
        + """\
x = torch.zeros(1, 3).expand(4, 3)
x.add_(1)  # here
""",
        "single\\ memory\\ location",
    ),
    "overlap_write": (
        HEAD
        + """\
x = torch.zeros(3)
x[1:].copy_(x[:-1])  # here
""",
        "single\\ memory",
    ),
    "resize_grad": (
        HEAD
        + """\
x = torch.randn(3, requires_grad=True)
y = x * 1
y.resize_(6)  # here
""",
        "resize",
    ),
    "parameter_assign_tensor": (
        HEAD
        + """\
net = nn.Linear(2, 2)
net.weight = torch.zeros(2, 2)  # here
""",
        "Parameter",
    ),
    "module_before_init": (
        HEAD
        + """\
class Net(nn.Module):
    def __init__(self):
        self.layer = nn.Linear(2, 2)  # here
        super().__init__()

Net()  # here
""",
        "__init__",
    ),
    "unscale_twice": (
        HEAD
        + """\
net = nn.Linear(2, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu")
scaler.scale(net(torch.ones(1, 2)).sum()).backward()
scaler.unscale_(opt)
scaler.unscale_(opt)  # here
""",
        "unscale_",
    ),
    "lstm_hidden_reused": (
        HEAD
        + """\
rnn = nn.LSTM(2, 3)
state = None
for _ in range(2):
    out, state = rnn(torch.randn(4, 1, 2), state)  # here
    out.sum().backward()  # here
""",
        "second\\ time",
    ),
    "argmax_backward": (
        HEAD
        + """\
x = torch.randn(3, 4, requires_grad=True)
x.argmax(1).float().mean().backward()  # here
""",
        "does\\ not\\ require\\ grad",
    ),
    "comparison_backward": (
        HEAD
        + """\
x = torch.randn(3, requires_grad=True)
loss = (x > 0).float().sum()  # here
loss.backward()  # here
""",
        "does\\ not\\ require\\ grad",
    ),
    "item_backward": (
        HEAD
        + """\
x = torch.randn(3, requires_grad=True)
loss = (x * 2).sum().item()  # here
loss.backward()  # here
""",
        "backward",
    ),
    "nonleaf_grad_none": (
        HEAD
        + """\
x = torch.randn(3, requires_grad=True)
y = x * 2
y.sum().backward()
print(y.grad.norm())  # here
""",
        "NoneType",
    ),
    "parameter_grad_none_used": (
        HEAD
        + """\
net = nn.Linear(2, 1)
for p in net.parameters():
    p.grad.zero_()  # here
""",
        "NoneType",
    ),
    "set_data_wrong_type": (
        HEAD
        + """\
x = torch.randn(3, requires_grad=True)
x.data = torch.zeros(3, dtype=torch.long)  # here
""",
        "",
    ),
    "leaf_made_inplace": (
        HEAD
        + """\
buffer = torch.zeros(3)
w = torch.randn(3, requires_grad=True)
buffer.requires_grad_()
buffer.copy_(w)  # here
""",
        "leaf",
    ),
    "jvp_non_scalar_create": (
        HEAD
        + """\
x = torch.randn(3, requires_grad=True)
y = x.exp()
v = y.detach()
v.zero_()  # here
y.sum().backward()
""",
        "inplace",
    ),
    "scatter_into_saved": (
        HEAD
        + """\
x = torch.randn(3, 3, requires_grad=True)
s = x.softmax(1)
s[:, 0] = 0  # here
s.sum().backward()
""",
        "inplace",
    ),
    "relu_inplace_after_sigmoid": (
        HEAD
        + """\
net = nn.Sequential(nn.Linear(3, 3), nn.Sigmoid(), nn.Dropout(0.5, inplace=True))  # here
net(torch.randn(2, 3)).sum().backward()  # here
""",
        "inplace",
    ),
}
