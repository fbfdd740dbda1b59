"""The server is started in three ways, and says what is wrong with a call."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys

import pytest

from tests.lsp.editor import Editor
from tests.lsp.programs import HAZARD


@pytest.mark.parametrize("command", [["-m", "gradsight.lsp", "--stdio"], ["-m", "gradsight", "server"]])
def test_it_is_a_module_and_a_command(command: list[str]) -> None:
    with Editor(command=[sys.executable, *command], options={"debounce": 0}) as editor:
        assert editor.server["serverInfo"]["name"] == "gradsight"
        assert editor.codes(editor.open("file:///w/a.py", HAZARD)) == [("GS101", 5)]


def test_over_tcp_it_serves_the_first_client() -> None:
    command = [sys.executable, "-m", "gradsight", "server", "--tcp", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        listening = re.search(r"listens on (\S+):(\d+)", process.stderr.readline())
        assert listening is not None
        with socket.create_connection((listening.group(1), int(listening.group(2)))) as connection:
            talk(connection, {"id": 1, "method": "initialize", "params": {"capabilities": {}}})
            assert "serverInfo" in connection.recv(65536).decode()
            talk(connection, {"id": 2, "method": "shutdown"})
            answer = connection.recv(65536).decode().partition("\r\n\r\n")[2]
            assert json.loads(answer) == {"jsonrpc": "2.0", "id": 2, "result": None}
            talk(connection, {"method": "exit"})
            assert process.wait(60) == 0


def test_a_wrong_port_is_said() -> None:
    command = [sys.executable, "-m", "gradsight.lsp", "--tcp", "here"]
    outcome = subprocess.run(command, capture_output=True, text=True, check=False)
    assert outcome.returncode == 2
    assert "wants a port" in outcome.stderr


def test_what_else_is_printed_does_not_reach_the_client() -> None:
    code = (
        "from gradsight.lsp.server import GradSightServer\n"
        "from gradsight.lsp.serving import leave, serve_stdio\n"
        "server = GradSightServer()\n"
        "server.add_command('print', lambda ls: print('noise', flush=True))\n"
        "leave(serve_stdio(server.protocol))\n"
    )
    with Editor(command=[sys.executable, "-c", code]) as editor:
        editor.request("workspace/executeCommand", {"command": "print"})
        assert editor.codes(editor.open("file:///w/b.py", HAZARD)) == [("GS101", 5)]


def talk(connection: socket.socket, message: dict[str, object]) -> None:
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    connection.sendall(b"Content-Length: %d\r\n\r\n" % len(body) + body)
