"""Entry point in the interpreter that has torch: measures it and writes the answer as JSON to a file.

Prints `progress DONE TOTAL` lines on standard output; exits with 3 and one line on standard error if this torch cannot be
measured.
"""

from __future__ import annotations

import json
import sys

UNFIT = 3


def main(arguments: list[str]) -> int:
    """`OUTPUT PART PARTS`: measure one part of the work.  `OUTPUT combine FILE...`: put parts together."""
    try:
        from gradsight.agent.facts import whole
    except ImportError as error:
        sys.stderr.write(f"torch cannot be imported: {error}\n")
        return UNFIT
    except Exception as error:
        sys.stderr.write(f"torch is broken: {type(error).__name__}: {error}\n")
        return UNFIT
    unfit = whole.unfit_reason()
    if unfit:
        sys.stderr.write(unfit + "\n")
        return UNFIT
    output, command = arguments[0], arguments[1]
    if command == "combine":
        parts = []
        for path in arguments[2:]:
            with open(path, encoding="utf-8") as file:
                parts.append(json.load(file))
        answer = whole.combined(parts)
    else:
        answer = whole.measure_torch(int(command), int(arguments[2]), _report)
    with open(output, "w", encoding="utf-8") as file:
        json.dump(answer, file)
    return 0


def _report(done: int, total: int) -> None:
    if done % 20 == 0 or done == total:
        sys.stdout.write(f"progress {done} {total}\n")
        sys.stdout.flush()
