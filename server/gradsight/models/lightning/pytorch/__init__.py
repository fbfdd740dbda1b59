"""PyTorch Lightning 2: automatic and manual optimization, hooks, callbacks, data modules."""

from lightning.fabric import seed_everything
from lightning.pytorch.callbacks import Callback
from lightning.pytorch.core import LightningDataModule, LightningModule
from lightning.pytorch.trainer import Trainer

__all__ = ["Callback", "LightningDataModule", "LightningModule", "Trainer", "seed_everything"]
