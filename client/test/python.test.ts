import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { expandPath, expandVariables, type Surroundings } from "../src/expansion";
import { carriedServer, choosePython, inspectPython, namesOnPath, type Python } from "../src/python";
import { emptyFolder, writePython } from "./fake-python";

const plain: Surroundings = { workspaceFolder: "/project", home: "/home/ada", env: { ENVS: "/envs" } };

async function check(
  answers: Record<string, Python["version"]>,
  candidates: string[],
  expected: string | RegExp,
) {
  const inspect = async (path: string) => {
    const version = answers[path];
    return version && { path, version, environment: path };
  };
  const choice = await choosePython(candidates, inspect);
  if (typeof expected === "string") assert.equal(choice.kind === "found" && choice.python.path, expected);
  else assert.match(choice.kind === "missing" ? choice.problem : choice.python.path, expected);
}

test("the first interpreter that is new enough runs the server", () =>
  check({ "/venv/python": [3, 12], python3: [3, 11] }, ["/venv/python", "python3"], "/venv/python"));

test("an old interpreter is passed over", () =>
  check({ "/venv/python": [3, 9], python3: [3, 10] }, ["/venv/python", "python3"], "python3"));

test("a Python that is too old is named with its version", () =>
  check({ python3: [3, 8] }, ["python3"], /needs Python 3\.10 or newer to run, and python3 is Python 3\.8/));

test("no Python at all says what to do", () =>
  check({}, ["python3", "python"], /none was found: install one, or name it in 'gradsight\.interpreter'/));

test("a Python 4 is new enough", () => check({ python: [4, 0] }, ["python"], "python"));

test("each system has its own names on the PATH", () => {
  assert.deepEqual(namesOnPath(true), ["python", "python3", "py"]);
  assert.deepEqual(namesOnPath(false).slice(0, 3), ["python3", "python", "python3.14"]);
});

test("variables and relative paths in a setting are expanded", () => {
  assert.equal(expandPath("~/py", plain), "/home/ada/py");
  assert.equal(expandPath("~", plain), "/home/ada");
  assert.equal(expandPath("${workspaceFolder}/env/bin/python", plain), "/project/env/bin/python");
  assert.equal(expandPath("${userHome}/py", plain), "/home/ada/py");
  assert.equal(expandPath("${env:ENVS}/a/bin/python", plain), "/envs/a/bin/python");
  assert.equal(expandPath("env/bin/python", plain), "/project/env/bin/python");
  assert.equal(expandPath("./my env/bin/python", plain), "/project/my env/bin/python");
  assert.equal(expandPath(" python3.12 ", plain), "python3.12");
  assert.equal(expandPath("C:\\Python\\python.exe", plain), "C:\\Python\\python.exe");
  assert.equal(expandPath("~friend/py", { ...plain, workspaceFolder: undefined }), "~friend/py");
  assert.equal(expandVariables("${env:ABSENT}/x", plain), "/x");
});

test("the carried server sees neither installed packages nor the environment", () => {
  const { command, args } = carriedServer(
    { path: "/opt/py", version: [3, 12], environment: "/opt" },
    "/extension",
  );
  assert.deepEqual([command, ...args], ["/opt/py", "-I", "-S", "/extension/server/gradsight/lsp/launch.py"]);
});

test("an interpreter is asked for its version and its environment", async () => {
  const path = writePython(join(emptyFolder(), "python"), "python 3.13 /my envs/a/python");
  assert.deepEqual(await inspectPython(path), { path, version: [3, 13], environment: "/my envs/a" });
});

test("what is no interpreter is none, and raises nothing", async () => {
  const folder = emptyFolder();
  const failing = writePython(join(folder, "failing"), "python 3.13 /env", 1);
  const talking = writePython(join(folder, "talking"), "hello");
  for (const path of [failing, talking, join(folder, "absent"), folder]) {
    assert.equal(await inspectPython(path), undefined);
  }
});
