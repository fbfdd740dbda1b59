"""Classes of the program that are made and behave as Python alone decides."""

from __future__ import annotations

from gradsight.model.values import ClassValue

PLAIN = ("plain", "data", "builtins.object")


def is_plain_class(cls: ClassValue) -> bool:
    """Whether it and all of its ancestors are classes of the program that stand for nothing else."""
    return all(getattr(one, "kind", getattr(one, "path", "")) in PLAIN for one in cls.lineage())
