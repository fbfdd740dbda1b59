"""Every in-place callable of torch has an out-of-place form that torch agrees with, or a reason why it has none."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from gradsight.fixes.forms import (
    BY_CLONE,
    FLAG_PLACES,
    FUNCTION_CLONES,
    FUNCTION_TWINS,
    INITS,
    INPLACE,
    OPERATORS,
    OWN_TYPE,
    WITH_TWIN,
    WITHOUT_NEW_TENSOR,
)
from gradsight.fixes.out_of_place import SYMBOLS
from gradsight.ops.table import SHIPPED, Table
from tests.fixes.checking import rewritten
from tests.fixes.torch_running import grads_of

HEAD = """import torch
import torch.nn.functional as F
from torch import nn

index = torch.tensor([0, 2])
numbers = torch.tensor([1, 2, 3])
mask = torch.tensor([True, False, True])
a, b = torch.tensor([0.3, 0.6, 0.9]), torch.tensor([0.5, -1.5, 2.0])
square = torch.tensor([[0.5, 0.1, 0.2], [0.1, 0.6, 0.3], [0.2, 0.3, 0.9]])
stack = square.expand(2, 3, 3).clone()
plane = square
leaf = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
matrix = square.clone().requires_grad_()
"""
VALUES = (
    "leaf * 1",
    "matrix * 1",
    "a.clone()",
    "square.clone()",
    "numbers.clone()",
    "mask.clone()",
    "a.to(torch.complex64)",
    "a.double()",
    "stack.clone()",
)
ARGUMENTS = (
    "", "b", "2", "0.5", "numbers", "mask", "mask, 0.5", "mask, b", "0", "0, 1", "0, index, 2.0", "0, index, b[:2]",
    "0, index, plane[:2]", "0, numbers - 1, b", "(index,), b[:2]", "index, b[:2]", "0, numbers - 1, b, 'sum'",
    "0, index, plane[:2], 'amax'", "0, index, b[:2], 'amax'", "a, b", "b, 0.5", "plane, plane", "plane, b", "a, b, alpha=2",
    "stack, stack", "1, 0, 0.5", "min=0.4", "(2,), (1,)", "lambda value: value + 1", "b, lambda one, other: one + other",
    "a, b, lambda one, two, three: one + two + three", "lambda value: not value", "0, 0",
)  # fmt: skip
AFTER = """
if x.requires_grad:
    (x * x).sum().backward()
GRADS = {"x": x.detach(), "leaf": leaf.grad, "matrix": matrix.grad}
"""
TABLE = Table(Path(SHIPPED).read_text(encoding="utf-8"))


def writers() -> dict[str, set[str]]:
    """The callables of the table that write an argument, and which."""
    found = {}
    for name in TABLE.names():
        fact = TABLE.find(name)
        written = {one for case in (fact.cases if fact else ()) for one in (*case.writes, *case.may_write)}
        if written:
            found[name] = written
    return found


WRITERS = writers()
METHODS = sorted(
    {name for name in dir(torch.Tensor) if name.endswith("_") and not name.startswith("_")}
    | {name[7:] for name in WRITERS if name.startswith("Tensor.") and not name.endswith("__")}
)
FUNCTIONS = sorted(
    {
        f"{room}.{name}"
        for room, module in (("torch", torch), ("F", nn.functional))
        for name in dir(module)
        if name.endswith("_") and not name.startswith("_")
    }
)
OUTS = sorted(name for name, written in WRITERS.items() if "out" in written)


def run(statement: str, value: str) -> dict[str, Any]:
    """What x and the gradients are after a statement; what torch refuses is raised."""
    return grads_of(f"{HEAD}x = {value}\n{statement}{AFTER}", "program.py")


def first_that_runs(
    statements: list[str], values: tuple[str, ...] = VALUES
) -> tuple[str, str, dict[str, Any]] | None:
    """The first statement and value with which torch comes to the end."""
    for value in values:
        for statement in statements:
            try:
                return statement, value, run(statement, value)
            except Exception:
                continue
    return None


def check(statements: list[str], safety: str = "safe", values: tuple[str, ...] = VALUES) -> bool:
    """What is offered for the first statement that runs has the same value, type and gradient, and leaves the old tensor
    alone.  False where none of them runs."""
    chosen = first_that_runs(statements, values)
    if chosen is None:
        return False
    statement, value, wanted = chosen
    ahead = f"{HEAD}x = {value}\n"
    (text, found_safety), *more = rewritten(f"{ahead}{statement}{AFTER}", ahead.count("\n") + 1)
    assert not more
    assert found_safety == safety, statement
    made = grads_of(text, "program.py")
    for name, tensor in wanted.items():
        if tensor is None:
            assert made[name] is None, statement
            continue
        assert made[name].dtype == tensor.dtype or safety == "unsafe", statement
        assert made[name].shape == tensor.shape, statement
        assert torch.equal(made[name].to(tensor.dtype).nan_to_num(7.0), tensor.nan_to_num(7.0)), statement
    kept = text.replace(f"\nx = {value}\n", f"\nx = {value}\nold = x\nbefore = old.detach().clone()\n")
    kept = kept.replace(AFTER, "\nGRADS = {'is_same': torch.equal(old.detach(), before)}\n")
    if "numpy" not in kept and ".data" not in kept:
        assert grads_of(kept, "program.py")["is_same"], statement
    return True


@pytest.mark.parametrize("method", METHODS)
def test_a_method_is_written_out_of_place_or_has_a_reason(method: str) -> None:
    calls = [f"x.{method}({arguments})" for arguments in ARGUMENTS]
    if f"Tensor.{method}" in WITHOUT_NEW_TENSOR:
        assert method not in INPLACE
        assert rewritten(f"{HEAD}x = a\n{calls[0]}\nprint(x)\n", HEAD.count("\n") + 2) == []
        return
    assert check(calls), f"{method} was never run: give ARGUMENTS what it wants"


@pytest.mark.parametrize("symbol", SYMBOLS.values())
def test_an_operator_is_written_out_of_place(symbol: str) -> None:
    assert check([f"x {symbol}= {other}" for other in ("2", "b", "plane", "mask", "numbers")])


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_function_is_written_out_of_place_or_has_a_reason(function: str) -> None:
    if function in WITHOUT_NEW_TENSOR:
        assert function.partition(".")[2] not in FUNCTION_TWINS | FUNCTION_CLONES
        return
    given = [*ARGUMENTS, "0.5, True", "index, 0.5, 2.0"]
    assert check([f"{function}({', '.join(filter(None, ('x', one)))})" for one in given]), function


@pytest.mark.parametrize("function", sorted(name for name in FLAG_PLACES if name.islower()))
def test_a_flag_is_taken_away_by_name_and_by_place(function: str) -> None:
    parameters = list(inspect.signature(getattr(nn.functional, function)).parameters.values())
    assert [one.name for one in parameters].index("inplace") == FLAG_PLACES[function]
    others = [
        repr(one.default) if one.default is not one.empty else "0.5"
        for one in parameters[1 : FLAG_PLACES[function]]
    ]
    values = ("leaf * 1", "stack.clone()", "stack[None].repeat(2, 1, 1, 1, 1)")
    assert check([f"F.{function}({', '.join(['x', *others, 'True'])})"], values=values)
    assert check([f"F.{function}({', '.join(['x', *others])}, inplace=True)"], values=values)


@pytest.mark.parametrize("layer", sorted(name for name in FLAG_PLACES if not name.islower()))
def test_a_layer_loses_its_flag_by_name_and_by_place(layer: str) -> None:
    parameters = list(inspect.signature(getattr(nn, layer)).parameters.values())
    assert [one.name for one in parameters].index("inplace") == FLAG_PLACES[layer]
    others = [
        repr(one.default) if one.default is not one.empty else "0.5"
        for one in parameters[: FLAG_PLACES[layer]]
    ]
    for flag in ("True", "inplace=True"):
        text = f"from torch import nn\nnet = nn.Sequential(nn.Linear(2, 2), nn.{layer}({', '.join([*others, flag])}))\n"
        assert rewritten(text, 2) == [(text.replace(", " * bool(others) + flag, ""), "safe")]


def test_every_flag_of_torch_is_known() -> None:
    rooms: tuple[Any, ...] = (nn, nn.functional)
    found = set()
    for room in rooms:
        for name in dir(room):
            one = getattr(room, name)
            if callable(one) and not name.startswith("_"):
                try:
                    known = inspect.signature(one).parameters
                except (TypeError, ValueError):
                    continue
                if "inplace" in known:
                    found.add(name)
    assert found == FLAG_PLACES.keys()


@pytest.mark.parametrize("function", sorted(INITS))
@pytest.mark.parametrize("value", ["nn.Parameter(square.clone())", "square.clone()"])
def test_an_initialisation_gives_the_same_tensor_new_memory(function: str, value: str) -> None:
    arguments = {"constant_": ", 0.5", "sparse_": ", 0.5"}.get(function, "")
    if function == "dirac_":
        value = value.replace("square", "stack")
    ahead = f"{HEAD}w = {value}\nheld = [w]\n"
    after = "GRADS = {'w': w.detach(), 'same': held[0] is w, 'needs': w.requires_grad, 'leaf': w.is_leaf}\n"
    for spelled in (f"nn.init.{function}(w{arguments})", f"nn.init.{function}(w.data{arguments})"):
        ((text, _),) = rewritten(f"{ahead}{spelled}\n{after}", ahead.count("\n") + 1)
        assert "w.data = " in text
        told, made = grads_of(f"{ahead}{spelled}\n{after}", "program.py"), grads_of(text, "program.py")
        assert torch.equal(told.pop("w"), made.pop("w"))
        assert told == made


def test_every_initialisation_of_torch_is_known() -> None:
    assert {name for name in dir(nn.init) if name.endswith("_") and not name.startswith("_")} == INITS


@pytest.mark.facts
def test_every_out_is_assigned() -> None:
    tried = 0
    for name in OUTS:
        spelled = name if name.startswith("torch.") else f"torch.{name}"
        safety = "unsafe" if name.rpartition(".")[2] in OWN_TYPE else "safe"
        arguments = (
            "a",
            "a, b",
            "square",
            "square, square",
            "3",
            "[a, b]",
            "stack, stack",
            "numbers, numbers",
            "a, 0",
            "0, 1, 3",
        )
        calls = [f"{spelled}({one}, out=x)" for one in arguments]
        values = ("torch.empty(0)", "torch.empty(0, dtype=torch.bool)", "torch.empty(0, dtype=torch.long)")
        if name != "torch.empty":  # It holds whatever was in its memory.
            tried += check(calls, safety, values)
        ahead = f"{HEAD}x = torch.empty(0)\n"
        text = f"{ahead}{spelled}(a, out=x)\nprint(x)\n"
        assert len(rewritten(text, ahead.count("\n") + 1)) == 1, name
    assert tried > len(OUTS) * 0.6


def test_several_outs_are_assigned_together() -> None:
    ahead = f"{HEAD}x, places = torch.empty(0), torch.empty(0, dtype=torch.long)\n"
    after = "GRADS = {'x': x, 'places': places}\n"
    told = f"{ahead}torch.sort(b, descending=True, out=(x, places))\n{after}"
    ((text, safety),) = rewritten(told, ahead.count("\n") + 1)
    assert (text, safety) == (f"{ahead}x, places = torch.sort(b, descending=True)\n{after}", "safe")
    assert all(
        torch.equal(one, other)
        for one, other in zip(grads_of(text, "p.py").values(), grads_of(told, "p.py").values())
    )


@pytest.mark.parametrize("name", sorted(WRITERS.keys() - OUTS))
def test_what_writes_by_the_table_is_known(name: str) -> None:
    room, _, last = name.rpartition(".")
    if name in WITHOUT_NEW_TENSOR or f"{room}." in WITHOUT_NEW_TENSOR:
        return
    known = {
        "Tensor": INPLACE | {f"__i{one}__" for one in DUNDERS} | {"__setitem__"},
        "torch": FUNCTION_TWINS | FUNCTION_CLONES,
        "nn.functional": FUNCTION_TWINS | FUNCTION_CLONES | FLAG_PLACES.keys(),
        "nn": FLAG_PLACES.keys(),
        "nn.init": INITS,
    }
    assert last in known.get(room, ()), f"{name} writes: give it a form or a reason"


DUNDERS = "add and div floordiv lshift mod mul or pow rshift sub truediv xor".split()


def test_a_reason_is_given_only_for_what_is_there() -> None:
    for name in WITHOUT_NEW_TENSOR:
        last = name.rpartition(".")[2]
        is_there = TABLE.find(name) is not None or hasattr(torch, last) or hasattr(torch.Tensor, last)
        assert not last or is_there, name


def test_what_is_run_on_a_clone_has_no_twin_of_its_type() -> None:
    assert not WITH_TWIN & BY_CLONE
    assert not FUNCTION_TWINS & FUNCTION_CLONES


@pytest.mark.parametrize("method", sorted(OPERATORS))
def test_an_operator_does_what_the_method_does(method: str) -> None:
    left, right = torch.tensor([1.0, 2.0]), torch.tensor([4.0, 8.0])
    assert torch.equal(getattr(left.clone(), method)(right), eval(f"left {OPERATORS[method]} right"))
