"""Order and protocol: clear, backward, unscale, clip, step, in another order than they work."""

from __future__ import annotations

from gradsight_dev.fuzz.families.kind import Kind
from gradsight_dev.fuzz.families.marked import indented, joined
from gradsight_dev.fuzz.families.parts import add_batches, add_model, add_optimizer, module_class
from gradsight_dev.fuzz.families.script import Script

FAMILY = "order and protocol"


def _fitted(script: Script, *update: str, loss: str = "(net(x) - y).pow(2).mean()") -> None:
    add_model(script, "net", 4, 1)
    add_optimizer(script, "opt", "net.parameters()")
    _rounds(script, *update, loss=loss)


def _rounds(script: Script, *update: str, loss: str = "(net(x) - y).pow(2).mean()") -> None:
    add_batches(script, 4, 1)
    script.rounds.append(f"loss = {loss}")
    script.rounds += update


def never_cleared(script: Script) -> None:
    """No zero_grad."""
    clear = script.rng.choice(("opt.zero_grad()", "net.zero_grad()", "opt.zero_grad(set_to_none=True)"))
    body = f"@+{clear}\nloss.backward() #!\nopt.step() #!"
    _fitted(script, script.through("update", "net, opt, loss", body))


def cleared_between(script: Script) -> None:
    """Cleared after backward."""
    clear = script.rng.choice(("opt.zero_grad()", "net.zero_grad()", "opt.zero_grad(set_to_none=True)"))
    body = f"@+{clear}\nloss.backward()\n@-{clear} #!\nopt.step() #!"
    _fitted(script, script.through("update", "net, opt, loss", body))


def _accumulated(script: Script, clear: str, loop: str) -> None:
    add_model(script, "net", 4, 1)
    add_optimizer(script, "opt", "net.parameters()")
    micro = "loss = (net(part) - goal).pow(2).mean() / 3\nloss.backward()"
    one = script.through("micro_step", "net, opt, part, goal", joined(clear, micro))
    script.rounds += [
        loop,
        "for k in range(3):\n    part, goal = torch.randn(4, 4), torch.randn(4, 1)\n" + indented(one),
        "opt.step()",
    ]


def cleared_in_each_part(script: Script) -> None:
    """zero_grad in the inner loop of an accumulation."""
    clear = script.rng.choice(("opt.zero_grad()", "net.zero_grad()"))
    _accumulated(script, f"@-{clear} #!", f"@+{clear}")


def cleared_once(script: Script) -> None:
    """An accumulation as it should be."""
    clear = script.rng.choice(("opt.zero_grad()", "net.zero_grad()"))
    _accumulated(script, "", f"@-{clear}\n@+opt.zero_grad(set_to_none=False)")


def counted_accumulation(script: Script) -> None:
    """An accumulation by the counter."""
    add_model(script, "net", 4, 1)
    add_optimizer(script, "opt", "net.parameters()")
    script.header = "for step in range(6):"
    script.rounds.append(
        "x, y = torch.randn(6, 4), torch.randn(6, 1)\nloss = (net(x) - y).pow(2).mean() / 2\nloss.backward()\n"
        "if (step + 1) % 2 == 0:\n    opt.step()\n@-    opt.zero_grad()\n@+    net.zero_grad()"
    )


def closure_without_clear(script: Script) -> None:
    """An LBFGS closure that does not clear."""
    add_model(script, "net", 4, 1)
    script.make(
        "opt", f"opt = torch.optim.LBFGS(net.parameters(), lr=0.5, max_iter={script.rng.choice((3, 5))})"
    )
    before = script.rng.choice(("", "opt.zero_grad()"))
    add_batches(script, 4, 1)
    script.rounds.append(
        joined(
            before,
            "def closure(): #!\n@+    opt.zero_grad()\n    loss = (net(x) - y).pow(2).mean()\n    loss.backward() #!\n    return loss\nopt.step(closure) #!",
        )
    )


def closure_that_clears(script: Script) -> None:
    """A closure as torch wants it, for whatever optimizer."""
    add_model(script, "net", 4, 1)
    script.make(
        "opt",
        script.rng.choice(
            (
                "opt = torch.optim.LBFGS(net.parameters(), max_iter=3)",
                "opt = torch.optim.SGD(net.parameters(), lr=0.1)",
            )
        ),
    )
    add_batches(script, 4, 1)
    script.rounds.append(
        "def closure():\n@-    opt.zero_grad()\n@+    net.zero_grad()\n    loss = (net(x) - y).pow(2).mean()\n    loss.backward()\n    return loss\nopt.step(closure)"
    )


def number_into_backward(script: Script) -> None:
    """A number has no backward."""
    add_model(script, "net", 4, 1)
    add_optimizer(script, "opt", "net.parameters()")
    add_batches(script, 4, 1)
    form = script.rng.choice(
        (
            "(net(x) - y).pow(2).mean().item()",
            "float((net(x) - y).pow(2).mean())",
            "(net(x) - y).pow(2).mean().detach().numpy()",
        )
    )
    body = f"@-loss = {form} #!\n@+loss = (net(x) - y).pow(2).mean()"
    script.rounds += [
        script.through("compute_loss", "net, x, y", body, "loss"),
        "opt.zero_grad()\nloss.backward() #!\nopt.step()",
    ]


def step_returns_a_number(script: Script) -> None:
    """A method that should return the loss returns its number."""
    script.define(
        joined(
            module_class("Net", "self.layer = nn.Linear(4, 1)", "return self.layer(x)"),
            "    def training_step(self, x, y):\n        loss = (self(x) - y).pow(2).mean()\n@-        return loss.item() #!\n@+        return loss",
        )
    )
    script.make("net", "net = Net()")
    add_optimizer(script, "opt", "net.parameters()")
    add_batches(script, 4, 1)
    script.rounds.append("loss = net.training_step(x, y)\nopt.zero_grad()\nloss.backward() #!\nopt.step()")


CLIPS = (
    "nn.utils.clip_grad_norm_(net.parameters(), 0.1)",
    "torch.nn.utils.clip_grad_value_(net.parameters(), 0.01)",
    "nn.utils.clip_grad_norm_(list(net.parameters()), max_norm=0.1)",
)


def clipped_too_early(script: Script) -> None:
    """Clipped before backward."""
    clip = script.rng.choice(CLIPS)
    body = f"opt.zero_grad()\n@-{clip} #!\nloss.backward()\n@+{clip}\nopt.step()"
    _sgd(script, script.through("update", "net, opt, loss", body))


def clipped_too_late(script: Script) -> None:
    """Clipped after the step."""
    clip = script.rng.choice(CLIPS)
    body = f"opt.zero_grad()\nloss.backward()\n@+{clip}\nopt.step()\n@-{clip} #!"
    _sgd(script, script.through("update", "net, opt, loss", body))


def clipped_in_time(script: Script) -> None:
    """Clipped by hand between backward and step."""
    _sgd(
        script,
        "opt.zero_grad()\nloss.backward()\n@-nn.utils.clip_grad_value_(net.parameters(), 0.01)\n"
        "@+for p in net.parameters():\n@+    p.grad.clamp_(-0.01, 0.01)\nopt.step()",
    )


def _sgd(script: Script, update: str) -> None:
    add_model(script, "net", 4, 1)
    script.make("opt", "opt = torch.optim.SGD(net.parameters(), lr=0.3)")
    _rounds(script, update)


def _scaled(script: Script, body: str) -> None:
    add_model(script, "net", 4, 1)
    script.make(
        "opt",
        script.rng.choice(
            (
                "opt = torch.optim.SGD(net.parameters(), lr=0.01)",
                "opt = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)",
            )
        ),
    )
    made = script.rng.choice(
        (
            'torch.amp.GradScaler("cpu", init_scale=64.0)',
            'torch.amp.GradScaler(device="cpu", init_scale=32.0)',
        )
    )
    script.make("scaler", f"scaler = {made}")
    add_batches(script, 4, 1)
    cast = script.rng.random() < 0.3
    loss = (
        'with torch.autocast("cpu", dtype=torch.bfloat16):\n    loss = (net(x) - y).pow(2).mean()'
        if cast
        else "loss = (net(x) - y).pow(2).mean()"
    )
    script.rounds += [
        loss,
        "opt.zero_grad()\nscaler.scale(loss).backward()",
        script.through("finish", "net, opt, scaler", body),
    ]


def scaler_never_updated(script: Script) -> None:
    """scaler.update is missing."""
    _scaled(script, "scaler.step(opt) #!\n@+scaler.update()\n@-pass")


def scaler_bypassed(script: Script) -> None:
    """The optimizer steps by itself."""
    _scaled(script, "@-opt.step() #!\n@+scaler.step(opt)\nscaler.update() #!")


def scaled_clipped(script: Script) -> None:
    """Clipped while the gradients are still scaled."""
    _scaled(
        script, f"@+scaler.unscale_(opt)\n{script.rng.choice(CLIPS)} #!\nscaler.step(opt)\nscaler.update()"
    )


def unscaled_clipped(script: Script) -> None:
    """Unscaled, clipped, stepped."""
    _scaled(
        script,
        "scaler.unscale_(opt)\n@-nn.utils.clip_grad_value_(net.parameters(), 0.01)\n@+for p in net.parameters():\n"
        "@+    p.grad.clamp_(-0.01, 0.01)\nscaler.step(opt)\nscaler.update()",
    )


def step_before_recomputation(script: Script) -> None:
    """Parameters change before a checkpoint recomputes with them."""
    script.imports.add("from torch.utils.checkpoint import checkpoint")
    add_model(script, "net", 4, 4, deep=True)
    add_model(script, "head", 4, 1)
    script.make("opt", "opt = torch.optim.SGD([*net.parameters(), *head.parameters()], lr=0.1)")
    add_batches(script, 4, 1)
    write = script.rng.choice(("p.add_(0.1)", "p.mul_(0.9)", "p -= 0.01", "p.data.mul_(0.5)"))
    script.rounds.append(
        f"hidden = checkpoint(net, x, use_reentrant=False)\nloss = (head(hidden) - y).pow(2).mean()\n@-with torch.no_grad():\n@-    for p in net.parameters():\n@-        {write} #!\n"
        f"opt.zero_grad()\nloss.backward()\nopt.step()\n@+with torch.no_grad():\n@+    for p in net.parameters():\n@+        {write}"
    )


def scheduler_first(script: Script) -> None:
    """The scheduler steps before the optimizer."""
    add_model(script, "net", 4, 1)
    add_optimizer(script, "opt", "net.parameters()")
    made = script.rng.choice(
        (
            "torch.optim.lr_scheduler.StepLR(opt, 1, gamma=0.5)",
            "torch.optim.lr_scheduler.ExponentialLR(opt, 0.5)",
        )
    )
    script.make("scheduler", f"scheduler = {made}")
    _rounds(script, "opt.zero_grad()\nloss.backward()\n@-scheduler.step() #!\nopt.step()\n@+scheduler.step()")


def backward_twice(script: Script) -> None:
    """A second backward through a freed graph."""
    add_model(script, "net", 4, 1, deep=True)
    add_optimizer(script, "opt", "net.parameters()")
    add_batches(script, 4, 1)
    script.rounds.append(
        "out = net(x)\nfirst, second = (out - y).pow(2).mean(), out.abs().mean()\nopt.zero_grad()\n"
        "@-first.backward() #!\n@+first.backward(retain_graph=True)\nsecond.backward() #!\nopt.step()"
    )


def two_losses_one_step(script: Script) -> None:
    """Two backward passes that add up, through graphs of their own or a kept one."""
    add_model(script, "net", 4, 1, deep=True)
    add_optimizer(script, "opt", "net.parameters()")
    add_batches(script, 4, 1)
    script.rounds.append(
        "@-first, second = (net(x) - y).pow(2).mean(), net(x).abs().mean()\n@-opt.zero_grad()\n@-first.backward()\n@-second.backward()\n"
        "@+out = net(x)\n@+first, second = (out - y).pow(2).mean(), out.abs().mean()\n@+opt.zero_grad()\n@+first.backward(retain_graph=True)\n@+second.backward()\nopt.step()"
    )
    script.rounds[-1] += "\nprint(first, second)"


def step_between_losses(script: Script) -> None:
    """A step between two backward passes through one graph."""
    add_model(script, "net", 4, 1, deep=True)
    add_model(script, "side", 1, 1)
    add_optimizer(script, "opt", "net.parameters()")
    script.make("side_opt", "side_opt = torch.optim.SGD(side.parameters(), lr=0.1)")
    add_batches(script, 4, 1)
    script.rounds.append(
        "out = net(x)\nfirst, second = (out - y).pow(2).mean(), (side(out) - y).pow(2).mean()\nopt.zero_grad()\nside_opt.zero_grad()\n"
        "first.backward(retain_graph=True)\n@-opt.step() #!\nsecond.backward() #!\nside_opt.step()\n@+opt.step()"
    )


KINDS = (
    Kind(FAMILY, "never cleared", never_cleared, "harms", ("GS501",)),
    Kind(FAMILY, "cleared between", cleared_between, "harms", ("GS50",)),
    Kind(FAMILY, "cleared in each part", cleared_in_each_part, "harms", ("GS502",)),
    Kind(FAMILY, "closure without clear", closure_without_clear, "harms", ("GS501",)),
    Kind(FAMILY, "number into backward", number_into_backward, "harms", ("GS2", "GS4")),
    Kind(FAMILY, "step returns a number", step_returns_a_number, "harms", ("GS2", "GS4")),
    Kind(FAMILY, "clipped too early", clipped_too_early, "harms", ("GS513",)),
    Kind(FAMILY, "clipped too late", clipped_too_late, "harms", ("GS513",)),
    Kind(FAMILY, "scaler never updated", scaler_never_updated, "harms", ("GS511",)),
    Kind(FAMILY, "scaler bypassed", scaler_bypassed, "harms", ("GS5",)),
    Kind(FAMILY, "scaled clipped", scaled_clipped, "harms", ("GS507",)),
    Kind(FAMILY, "step before recomputation", step_before_recomputation, "harms", ("GS1",)),
    Kind(FAMILY, "scheduler first", scheduler_first, "harms", ("GS506",)),
    Kind(FAMILY, "backward twice", backward_twice, "harms", ("GS402",)),
    Kind(FAMILY, "step between losses", step_between_losses, "harms", ("GS106",)),
    Kind(FAMILY, "safe: cleared once", cleared_once, "same"),
    Kind(FAMILY, "safe: counted", counted_accumulation, "same"),
    Kind(FAMILY, "safe: closure clears", closure_that_clears, "same"),
    Kind(FAMILY, "safe: clipped in time", clipped_in_time, "same"),
    Kind(FAMILY, "safe: unscaled", unscaled_clipped, "same"),
    Kind(FAMILY, "safe: two losses", two_losses_one_step, "same"),
)
