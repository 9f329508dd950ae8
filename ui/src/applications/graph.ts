// Where the resources of an Application stand on the page: parents left, children right, nobody on top of another.

import type { HealthState, ResourceRef, TreeNode } from "../api/shapes";
import { compareNames } from "../live/merge";

export interface GraphNode {
  key: string;
  ref: ResourceRef | undefined;
  title: string;
  subtitle: string;
  health: HealthState | undefined;
  info: string[];
  /** How many resources it stands for. */
  stands: number;
  children: GraphNode[];
}

export interface Placed {
  node: GraphNode;
  x: number;
  y: number;
  parent: number | undefined;
}

export interface Layout {
  placed: Placed[];
  width: number;
  height: number;
}

export const nodeWidth = 232;
export const nodeHeight = 54;
const columnGap = 56;
const rowGap = 20;
/** More siblings of one kind than this are one node, until it is opened. */
export const foldLimit = 8;
const deepest = 24;

export const resourceKey = (of: ResourceRef): string => `${of.group ?? ""}/${of.kind}/${of.namespace ?? ""}/${of.name}`;

/** The tree of nodes under the Application; what refers to a parent nobody knows stands at the top. */
export function treeOf(name: string, health: HealthState | undefined, nodes: TreeNode[], opened: ReadonlySet<string> = new Set()): GraphNode {
  const byUid = new Map<string, TreeNode>();
  for (const node of nodes) byUid.set(node.uid ?? resourceKey(node), node);
  const children = new Map<string, TreeNode[]>();
  const roots: TreeNode[] = [];
  for (const node of nodes) {
    const parent = (node.parentRefs ?? []).map((ref) => ref.uid ?? resourceKey(ref)).find((uid) => byUid.has(uid) && uid !== (node.uid ?? resourceKey(node)));
    if (parent === undefined) roots.push(node);
    else children.set(parent, [...(children.get(parent) ?? []), node]);
  }
  // A cycle of owners has no root; its members are drawn nowhere rather than for ever.
  const seen = new Set<string>();
  const grow = (node: TreeNode, depth: number): GraphNode => {
    const uid = node.uid ?? resourceKey(node);
    seen.add(uid);
    const below = depth >= deepest ? [] : (children.get(uid) ?? []).filter((child) => !seen.has(child.uid ?? resourceKey(child)));
    return {
      key: resourceKey(node), ref: node, title: node.name, subtitle: node.kind, health: node.health?.status, stands: 1,
      info: (node.info ?? []).filter((entry) => entry.name !== "Containers").map((entry) => entry.value),
      children: fold(resourceKey(node), below.map((child) => grow(child, depth + 1)), opened),
    };
  };
  return { key: "application", ref: undefined, title: name, subtitle: "Application", health, info: [], stands: 1, children: fold("application", roots.map((node) => grow(node, 1)), opened) };
}

function fold(parent: string, siblings: GraphNode[], opened: ReadonlySet<string>): GraphNode[] {
  const kinds = new Map<string, GraphNode[]>();
  for (const node of siblings) kinds.set(node.subtitle, [...(kinds.get(node.subtitle) ?? []), node]);
  return [...kinds]
    .sort(([left], [right]) => left.localeCompare(right))
    .flatMap(([kind, members]) => {
      members.sort((left, right) => compareNames(left.title, right.title));
      const key = `${parent} > ${kind}`;
      if (members.length <= foldLimit || opened.has(key)) return members;
      const stands = members.reduce((sum, member) => sum + member.stands, 0);
      return [{ key, ref: undefined, title: `${members.length} × ${kind}`, subtitle: "Open to see each", health: worst(members), info: [], stands, children: [] }];
    });
}

const worstFirst: HealthState[] = ["Degraded", "Missing", "Unknown", "Progressing", "Suspended", "Healthy"];

function worst(nodes: GraphNode[]): HealthState | undefined {
  return worstFirst.find((health) => nodes.some((node) => node.health === health));
}

/** Leaves one below the other, each parent beside the first of its children: the root of a tall tree is in sight where one begins to read. */
export function layoutOf(root: GraphNode): Layout {
  const placed: Placed[] = [];
  let nextRow = 0;
  let depthSeen = 0;
  const place = (node: GraphNode, depth: number, parent: number | undefined): number => {
    const index = placed.length;
    const x = depth * (nodeWidth + columnGap);
    placed.push({ node, x, y: 0, parent });
    depthSeen = Math.max(depthSeen, depth);
    const rows = node.children.map((child) => place(child, depth + 1, index));
    const y = rows.length === 0 ? nextRow++ * (nodeHeight + rowGap) : (rows[0] ?? 0);
    placed[index] = { node, x, y, parent };
    return y;
  };
  place(root, 0, undefined);
  return { placed, width: (depthSeen + 1) * (nodeWidth + columnGap) - columnGap, height: Math.max(1, nextRow) * (nodeHeight + rowGap) - rowGap };
}

const bend = 9;

/** The line from a parent's right edge to a child's left; sisters share the trunk. */
export function edgePath(from: Placed, to: Placed): string {
  const startX = from.x + nodeWidth;
  const startY = from.y + nodeHeight / 2;
  const endY = to.y + nodeHeight / 2;
  if (startY === endY) return `M${startX} ${startY}H${to.x}`;
  const middle = startX + columnGap / 2;
  return `M${startX} ${startY}H${middle - bend}Q${middle} ${startY} ${middle} ${startY + bend}V${endY - bend}Q${middle} ${endY} ${middle + bend} ${endY}H${to.x}`;
}

/** Which node an arrow key leads to: right to the first child, left to the parent, up and down among those at the same depth. */
export function neighbour(key: string, index: number, placed: Placed[]): number | undefined {
  const here = placed[index];
  if (here === undefined) return undefined;
  if (key === "ArrowLeft") return here.parent;
  if (key === "ArrowRight") return found(placed.findIndex((each) => each.parent === index));
  if (key !== "ArrowUp" && key !== "ArrowDown") return undefined;
  const column = placed.map((each, at) => ({ each, at })).filter(({ each }) => each.x === here.x).sort((left, right) => left.each.y - right.each.y);
  const position = column.findIndex(({ at }) => at === index);
  return column[position + (key === "ArrowDown" ? 1 : -1)]?.at;
}

const found = (index: number): number | undefined => (index < 0 ? undefined : index);
