"""Checkpoint, vmap, func and views: where recomputation, batching and shared memory meet a write."""

from __future__ import annotations

from gradsight_dev.fuzz.families.kind import Kind
from gradsight_dev.fuzz.families.marked import joined
from gradsight_dev.fuzz.families.parts import add_batches, add_model, add_optimizer, add_update, module_class
from gradsight_dev.fuzz.families.script import Script

FAMILY = "checkpoint, vmap, func, views"
CHECKPOINT = "from torch.utils.checkpoint import checkpoint"


def _checkpointed(script: Script, block: str, *, loss: str = "(head(hidden) - y).pow(2).mean()") -> None:
    script.imports.add(CHECKPOINT)
    add_model(script, "net", 4, 4, deep=True)
    add_model(script, "head", 4, 1)
    add_optimizer(script, "opt", "[*net.parameters(), *head.parameters()]")
    add_batches(script, 4, 1)
    script.rounds += [block, f"loss = {loss}"]
    add_update(script)


def reentrant_without_grad(script: Script) -> None:
    """A reentrant checkpoint whose input needs no gradient."""
    bad = script.rng.choice(("checkpoint(net, x)", "checkpoint(net, x, use_reentrant=True)"))
    body = f"@-hidden = {bad} #!\n@+hidden = checkpoint(net, x, use_reentrant=False)"
    _checkpointed(script, script.through("encode", "net, x", body, "hidden"))


def reentrant_with_grad(script: Script) -> None:
    """A reentrant checkpoint whose input needs one."""
    body = "given = x.clone().requires_grad_(True)\n@-hidden = checkpoint(net, given, use_reentrant=True)\n@+hidden = checkpoint(net, given, use_reentrant=False)"
    _checkpointed(script, script.through("encode", "net, x", body, "hidden"))


def input_changed_after(script: Script) -> None:
    """The input of a checkpoint is changed before it is recomputed."""
    write = script.rng.choice(
        ("given.mul_(0.5)", "given += 1", "given[:, 0] = 0", "given.clamp_(-0.1, 0.1)", "given.zero_()")
    )
    body = f"hidden = checkpoint(net, given, use_reentrant=False)\n@-{write} #!\n@+given = given * 1"
    _checkpointed(script, joined("given = x * 1.0", script.through("encode", "net, given", body, "hidden")))


def input_changed_before(script: Script) -> None:
    """The input is changed before the checkpoint."""
    body = "@-given.mul_(0.5)\n@+given = given * 0.5\nhidden = checkpoint(net, given, use_reentrant=False)"
    _checkpointed(script, joined("given = x * 1.0", script.through("encode", "net, given", body, "hidden")))


def written_inside(script: Script) -> None:
    """A block that overwrites what it saved, inside a checkpoint."""
    act, write = script.rng.choice(
        (("tanh()", "h += x"), ("sigmoid()", "h *= 2"), ("exp()", "h.add_(1)"), ("softmax(1)", "h[:, 0] = 0"))
    )
    init = "self.layer = nn.Linear(4, 4)"
    pure = {"h += x": "h = h + x", "h *= 2": "h = h * 2", "h.add_(1)": "h = h.add(1)"}.get(
        write, "h = h * torch.tensor([0.0, 1, 1, 1])"
    )
    script.define(
        module_class("Block", init, f"h = self.layer(x).{act}\n@-{write} #!\n@+{pure}\nreturn h * 0.5")
    )
    script.imports.add(CHECKPOINT)
    script.make("net", "net = Block()")
    script.make("head", "head = nn.Linear(4, 1)")
    add_optimizer(script, "opt", "[*net.parameters(), *head.parameters()]")
    add_batches(script, 4, 1)
    reentrant = script.rng.choice(("False", "True", "True"))
    script.rounds.append(
        f"given = x.clone().requires_grad_(True)\nloss = (head(checkpoint(net, given, use_reentrant={reentrant})) - y).pow(2).mean()"
    )
    add_update(script)


def batched_into_unbatched(script: Script) -> None:
    """vmap: a batched value is written into a tensor without the batch."""
    write = script.rng.choice(
        (
            "out[0] = row.sum()",
            "out += row[:3]",
            "out.add_(row[:3])",
            "out[1:] = row[1:3]",
            "out.copy_(row[:3])",
        )
    )
    pure = {
        "out[0] = row.sum()": "out = torch.cat([row.sum()[None], out[1:]])",
        "out[1:] = row[1:3]": "out = torch.cat([out[:1], row[1:3]])",
        "out.copy_(row[:3])": "out = out * 0 + row[:3]",
    }.get(write, "out = out + row[:3]")
    made = script.rng.choice(("torch.zeros(3)", "torch.ones(3)", "torch.empty(3).fill_(0.5)"))
    script.define(f"def one(row):\n    out = {made}\n@-    {write} #!\n@+    {pure}\n    return out")
    add_model(script, "net", 4, 4)
    add_optimizer(script, "opt", "net.parameters()")
    add_batches(script, 4, 3)
    call = script.rng.choice(
        ("torch.vmap(one)(net(x))", "torch.func.vmap(one)(net(x))", "torch.vmap(one, in_dims=0)(net(x))")
    )
    script.rounds.append(f"loss = ({call} - y).pow(2).mean() #!")
    add_update(script)


def batched_into_batched(script: Script) -> None:
    """The tensor that is written has the batch too."""
    write = script.rng.choice(
        (
            ("out[0] = row.sum()", "out = torch.cat([row.sum()[None], out[1:]])"),
            ("out += row[:3]", "out = out + row[:3]"),
        )
    )
    script.define(
        f"def one(row):\n    out = row[:3] * 0\n@-    {write[0]}\n@+    {write[1]}\n    return out", "one"
    )
    add_model(script, "net", 4, 4)
    add_optimizer(script, "opt", "net.parameters()")
    add_batches(script, 4, 3)
    script.rounds.append("loss = (torch.vmap(one)(net(x)) - y).pow(2).mean()")
    add_update(script)


def captured_written(script: Script) -> None:
    """func.grad: a captured tensor is written."""
    script.definitions.append("TOTAL = torch.zeros(4)")
    body = "@-    TOTAL.add_(weight[:, 0] * 0.1) #!\n@+    pass\n    return (x @ weight - y).pow(2).mean()"
    script.define(f"def objective(weight, x, y):\n{body}")
    script.make("weight", "weight = torch.randn(4, 1)")
    add_batches(script, 4, 1)
    script.rounds.append(
        "slope = torch.func.grad(objective)(weight, x, y) #!\nwith torch.no_grad():\n    weight -= 0.1 * slope\nprint(weight)"
    )
    script.loops = ("script", "stepper")


def parameters_ignored(script: Script) -> None:
    """A functional objective that does not use the parameters it is given."""
    add_model(script, "net", 4, 1)
    script.make("params", "params = {name: p.detach() for name, p in net.named_parameters()}")
    add_batches(script, 4, 1)
    script.rounds.append(
        "def objective(params):\n@-    return (net(x) - y).pow(2).mean() #!\n@+    return (torch.func.functional_call(net, params, (x,)) - y).pow(2).mean()\n"
        "slopes = torch.func.grad(objective)(params) #!\nparams = {name: p - 0.1 * slopes[name] for name, p in params.items()}\nprint(*params.values())"
    )
    script.loops = ("script", "main", "function")


def view_before_flag(script: Script) -> None:
    """A view made before the flag, written after it."""
    write = script.rng.choice(("row.add_(1.0)", "row += 1.0", "row.mul_(2)", "row[0] = 1.0"))
    script.setup.append(
        f"weight = torch.zeros(4, 3)\nrow = weight[0]\nweight.requires_grad_(True)\n@-{write} #!\n@+row = weight[0] + 1.0"
    )
    script.state.append("weight")
    add_optimizer(script, "opt", "[weight]")
    add_batches(script, 4, 3)
    script.rounds.append("loss = (x @ weight - y).pow(2).mean()")
    add_update(script)


def view_without_grad(script: Script) -> None:
    """A view made under no_grad, written while torch records."""
    write = script.rng.choice(("first.mul_(2)", "first += 1", "first[:] = 0"))
    add_model(script, "net", 4, 3)
    add_optimizer(script, "opt", "net.parameters()")
    add_batches(script, 4, 3)
    body = f"with torch.no_grad():\n    first = h[0]\n@-{write} #!\n@+h = torch.cat([h[:1] * 2, h[1:]])"
    script.rounds += [
        "h = net(x)",
        script.through("emphasise", "h", body, "h"),
        "loss = (h - y).pow(2).mean()",
    ]
    add_update(script)


def one_of_several_views(script: Script) -> None:
    """One of the views that an operator returns together is written."""
    split = script.rng.choice(
        ("h.unbind(0)", "h.split(3)", "h.chunk(2)", "torch.unbind(h)", "torch.split(h, 2)")
    )
    write = script.rng.choice(("parts[0].mul_(2)", "parts[0].add_(1)", "parts[1].zero_()", "parts[0][0] = 0"))
    add_model(script, "net", 4, 3)
    add_optimizer(script, "opt", "net.parameters()")
    add_batches(script, 4, 3)
    body = f"parts = {split}\n@-{write} #!\n@+h = h * 1.0"
    script.rounds += ["h = net(x)", script.through("edit", "h", body, "h"), "loss = (h - y).pow(2).mean()"]
    add_update(script)


def single_view_written(script: Script) -> None:
    """A view by indexing is written while torch records."""
    write = script.rng.choice(
        (
            ("part.mul_(2)", "h = torch.cat([h[:2] * 2, h[2:]])"),
            ("part += 1", "h = torch.cat([h[:2] + 1, h[2:]])"),
        )
    )
    add_model(script, "net", 4, 3)
    add_optimizer(script, "opt", "net.parameters()")
    add_batches(script, 4, 3)
    body = f"part = h[:2]\n@-{write[0]}\n@+{write[1]}"
    script.rounds += ["h = net(x)", script.through("edit", "h", body, "h"), "loss = (h - y).pow(2).mean()"]
    add_update(script)


def resized(script: Script) -> None:
    """resize_ of a tensor of the graph."""
    add_model(script, "net", 4, 3)
    add_optimizer(script, "opt", "net.parameters()")
    add_batches(script, 4, 3)
    body = "@-h.resize_(18) #!\n@+h = h.view(18)"
    script.rounds += [
        "h = net(x)",
        script.through("flatten", "h", body, "h"),
        "loss = (h - y.view(18)).pow(2).mean()",
    ]
    add_update(script)


def out_given(script: Script) -> None:
    """out= with arguments that require grad."""
    script.make("weight", "weight = nn.Parameter(torch.randn(4, 3))")
    add_optimizer(script, "opt", "[weight]")
    add_batches(script, 4, 3)
    bad, good = script.rng.choice(
        (
            ("torch.mm(x, weight, out=h)", "torch.mm(x, weight)"),
            ("torch.matmul(x, weight, out=h)", "x @ weight"),
            ("torch.add(x @ weight, 1, out=h)", "x @ weight + 1"),
        )
    )
    body = f"@-h = torch.empty(6, 3)\n@-{bad} #!\n@+h = {good}"
    script.rounds += [script.through("project", "x, weight", body, "h"), "loss = (h - y).pow(2).mean()"]
    add_update(script)


def leaf_written(script: Script) -> None:
    """A leaf that requires grad is written while torch records."""
    write = script.rng.choice(
        (
            "weight.mul_(0.9)",
            "weight -= 0.01",
            "weight[0] = 0",
            "weight.clamp_(-1, 1)",
            "nn.functional.relu_(weight)",
        )
    )
    script.make("weight", "weight = nn.Parameter(torch.randn(4, 3))")
    add_optimizer(script, "opt", "[weight]")
    add_batches(script, 4, 3)
    script.rounds.append("loss = (x @ weight - y).pow(2).mean()")
    add_update(script, form="plain")
    script.rounds.append(f"@-{write} #!\n@+with torch.no_grad():\n@+    {write}")
    script.loops = ("script", "main", "function")


def leaf_written_in_peace(script: Script) -> None:
    """A leaf is written under no_grad after the step."""
    write = script.rng.choice(("weight.mul_(0.9)", "weight.clamp_(-1, 1)", "weight[0] = 0"))
    script.make("weight", "weight = nn.Parameter(torch.randn(4, 3))")
    add_optimizer(script, "opt", "[weight]")
    add_batches(script, 4, 3)
    script.rounds.append("loss = (x @ weight - y).pow(2).mean()")
    add_update(script, form="plain")
    script.rounds.append(
        f"@-with torch.no_grad():\n@-    {write}\n@+weight.data{write.removeprefix('weight')}"
    )


def expanded_written(script: Script) -> None:
    """An expanded tensor shares its rows; torch refuses the write."""
    write = script.rng.choice(("table += x[:, :3]", "table.add_(x[:, :3])", "table.mul_(x[:, :3])"))
    add_model(script, "net", 4, 3)
    add_optimizer(script, "opt", "net.parameters()")
    add_batches(script, 4, 3)
    body = f"@-table = torch.ones(1, 3).expand(6, 3)\n@+table = torch.ones(1, 3).expand(6, 3).clone()\n{write} #!"
    script.rounds += [
        script.through("offsets", "x", body, "table"),
        "loss = (net(x) + table - y).pow(2).mean()",
    ]
    add_update(script)


def copied_non_leaf(script: Script) -> None:
    """deepcopy of a result."""
    script.imports.add("import copy")
    add_model(script, "net", 4, 3)
    add_optimizer(script, "opt", "net.parameters()")
    add_batches(script, 4, 3)
    body = "@-kept = copy.deepcopy(h) #!\n@+kept = h.detach().clone()"
    script.rounds += [
        "h = net(x)",
        script.through("remember", "h", body, "kept"),
        "loss = (h - y).pow(2).mean() + (h - kept - 1).pow(2).mean()",
    ]
    add_update(script)


KINDS = (
    Kind(FAMILY, "reentrant without grad", reentrant_without_grad, "harms", ("GS211",)),
    Kind(FAMILY, "input changed after", input_changed_after, "harms", ("GS1",)),
    Kind(FAMILY, "written inside", written_inside, "harms", ("GS101",)),
    Kind(FAMILY, "batched into unbatched", batched_into_unbatched, "harms", ("GS109",)),
    Kind(FAMILY, "captured written", captured_written, "harms", ("GS109",)),
    Kind(FAMILY, "parameters ignored", parameters_ignored, "harms", ("GS407",)),
    Kind(FAMILY, "view before flag", view_before_flag, "harms", ("GS1",)),
    Kind(FAMILY, "view without grad", view_without_grad, "harms", ("GS1",)),
    Kind(FAMILY, "one of several views", one_of_several_views, "harms", ("GS103",)),
    Kind(FAMILY, "resized", resized, "harms", ("GS1", "GS3")),
    Kind(FAMILY, "out given", out_given, "harms", ("GS108",)),
    Kind(FAMILY, "leaf written", leaf_written, "harms", ("GS102",)),
    Kind(FAMILY, "expanded written", expanded_written, "harms", ("GS103",)),
    Kind(FAMILY, "copied non leaf", copied_non_leaf, "harms", ("GS306",)),
    Kind(FAMILY, "safe: reentrant with grad", reentrant_with_grad, "same"),
    Kind(FAMILY, "safe: changed before", input_changed_before, "same"),
    Kind(FAMILY, "safe: batched", batched_into_batched, "same"),
    Kind(FAMILY, "safe: single view", single_view_written, "same"),
    Kind(FAMILY, "safe: leaf in peace", leaf_written_in_peace, "same"),
)
