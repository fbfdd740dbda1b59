"""Calling modules: forward of the analysed code, torch's layers by their facts, forward hooks."""

from __future__ import annotations

from gradsight.interp.tensors.fact_selection import bind
from gradsight.interp.tensors.layer_runs import RUN, LayerRun, run_of
from gradsight.interp.tensors.module_methods import ModuleMethods
from gradsight.interp.tensors.sequences import lay_out
from gradsight.interp.tensors.shapes import PER_ITEM, by_class
from gradsight.model.sites import Syntax
from gradsight.model.tensors import Maybe, Node, Tensor, any_requires_grad
from gradsight.model.trace import Applied, GaveUp, InputShown
from gradsight.model.unfinished import CONTAINERS
from gradsight.model.values import (
    Function,
    Instance,
    Layer,
    Module,
    Seq,
    Unknown,
    Value,
    module_state,
    tensors_in,
)
from gradsight.ops.traits import layer_fact

HOOKED_VIEW = "register_full_backward_hook"


class Modules(ModuleMethods):
    """Applying a module to its input."""

    def call_module(
        self, instance: Instance, args: list[Value], kwargs: dict[str, Value], node: Syntax
    ) -> Value:
        state = instance.module
        hooked = state is not None and (state.pre_hooks or state.forward_hooks or state.backward_hooks)
        started = self.path.tick
        if hooked:
            args = self.run_pre_hooks(instance, args, node)
        result = self.apply_module(instance, args, kwargs, node)
        if instance.escaped:
            self.path.tell(InputShown(None, started))
        return self.run_forward_hooks(instance, args, result, node, started) if hooked else result

    def apply_module(
        self, instance: Instance, args: list[Value], kwargs: dict[str, Value], node: Syntax
    ) -> Value:
        method, _ = instance.cls.find("forward")
        if "forward" in instance.attributes:
            return self.language.call(instance.attributes["forward"], args, kwargs, node)
        if isinstance(method, Function):
            return self.language.call_function(method, [instance, *args], kwargs, node)
        layer = instance.attributes.get("<layer>")
        if isinstance(layer, Layer):
            if instance.open and layer.name in CONTAINERS:
                # It was not followed to the end of its `__init__`, and has more parts than are seen.
                layer.options["inexact"] = True
            return self.call_layer(layer, args, kwargs, node)
        return self.unknown_result("module without forward", args, kwargs, node)

    def call_layer(self, layer: Layer, args: list[Value], kwargs: dict[str, Value], node: Syntax) -> Value:
        state, started = layer.module, self.path.tick
        if not (state.pre_hooks or state.forward_hooks or state.backward_hooks):
            result = self.apply_layer(layer, args, kwargs, node)
            if layer.escaped:
                self.path.tell(InputShown(None, started))
            return result
        args = self.run_pre_hooks(layer, args, node)
        with self.path.inside("hooked layer"):
            result = self.apply_layer(layer, args, kwargs, node)
        return self.run_forward_hooks(layer, args, result, node, started)

    def apply_layer(self, layer: Layer, args: list[Value], kwargs: dict[str, Value], node: Syntax) -> Value:
        name = layer.name
        hiding = layer.attributes.get("forward")
        if hiding is not None:
            # An attribute of the object hides the method of its class.
            return self.language.call(hiding, args, kwargs, node)
        if name == "nn.Sequential":
            if not args and "input" not in kwargs:
                return Unknown("Sequential without input")
            value = args[0] if args else kwargs["input"]
            if layer.options.get("inexact"):
                return self.unknown_layer_result(layer, [*args, *kwargs.values()], node)
            children = list(
                self.objects.iterate_layer(layer, 0)[0]
                if any(key.isdigit() for key in layer.attributes)
                else [v for _, v in self.children_of(layer)]
            )
            run = run_of(layer, children, value, self.path.frame)
            with self.path.inside("row of layers", node):
                for place, child in enumerate(children):
                    if run is None or not run.start <= place < run.stop:
                        value = self.language.call(child, [value], {}, node)
                    elif place == run.start:
                        value = self.apply_run(run, value, node)
            return value
        if name in CONTAINERS:
            return self.path.gap("call of a container of modules", node)
        fact = self.path.table.find(name)
        inputs = [self.assume_input(arg) for arg in args]
        if fact is None or layer.options.get("unknown"):
            return self.unknown_layer_result(layer, [*args, *kwargs.values()], node)
        bound = bind(fact, inputs, {key: self.assume_input(value) for key, value in kwargs.items()})
        replaced = replaced_parameters(layer)
        if any(isinstance(value, Unknown) for value in replaced.values()):
            self.path.tell(GaveUp("a weight that is not known", [layer]))
            return self.unknown_layer_result(layer, [*args, *kwargs.values()], node)
        own = {key: layer.attributes.get(key) for key in layer.module.registered} | replaced
        if fact.names_all_parameters:
            bound["self.parameters"] = Seq(
                "list", [value for value in own.values() if isinstance(value, Tensor)]
            )
        else:
            for key, value in own.items():
                if isinstance(value, Tensor):
                    bound[f"self.{key}"] = value
        if name == "nn.Flatten":
            # `torch.flatten` with these options: it hands back what has nothing to be flattened.
            bound["start_dim"] = layer.options.get("start_dim", 1)
            bound["end_dim"] = layer.options.get("end_dim", -1)
        settings = {**layer.options, "training": layer.module.training}
        case, certain = self.facts.select_case(fact, bound, settings)
        before, self.autograd.write_place = self.autograd.write_place, layer.site
        self.autograd.exchanges_batch = layer.options.get("batch_first", False) is not False
        result = self.autograd.record(name.rpartition(".")[2], case, bound, node, certain)
        self.autograd.write_place = before
        if not self.path.grad_mode:
            self.path.last_inference = self.path.tick
        self.autograd.exchanges_batch = False
        self.shape_of_layer(layer, result, bound)
        lay_out(name, layer.options, bound.get("input", bound.get("query")), result)
        first = next(iter(bound.values()), None)
        given = list(bound.values())
        self.path.tell(Applied(name.rpartition(".")[2], first, given, result, node, layer.options))
        return result

    def apply_run(self, run: LayerRun, value: Value, node: Syntax) -> Value:
        """Layers of a library's network that nobody looks between, as one operator."""
        bound: dict[str, Value] = {
            "input": self.assume_input(value),
            "self.weights": Seq("list", list(run.weights.values())),
            "self.parameters": Seq("list", list(run.others.values())),
        }
        result = self.autograd.record("Sequential", RUN, bound, node)
        if not self.path.grad_mode:
            self.path.last_inference = self.path.tick
        self.path.tell(Applied("Sequential", bound["input"], list(bound.values()), result, node))
        return result

    def run_pre_hooks(self, module: Module, args: list[Value], node: Syntax) -> list[Value]:
        """What the module is given once its hooks have seen it."""
        for hook in module_state(module).pre_hooks:
            replaced = self.language.call(hook, [module, Seq("tuple", list(args))], {}, node)
            if isinstance(replaced, Seq) and replaced.kind == "tuple":
                args = list(replaced.items)
            elif replaced is not None:
                args = [replaced]
        return [self.hooked_view(module, value, node) for value in args]

    def run_forward_hooks(
        self, module: Module, args: list[Value], result: Value, node: Syntax, started: int
    ) -> Value:
        self.path.tell(InputShown([tensor for value in args for tensor in tensors_in(value)], started))
        shown = [input_after_write(value, started) for value in args]
        for hook in module_state(module).forward_hooks:
            replaced = self.language.call(hook, [module, Seq("tuple", list(shown)), result], {}, node)
            if replaced is not None and not isinstance(replaced, Unknown):
                result = replaced
        return self.hooked_view(module, result, node)

    def hooked_view(self, module: Module, value: Value, node: Syntax) -> Value:
        """What a backward hook makes of positional inputs and of results: torch passes them through a function, as views."""
        if not isinstance(value, Tensor) or value.needs_grad() is not True or self.path.inference:
            return value
        if not module_state(module).backward_hooks or not self.path.grad_mode:
            return value
        view = self.autograd.apply_view("BackwardHookFunction", value, node)
        view.shape, view.dense, view.one_of_many = value.shape, value.dense, HOOKED_VIEW
        return view

    def assume_input(self, value: Value) -> Value:
        if isinstance(value, Unknown):
            tensor = self.entry.assumed_tensor(value)
            return tensor if tensor is not None else value
        return value

    def shape_of_layer(self, layer: Layer, result: Value, bound: dict[str, Value]) -> None:
        """Shapes of the commonest layers; others stay as the facts tell."""
        source = bound.get("input", next(iter(bound.values()), None))
        shape = source.shape if isinstance(source, Tensor) else None
        if not isinstance(result, Tensor) or result is source:
            return
        options = layer.options
        name = layer.name
        if name == "nn.Linear" and shape:
            out = options.get("out_features")
            result.shape = (*shape[:-1], out if isinstance(out, int) else None)
        elif name == "nn.Embedding" and shape is not None:
            dim = options.get("embedding_dim")
            result.shape = (*shape, dim if isinstance(dim, int) else None)
        elif name.endswith("Loss"):
            if options.get("reduction", "mean") in ("mean", "sum", "batchmean"):
                result.shape = ()
            elif options.get("reduction") == "none":
                if name in ("nn.CrossEntropyLoss", "nn.NLLLoss"):
                    result.shape = by_class(bound["target"]) if "target" in bound else None
                result.attributes = {**(result.attributes or {}), PER_ITEM: True}
        elif result.shape is None and shape and name.startswith("nn.Conv"):
            out = options.get("out_channels")
            result.shape = (shape[0], out if isinstance(out, int) else None, *([None] * (len(shape) - 2)))

    def unknown_layer_result(self, layer: Layer, args: list[Value], node: Syntax) -> Value:
        """A layer without a fact: gradient flows from inputs and parameters, what is kept is not known."""
        site = self.path.site(node)
        self.path.tick += 1
        inputs = [tensor for arg in args for tensor in tensors_in(arg)]
        parameters = [tensor for _, tensor in self.tensors_of(layer, "parameter")]
        flag = any_requires_grad([tensor.needs_grad() for tensor in [*inputs, *parameters]])
        if flag is not True:
            flag = Maybe("a layer without a fact", weak=True)
        if not self.path.grad_mode or self.path.inference:
            flag = False
        result = Tensor(site, requires_grad=flag)
        if flag is not False:
            edges = [edge for tensor in [*inputs, *parameters] if (edge := tensor.edge()) is not None]
            result.node = Node(layer.name.rpartition(".")[2], site, edges, flag, self.path.tick)
            result.node.holds = "sometimes"
            result.node.operands = inputs
            result.node.open = any(isinstance(arg, Unknown) and arg.carries for arg in args)
        else:
            result.cuts = self.autograd.mode_cut(
                layer.name, [("", tensor) for tensor in [*inputs, *parameters]], site
            )
        for tensor in inputs:
            result.cuts = result.cuts | tensor.cuts
        return result


def input_after_write(value: Value, started: int) -> Value:
    """What a forward hook sees as the input of a module: where the module wrote it in place, that is the result."""
    if not isinstance(value, Tensor) or value.snapshot:
        return value
    writes = [write for write in value.storage.writes if write.tick > started and write.mode == "graph"]
    if not writes:
        return value
    seen = Tensor(
        value.site, value.storage, value.counter, value.node, value.requires_grad, value.dtype, value.shape
    )
    for name in ("base", "seen_rebases", "region", "cuts", "dense", "label"):
        setattr(seen, name, getattr(value, name))
    seen.source, seen.snapshot, seen.born_epoch = value, "hook", writes[0].epoch - 1
    return seen


def replaced_parameters(layer: Layer) -> dict[str, Value]:
    """What stands in the place of parameters that were deleted: `layer.weight = scale * base`."""
    registered = layer.module.registered
    others = {
        name: value
        for name, value in layer.attributes.items()
        if name not in registered and isinstance(value, (Tensor, Unknown))
    }
    fact = layer_fact(layer.name) if others else None
    own = [tensor.name for tensor in fact.tensors] if fact is not None else []
    return {name: value for name, value in others.items() if name in own}
