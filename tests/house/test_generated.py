"""Generated files are fresh, and every generator is on the list that says so."""

from __future__ import annotations

import pytest

from gradsight_dev import generated
from tests.house.tree import ROOT, SERVER, relative


@pytest.mark.parametrize("file", generated.ALL, ids=lambda file: file.path)
def test_a_generated_file_is_fresh(file: generated.Generated) -> None:
    assert (ROOT / file.path).exists()
    outcome = file.run("--check")
    assert outcome.returncode == 0, f"run: {file.command}\n{outcome.stdout}{outcome.stderr}"


def test_every_generator_is_listed() -> None:
    listed = {f"server/{file.module.replace('.', '/')}" for file in generated.ALL}
    generators = {
        relative(path).removesuffix(".py").removesuffix("/__init__").removesuffix("/__main__")
        for path in (SERVER / "gradsight_dev").rglob("*.py")
        if 'add_argument("--check"' in path.read_text()
    }
    assert generators == listed
