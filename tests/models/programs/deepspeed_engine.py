"""DeepSpeed: the engine applies the module, calls backward, and clears the gradients with its step."""

import os

import deepspeed
import torch
from parts import Net, RecordedSGD, carries_graph, loader
from recorder import log

GROUP = {
    "RANK": "0",
    "LOCAL_RANK": "0",
    "WORLD_SIZE": "1",
    "MASTER_ADDR": "127.0.0.1",
    "MASTER_PORT": "29573",
}


def main():
    os.environ.update(GROUP)
    for rounds in (1, 2):
        net = Net()
        engine, *_ = deepspeed.initialize(
            model=net,
            optimizer=RecordedSGD(net.parameters(), lr=0.1),
            config={
                "train_micro_batch_size_per_gpu": 2,
                "gradient_accumulation_steps": rounds,
                "zero_allow_untested_optimizer": True,
            },
            dist_init_required=True,
        )
        for x, y in loader(4):
            loss = (engine(x) - y).square().mean()
            log(f"loss: {carries_graph(loss)}, {engine.module is net}")
            engine.backward(loss)
            log(
                f"gradient: {net.layer.weight.grad is not None}, {engine.is_gradient_accumulation_boundary()}"
            )
            engine.step()
            grad = net.layer.weight.grad
            log(f"gradient after the step: {grad is not None and bool(grad.any())}")
    # The programs after this one train without a group of processes.
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
    for name in GROUP:
        os.environ.pop(name)
