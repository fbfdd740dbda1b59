"""What to probe and within which limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Level = Literal["fast", "default", "deep"]


@dataclass(frozen=True, slots=True)
class ProbeRequest:
    """One probe.  Exactly one of `script`, `module` and `code` says what runs."""

    python: str
    script: str | None = None
    text: str | None = None
    module: str | None = None
    code: str | None = None
    code_name: str = "<string>"
    """What a piece of code is called, where no file has it."""
    arguments: tuple[str, ...] = ()
    directory: str | None = None
    level: Level = "default"
    fake: bool = False
    map_cuda: bool = False
    steps: int = 0
    timeout: float = 0.0
    memory: int = 0
    seed: int | None = None
    graph: bool = False
    threads: int = 1
    # For the runs of a deep probe: where gradients go to and come from, copies instead of saved tensors, a tensor to watch.
    gradients_to: str | None = None
    gradients_from: str | None = None
    clones: bool = False
    watch: int | None = None
    # Which lines touch which memory, for verdicts on predictions.
    touches: bool = False
    # Parts of torch to do without, as if this torch did not have them.
    without: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict, hash=False)
    launcher: tuple[str, ...] = ()
    """Words that come before the interpreter, `nice -n 10` for example."""

    def as_message(self, folder: str) -> dict[str, Any]:
        """The request as the agent reads it."""
        return {
            "script": self.script,
            "text": self.text,
            "module": self.module,
            "code": self.code,
            "code_name": self.code_name,
            "arguments": list(self.arguments),
            "directory": self.directory,
            "fast": self.level == "fast",
            "deep": self.level == "deep",
            "fake": self.fake,
            "map_cuda": self.map_cuda,
            "steps": self.steps,
            "timeout": self.timeout,
            "memory": self.memory,
            "seed": self.seed,
            "graph": self.graph,
            "threads": self.threads,
            "gradients_to": self.gradients_to,
            "gradients_from": self.gradients_from,
            "clones": self.clones,
            "watch": self.watch,
            "touches": self.touches,
            "without": list(self.without),
            "folder": folder,
        }
