// From lanes to what is drawn: rows of lanes with exchange zones between them, and where the baton is.

import type { Gate, Lane, LaneHead, Target, TargetState } from "../api/shapes";
import { trackOf } from "../live/merge";

/** What stands between two lanes: what ends the one and what begins the other. */
export interface Zone {
  gates: (Gate & { lane: string })[];
}

export interface TrackRow {
  id: string;
  title: string;
  lanes: Lane[];
  /** One more than lanes: before the first, between, after the last. */
  zones: Zone[];
  baton: { at: "zone" | "lane"; index: number } | undefined;
}

const before = new Set(["previous", "preHook"]);

export function tracksOf(lanes: Lane[]): TrackRow[] {
  const rows = new Map<string, Lane[]>();
  for (const lane of lanes) {
    const id = trackOf(lane);
    rows.set(id, [...(rows.get(id) ?? []), lane]);
  }
  const several = rows.size > 1;
  return [...rows].map(([id, row]) => ({ id, title: several ? titleOf(id) : "", lanes: row, zones: zonesOf(row), baton: id === "unmatched" ? undefined : batonIn(row) }));
}

function titleOf(id: string): string {
  if (id === "steps") return "Steps";
  if (id === "unmatched") return "Outside the order";
  return `Phases of generator ${id.split("-")[1] ?? "0"}`;
}

function zonesOf(lanes: Lane[]): Zone[] {
  const zones: Zone[] = Array.from({ length: lanes.length + 1 }, () => ({ gates: [] }));
  lanes.forEach((lane, index) => {
    for (const gate of lane.gates) {
      // That the lane before must be done is what its place says already.
      if (gate.kind === "previous" && gate.state !== "Failed" && index > 0) continue;
      zones[before.has(gate.kind) ? index : index + 1]?.gates.push({ ...gate, lane: lane.id });
    }
  });
  return zones;
}

const over = new Set(["Done", "Skipped", "RolledBack"]);

/** With the first that is not over; in the zone where all its targets are done and a gate is not, or where it has not begun. */
export function batonIn(lanes: LaneHead[]): { at: "zone" | "lane"; index: number } | undefined {
  const index = lanes.findIndex((lane) => !over.has(lane.state));
  const lane = lanes[index];
  if (lane === undefined) return undefined;
  if (lane.state === "Pending") return index > 0 || lane.gates.some((gate) => gate.state !== "Pending") ? { at: "zone", index } : undefined;
  const { total, done } = lane.counts;
  const waits = lane.gates.some((gate) => !before.has(gate.kind) && gate.state !== "Passed" && gate.state !== "Skipped");
  if (total > 0 && done === total && waits) return { at: "zone", index: index + 1 };
  const held = lane.gates.some((gate) => before.has(gate.kind) && (gate.state === "Running" || gate.state === "Failed"));
  return { at: held ? "zone" : "lane", index };
}

// === targets ===

export const groupOrder = ["failed", "active", "leaving", "next", "done"] as const;
export type Group = (typeof groupOrder)[number];

const groups: Record<TargetState, Group> = { Failed: "failed", Progressing: "active", Deleting: "leaving", Pending: "next", Waiting: "next", Healthy: "done" };

export const groupOf = (target: Target): Group => groups[target.state] ?? "next";

/** The targets of a lane by what a person would ask of them; within a group in the order in which they go. */
export function grouped(targets: Target[]): { group: Group; targets: Target[] }[] {
  const lists = new Map<Group, Target[]>(groupOrder.map((group) => [group, []]));
  for (const target of targets) lists.get(groupOf(target))?.push(target);
  return groupOrder.map((group) => ({ group, targets: lists.get(group) ?? [] })).filter((entry) => entry.targets.length > 0);
}

/** Above so many, a lane shows squares instead of cards. */
export const cardLimit = 60;
/** Above so many, a square stands for several. */
export const squareLimit = 2000;

export interface Square {
  state: TargetState;
  targets: Target[];
}

const worstFirst: TargetState[] = ["Failed", "Deleting", "Progressing", "Pending", "Waiting", "Healthy"];

/** As many squares as can be told apart; one for several is in the state of the worst of them. */
export function squaresOf(targets: Target[], limit = squareLimit): Square[] {
  const size = Math.max(1, Math.ceil(targets.length / limit));
  const squares: Square[] = [];
  for (let start = 0; start < targets.length; start += size) {
    const slice = targets.slice(start, start + size);
    const rank = (target: Target) => worstFirst.indexOf(target.state);
    const worst = slice.reduce((left, right) => (rank(right) < rank(left) ? right : left));
    squares.push({ state: worst.state, targets: slice });
  }
  return squares;
}

/** Which targets the filters of the page ask for. */
export function matches(target: Target, text: string, group: string): boolean {
  if (group !== "" && groupOf(target) !== group) return false;
  if (text === "") return true;
  const wanted = text.toLowerCase();
  return target.name.toLowerCase().includes(wanted) || target.cluster.toLowerCase().includes(wanted);
}

/** Where an arrow key leads in a grid that wraps. */
export function stepInGrid(key: string, index: number, length: number, columns: number): number | undefined {
  const last = length - 1;
  const moves: Record<string, number> = {
    ArrowLeft: index - 1,
    ArrowRight: index + 1,
    ArrowUp: index - columns,
    ArrowDown: index + columns,
    Home: 0,
    End: last,
    PageUp: Math.max(0, index - columns * 5),
    PageDown: Math.min(last, index + columns * 5),
  };
  const next = moves[key];
  if (next === undefined) return undefined;
  return next < 0 || next > last ? index : next;
}
