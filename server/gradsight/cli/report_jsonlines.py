"""`--format json-lines`: one finding per line, in the fields of `--format json`, for tools that read a stream."""

from __future__ import annotations

import json
from typing import TextIO

from gradsight.cli.documents import Documents
from gradsight.cli.fix_json import FixBook
from gradsight.cli.merge_results import MergedResults
from gradsight.cli.report_json import as_json


def write(gathered: MergedResults, documents: Documents, out: TextIO, color: str) -> None:
    """One line for each finding; nothing at all when there is nothing to say."""
    with FixBook(documents) as fixes:
        for finding in gathered.findings:
            out.write(json.dumps(as_json(finding, documents, fixes), separators=(",", ":")) + "\n")
