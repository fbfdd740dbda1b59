// The graph as the server sends it, every box and arrow in its place, and as the view draws it.

/** What a node has to do with the fault; most have nothing to do with it. */
export type Role = "plain" | "leaf" | "saved" | "written" | "needed" | "cut";

export interface GraphNode {
  readonly id: string;
  /** The operator, as the user knows it. */
  readonly name: string;
  /** The line of source that made it; empty if it is not known. */
  readonly text: string;
  readonly uri: string;
  /** Counted from 1; 0 if it is not known. */
  readonly line: number;
  readonly role: Role;
  /** One sentence about its part in the fault; empty for bystanders. */
  readonly message: string;
  /** How the line is spoken of: `7`, in a notebook `cell 3, line 2`. */
  readonly place: string;
  /** How many operators it stands for. */
  readonly count: number;
  /** The text of its box, shortened to fit. */
  readonly lines: readonly string[];
  /** The top left corner of its box. */
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

export interface GraphEdge {
  readonly from: string;
  readonly to: string;
  /** `flow`: values go along it.  `write`: this write changed what that operator had saved. */
  readonly kind: "flow" | "write";
  readonly points: readonly (readonly [number, number])[];
}

export interface Graph {
  readonly title: string;
  readonly nodes: readonly GraphNode[];
  readonly edges: readonly GraphEdge[];
  /** How many operators the whole graph has; more than are drawn if it was cut to the surroundings of the fault. */
  readonly total: number;
  readonly width: number;
  readonly height: number;
  /** The height of a line of text in a box, and how far the text is from its border. */
  readonly lineHeight: number;
  readonly padding: number;
}

/** What the view tells the editor. */
export type Message = { readonly kind: "ready" } | { readonly kind: "open"; readonly id: string };
