"""Code actions: quick fixes, safe fixes for the whole file, rewrites, and comments that silence.

An edit is one for the text as it is now, never made from a range that the client sends back: some editors send bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from gradsight.lsp.places import Spot, locate, span_of, spot_of
from gradsight.lsp.wire_types import types
from gradsight.model.finding import Finding
from gradsight.model.fix import Edit
from gradsight.model.source import Span
from gradsight.session import fix_menu
from gradsight.session.documents import Document
from gradsight.session.fix_menu import Offer, Purpose
from gradsight.session.schedule import Urgency

if TYPE_CHECKING:
    from gradsight.lsp.server import GradSightServer

KINDS: dict[Purpose, str] = {
    "fix": "quickfix",
    "suppress": "quickfix",
    "rewrite": "refactor.rewrite.gradsight",
    "fixAll": "source.fixAll.gradsight",
}
APPLY = "gradsight.apply"
VERIFY = "gradsight.verifyFix"
PROVE = "gradsight.proveFinding"


def register(server: GradSightServer) -> None:
    """Offer actions, complete them, and apply them for clients that only know commands."""
    server.feature(types.TEXT_DOCUMENT_CODE_ACTION)(code_actions)
    server.feature(types.CODE_ACTION_RESOLVE)(resolve)
    server.add_command(APPLY, apply)


async def code_actions(
    ls: GradSightServer, params: types.CodeActionParams
) -> list[types.CodeAction | types.Command]:
    """What can be done about a range.

    A client that asks for edits later is answered from what is known about the text as it was, where that is enough:
    the user types on, and the edit itself will be worked out on the text as it is then.
    """
    spot = spot_of(ls.session, params.text_document.uri)
    if spot is None:
        return []
    is_lazy = ls.client.resolves_edits
    context, document = params.context, spot.document
    wanted = _wanted(context.only)
    # Our own editor keeps source actions out of this menu: there a command stands for them.
    is_fix_all_offered = "fixAll" in wanted and spot.cell is None and context.only is None and is_lazy
    is_fix_all_offered = is_fix_all_offered and not ls.client.shows_pages
    if spot.cell is not None or context.only is None:
        # In a cell a source action would run once for each cell, over the whole notebook.
        wanted.discard("fixAll")
    is_for_one = not ls.client.knows_preferred and _asks_for_one(params, spot)
    place = context.diagnostics[0].range if is_for_one else params.range
    asked = span_of(spot, place, ls.client.encoding)
    plan = _plan(ls, spot, wanted, asked, context.diagnostics, is_lazy)
    if not (is_lazy and plan.is_ready and document.report is not None):
        if not await ls.session.current(document):
            return []
        plan = _plan(ls, spot, wanted, asked, context.diagnostics, is_lazy)
    offers = await _offers(ls, document, plan)
    if is_for_one:
        preferred = [offer for offer in offers if offer.purpose == "fix" and offer.is_preferred]
        return [_action(ls, document, offer, asked, context.diagnostics) for offer in preferred[:1]]
    if is_fix_all_offered and document.findings:
        offers.append(Offer("fixAll", fix_menu.FIX_ALL, None))
    actions = [_action(ls, document, offer, asked, context.diagnostics) for offer in offers]
    if wanted & {"fix", "suppress"} and ls.client.shows_pages:
        chosen = _chosen(ls, spot, asked, context.diagnostics)
        more = _commands(ls, spot, chosen, context.diagnostics)
        # Where the menu ends: what is done about the finding first, then how to ignore it, then all at once.
        first = next((number for number, offer in enumerate(offers) if offer.purpose != "fix"), len(offers))
        last = next((number for number, offer in enumerate(offers) if offer.purpose == "fixAll"), len(offers))
        ignoring = [each for each in more if "ignore" in each.title]
        actions[last:last] = ignoring
        actions[first:first] = [each for each in more if each not in ignoring]
        if chosen and not is_fix_all_offered and spot.cell is None:
            actions += _fix_all(ls, spot)
    fixes = [offer for offer in offers if offer.purpose == "fix" and offer.finding is not None]
    is_news = any(_title(ls, document, offer) == f"GradSight: {offer.title}" for offer in fixes)
    if is_news and document.options.probe.allowed:
        actions.insert(offers.index(fixes[-1]) + 1, _verification(ls, spot, fixes, context.diagnostics))
    return actions


async def resolve(ls: GradSightServer, action: types.CodeAction) -> types.CodeAction:
    """Complete an action that was offered without its edit."""
    if isinstance(action.data, dict):
        action.edit = await edit_for(ls, action.data)
    return action


async def apply(ls: GradSightServer, handle: Any) -> None:
    """Apply an action on behalf of a client that cannot take edits with it."""
    edit = await edit_for(ls, handle) if isinstance(handle, dict) else None
    if edit is not None:
        await ls.workspace_apply_edit_async(types.ApplyWorkspaceEditParams(edit, label="GradSight"))


async def edit_for(ls: GradSightServer, handle: dict[str, Any]) -> types.WorkspaceEdit | None:
    """The edit that a handle stands for in the present text; None if it no longer applies.

    What was worked out when the action was offered is used if nothing has changed since.
    """
    document = ls.session.open.documents.get(str(handle.get("document")))
    title, line = handle.get("title"), handle.get("line")
    purpose = next((each for each in KINDS if each == handle.get("purpose")), None)
    if document is None or purpose is None or not isinstance(line, int):
        return None
    if not await ls.session.current(document):
        return None
    column = handle.get("column")
    asked = Span(line, column, line, column) if isinstance(column, int) else Span(line, 0, line, 0)
    chosen = _same_finding(ls.session.findings_of(document), handle)
    plan = fix_menu.make_plan(document, ls.session.offers, {purpose}, asked, chosen, is_lazy=False)
    offers = await _offers(ls, document, plan)
    # What is fixed at once is counted in its title, on the text as it is now.
    offer = next((each for each in offers if each.title == title or each.purpose == "fixAll"), None)
    if offer is None and purpose == "fix":
        # A title shows the line as it will be; where the line was typed in, the fix in the same place is meant.
        offer = next((each for each in offers if each.number == handle.get("number")), None)
    if offer is None or offer.edits is None:
        return None
    return workspace_edit(ls, document, offer.edits)


def _asks_for_one(params: types.CodeActionParams, spot: Spot) -> bool:
    """Whether the client names a finding and asks over the whole text: it wants that finding repaired.

    Kate does so for its "Quick Fix", and up to 22.12 carries out everything that it is offered.
    """
    start, end = params.range.start, params.range.end
    is_whole = (start.line, start.character) == (0, 0) and end.line >= spot.buffer.text.count("\n")
    return is_whole and len(params.context.diagnostics) == 1


def _plan(
    ls: GradSightServer,
    spot: Spot,
    wanted: set[Purpose],
    asked: Span,
    echoed: Sequence[types.Diagnostic],
    is_lazy: bool,
) -> fix_menu.Plan:
    chosen = _chosen(ls, spot, asked, echoed)
    return fix_menu.make_plan(spot.document, ls.session.offers, wanted, asked, chosen, is_lazy)


async def _offers(ls: GradSightServer, document: Document, plan: fix_menu.Plan) -> list[Offer]:
    """Carry a plan out, beside the conversation and not in it."""
    if plan.is_ready:
        return list(plan.ready)
    workshop, memory = ls.session.workshop(document), ls.session.offers
    return await ls.session.worker.submit(Urgency.AWAITED, lambda: plan.work(workshop, memory))


def workspace_edit(ls: GradSightServer, document: Document, edits: Iterable[Edit]) -> types.WorkspaceEdit:
    """Edits of a module as the client wants them: by address, with versions where it takes them."""
    by_uri: dict[str, list[types.TextEdit]] = {}
    for edit in edits:
        uri, place = locate(document, edit.span, ls.client.encoding)
        by_uri.setdefault(uri, []).append(types.TextEdit(place, edit.text))
    if not ls.client.takes_document_changes:
        return types.WorkspaceEdit(changes=by_uri)
    changes: list[Any] = []
    for uri, text_edits in by_uri.items():
        spot = spot_of(ls.session, uri)
        version = spot.version if spot is not None else None
        changes.append(
            types.TextDocumentEdit(types.OptionalVersionedTextDocumentIdentifier(uri, version), text_edits)
        )
    return types.WorkspaceEdit(document_changes=changes)


def _action(
    ls: GradSightServer, document: Document, offer: Offer, asked: Span, echoed: Sequence[types.Diagnostic]
) -> types.CodeAction | types.Command:
    handle = {
        "document": document.key,
        "purpose": offer.purpose,
        "title": offer.title,
        "number": offer.number,
        "line": asked.line,
        "column": asked.column,
        "code": offer.finding.code if offer.finding is not None else "",
        "at": offer.finding.span.line if offer.finding is not None else 0,
        "message": offer.finding.message if offer.finding is not None else "",
    }
    title = _title(ls, document, offer)
    if not ls.client.takes_action_literals:
        return types.Command(title, APPLY, arguments=[handle])
    is_lazy = ls.client.resolves_edits
    return types.CodeAction(
        title=title,
        kind=KINDS[offer.purpose],
        diagnostics=_repaired(ls, document, offer, echoed),
        is_preferred=True if offer.is_preferred and ls.client.knows_preferred else None,
        edit=None if is_lazy else workspace_edit(ls, document, offer.edits or ()),
        data=handle if is_lazy else None,
    )


def _commands(
    ls: GradSightServer, spot: Spot, chosen: Sequence[Finding], echoed: Sequence[types.Diagnostic]
) -> list[types.CodeAction | types.Command]:
    """What else can be done about the findings of a place: prove one, read about its rule, ignore the rule everywhere."""
    from gradsight.rules import find

    actions: list[types.CodeAction | types.Command] = []
    for finding in {each.code: each for each in reversed(chosen)}.values():
        if find(finding.code) is None:
            continue
        uri, place = locate(spot.document, finding.span, ls.client.encoding)
        diagnostics = _repaired(ls, spot.document, Offer("fix", "", None, finding), echoed)
        offered: list[tuple[str, str, list[Any]]] = [
            (f"explain {finding.code}", "gradsight.explainRule", [finding.code]),
            (f"ignore {finding.code} in this workspace", "gradsight.ignoreRule", [finding.code]),
        ]
        if spot.document.options.probe.allowed and finding.severity in ("error", "warning"):
            proof = (f"prove {finding.code} on my torch", PROVE, [uri, place.start.line, finding.code])
            offered.insert(0, proof)
        for title, name, arguments in offered:
            command = types.Command(f"GradSight: {title}", name, arguments=arguments)
            actions.append(
                types.CodeAction(command.title, kind=KINDS["fix"], diagnostics=diagnostics, command=command)
            )
    return actions


def _fix_all(ls: GradSightServer, spot: Spot) -> list[types.CodeAction]:
    """The way to all safe fixes of a file, from the menu of one finding of several; with their number once it is known."""
    alarms = [each for each in ls.session.findings_of(spot.document) if each.severity in fix_menu.ALARMS]
    count = ls.fix_counts.of(ls, spot.document) if len(alarms) > 1 else 0
    if count is not None and count < 2:
        return []
    number = f" ({count})" if count is not None else ""
    command = types.Command(f"GradSight: apply all safe fixes in this file{number}", "gradsight.fixAll")
    return [types.CodeAction(command.title, kind=KINDS["fix"], command=command)]


def _verification(
    ls: GradSightServer, spot: Spot, fixes: Sequence[Offer], echoed: Sequence[types.Diagnostic]
) -> types.CodeAction | types.Command:
    """Lets torch try the repairs of a finding; their titles then say what came out."""
    finding = fixes[0].finding
    assert finding is not None
    uri, place = locate(spot.document, finding.span, ls.client.encoding)
    title = (
        "GradSight: test this fix on my torch"
        if len(fixes) == 1
        else "GradSight: test these fixes on my torch"
    )
    command = types.Command(title, VERIFY, arguments=[uri, place.start.line, finding.code])
    if not ls.client.takes_action_literals:
        return command
    diagnostics = _repaired(ls, spot.document, fixes[0], echoed)
    return types.CodeAction(title, kind=KINDS["fix"], diagnostics=diagnostics, command=command)


def _title(ls: GradSightServer, document: Document, offer: Offer) -> str:
    """The title of an offer, with what torch said about it when it was tried."""
    if offer.purpose != "fix" or offer.finding is None:
        return f"GradSight: {offer.title}"
    finding, trials = offer.finding, ls.session.evidence.trials
    said = trials.titled(document.path, document.source.text, finding.code, finding.span.line, offer.title)
    return f"GradSight: {said}"


def _chosen(
    ls: GradSightServer, spot: Spot, asked: Span, echoed: Sequence[types.Diagnostic]
) -> list[Finding]:
    """The findings that a range is about: those it meets, and those the client names by code and line."""
    named = {
        (each.code, each.range.start.line + 1 + spot.offset) for each in echoed if each.source == "gradsight"
    }
    return [
        finding
        for finding in ls.session.findings_of(spot.document)
        if finding.path == spot.document.path
        and (_meets(finding.span, asked) or (finding.code, finding.span.line) in named)
    ]


def _same_finding(findings: Sequence[Finding], handle: dict[str, Any]) -> list[Finding]:
    """The finding that a handle speaks of, in a text that may have moved: the nearest that says the same."""
    line = handle.get("at")
    alike = [
        finding
        for finding in findings
        if finding.code == handle.get("code") and finding.message == handle.get("message")
    ]
    if not alike or not isinstance(line, int):
        return []
    return [min(alike, key=lambda finding: abs(finding.span.line - line))]


def _repaired(
    ls: GradSightServer, document: Document, offer: Offer, echoed: Sequence[types.Diagnostic]
) -> list[types.Diagnostic] | None:
    """The client's own diagnostics that an offer repairs, handed back as they came."""
    if offer.finding is None:
        return None
    _, place = locate(document, offer.finding.span, ls.client.encoding)
    found = [
        each
        for each in echoed
        if each.code == offer.finding.code and each.range.start.line == place.start.line
    ]
    return found or None


def _wanted(only: Sequence[types.CodeActionKind | str] | None) -> set[Purpose]:
    """What the client asks for; a kind stands for everything under it."""
    if only is None:
        return set(KINDS)
    asked = [str(getattr(kind, "value", kind)) for kind in only]
    return {
        purpose
        for purpose, kind in KINDS.items()
        if any(each == "" or kind == each or kind.startswith(f"{each}.") for each in asked)
    }


def _meets(span: Span, asked: Span) -> bool:
    return (span.line, span.column) <= (asked.end_line, asked.end_column) and (
        asked.line,
        asked.column,
    ) <= (span.end_line, span.end_column)
