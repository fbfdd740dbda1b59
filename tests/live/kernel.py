"""`%load_ext gradsight` in a live kernel, by Jupyter's own protocol: the block, the notes and the magic as a notebook gets them.

    python tests/live/kernel.py

Run by `make test-live`, in an environment that has ipykernel.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from jupyter_client.manager import start_new_kernel

SERVER = Path(__file__).resolve().parents[2] / "server"
CELLS = (
    "%load_ext gradsight\nimport torch",
    "w = torch.ones(3, requires_grad=True)\ny = w.exp()",
    "y *= 3",
    "y.sum().backward()",
    "%gradsight y",
    "try:\n    y.sum().backward()\nexcept RuntimeError:\n    pass",
    "%unload_ext gradsight\ny.sum().backward()",
)


def main() -> int:
    os.environ["PYTHONPATH"] = os.pathsep.join([str(SERVER), os.environ.get("PYTHONPATH", "")])
    manager, client = start_new_kernel(kernel_name="python3", startup_timeout=300)
    try:
        said = [answers(client, cell) for cell in CELLS]
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    problems = [*wrong_with(said)]
    print(*problems, sep="\n")
    print("a live kernel shows the block" if not problems else f"{len(problems)} problems")
    return 1 if problems else 0


def answers(client: Any, cell: str) -> list[tuple[str, dict[str, Any]]]:
    """The messages that a front end gets for one cell."""
    found: list[tuple[str, dict[str, Any]]] = []
    client.execute_interactive(
        cell,
        timeout=300,
        allow_stdin=False,
        output_hook=lambda message: found.append((message["msg_type"], message["content"])),
    )
    return found


def wrong_with(said: list[list[tuple[str, dict[str, Any]]]]) -> list[str]:
    """What a reader of the notebook would miss."""
    found = []
    blocks = [content["data"] for kind, content in said[3] if kind == "display_data"]
    if len(blocks) != 1:
        found.append(f"the failing cell shows {len(blocks)} blocks: {said[3]}")
    for block in blocks:
        for role, cell, line in (("saved", 2, 2), ("overwritten", 3, 1), ("needed", 4, 1)):
            place = f"cell {cell}, line {line}"
            if (
                f"{role} {place}" not in block["text/plain"]
                or f"<code>{place}</code>" not in block["text/html"]
            ):
                found.append(f"the block does not name {role} at {place}: {block['text/plain']}")
    traces = ["\n".join(content["traceback"]) for kind, content in said[3] if kind == "error"]
    if not any("modified by an inplace operation" in trace for trace in traces):
        found.append(f"the error is not torch's own: {traces}")
    state = "".join(content["text"] for kind, content in said[4] if kind == "stream")
    if "version 1" not in state or "overwritten by" not in state:
        found.append(f"the magic says: {state!r}")
    if any(kind in ("display_data", "error") for kind, _ in said[5]):
        found.append(f"an error that the cell catches is shown: {said[5]}")
    if any(kind == "display_data" for kind, _ in said[6]):
        found.append("it speaks after it was unloaded")
    return found


if __name__ == "__main__":
    sys.exit(main())
