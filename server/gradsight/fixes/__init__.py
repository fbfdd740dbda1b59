"""Edits that keep the formatting of the user (libcst lives here, imported lazily).

`drafts` gives the candidates for a finding; nothing here knows whether a candidate helps: that is verified by whoever
can analyse the result.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradsight.fixes import cuts, functions, gradients, graphs, inplace, modules, training
from gradsight.fixes.draft import Builder, Case, Draft
from gradsight.fixes.rewriting import rewrites
from gradsight.fixes.suppress import suppression
from gradsight.fixes.tree import Tree
from gradsight.model.finding import Finding

__all__ = ["BUILDERS", "drafts", "rewrites", "suppression"]

BUILDERS: dict[str, Builder] = {
    "GS101": inplace.saved_overwritten,
    "GS102": inplace.leaf_written,
    "GS103": inplace.shared_view_written,
    "GS104": inplace.saved_changed_silently,
    "GS105": inplace.written_without_grad,
    "GS106": inplace.step_before_backward,
    "GS107": inplace.alias_changed,
    "GS108": inplace.written_to_out,
    "GS190": inplace.recorded,
    "GS201": cuts.copied,
    "GS202": cuts.turned_into_number,
    "GS203": cuts.detached,
    "GS204": cuts.without_grad,
    "GS205": cuts.without_gradient,
    "GS206": cuts.hidden,
    "GS207": cuts.parameter_made,
    "GS208": cuts.gradient_zero,
    "GS209": cuts.result_ignored,
    "GS210": cuts.mode_left_off,
    "GS211": cuts.checkpointed,
    "GS290": cuts.target_moves,
    "GS301": gradients.non_leaf_read,
    "GS302": gradients.gradient_kept,
    "GS303": gradients.non_leaf_optimized,
    "GS304": gradients.gradient_none,
    "GS305": gradients.read_in_race,
    "GS306": gradients.non_leaf_copied,
    "GS401": graphs.non_scalar,
    "GS402": graphs.backward_twice,
    "GS403": graphs.state_carried,
    "GS404": graphs.kept_alive,
    "GS405": graphs.penalty,
    "GS406": graphs.unused,
    "GS408": graphs.grows,
    "GS501": training.never_cleared,
    "GS502": training.cleared_before_step,
    "GS503": training.step_without_backward,
    "GS504": training.parameters_replaced,
    "GS505": training.eval_left_on,
    "GS506": training.scheduler_first,
    "GS507": training.scaled_used,
    "GS508": training.foreign_gradients,
    "GS509": training.frozen_moves,
    "GS510": training.iterator_used_up,
    "GS601": modules.not_registered,
    "GS602": modules.typo,
    "GS603": modules.super_first,
    "GS604": modules.made_in_forward,
    "GS605": modules.activation_twice,
    "GS701": functions.gradient_count,
    "GS702": functions.kept_on_ctx,
    "GS703": functions.dirty,
    "GS704": functions.gradient_edited,
}


def drafts(tree: Tree, finding: Finding, findings: tuple[Finding, ...]) -> Iterator[Draft]:
    """The candidates for one finding, the best first."""
    build = BUILDERS.get(finding.code)
    node = tree.node_at(finding.span)
    statement = tree.statement(node)
    if build is None or node is None or statement is None:
        return
    yield from build(Case(tree, finding, node, statement, findings))
