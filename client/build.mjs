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
  await build({
    ...common,
    entryPoints: [here("src/extension.ts")],
    outfile: here("../dist/extension.js"),
    external: ["vscode"],
    minify: true,
    sourcemap: true,
  });
}
