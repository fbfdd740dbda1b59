"""Callbacks: the base class, how the library runs one, and those of the library that leave gradients alone."""

from torch import nn, optim


class Callback:
    def __gradsight_driver__(self):
        from lightning.pytorch.core import LightningModule
        from lightning.pytorch.trainer import Trainer

        class Trained(LightningModule):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(2, 1)

            def training_step(self, batch, batch_idx):
                return self.layer(batch).sum()

            def configure_optimizers(self):
                return optim.SGD(self.parameters(), lr=0.1)

        Trainer(callbacks=[self]).fit(Trained())

    def setup(self, trainer, pl_module, stage=None):
        pass

    def teardown(self, trainer, pl_module, stage=None):
        pass

    def on_fit_start(self, trainer, pl_module):
        pass

    def on_fit_end(self, trainer, pl_module):
        pass

    def on_train_start(self, trainer, pl_module):
        pass

    def on_train_end(self, trainer, pl_module):
        pass

    def on_train_epoch_start(self, trainer, pl_module):
        pass

    def on_train_epoch_end(self, trainer, pl_module):
        pass

    def on_train_batch_start(self, trainer, pl_module, batch, batch_idx):
        pass

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        pass

    def on_before_zero_grad(self, trainer, pl_module, optimizer):
        pass

    def on_before_backward(self, trainer, pl_module, loss):
        pass

    def on_after_backward(self, trainer, pl_module):
        pass

    def on_before_optimizer_step(self, trainer, pl_module, optimizer):
        pass

    def on_validation_start(self, trainer, pl_module):
        pass

    def on_validation_end(self, trainer, pl_module):
        pass

    def on_validation_epoch_start(self, trainer, pl_module):
        pass

    def on_validation_epoch_end(self, trainer, pl_module):
        pass

    def on_validation_batch_start(self, trainer, pl_module, batch, batch_idx, dataloader_idx=0):
        pass

    def on_validation_batch_end(self, trainer, pl_module, outputs, batch, batch_idx, dataloader_idx=0):
        pass


class _Quiet(Callback):
    """A callback of the library that touches no gradient."""

    def __init__(self, *args, **kwargs):
        self.best_model_path = ""
        self.best_model_score = None


ModelCheckpoint = EarlyStopping = LearningRateMonitor = DeviceStatsMonitor = ModelSummary = _Quiet
RichModelSummary = RichProgressBar = TQDMProgressBar = Timer = ProgressBar = Checkpoint = _Quiet
