"""How a fact is written on one line of the table, and read back.

    Tensor.mul torch.mul:input+out<TAB>{"sig":"self, other","cases":[{"saves":["other if self"],"out":["flows shape=broadcast"]}]}

The head lists the names that share the fact.  `torch.mul:input+out` says that there the first parameter is called `input`
and that the function takes `out=`.  The rest is JSON whose strings are short sentences.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from gradsight.ops.fact import Case, Condition, OpFact, Output, Save, When

_COMPARE = {"equals": "==", "not": "!="}


def decode_fact(name: str, body: str, spelling: str = "") -> OpFact:
    """The fact of `name` from the JSON of its line; `spelling` is what follows the name's colon in the head."""
    data = json.loads(body)
    parameters, keyword_only, defaults, by_tensor, synonyms = _decode_signature(data.get("sig", ""))
    options, _, option_defaults, _, _ = _decode_signature(data.get("options", ""))
    cases = [_decode_case(each) for each in data.get("cases", ())]
    first, _, out = spelling.partition("+")
    if first and parameters:
        renamed = {parameters[0]: first}
        parameters = (first, *parameters[1:])
        cases = [_rename(case, renamed) for case in cases]
    if out:
        parameters += ("out",)
        keyword_only += ("out",)
        defaults["out"] = "None"
        cases.insert(0, _out_case(cases[-1] if cases else Case()))
    return OpFact(
        name,
        parameters,
        tuple(cases),
        data.get("origin", "measured"),
        defaults,
        data.get("note", ""),
        keyword_only,
        by_tensor,
        synonyms,
        options,
        option_defaults,
    )


def _out_case(usual: Case) -> Case:
    """With `out=` every result is written into the given tensor, and autograd refuses arguments that require grad."""
    outputs = tuple(
        Output("none", alias="out", aliased="always", same="always", dtype=each.dtype, shape=each.shape)
        for each in usual.outputs
    )
    return Case(
        (Condition("out", "not", "None"),),
        (),
        outputs,
        ("out",),
        sequence=usual.sequence,
        holds_saved="never",
        returns=usual.returns,
    )


def _decode_signature(
    text: str,
) -> tuple[tuple[str, ...], tuple[str, ...], dict[str, str], dict[str, str], dict[str, str]]:
    parameters: list[str] = []
    keyword_only: list[str] = []
    defaults: dict[str, str] = {}
    by_tensor: dict[str, str] = {}
    synonyms: dict[str, str] = {}
    starred = False
    for part in _split_parameters(text):
        if part == "*":
            starred = True
            continue
        declared, *others = part.split("|")
        name, _, default = declared.partition("=")
        if default:
            defaults[name] = default
        for other in others:
            if other.endswith(":tensor"):
                by_tensor[name] = other[:-7]
            else:
                synonyms[other] = name
        parameters.append(name)
        if starred:
            keyword_only.append(name)
    return tuple(parameters), tuple(keyword_only), defaults, by_tensor, synonyms


def _split_parameters(text: str) -> Iterable[str]:
    depth, start = 0, 0
    for place, sign in enumerate(text):
        if sign in "([":
            depth += 1
        elif sign in ")]":
            depth -= 1
        elif sign == "," and depth == 0:
            yield text[start:place]
            start = place + 2
    if text:
        yield text[start:]


def _decode_case(data: Mapping[str, Any]) -> Case:
    held, _, held_needs = str(data.get("held", "always")).partition(" if ")
    returns = data.get("returns", "tensor")
    quiet = tuple(data.get("quiet", ()))
    writes = tuple(data.get("writes", ()))
    return Case(
        tuple(_decode_condition(each) for each in data.get("if", ())),
        tuple(_decode_save(each) for each in data.get("saves", ())),
        tuple(_decode_output(each) for each in data.get("out", ())),
        writes,
        not writes or any(each not in quiet for each in writes),
        returns == "sequence",
        held or "always",  # type: ignore[arg-type]
        tuple(held_needs.split()),
        tuple(data.get("may_write", ())),
        quiet,
        tuple(data.get("refuses", ())),
        bool(data.get("no_grad", False)),
        returns,
        data.get("structure", ""),
    )


def _decode_condition(text: str) -> Condition:
    argument, operator, value = text.split(" ", 2)
    if operator == "is":
        return Condition(argument, value)  # type: ignore[arg-type]
    kind = {"==": "equals", "!=": "not", "rank": "rank"}[operator]
    return Condition(argument, kind, value)  # type: ignore[arg-type]


def _decode_save(text: str) -> Save:
    what, _, needs = text.partition(" if ")
    when: When = "sometimes" if "?" in what else "always"
    return Save(what.rstrip("?~!"), tuple(needs.split()), when, "~" in what, "!" not in what)


def _decode_output(text: str) -> Output:
    gradient, *words = text.split()
    given: dict[str, Any] = {"gradient": gradient.rstrip("?")}
    if gradient.endswith("?"):
        given["flows"] = "sometimes"
    for word in words:
        key, _, value = word.partition("=")
        if key == "from":
            given["needs"] = tuple(value.split(","))
        elif key == "zero":
            given["zero_for"] = tuple(value.split(","))
        elif key == "undefined":
            given["undefined_for"] = tuple(value.split(","))
        elif key in ("view", "view?"):
            given["alias"] = value
            given["aliased"] = "sometimes" if key.endswith("?") else "always"
        elif key in ("same", "same?"):
            given["same"] = "sometimes" if key.endswith("?") else "always"
        elif key == "own-version":
            given["shares_version"] = False
        elif key == "many":
            given["one_of_many"] = True
        elif key == "overlap":
            given["overlapping"] = True
        elif key == "leaf":
            given["leaf"] = True
        elif key == "dtype":
            given["dtype"], _, given["dtype_name"] = value.partition(":")
        elif key == "shape":
            given["shape"] = value
    return Output(**given)


def _rename(case: Case, renamed: Mapping[str, str]) -> Case:
    def spell(name: str) -> str:
        owner, colon, rest = name.partition(":")
        return renamed.get(owner, owner) + colon + rest

    def spell_all(names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(spell(name) for name in names)

    return Case(
        tuple(Condition(spell(each.argument), each.kind, each.value) for each in case.when),
        tuple(
            Save(spell(each.what), spell_all(each.needs), each.when, each.contiguous, each.noticed)
            for each in case.saves
        ),
        tuple(_rename_output(each, renamed, spell_all) for each in case.outputs),
        spell_all(case.writes),
        case.bumps_version,
        case.sequence,
        case.holds_saved,
        spell_all(case.holds_needs),
        spell_all(case.may_write),
        spell_all(case.quiet),
        spell_all(case.refuses),
        case.no_grad,
        case.returns,
        case.structure,
    )


def _rename_output(output: Output, renamed: Mapping[str, str], spell_all: Any) -> Output:
    shape = output.shape
    if shape.startswith("like:"):
        shape = "like:" + renamed.get(shape[5:], shape[5:])
    return Output(
        output.gradient,
        spell_all(output.needs),
        renamed.get(output.alias, output.alias),
        output.aliased,
        output.same,
        output.shares_version,
        output.one_of_many,
        output.overlapping,
        output.dtype,
        shape,
        output.leaf,
        spell_all(output.zero_for),
        output.dtype_name,
        spell_all(output.undefined_for),
        output.flows,
    )


def encode_fact(fact: Mapping[str, Any]) -> str:
    """The JSON of a line from a measured fact (plain data as the agent sends it)."""
    body: dict[str, Any] = {"sig": _encode_signature(fact)}
    if fact.get("options"):
        body["options"] = _encode_signature(
            {"parameters": fact["options"], "defaults": fact.get("option_defaults", {})}
        )
    if fact.get("origin", "measured") != "measured":
        body["origin"] = fact["origin"]
    if fact.get("note"):
        body["note"] = fact["note"]
    body["cases"] = [_encode_case(case) for case in fact.get("cases", ())]
    return json.dumps(body, separators=(",", ":"), ensure_ascii=False)


def _encode_signature(fact: Mapping[str, Any]) -> str:
    defaults: Mapping[str, str] = fact.get("defaults", {})
    keyword_only = set(fact.get("keyword_only", ()))
    parts: list[str] = []
    starred = False
    for name in fact.get("parameters", ()):
        if name in keyword_only and not starred:
            parts.append("*")
            starred = True
        part = f"{name}={defaults[name]}" if name in defaults else name
        if name in fact.get("by_tensor", {}):
            part += f"|{fact['by_tensor'][name]}:tensor"
        for other, meant in sorted(fact.get("synonyms", {}).items()):
            if meant == name:
                part += "|" + other
        parts.append(part)
    return ", ".join(parts)


def _encode_case(case: Mapping[str, Any]) -> dict[str, Any]:
    body: dict[str, Any] = {}
    if case.get("when"):
        body["if"] = [
            f"{argument} {_COMPARE[kind]} {value}"
            if kind in _COMPARE
            else f"{argument} rank {value}"
            if kind == "rank"
            else f"{argument} is {kind}"
            for argument, kind, value in case["when"]
        ]
    if case.get("saves"):
        body["saves"] = [
            what
            + ("?" if when == "sometimes" else "")
            + ("~" if "contiguous" in marks else "")
            + ("!" if "unnoticed" in marks else "")
            + (" if " + " ".join(needs) if needs else "")
            for what, needs, when, *marks in case["saves"]
        ]
    if case.get("outputs"):
        body["out"] = [_encode_output(each) for each in case["outputs"]]
    for key in ("writes", "may_write", "quiet", "refuses", "no_grad", "structure"):
        if case.get(key):
            body[key] = case[key]
    held = case.get("holds_saved", "always")
    if case.get("holds_needs"):
        body["held"] = f"{held} if " + " ".join(case["holds_needs"])
    elif held != "always":
        body["held"] = held
    if case.get("returns", "tensor") != "tensor":
        body["returns"] = case["returns"]
    return body


def _encode_output(output: Mapping[str, Any]) -> str:
    words = [output.get("gradient", "flows") + ("?" if output.get("flows") == "sometimes" else "")]
    if output.get("needs"):
        words.append("from=" + ",".join(output["needs"]))
    if output.get("zero_for"):
        words.append("zero=" + ",".join(output["zero_for"]))
    if output.get("undefined_for"):
        words.append("undefined=" + ",".join(output["undefined_for"]))
    if output.get("alias"):
        words.append(("view?" if output.get("aliased") == "sometimes" else "view") + "=" + output["alias"])
    if output.get("same", "never") != "never":
        words.append("same?" if output["same"] == "sometimes" else "same")
    if output.get("shares_version") is False:
        words.append("own-version")
    words += [
        word
        for key, word in (("one_of_many", "many"), ("overlapping", "overlap"), ("leaf", "leaf"))
        if output.get(key)
    ]
    if output.get("dtype", "same") != "same":
        name = output.get("dtype_name", "")
        words.append(f"dtype={output['dtype']}" + (f":{name}" if name and name != output["dtype"] else ""))
    if output.get("shape"):
        words.append("shape=" + output["shape"])
    return " ".join(words)
