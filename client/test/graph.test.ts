import assert from "node:assert/strict";
import { test } from "node:test";
import type { GraphNode } from "../src/graph/model";
import { page } from "../src/graph/panel";
import { neighbour } from "../src/graph/walking";

const plain: GraphNode = {
  ...{
    id: "",
    name: "exp",
    text: "",
    uri: "",
    line: 0,
    role: "plain",
    message: "",
    count: 1,
    place: "",
    lines: ["exp"],
  },
  ...{ x: 0, y: 0, width: 40, height: 20 },
};
const boxes: GraphNode[] = [
  { ...plain, id: "top", x: 30, y: 0 },
  { ...plain, id: "left", x: 0, y: 60 },
  { ...plain, id: "right", x: 80, y: 60 },
  { ...plain, id: "bottom", x: 10, y: 120 },
];
const box = (id: string) => boxes.find((each) => each.id === id) as GraphNode;

test("arrows walk to the next box in their direction, and stop at the border", () => {
  assert.equal(neighbour(boxes, box("top"), "down")?.id, "left");
  assert.equal(neighbour(boxes, box("left"), "down")?.id, "bottom");
  assert.equal(neighbour(boxes, box("bottom"), "down"), undefined);
  assert.equal(neighbour(boxes, box("left"), "right")?.id, "right");
  assert.equal(neighbour(boxes, box("right"), "left")?.id, "left");
  assert.equal(neighbour(boxes, box("bottom"), "up")?.id, "left");
});

test("the page loads nothing but its own script and style", () => {
  const html = page("s.js", "s.css", "https://panel", "abc");
  assert.match(html, /default-src 'none'; style-src https:\/\/panel; script-src 'nonce-abc'/);
  assert.doesNotMatch(html, /unsafe|style=|on(click|load)=/);
});
