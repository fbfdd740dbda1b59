"""Loops and branches: state carried from round to round, conditions known and unknown before the run.

Conditions nobody can know before the run are of three sorts, each of which the oracle can turn either way:
`random.random() < 0.5`, `len(sys.argv) > 3` and the truth of a tensor.
"""

from __future__ import annotations

from gradsight_dev.fuzz.grammar.compute import expression, fits
from gradsight_dev.fuzz.grammar.draft import NAMES, Draft, Var
from gradsight_dev.fuzz.grammar.values import make_data

MOST_UNKNOWN_CHOICES = 3


def loop(draft: Draft) -> bool:
    """`for i in range(3):` around a few statements that carry state."""
    if draft.scope.depth >= 3 or (draft.scope.in_loop and draft.chance(0.6)):
        return False
    rounds = draft.rng.randint(2, 3)
    style = draft.weighted(
        (("range", 6.0), ("while", 1.0), ("over", 1.5), ("enumerate", 1.0), ("nested", 0.5))
    )
    if style == "over":
        return _loop_over_tensors(draft)
    index = draft.pick(("i", "j", "idx", "_", "epoch"))
    header = f"for {index} in range({rounds}):"
    after = ""
    if style == "enumerate":
        header = f"for {index}, factor in enumerate(({', '.join(draft.number() for _ in range(rounds))})):"
    elif style == "while":
        counter = draft.fresh(("count", "rounds", "n", "tick"))
        draft.say(f"{counter} = 0")
        header, after = f"while {counter} < {rounds}:", f"{counter} += 1"
    saved_choices = draft.unknown_choices
    with draft.block(header, in_loop=True, free_rebinding=False):
        if style == "nested":
            with draft.block("for inner in range(2):"):
                _loop_body(draft, "inner", 2)
        else:
            _loop_body(draft, index if style == "range" and index != "_" else "", rounds)
        if after:
            draft.say(after)
    if draft.unknown_choices > saved_choices:
        draft.unknown_choices = saved_choices + rounds
    return True


def carry(draft: Draft) -> bool:
    """`h = torch.tanh(h * w)`: the name keeps its shape and takes the next value."""
    state = draft.find(
        where=lambda known: known.is_name and not known.leaf and not known.fixed and bool(known.shape)
    )
    if state is None or not fits("any", state.shape):
        return False
    text, result = expression(draft, state, keep_shape=True)
    form = draft.weighted(((f"{state.text} = {text}", 4.0), (f"{state.text} = {state.text} + ({text})", 1.0)))
    draft.say(form)
    draft.add(Var(state.text, state.shape, result.group, result.grad))
    return True


def branch(draft: Draft) -> bool:
    """`if …:` with or without `else:`."""
    if draft.scope.depth >= 3:
        return False
    condition = _known_condition(draft) if draft.chance(0.4) else unknown_condition(draft)
    if condition is None:
        return False
    with draft.block(f"if {condition}:"):
        draft.write_some(1, 2)
    if draft.chance(0.5):
        with draft.block("else:"):
            draft.write_some(1, 2)
    return True


def unknown_condition(draft: Draft) -> str | None:
    """A condition only the run decides, or None when the program has enough of them."""
    if draft.unknown_choices >= MOST_UNKNOWN_CHOICES:
        return None
    forms = [("random.random() < 0.5", 2.0), ("len(sys.argv) > 3", 2.0), ("sys.argv[1:]", 0.5)]
    tensor = draft.find()
    if tensor is not None:
        value = tensor.text if not tensor.shape else f"{tensor.text}.sum()"
        forms += [(f"{value} > 0", 1.5), (f"bool({value} < 1)", 0.3)]
    draft.unknown_choices += 1
    return draft.weighted(forms)


def correlated_branches(draft: Draft) -> bool:
    """The same unknown condition twice: only two of the four combinations exist."""
    if draft.scope.depth > 1 or draft.unknown_choices >= MOST_UNKNOWN_CHOICES:
        return False
    draft.unknown_choices += 1
    flag = draft.fresh(("fast", "verbose", "use_bias", "training", "flag"))
    draft.say(f"{flag} = {draft.pick(('len(sys.argv) > 3', 'random.random() < 0.5', 'bool(sys.argv[1:])'))}")
    with draft.block(f"if {flag}:"):
        draft.write_some(1, 2)
    draft.write_some(0, 2)
    with draft.block(f"if {draft.pick(('', 'not '))}{flag}:"):
        draft.write_some(1, 2)
    return True


def attempt(draft: Draft) -> bool:
    """`try: … finally: …` around statements."""
    if draft.scope.depth >= 2:
        return False
    with draft.block("try:"):
        draft.write_some(1, 2)
    with draft.block("finally:"):
        draft.write_some(1, 1)
    return True


def _known_condition(draft: Draft) -> str:
    constants = [
        "True",
        "False",
        "1 > 0",
        "None is not None",
        "'sum' == 'sum'",
        "not False",
        "len([1, 2]) == 2",
    ]
    if draft.scope.in_loop:
        constants += ["True", "False"]
    tensor = draft.find()
    if tensor is not None:
        constants += [f"{tensor.text} is not None", f"{tensor.text}.dim() == {len(tensor.shape)}"]
        if tensor.shape:
            constants += [
                f"{tensor.text}.shape[0] == {tensor.shape[0]}",
                f"len({tensor.text}) > {tensor.shape[0]}",
            ]
    return draft.pick(constants)


def _loop_body(draft: Draft, index: str, rounds: int) -> None:
    for _ in range(draft.rng.randint(1, 4)):
        style = draft.weighted(
            (("menu", 5.0), ("carry", 3.0), ("indexed", 1.5 if index else 0.0), ("when", 0.5))
        )
        if style == "carry":
            carry(draft)
        elif style == "indexed":
            _indexed_write(draft, index, rounds)
        elif style == "when" and index:
            with draft.block(
                f"if {index} {draft.pick(('==', '>', '<', '!='))} {draft.rng.randint(0, rounds - 1)}:"
            ):
                draft.write_some(1, 1)
        else:
            draft.write_some(1, 1)


def _indexed_write(draft: Draft, index: str, rounds: int) -> None:
    """`table[t] = h`: one slot per round."""
    target = draft.find(
        where=lambda known: fits("any", known.shape) and known.shape[0] >= rounds and not known.leaf
    )
    if target is None or target.refuses:
        target = make_data(draft, (max(rounds, draft.rows), draft.width)) if draft.scope.depth == 0 else None
    if target is None or (target.group in draft.kept and not draft.dares()):
        return
    source = draft.find(shape=target.shape[1:])
    value = (
        source.text
        if source is not None and draft.chance(0.6)
        else f"{target.text}[{index} - 1] * {draft.number()}"
    )
    draft.say(f"{target.text}[{index}] {draft.pick(('=', '=', '=', '+=', '*='))} {value}")


def _loop_over_tensors(draft: Draft) -> bool:
    """`for part in (a, b):` or over the rows of a tensor."""
    item = draft.fresh(("part", "row", "item", "tensor", "piece"))
    rows = draft.find(where=lambda known: len(known.shape) == 2 and fits("any", known.shape))
    if rows is not None and draft.chance(0.4):
        header, shape, refuses, grad, group = (
            f"for {item} in {rows.text}:",
            rows.shape[1:],
            True,
            rows.grad,
            rows.group,
        )
    else:
        first = draft.find(where=lambda known: fits("any", known.shape))
        if first is None:
            return False
        second = draft.find(shape=first.shape)
        assert second is not None
        header = f"for {item} in {draft.pick(('({}, {})', '[{}, {}]')).format(first.text, second.text)}:"
        shape, refuses, grad, group = first.shape, first.refuses or second.refuses, first.grad, first.group
        if first.leaf or second.leaf:
            refuses = True
    collected = ""
    if draft.chance(0.5):
        collected = draft.fresh(("rows", "pieces", "outs", "history"))
        draft.say(f"{collected} = []")
    with draft.block(header, in_loop=True, free_rebinding=False):
        draft.add(Var(item, shape, group, grad=grad, refuses=refuses))
        draft.write_some(1, 3)
        if collected:
            inside = draft.find(shape=shape)
            assert inside is not None
            draft.say(f"{collected}.append({inside.text})")
    if collected:
        name = draft.fresh(NAMES)
        draft.say(
            f"{name} = {draft.pick(('torch.stack({}).sum(0)', 'sum({})', 'torch.stack({}).mean(0)')).format(collected)}"
        )
        draft.add(Var(name, shape, draft.group(), grad=grad))
    return True
