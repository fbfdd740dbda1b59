// The operators of the user's own torch, measured from a real VS Code to the end.  It takes minutes and needs nobody.

import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { interpreterWithTorch, looking, until } from "./workbench.mjs";

const PATIENCE = 15 * 60_000;

describe("the facts about operators", () => {
  const seen = looking({ settings: { "gradsight.interpreter": interpreterWithTorch() } });

  test("are measured on the user's torch, and files are checked meanwhile and afterwards", async () => {
    const { window, editor } = seen;
    await window.squiggles("error");
    await window.command("GradSight: Measure the Operators of My torch");
    await window.notification(/Measuring the operators of your torch.*\d+ of \d+ operators/s);
    await window.picture("measuring");
    await window.goto(15, 12);
    await window.page.keyboard.press("Control+Shift+K");
    await window.squiggles("error", false);
    await window.page.keyboard.press("Control+Z");
    await window.squiggles("error");
    const rows = window.page.locator(".notification-list-item");
    const isMeasured = async () =>
      /measured \d{4} operators of torch 2\./.test((await rows.allInnerTexts()).join());
    await until(isMeasured, "what was measured", PATIENCE);
    await window.picture("measured");
    assert.deepEqual(readdirSync(join(editor.home, "cache")).length > 0, true);
    await window.squiggles("error");
  });
});
