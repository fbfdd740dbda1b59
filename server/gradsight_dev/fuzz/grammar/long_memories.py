"""Long loops that keep something from round to round: states, memories, caches, the best value so far."""

from __future__ import annotations

from gradsight_dev.fuzz.grammar.draft import Draft
from gradsight_dev.fuzz.grammar.long_parts import (
    PLAIN,
    SAVING,
    log_sometimes,
    long_leaf,
    long_model,
    scalar_of,
)
from gradsight_dev.fuzz.grammar.rounds import (
    Moment,
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


def truncated_time(draft: Draft) -> None:
    """A state carried through time; backward every so many rounds, and the state cut there, or elsewhere, or not."""
    width = draft.width
    draft.say(f"cell = nn.{draft.pick(('RNNCell', 'GRUCell'))}({width}, {width})")
    draft.say(f"opt = {build_optimizer(draft, 'cell.parameters()')}")
    draft.say(f"h = torch.zeros({draft.rows}, {width})")
    draft.say("loss = 0.0")
    header, rounds = plan_rounds(draft)
    period = draft.rng.randint(2, max(3, rounds.count // 3))
    moment = periodic(draft, rounds, period)
    fault = draft.pick(("no_cut", "early_cut", "late_cut", "no_reset")) if draft.dares() else "none"
    until = late(draft, rounds)
    lone = rounds.item in ("row",)
    item = f"{rounds.item}.expand({draft.rows}, {width})" if lone or rounds.item == "batch" else rounds.item
    with long_loop(draft, header, rounds):
        draft.say(f"h = cell({item}, h)")
        draft.say(f"loss = loss + {scalar_of(draft, 'h')}")
        with when(draft, moment, rest=True):
            draft.say("opt.zero_grad()")
            draft.say("loss.backward()")
            draft.say("opt.step()")
            cut = draft.pick(("h = h.detach()", "h.detach_()", "h = h.clone().detach()"))
            if fault in ("none", "no_reset"):
                draft.say(cut)
            elif fault == "early_cut":
                with draft.block(f"if {until.fails}:"):
                    draft.say(cut)
            elif fault == "late_cut":
                with draft.block(f"if {until.holds}:"):
                    draft.say(cut)
            if fault != "no_reset":
                draft.say("loss = 0.0")


def replayed(draft: Draft) -> None:
    """A memory that fills before anything is learnt from it."""
    model = long_model(draft)
    draft.say(f"opt = {build_optimizer(draft, f'{model}.parameters()')}")
    needed = draft.rng.randint(4, 12)
    draft.say("random.seed(0)")
    store = draft.pick(("list", "deque", "class"))
    if store == "class":
        with draft.definition("class Memory:"):
            with draft.block("def __init__(self, capacity):"):
                draft.say("self.capacity = capacity")
                draft.say("self.items = []")
            draft.say("")
            with draft.block("def push(self, item):"):
                draft.say("self.items.append(item)")
                with draft.block("if len(self.items) > self.capacity:"):
                    draft.say("self.items.pop(0)")
            draft.say("")
            with draft.block("def sample(self, count):"):
                draft.say(
                    draft.pick(("return random.sample(self.items, count)", "return self.items[-count:]"))
                )
            draft.say("")
            with draft.block("def __len__(self):"):
                draft.say("return len(self.items)")
        draft.say(f"memory = Memory({needed + draft.rng.randint(2, 20)})")
    elif store == "deque":
        draft.say(f"memory = collections.deque(maxlen={needed + draft.rng.randint(2, 20)})")
    else:
        draft.say("memory = []")
    header, rounds = plan_rounds(draft, least=needed + 6)
    attached = draft.dares()
    trained_each = late(draft, rounds, draft.rng.randint(1, 4)) if draft.chance(0.3) else None
    kept = f"{model}({rounds.item})" if attached or draft.chance(0.5) else rounds.item
    if kept != rounds.item and not attached:
        kept += draft.pick((".detach()", ".detach()", ".data"))
    count = draft.rng.randint(2, needed)
    with long_loop(draft, header, rounds):
        draft.say(f"memory.push({kept})" if store == "class" else f"memory.append({kept})")
        if trained_each is not None:
            with draft.block(f"if {trained_each.fails}:"):
                draft.say("continue")
        with when(draft, Moment(f"len(memory) >= {needed}", f"len(memory) < {needed}"), rest=True):
            batch = (
                f"memory.sample({count})"
                if store == "class"
                else draft.pick((f"random.sample(list(memory), {count})", f"list(memory)[-{count}:]"))
            )
            draft.say(f"past = torch.stack({batch})")
            draft.say(f"loss = {scalar_of(draft, f'({model}(past) - past)')}")
            draft.say("opt.zero_grad()")
            draft.say("loss.backward()")
            draft.say("opt.step()")
            log_sometimes(draft, rounds, "loss")


def best_so_far(draft: Draft) -> None:
    """The best loss or value of all rounds, with or without its graph; patience."""
    w = long_leaf(draft)
    draft.say(draft.pick(('best = float("inf")', "best = 1e9")))
    draft.say("bad = 0")
    draft.say("kept = None")
    header, rounds = plan_rounds(draft)
    trains = draft.chance(0.6)
    graph = draft.dares() or not trains
    patience = draft.rng.randint(2, 20)
    if trains:
        draft.say(f"opt = torch.optim.SGD([{w}], lr=0.1)")
    with long_loop(draft, header, rounds):
        draft.say(f"out = {draft.pick((*SAVING, *PLAIN)).format(f'{w} * {rounds.item}')}")
        draft.say(f"loss = {scalar_of(draft, 'out')}")
        if trains:
            draft.say("opt.zero_grad()")
            draft.say("loss.backward()")
            draft.say("opt.step()")
        with draft.block("if loss.item() < best:"):
            draft.say("best = loss.item()")
            draft.say(
                f"kept = {draft.pick(('loss', 'out.sum()')) if graph else draft.pick(('loss.detach()', f'{w}.detach().clone()', 'out.detach()'))}"
            )
            draft.say("bad = 0")
        with draft.block("else:"):
            draft.say("bad += 1")
            with draft.block(f"if bad >= {patience}:"):
                draft.say("break")
    if graph:
        with draft.block("if kept is not None:") if draft.chance(0.6) else draft.block("if True:"):
            draft.say("kept.backward()")
    else:
        draft.say("result = (best, kept)")


def refreshed_cache(draft: Draft) -> None:
    """A value computed every so many rounds and used in all."""
    model = long_model(draft)
    draft.say(f"opt = {build_optimizer(draft, f'{model}.parameters()')}")
    draft.say(f"inputs = torch.randn({draft.rows}, {draft.width})")
    header, rounds = plan_rounds(draft)
    period = draft.rng.randint(2, max(2, rounds.count // 2))
    style = draft.pick(("period", "none", "once"))
    attached = draft.dares()
    cut = "" if attached else ".detach()"
    if style == "none":
        draft.say("cache = None")
    elif style == "once":
        draft.say(f"cache = torch.zeros({draft.rows}, {draft.width})")
    condition = {
        "period": beginning_of_period(draft, rounds, period).holds,
        "none": f"cache is None or {beginning_of_period(draft, rounds, period).holds}",
        "once": once(draft, rounds).holds,
    }[style]
    with long_loop(draft, header, rounds):
        with draft.block(f"if {condition}:"):
            if not attached and draft.chance(0.5):
                with draft.block("with torch.no_grad():"):
                    draft.say(f"cache = {model}(inputs)")
            else:
                draft.say(f"cache = {model}(inputs){cut}")
        draft.say(f"pred = {model}(inputs)")
        draft.say(
            draft.pick(
                (
                    "loss = F.mse_loss(pred, cache)",
                    "loss = (pred - cache).pow(2).mean()",
                    "loss = (pred * cache).sum()",
                )
            )
        )
        draft.say("opt.zero_grad()")
        draft.say("loss.backward()")
        draft.say("opt.step()")
        log_sometimes(draft, rounds, "loss")


def previous_round(draft: Draft) -> None:
    """The value of the round before beside the one of this round: with its graph it is walked twice."""
    model = long_model(draft)
    draft.say(f"opt = {build_optimizer(draft, f'{model}.parameters()')}")
    draft.say("previous = None")
    header, rounds = plan_rounds(draft)
    moment = some_moment(draft, rounds)
    attached = draft.dares()
    compares = draft.chance(0.5)
    with long_loop(draft, header, rounds):
        draft.say(f"out = {model}({rounds.item})")
        draft.say(f"loss = {scalar_of(draft, 'out')}")
        condition = f"previous is not None and {moment.holds}" if compares else "previous is not None"
        with draft.block(f"if {condition}:"):
            draft.say("loss = loss + (out - previous).pow(2).mean()")
        draft.say("opt.zero_grad()")
        draft.say("loss.backward()")
        draft.say("opt.step()")
        if compares:
            draft.say(f"previous = out{'' if attached else '.detach()'}")
        else:
            with when(draft, moment, rest=True):
                draft.say(f"previous = out{'' if attached else '.detach()'}")


def filled_table(draft: Draft) -> None:
    """A table filled row by row, read while it is filled or only afterwards."""
    w = long_leaf(draft)
    header, rounds = plan_rounds(draft)
    draft.say(f"table = torch.zeros({rounds.count + 1}, {draft.width})")
    moment = late(draft, rounds)
    reads = draft.dares()
    saving = draft.chance(0.5)
    position = rounds.counter if rounds.first in (0, 1) else f"{rounds.counter} - {rounds.first}"
    draft.say("total = torch.zeros(())")
    with long_loop(draft, header, rounds):
        value = f"({w} * {rounds.item}).reshape(-1)[:{draft.width}]"
        if draft.chance(0.4):
            with when(draft, moment):
                draft.say(f"table[{position}] = {value}")
        else:
            draft.say(f"table[{position}] = {value}")
        if reads:
            with when(draft, moment):
                draft.say(f"total = total + table{'.pow(2)' if saving else ''}.sum()")
        elif draft.chance(0.5):
            with when(draft, moment):
                draft.say(
                    draft.pick(("shown = table.sum().item()", "total = total + table.clone().pow(2).sum()"))
                )
    draft.say(f"(total + table{draft.pick(('', '.pow(2)', '.exp()'))}.mean()).backward()")
