"""The whole machine: builds the floors of a path and joins them."""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterable
from contextlib import suppress

from gradsight.interp.path_state import PathState, Program
from gradsight.interp.paths.distant_calls import DistantCalls
from gradsight.interp.paths.entry import Entry
from gradsight.interp.paths.library_evidence import EvidenceLibraries
from gradsight.interp.paths.module_evidence import EvidenceModules
from gradsight.interp.paths.object_evidence import EvidenceObjects
from gradsight.interp.paths.tensor_evidence import EvidenceAutograd
from gradsight.interp.python.loops import Loops
from gradsight.interp.tensors.fact_selection import CaseSelection
from gradsight.model.events import Step
from gradsight.model.library_objects import Optimizer
from gradsight.model.sites import Site
from gradsight.model.tensors import Node, Tensor
from gradsight.model.values import Function, Mapping, Module, PythonModule, Unknown, Value


class Machine(PathState):
    """One path through one entry: its state, and the floors that execute it."""

    def __init__(self, program: Program, module: PythonModule, script: list[bool], budget: int) -> None:
        super().__init__(program, module, script, budget)
        self.loops = loops = Loops(self)
        self.language = language = DistantCalls(self)
        self.objects = objects = EvidenceObjects(self)
        self.facts = facts = CaseSelection(self)
        self.autograd = autograd = EvidenceAutograd(self)
        self.nn = nn = EvidenceModules(self)
        self.libraries = libraries = EvidenceLibraries(self)
        self.entry = entry = Entry(self)
        loops.language = language
        loops.objects = objects
        language.loops = loops
        language.objects = objects
        language.autograd = autograd
        language.nn = nn
        language.libraries = libraries
        language.entry = entry
        objects.loops = loops
        objects.language = language
        objects.autograd = autograd
        objects.nn = nn
        objects.libraries = libraries
        objects.entry = entry
        facts.autograd = autograd
        facts.nn = nn
        autograd.language = language
        autograd.objects = objects
        autograd.facts = facts
        autograd.nn = nn
        autograd.libraries = libraries
        autograd.entry = entry
        nn.language = language
        nn.objects = objects
        nn.facts = facts
        nn.autograd = autograd
        nn.entry = entry
        libraries.language = language
        libraries.objects = objects
        libraries.facts = facts
        libraries.autograd = autograd
        libraries.nn = nn
        libraries.entry = entry
        entry.language = language
        entry.autograd = autograd
        entry.nn = nn
        entry.libraries = libraries

    # -- what detectors ask of a path --------------------------------------------------------------------------------

    def call_steps(self, site: Site) -> list[Step]:
        return self.autograd.call_steps(site)

    def text_of_target(self, site: Site) -> str:
        return self.autograd.text_of_target(site)

    def outermost(self, inner: Site, outer: Site) -> Site:
        return self.autograd.outermost(inner, outer)

    def parameters_of(self, optimizer: Optimizer) -> list[Tensor]:
        return optimizer.parameters()

    def ever_held_by(self, optimizer: Optimizer) -> set[Tensor]:
        return optimizer.ever_held()

    def groups_of(self, optimizer: Optimizer) -> list[Mapping]:
        return optimizer.groups()

    def knows_all_parameters(self, optimizer: Optimizer) -> bool:
        return optimizer.knows_all_parameters()

    def tensors_of(self, module: Module, kind: str) -> Iterable[tuple[str, Tensor]]:
        return self.nn.tensors_of(module, kind)

    def modules_in(self, module: Module) -> list[tuple[str, Module]]:
        return self.nn.modules_in(module)

    def module_behind(self, value: Value) -> Value:
        """The stand-in of an unknown value, if the program has treated it as a module; anything else as it is."""
        stand_in = self.entry.stand_ins.get(id(value)) if type(value) is Unknown else None
        return value if stand_in is None else stand_in

    def mapping_key(self, key: Value) -> Hashable:
        return self.objects.mapping_key(key)

    def mapping_item(self, owner: Mapping, index: Value) -> Value:
        return self.objects.mapping_item(owner, index)

    def escaped_between(self, tensors: set[Tensor], start: int, end: int) -> bool:
        return self.nn.escaped_between(tensors, start, end)

    def may_clear_between(self, tensors: set[Tensor], start: int, end: int) -> bool:
        return self.nn.may_clear_between(tensors, start, end)

    def from_earlier_round(self, node: Node, site: Site) -> bool:
        return self.autograd.from_earlier_round(node, site)

    def backward_passed_by(self) -> bool:
        return self.autograd.backward_passed_by()

    def place_in(self, function: Function, node: ast.AST) -> Site:
        return self.entry.place_in(function, node)

    def finish(self) -> None:
        """The path is over: look back at the whole of it."""
        self.entry.finish()

    def end_generators(self) -> None:
        """One that is left before its end comes to an end when nobody has it any more, and needs the others for it."""
        for generator in list(self.generators):
            with suppress(Exception):
                generator.close()

    def let_go(self, activations: int, modules: int) -> None:
        """What was made after the first so many activations and modules is not looked at any more, and lets go of each other."""
        for module in self.modules_made[modules:]:
            # Its layers were made in the frame of its `__init__`, which holds it.
            module.attributes.clear()
        for frame in self.activations[activations:]:
            # A tensor was made at a place in the frame that holds it.
            frame.namespace.clear()
            frame.receiver = frame.calls = None
            if frame.call_site is not None:
                frame.call_site.frame.calls = None

    def dissolve(self) -> None:
        """Nobody looks at the path any more: what holds each other lets go, so that nothing has to look for such rings."""
        self.end_generators()
        self.let_go(0, 0)
        self.listener.let_go()
        floors = (self.loops, self.language, self.objects, self.facts, self.autograd, self.nn, self.libraries)
        for part in (*floors, self.entry, self):
            part.__dict__.clear()
