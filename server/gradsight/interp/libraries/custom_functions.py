"""Custom autograd Functions: how many gradients, what is kept on ctx, what is written."""

from __future__ import annotations

from gradsight.interp.libraries.distributions import Distributions
from gradsight.interp.path_state import RaisedError
from gradsight.interp.syntax import (
    computes_only,
    is_declared_otherwise,
    last_return,
    named_last,
    names_called,
    names_computed_with,
)
from gradsight.interp.syntax_parts import attributes_called
from gradsight.model.library_objects import FunctionContext
from gradsight.model.sites import Site, Syntax
from gradsight.model.tensors import IGNORANT, Cut, Node, RequiresGrad, Saved, Tensor, any_requires_grad
from gradsight.model.trace import CustomApplied, CustomReturned, FunctionRefused
from gradsight.model.values import (
    Bound,
    ClassValue,
    Function,
    Instance,
    Seq,
    Unknown,
    Value,
    tensors_in,
)


class CustomFunctions(Distributions):
    """`MyFunction.apply(...)`."""

    def apply_custom_function(
        self, cls: ClassValue, args: list[Value], kwargs: dict[str, Value], node: Syntax
    ) -> Value:
        forward, _ = cls.find("forward")
        backward, _ = cls.find("backward")
        setup, _ = cls.find("setup_context")
        site = self.path.site(node)
        if not isinstance(forward, Function):
            return self.path.gap("autograd function without forward", node)
        context = FunctionContext(cls.name, site)
        unsure = [isinstance(arg, Unknown) and arg.tensor is None and arg.graph is None for arg in args]
        args = [self.taken_for_tensor(arg) for arg in args]
        inputs = [arg for arg in args if isinstance(arg, Tensor)]
        epochs = {tensor: tensor.storage.epoch for tensor in inputs}
        is_open = any(isinstance(arg, Unknown) and not (arg.hint or arg.is_setting) for arg in args)
        flags = [tensor.needs_grad() for tensor in inputs]
        flag = any_requires_grad([*flags, *([IGNORANT] if is_open else [])])
        # Inside forward grad mode is off; what is computed there is not a cut, the Function is the way back.
        before = (self.path.grad_mode, self.path.mode_site)
        self.path.grad_mode = False
        inner_inputs = [self.masked(arg) for arg in args]
        given = inner_inputs if isinstance(setup, Function) else [context, *inner_inputs]
        try:
            with self.path.inside("custom function"):
                result = self.language.call_function(forward, given, kwargs, node)
                if isinstance(setup, Function):
                    passed: list[Value] = [context, Seq("tuple", inner_inputs), result]
                    self.language.call_function(setup, passed, {}, node)
        finally:
            self.path.grad_mode, self.path.mode_site = before
        lost = frozenset().union(*(one.cuts for one in inputs if one.dtype not in ("int", "bool")))
        result = made_elsewhere(result, site, lost)
        for tensor in tensors_in(result) if lost else ():
            # Inside, the inputs have no history; what was cut before is cut from what comes out.
            tensor.cuts = tensor.cuts | lost
        dirty = {tensor.storage for tensor in context.dirty}
        recorded = flag is True and self.path.grad_mode
        kept = without_guesses(context.kept, args, unsure, forward, isinstance(setup, Function))
        if isinstance(backward, Function):
            called = attributes_called(backward.node)
            kept = {name: value for name, value in kept.items() if name not in called}
        outputs_given = tensors_in(result)
        returned = self.tried_backward(backward, context, args, outputs_given, node) if recorded else None
        fact = CustomApplied(
            cls, backward, len(args), inputs, epochs, dirty, kept, result, flag, recorded, site, tuple(args),
            tuple(context.saved), context.saved_at, returned, self.is_once_differentiable(backward),
        )  # fmt: skip
        if self.path.grad_mode and not self.path.inference:
            self.check_dirty_leaves(context, inputs, cls, site)
        if recorded:
            self.check_context(context, outputs_given, result, cls, site)
        outputs = self.wrap_outputs(result, cls, inputs, context, flag, site, fact)
        self.path.tell(fact)
        if self.path.is_watched:
            self.path.tell(CustomReturned(outputs))
        return outputs

    def call_plain_object(
        self, instance: Instance, args: list[Value], kwargs: dict[str, Value], node: Syntax
    ) -> Value:
        """An object without `__call__`; torch refuses `MyFunction()(x)`, as it was before Functions had static methods."""
        if instance.cls.kind == "autograd":
            site = self.path.site(node)
            self.path.refuse(FunctionRefused(instance.cls.name, site, "instance", instance.site or site))
        return self.nn.unknown_result("call of an object without __call__", args, kwargs, node)

    def is_once_differentiable(self, backward: Value) -> bool:
        decorators = getattr(backward.node, "decorator_list", ()) if isinstance(backward, Function) else ()
        return any(named_last(decorator) == "once_differentiable" for decorator in decorators)

    def check_dirty_leaves(
        self, context: FunctionContext, inputs: list[Tensor], cls: ClassValue, site: Site
    ) -> None:
        """A leaf that requires grad may not be marked as written."""
        for tensor in inputs:
            if any(dirty.storage is tensor.storage for dirty in context.dirty):
                self.autograd.check_writable(tensor, f"{cls.name}.apply", site, tensor.needs_grad())

    def check_context(
        self, context: FunctionContext, outputs: list[Tensor], result: Value, cls: ClassValue, site: Site
    ) -> None:
        """Torch saves tensors only, and wants back what was marked as written."""
        if context.number_saved_at is not None:
            self.path.refuse(FunctionRefused(cls.name, context.number_saved_at, "number", site))
        returned = {tensor.storage for tensor in outputs}
        is_left_out = isinstance(result, Tensor) and any(
            tensor.storage not in returned for tensor in context.dirty
        )
        if is_left_out and context.dirty_at is not None:
            self.path.refuse(FunctionRefused(cls.name, context.dirty_at, "dirty", site))

    def tried_backward(
        self,
        backward: Value,
        context: FunctionContext,
        args: list[Value],
        outputs: list[Tensor],
        node: Syntax,
    ) -> tuple[Value, ...] | None:
        """What backward returns for gradients like the outputs, if it only computes."""
        if not isinstance(backward, Function) or not outputs or not computes_only(backward.node):
            return None
        site = self.path.site(node)
        gradients: list[Value] = [Tensor(site, dtype=one.dtype, shape=one.shape) for one in outputs]
        context.needs_input_grad = [isinstance(arg, Tensor) and arg.needs_grad() is not False for arg in args]
        try:
            with self.path.aside(), self.path.inside("custom function"):
                result = self.language.call_function(backward, [context, *gradients], {}, node)
        except RaisedError:
            return None
        finally:
            context.needs_input_grad = None
        if isinstance(result, Seq):
            return tuple(result.items) if result.exact else None
        return (result,)

    def taken_for_tensor(self, value: Value) -> Value:
        """An argument, or the tensor that an unknown one is taken for."""
        tensor = self.entry.assumed_tensor(value) if isinstance(value, Unknown) else None
        return value if tensor is None else tensor

    def masked(self, value: Value) -> Value:
        """Inside forward a tensor is seen without its history."""
        if not isinstance(value, Tensor):
            return value
        inner = Tensor(value.site, value.storage, value.counter, dtype=value.dtype, shape=value.shape)
        inner.label = value.label
        inner.source = value
        inner.dense = value.dense
        inner.leaf_made = False
        return inner

    def wrap_outputs(
        self,
        result: Value,
        cls: ClassValue,
        inputs: list[Tensor],
        context: FunctionContext,
        flag: RequiresGrad,
        site: Site,
        fact: CustomApplied,
    ) -> Value:
        recording = flag if self.path.grad_mode and not self.path.inference else False
        if recording is False:
            if flag is not False and not self.path.grad_mode:
                lost = self.autograd.mode_cut(cls.name, [("", tensor) for tensor in inputs], site)
                for tensor in tensors_in(result):
                    tensor.cuts = tensor.cuts | lost
            return result
        ended = gradients_ended(fact)
        edges = [
            edge
            for tensor in inputs
            if (edge := tensor.edge()) is not None and all(tensor is not end for end in ended)
        ]
        grad_node = Node(cls.name, site, edges, recording, self.path.tick)
        grad_node.customs = (fact,)
        cuts = frozenset(
            Cut("op", f"{cls.name}.backward", self.place_of_gradients(fact), end, self.path.tick)
            for end in ended
        )
        for tensor in context.saved:
            grad_node.saved.append(Saved(tensor, "input", self.autograd.saves_are_certain))
            grad_node.holds = "always"
        silent = {id(tensor) for tensor in context.non_differentiable}
        for tensor in tensors_in(result):
            if id(tensor) in silent or tensor.dtype in ("int", "bool"):
                continue
            owner = next((source for source in inputs if source.storage is tensor.storage), None)
            target = tensor
            if owner is not None and owner.storage in {t.storage for t in context.dirty}:
                target = owner
            target.node = grad_node
            target.requires_grad = recording
            tensor.node = grad_node
            tensor.requires_grad = recording
            tensor.base = None
            is_view = owner is not None and target is tensor and tensor is not owner and recording is True
            if is_view and not tensor.storage.writes:
                # torch lets nobody write a view that a Function made, nor an input that it handed on; what the Function
                # has written itself by then is its own affair.
                tensor.base, tensor.one_of_many = owner, f"{cls.name}.apply"
            if cuts:
                tensor.cuts = tensor.cuts | cuts
        return result

    def place_of_gradients(self, fact: CustomApplied) -> Site:
        """Where backward returns what it has computed."""
        last = last_return(fact.backward.node) if isinstance(fact.backward, Function) else None
        return self.entry.place_in(fact.backward, last) if last is not None else fact.site

    # -- autograd ----------------------------------------------------------------------------------------------------

    def autograd_grad(self, args: list[Value], kwargs: dict[str, Value], node: Syntax) -> Value:
        return self.autograd.grad_call(args, kwargs, node)

    def autograd_backward(self, args: list[Value], kwargs: dict[str, Value], node: Syntax) -> Value:
        roots = args[0] if args else kwargs.get("tensors")
        losses = tensors_in(roots)
        if not losses or (isinstance(roots, Seq) and not roots.exact):
            self.path.gradients_unknown = True
        given = dict(zip(("gradient", "retain_graph", "create_graph"), args[1:]))
        if "grad_tensors" in kwargs:
            given["gradient"] = kwargs["grad_tensors"]
        given.update(
            {key: value for key, value in kwargs.items() if key in ("retain_graph", "create_graph", "inputs")}
        )
        each = self.autograd.gradients_for(roots, given.get("gradient"), self.path.site(node))
        for index, loss in enumerate(losses):
            final = index == len(losses) - 1
            options = dict(given) if final else {**given, "retain_graph": True}
            if each:
                options["gradient"] = each[index]
            self.autograd.backward_call(loss, [], options, node, "grad_tensors")
        if given.get("retain_graph") in (None, False) and given.get("create_graph") in (None, False):
            self.autograd.free(
                [edge for loss in losses if (edge := loss.edge()) is not None], self.path.site(node)
            )
        return None

    # -- ctx ---------------------------------------------------------------------------------------------------------

    def context_method(
        self, context: FunctionContext, name: str, args: list[Value], kwargs: dict[str, Value], node: Syntax
    ) -> Value:
        tensors = [tensor for arg in args for tensor in tensors_in(arg)]
        if name == "save_for_backward":
            context.saved.extend(tensors)
            context.saved_at = self.path.site(node)
            if any(isinstance(arg, (int, float, str)) for arg in args):
                context.number_saved_at = context.saved_at
        elif name == "mark_dirty":
            context.dirty.extend(tensors)
            context.dirty_at = self.path.site(node)
        elif name == "mark_non_differentiable":
            context.non_differentiable.extend(tensors)
        return None

    def context_attribute(self, context: FunctionContext, name: str) -> Value:
        if name in context.kept:
            return context.kept[name][0]
        if name in ("saved_tensors", "saved_variables"):
            return Seq("tuple", list(context.saved))
        if name == "needs_input_grad" and context.needs_input_grad is not None:
            return Seq("tuple", list(context.needs_input_grad))
        if name == "needs_input_grad":
            return Seq("tuple", [Unknown("needs_input_grad", "bool")], False)
        return Bound(context, name)

    def set_context_attribute(self, context: FunctionContext, name: str, value: Value, node: Syntax) -> None:
        context.kept[name] = (value, self.path.site(node))


def without_guesses(
    kept: dict[str, tuple[Value, Site]],
    args: list[Value],
    unsure: list[bool],
    forward: Function,
    has_setup: bool,
) -> dict[str, tuple[Value, Site]]:
    """What is kept on ctx, but for arguments that nothing shows to be tensors: `ctx.group = group`."""
    parameters = [*forward.node.args.posonlyargs, *forward.node.args.args]
    names = [one.arg for one in parameters]
    given = names if has_setup else names[1:]
    computed = names_computed_with(forward.node)
    others = names_called(forward.node) | {one.arg for one in parameters if is_declared_otherwise(one)}
    guessed = {
        arg.storage
        for name, arg, is_unsure in zip(given, args, unsure)
        if isinstance(arg, Tensor) and (name in others or (is_unsure and name not in computed))
    }
    if not guessed:
        return kept
    return {
        name: (value, place)
        for name, (value, place) in kept.items()
        if not (isinstance(value, Tensor) and value.storage in guessed)
    }


def gradients_ended(fact: CustomApplied) -> list[Tensor]:
    """Inputs that need a gradient and for which backward returns None."""
    if (
        fact.returned is None
        or len(fact.returned) < len(fact.given)
        or last_return(fact.backward.node) is None
    ):
        return []
    return [
        value
        for value, gradient in zip(fact.given, fact.returned)
        if isinstance(value, Tensor)
        and gradient is None
        and value.needs_grad() is True
        and sum(other is value for other in fact.given) == 1
    ]


def made_elsewhere(result: Value, site: Site, cuts: frozenset[Cut]) -> Value:
    """What a forward returns, with new tensors for what code that is not known made: an extension's kernel."""
    if type(result) is Unknown and not (result.hint or result.is_setting):
        made = Tensor(site, dtype="?")
        made.cuts = cuts
        return made
    if isinstance(result, Seq) and result.kind == "tuple" and result.exact:
        items = [made_elsewhere(item, site, cuts) if type(item) is Unknown else item for item in result.items]
        return Seq("tuple", items, True, result.site)
    return result
