"""Names and libraries: imports, globals, the standard library, NumPy, and objects that are modelled by kind."""

from __future__ import annotations

import builtins
import itertools
import math
from collections.abc import Iterator
from operator import attrgetter
from typing import Any

from gradsight.interp.idle_edits import is_given_in_vain
from gradsight.interp.libraries.copying import Copying
from gradsight.interp.option_defaults import note_option, usual_name
from gradsight.interp.path_constraints import RESIZES
from gradsight.interp.path_state import PathState, RaisedError
from gradsight.interp.python.picked_members import MOST_MEMBERS, in_order, picked
from gradsight.interp.tensors.fact_selection import takes
from gradsight.interp.tensors.tensor_api import REDUCTIONS_OF_NUMPY
from gradsight.interp.used_names import EVERYTHING, use
from gradsight.model.library_objects import (
    BackgroundThread,
    DataField,
    DataLoader,
    Dataset,
    Distribution,
    FunctionContext,
    GlobalNames,
    GradientScaler,
    NullContext,
    Optimizer,
    RaisedObject,
    Scheduler,
    Suppress,
    ThreadPool,
    WorkerProcess,
)
from gradsight.model.passed_cuts import cuts_of
from gradsight.model.sites import Syntax
from gradsight.model.tensors import Tensor
from gradsight.model.trace import AttributeInvented, Read
from gradsight.model.unlisted import owners_of_rest
from gradsight.model.unseen_holders import may_be_held
from gradsight.model.values import (
    MISSING,
    Array,
    Bound,
    ClassValue,
    External,
    Function,
    Instance,
    Mapping,
    Method,
    Number,
    Opaque,
    Partial,
    Pending,
    PythonModule,
    Seq,
    Stream,
    Unknown,
    Value,
    is_constant,
)
from gradsight.ops.traits import layer_fact

MATH = {name: getattr(math, name) for name in ("sqrt", "exp", "log", "sin", "cos", "tan", "floor", "ceil", "pow", "log2", "log10", "tanh", "fabs", "prod")}  # fmt: skip
ANY_OF = {
    "torch.optim": "torch.optim.SGD",
    "torch.optim.lr_scheduler": "torch.optim.lr_scheduler.StepLR",
}
"""Modules whose members are alike in what they do to gradients, and one of them."""
SHORT_PATHS = {
    "torch.nn.modules.module.Module": "torch.nn.Module",
    "torch.autograd.Variable": "torch.autograd.Variable",
    "torch.jit.ScriptModule": "torch.nn.Module",
}
TENSORLESS = frozenset("time datetime os os.path sys json logging warnings pathlib argparse re shutil tqdm typing gc pprint pickle subprocess uuid hashlib string platform abc glob io matplotlib.pyplot wandb".split())  # fmt: skip

OF_SETTINGS = frozenset("argparse json os os.path time datetime".split())
"""What these give brings no graph, nor does anything that is read from it."""


class Library(Copying):
    """Everything that is not torch and not the analysed code."""

    command_line: Unknown | None = None

    def __init__(self, path: PathState) -> None:
        super().__init__(path)
        self.resolving: set[tuple[int, str]] = set()
        """Imports that are being followed: by module and name."""

    # -- names -------------------------------------------------------------------------------------------------------

    def global_name(self, name: str, node: Syntax) -> Value:
        if name == "__name__":
            return self.entry.module_name()
        if name == "__file__":
            return Unknown("path of the file", "text")
        found = self.objects.builtin_name(name)
        if found is not MISSING:
            return found
        reason, function = f"name {name} is not defined here", self.path.frame.function
        if function is not None and is_given_in_vain(node, self.path.node, function.node):
            return Unknown(reason)
        return self.path.gap(reason, node)

    def external_attribute(self, owner: External, name: str) -> Value:
        path = f"{owner.path}.{name}"
        if path in ("typing.TYPE_CHECKING", "TYPE_CHECKING"):
            return False
        if owner.path == "math" and name in ("pi", "e", "inf", "nan", "tau"):
            constant: float = getattr(math, name)
            return constant
        if path in ("numpy.pi", "torch.pi"):
            return math.pi
        if path in ("numpy.inf", "torch.inf"):
            return math.inf
        if name == "__name__" and layer_fact(owner.path.removeprefix("torch.")) is not None:
            return owner.path.rpartition(".")[2]
        if path == "sys.argv":
            if self.command_line is None:
                self.command_line = Unknown("the command line")
                self.language.suppose(self.command_line, True)
            return self.command_line
        room, _, last = owner.path.rpartition(".")
        if room == "builtins" and hasattr(builtins, last) and not hasattr(getattr(builtins, last), name):
            # `super.forward(x)`, where the parentheses are forgotten.
            raise RaisedError(RaisedObject("AttributeError", self.path.site()))
        return External(SHORT_PATHS.get(path, path))

    def resolve_import(self, pending: Pending, node: Syntax) -> Value:
        """The value of a name imported from a workspace module, which is executed now if it was not before."""
        key = (id(pending.module), pending.name)
        if key in self.resolving:
            # `from . import part` in a package binds what it asks for: Python then imports the module of that name.
            part = self.entry.find_module(f"{pending.module.name}.{pending.name}", 0)
            if part is not None:
                return part
            return self.path.gap(
                f"import of {pending.name} from {pending.module.name} in a circle", node, "import"
            )
        self.resolving.add(key)
        try:
            return self.module_attribute(pending.module, pending.name)
        finally:
            self.resolving.discard(key)

    def star_import(self, name: str) -> None:
        """`from name import *` of a library."""
        if name in ("torch", "torch.nn", "torch.nn.functional"):
            room = {"torch": "torch.", "torch.nn": "nn.", "torch.nn.functional": "nn.functional."}[name]
            for known in self.path.table.names():
                if known.startswith(room) and "." not in known[len(room) :]:
                    self.path.frame.namespace.setdefault(
                        known[len(room) :], External(f"{name}.{known[len(room) :]}")
                    )
            if name == "torch":
                for extra in ("nn", "optim", "autograd", "tensor", "no_grad", "Tensor"):
                    self.path.frame.namespace.setdefault(extra, External(f"torch.{extra}"))

    def module_attribute(self, module: PythonModule, name: str) -> Value:
        module = self.entry.load_module(module)
        names = module.namespace
        if names.shared:
            value = self.entry.read_shared(names, name)
            if value is not MISSING:
                return value
        elif name not in names and name in names.waiting:
            self.entry.bind_waiting(names, name)
        if name in names and not names.shared:
            value = names[name]
            if type(value) is Pending and value.module is not module:
                value = names[name] = self.resolve_import(value, self.path.node)
            return self.language.private_value(names, name, value) if self.path.isolated else value
        if name == "__dict__":
            return self.members_of(module)
        inner = self.entry.find_module(f"{module.name}.{name}", 0)
        return inner if inner is not None else self.entry.absent_name(module, name)

    def members_of(self, module: PythonModule) -> Mapping:
        """The public names of a loaded module, in the order in which they can be meant by a pick."""
        use(self.path.program.uses, module.path, EVERYTHING)
        names = [name for name in [*module.namespace.waiting, *module.namespace] if name[:1] != "_"]
        members = {name: self.module_attribute(module, name) for name in names[:MOST_MEMBERS]}
        return Mapping(in_order(members, module.path), False)

    def picked_member(self, owner: Value, name: Value) -> Value:
        """What `getattr(owner, name)` with an unknown name gives."""
        if isinstance(owner, PythonModule):
            members = self.module_attribute(owner, "__dict__")
            if isinstance(members, Mapping) and members.items:
                usual = usual_name(self.path.options, self.path.setting_names, name)
                return picked(members.items, usual, owner.path)
        if isinstance(owner, External) and owner.path in ANY_OF:
            return External(ANY_OF[owner.path])
        return Unknown("getattr with an unknown name")

    # -- calls -------------------------------------------------------------------------------------------------------

    def call_external(self, path: str, args: list[Value], kwargs: dict[str, Value], node: Syntax) -> Value:
        if path in TREES:
            return self.tree_map(args, kwargs, node)
        if path.startswith("torch.") or path == "torch":
            return self.call_torch(path, args, kwargs, node)
        if path.startswith("builtins."):
            return self.objects.call_builtin(path[9:], args, kwargs, node)
        if path.startswith("numpy"):
            return self.call_numpy(path, args, kwargs, node)
        action = STANDARD.get(path)
        if action is not None:
            result: Value = attrgetter(action)(self)(args, kwargs, node)
            return result
        room, _, name = path.rpartition(".")
        if room == "math":
            return self.call_math(name, args, node)
        if room == "random":
            return self.call_random(name, args, kwargs, node)
        if room in TENSORLESS:
            if name in ("tqdm", "trange"):
                if not args:
                    return Unknown("a progress bar")
                return args[0] if name == "tqdm" else self.objects.builtin_range(args, {}, node)
            for value in args:
                self.path.tell(Read(value, node))
            given = Unknown(f"result of {path}")
            given.is_setting = room in OF_SETTINGS
            return given
        if path in ("tqdm", "tqdm.auto.tqdm", "tqdm.notebook.tqdm", "tqdm.std.tqdm"):
            return args[0] if args else Unknown("tqdm")
        if room == "operator":
            return self.call_operator(name, args, kwargs, node)
        return self.nn.unknown_result(f"call of {path}", args, kwargs, node)

    def call_math(self, name: str, args: list[Value], node: Syntax) -> Value:
        if args and isinstance(args[0], Tensor):
            return self.autograd.number_from(args[0], f"math.{name}", node)
        if name in MATH and args and all(isinstance(arg, (int, float)) for arg in args):
            try:
                number: float = MATH[name](*args)
                return number
            except (ValueError, OverflowError, TypeError):
                return Number()
        cuts = frozenset(cut for arg in args for cut in cuts_of(arg))
        return Number(cuts)

    def call_random(self, name: str, args: list[Value], kwargs: dict[str, Value], node: Syntax) -> Value:
        if name in ("choice",) and args:
            items, _ = self.objects.collect(args[0])
            return items[0] if items else Unknown("random choice")
        if name in ("sample", "choices") and args:
            items, _ = self.objects.collect(args[0])
            count = args[1] if len(args) > 1 else kwargs.get("k")
            if isinstance(count, int) and items and name == "sample" and count <= len(items):
                return Seq("list", items[:count])
            return Seq("list", items, False)
        if name in ("seed", "shuffle"):
            return None
        return Number()

    def make_namedtuple(self, args: list[Value], kwargs: dict[str, Value], node: Syntax) -> Value:
        name = args[0] if args and isinstance(args[0], str) else "Tuple"
        fields = args[1] if len(args) > 1 else kwargs.get("field_names")
        names: list[str] = []
        if isinstance(fields, str):
            names = fields.replace(",", " ").split()
        elif isinstance(fields, Seq):
            names = [item for item in fields.items if isinstance(item, str)]
        cls = ClassValue(name, [], {}, "tuple")
        defaults = kwargs.get("defaults")
        values = defaults.items if isinstance(defaults, Seq) else []
        first = len(names) - len(values)
        cls.fields = [(field, values[i - first] if i >= first else MISSING) for i, field in enumerate(names)]
        return cls

    def make_deque(self, args: list[Value], kwargs: dict[str, Value], node: Syntax) -> Value:
        result = self.objects.make_sequence("deque", args[:1], node)
        limit = args[1] if len(args) > 1 else kwargs.get("maxlen")
        result.maxlen = limit if isinstance(limit, int) else None
        return result

    def make_defaultdict(self, args: list[Value], kwargs: dict[str, Value], node: Syntax) -> Value:
        result = Mapping({}, True, "defaultdict")
        if args:
            result.keys["factory"] = args[0]
        return result

    def make_partial(self, args: list[Value], kwargs: dict[str, Value], node: Syntax) -> Value:
        return Partial(args[0], args[1:], kwargs, self.path.site(node)) if args else Unknown("partial")

    def chain(self, args: list[Value], kwargs: dict[str, Value], node: Syntax) -> Seq:
        items: list[Any] = []
        exact = True
        for arg in args:
            inner, complete = self.objects.collect(arg)
            items += inner
            exact = exact and complete
        result = Seq("list", items, exact)
        result.owners = owners_of_rest(args)
        return result

    def chain_from(self, args: list[Value], kwargs: dict[str, Value], node: Syntax) -> Value:
        items, exact = self.objects.collect(args[0]) if args else ([], True)
        result = self.chain(items, {}, node)
        result.exact = result.exact and exact
        result.owners = result.owners if exact else ()
        return result

    def product(self, args: list[Value], kwargs: dict[str, Value], node: Syntax) -> Value:
        columns = [self.objects.collect(arg) for arg in args]
        rows: list[list[Any]] = [[]]
        for items, _ in columns:
            rows = [[*row, item] for row in rows for item in items][:64]
        return Seq(
            "list", [Seq("tuple", row) for row in rows], all(exact for _, exact in columns) and len(rows) < 64
        )

    def count_up(self, args: list[Value], kwargs: dict[str, Value], node: Syntax) -> Value:
        start = args[0] if args else kwargs.get("start", 0)
        return Stream(
            iter(range(start, start + 1000)) if isinstance(start, int) else iter([Number()] * 4), True
        )

    def cycle(self, args: list[Value], kwargs: dict[str, Value], node: Syntax) -> Value:
        items, _ = self.objects.collect(args[0]) if args else ([], True)
        return Stream(iter(items * 4), False)

    def islice(self, args: list[Value], kwargs: dict[str, Value], node: Syntax) -> Value:
        bounds = [bound for bound in args[1:] if bound is None or isinstance(bound, int)]
        known = len(bounds) == len(args) - 1
        if known and isinstance(args[0], Stream):
            iterator, length = self.objects.iterate(args[0])
            return Stream(itertools.islice(iterator, *bounds), length is not None)
        items, exact = self.objects.collect(args[0]) if args else ([], True)
        if known:
            return Seq("list", items[slice(*bounds)], exact)
        return Seq("list", items, False)

    def field(self, args: list[Value], kwargs: dict[str, Value], node: Syntax) -> Value:
        return DataField("dataclasses.field", self.path.site(node), kwargs)

    def make_thread(self, args: list[Value], kwargs: dict[str, Value], node: Syntax) -> Value:
        target = kwargs.get("target", args[1] if len(args) > 1 else None)
        thread = BackgroundThread("threading.Thread", self.path.site(node), target, kwargs.get("args"))
        named = kwargs.get("kwargs")
        if isinstance(named, Mapping):
            thread.named = {name: value for name, value in named.items.items() if isinstance(name, str)}
        return thread

    def make_pool(self, args: list[Value], kwargs: dict[str, Value], node: Syntax) -> Value:
        return ThreadPool("ThreadPoolExecutor", self.path.site(node))

    def pool_method(self, pool: ThreadPool, name: str, args: list[Value], node: Syntax) -> Value:
        if name == "submit" and args:
            future = BackgroundThread("future", self.path.site(node))
            pool.threads.append(future)
            before, self.autograd.thread = self.autograd.thread, future
            try:
                future.value = self.language.call(args[0], args[1:], {}, node)
            finally:
                self.autograd.thread = before
            return future
        if name == "shutdown":
            pool.join()
            return None
        if name == "map" and args:
            return self.objects.builtin_map(args, {}, node)
        return Unknown(f"{name} of a pool")

    def wait_for(self, args: list[Value], kwargs: dict[str, Value], node: Syntax) -> Value:
        items, _ = self.objects.collect(args[0]) if args else ([], True)
        for item in items:
            if isinstance(item, BackgroundThread):
                item.joined = True
        return args[0] if args else None

    def suppress(self, args: list[Value], kwargs: dict[str, Value], node: Syntax) -> Value:
        return Suppress("contextlib.suppress", self.path.site(node))

    def null_context(self, args: list[Value], kwargs: dict[str, Value], node: Syntax) -> Value:
        thing = args[0] if args else kwargs.get("enter_result")
        return NullContext("contextlib.nullcontext", self.path.site(node), thing)

    def simple_namespace(self, args: list[Value], kwargs: dict[str, Value], node: Syntax) -> Value:
        instance = Instance(ClassValue("SimpleNamespace", [], {}, "plain"), self.path.site(node))
        instance.attributes.update(kwargs)
        return instance

    def exit_program(self, args: list[Value], kwargs: dict[str, Value], node: Syntax) -> Value:
        raise RaisedError(RaisedObject("SystemExit", self.path.site(node)))

    # -- NumPy -------------------------------------------------------------------------------------------------------

    def call_numpy(self, path: str, args: list[Value], kwargs: dict[str, Value], node: Syntax) -> Value:
        name = path.rpartition(".")[2]
        if name == "seed":
            return None
        if name == "isscalar":
            held = args and isinstance(args[0], (Tensor, Array))
            return False if held else Unknown("whether a value is a number", "bool")
        cuts = frozenset(cut for arg in [*args, *kwargs.values()] for cut in cuts_of(arg))
        cuts |= self.autograd.made_an_array(name, args, node)
        out = kwargs.get("out")
        if isinstance(out, Array):
            is_itself = bool(args) and isinstance(args[0], Array) and args[0].tensor is out.tensor
            self.autograd.write_array(out, node, name, args[1:] if is_itself else None)
            return out
        if name in ("copyto", "put", "fill_diagonal") and args and isinstance(args[0], Array):
            self.autograd.write_array(args[0], node, name, args[1:])
            return None
        if name in ("asarray", "ascontiguousarray") and args and isinstance(args[0], Array):
            return args[0]
        if name in ("float32", "float64", "int64", "int32", "float", "int"):
            return Number(cuts)
        if cuts and name in REDUCTIONS_OF_NUMPY and len(args) == 1 and not kwargs:
            return Number(cuts)
        return Array(None, cuts)

    # -- unknown values ----------------------------------------------------------------------------------------------

    def call_unknown(
        self, function: Unknown, args: list[Value], kwargs: dict[str, Value], node: Syntax
    ) -> Value:
        result: Value = self.nn.unknown_result("result of an unknown function", args, kwargs, node)
        if isinstance(result, Unknown):
            result.carries = result.carries or function.carries
        return result

    def unknown_method(
        self, receiver: Unknown, name: str, args: list[Value], kwargs: dict[str, Value], node: Syntax
    ) -> Value:
        if receiver.tensor is not None:
            return self.autograd.tensor_method(receiver.tensor, name, args, kwargs, node)
        if receiver.hint == "text":
            return Unknown("text", "text")
        stored = (receiver.answers or {}).get(("attr", name))
        if stored is not None and not isinstance(stored, Unknown):
            return self.language.call(stored, args, kwargs, node)
        # `logger.log(results)`, `queue.put(item)`: a call with more, or less, than the method of a tensor takes.
        fact = self.path.table.find(f"Tensor.{name}") if args else None
        is_of_others = fact is not None and not takes(fact, len(args) + len(kwargs))
        tensor = None if is_of_others else self.entry.argument_as_tensor(receiver, name)
        if tensor is not None:
            return self.autograd.tensor_method(tensor, name, args, kwargs, node)
        self.protocol_of_unknown(receiver, name, args, kwargs, node)
        if name == "add_argument":
            note_option(self.path.options, args, kwargs)
        if name in RESIZES:
            self.path.resized(receiver, name)
        result: Value = self.nn.unknown_result(
            f"result of method {name} of an unknown value", args, kwargs, node
        )
        if not isinstance(result, Unknown):
            return result
        if name in ("item", "tolist"):
            result.hint = "number"
        result.cuts = result.cuts | receiver.cuts
        result.carries = (result.carries or receiver.carries) and not result.hint
        result.is_setting = receiver.is_setting and result.graph is None and not result.carries
        return receiver if name in ("to", "cuda", "cpu", "eval", "train") else result

    def protocol_of_unknown(
        self, receiver: Unknown, name: str, args: list[Value], kwargs: dict[str, Value], node: Syntax
    ) -> None:
        """step, zero_grad or backward of an unknown object: what is known about gradients may no longer hold."""
        # `accelerator.backward(loss)` and the like, and `loss.backward()` unless the loss is a bare argument.
        if name != "backward":
            return
        if receiver.carries or args or not receiver.argument:
            self.path.gradients_unknown = True
        else:
            self.nn.act("differentiate", None, self.path.site(node))

    # -- modelled objects --------------------------------------------------------------------------------------------

    def opaque_attribute(self, owner: Opaque, name: str, node: Syntax) -> Value:
        if isinstance(owner, Optimizer):
            return self.nn.optimizer_attribute(owner, name)
        if isinstance(owner, Distribution):
            return self.distribution_attribute(owner, name, node)
        if name in owner.attributes:
            return owner.attributes[name]
        if isinstance(owner, FunctionContext):
            return self.context_attribute(owner, name)
        if isinstance(owner, GlobalNames):
            return self.objects.read_global(name, node)
        return Bound(owner, name)

    def set_opaque_attribute(self, owner: Opaque, name: str, value: Value, node: Syntax) -> None:
        if isinstance(owner, FunctionContext):
            self.set_context_attribute(owner, name, value, node)
            return
        if isinstance(owner, GlobalNames):
            self.objects.write_global(name, value, node)
            return
        owner.attributes[name] = value
        if isinstance(owner, Optimizer) and name in (
            "lr",
            "learning_rate",
            "momentum",
            "weight_decay",
            "betas",
        ):
            self.path.tell(AttributeInvented(owner, name, self.path.site(node)))

    def opaque_item(self, owner: Opaque, index: Value, node: Syntax) -> Value:
        if isinstance(owner, Dataset) and owner.path == "TensorDataset":
            return Seq(
                "tuple",
                [
                    self.autograd.tensor_item(t, index, node) if isinstance(t, Tensor) else Unknown("item")
                    for t in owner.args
                ],
            )
        if isinstance(owner, GlobalNames):
            return self.objects.read_global(index, node)
        return Unknown(f"item of {owner.path}")

    def set_opaque_item(self, owner: Opaque, index: Value, value: Value, node: Syntax) -> None:
        if isinstance(owner, GlobalNames):
            self.objects.write_global(index, value, node)

    def iterate_opaque(self, value: Opaque, count: int) -> tuple[Iterator[Value], int | None]:
        if isinstance(value, DataLoader):
            return iter(self.loader_batches(value, count)), None
        return iter([Unknown(f"element of {value.path}") for _ in range(count)]), None

    def opaque_method(
        self, receiver: Opaque, name: str, args: list[Value], kwargs: dict[str, Value], node: Syntax
    ) -> Value:
        if isinstance(receiver, Optimizer):
            return self.nn.optimizer_method(receiver, name, args, kwargs, node)
        if isinstance(receiver, Scheduler):
            return self.nn.scheduler_method(receiver, name, args, kwargs, node)
        if isinstance(receiver, GradientScaler):
            return self.nn.scaler_method(receiver, name, args, kwargs, node)
        if isinstance(receiver, Distribution):
            return self.distribution_method(receiver, name, args, kwargs, node)
        if isinstance(receiver, BackgroundThread):
            return self.thread_method(receiver, name, node)
        if isinstance(receiver, WorkerProcess):
            return self.process_method(receiver, name, node)
        if isinstance(receiver, ThreadPool):
            return self.pool_method(receiver, name, args, node)
        if isinstance(receiver, GlobalNames):
            return self.objects.globals_method(name, args, kwargs, node)
        if isinstance(receiver, FunctionContext):
            return self.context_method(receiver, name, args, kwargs, node)
        entered = self.language.context_by_hand(receiver, name, args, kwargs, node)
        if entered is not MISSING:
            return entered
        if name in receiver.attributes:
            return self.language.call(receiver.attributes[name], args, kwargs, node)
        self.nn.escape(args, kwargs)
        return Unknown(f"{name} of {receiver.path}")

    def thread_method(self, thread: BackgroundThread, name: str, node: Syntax) -> Value:
        if name == "start":
            before, self.autograd.thread = self.autograd.thread, thread
            try:
                target, given, named = thread.target, self.listed(thread.args), dict(thread.named)
                if isinstance(target, (Function, Method, Bound, Partial)):
                    self.language.call(target, given, named, node)
                else:
                    self.nn.unknown_result("a thread of an unknown function", given, named, node)
                    may_be_held([*given, *named.values()])
            finally:
                self.autograd.thread = before
        elif name in ("join", "result", "exception"):
            thread.joined = True
            if name == "result":
                return thread.value
        return None if name in ("start", "join") else Unknown(f"{name} of a thread")


TREES = {
    "torch.utils._pytree.tree_map",
    "torch.utils._pytree.tree_map_",
    "optree.tree_map",
    "tree.map_structure",
}
STANDARD = {
    "copy.deepcopy": "copy_deep", "copy.copy": "copy_shallow", "collections.namedtuple": "make_namedtuple",
    "collections.deque": "make_deque", "collections.defaultdict": "make_defaultdict", "collections.OrderedDict": "objects.builtin_dict",
    "functools.partial": "make_partial", "functools.reduce": "call_reduce", "weakref.ref": "weak_reference", "weakref.proxy": "weak_proxy",
    "itertools.accumulate": "running_totals", "itertools.repeat": "repeat_value", "itertools.starmap": "star_map", "operator.methodcaller": "method_caller", "functools.wraps": "wrapping_decorator",
    "functools.lru_cache": "cache_decorator", "functools.cache": "cache_decorator", "dataclasses.field": "field", "dataclasses.replace": "replace_fields", "dataclasses.fields": "fields_of_class",
    "dataclasses.dataclass": "dataclass_decorator", "itertools.chain": "chain", "itertools.chain.from_iterable": "chain_from",
    "itertools.product": "product", "itertools.count": "count_up", "itertools.cycle": "cycle", "itertools.islice": "islice",
    "threading.Thread": "make_thread", "multiprocessing.Process": "make_process", "concurrent.futures.ThreadPoolExecutor": "make_pool",
    "concurrent.futures.wait": "wait_for", "concurrent.futures.as_completed": "wait_for", "contextlib.suppress": "suppress", "contextlib.nullcontext": "null_context",
    "functools.cached_property": "cached_property", "functools.singledispatch": "single_dispatch",
    "contextlib.closing": "language.make_closing", "contextlib.ExitStack": "language.make_exit_stack", "contextlib.AsyncExitStack": "language.make_exit_stack", "contextlib.contextmanager": "make_context_manager",
    "contextvars.ContextVar": "context_variable", "itertools.groupby": "group_by",
    "types.SimpleNamespace": "simple_namespace", "sys.exit": "exit_program", "os._exit": "exit_program",
}  # fmt: skip

__all__ = ["Library", "is_constant"]
