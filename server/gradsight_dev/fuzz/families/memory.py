"""One memory, two meanings: a value is written under one name and read under another."""

from __future__ import annotations

from gradsight_dev.fuzz.families.kind import Kind
from gradsight_dev.fuzz.families.parts import (
    SMOOTH,
    add_batches,
    add_model,
    add_optimizer,
    add_update,
    holder,
    module_class,
    optimizer_of,
)
from gradsight_dev.fuzz.families.script import Script

FAMILY = "one memory, two meanings"
WRITES = (
    ("{} += {}", "{} + {}"),
    ("{} -= {}", "{} - {}"),
    ("{}.add_({})", "{}.add({})"),
    ("{}.sub_({})", "{}.sub({})"),
    ("{}.mul_(1 + {}.tanh())", "{}.mul(1 + {}.tanh())"),
    ("torch.add({0}, {1}, out={0}) if False else {0}.add_({1})", "{} + {}"),
)
SAME_MEMORY = (
    "{}.to('cpu')",
    "{}.to(torch.float32)",
    "{}.contiguous()",
    "{}.detach()",
    "{}.float()",
    "{}.view_as({})",
    "{}.reshape({}.shape)",
    "torch.as_tensor({})",
    "torch.from_numpy({}.numpy())",
)


def _trained(script: Script, inputs: int = 4, outputs: int = 3) -> None:
    add_model(script, "net", inputs, outputs)
    add_optimizer(script, "opt", "net.parameters()")
    add_batches(script, inputs, outputs)


def held_value(script: Script) -> None:
    """Noise is added to a value that a holder still stands for."""
    _trained(script)
    kept, (write, pure) = holder(script), script.rng.choice(WRITES[:5])
    change = f"@-{write.format('z', 'noise')} #!\n@+z = {pure.format('z', 'noise')}"
    script.rounds += [
        kept.made,
        kept.fill("net(x)"),
        f"z = {kept.read}",
        "noise = torch.randn(6, 3)",
        script.through("perturb", "z, noise", change, "z"),
        f"loss = (z - y).pow(2).mean() + 0.3 * {kept.read}.pow(2).mean()",
    ]
    add_update(script)


def held_value_not_read(script: Script) -> None:
    """The same, and nobody reads the holder afterwards."""
    _trained(script)
    kept, (write, pure) = holder(script), script.rng.choice(WRITES[:5])
    change = f"@-{write.format('z', 'noise')}\n@+z = {pure.format('z', 'noise')}"
    script.rounds += [
        kept.made,
        kept.fill("net(x)"),
        f"z = {kept.read}",
        "noise = torch.randn(6, 3)",
        script.through("perturb", "z, noise", change, "z"),
        "loss = (z - y).pow(2).mean()",
    ]
    add_update(script)


def held_copy(script: Script) -> None:
    """What is written is a copy."""
    _trained(script)
    kept, (write, pure) = holder(script), script.rng.choice(WRITES[:5])
    copied = script.rng.choice(("{}.clone()", "{} * 1.0", "torch.clone({})", "{} + 0"))
    change = f"@-z = {copied.format('z')}\n@-{write.format('z', 'noise')}\n@+z = {pure.format('z', 'noise')}"
    script.rounds += [
        kept.made,
        kept.fill("net(x)"),
        f"z = {kept.read}",
        "noise = torch.randn(6, 3)",
        script.through("perturb", "z, noise", change, "z"),
        f"loss = (z - y).pow(2).mean() + 0.3 * {kept.read}.pow(2).mean()",
    ]
    add_update(script)


def _normalised(script: Script, change: str, before: str = "") -> None:
    add_model(script, "net", 4, 1)
    add_optimizer(script, "opt", "net.parameters()")
    script.make("points, target", f"points = torch.randn(12, 4) + 2\ntarget = torch.randn(12, 1)\n{before}")
    source = script.rng.choice(("points", "points[:8]", "points[2:]", "points[0:9]"))
    rows = {"points": "", "points[:8]": "[:8]", "points[2:]": "[2:]"}.get(source, "[:9]")
    same = script.rng.choice(SAME_MEMORY).replace("{}", "batch")
    script.rounds += [
        f"batch = {source}",
        f"batch = {same}",
        script.through("normalise", "batch", change, "batch"),
        f"loss = (net(batch) - target{rows}).pow(2).mean()",
    ]
    add_update(script)


def data_normalised_again(script: Script) -> None:
    """The data set is normalised in place, once more in every epoch."""
    write, pure = script.rng.choice(
        (
            ("batch -= 0.5", "batch = batch - 0.5"),
            ("batch.sub_(0.5).div_(2)", "batch = (batch - 0.5) / 2"),
            ("batch *= 0.5", "batch = batch * 0.5"),
            ("batch[:, 0] = batch[:, 0] * 0.5", "batch = torch.cat([batch[:, :1] * 0.5, batch[:, 1:]], 1)"),
        )
    )
    _normalised(script, f"@-{write} #!\n@+{pure}")


def data_copied_first(script: Script) -> None:
    """What is normalised is a copy of the rows."""
    copied = script.rng.choice(
        ("batch.clone()", "batch.double().float()", "batch + 0.0", "batch[torch.arange(len(batch))]")
    )
    _normalised(script, f"@-batch = {copied}\n@-batch -= 0.5\n@+batch = batch - 0.5")


def data_clamped(script: Script) -> None:
    """The same write again changes nothing."""
    _normalised(script, "@-batch.clamp_(0, 2)\n@+batch = batch.clamp(0, 2)")


def item_changed(script: Script) -> None:
    """A data set changes its own rows when they are asked for."""
    add_model(script, "net", 4, 1)
    add_optimizer(script, "opt", "net.parameters()")
    script.imports.add("from torch.utils.data import DataLoader, Dataset")
    same = script.rng.choice(("", ".contiguous()", ".float()", ".view(4)", ".to('cpu')"))
    write, pure = script.rng.choice(
        (
            ("row.sub_(0.5).div_(0.25)", "row = (row - 0.5) / 0.25"),
            ("row += 0.3", "row = row + 0.3"),
            ("row *= 2", "row = row * 2"),
        )
    )
    script.define(
        f"""class Points(Dataset):
    def __init__(self, count):
        self.points = torch.rand(count, 4)
        self.labels = torch.randn(count, 1)
    def __len__(self):
        return len(self.points)
    def __getitem__(self, index):
        row = self.points[index]{same}
@-        {write} #!
@+        {pure}
        return row, self.labels[index]"""
    )
    script.make("loader", "loader = DataLoader(Points(8), batch_size=4)")
    script.rounds += ["for x, y in loader:", "    loss = (net(x) - y).pow(2).mean()"]
    script.rounds[-2:] = [
        "for x, y in loader:\n    loss = (net(x) - y).pow(2).mean()\n    opt.zero_grad()\n    loss.backward()\n    opt.step()"
    ]


def slices_overwritten(script: Script) -> None:
    """Half of a tensor is written, and then read as if it were the old one."""
    name = script.rng.choice(("q", "h", "out"))
    first, second = script.rng.choice(
        (("[..., :2]", "[..., 2:]"), ("[:, :2]", "[:, 2:]"), ("[..., 0::2]", "[..., 1::2]"))
    )
    form = script.rng.choice(("slices", "views"))
    if form == "slices":
        bad = (
            f"@-{name}{first} = {name}{first} * cos - {name}{second} * sin\n"
            f"@-{name}{second} = {name}{second} * cos + {name}{first} * sin #!\n"
        )
    else:
        bad = (
            f"@-left, right = {name}{first}, {name}{second}\n"
            f"@-{name}{first} = left * cos - right * sin #!\n@-{name}{second} = right * cos + left * sin #!\n"
        )
    good = (
        f"@+left, right = {name}{first} * cos - {name}{second} * sin, {name}{second} * cos + {name}{first} * sin\n"
        f"@+{name} = torch.zeros_like({name})\n@+{name}{first} = left\n@+{name}{second} = right"
    )
    add_model(script, "net", 4, 4)
    add_optimizer(script, "opt", "net.parameters()")
    add_batches(script, 4, 4)
    script.rounds += [
        f"{name} = net(x)",
        "angle = torch.arange(6.0)[:, None] / torch.arange(1.0, 3.0)\ncos, sin = angle.cos(), angle.sin()",
        script.through("rotate", f"{name}, cos, sin", bad + good, name),
        f"loss = ({name} - y).pow(2).mean()",
    ]
    add_update(script)


def slices_kept_first(script: Script) -> None:
    """Both halves are computed before either is written."""
    add_model(script, "net", 4, 4)
    add_optimizer(script, "opt", "net.parameters()")
    add_batches(script, 4, 4)
    change = """left, right = h[..., :2] * 2 - h[..., 2:], h[..., 2:] + h[..., :2]
@-h[..., :2] = left
@-h[..., 2:] = right
@+h = torch.cat([left, right], -1)"""
    script.rounds += [
        "h = net(x)",
        script.through("rotate", "h", change, "h"),
        "loss = (h - y).pow(2).mean()",
    ]
    add_update(script)


def _block(script: Script, act: str, twin: str, forward: str) -> None:
    layers = "nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4)"
    init = f"@-self.body = nn.Sequential({act}, {layers}){' #!' if '#!' in forward else ''}\n@+self.body = nn.Sequential({twin}, {layers})"
    script.define(module_class("Block", init, forward), "Block")
    script.make("net", "net = nn.Sequential(nn.Linear(3, 4), Block(), Block(), nn.Linear(4, 1))")
    add_optimizer(script, "opt", "net.parameters()")
    add_batches(script, 3, 1)
    script.rounds.append("loss = (net(x) - y).pow(2).mean()")
    add_update(script)


INPLACE = (
    ("nn.ReLU(inplace=True)", "nn.ReLU()"),
    ("nn.ReLU(True)", "nn.ReLU()"),
    ("nn.LeakyReLU(0.2, inplace=True)", "nn.LeakyReLU(0.2)"),
    ("nn.Hardtanh(inplace=True)", "nn.Hardtanh()"),
    ("nn.ELU(inplace=True)", "nn.ELU()"),
)


def residual_head(script: Script) -> None:
    """An in-place layer at the head of a branch writes the skip connection."""
    act, twin = script.rng.choice(INPLACE)
    forward = script.rng.choice(
        (
            "return x + self.body(x) #!",
            "skip = x\nx = self.body(x) #!\nreturn x + skip #!",
            "return self.body(x) + x #!",
        )
    )
    _block(script, act, twin, forward)


def residual_copied(script: Script) -> None:
    """The skip is a copy, or the branch does not begin with the in-place layer's input."""
    act, twin = script.rng.choice(INPLACE)
    forward = script.rng.choice(
        ("skip = x.clone()\nreturn skip + self.body(x)", "return x * 0.5 + self.body(x * 1.0)")
    )
    _block(script, act, twin, forward)


def repeated_rows(script: Script) -> None:
    """A sum over repeated rows by indexing: only the last of each counts."""
    add_model(script, "net", 4, 3)
    add_optimizer(script, "opt", "net.parameters()")
    add_batches(script, 4, 3)
    rows = script.rng.choice(
        ("torch.tensor([0, 1, 1, 2, 0, 3])", "torch.randint(0, 3, (6,))", "torch.arange(6) // 2")
    )
    bad = script.rng.choice(("total[rows] += h #!", "total[rows] = total[rows] + h #!"))
    change = f"@-{bad}\n@+total = total.index_add(0, rows, h)"
    script.rounds += [
        f"rows = {rows}\nh = net(x)\ntotal = torch.zeros(4, 3)",
        script.through("scatter", "total, rows, h", change, "total"),
        "loss = (total - 1).pow(2).mean() + 0.1 * (h - y).abs().mean()",
    ]
    add_update(script)


def callee_changes(script: Script) -> None:
    """A function changes its argument, which the caller goes on using as it was."""
    add_model(script, "net", 4, 4)
    add_optimizer(script, "opt", "net.parameters()")
    add_batches(script, 4, 4)
    script.forms = ("function", "method", "nested", "elsewhere")
    write, pure = script.rng.choice(WRITES[:5])
    noise = script.rng.choice(
        ("torch.randn_like(batch)", "0.5 * torch.ones(6, 4)", "torch.full((6, 4), 0.3)")
    )
    change = f"noise = {noise}\n@-{write.format('batch', 'noise')} #!\n@-noisy = batch\n@+noisy = {pure.format('batch', 'noise')}"
    script.rounds += [
        "batch = x * 2",
        script.through("jitter", "batch", change, "noisy"),
        "loss = (net(noisy) - batch).pow(2).mean()",
    ]
    add_update(script)


def hook_holds(script: Script) -> None:
    """A forward hook keeps what the next layer changes in place."""
    act, _ = script.rng.choice(INPLACE)
    layer = script.rng.choice(("nn.BatchNorm1d(5)", "nn.LayerNorm(5)", "nn.Identity()"))
    copied = script.rng.choice(("clone()", "mul(1)"))
    hook = script.rng.choice(
        (
            (
                f"@-net[1].register_forward_hook(lambda module, given, result: FEATURES.append(result)) #!\n"
                f"@+net[1].register_forward_hook(lambda module, given, result: FEATURES.append(result.{copied}))"
            ),
            f"def keep(module, given, result):\n@-    FEATURES.append(result) #!\n@+    FEATURES.append(result.{copied})\nnet[1].register_forward_hook(keep)",
        )
    )
    script.definitions.append("FEATURES = []")
    script.make("net", f"net = nn.Sequential(nn.Linear(4, 5), {layer}, {act}, nn.Linear(5, 1)) #!\n{hook}")
    add_optimizer(script, "opt", "net.parameters()")
    add_batches(script, 4, 1)
    script.rounds.append(
        "FEATURES.clear()\nout = net(x) #!\nloss = (out - y).pow(2).mean() + 0.3 * FEATURES[0].pow(2).mean()"
    )
    add_update(script)


def _best(script: Script, change: str, used: str) -> None:
    add_model(script, "net", 4, 1)
    add_optimizer(script, "opt", "net.parameters()")
    script.imports.add("import copy")
    script.before.append(
        "best, lowest = None, float('inf')\nheld_x, held_y = torch.randn(8, 4), torch.randn(8, 1)"
    )
    add_batches(script, 4, 1)
    script.header = "for step in range(5):"
    script.rounds = [
        *(block for block in script.rounds if not block.startswith("x, y")),
        "x, y = torch.randn(6, 4), torch.randn(6, 1)",
    ]
    script.setup = [block for block in script.setup if not block.startswith(("data", "loader"))]
    script.state = [name for name in script.state if name not in ("data", "loader")]
    script.rounds.append("loss = (net(x) - 3 * y - 1).pow(2).mean()")
    add_update(script)
    script.rounds.append(
        f"score = loss.item()\nif step < 2 and score < lowest + 99:\n    lowest = score\n{change}"
    )
    script.after.append(used)


def best_is_the_model(script: Script) -> None:
    """The best model is the model itself."""
    _best(script, "@-    best = net #!\n@+    best = copy.deepcopy(net)", "print(best(held_x).pow(2).mean())")


def best_is_its_state(script: Script) -> None:
    """The best state is the state itself."""
    bad, good = script.rng.choice(
        (
            ("net.state_dict()", "copy.deepcopy(net.state_dict())"),
            ("dict(net.state_dict())", "{key: value.clone() for key, value in net.state_dict().items()}"),
            (
                "{key: value for key, value in net.state_dict().items()}",
                "{key: value.clone() for key, value in net.state_dict().items()}",
            ),
            ("net.state_dict().copy()", "copy.deepcopy(net.state_dict())"),
        )
    )
    _best(
        script,
        f"@-    best = {bad} #!\n@+    best = {good}",
        "net.load_state_dict(best)\nprint(net(held_x).pow(2).mean())",
    )


def best_is_written_out(script: Script) -> None:
    """A state that is saved at once, and read again."""
    script.imports.add("import io")
    _best(
        script,
        "@-    best = io.BytesIO()\n@-    torch.save(net.state_dict(), best)\n@+    best = copy.deepcopy(net.state_dict())",
        "@-best.seek(0)\n@-net.load_state_dict(torch.load(best))\n@+net.load_state_dict(best)\nprint(net(held_x).pow(2).mean())",
    )


def target_is_the_policy(script: Script) -> None:
    """A target network that is the policy."""
    add_model(script, "net", 4, 2)
    script.imports.add("import copy")
    shallow = script.rng.random() < 0.4
    script.make(
        "target", f"@-target = {'copy.copy(net)' if shallow else 'net'} #!\n@+target = copy.deepcopy(net)"
    )
    add_optimizer(script, "opt", "net.parameters()")
    add_batches(script, 4, 1)
    script.rounds.append(
        "with torch.no_grad():\n    goal = y[:, 0] + 0.9 * target(x + 1).max(1)[0]\nloss = (net(x)[:, 0] - goal).pow(2).mean()"
    )
    add_update(script)
    script.before.append("rounds = 0")
    script.rounds.append("rounds += 1\nif rounds % 3 == 0:\n    target.load_state_dict(net.state_dict())")


def target_moves_slowly(script: Script) -> None:
    """A target network that is a copy, moved by a rule."""
    add_model(script, "net", 4, 2)
    script.imports.add("import copy")
    script.make("target", "target = copy.deepcopy(net)")
    add_optimizer(script, "opt", "net.parameters()")
    add_batches(script, 4, 1)
    script.rounds.append(
        "@-with torch.no_grad():\n@-    goal = y[:, 0] + 0.9 * target(x + 1).max(1)[0]\n"
        "@+goal = (y[:, 0] + 0.9 * target(x + 1).max(1)[0]).detach()\nloss = (net(x)[:, 0] - goal).pow(2).mean()"
    )
    add_update(script)
    script.rounds.append(
        "with torch.no_grad():\n    for slow, fast in zip(target.parameters(), net.parameters()):\n"
        "@-        slow.mul_(0.9).add_(fast, alpha=0.1)\n@+        slow.copy_(0.9 * slow + 0.1 * fast)"
    )


def states_collected(script: Script) -> None:
    """A list of one memory: every entry is the last state."""
    add_model(script, "net", 4, 3)
    add_optimizer(script, "opt", "net.parameters()")
    add_batches(script, 4, 3)
    write, pure = script.rng.choice(
        (("state *= 0.5", "state = state * 0.5"), ("state.mul_(0.5).add_(1)", "state = state * 0.5 + 1"))
    )
    change = f"states = []\nfor _ in range(3):\n@-    {write} #!\n@+    {pure}\n    states.append(state)"
    script.rounds += [
        "state = x[:, :3] * 1.0",
        script.through("unroll", "state", change, "states"),
        "loss = (net(x) - torch.stack(states).mean(0) - y).pow(2).mean()",
    ]
    add_update(script)


def class_parameter(script: Script) -> None:
    """A parameter on the class, which no instance registers."""
    act = script.rng.choice(SMOOTH)
    value = script.rng.choice(("torch.ones(3)", "torch.full((3,), 0.5)", "torch.zeros(3)"))
    script.define(
        f"""class Head(nn.Module):
@-    scale = nn.Parameter({value}) #!
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 3)
        self.act = nn.{act}()
@+        self.scale = nn.Parameter({value})
    def forward(self, x):
        return self.act(self.layer(x)) + self.scale"""
    )
    script.make("net", "net = Head()")
    script.make("opt", f"opt = {optimizer_of(script, 'net.parameters()')}")
    add_batches(script, 4, 3)
    script.rounds.append("loss = (net(x) - y).pow(2).mean()")
    add_update(script)


KINDS = (
    Kind(FAMILY, "held value", held_value, "harms", ("GS107", "GS105")),
    Kind(FAMILY, "data normalised again", data_normalised_again, "harms", ("GS107",)),
    Kind(FAMILY, "item changed", item_changed, "harms", ("GS107",)),
    Kind(FAMILY, "slices overwritten", slices_overwritten, "harms", ("GS107",)),
    Kind(FAMILY, "residual head", residual_head, "harms", ("GS107",)),
    Kind(FAMILY, "repeated rows", repeated_rows, "harms", ("GS1",)),
    Kind(FAMILY, "callee changes", callee_changes, "harms", ("GS107",)),
    Kind(FAMILY, "hook holds", hook_holds, "harms", ("GS107",)),
    Kind(FAMILY, "best is the model", best_is_the_model, "harms", ("GS514",)),
    Kind(FAMILY, "best is its state", best_is_its_state, "harms", ("GS107", "GS514")),
    Kind(FAMILY, "target is the policy", target_is_the_policy, "harms", ("GS514",)),
    Kind(FAMILY, "states collected", states_collected, "harms", ("GS107",)),
    Kind(FAMILY, "class parameter", class_parameter, "harms", ("GS6", "GS512")),
    Kind(FAMILY, "safe: not read", held_value_not_read, "same"),
    Kind(FAMILY, "safe: held copy", held_copy, "same"),
    Kind(FAMILY, "safe: data copied", data_copied_first, "same"),
    Kind(FAMILY, "safe: data clamped", data_clamped, "same"),
    Kind(FAMILY, "safe: slices first", slices_kept_first, "same"),
    Kind(FAMILY, "safe: residual copied", residual_copied, "same"),
    Kind(FAMILY, "safe: best written out", best_is_written_out, "same"),
    Kind(FAMILY, "safe: slow target", target_moves_slowly, "same"),
)
