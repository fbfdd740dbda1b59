// `make vscode`: VS Code in a browser, with the packed extension, this repository's torch, and a copy of the samples.

import { Editor, interpreterWithTorch, sampleFolder } from "./workbench.mjs";

const editor = await Editor.start({
  settings: { "gradsight.interpreter": interpreterWithTorch() },
  browser: false,
});
const folder = sampleFolder();
const payload = [["openFile", `vscode-remote://127.0.0.1:${editor.port}${folder}/first_steps.py`]];
const query = `folder=${encodeURIComponent(folder)}&payload=${encodeURIComponent(JSON.stringify(payload))}`;
console.log(`VS Code is open at http://127.0.0.1:${editor.port}/?${query}`);
console.log("It has a profile of its own, which is removed when you press Ctrl+C.");
process.on("SIGINT", async () => {
  await editor.stop();
  process.exit(0);
});
