"""A snapshot on disk: gzipped lines of JSON, first what it is of, then one record per program, last what it cost."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from gradsight_dev.compare_reports.recording import Record


@dataclass(frozen=True, slots=True)
class Totals:
    """The size and the price of a snapshot."""

    programs: int
    findings: int
    failed: int
    seconds: float


def write(path: Path, corpus: str, records: Iterable[Record]) -> Totals:
    """Write records as they come; a run that is cut short leaves those that were done."""
    programs = findings = failed = 0
    seconds = 0.0
    # Without a time stamp two snapshots of the same reports differ in nothing but their seconds.
    with open(path, "wb") as raw, gzip.GzipFile("", "wb", 6, raw, mtime=0) as packed:

        def line(data: object) -> None:
            packed.write(json.dumps(data, sort_keys=True).encode() + b"\n")

        line({"corpus": corpus})
        for record in records:
            line(record)
            programs += 1
            findings += len(record["findings"])
            failed += bool(record["failed"])
            seconds += record["seconds"]
        line({"seconds": round(seconds, 1)})
    return Totals(programs, findings, failed, seconds)


def read(path: Path) -> dict[str, Record]:
    """The records of a snapshot by the names of their programs."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        records = [json.loads(line) for line in lines]
    return {record["name"]: record for record in records if "name" in record}
