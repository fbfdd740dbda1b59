"""Custom Functions: inputs written without `mark_dirty`, gradients miscounted, tensors kept on ctx."""

from __future__ import annotations

import ast

from gradsight.detect.claims import Claims
from gradsight.detect.path import Path
from gradsight.detect.returned_gradients import count_returned
from gradsight.model.events import Step
from gradsight.model.tensors import INTEGRAL
from gradsight.model.trace import CustomApplied
from gradsight.model.values import Function, tensors_in


class CustomFunctionFaults:
    """What `apply` shows of a forward and its backward."""

    def __init__(self, path: Path, claims: Claims) -> None:
        self.path = path
        self.claims = claims

    def on_custom_applied(self, fact: CustomApplied) -> None:
        self.check_dirty(fact)
        self.check_count(fact)
        self.check_context(fact)

    def check_dirty(self, fact: CustomApplied) -> None:
        given_back = {tensor.storage for tensor in tensors_in(fact.result)}
        for tensor in fact.inputs:
            if tensor.storage.epoch != fact.epochs[tensor] and tensor.storage not in fact.dirty:
                write = next(w for w in tensor.storage.writes if w.epoch > fact.epochs[tensor])
                if tensor.needs_grad() is False and tensor.storage not in given_back:
                    # A buffer: nothing goes back through it, and `mark_dirty` refuses what is not returned.
                    continue
                if write.mode == "silent" or write.writer.snapshot == "data":
                    # Who writes through `.data` here means to go past autograd.
                    continue
                self.claims.add(
                    "dirty-not-marked",
                    write.site,
                    [Step("call", fact.site, "the function is applied here")],
                    target=tensor.label,
                    cls=fact.cls.name,
                )

    def check_count(self, fact: CustomApplied) -> None:
        backward = fact.backward
        if not isinstance(backward, Function) or isinstance(backward.node, ast.Lambda):
            return
        call = fact.site.node
        if isinstance(call, ast.Call) and any(isinstance(argument, ast.Starred) for argument in call.args):
            # How many arguments these are need not be known.
            return
        returned = count_returned(backward.node, fact.arguments)
        if returned is not None and returned[0] != fact.arguments and fact.requires is not False:
            self.claims.add(
                "gradient-count",
                self.path.place_in(backward, returned[1]),
                [Step("call", fact.site, f"the function is applied to {fact.arguments} arguments here")],
                cls=fact.cls.name,
                returned=returned[0],
                wanted=fact.arguments,
            )

    def check_context(self, fact: CustomApplied) -> None:
        """Tensors set as attributes of ctx escape the version check and keep memory alive."""
        outputs = tensors_in(fact.result)
        for name, (value, place) in fact.kept.items():
            for tensor in tensors_in(value):
                if tensor.snapshot == "detach" or tensor.dtype in INTEGRAL or tensor.dtype == "?":
                    continue
                given = any(tensor.storage is source.storage for source in fact.inputs)
                made = any(tensor.storage is output.storage for output in outputs)
                if given or made:
                    self.claims.add(
                        "tensor-on-ctx",
                        place,
                        [Step("call", fact.site, "the function is applied here")],
                        name=name,
                        cls=fact.cls.name,
                        output=made,
                    )
