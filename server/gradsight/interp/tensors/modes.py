"""Grad modes and other contexts: no_grad, enable_grad, inference_mode, set_grad_enabled, autocast."""

from __future__ import annotations

from collections.abc import Callable

from gradsight.interp.tensors.layer_calls import Modules
from gradsight.model.library_objects import (
    DecoratorMade,
    GeneratorContext,
    GradMode,
    SavedTensorHooks,
    Suppress,
    ThreadPool,
)
from gradsight.model.sites import Site, Syntax
from gradsight.model.values import External, Function, Leave, Native, Opaque, Unknown, Value, Wrapper

MODES = {
    "torch.no_grad": False,
    "torch.autograd.no_grad": False,
    "torch.autograd.grad_mode.no_grad": False,
    "torch.enable_grad": True,
    "torch.autograd.enable_grad": True,
    "torch.autograd.grad_mode.enable_grad": True,
    "torch.inference_mode": False,
    "torch.autograd.inference_mode": False,
    "torch.autograd.grad_mode.inference_mode": False,
}
SETTERS = {
    "torch.set_grad_enabled", "torch.autograd.set_grad_enabled", "torch.autograd.grad_mode.set_grad_enabled",
    "torch._C._set_grad_enabled",
}  # fmt: skip
SAVING_CONTEXTS = {
    "torch.autograd.graph.allow_mutation_on_saved_tensors",
    "torch.autograd.graph.saved_tensors_hooks",
    "torch.autograd.graph.save_on_cpu",
}
"""Contexts that decide what is kept for backward: the tensor itself, or a copy that no write reaches."""


class Modes(Modules):
    """Entering and leaving modes."""

    def is_mode_path(self, path: str) -> bool:
        return path in MODES or path in SETTERS

    def mode_of(self, value: Value) -> GradMode | None:
        """The mode that a decorator or context expression stands for, or None."""
        if isinstance(value, External) and value.path in MODES:
            return GradMode(value.path, None, MODES[value.path])
        return value if isinstance(value, GradMode) else None

    def call_mode(self, path: str, args: list[Value], kwargs: dict[str, Value], node: Syntax) -> Value:
        """`torch.no_grad()` and kin; `torch.no_grad()(function)` is handled where it is called again."""
        if args and isinstance(args[0], Function) and path not in SETTERS:
            return self.language.wrapped_in(External(path), args[0], self.path.site(node))
        given = args[0] if args else kwargs.get("mode", True)
        mode = GradMode(path, self.path.site(node), given if path in SETTERS else MODES[path])
        if path in SETTERS:
            mode.before = (self.path.grad_mode, self.path.mode_site)
            self.apply_mode(mode, self.path.site(node))
            self.mode_set_by_call(mode, node)
        elif path.endswith("inference_mode") and given is not True:
            # `inference_mode(False)` turns grad mode on, whatever stands around it.
            mode.enabled = not (given is not False and self.path.decide(given, node))
        return mode

    def mode_set_by_call(self, mode: GradMode, node: Syntax) -> None:
        """Hook: set_grad_enabled was called as a function."""

    def apply_mode(self, mode: GradMode, site: Site) -> None:
        was_inference, enabled = self.path.inference, mode.enabled
        self.path.grad_mode = (
            enabled if isinstance(enabled, bool) else bool(self.path.decide(enabled, site.node))
        )
        if mode.path.endswith("inference_mode"):
            self.path.inference = not self.path.grad_mode
        # Inside inference mode nothing is recorded, whatever grad mode is set to: that mode is the cause.
        if not self.path.grad_mode and not (was_inference and self.path.inference):
            self.path.mode_site = site

    def enter_modes(self, modes: tuple[Wrapper, ...]) -> Callable[[], None]:
        """Apply modes; the returned function restores what was."""
        before = (self.path.grad_mode, self.path.inference, self.path.mode_site)
        for mode, site in modes:
            if not isinstance(mode, GradMode):
                continue
            if mode.before is not None:
                before = (mode.before[0], self.path.inference, mode.before[1])
                self.mode_entered(mode)
            self.apply_mode(mode, site)

        def restore() -> None:
            self.path.grad_mode, self.path.inference, self.path.mode_site = before

        return restore

    def undo_mode_call(self, mode: GradMode) -> None:
        """`set_grad_enabled(...)` used as a decorator: the call itself changes nothing, and each call of the function restores what it finds."""
        if mode.before is not None:
            self.path.grad_mode, self.path.mode_site = mode.before
            self.mode_entered(mode)
            mode.before = None

    def mode_entered(self, mode: GradMode) -> None:
        """Hook: a mode set by a call is used as a context after all."""

    def enter_opaque(self, context: Opaque, node: Syntax) -> tuple[Value, Leave | None]:
        """Other library contexts."""
        if "autocast" in context.path:
            outside = self.path.autocast
            self.path.autocast = True

            def leave_autocast() -> None:
                self.path.autocast = outside

            return Unknown("context"), leave_autocast
        if isinstance(context, SavedTensorHooks):
            before = self.autograd.saves_are_certain
            self.autograd.saves_are_certain = False

            def restore() -> None:
                self.autograd.saves_are_certain = before

            return Unknown("context"), restore
        if isinstance(context, ThreadPool):
            return context, context.join
        if isinstance(context, Suppress):

            def leave() -> None:
                return None

            leave.suppresses = True  # type: ignore[attr-defined]
            return None, leave
        return Unknown("value of a context manager"), None

    def call_opaque(self, value: Opaque, args: list[Value], kwargs: dict[str, Value], node: Syntax) -> Value:
        """Calling a library object: a mode applied as a decorator, a transformed function, ..."""
        if isinstance(value, (GradMode, GeneratorContext)) and args:
            if isinstance(args[0], Function):
                return self.language.wrapped_in(value, args[0], self.path.site(node))
            if isinstance(value, GradMode):
                self.undo_mode_call(value)
            target = args[0]

            def wrapped(inner: list[Value], named: dict[str, Value], place: Syntax) -> Value:
                restore = self.language.enter_wrappers(((value, self.path.site(place)),))
                try:
                    return self.language.call(target, inner, named, place)
                finally:
                    restore()

            return Native("with a grad mode", wrapped)
        if isinstance(value, DecoratorMade) and args:
            return args[0]
        return self.unknown_result(f"call of {value.path}", args, kwargs, node)
