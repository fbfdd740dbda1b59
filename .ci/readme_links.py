"""The README as a package index shows it: links and pictures by their full address, as there is no folder around it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r"(?P<picture>!?)(?P<label>\[[^\]]*\])\((?!https?:|#)(?P<path>[^)\s]+)\)")


class ReadmeHook(MetadataHookInterface):
    """Found by hatchling because it is the only one here."""

    def update(self, metadata: dict[str, Any]) -> None:
        text = (Path(self.root) / "README.md").read_text("utf-8")
        source = metadata["urls"]["Source"]
        metadata["readme"] = {"content-type": "text/markdown", "text": with_whole_links(text, source)}


def with_whole_links(text: str, source: str) -> str:
    """Each path of the repository as an address of its host; a picture as the file itself, not as a page about it."""

    def whole(link: re.Match[str]) -> str:
        kind = "raw" if link["picture"] else "blob"
        return f"{link['picture']}{link['label']}({source}/{kind}/main/{link['path']})"

    return LINK.sub(whole, text)
