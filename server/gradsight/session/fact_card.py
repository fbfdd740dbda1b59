"""What is known about an operator, told in sentences: what it keeps for backward, what may be overwritten afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gradsight.ops.fact import Case, Condition, OpFact, Save, output_name

MOST_CASES = 6


def fact_card(fact: OpFact, torch_version: str = "") -> str:
    """A card in Markdown that is true of every call: each case with the conditions under which it holds."""
    told = _told_cases(fact)
    lines = [f"**`{signature(fact)}`**", ""]
    if len(told) == 1:
        lines += [f"- {sentence}" for sentence in told[0][1]]
    else:
        lines += [f"- {when}: {'; '.join(sentences)}" for when, sentences in told[:MOST_CASES]]
        if len(told) > MOST_CASES:
            lines.append(f"- {len(told) - MOST_CASES} more forms: `gradsight facts {fact.name}`")
    return "\n".join([*lines, *_closing(fact, torch_version)])


def call_card(
    shown: OpFact, fact: OpFact, cases: Sequence[Case], torch_version: str = "", is_recorded: bool = True
) -> str:
    """The card of a call: the cases of `fact` that it meets, under the name that the program calls it by."""
    # What the signature does not show has no name that a reader could know.
    fact = replace(fact, parameters=tuple(each for each in fact.parameters if each in shown.parameters))
    told = list(dict.fromkeys(tuple(case_sentences(fact, case)) for case in cases))
    lines = [f"**`{signature(shown)}`**", ""]
    if not is_recorded:
        lines.append("- not recorded here: grad mode is off, or nothing that it is given requires grad")
    if len(told) == 1:
        lines += [f"- {sentence}" for sentence in told[0]]
    else:
        lines += [f"- {_when(case.when)}: {'; '.join(case_sentences(fact, case))}" for case in cases]
    if len(_told_cases(fact)) > len(told):
        lines.append(f"- other forms: `gradsight facts {shown.name}`")
    return "\n".join([*lines, *_closing(fact, torch_version)])


def of_call(case: Case, numbers: Sequence[str], copied: Sequence[str] = (), is_recorded: bool = True) -> Case:
    """The case of a call in which some arguments are plain numbers or left out: none is kept, or needs grad.

    Of those that are copied it cannot be said that they are kept; a call that is not recorded keeps nothing.
    """
    if not is_recorded:
        return replace(case, saves=(), holds_saved="never")
    saves = (
        replace(save, when="sometimes") if save.what in copied and save.when == "always" else save
        for save in case.saves
        if save.what not in numbers
        and not (save.needs and all(need.partition(":")[0] in numbers for need in save.needs))
    )
    return replace(case, saves=tuple(saves))


def _closing(fact: OpFact, torch_version: str) -> list[str]:
    lines = [f"- {fact.note}"] if fact.note else []
    return [*lines, "", f"*{_origin(fact)} on torch {torch_version}*"] if torch_version else lines


def _told_cases(fact: OpFact) -> list[tuple[str, list[str]]]:
    """The cases in the order in which they are tried, each with what must hold for it; those that `out=` makes are left out."""
    told: list[tuple[str, list[str]]] = []
    for case in fact.cases:
        sentences = case_sentences(fact, case)
        if any(each.argument == "out" for each in case.when) or not sentences:
            continue
        told.append((_when(case.when), sentences))
    alike = {tuple(sentences) for _, sentences in told}
    return told[:1] if len(alike) == 1 else told


def signature(fact: OpFact) -> str:
    """The callable as a user writes it."""
    parameters = [name for name in fact.parameters if name not in ("self", "out")]
    owner, _, name = fact.name.rpartition(".")
    if owner == "Tensor" and fact.name in _PROPERTIES:
        return fact.name
    shown = (
        f"torch.{fact.name}" if owner.startswith(("nn", "linalg", "special", "fft", "optim")) else fact.name
    )
    if name[:1].isupper() and fact.options:
        parameters = [option for option in fact.options if not option.startswith("*")][:6]
    return f"{shown}({', '.join(parameters)})"


FOR_LEAVES = frozenset({"Tensor.__deepcopy__", "Tensor.grad_dtype", "Tensor.requires_grad_"})
"""What they refuse they refuse of results only."""


def case_sentences(fact: OpFact, case: Case) -> list[str]:
    """What the operator does in one case."""
    sentences = []
    if case.writes:
        sentences.append(_writes(case))
    if case.may_write:
        sentences.append(f"may write {_names(case.may_write)} in place")
    sentences += _keeps(fact, case)
    sentences += _result(case)
    if case.refuses:
        result = " and is not a leaf" if fact.name in FOR_LEAVES else ""
        sentences.append(f"raises if {_names(case.refuses, 'or')} requires grad{result}")
    return sentences


def _writes(case: Case) -> str:
    written = _names(case.writes)
    if set(case.quiet) >= set(case.writes) or not case.bumps_version:
        return f"writes {written} in place, and autograd does not notice"
    if case.no_grad:
        return f"writes {written} in place, without recording it: backward raises if the old value was saved"
    return f"writes {written} in place: backward raises if the old value was saved"


def _keeps(fact: OpFact, case: Case) -> list[str]:
    if not case.outputs or case.returns in ("number", "none", "object", "array"):
        return []
    if all(output.gradient in ("none", "undefined") for output in case.outputs):
        return []
    free = "" if case.writes else ": you may overwrite its inputs and its output"
    if not case.saves:
        if case.holds_saved == "never":
            return [f"saves nothing for backward{free}"]
        return [f"saves none of your tensors for backward{free}"]
    results = [save for save in case.saves if save.what.startswith("result")]
    inputs = [save for save in case.saves if not save.what.startswith("result")]
    them = "it" if len(case.saves) == 1 else "them"
    sentence = (
        f"saves {_kept(case.saves)} for backward: do not overwrite {them} in place before backward runs"
    )
    if not inputs:
        again = f"saves {_kept(results)} for backward: do not overwrite {them} again"
        return [again if case.writes else f"{sentence}; overwriting the input is fine"]
    if not results and not case.writes:
        other = _free_input(fact, inputs)
        return [f"{sentence}; overwriting the output{' or ' + other if other else ''} is fine"]
    return [sentence]


def _free_input(fact: OpFact, kept: Sequence[Save]) -> str:
    """The tensor argument that is never kept, where there is just one."""
    others = [name for name in ("self", "input", "other") if name in fact.parameters]
    free = [name for name in others if name not in {save.what for save in kept}]
    return f"`{free[0]}`" if len(free) == 1 and len(others) > 1 else ""


def _kept(saves: Sequence[Save]) -> str:
    words = []
    for save in saves:
        is_result = save.what.startswith("result")
        word = f"its *{output_name(save.what)}*" if is_result else f"`{_spoken(save.what)}`"
        needs = [need.partition(":")[0] for need in save.needs]
        if needs and save.what not in needs:
            word += f" (if {_names(tuple(dict.fromkeys(needs)), 'or')} requires grad)"
        if save.when == "sometimes":
            word += " (in some calls)"
        words.append(word)
    return _joined(words)


def _result(case: Case) -> list[str]:
    if case.returns == "number":
        return ["gives a Python number: the graph ends here"]
    if case.returns == "array":
        return ["gives a NumPy array that shares memory: the graph ends here, and writes to it go unnoticed"]
    sentences = []
    for index, output in enumerate(case.outputs[:3]):
        name = "the output" if len(case.outputs) == 1 else f"the {output_name(f'result.{index}')}"
        if case.sequence or case.returns == "sequence":
            name = "each output"
        if output.leaf:
            sentences.append(f"{name} is a new leaf, not connected to anything")
            continue
        if output.alias and output.alias not in case.writes:
            sentences.append(_shared(name, _spoken(output.alias), case, index))
        if output.gradient == "none":
            sentences.append(
                f"{name} is integer: no gradient flows through it"
                if output.dtype == "int"
                else f"{name} is boolean: no gradient flows through it"
                if output.dtype == "bool"
                else f"no gradient flows through {name}"
            )
        elif output.gradient == "zero":
            sentences.append(f"the gradient through {name} is always zero: nothing before it learns")
        elif output.gradient == "undefined":
            sentences.append("torch has no derivative for it: backward raises")
    return sentences


def _shared(name: str, alias: str, case: Case, index: int) -> str:
    output = case.outputs[index]
    if output.same == "always":
        return f"{name} is `{alias}` itself"
    often = "" if output.aliased == "always" else " in some calls"
    same = ", or the very same tensor," if output.same == "sometimes" else ""
    sentence = f"{name} is a view of `{alias}`{same}{often}: they share memory"
    if not output.shares_version:
        return sentence + ", and autograd does not notice writes through it"
    if output.one_of_many:
        return sentence + "; in-place writes to one of several views raise"
    if output.overlapping:
        return sentence + "; in-place writes raise where several of its elements are one in memory"
    return sentence + ", and autograd notices writes through either"


def _when(conditions: Sequence[Condition]) -> str:
    return "otherwise" if not conditions else "with " + " and ".join(_condition(each) for each in conditions)


def _condition(condition: Condition) -> str:
    name = f"`{_spoken(condition.argument)}`"
    if condition.kind == "equals":
        return f"`{_spoken(condition.argument)}={_value(condition)}`"
    if condition.kind == "not":
        return f"{name} other than `{_value(condition)}`"
    if condition.kind == "rank":
        return f"{name} of rank {condition.value}"
    return f"{name} {_KINDS.get(condition.kind, condition.kind)}"


def _value(condition: Condition) -> str:
    """A whole number without the point that the tables give it."""
    return str(condition.value).removesuffix(".0")


_KINDS = {
    "number": "a number",
    "tensor": "a tensor",
    "none": "left out",
    "sequence": "a sequence",
    "text": "a string",
    "basic": "made of integers and slices",
    "indices": "a tensor or list of indices",
    "integral": "an integer tensor",
}
_PROPERTIES = frozenset(
    f"Tensor.{name}" for name in "T mT H mH data grad real imag shape is_leaf requires_grad grad_fn".split()
)


def _origin(fact: OpFact) -> str:
    return {
        "measured": "measured",
        "formula": "from torch's derivative formulas",
        "schema": "from torch's schemas",
        "hand": "by hand, checked",
    }[fact.origin]


def _spoken(name: str) -> str:
    return name.lstrip("*")


def _names(names: Sequence[str], word: str = "and") -> str:
    return _joined([f"`{_spoken(name)}`" for name in names], word)


def _joined(words: Sequence[str], word: str = "and") -> str:
    return f"{', '.join(words[:-1])} {word} {words[-1]}" if len(words) > 1 else "".join(words)
