"""Documents of one project share what is known of the modules they import, and are told what each would be told alone."""

from __future__ import annotations

import asyncio
import gc
import random
import threading
import weakref
from pathlib import Path

import pytest

from gradsight.analysis import analyze
from gradsight.interp.python import statements
from gradsight.model.report import Report
from gradsight.model.settings import Settings
from gradsight.model.source import Source
from gradsight.session.analyser import Incremental, Stop
from gradsight.session.files import Files
from gradsight.session.imported_modules import ImportedModules
from gradsight.session.session import EditorSession
from tests.interp.test_shared_modules import PROGRAMS, WORKSPACE, executed, program

SETTINGS = Settings()


class Project:
    """Files in a folder, some of them open; what is open counts as it is shown."""

    def __init__(self, folder: Path) -> None:
        (folder / "pyproject.toml").write_text("")
        for name, text in {**WORKSPACE, **PROGRAMS}.items():
            (folder / name).write_text(text)
        self.folder = folder
        self.files = Files()
        self.imported = ImportedModules(self.files)
        self.analysers: dict[str, Incremental] = {}

    def source(self, name: str) -> Source:
        path = str(self.folder / name)
        return self.files.open_sources.get(path) or Source(path, (self.folder / name).read_text())

    def show(self, name: str, text: str) -> None:
        path = str(self.folder / name)
        if path not in self.files.open_sources and not (self.folder / name).exists():
            self.put(name, text)
        self.files.open_sources = {**self.files.open_sources, path: Source(path, text)}
        self.files.forget([path])

    def put(self, name: str, text: str | None) -> None:
        file = self.folder / name
        if text is None:
            file.unlink()
        else:
            file.write_text(text)
        self.files.forget([str(file)])
        self.imported.outdate()
        for analyser in self.analysers.values():
            analyser.forget()

    def told(self, name: str, stop: Stop = lambda: False) -> Report | None:
        analyser = self.analysers.setdefault(name, Incremental(self.imported))
        source = self.source(name)
        return analyser.analyze(source, SETTINGS, self.files.finder_for(source.path), stop)

    def alone(self, name: str) -> Report:
        source = self.source(name)
        return analyze(source, SETTINGS, self.files.finder_for(source.path))


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


@pytest.fixture
def asked_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether to go on is asked before every statement."""
    monkeypatch.setattr(statements, "STATEMENTS_UNASKED", 0)


def test_a_module_is_executed_once_for_all_documents(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.told("functions.py")
    again = executed(monkeypatch)
    for name in ("list.py", "class_list.py", "functions.py"):
        project.told(name)
    assert again == []


def test_an_edited_module_is_executed_again_for_the_documents_that_import_it(project: Project) -> None:
    assert project.told("circle.py") == project.alone("circle.py")
    before = project.alone("circle.py").findings
    project.show("right.py", WORKSPACE["right.py"].replace("return ALPHA", "return 0"))
    assert project.told("right.py") == project.alone("right.py")
    # Nobody has said that the document is outdated: what it rests on is not known any more, and that is enough.
    assert project.told("circle.py") == project.alone("circle.py")
    assert project.alone("circle.py").findings != before


@pytest.mark.parametrize(
    ("edited", "is_kept"),
    [
        (WORKSPACE["right.py"] + "\n\ndef nobody_needs(value):\n    return value\n", True),
        (WORKSPACE["right.py"].replace("return ALPHA", "return 0"), False),
        (WORKSPACE["right.py"] + "\nprint(1)\n", False),
    ],
)
def test_an_edit_of_what_a_document_does_not_use_leaves_its_report(
    project: Project, edited: str, is_kept: bool
) -> None:
    project.show("right.py", WORKSPACE["right.py"])
    before = project.told("circle.py")
    project.show("right.py", edited)
    project.analysers["circle.py"].forget()
    assert (project.told("circle.py") is before) is is_kept
    assert project.told("circle.py") == project.alone("circle.py")


def test_a_module_that_came_or_went_leads_elsewhere(project: Project) -> None:
    project.put("left.py", None)
    without = project.told("circle.py")
    project.put("left.py", WORKSPACE["left.py"])
    assert project.told("circle.py") == project.alone("circle.py") != without
    project.put("left.py", None)
    assert project.told("circle.py") == without


def test_projects_share_nothing(tmp_path: Path) -> None:
    files = Files()
    imported = ImportedModules(files)
    told = []
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "pyproject.toml").write_text("")
        analyser = Incremental(imported)
        path = str(folder / "a.py")
        analyser.analyze(Source(path, "import torch\n"), SETTINGS, files.finder_for(path), lambda: False)
        told.append(analyser._known)
    assert told[0] is not told[1]


def test_what_is_known_ends_with_the_last_document(project: Project) -> None:
    project.told("circle.py")
    project.told("list.py")
    known = {id(analyser._known) for analyser in project.analysers.values()}
    assert len(known) == 1
    gone = weakref.ref(project.analysers["list.py"]._known)  # type: ignore[arg-type]
    project.analysers.clear()
    gc.collect()
    assert gone() is None


@pytest.mark.usefixtures("asked_often")
@pytest.mark.parametrize("seed", range(8))
def test_analyses_in_the_midst_of_others_are_told_what_they_are_told_alone(
    project: Project, seed: int
) -> None:
    chance = random.Random(seed)
    alone = {name: project.alone(name) for name in PROGRAMS}
    nested = 0

    def check(name: str, waiting: tuple[str, ...]) -> None:
        def stop() -> bool:
            nonlocal nested
            if len(waiting) < 2 and chance.random() < 0.1:
                other = chance.choice([each for each in PROGRAMS if each != name and each not in waiting])
                nested += 1
                check(other, (*waiting, name))
            return False

        assert project.told(name, stop) == alone[name], (name, waiting)

    for name in chance.sample([*PROGRAMS], len(PROGRAMS)):
        check(name, ())
        if chance.random() < 0.3:
            project.analysers.pop(name)
    assert nested > 3


@pytest.mark.usefixtures("asked_often")
@pytest.mark.parametrize("seed", range(4))
def test_edits_stops_and_files_that_come_and_go_leave_the_reports_of_a_fresh_analysis(
    project: Project, seed: int
) -> None:
    chance = random.Random(seed)
    for _ in range(60):
        act = chance.random()
        name = chance.choice([*WORKSPACE])
        if act < 0.2:
            project.show(name, WORKSPACE[name] + f"\nextra_{chance.randrange(3)} = 1\n")
            for analyser in project.analysers.values():
                analyser.forget()
        elif act < 0.3:
            project.put(name, None if (project.folder / name).exists() else WORKSPACE[name])
        elif act < 0.5:
            left = chance.randrange(200)

            def stop() -> bool:
                nonlocal left
                left -= 1
                return left < 0

            project.told(chance.choice([*PROGRAMS]), stop)
        else:
            name = chance.choice([*PROGRAMS])
            assert project.told(name) == project.alone(name), name


def test_two_threads_never_use_the_same_knowledge_at_once(project: Project) -> None:
    alone = {name: project.alone(name) for name in PROGRAMS}
    wrong: list[str] = []

    def work(seed: int) -> None:
        names = [name for number, name in enumerate(PROGRAMS) if number % 2 == seed]
        for name in names * 3:
            if project.told(name) != alone[name]:
                wrong.append(name)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_what_is_just_used_by_another_is_left_to_the_worker(project: Project) -> None:
    project.told("list.py")
    analyser = project.analysers["list.py"]
    source = project.source("list.py")
    finder = project.files.finder_for(source.path)
    analyser._last_took = 0.0
    known = analyser._known
    assert known is not None
    assert known.take()
    assert analyser.analyze_at_once(source, SETTINGS, finder) is None
    known.give_back()
    analyser._last_took = 0.0
    assert analyser.analyze_at_once(source, SETTINGS, finder) == project.alone("list.py")


def test_a_file_that_was_missed_is_found_once_it_is_opened(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("")
    path = str(tmp_path / "train.py")

    async def tell() -> None:
        session = EditorSession()
        train = session.open_document("t", path, 1, program("alpha() == 2", "from left import alpha"))
        assert await session.current(train)
        assert [finding.code for finding in train.findings] == ["GS101"]
        for name in ("left.py", "right.py"):
            session.open_document(name, str(tmp_path / name), 1, WORKSPACE[name])
        assert await session.current(train)
        assert not train.findings

    asyncio.run(tell())
