"""Statements that leave the graph and come back: detach, numbers, NumPy, copies by value, operators without gradient."""

from __future__ import annotations

from gradsight_dev.fuzz.grammar.compute import fits
from gradsight_dev.fuzz.grammar.draft import NAMES, Draft, Var

SAME_SHAPE = (
    ("{a}.detach()", 3.0),
    ("{a}.data", 1.0),
    ("torch.tensor({a}.tolist())", 0.7),
    ("torch.tensor({a})", 1.0),
    ("{a}.detach().clone()", 1.5),
    ("torch.from_numpy({a}.detach().numpy())", 0.7),
    ("torch.as_tensor({a}.detach().numpy().copy())", 0.4),
    ("({a} > 0).float()", 1.5),
    ("{a}.long().float()", 0.7),
    ("{a}.int() * 1.0", 0.4),
    ("{a}.argsort(-1).float()", 0.5),
    ("torch.zeros_like({a})", 0.5),
    ("{a}.isnan().float()", 0.3),
    ("torch.as_tensor({a})", 0.4),
    ("{a}.detach().requires_grad_()", 0.7),
    ("torch.tensor({a}.tolist(), requires_grad=True)", 0.4),
    ("nn.Parameter({a}.detach())", 0.3),
)


def cut(draft: Draft) -> bool:
    """`z = y.detach()` and its relatives."""
    source = draft.find(where=lambda known: known.grad and fits("any", known.shape))
    if source is None:
        return False
    name = draft.fresh(NAMES)
    text = draft.weighted(SAME_SHAPE).format(a=source.text)
    draft.say(f"{name} = {text}")
    shares = (
        text.endswith((".detach()", ".data")) or "from_numpy" in text or text.startswith("torch.as_tensor(")
    )
    leaf = "requires_grad" in text or "Parameter" in text
    draft.add(Var(name, source.shape, source.group if shares else draft.group(), grad=leaf, leaf=leaf))
    return True


def number(draft: Draft) -> bool:
    """`scale = y.mean().item()`, used as a factor."""
    source = draft.find(where=lambda known: known.grad)
    target = draft.find(where=lambda known: fits("any", known.shape))
    if source is None or target is None:
        return False
    name = draft.fresh(("factor_value", "level", "amount", "size"))
    value = source.text if not source.shape else f"{source.text}.{draft.pick(('sum()', 'mean()', 'max()'))}"
    draft.say(
        f"{name} = {draft.pick(('{}.item()', 'float({})', '{}.detach().item()', '{}.tolist()')).format(value)}"
    )
    bound = draft.fresh(NAMES)
    draft.say(f"{bound} = {target.text} {draft.pick(('*', '+', '-'))} {name}")
    draft.add(Var(bound, target.shape, draft.group(), target.grad))
    return True


def index(draft: Draft) -> bool:
    """An index by `argmax`: the index carries no gradient, the value picked by it does."""
    source = draft.find(where=lambda known: fits("any", known.shape))
    if source is None:
        return False
    name = draft.fresh(("best", "where_to", "choice"))
    draft.say(
        f"{name} = {source.text}.argmax(0)"
        if len(source.shape) == 1
        else f"{name} = {source.text}.argmax(-1)"
    )
    bound = draft.fresh(NAMES)
    if len(source.shape) == 1:
        draft.say(f"{bound} = {source.text}[{name}]")
        draft.add(Var(bound, (), draft.group(), source.grad))
    else:
        draft.say(f"{bound} = {source.text}.gather(1, {name}.unsqueeze(1)).squeeze(1)")
        draft.add(Var(bound, source.shape[:1], draft.group(), source.grad))
    return True


def ignored(draft: Draft) -> bool:
    """A pure method whose result is dropped: nothing happens."""
    source = draft.find(where=lambda known: fits("any", known.shape))
    if source is None:
        return False
    draft.say(
        source.text
        + draft.pick(
            (".detach()", ".clamp(0)", ".clone()", ".exp()", ".view(-1)", ".requires_grad", ".cpu()")
        )
    )
    return True


def freeze(draft: Draft) -> bool:
    """`y.detach_()` or a flag set on a leaf."""
    if not draft.dares():
        return False
    source = draft.find(where=lambda known: known.is_name)
    if source is None or draft.scope.in_loop:
        return False
    if source.leaf:
        draft.say(f"{source.text}.requires_grad_({draft.pick(('False', 'True'))})")
    elif not source.refuses:
        draft.say(f"{source.text}.detach_()")
        draft.add(Var(source.text, source.shape, source.group, grad=False))
    return True


def deep_copy(draft: Draft) -> bool:
    """`snapshot = copy.deepcopy(x)`: fine for leaves, refused for results."""
    source = draft.find(where=lambda known: known.leaf or not known.grad or draft.dares())
    if source is None or not fits("any", source.shape):
        return False
    name = draft.fresh(("snapshot", "backup", "frozen"))
    draft.say(f"{name} = copy.deepcopy({source.text})")
    draft.add(Var(name, source.shape, draft.group(), source.grad, source.leaf))
    return True
