"""Options of the commands that run a program: with which Python, and within which limits."""

from __future__ import annotations

import argparse
import sys


def add(parser: argparse.ArgumentParser, steps: int = 0, timeout: float = 0.0) -> None:
    """Add the options, with the limits that hold unless the user says otherwise; zero is no limit."""
    parser.add_argument(
        "--python", default=sys.executable, metavar="PATH", help="the interpreter that has torch"
    )
    parser.add_argument(
        "--steps",
        type=count,
        default=steps,
        metavar="N",
        help="stop cleanly after N optimizer steps (or backward calls)" + _default(steps),
    )
    parser.add_argument(
        "--timeout",
        type=seconds,
        default=timeout,
        metavar="S",
        help="stop after S seconds of the program" + _default(timeout),
    )
    parser.add_argument("--memory", type=count, default=0, metavar="MB", help="limit of the program's memory")
    parser.add_argument(
        "--threads", type=count, default=1, metavar="N", help="threads for torch; 0 leaves torch's choice"
    )
    parser.add_argument("--cpu", action="store_true", help="map CUDA to the CPU where there is no GPU")


def count(text: str) -> int:
    """A whole number from zero."""
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError("must not be negative")
    return value


def seconds(text: str) -> float:
    """A time."""
    value = float(text)
    if value < 0:
        raise argparse.ArgumentTypeError("must not be negative")
    return value


def _default(limit: float) -> str:
    return f" ({limit:g}; 0: no limit)" if limit else ""
