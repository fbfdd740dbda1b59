"""Safe programs that reach what makes them safe by a detour, beside faults that the same detour does not hide.

Each safe program is run on torch, each faulty one is refused by it.
"""

from __future__ import annotations

from tests.interp.checking import check
from tests.interp.running import TRAIN, carried, refused, safe

# -- grad modes ------------------------------------------------------------------------------------------------------


def test_a_mode_entered_on_a_stack_lasts_until_the_stack_closes() -> None:
    safe("""
        import contextlib
        p = nn.Parameter(torch.ones(2))
        with contextlib.ExitStack() as stack:
            stack.enter_context(torch.no_grad())
            p.mul_(2)
        assert torch.is_grad_enabled()
    """)
    refused(
        """
        import contextlib
        p = nn.Parameter(torch.ones(2))
        with contextlib.ExitStack() as stack:
            stack.enter_context(torch.no_grad())
        p.mul_(2)  # GS102
        """,
        "leaf Variable",
    )


def test_a_stack_of_an_object_keeps_its_mode_until_the_object_closes_it() -> None:
    safe("""
        from contextlib import ExitStack
        class Quiet:
            def __enter__(self):
                self.stack = ExitStack().__enter__()
                self.stack.enter_context(torch.no_grad())
                return self
            def __exit__(self, *error):
                return self.stack.__exit__(*error)
        p = nn.Parameter(torch.ones(2))
        with Quiet():
            p.mul_(2)
        assert torch.is_grad_enabled()
        out = (p * 2).sum()
        out.backward()
    """)


def test_exits_moved_to_another_stack_wait_for_that_one() -> None:
    safe("""
        from contextlib import ExitStack
        p = nn.Parameter(torch.ones(2))
        with ExitStack() as stack:
            stack.enter_context(torch.no_grad())
            kept = stack.pop_all()
        p.mul_(2)
        kept.close()
        (p * 2).sum().backward()
    """)


def test_a_stack_enters_the_contexts_of_the_program_too() -> None:
    safe("""
        from contextlib import ExitStack, contextmanager
        @contextmanager
        def quiet():
            with torch.no_grad():
                yield
        class Log(ExitStack):
            def __enter__(self):
                super().__enter__()
                self.enter_context(quiet())
                return self
        p = nn.Parameter(torch.ones(2))
        with ExitStack() as stack:
            stack.enter_context(quiet())
            p.mul_(2)
        with Log() as log:
            p.mul_(2)
        assert torch.is_grad_enabled()
        (p * 2).sum().backward()
    """)


def test_a_mode_on_a_generator_function_is_around_every_resume_and_nothing_else() -> None:
    safe("""
        @torch.no_grad()
        def walk(p):
            for _ in range(2):
                p.add_(1)
                yield p * 2
        class Walker:
            @torch.inference_mode()
            def steps(self, p):
                yield p.detach() * 2
                yield p.detach() * 3
        p = nn.Parameter(torch.ones(2))
        for doubled in walk(p):
            assert not doubled.requires_grad
            (p * doubled).sum().backward()
        for scaled in Walker().steps(p):
            assert torch.is_grad_enabled()
    """)
    refused(
        """
        @torch.no_grad()
        def walk(p):
            p.add_(1)
            yield p
            p.add_(1)
            yield p
        p = nn.Parameter(torch.ones(2))
        for q in walk(p):
            q.mul_(2)  # GS102
        """,
        "leaf Variable",
    )


def test_a_mode_wraps_a_lambda_and_leaves_the_function_it_was_given() -> None:
    safe("""
        clip = torch.no_grad()(lambda t: t.clamp_(-1, 1))
        p = nn.Parameter(torch.ones(2) * 3)
        clip(p)
        def bump(t):
            return t.add_(1)
        quiet_bump = torch.no_grad()(bump)
        quiet_bump(p)
        torch.inference_mode(lambda: None)()
    """)
    refused(
        """
        def bump(t):
            t.add_(1)  # GS102
        quiet = torch.no_grad()(bump)
        p = nn.Parameter(torch.ones(2))
        quiet(p)
        bump(p)
        """,
        "leaf Variable",
    )


def test_a_context_manager_used_as_a_decorator_is_entered_for_each_call() -> None:
    safe("""
        import contextlib
        @contextlib.contextmanager
        def quiet():
            with torch.no_grad():
                yield
        @quiet()
        def bump(t):
            t.add_(1)
        class Editor:
            @quiet()
            def shift(self, t):
                t.add_(1)
        p = nn.Parameter(torch.ones(2))
        bump(p)
        bump(p)
        Editor().shift(p)
        quiet()(lambda t: t.add_(1))(p)
        assert p.tolist() == [5, 5]
        (p * 2).sum().backward()
    """)
    safe("""
        import contextlib
        class Quiet(contextlib.ContextDecorator):
            def __enter__(self):
                self.before = torch.is_grad_enabled()
                torch.set_grad_enabled(False)
            def __exit__(self, *error):
                torch.set_grad_enabled(self.before)
        @Quiet()
        def bump(t):
            t.add_(1)
        p = nn.Parameter(torch.ones(2))
        bump(p)
        (p * 2).sum().backward()
    """)


def test_a_context_manager_around_a_generator_function_is_left_before_it_runs() -> None:
    refused(
        """
        import contextlib
        @contextlib.contextmanager
        def quiet():
            with torch.no_grad():
                yield
        @quiet()
        def walk(p):
            p.add_(1)  # GS102
            yield p
        p = nn.Parameter(torch.ones(2))
        for q in walk(p):
            pass
        """,
        "leaf Variable",
    )


def test_a_mode_entered_by_hand_lasts_until_it_is_left_by_hand() -> None:
    safe("""
        p = nn.Parameter(torch.ones(2))
        guard = torch.no_grad()
        guard.__enter__()
        p.add_(1)
        guard.__exit__(None, None, None)
        (p * 2).sum().backward()
        class Off:
            def __init__(self):
                self.guard = torch.no_grad()
            def __enter__(self):
                self.guard.__enter__()
            def __exit__(self, *error):
                self.guard.__exit__(*error)
        with Off():
            p.add_(1)
            with Off():
                p.add_(1)
            p.add_(1)
        assert torch.is_grad_enabled()
        p.grad = None
        (p * 2).sum().backward()
    """)
    refused(
        """
        p = nn.Parameter(torch.ones(2))
        guard = torch.no_grad()
        guard.__enter__()
        p.add_(1)
        guard.__exit__(None, None, None)
        p.add_(1)  # GS102
        """,
        "leaf Variable",
    )


def test_what_is_to_be_closed_is_closed() -> None:
    safe("""
        import contextlib
        class Quiet:
            def __init__(self):
                self.guard = torch.no_grad()
                self.guard.__enter__()
            def close(self):
                self.guard.__exit__(None, None, None)
        p = nn.Parameter(torch.ones(2))
        with contextlib.closing(Quiet()):
            p.add_(1)
        (p * 2).sum().backward()
        with contextlib.ExitStack() as stack:
            stack.push(Quiet().guard)
            p.add_(1)
        with contextlib.ExitStack() as stack:
            torch.set_grad_enabled(False)
            stack.callback(torch.set_grad_enabled, True)
            p.add_(1)
        (p * 2).sum().backward()
    """)


def test_classes_derived_from_modes_are_modes() -> None:
    safe("""
        class freeze(torch.no_grad):
            pass
        class counted(torch.no_grad):
            def __init__(self):
                super().__init__()
                self.count = 0
            def __enter__(self):
                self.count += 1
                super().__enter__()
        class thaw(torch.enable_grad):
            pass
        p = nn.Parameter(torch.ones(2))
        with freeze():
            p.add_(1)
            with thaw():
                loss = (p * 2).sum()
        loss.backward()
        with counted() as nothing:
            p.add_(1)
        @freeze()
        def bump(t):
            t.add_(1)
        @freeze
        def walk(t):
            t.add_(1)
            yield t
        bump(p)
        list(walk(p))
        assert torch.is_grad_enabled()
    """)
    refused(
        """
        class thaw(torch.enable_grad):
            pass
        p = nn.Parameter(torch.ones(2))
        with torch.no_grad():
            with thaw():
                p.add_(1)  # GS102
        """,
        "leaf Variable",
    )


# -- attributes ------------------------------------------------------------------------------------------------------


def test_the_setter_of_a_property_decides_what_is_kept() -> None:
    carried("""
        class State:
            def __init__(self):
                self._h = torch.zeros(1, 2)
            @property
            def h(self):
                return self._h
            @h.setter
            def h(self, value):
                self._h = value.detach()
        s = State()
    """)
    carried("""
        class State:
            def __init__(self):
                self.h = torch.zeros(1, 2)
            def read(self):
                return self.__dict__["h"]
            def write(self, value):
                self.__dict__["h"] = value.detach()
            h = property(read, write)
        s = State()
    """)
    carried("""
        class Base(nn.Module):
            def __init__(self):
                super().__init__()
                self.kept = torch.zeros(1, 2)
            @property
            def h(self):
                return self.kept
        class State(Base):
            @Base.h.setter
            def h(self, value):
                self.kept = value.detach()
        s = State()
    """)


def test_setattr_of_a_class_decides_what_is_kept() -> None:
    carried("""
        class State:
            def __setattr__(self, name, value):
                object.__setattr__(self, name, value.detach())
        s = State()
        s.h = torch.zeros(1, 2)
    """)
    carried("""
        class State(nn.Module):
            def __setattr__(self, name, value):
                if isinstance(value, torch.Tensor):
                    value = value.detach()
                super().__setattr__(name, value)
        s = State()
        s.h = torch.zeros(1, 2)
    """)
    carried("""
        class State:
            def __init__(self):
                self.__dict__["values"] = {}
            def __setattr__(self, name, value):
                self.values[name] = value.detach()
            def __getattr__(self, name):
                return self.values[name]
        s = State()
        s.h = torch.zeros(1, 2)
    """)


def test_a_descriptor_decides_what_is_kept() -> None:
    carried("""
        class Kept:
            def __set_name__(self, owner, name):
                self.name = "_" + name
            def __get__(self, owner, cls=None):
                return getattr(owner, self.name)
            def __set__(self, owner, value):
                setattr(owner, self.name, value.detach())
        class State:
            h = Kept()
        s = State()
        s.h = torch.zeros(1, 2)
    """)
    carried("""
        class Kept:
            def __init__(self, name):
                self.name = name
            def __get__(self, owner, cls=None):
                return owner.__dict__[self.name]
            def __set__(self, owner, value):
                owner.__dict__[self.name] = value.detach()
        class Base:
            h = Kept("h")
        class State(Base):
            pass
        s = State()
        s.h = torch.zeros(1, 2)
    """)
    carried(
        """
        class Read:
            def __get__(self, owner, cls=None):
                return owner.kept.detach()
        class State:
            now = Read()
        s = State()
        s.h = s.kept = torch.zeros(1, 2)
    """,
        """
cell = nn.RNNCell(2, 2)
for _ in range(3):
    s.kept = cell(torch.randn(1, 2), s.now)
    s.kept.sum().backward()
""",
    )


def test_the_dict_of_an_object_is_the_object() -> None:
    for line in (
        "s.__dict__.update(h=h.detach())",
        's.__dict__["h"] = h.detach()',
        'vars(s)["h"] = h.detach()',
        's.__dict__ = {"h": h.detach()}',
        's.__dict__ |= {"h": h.detach()}',
    ):
        carried(
            """
            class State:
                pass
            s = State()
            s.h = torch.zeros(1, 2)
            """,
            TRAIN.replace("s.h = h", line),
        )
    carried(
        """
        from types import SimpleNamespace
        s = SimpleNamespace(h=torch.zeros(1, 2))
        """,
        TRAIN.replace("s.h = h", "s.__dict__.update({'h': h.detach()})"),
    )


def test_a_buffer_replaced_in_the_dict_of_buffers_is_replaced() -> None:
    carried(
        """
        class State(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("h", torch.zeros(1, 2))
            def cut(self):
                for name, value in self._buffers.items():
                    self._buffers[name] = value.detach()
        s = State()
    """,
        TRAIN + "    s.cut()\n",
    )


def test_modules_and_parameters_put_into_the_dicts_of_a_module_are_registered() -> None:
    safe("""
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.parts = [nn.Linear(2, 2) for _ in range(2)]
                self._modules.update({f"part{i}": part for i, part in enumerate(self.parts)})
                self.more = [nn.Linear(2, 2)]
                self._modules["more0"] = self.more[0]
                self.scales = {"a": nn.Parameter(torch.ones(2))}
                self._parameters["a"] = self.scales["a"]
                self.last = {"x": nn.Linear(2, 2)}
                self._modules |= self.last
                self.hidden = {"y": nn.Linear(2, 2)}
                self.__dict__["_modules"].update(self.hidden)
            def forward(self, x):
                for part in self.parts + self.more:
                    x = part(x)
                return self.hidden["y"](self.last["x"](x * self.scales["a"]))
        net = Net()
        assert len(list(net.parameters())) == 11
        net(torch.ones(1, 2)).sum().backward()
    """)
    check("""
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.parts = [nn.Linear(2, 2) for _ in range(2)]  # GS601
                dict(self._modules).update({f"part{i}": part for i, part in enumerate(self.parts)})
            def forward(self, x):
                for part in self.parts:
                    x = part(x)
                return x
        net = Net()
    """)


def test_globals_are_names() -> None:
    for line in (
        'globals()["H"] = H.detach()',
        "globals().update(H=H.detach())",
        'globals().update({"H": globals()["H"].detach()})',
        'vars()["H"] = H.detach()',
        "sys.modules[__name__].H = H.detach()",
        'setattr(sys.modules[__name__], "H", H.detach())',
    ):
        carried(
            """
            import sys
            H = torch.zeros(1, 2)
            cell = nn.RNNCell(2, 2)
        """,
            f"""
for _ in range(3):
    H = cell(torch.randn(1, 2), H)
    H.sum().backward()
    {line}
""",
        )
    safe("""
        H = torch.zeros(1, 2)
        cell = nn.RNNCell(2, 2)
        def step():
            global H
            H = cell(torch.randn(1, 2), H)
            H.sum().backward()
            globals()["H"] = H.detach()
        for _ in range(3):
            step()
    """)


def test_names_bound_by_executed_text_are_not_known() -> None:
    safe("""
        H = torch.zeros(1, 2)
        cell = nn.RNNCell(2, 2)
        for _ in range(3):
            H = cell(torch.randn(1, 2), H)
            H.sum().backward()
            exec("H = H.detach()")
    """)


def test_a_metaclass_may_change_what_is_set_on_its_class() -> None:
    safe("""
        class Cutting(type):
            def __setattr__(cls, name, value):
                super().__setattr__(name, value.detach())
        class State(metaclass=Cutting):
            h = torch.zeros(1, 2)
        cell = nn.RNNCell(2, 2)
        for _ in range(3):
            h = cell(torch.randn(1, 2), State.h)
            h.sum().backward()
            State.h = h
    """)
