"""The server over a long session: start-up, memory, requests while typing goes on, bursts, a long random session, the end.

Run: python benchmarks/lsp_session.py [startup] [memory] [requests] [burst] [typing] [shutdown]
Without words everything is measured.  Times are wall times of this machine under its present load.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

from lsp_latency import percentile, start_of, texts  # noqa: E402

from tests.lsp.editor import Editor  # noqa: E402
from tests.lsp.typing_session import type_at_random  # noqa: E402

BARE = "from pygls.lsp.server import LanguageServer; LanguageServer('bare', '1').start_io()"
OURS = [sys.executable, "-m", "gradsight.lsp"]


def main() -> int:
    """Measure what was asked for."""
    asked = sys.argv[1:] or ["startup", "memory", "requests", "burst", "typing", "shutdown"]
    for name in asked:
        print(f"{name}: {globals()[name]()}", flush=True)
    return 0


def startup(rounds: int = 9) -> str:
    """From starting the process to the answer to `initialize`, taking turns with a bare pygls server."""
    commands = {"bare pygls": [sys.executable, "-c", BARE], "gradsight": OURS}
    times: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            started = time.perf_counter()
            editor = Editor(command=command)
            times[name].append((editor.arrived_at - started) * 1000)
            editor.process.kill()
            editor.process.wait()
    median = {name: statistics.median(each) for name, each in times.items()}
    figures = ", ".join(f"{name} {value:.0f} ms" for name, value in median.items())
    return f"{figures}, ratio {median['gradsight'] / median['bare pygls']:.2f}"


def memory(edits: int = 1000, warm_up: int = 200) -> str:
    """Resident memory while a large text is typed into."""
    text = texts()[-1]
    with Editor(options={"debounce": 0}) as editor:
        uri = editor.open("file:///b/large.py", text.content)
        editor.diagnostics(uri)
        before = 0.0
        for number in range(edits + warm_up):
            place = start_of(editor.texts[uri], text.line)
            edit = (place, place, "    spare = 1\n") if number % 2 == 0 else (place, place + 14, "")
            editor.change(uri, edit)
            editor.diagnostics(uri)
            if number == warm_up:
                before = resident(editor.process.pid)
        after = resident(editor.process.pid)
    return f"{before:.1f} MB after {warm_up} edits, {after:.1f} MB after {edits} more: {100 * (after / before - 1):+.1f} %"


def requests(count: int = 150) -> str:
    """Hovers and code actions on the model file while edits come without a pause."""
    text = texts()[1 if len(texts()) > 1 else 0]
    hovers, actions = [], []
    with Editor(options={"debounce": 0}) as editor:
        hazard = "\n\ndef broken():\n    x = torch.ones(3, requires_grad=True)\n    y = torch.exp(x)\n    y *= 2\n    return y.sum().backward()\n"
        uri = editor.open("file:///b/model.py", text.content + hazard)
        editor.diagnostics(uri)
        for number in range(count):
            place = start_of(editor.texts[uri], text.line)
            edit = (place, place, "    spare = 1\n") if number % 2 == 0 else (place, place + 14, "")
            editor.change(uri, edit)
            where = editor.texts[uri].index("torch.exp(x)") + 7
            asked = {"textDocument": {"uri": uri}, "position": editor.position(uri, where)}
            identity = editor.ask("textDocument/hover", asked)
            started = editor.sent_at
            editor.answer(identity)
            hovers.append((time.perf_counter() - started) * 1000)
            where = editor.texts[uri].index("y *= 2")
            started = time.perf_counter()
            editor.actions(uri, where)
            actions.append((time.perf_counter() - started) * 1000)
            time.sleep(0.02)
    return "; ".join(
        f"{name} p50 {percentile(each, 50):.1f} p95 {percentile(each, 95):.1f} ms"
        for name, each in (("hover", hovers), ("code actions", actions))
    )


def burst(edits: int = 10) -> str:
    """Analyses that edits sent at once cost: published versions are counted."""
    text = texts()[0]
    with Editor(options={"debounce": 0}) as editor:
        uri = editor.open("file:///b/burst.py", text.content)
        editor.diagnostics(uri)
        counts = []
        for _ in range(20):
            before = len(editor.published[uri])
            bodies = []
            for _ in range(edits):
                editor.versions[uri] += 1
                change = {"range": editor.range(uri, 0, 0), "text": " "}
                identifier = {"uri": uri, "version": editor.versions[uri]}
                params = {"textDocument": identifier, "contentChanges": [change]}
                message = {"jsonrpc": "2.0", "method": "textDocument/didChange", "params": params}
                body = json.dumps(message).encode()
                bodies.append(b"Content-Length: %d\r\n\r\n" % len(body) + body)
                editor.texts[uri] = " " + editor.texts[uri]
            editor.send_raw(b"".join(bodies))
            editor.diagnostics(uri)
            counts.append(len(editor.published[uri]) - before)
            editor.replace(uri, text.content)
            editor.diagnostics(uri)
    return f"{edits} edits at once were answered {statistics.mean(counts):.2f} times on average, {max(counts)} at most"


def typing(edits: int = 10_000) -> str:
    """A long random session over real files: text and findings must be right at the end."""
    from gradsight.analysis import analyze
    from gradsight.model.source import Source

    programs = sorted((ROOT / "fixtures" / "programs").glob("*.py"))[::20]
    started, wrong = time.perf_counter(), 0
    with Editor(options={"debounce": 0}) as editor:
        for number, path in enumerate(programs):
            newline = ("\n", "\r\n", "\r")[number % 3]
            original = ("s = '😀é'\n" + path.read_text(encoding="utf-8")).replace("\n", newline)
            uri = editor.open(f"file:///b/{number}.py", original)
            type_at_random(editor, uri, edits // len(programs), seed=number)
            wrong += editor.request("gradsight/text", {"uri": uri}) != editor.texts[uri]
            end = len(editor.texts[uri])
            editor.change(uri, (0, end, original))
            found = [(each["code"], each["range"]["start"]["line"] + 1) for each in editor.diagnostics(uri)]
            report = analyze(Source(f"/b/{number}.py", original))
            fresh = [*report.findings, *report.unused_suppressions]
            wrong += sorted(found) != sorted(
                (each.code, each.span.line) for each in fresh if each.severity != "hint"
            )
            editor.close(uri)
        editor.stop()
        log = "".join(editor.log)
    seconds = time.perf_counter() - started
    return f"{edits} edits in {len(programs)} files in {seconds:.0f} s, {wrong} wrong, {log.count('Traceback')} tracebacks"


def shutdown(rounds: int = 5) -> str:
    """From `exit` to the end of the process while an analysis that takes minutes is under way."""
    slow = ROOT / "tests" / "lsp" / "slow_server.py"
    marks = ROOT / "build" / "marks"
    times = []
    for _ in range(rounds):
        marks.unlink(missing_ok=True)
        editor = Editor(command=[sys.executable, str(slow), str(marks)], options={"debounce": 0})
        editor.open("file:///b/slow.py", "import torch\n")
        while not (marks.exists() and "analysing" in marks.read_text()):
            time.sleep(0.01)
        started = time.perf_counter()
        editor.ask("shutdown", None)
        editor.notify("exit", None)
        editor.process.wait()
        times.append((time.perf_counter() - started) * 1000)
    return f"p50 {statistics.median(times):.0f} ms, at most {max(times):.0f} ms"


def resident(pid: int) -> float:
    """Megabytes of memory that a process holds."""
    answer = subprocess.run(["ps", "-o", "rss=", "-p", str(pid)], capture_output=True, text=True, check=True)
    return int(answer.stdout) / 1024


if __name__ == "__main__":
    raise SystemExit(main())
