"""Cuts in one term: one way to the loss is cut, or carries the wrong gradient, while another one trains."""

from __future__ import annotations

from gradsight_dev.fuzz.families.kind import Kind
from gradsight_dev.fuzz.families.parts import (
    SMOOTH,
    add_batches,
    add_model,
    add_optimizer,
    add_update,
    module_class,
)
from gradsight_dev.fuzz.families.script import Script

FAMILY = "cuts in one term"


def _with_term(script: Script, term: str, outputs: int = 3) -> None:
    """A loss of two terms, the second of which is given."""
    add_model(script, "net", 4, outputs)
    add_optimizer(script, "opt", "net.parameters()")
    add_batches(script, 4, outputs)
    sums = script.rng.choice(
        (
            "loss = (out - y).pow(2).mean() + 0.5 * term",
            "loss = (out - y).abs().mean()\nloss = loss + 0.5 * term",
            "loss = (out - y).pow(2).mean()\nloss += 0.5 * term",
            'terms = {"fit": (out - y).pow(2).mean(), "term": 0.5 * term}\nloss = sum(terms.values())',
            "loss = torch.stack([(out - y).pow(2).mean(), 0.5 * term]).sum()",
        )
    )
    script.rounds += ["out = net(x)", script.through("penalty", "out, y", term, "term"), sums]
    add_update(script)


def count_in_the_loss(script: Script) -> None:
    """A term through argmax."""
    bad = script.rng.choice(
        (
            "out.argmax(1).float()",
            "torch.argmax(out, dim=1).to(torch.float32)",
            "out.max(1)[1].float()",
            "out.topk(1)[1].float().squeeze(1)",
        )
    )
    _with_term(
        script,
        f"@-chosen = {bad} #!\n@+chosen = (out.softmax(1) * torch.arange(3.0)).sum(1)\nterm = (chosen - y[:, 0]).abs().mean()",
    )


def compared_in_the_loss(script: Script) -> None:
    """A term through a comparison."""
    bad = script.rng.choice(
        (
            "(out > 0).float()",
            "(out > y).to(out.dtype)",
            "torch.gt(out, 0.1).float()",
            "(out >= 0.0).double().float()",
        )
    )
    _with_term(script, f"@-active = {bad} #!\n@+active = torch.sigmoid(out)\nterm = active.mean()")


def detached_term(script: Script) -> None:
    """A term of detached values."""
    bad = script.rng.choice(("out.detach()", "out.data", "out.detach().clone()", "out.clone().detach()"))
    _with_term(script, f"@-flat = {bad} #!\n@+flat = out\nterm = (flat[:, 1:] - flat[:, :-1]).pow(2).mean()")


def unrecorded_term(script: Script) -> None:
    """A term under no_grad."""
    mode = script.rng.choice(("torch.no_grad()", "torch.set_grad_enabled(False)"))
    _with_term(
        script,
        f"@-with {mode}: #!\n@-    term = (out[:, 1:] - out[:, :-1]).pow(2).mean() #!\n@+term = (out[:, 1:] - out[:, :-1]).pow(2).mean()",
    )


def term_as_a_number(script: Script) -> None:
    """A term that went through a number."""
    bad = script.rng.choice(
        (
            "term.item()",
            "float(term)",
            "term.detach().item()",
            "term.detach().numpy().item()",
            "torch.tensor(term.item())",
            "term.tolist()",
        )
    )
    add_model(script, "net", 4, 3)
    add_optimizer(script, "opt", "net.parameters()")
    add_batches(script, 4, 3)
    body = f"term = out.pow(2).mean()\n@-fine = {bad} #!\n@+fine = term"
    script.rounds += [
        "out = net(x)",
        script.through("penalty", "out", body, "fine"),
        "loss = (out - y).pow(2).mean() + 0.5 * fine #!",
    ]
    add_update(script)


def term_copied(script: Script) -> None:
    """A term that torch.tensor copied."""
    bad = script.rng.choice(
        ("torch.tensor(term)", "torch.tensor([term, term]).mean()", "torch.FloatTensor([term]).sum()")
    )
    _with_term(script, f"term = out.pow(2).mean()\n@-term = {bad} #!\n@+term = term * 1.0")


def rounded_term(script: Script) -> None:
    """A term through an operator whose gradient is zero."""
    bad = script.rng.choice(
        ("out.round()", "torch.sign(out)", "out.floor()", "torch.ceil(out)", "out.trunc()")
    )
    _with_term(
        script,
        f"@-coarse = {bad} #!\n@+coarse = out + ({bad} - out).detach()\nterm = coarse.pow(2).mean() + coarse.mean()",
    )


def residual_cut(script: Script) -> None:
    """The skip of a residual block is detached."""
    bad = script.rng.choice(
        ("x.clone().detach()", "x.detach().clone()", "x.data", "x.detach()", "torch.tensor(x.tolist())")
    )
    forward = f"@-skip = {bad} #!\n@+skip = x\nreturn self.layer(torch.tanh(self.norm(x))) + skip"
    script.define(
        module_class("Block", "self.norm = nn.LayerNorm(4)\nself.layer = nn.Linear(4, 4)", forward), ""
    )
    script.make(
        "net",
        f"net = nn.Sequential(nn.Linear(3, 4), nn.{script.rng.choice(SMOOTH)}(), Block(), Block(), nn.Linear(4, 1))",
    )
    add_optimizer(script, "opt", "net.parameters()")
    add_batches(script, 3, 1)
    script.rounds.append("loss = (net(x) - y).pow(2).mean()")
    add_update(script)


def _coded(script: Script, change: str) -> None:
    add_model(script, "encoder", 4, 3)
    add_model(script, "decoder", 3, 4)
    add_optimizer(script, "opt", "[*encoder.parameters(), *decoder.parameters()]")
    add_batches(script, 4, 4)
    script.rounds += [
        "z = encoder(x)\nq = z.round()",
        script.through("quantise", "z, q", change, "z"),
        "loss = (decoder(z) - y).pow(2).mean()",
    ]
    add_update(script)


def straight_through_cancels(script: Script) -> None:
    """Straight-through arithmetic without its detach."""
    bad = script.rng.choice(("z + (q - z)", "q + (z - z)", "z - (z - q)", "q - z + z"))
    _coded(script, f"@-z = {bad} #!\n@+z = z + (q - z).detach()")


def straight_through(script: Script) -> None:
    """Straight-through arithmetic as it should be."""
    good = script.rng.choice(("q.detach() + z - z.detach()", "z - (z - q).detach()", "(q - z).detach() + z"))
    _coded(script, f"@-z = {good}\n@+z = z + (q - z).detach()")


def first_order(script: Script) -> None:
    """An inner step without create_graph."""
    add_batches(script, 4, 1)
    script.make("weight", "weight = nn.Parameter(torch.randn(4, 1))")
    add_optimizer(script, "opt", "[weight]")
    script.rounds.append(
        "inner = (x @ weight - y).pow(2).mean()\n@-(slope,) = torch.autograd.grad(inner, weight) #!\n@+(slope,) = torch.autograd.grad(inner, weight, create_graph=True)\n"
        "fast = weight - 0.4 * slope\nloss = ((x + 1) @ fast - y).pow(2).mean()"
    )
    add_update(script, form="plain")


def penalty_without_graph(script: Script) -> None:
    """A gradient penalty without create_graph."""
    add_model(script, "net", 4, 1, deep=True)
    add_optimizer(script, "opt", "net.parameters()")
    add_batches(script, 4, 1)
    norm = script.rng.choice(
        ("slope.pow(2).sum(1).mean()", "(slope.norm(2, dim=1) - 1).pow(2).mean()", "slope.abs().mean()")
    )
    body = (
        "points = x.clone().requires_grad_(True)\nout = net(points)\n"
        "@-slope = torch.autograd.grad(out.sum(), points)[0] #!\n@+slope = torch.autograd.grad(out.sum(), points, create_graph=True)[0]\n"
        f"penalty = {norm} #!"
    )
    script.rounds += [
        script.through("gradient_penalty", "net, x", body, "penalty"),
        "loss = (net(x) - y).pow(2).mean() + penalty #!",
    ]
    add_update(script)


def moving_target(script: Script) -> None:
    """The same network on both sides of a regression."""
    add_model(script, "net", 4, 2)
    add_optimizer(script, "opt", "net.parameters()")
    add_batches(script, 4, 1)
    loss = script.rng.choice(
        (
            "F.mse_loss(value, goal)",
            "F.smooth_l1_loss(value, goal)",
            "(value - goal).pow(2).mean()",
            "nn.MSELoss()(value, goal)",
        )
    )
    body = "@-goal = y[:, 0] + 0.9 * net(x + 1).max(1)[0] #!\n@+goal = (y[:, 0] + 0.9 * net(x + 1).max(1)[0]).detach()"
    script.rounds += [
        script.through("bellman", "net, x, y", body, "goal"),
        f"value = net(x)[:, 0]\nloss = {loss} #!",
    ]
    add_update(script)


def baseline_detached(script: Script) -> None:
    """A value that is meant to be constant."""
    add_model(script, "net", 4, 2)
    add_optimizer(script, "opt", "net.parameters()")
    add_batches(script, 4, 1)
    script.rounds.append(
        "@-with torch.no_grad():\n@-    base = net(x)[:, 1].mean()\n@+base = net(x)[:, 1].mean().detach()\n"
        "logits = net(x)\nloss = -(logits.log_softmax(1)[:, 0] * (y[:, 0] - base)).mean() + logits[:, 1].pow(2).mean()"
    )
    add_update(script)


def accuracy_beside(script: Script) -> None:
    """argmax, item and no_grad for a log."""
    add_model(script, "net", 4, 3)
    add_optimizer(script, "opt", "net.parameters()")
    script.before.append("history = []")
    add_batches(script, 4, 3)
    log = script.rng.choice(
        (
            "history.append(loss.item())",
            "history.append((out.argmax(1) == y.argmax(1)).float().mean().item())",
            "history.append(out.detach().mean())",
        )
    )
    script.rounds.append("out = net(x)\nloss = F.cross_entropy(out, y.argmax(1))")
    add_update(script)
    script.rounds.append(f"@-{log}\n@+history.append(0)")


def carried_state_detached(script: Script) -> None:
    """A state that is carried on without its graph."""
    script.make("cell", "cell = nn.GRUCell(4, 3)")
    script.make("head", "head = nn.Linear(3, 1)")
    add_optimizer(script, "opt", "[*cell.parameters(), *head.parameters()]")
    script.before.append("state = torch.zeros(6, 3)")
    add_batches(script, 4, 1)
    cut = script.rng.choice(("state.data", "state.clone().detach()", "state.detach().clone()"))
    script.rounds.append("state = cell(x, state)\nloss = (head(state) - y).pow(2).mean()")
    add_update(script)
    script.rounds.append(f"@-state = {cut}\n@+state = state.detach()")


def raw_scores(script: Script) -> None:
    """Raw scores into BCELoss, squashed into range by luck or refused."""
    act = script.rng.choice(SMOOTH)
    stack = f"nn.Linear(4, 5), nn.{act}(), nn.Linear(5, 1)"
    script.make("net", f"@-net = nn.Sequential({stack}) #!\n@+net = nn.Sequential({stack}, nn.Sigmoid())")
    add_optimizer(script, "opt", "net.parameters()")
    add_batches(script, 4, 1)
    loss = script.rng.choice(("nn.BCELoss()(net(x), goal)", "F.binary_cross_entropy(net(x), goal)"))
    script.rounds.append(f"goal = (y > 0).float()\nloss = {loss} #!")
    add_update(script)


def activated_twice(script: Script) -> None:
    """An activation before a loss that includes it."""
    act, loss = script.rng.choice(
        (
            ("torch.softmax(out, 1)", "F.cross_entropy(out, goal)"),
            ("out.softmax(dim=1)", "nn.CrossEntropyLoss()(out, goal)"),
            ("nn.Softmax(dim=1)(out)", "F.cross_entropy(out, goal)"),
            ("torch.sigmoid(out)", "F.binary_cross_entropy_with_logits(out, (y > 0).float())"),
            ("out.sigmoid()", "nn.BCEWithLogitsLoss()(out, (y > 0).float())"),
        )
    )
    add_model(script, "net", 4, 3)
    add_optimizer(script, "opt", "net.parameters()")
    add_batches(script, 4, 3)
    script.rounds += [
        "goal = y.argmax(1)\nout = net(x)",
        script.through("activate", "out", f"@-out = {act} #!\n@+out = out * 1.0", "out"),
        f"loss = {loss} #!",
    ]
    add_update(script)


KINDS = (
    Kind(FAMILY, "count in the loss", count_in_the_loss, "harms", ("GS2",)),
    Kind(FAMILY, "compared in the loss", compared_in_the_loss, "harms", ("GS2",)),
    Kind(FAMILY, "detached term", detached_term, "harms", ("GS2",)),
    Kind(FAMILY, "unrecorded term", unrecorded_term, "harms", ("GS2",)),
    Kind(FAMILY, "term as a number", term_as_a_number, "harms", ("GS2",)),
    Kind(FAMILY, "term copied", term_copied, "harms", ("GS2",)),
    Kind(FAMILY, "rounded term", rounded_term, "harms", ("GS2",)),
    Kind(FAMILY, "residual cut", residual_cut, "harms", ("GS2",)),
    Kind(FAMILY, "straight through cancels", straight_through_cancels, "harms", ("GS2",)),
    Kind(FAMILY, "first order", first_order, "harms", ("GS405",)),
    Kind(FAMILY, "penalty without graph", penalty_without_graph, "harms", ("GS405",)),
    Kind(FAMILY, "moving target", moving_target, "harms", ("GS290",)),
    Kind(FAMILY, "raw scores", raw_scores, "harms", ("GS605",)),
    Kind(FAMILY, "activated twice", activated_twice, "harms", ("GS605",)),
    Kind(FAMILY, "safe: straight through", straight_through, "same"),
    Kind(FAMILY, "safe: baseline", baseline_detached, "same"),
    Kind(FAMILY, "safe: accuracy", accuracy_beside, "same"),
    Kind(FAMILY, "safe: carried state", carried_state_detached, "same"),
)
