"""One run from request to report: load the program, put it on the stage, and say what was seen."""

from __future__ import annotations

import os
import platform
import threading
import time
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from gradsight.agent import limits, wire
from gradsight.agent.program import NotRunnable, load

if TYPE_CHECKING:
    from gradsight.agent.stage import Stage

_PROGRESS_EVERY = 0.15
OLDEST_TORCH = (2, 0)


class AgentSession:
    """The life of one probe inside the user's interpreter."""

    def __init__(self, channel: wire.Channel, request: dict[str, Any]) -> None:
        self.channel = channel
        self.request = request
        self.started = time.perf_counter()
        self._sent = threading.Lock()
        self._done = False
        self._stage: Stage | None = None
        self._last_progress = 0.0

    def run(self) -> int:
        """Runs the program; the exit status tells the process what to return."""
        request = self.request
        limits.limit_memory(int(request.get("memory") or 0))
        try:
            if request.get("directory"):
                os.chdir(str(request["directory"]))
            program = load(request)
        except (NotRunnable, OSError) as problem:
            return self._refuse("program", str(problem))
        try:
            import torch
        except BaseException as error:
            return self._refuse("torch", f"torch cannot be imported: {type(error).__name__}: {error}")
        if _is_too_old(torch.__version__):
            text = f"torch {torch.__version__} is too old for the probe ({_oldest()} is the oldest)"
            return self._refuse("torch", text)
        try:
            from gradsight.agent.stage import Stage

            stage = self._stage = Stage(request, self._leave)
            stage.prepare()
        except Exception:
            text = f"the agent does not fit torch {torch.__version__}: {traceback.format_exc()}"
            return self._refuse("torch", text)
        stage.instruments.backwards.after.append(self._progress)
        self.channel.send(wire.STARTED, {"torch": torch.__version__, "python": platform.python_version()})
        if request.get("timeout"):
            limits.watch_deadline(max(0.1, float(request["timeout"]) - 0.25), self._send_partial)
        module: Any = os
        module._exit = self._leaving(os._exit)
        return self._conclude(stage.run(program))

    def _leaving(self, leave: Callable[[int], NoReturn]) -> Callable[[int], NoReturn]:
        """Stands for `os._exit`: a program that leaves by it has still been seen."""
        owner = os.getpid()

        def leaving(status: int) -> NoReturn:
            try:
                if os.getpid() == owner and not self._done:
                    self._conclude(SystemExit(status))
            finally:
                leave(status)

        return leaving

    def _conclude(self, error: BaseException | None) -> int:
        body = self._body(error)
        with self._sent:
            self._done = True
            if not self.channel.send(wire.REPORT, body):
                self._leave_report(body)
        return 0

    def _body(self, error: BaseException | None, partial: bool = False) -> dict[str, Any]:
        import torch

        stage = self._stage
        assert stage is not None
        instruments, ledger, governor = stage.instruments, stage.ledger, stage.governor
        error, exit_code = _cause(error)
        caught = instruments.backwards.caught
        shown = _error(error) if error is not None else None
        extra: dict[str, Any] = {}
        try:
            if error is not None:
                fault = instruments.blame.explain(error)
                for each in (fault, *fault.others) if fault is not None else ():
                    ledger.add(each)
            if not partial:
                instruments.finish()
                extra = stage.comparison()
        except Exception:
            ledger.problem(traceback.format_exc())
        faults = ledger.faults + [
            each for each in caught.faults(error) if not ledger.has(each.kind, each.place)
        ]
        return {
            "outcome": "raised" if shown is not None else "faults" if faults else "clean",
            "error": shown,
            "caught": [each.as_json() for each in caught.errors(error)],
            "faults": [fault.as_json() for fault in faults],
            "parameters": instruments.parameters(),
            "facts": instruments.facts(),
            "visited": instruments.visited(),
            "sighted": ledger.sighted,
            **instruments.books(),
            "graph": next((fault.graph for fault in faults if fault.graph is not None), None),
            "notes": [*ledger.notes, *caught.notes(error)],
            "torch": torch.__version__,
            "python": platform.python_version(),
            "seconds": round(time.perf_counter() - self.started, 3),
            "stopped": governor.stopped,
            "backwards": governor.backwards,
            "steps": governor.steps,
            "exit_code": exit_code,
            "internal_error": "\n".join(ledger.problems),
            **extra,
        }

    def _send_partial(self) -> None:
        """The time is nearly over: what was seen so far must not be lost with the process."""
        with self._sent:
            if self._done or self._stage is None:
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
        if now - self._last_progress < _PROGRESS_EVERY or self._stage is None:
            return
        self._last_progress = now
        governor = self._stage.governor
        self.channel.send(
            wire.PROGRESS,
            {
                "backwards": governor.backwards,
                "steps": governor.steps,
                "faults": len(self._stage.ledger.faults),
                "seconds": round(now - self.started, 2),
            },
        )

    def _leave_report(self, body: dict[str, Any]) -> None:
        """User code closed the channel: the report goes into the private folder of this probe."""
        folder = self.request.get("folder")
        if folder:
            self.channel.leave(os.path.join(str(folder), "report.bin"), wire.REPORT, body)

    def _refuse(self, reason: str, text: str) -> int:
        self.channel.send(wire.REFUSED, {"reason": reason, "text": text, "python": platform.python_version()})
        return 3


def _is_too_old(version: str) -> bool:
    """Whether a torch is older than the oldest that the probe was tried on; what cannot be read is tried."""
    try:
        major, minor = (int(part) for part in str(version).split(".")[:2])
    except ValueError:
        return False
    return (major, minor) < OLDEST_TORCH


def _oldest() -> str:
    return ".".join(str(part) for part in OLDEST_TORCH)


def _cause(error: BaseException | None) -> tuple[BaseException | None, int]:
    """The error to explain, and the exit status the program asked for."""
    if isinstance(error, SystemExit):
        status = exit_status_of(error)
        if not status:
            return None, 0
        return (error.__context__ or error), status
    if isinstance(error, limits.ProbeStop):
        return None, 0
    return error, 0


def exit_status_of(error: SystemExit) -> int:
    """The status that Python makes of `sys.exit(...)`."""
    if error.code is None:
        return 0
    return int(error.code) if isinstance(error.code, int) else 1


def _error(error: BaseException) -> dict[str, Any]:
    """The error as the user would see it, at the innermost line of their own code."""
    from gradsight.agent.caught import text_of_error

    shown: dict[str, Any] = {
        "type": type(error).__name__,
        "message": _exit_text(error) if isinstance(error, SystemExit) else text_of_error(error),
        "location": None,
    }
    try:
        shown.update(_place_of_error(error))
    except Exception:
        # An error whose own attributes fail still ended the program.
        return shown
    return shown


def _exit_text(error: SystemExit) -> str:
    from gradsight.agent.caught import text_of_error

    said = "" if error.code is None or isinstance(error.code, int) else f": {text_of_error(error)}"
    return f"the program ended with exit status {exit_status_of(error)}{said}"


def _place_of_error(error: BaseException) -> dict[str, Any]:
    from gradsight.agent.scene import scene_of
    from gradsight.agent.sites import is_user_file, place_of

    if isinstance(error, SyntaxError) and error.filename and is_user_file(error.filename):
        place = {"row": error.lineno or 1, "column": error.offset or 1}
        return {"filename": error.filename, "location": place, "end_location": place}
    scene = scene_of(error)
    return place_of(scene.stack[0]).as_json() if scene.stack else {}
