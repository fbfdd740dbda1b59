"""The package that holds both Lightning Fabric and PyTorch Lightning."""

from lightning.fabric import Fabric, seed_everything
from lightning.pytorch import Callback, LightningDataModule, LightningModule, Trainer

__all__ = ["Callback", "Fabric", "LightningDataModule", "LightningModule", "Trainer", "seed_everything"]
