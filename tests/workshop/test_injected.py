"""Edits by place: applied exactly, refused where the text is another one, scored on the lines that count."""

from __future__ import annotations

import hashlib
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from gradsight_dev.injected.catalogue import Edit, Origin, Target, read_set, read_sets, write_set
from gradsight_dev.injected.command import main
from gradsight_dev.injected.edits import (
    Change,
    Dropped,
    Inserted,
    Misplaced,
    Moved,
    Replaced,
    edited,
    line_hash,
)
from gradsight_dev.injected.kinds import CODES, WORLDS
from gradsight_dev.injected.origins import fetched
from gradsight_dev.injected.scoring import score

LOOP = """\
import torch
net = torch.nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(9):
    opt.zero_grad()
    out = torch.tanh(net(torch.randn(8, 4)))
    loss = out.sum()
    loss.backward()
    opt.step()
"""
LINES = LOOP.splitlines()
ORIGIN = Origin("repository", "made/up", "0" * 40)


def test_a_replacement_changes_its_columns_only() -> None:
    check([replaced(7, "out", "out.detach()")], {7: "    loss = out.detach().sum()"})


def test_two_replacements_in_one_line_keep_their_places() -> None:
    check([replaced(7, "loss", "total_of_all"), replaced(7, "out", "o")], {7: "    total_of_all = o.sum()"})


def test_a_replacement_may_be_several_lines() -> None:
    rows = edited(LOOP, [replaced(7, "out.sum()", "0\n    loss += out.sum()")])
    assert [row.text for row in rows[6:8]] == ["    loss = 0", "    loss += out.sum()"]
    assert (rows[7].original, rows[8].original) == (None, 8)


def test_dropped_lines_leave_the_others_where_they_were() -> None:
    check([Dropped(5, sha(5), 5)], {5: "    pass"})
    check([Dropped(7, sha(7), 8)], {7: "    pass", 8: ""})


def test_inserted_lines_take_the_indent_of_their_neighbour() -> None:
    rows = edited(LOOP, [Inserted(6, sha(6), "if out:\n    out += 1")])
    assert [row.text for row in rows[6:8]] == ["    if out:", "        out += 1"]
    assert [row.text for row in edited(LOOP, [Inserted(4, sha(4), "kept = []", before=True)])][
        3
    ] == "kept = []"


def test_moved_lines_remember_where_they_were() -> None:
    rows = edited(LOOP, [Moved(5, sha(5), 5, 8)])
    assert [row.text for row in rows[4:9]] == [
        "    pass",
        LINES[5],
        LINES[6],
        LINES[7],
        LINES[4],
    ]
    assert [row.original for row in rows[4:9]] == [None, 6, 7, 8, 5]


def test_moved_lines_take_the_indent_of_their_new_place() -> None:
    rows = edited(LOOP, [Moved(8, sha(8), 9, 3)])
    assert [row.text for row in rows[3:5]] == ["loss.backward()", "opt.step()"]


def test_a_line_that_is_another_one_is_refused() -> None:
    with pytest.raises(Misplaced, match="line 5"):
        edited(LOOP.replace("opt.zero_grad()", "opt.clear()"), [Dropped(5, sha(5), 5)])
    with pytest.raises(Misplaced, match="line 5"):
        edited("import torch\n", [Dropped(5, sha(5), 5)])


def test_a_bug_is_found_on_an_accepted_line(tmp_path: Path) -> None:
    edit = bug("zero-grad-removed", [Dropped(5, sha(5), 5)], also=(8, 9))
    assert results(tmp_path, edit) == ["found"]


def test_a_bug_is_found_on_the_line_that_was_edited(tmp_path: Path) -> None:
    edit = bug("inplace-on-saved", [Inserted(6, sha(6), "out *= 2")])
    assert results(tmp_path, edit) == ["found"]


def test_an_alarm_on_another_line_or_with_another_code_counts_apart(tmp_path: Path) -> None:
    nowhere = bug("zero-grad-removed", [Dropped(5, sha(5), 5)], also=(1,))
    wrong_kind = bug("softmax-twice", [Inserted(6, sha(6), "out *= 2")])
    assert results(tmp_path, nowhere, wrong_kind) == ["elsewhere", "elsewhere"]


def test_a_bug_without_a_word_is_missed(tmp_path: Path) -> None:
    assert results(tmp_path, bug("softmax-twice", [Inserted(7, sha(7), "loss = loss + 1")])) == ["missed"]


def test_a_safe_edit_is_silent_and_its_alarms_are_counted(tmp_path: Path) -> None:
    safe = Edit("s", "safe", "zero-grad-moved", (Moved(5, sha(5), 5, 9),), (), "", "run")
    not_safe = Edit("n", "safe", "zero-grad-moved", (Moved(5, sha(5), 5, 8),), (), "", "run")
    assert results(tmp_path, safe, not_safe) == ["silent", "alarm"]


def test_what_is_said_of_the_unedited_file_is_not_counted(tmp_path: Path) -> None:
    text = LOOP.replace("    opt.zero_grad()\n", "    print(step)\n")
    unrelated = Inserted(1, line_hash("import torch"), "import math")
    safe = Edit("s", "safe", "renamed", (unrelated,), (), "", "run")
    assert results(tmp_path, safe, text=text) == ["silent"]


def test_a_file_is_judged_through_the_script_that_uses_it(tmp_path: Path) -> None:
    helper = "import torch\ndef squash(x):\n    y = torch.tanh(x)\n    return y\n"
    script = LOOP.replace("import torch\n", "import torch\nfrom helper import squash\n").replace(
        "torch.tanh", "squash"
    )
    (tmp_path / "script.py").write_text(script)
    edit = bug("inplace-on-saved", [Inserted(3, line_hash("y = torch.tanh(x)"), "y *= 2")])
    assert results(tmp_path, edit, text=helper, name="helper.py", through=("script.py",)) == ["found"]


def test_a_place_in_another_file_may_be_accepted(tmp_path: Path) -> None:
    meter = "class Meter:\n    total = 0\n    def update(self, value):\n        self.total += value\n"
    (tmp_path / "meter.py").write_text(meter)
    text = LOOP.replace("import torch\n", "import torch\nfrom meter import Meter\nmeter = Meter()\n")
    change = Inserted(11, line_hash("opt.step()"), "meter.update(loss)")
    kept = bug("graph-kept", [change])
    accepted = replace(kept, also_in=("meter.py:4",))
    assert results(tmp_path, kept, accepted, text=text) == ["elsewhere", "found"]


def test_another_version_of_the_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(LOOP + "\n")
    target = Target(ORIGIN, "train.py", hashlib.sha256(LOOP.encode()).hexdigest(), "plain", (), ())
    with pytest.raises(Misplaced, match=r"train\.py"):
        list(score(target, tmp_path))


def test_a_set_is_read_as_it_was_written(tmp_path: Path) -> None:
    changes: list[Change] = [
        replaced(7, "out", "out.detach()"),
        Dropped(5, sha(5), 6),
        Inserted(6, sha(6), "a\nb", before=True),
        Moved(8, sha(8), 9, 3),
    ]
    targets = [
        Target(ORIGIN, "a.py", "1", "gan", ("b.py",), (bug("silent-write", changes, also=(3, 4)),)),
        Target(ORIGIN, "c.py", "2", "rl", (), (replace(bug("alias", changes), also_in=("d.py:3",)),)),
    ]
    write_set(tmp_path / "made.json", targets)
    assert read_set(tmp_path / "made.json") == targets


def test_the_command_fetches_applies_and_prints(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    origin = committed(tmp_path, {"train.py": LOOP})
    sha256 = hashlib.sha256(LOOP.encode()).hexdigest()
    edits = (
        bug("zero-grad-removed", [Dropped(5, sha(5), 5)], also=(8, 9)),
        bug("softmax-twice", [Inserted(7, sha(7), "loss = loss + 1")]),
    )
    (tmp_path / "sets").mkdir()
    write_set(tmp_path / "sets" / "made.json", [Target(origin, "train.py", sha256, "plain", (), edits)])
    places = ["--sets", tmp_path / "sets", "--cache", tmp_path / "cache", "--mirror", tmp_path / "mirror"]
    assert main([*map(str, places), "--verbose"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("2 bugs and 0 safe edits in 1 files of 1 sources\n")
    (row,) = (line.split() for line in printed.splitlines() if line.startswith("  zero-grad-removed"))
    assert row == ["zero-grad-removed", "1", "1", "0", "0", "100", "%"]
    assert "missed    made/1 softmax-twice train.py" in printed


def test_a_source_that_cannot_be_had_fails_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    origin = committed(tmp_path, {"train.py": LOOP})
    gone = Origin(origin.kind, origin.name, "1" * 40)
    (tmp_path / "sets").mkdir()
    write_set(tmp_path / "sets" / "made.json", [Target(gone, "train.py", "", "plain", (), ())])
    places = ["--sets", tmp_path / "sets", "--cache", tmp_path / "cache", "--mirror", tmp_path / "mirror"]
    assert main([*map(str, places)]) == 1
    assert "made/up" in capsys.readouterr().err


def test_a_repository_is_unpacked_once_and_holds_python_only(tmp_path: Path) -> None:
    origin = committed(tmp_path, {"train.py": LOOP, "package/model.py": "", "notes.txt": "words"})
    folder = fetched(origin, tmp_path / "cache", tmp_path / "mirror")
    assert sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.*")) == [
        "package/model.py",
        "pyproject.toml",
        "train.py",
    ]
    (folder / "mark.py").touch()
    assert fetched(origin, tmp_path / "cache", tmp_path / "mirror") == folder
    assert (folder / "mark.py").exists()


def test_the_sets_are_large_enough_and_well_formed() -> None:
    targets = read_sets()
    edits = [edit for target in targets for edit in target.edits]
    assert len(targets) >= 60
    assert sum(edit.verdict == "bug" for edit in edits) >= 200
    assert sum(edit.verdict == "safe" for edit in edits) >= 100
    assert len({edit.name for edit in edits}) == len(edits)
    assert {target.world for target in targets} == set(WORLDS)
    assert {edit.kind for edit in edits if edit.verdict == "bug"} <= set(CODES)
    assert {edit.label for edit in edits} == {"run", "argued"}
    assert all(edit.why and edit.changes for edit in edits)


def test_the_sets_hold_tokens_and_no_source() -> None:
    texts = [
        change.text
        for target in read_sets()
        for edit in target.edits
        for change in edit.changes
        if isinstance(change, Replaced | Inserted)
    ]
    assert max(len(text) for text in texts) <= 120
    assert max(text.count("\n") for text in texts) <= 2


def replaced(line: int, old: str, new: str) -> Replaced:
    start = LINES[line - 1].index(old)
    return Replaced(line, sha(line), start, start + len(old), new)


def sha(line: int) -> str:
    return line_hash(LINES[line - 1])


def bug(kind: str, changes: list[Change], also: tuple[int, ...] = ()) -> Edit:
    return Edit("made/1", "bug", kind, tuple(changes), also, "made up", "run")


def check(changes: list[Change], expected: dict[int, str]) -> None:
    """The edited text is the loop with these lines changed; every row keeps its number."""
    rows = edited(LOOP, changes)
    for number, row in enumerate(rows[: len(LINES)], 1):
        assert row.text == expected.get(number, LINES[number - 1])
        assert row.original == number
        assert row.is_touched == (number in expected)


def results(
    folder: Path, *edits: Edit, text: str = LOOP, name: str = "train.py", through: tuple[str, ...] = ()
) -> list[str]:
    """How the edits of a made-up file come out."""
    (folder / name).write_text(text)
    sha256 = hashlib.sha256(text.encode()).hexdigest()
    target = Target(ORIGIN, name, sha256, "plain", through, edits)
    return [outcome.result for outcome in score(target, folder)]


def committed(folder: Path, files: dict[str, str]) -> Origin:
    """A git directory in `folder/mirror`, as the fetched ones lie, with these files in its only commit."""
    work = folder / "mirror" / "made+up" / "repo"
    for name, text in files.items():
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text(text)
    who = ["-c", "user.name=somebody", "-c", "user.email=somebody@example.org"]
    for call in (["init", "-q"], ["add", "-A"], [*who, "commit", "-q", "-m", "all"]):
        subprocess.run(["git", *call], cwd=work, check=True)
    head = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=work, check=True, capture_output=True, text=True
    ).stdout.strip()
    return Origin("repository", "made/up", head)
