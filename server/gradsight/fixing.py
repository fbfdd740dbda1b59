"""Fixes that were tried before they are offered.

A candidate is applied to the text and the result is analysed: it must parse, the finding must be gone and no other may
have come.  A candidate that fails is dropped and logged.  *Companions* are findings with the same cause, which one
repair would leave standing beside it: they are repaired in the same go.
"""

from __future__ import annotations

import ast
import logging
import os
import warnings
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from gradsight.analysis import analyze
from gradsight.fixes.calls import load_libcst
from gradsight.fixes.difference import difference
from gradsight.fixes.draft import Builder, Draft, FixCase
from gradsight.fixes.rewriting import rewrites
from gradsight.fixes.suppress import file_suppression, suppression
from gradsight.fixes.titles import title_of
from gradsight.fixes.tree import Patch, Tree, moved, patched
from gradsight.model.finding import Finding
from gradsight.model.fix import Fix, Safety, apply_edits, line_starts
from gradsight.model.report import Report
from gradsight.model.settings import Settings
from gradsight.model.source import Source, Span
from gradsight.rules import ALL, rule_of

Check = Callable[[Source], Report]
LOUD = ("error", "warning")
MOST_STEPS = 3
# What a repair of one of these kinds does, it may do to a right program too: no value and no gradient changes.
HARMLESS = frozenset(
    """out-of-place clone-first clone-result clone-operand clone-made layer retain-grad copy-grad guard-none skip-none
    reentrant super-init""".split()
)
BUILDERS: dict[str, Builder] = {rule.code: rule.fix for rule in ALL if rule.fix is not None}
log = logging.getLogger(__name__)


def fixes_for(
    source: Source,
    finding: Finding,
    settings: Settings | None = None,
    *,
    check: Check | None = None,
    report: Report | None = None,
) -> list[Fix]:
    """The verified fixes of one finding, the preferred one first.

    `check` analyses a changed text (by default from scratch); `report` is what it said about this one.
    """
    check = check if check is not None else _checker(settings)
    if finding.path != source.path or finding.code not in BUILDERS:
        return []
    tree = Tree.parse(source.text)
    if tree is None:
        return []
    before = report if report is not None else check(source)
    found: list[Fix] = []
    for draft in _drafts(tree, finding, before):
        trial = _Trial(source, tree, finding, before, check)
        fix = trial.verified(draft)
        if fix is not None and all(fix.edits != other.edits for other in found):
            found.append(fix)
    found.sort(key=lambda fix: fix.safety != "safe")
    return [replace(fix, preferred=place == 0) for place, fix in enumerate(found)]


def fix_all(
    source: Source,
    settings: Settings | None = None,
    *,
    unsafe: bool = False,
    check: Check | None = None,
    wanted: Callable[[Finding], bool] = lambda finding: True,
) -> tuple[str, list[Fix]]:
    """The text after every safe fix (with `unsafe`, after every preferred fix), and the fixes in the order they were
    applied.  Each fix takes at least one finding away and brings none, so the work ends, and a second run has nothing
    to do."""
    check = check if check is not None else _checker(settings)
    applied: list[Fix] = []
    hopeless: set[tuple[str, str, str]] = set()
    report = check(source)
    while True:
        step = _next_fix(source, report, check, unsafe, wanted, hopeless)
        if step is None:
            return source.text, applied
        applied.append(step)
        source = Source(source.path, apply_edits(source.text, step.edits))
        report = check(source)


def _next_fix(
    source: Source,
    report: Report,
    check: Check,
    unsafe: bool,
    wanted: Callable[[Finding], bool],
    hopeless: set[tuple[str, str, str]],
) -> Fix | None:
    for finding in report.findings:
        if finding.path != source.path or finding.severity == "hint" or not wanted(finding):
            continue
        key = (finding.code, finding.message, _text_of(source, finding))
        if key in hopeless:
            continue
        for fix in fixes_for(source, finding, check=check, report=report):
            if fix.safety == "safe" or unsafe:
                return fix
        hopeless.add(key)
    return None


def _text_of(source: Source, finding: Finding) -> str:
    lines = source.text.split("\n")
    return "\n".join(lines[finding.span.line - 1 : finding.span.end_line])


def rewrites_at(source: Source, span: Span, settings: Settings | None = None) -> list[Fix]:
    """The in-place statements at a place, written out of place, whether they are a hazard or not."""
    tree = Tree.parse(source.text)
    if tree is None:
        return []
    found: list[Fix] = []
    for draft in _guarded(lambda: list(rewrites(tree, span)), None):
        fix = Fix(draft.title, draft.safety, tree.edits(draft.patches))
        if fix not in found and _parses(tree, draft.patches):
            found.append(fix)
    return found


def suppress_edit(source: Source, finding: Finding) -> Fix | None:
    """A comment that silences the finding on its line."""
    tree = Tree.parse(source.text)
    patch = suppression(tree, finding) if tree is not None and finding.path == source.path else None
    if tree is None or patch is None:
        return None
    return Fix(f"ignore {finding.code} on this line", "unsafe", tree.edits((patch,)), finding.code)


def suppress_file_edit(source: Source, finding: Finding) -> Fix | None:
    """A comment that silences the finding's rule in its whole file."""
    tree = Tree.parse(source.text)
    patch = file_suppression(tree, finding) if tree is not None and finding.path == source.path else None
    if tree is None or patch is None:
        return None
    return Fix(f"ignore {finding.code} in this file", "unsafe", tree.edits((patch,)), finding.code)


def warm_up() -> None:
    """Import what the first fix would otherwise wait half a second for."""
    load_libcst()


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What became of the findings of a text after some patches."""

    report: Report
    is_gone: bool
    new: tuple[Finding, ...]
    left: tuple[tuple[Finding, Finding], ...]
    """Findings that were there before and still are, as they were and as they are."""


@dataclass(frozen=True, slots=True)
class _Trial:
    """One finding of one text, on which candidates are tried."""

    source: Source
    tree: Tree
    finding: Finding
    before: Report
    check: Check

    def verified(self, draft: Draft) -> Fix | None:
        """The fix that a candidate makes, with what else has to be changed with it; None when it does not help."""
        text = patched(self.source.text, draft.patches)
        outcome = self.outcome(text, draft.patches)
        if outcome is None or not outcome.is_gone:
            log.info("dropped for %s: %s: the finding stays", self.finding.code, draft.title)
            return None
        if self._is_blinded(outcome):
            log.info("dropped for %s: %s: what it changes is not understood", self.finding.code, draft.title)
            return None
        safety = draft.safety
        if self.finding.certainty == "assumed" and draft.kind not in HARMLESS:
            # Where the assumption does not hold there is nothing to repair, and this would change a right gradient.
            safety = "unsafe"
        patches, title, kind = draft.patches, draft.title, draft.kind
        for _ in range(MOST_STEPS):
            if not outcome.new:
                break
            step = self._follow(text, outcome.new[0], outcome.report)
            if step is None:
                break
            text, patches, outcome, follow = step
            if safety == "safe" and follow.safety == "unsafe":
                safety, kind = "unsafe", follow.kind
            title += f", and {follow.title}"
        if outcome.new:
            names = ", ".join(sorted({one.code for one in outcome.new}))
            log.info("dropped for %s: %s: brings %s", self.finding.code, draft.title, names)
            return None
        text, patches, outcome, safety, more = self._with_companions(
            text, patches, outcome, draft.kind, safety
        )
        if self._alarms_on_the_line(outcome):
            log.info("dropped for %s: %s: another alarm stays on the line", self.finding.code, draft.title)
            return None
        title += f", and {more} more like it" if more else ""
        title = title_of(self.source.text, text, title, kind, safety)
        return Fix(title, safety, self.tree.edits(patches), self.finding.code)

    def _is_blinded(self, outcome: _Outcome) -> bool:
        """Whether the finding is gone only because a value is not known any more: a dict has no `clone`."""
        known = {gap.reason for gap in self.before.gaps}
        return any(
            gap.reason not in known
            and (
                gap.reason.startswith("method ")
                or gap.reason == "result of method backward of an unknown value"
            )
            for gap in outcome.report.gaps
        )

    def outcome(self, text: str, patches: tuple[Patch, ...]) -> _Outcome | None:
        """What the analysis says about the changed text, in comparison; None when it does not parse."""
        after = self.check(Source(self.source.path, text))
        if after.syntax_problems:
            return None
        starts = line_starts(text)
        known = [(one, *self._moved_lines(one, patches, starts)) for one in self.before.findings]
        is_gone = True
        new: list[Finding] = []
        left: list[tuple[Finding, Finding]] = []
        for one in after.findings:
            same = [
                was for was, first, last in known
                if was.code == one.code and was.path == one.path and first <= one.span.line <= last
            ]  # fmt: skip
            old = next((was for was in same if was.message == one.message), same[0] if same else None)
            if old is None:
                if one.severity in LOUD:
                    new.append(one)
            elif old == self.finding:
                is_gone = False
            else:
                left.append((old, one))
        return _Outcome(after, is_gone, tuple(new), tuple(left))

    def _moved_lines(
        self, finding: Finding, patches: tuple[Patch, ...], starts: list[int]
    ) -> tuple[int, int]:
        if finding.path != self.source.path:
            return finding.span.line, finding.span.end_line
        start, end = self.tree.offsets(finding.span)
        first = bisect_right(starts, moved(start, patches))
        return first, max(first, bisect_right(starts, moved(end, patches)))

    def _follow(
        self, text: str, new: Finding, report: Report
    ) -> tuple[str, tuple[Patch, ...], _Outcome, Draft] | None:
        """One more step: repair the finding that the last one brought to light."""
        tree = Tree.parse(text)
        if tree is None or new.path != self.source.path:
            return None
        for draft in _drafts(tree, new, report):
            longer = patched(text, draft.patches)
            patches = difference(self.source.text, longer)
            outcome = self.outcome(longer, patches)
            if outcome is not None and outcome.is_gone and new not in outcome.new:
                if len(outcome.new) == 0 or all(one.code != new.code for one in outcome.new):
                    return longer, patches, outcome, draft
        return None

    def _with_companions(
        self, text: str, patches: tuple[Patch, ...], outcome: _Outcome, kind: str, safety: Safety
    ) -> tuple[str, tuple[Patch, ...], _Outcome, Safety, int]:
        """Repair what has the same cause in the same way, as far as that can be done."""
        more = 0
        while True:
            step = self._companion(text, outcome, kind)
            if step is None:
                return text, patches, outcome, safety, more
            text, patches, outcome, follow = step
            safety = "unsafe" if "unsafe" in (safety, follow) else "safe"
            more += 1

    def _companion(
        self, text: str, outcome: _Outcome, kind: str
    ) -> tuple[str, tuple[Patch, ...], _Outcome, Safety] | None:
        companions = [now for old, now in outcome.left if self._is_companion(old)]
        tree = Tree.parse(text) if companions else None
        if tree is None:
            return None
        for now in companions:
            for draft in _drafts(tree, now, outcome.report):
                if draft.kind != kind:
                    continue
                longer = patched(text, draft.patches)
                patches = difference(self.source.text, longer)
                result = self.outcome(longer, patches)
                if result is not None and result.is_gone and not result.new:
                    if len(result.left) < len(outcome.left):
                        return longer, patches, result, draft.safety
        return None

    def _alarms_on_the_line(self, outcome: _Outcome) -> bool:
        """Whether a finding that stays stands where the repaired one stood."""
        return any(
            was.severity in LOUD and was.path == self.finding.path and was.span.line == self.finding.span.line
            for was, _ in outcome.left
        )

    def _is_companion(self, other: Finding) -> bool:
        """Whether another finding has the same rule and the same cause, or stands on the next line."""
        mine = self.finding
        if other.code != mine.code or other.path != mine.path:
            return False
        roles = rule_of(mine.code).companions
        causes = {(step.role, step.path, step.span) for step in mine.related if step.role in roles}
        if causes & {(step.role, step.path, step.span) for step in other.related}:
            return True
        here, there = self.tree.statement_at(mine.span), self.tree.statement_at(other.span)
        if here is None or there is None:
            return False
        block = self.tree.block(here)
        return there in block and abs(block.index(here) - block.index(there)) <= 1


def _checker(settings: Settings | None) -> Check:
    chosen = settings if settings is not None else Settings()
    return lambda source: analyze(source, chosen)


def _parses(tree: Tree, patches: tuple[Patch, ...]) -> bool:
    """Whether a text still parses; only the top-level statements that are changed can have stopped to."""
    for statement in tree.module.body:
        start = tree.line_start(tree.start(statement))
        end = tree.next_line(tree.end(statement))
        inside = tuple(
            Patch(one.start - start, one.end - start, one.text)
            for one in patches
            if start <= one.start < end or one.start == end == len(tree.text)
        )
        if inside:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    ast.parse(patched(tree.text[start:end], inside))
                except (SyntaxError, ValueError, RecursionError, MemoryError):
                    return False
    return True


def _drafts(tree: Tree, finding: Finding, report: Report) -> Iterator[Draft]:
    return _guarded(lambda: _built(tree, finding, report.findings), finding)


def _built(tree: Tree, finding: Finding, findings: tuple[Finding, ...]) -> list[Draft]:
    """The candidates for one finding, the best first."""
    build = BUILDERS.get(finding.code)
    node = tree.node_at(finding.span)
    statement = tree.statement(node)
    if build is None or node is None or statement is None:
        return []
    return list(build(FixCase(tree, finding, node, statement, findings)))


def _guarded(work: Callable[[], list[Draft]], finding: Finding | None) -> Iterator[Draft]:
    """A builder's failure costs its own candidates only; in tests the failure is raised."""
    try:
        yield from work()
    except ImportError as missing:
        # On a Python that is newer than the extension libcst has no compiled part: no fixes there, everything else.
        log.warning("no fixes on this Python: %s", missing)
    except Exception:
        if os.environ.get("GRADSIGHT_STRICT"):
            raise
        log.exception("building fixes failed for %s", finding.code if finding is not None else "a rewrite")
