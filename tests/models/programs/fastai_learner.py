"""fastai: the order of events and calls for a batch, with a callback."""

import torch.nn.functional as F
from fastai.callback.core import Callback
from fastai.data.core import DataLoaders
from fastai.learner import Learner
from fastai.optimizer import OptimWrapper
from parts import Net, RecordedSGD, carries_graph, loader
from recorder import log

EVENTS = """
before_fit before_epoch before_train before_batch after_pred after_loss before_backward after_backward before_step after_step
after_batch after_train before_validate after_validate after_epoch after_fit
"""


def noting(event):
    def noted(self):
        log(event)
        if event == "after_loss":
            log(f"loss_grad: {carries_graph(self.learn.loss_grad)}, training: {self.training}")
        if event == "before_step":
            log(f"gradient: {self.model.layer.weight.grad is not None}")
        if event == "after_batch" and self.training:
            log(f"gradient after the batch: {self.model.layer.weight.grad is not None}")

    return noted


Talking = type("Talking", (Callback,), {event: noting(event) for event in EVENTS.split()})


def recorded(params, lr, **options):
    return OptimWrapper(params, RecordedSGD, lr=lr)


def main():
    learner = Learner(
        DataLoaders(loader(), loader(1)), Net(), loss_func=F.mse_loss, opt_func=recorded, cbs=[Talking()]
    )
    learner.fit(2)
