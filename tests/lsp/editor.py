"""A small editor that speaks the protocol to a server process, byte for byte, and keeps its own copy of every text.

It shares no code with the server: columns are cut out of encoded bytes here, so that a wrong conversion shows.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

PATIENCE = 60.0
CODECS = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}
FULL: dict[str, Any] = {
    "general": {"positionEncodings": ["utf-16"]},
    "textDocument": {
        "publishDiagnostics": {
            "relatedInformation": True,
            "versionSupport": True,
            "codeDescriptionSupport": True,
            "dataSupport": True,
            "tagSupport": {"valueSet": [1, 2]},
        },
        "hover": {"contentFormat": ["markdown", "plaintext"]},
        "codeAction": {
            "codeActionLiteralSupport": {"codeActionKind": {"valueSet": ["quickfix", "refactor", "source"]}},
            "isPreferredSupport": True,
            "dataSupport": True,
            "resolveSupport": {"properties": ["edit"]},
        },
    },
    "workspace": {
        "workspaceEdit": {"documentChanges": True},
        "configuration": True,
        "didChangeConfiguration": {"dynamicRegistration": True},
        "didChangeWatchedFiles": {"dynamicRegistration": True},
        "applyEdit": True,
    },
    "notebookDocument": {"synchronization": {}},
}


class Refused(Exception):
    """The server answered with an error."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(error.get("message"))
        self.code = error.get("code")


class Editor:
    """One client with one server."""

    def __init__(
        self,
        capabilities: dict[str, Any] | None = None,
        options: Any = None,
        folders: list[Path] | None = None,
        configuration: Callable[[str | None], Any] | None = None,
        command: list[str] | None = None,
        initialize: bool = True,
        name: str = "editor",
    ) -> None:
        self.name = name
        self.texts: dict[str, str] = {}
        self.versions: dict[str, int] = {}
        self.published: dict[str, list[dict[str, Any]]] = {}
        self.registered: list[dict[str, Any]] = []
        self.messages: list[str] = []
        self.refreshes: list[str] = []
        self.progress: list[dict[str, Any]] = []
        self.configuration = configuration or (lambda scope: None)
        self.capabilities = capabilities if capabilities is not None else FULL
        self.encoding = "utf-16"
        self.sent_at = self.arrived_at = 0.0
        """When the last message left and when the last one came, for whoever measures."""
        self._answers: dict[Any, dict[str, Any]] = {}
        self._news = threading.Condition()
        self._next = 0
        environment = {**os.environ, "GRADSIGHT_STRICT": "1", "PYTHONUTF8": "1"}
        self.process = subprocess.Popen(
            command or [sys.executable, "-m", "gradsight.lsp"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
        )
        self.log: list[str] = []
        threading.Thread(target=self._listen, daemon=True).start()
        self._log_reader = threading.Thread(target=self._collect_log, daemon=True)
        self._log_reader.start()
        if initialize:
            self.initialize(options, folders or [])

    def initialize(self, options: Any = None, folders: list[Path] | None = None) -> dict[str, Any]:
        """Begin the conversation."""
        self.server = self.request(
            "initialize",
            {
                "processId": os.getpid(),
                "rootUri": None,
                "clientInfo": {"name": self.name},
                "capabilities": self.capabilities,
                "initializationOptions": options,
                "workspaceFolders": [
                    {"uri": folder.as_uri(), "name": folder.name} for folder in folders or []
                ],
            },
        )
        self.encoding = self.server["capabilities"].get("positionEncoding", "utf-16")
        self.notify("initialized", {})
        return self.server

    # Messages.

    def send_raw(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.sent_at = time.perf_counter()
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.send_raw(b"Content-Length: %d\r\n\r\n" % len(body) + body)

    def notify(self, method: str, params: Any) -> None:
        self.send({"method": method, "params": params})

    def ask(self, method: str, params: Any) -> int:
        """Send a request without waiting for the answer."""
        self._next += 1
        self.send({"id": self._next, "method": method, "params": params})
        return self._next

    def answer(self, identity: Any) -> Any:
        """Wait for the answer to a request."""
        self.wait(lambda: identity in self._answers)
        found = self._answers.pop(identity)
        if "error" in found:
            raise Refused(found["error"])
        return found["result"]

    def request(self, method: str, params: Any) -> Any:
        return self.answer(self.ask(method, params))

    def wait(self, condition: Callable[[], bool], patience: float = PATIENCE) -> None:
        """Wait until something has arrived."""
        end = time.monotonic() + patience
        with self._news:
            while not condition():
                if self.process.poll() is not None:
                    self._news.wait(0.2)
                    if condition():
                        return
                    raise AssertionError(f"the server ended with {self.process.returncode}: {self.log}")
                if time.monotonic() > end:
                    raise AssertionError(f"waited in vain; log: {''.join(self.log)[-2000:]}")
                self._news.wait(0.5)

    # Documents.

    def open(self, uri: str, text: str, version: int = 1) -> str:
        self.texts[uri], self.versions[uri] = text, version
        item = {"uri": uri, "languageId": "python", "version": version, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": item})
        return uri

    def change(self, uri: str, *edits: tuple[int, int, str]) -> int:
        """Replace characters from one offset to another, one edit after the other; sent as one message."""
        changes = []
        for start, end, text in edits:
            before = self.texts[uri]
            changes.append({"range": self.range(uri, start, end), "text": text})
            self.texts[uri] = before[:start] + text + before[end:]
        return self._changed(uri, changes)

    def replace(self, uri: str, text: str) -> int:
        self.texts[uri] = text
        return self._changed(uri, [{"text": text}])

    def close(self, uri: str) -> None:
        self.notify("textDocument/didClose", {"textDocument": {"uri": uri}})

    def save(self, uri: str) -> None:
        self.notify("textDocument/didSave", {"textDocument": {"uri": uri}})

    def _changed(self, uri: str, changes: list[dict[str, Any]]) -> int:
        self.versions[uri] += 1
        identifier = {"uri": uri, "version": self.versions[uri]}
        self.notify("textDocument/didChange", {"textDocument": identifier, "contentChanges": changes})
        return self.versions[uri]

    # What is said.

    def diagnostics(self, uri: str, version: int | None = None) -> list[dict[str, Any]]:
        """The diagnostics of the newest version (or of this one), once they are there."""
        wanted = version if version is not None else self.versions.get(uri)

        def is_there() -> bool:
            return any(each.get("version") in (wanted, None) for each in self.published.get(uri, []))

        self.wait(is_there)
        found: list[dict[str, Any]] = self.published[uri][-1]["diagnostics"]
        return found

    def codes(self, uri: str) -> list[tuple[str, int]]:
        """Code and line (from 1) of each diagnostic of the newest version."""
        return [(each["code"], each["range"]["start"]["line"] + 1) for each in self.diagnostics(uri)]

    def hover(self, uri: str, offset: int) -> str | None:
        """The text of the hover at an offset."""
        params = {"textDocument": {"uri": uri}, "position": self.position(uri, offset)}
        found = self.request("textDocument/hover", params)
        return found["contents"]["value"] if found else None

    def actions(
        self, uri: str, start: int, end: int | None = None, only: list[str] | None = None, echoed: Any = None
    ) -> list[dict[str, Any]]:
        """The code actions for a range of offsets."""
        context: dict[str, Any] = {"diagnostics": echoed if echoed is not None else []}
        if only is not None:
            context["only"] = only
        asked = self.range(uri, start, end if end is not None else start)
        params = {"textDocument": {"uri": uri}, "range": asked, "context": context}
        return self.request("textDocument/codeAction", params) or []

    def resolve(self, action: dict[str, Any]) -> dict[str, Any]:
        resolved: dict[str, Any] = self.request("codeAction/resolve", action)
        return resolved

    def applied(self, uri: str, edit: dict[str, Any]) -> str:
        """The text of a document after a workspace edit."""
        changes = edit.get("changes") or {
            each["textDocument"]["uri"]: each["edits"] for each in edit.get("documentChanges", [])
        }
        text = self.texts[uri]
        placed = [
            (
                self.offset(uri, each["range"]["start"]),
                self.offset(uri, each["range"]["end"]),
                each["newText"],
            )
            for each in changes.get(uri, [])
        ]
        for start, end, new in sorted(placed, reverse=True):
            text = text[:start] + new + text[end:]
        return text

    # Places.

    def position(self, uri: str, offset: int) -> dict[str, int]:
        before = self.texts[uri][:offset].replace("\r\n", "\n").replace("\r", "\n")
        line, column = before.count("\n"), before[before.rfind("\n") + 1 :]
        codec, size = CODECS[self.encoding]
        return {"line": line, "character": len(column.encode(codec, "surrogatepass")) // size}

    def range(self, uri: str, start: int, end: int) -> dict[str, Any]:
        return {"start": self.position(uri, start), "end": self.position(uri, end)}

    def offset(self, uri: str, position: dict[str, int]) -> int:
        lines = [*re.findall(r"[^\r\n]*(?:\r\n|\r|\n)", self.texts[uri]), ""]
        start = sum(map(len, lines[: position["line"]]))
        line = self.texts[uri][start:].split("\n")[0].rstrip("\r")
        codec, size = CODECS[self.encoding]
        encoded = line.encode(codec, "surrogatepass")[: position["character"] * size]
        return start + len(encoded.decode(codec, "surrogatepass"))

    # The end.

    def stop(self) -> int:
        """Shut the server down in order; gives its exit code."""
        if self.process.poll() is None:
            self.request("shutdown", None)
            self.notify("exit", None)
        code = self.process.wait(PATIENCE)
        self.finish_log()
        return code

    def finish_log(self) -> None:
        """Read the log of a server that has ended to its end."""
        self._log_reader.join(PATIENCE)

    def __enter__(self) -> Editor:
        return self

    def __exit__(self, *problem: object) -> None:
        try:
            if problem[0] is None:
                self.stop()
                assert "Traceback" not in "".join(self.log), "".join(self.log)
        finally:
            if self.process.poll() is None:
                self.process.kill()
            self.process.wait()

    # What arrives.

    def _listen(self) -> None:
        # A test may close the pipes under this thread.
        with contextlib.suppress(ValueError, OSError):
            self._listen_on()

    def _listen_on(self) -> None:
        assert self.process.stdout is not None
        stream = self.process.stdout
        while True:
            length = 0
            while line := stream.readline():
                if line == b"\r\n":
                    break
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            if not line:
                with self._news:
                    self._news.notify_all()
                return
            self._arrived(json.loads(stream.read(length)))

    def _arrived(self, message: dict[str, Any]) -> None:
        self.arrived_at = time.perf_counter()
        method = message.get("method")
        if method is not None and "id" in message:
            self.send({"id": message["id"], "result": self._serve(method, message.get("params"))})
        with self._news:
            if method is None:
                self._answers[message.get("id")] = message
            elif method == "textDocument/publishDiagnostics":
                self.published.setdefault(message["params"]["uri"], []).append(message["params"])
            elif method == "window/showMessage":
                self.messages.append(message["params"]["message"])
            elif method == "$/progress":
                self.progress.append(message["params"])
            self._news.notify_all()

    def _serve(self, method: str, params: Any) -> Any:
        """Answer a request of the server."""
        if method == "workspace/configuration":
            return [self.configuration(item.get("scopeUri")) for item in params["items"]]
        if method == "client/registerCapability":
            self.registered += params["registrations"]
        if method.endswith("/refresh"):
            self.refreshes.append(method)
        if method == "workspace/applyEdit":
            for uri in self.texts:
                text = self.applied(uri, params["edit"])
                if text != self.texts[uri]:
                    self.replace(uri, text)
            return {"applied": True}
        return None

    def _collect_log(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.log.append(line.decode("utf-8", "replace"))
