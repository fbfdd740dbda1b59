"""A loop of the user's under Fabric."""

import torch.nn.functional as F
from lightning.fabric import Fabric
from parts import Net, RecordedSGD, loader


def main():
    fabric = Fabric(accelerator="cpu", devices=1)
    net = Net()
    net, optimizer = fabric.setup(net, RecordedSGD(net.parameters(), lr=0.1))
    for x, y in fabric.setup_dataloaders(loader()):
        optimizer.zero_grad()
        fabric.backward(F.mse_loss(net(x), y))
        fabric.clip_gradients(net, optimizer, max_norm=1.0)
        optimizer.step()
