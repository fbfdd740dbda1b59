"""higher: which weights an inner loop starts from, and what its outer backward reaches."""

import higher
import torch
from parts import Net, carries_graph
from recorder import log


def main():
    for copies in (True, False):
        for tracks in (True, False):
            net = Net()
            inner = torch.optim.SGD(net.parameters(), lr=0.1)
            with higher.innerloop_ctx(net, inner, copy_initial_weights=copies, track_higher_grads=tracks) as (
                fast,
                steps,
            ):
                log(f"copies: {next(iter(fast.parameters())) is net.layer.weight}")
                for _ in range(2):
                    steps.step(fast(torch.ones(2, 2)).square().mean())
                weight = next(iter(fast.parameters()))
                log(
                    f"moved: {torch.equal(weight, net.layer.weight)}, {carries_graph(weight)}, {weight.is_leaf}"
                )
                fast(torch.ones(2, 2)).square().mean().backward()
            log(f"gradient: {net.layer.weight.grad is not None}")
