"""The card of one operator: what it keeps, what may be overwritten afterwards, view or copy, where gradient flows."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gradsight.ops.fact import Case, Condition, OpFact, Output, Save, output_name

if TYPE_CHECKING:
    from rich.console import Console

ORIGINS = {
    "measured": "measured by running it",
    "formula": "from torch's derivative formulas",
    "schema": "from torch's operator schemas",
    "hand": "written by hand, run by the test suite",
}


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a card: a word and a sentence."""

    word: str
    text: str


def print_card(fact: OpFact, torch_version: str) -> None:
    """Print with colours on a terminal, plainly otherwise."""
    if sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb":
        from rich.console import Console

        render_card(Console(highlight=False), fact, torch_version)
    else:
        print("\n".join(plain_card(fact, torch_version)))


def plain_card(fact: OpFact, torch_version: str) -> list[str]:
    """The card as lines of text."""
    lines = [signature(fact)]
    for title, rows in sections(fact):
        if title:
            lines += ["", title]
        lines += [f"  {row.word:9} {row.text}" for row in rows]
    lines += ["", f"  {'source':9} {_source(fact, torch_version)}"]
    return lines


def render_card(console: Console, fact: OpFact, torch_version: str) -> None:
    """Print the card in colours."""
    from rich.table import Table
    from rich.text import Text

    console.print(Text(signature(fact), style="bold"))
    for title, rows in sections(fact):
        if title:
            console.print()
            console.print(Text(title, style="cyan"))
        grid = Table.grid(padding=(0, 1))
        grid.add_column(style="green", no_wrap=True, width=11)
        grid.add_column()
        for row in rows:
            grid.add_row(Text("  " + row.word), Text(row.text))
        console.print(grid)
    console.print()
    console.print(Text("  source    " + _source(fact, torch_version), style="dim"))


def _source(fact: OpFact, torch_version: str) -> str:
    return f"{ORIGINS[fact.origin]}, torch {torch_version}"


def signature(fact: OpFact) -> str:
    """`torch.exp(input, *, out=None)`; for a module its constructor, for a property the name alone."""
    if fact.name in _properties():
        return fact.name
    shown = fact.options or fact.parameters
    defaults = fact.option_defaults if fact.options else fact.defaults
    if fact.name.startswith("Tensor.") and fact.parameters[:1] == ("self",) and not fact.options:
        shown = fact.parameters[1:]
    parts = []
    starred = any(name.startswith("*") for name in shown)
    for name in shown:
        if name in fact.keyword_only and not starred:
            parts.append("*")
            starred = True
        parts.append(f"{name}={defaults[name]}" if name in defaults else name)
    return f"{fact.name}({', '.join(parts)})"


def _properties() -> frozenset[str]:
    """Names that are read, not called."""
    from gradsight.ops.cache import load

    return frozenset(load().about.get("listed", {}).get("Tensor properties", ()))


def sections(fact: OpFact) -> list[tuple[str, list[Row]]]:
    """Cases with their titles, the ordinary one last; neighbours of which the card says the same stand together."""
    told: list[tuple[list[frozenset[str]], list[Row]]] = []
    for case in fact.cases:
        if case.when and case.when[0].argument == "out":
            continue
        conditions, rows = frozenset(condition_text(each) for each in case.when), rows_of(fact, case)
        if told and told[-1][1] == rows:
            told[-1][0].append(conditions)
        else:
            told.append(([conditions], rows))
    found = []
    for index, (alternatives, rows) in enumerate(told):
        title = _title(alternatives)
        if title:
            title = ("else if " if index else "if ") + title
        found.append((title or ("otherwise" if len(told) > 1 else ""), rows))
    if any(case.when and case.when[0].argument == "out" for case in fact.cases):
        found.append(("with out=", [Row("writes", "out; torch refuses it when an argument requires grad")]))
    if fact.note:
        found.append(("", [Row("note", fact.note)]))
    return found


def _title(alternatives: list[frozenset[str]]) -> str:
    """Conditions joined by `or`; those that another one includes are left away, and nothing is left of `always`."""
    needed = [each for each in alternatives if not any(other < each for other in alternatives)]
    return ", or ".join(" and ".join(sorted(each)) for each in dict.fromkeys(needed))


def condition_text(condition: Condition) -> str:
    """A condition in words."""
    name, kind, value = condition.argument, condition.kind, condition.value
    if kind == "equals":
        return f"{name} is {_number(value)}"
    if kind == "not":
        return f"{name} is not {_number(value)}"
    if kind == "rank":
        if value[0] in "<>":
            bound = int(value[1:]) + (-1 if value[0] == "<" else 1)
            return f"{name} has {bound} dimensions or {'fewer' if value[0] == '<' else 'more'}"
        return f"{name} has {value} dimension" + ("" if value == "1" else "s")
    return {
        "none": f"{name} is not given",
        "tensor": f"{name} is a tensor",
        "number": f"{name} is a number",
        "sequence": f"{name} is a list",
        "text": f"{name} is a string",
        "basic": f"{name} is made of integers, slices, ... and None",
        "indices": f"{name} holds a list, tensor or boolean",
        "integral": f"{name} holds integers or booleans",
    }[kind]


def _number(value: str) -> str:
    return value[:-2] if value.endswith(".0") else value


def rows_of(fact: OpFact, case: Case) -> list[Row]:
    """The sentences of one case."""
    rows = []
    if case.saves or case.outputs:
        rows = [Row("saves", _keeps_text(case)), Row("overwrite", _overwrite_text(fact, case))]
    written = [name + (" (autograd does not notice)" if name in case.quiet else "") for name in case.writes]
    written += [f"{name} in some calls" for name in case.may_write]
    if written:
        under = "; under no_grad, so a leaf is not refused" if case.no_grad else ""
        rows.append(Row("writes", ", ".join(written) + under))
    rows.append(Row("returns", _returns_text(case)))
    gradients = [_gradient_text(output) for output in case.outputs]
    for index, text in enumerate(dict.fromkeys(gradients) if len(set(gradients)) == 1 else gradients):
        label = "gradient" if index == 0 else ""
        which = f"{output_name(f'result.{index}')}: " if len(set(gradients)) > 1 else ""
        rows.append(Row(label, which + text))
    if any(output.gradient != "none" for output in case.outputs):
        rows.append(Row("backward", _twice_text(case)))
    if case.refuses:
        rows.append(Row("refuses", f"{_and(case.refuses)} must not require grad"))
    return rows


def _keeps_text(case: Case) -> str:
    if not case.saves:
        return "none of your tensors for backward"
    return "; ".join(_save_text(save) for save in case.saves)


def _save_text(save: Save) -> str:
    text = _output_word(save.what)
    if save.when == "sometimes":
        text += ", in some calls"
    if save.needs:
        text += f", if {_or(save.needs)} requires grad"
    if save.contiguous:
        text += " (a copy if it is not contiguous)"
    if not save.noticed:
        text += " (a later write is not noticed: the gradient is silently wrong)"
    return text


def _output_word(name: str) -> str:
    return f"its {output_name(name)}" if name.startswith("result") else name


def _overwrite_text(fact: OpFact, case: Case) -> str:
    """What may be written in place between forward and backward."""
    kept = list(dict.fromkeys(save.what for save in case.saves))
    several = len(case.outputs) > 1
    results = [f"result.{index}" for index in range(len(case.outputs))] if several else ["result"]
    if case.returns == "none" or not case.outputs:
        results = []
    free = [name for name in fact.parameters[:1] if _is_tensor(fact, name.lstrip("*"))]
    free += [_output_word(name) for name, output in zip(results, case.outputs) if not _refuses_writes(output)]
    blocked = {_output_word(name) for name in kept}
    if any(output.alias in blocked and output.aliased == "always" for output in case.outputs):
        blocked.update(_output_word(name) for name in results)
    if case.outputs and case.outputs[0].same == "always" and "its output" in blocked:
        blocked.add(case.outputs[0].alias)
    free = [name for name in free if name.lstrip("*") not in blocked]
    allowed = f"{_and(tuple(free))} may be overwritten before backward" if free else ""
    if not kept:
        return allowed or "nothing stands against it"
    refused = f"not {_or(tuple(_output_word(name) for name in kept))} before backward"
    return refused + (f"; {_and(tuple(free))} may be" if free else "")


def _is_tensor(fact: OpFact, name: str) -> bool:
    """Whether anything told about a parameter shows that it takes a tensor."""
    if name in ("self", "input", "tensor", "tensors"):
        return True
    shown: set[str] = set()
    for case in fact.cases:
        shown.update(each.what for each in case.saves)
        for output in case.outputs:
            shown.update((output.alias, output.shape[5:], *output.needs, *output.zero_for))
    return name in shown


def _refuses_writes(output: Output) -> bool:
    return output.one_of_many or output.overlapping


def _returns_text(case: Case) -> str:
    if case.returns in ("number", "object", "none", "array") and not case.outputs:
        return {"number": "a Python number, outside the graph", "none": "nothing"}.get(
            case.returns, "an object that is not a tensor"
        )
    texts = [_memory_text(output) for output in case.outputs]
    if case.returns == "sequence":
        return "several tensors, each " + (texts[0] if texts else "new")
    if case.returns == "array":
        return "a NumPy array, " + texts[0]
    if case.returns == "none":
        return "nothing; the tensor afterwards: " + texts[0]
    if len(texts) > 1:
        return f"{len(texts)} tensors: " + "; ".join(dict.fromkeys(texts))
    return texts[0] if texts else "an object that is not a tensor"


def _memory_text(output: Output) -> str:
    details = []
    if output.one_of_many:
        details.append("one of several views: in-place writes are refused")
    if output.overlapping:
        details.append("elements share memory: in-place writes are refused")
    if output.alias and not output.shares_version:
        details.append("writes through it are not noticed by autograd")
    if output.same == "always":
        text = f"{output.alias} itself"
    elif output.alias and output.aliased == "always":
        text = f"a view of {output.alias}" + (", or itself" if output.same == "sometimes" else "")
    elif output.alias:
        text = f"a view of {output.alias} or a copy" + (", or itself" if output.same == "sometimes" else "")
    else:
        text = "a new tensor"
    if output.leaf:
        details.append("a leaf")
    return text + (f" ({'; '.join(details)})" if details else "")


def _gradient_text(output: Output) -> str:
    kind = {"bool": "boolean", "int": "integer"}.get(output.dtype, "")
    if output.gradient == "none":
        return "none" + (f": the output is {kind}" if kind else ": the output has no grad_fn")
    if output.gradient == "zero":
        return "always zero: backward runs and teaches nothing"
    if output.gradient == "undefined":
        return "torch has no derivative: backward raises"
    text = f"flows from {_and(output.needs)}" if output.needs else "flows"
    if output.flows == "sometimes":
        text += " in some calls"
    if output.undefined_for:
        text += f"; torch has no derivative for {_and(output.undefined_for)}"
    return text + (f"; always zero for {_and(output.zero_for)}" if output.zero_for else "")


def _twice_text(case: Case) -> str:
    if case.holds_saved == "never":
        return "may run twice: nothing was saved"
    if case.holds_saved == "sometimes":
        return "a second run is refused in some calls"
    needs = f" if {_or(case.holds_needs)} requires grad" if case.holds_needs else ""
    return f"a second run is refused{needs}, unless retain_graph=True"


def _and(names: tuple[str, ...]) -> str:
    return _joined(names, "and")


def _or(names: tuple[str, ...]) -> str:
    return _joined(tuple(_relation_word(name) for name in names), "or")


def _relation_word(name: str) -> str:
    owner, _, relation = name.partition(":")
    if relation == "others":
        return f"another of {owner}"
    return f"that one of {owner}" if relation == "itself" else name


def _joined(names: tuple[str, ...], word: str) -> str:
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} {word} {names[-1]}"
