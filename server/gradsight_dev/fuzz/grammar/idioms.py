"""Everyday Python around tensors: swaps, chained assignment, conditional values, walrus, unpacking, zips, early exits."""

from __future__ import annotations

from gradsight_dev.fuzz.grammar.compute import expression, fits
from gradsight_dev.fuzz.grammar.draft import NAMES, Draft, Var
from gradsight_dev.fuzz.grammar.flow import unknown_condition


def chained(draft: Draft) -> bool:
    """`a = b = x * 2`: one tensor, two names from the start."""
    source = draft.find(where=lambda known: fits("any", known.shape))
    if source is None:
        return False
    text, result = expression(draft, source, keep_shape=True)
    names = [draft.fresh(NAMES), draft.fresh(NAMES)]
    draft.say(f"{names[0]} = {names[1]} = {text}")
    for name in names:
        draft.add(Var(name, result.shape, result.group, result.grad))
    return True


def swap(draft: Draft) -> bool:
    """`a, b = b, a`."""
    first = draft.find(where=lambda known: known.is_name and not known.fixed and not known.leaf)
    if first is None:
        return False
    second = draft.find(
        shape=first.shape,
        where=lambda known: known.is_name and not known.fixed and not known.leaf and known.text != first.text,
    )
    if second is None:
        return False
    draft.say(f"{first.text}, {second.text} = {second.text}, {first.text}")
    draft.add(Var(first.text, second.shape, second.group, second.grad, second.leaf, second.refuses))
    draft.add(Var(second.text, first.shape, first.group, first.grad, first.leaf, first.refuses))
    return True


def conditional_value(draft: Draft) -> bool:
    """`y = a if flag else b`."""
    first = draft.find(where=lambda known: fits("any", known.shape))
    if first is None:
        return False
    second = draft.find(shape=first.shape)
    assert second is not None
    condition = unknown_condition(draft) if draft.chance(0.5) else draft.pick(("True", "False", "1 < 2"))
    if condition is None:
        return False
    name = draft.fresh(NAMES)
    text, result = expression(draft, second, keep_shape=True)
    draft.say(f"{name} = {first.text} if {condition} else {text}")
    refuses = first.refuses or first.leaf
    draft.add(Var(name, first.shape, first.group, first.grad or result.grad, refuses=refuses))
    if result.group in draft.kept:
        draft.keep(first)
    return True


def walrus(draft: Draft) -> bool:
    """`if (y := x * 2).dim() == 1:`."""
    source = draft.find(where=lambda known: fits("any", known.shape))
    if source is None or draft.scope.depth > 1:
        return False
    text, result = expression(draft, source, keep_shape=True)
    name = draft.fresh(NAMES)
    with draft.block(f"if ({name} := {text}).dim() == {len(result.shape)}:"):
        draft.add(Var(name, result.shape, result.group, result.grad))
        draft.write_some(1, 2)
    draft.add(Var(name, result.shape, result.group, result.grad))
    return True


def starred(draft: Draft) -> bool:
    """`first, *rest = parts`."""
    source = draft.find(where=lambda known: len(known.shape) == 2 and fits("any", known.shape))
    if source is None:
        return False
    first, rest = draft.fresh(NAMES), draft.fresh(("rest", "others", "remaining"))
    draft.say(
        f"{first}, *{rest} = {draft.pick(('{}', '{}.unbind(0)', '[row * 2 for row in {}]')).format(source.text)}"
    )
    draft.add(Var(first, source.shape[1:], source.group, source.grad, refuses=True))
    draft.add(Var(f"{rest}[0]", source.shape[1:], source.group, source.grad, refuses=True, fixed=True))
    return True


def zipped(draft: Draft) -> bool:
    """`for a, b in zip(xs, ys):` with a write or a sum."""
    first = draft.find(where=lambda known: fits("any", known.shape))
    if first is None or draft.scope.in_loop:
        return False
    second = draft.find(shape=first.shape)
    assert second is not None
    total = draft.fresh(("total", "joined", "summed"))
    draft.say(f"{total} = 0")
    with draft.block(f"for one, two in zip([{first.text}, {second.text}], ({second.text}, {first.text})):"):
        draft.scope.in_loop = True
        form = draft.pick(
            ("one * two", "one + two", "one.exp() * 2", "(one - two) ** 2", "one * two.detach()")
        )
        draft.say(f"{total} {draft.pick(('= ' + total + ' +', '+='))} {form}")
    grad = draft.scope.recording and (first.grad or second.grad)
    result = draft.add(Var(total, first.shape, draft.group(), grad))
    if grad and "*" in form:
        draft.keep(first, second)
    return result is not None


def leaving_loop(draft: Draft) -> bool:
    """A loop that is left early, or that skips rounds."""
    if draft.scope.depth > 1 or draft.scope.in_loop:
        return False
    word = draft.pick(("break", "continue"))
    with draft.block(f"for turn in range({draft.rng.randint(2, 4)}):", in_loop=True, free_rebinding=False):
        if draft.chance(0.5):
            draft.write_some(1, 2)
        draft.say(f"if turn {draft.pick(('==', '>', '<'))} {draft.rng.randint(0, 2)}:")
        draft.say(f"    {word}")
        draft.write_some(1, 2)
    return True


def forever(draft: Draft) -> bool:
    """`while True:` with a counter and a break."""
    if draft.scope.depth > 0:
        return False
    counter = draft.fresh(("count", "rounds", "tick"))
    draft.say(f"{counter} = 0")
    with draft.block("while True:", in_loop=True, free_rebinding=False):
        draft.write_some(1, 2)
        draft.say(f"{counter} += 1")
        draft.say(f"if {counter} >= {draft.rng.randint(1, 3)}:")
        draft.say("    break")
    return True


def removed(draft: Draft) -> bool:
    """`del y`: the graph keeps what it saved."""
    victim = draft.find(where=lambda known: known.is_name and not known.leaf and not known.fixed)
    if victim is None or draft.scope.depth > 0 or len(draft.scope.variables) < 5:
        return False
    draft.say(f"del {victim.text}")
    draft.forget(victim.text)
    return True


def logged(draft: Draft) -> bool:
    """Values written into text for a log: they leave the graph and never come back."""
    source = draft.find(where=lambda known: '"' not in known.text)
    if source is None:
        return False
    value = source.text if not source.shape else f"{source.text}.mean()"
    name = draft.fresh(("message", "line", "log"))
    form = draft.pick(
        (
            'f"value {{{}.item():.3f}}"',
            '"%.3f" % {}.item()',
            "[{}.item()]",
            'f"{{float({}):.2f}}"',
            "str({}.detach())",
        )
    )
    draft.say(f"{name} = {form.format(value)}")
    return True


def single_element(draft: Draft) -> bool:
    """A tensor with one element: backward needs no argument for it."""
    source = draft.find(where=lambda known: known.grad and len(known.shape) == 1 and fits("any", known.shape))
    if source is None:
        return False
    name = draft.fresh(("last", "picked", "single"))
    form = draft.weighted((("{}[0]", 3.0), ("{}[-1]", 1.0), ("{}[1].exp()", 1.0), ("{}.max()", 1.0)))
    draft.say(f"{name} = {form.format(source.text)}")
    shares = form in ("{}[0]", "{}[-1]")
    draft.add(
        Var(name, (), source.group if shares else draft.group(), True, refuses=source.leaf or source.refuses)
    )
    return True
