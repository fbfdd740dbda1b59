"""The table of operator facts: loaded without torch, indexed by name, decoded line by line when asked."""

from __future__ import annotations

import os
from functools import cache, lru_cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gradsight.ops.fact import OpFact

FORMAT = 1
SHIPPED = os.path.join(os.path.dirname(__file__), "facts.txt")
_LOOKED_IN = (
    "torch.",
    "Tensor.",
    "nn.functional.",
    "nn.",
    "linalg.",
    "special.",
    "fft.",
    "optim.",
    "nn.init.",
    "nn.utils.",
    "sparse.",
    "utils.checkpoint.",
    "autograd.",
)
_ROOMS = ("Tensor", "nn", "linalg", "special", "fft", "optim", "autograd", "utils", "sparse")


class UnreadableTable(Exception):
    """The file is not a table of this format."""


class Table:
    """Facts by name.  Lines are kept as text; a fact is decoded when it is first asked for."""

    def __init__(self, text: str, source: str = "") -> None:
        header, _, rest = text.partition("\n")
        self.source = source
        self._header = header
        _check_header(header)
        self._lines: dict[str, tuple[str, str]] = {}
        self._facts: dict[str, OpFact] = {}
        self._missing: dict[str, str] = {}
        for line in rest.splitlines():
            head, _, body = line.partition("\t")
            if head.startswith("-"):
                self._missing[head[1:]] = body
                continue
            for spelled in head.split(" "):
                name, _, spelling = spelled.partition(":")
                self._lines[name] = (body, spelling)

    @property
    def about(self) -> dict[str, Any]:
        """The header: torch version, namespaces with their sizes."""
        import json

        about: dict[str, Any] = json.loads(self._header)
        return about

    @property
    def torch_version(self) -> str:
        """The torch the facts were taken from."""
        return str(self.about.get("torch", ""))

    def find(self, name: str) -> OpFact | None:
        """The fact of a callable, with or without the leading `torch.` of sub-namespaces."""
        name = canonical(name)
        known = self._facts.get(name)
        if known is None and name in self._lines:
            # Decoding needs modules that take longer to import than the whole table to load.
            from gradsight.ops.notation import decode_fact

            body, spelling = self._lines[name]
            try:
                known = self._facts[name] = decode_fact(name, body, spelling)
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                import warnings

                del self._lines[name]
                warnings.warn(
                    f"the fact about {name} cannot be read from {self.source}: {error}", stacklevel=2
                )
        return known

    def line(self, name: str) -> str:
        """The line of one name, as it stands in the file but for the names that share it."""
        body, spelling = self._lines[name]
        return f"{name}:{spelling}\t{body}" if spelling else f"{name}\t{body}"

    def names(self) -> list[str]:
        """All names with a fact."""
        return sorted(self._lines)

    def missing(self) -> dict[str, str]:
        """Public names without a fact, each with the reason."""
        return dict(self._missing)

    def reason_missing(self, name: str) -> str:
        """Why a public name has no fact; empty for a name that torch does not have."""
        return next((self._missing[each] for each in _spellings(name) if each in self._missing), "")

    def lookup(self, name: str) -> OpFact | None:
        """As `find`, but a bare name (`exp`, `Dropout`) is looked for in the usual namespaces."""
        return next((fact for each in _spellings(name) if (fact := self.find(each)) is not None), None)

    def suggest(self, name: str, count: int = 5) -> list[str]:
        """Names that look most like an unknown one."""
        from difflib import SequenceMatcher

        wanted = canonical(name).lower()
        short = wanted.rsplit(".", 1)[-1]
        scored = []
        for known in self._lines:
            candidate = known.lower()
            tail = candidate.rsplit(".", 1)[-1]
            score = SequenceMatcher(None, short, tail).ratio()
            if "." in wanted and candidate.rsplit(".", 1)[0] == wanted.rsplit(".", 1)[0]:
                score += 0.1
            scored.append((-score, len(known), known))
        scored.sort()
        return [known for score, _, known in scored[:count] if score <= -0.5]


@cache
def shipped() -> Table:
    """The facts of the torch that GradSight was made with."""
    return read_table(SHIPPED)


def table_of(file: str) -> Table:
    """The facts in a file that the user had measured; the shipped ones for an empty name, and where the file cannot be used.

    A table is read once for as long as its file stays the same, so that equal facts are one object.
    """
    if not file:
        return shipped()
    try:
        status = os.stat(file)
    except OSError:
        return shipped()
    return _measured(file, status.st_size, status.st_mtime_ns) or shipped()


@lru_cache(maxsize=8)
def _measured(file: str, size: int, changed_at: int) -> Table | None:
    """None for a file that cannot be used, which is told once; it is left in place."""
    try:
        return read_table(file)
    except UnreadableTable as error:
        import warnings

        warnings.warn(
            f"the refreshed operator facts cannot be used, the shipped ones are: {error}", stacklevel=3
        )
        return None


def read_table(path: str) -> Table:
    """A table from its file; raises UnreadableTable with a reason."""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableTable(f"{path}: {error}") from error
    return Table(text, path)


def canonical(name: str) -> str:
    """`torch.nn.functional.relu` -> `nn.functional.relu`; top-level functions keep their `torch.`."""
    if name.startswith("torch.") and name.split(".", 2)[1] in _ROOMS:
        return name[6:]
    return name


def _spellings(name: str) -> list[str]:
    if name.startswith("F."):
        name = "nn.functional." + name[2:]
    return [canonical(name), *[room + name for room in _LOOKED_IN]]


def _check_header(line: str) -> None:
    if line.startswith(f'{{"format":{FORMAT},') and line.endswith("}"):
        return
    import json

    try:
        about = json.loads(line)
    except ValueError as error:
        raise UnreadableTable("the first line is not a table header") from error
    found = about.get("format") if isinstance(about, dict) else None
    if found == FORMAT:
        return
    raise UnreadableTable(f"table format {found}, this version reads format {FORMAT}")
