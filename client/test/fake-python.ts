// Small programs that answer as an interpreter would, so that the tests need no Python.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

const folders: string[] = [];
process.on("exit", () => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

/** An empty folder that goes away when the tests end. */
export function emptyFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "gradsight-client-"));
  folders.push(folder);
  return folder;
}

/** Writes an executable that prints `answer` and ends with `code`. */
export function writePython(path: string, answer: string, code = 0): string {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, `#!/bin/sh\nprintf '%s' '${answer}'\nexit ${code}\n`, { mode: 0o755 });
  return path;
}
