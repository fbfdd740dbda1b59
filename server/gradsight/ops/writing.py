"""Writes a table file from measured facts: names that share a fact are folded into one line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from gradsight.ops.notation import encode_fact
from gradsight.ops.table import FORMAT


def table_text(
    facts: Iterable[Mapping[str, Any]],
    missing: Mapping[str, str],
    about: Mapping[str, Any],
    carried: Iterable[str] = (),
) -> str:
    """The whole file, ready to be written.  Lines are sorted by their first name, so that changes diff readably.

    `carried` are lines of another table, taken as they are.
    """
    folded: dict[str, list[str]] = {}
    for fact in sorted(
        facts, key=lambda each: (not str(each["name"]).startswith("Tensor."), str(each["name"]))
    ):
        body, spelling = _folded_body(fact)
        name = str(fact["name"])
        folded.setdefault(body, []).append(f"{name}:{spelling}" if spelling else name)
    lines = [" ".join(sorted(heads)) + "\t" + body for body, heads in folded.items()]
    lines = sorted([*lines, *carried])
    header = json.dumps({"format": FORMAT, **about}, separators=(",", ":"))
    gaps = [f"-{name}\t{reason}" for name, reason in sorted(missing.items())]
    return "\n".join([header, *lines, *gaps]) + "\n"


def _folded_body(fact: Mapping[str, Any]) -> tuple[str, str]:
    """The fact with its first parameter called `self` and without `out`, and how this name spells the difference."""
    data = dict(fact)
    parameters = list(data.get("parameters", ()))
    keyword_only = list(data.get("keyword_only", ()))
    out = ""
    if "out" in keyword_only:
        parameters.remove("out")
        keyword_only.remove("out")
        data["defaults"] = {key: value for key, value in data.get("defaults", {}).items() if key != "out"}
        out = "+out"
    first = ""
    if _may_fold(str(fact["name"])) and parameters and parameters[0].lstrip("*") == parameters[0] != "self":
        first = parameters[0]
        data["cases"] = [_renamed(case, first, "self") for case in data.get("cases", ())]
        data["defaults"] = {
            "self" if key == first else key: value for key, value in data.get("defaults", {}).items()
        }
        parameters[0] = "self"
    data["parameters"], data["keyword_only"] = parameters, keyword_only
    return encode_fact(data), first + out


def _may_fold(name: str) -> bool:
    """Modules speak of themselves as `self`, so their arguments keep their names."""
    return not name.startswith(("nn.", "optim.")) or name.startswith("nn.functional.")


def _renamed(case: Mapping[str, Any], old: str, new: str) -> dict[str, Any]:
    def spell(name: str) -> str:
        owner, colon, rest = name.partition(":")
        return new + colon + rest if owner == old else name

    renamed = dict(case)
    if "when" in case:
        renamed["when"] = [[spell(argument), kind, value] for argument, kind, value in case["when"]]
    if "saves" in case:
        renamed["saves"] = [
            [spell(what), [spell(each) for each in needs], *rest] for what, needs, *rest in case["saves"]
        ]
    for key in ("writes", "may_write", "quiet", "refuses", "holds_needs"):
        if key in case:
            renamed[key] = [spell(each) for each in case[key]]
    renamed["outputs"] = [_renamed_output(each, old, new) for each in case.get("outputs", ())]
    return renamed


def _renamed_output(output: Mapping[str, Any], old: str, new: str) -> dict[str, Any]:
    renamed = dict(output)
    for key in ("needs", "zero_for", "undefined_for"):
        if key in output:
            renamed[key] = [new if each == old else each for each in output[key]]
    if output.get("alias") == old:
        renamed["alias"] = new
    if output.get("shape") == "like:" + old:
        renamed["shape"] = "like:" + new
    return renamed
