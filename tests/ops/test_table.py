"""The table file: complete, small, readable, and loaded without torch."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gradsight.ops.coverage import coverage_of
from gradsight.ops.notation import encode_fact
from gradsight.ops.table import SHIPPED, Table, UnreadableTable, canonical, read_table, shipped
from gradsight.ops.writing import table_text

SMALL = 500_000
BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "facts_load.py"


def check_found(spelled: str, name: str) -> None:
    fact = shipped().find(spelled)
    assert fact is not None
    assert fact.name == name


def test_every_line_is_decoded_without_complaint() -> None:
    table = shipped()
    for name in table.names():
        fact = table.find(name)
        assert fact is not None
        assert fact.name == name
        assert fact.cases, name


def test_the_last_case_of_every_fact_fits_any_call() -> None:
    table = shipped()
    for name in table.names():
        fact = table.find(name)
        assert fact is not None
        assert fact.cases[-1].when == (), name


def test_facts_speak_of_parameters_they_have() -> None:
    table = shipped()
    for name in table.names():
        fact = table.find(name)
        assert fact is not None
        known = {each.lstrip("*") for each in (*fact.parameters, *fact.options, *fact.by_tensor.values())}
        known |= {"training"}
        for case in fact.cases:
            for condition in case.when:
                assert condition.argument in known, f"{name}: {condition}"
            for save in case.saves:
                assert save.what in known or save.what.startswith(("result", "self.")), f"{name}: {save}"


def test_sub_namespaces_are_found_with_and_without_torch() -> None:
    check_found("torch.nn.functional.relu", "nn.functional.relu")
    check_found("nn.functional.relu", "nn.functional.relu")
    check_found("torch.Tensor.exp", "Tensor.exp")
    check_found("torch.exp", "torch.exp")
    check_found("torch.optim.SGD", "optim.SGD")
    check_found("torch.nn.utils.clip_grad_norm_", "nn.utils.clip_grad_norm_")
    assert canonical("torch.linalg.inv") == "linalg.inv"


def test_a_method_calls_its_first_parameter_self_and_a_function_input() -> None:
    function, method = shipped().find("torch.mul"), shipped().find("Tensor.mul")
    assert function is not None
    assert method is not None
    assert function.parameters == ("input", "other", "out")
    assert method.parameters == ("self", "other")


def test_an_unknown_name_has_near_ones() -> None:
    assert shipped().find("torch.expp") is None
    assert "torch.exp" in shipped().suggest("torch.expp")
    assert "nn.Dropout" in shipped().suggest("nn.Droput")
    assert shipped().suggest("zzzzzzzzzzzz") == []


def test_coverage_is_at_least_97_percent_and_the_rest_has_reasons() -> None:
    coverage = coverage_of(shipped())
    assert coverage.percent >= 97.0
    assert sum(room.names for room in coverage.rooms) > 1500
    assert all(reason for reason in coverage.missing)
    counted = sum(room.names - room.known for room in coverage.rooms)
    assert counted == sum(len(names) for names in coverage.missing.values())


def test_the_file_is_small_and_has_one_line_per_fact() -> None:
    with open(SHIPPED, encoding="utf-8") as file:
        text = file.read()
    assert len(text.encode()) < SMALL
    lines = text.splitlines()[1:]
    assert lines == sorted(lines, key=lambda line: (line.startswith("-"), line))
    assert max(len(line) for line in lines) < 4000
    assert not re.search(r"/(work|root|home|tmp)/", text)


def test_loading_imports_no_torch() -> None:
    program = "import sys; from gradsight.ops.table import shipped; shipped().find('torch.exp'); print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_loading_costs_less_than_starting_python() -> None:
    done = subprocess.run([sys.executable, str(BENCHMARK), "7"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert float(json.loads(done.stdout)["ratio"]) > 1.0


def test_a_written_table_reads_back_the_same() -> None:
    with open(SHIPPED, encoding="utf-8") as file:
        header, *lines = file.read().splitlines()
    table = shipped()
    assert json.loads(header)["format"] == 1
    assert len(table.names()) == sum(
        len(line.split("\t")[0].split(" ")) for line in lines if not line.startswith("-")
    )


def test_a_fact_survives_writing_and_reading() -> None:
    fact = {
        "name": "torch.odd",
        "parameters": ["tensor", "dim", "*rest", "flag"],
        "keyword_only": ["flag"],
        "defaults": {"dim": "(1, 2)", "flag": "False"},
        "by_tensor": {"dim": "other"},
        "synonyms": {"axis": "dim"},
        "cases": [
            {
                "when": [["flag", "equals", "True"], ["other", "tensor", ""], ["tensor", "rank", ">2"]],
                "saves": [
                    ["tensor", ["other"], "sometimes"],
                    ["result", [], "always", "contiguous", "unnoticed"],
                ],
                "outputs": [
                    {"gradient": "zero", "alias": "tensor", "aliased": "sometimes", "shape": "like:tensor"}
                ],
                "writes": ["tensor"],
                "quiet": ["tensor"],
                "holds_needs": ["tensor"],
            },
            {"holds_saved": "never", "returns": "none"},
        ],
    }
    table = Table(table_text([fact], {}, {}))
    read = table.find("torch.odd")
    assert read is not None
    assert read.parameters == ("tensor", "dim", "*rest", "flag")
    assert (read.defaults, read.by_tensor, read.synonyms) == (
        fact["defaults"],
        {"dim": "other"},
        {"axis": "dim"},
    )
    case = read.cases[0]
    assert [(each.argument, each.kind, each.value) for each in case.when] == [
        tuple(each) for each in fact["cases"][0]["when"]
    ]
    assert case.saves[0].needs == ("other",)
    assert (case.saves[1].contiguous, case.saves[1].noticed) == (True, False)
    assert (case.outputs[0].shape, case.outputs[0].alias) == ("like:tensor", "tensor")
    assert not case.bumps_version
    assert read.cases[1].returns == "none"
    assert encode_fact(fact)


def test_names_that_behave_alike_share_a_line() -> None:
    with open(SHIPPED, encoding="utf-8") as file:
        heads = [line.split("\t")[0] for line in file.read().splitlines()[1:]]
    assert any({"Tensor.exp", "torch.exp:input+out"} <= set(head.split(" ")) for head in heads)


@pytest.mark.parametrize("text", ["", "nonsense", '{"format": 0}', "[]", '{"format": 99, "torch": "2.0"}'])
def test_a_file_that_is_no_table_is_refused_with_a_reason(text: str, tmp_path: os.PathLike[str]) -> None:
    path = os.path.join(tmp_path, "facts.txt")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    with pytest.raises(UnreadableTable):
        read_table(path)
