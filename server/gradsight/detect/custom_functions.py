"""Custom Functions: inputs written without `mark_dirty`, gradients miscounted, tensors kept on ctx."""

from __future__ import annotations

import ast

from gradsight.detect.claims import Claims
from gradsight.detect.gradient_hooks import edits_of
from gradsight.detect.inner_derivatives import inner_derivatives
from gradsight.detect.path import Path
from gradsight.detect.returned_gradients import count_returned
from gradsight.interp.syntax import called_attribute, last_return, names_read, own_statements
from gradsight.interp.syntax_parts import parts_of, syntax_parts
from gradsight.interp.tensors.shapes import can_be_summed, spelled
from gradsight.model.events import Step
from gradsight.model.sites import Site
from gradsight.model.tensors import INTEGRAL, Node, Tensor
from gradsight.model.trace import CustomApplied, Walked
from gradsight.model.values import MISSING, Function, Seq, Unknown, tensors_in

FunctionSyntax = ast.FunctionDef | ast.AsyncFunctionDef


class CustomFunctionFaults:
    """What `apply` shows of a forward and its backward."""

    def __init__(self, path: Path, claims: Claims) -> None:
        self.path = path
        self.claims = claims
        self.walks: dict[Node, int] = {}

    def on_custom_applied(self, fact: CustomApplied) -> None:
        self.check_dirty(fact)
        self.check_count(fact)
        self.check_context(fact)

    def on_walked(self, fact: Walked) -> None:
        for node in fact.nodes:
            if not node.customs:
                continue
            if node.op == "autograd.grad":
                for applied in node.customs:
                    self.check_differentiated_again(applied, fact.site)
            else:
                self.walks[node] = self.walks.get(node, 0) + 1
                self.check_gradient_shapes(node.customs[0])
                self.check_backward_exists(node.customs[0], fact.site)
                self.check_saved_written(node.customs[0], self.walks[node], fact.site)
                self.check_inner_derivatives(node.customs[0], fact.site)

    def check_backward_exists(self, applied: CustomApplied, site: Site) -> None:
        """A Function without `backward` works until somebody asks for its gradient."""
        if any(isinstance(base, Unknown) for base in applied.cls.bases):
            return
        if applied.cls.find("symbolic")[0] is not MISSING:
            # It says how it is exported, and stands in models that are exported and not trained.
            return
        if applied.backward is MISSING and applied.cls.find("vjp")[0] is MISSING:
            self.claims.add(
                "function-refused",
                applied.site,
                [Step("needed", site, "this backward needs its gradient")],
                cls=applied.cls.name,
                reason="missing",
            )

    def check_inner_derivatives(self, applied: CustomApplied, site: Site) -> None:
        """A backward that differentiates what it computes: without `create_graph`, it runs with grad mode off."""
        backward, call = applied.backward, site.node
        if not isinstance(backward, Function) or isinstance(backward.node, ast.Lambda):
            return
        if isinstance(call, ast.Call) and any(one.arg in (None, "create_graph") for one in call.keywords):
            return
        for inner, made in inner_derivatives(backward):
            is_lenient = any(one.arg not in ("retain_graph", "grad_outputs") for one in inner.keywords)
            steps = [
                Step("made", self.path.place_in(backward, made), "a backward records nothing"),
                Step("needed", site, "this backward runs it"),
            ]
            kind = "path-cut" if is_lenient else "backward-without-graph"
            place = self.path.place_in(backward, inner)
            source = ast.unparse(inner.args[0])
            self.claims.add(kind, place, steps, cut="no_grad", refused="inner", source=source)

    def check_gradient_shapes(self, applied: CustomApplied) -> None:
        """Torch sums what was broadcast, and refuses every other shape."""
        if applied.returned is None or not isinstance(applied.backward, Function):
            return
        place = last_return(applied.backward.node)
        for value, gradient in zip(applied.given, applied.returned):
            if not isinstance(value, Tensor) or value.needs_grad() is not True or place is None:
                continue
            is_number = isinstance(gradient, (int, float))
            if is_number or (isinstance(gradient, Tensor) and not can_be_summed(gradient.shape, value.shape)):
                self.claims.add(
                    "gradient-refused",
                    self.path.place_in(applied.backward, place),
                    [Step("call", applied.site, "the function is applied here")],
                    target=value.label,
                    reason="number" if is_number else "shape",
                    how="backward of a Function",
                    given=spelled(gradient.shape) if isinstance(gradient, Tensor) else str(gradient),
                    wanted=spelled(value.shape),
                )

    def check_saved_written(self, applied: CustomApplied, walks: int, site: Site) -> None:
        """A backward that writes what it was left: others see it, and the next backward finds it changed."""
        backward = applied.backward
        if not isinstance(backward, Function) or isinstance(backward.node, ast.Lambda):
            return
        names = saved_names(backward.node)
        shown = {tensor.storage for tensor in [*applied.inputs, *tensors_in(applied.result)]}
        for place, name in edits_of(backward.node, set(names)):
            position = names.get(name)
            saved = (
                applied.saved[position] if position is not None and position < len(applied.saved) else None
            )
            if saved is None or (saved.storage not in shown and walks < 2):
                continue
            steps = [Step("needed", site, "this backward runs it")]
            if applied.saved_at is not None:
                steps.insert(0, Step("saved", applied.saved_at, "saved here"))
            self.claims.add(
                "saved-written-in-backward",
                self.path.place_in(backward, place),
                steps,
                name=name,
                cls=applied.cls.name,
                shared=saved.storage in shown,
            )

    def check_differentiated_again(self, applied: CustomApplied, site: Site) -> None:
        """A backward that is differentiated itself: what forward computed and saved has no graph there."""
        backward = applied.backward
        if not isinstance(backward, Function) or isinstance(backward.node, ast.Lambda):
            return
        steps = [Step("call", applied.site, "the function is applied here")]
        if applied.once:
            steps.insert(
                0,
                Step(
                    "made", self.path.place_in(backward, backward.node), "marked `once_differentiable` here"
                ),
            )
            self.claims.add("differentiated-twice", site, steps, cls=applied.cls.name, reason="once", name="")
            return
        outside = {tensor.storage for tensor in [*applied.inputs, *tensors_in(applied.result)]}
        names = saved_names(backward.node)
        used = names_used(backward.node)
        steps.append(Step("needed", site, "this backward differentiates its gradient"))
        for name, position in names.items():
            saved = applied.saved[position] if position < len(applied.saved) else None
            if saved is None or name not in used or saved.storage in outside or applied.saved_at is None:
                continue
            if not comes_from(saved, applied.inputs):
                continue
            self.claims.add(
                "differentiated-twice",
                applied.saved_at,
                steps,
                cls=applied.cls.name,
                reason="saved",
                name=name,
            )

        read = attributes_read(backward.node)
        for name, (value, place) in applied.kept.items():
            if (
                isinstance(value, Tensor)
                and name in read
                and value.storage not in outside
                and comes_from(value, applied.inputs)
            ):
                self.claims.add(
                    "differentiated-twice",
                    place,
                    steps,
                    cls=applied.cls.name,
                    reason="saved",
                    name=f"ctx.{name}",
                )

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
        if isinstance(call, ast.Call) and any(not self.is_counted(argument) for argument in call.args):
            return
        forward, _ = fact.cls.find("forward")
        if isinstance(forward, Function) and marks_all_it_returns(forward.node):
            # Torch never calls that backward.
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

    def is_counted(self, argument: ast.expr) -> bool:
        """Whether it is known how many arguments this is: one, or the elements of a whole tuple."""
        if not isinstance(argument, ast.Starred):
            return True
        given = argument.value
        frame = self.path.frame
        held = frame.namespace.get(given.id) if isinstance(given, ast.Name) else None
        own = frame.function.node.args.vararg if frame.function is not None else None
        if (
            frame.call_site is None
            and own is not None
            and isinstance(given, ast.Name)
            and own.arg == given.id
        ):
            # Nobody is seen to call this function: how many it is given is made up.
            return False
        return isinstance(held, Seq) and held.exact and held.kind == "tuple"

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


def saved_names(backward: FunctionSyntax) -> dict[str, int]:
    """The names under which a backward unpacks `ctx.saved_tensors`, with their positions."""
    found: dict[str, int] = {}
    for statement in own_statements(backward.body):
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            continue
        value, target = statement.value, statement.targets[0]
        position = None
        if isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Constant):
            position = value.slice.value
            value = value.value
        if not isinstance(value, ast.Attribute) or value.attr != "saved_tensors":
            continue
        if isinstance(target, (ast.Tuple, ast.List)) and position is None:
            found |= {one.id: index for index, one in enumerate(target.elts) if isinstance(one, ast.Name)}
        elif isinstance(target, ast.Name) and isinstance(position, int):
            found[target.id] = position
    return found


def names_used(backward: FunctionSyntax) -> set[str]:
    """The names that the rest of a backward reads."""
    return {
        name
        for statement in own_statements(backward.body)
        if not (isinstance(statement, ast.Assign) and "saved_tensors" in ast.unparse(statement.value))
        for name in names_read(statement)
    }


def comes_from(saved: Tensor, inputs: list[Tensor]) -> bool:
    """Whether forward computed a floating-point tensor, whose derivative is not zero, from what it was given."""
    if saved.dtype in INTEGRAL or saved.dtype == "?" or saved.leaf_made:
        return False
    return any(tensor.needs_grad() is True for tensor in inputs)


def attributes_read(function: ast.AST) -> set[str]:
    """The attributes of its first argument that a backward reads: `ctx.scale`."""
    given = function.args.args[0].arg if isinstance(function, ast.FunctionDef) and function.args.args else ""
    return {
        part.attr
        for part in syntax_parts(function)
        if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name) and part.value.id == given
    }


def marks_all_it_returns(forward: ast.AST) -> bool:
    """Whether a forward returns names alone, and says of each that nothing is differentiated through it."""
    marked = {
        argument.id
        for call in parts_of(forward, ast.Call)
        if called_attribute(call) == "mark_non_differentiable"
        for argument in call.args
        if isinstance(argument, ast.Name)
    }
    given = [one.value for one in parts_of(forward, ast.Return) if one.value is not None]
    parts = [part for one in given for part in (one.elts if isinstance(one, ast.Tuple) else [one])]
    return bool(marked) and all(isinstance(one, ast.Name) and one.id in marked for one in parts)
