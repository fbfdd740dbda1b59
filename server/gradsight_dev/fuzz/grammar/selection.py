"""Selecting and placing: `where`, masks, `index_put_`, `scatter_`, `gather`, `out=` into a part, other forms of `einsum`."""

from __future__ import annotations

from gradsight_dev.fuzz.grammar.compute import filled, fits
from gradsight_dev.fuzz.grammar.draft import Draft, Var
from gradsight_dev.fuzz.grammar.tables import Template, WriteTemplate
from gradsight_dev.fuzz.grammar.values import bind

CHOICES = (
    Template("torch.where({b} > 0, {a}, torch.zeros_like({a}))", "", 2),
    Template("torch.where({a} > {n}, {a} * {b}, {b})", "in", 1),
    Template("torch.where({b} > 0, {a}, {n})", "", 1),
    Template("{a}.masked_fill({b}.isnan(), 0.0)", "", 1),
    Template("{a}.scatter(0, torch.zeros_like({a}, dtype=torch.long), {b})", "", 1),
    Template("{a}.scatter_add(0, torch.zeros_like({a}, dtype=torch.long), {b})", "", 1),
    Template("{a}.index_put((torch.tensor([0]),), {b}[:1])", "", 1),
    Template("{a}.index_fill(0, torch.tensor([0]), {n})", "", 0.7),
    Template("{a}.gather(-1, torch.zeros_like({a}, dtype=torch.long)) * {b}", "in", 1),
    Template("torch.take_along_dim({a}, {b}.argsort(dim=-1), dim=-1)", "", 0.7),
    Template("{a}[{b}.argsort(dim=0)[..., 0]].reshape({a}.shape)", "", 0.4, "square"),
    Template("{a}.select_scatter({b}[0], 0, 0)", "", 0.7, "matrix"),
    Template("{a}.slice_scatter({b}[1:], 0, 1)", "", 0.7),
    Template("{a}.topk({a}.shape[-1], dim=-1).values + {b}", "", 0.5),
    Template("torch.einsum('i,i->i', {a}, {b})", "in", 1, "vector"),
    Template("torch.einsum('i,j->ij', {a}, {b}).sum(0)", "in", 1, "vector"),
    Template("torch.einsum('ij,ij->ij', {a}, {b})", "in", 1, "matrix"),
    Template("torch.einsum('ij,kj->ik', {a}, {square})", "in", 1, "matrix"),
    Template("torch.einsum('ij,j->ij', {a}, {row})", "in", 1, "matrix"),
    Template("torch.einsum('ij->ji', {a}).T", "", 0.7, "matrix"),
    Template("torch.einsum('ij,ji->ij', {a}, {b}.T)", "in", 0.7, "matrix"),
    Template("torch.einsum('bi,bi->b', {a}, {b})[:, None] * {a}", "in", 0.7, "matrix"),
    Template("torch.einsum('...ij,...jk->...ik', {a}, {square})", "in", 0.7, "matrix"),
    Template("torch.tensordot({a}, {square}, dims=1)", "in", 0.7),
    Template("torch.outer({a}, {b}).diagonal()", "in", 0.5, "vector"),
    Template("torch.kron({a}, {b})[: {a}.shape[0]]", "in", 0.4, "vector"),
    Template("torch.bmm({a}[None], {square}[None])[0]", "in", 0.7, "matrix"),
    Template("torch.func.vmap(torch.mul)({a}, {b})", "in", 0.7),
    Template("torch.func.vmap(lambda one, two: one * two.sum(), in_dims=(0, None))({a}, {b})", "in", 0.5),
    Template("torch.func.grad(lambda t: (t * {b}).sum())({a})", "in", 0.5),
    Template("torch.func.jvp(torch.sin, ({a},), ({b},))[1]", "in", 0.3),
    Template("torch.utils.checkpoint.checkpoint(lambda t: t * {b}, {a}, use_reentrant=False)", "in", 0.7),
    Template("torch.utils.checkpoint.checkpoint(torch.exp, {a}, use_reentrant=True)", "in", 0.4),
)
PLACINGS = (
    WriteTemplate("{a}.masked_fill_({b} > 0, {n})", 2),
    WriteTemplate("{a}.masked_scatter_({b} > 0, {b})", 1),
    WriteTemplate("{a}.index_put_((torch.tensor([0]),), {b}[:1])", 1),
    WriteTemplate("{a}.index_put_((torch.tensor([0]),), {b}[:1], accumulate=True)", 1),
    WriteTemplate("{a}.index_copy_(0, torch.tensor([0]), {b}[:1])", 1),
    WriteTemplate("{a}.scatter_(0, torch.zeros_like({a}, dtype=torch.long), {b})", 1),
    WriteTemplate("{a}.scatter_add_(0, torch.zeros_like({a}, dtype=torch.long), {b})", 1),
    WriteTemplate("{a}[{b} > 0] = {b}[{b} > 0]", 1, style="indexed"),
    WriteTemplate("{a}[torch.tensor([0, 1])] += {b}[:2]", 1, style="indexed"),
    WriteTemplate("{a}[[0, 1]] = {b}[[1, 0]]", 0.7, style="indexed"),
    WriteTemplate("{a}[torch.arange(2), 0] = {n}", 0.7, "matrix", "indexed"),
    WriteTemplate("{a}[..., 0] = {b}[..., 1]", 0.7, style="indexed"),
    WriteTemplate("{a}[None, 0] *= {n}", 0.4, style="indexed"),
    WriteTemplate("{a}[::2] = {n}", 0.7, style="indexed"),
    WriteTemplate("torch.where({b} > 0, {b}.detach(), -{b}.detach(), out={a})", 0.4, style="out"),
    WriteTemplate("torch.add({b}[0], {n}, out={a}[0])", 0.7, style="out"),
    WriteTemplate("torch.mul({b}.detach()[1:], {n}, out={a}[1:])", 0.7, style="out"),
    WriteTemplate("torch.stack([{b}.detach()[0], {b}.detach()[1]], out={a}[:2])", 0.4, style="out"),
    WriteTemplate("{a}.swapaxes_(0, 1).swapaxes_(0, 1)", 0.2, "matrix"),
    WriteTemplate("{a}.squeeze_(0) if {a}.dim() > 2 else {a}.mul_({n})", 0.3),
    WriteTemplate("{a}.addmm_({a}.detach().clone(), {square})", 0.5, "matrix"),
    WriteTemplate("{a}.baddbmm_({a}, {a}) if {a}.dim() == 3 else {a}.sub_({n})", 0.2),
    WriteTemplate("torch._foreach_add_([{a}, {a}.detach()], {n})", 0.4, style="function"),
    WriteTemplate("{a}.requires_grad_()", 0.5),
    WriteTemplate("{a}.detach_()", 0.3),
)


def choose(draft: Draft) -> bool:
    """`z = torch.where(mask, x, y)`."""
    main = draft.find(where=lambda known: known.grad and fits("any", known.shape))
    if main is None:
        return False
    fitting = [(one, one.weight) for one in CHOICES if fits(one.fits, main.shape)]
    template = draft.weighted(fitting)
    partners: list[Var] = []
    text = filled(draft, template.text, main, partners)
    grad = draft.scope.recording and any(one.grad for one in (main, *partners))
    if grad and template.keeps == "in":
        draft.keep(main, *partners)
    bind(draft, text, Var("", main.shape, draft.group(), grad))
    return True


def place(draft: Draft) -> bool:
    """`y.scatter_(0, index, x)`."""
    target = draft.writable()
    if target is None or not fits("any", target.shape):
        return False
    fitting = [
        (one, one.weight)
        for one in PLACINGS
        if fits(one.fits, target.shape) and (one.style != "out" or not draft.scope.recording or draft.dares())
    ]
    partners: list[Var] = []
    template = draft.weighted(fitting)
    if template.style == "indexed" and (target.fixed or "(" in target.text):
        return False
    draft.say(filled(draft, template.text, target, partners))
    if draft.scope.recording and (target.grad or any(one.grad for one in partners)):
        grown = Var(target.text, target.shape, target.group, True, target.leaf, target.refuses, target.fixed)
        draft.scope.variables = [
            grown if known.text == target.text else known for known in draft.scope.variables
        ]
    return True
