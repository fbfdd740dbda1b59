import assert from "node:assert/strict";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import type { ExtensionContext } from "vscode";
import { headlines } from "../src/commands";
import { activate, deactivate } from "../src/extension";
import { followable } from "../src/pages";
import { servers } from "./fake-languageclient";
import { emptyFolder, writePython } from "./fake-python";
import { editor, Uri } from "./fake-vscode";

const kept = new Map<string, unknown>();
const context = {
  subscriptions: [],
  extensionPath: "/extension",
  extensionUri: Uri.file("/extension"),
  extension: { packageJSON: { version: "9.9.9" } },
  globalStorageUri: Uri.file("/storage"),
  logUri: Uri.file("/logs"),
  globalState: {
    get: (name: string) => kept.get(name),
    update: async (name: string, value: unknown) => void kept.set(name, value),
  },
} as unknown as ExtensionContext;
const FILE = "file:///project/model.py";

beforeEach(async () => {
  kept.clear();
  editor.reset();
  servers.reset();
  editor.settings.set(
    "gradsight.interpreter",
    writePython(join(emptyFolder(), "python"), "python 3.12 /env"),
  );
  servers.answers = {
    "gradsight.environment": { python: "/p", version: "3.12", torch: "2.13.0" },
    "gradsight.probeFile": { summary: "confirmed", graph: [FILE, 4, "GS101"], log: "printed" },
    "gradsight.proveFinding": { summary: "proved", graph: null },
  };
  await activate(context);
  editor.open(FILE, 11);
});

afterEach(() => deactivate());

function asked(command: string) {
  return servers.asked.find((params) => params.command === command);
}

test("a probe is asked for the cursor's place, with a token for its progress, and its summary is shown", async () => {
  await editor.run("gradsight.probe.file");
  assert.deepEqual(asked("gradsight.probeFile")?.arguments, [FILE, 11]);
  assert.match(asked("gradsight.probeFile")?.workDoneToken ?? "", /gradsight-probe/);
  assert.deepEqual(editor.messages, ["confirmed"]);
  assert.ok(editor.logged.some((line) => line.includes("printed")));
});

test("what the server reports on the way is shown in the notification", async () => {
  servers.answers["gradsight.probeFile"] = "wait";
  const running = editor.run("gradsight.probe.file");
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(editor.status.text, "GradSight is running your code");
  servers.progress?.({ kind: "report", message: "2 backward" });
  assert.deepEqual(editor.reports, [{ message: "2 backward" }]);
  editor.cancel?.();
  await running;
  assert.equal(editor.status.text, "GradSight");
});

test("a cancelled probe says nothing aloud", async () => {
  servers.answers["gradsight.probeFile"] = "wait";
  const running = editor.run("gradsight.probe.file");
  await new Promise((resolve) => setImmediate(resolve));
  editor.cancel?.();
  await running;
  assert.deepEqual([editor.messages, editor.warnings, editor.errors], [[], [], []]);
});

test("a run leads to the graph of the fault that it saw", async () => {
  servers.answers["gradsight.graph"] = { title: "why", nodes: [], edges: [], total: 0 };
  editor.answer = "Show Graph";
  await editor.run("gradsight.probe.file");
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(asked("gradsight.graph")?.arguments, [FILE, 4, "GS101"]);
  assert.equal(editor.panels.length, 1);
});

test("a cell is probed where the cursor is, where it is chosen, and where its button is", async () => {
  servers.answers["gradsight.probeCell"] = { summary: "confirmed" };
  await editor.run("gradsight.probe.cell");
  assert.deepEqual(asked("gradsight.probeCell")?.arguments, [FILE, 11]);
  const cell = "vscode-notebook-cell:/project/book.ipynb#a";
  editor.select(cell);
  await editor.run("gradsight.probe.cell");
  await editor.run("gradsight.probe.cell", { document: { uri: Uri.parse(`${cell}b`) } });
  const places = servers.asked.filter(({ command }) => command === "gradsight.probeCell").slice(1);
  assert.deepEqual(
    places.map((params) => params.arguments),
    [
      [cell, 0],
      [`${cell}b`, 0],
    ],
  );
});

test("fixes are tried on torch at the cursor", async () => {
  servers.answers["gradsight.verifyFix"] = { summary: "verified", trials: [] };
  await editor.run("gradsight.probe.fix");
  assert.deepEqual(asked("gradsight.verifyFix")?.arguments, [FILE, 11]);
  assert.deepEqual(editor.messages, ["verified"]);
});

test("a lens runs its probe in the same way", async () => {
  const next = () => assert.fail("the command went past the notification");
  await servers.options[0]?.middleware.executeCommand("gradsight.proveFinding", [FILE, 3], next);
  assert.deepEqual(asked("gradsight.proveFinding")?.arguments, [FILE, 3]);
  assert.deepEqual(editor.messages, ["proved"]);
});

test("other commands of the server pass through", async () => {
  let passed = false;
  await servers.options[0]?.middleware.executeCommand("gradsight.apply", [], () => {
    passed = true;
  });
  assert.ok(passed);
});

test("nothing is probed in a workspace that is not trusted", async () => {
  editor.trusted = false;
  editor.answer = "Manage Workspace Trust";
  await editor.run("gradsight.probe.file");
  assert.equal(asked("gradsight.probeFile"), undefined);
  assert.match(editor.warnings[0] ?? "", /not trusted/);
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(editor.executed, [["workbench.trust.manage"]]);
});

test("a probe without a Python file says so", async () => {
  editor.active = undefined;
  await editor.run("gradsight.probe.function");
  assert.match(editor.messages[0] ?? "", /open a Python file first/);
});

test("a probe that the server refuses is said once, in its words", async () => {
  servers.answers["gradsight.probeFile"] = new Error("python3 has no torch");
  await editor.run("gradsight.probe.file");
  assert.deepEqual(editor.warnings, ["GradSight: python3 has no torch"]);
});

test("a command waits for a server that is starting", async () => {
  const restarting = editor.run("gradsight.restart");
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(servers.events.at(-1), "stop");
  await editor.run("gradsight.probe.finding");
  assert.ok(editor.messages.includes("proved"));
  assert.deepEqual(editor.warnings, []);
  await restarting;
  assert.ok(editor.messages.includes("GradSight: restarted"));
});

test("commands without a server say where to look", async () => {
  await deactivate();
  await editor.run("gradsight.probe.file");
  assert.match(editor.warnings[0] ?? "", /server does not run/);
});

test("the graph is drawn in a panel, and a click opens the line that the server named", async () => {
  const node = { id: "n1", name: "exp", text: "y = exp(x)", uri: FILE, line: 4, role: "saved", message: "" };
  servers.answers["gradsight.graph"] = { title: "why", nodes: [node], edges: [], total: 1 };
  await editor.run("gradsight.showGraph");
  const [panel] = editor.panels;
  assert.ok(panel);
  await panel.say({ kind: "ready" });
  assert.deepEqual(panel.sent.at(-1), servers.answers["gradsight.graph"]);
  await panel.say({ kind: "open", id: "n1" });
  await panel.say({ kind: "open", id: "absent" });
  assert.equal(editor.shown.length, 1);
  assert.equal(String(editor.shown[0]?.[0]), FILE);
});

test("the panel is reused until it is closed", async () => {
  servers.answers["gradsight.graph"] = { title: "why", nodes: [], edges: [], total: 0 };
  await editor.run("gradsight.showGraph");
  await editor.run("gradsight.showGraph");
  assert.equal(editor.panels.length, 1);
  editor.panels[0]?.dispose();
  await editor.run("gradsight.showGraph");
  assert.equal(editor.panels.length, 2);
});

test("a graph that cannot be drawn says why", async () => {
  servers.answers["gradsight.graph"] = { problem: "nothing is wrong here" };
  await editor.run("gradsight.showGraph");
  assert.deepEqual(editor.messages, ["nothing is wrong here"]);
  assert.equal(editor.panels.length, 0);
});

test("the minimal program goes to the clipboard", async () => {
  servers.answers["gradsight.repro"] = { text: "import torch" };
  await editor.run("gradsight.copyRepro");
  assert.equal(editor.clipboard, "import torch");
});

test("a selected traceback is explained before a copied one, and a copied one before asking", async () => {
  servers.answers["gradsight.explainError"] = { markdown: "# Why" };
  editor.clipboard = "RuntimeError: copied";
  editor.open(FILE, 0, "Traceback: selected");
  await editor.run("gradsight.explainTraceback");
  editor.open(FILE, 0, "");
  await editor.run("gradsight.explainTraceback");
  editor.clipboard = "";
  editor.answer = "RuntimeError: pasted";
  await editor.run("gradsight.explainTraceback");
  const texts = servers.asked.filter(({ command }) => command === "gradsight.explainError");
  assert.deepEqual(
    texts.map((params) => params.arguments[0]),
    ["Traceback: selected", "RuntimeError: copied", "RuntimeError: pasted"],
  );
  assert.equal(editor.providers.get("gradsight")?.provideTextDocumentContent(), "# Why");
  assert.equal(editor.executed[0]?.[0], "markdown.showPreviewToSide");
});

test("lines in an explanation lead to files, below the first folder and beside it", () => {
  const text =
    "[a.py:3](file:///project/a%20b.py#L3) and [b](file:///other/b.py#L1), [rule](https://x.org/y)";
  const led = "[a.py:3](</a b.py#L3>) and [b](</../other/b.py#L1>), [rule](https://x.org/y)";
  assert.equal(followable(text, "/project"), led);
  assert.equal(followable(text, undefined), "a.py:3 and b, [rule](https://x.org/y)");
});

test("fixing all applies the server's own kind of action, and says when there is none", async () => {
  const title = "GradSight: fix all safe findings (5 fixes, 1 left, no safe fix)";
  editor.answers["vscode.executeCodeActionProvider"] = [{ edit: "the edit", title }];
  await editor.run("gradsight.fixAll");
  assert.deepEqual(editor.messages.splice(0), ["GradSight: 5 fixes, 1 left, no safe fix."]);
  const [command, uri, , kind, resolved] = editor.executed[0] ?? [];
  assert.deepEqual(
    [command, String(uri), kind, resolved],
    ["vscode.executeCodeActionProvider", FILE, "source.fixAll.gradsight", 1],
  );
  assert.deepEqual(editor.applied, ["the edit"]);
  editor.answers["vscode.executeCodeActionProvider"] = [];
  await editor.run("gradsight.fixAll");
  assert.deepEqual(editor.messages, ["GradSight: there is no safe fix in this file."]);
});

test("measuring the operators shows what came of it", async () => {
  servers.answers["gradsight.refreshFacts"] = { summary: "1000 facts" };
  await editor.run("gradsight.measureFacts");
  assert.deepEqual(editor.messages, ["1000 facts"]);
});

test("debug information names versions and settings, and nothing of the user's code", async () => {
  await editor.run("gradsight.copyDebugInformation");
  const told = JSON.parse(editor.clipboard.replace(/```(json)?/g, ""));
  assert.equal(told.gradsight, "9.9.9");
  assert.equal(told.server.torch, "2.13.0");
  assert.deepEqual(told.python, ["ms-python.python"]);
  assert.ok("interpreter" in told.settings);
  assert.deepEqual(told.log, []);
});

test("the log in the debug information has what went wrong, and nothing that a program printed", () => {
  const log = [
    "2026-01-02 03:04:05.678 [info] starting python launch.py",
    "2026-01-02 03:04:06.000 [info] Run File: 1 confirmed",
    "  my secret loss: 0.5",
    "2026-01-02 03:04:07.000 [error] the server ended",
    "Traceback (most recent call last):",
    "",
  ];
  const [started, run, , ended, trace] = log;
  assert.deepEqual(headlines(log.join("\n")), [started, run, ended, trace]);
});

test("the sample opens as a file with a name, and beside the walkthrough", async () => {
  await editor.run("gradsight.openSample");
  editor.active = undefined;
  await editor.run("gradsight.openSample");
  assert.deepEqual(editor.written, ["/storage/first_steps.py", "/storage/first_steps.py"]);
  const columns = editor.shown.map(([, options]) => (options as { viewColumn: number }).viewColumn);
  assert.deepEqual(columns, [-1, -2]);
});

test("a file that is in sight is meant where the walkthrough has the focus", async () => {
  const seen = editor.active as object;
  editor.active = undefined;
  editor.visible = [
    { ...seen, document: { uri: Uri.file("/project/notes.md"), languageId: "markdown" } },
    seen,
  ];
  await editor.run("gradsight.probe.finding");
  assert.deepEqual(asked("gradsight.proveFinding")?.arguments, [FILE, 11]);
  editor.answers["vscode.executeCodeActionProvider"] = [{ edit: "the edit", title: "Fix all" }];
  await editor.run("gradsight.fixAll");
  assert.deepEqual(editor.applied, ["the edit"]);
});

test("the status names the interpreter and its torch, of the file that is looked at", async () => {
  assert.equal(editor.status.detail, "Python 3.12 · torch 2.13.0 · /p");
  servers.answers["gradsight.environment"] = { python: "/x/.venv/bin/python", version: "3.10", torch: "" };
  await editor.tell("active", editor.active);
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(editor.status.detail, "Python 3.10 · no torch · .venv");
  assert.deepEqual(servers.asked.at(-1)?.arguments, [FILE]);
});

const STEPS = [
  { role: "saved", uri: FILE, line: 3, character: 8, message: "`exp` saves its output here" },
  { role: "needed", uri: FILE, line: 9, character: 0, message: "this `backward()` needs the old value" },
];

test("the lines of a finding can be gone to", async () => {
  servers.answers["gradsight.trail"] = { steps: STEPS };
  await editor.run("gradsight.goToSaved");
  assert.equal(String(editor.shown[0]?.[0]), FILE);
  const [, options] = editor.shown[0] as [unknown, { selection: { start: unknown } }];
  assert.equal(options.selection.start, 3);
  await editor.run("gradsight.goToWrite");
  assert.deepEqual(editor.messages, ["GradSight: there is no such line for the finding here."]);
});

test("a hover leads to a line of a cell", async () => {
  const cell = "vscode-notebook-cell:/project/book.ipynb#a";
  await editor.run("gradsight.showLine", cell, 4);
  const [uri, options] = editor.shown[0] as [unknown, { selection: { start: unknown } }];
  assert.deepEqual([String(uri), options.selection.start], [cell, 4]);
  editor.refusal = "Could NOT open editor";
  await editor.run("gradsight.showLine", cell, 4);
  await assert.rejects(async () => editor.run("gradsight.showLine", FILE, 4), /Could NOT open editor/);
  assert.ok(servers.options[0]?.markdown.isTrusted.enabledCommands.includes("gradsight.showLine"));
});

test("a rule is explained by the finding at the cursor, or by choice", async () => {
  servers.answers["gradsight.rulePage"] = { code: "GS101", markdown: "# GS101", rules: [] };
  await editor.run("gradsight.explainRule");
  assert.deepEqual(asked("gradsight.rulePage")?.arguments, [FILE, 11]);
  assert.equal(editor.providers.get("gradsight")?.provideTextDocumentContent(), "# GS101");
  await editor.run("gradsight.explainRule", "GS302");
  assert.deepEqual(servers.asked.at(-1)?.arguments, ["", 0, "GS302"]);
});

test("a rule that is ignored everywhere is written into the settings once", async () => {
  editor.settings.set("gradsight.ignore", ["GS1"]);
  await editor.run("gradsight.ignoreRule", "GS302");
  await editor.run("gradsight.ignoreRule", "GS302");
  assert.deepEqual(editor.settings.get("gradsight.ignore"), ["GS1", "GS302"]);
});

test("the details of a run are a page and stand in the log", async () => {
  servers.answers["gradsight.probeFile"] = { summary: "2 confirmed", details: "# Last run", log: "line 3" };
  editor.answer = "Show Details";
  await editor.run("gradsight.probe.file");
  await new Promise((resolve) => setImmediate(resolve));
  assert.ok(editor.logged.some((line) => line.includes("line 3")));
  assert.equal(editor.providers.get("gradsight")?.provideTextDocumentContent(), "# Last run");
});

test("shapes and gradients are offered once, after a run that saw some", async () => {
  servers.answers["gradsight.probeFile"] = { summary: "done", observed: true };
  editor.answer = "Show";
  await editor.run("gradsight.probe.file");
  await editor.run("gradsight.probe.file");
  assert.equal(editor.messages.filter((text) => text.includes("shapes and gradients")).length, 1);
  assert.equal(editor.settings.get("gradsight.inlayHints"), true);
});

test("an interpreter is chosen in the setting where no extension chooses one", async () => {
  const python = writePython(join(emptyFolder(), "python"), "python 3.12 /chosen/python");
  editor.settings.set("gradsight.interpreter", python);
  const path = process.env.PATH;
  const folder = emptyFolder();
  writePython(join(folder, "python3.11"), "python 3.11 /usr/bin/python3.11");
  writePython(join(folder, "python3.12"), "python 3.12 /usr/bin/python3.12");
  process.env.PATH = dirname(writePython(join(folder, "python3"), "python 3.11 /usr/bin/python3"));
  await editor.run("gradsight.selectInterpreter").finally(() => {
    process.env.PATH = path;
  });
  // Names under which there is no interpreter are not offered, nor a second name of the same one.
  const offered = editor.picks.map((item) => (item as { label: string }).label);
  assert.deepEqual(offered, [python, "python3", "python3.12", "Browse…"]);
  assert.equal((editor.picks[0] as { description: string }).description, "Python 3.12 · /chosen");
  assert.equal(editor.settings.get("gradsight.interpreter"), python);
});

test("the lines that lead to the finding at the cursor are tinted", async () => {
  const tinted: unknown[] = [];
  const range = { start: { line: 11 }, end: { line: 11 } };
  const location = { uri: Uri.parse(FILE), range: { start: { line: 3 } } };
  editor.diagnostics = [{ source: "gradsight", range, relatedInformation: [{ location, message: "saved" }] }];
  editor.active = {
    ...(editor.active as object),
    document: { uri: Uri.parse(FILE), languageId: "python", getText: () => "import torch\n# %%\nx = 1\n" },
    setDecorations: (_kind: unknown, ranges: unknown[]) => tinted.push(ranges),
  };
  editor.visible = [editor.active];
  await editor.tell("selection", undefined);
  await new Promise((resolve) => setTimeout(resolve, 200));
  assert.deepEqual(
    (tinted[0] as { start: number }[]).map(({ start }) => start),
    [3],
  );
  assert.deepEqual(editor.executed.slice(-2), [
    ["setContext", "gradsight.onFinding", true],
    ["setContext", "gradsight.hasCells", true],
  ]);
});
