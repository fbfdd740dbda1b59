"""Our models call what the real libraries call, in the same order.

What the libraries do is kept in orders.json, recorded by `make test-models` under the pinned versions.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ORDERS = json.loads((HERE / "orders.json").read_text())


@pytest.fixture(scope="module")
def modelled() -> dict[str, list[str]]:
    command = [sys.executable, str(HERE / "recorder.py"), "--models"]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    orders: dict[str, list[str]] = json.loads(done.stdout)
    return orders


@pytest.mark.parametrize("program", sorted(ORDERS["orders"]))
def test_model_calls_in_the_order_of_its_library(program: str, modelled: dict[str, list[str]]) -> None:
    assert modelled[program] == ORDERS["orders"][program]


def test_every_program_was_recorded_under_the_pinned_versions() -> None:
    lines = (HERE / "requirements.txt").read_text().splitlines()
    pins = dict(line.split("==") for line in lines if "==" in line)
    assert ORDERS["versions"] == pins
    assert set(ORDERS["orders"]) == {path.stem for path in (HERE / "programs").glob("[!_]*.py")}
