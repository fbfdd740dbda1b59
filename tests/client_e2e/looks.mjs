// Every feature in dark, light and high contrast, for people to look at: `make pictures` runs it, no test does.
//
//   node tests/client_e2e/looks.mjs [FILE.py]     the pictures lie in artifacts/vscode/looks

import { copyFileSync, mkdirSync, rmSync } from "node:fs";
import { basename, join } from "node:path";
import { ARTIFACTS, Editor, interpreterWithTorch, sampleFolder, until } from "./workbench.mjs";

const FOLDER = join(ARTIFACTS, "looks");
const THEMES = {
  dark: ["Default Dark Modern", "vs-dark"],
  light: ["Default Light Modern", "vs"],
  contrast: ["Default High Contrast", "hc-black"],
};

const editor = await Editor.start({ settings: { "gradsight.interpreter": interpreterWithTorch() } });
const folder = sampleFolder();
const another = process.argv[2];
if (another !== undefined) copyFileSync(another, join(folder, basename(another)));
rmSync(FOLDER, { recursive: true, force: true });
mkdirSync(FOLDER, { recursive: true });
const window = await editor.open(folder, "first_steps.py", { size: { width: 1400, height: 900 } });
const { page } = window;

/** One feature in the three themes.  A theme changes while what is shown stays open. */
async function look(name, prepare) {
  try {
    await prepare();
    for (const [theme, [title, style]] of Object.entries(THEMES)) {
      editor.configure({ "workbench.colorTheme": title });
      await page.locator(`.monaco-workbench.${style}`).waitFor();
      await page.waitForTimeout(600);
      await page.screenshot({ path: join(FOLDER, `${name}-${theme}.png`), animations: "disabled" });
    }
    console.log(name);
  } catch (error) {
    await page.screenshot({ path: join(FOLDER, `failed-${name}.png`) });
    console.log(`${name}: ${error.message}`);
    process.exitCode = 1;
  }
  await page.keyboard.press("Escape");
  await page.keyboard.press("Escape");
}

/** Wait until a page beside the text has these words. */
function preview(words) {
  const has = async (frame) => (await frame.locator("body").innerText({ timeout: 1000 })).includes(words);
  return until(async () => {
    for (const frame of page.frames()) if (await has(frame).catch(() => false)) return true;
    return false;
  }, `a page with ${words}`);
}

const press = (name) => page.locator(".notification-list-item").getByText(name, { exact: true }).first();

await window.squiggles("error");
await look("problems", async () => {
  await window.problem(/GS101/);
  await window.goto(1, 1);
});
await look("trail-tinted", async () => {
  await window.command("View: Toggle Panel Visibility");
  await window.goto(15, 12);
  await page.waitForTimeout(1000);
});
await look("hover-finding", async () => {
  await window.goto(15, 12);
  await window.hover(/GS101/);
});
await look("hover-tensor", async () => {
  await window.goto(16, 17);
  await window.hover(/gate/);
});
await look("hover-operator", async () => {
  await window.goto(14, 23);
  await window.hover(/sigmoid/);
});
await look("menu", async () => {
  await window.goto(15, 12);
  await window.quickFixes();
});
await look("peek", async () => {
  await window.goto(14, 1);
  await page.keyboard.press("F8");
  await page.locator(".marker-widget").waitFor();
});
await look("palette", async () => {
  await page.keyboard.press("F1");
  await page.locator(".quick-input-widget input[type=text]").fill(">GradSight");
  await page.waitForTimeout(800);
});
await look("status", async () => {
  await until(async () => {
    const detail = page.locator(".hover-language-status", { hasText: "GradSight" });
    if (!(await detail.isVisible())) await page.locator("#status\\.languageStatus").click();
    return /torch 2/.test(await detail.innerText());
  }, "the status");
});
await look("proved", async () => {
  await window.goto(15, 12);
  await window.command("GradSight: Prove This Finding");
  await window.notification(/GS101 confirmed/);
});
await look("proof-page", async () => {
  await window.command("Notifications: Show Notifications");
  await press("Show Details").click();
  await preview("Last run");
  await window.clearNotifications();
});
await look("ran-with-hints", async () => {
  await window.command("View: Close Editors in Other Groups");
  await window.command("View: Close All Editors");
  await window.show("first_steps.py");
  await window.command("GradSight: Run File");
  await window.notification(/2 confirmed/);
  if (await press("Show").isVisible()) await press("Show").click();
  editor.configure({ "gradsight.inlayHints": true });
  await page.waitForTimeout(2500);
  await window.goto(15, 1);
});
await look("hover-after-run", async () => {
  await window.clearNotifications();
  await window.goto(14, 10);
  await window.hover(/gate/);
});
await look("log-after-run", async () => {
  await window.command("GradSight: Show Logs");
  await page.locator(".part.panel .view-line", { hasText: "confirmed" }).first().waitFor();
  await page.waitForTimeout(1000);
});
await look("graph", async () => {
  await window.command("View: Toggle Panel Visibility");
  await window.command("View: Focus First Editor Group");
  editor.configure({ "gradsight.inlayHints": false });
  await window.goto(15, 12);
  await window.command("GradSight: Show Autograd Graph");
  await page.frameLocator("iframe.webview").frameLocator("iframe").locator(".node.saved").waitFor();
});
await look("rule-page", async () => {
  await window.command("View: Close Editors in Other Groups");
  await window.command("View: Focus First Editor Group");
  await window.goto(15, 12);
  await window.command("GradSight: Explain Rule");
  await preview("inplace-on-saved");
});
await look("explanation", async () => {
  await window.command("View: Close All Editors");
  await window.show("first_steps.py");
  const last =
    "RuntimeError: one of the variables needed for gradient computation has been modified by an inplace operation";
  const traceback = `Traceback (most recent call last):\n  File "${join(folder, "first_steps.py")}", line 34, in train\n    loss.backward()\n${last}`;
  await page.evaluate((text) => navigator.clipboard.writeText(text), traceback);
  await window.command("GradSight: Explain an Autograd Error");
  await preview("Likely lines");
});
await look("interpreter", async () => {
  await window.command("View: Close All Editors");
  await window.show("first_steps.py");
  await window.command("GradSight: Select Interpreter for Runs");
  await page.waitForTimeout(800);
});
await look("settings", async () => {
  await page.keyboard.press("Escape");
  await window.command("Preferences: Open Settings (UI)");
  await page.locator(".settings-editor .suggest-input-container .monaco-editor").first().click();
  await page.keyboard.type("@ext:gradsight.gradsight");
  await page.locator(".settings-editor", { hasText: "Check Python files" }).waitFor();
  await page.waitForTimeout(1000);
});
await look("walkthrough", async () => {
  await window.command("View: Close All Editors");
  await window.command("Welcome: Open Walkthrough...", "First steps with GradSight");
  await page.locator(".getting-started-step").first().waitFor();
  await page.waitForTimeout(1500);
});
await look("notebook", async () => {
  await window.command("View: Close All Editors");
  await window.show("notebook.ipynb");
  await page.locator(".notebookOverlay").first().waitFor();
  await window.squiggles("error");
  await page
    .locator(".cell .view-line", { hasText: "y *= 2" })
    .first()
    .click({ position: { x: 4, y: 8 } });
  await window.hover(/saved for backward/);
});
if (another !== undefined) {
  await look("another", async () => {
    await window.command("View: Close All Editors");
    await window.show(basename(another));
    await window.squiggles("error");
    await window.problem(/GS\d/);
  });
  await look("another-ran", async () => {
    await window.command("View: Toggle Panel Visibility");
    await window.command("GradSight: Run File");
    await window.notification(/torch 2\./);
    editor.configure({ "gradsight.inlayHints": true });
    await page.waitForTimeout(2500);
  });
  await look("another-details", async () => {
    await window.command("Notifications: Show Notifications");
    await press("Show Details").click();
    await preview(basename(another));
    await window.clearNotifications();
  });
}
await editor.stop();
