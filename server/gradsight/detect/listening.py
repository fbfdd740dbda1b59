"""The detectors of one path: who hears of which fact, in which order, each guarded by itself."""

from __future__ import annotations

import ast
import logging
import os
import re
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from gradsight.detect.accumulation import ClearedAccumulation
from gradsight.detect.applied_twice import AppliedTwice
from gradsight.detect.attribute_typos import AttributeTypos
from gradsight.detect.broadcast_losses import BroadcastLosses
from gradsight.detect.broken_ties import BrokenTies
from gradsight.detect.cancelled_gradients import CancelledGradients
from gradsight.detect.changed_data import ChangedData
from gradsight.detect.changed_inputs import ChangedInputs
from gradsight.detect.claims import Claims
from gradsight.detect.custom_functions import CustomFunctionFaults
from gradsight.detect.cut_features import CutFeatures
from gradsight.detect.cut_terms import CutTerms
from gradsight.detect.dead_terms import DeadTerms
from gradsight.detect.direct_forwards import DirectForwards
from gradsight.detect.double_activations import DoubleActivations
from gradsight.detect.dropped_sums import DroppedSums
from gradsight.detect.early_schedulers import EarlySchedulers
from gradsight.detect.even_softmaxes import EvenSoftmaxes
from gradsight.detect.failed_backwards import FailedBackwards
from gradsight.detect.forgotten_leaves import ForgottenLeaves
from gradsight.detect.freezes_by_name import FreezesByName
from gradsight.detect.frozen_parameters import FrozenParameters
from gradsight.detect.grad_mode_leaks import GradModeLeaks
from gradsight.detect.gradient_flow import GradientFlow
from gradsight.detect.gradient_hooks import GradientHooks
from gradsight.detect.gradient_ledger import GradientLedger
from gradsight.detect.graph_leaks import GraphLeaks
from gradsight.detect.idle_optimizers import IdleOptimizers
from gradsight.detect.ignored_gradients import IgnoredGradients
from gradsight.detect.ignored_parameters import IgnoredParameters
from gradsight.detect.ignored_results import IgnoredResults
from gradsight.detect.kept_features import KeptFeatures
from gradsight.detect.kept_models import KeptModels
from gradsight.detect.layers_in_forward import LayersInForward
from gradsight.detect.left_statistics import LeftStatistics
from gradsight.detect.logged_totals import LoggedTotals
from gradsight.detect.lost_results import LostResults
from gradsight.detect.lost_updates import LostUpdates
from gradsight.detect.lost_writes import LostWrites
from gradsight.detect.masked_nans import MaskedNans
from gradsight.detect.misplaced_clipping import MisplacedClipping
from gradsight.detect.misused_leaves import MisusedLeaves
from gradsight.detect.mixed_parts import MixedParts
from gradsight.detect.module_aliases import ModuleAliases
from gradsight.detect.moving_targets import MovingTargets
from gradsight.detect.path import Path
from gradsight.detect.place_aliases import PlaceAliases
from gradsight.detect.reads_after_write import ReadsAfterWrite
from gradsight.detect.rebound_models import ReboundModels
from gradsight.detect.recorded_averages import RecordedAverages
from gradsight.detect.recorded_writes import RecordedWrites
from gradsight.detect.refused_gradients import RefusedGradients
from gradsight.detect.refused_writes import RefusedWrites
from gradsight.detect.registration import Registration
from gradsight.detect.remade_optimizers import RemadeOptimizers
from gradsight.detect.repeated_modules import RepeatedModules
from gradsight.detect.repeated_steps import RepeatedSteps
from gradsight.detect.replaced_parameters import ReplacedParameters
from gradsight.detect.returned_values import ReturnedValues
from gradsight.detect.scaled_gradients import ScaledGradients
from gradsight.detect.second_names import SecondNames
from gradsight.detect.shared_memory import SharedMemory
from gradsight.detect.shared_rows import SharedRows
from gradsight.detect.snapshot_aliases import SnapshotAliases
from gradsight.detect.sparse_gradients import SparseGradients
from gradsight.detect.stepped_again import SteppedAgain
from gradsight.detect.summed_rows import SummedRows
from gradsight.detect.training_protocol import TrainingProtocol
from gradsight.detect.undone_freezes import UndoneFreezes
from gradsight.detect.undone_modes import UndoneModes
from gradsight.detect.untrained_parameters import UntrainedParameters
from gradsight.detect.unused_inputs import UnusedInputs
from gradsight.detect.unused_layers import UnusedLayers
from gradsight.detect.unused_terms import UnusedTerms
from gradsight.detect.zero_features import ZeroFeatures
from gradsight.detect.zero_terms import ZeroTerms
from gradsight.interp.path_state import PathEnded, RaisedError, Unwanted
from gradsight.model.trace import ANNOUNCED, Assigned, Fact

log = logging.getLogger(__name__)

STOPPING = (PathEnded, RaisedError, Unwanted)
"""How a path ends: no fault of the detector that happened to look."""


class Detectors:
    """Listens to one path on behalf of all detectors.

    Of a fact that has happened the detectors hear in the order in which they are listed; of one that is announced in
    the reverse order, so that what stands first is nearest to the event itself.
    """

    order: ClassVar[list[int] | None] = None
    """The places of those that look back, in their order: the same on all paths, unless a detector has failed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        claims = self.claims = Claims(path)
        reads = ReadsAfterWrite(path, claims)
        writes = RecordedWrites(path, claims)
        replaced = ReplacedParameters(path, claims)
        flow = GradientFlow(path, claims, replaced)
        ledger = self.ledger = GradientLedger(path, claims)
        self.listed: tuple[Any, ...] = (
            MisusedLeaves(path, claims),
            FailedBackwards(path, claims),
            SparseGradients(path, claims),
            RefusedWrites(path, claims),
            RefusedGradients(path, claims),
            UnusedInputs(path, claims),
            IgnoredParameters(path, claims),
            CustomFunctionFaults(path, claims),
            IgnoredGradients(path, claims),
            writes,
            ReturnedValues(path, claims, writes),
            IgnoredResults(path, claims),
            reads,
            GradModeLeaks(path, claims),
            flow,
            CutTerms(path, claims, flow),
            DeadTerms(path, claims, flow),
            CutFeatures(path, claims, flow),
            ZeroFeatures(path, claims),
            ZeroTerms(path, claims),
            CancelledGradients(path, claims),
            BrokenTies(path, claims),
            BroadcastLosses(path, claims),
            SharedMemory(path, claims),
            SharedRows(path, claims),
            SummedRows(path, claims),
            MixedParts(path, claims),
            SecondNames(path, claims),
            ChangedInputs(path, claims),
            ChangedData(path, claims),
            PlaceAliases(path, claims),
            SnapshotAliases(path, claims, reads),
            KeptFeatures(path, claims),
            ModuleAliases(path, claims),
            KeptModels(path, claims),
            LostUpdates(path, claims),
            LostResults(path, claims),
            LostWrites(path, claims),
            UnusedTerms(path, claims),
            LoggedTotals(path, claims),
            DroppedSums(path, claims),
            LeftStatistics(path, claims),
            GraphLeaks(path, claims),
            RecordedAverages(path, claims),
            MovingTargets(path, claims),
            DoubleActivations(path, claims),
            EvenSoftmaxes(path, claims),
            MaskedNans(path, claims),
            AttributeTypos(path, claims),
            DirectForwards(path, claims),
            LayersInForward(path, claims),
            RepeatedModules(path, claims),
            Registration(path, claims, replaced, ledger),
            ReboundModels(path, claims),
            replaced,
            ledger,
            ScaledGradients(path, claims, ledger),
            FrozenParameters(path, claims, ledger),
            MisplacedClipping(path, claims, ledger),
            AppliedTwice(path, claims, ledger),
            SteppedAgain(path, claims, ledger),
            GradientHooks(path, claims),
            UntrainedParameters(path, claims, ledger, replaced),
            ForgottenLeaves(path, claims),
            UndoneFreezes(path, claims),
            FreezesByName(path, claims),
            UndoneModes(path, claims),
            UnusedLayers(path, claims),
            IdleOptimizers(path, claims),
            RemadeOptimizers(path, claims),
            ClearedAccumulation(path, claims, ledger),
            TrainingProtocol(path, claims, ledger, replaced),
            EarlySchedulers(path, claims),
            RepeatedSteps(path, claims, ledger),
        )
        self.heard = HEARD
        """Who hears of a fact: the same on all paths, unless a detector has failed."""

    def hear(self, fact: Fact) -> None:
        kind, listed = fact.__class__, self.listed
        hearers = self.heard.get(kind)
        if hearers is None:
            hearers = self.hearers_of(kind)
        if kind is Assigned and self.heard is HEARD:
            # Most of what is executed are assignments, and the text of most of them concerns few detectors.
            assert isinstance(fact, Assigned)
            known: Hearers | None = fact.statement.__dict__.get(CONCERNED)
            hearers = known if known is not None else concerned(fact.statement, hearers, listed)
        for place, handler in hearers:
            try:
                handler(listed[place], fact)
            except STOPPING:
                raise
            except Exception:
                self.failed(listed[place])

    def hearers_of(self, kind: type[Fact]) -> Hearers:
        """Who hears of such a fact, found out once for all paths."""
        hearers = self.heard[kind] = heard_by(kind, [type(detector) for detector in self.listed])
        return hearers

    def let_go(self) -> None:
        # Each detector holds the path and some of those before it; the ledger alone holds others, which hear of it.
        self.ledger.watchers.clear()
        for part in (self.claims, self):
            part.__dict__.clear()

    def finish(self) -> None:
        listed = self.listed
        order = Detectors.order if self.heard is HEARD else None
        if order is None:
            order = looking_back([type(one) for one in listed])
            if self.heard is HEARD:
                Detectors.order = order
        for detector in [listed[place] for place in order]:
            try:
                detector.finish()
            except STOPPING:
                raise
            except Exception:
                self.failed(detector)

    def failed(self, detector: Any) -> None:
        """A fault of ours in one detector: it hears no more of this path, and the report has a gap where it fell silent."""
        if os.environ.get("GRADSIGHT_STRICT"):
            raise
        name = type(detector).__name__
        log.exception("the detector %s failed", name)
        self.listed = tuple(other for other in self.listed if other is not detector)
        self.heard = {}
        self.path.gap(f"internal error in the detector {name}", kind="detector")


FINISHING = (
    LayersInForward, GradientFlow, DeadTerms, CutFeatures, ZeroFeatures, MovingTargets, FrozenParameters, MisplacedClipping, TrainingProtocol, GradientHooks, ModuleAliases, GraphLeaks, Registration, UntrainedParameters, UndoneFreezes, UnusedLayers, IdleOptimizers,
    RecordedWrites, LeftStatistics, UnusedTerms,
)  # fmt: skip
"""Who looks back first: a step without a backward is not worth a word where something else was found.  The others follow."""
PLACES = {kind: place for place, kind in enumerate(FINISHING)}


def looking_back(detectors: list[type]) -> list[int]:
    """The places of those that conclude something when a path is over, in their order."""
    concluding = [place for place, detector in enumerate(detectors) if hasattr(detector, "finish")]
    return sorted(concluding, key=lambda place: PLACES.get(detectors[place], len(PLACES)))


CONCERNED = "detectors that it concerns"
Question = Callable[[ast.Assign], bool]
Hearer = tuple[int, Callable[[Any, Any], None]]
"""The place of a detector in the list, and the function of its class that hears of a fact."""
Hearers = tuple[Hearer, ...]
HEARD: dict[type[Fact], Hearers] = {}


ASKED: dict[type, list[tuple[Hearer, Question | None]]] = {}
"""By the class of the expression that is assigned: whom it may concern, each with the question to the text whether it does."""


def concerned(statement: ast.Assign, hearers: Hearers, listed: Sequence[Any]) -> Hearers:
    """Which of all that hear of assignments make something of one with this text; found out once for each text."""
    known: Hearers | None = statement.__dict__.get(CONCERNED)
    if known is None:
        kind = statement.value.__class__
        asked = ASKED.get(kind)
        if asked is None:
            asked = ASKED[kind] = [
                (hearer, getattr(detector, "concerned_by", None))
                for hearer in hearers
                if kind in getattr(detector := type(listed[hearer[0]]), "concerning", (kind,))
            ]
        found: list[Hearer] = []
        for hearer, question in asked:
            try:
                if question is None or question(statement):
                    found.append(hearer)
            except Exception:
                # A question that fails is answered by the detector itself, whose faults cost nothing but its own findings.
                found.append(hearer)
        known = statement.__dict__[CONCERNED] = tuple(found)
    return known


def heard_by(kind: type, detectors: list[type]) -> Hearers:
    """Whoever has a method that hears of a fact, in the order in which they are told."""
    name = f"on_{snake_case(kind.__name__)}"
    hearers = [
        (place, getattr(detector, name))
        for place, detector in enumerate(detectors)
        if hasattr(detector, name)
    ]
    if kind in ANNOUNCED:
        hearers.reverse()
    return tuple(hearers)


def snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
