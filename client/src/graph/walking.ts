// How the keyboard walks through the boxes; where they stand is the server's work, the same for every picture of a graph.

import type { GraphNode } from "./model";

/** The box that is next in a direction, from the middle of one to the middle of the other; undefined at the border. */
export function neighbour(
  boxes: readonly GraphNode[],
  from: GraphNode,
  direction: "up" | "down" | "left" | "right",
): GraphNode | undefined {
  const middle = (box: GraphNode) => ({ x: box.x + box.width / 2, y: box.y + box.height / 2 });
  const start = middle(from);
  const isUpright = direction === "up" || direction === "down";
  const sign = direction === "up" || direction === "left" ? -1 : 1;
  let best: GraphNode | undefined;
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
