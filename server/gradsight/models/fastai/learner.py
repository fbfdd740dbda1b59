"""`Learner` and `Callback`: what happens to a batch, and the events around it."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader

from fastai.optimizer import Adam


class CancelBatchException(Exception):
    pass


class Callback:
    """The learner hands its own attributes on: `self.loss` is `self.learn.loss`."""

    learn = None

    def __gradsight_driver__(self):
        Learner(None, nn.Linear(2, 1), nn.functional.mse_loss, cbs=[self]).fit(1)

    @property
    def model(self):
        return self.learn.model

    @property
    def opt(self):
        return self.learn.opt

    @property
    def pred(self):
        return self.learn.pred

    @property
    def loss(self):
        return self.learn.loss

    @property
    def loss_grad(self):
        return self.learn.loss_grad

    @property
    def training(self):
        return self.learn.training

    def before_fit(self):
        pass

    def before_epoch(self):
        pass

    def before_train(self):
        pass

    def before_batch(self):
        pass

    def after_pred(self):
        pass

    def after_loss(self):
        pass

    def before_backward(self):
        pass

    def after_backward(self):
        pass

    def before_step(self):
        pass

    def after_step(self):
        pass

    def after_batch(self):
        pass

    def after_train(self):
        pass

    def before_validate(self):
        pass

    def after_validate(self):
        pass

    def after_epoch(self):
        pass

    def after_fit(self):
        pass


class Learner:
    def __init__(
        self, dls, model, loss_func=None, opt_func=Adam, lr=0.001, splitter=None, cbs=None, **kwargs
    ):
        self.dls = dls
        self.model = model
        self.loss_func = loss_func
        self.opt_func = opt_func
        self.lr = lr
        self.opt = None
        self.training = True
        self.cbs = []
        self.recorder = argparse.Namespace()
        self.add_cbs(cbs)

    def add_cbs(self, cbs):
        for callback in cbs if isinstance(cbs, (list, tuple)) else [cbs]:
            self.add_cb(callback)
        return self

    def add_cb(self, cb):
        if not isinstance(cb, Callback):
            return self
        cb.learn = self
        self.cbs.append(cb)
        return self

    def create_opt(self):
        self.opt = self.opt_func(self.model.parameters(), lr=self.lr)

    def fit(self, n_epoch, lr=None, wd=None, cbs=None, reset_opt=False, start_epoch=0):
        self.add_cbs(cbs)
        if self.opt is None:
            self.create_opt()
        self._fire("before_fit")
        for _epoch in range(n_epoch):
            self._fire("before_epoch")
            self.model.train()
            self.training = True
            self._fire("before_train")
            for batch in self._data("train"):
                self.one_batch(0, batch)
            self._fire("after_train")
            self.model.eval()
            self.training = False
            self._fire("before_validate")
            with torch.no_grad():
                for batch in self._data("valid"):
                    self.one_batch(0, batch)
            self._fire("after_validate")
            self._fire("after_epoch")
        self._fire("after_fit")

    def fit_one_cycle(self, n_epoch, lr_max=None, cbs=None, **kwargs):
        self.fit(n_epoch, cbs=cbs)

    def fit_flat_cos(self, n_epoch, lr=None, cbs=None, **kwargs):
        self.fit(n_epoch, cbs=cbs)

    def fine_tune(self, epochs, base_lr=0.002, freeze_epochs=1, **kwargs):
        self.fit(epochs)

    def one_batch(self, i, b):
        x, y = b
        self.xb, self.yb = (x,), (y,)
        self._fire("before_batch")
        self.pred = self.model(*self.xb)
        self._fire("after_pred")
        self.loss_grad = self.loss_func(self.pred, *self.yb)
        self.loss = self.loss_grad.clone()
        self._fire("after_loss")
        if self.training:
            self._fire("before_backward")
            self.loss_grad.backward()
            self._fire("after_backward")
            self._fire("before_step")
            self.opt.step()
            self._fire("after_step")
            self.opt.zero_grad()
        self._fire("after_batch")

    def _data(self, part):
        return getattr(self.dls, part) if self.dls is not None else DataLoader([])

    def _fire(self, event):
        for callback in self.cbs:
            getattr(callback, event)()
