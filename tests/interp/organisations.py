"""One training loop, organised in the ways in which programs organise it, with one fault each.

A *kind* is a fault beside the right form.  Both are written with roles (MODEL, OPTIMIZER, ...), which an *organisation* turns
into a program: a script that makes everything, a function that is given everything, a class that holds it, a `main` that has
it from files and factories that are not there, a method that is called for each batch.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from textwrap import dedent, indent

NAMES = {
    "MODEL": "model", "OPTIMIZER": "optimizer", "CRITERION": "criterion", "LOADER": "loader", "SCHEDULER": "scheduler",
    "SCALER": "scaler", "EXTRA": "extra", "TARGET": "target_net", "DISC": "disc", "DISC_OPTIMIZER": "disc_optimizer",
}  # fmt: skip
ROLES = re.compile(r"\b(" + "|".join(NAMES) + r")\b")
IMPORTS = "import copy\nimport torch\nfrom torch import nn\nimport torch.nn.functional as F\n"


@dataclass(frozen=True)
class Kind:
    """A fault: what is said of it, and what the right form is made into to get it."""

    code: str
    right: str
    wrong: str
    is_loop: bool = True
    """Whether what is in the loop is all, so that a method can do it for each batch."""


LOOP = dedent("""
    MODEL.train()
    for x, y in LOADER:
        OPTIMIZER.zero_grad()
        out = MODEL(x)
        loss = CRITERION(out, y)
        loss.backward()
        OPTIMIZER.step()
""").lstrip()
SCALED = LOOP.replace(
    "    loss.backward()\n    OPTIMIZER.step()\n",
    "    SCALER.scale(loss).backward()\n    SCALER.unscale_(OPTIMIZER)\n"
    "    torch.nn.utils.clip_grad_norm_(MODEL.parameters(), 1.0)\n"
    "    SCALER.step(OPTIMIZER)\n    SCALER.update()\n",
)
CLIPPED = LOOP.replace(
    "    OPTIMIZER.step()\n",
    "    torch.nn.utils.clip_grad_norm_(MODEL.parameters(), 1.0)\n    OPTIMIZER.step()\n",
)
EXTRA = LOOP.replace("CRITERION(out, y)", "CRITERION(out, y) + 0.1 * EXTRA(out)")
PER_ITEM = LOOP.replace("CRITERION(out, y)", 'F.cross_entropy(out, y, reduction="none").mean()')
CLASSES = LOOP.replace("CRITERION(out, y)", "F.cross_entropy(out, y)")
GRADIENT = LOOP.replace(
    "    loss = CRITERION(out, y)\n",
    "    x.requires_grad_(True)\n    out = MODEL(x)\n"
    "    slope = torch.autograd.grad(out.sum(), x, create_graph=True)[0]\n"
    "    loss = CRITERION(out, y) + slope.norm()\n",
)
BOOTSTRAP = LOOP.replace(
    "    out = MODEL(x)\n    loss = CRITERION(out, y)\n",
    "    with torch.no_grad():\n        target = y + 0.99 * TARGET(x).max(1).values\n"
    "    loss = F.mse_loss(MODEL(x).max(1).values, target)\n",
)
SQUASHED = LOOP.replace("MODEL(x)\n", "torch.sigmoid(MODEL(x))\n    out = out + 1\n")
SHRUNK = LOOP + indent(
    dedent("""
        with torch.no_grad():
            for p in MODEL.parameters():
                p.mul_(0.99)
    """).lstrip(),
    "    ",
)
RETAINED = LOOP.replace(
    "    loss.backward()\n", "    out.retain_grad()\n    loss.backward()\n    print(out.grad.norm())\n"
)
NORMS = LOOP.replace(
    "    OPTIMIZER.step()\n",
    "    print(sum(p.grad.norm() for p in MODEL.parameters()))\n    OPTIMIZER.step()\n",
)
ADVERSARIES = dedent("""
    for x, y in LOADER:
        fake = MODEL(x)
        DISC_OPTIMIZER.zero_grad()
        real_loss = F.softplus(-DISC(y)).mean()
        fake_loss = F.softplus(DISC(fake.detach())).mean()
        (real_loss + fake_loss).backward()
        DISC_OPTIMIZER.step()
        OPTIMIZER.zero_grad()
        loss = F.softplus(-DISC(fake)).mean()
        loss.backward()
        OPTIMIZER.step()
""").lstrip()
WINDOWS = dedent("""
    MODEL.train()
    for i, (x, y) in enumerate(LOADER):
        loss = CRITERION(MODEL(x), y) / 4
        loss.backward()
        if (i + 1) % 4 == 0:
            OPTIMIZER.step()
            OPTIMIZER.zero_grad()
""").lstrip()
CLOSURE = dedent("""
    MODEL.train()
    for x, y in LOADER:
        def closure():
            OPTIMIZER.zero_grad()
            loss = CRITERION(MODEL(x), y)
            loss.backward()
            return loss
        OPTIMIZER.step(closure)
""").lstrip()
AVERAGED = (
    LOOP.replace("MODEL.train()\n", "ema = copy.deepcopy(MODEL)\nMODEL.train()\n")
    + "    with torch.no_grad():\n        for a, b in zip(ema.parameters(), MODEL.parameters()):\n"
    "            a.mul_(0.99).add_(b, alpha=0.01)\n"
)
TOTAL = f"total = 0\n{LOOP}    total += loss.item()\nprint(total)\n"
KEPT = f"outs = []\n{LOOP}    outs.append(out.detach())\n"
BEST = (
    f"best = None\n{LOOP}    if best is None or loss.item() < 0.1:\n"
    "        best = copy.deepcopy(MODEL.state_dict())\nMODEL.load_state_dict(best)\n"
)
FROZEN = LOOP.replace(
    "MODEL.train()\n", "MODEL.requires_grad_(False)\nMODEL.head.requires_grad_(True)\nMODEL.train()\n"
)


def kind(code: str, right: str, old: str, new: str, is_loop: bool = True) -> Kind:
    """The fault that one change of the right form makes."""
    assert old in right
    return Kind(code, right, right.replace(old, new), is_loop)


KINDS: Mapping[str, Kind] = {
    "never cleared": kind("GS501", LOOP, "    OPTIMIZER.zero_grad()\n", ""),
    "cleared in between": kind(
        "GS502",
        LOOP,
        "    OPTIMIZER.zero_grad()\n    out = MODEL(x)\n    loss = CRITERION(out, y)\n    loss.backward()\n",
        "    out = MODEL(x)\n    loss = CRITERION(out, y)\n    loss.backward()\n    OPTIMIZER.zero_grad()\n",
    ),
    "never stepped": kind("GS512", LOOP, "    OPTIMIZER.step()\n", "    pass\n"),
    "loss made anew": kind("GS206", LOOP, "CRITERION(out, y)", "torch.tensor(CRITERION(out, y), requires_grad=True)"),
    "through NumPy": kind("GS202", LOOP, "MODEL(x)\n", "torch.from_numpy(MODEL(x).detach().cpu().numpy())\n"),
    "detached": kind("GS203", LOOP, "MODEL(x)\n", "MODEL(x).detach()\n"),
    "data of the result": kind("GS203", LOOP, "MODEL(x)\n", "MODEL(x).data\n"),
    "number": kind("GS202", LOOP, "    loss.backward()", "    loss = loss.item()\n    loss.backward()"),
    "without gradients": kind("GS204", LOOP, "    out = MODEL(x)\n", "    with torch.no_grad():\n        out = MODEL(x)\n"),
    "chosen": kind("GS205", LOOP, "CRITERION(out, y)", "CRITERION(out.argmax(1).float(), y)"),
    "rounded": kind("GS208", LOOP, "CRITERION(out, y)", "CRITERION(out.round(), y)"),
    "detached term": kind("GS203", EXTRA, "EXTRA(out)", "EXTRA(out).detach()"),
    "number as a term": kind("GS202", EXTRA, "EXTRA(out)", "EXTRA(out).item()"),
    "twice": kind("GS402", LOOP, "    loss.backward()\n", "    loss.backward()\n    loss.backward()\n"),
    "penalty without a graph": kind("GS402", GRADIENT, ", create_graph=True", ""),
    "saved and written": kind("GS101", SQUASHED, "out = out + 1", "out += 1"),
    "weights written too early": kind(
        "GS106",
        LOOP,
        "    loss.backward()\n",
        "    with torch.no_grad():\n        for p in MODEL.parameters():\n            p.mul_(0.99)\n    loss.backward()\n",
    ),
    "weights written in time": Kind("", SHRUNK, SHRUNK),
    "probabilities for logits": kind("GS605", CLASSES, "(out, y)", "(F.softmax(out, dim=1), y)"),
    "one loss per item": kind("GS401", PER_ITEM, ".mean()", ""),
    "clipped before": kind(
        "GS513",
        LOOP,
        "    loss.backward()\n",
        "    torch.nn.utils.clip_grad_norm_(MODEL.parameters(), 1.0)\n    loss.backward()\n",
    ),
    "clipped after": kind(
        "GS513",
        LOOP,
        "    OPTIMIZER.step()\n",
        "    OPTIMIZER.step()\n    torch.nn.utils.clip_grad_norm_(MODEL.parameters(), 1.0)\n",
    ),
    "clipped in time": Kind("", CLIPPED, CLIPPED),
    "scaled and clipped": kind("GS507", SCALED, "    SCALER.unscale_(OPTIMIZER)\n", ""),
    "scale never updated": kind("GS511", SCALED, "    SCALER.update()\n", "", is_loop=False),
    "schedule first": kind("GS506", LOOP, "    OPTIMIZER.step()\n", "    SCHEDULER.step()\n    OPTIMIZER.step()\n"),
    "gradient of a result": kind("GS301", RETAINED, "    out.retain_grad()\n", ""),
    "gradients read too late": kind(
        "GS304",
        NORMS,
        "    print(sum(p.grad.norm() for p in MODEL.parameters()))\n    OPTIMIZER.step()\n",
        "    OPTIMIZER.step()\n    OPTIMIZER.zero_grad()\n    print(sum(p.grad.norm() for p in MODEL.parameters()))\n",
    ),
    "target that learns": kind("GS290", BOOTSTRAP, "    with torch.no_grad():\n        target = y + 0.99 * TARGET", "    target = y + 0.99 * MODEL"),
    "window cleared inside": kind(
        "GS502",
        WINDOWS,
        "    loss = CRITERION(MODEL(x), y) / 4\n    loss.backward()\n    if (i + 1) % 4 == 0:\n        OPTIMIZER.step()\n        OPTIMIZER.zero_grad()\n",
        "    OPTIMIZER.zero_grad()\n    loss = CRITERION(MODEL(x), y) / 4\n    loss.backward()\n    if (i + 1) % 4 == 0:\n        OPTIMIZER.step()\n",
        is_loop=False,
    ),
    "closure that clears nothing": kind("GS501", CLOSURE, "        OPTIMIZER.zero_grad()\n", ""),
    "generator cut off": kind("GS203", ADVERSARIES, "-DISC(fake)", "-DISC(fake.detach())"),
    "generator not cut off": kind("GS402", ADVERSARIES, "DISC(fake.detach())", "DISC(fake)"),
    "critic never cleared": kind("GS501", ADVERSARIES, "    DISC_OPTIMIZER.zero_grad()\n", ""),
    "critic never stepped": kind("GS512", ADVERSARIES, "    DISC_OPTIMIZER.step()\n", ""),
    "average of itself": kind("GS514", AVERAGED, "copy.deepcopy(MODEL)", "MODEL", is_loop=False),
    "total with graphs": kind("GS404", TOTAL, "loss.item()", "loss", is_loop=False),
    "list with graphs": kind("GS404", KEPT, "out.detach()", "out", is_loop=False),
    "best that goes on": kind("GS107", BEST, "copy.deepcopy(MODEL.state_dict())", "MODEL.state_dict()", is_loop=False),
    "flag of a module": kind("GS602", FROZEN, "MODEL.requires_grad_(False)\nMODEL.head", "MODEL.requires_grad = False\nMODEL.head", is_loop=False),
    "misspelt flag": kind("GS602", FROZEN, "MODEL.requires_grad_(False)\nMODEL.head", "MODEL.require_grad = False\nMODEL.head", is_loop=False),
}  # fmt: skip


def used(text: str) -> list[str]:
    """The roles of a text, in the order of their names above."""
    found = set(ROLES.findall(text))
    return [role for role in NAMES if role in found]


def named(text: str, prefix: str = "") -> str:
    return ROLES.sub(lambda match: prefix + NAMES[match[1]], text)


NET = dedent("""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = nn.Sequential(nn.Linear(8, 8), nn.ReLU())
            self.head = nn.Linear(8, 3)

        def forward(self, x):
            return self.head(self.encoder(x))

    model = Net()
""").strip()
DATA = "torch.utils.data.TensorDataset(torch.randn(32, 8), torch.randint(3, (32,)))"
MADE = {
    "MODEL": NET,
    "OPTIMIZER": "optimizer = torch.optim.Adam(model.parameters())",
    "CRITERION": "criterion = nn.CrossEntropyLoss()",
    "LOADER": f"loader = torch.utils.data.DataLoader({DATA}, 4)",
    "SCHEDULER": "scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 10)",
    "SCALER": "scaler = torch.amp.GradScaler()",
    "EXTRA": "def extra(out):\n    return out.abs().mean()",
    "TARGET": "target_net = copy.deepcopy(model)",
    "DISC": "disc = nn.Linear(3, 1)",
    "DISC_OPTIMIZER": "disc_optimizer = torch.optim.Adam(disc.parameters())",
}
BUILT = {
    **MADE,
    "MODEL": "model = build_model(args)",
    "OPTIMIZER": "optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)",
    "LOADER": "loader = get_loader(args)",
    "EXTRA": "extra = ExtraLoss(args)",
    "DISC": "disc = build_disc(args)",
}


def script(kind: Kind, text: str) -> str:
    return IMPORTS + "\n".join(MADE[role] for role in used(text)) + "\n" + named(text)


def function(kind: Kind, text: str) -> str:
    given = ", ".join(NAMES[role] for role in used(text))
    return f"{IMPORTS}def train({given}):\n{indent(named(text), '    ')}"


def trainer(kind: Kind, text: str) -> str:
    names = [NAMES[role] for role in used(text)]
    kept = "".join(f"        self.{name} = {name}\n" for name in names)
    body = indent(named(text, "self."), " " * 8)
    return f"{IMPORTS}class Trainer:\n    def __init__(self, {', '.join(names)}):\n{kept}    def run(self):\n{body}"


def main(kind: Kind, text: str) -> str:
    made = "\n".join(BUILT[role] for role in used(text)) + "\n"
    absent = "from .models import build_model, build_disc\nfrom .data import get_loader, ExtraLoss\n"
    return f"{IMPORTS}{absent}def main(args):\n{indent(made + named(text), '    ')}"


def each_batch(kind: Kind, text: str) -> str:
    """A method that an object calls for each batch, with what factories have made."""
    if not kind.is_loop:
        return ""
    before, _, rest = text.partition("for x, y in LOADER:\n")
    body = before + dedent(rest)
    parts = [role for role in used(body) if role not in ("MODEL", "OPTIMIZER")]
    kept = "".join(f"        self.{NAMES[role]} = make_{NAMES[role]}(args)\n" for role in parts)
    return (
        f"{IMPORTS}class Agent:\n    def __init__(self, args):\n        self.model = make_model(args)\n"
        "        self.optimizer = torch.optim.Adam(self.model.parameters())\n"
        f"{kept}    def update(self, batch):\n        x, y = batch\n{indent(named(body, 'self.'), ' ' * 8)}"
    )


ORGANISATIONS: Mapping[str, Callable[[Kind, str], str]] = {
    "script": script,
    "function": function,
    "class": trainer,
    "main": main,
    "each batch": each_batch,
}
