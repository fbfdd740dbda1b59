"""torch.distributed: how many processes there are, and what they send each other."""

from __future__ import annotations

from gradsight.interp.libraries.torch_functions import TorchFunctions
from gradsight.interp.option_defaults import MANY_PROCESSES, RANKS
from gradsight.model.sites import Syntax
from gradsight.model.tensors import Cut, Tensor
from gradsight.model.values import Seq, Unknown, Value


class ProcessGroups(TorchFunctions):
    """What a process asks of its group."""

    def count_of_ranks(self, args: list[Value], kwargs: dict[str, Value], node: Syntax) -> Value:
        return Unknown(RANKS, "number")

    def is_one_of_many(self, args: list[Value], kwargs: dict[str, Value], node: Syntax) -> Value:
        return Unknown(MANY_PROCESSES, "bool")

    def begin_processes(self, args: list[Value], kwargs: dict[str, Value], node: Syntax) -> Value:
        self.path.flags["torch.distributed"] = Unknown("the processes that were started")
        return None

    def gather_from_ranks(self, args: list[Value], kwargs: dict[str, Value], node: Syntax) -> Value:
        """`all_gather(list, tensor)` copies the tensors of all processes, this one's too, and records nothing."""
        filled = args[0] if args else kwargs.get("tensor_list")
        given = self.nn.assume_input(args[1] if len(args) > 1 else kwargs.get("tensor"))
        site = self.path.site(node)
        if isinstance(filled, Seq) and isinstance(given, Tensor) and given.needs_grad() is not False:
            for item in filled.items:
                if isinstance(item, Tensor):
                    item.cuts = item.cuts | {Cut("op", "all_gather", site, given, self.path.tick)}
        return Unknown("work of other processes")
