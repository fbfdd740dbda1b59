// Bundles the editor client into dist/, or with --tests its tests into build/client-tests/.
// In the tests the editor and the protocol library are stand-ins, so that they run in plain Node.

import { readdirSync, rmSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const common = { bundle: true, platform: "node", target: "node20", format: "cjs", logLevel: "warning" };

if (process.argv.includes("--tests")) {
  rmSync(here("../build/client-tests"), { recursive: true, force: true });
  const tests = readdirSync(here("test")).filter((name) => name.endsWith(".test.ts"));
  await build({
    ...common,
    entryPoints: tests.map((name) => here(`test/${name}`)),
    outdir: here("../build/client-tests"),
    sourcemap: "inline",
    alias: {
      vscode: here("test/fake-vscode.ts"),
      "vscode-languageclient/node": here("test/fake-languageclient.ts"),
    },
  });
} else {
  rmSync(here("../dist"), { recursive: true, force: true });
  const product = { ...common, minify: true, sourcemap: false };
  await build({
    ...product,
    entryPoints: [here("src/extension.ts")],
    outfile: here("../dist/extension.js"),
    external: ["vscode"],
  });
  // The graph view runs in a page of its own, not in the editor's process.
  await build({
    ...product,
    platform: "browser",
    format: "iife",
    target: "es2022",
    entryPoints: { graph: here("src/graph/view.ts") },
    outdir: here("../dist"),
  });
  await build({ ...product, entryPoints: { graph: here("src/graph/view.css") }, outdir: here("../dist") });
}
