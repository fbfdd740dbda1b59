"""Layers whose results lead to no loss: an optimizer holds them, operators recorded them, and no backward ever came back.

It is told when the run is over, at the line that computed with them first.  Parts of a library's model that the program has no
use for, such as the pooler of a language model, are not its mistake: the class around the layer has to be the user's own.
"""

from __future__ import annotations

import sys

import torch

from gradsight.agent.cuts import label, name_list
from gradsight.agent.faults import Fault, Ledger, quietly, step_at
from gradsight.agent.naming import reachable_modules
from gradsight.agent.shadow import Leaf, Shadow
from gradsight.agent.sites import FrameKey, is_user_file, place_of, text_of
from gradsight.agent.training import TrainingWatch

_FEWEST_STEPS = 2


@quietly
def judge_dropped_results(training: TrainingWatch, shadow: Shadow, ledger: Ledger) -> None:
    """Compares what optimizers hold and operators recorded with what backwards reached."""
    if any(fault.severity != "info" for fault in ledger.faults):
        # What cut them off, or what else is wrong, was told.
        return
    left = shadow.recorded & ~training.ever_reached & ~training.ever_missing
    dropped: dict[FrameKey, list[Leaf]] = {}
    for record in training.optimizers.values():
        for leaf in record.leaves.values() if record.useful_steps >= _FEWEST_STEPS else ():
            tensor = leaf.tensor()
            stack = shadow.recorded_at.get(leaf.bit, ())
            if tensor is None or not stack or not left >> leaf.bit & 1 or not leaf.is_parameter:
                continue
            if tensor.requires_grad and tensor.grad is None and is_part_of_own_class(tensor):
                dropped.setdefault(stack[0], []).append(leaf)
    for frame, leaves in dropped.items():
        place = place_of(frame)
        message = (
            f"what `{text_of(place, limit=40)}` computes with {name_list(leaves)} leads to no loss: "
            "they got no gradient in any step"
        )
        record = next(each for each in training.optimizers.values() if leaves[0].bit in each.leaves)
        steps = step_at("call", "the optimizer holds them", record.made)
        evidence = {"parameters": [label(leaf) for leaf in leaves][:20]}
        ledger.add(Fault("layer-unused", message, place, steps, "warning", evidence))


def is_part_of_own_class(tensor: torch.Tensor) -> bool:
    """Whether the innermost class around a parameter that is not torch's own is one of the program."""
    for module in reachable_modules():
        for name, part in module.named_modules():
            if any(each is tensor for each in part._parameters.values()):
                around = [part]
                words = name.split(".") if name else []
                while words:
                    words.pop()
                    around.append(module.get_submodule(".".join(words)))
                own = (type(each) for each in around if not type(each).__module__.startswith("torch."))
                return is_users(next(own, None))
    return False


def is_users(cls: type | None) -> bool:
    source = getattr(sys.modules.get(cls.__module__), "__file__", None) if cls is not None else None
    return cls is not None and (cls.__module__ == "__main__" or (source is not None and is_user_file(source)))
