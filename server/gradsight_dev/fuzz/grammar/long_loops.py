"""Training over many rounds in which something starts late, happens once, or now and then."""

from __future__ import annotations

from collections.abc import Callable

from gradsight_dev.fuzz.grammar import long_memories
from gradsight_dev.fuzz.grammar.draft import Draft
from gradsight_dev.fuzz.grammar.long_parts import (
    PLAIN,
    SAVING,
    log_sometimes,
    long_leaf,
    long_model,
    scalar_of,
    write_value,
)
from gradsight_dev.fuzz.grammar.rounds import (
    Rounds,
    beginning_of_period,
    late,
    long_loop,
    once,
    periodic,
    plan_rounds,
    some_moment,
    when,
)
from gradsight_dev.fuzz.grammar.training import build_optimizer


def long_loops(draft: Draft) -> None:
    """One of the plans."""
    plans: tuple[tuple[Callable[[Draft], None], float], ...] = (
        (collected_terms, 3.0),
        (chosen_terms, 1.5),
        (trained, 3.0),
        (trained_by_hand, 2.0),
        (long_memories.truncated_time, 2.0),
        (long_memories.replayed, 2.0),
        (thawed, 1.5),
        (synchronised, 2.0),
        (long_memories.best_so_far, 1.5),
        (in_turns, 1.5),
        (long_memories.refreshed_cache, 2.0),
        (long_memories.previous_round, 1.5),
        (long_memories.filled_table, 1.5),
        (trainer_object, 2.0),
        (penalty_now_and_then, 1.2),
        (nested_rounds, 1.5),
        (attack, 1.0),
    )
    draft.weighted(plans)(draft)


def collected_terms(draft: Draft) -> None:
    """A sum or list of terms that starts late; one backward after the loop."""
    w = long_leaf(draft)
    style = draft.pick(("sum", "list", "none", "dict", "number"))
    start = {
        "sum": "total = torch.zeros(())",
        "list": "terms = []",
        "none": "total = None",
        "dict": "terms = {}",
        "number": "total = 0.0",
    }
    draft.say(start[style])
    header, rounds = plan_rounds(draft)
    moment = some_moment(draft, rounds)
    fault = draft.dares()
    sort = draft.pick(("write", "cut", "number", "later_write", "none")) if fault else "none"
    fault_moment = some_moment(draft, rounds) if fault and draft.chance(0.5) else moment
    with long_loop(draft, header, rounds):
        if fault_moment is moment:
            with when(draft, moment, rest=True):
                _term(draft, w, rounds, style, sort)
        else:
            with when(draft, moment):
                _term(draft, w, rounds, style, "none" if sort == "write" else sort)
                if sort == "write":
                    draft.say("keep = out")
            if sort == "write":
                with when(draft, fault_moment):
                    draft.say(f"{w}.data.mul_(0.5)" if draft.chance(0.2) else f"{w} *= 0.5")
    if sort == "later_write":
        draft.say("with torch.no_grad():")
        draft.say(f"    {w}.mul_(0.5)")
    total = {
        "sum": "total",
        "none": "total",
        "number": "total",
        "list": draft.pick(("sum(terms)", "torch.stack(terms).mean()", "torch.stack(terms).sum()")),
        "dict": draft.pick(("sum(terms.values())", "torch.stack(list(terms.values())).mean()")),
    }
    draft.say(f"{total[style]}.backward()")
    if draft.chance(0.5):
        draft.say(f"size = {w}.grad.norm()")


def _term(draft: Draft, w: str, rounds: Rounds, style: str, sort: str) -> None:
    made = f"{w} * {rounds.item}"
    draft.say(f"out = {draft.pick(SAVING if sort == 'write' or draft.chance(0.4) else PLAIN).format(made)}")
    if sort == "write" or (draft.chance(0.2) and "* 2" in draft.body[-1]):
        write_value(draft, "out")
    term = scalar_of(draft, "out")
    if sort == "cut":
        term = draft.pick((f"{term}.detach()", f"{term}.data"))
    elif sort == "number":
        term = f"{term}.item()" if style == "sum" else f"{term}.detach()"
    add = {
        "sum": draft.pick((f"total = total + {term}", f"total += {term}")),
        "number": f"total = total + {term}",
        "list": f"terms.append({term})",
        "none": f"total = {term} if total is None else total + {term}",
        "dict": f"terms[{rounds.counter}] = {term}",
    }
    draft.say(add[style])


def chosen_terms(draft: Draft) -> None:
    """Terms by comprehension, conditional expression, `and`/`or`, a helper that returns early, or `match`."""
    w = long_leaf(draft)
    count = draft.rng.randint(13, 60)
    start = draft.rng.randint(1, count - 3)
    style = draft.pick(("comprehension", "generator", "ifexp", "helper", "match", "skipping", "filter"))
    saves = draft.chance(0.5)
    form = draft.pick(SAVING if saves else PLAIN).format(f"{w} * t")
    cut = ".detach()" if draft.dares() and draft.chance(0.4) else ""
    period = draft.rng.randint(2, count - 2)
    condition = draft.pick(
        (f"t >= {start}", f"t % {period} == {period - 1}", f"t == {start}", f"t > {start} and t % 2")
    )
    if style in ("comprehension", "generator"):
        inner = f"({form}).sum(){cut} for t in range({count}) if {condition}"
        draft.say(
            f"total = torch.stack([{inner}]).sum()" if style == "comprehension" else f"total = sum({inner})"
        )
    elif style == "filter":
        draft.say(f"chosen = [t for t in range({count}) if {condition}]")
        draft.say("total = torch.zeros(())")
        with draft.block("for t in chosen:"):
            draft.say(f"total = total + ({form}).sum(){cut}")
    elif style == "skipping":
        with draft.definition("def chosen(count):"), draft.block("for t in range(count):"):
            with draft.block(f"if not ({condition}):"):
                draft.say("continue")
            draft.say("yield t")
        draft.say("total = torch.zeros(())")
        with draft.block(f"for t in chosen({count}):"):
            draft.say(f"total = total + ({form}).sum(){cut}")
    elif style == "helper":
        with draft.definition(f"def term(t, {w}):"):
            with draft.block(f"if not ({condition}):"):
                draft.say("return torch.zeros(())")
            draft.say(f"value = {form}")
            if draft.dares() and draft.chance(0.5):
                write_value(draft, "value")
            draft.say(f"return value.sum(){cut}")
        draft.say("total = torch.zeros(())")
        with draft.block(f"for t in range({count}):"):
            draft.say(f"total = total + term(t, {w})")
    else:
        draft.say("total = torch.zeros(())")
        with draft.block(f"for t in range({count}):"):
            if style == "ifexp":
                draft.say(f"total = total + (({form}).sum(){cut} if {condition} else 0.0)")
            else:
                with draft.block("match t:"):
                    with draft.block(f"case {start}:"):
                        draft.say(f"value = {form}")
                        if draft.dares() and draft.chance(0.5):
                            write_value(draft, "value")
                        draft.say(f"total = total + value.sum(){cut}")
                    if draft.chance(0.4):
                        with draft.block("case _:"):
                            draft.say("pass")
    draft.say("total.backward()")
    if draft.dares() and draft.chance(0.2):
        draft.say("total.backward()")


def trained(draft: Draft) -> None:
    """An ordinary training loop with a warm-up, accumulation, or something strange in a late round."""
    model = long_model(draft)
    draft.say(f"opt = {build_optimizer(draft, f'{model}.parameters()')}")
    header, rounds = plan_rounds(draft)
    plan = draft.pick(("plain", "accumulate", "warmup", "zero_now_and_then", "late_term"))
    moment = (
        periodic(draft, rounds) if plan in ("accumulate", "zero_now_and_then") else some_moment(draft, rounds)
    )
    fault = draft.pick(("write", "twice", "step_between", "leaf")) if draft.dares() else "none"
    when_faulty = some_moment(draft, rounds)
    if draft.chance(0.2):
        draft.say("opt.zero_grad()")
    with long_loop(draft, header, rounds):
        if plan == "warmup":
            with draft.block(f"if {moment.fails}:"):
                draft.say("continue")
        form = draft.pick(SAVING) if fault == "write" else draft.pick((*SAVING, "{0}", *PLAIN))
        draft.say(f"pred = {form.format(f'{model}({rounds.item})')}")
        if fault == "write":
            with when(draft, when_faulty):
                write_value(draft, "pred")
        draft.say(f"loss = {scalar_of(draft, 'pred')}")
        if plan == "late_term":
            with when(draft, moment):
                draft.say(f"loss = loss + {draft.number()} * {scalar_of(draft, f'{model}({rounds.item})')}")
        if fault == "step_between":
            with when(draft, when_faulty):
                draft.say(f"for p in {model}.parameters():")
                draft.say(
                    f"    {draft.pick(('p.data.mul_(0.9)', 'torch.nn.init.zeros_(p)', 'p.detach().mul_(0.9)'))}"
                )
        if plan not in ("accumulate", "zero_now_and_then"):
            draft.say("opt.zero_grad()")
        draft.say("loss.backward()")
        if fault == "twice":
            with when(draft, when_faulty):
                draft.say(draft.pick(("loss.backward()", "pred.sum().backward()")))
        if fault == "leaf":
            with when(draft, when_faulty):
                draft.say(f"for p in {model}.parameters():")
                draft.say(f"    {draft.pick(('p -= 0.1 * p.grad', 'p.mul_(0.9)', 'p.clamp_(-1, 1)'))}")
        log_sometimes(draft, rounds, "loss")
        if plan in ("accumulate", "zero_now_and_then"):
            if plan == "zero_now_and_then":
                draft.say("opt.step()")
            with when(draft, moment, rest=True):
                if plan == "accumulate":
                    draft.say("opt.step()")
                draft.say("opt.zero_grad()")
        else:
            draft.say("opt.step()")


def trained_by_hand(draft: Draft) -> None:
    """A leaf updated without an optimizer, at some moments in another way."""
    w = long_leaf(draft)
    header, rounds = plan_rounds(draft)
    moment = some_moment(draft, rounds)
    fault = draft.pick(("leaf", "rebind", "read_early", "grad_none", "data")) if draft.dares() else "none"
    warm = late(draft, rounds) if draft.chance(0.3) else None
    with long_loop(draft, header, rounds):
        if fault == "read_early":
            with when(
                draft, once(draft, rounds) if draft.chance(0.3) else beginning_of_period(draft, rounds, 7)
            ):
                draft.say(f"size = {w}.grad.norm()")
        if warm is not None:
            with draft.block(f"if {warm.fails}:"):
                draft.say("continue")
        draft.say(f"pred = {draft.pick((*SAVING, *PLAIN)).format(f'{w} * {rounds.item}')}")
        draft.say(f"loss = {scalar_of(draft, 'pred')}")
        draft.say("loss.backward()")
        if fault == "grad_none":
            with when(draft, moment):
                draft.say(f"{w}.grad = None")
        if fault == "leaf":
            with when(draft, moment):
                draft.say(draft.pick((f"{w} -= 0.1 * {w}.grad", f"{w}.clamp_(-1, 1)", f"{w}[0] = 0")))
        if fault == "rebind":
            with when(draft, moment):
                draft.say(f"{w} = {w} - 0.1 * {w}.grad")
        else:
            with draft.block("with torch.no_grad():"):
                draft.say(f"{w} -= 0.1 * {w}.grad")
        log_sometimes(draft, rounds, "loss")
        if draft.chance(0.5):
            with when(draft, periodic(draft, rounds), rest=True):
                draft.say(draft.pick((f"{w}.grad.zero_()", f"{w}.grad = {w}.grad * 0")))
        else:
            draft.say(f"{w}.grad.zero_()")


def thawed(draft: Draft) -> None:
    """Frozen parts that learn from some round on; the loss may have no graph before."""
    width = draft.width
    draft.say(f"body = nn.Linear({width}, {width})")
    draft.say(f"head = nn.Linear({width}, {width})")
    freeze = draft.pick(("body.requires_grad_(False)", "for p in body.parameters(): p.requires_grad = False"))
    draft.say(freeze)
    all_frozen = draft.dares() or draft.chance(0.3)
    if all_frozen:
        draft.say("head.requires_grad_(False)")
    draft.say("opt = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.1)")
    header, rounds = plan_rounds(draft)
    start = draft.rng.randint(1, rounds.count - 4)
    moment = late(draft, rounds, start)
    here = rounds.number(start)
    guarded = all_frozen and draft.chance(0.6)
    by_flag = draft.chance(0.3)
    with long_loop(draft, header, rounds):
        with draft.block(f"if {rounds.counter} {draft.pick(('==', '>='))} {here}:"):
            draft.say("body.requires_grad_(True)" if draft.chance(0.5) else "for p in body.parameters():")
            if draft.body[-1].endswith(":"):
                draft.say("    p.requires_grad = True")
            if draft.chance(0.3):
                draft.say("head.requires_grad_(True)")
        draft.say(f"loss = {scalar_of(draft, f'head(body({rounds.item}))')}")
        lines = ["opt.zero_grad()", "loss.backward()", "opt.step()"]
        if guarded:
            with draft.block("if loss.requires_grad:") if by_flag else when(draft, moment):
                for line in lines:
                    draft.say(line)
        else:
            for line in lines:
                draft.say(line)
        log_sometimes(draft, rounds, "loss")


def synchronised(draft: Draft) -> None:
    """A second network that follows the first every so many rounds or after a warm-up."""
    model = long_model(draft, "online")
    draft.say("target = copy.deepcopy(online)")
    if draft.chance(0.5):
        draft.say("target.requires_grad_(False)")
    draft.say(f"opt = {build_optimizer(draft, f'{model}.parameters()')}")
    header, rounds = plan_rounds(draft)
    moment = some_moment(draft, rounds)
    fault = draft.pick(("no_mode", "between")) if draft.dares() else "none"
    update = draft.pick(("load", "copy", "average"))

    def follow() -> None:
        with when(draft, moment):
            if update == "load" and fault != "no_mode":
                draft.say("target.load_state_dict(online.state_dict())")
                return
            around = "if True:" if fault == "no_mode" else "with torch.no_grad():"
            with (
                draft.block(around),
                draft.block("for old, new in zip(target.parameters(), online.parameters()):"),
            ):
                draft.say("old.copy_(new)" if update == "copy" else "old.mul_(0.9).add_(new, alpha=0.1)")

    with long_loop(draft, header, rounds):
        draft.say(f"batch_now = {rounds.item}")
        quiet = draft.chance(0.6)
        if quiet:
            with draft.block("with torch.no_grad():"):
                draft.say("aim = target(batch_now)")
        else:
            draft.say("aim = target(batch_now)" + (".detach()" if fault != "between" else ""))
        draft.say("loss = F.mse_loss(online(batch_now), aim)")
        if fault == "between":
            with when(draft, moment):
                draft.say("online.load_state_dict(target.state_dict())")
        draft.say("opt.zero_grad()")
        draft.say("loss.backward()")
        draft.say("opt.step()")
        if fault != "between":
            follow()
        log_sometimes(draft, rounds, "loss")


def in_turns(draft: Draft) -> None:
    """Two optimizers, one of which has its turn every so many rounds."""
    gen, critic = long_model(draft, "gen"), long_model(draft, "critic")
    draft.say(f"opt_g = {build_optimizer(draft, f'{gen}.parameters()')}")
    draft.say(f"opt_c = {build_optimizer(draft, f'{critic}.parameters()')}")
    header, rounds = plan_rounds(draft)
    period = draft.rng.randint(2, 9)
    moment = periodic(draft, rounds, period)
    fault = draft.pick(("attached", "same_verdict")) if draft.dares() else "none"
    with long_loop(draft, header, rounds):
        draft.say(f"fake = gen({rounds.item})")
        draft.say(f"verdict = critic(fake{'' if fault != 'none' else '.detach()'})")
        draft.say("opt_c.zero_grad()")
        draft.say(f"loss_c = {scalar_of(draft, 'verdict')}")
        draft.say("loss_c.backward()")
        draft.say("opt_c.step()")
        with when(draft, moment, rest=True):
            draft.say("opt_g.zero_grad()")
            draft.say(f"loss_g = -{'verdict' if fault == 'same_verdict' else 'critic(fake)'}.mean()")
            draft.say("loss_g.backward()")
            draft.say("opt_g.step()")


def trainer_object(draft: Draft) -> None:
    """A class that trains, counts its own steps, and returns early at first."""
    width = draft.width
    start = draft.rng.randint(1, 20)
    period = draft.rng.randint(2, 16)
    fault = draft.pick(("write", "twice", "leaf", "kept")) if draft.dares() else "none"
    behind = draft.pick(
        (f"self.steps == {start + 3}", f"self.steps > {start + 2}", f"self.steps % {period} == 0")
    )
    with draft.definition("class Trainer:"):
        with draft.block("def __init__(self):"):
            draft.say(f"self.model = nn.Linear({width}, {width})")
            draft.say("self.opt = torch.optim.SGD(self.model.parameters(), lr=0.1)")
            draft.say("self.steps = 0")
            draft.say("self.last = None")
        draft.say("")
        with draft.block("def update(self, batch):"):
            draft.say("self.steps += 1")
            with draft.block(f"if self.steps < {start}:"):
                draft.say(draft.pick(("return None", "return 0.0", "return torch.zeros(())")))
            draft.say("out = torch.sigmoid(self.model(batch))")
            if fault == "write":
                with draft.block(f"if {behind}:"):
                    write_value(draft, "out")
            draft.say(f"loss = {scalar_of(draft, 'out')}")
            with draft.block("if self.last is not None:"):
                draft.say("loss = loss + (out.mean() - self.last).pow(2)")
            draft.say("self.opt.zero_grad()")
            draft.say("loss.backward()")
            if fault == "twice":
                with draft.block(f"if {behind}:"):
                    draft.say("loss.backward()")
            if fault == "leaf":
                with draft.block(f"if {behind}:"):
                    draft.say("self.model.weight.mul_(0.9)")
            draft.say("self.opt.step()")
            with draft.block(f"if self.steps % {period} == 0:"):
                draft.say(f"self.last = out.mean(){'' if fault == 'kept' else '.detach()'}")
            draft.say(draft.pick(("return loss.item()", "return loss.detach()", "return loss")))
    draft.say("trainer = Trainer()")
    header, rounds = plan_rounds(draft, least=start + 8, most=start + 50)
    with long_loop(draft, header, rounds):
        draft.say(f"value = trainer.update({rounds.item})")
        with draft.block("if value is None:"):
            draft.say("continue")
        log_sometimes(draft, rounds, "torch.as_tensor(value)")


def penalty_now_and_then(draft: Draft) -> None:
    """A penalty on the gradient every so many rounds."""
    model = long_model(draft)
    draft.say(f"opt = {build_optimizer(draft, f'{model}.parameters()')}")
    header, rounds = plan_rounds(draft)
    moment = some_moment(draft, rounds)
    keeps = not draft.dares()
    with long_loop(draft, header, rounds):
        draft.say(f"x = {rounds.item}.clone().requires_grad_()")
        draft.say(f"out = torch.tanh({model}(x)).sum()")
        draft.say("penalty = torch.zeros(())")
        with when(draft, moment):
            draft.say(f"(g,) = torch.autograd.grad(out, x{', create_graph=True' if keeps else ''})")
            draft.say("penalty = g.pow(2).sum()")
        draft.say("opt.zero_grad()")
        draft.say("(out + penalty).backward()")
        draft.say("opt.step()")


def nested_rounds(draft: Draft) -> None:
    """Epochs and batches, with a count that goes on over both."""
    model = long_model(draft)
    draft.say(f"opt = {build_optimizer(draft, f'{model}.parameters()')}")
    epochs, inner = draft.rng.choice(((13, 2), (20, 2), (4, 14), (3, 20), (6, 6), (15, 3)))
    warm = draft.rng.randint(1, epochs * inner - 3)
    late_epoch = draft.rng.randint(1, epochs - 1)
    condition = draft.pick(
        (
            f"seen > {warm}",
            f"epoch >= {late_epoch}",
            f"epoch * {inner} + i > {warm}",
            f"epoch == {late_epoch} and i == {inner - 1}",
            f"i == {inner - 1}",
        )
    )
    fault = draft.pick(("write", "twice", "leaf", "epoch_loss")) if draft.dares() else "none"
    outside = draft.chance(0.5)
    draft.say("seen = 0")
    with draft.block(f"for epoch in range({epochs}):", in_loop=True):
        draft.say("epoch_loss = 0.0")
        with draft.block(f"for i in range({inner}):"):
            draft.say("seen += 1")
            if fault == "none" and outside:
                with draft.block(f"if not ({condition}):"):
                    draft.say("continue")
            draft.say(f"pred = torch.tanh({model}(torch.randn({draft.rows}, {draft.width})))")
            if fault == "write":
                with draft.block(f"if {condition}:"):
                    write_value(draft, "pred")
            draft.say(f"loss = {scalar_of(draft, 'pred')}")
            draft.say("opt.zero_grad()")
            draft.say("loss.backward()")
            if fault == "twice":
                with draft.block(f"if {condition}:"):
                    draft.say("loss.backward()")
            if fault == "leaf":
                with draft.block(f"if {condition}:"):
                    draft.say(f"list({model}.parameters())[0].mul_(0.5)")
            draft.say("opt.step()")
            draft.say(f"epoch_loss = epoch_loss + loss{'' if fault == 'epoch_loss' else '.item()'}")
        if fault == "epoch_loss":
            with draft.block(f"if epoch == {late_epoch}:"):
                draft.say("epoch_loss.backward()")
        elif draft.chance(0.5):
            with draft.block(f"if epoch % {draft.rng.randint(2, 6)} == 0:"):
                draft.say("logged = (epoch, epoch_loss)")


def attack(draft: Draft) -> None:
    """An input that is changed step by step along its own gradient."""
    model = long_model(draft)
    draft.say(f"x = torch.randn({draft.rows}, {draft.width}, requires_grad=True)")
    header, rounds = plan_rounds(draft)
    moment = some_moment(draft, rounds)
    fault = draft.pick(("leaf", "rebind")) if draft.dares() else "none"
    with long_loop(draft, header, rounds):
        draft.say(f"loss = {scalar_of(draft, f'{model}(x)')}")
        draft.say("loss.backward()")
        if fault != "none":
            with when(draft, moment):
                draft.say("x.add_(0.1 * x.grad.sign())" if fault == "leaf" else "x = x + 0.1 * x.grad.sign()")
        style = draft.pick(("no_grad", "data", "fresh"))
        if style == "fresh":
            draft.say("x = (x + 0.1 * x.grad.sign()).detach().requires_grad_()")
            return
        if style == "no_grad":
            with draft.block("with torch.no_grad():"):
                draft.say("x += 0.1 * x.grad.sign()")
        else:
            draft.say("x.data.add_(0.1 * x.grad.sign())")
        draft.say("x.grad = None" if draft.chance(0.5) else "x.grad.zero_()")
