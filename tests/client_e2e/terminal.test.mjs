// What programs print in the terminal of a real VS Code: the places in it lead to their lines.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { interpreterWithTorch, looking, ROOT, until } from "./workbench.mjs";

const WATCHED = `import torch

import gradsight

gradsight.watch()
weight = torch.ones(3, requires_grad=True)
scaled = weight.exp()
scaled *= 2
scaled.sum().backward()
`;
const PYTHON = join(ROOT, ".venv", "bin", "python");

describe("the terminal", () => {
  const seen = looking({
    prepare: (folder) => writeFileSync(join(folder, "watched.py"), WATCHED),
    // As text in the document of the page, and not as a picture.
    settings: {
      "gradsight.interpreter": interpreterWithTorch(),
      "terminal.integrated.gpuAcceleration": "off",
      "terminal.integrated.defaultProfile.linux": "sh",
      "terminal.integrated.profiles.linux": { sh: { path: "/bin/sh" } },
    },
  });
  const row = (words) => seen.window.page.locator(".xterm-rows > div", { hasText: words });

  /** Type a command, and wait for a line of what it prints. */
  async function run(command, words) {
    const { window } = seen;
    await window.command("Terminal: Focus Terminal");
    await window.page
      .locator(".terminal-wrapper.active .xterm-helper-textarea")
      .waitFor({ state: "attached" });
    await window.page.keyboard.type(`clear; ${command}\n`);
    await row(words).first().waitFor();
  }

  /** Follow a place, as a user does: with Ctrl pressed. */
  async function follow(words, line) {
    const { window } = seen;
    await until(async () => {
      const box = await row(words).first().boundingBox();
      const text = await row(words).first().innerText();
      const x = box.x + (box.width * (text.indexOf(words) + 3)) / columns(text, box);
      await window.page.mouse.move(x, box.y + box.height / 2);
      await window.page.keyboard.down("Control");
      await window.page.mouse.move(x + 2, box.y + box.height / 2);
      await window.page.waitForTimeout(500);
      await window.page.mouse.click(x + 2, box.y + box.height / 2);
      await window.page.keyboard.up("Control");
      await window.cursorIn(line, 5_000);
      return true;
    }, `the way from ${words} to line ${line}`);
  }

  /** The columns of the terminal, from the width of its rows. */
  function columns(_text, box) {
    return Math.max(1, Math.round(box.width / seen.cell));
  }

  test("the notes of a watch lead to the lines in them", async () => {
    const { window } = seen;
    await window.squiggles("error");
    await run(`${PYTHON} watched.py`, "overwritten watched.py:8");
    seen.cell = await cellWidth();
    await window.picture("terminal-notes");
    await follow("watched.py:8", 8);
    await follow("watched.py:9", 9);
  });

  test("what the command line finds leads to its line", async () => {
    const { window } = seen;
    await run(`${PYTHON} -m gradsight check first_steps.py`, "first_steps.py:22:13");
    await window.picture("terminal-check");
    await follow("first_steps.py:22:13", 22);
    assert.ok(await window.page.locator(".tab.active", { hasText: "first_steps.py" }).isVisible());
  });

  /** How wide a character is. */
  async function cellWidth() {
    return seen.window.page.evaluate(() => {
      const span = [...document.querySelectorAll(".xterm-rows span")].find(
        (each) => each.textContent.length > 10,
      );
      return span.getBoundingClientRect().width / span.textContent.length;
    });
  }
});
