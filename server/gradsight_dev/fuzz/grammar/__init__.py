"""The grammar: writes a random torch program for every seed."""

from gradsight_dev.fuzz.grammar.kinds import BY_NAME, KINDS, Kind, generate, seeds

__all__ = ["BY_NAME", "KINDS", "Kind", "generate", "seeds"]
