// Which sets a person wants to see first, and which the filters ask for.

import type { RolloutState, RolloutSummary } from "../api/shapes";
import { compareNames } from "../live/merge";

export type Concern = "attention" | "moving" | "settled";

const concerns: Record<RolloutState, Concern> = {
  Failed: "attention", Invalid: "attention", Waiting: "attention", Paused: "attention",
  RollingBack: "moving", Progressing: "moving", Deleting: "moving",
  Aborted: "attention", Complete: "settled", Superseded: "settled", Idle: "settled",
};

/** What waits for a person needs attention, whatever else goes on. */
export function concernOf(set: RolloutSummary): Concern {
  if (set.approvals > 0) return "attention";
  const concern = concerns[set.state] ?? "attention";
  return concern === "settled" && set.health === "Degraded" ? "attention" : concern;
}

const urgency: RolloutState[] = ["Failed", "Invalid", "Waiting", "Paused", "Aborted", "Deleting", "RollingBack", "Progressing", "Idle", "Complete"];

function rank(set: RolloutSummary): number {
  const place = urgency.indexOf(set.state);
  const own = place < 0 ? 0 : place;
  return set.approvals > 0 ? Math.min(own, urgency.indexOf("Waiting")) : own;
}

export function inOrder(sets: Iterable<RolloutSummary>): RolloutSummary[] {
  return [...sets].sort((left, right) => rank(left) - rank(right) || compareNames(left.name, right.name) || compareNames(left.namespace, right.namespace));
}

export interface FleetFilter {
  text: string;
  concern: string;
  project: string;
}

export function asked(set: RolloutSummary, filter: FleetFilter): boolean {
  if (filter.concern !== "" && concernOf(set) !== filter.concern) return false;
  if (filter.project !== "" && set.project !== filter.project) return false;
  const wanted = filter.text.toLowerCase();
  return wanted === "" || [set.name, set.namespace, set.project, set.revision ?? ""].some((part) => part.toLowerCase().includes(wanted));
}

/** The first thing the page says. */
export function headline(sets: RolloutSummary[]): string {
  const number = (concern: Concern) => sets.filter((set) => concernOf(set) === concern).length;
  const attention = number("attention");
  const moving = number("moving");
  if (attention > 0) return attention === 1 ? "One set needs you" : `${attention} sets need you`;
  if (moving > 0) return moving === 1 ? "One rollout is under way" : `${moving} rollouts are under way`;
  return "All is well";
}
