"""What to say about the place under the cursor: a finding, a rule named in a comment, an operator, a tensor."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gradsight.model.card import CallCard, TensorCard
from gradsight.model.card import Card as Known
from gradsight.model.finding import Finding
from gradsight.model.relevance import is_about_torch
from gradsight.model.rule import Rule
from gradsight.model.showing import as_markdown, sentence_markdown, unescaped
from gradsight.model.source import Span
from gradsight.model.suppressions import OWN, SHARED
from gradsight.ops.table import Table, table_of
from gradsight.session import naming
from gradsight.session.documents import Document
from gradsight.session.evidence import shown_by_probe
from gradsight.session.fact_card import call_card, fact_card, of_call
from gradsight.session.gaps import gap_card
from gradsight.session.myths import Myth, by_name
from gradsight.session.observed import ObservedBook
from gradsight.session.pages import page_url
from gradsight.session.tensor_text import tensor_card

_CODE = re.compile(r"[A-Za-z]+[0-9]+")
Link = Callable[[str, int], str]
"""The address of a line of a file, for the editor; empty where there is none."""
WAYS: dict[str, str] = {
    "saved": "the save",
    "written": "the write",
    "needed": "the backward",
    "cut": "the cut",
    "made": "where it comes from",
    "read": "the read",
}
LONGEST_REASON = 200
UNDER_AUTOCAST = "Under autocast: what is saved may be a copy in another dtype instead of your tensor."
_HEADING = re.compile(r"^#+ .*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Card:
    """Markdown about a span."""

    markdown: str
    span: Span


def card_at(
    document: Document,
    findings: Sequence[Finding],
    line: int,
    column: int,
    cards: Sequence[Known] = (),
    observed: ObservedBook | None = None,
    link: Link | None = None,
) -> Card | None:
    """The card for a place, or None where there is nothing to say.

    With a `link` the editor shows the findings of a place by itself: then only what is new is said, the tensor first,
    then one line why, then the ways to the lines.  Without one everything is said, the finding first.
    """
    text = document.line_text(line)
    named = _named_rule(text, line, column)
    if named is not None:
        return named
    parts: list[str] = []
    span: Span | None = None
    for finding in findings:
        if finding.span.contains(line, column) and finding.path == document.path:
            parts.append(
                short_finding_card(finding, document, link) if link else finding_card(finding, document)
            )
            span = span or finding.span
    names = [card for card in cards if isinstance(card, TensorCard)]
    calls = [card for card in cards if isinstance(card, CallCard)]
    table = table_of(document.settings.facts if document.settings is not None else "")
    word = naming.word_at(text, column)
    if word is not None and not _is_quoted(document, line):
        place = Span(line, word.start, line, word.end)
        seen = observed.card(document.path, document.source.text, line, word.name) if observed else ""
        own = next((card for card in names if card.span.contains(line, column)), None)
        said = [tensor_card(own, document.line_name, bool(seen))] if own is not None else []
        said += [seen] if seen else []
        said += word_cards(table, word, document.source.text, [call for call in calls if call.span == place])
        if said:
            parts = [*said, *parts] if link else [*parts, *said]
            span = place if span is None or len(parts) == len(said) else span
    elif word is None:
        symbol = naming.symbol_at(text, column)
        around = [
            call
            for call in calls
            if symbol is not None and call.span.line == line and symbol.start >= call.span.column
            and symbol.end <= call.span.end_column
        ]  # fmt: skip
        if symbol is not None and (around or _is_beside_tensor(symbol, text, line, names)):
            parts += _facts_of(table, f"Tensor.{symbol.method}", around)
            span = span or Span(line, symbol.start, line, symbol.end)
    missing = _missing(document, line)
    if missing and word is not None and not _is_quoted(document, line):
        parts.append(missing)
        span = span or Span(line, word.start, line, word.end)
    if not parts or span is None:
        return None
    return Card("\n\n---\n\n".join(parts), span)


def word_cards(table: Table, word: naming.Word, text: str, calls: Sequence[CallCard] = ()) -> list[str]:
    """What is known about a word of torch's: the truth and the myth, and the operator's facts, those of this call first."""
    if "torch" not in text:
        return []
    name = naming.torch_name(word, naming.imported_names(text))
    myth = _myth_of(word, name)
    said = [myth_card(word.name, myth)] if myth is not None else []
    # Of an attribute the sentences above say it all.
    is_said = myth is not None and not word.is_called and not calls
    if calls or (name is not None and not is_said and (word.is_called or word.receiver)):
        said += _facts_of(table, name or "", calls)
    return said


def _facts_of(table: Table, name: str, calls: Sequence[CallCard]) -> list[str]:
    """The card of an operator: the cases that the calls here met, or all of them where that is not known."""
    cast = [f"*{UNDER_AUTOCAST}*"] if any(call.is_cast for call in calls) else []
    met = [call for call in calls if call.cases and table.find(call.fact) is not None]
    if len(met) == 1 and len(calls) == 1:
        fact = table.find(met[0].fact)
        assert fact is not None
        shown = (table.find(name) if name and not is_reflected(fact.name) else None) or fact
        cases = [
            of_call(fact.cases[number], met[0].numbers, met[0].copied, met[0].is_recorded)
            for number in met[0].cases
            if number < len(fact.cases)
        ]
        return [*cast, call_card(shown, fact, cases, table.torch_version, met[0].is_recorded)]
    fact = table.find(name) if name else None
    return [*cast, fact_card(fact, table.torch_version)] if fact is not None else []


def is_reflected(name: str) -> bool:
    """Whether a fact is about `2 ** x`: its receiver is what stands on the right."""
    return name.startswith("Tensor.__r") and name not in ("Tensor.__rshift__", "Tensor.__reversed__")


def _is_beside_tensor(symbol: naming.Symbol, text: str, line: int, cards: Sequence[TensorCard]) -> bool:
    """Whether a name next to an operator sign is known to be a tensor: signs have other meanings too."""
    for card in cards:
        start, end = card.span.column, card.span.end_column
        if card.span.end_line == line and end <= symbol.start:
            if not text[end : symbol.start].strip(" )]"):
                return True
        elif card.span.line == line and symbol.end <= start and not text[symbol.end : start].strip(" ("):
            return True
    return False


def short_finding_card(finding: Finding, document: Document, link: Link) -> str:
    """Why, in one line, and the ways to the lines and to the page of the rule."""
    from gradsight.rules import find

    rule = find(finding.code)
    lines = [f"**Why:** {reason(rule)}"] if rule is not None else []
    ways = []
    for step in finding.related:
        word = WAYS.get(step.role)
        if word is not None:
            name = (
                document.line_name(step.span.line)
                if step.path == document.path
                else f"{_file_name(step.path)}:{step.span.line}"
            )
            address = link(step.path, step.span.line)
            ways.append(
                f"[{word}]({address}) ({as_markdown(name)})" if address else f"{word} ({as_markdown(name)})"
            )
    if rule is not None:
        ways.append(f"[{rule.code}: {rule.name}]({command_link('gradsight.explainRule', rule.code)})")
    lines += shown_by_probe(finding)
    return "\n".join([*lines, "", " · ".join(dict.fromkeys(ways))])


def command_link(name: str, *arguments: str | int) -> str:
    """Has our own editor do something: open the page of a rule without the web, show a line of a cell."""
    from urllib.parse import quote

    return f"command:{name}?{quote(json.dumps(arguments))}"


def reason(rule: Rule) -> str:
    """The reason that a page gives: its first sentence, and the second where both are short."""
    summary, _, prose = short_page(rule).partition("\n\n")
    first, *rest = re.split(r"(?<=[.])\s", " ".join((prose or summary).split()))
    both = f"{first} {rest[0]}" if rest else first
    return both if len(both) <= LONGEST_REASON else first


def finding_card(finding: Finding, document: Document | None = None) -> str:
    """A finding with its trail, and its rule's page in short."""
    from gradsight.rules import find

    lines = [
        f"**{finding.code} {finding.name}** · {finding.severity}",
        "",
        sentence_markdown(finding.message),
    ]
    if finding.related:
        lines += ["", *(_step(finding, index, document) for index in range(len(finding.related)))]
    lines += shown_by_probe(finding)
    rule = find(finding.code)
    if rule is not None:
        lines += ["", short_page(rule), "", f"[{rule.name}]({page_url(rule.name)})"]
    return "\n".join(lines)


def rule_card(rule: Rule) -> str:
    """A rule's page in short."""
    return f"**{rule.code} {rule.name}**\n\n{short_page(rule)}\n\n[{rule.name}]({page_url(rule.name)})"


def short_page(rule: Rule) -> str:
    """The first line of a page and the words under its first heading, without the examples."""
    page = rule.page.strip()
    summary, _, rest = page.partition("\n")
    headings = list(_HEADING.finditer(rest))
    if headings:
        end = headings[1].start() if len(headings) > 1 else len(rest)
        rest = rest[headings[0].end() : end]
    prose = re.split(r"```|\n\s{4,}\S|::\s*\n", rest, maxsplit=1)[0].strip()
    return f"{summary}\n\n{prose}" if prose else summary


def myth_card(name: str, myth: Myth) -> str:
    """The truth about a word, and what it is often taken for."""
    return f"**`{name}`**\n\n{myth.truth}" + (f"\n\n{myth.myth}" if myth.myth else "")


def plain_text(markdown: str) -> str:
    """The same without marks, for editors that show text as it is."""
    text = re.sub(r"(?<!\\)\[((?:\\.|[^\]\\])+)\]\(([^)]+)\)", r"\1: \2", markdown)
    text = re.sub(r"^---$", "", text, flags=re.MULTILINE)
    text = re.sub(r"(?<![\w\\])(\*\*|\*)(?=\S)(.+?)(?<=[^\s\\])\1(?!\w)", r"\2", text)
    text = re.sub(r"(?<!\\)`", "", text)
    return re.sub(r"\n{3,}", "\n\n", unescaped(text)).strip()


def _named_rule(text: str, line: int, column: int) -> Card | None:
    """The rule whose code stands under the cursor in a comment that silences it."""
    for pattern in (OWN, SHARED):
        comment = pattern.search(text)
        if comment is None or not comment.start() <= column <= comment.end():
            continue
        for code in _CODE.finditer(text, comment.start(), comment.end()):
            if code.start() <= column <= code.end():
                from gradsight.rules import find

                rule = find(code.group())
                if rule is not None:
                    return Card(rule_card(rule), Span(line, code.start(), line, code.end()))
    return None


def _myth_of(word: naming.Word, name: str | None) -> Myth | None:
    """The entry for a word where it means torch's: a keyword, a method or attribute, or a torch name."""
    myth = by_name().get(word.name)
    if myth is None:
        return None
    if word.is_keyword or (name is not None and word.receiver):
        return myth
    return myth if name is not None else None


def _step(finding: Finding, index: int, document: Document | None) -> str:
    step = finding.related[index]
    here = f"line {step.span.line}" if document is None else document.line_name(step.span.line)
    place = here if step.path == finding.path else f"{as_markdown(_file_name(step.path))}:{step.span.line}"
    return f"{index + 1}. {place}: {sentence_markdown(step.message)}"


def _file_name(path: str) -> str:
    return re.split(r"[/\\]", path)[-1]


def _missing(document: Document, line: int) -> str:
    """What was not understood on a line of a text that has to do with torch."""
    report = document.report
    if report is None or not document.is_fresh or not is_about_torch(document.source.text):
        return ""
    return gap_card(report.gaps, line)


def _is_quoted(document: Document, line: int) -> bool:
    return naming.is_inside_string(document.source.text.split("\n"), line - 1)
