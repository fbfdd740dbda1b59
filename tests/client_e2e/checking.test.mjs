// Checking in a real VS Code: what a user sees while typing, and what becomes of it.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { interpreterWithTorch, looking, until } from "./workbench.mjs";

const TWO_FAULTS = `import torch

x = torch.ones(3, requires_grad=True)
y = x.exp()
y *= 2
z = y.tanh()
z += 1
z.sum().backward()
`;
const FIXED = TWO_FAULTS.replace("y *= 2", "y = y * 2").replace("z += 1", "z = z + 1");

describe("a file", () => {
  const seen = looking({ settings: { "gradsight.interpreter": interpreterWithTorch() } });

  test("the line that breaks the gradient is underlined, and its problem lists the lines that matter", async () => {
    const { window } = seen;
    await window.squiggles("error");
    await window.squiggles("warning");
    const rows = await window.problem(/`gate \*= self\.scale` overwrites the output of `sigmoid`.*GS101/);
    const has = (pattern) =>
      assert.ok(
        rows.some((row) => pattern.test(row)),
        rows.join("\n"),
      );
    has(/Ln 14.*`sigmoid` saves its output here/);
    has(/Ln 34.*this `backward\(\)` needs the old value/);
    await window.picture("squiggles-and-problems");
  });

  test("the status entry names the interpreter and its torch", async () => {
    const { window } = seen;
    const detail = window.page.locator(".hover-language-status", { hasText: "GradSight" });
    await until(async () => {
      if (!(await detail.isVisible())) await window.page.locator("#status\\.languageStatus").click();
      return /Python 3\.\d+\.\d+ · torch 2\./.test(await detail.innerText());
    }, "torch in the status");
    await window.picture("status");
    await window.page.keyboard.press("Escape");
  });

  test("hovering tells why", async () => {
    const { window } = seen;
    await window.goto(15, 12);
    assert.match(await window.hover(), /GS101/);
    await window.picture("hover", { withHover: true });
    await window.page.keyboard.press("Escape");
  });

  test("a quick fix is applied and saved, and its squiggle goes", async () => {
    const { window, folder } = seen;
    await window.goto(15, 12);
    const titles = await window.quickFixes();
    assert.ok(
      titles.some((title) => title.startsWith("GradSight: replace with `gate = ")),
      titles.join(" | "),
    );
    await window.page.keyboard.press("Enter");
    await window.squiggles("error", false);
    await window.save();
    const path = join(folder, "first_steps.py");
    await until(() => readFileSync(path, "utf8").includes("gate = gate * self.scale"), "the repaired file");
    await window.picture("fixed");
  });

  test("all of a file is repaired by one command", async () => {
    const { window, folder } = seen;
    writeFileSync(join(folder, "two_faults.py"), TWO_FAULTS);
    await window.show("two_faults.py");
    await window.squiggles("error");
    await window.command("GradSight: Fix All");
    await window.squiggles("error", false);
    await window.save();
    await until(() => readFileSync(join(folder, "two_faults.py"), "utf8") === FIXED, "the repaired file");
  });

  test("a changed setting takes effect at once", async () => {
    const { window, editor } = seen;
    await window.show("first_steps.py");
    await window.squiggles("warning");
    editor.configure({ "gradsight.ignore": ["GS302"] });
    await window.squiggles("warning", false);
    editor.configure({ "gradsight.ignore": [] });
    await window.squiggles("warning");
  });

  test("debug information goes to the clipboard", async () => {
    const { window } = seen;
    await window.command("GradSight: Copy Debug Information");
    await window.notification(/debug information is on the clipboard/);
    const told = JSON.parse((await window.clipboard()).replace(/```(json)?/g, ""));
    assert.match(told.server.torch, /^2\./);
    assert.equal(told.trusted, true);
    assert.match(told.log.join("\n"), /starting .*launch\.py.*ready: GradSight/s);
    await window.clearNotifications();
  });

  test("a server that is killed comes back, without a word", async () => {
    const { window, editor } = seen;
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
    const { window, editor } = seen;
    const [pid] = editor.servers();
    await window.command("GradSight: Restart Server");
    await until(() => editor.servers().length === 1 && editor.servers()[0] !== pid, "another server");
    await window.squiggles("warning");
  });

  test("the log is shown, and says how the server was started", async () => {
    const { window } = seen;
    await window.command("GradSight: Show Logs");
    await window.page.locator(".part.panel .view-line", { hasText: "starting" }).first().waitFor();
    await window.picture("logs");
    await window.command("View: Toggle Panel Visibility");
  });
});

// In a window of its own: an editor with unsaved text would ask before it is closed.
describe("a file that is closed", () => {
  const seen = looking();

  test("leaves the list of problems", async () => {
    const { window } = seen;
    await window.show("first_steps.py");
    await window.problem(/GS302/);
    await window.command("View: Close All Editors");
    await window.page.locator(".markers-panel", { hasText: "No problems have been detected" }).waitFor();
  });
});

const MODEL = `import torch
from torch import nn


class Gate(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        gate = torch.sigmoid(self.linear(x))
        gate *= 2
        return gate
`;
const TRAINING = `import torch

from model import Gate

Gate()(torch.ones(2, 4)).sum().backward()
`;

describe("a project of two files", () => {
  const seen = looking({
    file: "model.py",
    prepare(folder) {
      writeFileSync(join(folder, "model.py"), MODEL);
      writeFileSync(join(folder, "train.py"), TRAINING);
    },
  });

  test("opening the file that trains makes the guess about the model a certainty, without a word typed", async () => {
    const { window } = seen;
    await window.squiggles("warning");
    await window.show("train.py");
    await window.problem(/this `backward\(\)` needs the old value/);
    await window.show("model.py");
    await window.squiggles("error");
    await window.squiggles("warning", false);
    await window.picture("project");
  });
});
