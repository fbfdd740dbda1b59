// `make vscode`: VS Code in a browser, with the packed extension, this repository's torch, and a copy of the samples.

import { spawn } from "node:child_process";
import { Editor, interpreterWithTorch, sampleFolder } from "./workbench.mjs";

const editor = await Editor.start({
  settings: { "gradsight.interpreter": interpreterWithTorch() },
  browser: false,
});
const folder = sampleFolder();
const payload = [["openFile", `vscode-remote://127.0.0.1:${editor.port}${folder}/first_steps.py`]];
const query = `folder=${encodeURIComponent(folder)}&payload=${encodeURIComponent(JSON.stringify(payload))}`;
const address = `http://127.0.0.1:${editor.port}/?${query}`;
console.log(`VS Code is open at ${address}`);
console.log("It has a profile of its own, which is removed when you press Ctrl+C.");
const opener = process.platform === "darwin" ? "open" : process.env.DISPLAY ? "xdg-open" : undefined;
// Where no browser can be opened from here, the address above is enough.
if (opener !== undefined) spawn(opener, [address], { stdio: "ignore" }).on("error", () => {});
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
  process.on(signal, async () => {
    await editor.stop();
    process.exit(0);
  });
}
