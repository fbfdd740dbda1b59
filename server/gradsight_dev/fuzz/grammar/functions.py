"""Functions the program defines and calls: arguments written in place, views returned, closures, lambdas, generators."""

from __future__ import annotations

from gradsight_dev.fuzz.grammar.compute import expression, fits
from gradsight_dev.fuzz.grammar.draft import FUNCTION_NAMES, NAMES, Draft, Routine, Shape, Var

PARAMETERS = ("t", "other", "inp", "src")
DECORATORS = (
    "@torch.no_grad()",
    "@torch.inference_mode()",
    "@torch.enable_grad()",
    "@torch.set_grad_enabled(False)",
)


def define(draft: Draft) -> bool:
    """A function of one or two tensors, called at once and perhaps again later."""
    if draft.scope.in_function:
        return False
    first = draft.find(where=lambda known: fits("any", known.shape))
    if first is None:
        return False
    takes: list[Shape] = [first.shape]
    if draft.chance(0.4):
        takes.append(first.shape if draft.chance(0.7) else first.shape[-1:])
    name = draft.fresh(FUNCTION_NAMES)
    parameters = list(PARAMETERS[: len(takes)])
    flag = draft.chance(0.2)
    header = ", ".join(parameters + (["inplace=False"] if flag else []))
    decorators = [draft.pick(DECORATORS)] if draft.chance(0.12) else []
    recording = not decorators or "enable" in decorators[0]
    with draft.definition(f"def {name}({header}):", decorators=decorators):
        draft.scope.recording = recording
        for parameter, shape in zip(parameters, takes):
            draft.add(Var(parameter, shape, draft.group()))
        if flag:
            with draft.block("if inplace:"):
                draft.say(f"{parameters[0]}.{draft.pick(('mul_', 'add_', 'sub_'))}({draft.number()})")
            with draft.block("else:"):
                draft.say(f"{parameters[0]} = {parameters[0]} * {draft.number()}")
        draft.write_some(1, 4)
        gives = _return(draft, parameters[0])
    extra = ("inplace=True", "inplace=False") if flag else ()
    draft.scope.routines.append(Routine(name, tuple(takes), gives, extra))
    return call(draft, draft.scope.routines[-1])


def call(draft: Draft, routine: Routine | None = None) -> bool:
    """`out = step(h)`."""
    if routine is None:
        if not draft.scope.routines:
            return False
        routine = draft.pick(draft.scope.routines)
    arguments = []
    for shape in routine.takes:
        argument = draft.writable(shape=shape) or draft.find(shape=shape)
        if argument is None:
            return False
        arguments.append(argument)
    texts = [argument.text for argument in arguments]
    if routine.extra and draft.chance(0.6):
        texts.append(draft.pick(routine.extra))
    call_text = f"{routine.call}({', '.join(texts)})"
    if not routine.gives or draft.chance(0.1):
        draft.say(call_text)
        return True
    grad = any(argument.grad for argument in arguments)
    names = [draft.fresh(NAMES) for _ in routine.gives]
    draft.say(f"{', '.join(names)} = {call_text}")
    for name, shape in zip(names, routine.gives):
        draft.add(Var(name, shape, draft.group(), grad))
    return True


def closure(draft: Draft) -> bool:
    """A nested function that uses names of the place where it stands."""
    if draft.scope.depth > 1:
        return False
    captured = draft.find(where=lambda known: fits("any", known.shape) and known.is_name)
    if captured is None:
        return False
    name = draft.fresh(FUNCTION_NAMES)
    writes = draft.writable(shape=captured.shape) is not None and (
        captured.group not in draft.kept or draft.dares()
    )
    outer_variables = draft.scope.variables
    with draft.block(f"def {name}():", in_function=True, free_rebinding=False):
        draft.scope.variables = [
            Var(known.text, known.shape, known.group, known.grad, known.leaf, known.refuses, True)
            for known in outer_variables
        ]
        if writes and not captured.leaf and not captured.refuses:
            draft.say(f"{captured.text}.{draft.pick(('mul_', 'add_', 'div_'))}({draft.number()})")
        text, result = expression(draft, captured, keep_shape=True)
        draft.say(f"return {text}")
    draft.say(f"{name}()") if draft.chance(0.2) else None
    bound = draft.fresh(NAMES)
    draft.say(f"{bound} = {name}()")
    draft.add(Var(bound, captured.shape, result.group, result.grad))
    return True


def anonymous(draft: Draft) -> bool:
    """`double = lambda t: t * 2`."""
    argument = draft.find(where=lambda known: fits("any", known.shape))
    if argument is None:
        return False
    name = draft.fresh(("double", "soften", "squash", "bend"))
    harmless = ("t * 2", "t.exp()", "t ** 2", "t + t.mean()", "t.sin()", "t.view(t.shape)", "t.detach()")
    writing = ("t.mul_(2)", "t.add_(1)", "t.exp_()", "F.relu(t, inplace=True)", "t.clamp_(min=0)")
    target = draft.writable(shape=argument.shape)
    if target is not None and draft.chance(0.5):
        argument, body = target, draft.pick(writing)
    else:
        body = draft.pick(harmless)
    draft.say(f"{name} = lambda t: {body}")
    bound = draft.fresh(NAMES)
    draft.say(f"{bound} = {name}({argument.text})")
    group = argument.group if body in writing or "view" in body else draft.group()
    draft.add(Var(bound, argument.shape, group, argument.grad and "detach" not in body))
    return True


def recursion(draft: Draft) -> bool:
    """A function that calls itself a few times."""
    if draft.scope.in_function or draft.scope.in_loop:
        return False
    start = draft.find(where=lambda known: fits("any", known.shape))
    if start is None:
        return False
    name = draft.fresh(("deepen", "repeat", "descend"))
    body = ["t = t * 2", "t = t.exp()", "t = torch.tanh(t)", "t = t + 1"]
    writable = draft.writable(shape=start.shape)
    if writable is not None:
        start = writable
        body += ["t.mul_(0.5)", "t *= 2", "t += 1"]
    with draft.definition(f"def {name}(t, depth):"):
        with draft.block("if depth == 0:"):
            draft.say("return t")
        for _ in range(draft.rng.randint(1, 2)):
            draft.say(draft.pick(body))
        draft.say(f"return {name}(t, depth - 1)")
    bound = draft.fresh(NAMES)
    draft.say(f"{bound} = {name}({start.text}, {draft.rng.randint(1, 3)})")
    draft.add(Var(bound, start.shape, draft.group(), start.grad))
    return True


def generator(draft: Draft) -> bool:
    """A generator that yields pieces of a tensor, looped over."""
    if draft.scope.in_function or draft.scope.in_loop:
        return False
    source = draft.find(where=lambda known: len(known.shape) == 2 and fits("any", known.shape))
    if source is None:
        return False
    name = draft.fresh(("pieces_of", "rows_of", "windows"))
    header = draft.pick(("for i in range(t.shape[0]):", "for i in range(len(t)):"))
    piece = draft.pick(("t[i]", "t[i] * 2", "t[i].exp()", "t[i].clone()", "t[i].detach()"))
    with draft.definition(f"def {name}(t):"), draft.block(header):
        draft.say(f"yield {piece}")
    collected = draft.fresh(("gathered", "seen", "chunks"))
    draft.say(f"{collected} = []")
    with draft.block(f"for piece in {name}({source.text}):", in_loop=True, free_rebinding=False):
        draft.add(Var("piece", source.shape[1:], source.group, source.grad))
        if source.leaf and not draft.dares():
            draft.say(f"piece = piece * {draft.number()}")
        else:
            draft.write_some(0, 2)
        draft.say(f"{collected}.append(piece)")
    bound = draft.fresh(NAMES)
    draft.say(f"{bound} = torch.stack({collected})")
    draft.add(Var(bound, source.shape, draft.group(), source.grad))
    return True


def variadic(draft: Draft) -> bool:
    """Star arguments and keyword arguments on the way to an operator."""
    if draft.scope.in_function:
        return False
    first = draft.find(where=lambda known: fits("any", known.shape))
    if first is None:
        return False
    second = draft.find(shape=first.shape)
    assert second is not None
    name = draft.fresh(("combine", "merge", "blend"))
    body = draft.pick(
        ("sum(tensors) * factor", "torch.stack(tensors).prod(0) * factor", "tensors[0] * tensors[1] * factor")
    )
    with draft.definition(f"def {name}(*tensors, factor=1.0):"):
        draft.say(f"return {body}")
    bound = draft.fresh(NAMES)
    style = draft.pick(
        (
            "{0}({1}, {2})",
            "{0}(*[{1}, {2}])",
            "{0}({1}, {2}, factor=2.0)",
            "{0}(*({1}, {2}), **{{'factor': 3.0}})",
        )
    )
    draft.say(f"{bound} = {style.format(name, first.text, second.text)}")
    result = draft.add(Var(bound, first.shape, draft.group(), first.grad or second.grad))
    if "sum" not in body and result.grad:
        draft.keep(first, second)
    return True


def _return(draft: Draft, parameter: str) -> tuple[Shape, ...]:
    """The function's last statement, and the shapes it returns."""
    style = draft.weighted(
        (("one", 5.0), ("expression", 3.0), ("two", 1.0), ("argument", 0.7), ("none", 0.5))
    )
    result = draft.find(where=lambda known: known.grad) or draft.find()
    assert result is not None
    if style == "none":
        return ()
    if style == "argument":
        mine = next(known for known in draft.scope.variables if known.text == parameter)
        draft.say(f"return {parameter}")
        return (mine.shape,)
    if style == "two":
        second = draft.find()
        assert second is not None
        draft.say(f"return {result.text}, {second.text}")
        return (result.shape, second.shape)
    if style == "expression" and fits("any", result.shape):
        text, value = expression(draft, result, keep_shape=True)
        draft.say(f"return {text}")
        return (value.shape,)
    draft.say(f"return {result.text}")
    return (result.shape,)
