"""Whole recipes of training: carried LSTM states, scaled gradients, closures, hooks on modules, functional calls."""

from __future__ import annotations

from collections.abc import Callable

from gradsight_dev.fuzz.grammar.draft import Draft
from gradsight_dev.fuzz.grammar.training import DISTANCES, build_model, build_optimizer, perturb


def recipe(draft: Draft) -> None:
    """One of the recipes."""
    recipes: tuple[tuple[Callable[[Draft], None], float], ...] = (
        (carried_lstm, 2.0),
        (scaled, 1.5),
        (closed, 1.5),
        (hooked_module, 2.0),
        (functional, 2.0),
        (generator_of_parameters, 1.5),
        (partly_cut, 2.5),
        (accumulating, 2.0),
        (moving_average, 1.5),
    )
    draft.weighted(recipes)(draft)


def _inputs(draft: Draft) -> None:
    draft.say(f"inputs = torch.randn({draft.rows}, {draft.width})")
    draft.say(f"target = torch.randn({draft.rows}, {draft.width})")


def _loss(draft: Draft, prediction: str) -> str:
    return draft.pick(DISTANCES).format(prediction, "target")


def carried_lstm(draft: Draft) -> None:
    """A pair of states carried from chunk to chunk, detached or not."""
    width, rows = draft.width, draft.rows
    cell = draft.chance(0.5)
    layers = "" if cell else "1, "
    draft.say(f"rnn = nn.{'LSTMCell' if cell else draft.pick(('LSTM', 'LSTM', 'GRU'))}({width}, {width})")
    paired = cell or "LSTM" in draft.body[-1]
    zeros = f"torch.zeros({layers}{rows}, {width})"
    draft.say(f"state = ({zeros}, {zeros})" if paired else f"state = {zeros}")
    draft.say(f"opt = {build_optimizer(draft, 'rnn.parameters()')}")
    cut = not draft.dares()
    where = draft.pick(("before", "after"))
    detach = draft.pick(
        (
            "state = tuple(part.detach() for part in state)",
            "state = (state[0].detach(), state[1].detach())",
            "state = [part.detach() for part in state]",
            "state = tuple(map(torch.Tensor.detach, state))",
        )
        if paired
        else ("state = state.detach()", "state.detach_()", "state = state.data")
    )
    with draft.block(f"for chunk in range({draft.rng.randint(2, 3)}):", in_loop=True):
        if cut and where == "before":
            draft.say(detach)
        if cell:
            draft.say(f"state = rnn(torch.randn({rows}, {width}), state)")
            draft.say("out = state[0]")
        else:
            draft.say(f"out, state = rnn(torch.randn(2, {rows}, {width}), state)")
        perturb(draft, "out")
        draft.say("loss = out.pow(2).mean()")
        draft.say("opt.zero_grad()")
        draft.say(f"loss.backward({'retain_graph=True' if draft.chance(0.2) else ''})")
        if draft.chance(0.8):
            draft.say("opt.step()")
        if cut and where == "after":
            draft.say(detach)


def scaled(draft: Draft) -> None:
    """Mixed precision on the CPU with a scaler."""
    model = build_model(draft, "model")
    _inputs(draft)
    draft.say(f"opt = {build_optimizer(draft, f'{model}.parameters()')}")
    draft.say("scaler = torch.amp.GradScaler('cpu')")
    with draft.block(f"for step in range({draft.rng.randint(1, 2)}):", in_loop=True):
        draft.say("opt.zero_grad()")
        with draft.block("with torch.autocast('cpu', dtype=torch.bfloat16):"):
            draft.say(f"pred = {model}(inputs)")
        draft.say("pred = pred.float()")
        perturb(draft, "pred")
        draft.say(f"loss = {_loss(draft, 'pred')}")
        draft.say("scaler.scale(loss).backward()")
        if draft.chance(0.4):
            draft.say("scaler.unscale_(opt)")
            draft.say(f"torch.nn.utils.clip_grad_norm_({model}.parameters(), 1.0)")
        draft.say("scaler.step(opt)")
        draft.say("scaler.update()")
        if draft.dares() and draft.chance(0.5):
            draft.say("loss.backward()")


def closed(draft: Draft) -> None:
    """A closure that the optimizer calls, several times if it likes."""
    model = build_model(draft, "model")
    _inputs(draft)
    outside = draft.dares() and draft.chance(0.6)
    maker = draft.pick(("torch.optim.LBFGS({0}, lr=0.1, max_iter=2)", "torch.optim.SGD({0}, lr=0.1)"))
    draft.say(f"opt = {maker.format(f'{model}.parameters()')}")
    if outside:
        draft.say(f"pred = {model}(inputs)")
    with draft.block("def closure():"):
        draft.say("opt.zero_grad()")
        if not outside:
            draft.say(f"pred = {model}(inputs)")
        draft.say(f"loss = {_loss(draft, 'pred')}")
        draft.say("loss.backward()")
        draft.say("return loss")
    with draft.block(f"for step in range({draft.rng.randint(1, 2)}):", in_loop=True):
        draft.say(f"{draft.pick(('', 'value = '))}opt.step(closure)")


def hooked_module(draft: Draft) -> None:
    """Hooks on modules that look at, replace or write what passes by."""
    model = build_model(draft, "model")
    _inputs(draft)
    kind = draft.pick(("forward", "pre", "full_backward"))
    if kind == "forward":
        bodies = [
            "kept.append(output)",
            "kept.append(output.detach())",
            "return output * 2",
            "return output.clone()",
        ]
        if draft.dares():
            bodies += ["output.mul_(2)", "output.detach_()", "output += 1", "return output.detach()"]
        draft.say("kept = []")
        with draft.block("def watch(module, args, output):"):
            draft.say(draft.pick(bodies))
        draft.say(f"handle = {model}.register_forward_hook(watch)")
    elif kind == "pre":
        bodies = ["return (args[0] * 2,)", "return (args[0].clone(),)", "kept.append(args[0])"]
        if draft.dares():
            bodies += ["args[0].mul_(2)", "return (args[0].detach(),)"]
        draft.say("kept = []")
        with draft.block("def prepare(module, args):"):
            draft.say(draft.pick(bodies))
        draft.say(f"handle = {model}.register_forward_pre_hook(prepare)")
    else:
        with draft.block("def shrink(module, grad_input, grad_output):"):
            draft.say(
                draft.pick(("return tuple(g * 0.5 if g is not None else None for g in grad_input)", "pass"))
            )
        draft.say(f"handle = {model}.register_full_backward_hook(shrink)")
    twice = draft.chance(0.3)
    leaf = draft.chance(0.4)
    if leaf:
        draft.say("inputs.requires_grad_()")
    draft.say(f"pred = {model}(inputs)")
    if draft.chance(0.4):
        draft.say("handle.remove()")
    perturb(draft, "pred")
    draft.say(f"loss = {_loss(draft, 'pred')}")
    draft.say(f"loss.backward({'retain_graph=True' if twice and draft.chance(0.6) else ''})")
    if twice:
        draft.say(f"{draft.pick(('loss', 'pred.sum()'))}.backward()")
    if leaf and draft.chance(0.5):
        draft.say("step = inputs.grad.sign()")


def functional(draft: Draft) -> None:
    """A module applied to other parameters than its own."""
    model = build_model(draft, "model")
    _inputs(draft)
    made = draft.pick(
        (
            "dict({0}.named_parameters())",
            "{{name: p.detach().clone().requires_grad_() for name, p in {0}.named_parameters()}}",
            "{{name: p * 1.0 for name, p in {0}.named_parameters()}}",
            "{{name: p.clone() for name, p in {0}.named_parameters()}}",
        )
    )
    draft.say(f"params = {made.format(model)}")
    style = draft.pick(("backward", "grad", "inner", "func"))
    if style == "func":
        with draft.block("def objective(given):"):
            draft.say(f"pred = torch.func.functional_call({model}, given, (inputs,))")
            draft.say(f"return {_loss(draft, 'pred')}")
        draft.say("grads = torch.func.grad(objective)(params)")
        around = "with torch.no_grad():" if draft.chance(0.8) else "if True:"
        with draft.block(around), draft.block("for name, p in params.items():"):
            draft.say(draft.pick(("p -= 0.1 * grads[name]", "p.sub_(0.1 * grads[name])")))
        return
    draft.say(f"pred = torch.func.functional_call({model}, params, (inputs,))")
    perturb(draft, "pred")
    draft.say(f"loss = {_loss(draft, 'pred')}")
    if style == "backward":
        draft.say("loss.backward()")
        if draft.chance(0.4):
            draft.say(f"first = next(iter({draft.pick((f'{model}.parameters()', 'params.values()'))}))")
            draft.say("norm = first.grad.norm()")
        return
    create = ", create_graph=True" if style == "inner" and draft.chance(0.7) else ""
    draft.say(f"grads = torch.autograd.grad(loss, list(params.values()){create}, allow_unused=True)")
    with draft.block("fast = {", in_loop=False):
        draft.say("name: p if g is None else p - 0.1 * g")
        draft.say("for (name, p), g in zip(params.items(), grads)")
    draft.say("}")
    draft.say(f"again = torch.func.functional_call({model}, fast, (inputs,))")
    draft.say(f"{_loss(draft, 'again')}.backward()")


def generator_of_parameters(draft: Draft) -> None:
    """`parameters()` is a generator: what has gone through it once finds nothing the second time."""
    model = build_model(draft, "model")
    _inputs(draft)
    draft.say(
        f"params = {draft.pick(('{0}.parameters()', 'list({0}.parameters())', 'tuple({0}.parameters())')).format(model)}"
    )
    lazy = "list" not in draft.body[-1] and "tuple" not in draft.body[-1]
    draft.say(f"opt = {build_optimizer(draft, f'{model}.parameters()' if lazy else 'params')}")
    if draft.chance(0.5):
        draft.say("count = sum(p.numel() for p in params)")
    with draft.block(f"for step in range({draft.rng.randint(2, 3)}):", in_loop=True):
        draft.say(f"pred = {model}(inputs)")
        perturb(draft, "pred")
        draft.say(f"loss = {_loss(draft, 'pred')}")
        draft.say("opt.zero_grad()")
        draft.say("loss.backward()")
        if draft.chance(0.4):
            draft.say("torch.nn.utils.clip_grad_norm_(params, 1.0)")
        if draft.chance(0.5):
            with draft.block("for p in params:"):
                if draft.dares() and not lazy:
                    draft.say("p -= 0.1 * p.grad")
                else:
                    draft.say(draft.pick(("p.data.mul_(0.9)", "p.grad = None", "p.requires_grad_(True)")))
        draft.say("opt.step()")


def partly_cut(draft: Draft) -> None:
    """One term of the loss is cut off, another still trains the same parameters."""
    model = build_model(draft, "model")
    _inputs(draft)
    other = draft.chance(0.4)
    if other:
        draft.say(f"teacher = nn.Linear({draft.width}, {draft.width})")
    draft.say(f"opt = {build_optimizer(draft, f'{model}.parameters()')}")
    with draft.block(f"for step in range({draft.rng.randint(1, 3)}):", in_loop=True):
        draft.say(f"pred = {model}(inputs)")
        source = "teacher(inputs)" if other else "pred"
        cut = draft.pick(
            (
                "{0}.detach()",
                "{0}.data",
                "{0}.detach().clone()",
                "torch.tensor({0}.tolist())",
                "{0}.detach().numpy().mean()",
            )
        ).format(source)
        draft.say(f"anchor = {cut}")
        perturb(draft, "pred")
        terms = [
            "F.mse_loss(pred, target)",
            "(pred * anchor).sum()",
            "(anchor ** 2).sum()" if "numpy" not in cut else "anchor",
            "pred.abs().mean()",
        ]
        chosen = draft.rng.sample(terms, 2)
        if draft.dares() and draft.chance(0.3) and "numpy" not in cut:
            chosen = [terms[2]]
        draft.say(f"loss = {' + 0.1 * '.join(chosen)}")
        draft.say("opt.zero_grad()")
        draft.say("loss.backward()")
        draft.say("opt.step()")


def accumulating(draft: Draft) -> None:
    """Gradients or losses gathered over several batches before a step."""
    model = build_model(draft, "model")
    _inputs(draft)
    draft.say(f"opt = {build_optimizer(draft, f'{model}.parameters()')}")
    style = draft.pick(("gradients", "losses", "list", "running"))
    if style == "list":
        draft.say("losses = []")
    elif style in ("losses", "running"):
        draft.say(draft.pick(("total = 0", "total = torch.zeros(())", "total = 0.0")))
    every = draft.rng.randint(1, 2)
    with draft.block(f"for step in range({draft.rng.randint(2, 4)}):", in_loop=True):
        draft.say(f"pred = {model}(inputs)")
        draft.say(f"loss = {_loss(draft, 'pred')}")
        if style == "gradients":
            draft.say(
                draft.pick(("(loss / 2).backward()", "loss = loss / 2; loss.backward()", "loss.backward()"))
            )
        elif style == "list":
            draft.say(
                draft.pick(
                    ("losses.append(loss)", "losses.append(loss.item())", "losses.append(loss.detach())")
                )
            )
            if draft.chance(0.5):
                draft.say("loss.backward()")
        elif style == "losses":
            draft.say(draft.pick(("total = total + loss", "total += loss")))
        else:
            draft.say("loss.backward()")
            draft.say(
                draft.pick(("total = total + loss.item()", "total += loss.detach()", "total = total + loss"))
            )
        with draft.block(f"if (step + 1) % {every} == 0:"):
            if style == "losses":
                keep = draft.chance(0.3)
                draft.say(f"total.backward({'retain_graph=True' if keep else ''})")
                if draft.chance(0.6):
                    draft.say("total = 0")
            draft.say("opt.step()")
            draft.say("opt.zero_grad()")
    if style == "list" and "append(loss)" in "".join(draft.body[-8:]) and draft.chance(0.7):
        draft.say("torch.stack(losses).mean().backward()")


def moving_average(draft: Draft) -> None:
    """A second network that follows the first."""
    model = build_model(draft, "model")
    _inputs(draft)
    draft.say(f"shadow = copy.deepcopy({model})")
    frozen = draft.chance(0.6)
    if frozen:
        draft.say(
            draft.pick(
                ("shadow.requires_grad_(False)", "for p in shadow.parameters(): p.requires_grad = False")
            )
        )
    draft.say(f"opt = {build_optimizer(draft, f'{model}.parameters()')}")
    with draft.block(f"for step in range({draft.rng.randint(1, 3)}):", in_loop=True):
        draft.say(f"pred = {model}(inputs)")
        if draft.chance(0.5):
            with draft.block("with torch.no_grad():"):
                draft.say("aim = shadow(inputs)")
        else:
            draft.say(f"aim = shadow(inputs){draft.pick(('', '.detach()'))}")
        update = draft.pick(
            (
                "old.mul_(0.9).add_(new, alpha=0.1)",
                "old.copy_(0.9 * old + 0.1 * new)",
                "old.lerp_(new, 0.1)",
                "old.data.mul_(0.9).add_(new.data, alpha=0.1)",
            )
        )
        early = draft.chance(0.3)

        around = "with torch.no_grad():" if not draft.dares() or draft.chance(0.6) else "if True:"

        def follow() -> None:
            pairs = f"zip(shadow.parameters(), {model}.parameters())"
            with draft.block(around), draft.block(f"for old, new in {pairs}:"):
                draft.say(update)

        if early:
            follow()
        draft.say("loss = F.mse_loss(pred, aim)")
        draft.say("opt.zero_grad()")
        draft.say("loss.backward()")
        draft.say("opt.step()")
        if not early:
            follow()
