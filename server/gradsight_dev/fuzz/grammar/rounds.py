"""Loops of many rounds, and conditions on what they count or collect.

A *moment* is a condition that holds in some rounds only: late ones, early ones, every so many, or exactly one.  The same
moment can be told by the loop's own counter, a flag, an object that counts, a buffer that fills, or a schedule.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from gradsight_dev.fuzz.grammar.draft import Draft

COUNTERS = ("step", "epoch", "i", "t", "it", "round_no", "idx")


@dataclass
class Rounds:
    """A loop under construction."""

    draft: Draft
    count: int
    counter: str
    first: int
    item: str
    """An expression for the data of a round: its last dimension has the width of the program."""
    opening: list[str] = field(default_factory=list)
    """Lines that stand at the beginning of every round."""

    def number(self, round_number: int) -> int:
        """What the counter shows in this round."""
        return self.first + round_number


@dataclass(frozen=True)
class Moment:
    """A condition and its negation."""

    holds: str
    fails: str


def plan_rounds(draft: Draft, least: int = 13, most: int = 60) -> tuple[str, Rounds]:
    """The header of a long loop and what its rounds have; what must stand before it is written."""
    count = draft.rng.randint(least, most)
    name = draft.fresh(COUNTERS)
    rows, width = draft.rows, draft.width
    batch = f"torch.randn({rows}, {width})"
    style = draft.weighted(
        (
            ("range", 6.0),
            ("from_one", 2.0),
            ("while", 2.0),
            ("endless", 0.7),
            ("rows", 2.0),
            ("counted_rows", 1.5),
            ("batches", 2.0),
            ("zip", 1.0),
            ("loader", 0.7),
            ("generator", 1.2),
            ("count", 0.6),
            ("object", 1.5),
            ("stepped", 0.5),
            ("flattened", 1.0),
        )
    )
    if style == "from_one":
        return f"for {name} in range(1, {count + 1}):", Rounds(draft, count, name, 1, batch)
    if style == "while":
        draft.say(f"{name} = 0")
        return f"while {name} < {count}:", Rounds(draft, count, name, 1, batch, [f"{name} += 1"])
    if style == "endless":
        draft.say(f"{name} = 0")
        opening = [f"{name} += 1", f"if {name} > {count}:", "    break"]
        return "while True:", Rounds(draft, count, name, 1, batch, opening)
    if style == "count":
        opening = [f"if {name} >= {count}:", "    break"]
        return f"for {name} in itertools.count():", Rounds(draft, count, name, 0, batch, opening)
    if style == "rows":
        table = draft.fresh(("rows", "samples", "points"))
        draft.say(f"{table} = torch.randn({count}, {width})")
        return f"for {name}, row in enumerate({table}):", Rounds(draft, count, name, 0, "row")
    if style == "counted_rows":
        draft.say(f"{name} = 0")
        header = f"for row in torch.randn({count}, {width}):"
        return header, Rounds(draft, count, name, 1, "row", [f"{name} += 1"])
    if style == "batches":
        draft.say(f"batches = [{batch} for _ in range({count})]")
        return f"for {name}, batch in enumerate(batches):", Rounds(draft, count, name, 0, "batch")
    if style == "zip":
        draft.say(f"samples = torch.randn({count}, {width})")
        return f"for {name}, row in zip(range({count}), samples):", Rounds(draft, count, name, 0, "row")
    if style == "loader":
        draft.say(f"dataset = torch.utils.data.TensorDataset(torch.randn({count}, {width}))")
        draft.say("loader = torch.utils.data.DataLoader(dataset, batch_size=1)")
        return f"for {name}, (batch,) in enumerate(loader):", Rounds(draft, count, name, 0, "batch")
    if style == "generator":
        with draft.definition("def stream(count):"), draft.block("for number in range(count):"):
            draft.say(f"yield number, {batch}")
        return f"for {name}, batch in stream({count}):", Rounds(draft, count, name, 0, "batch")
    if style == "object":
        with draft.definition("class Clock:"):
            with draft.block("def __init__(self):"):
                draft.say("self.step = 0")
            draft.say("")
            with draft.block("def tick(self):"):
                draft.say("self.step += 1")
                draft.say("return self.step")
        draft.say("clock = Clock()")
        opening = [draft.pick(("clock.tick()", f"{name} = clock.tick()"))]
        header = f"for _ in range({count}):"
        if opening[0] == "clock.tick()":
            return header, Rounds(draft, count, "clock.step", 1, batch, opening)
        return header, Rounds(draft, count, name, 1, batch, opening)
    if style == "stepped":
        return (
            f"for {name} in range(100, {100 + count}):",
            Rounds(draft, count, name, 100, batch),
        )
    if style == "flattened":
        inner = draft.rng.randint(4, 7)
        outer = max(2, count // inner)
        draft.say(f"batches = [(epoch_no, part) for epoch_no in range({outer}) for part in range({inner})]")
        header = f"for {name}, (epoch_no, part) in enumerate(batches):"
        return header, Rounds(draft, outer * inner, name, 0, batch)
    return f"for {name} in range({count}):", Rounds(draft, count, name, 0, batch)


@contextmanager
def long_loop(draft: Draft, header: str, rounds: Rounds) -> Iterator[None]:
    """The body of the loop."""
    with draft.block(header, in_loop=True, free_rebinding=False):
        for line in rounds.opening:
            draft.say(line)
        yield


def late(draft: Draft, rounds: Rounds, start: int | None = None) -> Moment:
    """A moment that holds from some round on; what it needs is written before the loop and added to its rounds."""
    counter = rounds.counter
    start = draft.rng.randint(1, rounds.count - 4) if start is None else start
    shown = rounds.number(start)
    style = draft.weighted(
        (
            ("plain", 6.0),
            ("flag", 1.5),
            ("phase", 1.0),
            ("buffer", 1.5),
            ("deque", 1.0),
            ("helper", 1.0),
            ("weight", 1.0),
            ("ramp", 0.7),
            ("countdown", 0.7),
            ("slot", 0.7),
            ("meter", 1.0),
            ("constant", 2.0),
            ("schedule", 0.7),
        )
    )
    if style == "constant":
        name = draft.fresh(("WARMUP", "START", "BURN_IN", "DELAY"))
        draft.say(f"{name} = {shown}")
        return draft.pick(
            (
                Moment(f"{counter} >= {name}", f"{counter} < {name}"),
                Moment(f"{counter} > {name} - 1", f"{counter} <= {name} - 1"),
                Moment(f"not {counter} < {name}", f"{counter} < {name}"),
            )
        )
    if style == "flag":
        name = draft.fresh(("started", "warm", "ready", "unlocked"))
        draft.say(f"{name} = False")
        rounds.opening += [f"if {counter} == {shown}:", f"    {name} = True"]
        return Moment(name, f"not {name}")
    if style == "phase":
        draft.say('phase = "warmup"')
        rounds.opening += [f"if {counter} {draft.pick(('==', '>='))} {shown}:", '    phase = "main"']
        return Moment('phase == "main"', draft.pick(('phase != "main"', 'phase == "warmup"')))
    if style == "buffer":
        name = draft.fresh(("seen", "window", "history_of_steps"))
        draft.say(f"{name} = []")
        rounds.opening.append(f"{name}.append({draft.pick((counter, rounds.item))})")
        return Moment(f"len({name}) > {start}", f"len({name}) <= {start}")
    if style == "deque":
        name = draft.fresh(("recent", "queue"))
        draft.say(f"{name} = collections.deque(maxlen={start + 1})")
        rounds.opening.append(f"{name}.append({draft.pick((counter, rounds.item))})")
        return Moment(f"len({name}) == {name}.maxlen", f"len({name}) < {name}.maxlen")
    if style == "helper":
        name = draft.fresh(("is_warm", "past_warmup", "should_run"))
        with draft.definition(f"def {name}(now):"):
            if draft.chance(0.5):
                draft.say(f"return now >= {shown}")
            else:
                with draft.block(f"if now < {shown}:"):
                    draft.say("return False")
                draft.say("return True")
        return Moment(f"{name}({counter})", f"not {name}({counter})")
    if style in ("weight", "ramp"):
        name = draft.fresh(("weight", "beta", "ratio", "alpha"))
        value = (
            f"0.0 if {counter} < {shown} else 1.0"
            if style == "weight"
            else f"max(0.0, min(1.0, ({counter} - {shown - 1}) / 10))"
        )
        rounds.opening.append(f"{name} = {value}")
        return Moment(f"{name} > 0", f"{name} == 0")
    if style == "countdown":
        name = draft.fresh(("wait", "remaining", "cooldown"))
        draft.say(f"{name} = {start}")
        rounds.opening.append(f"{name} -= 1")
        return Moment(f"{name} < 0", f"{name} >= 0")
    if style == "slot":
        draft.say('info = {"step": 0}')
        rounds.opening.append('info["step"] += 1')
        return Moment(f'info["step"] > {start}', f'info["step"] <= {start}')
    if style == "meter":
        with draft.definition("class Meter:"):
            with draft.block("def __init__(self, needed):"):
                draft.say("self.needed = needed")
                draft.say("self.count = 0")
            draft.say("")
            with draft.block("def update(self):"):
                draft.say("self.count += 1")
            draft.say("")
            with draft.block("def full(self):"):
                draft.say("return self.count > self.needed")
        draft.say(f"meter = Meter({start})")
        rounds.opening.append("meter.update()")
        return Moment("meter.full()", "not meter.full()")
    if style == "schedule":
        draft.say(f'modes = {{{rounds.first}: "easy", {shown}: "hard"}}')
        draft.say('mode = "easy"')
        rounds.opening.append(f"mode = modes.get({counter}, mode)")
        return Moment('mode == "hard"', 'mode == "easy"')
    return draft.pick(
        (
            Moment(f"{counter} >= {shown}", f"{counter} < {shown}"),
            Moment(f"{counter} > {shown - 1}", f"{counter} <= {shown - 1}"),
            Moment(f"{shown} <= {counter}", f"not {shown} <= {counter}"),
        )
    )


def once(draft: Draft, rounds: Rounds) -> Moment:
    """Exactly one round."""
    shown = rounds.number(draft.rng.randint(2, rounds.count - 3))
    return Moment(f"{rounds.counter} == {shown}", f"{rounds.counter} != {shown}")


def periodic(draft: Draft, rounds: Rounds, period: int | None = None) -> Moment:
    """The last of every so many rounds."""
    period = period or draft.rng.randint(2, max(2, rounds.count // 2 - 1))
    told = f"({rounds.counter} + 1)" if rounds.first % period == 0 else rounds.counter
    if rounds.first % period not in (0, 1):
        told = f"({rounds.counter} - {rounds.first - 1})"
    return draft.pick(
        (
            Moment(f"{told} % {period} == 0", f"{told} % {period} != 0"),
            Moment(f"{told} % {period} == 0", f"{told} % {period}"),
            Moment(f"not {told} % {period}", f"{told} % {period} > 0"),
        )
    )


def beginning_of_period(draft: Draft, rounds: Rounds, period: int) -> Moment:
    """The first of every so many rounds: the very first one is."""
    told = rounds.counter if rounds.first % period == 0 else f"({rounds.counter} - {rounds.first})"
    return Moment(f"{told} % {period} == 0", f"{told} % {period} != 0")


def some_moment(draft: Draft, rounds: Rounds) -> Moment:
    """Late, once, now and then, or in a window."""
    style = draft.weighted(
        (("late", 4.0), ("once", 1.5), ("periodic", 2.0), ("window", 1.0), ("milestones", 1.0))
    )
    if style == "once":
        return once(draft, rounds)
    if style == "periodic":
        return periodic(draft, rounds)
    begin = draft.rng.randint(2, rounds.count - 6)
    low, high = rounds.number(begin), rounds.number(begin + draft.rng.randint(2, 5))
    if style == "window":
        return Moment(
            f"{low} <= {rounds.counter} < {high}", f"{rounds.counter} < {low} or {rounds.counter} >= {high}"
        )
    if style == "milestones":
        return Moment(f"{rounds.counter} in ({low}, {high})", f"{rounds.counter} not in ({low}, {high})")
    return late(draft, rounds)


@contextmanager
def when(draft: Draft, moment: Moment, *, rest: bool = False) -> Iterator[None]:
    """What is done at the moment only; `rest`: nothing follows in the round, so a guard clause may say it."""
    if rest and draft.chance(0.5):
        if draft.chance(0.8):
            with draft.block(f"if {moment.fails}:"):
                draft.say("continue")
            yield
            return
        with draft.block(f"if {moment.fails}:"):
            draft.say("pass")
        with draft.block("else:"):
            yield
        return
    if draft.chance(0.1):
        with draft.block(f"match {moment.holds}:"), draft.block("case True:"):
            yield
        return
    with draft.block(f"if {moment.holds}:"):
        yield
