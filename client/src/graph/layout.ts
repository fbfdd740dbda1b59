// Where everything goes: the layered layout of dagre, for boxes whose size follows from their text.

import { graphlib, layout as place } from "@dagrejs/dagre";
import type { Graph, GraphEdge, GraphNode } from "./model";

export interface Point {
  readonly x: number;
  readonly y: number;
}
/** A box with its top left corner, and the lines of text in it. */
export interface Box extends Point {
  readonly node: GraphNode;
  readonly lines: readonly string[];
  readonly width: number;
  readonly height: number;
}
export interface Path {
  readonly edge: GraphEdge;
  readonly points: readonly Point[];
}
export interface Layout {
  readonly boxes: readonly Box[];
  readonly paths: readonly Path[];
  readonly width: number;
  readonly height: number;
}

/** Sizes in pixels; the font is the editor's monospace one. */
export const TEXT = { character: 7.3, line: 17, padding: 10 };
const LONGEST_LINE = 38;
const MARGIN = 16;

const ROLE_WORDS: Readonly<Record<GraphNode["role"], string>> = {
  plain: "",
  leaf: "leaf",
  saved: "saved for backward",
  written: "overwritten here",
  needed: "needed here",
  cut: "cut here",
};

/** The text of a box: its part in the fault, the operator, the line of source. */
export function linesOf(node: GraphNode): string[] {
  const source = node.text === "" ? "" : `${node.line}: ${node.text.trim()}`;
  return [ROLE_WORDS[node.role], node.name, source].filter((line) => line !== "").map(shortened);
}

/** Values flow downwards; a write stands beside what it changed. */
export function layOut(graph: Graph): Layout {
  const drawing = new graphlib.Graph<object, { width: number; height: number }, object>({ multigraph: true });
  drawing.setGraph({ rankdir: "TB", nodesep: 36, ranksep: 44, marginx: MARGIN, marginy: MARGIN });
  for (const node of graph.nodes) drawing.setNode(node.id, sizeOf(linesOf(node)));
  const isInFlow = new Set(graph.edges.flatMap(({ kind, from }) => (kind === "flow" ? [from] : [])));
  // A write that is an operator of the flow itself comes after what it changed: only its arrow points back.
  const isBackwards = ({ kind, from }: GraphEdge) => kind === "write" && isInFlow.has(from);
  for (const edge of graph.edges) {
    const [first, second] = isBackwards(edge) ? [edge.to, edge.from] : [edge.from, edge.to];
    drawing.setEdge(first, second, {}, edge.kind);
  }
  place(drawing);
  const boxes = graph.nodes.map((node) => {
    const { x, y, width, height } = drawing.node(node.id) as Point & { width: number; height: number };
    return { node, lines: linesOf(node), x: x - width / 2, y: y - height / 2, width, height };
  });
  const paths = graph.edges.map((edge) => {
    const [first, second] = isBackwards(edge) ? [edge.to, edge.from] : [edge.from, edge.to];
    const { points } = drawing.edge(first, second, edge.kind) as unknown as { points: Point[] };
    return { edge, points: isBackwards(edge) ? [...points].reverse() : points };
  });
  const { width = 0, height = 0 } = drawing.graph() as { width?: number; height?: number };
  return { boxes, paths, width, height };
}

/** The box that is next in a direction, from the middle of one to the middle of the other; undefined at the border. */
export function neighbour(
  boxes: readonly Box[],
  from: Box,
  direction: "up" | "down" | "left" | "right",
): Box | undefined {
  const middle = (box: Box) => ({ x: box.x + box.width / 2, y: box.y + box.height / 2 });
  const start = middle(from);
  const isUpright = direction === "up" || direction === "down";
  const sign = direction === "up" || direction === "left" ? -1 : 1;
  let best: Box | undefined;
  let least = Number.POSITIVE_INFINITY;
  for (const box of boxes) {
    const { x, y } = middle(box);
    const along = sign * (isUpright ? y - start.y : x - start.x);
    const aside = Math.abs(isUpright ? x - start.x : y - start.y);
    // What lies mostly aside is not in this direction.
    if (box === from || along <= 1 || (!isUpright && aside > along)) continue;
    const distance = along + 2 * aside;
    if (distance < least) [best, least] = [box, distance];
  }
  return best;
}

function sizeOf(lines: readonly string[]): { width: number; height: number } {
  const longest = Math.max(...lines.map((line) => line.length));
  return {
    width: Math.round(longest * TEXT.character + 2 * TEXT.padding),
    height: lines.length * TEXT.line + 2 * TEXT.padding - 4,
  };
}

function shortened(line: string): string {
  return line.length > LONGEST_LINE ? `${line.slice(0, LONGEST_LINE - 1)}…` : line;
}
