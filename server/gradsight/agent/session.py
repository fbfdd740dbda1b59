"""One run from request to report: prepare, execute under the instruments, and say what was seen."""

from __future__ import annotations

import os
import platform
import threading
import time
import traceback
from typing import Any

from gradsight.agent import govern, wire
from gradsight.agent.program import NotRunnable, Program, load

_PROGRESS_EVERY = 0.15


class Session:
    """The life of one probe inside the user's interpreter."""

    def __init__(self, channel: wire.Channel, request: dict[str, Any]) -> None:
        self.channel = channel
        self.request = request
        self.started = time.perf_counter()
        self._sent = threading.Lock()
        self._done = False
        self._instruments: Any = None
        self._ledger: Any = None
        self._governor: Any = None
        self._last_progress = 0.0

    def run(self) -> int:
        """Runs the program; the exit status tells the process what to return."""
        request = self.request
        govern.limit_memory(int(request.get("memory") or 0))
        directory = request.get("directory")
        if directory:
            os.chdir(str(directory))
        try:
            program = load(request)
        except NotRunnable as problem:
            return self._refuse("program", str(problem))
        try:
            import torch
        except BaseException as error:
            return self._refuse("torch", f"torch cannot be imported: {type(error).__name__}: {error}")
        self.channel.send(wire.STARTED, {"torch": torch.__version__, "python": platform.python_version()})
        return self._observe(program)

    def _observe(self, program: Program) -> int:
        import torch

        from gradsight.agent import fakes, mapping
        from gradsight.agent.attention import FullInstruments
        from gradsight.agent.faults import Ledger
        from gradsight.agent.instruments import FastInstruments

        request = self.request
        ledger = self._ledger = Ledger()
        if request.get("threads"):
            torch.set_num_threads(int(request["threads"]))
        governor = self._governor = govern.Governor(int(request.get("steps") or 0), self._leave)
        fake = bool(request.get("fake"))
        instruments = self._instruments = (
            FastInstruments(ledger, governor)
            if request.get("fast")
            else FullInstruments(ledger, governor, fake)
        )
        around = (
            fakes.imagined(instruments) if fake and isinstance(instruments, FullInstruments) else _nothing()
        )
        instruments.backwards.wants_graph = bool(request.get("graph"))
        govern.refuse_input()
        govern.tame_torch(ledger)
        mapping.prepare(ledger, bool(request.get("map_cuda")) or fake)
        instruments.install()
        instruments.backwards.after.append(self._progress)
        if request.get("seed") is not None:
            govern.seed_everything(int(request["seed"]))
        if request.get("timeout"):
            govern.watch_deadline(max(0.1, float(request["timeout"]) - 0.25), self._send_partial)
        error: BaseException | None = None
        try:
            with around, instruments.running():
                try:
                    program.execute(instruments.compile)
                except BaseException as raised:
                    error = raised
        except BaseException as raised:
            error = error or raised
        return self._conclude(error)

    def _conclude(self, error: BaseException | None) -> int:
        body = self._body(error)
        with self._sent:
            self._done = True
            if not self.channel.send(wire.REPORT, body):
                self._leave_report(body)
        return 0

    def _body(self, error: BaseException | None, partial: bool = False) -> dict[str, Any]:
        import torch

        instruments = self._instruments
        ledger = self._ledger
        shown: dict[str, Any] | None = None
        exit_code = 0
        if isinstance(error, SystemExit):
            exit_code = _exit_code(error)
            cause = error.__context__
            error = cause if exit_code and cause is not None else None
        if isinstance(error, govern.ProbeStop):
            error = None
        problem = ""
        try:
            if error is not None:
                fault = instruments.blame.explain(error)
                if fault is not None:
                    ledger.add(fault)
                shown = _error(error)
            if not partial:
                instruments.finish()
        except Exception:
            problem = traceback.format_exc()
        faults = ledger.faults
        return {
            "outcome": "raised" if shown is not None else "faults" if faults else "clean",
            "error": shown,
            "faults": [fault.as_json() for fault in faults],
            "parameters": instruments.parameters(),
            "facts": instruments.facts(),
            "visited": instruments.log.visited(),
            "graph": next((fault.graph for fault in faults if fault.graph is not None), None),
            "notes": ledger.notes,
            "torch": torch.__version__,
            "python": platform.python_version(),
            "seconds": round(time.perf_counter() - self.started, 3),
            "stopped": self._governor.stopped,
            "backwards": self._governor.backwards,
            "steps": self._governor.steps,
            "exit_code": exit_code,
            "internal_error": "\n".join([*ledger.problems, problem]).strip(),
        }

    def _send_partial(self) -> None:
        """The time is nearly over: what was seen so far must not be lost with the process."""
        with self._sent:
            if self._done or self._instruments is None:
                return
            try:
                self.channel.send(wire.PARTIAL, self._body(None, partial=True))
            except Exception:
                return

    def _leave(self) -> None:
        """Reports from wherever the program is, and ends the process."""
        self._conclude(None)
        os._exit(0)

    def _progress(self) -> None:
        now = time.perf_counter()
        if now - self._last_progress < _PROGRESS_EVERY:
            return
        self._last_progress = now
        governor = self._governor
        self.channel.send(
            wire.PROGRESS,
            {
                "backwards": governor.backwards,
                "steps": governor.steps,
                "faults": len(self._ledger.faults),
                "seconds": round(now - self.started, 2),
            },
        )

    def _leave_report(self, body: dict[str, Any]) -> None:
        """User code closed the channel: the report goes into the private folder of this probe."""
        folder = self.request.get("folder")
        if folder:
            with open(os.path.join(str(folder), "report.bin"), "wb") as file:
                file.write(wire.encode(wire.REPORT, body))

    def _refuse(self, reason: str, text: str) -> int:
        self.channel.send(wire.REFUSED, {"reason": reason, "text": text, "python": platform.python_version()})
        return 3


def _error(error: BaseException) -> dict[str, Any]:
    """The error as the user would see it, at the innermost line of their own code."""
    from gradsight.agent.blame import scene_of
    from gradsight.agent.sites import is_user_file, place_of

    scene = scene_of(error)
    shown: dict[str, Any] = {"type": type(error).__name__, "message": str(error), "location": None}
    if isinstance(error, SyntaxError) and error.filename and is_user_file(error.filename):
        shown["filename"] = error.filename
        shown["location"] = {"row": error.lineno or 1, "column": error.offset or 1}
        shown["end_location"] = shown["location"]
    elif scene.stack:
        shown.update(place_of(scene.stack[0]).as_json())
    return shown


def _exit_code(error: SystemExit) -> int:
    if error.code is None:
        return 0
    return error.code if isinstance(error.code, int) else 1


class _nothing:  # noqa: N801 - reads as a statement
    def __enter__(self) -> None:
        return None

    def __exit__(self, *unused: object) -> None:
        return None
