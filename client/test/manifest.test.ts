import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import type { ExtensionContext } from "vscode";
import manifest from "../../package.json";
import { activate, deactivate } from "../src/extension";
import { editor, Uri } from "./fake-vscode";

// The tests are run from the root of the repository.
const versionFile = readFileSync("server/gradsight/__init__.py", "utf8");

test("the client and the server carry one version", () => {
  assert.equal(/__version__ = "([^"]+)"/.exec(versionFile)?.[1], manifest.version);
});

test("every command in the palette is answered, and none is hidden from it", async () => {
  editor.reset();
  editor.settings.set("gradsight.enable", false);
  const context = { subscriptions: [], extensionPath: "", extensionUri: Uri.file("") };
  await activate(context as unknown as ExtensionContext);
  const offered = manifest.contributes.commands.map(({ command }) => command);
  assert.deepEqual([...editor.handlers.keys()].sort(), offered.sort());
  await deactivate();
});

test("menus and the walkthrough name commands that exist", () => {
  const offered = new Set(manifest.contributes.commands.map(({ command }) => command));
  const used = manifest.contributes.menus["gradsight.editor"].map(({ command }) => command);
  const text = JSON.stringify(manifest.contributes.walkthroughs);
  used.push(...[...text.matchAll(/command:(gradsight\.[\w.]+)/gi)].map(([, name]) => name ?? ""));
  assert.ok(used.length > 8);
  assert.deepEqual(
    used.filter((name) => !offered.has(name)),
    [],
  );
});

test("the files that the manifest names are there", () => {
  const [walkthrough] = manifest.contributes.walkthroughs;
  const pages = walkthrough?.steps.map(({ media }) => media.markdown) ?? [];
  assert.equal(pages.length, 4);
  const pictures = pages.flatMap((page) =>
    [...readFileSync(page, "utf8").matchAll(/!\[[^\]]+\]\(([^)]+)\)/g)].map(([, name]) =>
      join(dirname(page), name ?? ""),
    ),
  );
  assert.equal(pictures.length, 3);
  for (const path of [manifest.icon, ...pages, ...pictures]) assert.ok(existsSync(path), path);
});

test("every setting has a description, a scope and a default of its type", () => {
  for (const [name, setting] of manifest.contributes.configuration.flatMap(({ properties }) =>
    Object.entries(properties),
  )) {
    assert.match(name, /^gradsight\./);
    assert.ok(setting.markdownDescription.endsWith("."), name);
    // The editor of settings follows addresses, and knows no page of the manual.
    assert.doesNotMatch(setting.markdownDescription, /\]\((?!https:|command:|#)/, name);
    assert.ok(setting.scope, name);
    const kind = Array.isArray(setting.default) ? "array" : typeof setting.default;
    assert.equal(kind, setting.type === "integer" ? "number" : setting.type, name);
  }
});

test("what a workspace could make us run is restricted until it is trusted", () => {
  const { restrictedConfigurations } = manifest.capabilities.untrustedWorkspaces;
  for (const name of ["interpreter", "path", "probe.args", "probe.env", "probe.launcher"]) {
    assert.ok(restrictedConfigurations.includes(`gradsight.${name}`), name);
  }
});
