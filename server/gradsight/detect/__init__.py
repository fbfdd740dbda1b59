"""Detectors: each draws one kind of conclusion from the facts of a path.

A detector is a plain class with state of its own.  For a fact `Wrote` it has a method `on_wrote`, and `finish` where it
looks back at the whole path.  It knows the facts, what a `Path` may be asked for, and the detectors it was given.
One that fails is dropped from its path with a gap in the report, and the others go on.
"""

from gradsight.detect.listening import Detectors
from gradsight.detect.missing_claims import PathsTogether
from gradsight.detect.path import Path


class AllDetectors:
    """The audience of an analysis: every detector listens to every path."""

    watches = False

    def listen(self, path: Path) -> Detectors:
        return Detectors(path)

    def gather(self) -> PathsTogether:
        return PathsTogether()


__all__ = ["AllDetectors", "Detectors"]
