"""A callback and a module whose hooks take turns."""

import lightning as L
from parts import loader
from programs.lightning_automatic import QUIET, Automatic
from recorder import log


class Talking(L.Callback):
    def on_train_start(self, trainer, pl_module):
        log("callback on_train_start")

    def on_train_batch_start(self, trainer, pl_module, batch, batch_idx):
        log("callback on_train_batch_start")

    def on_before_zero_grad(self, trainer, pl_module, optimizer):
        log("callback on_before_zero_grad")

    def on_before_backward(self, trainer, pl_module, loss):
        log("callback on_before_backward")

    def on_after_backward(self, trainer, pl_module):
        log("callback on_after_backward")

    def on_before_optimizer_step(self, trainer, pl_module, optimizer):
        log("callback on_before_optimizer_step")

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        log("callback on_train_batch_end")

    def on_train_epoch_end(self, trainer, pl_module):
        log("callback on_train_epoch_end")


def main():
    L.Trainer(max_epochs=1, callbacks=[Talking()], **QUIET).fit(Automatic(), loader(1))
