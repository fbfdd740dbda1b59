// A notebook in a real VS Code: its cells are underlined, probed and repaired.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { interpreterWithTorch, looking, ROOT, until } from "./workbench.mjs";

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

  /** Wait until the cursor is in a line of the cell with these words: the status bar names the cell only. */
  async function isIn(words, line) {
    const { page } = seen.window;
    await page.locator(".cell .monaco-editor.focused", { hasText: words }).waitFor();
    const linesUpToCursor = () =>
      page.evaluate(() => {
        const cell = document.querySelector(".cell .monaco-editor.focused");
        const top = (element) => Number.parseFloat(element.style.top);
        const cursor = top(cell.querySelector(".cursor"));
        return [...cell.querySelectorAll(".view-line")].filter((each) => top(each) <= cursor).length;
      });
    await until(async () => (await linesUpToCursor()) === line, `the cursor in line ${line} of the cell`);
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
    await window.notification(/show the shapes and gradients/);
    await window.picture("notebook-probed");
    await window.clearNotifications();
  });

  test("a finding leads to the line of another cell, from its hover and from the palette", async () => {
    const { window } = seen;
    await enter("y *= 2");
    const text = await window.hover(/saved for backward/);
    assert.match(text, /saved for backward by\s+exp\s+in cell 2, line 4/);
    await window.picture("notebook-hover", { withHover: true });
    await window.page.locator(".monaco-hover a, .monaco-resizable-hover a", { hasText: "the save" }).click();
    await isIn("torch.exp(x)", 4);
    await enter("y *= 2");
    await window.command("GradSight: Go to the Backward");
    await isIn("loss.backward()", 1);
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
    await window.clearNotifications();
  });

  test("the trail that a watch shows below a cell leads to the cells in it", async () => {
    const { window, folder } = seen;
    const cells = [
      "w = torch.ones(3, requires_grad=True)\ny = w.exp()",
      "k = 3\ny *= k",
      "y.sum().backward()",
    ];
    const python = join(ROOT, ".venv", "bin", "python");
    const watched = execFileSync(python, ["-m", "tests.live.shell", ...cells], { cwd: ROOT });
    writeFileSync(join(folder, "watched.ipynb"), watched);
    await window.command("View: Close All Editors");
    await window.show("watched.ipynb");
    let link;
    await until(async () => {
      for (const frame of window.page.frames()) {
        const found = frame.locator("a", { hasText: "cell 2, line 2" });
        if ((await found.count()) > 0) link = found.first();
      }
      return link !== undefined;
    }, "the block of the watch");
    await window.picture("notebook-watched");
    await link.click();
    await isIn("y *= k", 2);
  });
});
