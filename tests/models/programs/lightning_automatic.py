"""A module that Lightning optimizes, with every hook around a batch."""

import lightning as L
import torch.nn.functional as F
from parts import Net, RecordedSchedule, RecordedSGD, loader
from recorder import logs

QUIET = {
    "accelerator": "cpu",
    "logger": False,
    "enable_checkpointing": False,
    "enable_progress_bar": False,
    "enable_model_summary": False,
}


@logs(
    "setup", "configure_optimizers", "on_fit_start", "on_fit_end", "on_train_start", "on_train_end",
    "on_train_epoch_start", "on_train_epoch_end", "on_train_batch_start", "on_train_batch_end",
    "on_before_zero_grad", "on_before_backward", "on_after_backward", "on_before_optimizer_step",
    "on_validation_start", "on_validation_end", "on_validation_epoch_start", "on_validation_epoch_end",
    "training_step", "validation_step", "configure_gradient_clipping", "lr_scheduler_step",
)  # fmt: skip
class Automatic(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = Net()

    def training_step(self, batch, batch_idx):
        x, y = batch
        return {"loss": F.mse_loss(self.net(x), y)}

    def validation_step(self, batch, batch_idx):
        x, y = batch
        F.mse_loss(self.net(x), y)

    def configure_optimizers(self):
        optimizer = RecordedSGD(self.parameters(), lr=0.1)
        return {
            "optimizer": optimizer,
            "lr_scheduler": {"scheduler": RecordedSchedule(optimizer), "interval": "step"},
        }


def main():
    L.Trainer(max_epochs=2, **QUIET).fit(Automatic(), loader(), loader(1))
