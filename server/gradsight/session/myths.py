"""What is often said about autograd, and what torch does: one entry for each word, each with a program that proves it.

Every proof is run against torch by the tests; `torch` and a leaf `x` of three ones times two are defined in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True, slots=True)
class Myth:
    """The truth about some words.  `names` are attributes, methods, functions or keywords; `myth` may be empty."""

    names: tuple[str, ...]
    truth: str
    myth: str
    proof: str


PREAMBLE = "import torch\nx = torch.full((3,), 2.0, requires_grad=True)\n"


@lru_cache(maxsize=1)
def by_name() -> dict[str, Myth]:
    """All entries by the words they are about."""
    return {name: entry for entry in ALL for name in entry.names}


ALL: tuple[Myth, ...] = (
    Myth(
        ("clone",),
        "`clone` copies the values and stays in the graph: the gradient flows through it unchanged.",
        "`clone` does not detach. A copy without a graph is `detach().clone()`.",
        "y = x.clone()\ny.sum().backward()\nassert x.grad.tolist() == [1.0, 1.0, 1.0]",
    ),
    Myth(
        ("detach",),
        "`detach` gives a tensor outside the graph that shares memory *and* the version counter with the original: a "
        "write through either is noticed by backward.",
        "`detach` does not copy: writing the detached tensor changes the original. `requires_grad_()` on it does not "
        "bring the graph back.",
        "z = x * 1\nloss = (z * z).sum()\nw = z.detach()\nw.zero_()\nassert not w.requires_grad\n"
        "assert z.tolist() == [0.0, 0.0, 0.0]\ntry:\n    loss.backward()\n    raised = False\n"
        "except RuntimeError:\n    raised = True\nassert raised",
    ),
    Myth(
        ("detach_",),
        "`detach_` cuts the tensor itself out of the graph, in place; every variable that holds it is cut off.",
        "It is not a shorter `detach`: the graph of the original is gone, and on a view it raises.",
        "y = x * 1\nz = y\nv = (x * 1).view(-1)\ny.detach_()\ntry:\n    v.detach_()\n    raised = False\n"
        "except RuntimeError:\n    raised = True\nassert raised and not z.requires_grad",
    ),
    Myth(
        ("data",),
        "`.data` shares memory and has a version counter *of its own*: backward does not notice writes through it, and "
        "the gradient can be silently wrong.",
        "It is not a safe way to update a tensor. Use `with torch.no_grad():` for updates and `detach()` for reading.",
        "y = x * x\nx.data.mul_(10)\ny.sum().backward()\nassert x.grad.tolist() == [40.0, 40.0, 40.0]",
    ),
    Myth(
        ("grad",),
        "`.grad` is filled on leaves only, and the next backward *adds into the same tensor*: a variable that holds it changes "
        "too. With `create_graph=True` the leaf gets a new `.grad` instead.",
        "`g = x.grad` is not a copy. Make one with `x.grad.detach().clone()`. On a non-leaf it is None unless "
        "`retain_grad()` was called before backward.",
        "(x * 3).sum().backward()\ng = x.grad\n(x * 3).sum().backward()\nassert g.tolist() == [6.0, 6.0, 6.0]\n"
        "(x * 3).sum().backward(create_graph=True)\nassert g.tolist() == [6.0, 6.0, 6.0] and x.grad.tolist() == [9.0, 9.0, 9.0]",
    ),
    Myth(
        ("retain_graph",),
        "`retain_graph=True` keeps what the graph saved, so that another backward can go through it; gradients add up.",
        "It does not fix an in-place error, and in a loop it makes the graph grow. Without it a second backward raises "
        "only if something was saved on the way.",
        "y, z = (x * x).sum(), (x + 1).sum()\ny.backward(retain_graph=True)\ny.backward()\n"
        "assert x.grad.tolist() == [8.0, 8.0, 8.0]\nz.backward()\nz.backward()\ntry:\n    y.backward()\n    raised = False\n"
        "except RuntimeError:\n    raised = True\nassert raised",
    ),
    Myth(
        ("create_graph",),
        "`create_graph=True` records backward itself, so that a gradient can be part of a loss; it implies "
        "`retain_graph=True`.",
        "Without it the gradient of a penalty is a constant: nothing fails at once, and nothing is learned from it.",
        "(g,) = torch.autograd.grad((x * x * x).sum(), x, create_graph=True)\nassert g.requires_grad\n"
        "g.sum().backward()\nassert x.grad.tolist() == [12.0, 12.0, 12.0]",
    ),
    Myth(
        ("no_grad",),
        "Under `no_grad` nothing is recorded: results do not require grad, and leaves may be written.",
        "It does not switch dropout or batch norm (`eval()` does), and a tensor of the graph that is written under it "
        "changes its value, but not its gradient.",
        "y = x * 2\nwith torch.no_grad():\n    y.mul_(5)\ny.sum().backward()\nassert x.grad.tolist() == [2.0, 2.0, 2.0]",
    ),
    Myth(
        ("inference_mode",),
        "`inference_mode` is `no_grad` with less bookkeeping: its tensors can never be saved for backward later.",
        "It is not a faster `no_grad` for training code: a tensor made under it raises when autograd has to save it.",
        "with torch.inference_mode():\n    c = torch.ones(3)\ntry:\n    (x * c).sum()\n    raised = False\n"
        "except RuntimeError:\n    raised = True\nassert raised",
    ),
    Myth(
        ("enable_grad",),
        "`enable_grad` records again inside `no_grad`; what was computed before it stays outside the graph.",
        "",
        "with torch.no_grad():\n    a = x * 2\n    with torch.enable_grad():\n        b = x * 2\n"
        "assert not a.requires_grad and b.requires_grad",
    ),
    Myth(
        ("set_grad_enabled",),
        "`set_grad_enabled(False)` called as a function holds until it is called again; as `with` it ends with the block.",
        "Left off by an exception or an early return, everything after it computes without a graph.",
        "torch.set_grad_enabled(False)\ny = x * 2\ntorch.set_grad_enabled(True)\nassert not y.requires_grad",
    ),
    Myth(
        ("requires_grad_", "requires_grad"),
        "`requires_grad` makes a leaf collect a gradient; on a result it says that a leaf behind it does.",
        "Set on a detached or rebuilt tensor it hides the cut: backward runs, and what came before gets no gradient.",
        "y = (x * 2).detach().requires_grad_()\ny.sum().backward()\nassert x.grad is None and y.grad is not None",
    ),
    Myth(
        ("retain_grad",),
        "`retain_grad()` before backward makes a non-leaf keep its gradient in `.grad`.",
        "Called after backward it comes too late: the gradient is gone.",
        "y, z = x * 2, x * 2\ny.retain_grad()\n(y + z).sum().backward()\nz.retain_grad()\n"
        "assert y.grad.tolist() == [1.0, 1.0, 1.0] and z.grad is None",
    ),
    Myth(
        ("zero_grad",),
        "`zero_grad()` sets every `.grad` to None; with `set_to_none=False` it zeroes them in place.",
        "A variable that holds the old `.grad` keeps its value in the first case and is zeroed in the second. Without it gradients of all backward "
        "calls add up.",
        "p = torch.nn.Parameter(torch.ones(1))\nopt = torch.optim.SGD([p], lr=0.1)\np.sum().backward()\ng = p.grad\n"
        "opt.zero_grad()\nassert p.grad is None and g.tolist() == [1.0]",
    ),
    Myth(
        ("item", "tolist"),
        "It gives plain Python numbers: the graph ends here, and a loss built from them trains nothing.",
        "For logging that is what you want; on the way to the loss keep the tensor.",
        "y = (x * 2).sum()\nassert isinstance(y.item(), float)",
    ),
    Myth(
        ("numpy",),
        "`numpy()` shares memory with the tensor: writes to the array change the tensor, and autograd does not notice.",
        "It is not a copy. It raises on a tensor that requires grad; `detach().numpy()` does not, but still shares memory.",
        "y = x.detach().clone()\ny.numpy()[0] = 7\ntry:\n    x.numpy()\n    raised = False\n"
        "except RuntimeError:\n    raised = True\nassert raised and y.tolist() == [7.0, 2.0, 2.0]",
    ),
    Myth(
        ("from_numpy", "as_tensor"),
        "It shares memory with the array where it can: a later write to the array changes the tensor unnoticed.",
        "It does not copy, and the graph does not survive the way through NumPy.",
        "import numpy\na = numpy.ones(2)\nt = torch.from_numpy(a)\na[0] = 5\nassert t.tolist() == [5.0, 1.0]",
    ),
    Myth(
        ("backward",),
        "`backward` adds gradients into the leaves' `.grad` and frees what the graph saved.",
        "It does not replace gradients, and on more than one element it raises unless a `gradient` is given.",
        "(x * 2).sum().backward()\n(x * 2).sum().backward()\nassert x.grad.tolist() == [4.0, 4.0, 4.0]\n"
        "try:\n    (x * 2).backward()\n    raised = False\nexcept RuntimeError:\n    raised = True\nassert raised",
    ),
    Myth(
        ("is_leaf",),
        "A leaf was not computed by a recorded operator: inputs, parameters, and everything that requires no grad.",
        "`torch.ones(3, requires_grad=True).double()` or `* 0.1` is no longer a leaf: an optimizer refuses it.",
        "assert x.is_leaf and not x.double().is_leaf and x.detach().is_leaf",
    ),
    Myth(
        ("grad_fn",),
        "`grad_fn` is the operator that made the tensor in the graph; None for leaves and outside the graph.",
        "",
        "assert x.grad_fn is None and 'MulBackward' in type((x * 2).grad_fn).__name__",
    ),
    Myth(
        ("eval",),
        "`eval()` switches dropout and batch norm; gradients are recorded as before.",
        "It does not turn autograd off: that is `no_grad`.",
        "m = torch.nn.Linear(3, 1).eval()\nassert m(x).requires_grad",
    ),
    Myth(
        ("inplace",),
        "`inplace=True` writes the output over the input. It is right as long as no operator saved the old input for backward.",
        "It neither detaches nor gives wrong gradients by itself: after an operator that saves its output (sigmoid, exp, "
        "softmax) backward raises, after Linear or convolution it is fine.",
        "y = torch.nn.functional.relu(torch.sigmoid(x), inplace=True)\ntry:\n    y.sum().backward()\n    raised = False\n"
        "except RuntimeError:\n    raised = True\nassert raised",
    ),
    Myth(
        ("register_buffer",),
        "A buffer moves and is saved with the module, and no optimizer sees it.",
        "It is not a parameter: to learn it must be an `nn.Parameter`.",
        "m = torch.nn.Module()\nm.register_buffer('b', torch.ones(2))\nassert not list(m.parameters())",
    ),
    Myth(
        ("ModuleList", "ParameterList"),
        "Modules in it are registered: their parameters are found by `parameters()`.",
        "A plain Python list is not searched: what lies in it is never trained or moved.",
        "m = torch.nn.Module()\nm.plain = [torch.nn.Linear(1, 1)]\nassert not list(m.parameters())\n"
        "m.listed = torch.nn.ModuleList(m.plain)\nassert len(list(m.parameters())) == 2",
    ),
    Myth(
        ("Parameter",),
        "`nn.Parameter(t)` is a new leaf that shares memory with `t` and has no history.",
        "Wrapping a computed tensor cuts its graph; made inside forward it is new in each call and learns nothing.",
        "p = torch.nn.Parameter(x * 2)\np.sum().backward()\nassert p.is_leaf and x.grad is None",
    ),
    Myth(
        ("vmap",),
        "In-place writes work inside `vmap` as long as the tensor that is written is itself mapped over, or is made from one "
        "that is: `x.new_zeros(3)`, `torch.zeros_like(x)`.",
        "A plain `torch.zeros(3)` made inside the function is one tensor for the whole batch: writing a batched value into it "
        "raises.",
        "def own(row):\n    out = row.new_zeros(3)\n    out[0] = row.sum()\n    return out\n"
        "def shared(row):\n    out = torch.zeros(3)\n    out[0] = row.sum()\n    return out\n"
        "assert torch.vmap(own)(torch.ones(2, 3))[:, 0].tolist() == [3.0, 3.0]\ntry:\n    torch.vmap(shared)(torch.ones(2, 3))\n"
        "    raised = False\nexcept RuntimeError:\n    raised = True\nassert raised",
    ),
    Myth(
        ("vjp", "jvp", "jacrev", "jacfwd", "hessian"),
        "The transforms of `torch.func` follow writes in place to tensors that the function makes itself.",
        "A tensor from outside must not be written in place by the function: torch refuses.",
        "outside = torch.zeros(3)\ndef own(t):\n    out = torch.zeros(3)\n    out[0] = t.sum()\n    return out.sum()\n"
        "def foreign(t):\n    outside.add_(t)\n    return outside.sum()\n"
        "assert torch.func.grad(own)(torch.ones(3)).tolist() == [1.0, 1.0, 1.0]\ntry:\n    torch.func.grad(foreign)(torch.ones(3))\n"
        "    raised = False\nexcept RuntimeError:\n    raised = True\nassert raised",
    ),
    Myth(
        ("save_for_backward",),
        "`ctx.save_for_backward` saves tensors with a version check, and frees them after backward.",
        "A tensor put on `ctx` itself is neither checked nor freed.",
        "class Double(torch.autograd.Function):\n"
        "    @staticmethod\n    def forward(ctx, t):\n        ctx.save_for_backward(t)\n        return t * 2\n"
        "    @staticmethod\n    def backward(ctx, g):\n        (t,) = ctx.saved_tensors\n        return g * 2\n"
        "Double.apply(x).sum().backward()\nassert x.grad.tolist() == [2.0, 2.0, 2.0]",
    ),
)  # fmt: skip
