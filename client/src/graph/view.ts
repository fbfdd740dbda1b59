// Runs inside the panel: draws the graph, and lets the mouse and the keyboard walk through it.

import type { Graph, GraphEdge, GraphNode, Message } from "./model";
import { neighbour } from "./walking";

declare function acquireVsCodeApi(): { postMessage(message: Message): void };

const SVG = "http://www.w3.org/2000/svg";
const DIRECTIONS = { ArrowUp: "up", ArrowDown: "down", ArrowLeft: "left", ArrowRight: "right" } as const;
const editor = acquireVsCodeApi();
const stage = byId("graph");
const NOTHING = { title: "", nodes: [], edges: [], total: 0, width: 0, height: 0, lineHeight: 0, padding: 0 };
let graph: Graph = NOTHING;
let scale = 1;
const READABLE = 0.55;

window.addEventListener("message", (event: MessageEvent<Graph>) => show(event.data));
window.addEventListener("resize", fit);
byId("smaller").addEventListener("click", () => zoom(scale / 1.25));
byId("larger").addEventListener("click", () => zoom(scale * 1.25));
byId("fit").addEventListener("click", fit);
stage.addEventListener("keydown", (event) => walk(event));
editor.postMessage({ kind: "ready" });

function show(sent: Graph): void {
  graph = sent;
  byId("title").textContent = graph.title;
  const drawn = graph.nodes.filter(({ role }) => role !== "written");
  const hidden = graph.total - drawn.reduce((sum, { count }) => sum + count, 0);
  byId("size").textContent =
    hidden > 0 ? `The operators around the fault; ${hidden} more are not shown.` : "";
  const svg = element("svg", { viewBox: `0 0 ${graph.width} ${graph.height}`, role: "group" });
  svg.append(arrowHead("flow"), arrowHead("write"));
  for (const each of graph.edges) svg.append(edge(each));
  for (const each of graph.nodes) svg.append(node(each));
  stage.replaceChildren(svg);
  const first = graph.nodes.find(({ role }) => role === "written" || role === "cut") ?? graph.nodes[0];
  fit();
  if (first === undefined) return;
  shapeOf(first)?.setAttribute("tabindex", "0");
  shapeOf(first)?.scrollIntoView({ block: "center", inline: "center" });
}

function node(box: GraphNode): SVGElement {
  const { id, role, name, line, message, place, text, lines } = box;
  const where = place.startsWith("cell") ? place : `line ${place}`;
  const label = [name, line > 0 ? where : "", message].filter((part) => part !== "").join(", ");
  const group = element("g", {
    class: `node ${role}`,
    role: "button",
    tabindex: "-1",
    "aria-label": label,
    "data-id": id,
    transform: `translate(${box.x} ${box.y})`,
  });
  const hint = element("title", {});
  hint.textContent = [name, line > 0 ? `${place}: ${text}` : "", message]
    .filter((part) => part !== "")
    .join("\n");
  group.append(hint, element("rect", { width: box.width, height: box.height, rx: 4 }));
  // The operator stands first, or below its part in the fault.
  const operator = role === "plain" ? 0 : 1;
  lines.forEach((words, index) => {
    const kind = index < operator ? "role" : index === operator ? "name" : "source";
    const y = graph.padding + graph.lineHeight * (index + 0.72);
    const row = element("text", { class: kind, x: graph.padding, y });
    row.textContent = words;
    group.append(row);
  });
  group.addEventListener("click", () => open(box));
  return group;
}

function edge({ kind, points }: GraphEdge): SVGElement {
  const way = points.map(([x, y]) => `${x},${y}`).join(" ");
  return element("polyline", { class: `edge ${kind}`, points: way, "marker-end": `url(#${kind})` });
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
  const here = graph.nodes.find((box) => shapeOf(box) === document.activeElement);
  if (event.key === "+" || event.key === "=") zoom(scale * 1.25);
  else if (event.key === "-") zoom(scale / 1.25);
  else if (event.key === "0") fit();
  else if (here === undefined) return;
  else if (event.key === "Enter" || event.key === " ") open(here);
  else if (event.key in DIRECTIONS) {
    const next = neighbour(graph.nodes, here, DIRECTIONS[event.key as keyof typeof DIRECTIONS]);
    if (next !== undefined) focus(here, next);
  } else return;
  event.preventDefault();
}

function focus(from: GraphNode, to: GraphNode): void {
  shapeOf(from)?.setAttribute("tabindex", "-1");
  const shape = shapeOf(to);
  shape?.setAttribute("tabindex", "0");
  shape?.focus();
  shape?.scrollIntoView({ block: "nearest", inline: "nearest" });
}

function open(box: GraphNode): void {
  editor.postMessage({ kind: "open", id: box.id });
}

function fit(): void {
  const wide = stage.clientWidth / Math.max(1, graph.width);
  const high = stage.clientHeight / Math.max(1, graph.height);
  // A graph that would be too small to read stays readable, and the fault is put in the middle.
  zoom(Math.max(READABLE, Math.min(1, wide, high)));
}

function zoom(wanted: number): void {
  scale = Math.min(3, Math.max(0.3, wanted));
  const svg = stage.querySelector("svg");
  svg?.setAttribute("width", String(graph.width * scale));
  svg?.setAttribute("height", String(graph.height * scale));
}

function shapeOf(box: GraphNode): SVGElement | null {
  return stage.querySelector(`[data-id="${CSS.escape(box.id)}"]`);
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
