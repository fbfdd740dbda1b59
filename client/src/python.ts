// Which Python runs the server, and how it is started so that nothing of the user's packages can break it.

import { execFile } from "node:child_process";
import { dirname, join } from "node:path";

/** What one interpreter says about itself. */
export interface Python {
  readonly path: string;
  readonly version: readonly [number, number];
  /** The folder of the program: names of one version in it start the same interpreter. */
  readonly environment: string;
}

/** The command line of a server. */
export interface Command {
  readonly command: string;
  readonly args: readonly string[];
}

/** Either a usable interpreter, or one sentence that says what to do. */
export type Choice =
  | { readonly kind: "found"; readonly python: Python }
  | { readonly kind: "missing"; readonly problem: string };

const OLDEST: readonly [number, number] = [3, 10];
const INSPECTION_MILLISECONDS = 30_000;
// Any Python since 2.7 can run this, so that an old one is named instead of failing strangely.
const INSPECTION =
  'import sys; sys.stdout.write("python %d.%d %s" % (sys.version_info[0], sys.version_info[1], sys.executable))';

/** Names under which an interpreter may be on the PATH, the plain ones first. */
export function namesOnPath(isWindows: boolean): string[] {
  if (isWindows) return ["python", "python3", "py"];
  return ["python3", "python", ...[14, 13, 12, 11, 10].map((minor) => `python3.${minor}`)];
}

/** The first candidate that is new enough, or the most helpful reason why none is. */
export async function choosePython(
  candidates: readonly string[],
  inspect: (path: string) => Promise<Python | undefined> = inspectPython,
): Promise<Choice> {
  let old: Python | undefined;
  for (const path of new Set(candidates)) {
    const python = await inspect(path);
    if (python === undefined) continue;
    if (isNewEnough(python)) return { kind: "found", python };
    old ??= python;
  }
  const wanted = `needs Python ${OLDEST.join(".")} or newer to run`;
  const advice = "install one, or name it in 'gradsight.interpreter', then run 'GradSight: Restart Server'.";
  const found = old === undefined ? "none was found" : `${old.path} is Python ${old.version.join(".")}`;
  return { kind: "missing", problem: `${wanted}, and ${found}: ${advice}` };
}

/**
 * The server that the extension carries.  `-I -S`: neither the environment's variables nor its installed packages, nor a
 * file of the workspace, are seen by it.
 */
export function carriedServer(python: Python, extensionPath: string): Command {
  const launcher = join(extensionPath, "server", "gradsight", "lsp", "launch.py");
  return { command: python.path, args: ["-I", "-S", launcher] };
}

/** Asks the interpreter itself; undefined if it cannot be run. */
export function inspectPython(path: string): Promise<Python | undefined> {
  return new Promise((resolve) => {
    const options = { timeout: INSPECTION_MILLISECONDS, cwd: __dirname };
    execFile(path, ["-I", "-S", "-c", INSPECTION], options, (error, stdout) => {
      const answer = /^python (\d+)\.(\d+) (.+)$/.exec(stdout);
      if (error !== null || answer === null) return resolve(undefined);
      const [, major, minor, program = path] = answer;
      resolve({ path, version: [Number(major), Number(minor)], environment: dirname(program) });
    });
  });
}

function isNewEnough({ version: [major, minor] }: Python): boolean {
  return major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1]);
}
