"""PyTorch Lightning under its older name."""

from lightning.pytorch import Callback, LightningDataModule, LightningModule, Trainer, seed_everything

__all__ = ["Callback", "LightningDataModule", "LightningModule", "Trainer", "seed_everything"]
