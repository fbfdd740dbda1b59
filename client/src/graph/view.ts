// Runs inside the panel: draws the graph, and lets the mouse and the keyboard walk through it.

import { type Box, type Layout, layOut, neighbour, type Path, TEXT } from "./layout";
import type { Graph, Message } from "./model";

declare function acquireVsCodeApi(): { postMessage(message: Message): void };

const SVG = "http://www.w3.org/2000/svg";
const DIRECTIONS = { ArrowUp: "up", ArrowDown: "down", ArrowLeft: "left", ArrowRight: "right" } as const;
const editor = acquireVsCodeApi();
const stage = byId("graph");
let layout: Layout = { boxes: [], paths: [], width: 0, height: 0 };
let scale = 1;
const READABLE = 0.6;

window.addEventListener("message", (event: MessageEvent<Graph>) => show(event.data));
window.addEventListener("resize", fit);
byId("smaller").addEventListener("click", () => zoom(scale / 1.25));
byId("larger").addEventListener("click", () => zoom(scale * 1.25));
byId("fit").addEventListener("click", fit);
stage.addEventListener("keydown", (event) => walk(event));
editor.postMessage({ kind: "ready" });

function show(graph: Graph): void {
  layout = layOut(graph);
  byId("title").textContent = graph.title;
  const hidden = graph.total - graph.nodes.filter(({ role }) => role !== "written").length;
  byId("size").textContent =
    hidden > 0 ? `The operators around the fault; ${hidden} more are not drawn.` : "";
  const svg = element("svg", { viewBox: `0 0 ${layout.width} ${layout.height}`, role: "group" });
  svg.append(arrowHead("flow"), arrowHead("write"));
  for (const path of layout.paths) svg.append(edge(path));
  for (const box of layout.boxes) svg.append(node(box));
  stage.replaceChildren(svg);
  const first =
    layout.boxes.find(({ node: { role } }) => role === "written" || role === "cut") ?? layout.boxes[0];
  fit();
  if (first === undefined) return;
  shapeOf(first)?.setAttribute("tabindex", "0");
  if (stage.scrollHeight > stage.clientHeight)
    shapeOf(first)?.scrollIntoView({ block: "center", inline: "nearest" });
}

function node(box: Box): SVGElement {
  const { id, role, name, line, message } = box.node;
  const label = [name, line > 0 ? `line ${line}` : "", message].filter((part) => part !== "").join(", ");
  const group = element("g", {
    class: `node ${role}`,
    role: "button",
    tabindex: "-1",
    "aria-label": label,
    "data-id": id,
    transform: `translate(${box.x} ${box.y})`,
  });
  const hint = element("title", {});
  hint.textContent = [name, line > 0 ? `${line}: ${box.node.text}` : "", message]
    .filter((part) => part !== "")
    .join("\n");
  group.append(hint, element("rect", { width: box.width, height: box.height, rx: 4 }));
  const operator = box.lines.indexOf(name);
  box.lines.forEach((text, index) => {
    const kind = index < operator ? "role" : index === operator ? "name" : "source";
    const line = element("text", {
      class: kind,
      x: TEXT.padding,
      y: TEXT.padding + TEXT.line * (index + 0.72),
    });
    line.textContent = text;
    group.append(line);
  });
  group.addEventListener("click", () => open(box));
  return group;
}

function edge({ edge: { kind }, points }: Path): SVGElement {
  const [first, ...others] = points;
  const way = others.map(({ x, y }) => `L${x} ${y}`).join(" ");
  return element("path", {
    class: `edge ${kind}`,
    d: `M${first?.x} ${first?.y} ${way}`,
    "marker-end": `url(#${kind})`,
  });
}

function arrowHead(kind: string): SVGElement {
  const marker = element("marker", {
    id: kind,
    class: kind,
    viewBox: "0 0 8 8",
    refX: 7,
    refY: 4,
    markerWidth: 8,
    markerHeight: 8,
    orient: "auto",
  });
  marker.append(element("path", { d: "M0 0 L8 4 L0 8 z" }));
  return marker;
}

/** One tab stop for the whole graph; arrows move it. */
function walk(event: KeyboardEvent): void {
  const here = layout.boxes.find((box) => shapeOf(box) === document.activeElement);
  if (event.key === "+" || event.key === "=") zoom(scale * 1.25);
  else if (event.key === "-") zoom(scale / 1.25);
  else if (event.key === "0") fit();
  else if (here === undefined) return;
  else if (event.key === "Enter" || event.key === " ") open(here);
  else if (event.key in DIRECTIONS) {
    const next = neighbour(layout.boxes, here, DIRECTIONS[event.key as keyof typeof DIRECTIONS]);
    if (next !== undefined) focus(here, next);
  } else return;
  event.preventDefault();
}

function focus(from: Box, to: Box): void {
  shapeOf(from)?.setAttribute("tabindex", "-1");
  const shape = shapeOf(to);
  shape?.setAttribute("tabindex", "0");
  shape?.focus();
  shape?.scrollIntoView({ block: "nearest", inline: "nearest" });
}

function open(box: Box): void {
  editor.postMessage({ kind: "open", id: box.node.id });
}

function fit(): void {
  const wide = stage.clientWidth / Math.max(1, layout.width);
  const high = stage.clientHeight / Math.max(1, layout.height);
  // A graph that would be too small to read is fitted to the width alone.
  zoom(Math.min(1, wide, Math.max(high, READABLE)));
}

function zoom(wanted: number): void {
  scale = Math.min(3, Math.max(0.3, wanted));
  const svg = stage.querySelector("svg");
  svg?.setAttribute("width", String(layout.width * scale));
  svg?.setAttribute("height", String(layout.height * scale));
}

function shapeOf(box: Box): SVGElement | null {
  return stage.querySelector(`[data-id="${CSS.escape(box.node.id)}"]`);
}

function element(name: string, attributes: Record<string, string | number>): SVGElement {
  const made = document.createElementNS(SVG, name) as SVGElement;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  return made;
}

function byId(id: string): HTMLElement {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`the page has no ${id}`);
  return found;
}
