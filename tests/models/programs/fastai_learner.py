"""A Learner, and a callback that hears every event around a batch."""

from functools import partial

import torch
from fastai.callback.core import Callback
from fastai.data.core import DataLoaders
from fastai.data.load import DataLoader
from fastai.learner import Learner
from fastai.optimizer import OptimWrapper
from parts import Net, RecordedSGD
from recorder import logs


@logs(
    "before_fit", "before_epoch", "before_train", "before_batch", "after_pred", "after_loss", "before_backward",
    "before_step", "after_step", "after_batch", "after_train", "before_validate", "after_validate", "after_epoch", "after_fit",
)  # fmt: skip
class Talking(Callback):
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


def main():
    rows = [(torch.ones(2), torch.ones(1)) for _ in range(4)]
    data = DataLoaders(DataLoader(rows, bs=2), DataLoader(rows, bs=2), device="cpu")
    learner = Learner(
        data,
        Net(),
        torch.nn.functional.mse_loss,
        opt_func=partial(OptimWrapper, opt=RecordedSGD),
        cbs=[Talking()],
    )
    learner.fit(1)
