"""Python that stands around tensor code: context managers, decorators, partials, match, exceptions, shared class tensors."""

from __future__ import annotations

from gradsight_dev.fuzz.grammar.compute import expression, fits
from gradsight_dev.fuzz.grammar.draft import NAMES, Draft, Var
from gradsight_dev.fuzz.grammar.flow import MOST_UNKNOWN_CHOICES

MANAGERS = (
    ("with torch.no_grad():\n    yield", False),
    ("with torch.enable_grad():\n    yield", True),
    ("before = torch.is_grad_enabled()\ntorch.set_grad_enabled(False)\ntry:\n    yield\nfinally:\n    torch.set_grad_enabled(before)", False),
    ("try:\n    yield\nfinally:\n    finished = True", None),
    ("yield", None),
)  # fmt: skip


def own_context(draft: Draft) -> bool:
    """A context manager of the program's own, written as a generator or as a class."""
    if draft.scope.in_function or draft.scope.depth > 1:
        return False
    name = draft.fresh(("frozen", "phase", "section", "scoped"))
    body, mode = draft.pick(MANAGERS)
    if draft.chance(0.35):
        cls = name.capitalize()
        mode = draft.pick((False, None))
        with draft.definition(f"class {cls}:"):
            draft.say("def __enter__(self):")
            draft.say("    self.before = torch.is_grad_enabled()")
            if mode is False:
                draft.say("    torch.set_grad_enabled(False)")
            draft.say("    return self")
            draft.say("")
            draft.say("def __exit__(self, kind, error, trace):")
            draft.say("    torch.set_grad_enabled(self.before)")
        name = cls
    else:
        with draft.definition(f"def {name}():", decorators=["@contextlib.contextmanager"]):
            for line in body.split("\n"):
                draft.say(line)
    recording = draft.scope.recording if mode is None else mode
    with draft.block(f"with {name}():", recording=recording):
        draft.write_some(1, 3)
    return True


def decorated(draft: Draft) -> bool:
    """A function wrapped by a decorator of the program's own, which may change what goes in or comes out."""
    if draft.scope.in_function or draft.scope.in_loop:
        return False
    source = draft.writable() if draft.chance(0.4) else draft.find()
    if source is None or not fits("any", source.shape):
        return False
    wrapper = draft.fresh(("traced", "scaled", "checked", "logged"))
    before = draft.weighted((("", 4.0), ("args = [t.clone() for t in args]", 1.0)))
    after = draft.weighted(
        (
            ("", 2.0),
            ("out = out * 2", 1.5),
            ("out = out.detach()", 0.5),
            ("out.mul_(2)", 1.0),
            ("out += 1", 1.0),
        )
    )
    with draft.definition(f"def {wrapper}(function):"):
        draft.say("@functools.wraps(function)" if draft.chance(0.6) else "# the plain way")
        draft.say("def inner(*args, **kwargs):")
        for line in (before, "out = function(*args, **kwargs)", after, "return out"):
            if line:
                draft.say(f"    {line}")
        draft.say("return inner")
    name = draft.fresh(("transform", "project", "shape_up", "forward_once"))
    with draft.definition(f"def {name}(value):", decorators=[f"@{wrapper}"]):
        value = draft.add(Var("value", source.shape, draft.group()))
        text, _ = expression(draft, value, keep_shape=True)
        draft.say(f"return {text}")
    bound = draft.fresh(NAMES)
    draft.say(f"{bound} = {name}({source.text})")
    grad = source.grad and "detach" not in after and draft.scope.recording
    draft.add(Var(bound, source.shape, draft.group(), grad))
    return True


def partial(draft: Draft) -> bool:
    """`functools.partial` and `functools.reduce` over operators and functions."""
    source = draft.find(where=lambda known: fits("any", known.shape))
    if source is None:
        return False
    other = draft.find(shape=source.shape)
    assert other is not None
    writes = False
    forms = [
        ("functools.partial(torch.add, alpha=2)({a}, {b})", ""),
        ("functools.partial(torch.mul, {b})({a})", "in"),
        ("functools.partial(torch.pow, exponent=2)({a})", "in"),
        ("functools.partial(F.leaky_relu, negative_slope=0.1)({a})", "in"),
        ("functools.partial(F.dropout, p=0.5, training=False)({a})", ""),
        ("functools.reduce(torch.add, [{a}, {b}, {a}])", ""),
        ("functools.reduce(lambda one, two: one * two, [{a}, {b}])", "in"),
        ("list(map(torch.exp, [{a}, {b}]))[0]", "out"),
        ("next(iter([{a} * 2, {b}]))", ""),
        ("operator.mul({a}, {b})", "in"),
        ("(lambda *ts: sum(ts))({a}, {b})", ""),
    ]
    target = draft.writable(shape=source.shape)
    if target is not None and draft.chance(0.5):
        source, writes = target, True
        forms = [
            ("functools.partial(F.relu, inplace=True)({a})", "out"),
            ("functools.partial(torch.Tensor.mul_, {a})(2)", ""),
            ("functools.reduce(lambda one, two: one.mul_(two), [{a}, 2.0, 3.0])", ""),
            ("operator.iadd({a}, {b})", ""),
        ]
    text, keeps = draft.pick(forms)
    name = draft.fresh(NAMES)
    draft.say(f"{name} = {text.format(a=source.text, b=other.text)}")
    grad = draft.scope.recording and (source.grad or other.grad)
    result = draft.add(Var(name, source.shape, source.group if writes else draft.group(), grad))
    if grad and keeps == "in":
        draft.keep(source, other)
    elif grad and keeps == "out":
        draft.keep(result)
    return True


def matched(draft: Draft) -> bool:
    """`match` on what is known, or on what only the run decides."""
    if draft.scope.depth >= 2:
        return False
    source = draft.find(where=lambda known: fits("any", known.shape))
    if source is None:
        return False
    if draft.chance(0.4) and draft.unknown_choices < MOST_UNKNOWN_CHOICES - 1:
        draft.unknown_choices += 2
        subject, cases = "len(sys.argv)", ("1", "5", "_")
    elif draft.chance(0.5):
        subject, cases = f"{source.text}.dim()", ("1", "2", "_")
    else:
        subject, cases = draft.pick(("'train'", "('sum', 2)")), ("'train' | 'fit'", "('sum', count)", "_")
    draft.say(f"match {subject}:")
    draft.indent += 1
    for case in cases:
        with draft.block(f"case {case}:"):
            draft.write_some(1, 2)
    draft.indent -= 1
    return True


def excepted(draft: Draft) -> bool:
    """`try` with something raised on purpose, or not raised at all."""
    if draft.scope.depth >= 2:
        return False
    raised = draft.pick(("", "raise ValueError('stop')", "int('seven')"))
    with draft.block("try:"):
        draft.write_some(1, 2)
        if raised:
            draft.say(raised)
    with draft.block(
        "except ValueError:" if draft.chance(0.7) else "except (ValueError, KeyError) as error:"
    ):
        draft.write_some(1, 1)
    if draft.chance(0.4):
        with draft.block("else:"):
            draft.write_some(1, 1)
    if draft.chance(0.3):
        with draft.block("finally:"):
            draft.write_some(1, 1)
    return True


def shared_by_class(draft: Draft) -> bool:
    """A tensor that belongs to the class: written through one object, read through another."""
    if draft.scope.in_function or draft.scope.in_loop:
        return False
    source = draft.find(where=lambda known: fits("any", known.shape))
    if source is None:
        return False
    cls = draft.fresh(("Pool", "Shared", "Registry"))
    size = ", ".join(map(str, source.shape))
    leaf = draft.chance(0.3)
    made = f"torch.ones({size}{', requires_grad=True' if leaf else ''})"
    update = draft.pick(("self.table = self.table + value", "self.table = value * 2"))
    if draft.dares() or not leaf:
        update = draft.pick(
            (
                "self.table.mul_(value.detach())",
                "self.table += value",
                "type(self).table = self.table * value",
                update,
            )
        )
    with draft.definition(f"class {cls}:"):
        draft.say(f"table = {made}")
        draft.say("")
        draft.say("def put(self, value):")
        draft.say(f"    {update}")
        draft.say("    return self")
        draft.say("")
        draft.say("def use(self, value):")
        draft.say(
            f"    return {draft.pick(('self.table * value', 'value + self.table', 'self.table.exp() + value'))}"
        )
    first, second = draft.fresh(("one", "left", "north")), draft.fresh(("two", "right", "south"))
    draft.say(f"{first}, {second} = {cls}(), {cls}()")
    before = draft.fresh(NAMES)
    draft.say(f"{before} = {second}.use({source.text})")
    draft.say(f"{first}.put({source.text})")
    after = draft.fresh(NAMES)
    draft.say(f"{after} = {draft.pick((first, second))}.use({source.text})")
    grad = draft.scope.recording and (source.grad or leaf)
    for name in (before, after):
        draft.add(Var(name, source.shape, draft.group(), grad))
    draft.keep(source)
    return True


def data_record(draft: Draft) -> bool:
    """A dataclass with tensor fields, a default and a method or property over them."""
    if draft.scope.in_function or draft.scope.in_loop:
        return False
    source = draft.find(where=lambda known: fits("any", known.shape))
    if source is None:
        return False
    cls = draft.fresh(("Batch", "Sample", "Pair"))
    size = ", ".join(map(str, source.shape))
    decorator = draft.pick(("@dataclasses.dataclass", "@dataclasses.dataclass(frozen=True)"))
    body = draft.pick(
        ("self.value * self.weight", "self.value.exp() + self.weight", "(self.value - self.weight) ** 2")
    )
    prop = draft.chance(0.5)
    with draft.definition(f"class {cls}:", decorators=[decorator]):
        draft.say("value: torch.Tensor")
        draft.say(f"weight: torch.Tensor = dataclasses.field(default_factory=lambda: torch.ones({size}))")
        draft.say("")
        if prop:
            draft.say("@property")
        draft.say("def joined(self):")
        draft.say(f"    return {body}")
    item = draft.fresh(("batch", "sample", "pair"))
    extra = draft.find(shape=source.shape) if draft.chance(0.5) else None
    draft.say(f"{item} = {cls}({source.text}{f', weight={extra.text}' if extra is not None else ''})")
    bound = draft.fresh(NAMES)
    draft.say(f"{bound} = {item}.joined{'' if prop else '()'}")
    grad = draft.scope.recording and (source.grad or (extra is not None and extra.grad))
    draft.add(Var(bound, source.shape, draft.group(), grad))
    draft.add(
        Var(f"{item}.value", source.shape, source.group, source.grad, source.leaf, source.refuses, fixed=True)
    )
    if grad:
        draft.keep(source, *([extra] if extra is not None else []))
    if draft.chance(0.3):
        draft.say(f"{item} = dataclasses.replace({item}, value={item}.value * 2)")
        draft.add(Var(f"{item}.value", source.shape, draft.group(), source.grad, fixed=True))
    return True


def correlated_lengths(draft: Draft) -> bool:
    """Different questions about one number: not every combination of answers exists."""
    if draft.scope.depth > 1 or draft.unknown_choices >= MOST_UNKNOWN_CHOICES - 1:
        return False
    draft.unknown_choices += 2
    questions = (
        "count > 3",
        "count == 1",
        "count >= 2",
        "count != 5",
        "1 < count < 4",
        "count in (1, 2)",
        "not count == 5",
    )
    draft.say("count = len(sys.argv)")
    for question in draft.rng.sample(questions, 2):
        with draft.block(f"if {question}:"):
            draft.write_some(1, 2)
        draft.write_some(0, 1)
    return True


def generator_pipeline(draft: Draft) -> bool:
    """Generators that feed each other, `yield from`, and a value taken with `next`."""
    if draft.scope.in_function or draft.scope.in_loop:
        return False
    source = draft.find(where=lambda known: fits("any", known.shape))
    if source is None:
        return False
    name = draft.fresh(("stream", "feed", "produce"))
    step = draft.pick(("t = t * 0.5", "t = torch.tanh(t)", "t = t + 1"))
    if draft.dares() and not source.leaf:
        step = draft.pick(("t *= 0.5", "t.add_(1)", step))
    with draft.definition(f"def {name}(t, rounds):"), draft.block("for _ in range(rounds):"):
        draft.say("yield t")
        draft.say(step)
    bound = draft.fresh(NAMES)
    use = draft.pick(
        (
            "{0} = sum({1}({2}, 3))",
            "{0} = torch.stack(list({1}({2}, 2))).prod(0)",
            "*_, {0} = {1}({2}, 3)",
            "{0} = next({1}({2}, 2)) * 2",
            "{0} = functools.reduce(torch.mul, {1}({2}, 2))",
        )
    )
    draft.say(use.format(bound, name, source.text))
    draft.add(Var(bound, source.shape, draft.group(), source.grad and draft.scope.recording))
    draft.keep(source)
    return True
