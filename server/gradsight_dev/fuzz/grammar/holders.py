"""Tensors kept in lists, dicts, tuples and attributes, and written through them."""

from __future__ import annotations

from gradsight_dev.fuzz.grammar.compute import expression, fits
from gradsight_dev.fuzz.grammar.draft import NAMES, Draft, Var


def listed(draft: Draft) -> bool:
    """`parts = [a, b]`, read and written by position."""
    members = _members(draft, draft.rng.randint(2, 3))
    if members is None or draft.scope.in_loop:
        return False
    name = draft.fresh(("parts", "items", "layers", "states", "stack", "terms"))
    texts = [member.text for member in members]
    if draft.chance(0.3):
        draft.say(f"{name} = []")
        for text in texts:
            draft.say(f"{name}.append({text})")
    elif draft.chance(0.2):
        draft.say(f"{name} = list(({', '.join(texts)},))")
    else:
        draft.say(f"{name} = [{', '.join(texts)}]")
    for position, member in enumerate(members):
        draft.add(
            Var(f"{name}[{position}]", member.shape, member.group, member.grad, member.leaf, member.refuses)
        )
    if draft.chance(0.3):
        last = members[-1]
        draft.add(Var(f"{name}[-1]", last.shape, last.group, last.grad, last.leaf, last.refuses))
    return _use_list(draft, name, members)


def tupled(draft: Draft) -> bool:
    """`pair = (a, b)`, taken apart again."""
    members = _members(draft, 2)
    if members is None or draft.scope.in_loop:
        return False
    name = draft.fresh(("pair", "both", "bundle"))
    draft.say(f"{name} = ({', '.join(member.text for member in members)})")
    if draft.chance(0.5):
        names = [draft.fresh(NAMES) for _ in members]
        draft.say(f"{', '.join(names)} = {name}")
        for fresh, member in zip(names, members):
            draft.add(Var(fresh, member.shape, member.group, member.grad, member.leaf, member.refuses))
    else:
        for position, member in enumerate(members):
            draft.add(
                Var(
                    f"{name}[{position}]",
                    member.shape,
                    member.group,
                    member.grad,
                    member.leaf,
                    member.refuses,
                    True,
                )
            )
    return True


def mapped(draft: Draft) -> bool:
    """`bag = {"a": a}`, read, written and looped over by key."""
    members = _members(draft, 2)
    if members is None or draft.scope.in_loop:
        return False
    name = draft.fresh(("bag", "params", "store", "lookup"))
    keys = ("first", "second")
    if draft.chance(0.25):
        draft.say(f"{name} = dict(first={members[0].text}, second={members[1].text})")
    else:
        draft.say(f'{name} = {{"first": {members[0].text}, "second": {members[1].text}}}')
    for key, member in zip(keys, members):
        draft.add(
            Var(f'{name}["{key}"]', member.shape, member.group, member.grad, member.leaf, member.refuses)
        )
    if draft.chance(0.3) and not any(member.leaf or member.refuses for member in members):
        if all(member.group not in draft.kept for member in members) or draft.dares():
            value = draft.fresh(("entry", "content"))
            with draft.block(f"for {value} in {name}.values():", in_loop=True):
                draft.say(f"{value}.{draft.pick(('mul_', 'add_', 'sub_'))}({draft.number()})")
    if draft.chance(0.3):
        source = draft.pick(members)
        if fits("any", source.shape):
            text, result = expression(draft, source, keep_shape=True)
            draft.say(f'{name}["extra"] = {text}')
            draft.add(Var(f'{name}["extra"]', result.shape, result.group, result.grad))
    return True


def attributed(draft: Draft) -> bool:
    """An object with tensor attributes: a plain class, a dataclass or a namespace."""
    members = _members(draft, 2)
    if members is None or draft.scope.in_loop or draft.scope.in_function:
        return False
    style = draft.pick(("class", "dataclass", "namespace", "namedtuple"))
    name = draft.fresh(("box", "holder", "record", "ctx"))
    first, second = (member.text for member in members)
    if style == "namespace":
        draft.say(f"{name} = types.SimpleNamespace(first={first}, second={second})")
    else:
        cls = draft.fresh(("Box", "Holder", "Record", "Carrier"))
        if style == "class":
            with draft.definition(f"class {cls}:"):
                draft.say("def __init__(self, first, second):")
                draft.say("    self.first = first")
                draft.say("    self.second = second")
        elif style == "dataclass":
            with draft.definition(f"class {cls}:", decorators=("@dataclasses.dataclass",)):
                draft.say("first: torch.Tensor")
                draft.say("second: torch.Tensor")
        else:
            draft.head += ["", "", f'{cls} = collections.namedtuple("{cls}", ["first", "second"])']
        draft.say(f"{name} = {cls}({first}, {second})")
    frozen = style == "namedtuple"
    for attribute, member in zip(("first", "second"), members):
        draft.add(
            Var(
                f"{name}.{attribute}",
                member.shape,
                member.group,
                member.grad,
                member.leaf,
                member.refuses,
                frozen,
            )
        )
    if not frozen and draft.chance(0.3) and fits("any", members[0].shape):
        text, result = expression(draft, members[0], keep_shape=True)
        draft.say(f"{name}.first = {text}")
        draft.add(Var(f"{name}.first", result.shape, result.group, result.grad))
    return True


def _members(draft: Draft, count: int) -> list[Var] | None:
    """Some variables, of one shape if that is possible."""
    first = draft.find(where=lambda known: known.is_name)
    if first is None:
        return None
    members = [first]
    while len(members) < count:
        another = draft.find(shape=first.shape, where=lambda known: known.is_name)
        assert another is not None
        members.append(another)
    return members


def _use_list(draft: Draft, name: str, members: list[Var]) -> bool:
    shape = members[0].shape
    grad = any(member.grad for member in members)
    style = draft.pick(("stack", "sum", "write_all", "rebuild", "comprehension", "nothing", "pop"))
    target = draft.fresh(NAMES)
    if style == "stack":
        draft.say(f"{target} = torch.stack({name}).{draft.pick(('sum(0)', 'mean(0)', 'prod(0)'))}")
        draft.add(Var(target, shape, draft.group(), grad))
    elif style == "sum":
        draft.say(f"{target} = sum({name})")
        draft.add(Var(target, shape, draft.group(), grad))
    elif style == "write_all":
        if (
            any(member.leaf or member.refuses or member.group in draft.kept for member in members)
            and not draft.dares()
        ):
            return True
        item = draft.fresh(("each", "one", "entry"))
        with draft.block(f"for {item} in {name}:", in_loop=True):
            operator = draft.pick(("{0}.mul_({1})", "{0} *= {1}", "{0}.add_({1})", "{0} = {0} * {1}"))
            draft.say(operator.format(item, draft.number()))
    elif style == "rebuild":
        with draft.block(f"for index in range(len({name})):", in_loop=True):
            operator = draft.pick(
                (
                    "{0}[index] = {0}[index] * {1}",
                    "{0}[index] = {0}[index].exp()",
                    "{0}[index] = {0}[index] + {1}",
                )
            )
            draft.say(operator.format(name, draft.number()))
    elif style == "comprehension":
        form = draft.pick(("{1} ** 2", "{1} * 2", "{1}.exp()", "{1}.clone()", "{1}.detach()"))
        draft.say(f"{target} = [{form.format(0, 'entry')} for entry in {name}]")
        draft.add(Var(f"{target}[0]", shape, draft.group(), grad and "detach" not in form))
    elif style == "pop" and len(members) > 2:
        last = members[-1]
        draft.say(f"{target} = {name}.pop()")
        draft.forget(f"{name}[{len(members) - 1}]")
        draft.forget(f"{name}[-1]")
        draft.add(Var(target, last.shape, last.group, last.grad, last.leaf, last.refuses))
    return True
