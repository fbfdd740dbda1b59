// The graph as the server sends it and as the view draws it.

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
}

export interface GraphEdge {
  readonly from: string;
  readonly to: string;
  /** `flow`: values go along it.  `write`: this write changed what that operator had saved. */
  readonly kind: "flow" | "write";
}

export interface Graph {
  readonly title: string;
  readonly nodes: readonly GraphNode[];
  readonly edges: readonly GraphEdge[];
  /** How many operators the whole graph has; more than are drawn if it was cut to the surroundings of the fault. */
  readonly total: number;
}

/** What the view tells the editor. */
export type Message = { readonly kind: "ready" } | { readonly kind: "open"; readonly id: string };
