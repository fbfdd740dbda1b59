// The extension in a real VS Code: what a user sees, from the first squiggle to the graph.

import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, afterEach, before, describe, test } from "node:test";
import { Editor, interpreterWithTorch, pathWithOldPython, sampleFolder, until } from "./workbench.mjs";

const ENDLESS = `import torch

weight = torch.ones(3, requires_grad=True)
while True:
    weight.pow(2).sum().backward()
`;
const TWO_FAULTS = `import torch

x = torch.ones(3, requires_grad=True)
y = x.exp()
y *= 2
z = y.tanh()
z += 1
z.sum().backward()
`;
const FIXED = TWO_FAULTS.replace("y *= 2", "y = y * 2").replace("z += 1", "z = z + 1");

describe("a trusted workspace", () => {
  let editor;
  let folder;
  let window;

  before(async () => {
    editor = await Editor.start({
      // A probe ends when its program does: one of the programs here never ends.
      settings: {
        "gradsight.interpreter": interpreterWithTorch(),
        "gradsight.probe.steps": 0,
        "gradsight.probe.timeout": 0,
      },
    });
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
    const detail = page.locator(".hover-language-status", { hasText: "GradSight" });
    await until(async () => {
      if (!(await detail.isVisible())) await page.locator("#status\\.languageStatus").click();
      return /Python 3\.\d+\.\d+ · torch 2\./.test(await detail.innerText());
    }, "torch in the status");
    await window.picture("02-status");
    await page.keyboard.press("Escape");
  });

  test("hovering tells why", async () => {
    await window.goto(15, 12);
    assert.match(await window.hover(), /GS101/);
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

  test("a lens above a function probes it", async () => {
    await window.command("View: Toggle Panel Visibility");
    const lenses = window.page.locator(".codelens-decoration a", { hasText: "Probe" });
    await lenses.nth(2).click();
    await window.notification(/GS302: .*torch 2\./);
    const probing = window.page.locator(".notification-list-item", { hasText: "Probing" });
    await until(async () => (await probing.count()) === 0, "no progress");
    await window.picture("05-lens");
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
    await window.picture("06-graph");
    await saved.click();
    const line = window.page.locator("#status\\.editor\\.selection");
    await until(async () => /Ln 14/.test(await line.innerText()), "the cursor in line 14");
    await frame.locator('[tabindex="0"].node').focus();
    await window.page.keyboard.press("ArrowDown");
    await window.page.keyboard.press("Enter");
    await until(async () => /Ln 16/.test(await line.innerText()), "the cursor in the line below the write");
    await window.picture("07-graph-keyboard");
  });

  test("the graph follows the colours of the editor", async () => {
    editor.configure({ "workbench.colorTheme": "Default Light Modern" });
    await window.page.locator(".monaco-workbench.vs").waitFor();
    const frame = window.page.frameLocator("iframe.webview").frameLocator("iframe");
    await frame.locator("body.vscode-light").waitFor();
    await window.picture("07-graph-light");
    editor.configure({ "workbench.colorTheme": "Default Dark Modern" });
    await window.page.locator(".monaco-workbench.vs-dark").waitFor();
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

  test("a copied traceback is explained, and its lines can be followed", async () => {
    const traceback = `Traceback (most recent call last):
  File "${join(folder, "first_steps.py")}", line 34, in train
    loss.backward()
RuntimeError: one of the variables needed for gradient computation has been modified by an inplace operation: ...`;
    await window.page.evaluate((text) => navigator.clipboard.writeText(text), traceback);
    await window.command("GradSight: Explain an Autograd Error");
    const preview = await previewWith(window.page, "Likely lines");
    assert.match(await preview.locator("body").innerText(), /first_steps\.py:15\s+gate \*= self\.scale/);
    await window.picture("08-explanation");
    await preview.locator("a", { hasText: "first_steps.py:15" }).first().click();
    const line = window.page.locator("#status\\.editor\\.selection");
    await until(async () => /Ln 15/.test(await line.innerText()), "the cursor in line 15");
  });

  test("debug information goes to the clipboard", async () => {
    await window.command("GradSight: Copy Debug Information");
    await window.notification(/debug information is on the clipboard/);
    const text = await window.page.evaluate(() => navigator.clipboard.readText());
    const told = JSON.parse(text.replace(/```(json)?/g, ""));
    assert.match(told.server.torch, /^2\./);
    assert.equal(told.trusted, true);
    await window.clearNotifications();
  });

  test("a quick fix is applied and saved, and its squiggle goes", async () => {
    await window.command("View: Close All Editors");
    await window.show("first_steps.py");
    await window.squiggles("error");
    await window.goto(15, 12);
    const titles = await window.quickFixes();
    await window.picture("09-quick-fix");
    assert.ok(titles.includes("Write gate out of place"), titles.join(" | "));
    await window.page.keyboard.press("Enter");
    await window.squiggles("error", false);
    await window.save();
    await until(
      () => readFileSync(join(folder, "first_steps.py"), "utf8").includes("gate = gate * self.scale"),
      "the repaired file",
    );
    await window.picture("10-fixed");
  });

  test("all of a file is repaired by one command", async () => {
    writeFileSync(join(folder, "two_faults.py"), TWO_FAULTS);
    await window.show("two_faults.py");
    await window.squiggles("error");
    await until(async () => {
      await window.command("GradSight: Fix All");
      await window.save();
      return readFileSync(join(folder, "two_faults.py"), "utf8") === FIXED;
    }, "the repaired file");
    await window.squiggles("error", false);
  });

  test("a probe shows its progress, and ends when it is cancelled", async () => {
    const probing = window.page.locator(".notification-list-item", { hasText: "Probing" });
    const isOver = async () => (await probing.count()) === 0 && editor.processes("agent/boot.py").length <= 1;
    writeFileSync(join(folder, "endless.py"), ENDLESS);
    await window.show("endless.py");
    await window.command("GradSight: Probe File");
    await window.notification(/Probing the file.*\d+ backward/s);
    await window.picture("11-progress");
    await probing.locator("text=Cancel").click();
    await until(isOver, "no progress, and no process but the warm interpreter");
    await window.command("GradSight: Probe File");
    await window.notification(/Probing the file.*\d+ backward/s);
    await window.command("GradSight: Cancel Probe");
    await until(isOver, "no progress, and no process but the warm interpreter");
  });

  test("a changed setting takes effect at once", async () => {
    await window.show("first_steps.py");
    await window.squiggles("warning");
    editor.configure({ "gradsight.ignore": ["GS302"] });
    await window.squiggles("warning", false);
    editor.configure({ "gradsight.ignore": [] });
    await window.squiggles("warning");
  });

  test("a server that is killed comes back, without a word", async () => {
    const [pid] = editor.servers();
    process.kill(pid, "SIGKILL");
    await until(() => editor.servers().length === 1 && editor.servers()[0] !== pid, "another server");
    await window.goto(22, 5);
    await window.page.keyboard.press("End");
    await window.page.keyboard.type("  # still here");
    await window.squiggles("warning");
    assert.equal(await window.page.locator(".notification-list-item").count(), 0);
  });

  test("the server is restarted by its command", async () => {
    const [pid] = editor.servers();
    await window.command("GradSight: Restart Server");
    await until(() => editor.servers().length === 1 && editor.servers()[0] !== pid, "another server");
    await window.squiggles("warning");
  });

  test("the walkthrough leads to a sample with faults in it", async () => {
    await window.command("Welcome: Open Walkthrough...", "First steps with GradSight");
    const steps = window.page.locator(".getting-started-step");
    await until(async () => (await steps.count()) === 4, "four steps");
    await window.picture("12-walkthrough");
    await window.page.locator(".getting-started-step.expanded").getByText("Open the Sample").click();
    await window.page.locator(".tab.active", { hasText: "Untitled" }).waitFor();
    await window.squiggles("error");
    await window.picture("12-sample");
    await window.command("View: Revert and Close Editor");
  });

  test("a cell of a notebook is underlined and repaired", async () => {
    await window.show("notebook.ipynb");
    await window.page.locator(".notebookOverlay").first().waitFor();
    await window.squiggles("error");
    await window.picture("13-notebook");
    const line = window.page.locator(".cell .view-line", { hasText: "y *= 2" });
    const focused = window.page.locator(".cell .monaco-editor.focused", { hasText: "y *= 2" });
    await until(async () => {
      await line.click({ position: { x: 4, y: 8 } });
      await focused.waitFor({ timeout: 5_000 });
      return true;
    }, "the cursor in the cell");
    await window.quickFixes();
    await window.page.keyboard.press("Enter");
    await window.squiggles("error", false);
    await window.save();
    await until(
      () => readFileSync(join(folder, "notebook.ipynb"), "utf8").includes("y = y * 2"),
      "the repaired notebook",
    );
    assert.equal(await window.page.locator(".notification-list-item").count(), 0);
    await window.picture("14-notebook-fixed");
  });
});

describe("a workspace that is not trusted", () => {
  let editor;
  let folder;
  let window;

  before(async () => {
    editor = await Editor.start({ trusted: false, settings: { "gradsight.probe.timeout": 0 } });
    folder = sampleFolder();
    mkdirSync(join(folder, ".vscode"));
    const named = JSON.stringify({ "gradsight.interpreter": "${workspaceFolder}/python" });
    writeFileSync(join(folder, ".vscode", "settings.json"), named);
    const traitor = `#!/bin/sh\ntouch '${join(folder, "was-run")}'\nexec '${interpreterWithTorch()}' "$@"\n`;
    writeFileSync(join(folder, "python"), traitor, { mode: 0o755 });
    window = await editor.open(folder, "first_steps.py");
  });
  after(() => editor?.stop());
  afterEach(async (context) => {
    if (!context.passed && window) await window.picture(`failed ${context.name.replace(/\W+/g, "-")}`);
  });

  test("files are checked, and nothing of it is run", async () => {
    await window.squiggles("error");
    await window.goto(15, 12);
    await window.command("GradSight: Probe File");
    await window.notification(/have not trusted yet/);
    await window.picture("15-untrusted");
    assert.deepEqual(editor.processes("agent/boot.py"), []);
    assert.ok(!existsSync(join(folder, "was-run")));
  });

  test("trusting it brings the probe, with the interpreter that it names", async () => {
    await window.clearNotifications();
    await window.command("Workspaces: Manage Workspace Trust");
    await window.page
      .locator(".workspace-trust-editor")
      .getByRole("button", { name: "Trust", exact: true })
      .click();
    await until(() => existsSync(join(folder, "was-run")), "the interpreter of the workspace");
    await window.show("first_steps.py");
    await window.goto(15, 12);
    await window.command("GradSight: Prove This Finding");
    await window.notification(/GS101: confirmed/);
    await window.picture("16-trusted");
  });
});

describe("a machine whose only Python is too old", () => {
  let editor;
  let window;

  before(async () => {
    editor = await Editor.start({ path: pathWithOldPython() });
    window = await editor.open(sampleFolder(), "first_steps.py");
  });
  after(() => editor?.stop());
  afterEach(async (context) => {
    if (!context.passed && window) await window.picture(`failed ${context.name.replace(/\W+/g, "-")}`);
  });

  test("is told so once, and everything works when another one is named", async () => {
    await window.notification(/needs Python 3\.10 or newer to run, and python3 is Python 3\.8/);
    await window.picture("17-old-python");
    assert.equal(await window.page.locator(".notification-list-item").count(), 1);
    assert.deepEqual(editor.servers(), []);
    editor.configure({ "gradsight.interpreter": interpreterWithTorch() });
    await window.squiggles("error");
    assert.equal(editor.servers().length, 1);
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
