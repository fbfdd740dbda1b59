// From the activation of an extension to its first squiggle, in a real VS Code: GradSight beside the basedpyright server.
//
//     make vsix && node benchmarks/first_squiggle.mjs [ROUNDS]
//
// Both are started by the event that a Python file is open, on the same file, each in an editor and a profile of its own.
// A third extension watches: it is activated by the same event and notes when the first diagnostic of the file arrives.
// Python there has no torch: a type checker that finds torch reads much of it first.

import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build } from "esbuild";
import { Editor, ROOT, until, vsix } from "../tests/client_e2e/workbench.mjs";

const HOME = join(ROOT, "build", "first-squiggle");
const PROGRAM = `import torch

x = torch.ones(3, requires_grad=True)
y = torch.exp(x)
y *= 2
y.sum().backward()
print(absent)
`;
const WATCHER = `import { languages, window, workspace } from "vscode";
import { writeFileSync } from "node:fs";
export function activate() {
  const start = performance.now();
  const folder = workspace.workspaceFolders[0].uri.fsPath;
  languages.onDidChangeDiagnostics(({ uris }) => {
    const told = uris.some((uri) => uri.path.endsWith("model.py") && languages.getDiagnostics(uri).length > 0);
    if (told) writeFileSync(folder + "/first.txt", String(performance.now() - start), { flag: "wx" });
  });
}`;
const PEER = `import { LanguageClient } from "vscode-languageclient/node";
export async function activate() {
  const server = { command: process.execPath, args: [SERVER, "--stdio"] };
  await new LanguageClient("peer", "peer", server, { documentSelector: [{ language: "python" }] }).start();
}`;

const rounds = Number(process.argv[2] ?? 3);
const watcher = await extension("watcher", WATCHER, {});
const peer = await extension("peer", PEER, { SERVER: JSON.stringify(basedpyright()) });
const times = { gradsight: [], basedpyright: [] };
for (let round = 0; round < rounds; round++) {
  times.gradsight.push(await measured([watcher, vsix()]));
  times.basedpyright.push(await measured([watcher, peer]));
}
const best = (name) => Math.min(...times[name]);
for (const name of Object.keys(times))
  console.log(`${name.padEnd(28)} ${times[name].map((ms) => `${Math.round(ms)} ms`).join(", ")}`);
const ratio = best("gradsight") / best("basedpyright");
console.log(`gradsight / basedpyright     ${ratio.toFixed(2)} (best of ${rounds} each)`);
process.exit(ratio <= 1 ? 0 : 1);

/** Milliseconds from activation to the first diagnostic. */
async function measured(extensions) {
  const folder = mkdtempSync(join(tmpdir(), "gradsight-first-"));
  writeFileSync(join(folder, "model.py"), PROGRAM);
  const editor = await Editor.start({ extensions });
  try {
    const window = await editor.open(folder, "model.py");
    await window.page.locator(".monaco-editor .squiggly-error, .monaco-editor .squiggly-warning").first().waitFor();
    await until(() => existsSync(join(folder, "first.txt")), "the note of the watcher");
    return Number(readFileSync(join(folder, "first.txt"), "utf8"));
  } finally {
    await editor.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** A small extension made of one text, packed. */
async function extension(name, text, define) {
  const folder = join(HOME, name);
  mkdirSync(folder, { recursive: true });
  const manifest = {
    ...{ name, publisher: "benchmark", version: "1.0.0", engines: { vscode: "^1.91.0" }, main: "./main.js" },
    ...{ activationEvents: ["onLanguage:python"], files: ["main.js"] },
  };
  writeFileSync(join(folder, "package.json"), JSON.stringify(manifest));
  await build({
    stdin: { contents: text, resolveDir: ROOT },
    ...{ bundle: true, platform: "node", format: "cjs", minify: true, external: ["vscode"], define },
    outfile: join(folder, "main.js"),
  });
  const packed = join(HOME, `${name}.vsix`);
  const tool = join(ROOT, "node_modules", "@vscode", "vsce", "vsce");
  const flags = ["--no-dependencies", "--skip-license", "--allow-missing-repository", "--out", packed];
  execFileSync(process.execPath, [tool, "package", ...flags], { cwd: folder, stdio: "pipe" });
  return packed;
}

/** The server of basedpyright, installed once. */
function basedpyright() {
  const folder = join(HOME, "basedpyright");
  const server = join(folder, "node_modules", "basedpyright", "langserver.index.js");
  if (!existsSync(server)) {
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "package.json"), '{"private": true}');
    execFileSync("npm", ["install", "--no-audit", "--no-fund", "basedpyright"], { cwd: folder, stdio: "pipe" });
  }
  return server;
}
