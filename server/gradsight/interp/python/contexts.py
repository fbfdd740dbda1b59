"""Context managers: `with`, `ExitStack`, entered by hand, used as decorators, derived from those of a library.

*Wrapper*: what a decorator puts around a function, a grad mode or any other context; it is entered anew for each call.
*Guard*: the context object of a library that an instance of the analysed code is by inheritance.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from gradsight.interp.path_state import PathState, RaisedError
from gradsight.interp.python.calls import Calls
from gradsight.model.library_objects import (
    Closing,
    Distribution,
    ExitStack,
    GeneratorContext,
    GradMode,
    NullContext,
)
from gradsight.model.sites import Site
from gradsight.model.values import (
    MISSING,
    ClassValue,
    External,
    Function,
    Instance,
    Leave,
    Opaque,
    Seq,
    Unknown,
    Value,
    Wrapper,
)

STACKS = {"contextlib.ExitStack", "contextlib.AsyncExitStack"}
ERRORS = ("Error", "Exception", "Warning")
"""How the names of the classes end that keep what they are made with as `args`."""
ENTERING = {"__enter__", "__aenter__"}
LEAVING = {"__exit__", "__aexit__"}
GUARD = "<guard>"
"""The attribute under which an instance keeps the object of the library's class that it derives from."""


class Contexts(Calls):
    """Entering and leaving."""

    def __init__(self, path: PathState) -> None:
        super().__init__(path)
        self.exits: dict[int, list[Leave | None]] = {}
        """What is still to be left on this path, by the context that was entered by hand or the stack that keeps it."""

    def enter_context(self, context: Value, node: ast.AST) -> tuple[Value, Leave | None]:
        """The value of `with context as value`, and what to run when the block is left."""
        if isinstance(context, Opaque):
            if isinstance(context, GeneratorContext):
                return self.enter_generator_context(context)
            if isinstance(context, GradMode):
                return None, self.nn.enter_modes(((context, self.path.site(node)),))
            if isinstance(context, ExitStack):
                return context, self.closing(context)
            if isinstance(context, NullContext):
                return context.thing, None
            if isinstance(context, Closing):
                thing = context.thing
                return thing, lambda: self.objects.call_method(thing, "close", [], {}, node)
            return self.nn.enter_opaque(context, node)
        if isinstance(context, External):
            mode = self.nn.mode_of(context)
            if mode is not None:
                return None, self.nn.enter_modes(((mode, self.path.site(node)),))
        if isinstance(context, Instance):
            return self.enter_instance(context, node)
        return Unknown("value of a context manager"), None

    def enter_instance(self, context: Instance, node: ast.AST) -> tuple[Value, Leave | None]:
        prefix = "__a" if isinstance(context.cls.find("__aenter__")[0], Function) else "__"
        if isinstance(context.cls.find("__enter__")[0], Function):
            prefix = "__"
        enter, _ = context.cls.find(f"{prefix}enter__")
        leave, _ = context.cls.find(f"{prefix}exit__")
        guard = self.guard_of(context, node)
        if isinstance(enter, Function):
            value = self.call_function(enter, [context], {}, node)
        elif guard is not None:
            value = self.guard_method(context, guard, "__enter__", [], {}, node)
        else:
            value = context

        def close() -> None:
            if isinstance(leave, Function):
                self.call_function(leave, [context, None, None, None], {}, node)
            elif guard is not None:
                self.guard_method(context, guard, "__exit__", [None, None, None], {}, node)

        return value, close

    def enter_generator_context(self, manager: GeneratorContext) -> tuple[Value, Leave | None]:
        iterator = manager.stream.iterator
        value = next(iterator, None)

        def close() -> None:
            try:
                next(iterator, None)
            except RaisedError:
                return

        return value, close

    # -- by hand and on a stack --------------------------------------------------------------------------------------

    def exits_of(self, context: Opaque) -> list[Leave | None]:
        known = self.exits.get(id(context))
        if known is None:
            known = self.exits[id(context)] = []
            self.path.kept_alive.append(context)
        return known

    def context_by_hand(
        self, context: Opaque, name: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST
    ) -> Value:
        """`guard.__enter__()` and `guard.__exit__(...)`; MISSING for other methods."""
        if name in ENTERING:
            if isinstance(context, ExitStack):
                return context
            value, leave = self.enter_context(context, node)
            self.exits_of(context).append(leave)
            return value
        if name in LEAVING:
            leaves = [] if isinstance(context, ExitStack) else self.exits_of(context)
            leave = leaves.pop() if leaves else self.left_without_entering(context)
            if leave is not None:
                leave()
            return None
        if isinstance(context, ExitStack):
            return self.stack_method(context, name, args, kwargs, node)
        return MISSING

    def left_without_entering(self, context: Opaque) -> Callable[[], None] | None:
        """What `__exit__` does when nothing entered: a stack closes, a mode that its call set goes back."""
        if isinstance(context, ExitStack):
            return self.closing(context)
        if isinstance(context, GradMode) and context.before is not None:

            def undo() -> None:
                self.nn.undo_mode_call(context)

            return undo
        return None

    def make_exit_stack(self, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> ExitStack:
        return ExitStack("contextlib.ExitStack", self.path.site(node))

    def make_closing(self, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> Value:
        """`contextlib.closing(thing)`: `thing.close()` is called at the end."""
        thing = args[0] if args else kwargs.get("thing")
        return Closing("contextlib.closing", self.path.site(node), thing)

    def closing(self, stack: Opaque) -> Callable[[], None]:
        def close() -> None:
            exits = self.exits_of(stack)
            while exits:
                leave = exits.pop()
                if leave is not None:
                    leave()
                    if getattr(leave, "suppresses", False):
                        close.suppresses = True  # type: ignore[attr-defined]

        return close

    def stack_method(
        self, stack: Opaque, name: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST
    ) -> Value:
        exits = self.exits_of(stack)
        if name in ("enter_context", "enter_async_context") and args:
            value, leave = self.enter_context(args[0], node)
            exits.append(leave)
            return value
        if name in ("callback", "push_async_callback") and args:
            exits.append(lambda: self.call(args[0], args[1:], kwargs, node))
            return args[0]
        if name in ("push", "push_async_exit") and args:
            exits.append(lambda: self.leave_pushed(args[0], node))
            return args[0]
        if name in ("close", "aclose"):
            self.closing(stack)()
            return None
        if name == "pop_all":
            moved = self.make_exit_stack([], {}, node)
            self.exits_of(moved).extend(exits)
            exits.clear()
            return moved
        return MISSING

    def leave_pushed(self, pushed: Value, node: ast.AST) -> None:
        """`stack.push(context)` takes over its exit, `stack.push(function)` calls the function."""
        nothing: list[Value] = [None, None, None]
        if isinstance(pushed, Instance):
            leave, _ = pushed.cls.find("__exit__")
            if isinstance(leave, Function):
                self.call_function(leave, [pushed, *nothing], {}, node)
        elif isinstance(pushed, Opaque):
            self.context_by_hand(pushed, "__exit__", nothing, {}, node)
        else:
            self.call(pushed, nothing, {}, node)

    # -- classes that derive from a context manager of a library -----------------------------------------------------

    def guard_path(self, cls: ClassValue) -> str:
        """The library's context class, or distribution, that a class derives from, or nothing."""
        for ancestor in cls.lineage():
            if isinstance(ancestor, External) and (
                ancestor.path in STACKS
                or self.nn.is_mode_path(ancestor.path)
                or self.libraries.is_distribution_path(ancestor.path)
            ):
                return ancestor.path
        return ""

    def guard_of(self, instance: Instance, node: ast.AST) -> Opaque | None:
        guard = instance.attributes.get(GUARD)
        if guard is None and instance.cls.kind == "plain" and self.guard_path(instance.cls):
            guard = self.init_guard(instance, [], {}, node)
        return guard if isinstance(guard, Opaque) else None

    def init_guard(
        self, instance: Instance, args: list[Value], kwargs: dict[str, Value], node: ast.AST
    ) -> Opaque | None:
        """`__init__` of the library's class: setting the grad mode takes effect at once."""
        path = self.guard_path(instance.cls)
        if any(isinstance(one, External) and one.path.endswith(ERRORS) for one in instance.cls.lineage()):
            instance.attributes["args"] = Seq("tuple", list(args))
        if not path:
            return None
        if self.libraries.is_distribution_path(path):
            made = self.libraries.make_distribution(path.rpartition(".")[2], args, kwargs, node)
        elif path in STACKS:
            made = self.make_exit_stack(args, kwargs, node)
        else:
            made = self.nn.call_mode(path, args, kwargs, node)
        instance.attributes[GUARD] = made
        return made if isinstance(made, Opaque) else None

    def guard_method(
        self,
        instance: Instance,
        guard: Opaque,
        name: str,
        args: list[Value],
        kwargs: dict[str, Value],
        node: ast.AST,
    ) -> Value:
        """A method that an instance inherits from the library's class; MISSING if it is none of those."""
        if isinstance(guard, Distribution):
            return self.objects.call_method(guard, name, args, kwargs, node)
        if name == "__call__":
            return self.wrapped_in(instance, args[0], self.path.site(node)) if args else MISSING
        if name == "clone":
            return MISSING
        result = self.context_by_hand(guard, name, args, kwargs, node)
        return instance if result is guard else result

    # -- wrappers ----------------------------------------------------------------------------------------------------

    def wraps_functions(self, value: Value) -> bool:
        """Whether a value used as a decorator puts a context around each call of the function."""
        if isinstance(value, Opaque):
            return isinstance(value, (GradMode, GeneratorContext))
        if not isinstance(value, Instance) or value.cls.find("__call__")[0] is not MISSING:
            return False
        path = self.guard_path(value.cls)
        return (
            bool(path and path not in STACKS and not self.libraries.is_distribution_path(path))
            or External("contextlib.ContextDecorator") in value.cls.lineage()
        )

    def wrapped_in(self, context: Value, function: Value, site: Site) -> Value:
        """The function with a context around each call; the function itself stays as it is."""
        if not isinstance(function, Function):
            return MISSING
        mode = self.nn.mode_of(context)
        if mode is not None:
            self.nn.undo_mode_call(mode)
            if function.wraps_context:
                # Only the manager is made inside the mode, not what its generator does.
                return function
        wrapped = function.copy()
        wrapped.wrappers = ((context if mode is None else mode, site), *function.wrappers)
        return wrapped

    def enter_wrappers(self, wrappers: tuple[Wrapper, ...]) -> Callable[[], None]:
        """Enter what decorators put around a function; the returned function leaves it."""
        leaves: list[Leave | None] = []
        for context, site in wrappers:
            again = context
            if isinstance(context, GeneratorContext):
                function, args, kwargs = context.made_by
                again = self.execute_function(function, args, kwargs, site.node)
            leaves.append(
                self.nn.enter_modes(((again, site),))
                if isinstance(again, GradMode)
                else self.enter_context(again, site.node)[1]
            )

        def leave_all() -> None:
            for leave in reversed(leaves):
                if leave is not None:
                    leave()

        return leave_all

    def wraps_resumes(self, context: Value) -> bool:
        """torch puts a mode around every resume of a generator; other contexts see the generator only made."""
        return self.nn.mode_of(context) is not None or (
            isinstance(context, Instance) and self.guard_path(context.cls) != ""
        )


__all__ = ["Contexts"]
