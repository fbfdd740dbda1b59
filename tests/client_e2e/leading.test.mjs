// What leads on from a finding in a real VS Code: its menu, the lines of its trail, the page of its rule, the details of a run.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { interpreterWithTorch, looking, until } from "./workbench.mjs";

const WRITTEN = `import torch

x = torch.ones(3, requires_grad=True)
y = x * 2
y += 1
z = y
z.sum().backward()
`;

describe("a finding", () => {
  const seen = looking({
    settings: {
      "gradsight.interpreter": interpreterWithTorch(),
      "workbench.colorTheme": "Default High Contrast",
    },
  });

  test("has a menu that fixes, proves, explains, ignores, and ends with all fixes", async () => {
    const { window } = seen;
    await window.squiggles("error");
    await window.goto(15, 12);
    const titles = await window.quickFixes();
    await window.picture("menu-high-contrast", { withHover: true });
    const wanted = [
      /^GradSight: replace with `gate = gate \* self\.scale`$/,
      /prove GS101 on my torch/,
      /explain GS101/,
      /ignore GS101 on this line/,
      /ignore GS101 in this file/,
      /ignore GS101 in this workspace/,
      /apply all safe fixes in this file/,
    ];
    const places = wanted.map((pattern) => titles.findIndex((title) => pattern.test(title)));
    assert.deepEqual(
      places,
      [...places].sort((a, b) => a - b),
      titles.join(" | "),
    );
    assert.ok(!places.includes(-1), titles.join(" | "));
    await window.page.keyboard.press("Escape");
  });

  test("leads to the line that saved and to the backward that needs it", async () => {
    const { window } = seen;
    await window.command("GradSight: Go to the Backward");
    await window.cursorIn(34);
    await window.goto(15, 12);
    await window.command("GradSight: Go to the Save");
    await window.cursorIn(14);
  });

  test("leads to the page of its rule, which needs no network", async () => {
    const { window } = seen;
    await window.goto(15, 12);
    await window.command("GradSight: Explain Rule");
    await page("GS101 inplace-on-saved");
    await window.picture("rule-high-contrast");
    await window.command("View: Close Editors in Other Groups");
  });

  test("leaves a page about its run, with the command and each verdict", async () => {
    const { window, editor } = seen;
    await window.show("first_steps.py");
    await window.command("GradSight: Run File");
    await window.notification(/2 confirmed \(torch 2\./);
    await window.page.locator(".notification-list-item").getByText("Show Details").first().click();
    const text = await page("Last run");
    assert.match(text, /command: .*first_steps\.py/);
    assert.match(text, /line 15\s+GS101 inplace-on-saved\s+confirmed\s+torch did what was predicted/);
    assert.match(editor.log(), /line 15: GS101 confirmed \(torch did what was predicted\)/);
    await window.clearNotifications();
    await window.picture("details-high-contrast");
    await window.command("View: Close All Editors");
  });

  /** The text of the preview that shows these words. */
  async function page(words) {
    let found = "";
    await until(async () => {
      for (const frame of seen.window.page.frames()) {
        const text = await frame
          .locator("body")
          .innerText({ timeout: 1000 })
          .catch(() => "");
        if (frame !== seen.window.page.mainFrame() && text.includes(words)) found = text;
      }
      return found !== "";
    }, `a preview with ${words}`);
    return found;
  }
});

describe("the hints of a run", () => {
  const seen = looking({
    file: "written.py",
    settings: { "gradsight.interpreter": interpreterWithTorch() },
    prepare: (folder) => writeFileSync(join(folder, "written.py"), WRITTEN),
  });
  const hint = (words) => seen.window.page.locator(".view-line span", { hasText: words });

  test("are offered after the first run, and stand in the editor", async () => {
    const { window } = seen;
    await window.page.locator(".view-line", { hasText: "backward" }).waitFor();
    await window.command("GradSight: Run File");
    await window.notification(/no fault seen/);
    await window.notification(/show the shapes and gradients/);
    await window.page.locator(".notification-list-item").getByText("Show", { exact: true }).click();
    await hint("[3] |grad|=1.73").first().waitFor();
    await window.clearNotifications();
    await window.picture("hints");
  });

  test("lead to where a tensor was made and written", async () => {
    const { window } = seen;
    await until(async () => {
      // A click that came while something lay over the hint has led elsewhere.
      await window.clearNotifications();
      await window.goto(6, 1);
      await hint(/^\s*v1$/)
        .last()
        .click({ modifiers: ["Control"], timeout: 5_000 });
      await window.cursorIn(5, 5_000);
      return true;
    }, "the line of the last write");
  });
});
