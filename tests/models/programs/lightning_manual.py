"""Two optimizers that the module steps itself."""

import lightning as L
import torch.nn.functional as F
from parts import Net, RecordedSGD, loader
from programs.lightning_automatic import QUIET
from recorder import log, logs


@logs(
    "training_step",
    "on_before_backward",
    "on_after_backward",
    "on_before_optimizer_step",
    "on_before_zero_grad",
)
class Manual(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.first, self.second = Net(), Net()

    def training_step(self, batch, batch_idx):
        x, y = batch
        one, two = self.optimizers()
        self.toggle_optimizer(one)
        log(f"needs grad: {[p.requires_grad for p in self.parameters()]}")
        one.zero_grad()
        self.manual_backward(F.mse_loss(self.first(x), y))
        self.clip_gradients(one, gradient_clip_val=1.0, gradient_clip_algorithm="norm")
        one.step()
        self.untoggle_optimizer(one)
        log(f"needs grad: {[p.requires_grad for p in self.parameters()]}")
        two.zero_grad()
        self.manual_backward(F.mse_loss(self.second(x), y))
        two.step()

    def configure_optimizers(self):
        return RecordedSGD(self.first.parameters(), lr=0.1), RecordedSGD(self.second.parameters(), lr=0.1)


def main():
    L.Trainer(max_epochs=1, **QUIET).fit(Manual(), loader())
