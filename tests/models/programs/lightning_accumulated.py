"""Gradients of two batches for each step, a schedule that follows the steps, and a batch that is left out."""

import lightning as L
import torch.nn.functional as F
from parts import Net, RecordedSchedule, RecordedSGD, loader
from programs.lightning_automatic import QUIET
from recorder import logs


@logs("training_step", "on_before_zero_grad", "on_after_backward", "on_before_optimizer_step")
class Accumulated(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = Net()

    def training_step(self, batch, batch_idx):
        x, y = batch
        return F.mse_loss(self.net(x), y)

    def configure_optimizers(self):
        optimizer = RecordedSGD(self.parameters(), lr=0.1)
        return [optimizer], [{"scheduler": RecordedSchedule(optimizer), "interval": "epoch"}]


@logs("training_step", "on_before_zero_grad", "on_after_backward", "on_before_optimizer_step")
class Skipping(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = Net()

    def training_step(self, batch, batch_idx):
        x, y = batch
        return F.mse_loss(self.net(x), y) if batch_idx else None

    def configure_optimizers(self):
        return RecordedSGD(self.parameters(), lr=0.1)


def main():
    L.Trainer(max_epochs=1, accumulate_grad_batches=2, **QUIET).fit(Accumulated(), loader(4))
    L.Trainer(max_epochs=1, **QUIET).fit(Skipping(), loader(2))
