import assert from "node:assert/strict";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import type { ExtensionContext } from "vscode";
import { activate, deactivate } from "../src/extension";
import { FakeEnvironments, FakePythonExtension } from "./fake-interpreters";
import { servers } from "./fake-languageclient";
import { emptyFolder, writePython } from "./fake-python";
import { editor, Uri } from "./fake-vscode";

const context = {
  subscriptions: [],
  extensionPath: "/extension",
  extensionUri: Uri.file("/extension"),
  extension: { packageJSON: { version: "9.9.9" } },
} as unknown as ExtensionContext;
const path = process.env.PATH;
let python = "";

beforeEach(() => {
  process.env.PATH = path;
  editor.reset();
  servers.reset();
  python = writePython(join(emptyFolder(), "python"), "python 3.12 /env");
  editor.settings.set("gradsight.interpreter", python);
});

afterEach(() => deactivate());

/** The settings that the server would get for a folder. */
async function settingsFor(folder: string, answer: Record<string, unknown> = {}) {
  const params = { items: [{ section: "gradsight", scopeUri: `file://${folder}` }] };
  const [settings] = (await servers.options
    .at(-1)
    ?.middleware.workspace.configuration(params, {}, async () => [answer])) ?? [{}];
  return settings ?? {};
}

test("activation starts the carried server, isolated, with an interpreter that is new enough", async () => {
  await activate(context);
  const [server] = servers.started;
  const launcher = "/extension/server/gradsight/lsp/launch.py";
  assert.deepEqual([server?.command, ...(server?.args ?? [])], [python, "-I", "-S", launcher]);
  assert.equal(server?.options.cwd, "/extension");
  assert.deepEqual(editor.errors, []);
  assert.equal(editor.status.text, "GradSight");
});

test("a program of the user's own takes the place of the carried server", async () => {
  editor.settings.set("gradsight.path", "/opt/gradsight");
  await activate(context);
  assert.deepEqual(servers.started[0], {
    command: "/opt/gradsight",
    args: ["server"],
    options: { cwd: "/extension" },
  });
});

test("nothing starts when GradSight is switched off, and switching it on starts it", async () => {
  editor.settings.set("gradsight.enable", false);
  await activate(context);
  assert.deepEqual(servers.events, []);
  assert.match(String(editor.status.text), /switched off/);
  await editor.change("gradsight.enable", true);
  assert.deepEqual(servers.events, ["start"]);
});

test("another interpreter reaches the server without a restart", async () => {
  await activate(context);
  await editor.change("gradsight.interpreter", "/elsewhere/python");
  assert.deepEqual(servers.events, ["start"]);
  assert.deepEqual(servers.told, [{ settings: null }]);
  assert.equal((await settingsFor("/project")).interpreter, "/elsewhere/python");
});

test("settings that the server reads itself restart nothing", async () => {
  await activate(context);
  await editor.change("gradsight.trace.server", "verbose");
  assert.deepEqual(servers.events, ["start"]);
  assert.deepEqual(servers.told, []);
});

test("restarts asked for at once happen one after the other", async () => {
  await activate(context);
  await Promise.all([editor.run("gradsight.restart"), editor.run("gradsight.restart")]);
  assert.deepEqual(servers.events, ["start", "stop", "start", "stop", "start"]);
});

test("no usable Python is said once, logged each time, and shown in the status", async () => {
  process.env.PATH = "";
  editor.settings.set("gradsight.interpreter", writePython(join(emptyFolder(), "python"), "python 3.8 /env"));
  await activate(context);
  await editor.run("gradsight.restart");
  assert.equal(editor.errors.length, 1);
  assert.match(editor.errors[0] ?? "", /needs Python 3\.10 or newer to run, and .* is Python 3\.8/);
  assert.equal(editor.logged.filter((line) => line.includes("needs Python")).length, 2);
  assert.match(String(editor.status.detail), /needs Python/);
  assert.deepEqual(servers.events, []);
});

test("a Python that becomes usable starts the server", async () => {
  process.env.PATH = "";
  editor.settings.set("gradsight.interpreter", join(emptyFolder(), "absent"));
  await activate(context);
  process.env.PATH = path;
  await editor.change("gradsight.interpreter", python);
  assert.equal(servers.started.length, 1);
});

test("a server that does not start is said, and can be started again", async () => {
  servers.failure = "no pipe";
  editor.answer = "Open Settings";
  await activate(context);
  assert.match(editor.errors[0] ?? "", /cannot start its server: no pipe/);
  assert.deepEqual(editor.executed, [["workbench.action.openSettings", "gradsight"]]);
  servers.failure = "";
  await editor.run("gradsight.restart");
  assert.equal(servers.started.length, 1);
});

test("a server that keeps dying is restarted four times, then left alone with a reason", async () => {
  await activate(context);
  const handler = servers.options[0]?.errorHandler;
  const actions = [1, 2, 3, 4, 5].map(() => handler?.closed().action);
  assert.deepEqual(actions, [2, 2, 2, 2, 1]);
  assert.match(editor.errors[0] ?? "", /ended 5 times in a row/);
});

test("a request that fails raises no message of its own", async () => {
  await activate(context);
  assert.equal(servers.options[0]?.revealOutputChannelOn, 4);
});

test("what the editor knows is added to the settings that the server asks for", async () => {
  editor.trusted = false;
  await activate(context);
  const settings = await settingsFor("/project", {
    probe: { env: { DATA: "${workspaceFolder}/data" }, args: ["~/x"] },
    select: ["GS1"],
  });
  assert.deepEqual(settings.probe, {
    env: { DATA: "/project/data" },
    args: [`${process.env.HOME}/x`],
    allowed: false,
  });
  assert.deepEqual(settings.select, ["GS1"]);
});

test("trusting the workspace starts the server anew", async () => {
  editor.trusted = false;
  await activate(context);
  await editor.trust();
  assert.deepEqual(servers.events, ["start", "stop", "start"]);
});

test("settings that change with the trust reach the server that is starting, which starts once", async () => {
  editor.trusted = false;
  await activate(context);
  const trusting = editor.trust();
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(servers.events.at(-1), "stop");
  await Promise.all([trusting, editor.change("gradsight.interpreter", "/elsewhere/python")]);
  assert.deepEqual(servers.events, ["start", "stop", "start"]);
  assert.deepEqual(servers.told, [{ settings: null }]);
});

test("the Python Environments extension is asked before the Python extension", async () => {
  editor.settings.delete("gradsight.interpreter");
  const environments = new FakeEnvironments("/envs/python");
  editor.extensions.set("ms-python.vscode-python-envs", environments);
  editor.extensions.set("ms-python.python", new FakePythonExtension({ id: "x", path: "/old/python" }));
  await activate(context);
  assert.equal((await settingsFor("/project/one")).interpreter, "/envs/python");
  assert.equal(environments.asked.at(-1), "/project/one");
  environments.choose("/other/python");
  assert.equal((await settingsFor("/project/two")).interpreter, "/other/python");
  assert.deepEqual(servers.told, [{ settings: null }]);
});

test("the Python extension is asked where the newer one is missing, fails or has no answer", async () => {
  editor.settings.delete("gradsight.interpreter");
  const older = new FakePythonExtension({ id: "x", path: "/old/python" });
  editor.extensions.set("ms-python.python", older);
  for (const newer of [undefined, new Error("will not start"), new FakeEnvironments(undefined)]) {
    if (newer !== undefined) editor.extensions.set("ms-python.vscode-python-envs", newer);
    await activate(context);
    assert.equal((await settingsFor("/project")).interpreter, "/old/python");
  }
  older.choose("/new/python");
  assert.equal((await settingsFor("/project")).interpreter, "/new/python");
});

test("an extension that takes long to start is not waited for, and asked when it is there", async (context_) => {
  context_.mock.timers.enable({ apis: ["setTimeout"] });
  let start = (_api: FakeEnvironments) => {};
  const starting = new Promise<FakeEnvironments>((resolve) => {
    start = resolve;
  });
  editor.extensions.set("ms-python.vscode-python-envs", starting);
  const activated = activate(context);
  for (let turn = 0; turn < 20; turn++) await Promise.resolve();
  context_.mock.timers.tick(5_000);
  await activated;
  assert.equal(servers.started.at(-1)?.command, python);
  start(new FakeEnvironments("/envs/python"));
  for (let turn = 0; turn < 20; turn++) await Promise.resolve();
  assert.equal((await settingsFor("/project")).interpreter, "/envs/python");
});

test("what the user set is used where the extension has no choice of its own, and may run the server", async () => {
  const extension = new FakePythonExtension({ id: "DEFAULT_PYTHON", path: "python" });
  editor.extensions.set("ms-python.python", extension);
  await activate(context);
  assert.equal((await settingsFor("/project")).interpreter, python);
  extension.choose("/chosen/python");
  assert.equal((await settingsFor("/project")).interpreter, "/chosen/python");
  await editor.run("gradsight.restart");
  assert.equal(servers.started.at(-1)?.command, python);
});

test("each folder of a workspace has its own interpreter, and so has its file", async () => {
  const [one, two] = [emptyFolder(), emptyFolder()];
  editor.folders = [{ uri: Uri.file(one) }, { uri: Uri.file(two) }];
  editor.settings.set("gradsight.interpreter", "env/bin/python");
  await activate(context);
  assert.equal((await settingsFor(one)).interpreter, join(one, "env/bin/python"));
  assert.equal((await settingsFor(two)).interpreter, join(two, "env/bin/python"));
});

test("without an extension the environment in the folder is used, if the folder is trusted", async () => {
  editor.settings.delete("gradsight.interpreter");
  const folder = emptyFolder();
  const local = writePython(join(folder, ".venv", "bin", "python"), "python 3.12 /env");
  await activate(context);
  assert.equal((await settingsFor(folder)).interpreter, local);
  editor.trusted = false;
  assert.equal((await settingsFor(folder)).interpreter, "python3");
});
