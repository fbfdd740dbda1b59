"""Who is trained: parameters that no optimizer moves, optimizers that move nothing, layers that nobody uses."""

from __future__ import annotations

from gradsight_dev.fuzz.families.kind import Kind
from gradsight_dev.fuzz.families.marked import joined
from gradsight_dev.fuzz.families.parts import (
    SMOOTH,
    add_batches,
    add_model,
    add_optimizer,
    add_update,
    module_class,
    optimizer_of,
)
from gradsight_dev.fuzz.families.script import Script

FAMILY = "who is trained"


def _two_parts(script: Script) -> None:
    add_model(script, "encoder", 4, 5)
    add_model(script, "head", 5, 1)


def _fitted(script: Script) -> None:
    add_batches(script, 4, 1)
    script.rounds.append("loss = (head(torch.tanh(encoder(x))) - y).pow(2).mean()")
    add_update(script, form="plain")


def head_not_optimized(script: Script) -> None:
    """The optimizer has one of the two parts."""
    _two_parts(script)
    left = script.rng.choice(("encoder", "head"))
    every = script.rng.choice(
        (
            "[*encoder.parameters(), *head.parameters()]",
            "list(encoder.parameters()) + list(head.parameters())",
        )
    )
    kind = script.rng.choice(("torch.optim.SGD({}, lr=0.1)", "torch.optim.Adam({}, lr=0.01)"))
    bad, good = kind.format(f"{left}.parameters()"), kind.format(every)
    script.make("opt", f"@-opt = {bad} #!\n@+opt = {good}")
    _fitted(script)


def encoder_frozen_on_purpose(script: Script) -> None:
    """A part is frozen, and left out of the optimizer."""
    _two_parts(script)
    freeze = script.rng.choice(
        (
            "for p in encoder.parameters():\n    p.requires_grad = False",
            "encoder.requires_grad_(False)",
            "for p in encoder.parameters():\n    p.requires_grad_(False)",
        )
    )
    script.setup.append(freeze)
    kind = script.rng.choice(("torch.optim.SGD({}, lr=0.1)", "torch.optim.Adam({}, lr=0.01)"))
    bad = kind.format(
        script.rng.choice(
            (
                "[p for p in [*encoder.parameters(), *head.parameters()] if p.requires_grad]",
                "filter(lambda p: p.requires_grad, list(encoder.parameters()) + list(head.parameters()))",
            )
        )
    )
    script.make("opt", f"@-opt = {bad}\n@+opt = {kind.format('head.parameters()')}")
    _fitted(script)


def second_optimizer_repeats(script: Script) -> None:
    """The second optimizer is given the first network's parameters."""
    add_model(script, "actor", 4, 2)
    add_model(script, "critic", 4, 1)
    script.make("actor_opt", f"actor_opt = {optimizer_of(script, 'actor.parameters()')}")
    kind = script.rng.choice(("torch.optim.SGD({}, lr=0.1)", "torch.optim.Adam({}, lr=0.01)"))
    bad, good = kind.format("actor.parameters()"), kind.format("critic.parameters()")
    script.make("critic_opt", f"@-critic_opt = {bad} #!\n@+critic_opt = {good}")
    add_batches(script, 4, 1)
    script.rounds.append(
        "value = critic(x)\nvalue_loss = (value - y).pow(2).mean()\n"
        "policy_loss = -(actor(x).log_softmax(1)[:, :1] * (y - value.detach())).mean()"
    )
    script.rounds.append(
        script.rng.choice(
            (
                "actor_opt.zero_grad()\ncritic_opt.zero_grad()\n(policy_loss + value_loss).backward()\nactor_opt.step() #!\ncritic_opt.step() #!",
                "critic_opt.zero_grad()\nvalue_loss.backward()\ncritic_opt.step() #!\nactor_opt.zero_grad()\npolicy_loss.backward()\nactor_opt.step()",
            )
        )
    )


def _adversaries(script: Script, discriminator_step: str) -> None:
    add_model(script, "gen", 4, 3)
    add_model(script, "disc", 3, 1)
    cause = " #!" if "@-pass" in discriminator_step else ""
    script.make("gen_opt", f"gen_opt = {optimizer_of(script, 'gen.parameters()')}")
    script.make("disc_opt", f"disc_opt = {optimizer_of(script, 'disc.parameters()')}{cause}")
    add_batches(script, 4, 3)
    script.rounds.append(
        joined(
            "fake = gen(x)",
            "real_loss = F.softplus(-disc(y)).mean() + F.softplus(disc(fake.detach())).mean()",
            discriminator_step,
            "loss = F.softplus(-disc(fake)).mean()\ngen_opt.zero_grad()\nloss.backward()\ngen_opt.step()",
        )
    )


def never_stepped(script: Script) -> None:
    """The second optimizer never steps."""
    _adversaries(script, "disc_opt.zero_grad()\nreal_loss.backward()\n@-pass\n@+disc_opt.step()")


def adversaries_in_turn(script: Script) -> None:
    """Two optimizers in turn; the generator's backward leaves gradients that are cleared."""
    clear = script.rng.choice(("disc_opt.zero_grad(set_to_none=False)", "disc.zero_grad()"))
    _adversaries(script, f"@-{clear}\n@+disc_opt.zero_grad()\nreal_loss.backward()\ndisc_opt.step()")


def shared_part_stepped_twice(script: Script) -> None:
    """Two optimizers move the shared part by the same gradients."""
    add_model(script, "encoder", 4, 5)
    add_model(script, "head", 5, 1)
    add_model(script, "side", 5, 1)
    kind = script.rng.choice(("torch.optim.SGD({}, lr=0.1)", "torch.optim.Adam({}, lr=0.01)"))
    first = kind.format("[*encoder.parameters(), *head.parameters()]")
    bad, good = kind.format("[*encoder.parameters(), *side.parameters()]"), kind.format("side.parameters()")
    script.make("head_opt", f"head_opt = {first}")
    script.make("side_opt", f"@-side_opt = {bad} #!\n@+side_opt = {good}")
    add_batches(script, 4, 1)
    script.rounds.append(
        "hidden = torch.tanh(encoder(x))\nloss = (head(hidden) - y).pow(2).mean() + (side(hidden) - 1).pow(2).mean()\n"
        "head_opt.zero_grad()\nside_opt.zero_grad()\nloss.backward()\nhead_opt.step() #!\nside_opt.step() #!"
    )


def module_flag(script: Script) -> None:
    """The flag is set on a module, which has none."""
    flag, value = script.rng.choice((("requires_grad", "False"), ("requires_grad", "not True")))
    form = script.rng.choice(
        (
            f"@-net[0].{flag} = {value} #!\n@+net[0].requires_grad_(False)",
            f"for layer in net[:2]:\n@-    layer.{flag} = {value} #!\n@+    layer.requires_grad_(False)",
            f"for name, child in net.named_children():\n    if name == '0':\n@-        child.{flag} = {value} #!\n@+        child.requires_grad_(False)",
        )
    )
    script.make(
        "net",
        f"net = nn.Sequential(nn.Linear(4, 5), nn.{script.rng.choice(SMOOTH)}(), nn.Linear(5, 1))\n{form}",
    )
    add_optimizer(script, "opt", "net.parameters()")
    _one_net(script)


def _one_net(script: Script) -> None:
    add_batches(script, 4, 1)
    script.rounds.append("loss = (net(x) - y).pow(2).mean()")
    add_update(script)


def freeze_undone(script: Script) -> None:
    """A later loop thaws what was frozen."""
    again = script.rng.choice(
        (
            "@-for p in net.parameters(): #!\n@-    p.requires_grad = True #!\n@+for p in net[2].parameters():\n@+    p.requires_grad = True",
            "@-net.requires_grad_(True) #!\n@+net[2].requires_grad_(True)",
        )
    )
    script.make(
        "net",
        f"net = nn.Sequential(nn.Linear(4, 5), nn.{script.rng.choice(SMOOTH)}(), nn.Linear(5, 1))\n"
        f"for p in net[0].parameters():\n    p.requires_grad = False\n{again}",
    )
    add_optimizer(script, "opt", "net.parameters()")
    _one_net(script)


def thawed_later(script: Script) -> None:
    """Frozen for a while, thawed on purpose after some steps."""
    script.make(
        "net", f"net = nn.Sequential(nn.Linear(4, 5), nn.{script.rng.choice(SMOOTH)}(), nn.Linear(5, 1))"
    )
    script.setup.append(
        "@-net[0].requires_grad_(False)\n@+for p in net[0].parameters():\n@+    p.requires_grad = False"
    )
    add_optimizer(script, "opt", "net.parameters()")
    script.before.append("rounds = 0")
    _one_net(script)
    script.rounds.append(
        "rounds += 1\nif rounds == 2:\n@-    net.requires_grad_(True)\n@+    for p in net.parameters():\n@+        p.requires_grad = True"
    )


def only_frozen(script: Script) -> None:
    """All that the optimizer holds is frozen."""
    _two_parts(script)
    script.setup.append(
        script.rng.choice(
            ("for p in encoder.parameters():\n    p.requires_grad = False", "encoder.requires_grad_(False)")
        )
    )
    kind = script.rng.choice(("torch.optim.SGD({}, lr=0.1)", "torch.optim.Adam({}, lr=0.01)"))
    script.make(
        "opt", f"@-opt = {kind.format('encoder.parameters()')} #!\n@+opt = {kind.format('head.parameters()')}"
    )
    add_batches(script, 4, 1)
    script.rounds.append(
        "loss = (head(torch.tanh(encoder(x))) - y).pow(2).mean()\nopt.zero_grad()\nloss.backward()\nopt.step() #!"
    )


def layer_unused(script: Script) -> None:
    """A layer that forward forgets."""
    layer = script.rng.choice(("nn.LayerNorm(5)", "nn.Linear(5, 5)", "nn.Bilinear(5, 5, 5)"))
    used = "self.extra(hidden, hidden)" if "Bilinear" in layer else "self.extra(hidden)"
    init = f"self.first = nn.Linear(4, 5)\nself.extra = {layer} #!\nself.last = nn.Linear(5, 1)"
    forward = f"hidden = torch.tanh(self.first(x))\n@-pass\n@+hidden = {used}\nreturn self.last(hidden)"
    script.define(module_class("Net", init, forward))
    script.make("net", "net = Net()")
    add_optimizer(script, "opt", "net.parameters()")
    _one_net(script)


def layer_used_elsewhere(script: Script) -> None:
    """A layer that only another method uses, which the loss goes through."""
    init = "self.first = nn.Linear(4, 5)\nself.extra = nn.Linear(5, 1)\nself.last = nn.Linear(5, 1)"
    forward = "hidden = torch.tanh(self.first(x))\nreturn self.last(hidden)"
    aside = "    def aside(self, x):\n        return self.extra(torch.tanh(self.first(x)))"
    script.define(joined(module_class("Net", init, forward), aside))
    script.make("net", "net = Net()")
    add_optimizer(script, "opt", "net.parameters()")
    add_batches(script, 4, 1)
    script.rounds.append(
        "@-loss = (net(x) - y).pow(2).mean() + net.aside(x).pow(2).mean()\n@+out, aside = net(x), net.aside(x)\n@+loss = (out - y).pow(2).mean() + aside.pow(2).mean()"
    )
    add_update(script)


def parameter_converted(script: Script) -> None:
    """A parameter that is converted is a parameter no more."""
    value, change = script.rng.choice(
        (
            ("torch.ones(4)", "to(torch.float64)"),
            ("torch.ones(4)", "double()"),
            ("torch.zeros(4) + 1", "type(torch.float64)"),
            ("torch.ones(1, 4)", "double().squeeze(0)"),
            ("torch.ones(4).double()", "mul(0.5)"),
        )
    )
    init = f"self.layer = nn.Linear(4, 1).double()\n@-self.scale = nn.Parameter({value}).{change} #!\n@+self.scale = nn.Parameter(({value}).{change})"
    script.define(module_class("Net", init, "return self.layer(x.double() * self.scale)"))
    script.make("net", "net = Net()")
    add_optimizer(script, "opt", "net.parameters()")
    _one_net(script)


def layers_in_a_list(script: Script) -> None:
    """Layers in a plain container."""
    made = script.rng.choice(
        (
            (
                "[nn.Linear(4, 4) for _ in range(2)]",
                "nn.ModuleList([nn.Linear(4, 4) for _ in range(2)])",
                "self.layers",
            ),
            (
                "(nn.Linear(4, 4), nn.Linear(4, 4))",
                "nn.ModuleList((nn.Linear(4, 4), nn.Linear(4, 4)))",
                "self.layers",
            ),
            (
                '{"a": nn.Linear(4, 4), "b": nn.Linear(4, 4)}',
                'nn.ModuleDict({"a": nn.Linear(4, 4), "b": nn.Linear(4, 4)})',
                "self.layers.values()",
            ),
        )
    )
    init = f"@-self.layers = {made[0]} #!\n@+self.layers = {made[1]}\nself.last = nn.Linear(4, 1)"
    forward = f"for layer in {made[2]}:\n    x = torch.tanh(layer(x))\nreturn self.last(x)"
    script.define(module_class("Net", init, forward))
    script.make("net", "net = Net()")
    add_optimizer(script, "opt", "net.parameters()")
    _one_net(script)


def layer_replaced(script: Script) -> None:
    """A layer is replaced after the optimizer was made."""
    bad = script.rng.choice(
        (
            "net[2] = nn.Linear(5, 1)",
            "net[2].weight = nn.Parameter(torch.ones(1, 5))",
            'setattr(net, "2", nn.Linear(5, 1))',
        )
    )
    script.make(
        "net", f"net = nn.Sequential(nn.Linear(4, 5), nn.{script.rng.choice(SMOOTH)}(), nn.Linear(5, 1))"
    )
    kind = script.rng.choice(
        ("torch.optim.SGD(net.parameters(), lr=0.1)", "torch.optim.Adam(net.parameters(), lr=0.01)")
    )
    script.make("opt", f"@-opt = {kind} #!\n@-{bad} #!\n@+{bad}\n@+opt = {kind}")
    add_batches(script, 4, 1)
    script.rounds.append("loss = (net(x) - y).pow(2).mean()")
    add_update(script, form="plain")
    script.rounds[-1] = script.rounds[-1].replace("opt.step()", "opt.step() #!")


def parameters_used_up(script: Script) -> None:
    """An iterator of parameters that was gone through before."""
    add_model(script, "net", 4, 1)
    script.make(
        "opt",
        "@-params = net.parameters() #!\n@+params = list(net.parameters())\ncount = sum(p.numel() for p in params)\n"
        "opt = torch.optim.SGD([{'params': params}, {'params': [nn.Parameter(torch.zeros(1))]}], lr=0.1) #!",
    )
    add_batches(script, 4, 1)
    script.rounds.append(
        "loss = (net(x) - y).pow(2).mean() * 1.0\nopt.zero_grad()\nloss.backward()\nopt.step() #!"
    )


def update_by_name(script: Script) -> None:
    """The update gives a new meaning to the loop's name."""
    add_model(script, "net", 4, 1)
    add_batches(script, 4, 1)
    bad, good = script.rng.choice(
        (
            ("p = p - 0.1 * p.grad", "p -= 0.1 * p.grad"),
            ("p = p.sub(p.grad, alpha=0.1)", "p.sub_(p.grad, alpha=0.1)"),
        )
    )
    script.rounds.append(
        "loss = (net(x) - y).pow(2).mean()\nnet.zero_grad()\nloss.backward()\nwith torch.no_grad():\n    for p in net.parameters():\n"
        f"@-        {bad} #!\n@+        {good}"
    )


def average_without_statistics(script: Script) -> None:
    """An average of a model leaves the statistics of its norm layers behind."""
    script.imports.add("import copy")
    script.make(
        "net",
        f"net = nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5), nn.{script.rng.choice(SMOOTH)}(), nn.Linear(5, 1))",
    )
    script.make(
        "ema", script.rng.choice(("ema = copy.deepcopy(net).eval()", "ema = copy.deepcopy(net)\nema.eval()"))
    )
    add_optimizer(script, "opt", "net.parameters()")
    _one_net(script)
    write = script.rng.choice(
        (
            "slow.mul_(0.9).add_(fast, alpha=0.1)",
            "slow.copy_(0.9 * slow + 0.1 * fast)",
            "slow.lerp_(fast, 0.1)",
        )
    )
    script.rounds.append(
        "with torch.no_grad():\n    for slow, fast in zip(ema.parameters(), net.parameters()): #!\n"
        f"        {write} #!\n@+    for slow, fast in zip(ema.buffers(), net.buffers()):\n@+        slow.copy_(fast)"
    )
    script.after.append("print(ema(torch.ones(3, 4)))")


def average_without_norms(script: Script) -> None:
    """The same with a model that has no statistics."""
    script.imports.add("import copy")
    script.make(
        "net",
        f"net = nn.Sequential(nn.Linear(4, 5), nn.LayerNorm(5), nn.{script.rng.choice(SMOOTH)}(), nn.Linear(5, 1))",
    )
    script.make("ema", "ema = copy.deepcopy(net).eval()")
    add_optimizer(script, "opt", "net.parameters()")
    _one_net(script)
    script.rounds.append(
        "with torch.no_grad():\n    for slow, fast in zip(ema.parameters(), net.parameters()):\n"
        "@-        slow.mul_(0.9).add_(fast, alpha=0.1)\n@+        slow.copy_(0.9 * slow + 0.1 * fast)"
    )
    script.after.append("print(ema(torch.ones(3, 4)))")


def buffer_between(script: Script) -> None:
    """A buffer that backward needs changes between forward and backward."""
    init = 'self.layer = nn.Linear(4, 3)\nself.register_buffer("scale", torch.ones(3))'
    script.define(module_class("Net", init, "return self.layer(x) * self.scale"))
    script.make("net", "net = Net()")
    add_optimizer(script, "opt", "net.parameters()")
    add_batches(script, 4, 3)
    write = script.rng.choice(
        (
            "net.scale.mul_(0.9)",
            "net.scale.mul_(0.9).add_(out.detach().abs().mean(0), alpha=0.1)",
            "net.scale += 0.1",
            "net.scale.copy_(out.detach().std(0))",
        )
    )
    script.rounds.append(
        f"out = net(x)\nloss = (out - y).pow(2).mean()\nopt.zero_grad()\n@-{write} #!\nloss.backward() #!\nopt.step()\n@+{write}"
    )


def frozen_moves(script: Script) -> None:
    """Frozen after its gradients were made, a part still moves by its momentum or decay."""
    script.make(
        "net", f"net = nn.Sequential(nn.Linear(4, 5), nn.{script.rng.choice(SMOOTH)}(), nn.Linear(5, 1))"
    )
    script.make("opt", "opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)")
    script.before.append("rounds = 0")
    add_batches(script, 4, 1)
    script.rounds.append(
        "rounds += 1\nif rounds == 2:\n@-    net[0].requires_grad_(False) #!\n@+    net[0].requires_grad_(False)\n@+    opt = torch.optim.SGD(net[2].parameters(), lr=0.1, momentum=0.9)\n"
        "loss = (net(x) - y).pow(2).mean()\nopt.zero_grad(set_to_none=False)\nloss.backward()\nopt.step() #!"
    )
    script.loops = ("script", "function", "main")


KINDS = (
    Kind(FAMILY, "head not optimized", head_not_optimized, "harms", ("GS512",)),
    Kind(FAMILY, "second optimizer repeats", second_optimizer_repeats, "harms", ("GS5",)),
    Kind(FAMILY, "never stepped", never_stepped, "harms", ("GS5",)),
    Kind(FAMILY, "shared part stepped twice", shared_part_stepped_twice, "harms", ("GS520",)),
    Kind(FAMILY, "flag on a module", module_flag, "harms", ("GS602",)),
    Kind(FAMILY, "freeze undone", freeze_undone, "harms", ("GS516",)),
    Kind(FAMILY, "only frozen", only_frozen, "harms", ("GS5",)),
    Kind(FAMILY, "layer unused", layer_unused, "harms", ("GS517",)),
    Kind(FAMILY, "parameter converted", parameter_converted, "harms", ("GS6", "GS512")),
    Kind(FAMILY, "layers in a list", layers_in_a_list, "harms", ("GS601",)),
    Kind(FAMILY, "layer replaced", layer_replaced, "harms", ("GS504", "GS512", "GS503")),
    Kind(FAMILY, "parameters used up", parameters_used_up, "harms", ("GS510", "GS518")),
    Kind(FAMILY, "update by name", update_by_name, "harms", ("GS515",)),
    Kind(FAMILY, "average without statistics", average_without_statistics, "harms", ("GS519",)),
    Kind(FAMILY, "buffer between", buffer_between, "harms", ("GS101", "GS106")),
    Kind(FAMILY, "frozen moves", frozen_moves, "harms", ("GS509",)),
    Kind(FAMILY, "safe: frozen on purpose", encoder_frozen_on_purpose, "same"),
    Kind(FAMILY, "safe: in turn", adversaries_in_turn, "same"),
    Kind(FAMILY, "safe: thawed later", thawed_later, "same"),
    Kind(FAMILY, "safe: used elsewhere", layer_used_elsewhere, "same"),
    Kind(FAMILY, "safe: no statistics", average_without_norms, "same"),
)
