"""An engine with a function of the user's, and the trainer that Ignite makes."""

import torch.nn.functional as F
from ignite.engine import Engine, Events, create_supervised_trainer
from parts import Net, RecordedSGD, loader
from recorder import log


def main():
    net = Net()
    optimizer = RecordedSGD(net.parameters(), lr=0.1)

    def update(engine, batch):
        x, y = batch
        optimizer.zero_grad()
        loss = F.mse_loss(net(x), y)
        loss.backward()
        optimizer.step()
        return loss.item()

    for trainer in (Engine(update), create_supervised_trainer(net, optimizer, F.mse_loss)):
        for event in (
            "STARTED",
            "EPOCH_STARTED",
            "ITERATION_STARTED",
            "ITERATION_COMPLETED",
            "EPOCH_COMPLETED",
            "COMPLETED",
        ):

            def handler(engine, name=event):
                log(name)

            trainer.add_event_handler(getattr(Events, event), handler)
        trainer.run(loader(), max_epochs=2)
