"""The licences of the libraries that the extension carries: `python -m gradsight_dev.licences` writes `docs/licences.md`."""

from __future__ import annotations

import json
import sys
from importlib import metadata
from pathlib import Path

from gradsight_dev.package_vsix import COMPILED, PURE

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "licences.md"
HEAD = """# Licences of what the extension carries

GradSight itself is under the MIT licence. The extension brings these libraries along, unchanged; the files of each name its
authors. The list is written by `make licences`.

| library | licence | where |
| --- | --- | --- |
"""


def page() -> str:
    """The list, in the order of names."""
    rows = [(name, licence_of(name), "server") for name in (*PURE, COMPILED)]
    rows += [(name, licence, "client") for name, licence in client_libraries()]
    return HEAD + "".join(f"| {name} | {licence} | {where} |\n" for name, licence, where in sorted(rows))


def licence_of(name: str) -> str:
    """What a distribution says of its licence: as an expression, as a classifier, or in a word."""
    fields = metadata.metadata(name)
    expression = "".join(fields.get_all("License-Expression") or ())
    classified = [
        each.rpartition(" :: ")[2]
        for each in fields.get_all("Classifier") or ()
        if each.startswith("License ::")
    ]
    said = (
        expression or " and ".join(classified) or "".join(fields.get_all("License") or ()).partition("\n")[0]
    )
    return str(said).removesuffix(" License") or "not said"


def client_libraries() -> list[tuple[str, str]]:
    """What is bundled into the client: its dependencies, and theirs."""
    locked = json.loads((ROOT / "package-lock.json").read_text("utf-8"))["packages"]
    wanted = list(locked[""].get("dependencies", {}))
    found: dict[str, str] = {}
    while wanted:
        name = wanted.pop()
        entry = locked.get(f"node_modules/{name}")
        if entry is not None and name not in found:
            found[name] = entry.get("license", "not said")
            wanted += entry.get("dependencies", {})
    return sorted(found.items())


def main() -> int:
    PAGE.write_text(page(), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
