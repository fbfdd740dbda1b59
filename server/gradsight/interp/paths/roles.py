"""What a text does to its names, and what they must then be: the evidence for the roles of unknown values.

*Key*: how a text spells a value, `model` or `self.model`.  *Deed*: something that is done to it: a method is called, it
is called itself, it is indexed as only a tensor is.  *Role*: `module`, `optimizer`, `scaler` or `scheduler`.
Deeds and annotations come first; names (`NAMES`, the one table of them) only decide what deeds leave open.
"""

from __future__ import annotations

import ast
import re
from functools import lru_cache

from gradsight.interp.paths.graph_makers import graph_makers, stepped_things, things_handed_over
from gradsight.interp.syntax import remembered
from gradsight.interp.syntax_parts import parts_of, syntax_parts
from gradsight.model.name_hints import BY_NAME, suggests
from gradsight.model.sites import Frame

OF_LEAVES = {"grad", "is_leaf", "requires_grad", "grad_fn", "requires_grad_", "retain_grad", "numpy"}
"""What depends on whether unknown code gave a tensor back as it was."""
MODULE, OPTIMIZER, SCALER, SCHEDULER = "module", "optimizer", "scaler", "scheduler"
ONLY_MODULES = frozenset({
    "parameters", "named_parameters", "modules", "named_modules", "children", "named_children", "buffers", "named_buffers",
    "register_forward_hook", "register_forward_pre_hook", "get_submodule", "add_module",
})  # fmt: skip
"""Methods that nothing but a module has."""
SWITCHES = frozenset({"train", "eval"})
TELLING_OF_TRAINING = frozenset({"train", "zero_grad", "parameters", "named_parameters", "requires_grad_"})
ONLY_SCALERS = frozenset({"unscale_", "get_scale"})
NAMES_KEPT = 4096
"""A program has few names: what they suggest is kept for so many."""
DIGITS = "0123456789"
CONSTANTS = frozenset({
    "ones", "zeros", "full", "eye", "arange", "ones_like", "zeros_like", "full_like", "new_ones", "new_zeros", "new_full",
})  # fmt: skip
"""What makes a tensor that depends on nothing."""
PLAIN_WORDS = frozenset(
    {"self", "model", "net", "network", "module", "optimizer", "optim", "opt", "the", "my"}
)


class Deeds:
    """What one text does to the values that it spells by keys."""

    __slots__ = ("arguments", "attributes", "called", "methods", "text_has")

    def __init__(self) -> None:
        self.methods: dict[str, set[str]] = {}
        self.attributes: dict[str, set[str]] = {}
        self.called: set[str] = set()
        self.arguments: dict[str, set[str]] = {}
        """Names of functions and methods that a key was given to."""
        self.text_has: set[str] = set()
        """All methods that are called on anything."""

    def done_to(self, key: str) -> set[str]:
        return self.methods.get(key, set())


def deeds_of(scope: ast.AST) -> Deeds:
    """The deeds of a function, a class or a top-level statement; nested functions are part of it."""
    found: Deeds = remembered(scope, "deeds", _deeds_of)
    return found


def _deeds_of(scope: ast.AST) -> Deeds:
    deeds = Deeds()
    for node in parts_of(scope, ast.Call):
        target = node.func
        name = ""
        if isinstance(target, ast.Attribute):
            name = target.attr
            deeds.text_has.add(name)
            owner = key_of(target.value)
            if owner:
                deeds.methods.setdefault(owner, set()).add(name)
        elif isinstance(target, ast.Name):
            name = target.id
        if not node.args and not node.keywords:
            continue
        key = key_of(what_is_applied(target))
        if key:
            deeds.called.add(key)
        for argument in [*node.args, *[keyword.value for keyword in node.keywords]]:
            given = key_of(argument)
            if given:
                deeds.arguments.setdefault(given, set()).add(name)
    for read in parts_of(scope, ast.Attribute):
        owner = key_of(read.value)
        if owner:
            deeds.attributes.setdefault(owner, set()).add(read.attr)
    return deeds


def what_is_applied(target: ast.AST) -> ast.AST:
    """What a call applies: `self.encoder` of `self.encoder(x)`, and of `self.encoder.forward(x)`."""
    return target.value if isinstance(target, ast.Attribute) and target.attr == "forward" else target


def called_on_self(function: ast.AST) -> frozenset[str]:
    """The names of the methods that a method calls on its own object."""
    found: frozenset[str] = remembered(function, "called on self", _called_on_self)
    return found


def _called_on_self(function: ast.AST) -> frozenset[str]:
    deeds = deeds_of(function)
    keys = [*deeds.called, *(f"{owner}.{one}" for owner, done in deeds.methods.items() for one in done)]
    return frozenset(key.removeprefix("self.") for key in keys if key.startswith("self."))


def writes_through_data(scope: ast.AST) -> frozenset[ast.AST]:
    """The places `x.data` behind which a text writes: `x.data.mul_(2)`, `x.data[0] = 1`, `x.data += 1`."""
    found: frozenset[ast.AST] = remembered(scope, "writes through data", _writes_through_data)
    return found


def _writes_through_data(scope: ast.AST) -> frozenset[ast.AST]:
    found: set[ast.AST] = set()
    for node in syntax_parts(scope):
        targets: list[ast.AST] = []
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr.endswith("_") and not node.func.attr.startswith("_"):
                targets = [node.func.value]
        elif isinstance(node, ast.AugAssign):
            targets = [node.target]
        elif isinstance(node, ast.Assign):
            targets = [target for target in node.targets if isinstance(target, ast.Subscript)]
        for target in targets:
            while isinstance(target, ast.Subscript):
                target = target.value
            if isinstance(target, ast.Attribute) and target.attr == "data":
                found.add(target)
    return frozenset(found)


def key_of(node: ast.AST | None) -> str:
    """`model`, `self.model`, `self.agent.net`; empty for anything that is not a chain of names.

    A member with a name of its own, `self.optimizer["generator"]`, is spelled as one name: `self.optimizer_generator`.
    """
    if isinstance(node, ast.Name):
        return node.id
    if not isinstance(node, (ast.Attribute, ast.Subscript)):
        return ""
    known: str | None = node.__dict__.get("key")
    if known is None:
        known = node.__dict__["key"] = _key_of(node)
    return known


def _key_of(node: ast.Attribute | ast.Subscript) -> str:
    parts: list[str] = []
    root: ast.expr = node
    member = ""
    while isinstance(root, (ast.Attribute, ast.Subscript)):
        if isinstance(root, ast.Attribute):
            parts.append(root.attr + member)
            member = ""
        elif not member and isinstance(root.slice, ast.Constant) and isinstance(root.slice.value, str):
            member = f"_{root.slice.value}"
        else:
            return ""
        root = root.value
    if not isinstance(root, ast.Name) or len(parts) > 3:
        return ""
    parts.append(root.id + member)
    return ".".join(reversed(parts))


def role_of(key: str, scopes: list[ast.AST]) -> str:
    """The role that the deeds in these texts give a key, or the empty string; worked out once."""
    if not scopes:
        return ""
    kept: dict[tuple[object, ...], str] = scopes[0].__dict__.setdefault("roles", {})
    asked = (key, *scopes)
    known = kept.get(asked)
    if known is None:
        known = kept[asked] = _role_of(key, scopes)
    return known


def _role_of(key: str, scopes: list[ast.AST]) -> str:
    return role_by_deeds(key, scopes) or role_beside_backward(key, scopes)


def role_by_deeds(key: str, scopes: list[ast.AST]) -> str:
    all_deeds = [deeds_of(scope) for scope in scopes]
    done: set[str] = set()
    is_named = False
    for deeds in all_deeds:
        if key in deeds.methods:
            done |= deeds.methods[key]
        is_named = is_named or key in deeds.called or key in deeds.arguments
    if not done and not is_named:
        return ""
    if done & ONLY_MODULES:
        return MODULE
    has: set[str] = set().union(*(deeds.text_has for deeds in all_deeds))
    attributes: set[str] = set().union(*(deeds.attributes.get(key, set()) for deeds in all_deeds))
    called = any(key in deeds.called for deeds in all_deeds)
    if "scale" in done and ("update" in done or "step" in done or done & ONLY_SCALERS):
        return SCALER
    if done & ONLY_SCALERS or ({"step", "update"} <= done and suggests("scaler", key)):
        # Another function scales by it: `backward(loss, scaler)`.
        return SCALER
    given: set[str] = set().union(*(deeds.arguments.get(key, set()) for deeds in all_deeds))
    if not called and ("unscale_" in given or ("step" in given and {"scale", "update"} <= has)):
        if "unscale_" in given or BY_NAME[OPTIMIZER].search(last_part(key)):
            return OPTIMIZER
    if not called and ("param_groups" in attributes or ({"step", "zero_grad"} <= done)):
        return OPTIMIZER
    if called and (done & SWITCHES or ("zero_grad" in done and "step" not in done)):
        return MODULE
    if called and trains(has) and BY_NAME[MODULE].search(last_part(key)) and is_no_loss(key):
        # `policy_class(...)` makes a module, and is none.
        return "" if BY_NAME["maker"].search(last_part(key).lower()) else MODULE
    if called and trains(has) and is_no_loss(key) and has_module_beside(key, all_deeds):
        return MODULE
    if not called and is_no_loss(key) and BY_NAME[MODULE].search(last_part(key)):
        # `self.actor.optimizer.step()`: what has an optimizer of its own is a module; what has several holds modules.
        if len(set().union(*(own_optimizers(key, deeds) for deeds in all_deeds))) == 1:
            return MODULE
    if not called and ("step" in done or "zero_grad" in done):
        name = last_part(key)
        if BY_NAME[SCHEDULER].search(name.lower()):
            return SCHEDULER
        if BY_NAME[OPTIMIZER].search(name):
            return OPTIMIZER
    return ""


def role_beside_backward(key: str, scopes: list[ast.AST]) -> str:
    """The role of what no deed tells: it is among what must have brought the graph of a backward, or all that steps after it."""
    for makers in graph_makers(scopes):
        if key in makers and not any(role_by_deeds(other, scopes) for other in makers):
            return MODULE
    if is_handed_over(key, scopes):
        return MODULE
    stepped = stepped_things(scopes)
    if key in stepped and not suggests(SCHEDULER, key):
        rivals = [one for one in stepped if one != key and not suggests(SCHEDULER, one)]
        return "" if rivals else OPTIMIZER
    return ""


def is_handed_over(key: str, scopes: list[ast.AST]) -> bool:
    """`loss = compute_loss(model, batch)`: unknown code that makes the loss has its graph from what it is given.

    That is what is put into train mode, or has the name of a module, and all of these if there are several.
    """
    if key not in things_handed_over(scopes) or not is_no_loss(key):
        return False
    is_switched = any(not SWITCHES.isdisjoint(deeds_of(scope).done_to(key)) for scope in scopes)
    return is_switched or BY_NAME[MODULE].search(last_part(key)) is not None


def has_module_beside(key: str, all_deeds: list[Deeds]) -> bool:
    """Whether a value that differs from this one by its number alone is a module: `self.qf2` beside `self.qf1`."""
    stem = key.rstrip(DIGITS)
    return stem != key and any(
        other != key and other.rstrip(DIGITS) == stem and other in deeds.called and done & ONLY_MODULES
        for deeds in all_deeds
        for other, done in deeds.methods.items()
    )


def is_only_applied(key: str, scopes: list[ast.AST]) -> bool:
    """Whether nothing that these texts do to a module tells that it is trained: it may belong to somebody else."""
    return not any(TELLING_OF_TRAINING & deeds_of(scope).done_to(key) for scope in scopes)


def own_optimizers(key: str, deeds: Deeds) -> set[str]:
    """The attributes of a value that a text clears or steps as optimizers."""
    return {
        owner
        for owner, done in deeds.methods.items()
        if owner.rpartition(".")[0] == key
        and BY_NAME[OPTIMIZER].search(last_part(owner)) is not None
        and not done.isdisjoint({"step", "zero_grad"})
    }


def trains(methods: set[str]) -> bool:
    """Whether a text differentiates or steps."""
    return "backward" in methods or "step" in methods


def is_no_loss(key: str) -> bool:
    return not suggests("loss", key)


def last_part(key: str) -> str:
    return key.rpartition(".")[2]


def annotated_role(annotation: str) -> str:
    """The role that a declaration gives: `nn.Module`, `torch.optim.Optimizer`, `GradScaler`."""
    last = annotation.strip("'\"").rpartition(".")[2]
    if last in ("Module", "PreTrainedModel", "LightningModule", "DistributedDataParallel", "DataParallel"):
        return MODULE
    if last in ("Optimizer", "SGD", "Adam", "AdamW", "RMSprop", "Adagrad") and "optim" in annotation.lower():
        return OPTIMIZER
    return SCALER if last == "GradScaler" else SCHEDULER if last in ("LRScheduler", "_LRScheduler") else ""


def belongs(optimizer: str, module: str) -> bool:
    """Whether the names of an optimizer and a module have a word in common that tells them from others."""
    return bool(words_in_common(optimizer, module))


def words_in_common(optimizer: str, module: str) -> set[str]:
    """The words of an optimizer's name that a module's name has too; a single letter stands for a word."""
    others = words_of(module)
    return {
        one
        for one in words_of(optimizer)
        if any(one == other or (min(len(one), len(other)) == 1 and one[0] == other[0]) for other in others)
    }


def words_of(key: str) -> set[str]:
    """The words of a name, without those that every such name has."""
    parts = re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+", last_part(key).replace("_", " "))
    return {part.lower() for part in parts} - PLAIN_WORDS


def optimizers_in_reach(scopes: list[ast.AST], running: Frame) -> list[str]:
    """The optimizers that a function may step, of those that the texts of its class speak of: no local name of another method."""
    function = running.function
    own = roles_in([function.node]) if function is not None else {}
    return [
        key
        for key, role in roles_in(scopes).items()
        if role == OPTIMIZER and (function is None or "." in key or key in own)
    ]


def roles_in(scopes: list[ast.AST]) -> dict[str, str]:
    """Every key of these texts that has a role."""
    keys: dict[str, None] = {}
    for scope in scopes:
        deeds = deeds_of(scope)
        for key in [*deeds.methods, *sorted(deeds.called), *deeds.arguments]:
            keys.setdefault(key)
    found = {key: role_of(key, scopes) for key in keys}
    return {key: role for key, role in found.items() if role}


TENSOR_ANNOTATION = re.compile(r"\b(?:Tensor|FloatTensor)\b")
NOT_DIFFERENTIABLE = re.compile(r"LongTensor|BoolTensor|IntTensor|\bInt\[|\bBool\[|\bInt64\[|Integer\[")
PLAIN_KINDS = {"int": "number", "float": "number", "bool": "bool", "str": "text"}


def annotation_text(parameter: ast.arg) -> str:
    wanted = parameter.annotation
    if wanted is None:
        return ""
    if isinstance(wanted, ast.Constant) and isinstance(wanted.value, str):
        return wanted.value
    text: str = remembered(wanted, "as text", ast.unparse)
    return text


def is_tensor_annotation(text: str) -> bool:
    """`Tensor`, `Optional[Tensor]`, `tuple[Tensor, ...]`, `Float[Tensor, "b t"]`: what may carry a graph."""
    return TENSOR_ANNOTATION.search(text) is not None and NOT_DIFFERENTIABLE.search(text) is None


@lru_cache(NAMES_KEPT)
def is_constant_name(name: str) -> bool:
    """Names of arguments that carry no graph: what a prediction is held against, and what selects."""
    return BY_NAME["constant"].search(name) is not None


def is_fed_to_model(name: str, function: ast.AST) -> bool:
    """Whether a function gives an argument to a whole model that is another argument: it is data."""
    arguments = getattr(function, "args", None)
    if arguments is None:
        return False
    models = {argument.arg for argument in arguments.args if BY_NAME["model"].search(argument.arg)}
    return bool(models) and bool(deeds_of(function).arguments.get(name, set()) & models)


def is_constant_if_left_out(name: str, function: ast.AST) -> bool:
    """Whether a function puts a new tensor where an argument is None: `if weight is None: weight = x.new_ones(n)`."""
    found: frozenset[str] = remembered(function, "constants if left out", _constants_if_left_out)
    return name in found


def _constants_if_left_out(function: ast.AST) -> frozenset[str]:
    found: set[str] = set()
    for node in parts_of(function, ast.If):
        if name := _asked_for_none(node.test):
            found.update(
                name
                for statement in node.body
                if isinstance(statement, ast.Assign)
                and [key_of(target) for target in statement.targets] == [name]
                and _makes_constant(statement.value)
            )
    return frozenset(found)


def _asked_for_none(test: ast.expr) -> str:
    if not (isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Is) and len(test.ops) == 1):
        return ""
    other = test.comparators[0]
    return key_of(test.left) if isinstance(other, ast.Constant) and other.value is None else ""


def _makes_constant(value: ast.expr) -> bool:
    called = value.func if isinstance(value, ast.Call) else None
    return (called.attr if isinstance(called, ast.Attribute) else key_of(called)) in CONSTANTS


def works_on_arrays(function: ast.AST) -> bool:
    """Whether a text uses NumPy and nothing of torch: its arguments are arrays."""
    found: bool = remembered(function, "works on arrays", _works_on_arrays)
    return found


def _works_on_arrays(function: ast.AST) -> bool:
    names = {node.id for node in parts_of(function, ast.Name)}
    return bool(names & {"np", "numpy"}) and not names & {"torch", "th", "F", "nn"}


@lru_cache(NAMES_KEPT)
def is_number_name(name: str) -> bool:
    """Names of arguments that are plain numbers."""
    return BY_NAME["number"].search(name) is not None


@lru_cache(NAMES_KEPT)
def is_follower_name(key: str) -> bool:
    """Names of modules that follow another one, or stay as they are: no optimizer steps them."""
    return BY_NAME["follower"].search(key.lower()) is not None


@lru_cache(NAMES_KEPT)
def is_function_name(name: str) -> bool:
    """Names of what is called and has no parameters."""
    return BY_NAME["function"].search(name.lower()) is not None


@lru_cache(NAMES_KEPT)
def is_scheduler_name(callee: str) -> bool:
    """Names of functions and classes that make a schedule for the learning rate of an optimizer."""
    return BY_NAME["scheduler"].search(last_part(callee).lower()) is not None


@lru_cache(NAMES_KEPT)
def is_wrapper_name(callee: str) -> bool:
    """Names of what takes a module and gives it back in another coat."""
    return BY_NAME["wrapper"].search(last_part(callee).lower()) is not None


@lru_cache(NAMES_KEPT)
def is_settings_name(key: str) -> bool:
    """Names of what holds settings: numbers, flags and texts."""
    return BY_NAME["settings"].search(key.lower()) is not None


@lru_cache(NAMES_KEPT)
def is_source_name(key: str) -> bool:
    """Names of what data comes from: loaders, datasets, environments, replay buffers."""
    return BY_NAME["source"].search(last_part(key).lower()) is not None


@lru_cache(NAMES_KEPT)
def only_watches(callee: str) -> bool:
    """Names of what evaluates, logs, saves or counts: it leaves the gradients of a model, and what an optimizer holds."""
    words = words_of(callee)
    return (
        any(suggests("watcher", word) for word in words)
        and not any(suggests("trainer", word) for word in words)
        and not may_clear(last_part(callee))
    )


@lru_cache(NAMES_KEPT)
def may_clear(method: str) -> bool:
    """Whether a method of an unknown module may clear gradients, or step: only its name tells.

    What is one step of watching, `eval_step` or `log_step`, is no step of an optimizer.
    """
    if not suggests("clears", method) or suggests("keeps gradients", method):
        return False
    words = words_of(method)
    is_watching = any(suggests("watcher", word) for word in words)
    is_training = any(suggests("trainer", word) for word in words)
    return (
        not is_watching or is_training or any(suggests("clears", word) and word != "step" for word in words)
    )


@lru_cache(NAMES_KEPT)
def may_train(method: str) -> bool:
    """Whether a method may clear gradients, step or differentiate: only its name tells."""
    return may_clear(method) or any(suggests("trainer", word) for word in words_of(method))
