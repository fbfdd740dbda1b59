"""PEFT: what is frozen once a model has adapters, what gets gradients, and what a merge gives back."""

import torch
from parts import carries_graph, frozen
from peft import LoraConfig, TaskType, get_peft_model
from recorder import log
from torch import nn


class Body(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.last = nn.Linear(4, 2)

    def forward(self, x):
        return self.last(self.first(x).relu())


def sides(model):
    names = [name for name, one in model.named_parameters() if one.requires_grad]
    return all("lora" in name for name in names), len(names) > 0, frozen(model)


def main():
    log(f"task: {TaskType.CAUSAL_LM == TaskType.CAUSAL_LM}")
    body = Body()
    model = get_peft_model(body, LoraConfig(r=2, target_modules=["first"]))
    log(f"adapted: {sides(model)}")
    log(f"the rest: {frozen(body.last)}")
    out = model(torch.rand(3, 4))
    log(f"out: {carries_graph(out)}")
    out.sum().backward()
    log(
        f"gradients: {sorted({'lora' in name for name, one in model.named_parameters() if one.grad is not None})}"
    )
    optimizer = torch.optim.SGD([one for one in model.parameters() if one.requires_grad], lr=0.1)
    log(f"trained: {len(optimizer.param_groups[0]['params']) > 0}")
    log(f"base: {model.get_base_model() is body}")
    log(f"merged: {isinstance(model.merge_and_unload(), nn.Module)}")
    kept = get_peft_model(Body(), LoraConfig(r=2, target_modules=["first"], modules_to_save=["last"]))
    kept(torch.rand(3, 4)).sum().backward()
    names = {"last" in name for name, one in kept.named_parameters() if one.grad is not None}
    log(f"saved with it: {sorted(names)}")
