import assert from "node:assert/strict";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import type { ExtensionContext } from "vscode";
import { activate, deactivate } from "../src/extension";
import { servers } from "./fake-languageclient";
import { emptyFolder, writePython } from "./fake-python";
import { editor } from "./fake-vscode";

const context = { subscriptions: [], extensionPath: "/extension" } as unknown as ExtensionContext;
let python = "";

beforeEach(() => {
  editor.reset();
  servers.reset();
  python = writePython(join(emptyFolder(), "python"), "3.12 0.1.0");
  editor.settings.set("gradsight.interpreter", python);
});

afterEach(() => deactivate());

async function run(command: string): Promise<void> {
  await editor.handlers.get(command)?.();
}

test("activation starts the server with the chosen interpreter", async () => {
  await activate(context);
  const [server] = servers.started;
  assert.deepEqual([server?.command, ...(server?.args ?? [])], [python, "-m", "gradsight", "server"]);
  assert.equal(server?.options.cwd, "/extension");
  assert.deepEqual(editor.errors, []);
});

test("nothing starts when GradSight is switched off, and switching it on starts it", async () => {
  editor.settings.set("gradsight.enable", false);
  await activate(context);
  assert.deepEqual(servers.events, []);
  await editor.change("gradsight.enable", true);
  assert.deepEqual(servers.events, ["start"]);
});

test("another interpreter means another server, the old one stopped first", async () => {
  await activate(context);
  const other = writePython(join(emptyFolder(), "python"), "3.13 0.1.0");
  await editor.change("gradsight.interpreter", other);
  assert.deepEqual(servers.events, ["start", "stop", "start"]);
  assert.equal(servers.started.at(-1)?.command, other);
});

test("settings that the server reads itself restart nothing", async () => {
  await activate(context);
  await editor.change("gradsight.trace.server", "verbose");
  assert.deepEqual(servers.events, ["start"]);
});

test("restarts asked for at once happen one after the other", async () => {
  await activate(context);
  await Promise.all([run("gradsight.restart"), run("gradsight.restart")]);
  assert.deepEqual(servers.events, ["start", "stop", "start", "stop", "start"]);
});

test("a missing interpreter is said once, and logged each time", async () => {
  editor.settings.set("gradsight.interpreter", join(emptyFolder(), "absent"));
  await activate(context);
  await run("gradsight.restart");
  assert.equal(editor.errors.length, 1);
  assert.match(editor.errors[0] ?? "", /'gradsight.interpreter' cannot be run/);
  assert.equal(editor.logged.filter((line) => line.includes("cannot be run")).length, 2);
});

test("a server that does not start is said, and can be started again", async () => {
  servers.failure = "no pipe";
  editor.answer = "Open Settings";
  await activate(context);
  assert.match(editor.errors[0] ?? "", /the server did not start: no pipe/);
  assert.deepEqual(editor.executed, [["workbench.action.openSettings", "gradsight"]]);
  servers.failure = "";
  await run("gradsight.restart");
  assert.equal(servers.started.length, 1);
});

test("trusting the workspace lets its own environment run the server", async () => {
  const folder = emptyFolder();
  const local = writePython(join(folder, ".venv", "bin", "python"), "3.12 0.1.0");
  editor.settings.set("gradsight.interpreter", "");
  editor.folders = [{ uri: { fsPath: folder } }];
  editor.trusted = false;
  await activate(context);
  assert.ok(!servers.started.some((server) => server.command === local));
  await editor.trust();
  assert.equal(servers.started.at(-1)?.command, local);
});

test("the log is shown on request", async () => {
  await activate(context);
  await run("gradsight.showLogs");
  assert.deepEqual(editor.executed, [["show logs"]]);
});

test("closing the editor stops the server", async () => {
  await activate(context);
  await deactivate();
  assert.deepEqual(servers.events, ["start", "stop"]);
});
