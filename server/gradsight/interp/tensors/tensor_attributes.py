"""Attributes of a tensor: `.grad` and its aliases, `.data`, `.requires_grad`, shapes."""

from __future__ import annotations

from gradsight.interp.tensors.backward import BackwardEngine
from gradsight.interp.tensors.sequences import MAY_BE_PACKED
from gradsight.interp.tensors.shapes import certainly_differ, spelled
from gradsight.interp.tensors.writes import leaf_behind
from gradsight.model.sites import Site, Syntax
from gradsight.model.tensors import IGNORANT, INTEGRAL, NO_CUTS, Cut, Maybe, Tensor
from gradsight.model.trace import (
    AttributeInvented,
    DataAssigned,
    Declared,
    FlagRefused,
    Frozen,
    GradAssigned,
    GradientRefused,
    GradRead,
)
from gradsight.model.values import (
    AbsentGrad,
    Bound,
    External,
    Mapping,
    Number,
    Seq,
    Unknown,
    Value,
    Version,
)

GRADIENT = ("grad", "_grad")
"""Two names of one slot: what is written as `_grad` is read as `grad`."""


class TensorAttributes(BackwardEngine):
    """Reading and setting attributes."""

    def tensor_attribute(self, tensor: Tensor, name: str, node: Syntax) -> Value:
        if name in GRADIENT:
            return self.read_grad(tensor, node)
        if name == "requires_grad":
            flag = tensor.needs_grad()
            if flag is False and tensor.source is not None and not tensor.snapshot:
                # Inside the forward of a Function nothing is recorded, and an input still tells what it is outside.
                flag = tensor.source.needs_grad()
            return flag if isinstance(flag, bool) else Unknown("whether it requires grad", "bool")
        if name == "is_leaf":
            return (
                tensor.is_leaf
                if tensor.needs_grad() is not IGNORANT
                else Unknown("whether it is a leaf", "bool")
            )
        if name == "grad_fn":
            return None if tensor.is_leaf else Unknown("a grad_fn")
        if name == "data":
            if tensor.attributes and MAY_BE_PACKED in tensor.attributes:
                return tensor
            return self.cut_alias(tensor, "data", node)
        if name in ("T", "mT", "H", "mH", "real", "imag"):
            return self.facts.apply_operator(f"Tensor.{name}", [tensor], {}, node)
        if name == "shape":
            return self.shape_value(tensor)
        if name == "ndim":
            return len(tensor.shape) if tensor.shape is not None else Number()
        if name in (
            "device",
            "layout",
            "itemsize",
            "nbytes",
            "_base",
            "is_cuda",
            "is_sparse",
            "names",
            "_backward_hooks",
        ):
            return Unknown(f"{name} of a tensor", "text" if name in ("device", "layout") else "")
        if name == "dtype":
            return External(
                {
                    "float": "torch.float32",
                    "double": "torch.float64",
                    "int": "torch.int64",
                    "bool": "torch.bool",
                    "half": "torch.float16",
                }.get(tensor.dtype, "torch.dtype")
            )
        if name == "_version":
            return Version((tensor.counter,), tensor.counter.version)
        if tensor.attributes is not None and name in tensor.attributes:
            kept: Value = tensor.attributes[name]
            return kept
        return Bound(tensor, name)

    def shape_value(self, tensor: Tensor) -> Value:
        if tensor.shape is None:
            return Unknown("shape of a tensor")
        return Seq("tuple", [size if size is not None else Number() for size in tensor.shape])

    def read_grad(self, tensor: Tensor, node: Syntax) -> Value:
        value = self.grad_of_tensor(tensor, node)
        if isinstance(value, Tensor) and value.source is not None:
            value.cuts = value.source.cuts
        given = self.nn.may_clear_between if tensor.node is not None else self.nn.escaped_between
        if isinstance(value, AbsentGrad) and given({tensor}, 0, self.path.tick):
            return Unknown("gradient of a tensor that unknown code was given")
        return value

    def grad_of_tensor(self, tensor: Tensor, node: Syntax) -> Value:
        """`.grad` is an object of its own; each read gives a new name for it."""
        site = self.path.site(node)
        thread = tensor.thread
        racing = thread is not None and not thread.joined and self.thread is None
        self.path.tell(GradRead(tensor, site, thread if racing else None))
        grad = tensor.grad
        if isinstance(grad, Tensor):
            handle = Tensor(
                site, grad.storage, grad.counter, grad.node, grad.requires_grad, grad.dtype, grad.shape
            )
            handle.snapshot = "grad"
            handle.grad_of = tensor
            handle.source = grad
            return handle
        if isinstance(grad, (Unknown, Mapping)):
            return grad
        flag = tensor.needs_grad()
        if (
            isinstance(flag, Maybe)
            or self.path.gradients_unknown
            or (self.path.truncated and tensor not in self.path.gradient_ticks)
        ):
            return Unknown("gradient of a tensor that may need none")
        if not tensor.is_leaf and not tensor.retains_grad:
            return AbsentGrad(tensor, site, "non-leaf")
        cause = "cleared" if tensor in self.path.gradient_ticks else "never"
        if flag is False:
            cause = "needs-none" if tensor.leaf_made and not tensor.cuts else "without"
        elif tensor.retains_grad:
            cause = "other"
        return AbsentGrad(tensor, site, cause)

    def set_tensor_attribute(
        self, tensor: Tensor, name: str, value: Value, node: Syntax, augmented: bool
    ) -> None:
        if name in GRADIENT:
            if isinstance(value, Tensor) and not augmented:
                self.check_assigned_gradient(tensor, value, self.path.site(node))
            elif isinstance(value, (int, float)) and not augmented:
                site = self.path.site(node)
                self.path.refuse(GradientRefused(tensor, str(value), "", site, "number", ".grad"))
            self.assign_grad(tensor, value, augmented)
            self.path.tell(GradAssigned(tensor, value, node, augmented))
            return
        site = self.path.site(node)
        if name == "requires_grad":
            self.set_requires_grad(tensor, value, site)
        elif name == "data":
            if augmented:
                return
            self.assign_data(tensor, value, site)
            self.path.tell(DataAssigned(tensor, value, site))
        else:
            if tensor.attributes is None:
                tensor.attributes = {}
            tensor.attributes[name] = value
            self.path.tell(AttributeInvented(tensor, name, site))

    def check_assigned_gradient(self, tensor: Tensor, value: Tensor, site: Site) -> None:
        """`tensor.grad = value` wants the shape and the type of the tensor, and not the tensor itself."""
        if value is tensor:
            self.path.refuse(GradientRefused(tensor, "", "", site, "itself", ".grad"))
        elif certainly_differ(tensor.shape, value.shape):
            self.path.refuse(
                GradientRefused(tensor, spelled(value.shape), spelled(tensor.shape), site, "shape", ".grad")
            )
        elif {tensor.dtype, value.dtype} == {"float", "double"} and value.leaf_made and tensor.leaf_made:
            self.path.refuse(GradientRefused(tensor, value.dtype, tensor.dtype, site, "dtype", ".grad"))

    def assign_grad(self, tensor: Tensor, value: Value, augmented: bool) -> None:
        if not augmented or not isinstance(tensor.grad, Tensor):
            if value is None or isinstance(value, AbsentGrad):
                tensor.grad = None
                self.path.cleared_ticks[tensor] = self.path.tick
            elif isinstance(value, Tensor):
                tensor.grad = value
                self.path.gradient_ticks[tensor] = self.path.tick
                self.path.live_gradient_ticks[tensor] = self.path.tick
            else:
                tensor.grad = Unknown("an assigned gradient")
                self.path.gradient_ticks[tensor] = self.path.tick
                self.path.live_gradient_ticks[tensor] = self.path.tick

    def assign_data(self, tensor: Tensor, value: Value, site: Site) -> None:
        """`tensor.data = value`: other memory, same counter; autograd is not told, and other views keep the old memory."""
        if tensor.base is None:
            self.write_tensor(tensor, "data assignment", site, [], False, NO_CUTS, mode="silent", bumps=False)
        if isinstance(value, Tensor):
            tensor.storage, tensor.region, tensor.shape = value.storage, None, value.shape
            tensor.cuts = tensor.cuts | {cut for cut in value.cuts if not is_own_data(cut, tensor)}
            if value.needs_grad() is not False:
                tensor.cuts = tensor.cuts | {Cut("data", "data", site, value, self.path.tick)}

    def check_flag(self, tensor: Tensor, value: Value, site: Site, how: str = "requires_grad") -> None:
        """What torch refuses: whole numbers that require grad, a result that does not, an inference tensor that does."""
        if value is True and tensor.dtype in INTEGRAL:
            self.path.refuse(FlagRefused(tensor, site, "integer", how))
        elif value is True and tensor.inference_site is not None and not self.path.inference:
            if tensor.is_leaf and tensor.requires_grad is False and not tensor.snapshot:
                self.path.refuse(FlagRefused(tensor, site, "inference", how))
        elif value is False and not tensor.is_leaf and tensor.needs_grad() is True and not self.path.assuming:
            self.path.refuse(FlagRefused(tensor, site, "result", how))

    def set_requires_grad(self, tensor: Tensor, value: Value, site: Site) -> None:
        self.check_flag(tensor, value, site)
        if value is True:
            if tensor.is_leaf and tensor.requires_grad is not True:
                tensor.requires_grad = True
                tensor.frozen_at = None
                self.path.tell(Declared(tensor, site))
        elif value is False:
            if tensor.is_leaf:
                if tensor.requires_grad is not False:
                    tensor.frozen_at = site
                    self.path.tell(Frozen(tensor, site))
                elif not tensor.is_parameter:
                    # It says what is meant, also of a tensor that has not required grad before.
                    tensor.frozen_at = site
                tensor.requires_grad = False
        elif tensor.is_leaf:
            tensor.requires_grad = IGNORANT


def is_own_data(cut: Cut, tensor: Tensor) -> bool:
    """Whether data that comes to a parameter is its own, kept before: that takes no gradient away from it.

    Those that stand for the parameters of an unknown module are not told apart.
    """
    leaf = leaf_behind(cut.source)
    if leaf is None or leaf is tensor:
        return leaf is tensor
    stands_in = [bool((one.attributes or {}).get("<stand in>")) for one in (leaf, tensor)]
    return all(stands_in) and leaf.label == tensor.label
