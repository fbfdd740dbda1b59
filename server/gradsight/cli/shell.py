"""What every command shares with the shell: exit codes, plain failures, and the one guard at the door."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Callable

CLEAN = 0
FINDINGS = 1
FAILED = 2
INTERRUPTED = 130
READER_LEFT = 141
ISSUES = "https://github.com/gradsight/gradsight/issues"


def fail(message: str) -> int:
    """Say in one line what cannot be done, and give the exit code for it."""
    complain(message)
    return FAILED


def complain(message: str, trace: str = "") -> None:
    """One sentence on the error stream; the lines of a trace below it cannot be taken for anything else."""
    # A check that is only repeated comes through here, and has nothing to complain about.
    from gradsight.model.showing import visible

    lines = [f"gradsight: {visible(message)}", *(f"| {visible(line)}" for line in trace.splitlines())]
    print("\n".join(lines), file=sys.stderr)


def guarded(command: Callable[[], int]) -> int:
    """Run a command so that every way to end is an exit code and only a fault of ours shows a traceback."""
    tolerate_narrow_terminals()
    try:
        code = command()
        sys.stdout.flush()
        return code
    except SystemExit as stop:
        return exit_code(stop)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        silence_stdout()
        return READER_LEFT
    except Exception as fault:
        import traceback

        complain(
            f"internal error, a fault of gradsight and not of your code: {type(fault).__name__}: {fault} "
            f"(how to report it: {ISSUES})",
            traceback.format_exc(),
        )
        return FAILED


def exit_code(stop: SystemExit) -> int:
    """The exit code that Python itself would give for this SystemExit."""
    if stop.code is None:
        return CLEAN
    if isinstance(stop.code, int):
        return stop.code
    return fail(str(stop.code))


def tolerate_narrow_terminals() -> None:
    """A character that the terminal's encoding lacks is shown as `?`; it never ends the command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def silence_stdout() -> None:
    """Nobody reads any more: what is still buffered goes to the null device, so that the exit stays quiet."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
