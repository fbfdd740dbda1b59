"""One file as a command finds it: its text, what is found in it, and how a changed text of it is analysed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from gradsight.analysis import Analyser
from gradsight.cli.documents import Documents
from gradsight.cli.shell import complain
from gradsight.model.finding import Finding
from gradsight.model.report import Report
from gradsight.model.source import Source
from gradsight.ops.cache import measured_facts
from gradsight.session.files import Files


@dataclass(frozen=True, slots=True)
class Opened:
    """A file with what is found in it, and how a changed text of it is analysed."""

    source: Source
    findings: tuple[Finding, ...]
    check: Callable[[Source], Report]
    documents: Documents


def open_file(path: str) -> Opened | None:
    """A file with what is found in it, by the settings of its project; None if it cannot be read."""
    files = Files()
    configuration = files.configuration_for(path)
    for text in configuration.complaints:
        complain(text)
    settings = replace(configuration.settings, facts=measured_facts())
    documents = Documents(settings={path: settings})
    source = documents.source(path)
    if source is None:
        return None
    analyser, finder = Analyser(), files.finder_for(path)

    def check(changed: Source) -> Report:
        return analyser.analyze(changed, settings, finder)

    findings = tuple(
        each
        for each in check(source).findings
        if each.path == path and (settings.hints or each.severity != "hint")
    )
    return Opened(source, findings, check, documents)
