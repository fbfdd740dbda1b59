"""`--format junit`: a test report, for the servers that show one: each file is a suite, each alarm a failed case."""

from __future__ import annotations

import re
from itertools import groupby
from typing import TextIO
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from gradsight.cli.documents import Documents
from gradsight.cli.merge_results import MergedResults
from gradsight.model.finding import Finding
from gradsight.session.finding_text import place
from gradsight.session.shown_paths import shown_path

ALARMS = ("error", "warning")
# XML 1.0 has no way to write these, not even escaped.
_UNWRITABLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write(gathered: MergedResults, documents: Documents, out: TextIO, color: str) -> None:
    """The whole report; a clean run is one case that passed."""
    root = Element("testsuites", name="gradsight")
    for path, group in groupby(gathered.findings, key=lambda finding: finding.path):
        findings = list(group)
        suite = _suite(
            root, shown_path(path), len(findings), sum(each.severity in ALARMS for each in findings)
        )
        for finding in findings:
            _case(suite, finding, documents)
    if not gathered.findings:
        suite = _suite(root, "gradsight", 1, 0)
        SubElement(suite, "testcase", name=f"{gathered.checked} files with torch", classname="gradsight")
    indent(root)
    out.write('<?xml version="1.0" encoding="utf-8"?>\n' + tostring(root, encoding="unicode") + "\n")


def _suite(root: Element, name: str, tests: int, failures: int) -> Element:
    numbers = {"tests": str(tests), "failures": str(failures), "errors": "0", "skipped": "0"}
    return SubElement(root, "testsuite", {"name": _plain(name), **numbers})


def _case(suite: Element, finding: Finding, documents: Documents) -> None:
    where = place(finding.path, finding.span, documents)
    position = documents.position(finding.path, finding.span)
    name = f"{finding.code} {finding.name} at line {position.span.line}"
    case = SubElement(
        suite, "testcase", name=name, classname=_plain(shown_path(finding.path)), line=str(position.span.line)
    )
    steps = [f"{place(step.path, step.span, documents)}: {step.message}" for step in finding.related]
    text = _plain("\n".join([f"{where}: {finding.message}", *steps]))
    if finding.severity in ALARMS:
        failure = SubElement(case, "failure", message=_plain(finding.message), type=finding.severity)
        failure.text = text
    else:
        SubElement(case, "system-out").text = text


def _plain(text: str) -> str:
    return _UNWRITABLE.sub("?", text)
