"""Who names the line: the probe and torch's anomaly mode, side by side on every labelled program.

    python benchmarks/probe_blame.py [--also FOLDER]

A folder has `labels.json` and `programs/` (or the programs beside it).  For each program that raises: does the answer
contain the line to change, the line that saved, the line of the backward?  Anomaly mode is taken at its word: a line
counts when its traceback shows it anywhere.  For each safe program: does the probe keep silent?  Then every static
finding is judged by the run: a finding where the label has a hazard must not be refuted, and one elsewhere not confirmed.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gradsight.analysis import analyze
from gradsight.model.settings import Settings
from gradsight.model.source import Source
from gradsight.probe.document import document_of
from gradsight.probe.request import ProbeRequest
from gradsight.probe.standby import Standby
from gradsight.session.traces import traces_of
from gradsight.session.verdicts import judge, visited_lines

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
ASKED = {"hazard": "to change", "writing": "that wrote", "saved": "that saved", "backward": "of backward"}
ENOUGH = 0.95


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--also", type=Path, action="append", default=[], metavar="FOLDER")
    folders = [FIXTURES, FIXTURES / "truths", *parser.parse_args().also]
    standby = Standby()
    score: Counter[tuple[str, ...]] = Counter()
    remarks: list[str] = []
    for folder in folders:
        for label in json.loads((folder / "labels.json").read_text("utf-8")):
            path = (
                folder / "programs" / label["file"]
                if (folder / "programs").is_dir()
                else folder / label["file"]
            )
            outcome = standby.run(
                ProbeRequest(sys.executable, script=str(path), timeout=60, seed=0, touches=True)
            )
            document = document_of(outcome)
            remarks += rate(label, document, path, score)
            remarks += rate_verdicts(label, document, getattr(outcome, "report", None) or {}, path, score)
    standby.drop()
    return show(score, remarks)


def rate(
    label: Mapping[str, Any], document: Mapping[str, Any], path: Path, score: Counter[tuple[str, ...]]
) -> list[str]:
    """Count what the probe and anomaly mode say about one program; remarks on what the probe missed."""
    kind = label["verdict"]
    score["programs", kind] += 1
    if kind == "safe":
        is_false = bool(document["faults"]) or document["outcome"] != "clean"
        score["false", "probe"] += is_false
        return [f"false evidence: {path.name}: {document['faults'] or document['error']}"] * is_false
    seen = probe_lines(document)
    if kind == "silent-wrong":
        score["silent", "probe"] += bool(set(label["hazard_lines"]) & seen["hazard"])
        return []
    remarks = []
    wanted = {"hazard": label["hazard_lines"], **label["related_lines"]}
    if "saved" in wanted:
        wanted["writing"] = label["hazard_lines"]
    for who, lines in (("probe", seen), ("anomaly", anomaly_lines(path))):
        for asked in ASKED:
            if asked not in wanted:
                continue
            hit = bool(set(wanted[asked]) & lines[asked])
            score["asked", who, asked] += 1
            score["hit", who, asked] += hit
            if who == "probe" and not hit:
                remarks.append(
                    f"missed: {path.name}: {asked} {wanted[asked]}, answered {sorted(lines[asked])}"
                )
    return remarks


def rate_verdicts(
    label: Mapping[str, Any],
    document: Mapping[str, Any],
    report: Mapping[str, Any],
    path: Path,
    score: Counter[tuple[str, ...]],
) -> list[str]:
    """Count the verdicts on the static findings of one program; remarks on the wrong ones."""
    text = path.read_text("utf-8")
    findings = analyze(Source(str(path), text), Settings()).findings
    remarks = []
    for evidence in judge(findings, document, visited_lines(report), text, str(path), traces_of(report)):
        finding = evidence.finding
        if evidence.verdict == "seen":
            continue
        if finding.code == "GS190":
            score["hint", evidence.verdict] += 1
            continue
        score["verdict", evidence.verdict] += 1
        is_hazard = finding.span.line in label["hazard_lines"] or finding.code in label.get("rule", ())
        is_wrong = (evidence.verdict == "refuted" and is_hazard) or (
            evidence.verdict == "confirmed" and not is_hazard
        )
        if is_wrong:
            score["verdict", "wrong"] += 1
            remarks.append(
                f"wrong verdict: {path.name}:{finding.span.line}: {finding.code} {evidence.verdict}"
            )
    return remarks


def probe_lines(document: Mapping[str, Any]) -> dict[str, set[int]]:
    """The lines the probe answers with: where it speaks, where the tensor was saved (and from where), who needed it."""
    seen: dict[str, set[int]] = {asked: set() for asked in ASKED}
    for fault in document["faults"]:
        seen["hazard"].add(fault["location"]["row"])
        role = ""
        for step in fault["related"]:
            row = step["location"]["row"]
            role = step["role"] if step["role"] != "call" else role
            if role == "saved":
                seen["saved"].add(row)
            elif role == "needed":
                seen["backward"].add(row)
        if document["error"] and document["error"].get("location"):
            seen["backward"].add(document["error"]["location"]["row"])
    return {**seen, "writing": seen["hazard"]}


def anomaly_lines(path: Path) -> dict[str, set[int]]:
    """The lines of the program in the forward traceback of anomaly mode, and in the traceback of the error."""
    code = "import runpy, sys, torch\ntorch.autograd.set_detect_anomaly(True)\nrunpy.run_path(sys.argv[1], run_name='__main__')"
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False
    )
    forward, _, error = done.stderr.rpartition("Traceback (most recent call last)")
    pattern = re.compile(rf'File "{re.escape(str(path))}", line (\d+)')
    shown = {int(number) for number in pattern.findall(forward)}
    raised = {int(number) for number in pattern.findall(error)}
    return {"saved": shown, "hazard": shown | raised, "writing": shown | raised, "backward": raised}


def show(score: Counter[tuple[str, ...]], remarks: list[str]) -> int:
    """The table, and 0 if the promises hold."""
    print(f"{score['programs', 'raises']} programs that raise: the answer names the line")
    print(f"{'':10}" + "".join(f"{title:>16}" for title in ASKED.values()))
    for who in ("probe", "anomaly"):
        cells = [f"{score['hit', who, asked]} of {score['asked', who, asked]}" for asked in ASKED]
        print(f"{who:10}" + "".join(f"{cell:>16}" for cell in cells))
    print(
        f"{score['silent', 'probe']} of {score['programs', 'silent-wrong']} silent faults found on their line"
    )
    print(f"{score['false', 'probe']} of {score['programs', 'safe']} safe programs with false evidence")
    verdicts = {key[1]: count for key, count in sorted(score.items()) if key[0] == "verdict"}
    print("verdicts on static findings: " + ", ".join(f"{count} {word}" for word, count in verdicts.items()))
    hints = {key[1]: count for key, count in sorted(score.items()) if key[0] == "hint"}
    print("hints of harmless writes: " + ", ".join(f"{count} {word}" for word, count in hints.items()))
    for remark in remarks:
        print(remark)
    rates = [score["hit", "probe", asked] / max(1, score["asked", "probe", asked]) for asked in ASKED]
    kept = min(rates) >= ENOUGH and not score["false", "probe"] and not score["verdict", "wrong"]
    print("promises hold" if kept else "a promise is broken")
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
