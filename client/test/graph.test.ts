import assert from "node:assert/strict";
import { test } from "node:test";
import { type Box, layOut, linesOf, neighbour } from "../src/graph/layout";
import type { Graph, GraphNode } from "../src/graph/model";
import { page } from "../src/graph/panel";

const plain: GraphNode = { id: "", name: "exp", text: "", uri: "", line: 0, role: "plain", message: "" };
const graph: Graph = {
  title: "why",
  nodes: [
    { ...plain, id: "x", name: "x", role: "leaf" },
    { ...plain, id: "a", role: "saved", text: "    y = x.exp()", line: 3 },
    { ...plain, id: "b", name: "mul" },
    { ...plain, id: "c", name: "sum", role: "needed" },
    { ...plain, id: "w", name: "mul_", role: "written" },
  ],
  edges: [
    { from: "x", to: "a", kind: "flow" },
    { from: "x", to: "b", kind: "flow" },
    { from: "a", to: "c", kind: "flow" },
    { from: "b", to: "c", kind: "flow" },
    { from: "w", to: "a", kind: "write" },
  ],
  total: 4,
};
const layout = layOut(graph);
const box = (id: string) => layout.boxes.find(({ node }) => node.id === id) as Box;

test("values flow downwards", () => {
  for (const { from, to } of graph.edges) assert.ok(box(from).y + box(from).height < box(to).y);
});

test("no two boxes overlap, and all lie in the picture", () => {
  for (const one of layout.boxes) {
    assert.ok(
      one.x >= 0 && one.y >= 0 && one.x + one.width <= layout.width && one.y + one.height <= layout.height,
    );
    for (const other of layout.boxes) {
      const isBeside = one.x + one.width <= other.x || other.x + other.width <= one.x;
      const isAbove = one.y + one.height <= other.y || other.y + other.height <= one.y;
      assert.ok(one === other || isBeside || isAbove, `${one.node.id} and ${other.node.id}`);
    }
  }
});

test("a write that is part of the flow comes after what it changed, and its arrow points back", () => {
  const edges = [
    { from: "x", to: "a", kind: "flow" },
    { from: "a", to: "b", kind: "flow" },
    { from: "b", to: "a", kind: "write" },
    { from: "b", to: "c", kind: "flow" },
  ] as const;
  const drawn = layOut({ ...graph, nodes: graph.nodes.slice(0, 4), edges });
  const height = (id: string) => drawn.boxes.find(({ node }) => node.id === id)?.y ?? 0;
  assert.ok(height("a") < height("b"));
  const write = drawn.paths.find(({ edge }) => edge.kind === "write")?.points ?? [];
  assert.ok((write[0]?.y ?? 0) > (write.at(-1)?.y ?? 0));
});

test("every edge has a path", () => {
  assert.equal(layout.paths.length, graph.edges.length);
  for (const { points } of layout.paths) assert.ok(points.length >= 2);
});

test("a box says its part in the fault, the operator, and its line of source", () => {
  assert.deepEqual(linesOf(box("a").node), ["saved for backward", "exp", "3: y = x.exp()"]);
  assert.ok((linesOf({ ...plain, text: "x".repeat(99), line: 1 }).at(-1) ?? "").length <= 38);
});

test("arrows walk to the next box in their direction, and stop at the border", () => {
  assert.ok(["a", "b"].includes(neighbour(layout.boxes, box("x"), "down")?.node.id ?? ""));
  assert.equal(neighbour(layout.boxes, box("a"), "down")?.node.id, "c");
  assert.equal(neighbour(layout.boxes, box("c"), "down"), undefined);
  const [left, right] = box("a").x < box("b").x ? ["a", "b"] : ["b", "a"];
  assert.equal(neighbour(layout.boxes, box(left), "right")?.node.id, right);
  assert.equal(neighbour(layout.boxes, box(right), "left")?.node.id, left);
});

test("an empty graph is an empty picture", () => {
  const empty = layOut({ title: "", nodes: [], edges: [], total: 0 });
  assert.deepEqual([empty.boxes, empty.paths], [[], []]);
});

test("the page loads nothing but its own script and style", () => {
  const html = page("s.js", "s.css", "https://panel", "abc");
  assert.match(html, /default-src 'none'; style-src https:\/\/panel; script-src 'nonce-abc'/);
  assert.doesNotMatch(html, /unsafe|style=|on(click|load)=/);
});
