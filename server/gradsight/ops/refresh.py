"""Generates a table from the torch of another interpreter, in subprocesses of that interpreter."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import gradsight
from gradsight.ops.cache import make_folder, store
from gradsight.ops.table import SHIPPED, Table, read_table
from gradsight.ops.user_folder import cache_folder
from gradsight.ops.writing import table_text

Progress = Callable[[int, int], None]

# Loads the package by its file, so that nothing else of our installation becomes visible over there.
BOOTSTRAP = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("gradsight", sys.argv[1], submodule_search_locations=[sys.argv[2]])
package = importlib.util.module_from_spec(spec)
sys.modules["gradsight"] = package
spec.loader.exec_module(package)
from gradsight.agent.facts.main import main
sys.exit(main(sys.argv[3:]))
"""
ASK_VERSION = "import torch, sys; sys.stdout.write('torch ' + torch.__version__)"


OLDEST = (2, 1)


class RefreshFailed(Exception):
    """No table could be made; the message says why."""


@dataclass(frozen=True, slots=True)
class Refreshed:
    """Where the new table is and what it holds."""

    path: str
    torch_version: str
    facts: int
    troubles: tuple[str, ...]


def refresh(
    python: str, timeout: float = 900.0, progress: Progress | None = None, every: int = 1
) -> Refreshed:
    """Measure the torch of `python` and keep the table in the user's cache.  Raises RefreshFailed.

    What cannot be measured there is carried over from the shipped table; `every` measures only each n-th name.
    """
    version = torch_version_of(python, min(timeout, 120.0))
    if _release(version) < OLDEST:
        oldest = ".".join(str(part) for part in OLDEST)
        raise RefreshFailed(f"torch {version} of {python} is too old: {oldest} or later is needed")
    try:
        make_folder()
    except OSError as error:
        raise RefreshFailed(_unwritable(error)) from error
    measured = measure(python, timeout, progress, every)
    text = text_of(measured, read_table(SHIPPED))
    try:
        path = store(version, text)
    except OSError as error:
        raise RefreshFailed(
            f"the table cannot be kept: {error.strerror or error} ({error.filename})"
        ) from error
    table = read_table(path)
    return Refreshed(path, version, len(table.names()), tuple(measured["troubles"]))


def _unwritable(error: OSError) -> str:
    return f"the folder for refreshed tables cannot be written: {error.strerror or error} ({cache_folder()})"


def _release(version: str) -> tuple[int, ...]:
    numbers = version.split("+")[0].split(".")[:2]
    return tuple(int(part) for part in numbers) if all(part.isdigit() for part in numbers) else OLDEST


def text_of(measured: Mapping[str, Any], shipped: Table | None = None) -> str:
    """The table file for a measured torch, completed by another table for names that were not measured."""
    rooms: Mapping[str, list[str]] = measured["rooms"]
    facts, missing, lines = list(measured["facts"]), dict(measured["missing"]), []
    if shipped is not None:
        # A formula says less than a measurement, even one of another torch.
        derived = {fact["name"] for fact in facts if fact.get("origin") == "formula"}
        carried = {name for name in (*missing, *derived) if _is_measured(shipped, name)}
        lines = [shipped.line(name) for name in sorted(carried)]
        facts = [fact for fact in facts if fact["name"] not in carried]
        missing = {name: reason for name, reason in missing.items() if name not in carried}
    about = {
        "torch": str(measured["torch"]).split("+")[0],
        "rooms": {room: len(names) for room, names in rooms.items()},
        # Rooms that a name alone does not tell.
        "listed": {room: rooms.get(room, []) for room in ("factories", "Tensor properties")},
        # Facts about names that no room counts.
        "further": sorted(
            {fact["name"] for fact in measured["facts"]}
            - {name for names in rooms.values() for name in names}
        ),
    }
    return table_text(facts, missing, about, lines)


def _is_measured(table: Table, name: str) -> bool:
    fact = table.find(name)
    return fact is not None and fact.origin == "measured"


def torch_version_of(python: str, timeout: float = 60.0) -> str:
    """The version of torch that an interpreter has.  Raises RefreshFailed."""
    if shutil.which(python) is None:
        raise RefreshFailed(f"there is no interpreter at {python}")
    try:
        done = subprocess.run(
            [python, "-c", ASK_VERSION],
            capture_output=True,
            text=True,
            timeout=timeout,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        raise RefreshFailed(f"{python} did not answer within {timeout:g} seconds") from None
    except OSError as error:
        raise RefreshFailed(f"{python} cannot be started: {error.strerror or error}") from error
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        if "No module named 'torch'" in last:
            raise RefreshFailed(f"{python} has no torch")
        raise RefreshFailed(f"torch of {python} cannot be imported: {last}")
    if not done.stdout.startswith("torch "):
        raise RefreshFailed(f"{python} is not a Python interpreter with torch")
    return done.stdout[6:].strip()


def measure(
    python: str, timeout: float = 900.0, progress: Progress | None = None, every: int = 1
) -> dict[str, Any]:
    """The measured data of an interpreter's torch.  Raises RefreshFailed."""
    count = max(1, min(4, os.cpu_count() or 1)) if every == 1 else 1
    deadline = time.monotonic() + timeout
    with tempfile.TemporaryDirectory(prefix="gradsight-facts-") as folder:
        parts = [os.path.join(folder, f"part{index}.json") for index in range(count)]
        running = [_start(python, [path, str(index), str(count * every)]) for index, path in enumerate(parts)]
        _wait(running, deadline, timeout, progress)
        whole = os.path.join(folder, "whole.json")
        _wait([_start(python, [whole, "combine", *parts])], deadline, timeout, None)
        with open(whole, encoding="utf-8") as file:
            measured: dict[str, Any] = json.load(file)
    return measured


class _Worker:
    """A measuring process and what it has said so far."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.done, self.total = 0, 0
        self.errors: list[str] = []
        self._readers = [
            threading.Thread(target=self._read_output),
            threading.Thread(target=self._read_errors),
        ]
        for reader in self._readers:
            reader.daemon = True
            reader.start()

    def _read_output(self) -> None:
        for line in self.process.stdout or ():
            words = line.split()
            if len(words) == 3 and words[0] == "progress":
                self.done, self.total = int(words[1]), int(words[2])

    def _read_errors(self) -> None:
        self.errors.extend(self.process.stderr or ())

    def join(self) -> None:
        for reader in self._readers:
            reader.join(timeout=5)


def _start(python: str, arguments: list[str]) -> _Worker:
    package = os.path.dirname(os.path.abspath(gradsight.__file__))
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "PYTHONIOENCODING": "utf-8",
        "PYTHONWARNINGS": "ignore",
    }
    command = [python, "-c", BOOTSTRAP, os.path.join(package, "__init__.py"), package, *arguments]
    return _Worker(
        subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            errors="replace",
            env=environment,
        )
    )


def _wait(workers: list[_Worker], deadline: float, timeout: float, progress: Progress | None) -> None:
    try:
        while any(each.process.poll() is None for each in workers):
            if time.monotonic() > deadline:
                raise RefreshFailed(f"measuring did not end within {timeout:g} seconds")
            if any(each.process.poll() not in (None, 0) for each in workers):
                break
            if progress is not None and any(each.total for each in workers):
                progress(sum(each.done for each in workers), sum(each.total for each in workers))
            time.sleep(0.1)
        for each in workers:
            if each.process.poll() not in (None, 0):
                each.join()
                raise RefreshFailed(_last_line(each))
    finally:
        for each in workers:
            if each.process.poll() is None:
                each.process.kill()
            each.process.wait()
            each.join()


def _last_line(worker: _Worker) -> str:
    said = [line.strip() for line in worker.errors if line.strip()]
    if worker.process.returncode < 0:
        return f"torch died while it was measured (signal {-worker.process.returncode})"
    return said[-1] if said else f"measuring ended with exit code {worker.process.returncode}"
