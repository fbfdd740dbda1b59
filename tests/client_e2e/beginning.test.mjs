// The first minutes in a real VS Code: the walkthrough, a folder that is not trusted, a machine without a usable Python.

import assert from "node:assert/strict";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { interpreterWithTorch, looking, pathWithOldPython, until } from "./workbench.mjs";

describe("the walkthrough", () => {
  const seen = looking({ settings: { "gradsight.interpreter": interpreterWithTorch() } });

  /** Unfold a step, and press its button. */
  async function take(step, button) {
    const { page } = seen.window;
    const unfolded = page.locator(".getting-started-step.expanded");
    await until(async () => {
      await page.locator(".getting-started-step", { hasText: step }).first().click();
      await unfolded.getByText(button, { exact: true }).click({ timeout: 5_000 });
      return true;
    }, `the step ${step}`);
  }

  /** Whether a drawing stands beside the steps. */
  async function isDrawn(description) {
    for (const frame of seen.window.page.frames()) {
      const drawing = frame.locator(`img[alt*="${description}"]`).first();
      if ((await drawing.count()) > 0 && (await drawing.isVisible()))
        return drawing.evaluate(({ naturalWidth, clientWidth }) => naturalWidth > 0 && clientWidth > 300);
    }
    return false;
  }

  async function openWalkthrough() {
    const { window } = seen;
    await window.command("View: Close All Editors");
    await window.command("Welcome: Open Walkthrough...", "First steps with GradSight");
    await until(async () => (await window.page.locator(".getting-started-step").count()) === 4, "four steps");
  }

  /** Unfold a step until its drawing is there: a page that VS Code could not load stays empty until the walkthrough is opened anew. */
  async function unfold(step, description) {
    const steps = seen.window.page.locator(".getting-started-step");
    await until(async () => {
      await steps.filter({ hasText: "Choose an interpreter" }).first().click();
      await steps.filter({ hasText: step }).first().click();
      for (let tries = 0; tries < 20; tries++) {
        if (await isDrawn(description)) return true;
        await seen.window.page.waitForTimeout(250);
      }
      await openWalkthrough();
      return false;
    }, `a drawing: ${description}`);
  }

  test("opens a sample with faults in it", async () => {
    const { window } = seen;
    await window.squiggles("error");
    await openWalkthrough();
    // VS Code shows what stands beside the steps where there is room for it.
    const usual = await window.resize({ width: 1600, height: 900 });
    for (const [step, description] of [
      ["Prove it on your torch", "confirmed on torch"],
      ["Fix it", "gate = gate * self.scale"],
      ["See a finding", "The line that overwrites is underlined"],
    ]) {
      await unfold(step, description);
    }
    await window.picture("walkthrough");
    await window.resize(usual);
    await take("See a finding", "Open the Sample");
    await window.page.locator(".tab", { hasText: "first_steps.py" }).first().waitFor();
    await window.squiggles("error");
    await window.picture("walkthrough-sample");
  });

  test("proves a fault of the sample", async () => {
    const { window } = seen;
    await take("Prove it on your torch", "Prove This Finding");
    await window.notification(/GS101 confirmed/);
    await window.picture("walkthrough-proof");
    await window.clearNotifications();
  });

  test("repairs the sample", async () => {
    const { window } = seen;
    await take("Fix it", "Fix All");
    await window.squiggles("error", false);
    await window.squiggles("warning", false);
  });

  test("leads to the settings", async () => {
    const { window } = seen;
    await take("Choose an interpreter", "Open Settings");
    await window.page
      .locator(".settings-editor", { hasText: "Check Python files for places where gradients break" })
      .waitFor();
    await window.picture("settings");
  });
});

describe("a workspace that is not trusted", () => {
  const seen = looking({
    trusted: false,
    settings: { "gradsight.probe.timeout": 0 },
    prepare(folder) {
      mkdirSync(join(folder, ".vscode"));
      const named = JSON.stringify({ "gradsight.interpreter": "${workspaceFolder}/python" });
      writeFileSync(join(folder, ".vscode", "settings.json"), named);
      const traitor = `#!/bin/sh\ntouch '${join(folder, "was-run")}'\nexec '${interpreterWithTorch()}' "$@"\n`;
      writeFileSync(join(folder, "python"), traitor, { mode: 0o755 });
    },
  });

  test("files are checked, and nothing of it is run", async () => {
    const { window, editor, folder } = seen;
    await window.squiggles("error");
    await window.goto(15, 12);
    await window.command("GradSight: Run File");
    await window.notification(/have not trusted yet/);
    await window.picture("untrusted");
    assert.deepEqual(editor.processes("agent/boot.py"), []);
    assert.ok(!existsSync(join(folder, "was-run")));
  });

  test("trusting it brings the probe, with the interpreter that it names", async () => {
    const { window, folder } = seen;
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
    await window.notification(/GS101 confirmed/);
    await window.picture("trusted");
  });
});

describe("a machine whose only Python is too old", () => {
  const seen = looking({ path: pathWithOldPython() });

  test("is told so once, and everything works when another one is named", async () => {
    const { window, editor } = seen;
    await window.notification(/needs Python 3\.10 or newer to run, and python3 is Python 3\.8/);
    await window.picture("old-python");
    assert.equal(await window.page.locator(".notification-list-item").count(), 1);
    assert.deepEqual(editor.servers(), []);
    editor.configure({ "gradsight.interpreter": interpreterWithTorch() });
    await window.squiggles("error");
    assert.equal(editor.servers().length, 1);
  });
});
