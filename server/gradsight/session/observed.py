"""What a probe saw of the tensors that a file binds, for hovers and hints; it counts until the function changes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from gradsight.session.units import CodeUnit, lines_now, units_of

Fact = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ProbeObservation:
    """The facts of one piece of code, by line (as it was then) and name."""

    unit: CodeUnit
    torch: str
    facts: Mapping[tuple[int, str], Fact]


class ObservedBook:
    """What the probes of a session saw, by path."""

    def __init__(self) -> None:
        self._kept: dict[str, dict[str, ProbeObservation]] = {}

    def record(self, path: str, text: str, facts: Iterable[Fact], torch: str) -> None:
        """Keep what a probe saw of a file; code it did not come to keeps what was seen before."""
        last = text.count("\n") + 1
        own = {
            (int(fact["line"]), str(fact["name"])): fact
            for fact in facts
            if fact["filename"] == path and fact["line"] <= last
        }
        kept = self._kept.setdefault(path, {})
        for unit in units_of(text, sorted({line for line, _ in own})):
            inside = {key: fact for key, fact in own.items() if key[0] in unit.lines}
            if inside:
                kept[unit.text] = ProbeObservation(unit, torch.split("+")[0], inside)

    def forget(self, path: str) -> None:
        """A file was closed."""
        self._kept.pop(path, None)

    def at(self, path: str, text: str, line: int, name: str) -> tuple[Fact, str] | None:
        """What a name was at a line of the present text: its last binding up to there; and the torch that ran it."""
        for seen in self._kept.get(path, {}).values():
            now = lines_now(seen.unit, text)
            if now is None or line not in now:
                continue
            then = dict(zip(now, seen.unit.lines))[line]
            before = [bound for bound, word in seen.facts if word == name and bound <= then]
            if before:
                return seen.facts[max(before), name], seen.torch
        return None

    def card(self, path: str, text: str, line: int, name: str) -> str:
        """What was seen of a name, in Markdown; empty if nothing was."""
        found = self.at(path, text, line, name)
        if found is None:
            return ""
        fact, torch = found
        first, last = described(fact["first"]), described(fact["last"])
        visits = "" if fact["visits"] == 1 else f", {fact['visits']} visits"
        norm = f", grad norm {fact['grad_norm']:.4g}" if fact["grad_norm"] is not None else ""
        lines = [f"*Last run (torch {torch}{visits}):* {last}{norm}"]
        if first != last:
            lines.append(f"*At the first visit:* {first}")
        return "\n\n".join(lines)

    def label(self, path: str, text: str, line: int, name: str) -> str:
        """The few words of an inlay hint: the shape, and the norm of the gradient."""
        found = self.at(path, text, line, name)
        if found is None:
            return ""
        fact = found[0]
        norm = "" if fact["grad_norm"] is None else f" |grad|={fact['grad_norm']:.3g}"
        return f"{fact['last']['shape']}{norm}"

    def grad_fn(self, path: str, text: str, line: int, name: str) -> str:
        """The operator that a run recorded for a name, as hints name it (`Exp`); empty if none was seen."""
        found = self.at(path, text, line, name)
        return (
            re.sub(r"Backward\d*$", "", str(found[0]["last"]["grad_fn"] or "")) if found is not None else ""
        )


def described(seen: Mapping[str, Any]) -> str:
    """One visit in words."""
    words = [f"`{seen['dtype']}{seen['shape']}`"]
    if seen["device"] != "cpu":
        words.append(f"on {seen['device']}")
    words.append("requires grad" if seen["requires_grad"] else "does not require grad")
    words.append(f"grad_fn {seen['grad_fn']}" if seen["grad_fn"] else "leaf" if seen["is_leaf"] else "")
    if seen["version"] is not None:
        words.append(f"version {seen['version']}")
    return ", ".join(word for word in words if word)
