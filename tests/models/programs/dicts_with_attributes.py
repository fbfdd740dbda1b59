"""munch and easydict: items are attributes, and what is set as one is found as the other."""

import torch
from easydict import EasyDict
from munch import DefaultMunch, Munch, munchify, unmunchify
from recorder import log


def main():
    weight = torch.ones(2, requires_grad=True)
    for made in (
        Munch(a=1, weight=weight),
        munchify({"a": 1, "weight": weight}),
        EasyDict({"a": 1}, weight=weight),
    ):
        made.b = 2
        made["c"] = 3
        log(f"{made.a} {made['b']} {made.c} {sorted(made)} {made.weight is weight} {isinstance(made, dict)}")
    nested = munchify({"inner": {"rate": 0.1}, "rows": [{"one": 1}]})
    log(f"munchify: {nested.inner.rate} {nested.rows[0].one} {type(unmunchify(nested)['inner']).__name__}")
    nested = EasyDict({"inner": {"rate": 0.1}})
    log(f"easydict: {nested.inner.rate}")
    log(f"default: {DefaultMunch(0, {'a': 1}).missing} {DefaultMunch(0, {'a': 1}).a}")
    log(
        f"copy: {Munch(a=1).copy().a}, {Munch(a=1).toDict()['a']}, {Munch(a=1).get('b', 3)}, {hasattr(Munch(), 'none')}"
    )
