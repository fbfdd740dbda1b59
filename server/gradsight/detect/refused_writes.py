"""Writes that torch refuses at once: leaves, one of several views, overlapping memory, `out=`."""

from __future__ import annotations

from gradsight.detect.claims import Claims
from gradsight.detect.path import Path
from gradsight.model.events import Step
from gradsight.model.tensors import views_made_by
from gradsight.model.trace import OutdatedViewUsed, OutRefused, WriteRefused


class RefusedWrites:
    """Tells what is written, and what forbids it."""

    def __init__(self, path: Path, claims: Claims) -> None:
        self.path = path
        self.claims = claims

    def on_out_refused(self, fact: OutRefused) -> None:
        self.claims.add("out-refused", fact.site, [], fact.assumption, op=fact.op)

    def on_outdated_view_used(self, fact: OutdatedViewUsed) -> None:
        view, write = fact.view, fact.write
        steps = [
            Step("made", view.site, views_made_by(view)),
            Step("written", write.site, "the tensor behind them is written here"),
        ]
        self.claims.add(
            "shared-view-written",
            fact.site,
            steps,
            op=write.op,
            view=view.one_of_many,
            target=view.label,
            reason="used",
        )

    def on_write_refused(self, fact: WriteRefused) -> None:
        if fact.reason == "leaf":
            self.leaf_written(fact)
        elif fact.reason == "inference":
            self.inference_tensor_written(fact)
        elif fact.reason == "resize":
            self.tensor_resized(fact)
        elif fact.reason == "transform":
            self.written_in_transform(fact)
        else:
            self.shared_memory_written(fact)

    def leaf_written(self, fact: WriteRefused) -> None:
        leaf, text = fact.other, self.path.text_of_target(fact.site)
        is_view = fact.tensor.base is not None
        if fact.assumption:
            self.claims.add(
                "leaf-written",
                fact.site,
                [],
                fact.assumption,
                op=fact.op,
                target=text,
                leaf=text,
                view=is_view,
            )
            return
        steps = [Step("made", leaf.site, "the leaf is created here")]
        steps += self.path.call_steps(fact.site)
        self.claims.add(
            "leaf-written",
            fact.site,
            steps,
            op=fact.op,
            target=text or leaf.label,
            leaf=leaf.label or text,
            view=is_view,
        )

    def tensor_resized(self, fact: WriteRefused) -> None:
        text = self.path.text_of_target(fact.site) or fact.tensor.label
        steps = [
            Step("made", fact.other.site, "created here, and requires grad"),
            *self.path.call_steps(fact.site),
        ]
        self.claims.add("leaf-written", fact.site, steps, op=fact.op, target=text, leaf=text, resized=True)

    def written_in_transform(self, fact: WriteRefused) -> None:
        text = self.path.text_of_target(fact.site) or fact.tensor.label
        steps = [Step("made", fact.other.site, "created here, outside of what the transform follows")]
        steps += self.path.call_steps(fact.site)
        self.claims.add(
            "written-in-transform", fact.site, steps, op=fact.op, target=text, transform=fact.transform
        )

    def inference_tensor_written(self, fact: WriteRefused) -> None:
        made, text = fact.tensor.inference_site, self.path.text_of_target(fact.site)
        steps = [Step("made", made, "created here in inference mode")] if made is not None else []
        self.claims.add(
            "backward-without-graph",
            fact.site,
            steps,
            cut="inference",
            op=fact.op,
            loss=text,
            source=text,
            refused="write",
        )

    def shared_memory_written(self, fact: WriteRefused) -> None:
        target, view = fact.tensor, ""
        text = self.path.text_of_target(fact.site)
        told = "the view is created here, with grad mode off"
        if fact.reason == "many":
            view, told = target.one_of_many, views_made_by(target)
            if view.startswith("register_"):
                text = target.label or "the result"
        elif fact.reason == "detach":
            told = "the view is created here"
        elif fact.reason == "operands":
            told = "the overlapping tensor is created here"
        elif fact.reason == "overlap":
            view = target.overlapping
            told = f"`{view}` makes several elements share memory here"
        self.claims.add(
            "shared-view-written",
            fact.site,
            [Step("made", fact.other.site, told)],
            fact.assumption,
            op=fact.op,
            view=view,
            target=text,
            reason=fact.reason,
        )
