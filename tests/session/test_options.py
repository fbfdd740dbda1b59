"""Options come from editors in any shape; what cannot be used is said in a sentence and replaced by the default."""

from __future__ import annotations

from gradsight.model.settings import Settings
from gradsight.session.options import Options, options_from


def test_nothing_sent_means_defaults() -> None:
    assert options_from(None) == (Options(), ())
    assert options_from({}) == (Options(), ())


def test_what_was_chosen_is_taken() -> None:
    options, complaints = options_from(
        {"debounce": 0, "inlayHints": True, "run": "onSave", "ignore": ["GS1"]}
    )
    assert complaints == ()
    assert (options.debounce, options.inlay_hints, options.run) == (0, True, "onSave")
    assert options.checking.ignore == ("GS1",)


def test_null_means_not_set() -> None:
    assert options_from({"debounce": None, "select": None}) == (Options(), ())


def test_a_wrong_value_is_said_and_left_out() -> None:
    options, complaints = options_from({"debounce": "soon", "enable": 1, "select": 5, "colour": "red"})
    assert options == Options()
    assert len(complaints) == 4
    assert "gradsight.debounce" in complaints[0]


def test_settings_that_are_no_table_are_said() -> None:
    options, complaints = options_from([1, 2])
    assert options == Options()
    assert len(complaints) == 1


def test_what_the_project_sets_holds_before_what_the_editor_sets() -> None:
    editor = Options(checking=Settings(select=("GS1",), ignore=("GS107",)))
    merged = editor.settings(Settings(ignore=("GS4",), hints=True))
    assert merged == Settings(select=("GS1",), ignore=("GS4",), hints=True)
