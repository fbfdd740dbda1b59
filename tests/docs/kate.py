"""Kate without a screen: started on a file, with a server whose conversation is written down."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

PATIENCE = 60.0
RECORDER = """#!/bin/sh
tee '{asked}' | '{python}' -m gradsight "$@" | tee '{answered}'
"""
# Kate asks before it starts a server, and remembers a yes here.
KATERC = """[Kate Plugins]
lspclientplugin=true

[lspclient]
AllowedServerCommandLines={program} server
"""
FRAME = re.compile(rb"Content-Length: (\d+)\r\n(?:[^\r\n]+\r\n)*\r\n")


class Kate:
    """One Kate with a home of its own, in which the server settings are what they are given as."""

    def __init__(self, home: Path, server_settings: str) -> None:
        self.home = home
        self.asked, self.answered = home / "asked", home / "answered"
        programs = home / "bin"
        programs.mkdir(parents=True)
        program = programs / "gradsight"
        program.write_text(
            RECORDER.format(asked=self.asked, answered=self.answered, python=sys.executable), encoding="utf-8"
        )
        program.chmod(0o755)
        settings = home / ".config" / "kate" / "lspclient" / "settings.json"
        settings.parent.mkdir(parents=True)
        settings.write_text(server_settings, encoding="utf-8")
        (home / ".config" / "katerc").write_text(KATERC.format(program=program), encoding="utf-8")
        (home / "run").mkdir(mode=0o700)
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "DBUS_"))}
        self.environment = {
            **kept,
            "HOME": str(home),
            "XDG_RUNTIME_DIR": str(home / "run"),
            "PATH": os.pathsep.join([str(programs), os.environ["PATH"]]),
            "LANG": "C.UTF-8",
            "QT_QPA_PLATFORM": "offscreen",
        }

    def open(self, path: Path, until: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Show a file until the server has sent a message of this method; what Kate said, and what it was told."""
        with (self.home / "log").open("w+b") as log:
            kate = subprocess.Popen(
                ["kate", "--new", "--block", str(path)],
                cwd=path.parent,
                env=self.environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
            try:
                end = time.monotonic() + PATIENCE
                while not any(told.get("method") == until for told in messages(self.answered)):
                    assert kate.poll() is None, (self.home / "log").read_text(errors="replace")
                    assert time.monotonic() < end, f"Kate was not sent {until}: {messages(self.asked)}"
                    time.sleep(0.05)
            finally:
                os.killpg(kate.pid, signal.SIGKILL)
                kate.wait()
        return messages(self.asked), messages(self.answered)


def messages(record: Path) -> list[dict[str, Any]]:
    """The messages that are complete in a record."""
    data = record.read_bytes() if record.exists() else b""
    found: list[dict[str, Any]] = []
    start = 0
    while (head := FRAME.match(data, start)) and len(data) >= head.end() + int(head[1]):
        start = head.end() + int(head[1])
        found.append(json.loads(data[head.end() : start]))
    return found
