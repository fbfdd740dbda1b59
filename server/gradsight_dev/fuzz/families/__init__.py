"""Families of hazards as programs: each is written with a twin without the hazard, and torch judges both."""

from gradsight_dev.fuzz.families import cuts, functions, memory, protocol, trained, transforms
from gradsight_dev.fuzz.families.kind import Kind

KINDS: tuple[Kind, ...] = (
    *memory.KINDS,
    *trained.KINDS,
    *protocol.KINDS,
    *cuts.KINDS,
    *functions.KINDS,
    *transforms.KINDS,
)
