"""`Trainer`: the order in which Lightning calls a module, its optimizers and the callbacks."""

import torch
from torch.utils.data import DataLoader

from lightning.pytorch.callbacks import Callback
from lightning.pytorch.core import LightningDataModule


class Trainer:
    def __init__(
        self,
        *,
        accelerator="auto",
        callbacks=None,
        max_epochs=None,
        max_steps=-1,
        accumulate_grad_batches=1,
        gradient_clip_val=None,
        gradient_clip_algorithm=None,
        inference_mode=True,
        num_sanity_val_steps=None,
        **options,
    ):
        self.max_epochs = max_epochs
        self.max_steps = max_steps
        self.accumulate_grad_batches = accumulate_grad_batches
        self.gradient_clip_val = gradient_clip_val
        self.gradient_clip_algorithm = gradient_clip_algorithm
        self.inference_mode = inference_mode
        self.num_sanity_val_steps = num_sanity_val_steps
        self.callbacks = []
        given = callbacks if isinstance(callbacks, (list, tuple)) else [callbacks]
        for callback in given:
            if not isinstance(callback, Callback):
                continue
            self.callbacks.append(callback)
        self.optimizers = []
        self.lr_scheduler_configs = []
        self.current_epoch = 0
        self.global_step = 0
        self.callback_metrics = {}
        self.should_stop = False
        self.is_global_zero = True
        self.global_rank = 0
        self.world_size = 1
        self.lightning_module = None
        self._starts_anew = True

    @classmethod
    def from_argparse_args(cls, args, **options):
        """Releases before 2.0 take the options that the command line gives."""
        return cls(**options)

    @staticmethod
    def add_argparse_args(parent_parser, **options):
        return parent_parser

    @property
    def model(self):
        return self.lightning_module

    def fit(self, model, train_dataloaders=None, val_dataloaders=None, datamodule=None, ckpt_path=None):
        if isinstance(train_dataloaders, LightningDataModule):
            datamodule, train_dataloaders = train_dataloaders, None
        self._attach(model, datamodule, "fit")
        loader = self._loader(train_dataloaders, datamodule, model, "train_dataloader")
        validation = self._loader(val_dataloaders, datamodule, model, "val_dataloader")
        model.configure_model()
        self._configure(model)
        self._notify("on_fit_start")
        model.on_fit_start()
        if validation is not None and self.num_sanity_val_steps != 0:
            self._validate(model, validation)
        model.train()
        self._notify("on_train_start")
        model.on_train_start()
        for epoch in range(self.max_epochs if self.max_epochs is not None else 2):
            self.current_epoch = epoch
            self._notify("on_train_epoch_start")
            model.on_train_epoch_start()
            for batch_idx, batch in enumerate(loader):
                self._train_on(model, batch, batch_idx)
            if validation is not None:
                self._validate(model, validation)
            self._notify("on_train_epoch_end")
            model.on_train_epoch_end()
            self._schedule(model, "epoch")
        self._notify("on_train_end")
        model.on_train_end()
        self._notify("on_fit_end")
        model.on_fit_end()

    def validate(self, model=None, dataloaders=None, ckpt_path=None, verbose=True, datamodule=None):
        model = model if model is not None else self.lightning_module
        self._attach(model, datamodule, "validate")
        self._validate(
            model, self._loader(dataloaders, datamodule, model, "val_dataloader") or DataLoader([])
        )
        return []

    def test(self, model=None, dataloaders=None, ckpt_path=None, verbose=True, datamodule=None):
        model = model if model is not None else self.lightning_module
        self._attach(model, datamodule, "test")
        loader = self._loader(dataloaders, datamodule, model, "test_dataloader")
        model.eval()
        with self._without_grad():
            model.on_test_epoch_start()
            for batch_idx, batch in enumerate(loader):
                model.test_step(batch, batch_idx)
            model.on_test_epoch_end()
        model.train()
        return []

    def predict(self, model=None, dataloaders=None, datamodule=None, return_predictions=None, ckpt_path=None):
        model = model if model is not None else self.lightning_module
        self._attach(model, datamodule, "predict")
        loader = self._loader(dataloaders, datamodule, model, "predict_dataloader")
        model.eval()
        with self._without_grad():
            return [model.predict_step(batch, batch_idx) for batch_idx, batch in enumerate(loader)]

    def save_checkpoint(self, filepath, weights_only=False):
        pass

    # One batch.

    def _train_on(self, model, batch, batch_idx):
        self._notify("on_train_batch_start", batch, batch_idx)
        model.on_train_batch_start(batch, batch_idx)
        if model.automatic_optimization:
            outputs = self._optimize(model, batch, batch_idx)
        else:
            outputs = model.training_step(batch, batch_idx)
        self.global_step += 1
        self._schedule(model, "step")
        self._notify("on_train_batch_end", outputs, batch, batch_idx)
        model.on_train_batch_end(outputs, batch, batch_idx)

    def _optimize_each(self, model, batch, batch_idx):
        """As releases before 2.0 do it: one training step for each optimizer, which is told whose turn it is."""
        output = None
        for optimizer_idx, optimizer in enumerate(self.optimizers):
            output = model.training_step(batch, batch_idx, optimizer_idx)
            loss = output.get("loss") if isinstance(output, dict) else output
            if loss is not None:
                optimizer.zero_grad()
                model.backward(loss)
                optimizer.step()
        return output

    def _optimize(self, model, batch, batch_idx):
        if len(self.optimizers) > 1:
            return self._optimize_each(model, batch, batch_idx)
        rounds = self.accumulate_grad_batches
        output = None

        def closure():
            nonlocal output
            output = model.training_step(batch, batch_idx)
            if rounds == 1 or self._starts_anew:
                self._starts_anew = False
                for optimizer in self.optimizers:
                    self._notify("on_before_zero_grad", optimizer)
                    model.on_before_zero_grad(optimizer)
                    model.optimizer_zero_grad(self.current_epoch, batch_idx, optimizer)
            loss = output.get("loss") if isinstance(output, dict) else output
            if loss is None:
                return None
            self._notify("on_before_backward", loss)
            model.on_before_backward(loss)
            model.backward(loss if rounds == 1 else loss / rounds)
            self._notify("on_after_backward")
            model.on_after_backward()
            return loss

        if not self.optimizers or (rounds != 1 and (batch_idx + 1) % rounds != 0):
            closure()
        else:
            optimizer = self.optimizers[0]

            def closure_and_hooks():
                loss = closure()
                self._notify("on_before_optimizer_step", optimizer)
                model.on_before_optimizer_step(optimizer)
                model.configure_gradient_clipping(
                    optimizer, self.gradient_clip_val, self.gradient_clip_algorithm
                )
                return loss

            model.optimizer_step(self.current_epoch, batch_idx, optimizer, closure_and_hooks)
            self._starts_anew = True
        return output

    def _schedule(self, model, interval):
        if not model.automatic_optimization:
            return
        for config in self.lr_scheduler_configs:
            if config.get("interval", "epoch") == interval:
                metric = self.callback_metrics.get(config["monitor"]) if config.get("monitor") else None
                model.lr_scheduler_step(config["scheduler"], metric)

    def _validate(self, model, loader):
        model.eval()
        with self._without_grad():
            self._notify("on_validation_start")
            model.on_validation_start()
            self._notify("on_validation_epoch_start")
            model.on_validation_epoch_start()
            for batch_idx, batch in enumerate(loader):
                self._notify("on_validation_batch_start", batch, batch_idx)
                model.on_validation_batch_start(batch, batch_idx)
                outputs = model.validation_step(batch, batch_idx)
                self._notify("on_validation_batch_end", outputs, batch, batch_idx)
                model.on_validation_batch_end(outputs, batch, batch_idx)
            self._notify("on_validation_epoch_end")
            model.on_validation_epoch_end()
            self._notify("on_validation_end")
            model.on_validation_end()
        model.train()

    # Setting up.

    def _attach(self, model, datamodule, stage):
        self.lightning_module = model
        model.trainer = self
        if datamodule is not None:
            datamodule.trainer = self
            datamodule.prepare_data()
            datamodule.setup(stage)
        model.prepare_data()
        for callback in self.callbacks:
            callback.setup(self, model, stage)
        model.setup(stage)

    def _loader(self, given, datamodule, model, name):
        if given is not None:
            return given
        return getattr(datamodule if datamodule is not None else model, name)()

    def _configure(self, model):
        configured = model.configure_optimizers()
        optimizers, schedulers = [], []
        if isinstance(configured, dict):
            self._take(configured, optimizers, schedulers)
        elif isinstance(configured, (list, tuple)):
            if len(configured) == 2 and isinstance(configured[0], (list, tuple)):
                optimizers, schedulers = list(configured[0]), list(configured[1])
            else:
                for one in configured:
                    if isinstance(one, dict):
                        self._take(one, optimizers, schedulers)
                    else:
                        optimizers.append(one)
        elif configured is not None:
            optimizers.append(configured)
        self.optimizers = optimizers
        self.lr_scheduler_configs = [
            one if isinstance(one, dict) else {"scheduler": one} for one in schedulers
        ]
        if not model.automatic_optimization:
            for optimizer in optimizers:
                self._before_each_step(model, optimizer)

    def _take(self, configured, optimizers, schedulers):
        optimizers.append(configured["optimizer"])
        if "lr_scheduler" in configured:
            schedulers.append(configured["lr_scheduler"])

    def _before_each_step(self, model, optimizer):
        def before(_optimizer, _args, _kwargs):
            self._notify("on_before_optimizer_step", optimizer)
            model.on_before_optimizer_step(optimizer)

        optimizer.register_step_pre_hook(before)

    def _notify(self, hook, *values):
        for callback in self.callbacks:
            getattr(callback, hook)(self, self.lightning_module, *values)

    def _without_grad(self):
        return torch.inference_mode() if self.inference_mode else torch.no_grad()
