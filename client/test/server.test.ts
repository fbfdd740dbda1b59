import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import {
  candidates,
  chooseInterpreter,
  expand,
  type Interpreter,
  inspectInterpreter,
  type Surroundings,
  serverCommand,
  serverEnvironment,
} from "../src/server";
import { emptyFolder, writePython } from "./fake-python";

const plain: Surroundings = {
  setting: "",
  workspaceFolder: "/project",
  isTrusted: true,
  home: "/home/ada",
  env: { ENVS: "/envs" },
  isWindows: false,
};

type Answers = Record<string, Omit<Interpreter, "path">>;

async function check(changes: Partial<Surroundings>, answers: Answers, expected: string | RegExp) {
  const inspect = async (path: string) => {
    const answer = answers[path];
    return answer && { path, ...answer };
  };
  const choice = await chooseInterpreter({ ...plain, ...changes }, inspect);
  if (typeof expected === "string") {
    assert.equal(choice.kind === "found" ? choice.interpreter.path : choice.problem, expected);
  } else {
    assert.match(choice.kind === "missing" ? choice.problem : choice.interpreter.path, expected);
  }
}

const ready = { version: [3, 11], gradsight: "0.1.0" } as const;
const bare = { version: [3, 12], gradsight: "" } as const;
const old = { version: [3, 8], gradsight: "" } as const;

test("the environment of the workspace comes before the PATH", () =>
  check({}, { "/project/.venv/bin/python": ready, python3: ready }, "/project/.venv/bin/python"));

test("an environment without GradSight is passed over", () =>
  check({}, { "/project/.venv/bin/python": bare, python3: ready }, "python3"));

test("a chosen interpreter is the only one tried", () =>
  check({ setting: "/opt/py" }, { python3: ready }, /'gradsight.interpreter' cannot be run: \/opt\/py/));

test("an untrusted workspace runs none of its own programs", () => {
  assert.deepEqual(candidates({ ...plain, isTrusted: false }), ["python3", "python"]);
});

test("windows keeps its interpreters elsewhere", () => {
  const [first, ...others] = candidates({ ...plain, isWindows: true });
  assert.match(first ?? "", /Scripts.python\.exe$/);
  assert.deepEqual(others.slice(-2), ["python", "py"]);
});

test("a Python that lacks GradSight is told how to get it", () =>
  check(
    {},
    { python3: bare },
    /python3 \(Python 3\.12\) has no GradSight: .*python3 -m pip install gradsight/,
  ));

test("a Python that is too old is named with its version", () =>
  check({}, { python3: old }, /needs Python 3\.10 or newer, and python3 is Python 3\.8/));

test("an old Python with GradSight is still too old", () =>
  check({}, { python3: { version: [3, 9], gradsight: "0.1.0" } }, /needs Python 3\.10/));

test("no Python at all says which setting helps", () =>
  check({}, {}, /none was found: set 'gradsight.interpreter'/));

test("variables and relative paths in the setting are expanded", () => {
  assert.equal(expand("~/py", plain), "/home/ada/py");
  assert.equal(expand("${workspaceFolder}/env/bin/python", plain), "/project/env/bin/python");
  assert.equal(expand("${userHome}/py", plain), "/home/ada/py");
  assert.equal(expand("${env:ENVS}/a/bin/python", plain), "/envs/a/bin/python");
  assert.equal(expand("env/bin/python", plain), "/project/env/bin/python");
  assert.equal(expand("python3.12", plain), "python3.12");
  assert.equal(expand("C:\\Python\\python.exe", plain), "C:\\Python\\python.exe");
  assert.equal(expand("~friend/py", { ...plain, workspaceFolder: undefined }), "~friend/py");
});

test("the server is a module of the chosen interpreter", () => {
  const { command, args } = serverCommand({ path: "/opt/py", ...ready });
  assert.deepEqual([command, ...args], ["/opt/py", "-m", "gradsight", "server"]);
});

test("files of the working folder cannot shadow the server's modules", () => {
  assert.equal(serverEnvironment({ PATH: "/bin" }).PYTHONSAFEPATH, "1");
  assert.equal(serverEnvironment({ PATH: "/bin" }).PATH, "/bin");
});

test("an interpreter is asked for its version and for GradSight", async () => {
  const folder = emptyFolder();
  const withIt = writePython(join(folder, "with"), "3.13 0.1.0");
  const without = writePython(join(folder, "without"), "3.13 ");
  assert.deepEqual(await inspectInterpreter(withIt), { path: withIt, version: [3, 13], gradsight: "0.1.0" });
  assert.deepEqual(await inspectInterpreter(without), { path: without, version: [3, 13], gradsight: "" });
});

test("what is no interpreter is none, and raises nothing", async () => {
  const folder = emptyFolder();
  const failing = writePython(join(folder, "failing"), "3.13 0.1.0", 1);
  const talking = writePython(join(folder, "talking"), "hello");
  for (const path of [failing, talking, join(folder, "absent"), folder]) {
    assert.equal(await inspectInterpreter(path), undefined);
  }
});
