"""A session analyses what rests, drops what is superseded, and tells whom it concerns."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest

from gradsight.analysis import Finder
from gradsight.model.card import Card
from gradsight.model.finding import Finding
from gradsight.model.report import Report, SyntaxProblem
from gradsight.model.settings import Settings
from gradsight.model.source import Source, Span
from gradsight.session.analyser import Stop
from gradsight.session.buffer import Point, TextChange
from gradsight.session.documents import Document
from gradsight.session.files import Files
from gradsight.session.options import FolderOptions, Options
from gradsight.session.session import EditorSession


class Marks:
    """An analyser that finds the word `bad`, line by line; `gate` holds it up, `broken` is a text that does not parse."""

    def __init__(self, seen: list[str], gate: threading.Event | None = None) -> None:
        self.seen = seen
        self.gate = gate
        self.stopped = 0

    def analyze(self, source: Source, settings: Settings, finder: Finder | None, stop: Stop) -> Report | None:
        self.seen.append(source.text)
        if self.gate is not None:
            while not self.gate.wait(0.005):
                if stop():
                    self.stopped += 1
                    return None
        lines = source.text.split("\n")
        found = tuple(
            Finding("GS101", "bad", line, "error", "certain", source.path, Span(number, 0, number, 3))
            for number, line in enumerate(lines, 1)
            if line.startswith("bad") and "(" not in source.text
        )
        problems = (SyntaxProblem("broken", Span(1, 0, 1, 1)),) if "(" in source.text else ()
        imported = finder("helper", 0, source.path) if finder is not None else None
        return Report(source.path, found, (), problems, (), (imported.path,) if imported else ())

    def forget(self) -> None:
        pass

    def analyze_at_once(self, source: Source, settings: Settings, finder: Finder | None) -> Report | None:
        return None

    def cards(
        self, source: Source, settings: Settings, finder: Finder | None, first_line: int, last_line: int
    ) -> Sequence[Card]:
        return ()


def test_ten_edits_in_a_burst_cost_one_analysis() -> None:
    async def story(session: EditorSession, seen: list[str], reports: list[Document]) -> None:
        document = session.open_document("k", "k", 1, "")
        for number in range(10):
            document.edit(insert(f"bad {number}\n"))
            session.changed(document)
        await session.current(document)
        assert len(seen) == 1
        assert len(document.findings) == 10

    run(story)


def test_a_newer_edit_stops_the_running_analysis() -> None:
    gate = threading.Event()

    async def story(session: EditorSession, seen: list[str], reports: list[Document]) -> None:
        document = session.open_document("k", "k", 1, "bad")
        session.request(document, 0.0)
        await until(lambda: seen == ["bad"])
        document.edit(insert("worse\n"))
        session.changed(document, 0.0)
        await until(lambda: len(seen) == 2)
        assert reports == []
        gate.set()
        await session.current(document)
        assert [each.source.text for each in reports] == ["worse\nbad"]

    run(story, gate)


def test_each_report_is_about_the_newest_text() -> None:
    async def story(session: EditorSession, seen: list[str], reports: list[Document]) -> None:
        document = session.open_document("k", "k", 1, "bad")
        for text in ("bad\nbad", "good", "bad\ngood"):
            document.replace_text(text)
            session.changed(document, 0.0)
            assert await session.current(document)
            assert document.source.text == text
            assert [finding.span.line for finding in document.findings] == [
                number for number, line in enumerate(text.split("\n"), 1) if line == "bad"
            ]

    run(story)


def test_who_waits_for_a_closed_document_is_told() -> None:
    gate = threading.Event()

    async def story(session: EditorSession, seen: list[str], reports: list[Document]) -> None:
        document = session.open_document("k", "k", 1, "bad")
        waiting = asyncio.ensure_future(session.current(document))
        await until(lambda: seen == ["bad"])
        session.close(document)
        assert await waiting is False
        assert reports == []

    run(story, gate)


def test_a_text_that_does_not_parse_keeps_its_last_findings_in_moved_places() -> None:
    async def story(session: EditorSession, seen: list[str], reports: list[Document]) -> None:
        document = session.open_document("k", "k", 1, "first\nsecond\nbad")
        await session.current(document)
        document.edit(TextChange(Point(1, 0), Point(1, 0), "call(\n"))
        await session.current(document)
        assert [finding.span.line for finding in document.findings] == [4]
        document.edit(TextChange(Point(1, 4), Point(1, 5), ""))
        await session.current(document)
        assert [finding.span.line for finding in document.findings] == [4]

    run(story)


def test_a_disabled_session_says_nothing() -> None:
    async def story(session: EditorSession, seen: list[str], reports: list[Document]) -> None:
        session.use_options(FolderOptions(Options(enable=False)))
        document = session.open_document("k", "k", 1, "bad")
        session.request(document)
        await session.current(document)
        assert seen == []
        assert document.findings == ()

    run(story)


def test_on_save_an_edit_alone_starts_nothing() -> None:
    async def story(session: EditorSession, seen: list[str], reports: list[Document]) -> None:
        session.use_options(FolderOptions(Options(run="onSave", debounce=0)))
        document = session.open_document("k", "k", 1, "bad")
        session.request(document, 0.0)
        await until(lambda: len(reports) == 1)
        document.edit(insert("x"))
        session.changed(document)
        await asyncio.sleep(0.05)
        assert len(seen) == 1
        session.saved(document)
        await until(lambda: len(reports) == 2)

    run(story)


def test_a_change_of_an_imported_document_is_felt_by_its_importer(tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text("")
    (tmp_path / "pyproject.toml").write_text("")

    async def story(session: EditorSession, seen: list[str], reports: list[Document]) -> None:
        main = session.open_document("m", str(tmp_path / "main.py"), 1, "main")
        helper = session.open_document("h", str(tmp_path / "helper.py"), 1, "helper")
        session.request(main, 0.0)
        await until(lambda: reports == [main])
        helper.edit(insert("more "))
        session.changed(helper, 0.0)
        await until(lambda: reports.count(main) == 2)
        assert seen.count("main") == 2

    run(story)


def test_a_changed_file_on_disk_outdates_who_imports_it(tmp_path: Path) -> None:
    helper = tmp_path / "helper.py"
    helper.write_text("")
    (tmp_path / "pyproject.toml").write_text("")

    async def story(session: EditorSession, seen: list[str], reports: list[Document]) -> None:
        main = session.open_document("m", str(tmp_path / "main.py"), 1, "main")
        await session.current(main)
        session.files_changed([str(tmp_path / "unrelated.py")])
        assert main.is_fresh
        session.files_changed([str(helper)])
        assert not main.is_fresh
        await session.current(main)
        helper.write_text("changed")
        session.poll_files()
        assert not main.is_fresh

    run(story)


class Counted(FolderOptions):
    """Options that count how often they are looked up."""

    asked: list[str] = []

    def at(self, path: str) -> Options:
        self.asked.append(path)
        return super().at(path)


def test_a_keystroke_reads_no_options_and_no_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.gradsight]\nhints = true\n")
    read: list[str] = []
    look_up = Files.configuration_for
    monkeypatch.setattr(
        Files, "configuration_for", lambda files, path: read.append(path) or look_up(files, path)
    )  # type: ignore[func-returns-value]
    Counted.asked = []

    async def story(session: EditorSession, seen: list[str], reports: list[Document]) -> None:
        session.use_options(Counted(Options(debounce=0)))
        document = session.open_document("k", str(tmp_path / "main.py"), 1, "bad")
        await session.current(document)
        session.findings_of(document)
        assert (len(Counted.asked), len(read)) == (1, 1)
        for _ in range(3):
            document.edit(insert("bad\n"))
            session.changed(document)
            count = len(reports)
            await until(lambda count=count: len(reports) > count)  # type: ignore[misc]
            session.findings_of(document)
        assert (len(Counted.asked), len(read)) == (1, 1)

    run(story)


def test_pushed_options_and_changed_configuration_hold_at_once(tmp_path: Path) -> None:
    project = tmp_path / "pyproject.toml"
    project.write_text('[tool.gradsight]\nignore = ["GS1"]\n')

    async def story(session: EditorSession, seen: list[str], reports: list[Document]) -> None:
        document = session.open_document("k", str(tmp_path / "main.py"), 1, "bad")
        await session.current(document)
        assert session.settings_for(document).ignore == ("GS1",)
        project.write_text('[tool.gradsight]\nignore = ["GS2"]\n')
        session.files_changed([str(project)])
        assert session.settings_for(document).ignore == ("GS2",)
        session.use_options(FolderOptions(Options(checking=Settings(hints=True))))
        assert session.settings_for(document).hints
        assert session.settings_for(document).ignore == ("GS2",)

    run(story)


def test_the_innermost_folder_around_a_file_decides() -> None:
    outer, inner, common = Options(debounce=1), Options(debounce=2), Options(debounce=3)
    options = FolderOptions(common, {"/a": outer, "/a/b": inner})
    assert [options.at(path) for path in ("/a/x.py", "/a/b/x.py", "/ab/x.py")] == [outer, inner, common]


def test_an_analysis_that_fails_leaves_the_session_alive() -> None:
    class Failing(Marks):
        def analyze(
            self, source: Source, settings: Settings, finder: Finder | None, stop: Stop
        ) -> Report | None:
            raise RuntimeError("a fault of ours")

    async def story() -> None:
        session = EditorSession(lambda: Failing([]))
        document = session.open_document("k", "k", 1, "bad")
        assert await session.current(document)
        assert document.findings == ()

    asyncio.run(story())


Story = Callable[[EditorSession, list[str], list[Document]], Awaitable[None]]


def run(story: Story, gate: threading.Event | None = None) -> None:
    """Tell a story to a session whose analyser finds the word `bad`."""

    async def tell() -> None:
        seen: list[str] = []
        reports: list[Document] = []
        session = EditorSession(lambda: Marks(seen, gate))
        session.use_options(FolderOptions(Options(debounce=0)))
        session.on_report = lambda document, elsewhere: reports.append(document)
        await story(session, seen, reports)

    asyncio.run(tell())


async def until(condition: Callable[[], bool]) -> None:
    """Give the session time until something has happened."""
    for _ in range(4000):
        if condition():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("it did not happen")


def insert(text: str) -> TextChange:
    return TextChange(Point(0, 0), Point(0, 0), text)


def test_what_repairs_need_is_loaded_when_nothing_is_typed() -> None:
    code = (
        "import asyncio, sys\n"
        "from gradsight.session import housekeeping\n"
        "from gradsight.session.session import EditorSession\n"
        "housekeeping.SECONDS_OF_REST = 0.05\n"
        "async def main():\n"
        "    session = EditorSession()\n"
        "    session.warm_up()\n"
        "    document = session.open_document('a', '/a/a.py', 1, 'import torch\\n')\n"
        "    await session.current(document)\n"
        "    session.housekeeper.take_over()\n"
        "    session.housekeeper.answered()\n"
        "    while 'libcst' not in sys.modules:\n"
        "        await asyncio.sleep(0.05)\n"
        "asyncio.run(main())\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
