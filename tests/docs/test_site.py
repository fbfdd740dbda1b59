"""The manual builds as a web site without a broken link, loads nothing from elsewhere, and its pictures are there."""

from __future__ import annotations

import fcntl
import os
import re
import subprocess
from pathlib import Path

import pytest

from gradsight_dev import site
from tests.docs.blocks import pages
from tests.house.tree import ROOT

LARGEST_PICTURE = 200_000


@pytest.fixture(scope="module")
def built() -> Path:
    """The site, built by the README's own command, once for all workers of a run."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))
    note = ROOT / "build" / "site-of-this-run"
    note.parent.mkdir(exist_ok=True)
    with (ROOT / "build" / "site.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not note.exists() or note.read_text() != run:
            done = subprocess.run(["make", "site"], cwd=ROOT, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stdout + done.stderr
            note.write_text(run)
    return ROOT / "site"


def test_every_page_is_built(built: Path) -> None:
    names = {
        path.relative_to(ROOT / "docs").with_suffix(".html").as_posix()
        for path in (ROOT / "docs").rglob("*.md")
    }
    made = {path.relative_to(built).as_posix() for path in built.rglob("*.html")}
    assert {name.replace("README", "index") for name in names} - {
        name.replace("README", "index") for name in made
    } == set()


def test_every_rule_is_in_the_navigation(built: Path) -> None:
    from gradsight.rules import ALL

    page = (built / "index.html").read_text(encoding="utf-8")
    assert [rule.name for rule in ALL if f"rules/{rule.name}.html" not in page] == []


def test_nothing_is_loaded_from_elsewhere(built: Path) -> None:
    loaded = re.compile(
        r'<(?:script|img|iframe)[^>]*\bsrc="?(https?:)?//|<link[^>]*rel="?stylesheet"?[^>]*href="?(https?:)?//'
    )
    assert [
        path.name for path in built.rglob("*.html") if loaded.search(path.read_text(encoding="utf-8"))
    ] == []


def test_a_broken_link_stops_the_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text("# Home\n\n[nowhere](absent.md)\n")
    (tmp_path / "zensical.toml").write_text(
        '[project]\nsite_name = "x"\nnav = [\n  { "How it thinks" = "index.md" },\n]\n'
    )
    monkeypatch.setattr(site, "ROOT", tmp_path)
    monkeypatch.setattr(site, "CONFIGURATION", tmp_path / "zensical.toml")
    monkeypatch.setattr(site, "FILLED_IN", tmp_path / "build" / "zensical.toml")
    monkeypatch.setattr(site, "SITE", tmp_path / "site")
    monkeypatch.setattr(site, "rule_entries", lambda: "[]")
    assert site.main() == 1
    assert "page does not exist" in capsys.readouterr().err


@pytest.mark.parametrize("page", pages())
def test_links_and_pictures_of_a_page_are_there(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    targets = re.findall(r"\]\((?!https?:|#)([^)#]+)", text)
    assert [target for target in targets if not (ROOT / page).parent.joinpath(target).exists()] == []


def test_pictures_are_small_and_used() -> None:
    texts = (
        "".join((ROOT / page).read_text(encoding="utf-8") for page in pages())
        + site.CONFIGURATION.read_text()
    )
    files = sorted((ROOT / "docs" / "images").iterdir())
    assert {file.suffix for file in files} == {".png", ".txt"}
    assert all(file.with_suffix(".png") in files for file in files), "words without a picture"
    for picture in (file for file in files if file.suffix == ".png"):
        assert picture.stat().st_size < LARGEST_PICTURE, picture.name
        assert f"images/{picture.name}" in texts, picture.name


def test_links_out_of_the_manual_lead_to_the_repository() -> None:
    inside = site.with_home_links("[b](../settings.md) [c](page.md)", Path("docs/rules"))
    assert inside == "[b](../settings.md) [c](page.md)"
    outside = site.with_home_links("[a](../LICENSE) [b](../server/x.py)", Path("docs"))
    assert outside == f"[a]({site.HOME}/LICENSE) [b]({site.HOME}/server/x.py)"
