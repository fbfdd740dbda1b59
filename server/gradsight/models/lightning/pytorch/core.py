"""`LightningModule`: what its own methods do to gradients, and how the library runs one that nothing fits."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader


class _Hooks:
    """What Lightning calls on the module (and, with the trainer in front, on callbacks)."""

    def prepare_data(self):
        pass

    def setup(self, stage=None):
        pass

    def teardown(self, stage=None):
        pass

    def configure_model(self):
        pass

    def on_fit_start(self):
        pass

    def on_fit_end(self):
        pass

    def on_train_start(self):
        pass

    def on_train_end(self):
        pass

    def on_train_epoch_start(self):
        pass

    def on_train_epoch_end(self):
        pass

    def on_train_batch_start(self, batch, batch_idx):
        pass

    def on_train_batch_end(self, outputs, batch, batch_idx):
        pass

    def on_before_zero_grad(self, optimizer):
        pass

    def on_before_backward(self, loss):
        pass

    def on_after_backward(self):
        pass

    def on_before_optimizer_step(self, optimizer):
        pass

    def on_validation_start(self):
        pass

    def on_validation_end(self):
        pass

    def on_validation_epoch_start(self):
        pass

    def on_validation_epoch_end(self):
        pass

    def on_validation_batch_start(self, batch, batch_idx, dataloader_idx=0):
        pass

    def on_validation_batch_end(self, outputs, batch, batch_idx, dataloader_idx=0):
        pass

    def on_test_epoch_start(self):
        pass

    def on_test_epoch_end(self):
        pass

    def train_dataloader(self):
        return DataLoader([])

    def val_dataloader(self):
        return None

    def test_dataloader(self):
        return DataLoader([])

    def predict_dataloader(self):
        return DataLoader([])

    def transfer_batch_to_device(self, batch, device, dataloader_idx):
        return batch

    def on_before_batch_transfer(self, batch, dataloader_idx):
        return batch

    def on_after_batch_transfer(self, batch, dataloader_idx):
        return batch


class LightningDataModule(_Hooks):
    def __init__(self):
        self.trainer = None
        self.hparams = argparse.Namespace()

    def save_hyperparameters(self, *names, ignore=None, logger=True):
        pass


class _Around:
    """What a module can ask for that is no part of it."""

    def __init__(self):
        self.hparams = argparse.Namespace()
        self.logger = argparse.Namespace()
        self.device = torch.device("cpu")


class LightningModule(_Hooks, nn.Module):
    def __init__(self, *args, **kwargs):
        nn.Module.__init__(self)
        self.automatic_optimization = True
        self.trainer = None
        self.global_rank = 0
        self.local_rank = 0
        self._around = _Around()

    def __gradsight_driver__(self):
        from lightning.pytorch.trainer import Trainer

        # Which trainer validates it is not known: one with `inference_mode=False` lets a step switch grad mode on again.
        trainer = Trainer(inference_mode=False)
        trainer.fit(self, val_dataloaders=self.val_dataloader() or DataLoader([]))
        trainer.test(self)

    @classmethod
    def load_from_checkpoint(
        cls, checkpoint_path, map_location=None, hparams_file=None, strict=None, **kwargs
    ):
        return cls(**kwargs)

    @property
    def hparams(self):
        return self._around.hparams

    @property
    def logger(self):
        return self._around.logger

    @property
    def device(self):
        return self._around.device

    @property
    def current_epoch(self):
        return self.trainer.current_epoch if self.trainer else 0

    @property
    def global_step(self):
        return self.trainer.global_step if self.trainer else 0

    # What a user overrides.

    def training_step(self, batch, batch_idx):
        pass

    def validation_step(self, batch, batch_idx):
        pass

    def test_step(self, batch, batch_idx):
        pass

    def predict_step(self, batch, batch_idx):
        return self(batch)

    def configure_optimizers(self):
        return None

    def configure_callbacks(self):
        return []

    def backward(self, loss, *args, **kwargs):
        loss.backward(*args, **kwargs)

    def optimizer_zero_grad(self, epoch, batch_idx, optimizer):
        optimizer.zero_grad()

    def optimizer_step(self, epoch, batch_idx, optimizer, optimizer_closure=None):
        optimizer.step(optimizer_closure)

    def lr_scheduler_step(self, scheduler, metric):
        if metric is None:
            scheduler.step()
        else:
            scheduler.step(metric)

    def configure_gradient_clipping(self, optimizer, gradient_clip_val=None, gradient_clip_algorithm=None):
        self.clip_gradients(optimizer, gradient_clip_val, gradient_clip_algorithm)

    # What a user calls.

    def optimizers(self, use_pl_optimizer=True):
        optimizers = self.trainer.optimizers
        return optimizers[0] if len(optimizers) == 1 else optimizers

    def lr_schedulers(self):
        schedulers = [config["scheduler"] for config in self.trainer.lr_scheduler_configs]
        if not schedulers:
            return None
        return schedulers[0] if len(schedulers) == 1 else schedulers

    def manual_backward(self, loss, *args, **kwargs):
        self.on_before_backward(loss)
        self.backward(loss, *args, **kwargs)
        self.on_after_backward()

    def clip_gradients(self, optimizer, gradient_clip_val=None, gradient_clip_algorithm=None):
        if gradient_clip_val is None:
            return
        parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
        if gradient_clip_algorithm == "value":
            nn.utils.clip_grad_value_(parameters, gradient_clip_val)
        else:
            nn.utils.clip_grad_norm_(parameters, gradient_clip_val)

    def toggle_optimizer(self, optimizer):
        held = [parameter for group in optimizer.param_groups for parameter in group["params"]]
        self._toggled = []
        for other in self.trainer.optimizers:
            if other is not optimizer:
                for group in other.param_groups:
                    for parameter in group["params"]:
                        if not any(parameter is own for own in held):
                            self._toggled.append((parameter, parameter.requires_grad))
                            parameter.requires_grad = False

    def untoggle_optimizer(self, optimizer):
        for parameter, needed in self._toggled:
            parameter.requires_grad = needed
        self._toggled = []

    def freeze(self):
        for parameter in self.parameters():
            parameter.requires_grad = False
        self.eval()

    def unfreeze(self):
        for parameter in self.parameters():
            parameter.requires_grad = True
        self.train()

    def log(self, name, value, **options):
        pass

    def log_dict(self, dictionary, **options):
        pass

    def print(self, *values, **options):
        pass

    def all_gather(self, data, group=None, sync_grads=False):
        return data

    def save_hyperparameters(self, *names, ignore=None, frame=None, logger=True):
        pass
