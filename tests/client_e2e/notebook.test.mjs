// A notebook in a real VS Code: its cells are underlined, probed and repaired.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { interpreterWithTorch, looking, until } from "./workbench.mjs";

describe("a notebook", () => {
  const seen = looking({ settings: { "gradsight.interpreter": interpreterWithTorch() } });
  const cell = (words) => seen.window.page.locator(".cell .view-line", { hasText: words });

  /** Put the cursor into the cell with these words. */
  async function enter(words) {
    const focused = seen.window.page.locator(".cell .monaco-editor.focused", { hasText: words });
    await until(async () => {
      await cell(words).click({ position: { x: 4, y: 8 } });
      await focused.waitFor({ timeout: 5_000 });
      return true;
    }, "the cursor in the cell");
  }

  test("a cell that breaks the gradient of a later one is underlined", async () => {
    const { window } = seen;
    // A Python file is open first: the editor knows by then what a notebook is.
    await window.squiggles("error");
    await window.command("View: Close All Editors");
    await window.show("notebook.ipynb");
    await window.page.locator(".notebookOverlay").first().waitFor();
    await window.squiggles("error");
    await window.picture("notebook");
  });

  test("a cell is probed with those before it, from its own button", async () => {
    const { window } = seen;
    await enter("loss.backward()");
    const button = window.page
      .locator(".cell-title-toolbar [aria-label^='Run Cell and Check Gradients']:visible")
      .last();
    await button.click();
    await window.notification(/GS101 confirmed \(torch 2\./);
    await window.picture("notebook-probed");
    await window.clearNotifications();
  });

  test("a cell is repaired, and the notebook saved", async () => {
    const { window, folder } = seen;
    await enter("y *= 2");
    await window.quickFixes();
    await window.page.keyboard.press("Enter");
    await window.squiggles("error", false);
    await window.save();
    const path = join(folder, "notebook.ipynb");
    await until(() => readFileSync(path, "utf8").includes("y = y * 2"), "the repaired notebook");
    assert.equal(await window.page.locator(".notification-list-item").count(), 0);
    await window.picture("notebook-fixed");
  });

  test("a repaired cell is probed from the palette, and nothing is wrong", async () => {
    const { window } = seen;
    await enter("loss.backward()");
    await window.command("GradSight: Run Cell and Check Gradients");
    await window.notification(/no fault seen \(torch 2\./);
  });
});
