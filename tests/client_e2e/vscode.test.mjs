// The extension in a real VS Code: what a user sees, from the first squiggle to the graph.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, afterEach, before, describe, test } from "node:test";
import { Editor, interpreterWithTorch, sampleFolder, until } from "./workbench.mjs";

const ENDLESS = `import torch

weight = torch.ones(3, requires_grad=True)
while True:
    weight.pow(2).sum().backward()
`;

describe("a trusted workspace", () => {
  let editor;
  let folder;
  let window;

  before(async () => {
    editor = await Editor.start({ settings: { "gradsight.interpreter": interpreterWithTorch() } });
    folder = sampleFolder();
    window = await editor.open(folder, "first_steps.py");
  });
  afterEach(async (context) => {
    if (!context.passed && window) await window.picture(`failed ${context.name.replace(/\W+/g, "-")}`);
  });
  after(async () => {
    if (process.env.SHOW_LOG) console.log(editor?.log());
    await editor?.stop();
  });

  test("the line that breaks the gradient is underlined, and its problem lists the lines that matter", async () => {
    await window.squiggles("error");
    await window.squiggles("warning");
    const rows = await window.problem(/gate is changed in place by mul_, but sigmoid kept its result.*GS101/);
    assert.ok(
      rows.some((row) => /Ln 14.*sigmoid keeps its result for backward here/.test(row)),
      rows.join("\n"),
    );
    assert.ok(
      rows.some((row) => /Ln 34.*this backward needs the old value/.test(row)),
      rows.join("\n"),
    );
    await window.picture("01-squiggles-and-problems");
  });

  test("the status entry names the interpreter and its torch", async () => {
    const page = window.page;
    await page.locator("#status\\.languageStatus").click();
    const detail = page.locator(".hover-language-status", { hasText: "GradSight" });
    await until(async () => /torch 2\./.test(await detail.innerText()), "torch in the status");
    assert.match(await detail.innerText(), /Python 3\.\d+\.\d+ · torch 2\./);
    await window.picture("02-status");
    await page.keyboard.press("Escape");
  });

  test("hovering tells why", async () => {
    await window.goto(15, 12);
    const text = await window.hover();
    assert.match(text, /GS101/);
    await window.picture("03-hover");
    await window.page.keyboard.press("Escape");
  });

  test("proving a finding shows that torch agrees", async () => {
    await window.goto(15, 12);
    await window.command("GradSight: Prove This Finding");
    await window.notification(/GS101: confirmed/);
    await window.problem(/confirmed on torch 2\..*gate is changed/);
    await window.picture("04-confirmed");
    await window.clearNotifications();
  });

  test("the graph is drawn, and a node leads to its line", async () => {
    await window.goto(15, 12);
    await window.command("GradSight: Show Autograd Graph");
    const frame = window.page.frameLocator("iframe.webview").frameLocator("iframe");
    const saved = frame.locator(".node.saved");
    await saved.waitFor();
    assert.match(await saved.getAttribute("aria-label"), /sigmoid, line 14/);
    assert.equal(await frame.locator(".node.written").count(), 1);
    assert.equal(await frame.locator(".node.needed").count(), 1);
    await window.clearNotifications();
    await window.picture("05-graph");
    await saved.click();
    const line = window.page.locator("#status\\.editor\\.selection");
    await until(async () => /Ln 14/.test(await line.innerText()), "the cursor in line 14");
    await frame.locator('[tabindex="0"].node').focus();
    await window.page.keyboard.press("ArrowDown");
    await window.page.keyboard.press("Enter");
    await until(async () => !/Ln 14,/.test(await line.innerText()), "the cursor in another line");
    await window.picture("06-graph-keyboard");
  });

  test("a minimal program goes to the clipboard", async () => {
    await window.command("View: Focus First Editor Group");
    await window.goto(15, 12);
    await window.command("GradSight: Copy Minimal Repro");
    await window.notification(/minimal program .* on the clipboard/);
    const text = await window.page.evaluate(() => navigator.clipboard.readText());
    assert.match(text, /# GS101: gate is changed in place/);
    assert.ok(!text.includes("compare_gradients"), text);
    await window.clearNotifications();
  });

  test("a copied traceback is explained, with links to the lines", async () => {
    const traceback = `Traceback (most recent call last):
  File "${join(folder, "first_steps.py")}", line 34, in train
    loss.backward()
RuntimeError: one of the variables needed for gradient computation has been modified by an inplace operation: ...`;
    await window.page.evaluate((text) => navigator.clipboard.writeText(text), traceback);
    await window.command("GradSight: Explain an Autograd Error");
    const preview = await previewWith(window.page, "Likely lines");
    assert.match(await preview.locator("body").innerText(), /first_steps\.py:15 gate \*= self\.scale/);
    await window.picture("07-explanation");
  });

  test("a quick fix is applied and saved, and its squiggle goes", async () => {
    await window.command("View: Close All Editors in Group");
    await window.command("View: Close All Editors");
    await window.close();
    window = await editor.open(folder, "first_steps.py");
    await window.squiggles("error");
    await window.goto(15, 12);
    const titles = await window.quickFixes();
    await window.picture("08-quick-fix");
    assert.ok(
      titles.some((title) => /out of place|gate \* /.test(title)),
      titles.join(" | "),
    );
    await window.page.keyboard.press("Enter");
    await window.squiggles("error", false);
    await window.save();
    await until(
      () => readFileSync(join(folder, "first_steps.py"), "utf8").includes("gate = gate * self.scale"),
      "the repaired file",
    );
    await window.picture("09-fixed");
  });

  test("a probe shows its progress, and ends when it is cancelled", async () => {
    writeFileSync(join(folder, "endless.py"), ENDLESS);
    editor.configure({ "gradsight.probe.steps": 0, "gradsight.probe.timeout": 0 });
    await window.close();
    window = await editor.open(folder, "endless.py");
    await until(() => editor.log().includes("starting"), "a started server");
    await window.page.locator(".view-line", { hasText: "backward" }).first().click();
    await until(async () => {
      await window.command("GradSight: Probe File");
      return true;
    }, "the command");
    await window.notification(/Probing the file.*\d+ backward/s);
    await window.picture("10-progress");
    const probes = () => editor.processes("agent/boot.py");
    await window.page
      .locator(".notification-list-item", { hasText: "Probing" })
      .locator("text=Cancel")
      .click();
    await until(
      async () =>
        (await window.page.locator(".notification-list-item", { hasText: "Probing" }).count()) === 0,
      "no progress",
    );
    await until(() => probes().length <= 1, "no process but the warm interpreter");
  });

  test("a changed setting takes effect at once", async () => {
    await window.close();
    window = await editor.open(folder, "first_steps.py");
    await window.squiggles("warning");
    editor.configure({ "gradsight.ignore": ["GS302"] });
    await window.squiggles("warning", false);
    editor.configure({ "gradsight.ignore": [] });
    await window.squiggles("warning");
  });

  test("a server that is killed comes back", async () => {
    const [pid] = editor.servers();
    process.kill(pid, "SIGKILL");
    await until(() => editor.servers().length === 1 && editor.servers()[0] !== pid, "another server");
    await window.goto(22, 5);
    await window.page.keyboard.press("End");
    await window.page.keyboard.type("  # still here");
    await window.squiggles("warning");
    assert.equal(await window.page.locator(".notification-list-item").count(), 0);
  });

  test("a cell of a notebook is underlined and repaired", async () => {
    await window.close();
    window = await editor.open(folder);
    await window.page.locator(".explorer-folders-view").waitFor();
    await window.page.waitForTimeout(4000);
    await window.page
      .locator(".explorer-folders-view .monaco-list-row", { hasText: "notebook.ipynb" })
      .dblclick();
    await window.page.locator(".notebookOverlay").first().waitFor();
    await window.squiggles("error");
    await window.picture("11-notebook");
    await window.page.locator(".cell .view-line", { hasText: "y *= 2" }).click();
    await window.page.keyboard.press("Enter");
    await window.page.keyboard.press("Home");
    await window.quickFixes();
    await window.page.keyboard.press("Enter");
    await window.squiggles("error", false);
    await window.save();
    await until(
      () => readFileSync(join(folder, "notebook.ipynb"), "utf8").includes("y = y * 2"),
      "the repaired notebook",
    );
  });
});

describe("a workspace that is not trusted", () => {
  let editor;
  let window;

  before(async () => {
    editor = await Editor.start({ trusted: false });
    window = await editor.open(sampleFolder(), "first_steps.py");
  });
  after(() => editor?.stop());

  test("files are checked, and nothing is probed", async () => {
    await window.squiggles("error");
    await window.goto(15, 12);
    await window.command("GradSight: Probe File");
    await window.notification(/have not trusted yet/);
    await window.picture("12-untrusted");
    assert.deepEqual(editor.processes("agent/boot.py"), []);
  });
});

/** The frame of a preview whose text has these words. */
async function previewWith(page, words) {
  let found;
  await until(async () => {
    for (const frame of page.frames()) {
      const text = await frame
        .locator("body")
        .innerText({ timeout: 1000 })
        .catch(() => "");
      if (frame !== page.mainFrame() && text.includes(words)) found = frame;
    }
    return found !== undefined;
  }, `a preview with ${words}`);
  return found;
}
