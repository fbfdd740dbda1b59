// Probes in a real VS Code: findings proven and withdrawn, fixes tried, the graph drawn, and everything cancelled.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { interpreterWithTorch, looking, until } from "./workbench.mjs";

/** The README is read in a column of some 700 pixels. */
const NARROW = { width: 940, height: 560 };
const ENDLESS = `import torch

weight = torch.ones(3, requires_grad=True)
while True:
    weight.pow(2).sum().backward()
`;

describe("a probe", () => {
  const seen = looking({
    // A probe ends when its program does: one of the programs here never ends.
    settings: {
      "gradsight.interpreter": interpreterWithTorch(),
      "gradsight.probe.steps": 0,
      "gradsight.probe.timeout": 0,
    },
  });
  const isQuiet = async () => (await seen.window.page.locator(".notification-list-item").count()) === 0;

  test("proving a finding shows that torch agrees", async () => {
    const { window } = seen;
    await window.squiggles("error");
    await window.goto(15, 12);
    await window.command("GradSight: Prove This Finding");
    await window.notification(/GS101 confirmed/);
    await window.problem(/`gate \*= self\.scale` overwrites.*confirmed on torch 2\./);
    await window.clearNotifications();
    await window.command("View: Toggle Panel Visibility");
    await window.command("View: Toggle Primary Side Bar Visibility");
    const usual = await window.resize(NARROW);
    await window.goto(14, 1);
    await window.page.keyboard.press("F8");
    await window.page.locator(".marker-widget", { hasText: "confirmed on torch" }).waitFor();
    await window.picture("confirmed");
    await window.page.keyboard.press("Escape");
    await window.resize(usual);
    await window.command("View: Toggle Primary Side Bar Visibility");
  });

  test("fixes that were verified say so where they are offered", async () => {
    const { window } = seen;
    await window.command("GradSight: Test the Fixes on My torch");
    await window.notification(
      /replace with `gate = gate \* self\.scale`: works on torch 2\..*gradients match/,
    );
    await window.clearNotifications();
    await window.goto(15, 12);
    const titles = await window.quickFixes();
    await window.picture("quick-fix");
    assert.ok(
      titles.some((title) =>
        /^GradSight: replace with `gate = gate \* self\.scale` \(verified on torch 2\.\d+\)$/.test(title),
      ),
      titles.join(" | "),
    );
    await window.page.keyboard.press("Escape");
  });

  test("a fix is tried from the menu that offers it", async () => {
    const { window } = seen;
    await window.goto(22, 15);
    await window.quickFixes();
    await window.page.locator(".action-widget .monaco-list-row", { hasText: "test this fix" }).click();
    await window.notification(
      /replace with `first = weight\.grad\.detach\(\)\.clone\(\)`: works on torch 2\./,
    );
    await window.clearNotifications();
  });

  test("a lens above a function probes it, and so does the palette", async () => {
    const { window } = seen;
    await window.page.locator(".codelens-decoration a", { hasText: "Run File" }).waitFor();
    await (await window.lensAbove("def compare_gradients")).click();
    await window.notification(/GS302 confirmed.*torch 2\./);
    const probing = window.page.locator(".notification-list-item", { hasText: "Running" });
    await until(async () => (await probing.count()) === 0, "no progress");
    await window.picture("lens");
    await window.clearNotifications();
    await until(isQuiet, "no notification");
    await window.goto(14, 5);
    await window.command("GradSight: Run Function");
    await window.notification(/GS101 confirmed.*torch 2\./);
    await window.clearNotifications();
  });

  test("a file is probed to its end, and its faults are confirmed", async () => {
    const { window } = seen;
    await until(isQuiet, "no notification");
    await window.goto(1, 1);
    await window.command("GradSight: Run File");
    await window.notification(/2 confirmed \(torch 2\./);
    await window.problem(/this is `weight\.grad` itself.*confirmed on torch 2\./);
    await window.picture("probed-file");
  });

  test("the graph of a probed fault is drawn, and a node leads to its line", async () => {
    const { window } = seen;
    await window.page.locator(".notification-list-item").getByText("Show Graph").click();
    const frame = window.page.frameLocator("iframe.webview").frameLocator("iframe");
    const saved = frame.locator(".node.saved");
    await saved.waitFor();
    assert.match(await saved.getAttribute("aria-label"), /sigmoid, line 14/);
    assert.equal(await frame.locator(".node.written").count(), 1);
    assert.equal(await frame.locator(".node.needed").count(), 1);
    assert.match((await frame.locator(".node.leaf").allTextContents()).join(), /scale \[4\]/);
    await window.clearNotifications();
    await fits(frame);
    await window.command("View: Toggle Panel Visibility");
    await window.command("View: Toggle Primary Side Bar Visibility");
    await fits(frame);
    await window.picture("graph", { of: "iframe.webview" });
    await window.command("View: Toggle Primary Side Bar Visibility");
    await saved.click();
    await window.cursorIn(14);
    await frame.locator('[tabindex="0"].node').focus();
    await window.page.keyboard.press("ArrowDown");
    await window.page.keyboard.press("Enter");
    await window.cursorIn(16);
    await window.picture("graph-keyboard");
  });

  test("the graph follows the colours of the editor", async () => {
    const { window, editor } = seen;
    editor.configure({ "workbench.colorTheme": "Default Light Modern" });
    await window.page.locator(".monaco-workbench.vs").waitFor();
    const frame = window.page.frameLocator("iframe.webview").frameLocator("iframe");
    await frame.locator("body.vscode-light").waitFor();
    await window.picture("graph-light");
    editor.configure({ "workbench.colorTheme": "Default Dark Modern" });
    await window.page.locator(".monaco-workbench.vs-dark").waitFor();
  });

  test("the graph of the finding at the cursor is drawn by its command", async () => {
    const { window } = seen;
    await window.command("View: Close Editors in Other Groups");
    await window.goto(15, 12);
    await window.command("GradSight: Show Autograd Graph");
    const frame = window.page.frameLocator("iframe.webview").frameLocator("iframe");
    await frame.locator(".node.saved").waitFor();
  });

  test("a minimal program goes to the clipboard", async () => {
    const { window } = seen;
    await window.command("View: Focus First Editor Group");
    await window.goto(15, 12);
    await window.command("GradSight: Copy Minimal Program");
    await window.notification(/minimal program .* on the clipboard/);
    const text = await window.clipboard();
    assert.match(text, /# GS101: `gate \*= self\.scale` overwrites/);
    assert.ok(!text.includes("compare_gradients"), text);
    await window.clearNotifications();
  });

  test("a copied traceback is explained, and its lines can be followed", async () => {
    const { window, folder } = seen;
    const traceback = `Traceback (most recent call last):
  File "${join(folder, "first_steps.py")}", line 34, in train
    loss.backward()
RuntimeError: one of the variables needed for gradient computation has been modified by an inplace operation: ...`;
    await window.page.evaluate((text) => navigator.clipboard.writeText(text), traceback);
    await window.command("GradSight: Explain an Autograd Error");
    const preview = await previewWith(window.page, "Likely lines");
    assert.match(await preview.locator("body").innerText(), /first_steps\.py:15\s+gate \*= self\.scale/);
    await window.picture("explanation");
    await preview.locator("a", { hasText: "first_steps.py:15" }).first().click();
    await window.cursorIn(15);
  });

  test("a probe shows its progress, and ends when it is cancelled", async () => {
    const { window, editor, folder } = seen;
    const probing = window.page.locator(".notification-list-item", { hasText: "Running" });
    const isOver = async () => (await probing.count()) === 0 && editor.processes("agent/boot.py").length <= 1;
    writeFileSync(join(folder, "endless.py"), ENDLESS);
    await window.command("View: Close All Editors");
    await window.show("endless.py");
    await window.command("GradSight: Run File");
    await window.notification(/Running the file.*\d+ backward/s);
    await window.picture("progress");
    await probing.locator("text=Cancel").click();
    await until(isOver, "no progress, and no process but the warm interpreter");
    await window.command("GradSight: Run File");
    await window.notification(/Running the file.*\d+ backward/s);
    await window.command("GradSight: Cancel Run");
    await until(isOver, "no progress, and no process but the warm interpreter");
  });
});

/** Wait until all of a graph is in sight. */
async function fits(frame) {
  const stage = frame.locator("#graph");
  await until(
    () => stage.evaluate((box) => box.scrollHeight <= box.clientHeight && box.scrollWidth <= box.clientWidth),
    "a graph that fits",
  );
}

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
