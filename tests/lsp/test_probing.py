"""Probes from the editor: verdicts become diagnostics, evidence lives as long as its function, and cancelling ends it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from tests.house.tree import ROOT
from tests.lsp.editor import FULL, Editor, Refused
from tests.lsp.programs import HAZARD

TORCH = version("torch").split("+")[0]
OPTIONS = {"debounce": 0, "interpreter": sys.executable}
ENDLESS = "import torch\nx = torch.ones(2, requires_grad=True)\nwhile True:\n    (x * 2).sum().backward()\n"
IN_FUNCTION = """import torch

x = torch.ones(3, requires_grad=True)


def scale(y):
    y = y.exp()
    y *= 3
    return y


def other():
    return 1


scale(x).sum().backward()
"""
# The engine may not know what the condition says; torch does.
BOTH_WAYS = """import sys
import torch

x = torch.ones(3, requires_grad=True)
y = x.exp()
if len(sys.argv) > 1:
    y *= 3
y.sum().backward()
"""


@pytest.fixture(scope="module")
def prober(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Editor]:
    """One server whose probes use this interpreter; the warm interpreter serves all tests."""
    folder = tmp_path_factory.mktemp("project")
    capabilities = {**FULL, "window": {"workDoneProgress": True}}
    with Editor(capabilities, OPTIONS, [folder], lambda scope: OPTIONS) as editor:
        editor.folder = folder  # type: ignore[attr-defined]
        yield editor


def opened(editor: Editor, name: str, text: str) -> str:
    """The address of a new file with this text, open and checked."""
    path: Path = editor.folder / name  # type: ignore[attr-defined]
    path.write_text(text)
    uri = editor.open(path.as_uri(), text)
    editor.diagnostics(uri)
    return uri


def run(editor: Editor, command: str, *arguments: Any, token: str | None = None) -> Any:
    params: dict[str, Any] = {"command": f"gradsight.{command}", "arguments": list(arguments)}
    if token is not None:
        params["workDoneToken"] = token
    return editor.request("workspace/executeCommand", params)


def messages(editor: Editor, uri: str) -> list[str]:
    return [each["message"] for each in editor.published[uri][-1]["diagnostics"]]


def test_a_finding_that_torch_agrees_with_is_confirmed(prober: Editor) -> None:
    uri = opened(prober, "confirmed.py", HAZARD)
    answer = run(prober, "probeFile", uri)
    assert answer["verdicts"] == [{"code": "GS101", "line": 5, "verdict": "confirmed"}]
    assert "confirmed" in answer["summary"]
    [message] = messages(prober, uri)
    assert "confirmed on torch" in message
    [diagnostic] = prober.published[uri][-1]["diagnostics"]
    told = [each["message"] for each in diagnostic["relatedInformation"]]
    assert any("version 0 → 1" in text for text in told)


def test_torchs_own_message_is_in_the_hover(prober: Editor) -> None:
    uri = opened(prober, "hover.py", HAZARD)
    run(prober, "probeFile", uri)
    hover = prober.hover(uri, HAZARD.index("y *= 3"))
    assert hover is not None
    assert "modified by an inplace operation" in hover


def test_the_text_that_is_seen_is_probed_not_the_file(prober: Editor) -> None:
    uri = opened(prober, "unsaved.py", "import torch\n")
    prober.replace(uri, HAZARD)
    prober.diagnostics(uri)
    assert run(prober, "proveFinding", uri, 4)["verdicts"][0]["verdict"] == "confirmed"


def test_in_our_own_editor_the_confirmation_stands_below_the_message(tmp_path: Path) -> None:
    options = {**OPTIONS, "client": {"pages": True}}
    with Editor(FULL, options, [tmp_path], lambda scope: options) as editor:
        uri = editor.open((tmp_path / "own.py").as_uri(), HAZARD)
        [before] = [each["message"] for each in editor.diagnostics(uri)]
        run(editor, "probeFile", uri)
        editor.wait(lambda: "confirmed" in messages(editor, uri)[0])
        [after] = messages(editor, uri)
    first, second = after.split("\n")
    assert first == before
    assert second.startswith("confirmed on torch 2.")


def test_a_text_without_a_file_can_be_probed(prober: Editor) -> None:
    uri = prober.open("untitled:Untitled-1", HAZARD)
    prober.diagnostics(uri)
    answer = run(prober, "probeFile", uri)
    assert answer["outcome"] == "raised"
    assert [each["verdict"] for each in answer["verdicts"]] == ["confirmed"]
    assert "confirmed on torch" in messages(prober, uri)[0]


def test_evidence_dies_with_the_code_of_its_function_and_survives_other_edits(prober: Editor) -> None:
    uri = opened(prober, "function.py", IN_FUNCTION)
    run(prober, "proveFinding", uri, IN_FUNCTION[: IN_FUNCTION.index("y *= 3")].count("\n"))
    assert "confirmed" in messages(prober, uri)[0]
    at = IN_FUNCTION.index("return 1")
    prober.change(uri, (at, at, "x = 0\n    "))
    prober.diagnostics(uri)
    assert "confirmed" in messages(prober, uri)[0]
    start = prober.texts[uri].index("y *= 3")
    prober.change(uri, (start, start + len("y *= 3"), "y *= 4"))
    prober.diagnostics(uri)
    assert messages(prober, uri)
    assert "confirmed" not in messages(prober, uri)[0]


def test_evidence_moves_with_its_function(prober: Editor) -> None:
    uri = opened(prober, "moves.py", IN_FUNCTION)
    run(prober, "probeFile", uri)
    at = IN_FUNCTION.index("def scale")
    prober.change(uri, (at, at, "def before():\n    return 0\n\n\n"))
    prober.diagnostics(uri)
    [diagnostic] = prober.published[uri][-1]["diagnostics"]
    assert "confirmed" in diagnostic["message"]
    lines = [each["location"]["range"]["start"]["line"] for each in diagnostic["relatedInformation"]]
    assert prober.texts[uri].split("\n")[lines[0]].strip() == "y = y.exp()"


def test_what_a_run_did_not_reach_stays_and_is_said(prober: Editor) -> None:
    uri = opened(prober, "branch.py", BOTH_WAYS)
    before = messages(prober, uri)
    assert before, "the engine follows both branches"
    answer = run(prober, "probeFile", uri)
    assert [each["verdict"] for each in answer["verdicts"]] == ["not-reached"]
    assert "not reached" in answer["summary"]
    assert messages(prober, uri) == before


def test_a_probe_of_a_function_judges_only_what_is_in_it(prober: Editor) -> None:
    uri = opened(prober, "two.py", IN_FUNCTION)
    inside = run(prober, "probeFunction", uri, 6)
    assert [each["verdict"] for each in inside["verdicts"]] == ["confirmed"]
    assert run(prober, "probeFunction", uri, 12)["verdicts"] == []


def test_progress_is_told_under_the_clients_token(prober: Editor) -> None:
    uri = opened(prober, "progress.py", HAZARD)
    run(prober, "probeFile", uri, token="mine")
    told = [each["value"]["kind"] for each in prober.progress if each["token"] == "mine"]
    assert (told[0], told[-1]) == ("begin", "end")


def test_progress_is_told_under_a_token_of_our_own_otherwise(prober: Editor) -> None:
    uri = opened(prober, "own_progress.py", HAZARD)
    before = len(prober.progress)
    run(prober, "probeFile", uri)
    tokens = {each["token"] for each in prober.progress[before:]}
    assert len(tokens) == 1
    assert str(tokens.pop()).startswith("gradsight-")


def started(editor: Editor, name: str, token: str) -> tuple[str, int]:
    """A probe that would run for ever, under way."""
    uri = opened(editor, name, ENDLESS)
    params = {
        "command": "gradsight.probeFile",
        "arguments": [uri],
        "workDoneToken": token,
    }
    request = editor.ask("workspace/executeCommand", params)
    editor.wait(
        lambda: any(each["token"] == token and each["value"]["kind"] == "report" for each in editor.progress),
    )
    return uri, request


def configure(editor: Editor, options: dict[str, Any]) -> None:
    """The user changes the settings, and the server has asked for them."""
    asked = []
    editor.configuration = lambda scope: asked.append(scope) or options  # type: ignore[func-returns-value]
    editor.notify("workspace/didChangeConfiguration", {"settings": None})
    editor.wait(lambda: len(asked) >= 2)


@pytest.fixture
def endless(prober: Editor) -> Iterator[Editor]:
    """Probes here have no limit of steps."""
    configure(prober, {**OPTIONS, "probe": {"steps": 0, "timeout": 0}})
    yield prober
    configure(prober, OPTIONS)


def check_cancelled(editor: Editor, request: int) -> None:
    """The request was answered as cancelled, and the machine is free for the next probe."""
    with pytest.raises(Refused) as refusal:
        editor.answer(request)
    assert refusal.value.code == -32800
    uri = opened(editor, f"after_{request}.py", HAZARD)
    assert run(editor, "probeFile", uri)["outcome"] == "raised"


def test_a_probe_is_cancelled_by_command(endless: Editor) -> None:
    _, request = started(endless, "by_command.py", "command")
    assert run(endless, "cancelProbe") == {"cancelled": True}
    check_cancelled(endless, request)
    assert run(endless, "cancelProbe") == {"cancelled": False}


def test_a_probe_is_cancelled_by_its_progress_bar(endless: Editor) -> None:
    _, request = started(endless, "by_progress.py", "bar")
    endless.notify("window/workDoneProgress/cancel", {"token": "bar"})
    check_cancelled(endless, request)


def test_a_probe_is_cancelled_with_its_request(endless: Editor) -> None:
    _, request = started(endless, "by_request.py", "request")
    endless.notify("$/cancelRequest", {"id": request})
    check_cancelled(endless, request)


def test_a_newer_probe_takes_the_place_of_the_one_that_runs(endless: Editor) -> None:
    _, request = started(endless, "older.py", "older")
    newer = opened(endless, "newer.py", HAZARD)
    assert run(endless, "probeFile", newer)["outcome"] == "raised"
    with pytest.raises(Refused):
        endless.answer(request)


def test_nothing_runs_where_the_code_is_not_trusted(tmp_path: Path) -> None:
    options = {**OPTIONS, "probe": {"allowed": False}}
    with Editor(options=options, folders=[tmp_path], configuration=lambda scope: options) as editor:
        uri = (tmp_path / "untrusted.py").as_uri()
        editor.open(uri, "import torch\nopen('ran', 'w').close()\n" + HAZARD)
        editor.diagnostics(uri)
        for command in ("probeFile", "probeFunction", "proveFinding", "graph"):
            with pytest.raises(Refused, match="not trusted"):
                run(editor, command, uri, 5)
        assert not (tmp_path / "ran").exists()


def test_an_interpreter_without_torch_is_said(tmp_path: Path) -> None:
    script = tmp_path / "python"
    script.write_text("#!/bin/sh\nexit 3\n")
    script.chmod(0o755)
    options = {"interpreter": str(script)}
    with Editor(options=options, folders=[tmp_path], configuration=lambda scope: options) as editor:
        uri = editor.open((tmp_path / "x.py").as_uri(), HAZARD)
        editor.diagnostics(uri)
        answer = run(editor, "probeFile", uri)
        assert answer["outcome"] == "could-not-run"
        assert "could not run" in answer["summary"]


def test_a_place_without_a_finding_is_said(prober: Editor) -> None:
    uri = opened(prober, "nothing.py", "import torch\n\n\ndef f():\n    return 1\n")
    with pytest.raises(Refused, match="no finding here"):
        run(prober, "proveFinding", uri, 4)


def test_the_graph_marks_what_was_kept_what_overwrote_it_and_what_needs_it(prober: Editor) -> None:
    uri = opened(prober, "graph.py", HAZARD)
    graph = run(prober, "graph", uri, 4)
    roles = {node["role"]: node for node in graph["nodes"]}
    assert (roles["saved"]["name"], roles["saved"]["line"]) == ("exp", 4)
    assert (roles["written"]["name"], roles["written"]["line"]) == ("mul_", 5)
    assert roles["written"]["text"] == "y *= 3"
    assert (roles["needed"]["name"], roles["needed"]["line"]) == ("backward", 6)
    assert (roles["leaf"]["name"], roles["leaf"]["line"]) == ("x [3]", 0)
    (write,) = [edge for edge in graph["edges"] if edge["kind"] == "write"]
    assert (write["from"], write["to"]) == (roles["written"]["id"], roles["saved"]["id"])
    # Every box has its place in the picture, and the arrow of the write points up to what it changed.
    assert roles["saved"]["lines"] == ["saved for backward", "exp", "4: y = x.exp()"]
    assert all(
        0 <= node["x"] <= graph["width"] and 0 <= node["y"] <= graph["height"] for node in graph["nodes"]
    )
    assert write["points"][0][1] > write["points"][-1][1]
    assert all(node["uri"] in ("", uri) for node in graph["nodes"])


def test_no_graph_is_drawn_where_nothing_fails(prober: Editor) -> None:
    uri = opened(prober, "no_graph.py", BOTH_WAYS)
    assert "not reached" in run(prober, "graph", uri, 6)["problem"]


def test_lenses_stand_above_main_blocks_and_functions_with_a_finding(prober: Editor) -> None:
    text = IN_FUNCTION + '\nif __name__ == "__main__":\n    other()\n'
    uri = opened(prober, "lenses.py", text)
    lenses = prober.request("textDocument/codeLens", {"textDocument": {"uri": uri}})
    offered = [(lens["command"]["title"], lens["range"]["start"]["line"] + 1) for lens in lenses]
    assert offered == [("Run Function", 6), ("Run File", 18)]
    assert all("with your torch" in lens["command"]["tooltip"] for lens in lenses)


def test_lenses_that_are_asked_for_at_once_wait_for_the_findings(prober: Editor) -> None:
    path: Path = prober.folder / "early.py"  # type: ignore[attr-defined]
    path.write_text(IN_FUNCTION)
    uri = prober.open(path.as_uri(), IN_FUNCTION)
    [lens] = prober.request("textDocument/codeLens", {"textDocument": {"uri": uri}})
    assert lens["range"]["start"]["line"] + 1 == 6


LIBRARY = """import torch
from torch import nn

print("side effect", file=open("ran", "w"))


class Gate(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.unused = nn.Linear(width, 99)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        gate = torch.sigmoid(self.linear(x))
        gate *= 2
        return gate * x


def unrelated() -> None:
    raise SystemExit(3)
"""


def test_a_finding_in_a_library_is_proved_without_running_the_file(prober: Editor) -> None:
    uri = opened(prober, "library.py", LIBRARY)
    line = LIBRARY[: LIBRARY.index("gate *= 2")].count("\n")
    answer = run(prober, "proveFinding", uri, line)
    assert answer["verdicts"] == [{"code": "GS101", "line": line + 1, "verdict": "confirmed"}]
    assert not (prober.folder / "ran").exists()  # type: ignore[attr-defined]
    [diagnostic] = prober.published[uri][-1]["diagnostics"]
    lines = [each["location"]["range"]["start"]["line"] for each in diagnostic["relatedInformation"]]
    assert all(each < LIBRARY.count("\n") for each in lines), "no step lies beyond the end of the file"
    graph = run(prober, "graph", uri, line)
    assert {"saved", "written"} <= {node["role"] for node in graph["nodes"]}


def test_a_minimal_program_shows_the_finding_by_itself(prober: Editor, tmp_path: Path) -> None:
    uri = opened(prober, "repro.py", LIBRARY)
    line = LIBRARY[: LIBRARY.index("gate *= 2")].count("\n")
    text = run(prober, "repro", uri, line)["text"]
    assert text.startswith("# GS101: ")
    for word in ("unused", "unrelated", "side effect"):
        assert word not in text
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert "modified by an inplace operation" in done.stderr


# The engine follows both ways; this run goes one of them, over the same save, write and backward.
OTHER_WAY = """import sys
import torch

x = torch.ones(3, requires_grad=True)
y = x.exp()
if len(sys.argv) < 9:
    y = y.clone()
y *= 3
y.sum().backward()
"""


def test_a_run_that_wrote_other_memory_takes_nothing_back(prober: Editor) -> None:
    uri = opened(prober, "other_way.py", OTHER_WAY)
    before = prober.published[uri][-1]["diagnostics"]
    answer = run(prober, "probeFile", uri)
    assert answer["verdicts"] == [{"code": "GS101", "line": 8, "verdict": "undecided"}]
    [diagnostic] = prober.published[uri][-1]["diagnostics"]
    assert diagnostic["severity"] == before[0]["severity"]
    assert "ran on torch" not in diagnostic["message"]


def repairs(editor: Editor, uri: str, words: str) -> list[str]:
    """The titles of the quick fixes at some words."""
    offered = editor.actions(uri, editor.texts[uri].index(words), only=["quickfix"])
    return [each["title"] for each in offered if " ignore " not in each["title"]]


def test_a_repair_is_verified_on_torch_and_says_so(prober: Editor) -> None:
    uri = opened(prober, "verified.py", IN_FUNCTION)
    before = repairs(prober, uri, "y *= 3")
    assert not any("verified" in title for title in before)
    answer = run(prober, "verifyFix", uri, 7)
    assert "GradSight: " + answer["trials"][0]["title"] == before[0]
    assert answer["trials"][0]["verified"]
    assert answer["trials"][0]["sentence"] == "no error; gradients match"
    titles = repairs(prober, uri, "y *= 3")
    assert titles[0].startswith(f"{before[0]} (verified on torch ")
    action = prober.actions(uri, IN_FUNCTION.index("y *= 3"), only=["quickfix"])[0]
    assert "y = y * 3" in prober.applied(uri, prober.resolve(action)["edit"])


def test_trying_the_repairs_is_offered_with_them_and_their_titles_say_what_came_out(prober: Editor) -> None:
    text = (ROOT / "client" / "samples" / "first_steps.py").read_text()
    uri = opened(prober, "tried.py", text)
    [action] = [each for each in prober.actions(uri, text.index("weight.grad\n")) if "command" in each]
    assert action["title"] == "GradSight: test this fix on my torch"
    answer = prober.request("workspace/executeCommand", action["command"])
    assert answer["summary"].endswith(
        "replace with `first = weight.grad.detach().clone()`: works on torch " + TORCH + ": the fault is gone"
    )
    assert repairs(prober, uri, "weight.grad\n")[0].startswith(
        "GradSight: replace with `first = weight.grad.detach().clone()` (verified on torch "
    )


def test_repairs_are_not_tried_where_nothing_may_run(tmp_path: Path) -> None:
    with Editor(FULL, {**OPTIONS, "probe": {"allowed": False}}, [tmp_path]) as editor:
        uri = editor.open((tmp_path / "a.py").as_uri(), HAZARD)
        editor.diagnostics(uri)
        assert [each for each in editor.actions(uri, HAZARD.index("y *= 3")) if "command" in each] == []


def test_a_run_says_where_there_is_a_graph_to_draw(prober: Editor) -> None:
    uri = opened(prober, "drawn.py", IN_FUNCTION)
    assert run(prober, "probeFile", uri)["graph"] == [uri, 7, "GS101"]
    assert run(prober, "probeFunction", uri, 11)["graph"] is None


def test_a_verified_repair_is_forgotten_with_the_code_of_its_function(prober: Editor) -> None:
    uri = opened(prober, "forgotten.py", IN_FUNCTION)
    run(prober, "verifyFix", uri, 7)
    prober.replace(uri, IN_FUNCTION.replace("return 1", "return 2"))
    prober.diagnostics(uri)
    assert "verified on torch" in repairs(prober, uri, "y *= 3")[0]
    prober.replace(uri, IN_FUNCTION.replace("y *= 3", "y *= 4"))
    prober.diagnostics(uri)
    assert "verified" not in repairs(prober, uri, "y *= 4")[0]


def test_a_proof_verifies_the_repairs_too(prober: Editor) -> None:
    uri = opened(prober, "proved.py", IN_FUNCTION)
    answer = run(prober, "proveFinding", uri, 7)
    assert "The fix works: " in answer["summary"]
    assert "verified on torch" in repairs(prober, uri, "y *= 3")[0]


def test_a_place_without_a_repair_is_said(prober: Editor) -> None:
    uri = opened(prober, "nothing.py", "import torch\n")
    with pytest.raises(Refused, match="no finding"):
        run(prober, "verifyFix", uri, 0)


def test_what_a_probe_saw_of_a_tensor_is_in_its_hover_until_the_function_changes(prober: Editor) -> None:
    uri = opened(prober, "seen.py", IN_FUNCTION.replace("y *= 3", "y = y * 3"))
    at = prober.texts[uri].index("y = y.exp()")
    assert "Last run (torch" not in (prober.hover(uri, at) or "")
    run(prober, "probeFile", uri)
    told = prober.hover(uri, at) or ""
    for words in (
        "Last run (torch",
        "`float32[3]`",
        "grad_fn ExpBackward0",
        "version 0",
        "grad norm",
    ):
        assert words in told
    prober.replace(uri, prober.texts[uri].replace("y = y * 3", "y = y * 4"))
    prober.diagnostics(uri)
    assert "Last run (torch" not in (prober.hover(uri, at) or "")


def test_hints_have_what_a_probe_saw(tmp_path: Path) -> None:
    options = {**OPTIONS, "inlayHints": True}
    text = "import torch\n\nx = torch.ones(3, 2, requires_grad=True)\nop = [torch.exp][0]\ny = op(x)\ny.sum().backward()\n"
    with Editor(FULL, options, [tmp_path], lambda scope: options) as editor:
        uri = editor.open((tmp_path / "hints.py").as_uri(), text)
        editor.diagnostics(uri)
        run(editor, "probeFile", uri)
        asked = {"textDocument": {"uri": uri}, "range": editor.range(uri, 0, len(text))}
        labels = [each["label"] for each in editor.request("textDocument/inlayHint", asked)]
    # An editor cuts a long hint at its end: what only a run knows comes first.
    told = ["".join(part["value"] for part in label) for label in labels]
    assert any(each.startswith("[3, 2] |grad|=") and each.endswith(" grad_fn=Exp") for each in told), told


CELLS = """import torch

# %%
x = torch.ones(3, requires_grad=True)
y = x.exp()
y *= 3

# %%
y.sum().backward()

# %%
raise SystemExit("a later cell")
"""


def test_a_cell_is_probed_with_the_cells_before_it(prober: Editor) -> None:
    uri = opened(prober, "cells.py", CELLS)
    line = CELLS[: CELLS.index("y *= 3")].count("\n")
    answer = run(prober, "probeCell", uri, line)
    assert answer["outcome"] == "clean"
    assert answer["verdicts"] == [{"code": "GS101", "line": line + 1, "verdict": "not-reached"}]
    answer = run(prober, "probeCell", uri, CELLS[: CELLS.index("y.sum()")].count("\n"))
    assert answer["outcome"] == "raised"
    # The write is in another cell; the backward that fails of it is in this one.
    assert answer["verdicts"] == [{"code": "GS101", "line": line + 1, "verdict": "confirmed"}]


def test_a_cell_of_a_notebook_is_probed(prober: Editor) -> None:
    texts = [
        "%pip list\nimport torch\nx = torch.ones(3, requires_grad=True)",
        "y = x.exp()\ny *= 3\ny.sum().backward()",
    ]
    book = f"{prober.folder.as_uri()}/book.ipynb"  # type: ignore[attr-defined]
    cells = [f"{book}#cell{index}".replace("file:", "vscode-notebook-cell:") for index in range(len(texts))]
    prober.texts.update(zip(cells, texts))
    documents = [
        {"uri": uri, "languageId": "python", "version": 1, "text": text} for uri, text in zip(cells, texts)
    ]
    notebook = {
        "uri": book,
        "notebookType": "jupyter-notebook",
        "version": 1,
        "cells": [{"kind": 2, "document": uri} for uri in cells],
    }
    prober.notify("notebookDocument/didOpen", {"notebookDocument": notebook, "cellTextDocuments": documents})
    prober.wait(lambda: bool(prober.published.get(cells[1])))
    answer = run(prober, "probeCell", cells[1], 1)
    assert [each["verdict"] for each in answer["verdicts"]] == ["confirmed"]
    [message] = messages(prober, cells[1])
    assert "confirmed on torch" in message


def test_a_function_that_the_file_never_calls_is_probed_with_made_up_inputs(prober: Editor) -> None:
    uri = opened(prober, "uncalled.py", LIBRARY.replace("open(", "print("))
    line = LIBRARY[: LIBRARY.index("gate *= 2")].count("\n")
    answer = run(prober, "probeFunction", uri, line)
    assert [each["verdict"] for each in answer["verdicts"]] == ["confirmed"]


HARSH = {
    "raises": ("raise ValueError('no')", "raised"),
    "leaves the process": ("import os; os._exit(7)", "raised"),
    "segfaults": ("import ctypes; ctypes.string_at(0)", "died"),
    "floods its output": ("import os\nfor _ in range(100): os.write(1, b'y' * (1 << 20))", "clean"),
    "closes its output": ("import os; os.close(1); os.close(2)", "clean"),
    "reads its input": ("import sys; assert sys.stdin.read() == ''", "clean"),
    "asks for input": ("input('name?')", "raised"),
    "breaks torch": ("torch.Tensor.backward = None; torch.ones = None", "clean"),
    "needs what is not there": ("import no_such_module", "raised"),
    "takes all memory": ("torch.ones(10**12)", "raised"),
}


@pytest.mark.parametrize("name", HARSH)
def test_the_server_survives_a_program_that(prober: Editor, name: str) -> None:
    text, outcome = HARSH[name]
    uri = opened(prober, "harsh.py", f"import torch\n{text}\n")
    assert run(prober, "probeFile", uri)["outcome"] == outcome
    prober.close(uri)
    calm = opened(prober, "calm.py", HAZARD)
    assert run(prober, "probeFile", calm)["verdicts"][0]["verdict"] == "confirmed"
    prober.close(calm)
