"""ema_pytorch: what an update does to both sides."""

import torch
from ema_pytorch import EMA
from parts import Net, carries_graph, frozen
from recorder import log


def main():
    net = Net()
    followed = EMA(net, beta=0.5, update_after_step=0, update_every=1)
    log(
        f"made: {frozen(followed.ema_model)}, {frozen(net)}, {followed.ema_model is net}, {followed.model is net}"
    )
    log(f"held: {len([one for one in followed.parameters() if one.requires_grad])}")
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(3):
        optimizer.zero_grad()
        net(torch.ones(2, 2)).sum().backward()
        optimizer.step()
        before = net.layer.weight.detach().clone()
        mean = followed.ema_model.layer.weight.detach().clone()
        followed.update()
        log(
            f"own weight is left alone: {torch.equal(net.layer.weight, before)}, gradient: {net.layer.weight.grad is not None}"
        )
        if step > 1:
            log(
                f"moved: {not torch.equal(followed.ema_model.layer.weight, mean)}, {followed.ema_model.layer.weight.grad}"
            )
    log(f"applied: {carries_graph(followed(torch.ones(2, 2)))}, {carries_graph(net(torch.ones(2, 2)))}")
