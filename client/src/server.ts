// Which Python runs the server, and with which arguments.  Knows nothing of the editor.

import { execFile } from "node:child_process";
import { join } from "node:path";

/** What the choice of an interpreter depends on. */
export interface Surroundings {
  /** The value of `gradsight.interpreter`; empty when the user chose nothing. */
  readonly setting: string;
  /** The first folder of the workspace, if one is open. */
  readonly workspaceFolder: string | undefined;
  /** Whether programs of the workspace may be run. */
  readonly isTrusted: boolean;
  readonly home: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly isWindows: boolean;
}

/** What one interpreter says about itself; `gradsight` is the installed version, or empty. */
export interface Interpreter {
  readonly path: string;
  readonly version: readonly [number, number];
  readonly gradsight: string;
}

/** Either a usable interpreter, or one sentence that says what to do. */
export type Choice =
  | { readonly kind: "found"; readonly interpreter: Interpreter }
  | { readonly kind: "missing"; readonly problem: string };

const OLDEST: readonly [number, number] = [3, 10];
const INSPECTION_MILLISECONDS = 10_000;

// Any Python since 2.7 can run this, so that an old one is named instead of failing strangely.
const INSPECTION = `
import sys
sys.stdout.write("%d.%d " % sys.version_info[:2])
try:
    import gradsight
    sys.stdout.write(gradsight.__version__)
except ImportError:
    pass
`;

/** The first candidate that is new enough and has GradSight, or the most helpful reason why none is. */
export async function chooseInterpreter(
  surroundings: Surroundings,
  inspect: (path: string) => Promise<Interpreter | undefined> = inspectInterpreter,
): Promise<Choice> {
  const inspected: Interpreter[] = [];
  for (const path of candidates(surroundings)) {
    const interpreter = await inspect(path);
    if (interpreter === undefined) continue;
    if (isNewEnough(interpreter) && interpreter.gradsight !== "") return { kind: "found", interpreter };
    inspected.push(interpreter);
  }
  return { kind: "missing", problem: problemOf(surroundings, inspected) };
}

/** The command that starts the server on standard input and output. */
export function serverCommand(interpreter: Interpreter): { command: string; args: string[] } {
  return { command: interpreter.path, args: ["-m", "gradsight", "server"] };
}

/** The server's environment: a `gradsight.py` or `torch.py` in the working folder must not shadow the real one. */
export function serverEnvironment(env: Surroundings["env"]): Record<string, string | undefined> {
  return { ...env, PYTHONSAFEPATH: "1", PYTHONUTF8: "1" };
}

/** Interpreters to try, the most specific first; nothing of an untrusted workspace is ever run. */
export function candidates(surroundings: Surroundings): string[] {
  const { setting, workspaceFolder, isTrusted, isWindows } = surroundings;
  if (setting !== "") return [expand(setting, surroundings)];
  const local: string[] = [];
  if (workspaceFolder !== undefined && isTrusted) {
    for (const folder of [".venv", "venv"]) {
      local.push(
        join(workspaceFolder, folder, ...(isWindows ? ["Scripts", "python.exe"] : ["bin", "python"])),
      );
    }
  }
  return [...local, ...(isWindows ? ["python", "py"] : ["python3", "python"])];
}

/** Replaces `~`, `${workspaceFolder}`, `${userHome}` and `${env:NAME}`; a relative path starts at the workspace. */
export function expand(value: string, { workspaceFolder, home, env }: Surroundings): string {
  const replaced = value
    .replace(/^~(?=$|[\\/])/, home)
    .replace(/\$\{(workspaceFolder|userHome|env:([^}]+))\}/g, (_whole, word: string, name?: string) => {
      if (word === "workspaceFolder") return workspaceFolder ?? "";
      return word === "userHome" ? home : (env[name ?? ""] ?? "");
    });
  const isRelativePath = /[\\/]/.test(replaced) && !/^([\\/]|[A-Za-z]:)/.test(replaced);
  return isRelativePath && workspaceFolder !== undefined ? join(workspaceFolder, replaced) : replaced;
}

/** Asks the interpreter itself; undefined if it cannot be run. */
export function inspectInterpreter(path: string): Promise<Interpreter | undefined> {
  const options = {
    timeout: INSPECTION_MILLISECONDS,
    env: serverEnvironment(process.env),
    cwd: __dirname,
  };
  return new Promise((resolve) => {
    execFile(path, ["-c", INSPECTION], options, (error, stdout) => {
      const answer = /^(\d+)\.(\d+) (\S*)/.exec(stdout);
      if (error !== null || answer === null) return resolve(undefined);
      resolve({ path, version: [Number(answer[1]), Number(answer[2])], gradsight: answer[3] ?? "" });
    });
  });
}

function isNewEnough({ version }: Interpreter): boolean {
  return version[0] > OLDEST[0] || (version[0] === OLDEST[0] && version[1] >= OLDEST[1]);
}

function problemOf(surroundings: Surroundings, inspected: readonly Interpreter[]): string {
  const recent = inspected.find(isNewEnough);
  if (recent !== undefined) {
    return `${recent.path} (Python ${recent.version.join(".")}) has no GradSight: install it with '${recent.path} -m pip install gradsight'.`;
  }
  const old = inspected[0];
  if (old !== undefined) {
    return `GradSight needs Python ${OLDEST.join(".")} or newer, and ${old.path} is Python ${old.version.join(".")}.`;
  }
  return surroundings.setting === ""
    ? `GradSight needs Python ${OLDEST.join(".")} or newer, and none was found: set 'gradsight.interpreter'.`
    : `'gradsight.interpreter' cannot be run: ${candidates(surroundings)[0]}.`;
}
