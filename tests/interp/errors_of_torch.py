"""The programs of `test_errors_of_torch`: a name, the text with the lines of the cause marked, and what torch says."""

from __future__ import annotations

HEAD = """\
import torch
from torch import nn
from torch.autograd import Function

"""

WRITES_AND_FLAGS: dict[str, tuple[str, str]] = {
    "invalid_gradients": (
        HEAD
        + """\
class Half(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return torch.randn(10, dtype=torch.float)  # here

x = torch.randn(5, 5, requires_grad=True)
Half.apply(x).sum().backward()  # here
""",
        "shape",
    ),
    "mark_non_differentiable_unused_grad": (
        HEAD
        + """\
x = torch.randn(3, requires_grad=True)
y = torch.randn(3, requires_grad=True)
z = (x * 2).sum()
torch.autograd.grad(z, [x, y])  # here
""",
        "allow_unused",
    ),
    "backward_twice_without_retain": (
        HEAD
        + """\
x = torch.randn(3, requires_grad=True)
y = x.exp().sum()
y.backward()
y.backward()  # here
""",
        "second\\ time",
    ),
    "grad_twice_without_retain": (
        HEAD
        + """\
x = torch.randn(3, requires_grad=True)
y = (x ** 3).sum()
g, = torch.autograd.grad(y, x)
h, = torch.autograd.grad(y, x)  # here
""",
        "second\\ time",
    ),
    "double_grad_without_create_graph": (
        HEAD
        + """\
x = torch.randn(3, requires_grad=True)
g, = torch.autograd.grad((x ** 3).sum(), x)  # here
torch.autograd.grad(g.sum(), x)  # here
""",
        "does\\ not\\ require\\ grad",
    ),
    "backward_nonscalar": (
        HEAD
        + """\
x = torch.randn(4, requires_grad=True)
y = x * 2
y.backward()  # here
""",
        "scalar",
    ),
    "grad_nonscalar": (
        HEAD
        + """\
x = torch.randn(4, requires_grad=True)
y = x.sin()
torch.autograd.grad(y, x)  # here
""",
        "scalar",
    ),
    "grad_output_shape": (
        HEAD
        + """\
x = torch.randn(2, 2, requires_grad=True)
y = x ** 2
torch.autograd.grad(y, x, grad_outputs=torch.ones(2))  # here
""",
        "Mismatch\\ in\\ shape",
    ),
    "backward_gradient_shape": (
        HEAD
        + """\
x = torch.randn(5, requires_grad=True)
(x * 3).backward(torch.ones(4))  # here
""",
        "Mismatch\\ in\\ shape",
    ),
    "inplace_on_leaf": (
        HEAD
        + """\
x = torch.randn(5, requires_grad=True)
x += 1  # here
""",
        "leaf\\ Variable",
    ),
    "inplace_view_of_leaf": (
        HEAD
        + """\
x = torch.zeros(2, 3, requires_grad=True)
x[0].fill_(1)  # here
""",
        "leaf\\ Variable",
    ),
    "inplace_saved_output": (
        HEAD
        + """\
x = torch.randn(4, requires_grad=True)
y = x.exp()
y.add_(1)  # here
y.sum().backward()
""",
        "inplace",
    ),
    "inplace_saved_input": (
        HEAD
        + """\
a = torch.randn(4, requires_grad=True)
b = a * 1
c = b * b
b.mul_(2)  # here
c.sum().backward()
""",
        "inplace",
    ),
    "inplace_view_base": (
        HEAD
        + """\
a = torch.randn(4, 4, requires_grad=True)
b = a.clone()
v = b[0]
w = v.sin()
b.zero_()  # here
w.sum().backward()
""",
        "inplace",
    ),
    "unbind_inplace": (
        HEAD
        + """\
a = torch.randn(3, 3, requires_grad=True)
parts = a.clone().unbind()
parts[0].mul_(2)  # here
""",
        "multiple\\ views",
    ),
    "split_inplace": (
        HEAD
        + """\
a = torch.randn(4, 2, requires_grad=True)
left, right = (a * 1).split(2)
left += right  # here
""",
        "multiple\\ views",
    ),
    "chunk_inplace": (
        HEAD
        + """\
x = torch.ones(6, requires_grad=True) * 1
for part in x.chunk(3):
    part.zero_()  # here
""",
        "multiple\\ views",
    ),
    "view_in_no_grad_inplace": (
        HEAD
        + """\
x = torch.rand(2, 2, requires_grad=True).clone()
with torch.no_grad():
    v = x.view(-1)  # here
v.mul_(2)  # here
""",
        "no_grad\\ mode",
    ),
    "custom_view_inplace": (
        HEAD
        + """\
class Id(Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        return g

x = torch.randn(3, requires_grad=True)
y = Id.apply(x.clone())  # here
y += 1  # here
""",
        "view",
    ),
    "integer_requires_grad": (
        HEAD
        + """\
x = torch.ones(3, dtype=torch.long, requires_grad=True)  # here
""",
        "floating\\ point",
    ),
    "integer_set_requires_grad": (
        HEAD
        + """\
x = torch.arange(3)
x.requires_grad_()  # here
""",
        "floating\\ point",
    ),
    "nonleaf_requires_grad_false": (
        HEAD
        + """\
x = torch.randn(3, requires_grad=True)
y = x * 2
y.requires_grad = False  # here
""",
        "leaf",
    ),
    "no_grad_output": (
        HEAD
        + """\
x = torch.randn(3, requires_grad=True)
with torch.no_grad():  # here
    y = x * 2
y.sum().backward()  # here
""",
        "does\\ not\\ require\\ grad",
    ),
    "detach_output": (
        HEAD
        + """\
x = torch.randn(3, requires_grad=True)
y = (x * 2).detach()  # here
y.sum().backward()  # here
""",
        "does\\ not\\ require\\ grad",
    ),
    "detach_inplace_view": (
        HEAD
        + """\
x = torch.randn(3, 3, requires_grad=True)
y = x * 1
v = y.narrow(0, 0, 2)
v.detach_()  # here
""",
        "detach\\ views",
    ),
    "numpy_of_grad": (
        HEAD
        + """\
x = torch.randn(3, requires_grad=True)
x.numpy()  # here
""",
        "numpy\\(\\)",
    ),
    "deepcopy_nonleaf": (
        HEAD
        + """\
import copy

x = torch.randn(3, requires_grad=True)
y = x * 2
copy.deepcopy(y)  # here
""",
        "deepcopy",
    ),
    "out_requires_grad": (
        HEAD
        + """\
a, b = torch.randn(3, requires_grad=True), torch.randn(3)
out = torch.empty(3)
torch.add(a, b, out=out)  # here
""",
        "out=",
    ),
    "inference_saved": (
        HEAD
        + """\
with torch.inference_mode():  # here
    c = torch.ones(3)
x = torch.randn(3, requires_grad=True)
y = (x * c).sum()  # here
y.backward()
""",
        "nference",
    ),
    "inference_inplace_outside": (
        HEAD
        + """\
with torch.inference_mode():  # here
    c = torch.ones(3)
c.add_(1)  # here
""",
        "nference",
    ),
    "inference_requires_grad": (
        HEAD
        + """\
with torch.inference_mode():  # here
    c = torch.ones(3)
c.requires_grad_()  # here
""",
        "nference",
    ),
    "hook_on_no_grad": (
        HEAD
        + """\
x = torch.randn(3)
x.register_hook(lambda g: g)  # here
""",
        "doesn't\\ require\\ gradient",
    ),
    "hook_wrong_shape": (
        HEAD
        + """\
x = torch.randn(3, requires_grad=True)
y = x * 2
y.register_hook(lambda g: g.sum())  # here
y.sum().backward()  # here
""",
        "hook",
    ),
    "hook_returns_number": (
        HEAD
        + """\
x = torch.randn(3, requires_grad=True)
y = x * 2
y.register_hook(lambda g: 1.0)  # here
y.sum().backward()  # here
""",
        "hook",
    ),
    "retain_grad_no_grad": (
        HEAD
        + """\
x = torch.randn(3)
x.retain_grad()  # here
""",
        "requires_grad",
    ),
    "legacy_function": (
        HEAD
        + """\
class Old(Function):
    def forward(self, x):
        return x

    def backward(self, g):
        return g

Old()(torch.randn(3, requires_grad=True))  # here
""",
        "Legacy",
    ),
    "missing_backward": (
        HEAD
        + """\
class Only(Function):  # here
    @staticmethod
    def forward(ctx, x):
        return x * 2

x = torch.randn(3, requires_grad=True)
Only.apply(x).sum().backward()  # here
""",
        "implement",
    ),
    "wrong_number_of_gradients": (
        HEAD
        + """\
class Two(Function):
    @staticmethod
    def forward(ctx, x, y):
        return x * y

    @staticmethod
    def backward(ctx, g):
        return g  # here

x = torch.randn(3, requires_grad=True)
Two.apply(x, x).sum().backward()  # here
""",
        "number\\ of\\ gradients",
    ),
    "too_many_gradients": (
        HEAD
        + """\
class One(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g, g  # here

x = torch.randn(3, requires_grad=True)
One.apply(x).sum().backward()  # here
""",
        "number\\ of\\ gradients",
    ),
}
