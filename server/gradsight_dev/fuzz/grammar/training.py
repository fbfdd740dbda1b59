"""Training loops: optimizers, the order of zero_grad, backward and step, several losses, carried hidden states."""

from __future__ import annotations

from gradsight_dev.fuzz.grammar.draft import Draft
from gradsight_dev.fuzz.grammar.modules import define_module, sequential
from gradsight_dev.fuzz.grammar.values import make_leaf

OPTIMIZERS = (
    ("torch.optim.SGD({0}, lr=0.1)", 6.0),
    ("torch.optim.SGD({0}, lr=0.1, momentum=0.9)", 1.5),
    ("torch.optim.Adam({0}, lr=0.01)", 3.0),
    ("torch.optim.AdamW({0}, lr=0.01)", 1.0),
    ("torch.optim.RMSprop({0}, lr=0.01)", 0.3),
    ("torch.optim.SGD({0}, lr=0.1, foreach=False)", 0.5),
    ("torch.optim.SGD({0}, lr=0.1, fused=True)", 0.5),
    ("torch.optim.Adam({0}, lr=0.01, fused=True)", 0.3),
)
DISTANCES = (
    "F.mse_loss({0}, {1})",
    "((({0}) - {1}) ** 2).mean()",
    "F.smooth_l1_loss({0}, {1})",
    "({0}).pow(2).sum()",
    "({0}).mean()",
    "(({0}) * {1}).sum()",
    "F.binary_cross_entropy_with_logits({0}, {1}.sigmoid())",
)


def train_model(draft: Draft) -> None:
    """A model, an optimizer and a few steps."""
    model = build_model(draft, "model")
    _data(draft)
    draft.say(f"opt = {build_optimizer(draft, f'{model}.parameters()')}")
    scheduled = draft.chance(0.1)
    if scheduled:
        draft.say("scheduler = torch.optim.lr_scheduler.StepLR(opt, 1)")
    plan = draft.weighted(
        (
            ("plain", 5.0),
            ("two_losses", 3.0),
            ("forward_outside", 1.5),
            ("accumulated", 1.0),
            ("shared_forward", 2.0),
            ("closure", 0.5),
            ("loss_kept", 1.0),
            ("shuffled", 1.5),
        )
    )
    if plan == "forward_outside":
        forward(draft, "pred", model, "inputs")
    if plan == "accumulated" or plan == "loss_kept":
        draft.say("running = 0.0" if draft.chance(0.6) else "running = torch.zeros(())")
    with draft.block(f"for step in range({draft.rng.randint(2, 3)}):", in_loop=True):
        _step(draft, model, plan)
        if scheduled:
            draft.say("scheduler.step()")
    if plan in ("accumulated", "loss_kept") and draft.chance(0.5):
        draft.say("average = running / 2")


def train_by_hand(draft: Draft) -> None:
    """Leaves updated without an optimizer."""
    leaves = [make_leaf(draft, (draft.width, draft.width), "w"), make_leaf(draft, (draft.width,), "b")]
    _data(draft)
    form = draft.pick(
        (
            "inputs @ w + b",
            "torch.tanh(inputs @ w) * b",
            "(inputs @ w).relu() + b",
            "(inputs @ w + b).sigmoid()",
        )
    )
    outside = draft.dares() and draft.chance(0.3)
    if outside:
        draft.say(f"pred = {form}")
    with draft.block(f"for step in range({draft.rng.randint(2, 3)}):", in_loop=True):
        if not outside:
            draft.say(f"pred = {form}")
        perturb(draft, "pred")
        draft.say(f"loss = {draft.pick(DISTANCES).format('pred', 'target')}")
        draft.say(
            f"loss.backward({'retain_graph=True' if (outside and draft.chance(0.7)) or draft.chance(0.1) else ''})"
        )
        style = draft.weighted(
            (("no_grad", 6.0), ("data", 2.0), ("rebind", 1.0), ("bare", 1.0 if draft.daring > 0.3 else 0.1))
        )
        for leaf in leaves:
            _update(draft, leaf.text, style)
    if style == "rebind":
        draft.forget("w")


def recurrent(draft: Draft) -> None:
    """A state carried through time, inside one graph or across several."""
    width, rows = draft.width, draft.rows
    cell = draft.weighted(
        (
            ("torch.tanh({x} @ w + {h} @ u)", 4.0),
            ("torch.sigmoid({h} * {x}) + {h}", 1.0),
            ("{h} * 0.5 + {x} @ w", 1.5),
            ("cell({x}, {h})", 3.0),
            ("lin({x} + {h}).relu()", 1.5),
        )
    )
    parameters = "[w, u]"
    make_leaf(draft, (width, width), "w")
    make_leaf(draft, (width, width), "u")
    if cell.startswith("cell"):
        draft.say(f"cell = nn.{draft.pick(('RNNCell', 'GRUCell'))}({width}, {width})")
        parameters = "cell.parameters()"
    elif cell.startswith("lin"):
        draft.say(f"lin = nn.Linear({width}, {width})")
        parameters = "lin.parameters()"
    draft.say(f"h = torch.zeros({rows}, {width})")
    across = draft.chance(0.6)
    if across:
        draft.say(f"opt = {build_optimizer(draft, parameters)}")
        _carried_training(draft, cell)
    else:
        _unrolled(draft, cell)


def two_networks(draft: Draft) -> None:
    """Two models and two optimizers in turns, as adversarial training has them."""
    generator, critic = build_model(draft, "gen"), build_model(draft, "disc")
    draft.say(f"opt_g = {build_optimizer(draft, f'{generator}.parameters()')}")
    draft.say(f"opt_d = {build_optimizer(draft, f'{critic}.parameters()')}")
    draft.say(f"inputs = torch.randn({draft.rows}, {draft.width})")
    reuse = draft.chance(0.3)
    cut = draft.chance(0.75)
    with draft.block(f"for step in range({draft.rng.randint(1, 2)}):", in_loop=True):
        draft.say(f"fake = {generator}(inputs)")
        draft.say(f"verdict = {critic}(fake{'.detach()' if cut and not reuse else ''})")
        draft.say("opt_d.zero_grad()")
        draft.say("d_loss = verdict.pow(2).mean()")
        draft.say(f"d_loss.backward({'retain_graph=True' if reuse or draft.chance(0.4) else ''})")
        early = draft.chance(0.8)
        if early:
            draft.say("opt_d.step()")
        draft.say("opt_g.zero_grad()")
        draft.say("g_loss = -verdict.mean()" if reuse else f"g_loss = -{critic}(fake).mean()")
        draft.say("g_loss.backward()")
        if not early:
            draft.say("opt_d.step()")
        draft.say("opt_g.step()")


def optimized_leaves(draft: Draft) -> None:
    """An optimizer over plain tensors, some of which may not be leaves at all."""
    names = []
    for _ in range(draft.rng.randint(1, 2)):
        leaf = make_leaf(draft, (draft.rows, draft.width))
        names.append(leaf.text)
    if draft.dares() and draft.chance(0.6):
        change = draft.pick(
            (
                "{0} = {0} * 0.1",
                "{0} = {0}.double().float()",
                "{0} = {0}.to(torch.float64)",
                "{0} = {0} + 0",
                "{0} = {0}.clone()",
            )
        )
        draft.say(change.format(names[0]))
    elif draft.chance(0.3):
        change = draft.pick(
            ("{0} = {0}.to(torch.float32)", "{0} = {0}.float()", "{0} = {0}.contiguous()", "{0} = {0}.cpu()")
        )
        draft.say(change.format(names[0]))
    draft.say(f"opt = {build_optimizer(draft, '[' + ', '.join(names) + ']')}")
    before = draft.chance(0.35)
    if before:
        draft.say(f"y = {names[0]} ** 2" if draft.chance(0.6) else f"y = {names[0]} * 3")
    with draft.block(f"for step in range({draft.rng.randint(1, 3)}):", in_loop=True):
        if not before or draft.chance(0.5):
            draft.say(
                draft.pick(("y = {0} ** 2", "y = {0}.exp()", "y = {0} * 3", "y = ({0} - 1).abs()")).format(
                    names[0]
                )
            )
        draft.say(f"loss = y.sum(){' + ' + names[-1] + '.pow(2).sum()' if len(names) > 1 else ''}")
        lines = [
            "opt.zero_grad()",
            f"loss.backward({'retain_graph=True' if before and draft.chance(0.5) else ''})",
            "opt.step()",
        ]
        if draft.dares():
            draft.rng.shuffle(lines)
        for line in lines:
            draft.say(line)


def build_model(draft: Draft, name: str) -> str:
    """A model under this name: a Sequential, a single layer or a class of its own."""
    if draft.chance(0.45):
        draft.say(f"{name} = {sequential(draft)}")
    elif draft.chance(0.2):
        draft.say(f"{name} = nn.Linear({draft.width}, {draft.width})")
    else:
        _, cls = define_module(draft)
        draft.say(f"{name} = {cls}()")
    return name


def _data(draft: Draft) -> None:
    draft.say(f"inputs = torch.randn({draft.rows}, {draft.width})")
    draft.say(f"target = torch.randn({draft.rows}, {draft.width})")


def build_optimizer(draft: Draft, parameters: str) -> str:
    """The text of an optimizer over these parameters."""
    return draft.weighted(OPTIMIZERS).format(parameters)


def _two_losses(draft: Draft, model: str, plan: str, zero: str, loss: str) -> None:
    draft.say(loss)
    second = draft.pick(DISTANCES)
    source = "pred" if plan == "shared_forward" else f"{model}(inputs)"
    lines = [f"other = {second.format(source, 'target')}"]
    lines.append(
        f"loss.backward({'retain_graph=True' if plan == 'shared_forward' and draft.chance(0.75) else ''})"
    )
    if draft.chance(0.5):
        lines.append("opt.step()")
    if not draft.dares():
        lines = [line for line in lines if line != "opt.step()"]
    if draft.chance(0.3):
        lines.append(lines.pop(0))
    for line in (zero, *lines, "other.backward()", "opt.step()"):
        draft.say(line)


def _step(draft: Draft, model: str, plan: str) -> None:
    distance = draft.pick(DISTANCES)
    zero = draft.pick(
        ("opt.zero_grad()", "opt.zero_grad()", f"{model}.zero_grad()", "opt.zero_grad(set_to_none=False)")
    )
    again = "retain_graph=True"
    if plan != "forward_outside":
        forward(draft, "pred", model, "inputs")
    perturb(draft, "pred")
    if draft.chance(0.06):
        _rewrite_parameters(draft, model)
    loss = f"loss = {distance.format('pred', 'target')}"
    if plan in ("two_losses", "shared_forward"):
        _two_losses(draft, model, plan, zero, loss)
    elif plan == "forward_outside":
        keep = again if draft.chance(0.6) else ""
        step = draft.pick(("opt.step()", "opt.step()", ""))
        for line in (zero, loss, f"loss.backward({keep})", step):
            if line:
                draft.say(line)
    elif plan == "accumulated":
        for line in (
            loss,
            "loss = loss / 2",
            "loss.backward()",
            f"running += {draft.pick(('loss.item()', 'float(loss)', 'loss.detach()', 'loss'))}",
        ):
            draft.say(line)
        with draft.block("if step % 2 == 1:"):
            draft.say("opt.step()")
            draft.say(zero)
    elif plan == "loss_kept":
        kept = draft.pick(
            ("running = running + loss", "running = running + loss.item()", "running += loss.detach()")
        )
        keep = again if draft.chance(0.4) else ""
        use = draft.pick(
            (
                "loss.backward({})",
                "running.backward({})"
                if "item" not in kept and "detach" not in kept
                else "loss.backward({})",
            )
        )
        for line in (zero, loss, kept, use.format(keep), "opt.step()"):
            draft.say(line)
    elif plan == "closure":
        with draft.block("def closure():"):
            for line in (
                zero,
                f"result = {distance.format(f'{model}(inputs)', 'target')}",
                "result.backward()",
                "return result",
            ):
                draft.say(line)
        draft.say("opt.step(closure)")
    else:
        order = [zero, "loss.backward()", "opt.step()"]
        if plan == "shuffled":
            draft.rng.shuffle(order)
            if draft.chance(0.3):
                order.insert(
                    draft.rng.randint(0, 3),
                    draft.pick(
                        ("loss.backward()", "torch.nn.utils.clip_grad_norm_(" + model + ".parameters(), 1.0)")
                    ),
                )
        if draft.chance(0.3):
            order = [order[0], loss, *order[1:]] if order[0] == zero else [loss, *order]
        else:
            order = [loss, *order]
        for line in order:
            draft.say(line)


def forward(draft: Draft, result: str, model: str, source: str) -> None:
    """A forward pass, now and then in mixed precision."""
    if draft.chance(0.06):
        with draft.block('with torch.autocast("cpu", dtype=torch.bfloat16):'):
            draft.say(f"{result} = {model}({source})")
        draft.say(f"{result} = {result}.float()")
    else:
        draft.say(f"{result} = {model}({source})")


def _rewrite_parameters(draft: Draft, model: str) -> None:
    """Parameters changed between the forward pass and its backward."""
    style = draft.pick(("load", "init", "clamp"))
    if style == "load":
        draft.say(f"{model}.load_state_dict({model}.state_dict())")
    elif style == "init":
        draft.say(f"for p in {model}.parameters():")
        draft.say(f"    nn.init.{draft.pick(('normal_', 'zeros_', 'uniform_'))}(p)")
    else:
        draft.say(f"for p in {model}.parameters():")
        draft.say(f"    p.data.clamp_(-0.{draft.rng.randint(1, 5)}, 0.5)")


def perturb(draft: Draft, name: str) -> None:
    """Sometimes a statement between the forward pass and the loss."""
    if draft.chance(0.3):
        forms = [
            "{0} = {0} * 2",
            "{0} = {0}.clamp(-1, 1)",
            "{0} *= 2",
            "{0} += 1",
            "{0}[0] = 0",
            "{0} = {0} + 1",
        ]
        if draft.dares():
            forms += [
                "{0} = {0}.detach()",
                "{0}.data *= 2",
                "{0}.sigmoid_()",
                "{0} = {0}.exp()",
                "{0} /= {0}.norm()",
            ]
        draft.say(draft.pick(forms).format(name))


def _update(draft: Draft, leaf: str, style: str) -> None:
    if style == "no_grad":
        with draft.block("with torch.no_grad():"):
            draft.say(
                draft.pick(
                    (
                        f"{leaf} -= 0.1 * {leaf}.grad",
                        f"{leaf}.sub_(0.1 * {leaf}.grad)",
                        f"{leaf}.add_({leaf}.grad, alpha=-0.1)",
                    )
                )
            )
        draft.say(draft.pick((f"{leaf}.grad = None", f"{leaf}.grad.zero_()")))
    elif style == "data":
        draft.say(draft.pick((f"{leaf}.data -= 0.1 * {leaf}.grad", f"{leaf}.data.sub_(0.1 * {leaf}.grad)")))
        draft.say(f"{leaf}.grad = None")
    elif style == "rebind":
        if draft.dares() and draft.chance(0.5):
            draft.say(f"{leaf} = {leaf} - 0.1 * {leaf}.grad")
        else:
            draft.say(f"{leaf} = ({leaf} - 0.1 * {leaf}.grad).detach().requires_grad_()")
    else:
        draft.say(draft.pick((f"{leaf} -= 0.1 * {leaf}.grad", f"{leaf}.sub_(0.1 * {leaf}.grad)")))


def _carried_training(draft: Draft, cell: str) -> None:
    safe = not draft.dares()
    with draft.block(f"for chunk in range({draft.rng.randint(2, 3)}):", in_loop=True):
        if safe and draft.chance(0.8):
            draft.say(
                draft.pick(
                    (
                        "h = h.detach()",
                        "h = h.detach()",
                        "h.detach_()",
                        "h = h.data",
                        "h = h.clone().detach()",
                    )
                )
            )
        draft.say(f"x = torch.randn({draft.rows}, {draft.width})")
        steps = draft.chance(0.4)
        if steps:
            with draft.block("for t in range(2):"):
                draft.say("h = " + cell.format(x="x", h="h"))
        else:
            draft.say("h = " + cell.format(x="x", h="h"))
        perturb(draft, "h") if draft.chance(0.4) else None
        draft.say(f"loss = {draft.pick(('h.pow(2).mean()', 'h.sum()', '(h - 1).abs().sum()'))}")
        lines = ["opt.zero_grad()", f"loss.backward({'retain_graph=True' if draft.chance(0.35) else ''})"]
        if draft.chance(0.8):
            lines.append("opt.step()")
        for line in lines:
            draft.say(line)


def _unrolled(draft: Draft, cell: str) -> None:
    style = draft.weighted((("list", 3.0), ("table", 2.5), ("inplace", 2.5), ("sum", 2.0), ("last", 1.5)))
    rounds = draft.rng.randint(2, 3)
    size = f"{draft.rows}, {draft.width}"
    if style == "list":
        draft.say("outs = []")
    elif style == "table":
        draft.say(f"table = torch.zeros({rounds + 1}, {size})")
    elif style == "sum":
        draft.say(draft.pick(("total = 0", "total = torch.zeros(())")))
    draft.say(f"sequence = torch.randn({rounds}, {size})")
    with draft.block(f"for t in range({rounds}):", in_loop=True):
        state = draft.pick(("table[t]", "table[t].clone()")) if style == "table" else "h"
        text = cell.format(x="sequence[t]", h=state)
        if style == "table":
            draft.say(f"table[t + 1] = {text}")
        elif style == "inplace":
            draft.say(
                draft.pick(
                    (
                        f"h.copy_({text})",
                        f"h += {text}",
                        f"h[0] = ({text})[0]",
                        f"h.mul_(0.5).add_({text})",
                        f"h = h + {text}",
                    )
                )
            )
        else:
            draft.say(f"h = {text}")
            if draft.chance(0.3):
                draft.say(draft.pick(("h *= 0.9", "h = h * 0.9", "h += 0.1", "h[0] = 0", "h.clamp_(-1, 1)")))
        if style == "list":
            draft.say(
                draft.pick(
                    ("outs.append(h)", "outs.append(h.clone())", "outs.append(h.sum())", "outs.append(h * 2)")
                )
            )
        elif style == "sum":
            draft.say(
                draft.pick(("total = total + h.pow(2).sum()", "total += h.sum()", "total = total + h.mean()"))
            )
    ends = {
        "list": "torch.stack(outs).pow(2).sum()",
        "table": "table.sum()",
        "sum": "total",
        "inplace": "h.sum()",
        "last": "h.pow(2).sum()",
    }
    draft.say(f"loss = {ends[style]}")
    draft.say("loss.backward()")
