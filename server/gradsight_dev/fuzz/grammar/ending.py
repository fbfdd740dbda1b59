"""Losses, backward passes and what is done with gradients afterwards."""

from __future__ import annotations

from gradsight_dev.fuzz.grammar.compute import WEIGHED_REDUCTIONS, expression, filled, fits
from gradsight_dev.fuzz.grammar.draft import NAMES, Draft, Var

LOSS_NAMES = ("loss", "cost", "objective", "err")


def make_loss(draft: Draft, terms: int | None = None) -> Var | None:
    """`loss = y.sum() + 0.1 * z.pow(2).mean()`: a scalar out of what is there."""
    count = terms or draft.weighted(((1, 3.0), (2, 4.0), (3, 3.0), (4, 1.0)))
    texts: list[str] = []
    used: set[str] = set()
    grad = False
    for _ in range(count):
        source = draft.find(where=lambda known: known.grad and not known.leaf and known.text not in used)
        source = source or draft.find(where=lambda known: known.grad)
        if source is None or draft.chance(0.04):
            source = draft.find()
        if source is None:
            return None
        texts.append(_term(draft, source))
        used.add(source.text)
        grad = grad or source.grad
    name = draft.fresh(LOSS_NAMES)
    draft.say(f"{name} = {' + '.join(texts)}")
    return draft.add(Var(name, (), draft.group(), grad))


def backward(draft: Draft, retain: bool | None = None) -> bool:
    """A loss and its backward pass, in one of the usual forms."""
    if draft.scope.in_function and not draft.scope.in_loop:
        return False
    if draft.backwards and not draft.dares():
        return False
    style = draft.weighted(
        (
            ("loss", 10.0),
            ("direct", 2.0),
            ("again", 1.5 if draft.backwards else 0.3),
            ("vector", 1.2),
            ("grad", 1.5),
            ("pair", 0.5),
        )
    )
    again = retain if retain is not None else draft.chance(0.25)
    keywords = "retain_graph=True" if again else ""
    draft.backwards += 1
    if style == "vector":
        return _vector_backward(draft, keywords)
    if style == "grad":
        return functional_gradient(draft)
    if style == "direct":
        source = draft.find(where=lambda known: known.grad)
        if source is None:
            return False
        draft.say(f"({_term(draft, source)}).backward({keywords})")
        return True
    if style == "again":
        old = draft.find(shape=(), where=lambda known: known.grad)
        if old is not None and (draft.dares() or again):
            draft.say(f"{old.text}.backward({keywords})")
            return True
    loss = make_loss(draft)
    if loss is None:
        return False
    if style == "pair":
        other = make_loss(draft, 1)
        assert other is not None
        draft.say(f"torch.autograd.backward([{loss.text}, {other.text}])")
        return True
    draft.say(
        draft.pick((f"{loss.text}.backward({keywords})",) * 8 + (f"torch.autograd.backward({loss.text})",))
    )
    return True


def functional_gradient(draft: Draft) -> bool:
    """`grads = torch.autograd.grad(loss, [x])`."""
    wanted = [known for known in draft.scope.variables if known.leaf and known.grad]
    loss = make_loss(draft)
    if not wanted or loss is None:
        return False
    inputs = draft.rng.sample(wanted, draft.rng.randint(1, len(wanted)))
    keywords = ["allow_unused=True"] if draft.chance(0.7) or not draft.dares() else []
    create = draft.chance(0.3)
    keywords += ["create_graph=True"] if create else []
    keywords += ["retain_graph=True"] if draft.chance(0.25) else []
    name = draft.fresh(("grads", "slopes", "jac"))
    draft.say(
        f"{name} = torch.autograd.grad({', '.join([loss.text, '[' + ', '.join(one.text for one in inputs) + ']', *keywords])})"
    )
    if create and draft.chance(0.7):
        penalty = draft.fresh(("penalty", "roughness"))
        draft.say(f"{penalty} = sum(g.pow(2).sum() for g in {name} if g is not None) + {loss.text} * 0")
        draft.add(Var(penalty, (), draft.group()))
        if draft.chance(0.6):
            draft.say(f"{penalty}.backward()")
    return True


def use_gradient(draft: Draft) -> bool:
    """What people do with `.grad`: look, zero, clone, update by hand."""
    if not draft.backwards:
        return False
    leaf = draft.find(where=lambda known: known.leaf and known.grad and not known.fixed)
    if leaf is None:
        return False
    guarded = not draft.dares()
    style = draft.weighted(
        (
            ("update", 4.0),
            ("zero", 2.0),
            ("none", 1.5),
            ("alias", 1.0),
            ("copy", 1.0),
            ("data", 1.0),
            ("clip", 0.5),
        )
    )
    name = leaf.text
    target = draft.fresh(("g", "grad_copy", "old_grad", "direction"))
    lines: list[str]
    if style == "update":
        operator = draft.pick(
            ("{0} -= 0.1 * {0}.grad", "{0}.sub_(0.1 * {0}.grad)", "{0}.add_({0}.grad, alpha=-0.1)")
        )
        lines = ["with torch.no_grad():", "    " + operator.format(name)]
    elif style == "zero":
        lines = [f"{name}.grad.zero_()"]
    elif style == "none":
        lines, guarded = [f"{name}.grad = None"], False
    elif style == "alias":
        lines = [f"{target} = {name}.grad"]
    elif style == "copy":
        lines = [
            f"{target} = {name}.grad.{draft.pick(('clone()', 'detach().clone()', 'norm()', 'abs().max()'))}"
        ]
    elif style == "data":
        lines = [
            draft.pick((f"{name}.data -= 0.1 * {name}.grad", f"{name}.data.add_({name}.grad, alpha=-0.1)"))
        ]
    else:
        lines, guarded = [f"torch.nn.utils.clip_grad_norm_([{name}], 1.0)"], False
    if guarded:
        lines = [f"if {name}.grad is not None:", *("    " + line for line in lines)]
    for line in lines:
        draft.say(line)
    return True


def retained(draft: Draft) -> bool:
    """`y.retain_grad()`, so that a non-leaf keeps its gradient."""
    middle = draft.find(where=lambda known: known.grad and not known.leaf and known.is_name)
    if middle is None or not draft.scope.recording or draft.scope.in_function:
        return False
    draft.say(f"if {middle.text}.requires_grad:")
    draft.say(f"    {middle.text}.retain_grad()")
    return True


def hooked(draft: Draft) -> bool:
    """A new result with a hook that scales its gradient.

    Never on an older tensor: torch 2.13 crashes when a hook meets a view that was written under no_grad.
    """
    source = draft.find(where=lambda known: known.grad and fits("any", known.shape))
    if source is None or draft.scope.in_function:
        return False
    text, result = expression(draft, source, keep_shape=True)
    name = draft.fresh(NAMES)
    draft.say(f"{name} = ({text}) * 1.0")
    draft.say(f"if {name}.requires_grad:")
    draft.say(f"    {name}.register_hook(lambda grad: grad * {draft.number()})")
    draft.add(Var(name, result.shape, result.group, result.grad))
    return True


def finish(draft: Draft) -> None:
    """The end of the main part: one or several backward passes over what is still alive."""
    passes = draft.weighted(((1, 7.0), (2, 2.0 if draft.daring > 0.3 else 0.5), (3, 0.4)))
    share = draft.chance(0.4)
    for index in range(passes):
        last = index == passes - 1
        retain = None if last else (not draft.dares() or draft.chance(0.6))
        draft.backwards = 0
        if share and index and draft.chance(0.5):
            draft.write_some(0, 2)
        for _ in range(5):
            if backward(draft, False if last and draft.chance(0.8) else retain):
                break
        if draft.chance(0.35):
            use_gradient(draft)


def _term(draft: Draft, source: Var) -> str:
    if not source.shape:
        return draft.pick((source.text, f"{source.text} * {draft.number()}", source.text))
    for _ in range(8):
        template = draft.weighted(WEIGHED_REDUCTIONS)
        if template.result == "scalar" and fits(template.fits, source.shape):
            break
    else:
        return f"{source.text}.sum()"
    partners: list[Var] = []
    text = filled(draft, template.text, source, partners)
    if template.keeps:
        draft.keep(source, *partners)
    return f"{draft.number()} * {text}" if draft.chance(0.2) else text


def _vector_backward(draft: Draft, keywords: str) -> bool:
    source = draft.find(where=lambda known: known.grad and bool(known.shape) and not known.leaf)
    if source is None:
        return False
    if draft.dares() and draft.chance(0.6):
        draft.say(f"{source.text}.backward({keywords})")
        return True
    gradient = draft.pick(
        ("torch.ones_like({0})", "gradient=torch.ones_like({0})", "{0}.detach()", "torch.ones({1})")
    )
    size = ", ".join(map(str, source.shape))
    arguments = ", ".join(part for part in (gradient.format(source.text, size), keywords) if part)
    draft.say(f"{source.text}.backward({arguments})")
    return True
