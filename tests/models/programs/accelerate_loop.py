"""A loop of the user's under Accelerate."""

import torch.nn.functional as F
from accelerate import Accelerator
from parts import Net, RecordedSchedule, RecordedSGD, loader


def main():
    accelerator = Accelerator(cpu=True)
    net = Net()
    optimizer = RecordedSGD(net.parameters(), lr=0.1)
    schedule = RecordedSchedule(optimizer)
    net, optimizer, data, schedule = accelerator.prepare(net, optimizer, loader(), schedule)
    for x, y in data:
        with accelerator.accumulate(net):
            accelerator.backward(F.mse_loss(net(x), y))
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
