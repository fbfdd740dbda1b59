"""The pictures of the manual show what is said today: beside each lie the words that the window had when it was taken."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import pytest

from gradsight.analysis import analyze
from gradsight.model.finding import Finding
from gradsight.model.settings import Settings
from gradsight.model.source import Source
from gradsight.session.graph_layout import ROLE_WORDS
from gradsight.session.run_details import WORDS
from gradsight.session.tracebacks import meaning_of
from tests.house.tree import ROOT
from tests.lsp.editor import FULL, Editor

IMAGES = ROOT / "docs" / "images"
SAMPLE = ROOT / "client" / "samples" / "first_steps.py"
OWN = {"debounce": 0, "client": {"pages": True}, "probe": {"allowed": True}}
SHOWN = re.compile(r"images/([\w-]+\.png)")
HOW = "take it again: make pictures"


def words(name: str) -> list[str]:
    """What the window said when a picture of the manual was taken."""
    return (IMAGES / f"{name}.txt").read_text().splitlines()[1:]


def check(name: str, *wanted: str) -> None:
    """Each of these is among the words of a picture."""
    said = words(name)
    missing = [text for text in wanted if not any(text in line for line in said)]
    assert missing == [], f"docs/images/{name}.png is old, {HOW}\n" + "\n".join(said)


def found(text: str, path: str = "first_steps.py") -> list[Finding]:
    return list(analyze(Source(path, text), Settings()).findings)


def notebook_text() -> str:
    cells = json.loads((ROOT / "client" / "samples" / "notebook.ipynb").read_text())["cells"]
    return "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")


def pages() -> list[Path]:
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize(
    "name", sorted({name for page in pages() for name in SHOWN.findall(page.read_text())})
)
def test_a_picture_lies_beside_the_words_that_were_in_it(name: str) -> None:
    told = (IMAGES / name).with_suffix(".txt").read_text().splitlines()
    now = hashlib.sha256((IMAGES / name).read_bytes()).hexdigest()
    assert told[0] == f"sha256 {now}", (
        f"docs/images/{name} is not the picture whose words lie beside it, {HOW}"
    )
    assert len(told) > 1


def test_the_list_of_problems_has_the_messages_and_the_trails_of_today() -> None:
    findings = found(SAMPLE.read_text())
    assert {finding.code for finding in findings} == {"GS101", "GS302"}
    check("problems", *(finding.message for finding in findings))
    check("problems", *(step.message for finding in findings for step in finding.related))


def test_the_confirmed_finding_has_its_message_of_today() -> None:
    [fault] = [finding for finding in found(SAMPLE.read_text()) if finding.code == "GS101"]
    check("confirmed", fault.message, "confirmed on torch", *(step.message for step in fault.related))


def test_the_cell_is_confirmed_in_the_words_of_today() -> None:
    [finding] = found(notebook_text())
    check("notebook", f"GradSight: {finding.code} {WORDS['confirmed']} (torch 2.")


def test_the_menu_has_the_titles_of_today() -> None:
    text = SAMPLE.read_text()
    with Editor(FULL, OWN) as editor:
        uri = editor.open("file:///t/first_steps.py", text)
        [fault] = [each for each in editor.diagnostics(uri) if each["code"] == "GS101"]
        asked = {
            "textDocument": {"uri": uri},
            "range": fault["range"],
            "context": {"diagnostics": [fault], "only": ["quickfix"]},
        }
        titles = [action["title"] for action in editor.request("textDocument/codeAction", asked)]
    # The fixes in the picture are tested already.
    shown = [title for title in titles if "test these fixes" not in title]
    assert len(shown) > 5
    check("quick-fix", *shown)


def test_the_graph_names_the_parts_of_a_fault_as_today() -> None:
    check(
        "graph", *(ROLE_WORDS[role] for role in ("leaf", "saved", "written", "needed")), "self.linear (addmm)"
    )


def test_the_explanation_is_the_one_of_today() -> None:
    message = (
        "one of the variables needed for gradient computation has been modified by an inplace operation: ..."
    )
    meaning = meaning_of(message)
    assert meaning is not None
    check("explanation", re.sub(r"\s+", " ", meaning.text.replace("`", "")), "Likely lines")
    [fault] = [finding for finding in found(SAMPLE.read_text()) if finding.code == "GS101"]
    check("explanation", fault.message.replace("`", ""))
