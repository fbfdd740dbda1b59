"""The table of operator facts: loaded without torch, indexed by name, decoded line by line when asked."""

from __future__ import annotations

import os

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


_loaded: dict[str, Table] = {}
_environment = ""


def load(torch_version: str | None = None) -> Table:
    """The table for a torch version: refreshed from that torch if the user did so, else the shipped one.

    Without a version the torch of the environment in use is meant.  Read once; `forget_loaded` makes the next call read
    again.
    """
    key = torch_version or ""
    if key not in _loaded:
        _loaded[key] = _refreshed(torch_version) or read_table(SHIPPED)
    return _loaded[key]


def use_environment(python: str) -> None:
    """From now on `load()` means the torch of this interpreter; empty = the active environment."""
    global _environment
    if python != _environment:
        _environment = python
        forget_loaded()


def mark_in_use() -> str:
    """Tells one table from another: empty for the shipped one, else the refreshed file with its size and time."""
    source = load().source
    if source == SHIPPED:
        return ""
    try:
        status = os.stat(source)
    except OSError:
        return source
    return f"{source}:{status.st_size}:{status.st_mtime_ns}"


def forget_loaded() -> None:
    """Read tables anew, after one was refreshed."""
    _loaded.clear()


def _refreshed(torch_version: str | None) -> Table | None:
    from gradsight.ops.cache import cached_table, has_tables

    if torch_version is None and has_tables():
        from gradsight.ops.environment import default_python, installed_torch

        torch_version = installed_torch(_environment or default_python())
    return cached_table(torch_version) if torch_version else None


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
