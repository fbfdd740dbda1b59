"""What happened on a path, as typed facts: the machine emits them, and whoever listens draws conclusions.

A fact is past and without judgement: it says that a tensor was written, not that it should not have been.  Facts hold the
machine's own objects (tensors, values, places), which go on changing: a listener looks at them when it hears of them.

*Announced*: a fact that is told before its effect (`Stepping`); the others are told when it has happened (`Stepped`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from gradsight.model.trace.gradients import (
    AbsentGradUsed,
    Backward,
    BackwardRun,
    CheckpointedWithoutGrad,
    Cleared,
    Clearing,
    CustomApplied,
    Declared,
    Frozen,
    GradAssigned,
    GradRead,
    GradRequested,
    GraphFound,
    Hooked,
    Identified,
    IteratorExhausted,
    SavedChanged,
    Scaled,
    ScalerStepping,
    TransformApplied,
    Transformed,
    Walked,
    Wrapped,
)
from gradsight.model.trace.language import (
    Assigned,
    Assigning,
    CallReturned,
    ClassTensorRead,
    Collected,
    ContainerMade,
    ForwardReturned,
    GaveUp,
    ItemRead,
    ItemStoring,
    Iterated,
    MethodReturned,
    NameRead,
    PartsSorted,
    Stored,
)
from gradsight.model.trace.looks import (
    ArgumentsBound,
    CaseSelected,
    ConditionAsked,
    CustomReturned,
    Entered,
    HandedOut,
    LeafMade,
    Left,
    LoopEnded,
    NameSeen,
    OperandsSaved,
    Recording,
    ResultsMade,
)
from gradsight.model.trace.refusals import (
    BeforeInit,
    CheckpointRefused,
    FlagRefused,
    FreedNeeded,
    FunctionRefused,
    GradientRefused,
    InferenceSaved,
    NoGraph,
    NonLeafCopied,
    NonLeafOptimized,
    NotScalar,
    NumpyRefused,
    OptimizerRefused,
    OutdatedViewUsed,
    OutRefused,
    ParameterRefused,
    SavedOverwritten,
    WriteRefused,
)
from gradsight.model.trace.tensors import (
    Applied,
    Augmented,
    Combined,
    CutByMode,
    DataAssigned,
    Read,
    ResultDropped,
    RowsWritten,
    Used,
    Viewed,
    Wrote,
)
from gradsight.model.trace.training import (
    AttributeInvented,
    AttributeSet,
    ChildrenChanged,
    ChildrenChanging,
    Copied,
    ForwardCalled,
    InputShown,
    LayerMade,
    ModuleHooked,
    ModuleWrapped,
    StandInApplied,
    StateLoaded,
    StateLoading,
    Stepped,
    Stepping,
)

Fact = (
    Used | Viewed | Applied | Combined | Augmented | Wrote | RowsWritten | DataAssigned | Read | CutByMode | ResultDropped
    | Declared | Wrapped | Backward | AbsentGradUsed | Identified | GradAssigned | Clearing | Cleared | Scaled | Hooked | CustomApplied
    | GradRead | GradRequested | WriteRefused | OutdatedViewUsed | OutRefused | InferenceSaved | NumpyRefused | NonLeafCopied
    | NonLeafOptimized | BeforeInit | ParameterRefused | NoGraph | NotScalar | SavedOverwritten | FreedNeeded | SavedChanged | GraphFound | Walked
    | CheckpointedWithoutGrad | IteratorExhausted | Transformed | TransformApplied
    | Stepping | Stepped | LayerMade | AttributeSet | AttributeInvented | ChildrenChanging | ChildrenChanged | Copied
    | StateLoading | StateLoaded | Assigning | Assigned | ContainerMade | Stored | Collected | ItemStoring | ItemRead | Iterated | PartsSorted
    | ClassTensorRead | NameRead | CallReturned | GaveUp | ForwardReturned | ForwardCalled | ModuleHooked | InputShown | ScalerStepping
    | MethodReturned | OptimizerRefused | FunctionRefused | CheckpointRefused | FlagRefused | GradientRefused | Frozen | ModuleWrapped | StandInApplied
    | NameSeen | ConditionAsked | ArgumentsBound | CaseSelected | Recording | ResultsMade | OperandsSaved | LoopEnded | HandedOut | LeafMade
    | Entered | Left | CustomReturned
)  # fmt: skip

ANNOUNCED: frozenset[type] = frozenset({
    ArgumentsBound, Assigning, ChildrenChanging, Clearing, CutByMode, ForwardCalled, Identified, ItemStoring,
    Iterated, Read, Recording, ScalerStepping, StateLoading, Stepping, Used, Viewed,
})  # fmt: skip
"""Facts that are told before their effect."""
Handler = Callable[[Any], None]


class Listener(Protocol):
    """Whoever wants to hear of facts."""

    def hear(self, fact: Fact) -> None:
        """A fact happened."""

    def finish(self) -> None:
        """The path is over."""

    def let_go(self) -> None:
        """Nobody looks at the path any more."""


__all__ = [
    "AbsentGradUsed",
    "Applied",
    "ArgumentsBound",
    "Assigned",
    "Assigning",
    "AttributeInvented",
    "AttributeSet",
    "Augmented",
    "Backward",
    "BackwardRun",
    "BeforeInit",
    "CallReturned",
    "CaseSelected",
    "CheckpointRefused",
    "CheckpointedWithoutGrad",
    "ChildrenChanged",
    "ChildrenChanging",
    "ClassTensorRead",
    "Cleared",
    "Clearing",
    "Collected",
    "Combined",
    "ConditionAsked",
    "ContainerMade",
    "Copied",
    "CustomApplied",
    "CustomReturned",
    "CutByMode",
    "DataAssigned",
    "Declared",
    "Entered",
    "Fact",
    "FlagRefused",
    "ForwardCalled",
    "ForwardReturned",
    "FreedNeeded",
    "Frozen",
    "FunctionRefused",
    "GaveUp",
    "GradAssigned",
    "GradRead",
    "GradRequested",
    "GradientRefused",
    "GraphFound",
    "HandedOut",
    "Handler",
    "Hooked",
    "Identified",
    "InferenceSaved",
    "InputShown",
    "ItemRead",
    "ItemStoring",
    "Iterated",
    "IteratorExhausted",
    "LayerMade",
    "LeafMade",
    "Left",
    "Listener",
    "LoopEnded",
    "MethodReturned",
    "ModuleHooked",
    "ModuleWrapped",
    "NameRead",
    "NameSeen",
    "NoGraph",
    "NonLeafCopied",
    "NonLeafOptimized",
    "NotScalar",
    "NumpyRefused",
    "OperandsSaved",
    "OptimizerRefused",
    "OutRefused",
    "OutdatedViewUsed",
    "ParameterRefused",
    "PartsSorted",
    "Read",
    "Recording",
    "ResultDropped",
    "ResultsMade",
    "RowsWritten",
    "SavedChanged",
    "SavedOverwritten",
    "Scaled",
    "ScalerStepping",
    "StandInApplied",
    "StateLoaded",
    "StateLoading",
    "Stepped",
    "Stepping",
    "Stored",
    "TransformApplied",
    "Transformed",
    "Used",
    "Viewed",
    "Walked",
    "Wrapped",
    "WriteRefused",
    "Wrote",
]
