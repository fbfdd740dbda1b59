"""The models define what was held against the libraries, by `make test-models`, and nothing else."""

from __future__ import annotations

import ast
import json

from tests.models.surface import KEPT, defined, missing, surface


def test_names_of_every_model_were_found_in_its_library() -> None:
    kept = json.loads(KEPT.read_text())
    present = surface()
    changed = sorted(module for module in {*kept, *present} if kept.get(module) != present.get(module))
    assert changed == [], "run `make test-models`, then tests/models/surface.py --write in its environment"


def test_aliases_have_the_methods_of_their_class_and_own_names_are_left_out() -> None:
    text = "class _Net:\n    def forward(self, x): ...\nclass Net:\n    def forward(self, x): ...\n    def _own(self): ...\nOne = _Net\nTwo = Net\ndef made(a, *, b=1, **kwargs): ...\n"
    assert dict(defined(ast.parse(text))) == {
        "Net": [],
        "Net.forward": ["x"],
        "One": [],
        "Two": [],
        "Two.forward": ["x"],
        "made": ["a", "b"],
    }


def test_parameter_that_a_library_does_not_take_is_noticed() -> None:
    def real(tensor: object, pattern: str) -> None: ...
    def open_to_all(tensor: object, **kwargs: object) -> None: ...

    assert missing(real, ["tensor", "patern"]) == ["patern"]
    assert missing(open_to_all, ["tensor", "anything"]) == []
