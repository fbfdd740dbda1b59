"""Where tensors come from: leaves that want a gradient, plain data, and the binding of new results."""

from __future__ import annotations

from gradsight_dev.fuzz.grammar.draft import DATA_NAMES, LEAF_NAMES, NAMES, Draft, Shape, Var


def make_leaf(draft: Draft, shape: Shape | None = None, name: str | None = None) -> Var:
    """A leaf that requires grad, made in one of the usual ways."""
    shape = shape or draft.pick(draft.shapes())
    name = name or draft.fresh(LEAF_NAMES)
    size = ", ".join(map(str, shape))
    if draft.chance(0.12):
        draft.say(f"{name} = {draft.pick(('torch.randn', 'torch.rand', 'torch.ones'))}({size})")
        draft.say(
            draft.pick(
                (f"{name}.requires_grad_()", f"{name}.requires_grad = True", f"{name}.requires_grad_(True)")
            )
        )
    else:
        form = draft.weighted(
            (
                (f"torch.randn({size}, requires_grad=True)", 6.0),
                (f"torch.rand({size}, requires_grad=True)", 2.0),
                (f"torch.ones({size}, requires_grad=True)", 2.0),
                (f"torch.full(({size},), 0.5, requires_grad=True)", 0.7),
                (f"nn.Parameter(torch.randn({size}))", 2.5),
                (f"torch.nn.Parameter(torch.full(({size},), 0.3))", 0.5),
                (f"torch.randn({size}).requires_grad_()", 1.0),
                (f"(torch.randn({size}) * 0.5).requires_grad_(True)", 0.5),
                (f"torch.tensor({_literal(shape)}, requires_grad=True)", 1.5),
                (f"torch.linspace(-1, 1, {_count(shape)}).reshape({size}).requires_grad_()", 0.4),
            )
        )
        draft.say(f"{name} = {form}")
    return draft.add(Var(name, shape, draft.group(), leaf=True))


def make_data(draft: Draft, shape: Shape | None = None, name: str | None = None) -> Var:
    """A tensor without gradient."""
    shape = shape or draft.pick(draft.shapes())
    name = name or draft.fresh(DATA_NAMES)
    size = ", ".join(map(str, shape))
    like = draft.find(shape=shape)
    forms = [
        (f"torch.randn({size})", 4.0),
        (f"torch.rand({size})", 2.0),
        (f"torch.ones({size})", 1.5),
        (f"torch.zeros({size})", 1.5),
        (f"torch.full(({size},), 2.0)", 0.5),
        (f"torch.tensor({_literal(shape)})", 1.0),
        (f"torch.from_numpy(np.ones(({size},), dtype=np.float32))", 0.3),
        (f"torch.empty({size}).uniform_(-1, 1)", 0.4),
    ]
    if like is not None:
        forms += [(f"torch.zeros_like({like.text})", 0.7), (f"torch.randn_like({like.text})", 0.7)]
        forms += [(f"{like.text}.new_ones({size})", 0.3)]
    draft.say(f"{name} = {draft.weighted(forms)}")
    return draft.add(Var(name, shape, draft.group(), grad=False))


def bind(draft: Draft, text: str, variable: Var) -> Var:
    """Bind an expression to a new name, or rebind a name that is already there."""
    if draft.chance(0.25):
        old = draft.find(where=lambda known: known.is_name and not known.leaf and not known.fixed)
        if old is not None and _may_rebind(draft, old, variable):
            draft.say(f"{old.text} = {text}")
            return draft.add(_renamed(variable, old.text))
    name = draft.fresh(NAMES)
    draft.say(f"{name} = {text}")
    return draft.add(_renamed(variable, name))


def _may_rebind(draft: Draft, old: Var, new: Var) -> bool:
    """Inside a loop or a branch a name must keep its shape, for the next round and for what follows."""
    return old.shape == new.shape or (draft.scope.depth == 0 and draft.scope.free_rebinding)


def _renamed(variable: Var, name: str) -> Var:
    return Var(
        name, variable.shape, variable.group, variable.grad, variable.leaf, variable.refuses, variable.fixed
    )


def _count(shape: Shape) -> int:
    product = 1
    for extent in shape:
        product *= extent
    return product


def _literal(shape: Shape) -> str:
    if len(shape) == 1:
        return "[" + ", ".join(f"{index + 1}.0" for index in range(shape[0])) + "]"
    return "[" + ", ".join(_literal(shape[1:]) for _ in range(shape[0])) + "]"
