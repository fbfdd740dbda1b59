"""What cards say about tensor names is what torch says, on every program of the collection."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradsight.analysis import Analyser
from gradsight.model.source import Source
from gradsight_dev.attack_protocols import MORE
from gradsight_dev.attacks import HEAD, VALUES
from gradsight_dev.fuzz_hovers import HoverTally, examine
from gradsight_dev.hover_oracle import Verdict, compare, compare_saved, memories, observations

pytestmark = pytest.mark.facts

FIXTURES = Path(__file__).parents[2] / "fixtures"
FOLDERS = ("programs", "references", "differential", "truths")
PROGRAMS = sorted(path for folder in FOLDERS for path in (FIXTURES / folder).glob("*.py"))
BATCH = 40


def check(path: Path) -> tuple[Verdict, Verdict]:
    """What torch says of the claims about a program's names, and of those about who keeps its tensors for backward."""
    return check_text(path.read_text(encoding="utf-8"), str(path))


def check_text(text: str, path: str) -> tuple[Verdict, Verdict]:
    lines = text.split("\n")
    cards = Analyser().cards(Source(path, text), 1, len(lines))
    return (
        compare(cards, observations(text, path), lines),
        compare_saved(cards, memories(text, path), lines),
    )


WINDOWS = {
    "several views with grad mode off": "with torch.no_grad():\n    first, second = x.split([1, 2])\nprint(first, second)\n",
    "halves with grad mode off": "with torch.inference_mode():\n    first, second = x.chunk(2)\n    print(second)\n",
    "computed from a view with grad mode off": "with torch.no_grad():\n    row = x[0]\nlater = row * 2\nprint(later)\n",
    "einsum that only reorders": 'other = torch.einsum("ij->ji", x)\nother += 1\nprint(x, other)\n',
    "detached after a write": "row = x.sum(1, keepdim=True).squeeze(1)\nrow.add_(1)\nrow.detach_()\nprint(row)\n",
    "back from numpy, further on": (
        "part = torch.nn.functional.pad(x, (1, 1))[..., 1:-1]\nagain = torch.from_numpy(part.detach().numpy())\n"
        "again.add_(x)\nwave = torch.cos(again)\nprint(part, wave)\n"
    ),
    "a name that a checkpoint reads again": (
        "from torch.utils.checkpoint import checkpoint\npart = x / 3\n"
        "later = checkpoint(lambda t: t * part, x, use_reentrant=False)\npart = x.exp()\nlater.sum().backward()\n"
    ),
    "an attribute that a checkpoint writes again": (
        "from torch.utils.checkpoint import checkpoint\n\n\nclass Box:\n    seen = torch.zeros(3)\n\n\n"
        "def part(t):\n    Box.seen.add_(t.detach()[0])\n    print(Box.seen)\n    return t.exp()\n\n\n"
        "checkpoint(part, x, use_reentrant=False).sum().backward()\n"
    ),
    "whole dimensions that an ellipsis stands for": (
        "flat = x.flatten().clone()\nflat += 1\nwhole, rest = torch.ravel(flat[...]), torch.ravel(flat[..., 1:])\n"
        "print(whole, rest)\n"
    ),
    "an ellipsis behind, before and between numbers": (
        "cube = torch.stack([x, x])\ncube += 1\nlast, row = cube[..., 0, :].reshape(-1), cube[0, 1, ...].reshape(-1)\n"
        "part = cube[0, 1:, ...].reshape(-1)\nprint(last, row, part)\n"
    ),
    "a copy of what shows one element several times": (
        "cube = x.expand(2, *x.shape).clone()\ncube += 1\nrow, part = cube[0, 1].reshape(-1), cube[1].t().clone().reshape(-1)\n"
        "print(cube.view(-1), row, part)\n"
    ),
    "rows that a starred name takes": (
        "part = x.view(x.shape)\nfirst, *rest = part\nwith torch.no_grad():\n    rest[0].zero_()\nprint(part)\n"
    ),
    "what is done after an error": (
        "part = x.abs()\nw = torch.ones(3, requires_grad=True)\ntry:\n    w *= 2\n    part *= 2\nfinally:\n    print(part)\n"
    ),
    "memory of another size": "part = torch.zeros(2)\npart.set_(torch.zeros(3, 3))\nprint(part)\n",
    "a buffer that is loaded": (
        "class Net(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.register_buffer('seen', torch.zeros(3, 3))\n\n    def forward(self, given):\n        return given * self.seen\n\n"
        "net = Net()\nfirst = net(x)\nnet.load_state_dict(net.state_dict())\nsecond = net(x)\n"
    ),
    "the gradient of what was filled": (
        "w = torch.rand(3, requires_grad=True)\npart = w * 2\npart.zero_()\nslopes = torch.autograd.grad(part.pow(2).sum(), [w], create_graph=True)\n"
        "for slope in slopes:\n    print(slope.pow(2))\n"
    ),
    "a view of a leaf that is not written": (
        "w = torch.rand(3, requires_grad=True)\nrow = w[:2]\nif x.sum() < 0:\n    row.relu_()\n"
        "if x.mean() > 0:\n    print(w)\nprint(x)\n"
    ),
    "a name that was bound in an arm before": (
        "import sys\n\nshort = len(sys.argv) < 30\npart = x + 1\nif x.sum() < 0:\n    print(part)\nelse:\n    part = torch.relu(part)\n"
        "if short:\n    again = part\n    print(again, part)\n"
    ),
    "kept only where another condition goes that way": (
        "import sys\n\nw = torch.randn(4).requires_grad_(True)\nenergy = w if sys.argv[1:] else w * w.clone()\n"
        "feat = energy if x.sum() < 0 else w ** 2\nemb = torch.clamp(feat, max=1.0)\nproj = feat * emb\nprint(proj)\n"
    ),
    "kept under one name or the other": (
        "import sys\n\nlogits = x if x.sum() < 0 else torch.relu(x)\nshort = len(sys.argv) < 30\nif short:\n    x = x.exp()\n"
        "loss = torch.nn.functional.mse_loss(x, logits)\nprint(loss)\n"
    ),
    "the gradient that a hook is given": (
        "part = x.exp()\npart.register_hook(lambda grad: grad * 0.5)\nloss = part.std()\n"
        "torch.autograd.grad(loss, [x], create_graph=True)\nloss.backward()\n"
    ),
    "what a later round adds": (
        "class Steps:\n    def __init__(self):\n        self.count, self.last = 0, None\n\n    def update(self, given):\n"
        "        self.count += 1\n        if self.count < 14:\n            return 0.0\n        loss = given.pow(2).mean()\n"
        "        if self.last is not None:\n            loss = loss + (given.mean() - self.last).pow(2)\n        loss.backward()\n"
        "        if self.count % 13 == 0:\n            self.last = given.mean().detach()\n        return loss.item()\n\n\n"
        "steps, net = Steps(), torch.nn.Linear(3, 3)\nfor index in range(30):\n    value = steps.update(net(torch.rand(3)))\n"
        "    if not (index + 1) % 5:\n        print(value)\n"
    ),
    "one write in either arm": (
        "import random\nimport sys\n\nif len(sys.argv) > 30:\n    other = x if len(sys.argv) > 30 else x * x\n    torch.sigmoid_(other)\n"
        "part = x.narrow(0, 0, 2)\ntraining = random.random() < 1.0\nif training:\n    print(x)\n"
        "if not training:\n    part.t()[0] = 3\n    flat = x.reshape(-1)\n    print(flat)\nprint(part)\n"
    ),
    "behind a gradient that is None": (
        "net = torch.nn.Linear(3, 3)\nw = torch.rand(2, 3, requires_grad=True)\nfor index in range(4):\n    net(w).sum().backward()\n"
        "    if index == 2:\n        w = w + 0.1 * w.grad\n    w.data.add_(0.1 * w.grad.sign())\n    w.grad.zero_()\n"
    ),
    "the gradient of a bias behind which nothing bends": (
        "net = torch.nn.Linear(3, 3)\ngrads = torch.autograd.grad(net(x).mean(), list(net.parameters()), create_graph=True)\n"
        "for slope in grads:\n    print(slope * 2)\n"
    ),
    "a generator that writes what it hands out": (
        "def stream(t, rounds):\n    for _ in range(rounds):\n        yield t\n        t.add_(1)\n\n"
        "part = x * 3\npart[1:] *= 2\n*_, last = stream(part, 3)\nprint(last)\n"
    ),
    "a shape that an arm changes": "part = x\nif x.sum() < 0:\n    part = x[:2]\nif x.mean() > 0:\n    print(part)\nprint(part)\n",
    "a shape that grows in a loop": (
        "part = x[:1]\nfor _ in range(30):\n    part = torch.cat([part, x[:1]])\n    print(part)\nprint(part, x)\n"
    ),
    "a shape that is changed in place": (
        "row = torch.rand(1, 3)\nprint(row)\nrow.squeeze_(0)\nprint(row)\nrow.resize_(6)\nprint(row)\nrow.data = torch.rand(5)\nprint(row, x)\n"
    ),
    "a shape that a later iteration has": (
        "for size in range(20):\n    part = torch.zeros(size + 1)\n    if size == 15:\n        part = part[:3]\n    print(part, x)\n"
    ),
    "a set holds each name once": (
        "names = {name for pair in [('a', 'b'), ('b', 'c')] for name in pair}\nrow = torch.zeros(len(names))\nprint(row, x)\n"
    ),
    "the gradient of a maximum, behind which nothing bends": (
        "w = torch.rand(3, requires_grad=True)\npart = w * 3\n"
        "slopes = torch.autograd.grad(part.max() + part.clamp(max=1).sum(), [w], create_graph=True)\n"
        "for slope in slopes:\n    print(slope * 2)\nquarter = torch.quantile(w * 2, 0.5)\n"
        "(slope,) = torch.autograd.grad(quarter, w, create_graph=True)\nprint(slope * 2)\n"
    ),
    "the gradient of a maximum of something bent": (
        "w = torch.rand(3, requires_grad=True)\n(slope,) = torch.autograd.grad(w.exp().max(), w, create_graph=True)\nprint(slope * 2)\n"
    ),
    "shapes that an except waits for": (
        "try:\n    part = x[0] @ torch.zeros(4)\nexcept RuntimeError:\n    part = torch.zeros(5)\nprint(part)\n"
        "try:\n    other = x + torch.zeros(2)\nexcept Exception:\n    other = x[:1]\nprint(other)\n"
    ),
    "shapes that fit where an except waits": (
        "try:\n    part = x @ torch.zeros(3, 2)\nexcept RuntimeError:\n    part = torch.zeros(5)\nprint(part)\n"
        "try:\n    other = x + torch.zeros(3, 1)\nexcept RuntimeError:\n    other = x[:1]\nprint(other)\n"
    ),
    "a view that is turned in place": "row = torch.stack([x, x])[1]\nrow.swapaxes_(0, 1)\nrow[torch.arange(2), 0] = 1.5\nprint(row)\n",
}


@pytest.mark.parametrize("name", WINDOWS)
def test_no_card_of_a_window_says_what_torch_denies(name: str) -> None:
    head = "import torch\n\nx = torch.rand(3, 3, requires_grad=True) * 2\n"
    names, keepers = check_text(head + WINDOWS[name], "windows.py")
    assert names.lies + keepers.lies == []
    assert names.claims > 3


CALLS = {
    "a view made with grad mode off, of which torch says that it requires grad": (
        "given = torch.rand(3, requires_grad=True)\nfirst, second = given.chunk(2)\nwith torch.no_grad():\n    part = first[:]\n"
        "for _ in range(2):\n    part = torch.log(part.abs() + 1)\n"
    ),
    "a layer whose hook gives it a copy": (
        "layer = torch.nn.Linear(3, 3)\nlayer.register_forward_pre_hook(lambda module, given: (given[0].clone(),))\n"
        "given = torch.rand(3, 3)\nfound = layer(given)\n"
    ),
    "a sign between a tensor and one that is not known": (
        "slope = torch.func.jvp(torch.sin, (x,), (x,))[1]\nratio = slope / (x ** 2 + 1)\nprint(ratio)\n"
    ),
    "a view made with grad mode off": (
        "with torch.no_grad():\n    window = x[...]\n    weight = x * 3\n"
        "    with torch.enable_grad():\n        found = torch.nn.functional.linear(window, weight)\n"
    ),
    "a row with one layer of torch's": (
        "class Scaled(torch.nn.Module):\n    def forward(self, given):\n        return given * 2\n\n\n"
        "net = torch.nn.Sequential(Scaled(), torch.nn.ReLU(), Scaled())\nlayer = torch.nn.ReLU()\nfound = net(x)\nlast = layer(x)\n"
    ),
    "the weights of every head": (
        "layer = torch.nn.MultiheadAttention(4, 2)\ngiven = torch.rand(3, 2, 4, requires_grad=True)\n"
        "found, weights = layer(given, given, given, average_attn_weights=False)\n"
    ),
    "the mean of the weights": (
        "layer = torch.nn.MultiheadAttention(4, 2)\ngiven = torch.rand(3, 2, 4, requires_grad=True)\n"
        "found, weights = layer(given, given, given)\n"
    ),
    "what comes after a refused write": (
        "def larger(one, other):\n    return torch.maximum(one, other)\n\n"
        "w = torch.rand(3, 3, requires_grad=True)\nfirst = larger(x, w)\nw.mul_(2)\nlast = larger(first, w)\n"
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_no_card_of_a_call_says_what_torch_denies(name: str) -> None:
    tally = HoverTally()
    text = "import torch\n\nx = torch.rand(3, 3, requires_grad=True) * 2\n" + CALLS[name]
    examine(text, "calls.py", tally, "line ")
    assert tally.denied == []
    assert tally.calls > 0


@pytest.mark.parametrize("kind", MORE)
def test_no_card_in_a_disguise_says_what_torch_denies(kind: str) -> None:
    tally = HoverTally()
    for name, body in MORE[kind].items():
        text = HEAD + body.replace("VALUE", VALUES["twin"])
        examine(text, "attack.py", tally, f"{name}, line ")
    assert tally.denied == []
    assert tally.names > 50


@pytest.mark.parametrize("first", range(0, len(PROGRAMS), BATCH))
def test_no_card_says_what_torch_denies(first: int) -> None:
    programs = PROGRAMS[first : first + BATCH]
    names, keepers = zip(*map(check, programs))
    for verdicts, least in ((names, 5 * BATCH), (keepers, BATCH)):
        lies = [f"{path.name}:{lie}" for path, one in zip(programs, verdicts) for lie in one.lies]
        assert lies == []
        assert sum(one.claims for one in verdicts) > least or first + BATCH > len(PROGRAMS)


@pytest.mark.parametrize("path", PROGRAMS[::25], ids=lambda path: path.stem)
def test_cards_after_edits_are_those_of_a_fresh_analysis(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    analyser = Analyser()
    places = [at for at in range(len(text)) if text.startswith("\n", at)]
    for step, place in enumerate(places[:: max(1, len(places) // 6)]):
        inserted = ("\n", "\n# é", "\nextra = 1", "\n\n")[step % 4]
        edited = text[:place] + inserted + text[place:]
        length = edited.count("\n") + 1
        source = Source(str(path), edited)
        analyser.analyze(source)
        assert analyser.cards(source, 1, length) == Analyser().cards(source, 1, length)
