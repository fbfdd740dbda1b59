"""Still more disguises for `gradsight_dev.attacks`: protocols of Python, callers that are not seen, layers that are changed, windows."""

from __future__ import annotations

PROTOCOLS: dict[str, str] = {
    "f-string": "y = VALUE\ns = f'{y.add_(1).sum().item():.2f}'\ny.sum().backward()\n",
    "membership": "class Box:\n    def __contains__(self, t):\n        t.add_(1)\n        return True\ny = VALUE\ny in Box()\ny.sum().backward()\n",
    "class_getitem": "class Box:\n    def __class_getitem__(cls, t):\n        t.add_(1)\n        return cls\ny = VALUE\nBox[y]\ny.sum().backward()\n",
    "format protocol": "class Box:\n    def __init__(self, t):\n        self.t = t\n    def __format__(self, spec):\n        self.t.add_(1)\n        return ''\ny = VALUE\nf'{Box(y)}'\ny.sum().backward()\n",
    "del of an attribute": "class Box:\n    def __init__(self):\n        self.t = VALUE\n    def __delattr__(self, name):\n        self.t.add_(1)\nb = Box()\ndel b.t\nb.t.sum().backward()\n",
    "matmul sign": "class Box:\n    def __init__(self, t):\n        self.t = t\n    def __imatmul__(self, k):\n        self.t.add_(k)\n        return self\nb = Box(VALUE)\nb @= 1\nb.t.sum().backward()\n",
    "async context": "import asyncio\nclass C:\n    async def __aenter__(self):\n        self.t.add_(1)\n    async def __aexit__(self, *e):\n        pass\nasync def main():\n    c = C()\n    c.t = y\n    async with c:\n        pass\ny = VALUE\nasyncio.run(main())\ny.sum().backward()\n",
    "exception carries it": "class E(Exception):\n    pass\ny = VALUE\ntry:\n    raise E(y)\nexcept E as e:\n    e.args[0].add_(1)\ny.sum().backward()\n",
    "iadd falls back to add": "class Box:\n    def __init__(self, t):\n        self.t = t\n    def __add__(self, k):\n        return Box(self.t + k)\nb = Box(VALUE)\nb += 1\nb.t.sum().backward()\n",
    "partialmethod": "import functools\nclass Box:\n    def change(self, t, k):\n        t.add_(k)\n    one = functools.partialmethod(change, k=1)\ny = VALUE\nBox().one(y)\ny.sum().backward()\n",
}
CALLERS: dict[str, str] = {
    "operator.setitem": "import operator\ny = VALUE\noperator.setitem(y, 0, 5.0)\ny.sum().backward()\n",
    "aten operator": "y = VALUE\ntorch.ops.aten.add_(y, 1)\ny.sum().backward()\n",
    "aten overload": "y = VALUE\ntorch.ops.aten.add_.Tensor(y, torch.ones(3))\ny.sum().backward()\n",
    "tree map": "from torch.utils._pytree import tree_map\ny = VALUE\ntree_map(lambda t: t.add_(1), {'a': [y]})\ny.sum().backward()\n",
    "starmap": "import itertools\ny = VALUE\nlist(itertools.starmap(torch.Tensor.add_, [(y, 1)]))\ny.sum().backward()\n",
    "groupby": "import itertools\ny = VALUE\nfor k, g in itertools.groupby([y], key=lambda t: 0):\n    for t in g:\n        t.add_(1)\ny.sum().backward()\n",
    "iter with sentinel": "y = VALUE\nn = [2]\ndef step():\n    n[0] -= 1\n    y.add_(1)\n    return n[0]\nfor _ in iter(step, 0):\n    pass\ny.sum().backward()\n",
    "sort key writes": "y = VALUE\nsorted([y], key=lambda t: t.add_(1).sum().item())\ny.sum().backward()\n",
    "max key writes": "y = VALUE\nmax([y, y], key=lambda t: t.add_(1).sum().item())\ny.sum().backward()\n",
    "accumulate": "import itertools\ny = VALUE\nlist(itertools.accumulate([y, 1, 2], lambda t, k: t.add_(k)))\ny.sum().backward()\n",
    "stop iteration value": "def g():\n    y.add_(1)\n    return y\n    yield\ny = VALUE\ndef outer():\n    r = yield from g()\n    yield r\nfor t in outer():\n    t.sum().backward()\n",
    "dunder setitem": "y = VALUE\ny.__setitem__(0, 1.0)\ny.sum().backward()\n",
    "out is itself": "y = VALUE\nwith torch.no_grad():\n    torch.add(y, 1, out=y)\ny.sum().backward()\n",
}
LAYERS: dict[str, str] = {
    "forward replaced on the object": "net = torch.nn.Identity()\nnet.forward = lambda t: t.add_(1)\ny = VALUE\nnet(y)\ny.sum().backward()\n",
    "forward replaced on the class": "class Net(torch.nn.Module):\n    def forward(self, t):\n        return t\nNet.forward = lambda self, t: t.add_(1)\ny = VALUE\nNet()(y)\ny.sum().backward()\n",
    "sequential append": "net = torch.nn.Sequential()\nnet.append(torch.nn.ReLU(inplace=True))\ny = VALUE\nnet(y)\ny.sum().backward()\n",
    "module copied": "import copy\nnet = copy.deepcopy(torch.nn.Sequential(torch.nn.ReLU(inplace=True)))\ny = VALUE\nnet(y)\ny.sum().backward()\n",
    "dropout in eval": "net = torch.nn.Dropout(0.5, inplace=True).eval()\ny = VALUE\nnet(y)\ny.sum().backward()\n",
    "dropout in train": "net = torch.nn.Dropout(0.5, inplace=True)\ny = VALUE\nz = net(y)\nz.sum().backward()\n",
    "batch norm buffers": "bn = torch.nn.BatchNorm1d(3)\ny = (VALUE).expand(4, 3) * torch.rand(4, 3)\nz = bn(y)\nbn.running_mean.add_(1)\nz.sum().backward()\n",
    "batch norm buffers in eval": "bn = torch.nn.BatchNorm1d(3).eval()\ny = (VALUE).expand(4, 3) * 1.0\nz = bn(y)\nz2 = bn(y + 1)\nbn.running_mean.add_(1)\nz.sum().backward()\n",
    "embedding max norm": "e = torch.nn.Embedding(4, 3, max_norm=1.0)\ny = VALUE\na = e(torch.tensor([0, 1]))\nb = e(torch.tensor([0, 1]))\n((a * b).sum() + y.sum()).backward()\n",
    "silu inplace": "y = VALUE\nz = torch.nn.SiLU(inplace=True)(y)\nz.sum().backward()\n",
    "relu6": "y = VALUE\ntorch.nn.ReLU6(inplace=True)(y)\ny.sum().backward()\n",
}
WINDOWS: dict[str, str] = {
    "broadcast_tensors": "y = VALUE\na, = torch.broadcast_tensors(y)\na.add_(1)\ny.sum().backward()\n",
    "atleast": "y = VALUE\ntorch.atleast_1d(y).add_(1)\ny.sum().backward()\n",
    "hsplit": "y = VALUE\ntorch.tensor_split(y, 1)[0].detach().add_(1)\ny.sum().backward()\n",
    "ravel": "y = VALUE\ny.ravel().add_(1)\ny.sum().backward()\n",
    "positive": "y = VALUE\n(+y).add_(1)\ny.sum().backward()\n",
    "cpu": "y = VALUE\ny.cpu().add_(1)\ny.sum().backward()\n",
    "type_as": "y = VALUE\ny.type_as(w).add_(1)\ny.sum().backward()\n",
    "einsum reorder": "y = (VALUE)[None].exp()\nz = torch.einsum('ij->ji', y)\nz.add_(1)\nz.sum().backward()\n",
    "pad sequence": "from torch.nn.utils.rnn import pad_sequence\ny = VALUE\np = pad_sequence([y, y])\np += 1\np.sum().backward()\n",
    "meshgrid": "y = VALUE\na, b = torch.meshgrid(y, y, indexing='ij')\nc = a * b\nc += 1\nc.sum().backward()\n",
    "squeeze then write": "y = (VALUE).unsqueeze(0)\nz = y.exp()\nz.squeeze_(0)\nz.add_(1)\nz.sum().backward()\n",
    "requires_grad_ result": "y = VALUE\ny.requires_grad_().add_(1)\ny.sum().backward()\n",
}
NOTHING_CHANGES: dict[str, str] = {
    "zero size write": "y = VALUE\ny[3:].add_(1)\ny.sum().backward()\n",
    "mask of nothing": "y = VALUE\ny[y > 1e9] = 0\ny.sum().backward()\n",
    "write same value": "y = VALUE\ny.copy_(y.detach())\ny.sum().backward()\n",
    "add zero in place": "y = VALUE\ny += 0\ny.sum().backward()\n",
    "mul by one in place": "y = VALUE\ny *= 1\ny.sum().backward()\n",
    "nan_to_num_": "y = VALUE\ny.nan_to_num_()\ny.sum().backward()\n",
}
HOOKS: dict[str, str] = {
    "tensor hook writes": "y = VALUE\nz = y * 1\nz.register_hook(lambda g: y.detach().add_(1) * 0 + g)\nz.sum().backward()\n",
    "dirty function": "class F(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, t):\n        ctx.mark_dirty(t)\n        return t.add_(1)\n    @staticmethod\n    def backward(ctx, g):\n        return g\ny = VALUE\nF.apply(y)\ny.sum().backward()\n",
    "double backward": "y = VALUE\n(g,) = torch.autograd.grad(y.sum(), w, create_graph=True)\ny.detach().add_(1)\n(g * 1).sum().backward() if g.requires_grad else None\n",
    "dual numbers": "import torch.autograd.forward_ad as fwAD\ny = VALUE\nwith fwAD.dual_level():\n    d = fwAD.make_dual(y, torch.ones(3))\ny += 1\ny.sum().backward()\n",
}

MORE: dict[str, dict[str, str]] = {
    "further protocols": PROTOCOLS,
    "callers": CALLERS,
    "layers": LAYERS,
    "windows": WINDOWS,
    "nothing changes": NOTHING_CHANGES,
    "hooks": HOOKS,
}
