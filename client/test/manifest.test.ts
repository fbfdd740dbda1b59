import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import type { ExtensionContext } from "vscode";
import manifest from "../../package.json";
import { activate, deactivate } from "../src/extension";
import { editor } from "./fake-vscode";

// The tests are run from the root of the repository.
const versionFile = readFileSync("server/gradsight/__init__.py", "utf8");

test("the client and the server carry one version", () => {
  assert.equal(/__version__ = "([^"]+)"/.exec(versionFile)?.[1], manifest.version);
});

test("every command in the palette is answered, and none is hidden from it", async () => {
  editor.reset();
  editor.settings.set("gradsight.enable", false);
  await activate({ subscriptions: [], extensionPath: "" } as unknown as ExtensionContext);
  const offered = manifest.contributes.commands.map(({ command }) => command);
  assert.deepEqual([...editor.handlers.keys()].sort(), offered.sort());
  await deactivate();
});

test("every setting has a description, a scope and a default of its type", () => {
  for (const [name, setting] of Object.entries(manifest.contributes.configuration.properties)) {
    assert.match(name, /^gradsight\./);
    assert.ok(setting.markdownDescription.endsWith("."), name);
    assert.ok(setting.scope, name);
    assert.equal(typeof setting.default, setting.type, name);
  }
});

test("the interpreter of an untrusted workspace is restricted", () => {
  assert.ok(
    manifest.capabilities.untrustedWorkspaces.restrictedConfigurations.includes("gradsight.interpreter"),
  );
});
