"""Data that is changed in place where it is fetched: what a dataset or a list of batches holds drifts from epoch to epoch.

`x = self.data[index]` and `x = batch.to(device)` (where nothing is to be moved) copy nothing, so that `x -= mean`
normalises what is stored, once more every time it is fetched.
"""

from __future__ import annotations

import ast
from typing import Any

from gradsight.detect.changed_inputs import SETTING
from gradsight.detect.claims import Claims
from gradsight.detect.path import Path
from gradsight.detect.second_names import BY_HAND, RESCALING, names_written
from gradsight.interp.syntax import BODIES, is_inside, restated, statement_around
from gradsight.model.events import Step
from gradsight.model.sites import Frame, Site
from gradsight.model.tensors import PART_OF, Storage, Tensor, Write
from gradsight.model.trace import Used, Wrote
from gradsight.model.values import Array, Instance, tensors_in

LOOPS = (ast.For, ast.While, ast.AsyncFor)
FETCHING = "__getitem__"


class ChangedData:
    """Writes to stored data on its way to a model."""

    def __init__(self, path: Path, claims: Claims) -> None:
        self.path = path
        self.claims = claims
        self.normalised: dict[Storage, Write] = {}
        """Memory that one statement has rescaled before, in an earlier round of its loop."""
        self.mixed: set[Storage] = set()
        """Memory into which other values were written: a state that is advanced, not data that is rescaled again."""

    def on_wrote(self, fact: Wrote) -> None:
        if fact.write.mode not in BY_HAND or not names_written(fact.site.node):
            return
        if rescales(fact):
            if self.fetching_dataset(fact.site) is None and any(rounds_of(fact.site)):
                self.note_normalised(fact)
                return
        else:
            self.mixed.add(fact.tensor.storage)
        owner = self.fetching_dataset(fact.site) if fact.op not in SETTING else None
        if owner is not None:
            self.check_dataset(owner, fact)

    # -- datasets ----------------------------------------------------------------------------------------------------

    def fetching_dataset(self, site: Site) -> Instance | None:
        """The dataset whose item is being fetched."""
        for place in (site, *site.callers()):
            frame = place.frame
            if frame.function is not None and frame.function.name == FETCHING:
                owner = frame.receiver
                return owner if isinstance(owner, Instance) and owner.cls.find("__len__")[0] else None
        return None

    def check_dataset(self, owner: Instance, fact: Wrote) -> None:
        held = next(
            (
                name
                for name, value in owner.attributes.items()
                if any(tensor.storage is fact.tensor.storage for tensor in tensors_in(value))
                or (isinstance(value, Array) and value is array_behind(fact.tensor))
            ),
            "",
        )
        if held and not fact.tensor.is_parameter:
            self.report(fact.write, f"self.{held}", [])

    # -- loops -------------------------------------------------------------------------------------------------------

    def note_normalised(self, fact: Wrote) -> None:
        """A statement that rescales by constants what it has rescaled in an earlier round, fetched again meanwhile."""
        storage, site = fact.tensor.storage, fact.site
        is_state = memory_of(fact.tensor).is_parameter or fact.tensor.snapshot == "state_dict"
        if storage in self.mixed or is_state or fact.tensor.node is not None:
            self.normalised.pop(storage, None)
            return
        earlier = next((write for write in storage.writes if write.site.key == site.key), None)
        if earlier is None or earlier is fact.write or rounds_of(earlier.site) == rounds_of(site):
            return
        name = next(iter(names_written(site.node)))
        if earlier.region == fact.write.region and is_fetched(name, [site, *site.callers()], storage):
            self.normalised[storage] = fact.write

    def on_used(self, fact: Used) -> None:
        """Data that goes through a model: some other argument learns."""
        if not self.normalised or not self.path.grad_mode:
            return
        tensors = [value for value in fact.arguments.values() if type(value) is Tensor]
        if self.is_in_model() or any(
            tensor.is_parameter and tensor.requires_grad is True for tensor in tensors
        ):
            for tensor in tensors:
                write = self.normalised.pop(tensor.storage, None)
                if write is not None:
                    words = "the model is given it here, changed once more"
                    self.report(write, "", [Step("read", self.path.site(fact.node), words)])

    def is_in_model(self) -> bool:
        """Whether the forward of a module that learns is running."""
        module = self.path.frame.receiver
        return (
            isinstance(module, Instance)
            and module.module is not None
            and any(tensor.requires_grad is True for _, tensor in self.path.tensors_of(module, "parameters"))
        )

    def report(self, write: Write, held: str, steps: list[Step]) -> None:
        self.claims.add(
            "alias-read-after-write",
            write.site,
            [*steps, *self.path.call_steps(write.site)],
            how="stored",
            write=write.op,
            target=held or self.path.text_of_target(write.site),
            alias=held,
            written=self.path.text_of_target(write.site),
        )


def memory_of(tensor: Tensor) -> Tensor:
    """The tensor whose `.data` this is."""
    while tensor.snapshot in ("data", "detach") and tensor.source is not None:
        tensor = tensor.source
    return tensor


def array_behind(tensor: Tensor) -> Array | None:
    """The NumPy array of which a tensor shows a part."""
    found = (tensor.root().attributes or {}).get(PART_OF)
    return found if isinstance(found, Array) else None


def rescales(fact: Wrote) -> bool:
    """Whether a write rescales by constants: `x -= 0.5`, `x.div_(2)`, `x[:, 0] = x[:, 0] * 0.5`."""
    if fact.op in RESCALING:
        return not fact.others and isinstance(fact.site.node, (ast.AugAssign, ast.Call))
    statement = statement_around(fact.site.node, fact.site.frame)
    return (
        isinstance(statement, ast.Assign)
        and restated(statement) is not None
        and isinstance(statement.value, ast.BinOp)
        and isinstance(statement.value.right, ast.Constant)
    )


def rounds_of(site: Site) -> list[tuple[Any, ...]]:
    """Which iterations of which loops a place was reached in, in its own frame and in those of its callers."""
    return [place.loops for place in (site, *site.callers())]


def is_fetched(name: str, places: list[Site], storage: Storage) -> bool:
    """Whether each round gives the name its value anew, there or where it is handed on from."""
    site = places[0]
    if is_fetched_in_loop(name, site):
        return True
    function = site.frame.function
    if function is None or len(places) < 2:
        return False
    if any(is_bound(inner, name, function.node) for inner in ast.walk(function.node)):
        return True
    call = places[1]
    given = call.node.args if isinstance(call.node, ast.Call) else []
    for argument in given:
        if isinstance(argument, ast.Name):
            value = call.frame.namespace.get(argument.id)
            if isinstance(value, Tensor) and value.storage is storage:
                return is_fetched(argument.id, places[1:], storage)
    return any(isinstance(argument, (ast.Subscript, ast.Call)) for argument in given)


def is_bound(node: ast.AST, name: str, function: ast.AST) -> bool:
    return (
        isinstance(node, ast.Name)
        and node.id == name
        and isinstance(node.ctx, ast.Store)
        and not is_augmented(node, function)
    )


def is_fetched_in_loop(name: str, site: Site) -> bool:
    """Whether a loop around a place gives the name its value, so that it is not carried over by the name itself."""
    return any(
        any(
            isinstance(inner, ast.Name) and inner.id == name and isinstance(inner.ctx, ast.Store)
            and not (isinstance(site.node, ast.AugAssign) and inner is site.node.target)
            and not is_augmented(inner, loop)
            for inner in ast.walk(loop)
        )
        for loop in loops_around(site.node, site.frame)
    )  # fmt: skip


def is_augmented(name: ast.Name, loop: ast.AST) -> bool:
    return any(isinstance(inner, ast.AugAssign) and inner.target is name for inner in ast.walk(loop))


def loops_around(node: ast.AST, frame: Frame) -> list[ast.AST]:
    """The loops of the running function, or of the unit, that a node lies in."""
    body = frame.function.node.body if frame.function is not None else frame.unit.tree
    found: list[ast.AST] = []
    while isinstance(body, list):
        statement = next((one for one in body if is_inside(node, one)), None)
        if statement is None:
            break
        if isinstance(statement, LOOPS):
            found.append(statement)
        body = next(
            (
                inner
                for name in BODIES
                if isinstance(inner := getattr(statement, name, None), list)
                and any(is_inside(node, one) for one in inner)
            ),
            None,
        )
    return found
