"""Lightning Fabric under its older name."""

from lightning.fabric import Fabric, seed_everything

__all__ = ["Fabric", "seed_everything"]
