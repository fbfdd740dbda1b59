"""Leaves and gradients handled in ways that torch refuses or does not expect: copies, optimizers, NumPy, races, iterators."""

from __future__ import annotations

import ast

from gradsight.detect.claims import Claims
from gradsight.detect.path import Path
from gradsight.detect.seclusion import starts_from_nothing
from gradsight.interp.python.iteration import name_of_source
from gradsight.model.events import Step
from gradsight.model.trace import (
    BeforeInit,
    CheckpointedWithoutGrad,
    CheckpointRefused,
    FunctionRefused,
    GradRead,
    IteratorExhausted,
    NonLeafCopied,
    NonLeafOptimized,
    NumpyRefused,
    OptimizerRefused,
    ParameterRefused,
)


class MisusedLeaves:
    """One sentence for each of them."""

    def __init__(self, path: Path, claims: Claims) -> None:
        self.path = path
        self.claims = claims

    def on_grad_read(self, fact: GradRead) -> None:
        if fact.racing is not None and fact.racing.site is not None:
            steps = [Step("call", fact.racing.site, "the thread that runs `backward()` is started here")]
            self.claims.add("grad-read-in-race", fact.site, steps, target=fact.tensor.label)
        if fact.tensor.grad is not None:
            self.claims.granted.add(("grad-is-none", fact.site.key))

    def on_non_leaf_copied(self, fact: NonLeafCopied) -> None:
        steps = [Step("made", fact.tensor.site, "computed here, so it is not a leaf")]
        self.claims.add("non-leaf-copied", fact.site, steps, target=fact.tensor.label)

    def on_non_leaf_optimized(self, fact: NonLeafOptimized) -> None:
        tensor, made = fact.tensor, fact.tensor.node
        place = made.site if made is not None else tensor.site
        steps = [Step("needed", fact.site, "this optimizer only takes leaves"), *self.path.call_steps(place)]
        op = made.op if made is not None else ""
        self.claims.add("non-leaf-optimized", place, steps, target=tensor.label, op=op)

    def on_numpy_refused(self, fact: NumpyRefused) -> None:
        steps = [Step("made", fact.tensor.site, "computed here, with a graph")]
        # A method that is called where nothing is recorded may convert what it computes: its callers are elsewhere.
        is_entered = self.path.has_receiver and self.path.context != "script"
        assumption = "it is called with grad mode on" if is_entered else ""
        self.claims.add(
            "numpy-refused", fact.site, steps, assumption, cut="numpy", op="numpy", source=fact.tensor.label
        )

    def on_before_init(self, fact: BeforeInit) -> None:
        self.claims.add("before-super-init", fact.site, [], name=fact.name)

    def on_parameter_refused(self, fact: ParameterRefused) -> None:
        has_graph = fact.value.needs_grad() is not False
        steps = [Step("made", fact.value.site, "a plain tensor, made here")]
        self.claims.add(
            "parameter-refused", fact.site, steps, name=fact.name, graph="yes" if has_graph else ""
        )

    def on_checkpointed_without_grad(self, fact: CheckpointedWithoutGrad) -> None:
        target = self.path.text_of_target(fact.site)
        self.claims.add("checkpoint-without-grad", fact.site, [], target=target)

    def on_checkpoint_refused(self, fact: CheckpointRefused) -> None:
        steps = [
            Step("saved", fact.checkpoint, "this checkpoint is reentrant"),
            *self.path.call_steps(fact.site),
        ]
        self.claims.add("checkpoint-refused", fact.site, steps, target="", how=fact.how)

    def on_optimizer_refused(self, fact: OptimizerRefused) -> None:
        call = fact.site.node
        is_given = isinstance(call, ast.Call) and (call.args or call.keywords)
        is_sure = starts_from_nothing(self.path) and not self.path.premises
        if fact.reason == "empty" and not (is_sure and is_given):
            # A base class, or a model of the caller's, has parameters elsewhere.
            return
        tensor = fact.tensor
        steps = (
            [Step("made", tensor.site, "created here, and put into two groups")] if tensor is not None else []
        )
        name = tensor.label if tensor is not None else ""
        self.claims.add("optimizer-refused", fact.site, steps, target=name, reason=fact.reason)

    def on_function_refused(self, fact: FunctionRefused) -> None:
        what = "the object is created here" if fact.reason == "instance" else "the function is applied here"
        steps = [Step("made" if fact.reason == "instance" else "call", fact.applied, what)]
        self.claims.add("function-refused", fact.site, steps, cls=fact.name, reason=fact.reason)

    def on_iterator_exhausted(self, fact: IteratorExhausted) -> None:
        source, node = fact.source, fact.node
        read = node.iter if isinstance(node, (ast.For, ast.AsyncFor)) else node
        steps = [Step("made", source.site, "the iterator is created here")] if source.site is not None else []
        if source.spent is not None:
            steps.append(Step("read", source.spent, "used up here"))
        self.claims.add(
            "iterator-used-up", self.path.site(read), steps, target=name_of_source(read), refused=fact.refused
        )
