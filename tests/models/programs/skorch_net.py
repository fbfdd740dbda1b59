"""skorch: the order of calls for a batch, and what a loss of one's own gets."""

import torch
from parts import Net, RecordedSGD, carries_graph, loader
from recorder import log, logs
from skorch import NeuralNet, NeuralNetRegressor


@logs("train_step", "train_step_single", "infer")
class Own(NeuralNet):
    def get_loss(self, y_pred, y_true, *args, **kwargs):
        log(f"get_loss: {carries_graph(y_pred)}, {sorted(kwargs)}")
        return super().get_loss(y_pred, y_true, *args, **kwargs)


def main():
    net = Own(Net, torch.nn.MSELoss, optimizer=RecordedSGD, lr=0.1, train_split=None, verbose=0)
    net.initialize()
    for batch in loader(2):
        step = net.train_step(batch)
        log(f"step: {sorted(step)}, {carries_graph(step['loss'])}")
    net.validation_step(next(iter(loader(1))))
    kept = NeuralNetRegressor(Net, optimizer=RecordedSGD, train_split=None, verbose=0)
    kept.initialize()
    log(f"criterion: {type(kept.criterion_).__name__}")
    kept.train_step(next(iter(loader(1))))
