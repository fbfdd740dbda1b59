"""Plain classes that hold tensors and change them in methods: state machines, buffers, exponential averages."""

from __future__ import annotations

from gradsight_dev.fuzz.grammar.compute import expression, fits
from gradsight_dev.fuzz.grammar.draft import NAMES, Draft, Var

METHODS = ("advance", "push", "blend_in", "absorb")


def stateful_object(draft: Draft) -> bool:
    """An object whose method updates `self.state` and returns it."""
    if draft.scope.in_function or draft.scope.in_loop:
        return False
    start = draft.writable() if draft.chance(0.5) else draft.find()
    if start is None or not fits("any", start.shape):
        return False
    cls = draft.fresh(("Tracker", "Memory", "Average", "Accumulator"))
    method = draft.pick(METHODS)
    update = draft.pick(
        (
            "self.state = self.state * 0.5 + value",
            "self.state = torch.tanh(self.state * value)",
            "self.state += value",
            "self.state.mul_(0.9).add_(value, alpha=0.1)",
            "self.state.mul_(0.9).add_(value.detach(), alpha=0.1)",
            "self.state[0] = value[0]",
            "self.state = value",
            "self.state = self.state.detach() + value",
            "self.state.copy_(value)",
        )
    )
    with draft.definition(f"class {cls}:"):
        draft.say("def __init__(self, start):")
        draft.say(
            f"    self.state = {draft.pick(('start', 'start', 'start.clone()', 'start.detach().clone()', 'torch.zeros_like(start)'))}"
        )
        draft.say("    self.seen = 0")
        draft.say("")
        draft.say(f"def {method}(self, value):")
        draft.say(f"    {update}")
        draft.say("    self.seen += 1")
        draft.say(
            f"    return {draft.pick(('self.state', 'self.state', 'self.state * 2', 'self.state.clone()', 'self.state ** 2'))}"
        )
    name = draft.fresh(("tracker", "keeper", "ema", "collector"))
    draft.say(f"{name} = {cls}({start.text})")
    value = draft.find(shape=start.shape)
    assert value is not None
    bound = draft.fresh(NAMES)
    if draft.chance(0.5):
        with draft.block(f"for _ in range({draft.rng.randint(2, 3)}):", in_loop=True):
            draft.say(f"{bound} = {name}.{method}({value.text})")
    else:
        for _ in range(draft.rng.randint(1, 2)):
            draft.say(f"{bound} = {name}.{method}({value.text})")
    grad = (start.grad or value.grad) and draft.scope.recording
    draft.add(Var(bound, start.shape, draft.group(), grad))
    draft.add(Var(f"{name}.state", start.shape, draft.group(), grad))
    return True


def callable_object(draft: Draft) -> bool:
    """An object with `__call__`, a property and a static method."""
    if draft.scope.in_function or draft.scope.in_loop:
        return False
    source = draft.find(where=lambda known: fits("any", known.shape))
    if source is None:
        return False
    cls = draft.fresh(("Scaler", "Warp", "Transform"))
    style = draft.pick(("call", "property", "static", "classmethod"))
    with draft.definition(f"class {cls}:"):
        draft.add(Var("value", source.shape, draft.group()))
        value = draft.scope.variables[-1]
        text, result = expression(draft, value, keep_shape=True)
        if style == "call":
            draft.say("def __call__(self, value):")
        elif style == "property":
            draft.say("def __init__(self, value):")
            draft.say("    self.inner = value")
            draft.say("")
            draft.say("@property")
            draft.say("def result(self):")
            draft.say("    value = self.inner")
        elif style == "static":
            draft.say("@staticmethod")
            draft.say("def apply(value):")
        else:
            draft.say("@classmethod")
            draft.say("def apply(cls, value):")
        if draft.dares() and not source.leaf and style != "property":
            draft.say(f"    value{draft.pick(('.mul_(2)', ' *= 2', '.add_(1)', '[0] = 0'))}")
        draft.say(f"    return {text}")
    bound = draft.fresh(NAMES)
    call = {"call": f"{cls}()({source.text})", "property": f"{cls}({source.text}).result"}.get(
        style, f"{cls}.apply({source.text})"
    )
    draft.say(f"{bound} = {call}")
    draft.add(Var(bound, source.shape, result.group, source.grad and draft.scope.recording))
    return True


def custom_function(draft: Draft) -> bool:
    """A torch.autograd.Function with a hand-written backward."""
    if draft.scope.in_function or draft.scope.in_loop:
        return False
    source = draft.find(where=lambda known: fits("any", known.shape))
    if source is None:
        return False
    cls = draft.fresh(("Square", "Scale", "Gate", "Bend"))
    saves, forward, backward = draft.pick(
        (
            ("value", "value ** 2", "grad * 2 * saved"),
            ("result", "value.exp()", "grad * saved"),
            ("value", "value.sin()", "grad * saved.cos()"),
            ("", "value * 3", "grad * 3"),
        )
    )
    with draft.definition(f"class {cls}(torch.autograd.Function):"):
        draft.say("@staticmethod")
        draft.say("def forward(ctx, value):")
        draft.say(f"    result = {forward}")
        if saves:
            draft.say(f"    ctx.save_for_backward({saves})")
        draft.say("    return result")
        draft.say("")
        draft.say("@staticmethod")
        draft.say("def backward(ctx, grad):")
        if saves:
            draft.say("    (saved,) = ctx.saved_tensors")
        draft.say(f"    return {backward}")
    bound = draft.fresh(NAMES)
    draft.say(f"{bound} = {cls}.apply({source.text})")
    result = draft.add(Var(bound, source.shape, draft.group(), source.grad and draft.scope.recording))
    if saves == "value":
        draft.keep(source)
    elif saves == "result":
        draft.keep(result)
    return True
